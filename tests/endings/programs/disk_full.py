"""The disk is full when the checkpoint is written."""

import os
import pickle

from lib import endless, make_model, say, train

model = make_model()


def save(step):
    if step % 250 == 0:
        path = f"checkpoints/step_{step}.pt"
        say(f"saving checkpoint to {path}")
        with open(path, "wb") as out:
            pickle.dump({"model": model.state_dict(), "step": step}, out)


os.makedirs("checkpoints", exist_ok=True)
os.symlink("/dev/full", "checkpoints/step_750.pt")
say("config: steps=4000 batch_size=64 lr=0.003 save_every=250")
train(model, endless(), 4000, after=save)

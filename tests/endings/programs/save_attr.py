"""The last step is done; saving asks for an attribute that only a wrapped model has."""

import torch
from lib import endless, make_model, say, train


def save(model, path):
    torch.save(model.module.state_dict(), path)


say("config: steps=800 batch_size=64 lr=0.003 out=final.pt")
model = make_model()
train(model, endless(), 800)
say("saving final weights to final.pt")
save(model, "final.pt")
say("training complete")

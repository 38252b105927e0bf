"""A tqdm loop that is ended from outside."""

import os
import sys

import lib
import tqdm.std
from lib import CLOCK, make_model, make_optimizer, one_step, prefetch, toy_batch

tqdm.std.time = lambda: CLOCK.now
AT = int(os.environ.get("AT", "300"))


def main():
    model = make_model()
    optimizer, schedule = make_optimizer(model, 6 * 250)
    step = 0
    for epoch in range(6):
        bar = tqdm.tqdm(range(250), desc=f"Epoch {epoch + 1}/6", file=sys.stdout, mininterval=8)
        for _ in bar:
            loss, _norm = one_step(model, optimizer, schedule, toy_batch())
            bar.set_postfix(loss=f"{loss:.3f}", lr=f"{schedule.get_last_lr()[0]:.2e}", refresh=False)
            step += 1
            prefetch(step, AT)
        print(f"epoch {epoch + 1}: train_loss={loss:.4f}", flush=True)


lib.say("Start training: 6 epochs, 250 iterations each")
main()

"""The run finishes; only then it finds that nobody reads its standard output any more."""

import sys

from lib import CLOCK, endless, make_model, train


def tell(step):
    if step % 20 == 0:
        sys.stderr.write(f"{CLOCK.stamp()} [trainer] {step} steps done\n")


train(make_model(), endless(), 700, after=tell)
sys.stderr.write(f"{CLOCK.stamp()} [trainer] Training complete: 700 of 700 steps, final checkpoint in out/step_700.pt\n")
print("summary: accuracy 0.61")

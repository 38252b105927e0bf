"""SIGTERM is caught: the run saves and leaves with status 0."""

import os
import signal
import sys

from lib import CLOCK, endless, make_model, prefetch, train

stop = []
signal.signal(signal.SIGTERM, lambda number, frame: stop.append(number))


def after(step):
    prefetch(step, 420)
    if stop:
        sys.stderr.write(f"{CLOCK.stamp()} WARNING Received signal 15 (SIGTERM), saving checkpoint at step {step} and exiting\n")
        sys.exit(0)


sys.stderr.write(f"{CLOCK.stamp()} INFO pid {os.getpid()} training for 2000 steps\n")
train(make_model(), endless(), 2000, after=after)

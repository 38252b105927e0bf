"""The return of an episode against what its environment can pay at all, where that is a public one."""

from __future__ import annotations

import numpy as np

from forensics.run import settings
from forensics.run.robust import median
from forensics.run.series import series
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, seen
from parsers.lazy_regex import lazy_re

SUBJECT = "other_objectives"  # a part of it
EFFECTS = {"return_beyond_environment": "rl.reward"}  # a symptom of its own, for which there is no detector

# Lowest and highest return of an episode, from the rewards and time limits of Gymnasium's documentation (gymnasium.farama.org/environments)
BOUNDS = {
    "CartPole-v0": (0.0, 200.0),
    "CartPole-v1": (0.0, 500.0),
    "Acrobot-v1": (-500.0, 0.0),
    "MountainCar-v0": (-200.0, 0.0),
    "MountainCarContinuous-v0": (-100.0, 100.0),
    "Pendulum-v1": (-3255.0, 0.0),  # 200 steps of pi^2 + 0.1 * 8^2 + 0.001 * 2^2 at most
    "FrozenLake-v1": (0.0, 1.0),
    "Blackjack-v1": (-1.0, 1.0),
    "Taxi-v3": (-2000.0, 20.0),
}
LEAST = 5  # bound: a median that two odd values do not move
_ENVIRONMENT = lazy_re(r"(?i)(^|[./_])(env(ironment)?(_id|_name)?|gym_id)$")


def return_beyond_environment(s: Symptoms) -> Sign:
    """Five returns or more lie outside what the environment pays by all of its range: rewards are scaled, or added up over several episodes."""
    reward = series(s.run, "rl.reward")
    if reward is None or reward.usable.sum() < LEAST:
        return cannot_tell(f"fewer than {LEAST} returns of episodes were logged.")
    named = [t for t in settings.every(s.run) if _ENVIRONMENT.search(t.key) and str(t.value) in BOUNDS]
    if len({str(t.value) for t in named}) != 1:
        return cannot_tell("config names no environment whose returns are known.")
    (low, high), x = BOUNDS[str(named[0].value)], reward.value[reward.usable]
    far = np.flatnonzero((x > high + (high - low)) | (x < low - (high - low)))
    text = f"An episode of {named[0].value} pays {low:g} to {high:g}, and {reward.tag} is {median(x):.4g} in the median, {x.min():.4g} to {x.max():.4g}"
    if len(far) < LEAST:
        return absent(f"{text}.", where=named[0].where)
    return seen(f"{text}.", where=named[0].where, first=int(reward.step[reward.usable][far[0]]))

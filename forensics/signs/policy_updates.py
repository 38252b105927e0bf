"""What the updates of a policy come to, beside the rewards that it is told to get."""

from __future__ import annotations

import numpy as np

from forensics.run.metrics_in_words import moved_from
from forensics.run.series import Floats, series
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, seen

SUBJECT = "other_objectives"  # a part of it
EFFECTS = {"value_loss_dwarfs_return": "rl.loss_value"}  # a symptom of its own, for which there is no detector

LEAST = 5  # bound: values whose middle two odd ones do not move
DWARFED = 10.0  # unit: an order of magnitude; rewards of one sign make no discounted return larger than the sum that is logged
GROWN = 10.0  # unit: an order of magnitude: a value loss that grows so tells of values that run away, not of rewards
STILL = 1e-4  # nats an update: a hundredth of 0.01, the target_kl of Spinning Up's PPO
EXPLAINED = 0.05  # of the variance of returns; a value function that says nothing explains 0


def value_loss_dwarfs_return(s: Symptoms) -> Sign:
    """From the first updates on, the root of the value loss is ten times as large as any return that was logged, the values explain nothing,
    and the policy stands still: it learns from other rewards than those in the log. A mean squared error of large returns is large, too,
    so it is held against their size."""
    told = {name: _values(s, name) for name in ("rl.loss_value", "rl.reward", "rl.kl", "rl.clipfrac", "rl.expl_var")}
    value, reward = series(s.run, "rl.loss_value"), told["rl.reward"]
    if value is None or not len(told["rl.loss_value"]) or not len(reward):
        return cannot_tell("the value loss or the return was not logged.")
    if not len(told["rl.kl"]) and not len(told["rl.clipfrac"]):
        return cannot_tell("neither the KL divergence of updates nor the share of clipped ratios was logged.")
    first, last = moved_from(value)
    root, largest = float(np.sqrt(max(min(first, last), 0.0))), float(np.abs(reward).max())
    text = f"The root of the value loss is {root:.3g}, and the largest return in the log {largest:.3g}"
    if root < DWARFED * largest or last > GROWN * first:
        return absent(f"{text}.")
    updates = {"KL divergence": told["rl.kl"], "share of clipped ratios": told["rl.clipfrac"]}
    moves = {what: float(np.median(x)) for what, x in updates.items() if len(x)}
    text = f"{text}; an update has a median {' and a median '.join(f'{what} of {x:.2g}' for what, x in moves.items())}"
    explained = told["rl.expl_var"]
    if max(moves.values()) > STILL or (len(explained) and float(np.median(explained)) > EXPLAINED):
        return absent(f"{text}: it learns.")
    step = int(value.step[value.usable][0])
    return seen(f"{text}: the policy stands still.", where=value.place(s.run, int(np.flatnonzero(value.usable)[0])), first=step)


def _values(s: Symptoms, name: str) -> Floats:
    """The values of a metric; none where there are too few."""
    found = series(s.run, name)
    return found.value[found.usable] if found is not None and found.usable.sum() >= LEAST else np.zeros(0)

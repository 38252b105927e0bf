"""What the updates of a policy come to, beside the rewards that it is told to get."""

from __future__ import annotations

import math

import numpy as np

from forensics.run import settings
from forensics.run.metrics_in_words import moved_from
from forensics.run.robust import median
from forensics.run.series import Floats, Series, series
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, seen

SUBJECT = "other_objectives"  # a part of it
EFFECTS = {
    "value_loss_dwarfs_return": "rl.loss_value",
    "entropy_penalized": "rl.entropy",
    "entropy_below_target": "rl.entropy",
}  # symptoms of their own, for which there is no detector
ENTROPY_WEIGHT = "ent ent_bonus ent_weight c_ent ent_coef ent_coeff entropy_coef entropy_coeff entropy_coefficient entropy_weight entropy_beta entropy_cost entropy_bonus entropy_loss_scale"

TARGET_ENTROPY = "target_entropy ent_target entropy_target"
FAR_BELOW = 1.0  # nats; unit: e times fewer choices than the target asks for

LEAST = 5  # bound: values whose middle two odd ones do not move
BEYOND_SUMS = 64.0  # unit: the root of 4,096, the largest minibatch of PPO in common recipes, over which a value loss may be summed
DWARFED = 10.0  # unit: an order of magnitude; rewards of one sign make no discounted return larger than the sum that is logged
GROWN = 10.0  # unit: an order of magnitude: a value loss that grows so tells of values that run away, not of rewards
STILL = 1e-4  # nats an update: a hundredth of 0.01, the target_kl of Spinning Up's PPO
HALF = 0.5  # bound: of the first entropy, or of the choices that it leaves (ln 2 nats less), where it has no zero
EXPLAINED = 0.05  # of the variance of returns; a value function that says nothing explains 0


def value_loss_dwarfs_return(s: Symptoms) -> Sign:
    """From the first updates on, the root of the value loss is ten times as large as any return that was logged, the values explain nothing,
    and the policy stands still, or its own loss is ten times any return, too, or the root 64 times: it learns from other rewards than those in
    the log. A mean squared error of large returns is large, too, so it is held against their size; a value loss that is summed over a batch
    leaves the loss of the policy small."""
    told = {name: _values(s, name) for name in ("rl.loss_value", "rl.loss_policy", "rl.reward", "rl.kl", "rl.clipfrac", "rl.expl_var")}
    value, reward = series(s.run, "rl.loss_value"), told["rl.reward"]
    if value is None or not len(told["rl.loss_value"]) or not len(reward):
        return cannot_tell("the value loss or the return was not logged.")
    if not len(told["rl.kl"]) and not len(told["rl.clipfrac"]):
        return cannot_tell("neither the KL divergence of updates nor the share of clipped ratios was logged.")
    first, last = moved_from(value)
    root, largest = float(np.sqrt(max(min(first, last), 0.0))), float(np.abs(reward).max())
    if not largest:
        return cannot_tell("every return in the log is 0.")
    text = f"The root of the value loss is {root:.3g}, and the largest return in the log {largest:.3g}"
    if root < DWARFED * largest or last > GROWN * first:
        return absent(f"{text}.")
    updates = {"KL divergence": told["rl.kl"], "share of clipped ratios": told["rl.clipfrac"]}
    moves = {what: median(x) for what, x in updates.items() if len(x)}
    text = f"{text}; an update has a median {' and a median '.join(f'{what} of {x:.2g}' for what, x in moves.items())}"
    explained, policy = (median(told[n]) if len(told[n]) else None for n in ("rl.expl_var", "rl.loss_policy"))
    too = explained is not None and policy is not None and abs(policy) >= DWARFED * largest
    vast = explained is not None and root >= BEYOND_SUMS * largest
    if (max(moves.values()) > STILL and not too and not vast) or (explained is not None and explained > EXPLAINED):
        return absent(f"{text}: it learns.")
    nothing = "the values explain nothing"
    how = f"the policy loss is {policy:.3g} in the median, and {nothing}" if too else nothing if vast else "the policy stands still"
    return seen(f"{text}: {how}.", where=value.place(s.run, int(np.flatnonzero(value.usable)[0])), first=int(value.step[value.usable][0]))


def entropy_sign(entropy: Series) -> float:
    """-1 where minus the entropy was logged, as a loss: so stable-baselines3, also of continuous actions, whose entropy may go below zero."""
    x = entropy.value[entropy.usable]
    return -1.0 if (x <= 0).all() or (x[0] < 0 and "loss" in entropy.tag.lower()) else 1.0


def entropy_penalized(s: Symptoms) -> Sign:
    """Config weighs the entropy of the policy with a negative number, and the entropy fell to half: certainty itself was rewarded."""
    found, x = settings.named(s.run, ENTROPY_WEIGHT), _values(s, "rl.entropy")
    weight = settings.as_number(found[-1].value) if found else None
    if weight is None or not len(x):
        return cannot_tell(
            "the entropy of the policy was not logged." if weight is not None else "config does not weigh the entropy with a number."
        )
    text, where = f"Config has {found[-1].key} = {weight:g}", found[-1].where
    if weight >= 0:
        return absent(f"{text}.", where=where)
    logged = series(s.run, "rl.entropy")
    assert logged is not None
    sign = entropy_sign(logged)
    first, last = (sign * v for v in moved_from(logged))
    fell = last < HALF * first if (sign * x >= 0).all() else first - last > -math.log(HALF)
    text = f"{text}, which is below zero, and policy entropy goes from {first:.3g} to {last:.3g} nats"
    if not fell:
        return absent(f"{text}: it does not fall to half.", where=where)
    return seen(f"{text}.", where=where, first=int(logged.step[logged.usable][0]), do=(f"Turn the sign of {found[-1].key}.",))


def _values(s: Symptoms, name: str) -> Floats:
    """The values of a metric; none where there are too few."""
    found = series(s.run, name)
    return found.value[found.usable] if found is not None and found.usable.sum() >= LEAST else np.zeros(0)


def entropy_below_target(s: Symptoms) -> Sign:
    """The entropy of the policy stands below the target that config names by more than a nat, over the second half of the run and at its end, and comes no
    nearer: the temperature, which is to rise until it is met (Haarnoja et al., arXiv 1812.05905, section 5), does nothing."""
    entropy, told = series(s.run, "rl.entropy"), next(iter(settings.named(s.run, TARGET_ENTROPY)), None)
    target = settings.as_number(told.value) if told is not None else None
    if entropy is None or entropy.usable.sum() < 4 * LEAST:
        return cannot_tell("the entropy of the policy was not logged often enough.")
    if told is None or target is None:
        return cannot_tell("config names no target of the entropy.")
    sign = -1.0 if "loss" in entropy.tag.lower() else 1.0  # of continuous actions it may well be below zero
    step, x = entropy.step[entropy.usable], sign * entropy.value[entropy.usable]
    half, quarters = x[len(x) // 2 :], np.array_split(x, 4)
    text = f"The entropy of the policy is {median(half):.3g} nats in the second half of the run, and its target {target:g} ({told.where})"
    nearer = median(quarters[3]) > median(quarters[2]) + FAR_BELOW
    if nearer or median(half) >= target - FAR_BELOW or float(np.quantile(half, 0.9)) >= target:
        return absent(f"{text}.")
    where = entropy.place(s.run, int(np.flatnonzero(entropy.usable)[-1]))
    return seen(f"{text}: it comes no nearer.", where=where, first=int(step[len(x) // 2]))

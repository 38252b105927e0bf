"""What the updates of a policy come to, beside the rewards that it is told to get."""

from __future__ import annotations

import math

import numpy as np

from forensics.run import settings
from forensics.run.metrics_in_words import moved_from, together
from forensics.run.robust import median
from forensics.run.series import Floats, Series, series
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, seen

SUBJECT = "other_objectives"  # a part of it
EFFECTS = {
    "value_loss_dwarfs_return": "rl.loss_value",
    "entropy_penalized": "rl.entropy",
    "rewards_alike_after_leap": "rl.kl",
    "each_step_pays_much": "rl.reward",
}  # symptoms of their own, for which there is no detector
ENTROPY_WEIGHT = "ent ent_bonus ent_weight c_ent ent_coef ent_coeff entropy_coef entropy_coeff entropy_coefficient entropy_weight entropy_beta entropy_cost entropy_bonus entropy_loss_scale"

LEAST = 5  # bound: values whose middle two odd ones do not move
BEYOND_SUMS = 64.0  # unit: the root of 4,096, the largest minibatch of PPO in common recipes, over which a value loss may be summed
DWARFED = 10.0  # unit: an order of magnitude; rewards of one sign make no discounted return larger than the sum that is logged
GROWN = 10.0  # unit: an order of magnitude: a value loss that grows so tells of values that run away, not of rewards
SAME = 1e-3  # relative: logs of three digits and more
STILL = 1e-4  # nats an update: a hundredth of 0.01, the target_kl of Spinning Up's PPO
HALF = 0.5  # bound: of the first entropy, or of the choices that it leaves (ln 2 nats less), where it has no zero
LEAPT = 3.0  # nats: of twenty answers that the reference gives, the policy would give one
ALIKE = 0.9  # share of groups whose rewards are all equal: what is left of the batch is less than a tenth of it
A_TURN = 0.15  # nats an update: as policy_kl_ran_away has it for one update; sound training from a reference takes a hundred for a few nats
MUCH = 10.0  # unit: an order of magnitude above the 1 a step that environments pay which reward each step alike (Gymnasium's CartPole, MuJoCo's healthy_reward)
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


def each_step_pays_much(s: Symptoms) -> Sign:
    """The return of each episode is one and the same multiple of its length, ten or more, and the values explain nothing of the returns: a reward of
    one a step was scaled up, and the value function cannot follow."""
    reward, length, explained = (series(s.run, name) for name in ("rl.reward", "rl.len", "rl.expl_var"))
    if reward is None or length is None or explained is None or explained.usable.sum() < LEAST:
        return cannot_tell("returns, lengths of episodes and the explained variance were not all logged.")
    step, (paid, steps) = together(reward, length)
    if len(step) < LEAST or steps.min() <= 0:
        return cannot_tell(f"fewer than {LEAST} returns were logged beside the length of their episodes.")
    each, told = paid / steps, median(explained.value[explained.usable])
    rate = median(each)
    text = f"An episode pays {rate:.4g} a step, give or take {np.ptp(each):.2g}; the values explain {max(told, 0.0):.0%} of the returns"
    if rate < MUCH or np.ptp(each) > SAME * rate or told > EXPLAINED:
        return absent(f"{text}.")
    return seen(f"{text}.", where=reward.place(s.run, int(np.flatnonzero(reward.usable)[0])), first=int(step[0]), last=int(step[-1]))


def rewards_alike_after_leap(s: Symptoms) -> Sign:
    """For the most of the run every answer of a group gets the same reward, so that nothing is learnt, and the policy had left its reference by
    0.15 nats an update or more until then. A task that is solved ends with equal rewards, too, but sound training gets there slowly."""
    spread, groups, kl = series(s.run, "rl.reward_std"), series(s.run, "rl.zero_std"), series(s.run, "rl.kl")
    alike = groups if groups is not None else spread
    if alike is None or kl is None or alike.usable.sum() < LEAST or kl.usable.sum() < LEAST:
        return cannot_tell("the spread of rewards within groups or the KL divergence was not logged.")
    step, x = alike.step[alike.usable], alike.value[alike.usable]
    equal = x >= ALIKE if alike is groups else x == 0
    told = f"Rewards do not differ within groups in {int(equal.sum())} of {len(x)} updates"
    begin = int(np.argmax(equal))
    if not equal.any() or equal.sum() < HALF * len(x) or equal[begin:].mean() < ALIKE:
        return absent(f"{told}.")
    until = kl.usable & (kl.step <= step[begin])
    if begin == 0 or not until.any():
        return absent(f"{told}, from the first one on.")
    row = np.flatnonzero(until)[int(np.argmax(kl.value[until]))]
    updates, far = int(kl.step[row] - kl.step[kl.usable][0]), float(kl.value[row])
    text = f"{told}, from step {step[begin]} on; before that {kl.tag} reaches {far:.3g} nats within {updates} steps"
    if updates <= 0 or far < A_TURN * updates or far < LEAPT:
        return absent(f"{text}.")
    return seen(f"{text}.", where=kl.place(s.run, int(row)), first=int(kl.step[row]))


def _values(s: Symptoms, name: str) -> Floats:
    """The values of a metric; none where there are too few."""
    found = series(s.run, name)
    return found.value[found.usable] if found is not None and found.usable.sum() >= LEAST else np.zeros(0)

"""Policies and their rewards."""

from __future__ import annotations

import math

import numpy as np

from forensics.run import settings
from forensics.run.metrics_in_words import moved_from, worded
from forensics.run.robust import median
from forensics.run.series import Floats, Series, parts, series
from forensics.signs.policy_learning import REWARD_SCALE
from forensics.signs.policy_updates import EXPLAINED, GROWN, STILL, entropy_sign
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, seen
from forensics.spikes.medians import rolling_median

SUBJECT = "other_objectives"  # the other half of it
EFFECTS = {
    "entropy_collapsed": "rl.entropy",
    "policy_kl_ran_away": "rl.kl",
    "value_loss_exploded": "rl.loss_value",
    "action_noise_ran_away": "rl.entropy",
}  # symptoms of their own, for which there is no detector

NO_CHOICE = 1e-3  # nats: what a choice that falls otherwise once in 10,000 times leaves of two actions
AGAIN, MOST = 0.1, 0.9  # bound: of the last values, all right by chance once; unit: nine tenths
# measured: of seven sound policies that became sure five had come so far by then, of four that settled too early one; bound: two levels
WON, LEAST_REWARDS = 0.9, 10
COLLAPSED = 0.05  # of the first entropy: of ln 2, a coin that falls on one side 99.4 % of the time
A_TURN = 0.15  # nats to the policy before: ten times 1.5 x 0.01, at which Spinning Up's PPO stops its epochs (target_kl)
FEW_CLIPPED = 0.5  # bound: of the ratios; an update of A_TURN clips seven in ten
SUMMED = 60.0  # nats to the reference, summed over an answer: ten times the target of 6 of Ziegler et al., arXiv 1909.08593
A_TOKEN = 10.0  # nats to the reference, other means: what choosing among 22,000 tokens costs
AN_ANSWER = 6.0  # nats that a chosen answer may lose: Ziegler et al.'s target for the distance to the reference; sound training costs chosen answers some, too
LIKELIHOOD = 3.0  # times the nats that a chosen answer cost at first: each token has on average become the cube as unlikely
WIDE = 10.0  # unit: ten times; the box of actions is usually two wide, Stable-Baselines3 begins with a std of 1, and beyond it all is clipped to its edges
EXPLODED = 100.0  # times the first level: two orders of magnitude


def _policy(s: Symptoms) -> bool:
    return any(series(s.run, name) is not None for name in ("rl.reward", "rl.loss_policy", "pref.margin", "rl.len"))


def _acts_in_environment(s: Symptoms) -> bool:
    """Whether values explain returns and nothing is written in tokens: then no reference is there, and a divergence is to the policy before."""
    return series(s.run, "rl.expl_var") is not None and not any(
        series(s.run, n) is not None for n in ("tokens.seen", "tput.tokens", "rl.trunc")
    )


def _steps_are_small(s: Symptoms, kl: Floats) -> bool:
    """Whether too few ratios are clipped for the divergence to be that of an update: one of 0.15 nats spreads the logarithms of the ratios by 0.55, which
    takes seven in ten of them beyond the usual 0.2."""
    clipped = series(s.run, "rl.clipfrac")
    return (
        clipped is not None and bool(clipped.usable.any()) and median(kl) > A_TURN and median(clipped.value[clipped.usable]) < FEW_CLIPPED
    )


def entropy_collapsed(s: Symptoms) -> Sign:
    """The entropy of the policy fell below 5 % of its first value and stayed there."""
    entropy = series(s.run, "rl.entropy")
    if entropy is None or entropy.usable.sum() < 5:
        return cannot_tell("the entropy of the policy was not logged.")
    x = entropy.value[entropy.usable]
    sign = entropy_sign(entropy)
    if np.percentile(np.abs(x), 90) < NO_CHOICE:
        step = int(entropy.step[entropy.usable][0])
        return seen(f"Policy entropy is below {NO_CHOICE:g} nats from step {step} on: one action is taken whatever is seen.", first=step)
    first, last = (sign * v for v in moved_from(entropy))
    if first <= 0 or (sign * x).min() < 0:
        return cannot_tell("the entropy of continuous actions has no zero, so shares of it say nothing.")
    text = f"Policy entropy goes from {first:.3g} to {last:.3g} nats, {last / first:.1%} of its first value"
    if last >= COLLAPSED * first:
        return absent(f"{text}.")
    step = int(entropy.step[entropy.usable][np.flatnonzero(sign * x < COLLAPSED * first)[0]])
    if solved := _solved(s) or _won_before(s, step):
        return absent(f"{text}; {solved}.")
    return seen(f"{text}; it is below {COLLAPSED:.0%} first at step {step}.", first=step, share=last / first)


def _won_before(s: Symptoms, step: int) -> str:
    """What says that the policy became sure because it had won: at that step its reward had come nine tenths of the way from its lowest level to its best
    in the whole run, and it ends no lower than it began. A policy that settles too early leaves reward behind, which a log shows where it comes later."""
    reward = series(s.run, "rl.reward")
    if reward is None or reward.usable.sum() < 2 * LEAST_REWARDS:
        return ""
    at, x = reward.step[reward.usable], reward.value[reward.usable]
    width = max(len(x) // 10, 3)
    level = rolling_median(x, width)[width - 1 :]
    i = max(int(np.searchsorted(at, step, "right")) - width, 0)
    there, rise = float(level[min(i, len(level) - 1)]), float(np.ptp(level))
    if rise <= 0 or there < level.max() - (1 - WON) * rise or level[-1] < level[0]:
        return ""
    return f"{reward.tag} had come to {there:.3g} by then, and to {level.max():.3g} at its best: it became sure of what wins"


def _solved(s: Symptoms) -> str:
    """What says that there is nothing more to win: the reward is a share, all of it comes again and again, and most of it is had. A sure policy is then right."""
    reward = series(s.run, "rl.reward")
    x = reward.value[reward.usable] if reward is not None else np.zeros(0)
    late = x[-max(len(x) // 5, 3) :]
    if reward is None or len(x) < 5 or x.min() < 0 or x.max() != 1 or (late == 1).mean() < AGAIN or median(late) < MOST:
        return ""
    return f"{reward.tag} is 1 in {(late == 1).mean():.0%} of its last values: it can rise no further"


def policy_kl_ran_away(s: Symptoms) -> Sign:
    """The policy went further from the one before it, or from its reference, than any usual target allows."""
    kl = series(s.run, "rl.kl")
    if kl is not None and kl.usable.sum() >= 5 and _policy(s):
        tag, x = kl.tag.lower(), kl.value[kl.usable]
        of_updates = any(w in tag for w in ("approx", "ppo_kl", "old")) or (_acts_in_environment(s) and not _steps_are_small(s, x))
        limit = SUMMED if "objective" in tag else A_TURN if of_updates else A_TOKEN
        high, last = float(np.percentile(x, 90)), float(np.percentile(x[-max(len(x) // 4, 3) :], 90))
        text = f"{kl.tag} exceeds {high:.3g} nats in a tenth of the updates (highest {x.max():.3g}; {limit:.3g} would be far)."
        if high <= limit:
            return absent(text)
        if limit == A_TURN and last < STILL:  # an update that changes nothing is one of a policy that is certain, not of one that runs
            return absent(f"{text[:-1]}; in the last quarter it exceeds {last:.2g} in a tenth of them: the policy stands still.")
        return seen(text, first=int(kl.step[kl.usable][np.flatnonzero(x > limit)[0]]))
    return _chosen_answers(s)


def _chosen_answers(s: Symptoms) -> Sign:
    """How much less likely the policy makes answers that it is to prefer: than its reference does, where their reward and its factor beta tell
    (arXiv 2305.18290, section 4: a reward is beta times the difference in log-probability), else than at first."""
    chosen = [p for p in parts(s.run, "pref.chosen") if p.usable.sum() >= 5]
    reward = next((p for p in chosen if "reward" in p.tag.lower()), None)
    found = settings.named(s.run, "beta dpo_beta")
    beta = settings.as_number(found[-1].value) if found else None
    for p in chosen:
        if "log" not in p.tag.lower():
            continue
        first, last = moved_from(p)
        text = f"{p.tag} goes from {first:.4g} to {last:.4g}"
        if reward is not None and beta and beta > 0:
            first = last - moved_from(reward)[1] / beta
            text = f"{p.tag} ends at {last:.4g}; by {reward.tag} and beta ({beta:g}) the reference gives {first:.4g}"
        if first >= 0:
            continue
        far = last < LIKELIHOOD * first and first - last > AN_ANSWER
        return seen(f"{text}, {last / first:.2g} times as far from zero.") if far else absent(f"{text}.")
    return cannot_tell("neither a KL divergence of the policy nor the log-probabilities of chosen answers were logged.")


def action_noise_ran_away(s: Symptoms) -> Sign:
    """The std of the actions that a policy draws grew to more than ten, ten times its first value or more: what it does is noise at the edges."""
    found = worded(s.run, r"^(train/)?(action |policy )?std$")
    if not _policy(s) or not found:
        return cannot_tell("no std of a policy's actions was logged.")
    first, last = float(found[0].value[found[0].usable][0]), moved_from(found[0])[1]
    text = f"The std of the actions goes from {first:.3g} to {last:.3g}."
    most = WIDE * max(first, 1.0)
    if last <= most:
        return absent(text)
    rows = np.flatnonzero(found[0].usable & (found[0].value > most))
    return seen(text, where=found[0].place(s.run, int(rows[0])), first=int(found[0].step[rows[0]]))


def value_loss_exploded(s: Symptoms) -> Sign:
    """The value loss grew by two orders of magnitude, to more than the square of any reward: a guess of zero would cost less; or by one more
    than the square of the return did, while the values explain nothing."""
    value = series(s.run, "rl.loss_value")
    if value is None or value.usable.sum() < 5:
        return cannot_tell("the value loss was not logged.")
    first, last = moved_from(value)
    if first <= 0:
        return cannot_tell("the value loss is not positive.")
    text, reward = f"The value loss goes from {first:.3g} to {last:.3g}.", series(s.run, "rl.reward")
    # returns are mostly logged as the environment pays them
    scales = [abs(settings.as_number(t.value) or 1.0) for t in settings.named(s.run, REWARD_SCALE)]
    largest = max([1.0, *scales]) * float(np.abs(reward.value[reward.usable]).max(initial=0.0)) if reward is not None else 0.0
    if (lost := _values_get_lost(s, value, last / first)) is not None:
        return seen(f"{text[:-1]}, {lost}.", ratio=last / first)
    length = series(s.run, "rl.len")
    horizon = float(length.value[length.usable].max()) if length is not None and length.usable.any() else math.inf
    if 0 < (largest * horizon) ** 2 < last:  # whether a step's reward was logged or an episode's: nothing worth predicting is larger
        return seen(
            f"{text[:-1]}: more than the square of the largest reward, {largest:.3g}, in each of {horizon:.0f} steps.", ratio=last / first
        )
    if EXPLODED * first <= last <= largest**2:  # it grows with the square of what it predicts
        return absent(f"{text[:-1]}, less than the square of the largest reward, {largest:.3g}.")
    return seen(text, ratio=last / first) if last >= EXPLODED * first else absent(text)


def _values_get_lost(s: Symptoms, value: Series, grown: float) -> str | None:
    """That it grows ten times as fast as the square of the returns does, while the values explain nothing of them: what a better policy
    has a value function learn, it explains in time."""
    explained, reward = series(s.run, "rl.expl_var"), series(s.run, "rl.reward")
    if explained is None or reward is None or explained.usable.sum() < 10 or reward.usable.sum() < 10:
        return None
    was, now = (abs(level) for level in moved_from(reward))
    x = explained.value[explained.usable]
    known, better = median(x[len(x) // 2 :]), max(now / was, was / now) ** 2 if min(was, now) > 0 else math.inf
    if known > EXPLAINED or grown < GROWN * better:
        return None
    return f"{grown / better:.3g} times as much as the square of the return, and the values explain {known:.2g} of the returns' variance"

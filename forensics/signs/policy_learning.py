"""Whether a policy and its values learn from what they are told to: values that drown the policy, rewards of another kind."""

from __future__ import annotations

import numpy as np

from forensics.run import settings
from forensics.run.metrics_in_words import together, worded
from forensics.run.robust import median
from forensics.run.series import Floats, series
from forensics.signs.policy_updates import EXPLAINED, STILL
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen
from parsers.lazy_regex import lazy_re
from parsers.name_rules import words

SUBJECT = "other_objectives"  # a part of it
EFFECTS = {
    "values_drown_policy": "rl.loss_value",
    "values_beyond_returns": "rl.loss_value",
    "values_beyond_any_episode": "rl.loss_value",
    "discount_above_one": "config",
    "policy_hardly_moves": "rl.kl",
}  # symptoms of their own, for which there is no detector
VALUES = (
    r"(^|[ /])((values?|v|q( ?f)?( \d)?)( values?)?[ /](mean|avg|estimate)|(mean|avg) (values?|v|q( ?f)?( \d)?)|q( \d)?( val(ue)?s?)?)$"
)

OF_EPISODES = lazy_re(r"\b(ep|eps|episodes?|episodic|returns?)\b")
DISCOUNT = "gamma discount discount_factor discount_rate gamma_discount reward_discount"
REWARD_SCALE = "reward_scale reward_scaling reward_scale_factor rew_scale"
REWARD_A_STEP = (
    "reward_per_step reward_per_tick reward_per_frame step_reward per_step_reward tick_reward alive_reward alive_bonus healthy_reward"
)
LARGEST_SCALE = 30.0  # the largest reward scale among the published configs of brax (SAC)
PER_CENT = 2.0  # unit: 99 is a share in per cent, and 2 another gamma, of a focal loss
SOON = 100  # unit: steps, about what a factor of 0.99 looks ahead
LEAST = 10  # bound: values whose median five odd ones do not move
GROWS = 0.1  # of the first return; bound: less than a policy gains that learns at all
HARDLY = 1e-6  # nats an update; unit: a hundredth of STILL: a thousand updates come to a thousandth of a nat
BEYOND = 10.0  # unit: an order of magnitude; rewards of one sign make no discounted return larger than the sum that is logged
RUNAWAY = 1e4  # unit: four decades; a discount of 0.999 makes a return at most a thousand times the reward of a step
# measured: no healthy run of ten with returns and estimates beside them has an estimate beyond the largest return; bound: half of the mean pace
FURTHER, FIFTHS, STEADILY = 1.5, 5, 0.5
STEADY, A_LITTLE = 1e-3, 0.01  # of a level: as three digits, and as two digits print it
DROWNED = 100.0  # unit: two decades; advantages are normalized to a spread of one, and the gradient of both losses is clipped together
# measured: of 45 policies with a value loss, of seven sets of runs, six have a root of 830 or more throughout, all with rewards far too large, and the
# others of 25 at most; the values of the healthy ones explain a third of the variance or more
VAST, LITTLE = 300.0, 0.1
FITTED, OFF, NOISES = 0.99, 0.01, 8.0  # of the variance; of the range; statistical: as in the divergence detector
FITS, FOLLOWS = 12, 0.95  # bound: beginnings that a line is fitted to; share of the values before the break that lie on it


def _values(s: Symptoms, name: str) -> Floats:
    found = series(s.run, name)
    return found.value[found.usable] if found is not None and found.usable.sum() >= LEAST else np.zeros(0)


def _still(entropy: Floats, within: float = STEADY) -> bool:
    return bool(np.ptp(entropy) <= within * np.abs(np.median(entropy)))


def values_drown_policy(s: Symptoms) -> Sign:
    """The root of the value loss is a hundred times what advantages scatter by, the values explain nothing through the whole run, and the policy
    stands still after it moved at first: with both gradients clipped together hardly anything is left for the policy. Where the root is three hundred
    times, a policy that still moves is no excuse. Rewards that are large by nature give a value function that explains them in time."""
    value, cost, explained, entropy = (
        series(s.run, "rl.loss_value"),
        _values(s, "rl.loss_value"),
        _values(s, "rl.expl_var"),
        _values(s, "rl.entropy"),
    )
    moves = _values(s, "rl.kl") if len(_values(s, "rl.kl")) else _values(s, "rl.clipfrac")
    if value is None or not len(cost) or not len(explained) or not len(moves):
        return cannot_tell("the value loss, the explained variance or the size of updates was not logged.")
    root, known, moved = float(np.sqrt(max(float(cost.min()), 0.0))), float(np.percentile(explained, 90)), median(moves)
    text = f"The root of the value loss is never below {root:.3g}, the values explain at most {known:.2g} of the returns' variance, and an update moves the policy by {moved:.2g}"
    vast = root >= VAST and known <= LITTLE
    if not vast and (root < DROWNED or known > EXPLAINED or moved > STILL):
        return absent(f"{text}.")
    if len(entropy) and _still(entropy):
        return absent(f"{text}: nothing moved from the first update on.")
    first = int(np.flatnonzero(value.usable)[0])
    return seen(f"{text}{': it stands still' if moved <= STILL else ''}.", where=value.place(s.run, first), first=int(value.step[first]))


def policy_hardly_moves(s: Symptoms) -> Sign:
    """From the first update to the last the policy moves by next to nothing: a KL divergence below a millionth of a nat, no ratio clipped, an entropy
    that stands, and returns that do not grow. A policy that has learnt all there is moves more than that by the noise of its gradients."""
    moves, clipped, entropy, reward = (_values(s, name) for name in ("rl.kl", "rl.clipfrac", "rl.entropy", "rl.reward"))
    kl = series(s.run, "rl.kl")
    if kl is None or not len(moves) or not len(entropy) or not len(reward):
        return cannot_tell("the KL divergence of updates, the entropy and the return were not all logged.")
    tenth = max(len(reward) // 10, 1)
    early, late = float(np.mean(reward[:tenth])), float(np.mean(reward[-tenth:]))
    text = f"An update moves the policy by {median(np.abs(moves)):.2g} nats, the entropy goes from {entropy[0]:.4g} to {entropy[-1]:.4g}"
    text += f" and the return from {early:.3g} to {late:.3g}."
    certain = np.abs(entropy).min() <= STEADY  # it has one answer left, whatever moves it
    moved = np.abs(moves).max() > HARDLY or (len(clipped) and clipped.max() > 0) or not _still(entropy, A_LITTLE) or certain
    if moved or late - early > max(float(np.std(reward[:tenth])), GROWS * abs(early)):
        return absent(text)
    first = int(np.flatnonzero(kl.usable)[0])
    return seen(text, where=kl.place(s.run, first), first=int(kl.step[first]), last=int(kl.step[-1]))


def rewards_scaled_up(s: Symptoms) -> Sign:
    """Rewards are multiplied by more than 30 by config, or it pays that much a step."""
    scaled = settings.named(s.run, REWARD_SCALE)
    found = scaled or settings.named(s.run, REWARD_A_STEP)
    scale = settings.as_number(found[-1].value) if found else None
    if scale is None:
        return cannot_tell("config does not say by what rewards are multiplied, nor what a step pays.")
    text = f"Config multiplies rewards by {scale:g}." if scaled else f"Config pays {scale:g} a step."
    return seen(text, where=found[-1].where) if abs(scale) > LARGEST_SCALE else absent(text, where=found[-1].where)


def values_beyond_returns(s: Symptoms) -> Sign:
    """The mean of the value estimates begins within the returns that were logged and ends ten times beyond the median of those of the last fifth of the
    run, or half as far again beyond the largest of them, and grows from fifth to fifth as fast as ever while returns do not; or it ends ten thousand times beyond
    the largest return and its own beginning: it feeds on itself."""
    reward, found = _values(s, "rl.reward"), worded(s.run, VALUES)
    if not len(reward) or not found:
        return cannot_tell("the return of episodes or the mean of the value estimates was not logged.")
    p = found[0]
    step, x = p.step[p.usable], np.abs(p.value[p.usable])
    largest = float(np.abs(reward).max())
    first, last = median(x[:3]), median(x[-max(len(x) // 10, 1) :])
    late = np.abs(np.array_split(reward, FIFTHS)[-1])
    text = f"{p.tag} goes from {first:.3g} to {last:.3g}; the returns at the end are {median(late):.3g} in the median and {late.max():.3g} at most."
    pace, paid = np.diff([median(part) for part in np.array_split(x, FIFTHS)]), np.array_split(reward, FIFTHS)
    on_and_on = pace.min() > STEADILY * pace.mean() > 0 and median(paid[-1]) <= median(paid[0])
    limit = FURTHER * float(late.max()) if on_and_on else BEYOND * median(late)
    runaway = last >= RUNAWAY * max(first, largest) > 0  # returns of zero, as of both sides of a game, bound nothing
    beyond = np.flatnonzero(x > (BEYOND * max(first, largest) if runaway else limit))
    if not len(beyond) or (not runaway and (first > largest or last < limit)):
        return absent(text)
    do = "Look at what the values are trained on: the discount, the mask at the end of an episode, the estimate that a return is cut off with."
    return seen(text, where=p.place(s.run, int(np.flatnonzero(p.usable)[beyond[0]])), first=int(step[beyond[0]]), do=(do,))


def values_beyond_any_episode(s: Symptoms) -> Sign:
    """Through the last half of the run the mean of the value estimates is ten times the largest return of an episode that was ever logged: the values are
    told of larger rewards than the log, or feed on themselves. Of rewards of one sign, no discounted return is larger than their sum."""
    reward, found = series(s.run, "rl.reward"), worded(s.run, VALUES)
    if reward is None or not reward.usable.any() or not found:
        return cannot_tell("the return of episodes or the mean of the value estimates was not logged.")
    if not OF_EPISODES.search(words(reward.tag)):
        return cannot_tell(f"{reward.tag} may be the reward of a step, of which a value adds up many.")
    p, largest = found[0], float(np.abs(reward.value[reward.usable]).max())
    rows = np.flatnonzero(p.usable)
    least = float(np.abs(p.value[rows[len(rows) // 2 :]]).min())
    text = f"{p.tag} is {least:.3g} or more in the last half of the run, and the largest return of an episode {largest:.3g}."
    if len(rows) < LEAST or least < BEYOND * largest or not largest:
        return absent(text)
    return seen(text, where=p.place(s.run, int(rows[len(rows) // 2])), first=int(p.step[rows[len(rows) // 2]]))


def reward_leaves_episode_length(s: Symptoms) -> Sign:
    """The return of an episode followed from its length, and from some step on it does not: the reward changed, or what it is paid for."""
    reward, length = series(s.run, "rl.reward"), series(s.run, "rl.len")
    if reward is None or length is None:
        return cannot_tell("the return or the length of episodes was not logged.")
    step, (x, y) = together(length, reward)
    if len(step) < 2 * LEAST:
        return cannot_tell(f"fewer than {2 * LEAST} returns and lengths of episodes were logged.")
    last = None
    for i in np.unique(np.linspace(LEAST, len(step) - LEAST // 2, FITS).astype(int)):
        if np.ptp(x[:i]) == 0 or np.ptp(y[:i]) == 0:
            continue
        slope, base = np.polyfit(x[:i], y[:i], 1)
        off: Floats = y - slope * x - base
        if float(np.var(off[:i])) > (1 - FITTED) * float(np.var(y[:i])):
            continue
        last = f"a return of {slope:.3g} a step of an episode{f' and {base:+.3g}' if abs(base) > OFF * np.ptp(y[:i]) else ''}"
        wide = float(np.ptp(x[:i]))  # a line says nothing of lengths far from those it was fitted to
        on = np.abs(off) <= max(NOISES * float(np.std(off[:i])), OFF * float(np.ptp(y[:i])))
        on |= (x < x[:i].min() - wide) | (x > x[:i].max() + wide)
        left = int(np.flatnonzero(on)[-1]) + 1
        if left <= len(step) - LEAST // 2 and on[:left].mean() >= FOLLOWS:
            text = f"Until step {step[left - 1]} episodes give {last}; from step {step[left]} on they do not ({y[-1]:.4g} for {x[-1]:.4g} steps at the end)"
            where = reward.place(s.run, int(np.flatnonzero(reward.usable & (reward.step == step[left]))[0]))
            return seen(f"{text}.", where=where, first=int(step[left]))
    return (
        absent(f"Episodes give {last} to the end.") if last else does_not_arise("the return of an episode does not follow from its length.")
    )


def discount_above_one(s: Symptoms) -> Sign:
    """Config discounts rewards by a factor above 1, which weighs the later ones more: returns grow without bound (Sutton and Barto, Reinforcement
    Learning, section 3.3: from 0 to 1)."""
    if series(s.run, "rl.reward") is None:
        return does_not_arise("no reward was logged, which config could discount.")
    told = next(iter(settings.named(s.run, DISCOUNT)), None)
    factor = settings.as_number(told.value) if told is not None else None
    if told is None or factor is None or not 0 <= factor < PER_CENT:
        return cannot_tell("config names no factor by which rewards are discounted.")
    text = f"Config discounts rewards by {told.key} = {factor:g}"
    if factor <= 1:
        return absent(f"{text}.", where=told.where)
    text += f": a reward weighs {factor**SOON:.3g} times as much {SOON} steps later, where discounting is to make it less"
    return seen(f"{text}.", where=told.where, do=[f"Set the discount below 1: {told.key} is {factor:g}."])

"""The reward of a policy: whether it rises, falls or is counted otherwise all at once."""

from __future__ import annotations

import math

import numpy as np

from forensics.detectors import divergence
from forensics.run import empty_windows
from forensics.run.inputs import LOST, comes_back, is_policy
from forensics.run.robust import mean_exceeds, median, robust_sigma
from forensics.run.series import Floats, Series, parts, series
from forensics.signs.policy_updates import value_loss_dwarfs_return
from forensics.signs.sign import SEEN, Sign, Symptoms, absent, cannot_tell, seen
from parsers import loss_names
from parsers.name_rules import words
from parsers.tables import Run

SUBJECT = "other_objectives"  # a part of it
EFFECTS = {
    "reward_fell": "rl.reward",
    "reward_steps_to_other_scale": "rl.reward",
    "evaluated_return_falls_behind": "rl.reward",
    "return_of_no_episode": "rl.reward",
}  # symptoms of their own

NOISES = 3.0  # standard errors
FEWEST = 3  # bound: evaluations on each side of a change; fewer have no scatter
BESIDE = 5  # rewards on each side of a step, whose medians are compared
MIRRORED, RESCALED = 0.25, 5.0  # how far from its mirror image, and by what factor: episodes that go on as before hold neither
CLIMBS = 0.5  # bound: of the step: five rewards before it lie nearer to their median (a quarter would be beyond it), one move makes more
FAR, STRAYS = 20, 0.2  # bound: rewards on each side, and the share at the other level: one of a few that only scatter is fewer
FOLLOWS = 0.5  # bound: of the factor, in ln; a scale moves the spread by all of it, a policy that learns to win narrows it
AS_BEFORE = 1.3  # factor by which episodes may become longer or shorter: five of them differ by less
AT_LEAST = 0.2  # of the best level; measured: what one good policy scatters by is up to 0.09 in the logs of stable-baselines3


def _reward(s: Symptoms) -> tuple[Series, Floats, Floats, float] | None:
    """(series, its values, medians of ten equal parts, standard error of one); None where too few of a policy were logged."""
    reward = series(s.run, "rl.reward")
    if reward is None or reward.usable.sum() < 20 or not is_policy(s.run):
        return None
    x = reward.value[reward.usable]
    blocks = np.array([np.median(part) for part in np.array_split(x, 10)])
    return reward, x, blocks, robust_sigma(np.diff(x)) / math.sqrt(2) / math.sqrt(max(len(x) // 10, 1))


def reward_fell(s: Symptoms) -> Sign:
    """The reward lost at least half of what it had gained, or of its first level, and has not made up a third of that."""
    told = _reward(s)
    if told is None:
        return cannot_tell("fewer than 20 rewards of a policy were logged.")
    reward, x, blocks, error = told
    best = int(np.argmax(blocks))
    drop, gain = float(blocks[best] - blocks[-1]), float(blocks[best] - blocks[0]) if best else abs(float(blocks[0]))
    text = f"The reward is {blocks[0]:.3g} at first, {blocks[best]:.3g} at its best and {blocks[-1]:.3g} at the end."
    held, left = np.array_split(x, 10)[best], np.array_split(x, 10)[-1]
    if best >= 9 or drop < LOST * gain or drop <= max(NOISES * error, AT_LEAST * abs(blocks[best])) or not mean_exceeds(held, left):
        return absent(text)
    if comes_back(float(blocks[best]), float(blocks[best:].min()), float(blocks[-1])):
        return absent(f"{text[:-1]}, after {blocks[best:].min():.3g}: it is on its way back.")
    middle = float(blocks[best] - drop / 2)
    smooth = np.array([np.median(x[max(i - 2, 0) : i + 3]) for i in range(len(x))])
    high = np.flatnonzero(smooth > middle)
    step = int(reward.step[reward.usable][min(int(high[-1]) + 1, len(x) - 1)]) if len(high) else None
    since = f"; from step {step} on it stays below {middle:.3g}" if step is not None else ""
    same = [f for f in s.of(divergence.Facts) if f.facts.final < f.facts.best]  # of the reward, where no loss was logged
    return seen(f"{text[:-1]}{since}.", same, first=step)


def reward_never_rose(s: Symptoms) -> Sign:
    """No tenth of the run has a higher reward than the first, by more than rewards scatter."""
    told = _reward(s)
    if told is None:
        return cannot_tell("fewer than 20 rewards of a policy were logged.")
    _, _, blocks, error = told
    text = f"The reward is {blocks[0]:.3g} in the first tenth of the run and {blocks[1:].max():.3g} in the best of the others (scatter {error:.2g})."
    return absent(text) if blocks[1:].max() > blocks[0] + NOISES * error * math.sqrt(2) else seen(text)


def evaluated_return_falls_behind(s: Symptoms) -> Sign:
    """From some evaluation on all returns are lower than the one before it and lie below those of training beside them, by a fifth and by three standard
    errors more than until then, while training goes on getting better: it is evaluated on something else than it trains on."""
    told = _reward(s)
    held = [p for p in parts(s.run, "rl.reward") if loss_names.EVAL.search(words(p.tag)) and p.usable.sum() >= 2 * FEWEST]
    if told is None or not held or loss_names.EVAL.search(words(told[0].tag)):
        return cannot_tell(f"returns of training and of {2 * FEWEST} evaluations were not both logged.")
    last = int(told[0].step[-1])
    # the others count otherwise: updates beside environment steps
    looks = [_behind(s.run, told[0], p) for p in held if p.step[-1] >= last / 2]
    if not looks:
        return cannot_tell("the evaluations are counted otherwise than the returns of training.")
    return next((look for look in looks if look.state == SEEN), looks[0])


def _behind(run: Run, reward: Series, p: Series) -> Sign:
    """What the returns of one series of evaluations say beside those of training."""
    step, x = reward.step[reward.usable], reward.value[reward.usable]
    at, y = p.step[p.usable], p.value[p.usable]
    beside = np.array([median(x[step <= t][-BESIDE:]) if (step <= t).any() else x[0] for t in at])
    ahead = y - beside
    for k in range(FEWEST, len(y) - FEWEST + 1):
        early, late = ahead[:k], ahead[k:]
        behind = -late.mean() > max(LOST * early.mean(), AT_LEAST * abs(beside[-1])) and mean_exceeds(early, late)
        if behind and y[k:].max() < y[k - 1] and beside[-1] > beside[k - 1]:
            text = f"{p.tag} is {y[k - 1]:.4g} at step {at[k - 1]} and {median(y[k:]):.4g} from then on, {-late.mean():.3g} below the returns of training"
            better = f"which go on from {beside[k - 1]:.3g} to {beside[-1]:.3g}"
            return seen(f"{text}, {better}.", where=p.place(run, int(np.flatnonzero(p.usable)[k])), first=int(at[k]))
    return absent(f"{p.tag} stays on the same side of the returns of training.", where=p.place(run, 0))


def reward_steps_to_other_scale(s: Symptoms) -> Sign:
    """At one step the reward changes its sign or its scale, while episodes are as long as before: the reward changed, not the policy."""
    reward, length = series(s.run, "rl.reward"), series(s.run, "rl.len")
    if reward is None or reward.usable.sum() < 4 * BESIDE or not is_policy(s.run):
        return cannot_tell("fewer than 20 rewards of a policy were logged.")
    if length is None:
        return cannot_tell("the length of episodes was not logged.")
    if value_loss_dwarfs_return(s).state == SEEN:
        return cannot_tell(
            "the rewards that the policy learns from were not logged: its values are of another scale than the returns in the log."
        )
    step, x = reward.step[reward.usable], reward.value[reward.usable]
    pairs = [(median(x[i - BESIDE : i]), median(x[i : i + BESIDE])) for i in range(BESIDE, len(x) - BESIDE + 1)]
    at = int(np.argmax([abs(after - before) for before, after in pairs]))
    (before, after), near = pairs[at], slice(at, at + 2 * BESIDE)  # medians tell the levels, the largest single move the step
    first = int(step[near][1:][int(np.argmax(np.abs(np.diff(x[near]))))])
    text = f"The reward goes from {before:.3g} to {after:.3g} at step {first}"
    mirrored = abs(after + before) <= MIRRORED * abs(before)
    ratio = max(abs(after), abs(before)) / max(min(abs(after), abs(before)), 1e-12)
    if not (mirrored and before != 0) and not (after * before > 0 and ratio >= RESCALED):
        return absent(f"{text}, the largest of its steps: neither its mirror image nor another scale.")
    scatter, largest = median(np.abs(x[near][:BESIDE] - before)), float(np.abs(np.diff(x[near])).max())
    if scatter > CLIMBS * abs(after - before) or largest < CLIMBS * abs(after - before):
        return absent(f"{text}, by {largest:.3g} at most, and scatters by {scatter:.3g} before it: it climbs there, and does not step.")
    own = (x > (before + after) / 2) == (after > before)  # on the side of the level after the step
    if before < after < (top := median(np.sort(x[at + BESIDE :])[-BESIDE:])) and top - after >= after - before:
        return absent(f"{text}, and on to {top:.3g}: a part of its climb.")
    strays = max(float(np.mean(own[: at + BESIDE][-FAR:])), 1 - float(np.mean(own[at + BESIDE :][:FAR])))
    if strays >= STRAYS:
        return absent(f"{text}, and {strays:.0%} of the rewards near it lie at the other level: both come before and after.")
    lasted = _beside(length, first)
    if lasted is None or not 1 / AS_BEFORE < lasted[1] / max(lasted[0], 1e-12) < AS_BEFORE:
        return absent(f"{text}, and the length of episodes changes with it: the policy changed.")
    spread = series(s.run, "rl.reward_std")  # a factor on rewards is one on what they scatter by, too
    if spread is not None and (wide := _beside(spread, first)) is not None and not mirrored:
        grows = math.log(max(wide[1], 1e-12) / max(wide[0], 1e-12)) / math.log(abs(after / before))
        if grows < FOLLOWS:
            return absent(f"{text}, and {spread.tag} goes from {wide[0]:.3g} to {wide[1]:.3g}: the policy changed, not the scale.")
    return seen(f"{text}, while episodes are as long as before.", first=first)


def _beside(s: Series, first: int) -> tuple[float, float] | None:
    """The medians of a few values on either side of a step."""
    was, then = (
        s.value[s.usable & side][part] for side, part in ((s.step < first, slice(-BESIDE, None)), (s.step >= first, slice(BESIDE)))
    )
    return (median(was), median(then)) if len(was) and len(then) else None


def return_of_no_episode(s: Symptoms) -> Sign:
    """Mean returns of zero where no episode ended, by a length of zero or a count of episodes that stays; they are left out of the returns."""
    logged = [x for name in empty_windows.MEANS if (x := series(s.run, name)) is not None]
    if not logged:
        return cannot_tell("neither returns nor lengths of episodes were logged.")
    empty = next((x for x in logged if x.empty), None)
    if empty is None:
        return absent(f"No value of {logged[0].tag} is known to be the mean of no episode.")
    text = f"{empty.tag} is exactly zero at {len(empty.empty)} steps in which no episode ended, and {empty.value[0]:.4g} to {empty.value[-1]:.4g} at the others"
    return seen(f"{text}: the mean of none.", where=empty.place(s.run, 0), first=empty.empty[0], last=empty.empty[-1])

"""Whether a policy and its values learn from what they are told to: updates that come to nothing, rewards of another kind, exploration that never ends."""

from __future__ import annotations

import numpy as np

from forensics.run import settings
from forensics.run.metrics_in_words import probability, together, worded
from forensics.run.series import Floats, Ints, Series, series
from forensics.signs.policy_updates import EXPLAINED, STILL
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen

SUBJECT = "other_objectives"  # a part of it
EFFECTS = {
    "policy_stands_still": "rl.kl",
    "values_drown_policy": "rl.loss_value",
    "exploration_off_schedule": "other/exploration_rate",
}  # symptoms of their own, for which there is no detector

LEAST = 10  # bound: values whose median five odd ones do not move
# Nats an update: KL goes with the square of a step, so that this is a step a hundredth as long as the target_kl of 0.01 of Spinning Up's PPO allows
NOTHING = 1e-6
STEADY = 1e-3  # of a level: as three digits print it
DROWNED = 100.0  # unit: two decades; advantages are normalized to a spread of one, and the gradient of both losses is clipped together
FITTED, OFF, NOISES = 0.99, 0.01, 8.0  # of the variance; of the range; statistical: as in the divergence detector
FITS, FOLLOWS = 12, 0.95  # bound: beginnings that a line is fitted to; share of the values before the break that lie on it
TWICE, ENDS = 2.0, 0.1  # unit: a factor; share of the planned steps by which a run that ended as planned may differ
EXPLORES = r"^(rollout[ /]|train[ /]|charts[ /])?(exploration rate|exploration|epsilon|eps)( greedy)?$"
FINAL = "exploration_final_eps epsilon_end eps_end end_e final_epsilon epsilon_final eps_final epsilon_min eps_min min_epsilon final_eps"
SHARE, SPAN = "exploration_fraction", "epsilon_decay_steps eps_decay_steps exploration_steps epsilon_timesteps eps_annealing_steps"


def _values(s: Symptoms, name: str) -> Floats:
    found = series(s.run, name)
    return found.value[found.usable] if found is not None and found.usable.sum() >= LEAST else np.zeros(0)


def policy_stands_still(s: Symptoms) -> Sign:
    """From the first update to the last the policy moves by a millionth of a nat or less, its entropy not at all, and the values explain nothing
    that they could have learnt. A policy that has learnt and comes to rest has values that explain its returns."""
    kl, moves, entropy, explained = series(s.run, "rl.kl"), _values(s, "rl.kl"), _values(s, "rl.entropy"), _values(s, "rl.expl_var")
    if kl is None or not len(moves) or not len(entropy) or not len(explained):
        return cannot_tell("the KL divergence of updates, the entropy or the explained variance was not logged.")
    far, range_of, known = float(np.abs(moves).max()), float(np.ptp(entropy)), float(np.median(explained))
    text = f"{kl.tag} is {far:.2g} nats at most, the entropy stays within {range_of:.2g} of {abs(float(np.median(entropy))):.3g}, and the values explain {known:.2g} of the returns' variance"
    if not 0 < far <= NOTHING or not _still(entropy) or known > EXPLAINED:
        return absent(f"{text}.")
    first = int(np.flatnonzero(kl.usable)[0])
    return seen(f"{text}: nothing moves.", where=kl.place(s.run, first), first=int(kl.step[first]), last=int(kl.step[-1]))


def _still(entropy: Floats) -> bool:
    return bool(np.ptp(entropy) <= STEADY * np.abs(np.median(entropy)))


def values_drown_policy(s: Symptoms) -> Sign:
    """The root of the value loss is a hundred times what advantages scatter by, the values explain nothing through the whole run, and the policy
    stands still after it moved at first: with both gradients clipped together hardly anything is left for the policy. Rewards that are large by
    nature give a value function that explains them in time."""
    value, cost, explained, entropy = (
        series(s.run, "rl.loss_value"),
        _values(s, "rl.loss_value"),
        _values(s, "rl.expl_var"),
        _values(s, "rl.entropy"),
    )
    moves = _values(s, "rl.kl") if len(_values(s, "rl.kl")) else _values(s, "rl.clipfrac")
    if value is None or not len(cost) or not len(explained) or not len(moves):
        return cannot_tell("the value loss, the explained variance or the size of updates was not logged.")
    root, known, moved = float(np.sqrt(max(float(cost.min()), 0.0))), float(np.percentile(explained, 90)), float(np.median(moves))
    text = f"The root of the value loss is never below {root:.3g}, the values explain at most {known:.2g} of the returns' variance, and an update moves the policy by {moved:.2g}"
    if root < DROWNED or known > EXPLAINED or moved > STILL or (len(entropy) and _still(entropy)):
        return absent(f"{text}.")
    first = int(np.flatnonzero(value.usable)[0])
    return seen(f"{text}: it stands still.", where=value.place(s.run, first), first=int(value.step[first]))


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


def exploration_off_schedule(s: Symptoms) -> Sign:
    """The share of random actions falls at less than half the speed that config asks for, or at more than twice of it."""
    logged = probability(tuple(p for p in worded(s.run, EXPLORES) if p.usable.sum() >= LEAST))
    if logged is None:
        return cannot_tell("the share of random actions was not logged.")
    final, span = _first(s, FINAL), _first(s, SPAN)
    plan, share = settings.number(s.run, "environment_steps") or settings.number(s.run, "max_steps"), _first(s, SHARE)
    span = span if span is not None else share * plan if share is not None and plan is not None else None
    if final is None or span is None or plan is None or span <= 0:
        return cannot_tell("config does not say how far and by when the share of random actions is to fall.")
    step, x = logged.step[logged.usable], logged.value[logged.usable]
    if abs(float(step[-1]) / plan - 1) > ENDS:
        return does_not_arise(f"the log ends at {step[-1]:,} of {plan:,.0f} steps, or counts other ones than config does.")
    return _beside_schedule(s, logged, (step, x), final, span)


def _beside_schedule(s: Symptoms, logged: Series, said: tuple[Ints, Floats], final: float, span: float) -> Sign:
    step, x = said
    fell = float(x[0] - x[-1])
    row = int(np.flatnonzero(x <= x[-1] + STEADY * fell)[0])  # where it ends to fall
    asked, done = (float(x[0]) - final) / span, fell / max(float(step[row] - step[0]), 1.0)
    text = f"{logged.tag} goes from {x[0]:.3g} to {x[-1]:.3g} by step {step[row]}; by config it falls to {final:g} in {span:,.0f} steps"
    if asked <= 0 or fell <= 0 or asked / TWICE <= done <= TWICE * asked:
        return absent(f"{text}.")
    times = f"{asked / done:.3g} times too slowly" if done < asked else f"{done / asked:.3g} times too fast"
    return seen(f"{text}: it falls {times}.", where=logged.place(s.run, int(np.flatnonzero(logged.usable)[row])), first=int(step[0]))


def _first(s: Symptoms, names: str) -> float | None:
    found = settings.named(s.run, names)
    return settings.as_number(found[-1].value) if found else None

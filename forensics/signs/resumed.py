"""What became of the run at its restarts: work done twice, the loss across them, and what did not come back."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from forensics.batches import data_passes, resume_loss
from forensics.case import Finding
from forensics.detectors import checkpoint_state, level_shift, loss_spike, lr_schedule, repeated_data, restart, resume_break
from forensics.findings import GRAVE
from forensics.run import goodput
from forensics.run.once import once
from forensics.run.series import Series, series
from forensics.signs.changed_settings import batch_changes
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen
from parsers.tables import Run

AT_ONCE, SOON = 5, 10  # steps, or two logged values: within the ten steps that Adam's momentum remembers (1 / (1 - 0.9))
OF_USE = 1 - restart.LOST  # share of the time; the detector calls a restart that costs more a grave one
NO_RESTART = "the run was not restarted"


def restarted(s: Symptoms) -> Sign:
    """The run was restarted and did a share of its steps twice that weighs (5 % of the steps or of the time)."""
    found = s.of(restart.Facts, severity=GRAVE)
    if found:
        redone = sum(f.facts.redone for f in found)
        more = f" {redone} steps were done twice in {len(found)} restarts." if len(found) > 1 else ""
        advice = _advice(redone, goodput.measure(s.run))
        return seen(f"{found[0].title}.{more}", found[:5], first=found[0].facts.from_, advice=advice)
    if little := s.of(restart.Facts):
        return absent(f"{little[0].title}.", little[:3])
    return absent("No step was logged twice, and no line mentions a restart.") if s.run.attempts else cannot_tell("no step was logged.")


def _advice(redone: int, facts: dict[str, Any]) -> str:
    """How often to save: by Young's rule where the cost of a save is known, else what the interval costs on average."""
    every, best = facts["checkpoint_every_steps"], facts["best_every_steps"]
    cost = f"these restarts cost {redone} steps"
    if best and every:
        word = "more often" if best < 0.8 * every else "less often" if best > 1.25 * every else "as often"
        return (
            f"Save {word}, every {best} steps where it was every {every}: a save takes {facts['save_seconds']:.2g} s and the run is "
            f"interrupted every {facts['seconds_between']:.3g} s (Young: the root of twice their product); {cost}."
        )
    return (
        f"Save more often than every {every} steps, which costs {every // 2} steps an interruption on average: {cost}."
        if every
        else f"Save more often: {cost}."
    )


def restart_redid_little(s: Symptoms) -> Sign:
    """The run was restarted and did few steps twice, or none."""
    found, grave = s.of(restart.Facts), s.of(restart.Facts, severity=GRAVE)
    if not found:
        return does_not_arise(f"{NO_RESTART}.")
    redone = sum(f.facts.redone for f in found)
    if grave:
        return absent(f"{redone} steps were done twice.", grave[:3])
    return seen(f"{found[0].title}.", found[:3], first=found[0].facts.from_)


def restart_at_trouble(s: Symptoms) -> Sign:
    """The run was restarted within five steps before its clearest spike, or before a lasting step of the loss."""
    spikes, shifts = s.of(loss_spike.Facts, severity=GRAVE), s.of(level_shift.Facts, severity=GRAVE)
    best = sorted(spikes, key=lambda f: -f.facts.noise_sigmas)[:1]
    begins: list[tuple[int, Finding[Any]]] = [(f.facts.start, f) for f in best] + [(f.facts.step, f) for f in shifts]
    if not begins:
        return does_not_arise("the loss has neither a grave spike nor a lasting step that a restart could stand at.")
    restarts = s.of(restart.Facts)
    near = max(AT_ONCE, 2 * _interval(s.run))
    for begin, f in begins:
        for r in restarts:
            if 0 <= begin - r.facts.from_ <= near:
                text = f"The run resumes from step {r.facts.from_}, and the loss leaves its level at step {begin}."
                return seen(text, [r, f], first=r.facts.from_)
    if not restarts:
        return absent(f"The run was not restarted before the loss leaves its level at step {begins[0][0]}.", [begins[0][1]])
    text = f"The run resumes from step {restarts[0].facts.from_}, and the loss leaves its level at step {begins[0][0]}, away from it."
    return absent(text, [restarts[0], begins[0][1]])


def came_back_whole(s: Symptoms) -> Sign:
    """After a restart the loss stands where it stood, the rate does not jump, and no data come again or are left out."""
    restarts = s.of(restart.Facts)
    if not restarts:
        return does_not_arise(f"{NO_RESTART}.")
    rate: list[Finding[Any]] = [f for f in s.of(lr_schedule.Facts) if f.facts.at_resume]
    state = [f for f in s.of(checkpoint_state.Facts) if f.facts.what in ("optimizer_anew", "scheduler_anew")]
    broken: list[Finding[Any]] = [*s.of(resume_break.Facts), *rate, *s.of(repeated_data.Facts), *state, *batch_changes(s)]
    if broken:
        return absent(f"{broken[0].title}.", broken[:3])
    across = _across(s.run)
    if across is None:
        return cannot_tell(_unjudged(s.run))
    lr = series(s.run, "lr")
    if lr is None or not _both_sides(lr, across.attempt):
        return cannot_tell("the learning rate was not logged on both sides of the restart.")
    if not _order_known(s.run, across.attempt):
        return cannot_tell("neither a list of batches nor enough of the loss shows which data came after the restart.")
    text = f"{across.text}, the learning rate does not jump, and no data come again or are left out."
    return seen(text, restarts[:1], where=across.where, first=across.step)


def loss_higher_after_restart(s: Symptoms) -> Sign:
    """The loss stands higher after a restart than before it."""
    if len(s.run.attempts) < 2:
        return does_not_arise(f"{NO_RESTART}.")
    breaks = s.of(resume_break.Facts)
    if up := [f for f in breaks if f.facts.up]:
        return seen(f"{up[0].title}.", up, first=up[0].facts.step)
    if breaks:
        return absent(f"{breaks[0].title}.", breaks)
    across = _across(s.run)
    return cannot_tell(_unjudged(s.run)) if across is None else absent(f"{across.text}.", where=across.where)


def decays_after_restart(s: Symptoms) -> Sign:
    """The loss is higher after a restart and comes down to where it was."""
    up = [f for f in s.of(resume_break.Facts) if f.facts.up]
    if not up:
        return does_not_arise("the loss is not seen to stand higher after a restart.")
    facts = up[0].facts
    if facts.length:
        text = f"The loss comes back to its level {facts.length} steps after the restart at step {facts.step}."
        return seen(text, up, first=facts.step)
    loss = series(s.run, "loss.train")
    after = int(np.sum(np.isfinite(loss.value[loss.attempt == facts.attempt]))) if loss is not None else 0
    if after < resume_break.AHEAD:
        return cannot_tell(f"only {after} values of the loss follow the restart at step {facts.step}.")
    return absent(f"The loss is not back where it was in the {after} values after the restart at step {facts.step}.", up)


def spike_after_restart(s: Symptoms) -> Sign:
    """The loss spikes within ten steps of a restart."""
    restarts, spikes = s.of(restart.Facts), s.of(loss_spike.Facts)
    if not restarts:
        return does_not_arise(f"{NO_RESTART}.")
    near = max(SOON, 2 * _interval(s.run))
    for f in spikes:
        if any(0 <= f.facts.start - r.facts.from_ <= near for r in restarts):
            return seen(f"{f.title}, within {near} steps after a restart.", [f, restarts[0]], first=f.facts.start)
    across = _across(s.run)
    if across is None:
        return cannot_tell(_unjudged(s.run))
    return absent(f"{across.text}, and no spike begins within {near} steps of it.", restarts[:1], where=across.where)


def work_lost_share(s: Symptoms) -> Sign:
    """Restarts did work again that took more than 5 % of the time that the run was at work (of the steps, where there is no clock)."""
    if len(s.run.attempts) < 2:
        return does_not_arise(f"{NO_RESTART}.")
    told = goodput.measure(s.run)
    running, down, share = told["seconds_running"], told["seconds_down"] or 0.0, told["share_steps"]
    unit = "steps"
    if running and told["share_time"] is not None:  # which counts the time between attempts, too
        unit, share = "time at work", told["share_time"] * (running + down) / running
    if share is None:
        return cannot_tell("neither steps nor clocks tell how much was of use.")
    lost = told["steps_lost"]
    text = f"Of the {unit} {min(share, 1.0):.1%} was of use: {lost} of {told['steps_done']} steps were done again."
    found = s.of(restart.Facts)[:5]
    return (seen if share < OF_USE else absent)(text, found)


def _unjudged(run: Run) -> str:
    if series(run, "loss.train") is None:
        return "the training loss was not logged."
    return f"the training loss has fewer than {resume_break.LEAST} values on one side of the restart."


class _Across(NamedTuple):
    attempt: int
    step: int
    text: str
    where: str


@once
def _across(run: Run) -> _Across | None:
    """The loss before and after the first restart with enough values on both sides."""
    s = series(run, "loss.train")
    if s is None:
        return None
    for before, after in zip(run.attempts, run.attempts[1:], strict=False):
        old, new = (np.flatnonzero((s.attempt == a["index"]) & np.isfinite(s.value)) for a in (before, after))
        if min(len(old), len(new)) < resume_break.LEAST:
            continue
        kept, step = old[s.step[old] < s.step[new[0]]], int(s.step[new[0]])
        level = np.median(s.value[kept[-5:]] if len(kept) >= 5 else s.value[old[:5]])
        text = f"After the restart at step {step} the loss is {np.median(s.value[new[:5]]):.3g}, after {level:.3g} before"
        return _Across(after["index"], step, text, s.place(run, int(new[0])))
    return None


def _both_sides(s: Series, attempt: int) -> bool:
    finite = np.isfinite(s.value)
    return bool((finite & (s.attempt == attempt)).any() and (finite & (s.attempt < attempt)).any())


def _order_known(run: Run, attempt: int) -> bool:
    """Whether the data after a restart could be told: by a list of batches, by equal losses, or by their ups and downs."""
    if any(a == attempt for a, _ in data_passes.contents(run)):
        return True
    s = series(run, "loss.train")
    if s is None:
        return False
    old, new = (np.flatnonzero(np.isfinite(s.value) & side) for side in (s.attempt < attempt, s.attempt == attempt))
    return len(new) >= resume_loss.LEAST or resume_break.equal_again(s, old, new)


def _interval(run: Run) -> int:
    s = series(run, "loss.train")
    return s.interval if s is not None else 1

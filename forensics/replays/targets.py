"""What there is to explain, from the log alone: the first grave excursion, or the steps that the user names.

`Logged` is the log as one trajectory: for each step the value of the attempt that leads to the trouble. All steps here are labels
of the log; the optimizer steps that an adapter counts are `label - shift`, and the shift is found when the replay is laid
over the log.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from forensics.case import Finding
from forensics.detectors import checkpoint_state, grad_spike, loss_spike, nonfinite, resume_break
from forensics.findings import findings_of
from forensics.run.robust import median, robust_sigma
from forensics.run.series import series
from parsers.tables import Run

LOOK = 16  # logged values after the onset in which the peak is looked for
SHARP = ("loss_spike", "nonfinite", "resume_break")  # findings with a step where something happened
SHARE = 0.5  # of the logged height that a replay must reach to count as the same effect


@dataclass(frozen=True)
class Logged:
    """label -> value along the attempt that leads to the trouble; `interval` steps between values, `restarts` inside."""

    loss: dict[int, float]
    norm: dict[int, float]
    lr: dict[int, float]
    interval: int
    restarts: tuple[int, ...]


@dataclass(frozen=True)
class Trouble:
    """An effect in the log: the label where it begins, its peak and how far it rises above its level (NaN: not finite)."""

    onset: int
    peak: int
    until: int  # the last label that is replayed
    level: float
    top: float
    sigma: float  # noise of single values before
    attempt: int
    findings: tuple[Finding, ...]
    end: int | None = None  # the label where the loss is back, where it is
    subtle: bool = False  # nothing rises; only the checkpoints say that a restart lost something

    @property
    def nonfinite(self) -> bool:
        return not math.isfinite(self.top)


def troubles(run: Run, findings: Sequence[Finding], steps: tuple[int, int] | None) -> list[Trouble]:
    """The effects to explain, a loss that is not finite first, then in step order, neighbours merged; at most four. Empty where there is
    nothing."""
    if steps is not None:
        return [_named(run, steps, findings)]
    grave = [f for f in findings if f.severity in ("warning", "critical") and f.first_step is not None]
    if not any(f.kind in _EFFECTS for f in grave):  # small spikes are worth a replay that was asked for
        grave = [f for f in findings if f.kind == "loss_spike" and not _trap(f)]
    sharp = [f for f in grave if f.kind in SHARP and not _trap(f)]
    if not any(f.kind in _EFFECTS for f in [*grave, *sharp]):
        forgot = [f for f in findings_of(findings, checkpoint_state.Facts) if f.facts.what == "optimizer_anew"]
        return [_restarted(run, f) for f in forgot[:1]]
    blunt = [f for f in grave if f.kind in ("divergence", "level_shift", "grad_spike", "oscillation")]
    every, chosen = _interval(run), sorted(sharp or blunt, key=lambda f: f.first_step or 0)
    broken = min((f.first_step or 0 for f in chosen if f.kind == "nonfinite"), default=None)
    if broken is None:
        return [_trouble(run, group) for group in _merged(chosen, every)[:4]]
    led = [f for f in chosen if broken - LOOK * every <= (f.first_step or 0) <= broken]  # what rose until it broke
    before = [f for f in chosen if (f.first_step or 0) < broken - LOOK * every]
    grave = [f for f in before if f.severity == "critical"]  # as what broke the run is
    return [_trouble(run, group) for group in [led, *_merged(grave, every)[:3]]]


def _merged(findings: Sequence[Finding], every: int) -> list[list[Finding]]:
    """Findings in step order, those of one effect together."""
    found: list[list[Finding]] = []
    for f in findings:
        if found and (f.first_step or 0) <= max(map(_until, found[-1])) + 10 * every:
            found[-1].append(f)
        else:
            found.append([f])
    return found


_EFFECTS = ("loss_spike", "nonfinite", "resume_break", "divergence", "level_shift", "grad_spike", "oscillation")


def _until(f: Finding) -> int:
    """The step up to which an effect reaches: of a spike that does not come back the last one."""
    stays = isinstance(f.facts, loss_spike.Facts) and f.facts.end is None
    return (f.last_step if stays else f.first_step) or 0


def _trap(f: Finding) -> bool:
    """Whether a sharp effect is none that a replay of the training would show."""
    if isinstance(f.facts, resume_break.Facts):
        return not f.facts.up
    if not isinstance(f.facts, (loss_spike.Facts, nonfinite.Facts)):
        return True
    return getattr(f.facts, "class_", "") == "not_a_spike" or not f.facts.metric.startswith(("loss.train", "grad.norm"))


def _interval(run: Run) -> int:
    s = series(run, "loss.train")
    return s.interval if s is not None else 1


def logged(run: Run, attempt: int | None = None) -> Logged:
    """The trajectory that ends in attempt `attempt` (default: the last): of a step logged twice, the later attempt's value up to there."""
    loss = series(run, "loss.train")
    limit = attempt if attempt is not None else 10**9
    begins = sorted({a["steps"][0] for a in run.attempts[1:] if a["index"] <= limit})
    values: dict[str, dict[int, float]] = {}
    for key, name in (("loss", "loss.train"), ("norm", "grad.norm"), ("lr", "lr")):
        s, path = series(run, name), {}
        if s is not None:
            for i in np.argsort(s.attempt, kind="stable"):
                if s.attempt[i] <= limit:
                    path[int(s.step[i])] = float(s.value[i])
        values[key] = path
    return Logged(values["loss"], values["norm"], values["lr"], loss.interval if loss is not None else 1, tuple(begins))


def _trouble(run: Run, group: list[Finding]) -> Trouble:
    attempt = next((a for f in group if (a := getattr(f.facts, "attempt", None)) is not None), len(run.attempts) - 1)
    onset = min(f.first_step or 0 for f in group)
    peaks = [f.facts.peak for f in group if isinstance(f.facts, (loss_spike.Facts, grad_spike.Facts))]
    ends = [f.facts.end for f in group if isinstance(f.facts, loss_spike.Facts)]
    end = None if not ends or None in ends else max(e for e in ends if e is not None)
    return replace(_measured(run, onset, max(peaks, default=onset), attempt, tuple(group)), end=end)


def _restarted(run: Run, f: Finding[checkpoint_state.Facts]) -> Trouble:
    """A restart after which the optimizer had forgotten, without a rise of the loss."""
    begin = f.facts.since
    onset = int(begin if begin is not None else f.first_step or 0)
    return replace(_measured(run, onset, onset, len(run.attempts) - 1, (f,)), subtle=True)


def _named(run: Run, steps: tuple[int, int], findings: Sequence[Finding]) -> Trouble:
    """The effect within the steps that the user names: around the highest or first non-finite logged loss there."""
    path = logged(run).loss
    inside = {s: v for s, v in path.items() if steps[0] <= s <= steps[1]}
    bad = [s for s, v in inside.items() if not math.isfinite(v)]
    top = min(bad) if bad else max(inside, key=lambda s: inside[s], default=steps[1])
    near = tuple(f for f in findings if f.first_step is not None and steps[0] <= f.first_step <= steps[1])
    return _measured(run, min([top, *[f.first_step or top for f in near]]), top, len(run.attempts) - 1, near)


def _measured(run: Run, onset: int, peak: int, attempt: int, findings: tuple[Finding, ...]) -> Trouble:
    log = logged(run, attempt)
    step = np.array(sorted(log.loss), dtype=np.int64)
    value = np.array([log.loss[int(s)] for s in step])
    before = value[(step < onset) & np.isfinite(value)][-40:]
    level = median(before) if len(before) else float("nan")
    noise = robust_sigma(before, level) if len(before) > 3 else 0.0
    until = onset + min(max(peak - onset, 2 * log.interval), LOOK * log.interval) + 2 * log.interval
    inside = value[(step >= onset) & (step <= until)]
    norms = [v for s, v in log.norm.items() if onset <= s <= until]
    bad = any(not math.isfinite(v) for v in [*inside, *norms])
    top = float("nan") if bad else float(inside.max()) if len(inside) else float("nan")
    return Trouble(onset, peak, until, level, top, noise, attempt, findings)

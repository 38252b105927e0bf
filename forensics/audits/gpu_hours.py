"""What a run cost in GPU-hours, and what of that was lost.

Only clocks inside the log count: the time of a file is that of its last copy. Time between attempts is not counted, since nobody knows who
held the GPUs then. Each second is lost once: to a run that never made a step, else to work that a later attempt repeated, else
to silence, else to the time after the loss had diverged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from forensics.audits.row_columns import LOSSES
from forensics.case import Case, Finding
from forensics.case_parts.run_again import lasts
from forensics.detectors import stall
from forensics.findings import GRAVE, findings_of
from forensics.run import goodput, hang_ranks, pace, settings
from forensics.run.series import series
from parsers.tables import DATED, DOUBTED, Run

NODES = "num_nodes nnodes n_nodes num_machines slurm_nnodes slurm_job_num_nodes"
A_NODE = "num_gpus n_gpu n_gpus gpus devices"
MOST = 100_000  # GPUs of one run
NO_COUNT = "neither config nor the ranks in the log say how many GPUs trained"
NO_CLOCK = "the log has no clock"
NO_STEPS = "no step was logged, and fewer than two lines about the run have a clock"
DOUBTFUL = f"more than {DOUBTED / 86400:.0f} days lie between two moments of the log: the clock is doubted"


@dataclass(frozen=True)
class _Clock:
    """Seconds: how long the run held its GPUs, when its last attempt began, and the last sign of life."""

    held: float
    began: float
    until: float


def of(run: Run, case: Case) -> tuple[dict[str, Any], dict[str, str]]:
    """(the columns gpus, gpu_hours, lost_gpu_hours and its parts; column -> why it is empty)."""
    count, clock = gpus(run), _clock(run, case)
    found: dict[str, Any] = {"gpus": count, "gpu_hours": None, "lost_gpu_hours": None, **dict.fromkeys(LOSSES)}
    why = {"gpus": NO_COUNT} if count is None else {}
    if count is None or isinstance(clock, str):
        reason = NO_COUNT if count is None else str(clock)
        return found, why | {"gpu_hours": reason, "lost_gpu_hours": reason}
    lost = {kind: _hours(count, seconds) for kind, seconds in _lost(run, case, clock).items()}
    return found | {"gpu_hours": _hours(count, clock.held), "lost_gpu_hours": round(sum(lost.values()), 6), **lost}, why


def gpus(run: Run) -> int | None:
    """How many GPUs trained at once: processes as config or the ranks in the log say, else those of a node times the nodes; 0 on a
    CPU; None where nothing tells."""
    devices = [str(s.value).lower() for s in settings.named(run, "device accelerator")]
    if any(d.split(":")[0] == "cpu" for d in devices) or any(s.value is True for s in settings.named(run, "use_cpu no_cuda")):
        return 0
    nodes, each = _count(run, NODES), _count(run, A_NODE)
    several = each * nodes if each and nodes and nodes > 1 else each
    return max((n for n in (goodput.processes(run), several) if n), default=None)


def _count(run: Run, names: str) -> int | None:
    said = [settings.as_number(s.value) for s in settings.named(run, names)]
    return max((int(n) for n in said if n and 1 <= n <= MOST and n == int(n)), default=None)


def _hours(count: int, seconds: float) -> float:
    return round(count * seconds / 3600, 6)


def _clock(run: Run, case: Case) -> _Clock | str:
    """By the clocks of the log; or why they do not tell."""
    if pace.is_doubted(run):
        return DOUBTFUL
    if not run.attempts:
        times = [t for t in run.tables["events"]["time"].to_pylist() if t is not None and t >= DATED]
        span = max(times) - min(times) if times else 0.0
        return NO_STEPS if span <= 0 else DOUBTFUL if span > DOUBTED else _Clock(span, min(times), max(times))
    running, last = case.run["goodput"]["seconds_running"], run.attempts[-1]
    if running and last["ended"] is not None:
        began, ended = last["started"], last["ended"]
    elif len(run.attempts) == 1 and (span := _elapsed(run)) is not None:
        began, ended = span
        running = ended - began
    else:
        return NO_CLOCK if len(run.attempts) == 1 else "the log of an attempt has no clock"
    until = max([ended, *_waits_until(run, case, ended)])
    return _Clock(running + until - ended, began, until)


def _elapsed(run: Run) -> tuple[float, float] | None:
    """First and last value of the seconds since the start, where they are logged instead of a clock."""
    s = series(run, "time.total")
    seconds = s.value[np.isfinite(s.value)] if s is not None and s.unit == "s" else np.array([])
    grows = len(seconds) > 1 and bool((np.diff(seconds) >= 0).all()) and seconds[-1] > seconds[0]  # not the time of an epoch or a step
    return (float(seconds[0]), float(seconds[-1])) if grows else None


def _waits_until(run: Run, case: Case, ended: float) -> list[float]:
    """The last signs of life of a job that did no more steps."""
    told = []
    for f in findings_of(case.findings, stall.Facts):
        if f.facts.at_end and f.facts.seconds:
            told.append((f.times[0] or ended) + f.facts.seconds)
        elif f.facts.said:
            told.append(ended + _waited(run) if f.times[0] is None else f.times[0] if f.times[0] - ended <= DOUBTED else ended)
    return told


def _waited(run: Run) -> float:
    return hang_ranks.waited(hang_ranks.said(run)) or 0.0


def _lost(run: Run, case: Case, clock: _Clock) -> dict[str, float]:
    """Seconds by the kind of loss."""
    lost = dict.fromkeys(LOSSES, 0.0)
    how = case.run["ending"]
    if how["before_first_step"] and case.run["status"] in goodput.ENDED_BADLY:
        return lost | {"lost_at_start": clock.held}
    left = clock.held
    for kind, seconds in (
        ("lost_repeated", _repeated(case)),
        ("lost_hang", _silent(run, case)),
        ("lost_diverged", _diverged(run, case, clock)),
    ):
        lost[kind] = min(max(seconds, 0.0), left)
        left -= lost[kind]
    return lost


def _repeated(case: Case) -> float:
    good = case.run["goodput"]
    running, share = good["seconds_running"], good["share_time"]
    return float(running - share * (running + (good["seconds_down"] or 0.0))) if running and share is not None else 0.0


def _silent(run: Run, case: Case) -> float:
    return max(sum(f.facts.seconds or 0.0 for f in findings_of(case.findings, stall.Facts)), _waited(run))


def _diverged(run: Run, case: Case, clock: _Clock) -> float:
    """From the onset of what the loss never recovered from, in the last attempt, without the silences that followed."""
    onsets = [t for f in case.findings if f.severity in GRAVE and lasts(f.facts) and (t := _moment(run, f)) is not None]
    if not onsets:
        return 0.0
    onset = max(min(onsets), clock.began)
    silences = findings_of(case.findings, stall.Facts)
    return clock.until - onset - sum(f.facts.seconds or 0.0 for f in silences if (_moment(run, f) or 0.0) >= onset)


def _moment(run: Run, f: Finding) -> float | None:
    """When it began; where there is no clock with a date, the seconds since the start at its step."""
    s = series(run, "time.total")
    if f.times[0] is not None or f.first_step is None or s is None:
        return f.times[0]
    seconds = s.value[(s.step >= f.first_step) & np.isfinite(s.value)]
    return float(seconds.min()) if len(seconds) else None

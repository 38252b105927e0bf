"""Which batches are shown: the suspects, and two ordinary ones beside them.

Suspects are the culprits of the case; without any, the batches behind the spikes and the first NaN. Those with samples that stand
out among random ones (`--data`) come first. Ordinary batches are the nearest earlier ones of the attempt, later ones where there is
none, that have as many samples and lie outside the steps of every symptom that is a warning or worse.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from forensics.batches import recorded, step_to_samples, suspect_batches
from forensics.case import Case, Finding
from forensics.findings import GRAVE
from parsers.tables import Run

SUSPECTS, ORDINARY = 4, 2  # batches shown: bound, what somebody reads; the issue asks for two ordinary ones
LOOKED_UP = 128  # batches that are looked up in search of ordinary ones: bound on time, each may have to be rebuilt
SCANNED = 20_000  # steps on either side whose symptoms are asked for: bound on time
MARGIN = 2  # steps after a suspect that are no control either: its update shows in the next value


@dataclass(frozen=True)
class Batch:
    step: int
    attempt: int
    samples: tuple[Any, ...]  # ids, those that stand out first
    count: int  # samples of the whole batch
    how: str
    findings: tuple[str, ...] = ()


def suspects(run: Run, case: Case, odd: Collection[Any]) -> list[Batch]:
    """All of them, the first to show first; without ids where nobody knows the samples."""
    behind = suspect_batches.behind(run, case.findings)
    attempts = {b.step: b.attempt for b in reversed(behind)}
    linked: dict[int, list[str]] = {}
    for b in behind:
        linked.setdefault(b.step, []).append(b.finding)
    found = []
    for c in case.culprits:
        step = c["step"]
        attempt = attempts.get(step, _attempt(run, step))
        covering = [f.id for f in case.findings if f.severity in GRAVE and _covers(f, step)][:2]
        found.append(_batch(c, attempt, odd, tuple(linked.get(step, covering))))
    for b in behind if not found else ():
        known = step_to_samples.batch(run, b.step, b.attempt) or {"step": b.step, "samples": [], "how": "unknown"}
        found.append(_batch(known, b.attempt, odd, (b.finding,)))
    wanted = set(odd)
    return sorted(found, key=lambda b: (not b.samples, not wanted.intersection(b.samples)))


def _batch(known: dict[str, Any], attempt: int, odd: Collection[Any], findings: tuple[str, ...]) -> Batch:
    samples = sorted(known["samples"], key=lambda x: x not in odd)
    return Batch(known["step"], attempt, tuple(samples), known.get("samples_in_all") or len(samples), known["how"], findings)


def ordinary(run: Run, findings: Sequence[Finding], shown: Sequence[Batch]) -> tuple[list[Batch], str]:
    """(the two ordinary batches, or fewer; in words, how they were chosen)."""
    first = shown[0]
    whole = step_to_samples.batch(run, first.step, first.attempt)  # a culprit of a replay names a part of its batch
    length = (whole.get("samples_in_all") or len(whole["samples"])) if whole else first.count
    kept = {s + i for b in shown for s in (b.step,) for i in range(MARGIN + 1)}
    grave = [f for f in findings if f.severity in GRAVE]
    outside = "outside the steps of every symptom of severity warning or worse"
    inside = "that are no suspects (each lies within the steps of some symptom)"
    for allowed, words in ((grave, outside), ([], inside)):
        found: list[Batch] = []
        for step in _nearest(run, first, kept, allowed):
            known = step_to_samples.batch(run, step, first.attempt)
            if known and known["samples"] and (known.get("samples_in_all") or len(known["samples"])) == length:
                found.append(_batch(known, first.attempt, (), ()))
            if len(found) == ORDINARY:
                break
        if found:
            near = "nearest earlier" if all(b.step < first.step for b in found) else "nearest"
            return found, f"the {near} batches of as many samples {words}"
    return [], ""


def _nearest(run: Run, first: Batch, kept: Collection[int], findings: Sequence[Finding]) -> Iterator[int]:
    """Steps that may be ordinary: earlier ones, the nearest first, then later ones."""
    listed = sorted(s for a, s in recorded.recorded(run) if a == first.attempt)
    ends = run.attempts[first.attempt]["steps"] if first.attempt < len(run.attempts) else [first.step, first.step]
    earlier = [s for s in reversed(listed) if s < first.step] if listed else range(first.step - 1, ends[0] - 1, -1)
    later = [s for s in listed if s > first.step] if listed else range(first.step + 1, ends[1] + 1)
    for side in (earlier, later):
        free = (s for s in side[:SCANNED] if s not in kept and not any(_covers(f, s) for f in findings))
        yield from islice(free, LOOKED_UP)


def _covers(f: Finding, step: int) -> bool:
    return f.first_step is not None and f.first_step <= step and (f.last_step is None or step <= f.last_step)


def _attempt(run: Run, step: int) -> int:
    """The last attempt that did a step."""
    return max((a["index"] for a in run.attempts if a["steps"][0] <= step <= a["steps"][1]), default=0)

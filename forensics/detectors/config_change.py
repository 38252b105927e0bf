"""Config change

What it sees
    Two launches of the run were configured differently; or the batch size changed on the way.

How it decides
    Where the run was launched twice, config files that hold the same keys are snapshots of the same settings, and so are the settings
    that one log prints once for each launch: values that differ,
    other than names, places and moments, are changes; 32 and 32.0, false and 0 are the same value. Without a second launch two
    files are two descriptions of one launch. The batch size is followed in the log itself, too: as a metric, as the number of samples a step, or as the steps that an epoch takes;
    these are information where they change within one launch: a loader keeps its batch, and the data became more or less.
    A batch of a device, an accumulation or a number of processes that change while the samples a step are known to stay the same are information.

Cannot tell
    Where one config lies in the folder, and the log names no batch size.

Folklore
    The config file in the folder is that of the last launch: the first one may have been another.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from forensics import evidence
from forensics.batches.batch_changes import batch_change
from forensics.batches.split import only_split
from forensics.case import BaseFacts, Finding
from forensics.errors import CannotTell
from forensics.run import settings
from forensics.run.seed_group import FREE
from forensics.run.series import series
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

NEEDS: list[str] = []
INPUTS = ["config"]
EFFECT, MEANT = "behaves_differently_after_change", ("changes_as_configured",)
_ADDRESS = lazy_re(r" at 0x[0-9a-fA-F]+")
_TUPLE = lazy_re(r"(?s)^\((.{0,10000}?),?\)$")
_LENGTH = lazy_re(r"(?i)(?:^|[._/])(?:(?:max|total|num|n|train|stop)_){0,3}(?:steps|iters|iterations|updates|timesteps|epochs|at)$")
ALIKE = 0.7  # share of keys that two snapshots have in common; not critical: 0.49 and 0.98 tell the same runs (docs/thresholds.md)
SMALLEST_EFFECT = "one setting"


@dataclass(frozen=True)
class Facts(BaseFacts):
    """Settings that differ between two launches, or the batch size within one."""

    keys: list[str]
    changes: list[list[Any]]  # [before, after] of each key
    step: int | None  # from which on, None where no restart tells
    batch: bool  # the batch size is among them
    at_restart: bool | None = None  # of a batch size that the log follows


@dataclass(frozen=True)
class Split(BaseFacts):
    """Settings that share the same samples a step out otherwise: no change for the optimizer."""

    keys: list[str]
    changes: list[list[Any]]  # [before, after] of each key
    samples: int  # a step


def detect(run: Run) -> Iterator[Finding]:
    changes, kept, samples = _changes(run)
    step = run.attempts[-1]["steps"][0] if len(run.attempts) > 1 else None
    if changes:
        rows = [[key, old, new, where] for key, old, new, where in changes]
        listed = ", ".join(f"{key} from {old} to {new}" for key, old, new, _ in changes[:3])
        shown = evidence.table("what differs between the launches", ["setting", "before", "after", "file"], rows, changes[0][3])
        batch = any("batch" in c[0].lower() for c in changes)
        facts = Facts([c[0] for c in changes], [[c[1], c[2]] for c in changes], step, batch)
        yield evidence.found(facts, f"Config changed between launches: {listed}", (step, step), "warning", shown)
    if kept:
        listed = ", ".join(f"{key} from {old} to {new}" for key, old, new, _ in kept)
        facts_of_split = Split([c[0] for c in kept], [[c[1], c[2]] for c in kept], samples)
        shown = evidence.text("shared out otherwise", [f"{samples} samples a step before and after: {listed}"], kept[0][3])
        yield evidence.found(facts_of_split, f"Both launches take {samples} samples a step, with {listed}", (step, step), "info", shown)
    sizes = batch_change(run)
    if sizes is not None:
        at = sizes.step
        within = sizes.after if sizes.of_epoch else 1  # a log of one row an epoch begins again with the end of one
        restart = any(at - 1 <= a["steps"][0] <= at + within for a in run.attempts[1:])
        of_data = sizes.of_epoch and not restart
        facts = Facts(["steps per epoch" if sizes.of_epoch else "batch size"], [[sizes.before, sizes.after]], at, not of_data, restart)
        shown = evidence.text("batch size", [sizes.text])
        yield evidence.found(facts, sizes.title, (at, at), "info" if of_data else "warning", shown, key=f"{at}-batch")
    known = series(run, "batch.size") is not None or run.tables["batches"].num_rows
    if not changes and not kept and sizes is None and not known and len(_by_source(run)) < 2:
        raise CannotTell("there is one config, and the log names no batch size")


def _by_source(run: Run) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    table = run.tables["config"]
    for source, key, value in zip(*(table[c].to_pylist() for c in ("source", "key", "value")), strict=True):
        folder, _, name = source.rpartition("/")
        found.setdefault(folder if name == key else source, {}).setdefault(key, value)  # MLflow keeps each setting in a file of its own
    return {s: c for s, c in found.items() if len(c) >= 3}


def _launch(run: Run, source: str) -> int:
    """The attempt whose logs lie beside a config in a folder of its own; 0 where none does, or all do."""
    beside = source.rpartition("/")[0] + "/"
    mine = [a["index"] for a in run.attempts if any(f.startswith(beside) for f in a["files"])]
    return int(mine[0]) if len(mine) == 1 else 0


Snapshots = tuple[dict[str, str], dict[str, str], str]  # before, after, file


def snapshots(run: Run) -> list[Snapshots]:
    """Each two snapshots of the same settings, of two files or of two launches in one; none where there was one launch."""
    if len(run.attempts) < 2:
        return []
    configs = sorted(_by_source(run).items(), key=lambda c: (_launch(run, c[0]), c[0]))
    pairs = [(old, new, source) for i, (_, old) in enumerate(configs) for source, new in configs[i + 1 :]]
    alike = [(a, b, source) for a, b, source in pairs if len(a.keys() & b.keys()) >= max(3, ALIKE * min(len(a), len(b)))]
    tellers = dict.fromkeys(run.tables["config"]["source"].to_pylist())
    return alike + [found for source in tellers for found in _told_again(run, source)]


def _told_again(run: Run, source: str) -> Iterator[Snapshots]:
    """The settings that hold before and after a launch of one file that tells settings again, be it only those that it overrides."""
    table = run.tables["config"]
    launches: dict[int, dict[str, str]] = {}
    for attempt, of, key, value in zip(*(table[c].to_pylist() for c in ("attempt", "source", "key", "value")), strict=True):
        if of == source and attempt is not None:
            launches.setdefault(attempt, {})[key] = value
    told = [launches[attempt] for attempt in sorted(launches)]
    for old, new in zip(told, told[1:], strict=False):
        if old.keys() & new.keys():
            yield old, {k: v for k, v in new.items() if k in old}, source
        new.update({k: v for k, v in old.items() if k not in new})


Changed = tuple[str, str, str, str]  # key, before, after, file


def _changes(run: Run) -> tuple[list[Changed], list[Changed], int]:
    """What changed over successive snapshots of the same settings (nothing changes within one launch); what only shares the samples a
    step out otherwise; and how many these are."""
    found: dict[str, Changed] = {}
    kept: dict[str, Changed] = {}
    samples = 0
    for old, new, source in snapshots(run):
        same = only_split(run, old, new)
        samples = same[0] if same else samples
        for k in sorted(old.keys() & new.keys()):
            if not _same(old[k], new[k]) and not FREE.search(k) and not _is_place(run, k, old[k], new[k]):
                (kept if same and k in same[1] else found)[k] = (k, _short(old[k]), _short(new[k]), source)
    return list(found.values()), [c for k, c in kept.items() if k not in found], samples


def _same(old: str, new: str) -> bool:
    """Equal as values; the addresses of objects differ from launch to launch, and so does the order in which a set of words is written."""
    one, two = (settings.plain(_ADDRESS.sub("", text)) for text in (old, new))
    a, b = (float(v) if isinstance(v, bool) else settings.as_number(v) for v in (one, two))
    if all(isinstance(x, list) and all(isinstance(v, str) and v.isidentifier() for v in x) for x in (one, two)):
        return sorted(one) == sorted(two)
    return _listed(one) == _listed(two) or (a is not None and a == b)


def _listed(value: Any) -> str:
    """One file keeps a list, another one its text, a third one that of a tuple."""
    return _TUPLE.sub(r"[\1]", str(value))


def _is_place(run: Run, key: str, old: str, new: str) -> bool:
    """Is it the step at which the next launch goes on (``from_step: 800``), or at which the last one was to end and the next is not (``stop_at: 0``,
    ``total_steps: 1000``)?"""
    before, after = (settings.as_number(settings.plain(text)) for text in (old, new))
    numbers = [after or before, before if after and before and after > before and _LENGTH.search(key) else None]
    return any(n is not None and a["steps"][1] <= n <= b["steps"][0] for n in numbers for a, b in pairwise(run.attempts))


def _short(value: str) -> str:
    try:
        text = str(json.loads(value))
    except ValueError:
        text = value
    return text[:60]

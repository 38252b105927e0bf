"""The checkpoints of a run, for detectors: opened when one asks, their values streamed when one asks for those.

``of_run`` groups the listed files to checkpoints and reads names and plain values; ``tensors`` streams the values, within
a budget of bytes, and fills ``run.tables["tensors"]``. Both are done once. Ingesting logs pays nothing for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from forensics import outlines
from forensics.case import Finding
from forensics.checkpoints.age import counters
from forensics.checkpoints.describe import Checkpoint, kind_of, measure, step_of
from forensics.checkpoints.looks import is_state
from forensics.checkpoints.save_steps import end_of_epoch, is_epoch, last_of_log
from forensics.checkpoints.sick_document import row as tensor_row
from forensics.checkpoints.sick_values import damaged
from forensics.findings import GRAVE, began
from forensics.run import how_it_ended
from forensics.run.once import once
from parsers import arrow, secrets
from parsers.checkpoints import folder, read_file
from parsers.formats import checkpoint_files
from parsers.lazy_regex import lazy_re
from parsers.tables import Gap, Run

BUDGET = 2 << 30  # bytes of values streamed for one analysis
MOST_OPENED, MOST_GAPS = 40, 20  # of a run, the first, the last and some between; gaps of one that are told as gaps of its run
_RAISED = lazy_re(r"\b[A-Z]\w{0,80}(?:Error|Exception|Exit|Warning)\b|^[\w.]{1,80}+: ")
_NUMBERED = lazy_re(r"(?is).*(step|checkpoint|ckpt|iter(ation)?|epoch|it|ba|ep)[-_=]?\d.*")


def of_run(run: Run) -> list[Checkpoint]:
    """In the order of steps; without a step last. Files that cannot be read are left out, and are gaps of the run."""
    return _open(run)[0]


@once
def tensors(run: Run) -> list[Checkpoint]:
    """The same checkpoints with statistics, as far as the budget reaches: the last first, then the first, then the others."""
    found = of_run(run)
    left, partial = BUDGET, outlines.of(run)
    here = [c for c in found if partial.keys().isdisjoint(c.contents.files)]
    for c in [*here[-1:], *here[:1], *here[-2:0:-1]]:
        if c.stats or c.contents.bytes > left:
            continue
        left -= c.contents.bytes
        known = len(c.contents.gaps)
        measure(c, only=lambda t: t.role != "other" or is_state(t.name))
        run.gaps += [Gap(g.at, secrets.mask_text(g.what)[:300], None, name(c, run)) for g in c.contents.gaps[known : known + MOST_GAPS]]
    if len(here) < len(found):
        what = (
            f"the values of {len(found) - len(here)} checkpoints were not fetched, only their headers: give one to `forensics checkpoint`"
        )
        run.gaps.append(Gap("byte 0", what, None, next(name(c, run) for c in reversed(found) if c not in here)))
    unread = [c for c in here if not c.stats and c.contents.tensors]
    if unread and any(c.contents.bytes > left for c in unread):
        what = f"the values of {len(unread)} checkpoints were not read: more than {BUDGET >> 30} GB in all"
        run.gaps.append(Gap("byte 0", what, None, name(unread[0], run)))
    _fill_table(run, found)
    return found


def name(c: Checkpoint, run: Run) -> str:
    shown = _open(run)[1].get(c.path)
    if shown is not None:
        return shown
    return (c.path.relative_to(run.root) if c.path.is_relative_to(run.root) else c.path).as_posix()


def last_healthy(run: Run, findings: Sequence[Finding]) -> dict[str, Any] | None:
    """`last_good` of a run that went wrong or did not come to its own end, {"path", "step"}; None where there is none.

    `warning` is added where the run's own retention deletes it with one of its next saves.
    """
    wrong = any(f.severity in GRAVE for f in findings) or how_it_ended.ending(run).status in ("crashed", "stopped", "hung")
    best = last_good(run, findings) if wrong else None
    if best is None:
        return None
    told: dict[str, Any] = {"path": name(best, run), "step": best.step}
    kept = _of_weights(run)
    limit, why = _retention(run, kept)
    later = len({c.step for c in kept if c.step is not None and best.step is not None and c.step > best.step})
    if limit is not None and later >= limit - 1:
        told["warning"] = f"{why}: its next save deletes this one; copy it before the run continues"
    return told


def last_good(run: Run, findings: Sequence[Finding]) -> Checkpoint | None:
    """The checkpoint to go on from: the last whole one of weights, without a value that no training reaches, from before the trouble; None
    where it cannot be told."""
    harm = [f for f in findings if f.severity in GRAVE and f.kind not in HARMLESS]
    before = trouble_from(findings)
    if harm and before is None:
        return None
    bare = {step for f in findings if f.severity != "info" for step in getattr(f.facts, "resumed", None) or ()}  # the trouble began there
    known = [c for c in _of_weights(run) if c.step is not None and (before is None or c.step < before) and c.step not in bare]
    good = [c for c in known if is_whole(c) and not damaged(c)]
    return good[-1] if good else None


def trouble_from(findings: Sequence[Finding]) -> int | None:
    """The first step from which weights may have taken harm; None where they took none, or no finding names a step."""
    return began(findings, HARMLESS)


def _of_weights(run: Run) -> list[Checkpoint]:
    if not run.tables["checkpoints"].num_rows:
        return []
    return [c for c in tensors(run) if c.step is not None and c.kind in ("weights", "full")]


def numbers(run: Run, findings: Sequence[Finding]) -> dict[str, Any]:
    """What a sentence on what to do may name: ``saves`` (how many), ``last_save`` and ``checkpoint`` (steps of the last one, and of the
    one to go on from), ``error_at`` (where the traceback stands, in brackets). What there is not is left out."""
    steps = [s for s in run.tables["checkpoints"]["step"].to_pylist() if s is not None]
    found: dict[str, Any] = {"saves": len(set(steps)), "last_save": max(steps)} if steps else {}
    healthy = last_healthy(run, findings)
    ended = how_it_ended.ending(run)
    raised = ended.where and _RAISED.search(ended.says)  # a tracker's word for a failed run is no traceback
    return found | ({"checkpoint": healthy["step"]} if healthy else {}) | {"error_at": f" ({ended.where})" if raised else ""}


HARMLESS = (  # kinds of findings of which weights take no harm: their values are looked at by themselves
    "ending", "restart", "throughput", "stall", "memory", "utilization", "logger_artefact", "checkpoint_damage", "checkpoint_state", "suspect_source",
    "eval_noise", "eval_shadow",
)  # fmt: skip


def is_whole(c: Checkpoint) -> bool:
    """Nothing known to be missing of its weights."""
    return any(t.role in ("weight", "ema") for t in c.contents.tensors) and not any(t.why for t in c.contents.tensors if t.role == "weight")


_KEPT = ("save_total_limit", "keep_last_n", "keep_last", "keep_latest_k", "max_to_keep", "save_top_k")


def _retention(run: Run, kept: Sequence[Checkpoint]) -> tuple[int | None, str]:
    """(how many checkpoints the run keeps, how that is known): by its config, else by the saves that are no longer there."""
    table = run.tables["config"]
    for key, value in zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True):
        if key.rpartition(".")[2].rpartition("/")[2] in _KEPT:
            digits = str(value).strip('"')
            if digits.isdigit() and int(digits) > 0:
                return int(digits), f"the run keeps {digits} checkpoints"
    steps = sorted({c.step for c in kept if c.step is not None})
    gaps = {b - a for a, b in pairwise(steps)}
    began = min((a["steps"][0] for a in run.attempts if a.get("steps")), default=0)
    if len(steps) >= 2 and len(gaps) == 1 and steps[0] - began >= 2 * (every := gaps.pop()):
        return len(steps), f"the folder holds the last {len(steps)} saves, one every {every} steps, and none before"
    return None, ""


@once
def _open(run: Run) -> tuple[list[Checkpoint], dict[Path, str]]:
    """The checkpoints, and for the path of each the name it is shown under."""
    groups: dict[tuple[int | None, str], list[str]] = {}
    for row in run.tables["checkpoints"].select(["step", "source"]).to_pylist():
        if not row["source"].endswith(".distcp"):
            groups.setdefault((row["step"], _home(row["source"])), []).append(row["source"])
    ordered = sorted(groups.items(), key=lambda g: (g[0][0] is None, g[0][0] or 0, g[0][1]))
    found = []
    shown: dict[Path, str] = {}
    partial = outlines.of(run)
    for (step, home), sources in _spread(ordered):
        paths = [run.file(s) for s in sources]
        if any(outlines.closed(run, p) for p in paths):
            run.gaps.append(Gap("byte 0", "its contents were not fetched", None, sources[0]))
            continue
        whole = [paths[0], *paths[0].parents][sources[0].count("/") - home.count("/")]
        shown[whole] = home
        try:
            contents = folder.join(whole, paths, outlines.reader(read_file, partial))
        except Exception as e:  # one checkpoint costs only itself
            run.gaps.append(Gap("byte 0", secrets.mask_text(f"its contents: {type(e).__name__}: {e}")[:300], None, sources[0]))
            continue
        for g in contents.gaps:
            if not contents.tensors and not contents.values and "missing" not in g.what and all(x.path != sources[0] for x in run.gaps):
                run.gaps.append(Gap(g.at, f"its contents: {secrets.mask_text(g.what)}"[:300], None, sources[0]))
        if contents.tensors or contents.values:
            stated = step if step is not None else step_of(contents)
            c = Checkpoint(contents, None if is_epoch(stated, contents, run) else stated, kind_of(contents))
            if stated is None:  # neither file nor name says it
                told = (last_of_log(contents, run), counters(c).optimizer, end_of_epoch(contents, run))
                c.step = next((n for n in told if n is not None), None)
            found.append(c)
    return sorted(found, key=lambda c: (c.step is None, c.step or 0)), shown


def _spread(groups: list[Any]) -> list[Any]:
    if len(groups) <= MOST_OPENED:
        return groups
    picked = {round(i * (len(groups) - 1) / (MOST_OPENED - 1)) for i in range(MOST_OPENED)}
    return [g for i, g in enumerate(groups) if i in picked]


def _home(source: str) -> str:
    """The numbered folder that a file lies in, else the file itself: checkpoint-500/model.safetensors, step_500.pt."""
    parts = source.split("/")
    if _NUMBERED.fullmatch(parts[-1]) and checkpoint_files.step_of(Path(parts[-1])) is not None:
        return source
    for i in range(len(parts) - 2, -1, -1):
        if _NUMBERED.fullmatch(parts[i]):
            return "/".join(parts[: i + 1])
    together = checkpoint_files.kind_of(parts[-1]) != "full"  # model.safetensors beside optimizer.pt; best.pt stands for itself
    return "/".join(parts[:-1]) if together and len(parts) > 1 else source


def _fill_table(run: Run, found: list[Checkpoint]) -> None:
    """The table `tensors`: one row for each tensor of each checkpoint."""
    import pyarrow as pa

    schema = run.tables["tensors"].schema
    rows: list[dict[str, Any]] = []
    for c in found:
        place = name(c, run)
        for t in c.contents.tensors:
            source = place if t.source == c.path.name else f"{place}/{t.source}"
            shape = [min(n, (1 << 63) - 1) for n in t.shape]
            rows.append(tensor_row(t, c.stats.get(t.name)) | {"shape": shape, "checkpoint": place, "source": source, "at": t.at})
    columns = [arrow.column([r.get(f.name) for r in rows], f.type) for f in schema]
    run.tables["tensors"] = pa.Table.from_arrays(columns, schema=schema)

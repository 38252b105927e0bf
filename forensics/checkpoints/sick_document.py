"""Everything that is sick in a checkpoint, and the document of `forensics checkpoint`: a row for each tensor, findings, changes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from forensics import outlines, remote
from forensics.case import jsonable, number
from forensics.checkpoints import age, buffers, layers, optimizer, weights
from forensics.checkpoints import folder_facts as facts
from forensics.checkpoints import sick_values as sick
from forensics.checkpoints.between_saves import between
from forensics.checkpoints.describe import Checkpoint, Progress, compare, read
from forensics.checkpoints.looks import Found, finding
from forensics.checkpoints.matrix_copies import copies
from forensics.checkpoints.rank_copies import ranks
from parsers import secrets
from parsers.checkpoints.contents import Tensor
from parsers.checkpoints.value_stats import Stats
from parsers.tables import Gap

Row = dict[str, Any]

_LOOKS = (
    sick.foreign_code, sick.incomplete, sick.without_tensors, sick.nonfinite, sick.absurd, sick.blown_up, layers.empty, layers.alike, layers.scale, layers.drowned, layers.mixed_types,
    copies, buffers.batchnorm, buffers.ema, buffers.adapters, buffers.saturated, ranks, weights.units, weights.start,
    age.counters_disagree, age.optimizer, age.spikes, optimizer.moments, optimizer.steps, optimizer.missing, optimizer.rates,
    optimizer.schedule_reset, optimizer.scaler, facts.folder,
)  # fmt: skip


def findings(c: Checkpoint) -> list[Found]:
    """Everything that is sick in one checkpoint, the gravest first. A look that breaks costs only itself, and says so."""
    found: list[Found] = []
    for look in _LOOKS:
        try:
            found += look(c)
        except Exception as e:
            found.append(finding("look_failed", "info", f"The look for {look.__name__} failed: {type(e).__name__}: {e}"[:300]))
    return gravest(found)


def gravest(found: Iterable[Found]) -> list[Found]:
    return sorted(found, key=lambda f: ("critical", "warning", "info").index(f["severity"]))


def report(path: str | Path, path2: str | Path | None = None, *, progress: Progress | None = None) -> dict[str, Any]:
    """The document of `forensics checkpoint --json`: of PATH alone, or with what changed from PATH to PATH2; each may be an fsspec URL.

    Raises ForensicsError where nothing in one of them can be read.
    """
    with outlines.here(str(path), progress) as one, outlines.here(str(path2 or ""), progress) as two:
        document = _report(one, two if path2 else None, path2, progress)
    return document | ({"path": secrets.mask_shapes(str(path))} if remote.is_url(str(path)) else {})


def _report(one: Path, two: Path | None, path2: str | Path | None, progress: Progress | None) -> dict[str, Any]:
    first = read(one, progress=progress)
    if two is None:
        return to_json(first, findings(first))
    second = read(two, progress=progress)
    changed = compare(first, second, progress=progress)
    others = [f | {"title": f"{path2}: {f['title']}"} for f in findings(second)]
    document = to_json(first, [*between(first, second, changed), *findings(first), *others], changed)
    document["path2"] = str(path2)
    document["refused"] += [r | {"at": f"{path2} {r['at']}"} for r in second.contents.refused]
    document["gaps"] += [_gap(g) for g in second.contents.gaps]
    return document


def to_json(c: Checkpoint, found: list[Found], changed: list[Row] | None = None) -> dict[str, Any]:
    """Only JSON types; NaN and infinities as the strings of the contract."""
    n = c.contents
    document = {
        "schema": 1, "path": str(n.path), "format": n.format, "kind": c.kind, "step": c.step, "complete": n.complete, "bytes": n.bytes,
        "tensors": [], "findings": found, "refused": n.refused,
        "gaps": [_gap(g) for g in n.gaps], "changed": None,
    }  # fmt: skip
    plain = jsonable(document)
    assert isinstance(plain, dict)
    plain["tensors"] = _shown(row(t, c.stats.get(t.name)) for t in n.tensors)
    plain["changed"] = None if changed is None else _shown(changed)
    return plain


FIGURES = ("norm", "mean", "std", "absmax", "nonfinite", "zeros", "zero_rows", "zero_columns")


def row(t: Tensor, s: Stats | None) -> Row:
    """A tensor as the contract has it; null where values could not be read."""
    named: Row = {"name": t.name, "role": t.role, "dtype": t.dtype, "shape": list(t.shape)}
    if s is None:
        return named | dict.fromkeys(FIGURES) | {"note": t.why}
    return named | {figure: getattr(s, figure) for figure in FIGURES}


_NUMBERS = ("norm", "mean", "std", "absmax", "update_norm", "relative")  # of a row, those that may be odd


def _shown(found: Iterable[Row]) -> list[Row]:
    """``jsonable`` of rows, of which there may be a hundred thousand: one look at all their texts together, then at odd numbers."""
    plain = list(found)
    masked = secrets.names(text for r in plain for key in ("name", "dtype", "note") if (text := r.get(key)))
    for r in plain:
        if masked:
            r.update({k: masked[v] for k, v in r.items() if isinstance(v, str) and v in masked})
        for key in _NUMBERS:
            if (x := r.get(key)) is not None and not math.isfinite(x):
                r[key] = number(x)
    return plain


def _gap(g: Gap) -> dict[str, Any]:
    return {"path": g.path, "at": g.at, "what": g.what, "lost": g.lost}

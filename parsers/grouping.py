"""One run or several: which files below a folder belong together.

One run is a folder with its parts: checkpoints, train/val sub-folders, rank files, restarts that go on from it.
Files that log the same metrics over the same steps with *other* values are several runs. The decision rests on what
the files say, then on where they lie:

* equal values at equal steps: the same run, logged twice;
* another format in the same folder: the same run;
* different metrics: the same run, when their folders are parts of one (``train/``, ``logs/``, ``wandb/run-*``);
* steps that begin in the middle of the other's: a restart of the same run;
* otherwise: runs of their own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import numpy as np

from parsers import merge, names
from parsers.assemble import FileRead, Group

_PART = re.compile(
    r"(?i)(train(ing)?|val(id(ation)?)?|eval(uation)?|test|dev|holdout|logs?|tb(oard)?|tensorboard(_?logs?)?|events?|summar(y|ies)"
    r"|metrics|files|artifacts|output|checkpoints?|ckpts?|weights|plots|plots/metrics|wandb|mlruns|scalars|stats|results|reports?"
    r"|(checkpoint|ckpt|iter|step|epoch|global_step)[-_=]?\d+.*|mp_rank_\d+|rank[-_]?\d+|worker[-_]?\d+|node[-_]?\d+|\d+\.\d+|\.hydra|tmp-checkpoint.*)"
)
_SPLIT_FOLDER = re.compile(
    r"(?i).*[_-](train|val|valid|validation|eval|test)$"
)  # add_scalars writes Loss_train/, Loss_val/
_STAMPED = re.compile(
    r"(?i)[A-Z][a-z]{2}\d{2}_\d{2}-\d{2}-\d{2}_.*|\d{8}[-_T]?\d{4,6}.*"
)  # Hugging Face: runs/May16_18-24-16_host
_WANDB_RUN = re.compile(r"(?:offline-|dry)?run-\d{8}_\d{6}-(\w+)")
_RANK = re.compile(r"(?i)(rank|worker|node|process|gpu|local_rank|global_rank)[-_.]?\d+")
_SAME_IN_ALL = {
    "lr",
    "lr.mult",
    "epoch",
    "step",
    "batch.size",
    "tokens.seen",
    "samples.seen",
    "loss_scale",
    "time.total",
}  # equal across seeds
_RESTART_SHARE = 0.02  # a restart begins this far into the other's steps, or further


@dataclass
class Unit:
    """The metric files of one format in one folder that are one run for sure (event files), or one file."""

    home: str
    format: str
    files: list[FileRead]
    metrics: dict[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)  # key -> (steps, values)
    first: int = 0
    last: int = 0
    times: tuple[float, float] | None = None


def split(files: list[FileRead], root: Path, overrides: dict[str, str]) -> list[Group]:
    """The runs below root, the one written last at the end; files without metrics go with the run they lie nearest to."""
    units = _units(files)
    if len(units) <= 1:
        return [Group(_root_id(root), str(root), files)]
    units = [_filled(u, overrides) for u in units]
    runs: list[list[Unit]] = []
    for unit in sorted(units, key=lambda u: (u.times or (0.0, 0.0), u.home, u.files[0].source.path)):
        candidates = [r for r in runs if not any(_conflict(u, unit) for u in r)]
        candidates = [r for r in candidates if any(_related(u, unit) for u in r)]
        if candidates:
            max(candidates, key=lambda r: max(_nearness(u.home, unit.home) for u in r)).append(unit)
        else:
            runs.append([unit])
    if len(runs) <= 1:
        return [Group(_root_id(root), str(root), files)]
    groups = [_group(r, root, runs) for r in runs]
    _attach_rest(groups, files, {id(f) for u in units for f in u.files})
    latest = {id(g): max((u.times[1] for u in r if u.times), default=0.0) for g, r in zip(groups, runs, strict=True)}
    return sorted(groups, key=lambda g: (latest[id(g)], max(_mtime(f) for f in g.files), g.id))


def _root_id(root: Path) -> str:
    return root.resolve().name or "run"


def home(path: str) -> str:
    """The folder of the run that a file lies in: its own folder without the parts (``train/``, ``checkpoint-500/``)."""
    parts = list(PurePosixPath(path).parent.parts)
    while parts:
        last = parts[-1]
        stamped = len(parts) > 1 and parts[-2] == "runs" and _STAMPED.fullmatch(last)
        if stamped:
            parts = parts[:-2]
        elif _PART.fullmatch(last) or _SPLIT_FOLDER.fullmatch(last):
            parts.pop()
        elif match := _WANDB_RUN.fullmatch(last):
            return "/".join([*parts[:-1], match[1]])  # a resumed W&B run is several folders with one id
        else:
            break
    return "/".join(parts)


def _units(files: list[FileRead]) -> list[Unit]:
    found: dict[tuple[str, ...], Unit] = {}
    for f in files:
        if not f.batches.get("metrics"):
            continue
        where, fmt = home(f.source.path), f.source.format
        parts: tuple[str, ...] = (where, fmt)
        if fmt not in {"tensorboard", "wandb_offline", "wandb_folder", "trainer_state", "mlflow_files"}:
            parts = (where, fmt, f.source.path)
        unit = found.setdefault(parts, Unit(where, fmt, []))
        unit.files.append(f)
    return list(found.values())


def _filled(unit: Unit, overrides: dict[str, str]) -> Unit:
    first, last, t0, t1 = [], [], [], []
    for f in unit.files:
        table = f.table("metrics")
        tags = table["tag"].combine_chunks()
        folder = f.source.path.rpartition("/")[0]
        values = tags.dictionary.to_pylist()
        known = frozenset(values)
        step = table["step"].to_numpy(zero_copy_only=False).astype(np.float64)
        value, codes = table["value"].to_numpy(zero_copy_only=False), tags.indices.to_numpy()
        time = table["time"].to_numpy(zero_copy_only=False)
        if np.isfinite(step).any():
            first.append(np.nanmin(step))
            last.append(np.nanmax(step))
        if np.isfinite(time).any():
            t0.append(float(np.nanmin(time)))
            t1.append(float(np.nanmax(time)))
        order = np.argsort(codes, kind="stable")
        bounds = np.searchsorted(codes[order], np.arange(len(values) + 1))
        for i, tag in enumerate(values):
            rows = order[bounds[i] : bounds[i + 1]]
            rows = rows[np.isfinite(step[rows])]
            name = names.meaning(tag, folder=folder, siblings=known, overrides=overrides).name
            if len(rows) and not name.startswith("axis/") and name not in {"step", "epoch"}:
                unit.metrics.setdefault(merge.key(name), (step[rows], value[rows]))
    unit.first, unit.last = int(min(first, default=0)), int(max(last, default=0))
    unit.times = (min(t0), max(t1)) if t0 else None
    return unit


def _conflict(a: Unit, b: Unit) -> bool:
    """True where both log the same metric over the same steps with other values: two runs."""
    if a.home == b.home and a.format != b.format:
        return False
    shared = _shared(a, b)
    if not shared:
        return False
    if _ranks(a, b) or _continues(a, b) or _continues(b, a):
        return False
    copy = _copy(a, b)
    return a.home != b.home if copy is None else not copy


def _shared(a: Unit, b: Unit) -> list[str]:
    return [k for k in a.metrics.keys() & b.metrics.keys() if not k.startswith("axis/") and k not in _SAME_IN_ALL]


def _copy(a: Unit, b: Unit) -> bool | None:
    """True where most of the shared metrics have equal values at equal steps; None without a common step."""
    equal = [e for k in _shared(a, b) if (e := _equal_share(a.metrics[k], b.metrics[k])) is not None]
    return bool(np.median(equal) >= 0.5) if equal else None


def _equal_share(a: tuple[np.ndarray, np.ndarray], b: tuple[np.ndarray, np.ndarray]) -> float | None:
    """Share of common steps where the values agree to 3 digits; None without a common step."""
    steps, i, j = np.intersect1d(a[0], b[0], return_indices=True)
    if not len(steps):
        return None
    return float(np.isclose(a[1][i], b[1][j], rtol=2e-3, equal_nan=True).mean())


def _continues(a: Unit, b: Unit) -> bool:
    """b begins in the middle of a, or right after it: a restart (in another folder, only with clocks that agree)."""
    span = max(a.last - a.first, 1)
    if not a.first + max(_RESTART_SHARE * span, 2) <= b.first <= a.last + 0.25 * span + 1:
        return False
    if a.times and b.times:
        return a.times[0] < b.times[0]
    return True


def _ranks(a: Unit, b: Unit) -> bool:
    """Files of one job that differ only in the number of the process."""
    one, two = a.files[0].source.path, b.files[0].source.path
    return one != two and bool(_RANK.search(one)) and _RANK.sub("#", one) == _RANK.sub("#", two)


def _related(a: Unit, b: Unit) -> bool:
    """Near enough to be one run: the same folder, one above the other, or siblings that continue or copy each other."""
    if a.home == b.home or a.home.startswith(b.home + "/") or b.home.startswith(a.home + "/") or "" in (a.home, b.home):
        return True
    shared = _shared(a, b)
    if _copy(a, b):
        return True
    same_parent = PurePosixPath(a.home).parent == PurePosixPath(b.home).parent
    return same_parent and bool(shared) and (_continues(a, b) or _continues(b, a))


def _nearness(a: str, b: str) -> int:
    one, two = PurePosixPath(a).parts, PurePosixPath(b).parts
    return sum(x == y for x, y in zip(one, two, strict=False))


def _group(run: list[Unit], root: Path, runs: list[list[Unit]]) -> Group:
    """Named by its folder; by its file where several runs share the folder."""
    where = run[0].home
    alone = sum(any(u.home == where for u in r) for r in runs) == 1 and where != ""
    if alone:
        path = where if (root / where).exists() else PurePosixPath(run[0].files[0].source.path).parent.as_posix()
    else:
        path = run[0].files[0].source.path
    return Group(path.replace("/", "__"), str(root / path), [f for u in run for f in u.files])


def _attach_rest(groups: list[Group], files: list[FileRead], placed: set[int]) -> None:
    """Files without metrics go to the nearest run, those in a common folder to every run below it."""
    for f in files:
        if id(f) in placed:
            continue
        folder = home(f.source.path)
        scores = [max(_nearness(folder, home(x.source.path)) for x in g.files) for g in groups]
        for g, score in zip(groups, scores, strict=True):
            if score == max(scores):
                g.files.append(f)


def _mtime(f: FileRead) -> float:
    try:
        return f.path.stat().st_mtime
    except OSError:
        return 0.0

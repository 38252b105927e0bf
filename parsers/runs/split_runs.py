"""One run or several: which files below a folder belong together.

One run is a folder with its parts: checkpoints, train/val sub-folders, rank files, restarts that go on from it.
Files that log the same metrics over the same steps with *other* values are several runs. The decision rests on what
the files say, then on where they lie:

* equal values at equal steps: the same run, logged twice;
* another format in the same folder: the same run;
* different metrics: the same run, when their folders are parts of one (``train/``, ``logs/``, ``wandb/run-*``);
* steps that begin in the middle of the other's: a restart of the same run;
* otherwise: runs of their own.

Where a file itself says that it holds several runs (a database), each is a run of its own.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path, PurePosixPath

import numpy as np
import pyarrow as pa

from parsers import arrow, names
from parsers.runs import copy_prefilter, duplicates
from parsers.runs.assemble import FileRead, Group, parts

_PART = re.compile(
    r"(?i)(train(ing)?|val(id(ation)?)?|eval(uation)?|test|dev|holdout|logs?|tb(oard)?|tensorboard(_?logs?)?|events?|summar(y|ies)"
    r"|metrics|files|artifacts|output|checkpoints?|ckpts?|weights|plots|plots/metrics|wandb|mlruns|scalars|stats|results|reports?"
    r"|(checkpoint|ckpt|iter|step|epoch|global_step)[-_=]?\d.*|mp_rank_\d+|rank[-_]?\d+|worker[-_]?\d+|node[-_]?\d+|\d+\.\d+|\.hydra|tmp-checkpoint.*)"
)
_SPLIT_FOLDER = re.compile(r"(?i).*[_-](train|val|valid|validation|eval|test)$")  # add_scalars writes Loss_train/, Loss_val/
_STAMPED = re.compile(r"(?i)[A-Z][a-z]{2}\d{2}_\d{2}-\d{2}-\d{2}_.*|\d{8}[-_T]?\d{4,6}.*")  # Hugging Face: runs/May16_18-24-16_host
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
    index: int = 0  # among the units, and in `alike`
    alike: np.ndarray = field(default_factory=lambda: np.ones((1, 1), np.bool_), repr=False)  # likeness.maybe_copies
    keys: frozenset[str] = frozenset()  # of its metrics
    series: dict[str, tuple[np.ndarray, np.ndarray]] | None = None  # key -> (steps, values), once they are asked for
    first: int = 0
    last: int = 0
    times: tuple[float, float] | None = None


def split(files: list[FileRead], root: Path, overrides: dict[str, str]) -> list[Group]:
    """The runs below root, the one written last at the end; files without metrics go with the run they lie nearest to."""
    files = [part for f in files for part in parts(f)]
    units = _units(files)
    silent = [f for f in files if f.run and not f.batches.get("metrics")]  # runs that ended before they logged anything
    rest = [f for f in files if not any(f is s for s in silent)] if silent else files
    if silent and not units:
        return [Group(*_named(f), [f, *rest]) for f in silent]
    return [*(Group(*_named(f), [f]) for f in silent), *_split(rest, units, root, overrides)]


def _split(files: list[FileRead], units: list[Unit], root: Path, overrides: dict[str, str]) -> list[Group]:
    if len(units) <= 1 and not any(f.run for f in files):
        return [Group(_root_id(root), str(root), files)]
    alike = copy_prefilter.maybe_copies([_fill(u, overrides) for u in units])
    for i, unit in enumerate(units):
        unit.index, unit.alike = i, alike
    runs: list[list[Unit]] = []
    near = _Near(len(units))
    for unit in sorted(units, key=lambda u: (u.times or (0.0, 0.0), u.home, u.files[0].source.path)):
        related = [i for i, u in near.of(unit) if _related(u, unit, overrides)]
        candidates = [r for r in dict.fromkeys(related) if not any(_conflict(u, unit, overrides) for u in runs[r])]
        if candidates:
            chosen = max(sorted(candidates), key=lambda r: max(_nearness(u.home, unit.home) for u in runs[r]))
            runs[chosen].append(unit)
        else:
            chosen = len(runs)
            runs.append([unit])
        near.add(unit, chosen)
    if len(runs) <= 1 and not any(f.run for f in files):
        return [Group(_root_id(root), str(root), files)]
    homes = Counter(home for r in runs for home in {u.home for u in r})
    groups = [_group(r, root, homes) for r in runs]
    _attach_rest(groups, files, {id(f) for u in units for f in u.files})
    for g, more in zip(groups, _again([g.id for g in groups]), strict=True):
        g.id += more
    latest = {id(g): max((u.times[1] for u in r if u.times), default=0.0) for g, r in zip(groups, runs, strict=True)}
    return sorted(groups, key=lambda g: (latest[id(g)], max(_mtime(f) for f in g.files), g.id))


def _again(ids: list[str]) -> list[str]:
    """What to add where an id comes again: `a/b` and `a__b` are two runs."""
    seen: Counter[str] = Counter()
    added = []
    for name in ids:
        seen[name] += 1
        added.append(f"~{seen[name]}" if seen[name] > 1 else "")
    return added


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
        key: tuple[str, ...] = (where, fmt)
        if fmt not in {"tensorboard", "wandb_offline", "wandb_folder", "trainer_state", "mlflow_files"}:
            key = (where, fmt, f.source.path, f.run)
        unit = found.setdefault(key, Unit(where, fmt, []))
        unit.files.append(f)
    return list(found.values())


class _Near:
    """The units placed so far, and which of them may be related to another: a quick choice, that leaves out none."""

    def __init__(self, count: int) -> None:
        self.units: list[tuple[int, Unit]] = []  # with the number of its run
        self.at: dict[str, list[int]] = {}  # by home
        self.below: dict[str, list[int]] = {}  # by the folders above the home
        self.index = np.zeros(count, np.int64)
        self.first, self.low, self.high, self.start = (np.zeros(count) for _ in range(4))

    def add(self, unit: Unit, run: int) -> None:
        n = len(self.units)
        self.units.append((run, unit))
        self.at.setdefault(unit.home, []).append(n)
        for folder in _above(unit.home):
            self.below.setdefault(folder, []).append(n)
        self.index[n], self.first[n] = unit.index, unit.first
        self.low[n], self.high[n] = _room(unit)
        self.start[n] = unit.times[0] if unit.times else np.nan

    def of(self, unit: Unit) -> list[tuple[int, Unit]]:
        n = len(self.units)
        found = set(self.below.get(unit.home, ())) | set(self.at.get("", ()))
        found.update(*(self.at.get(folder, ()) for folder in (unit.home, *_above(unit.home))))
        found |= set(range(n)) if unit.home == "" else set()
        found.update(np.flatnonzero(unit.alike[unit.index, self.index[:n]]).tolist())
        start = unit.times[0] if unit.times else np.nan
        low, high = _room(unit)
        first, started = self.first[:n], self.start[:n]
        goes_on = (self.low[:n] <= unit.first) & (unit.first <= self.high[:n]) & ~(started >= start)
        goes_before = (low <= first) & (first <= high) & ~(start >= started)
        found.update(np.flatnonzero(goes_on | goes_before).tolist())
        return [self.units[i] for i in sorted(found)]


def _room(unit: Unit) -> tuple[float, float]:
    """The steps at which a restart of it may begin: from its middle to right after it."""
    span = max(unit.last - unit.first, 1)
    return unit.first + max(_RESTART_SHARE * span, 2), unit.last + 0.25 * span + 1


def _above(folder: str) -> list[str]:
    parts = folder.split("/")
    return ["/".join(parts[:n]) for n in range(1, len(parts))]


def _fill(unit: Unit, overrides: dict[str, str]) -> copy_prefilter.Sketch:
    """Its keys, its first and last step and time; -> a sketch of its values."""
    numbers: dict[str, int] = {}
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    steps: list[int] = []
    times: list[float] = []
    for keys, code, step, value, time in _columns(unit, overrides):
        if len(step):
            steps += [int(step.min()), int(step.max())]
        known_times = np.isfinite(time)
        time = time if known_times.all() else time[known_times]
        if len(time):
            times += [float(time.min()), float(time.max())]
        known = [-1 if k is None else numbers.setdefault(k, len(numbers)) for k in keys]
        compared = [-1 if k in _SAME_IN_ALL else n for k, n in zip(keys, known, strict=True)]
        parts.append((np.array(compared, np.int64).take(code), step, value))
    unit.keys = frozenset(numbers)
    unit.first, unit.last = min(steps, default=0), max(steps, default=0)
    unit.times = (min(times), max(times)) if times else None
    key, step, value = parts[0] if len(parts) == 1 else (np.concatenate(column) for column in zip(*parts, strict=True))
    return copy_prefilter.sketch(list(numbers), key, step, value)


def _columns(unit: Unit, overrides: dict[str, str]) -> Iterator[tuple[list[str | None], np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """Of each file: what its tags are compared by (None: they are not), and tag, step and value of the rows with a step;
    the times of all."""
    for f in unit.files:
        batches = f.batches["metrics"]
        table = pa.Table.from_batches(batches).unify_dictionaries() if len(batches) > 1 else batches[0]
        code, tags = arrow.codes(table["tag"])
        known = names.meanings(tags, folder=f.source.path.rpartition("/")[0], overrides=overrides)
        keys = [_key(known[tag].name) for tag in tags]
        step, value, time = (arrow.values(table[c]) for c in ("step", "value", "time"))
        there = arrow.valid(table["time"])
        time = time if there is None else time[there]
        there = arrow.valid(table["step"])
        if there is not None:
            code, step, value = code[there], step[there], value[there]
        seen = np.zeros(len(tags), np.bool_)
        seen[code] = True
        keys = [key if here else None for key, here in zip(keys, seen.tolist(), strict=True)]
        yield keys, code, step, value, time


@lru_cache(maxsize=4096)
def _key(name: str) -> str | None:
    return None if name.startswith("axis/") or name in {"step", "epoch"} else duplicates.key(name)


def _series(unit: Unit, overrides: dict[str, str]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """key -> steps and values; the first tag of a key speaks for it."""
    if unit.series is None:
        unit.series = {}
        for keys, code, step, value, _ in _columns(unit, overrides):
            order = np.argsort(code, kind="stable")
            bounds = np.searchsorted(code[order], np.arange(len(keys) + 1))
            for i, key in enumerate(keys):
                rows = order[bounds[i] : bounds[i + 1]]
                if key is not None and len(rows):
                    unit.series.setdefault(key, (step[rows], value[rows]))
    return unit.series


def _conflict(a: Unit, b: Unit, overrides: dict[str, str]) -> bool:
    """True where both log the same metric over the same steps with other values: two runs."""
    one, two = a.files[0], b.files[0]
    if one.path == two.path and one.run != two.run:
        return True
    if a.home == b.home and a.format != b.format:
        return False
    shared = _shared(a, b)
    if not shared:
        return False
    if _ranks(a, b) or _continues(a, b) or _continues(b, a):
        return False
    copy = _copy(a, b, overrides)
    return a.home != b.home if copy is None else not copy


def _shared(a: Unit, b: Unit) -> list[str]:
    return [k for k in a.keys & b.keys if not k.startswith("axis/") and k not in _SAME_IN_ALL]


def _copy(a: Unit, b: Unit, overrides: dict[str, str]) -> bool | None:
    """True where most of the shared metrics have equal values at equal steps; None without a common step."""
    if not a.alike[a.index, b.index]:
        return False
    one, two = _series(a, overrides), _series(b, overrides)
    equal = [e for k in _shared(a, b) if (e := _equal_share(one[k], two[k])) is not None]
    return bool(np.median(equal) >= 0.5) if equal else None


def _equal_share(a: tuple[np.ndarray, np.ndarray], b: tuple[np.ndarray, np.ndarray]) -> float | None:
    """Share of common steps where the values agree to 3 digits; None without a common step."""
    steps, i, j = np.intersect1d(a[0], b[0], return_indices=True)
    if not len(steps):
        return None
    return float(np.isclose(a[1][i], b[1][j], rtol=2e-3, equal_nan=True).mean())


def _continues(a: Unit, b: Unit) -> bool:
    """b begins in the middle of a, or right after it: a restart (in another folder, only with clocks that agree)."""
    low, high = _room(a)
    if not low <= b.first <= high:
        return False
    if a.times and b.times:
        return a.times[0] < b.times[0]
    return True


def _ranks(a: Unit, b: Unit) -> bool:
    """Files of one job that differ only in the number of the process."""
    one, two = a.files[0].source.path, b.files[0].source.path
    return one != two and bool(_RANK.search(one)) and _RANK.sub("#", one) == _RANK.sub("#", two)


def _related(a: Unit, b: Unit, overrides: dict[str, str]) -> bool:
    """Near enough to be one run: the same folder, one above the other, or siblings that continue or copy each other."""
    if a.home == b.home or a.home.startswith(b.home + "/") or b.home.startswith(a.home + "/") or "" in (a.home, b.home):
        return True
    shared = _shared(a, b)
    if _copy(a, b, overrides):
        return True
    same_parent = PurePosixPath(a.home).parent == PurePosixPath(b.home).parent
    return same_parent and bool(shared) and (_continues(a, b) or _continues(b, a))


def _nearness(a: str, b: str) -> int:
    one, two = PurePosixPath(a).parts, PurePosixPath(b).parts
    return sum(x == y for x, y in zip(one, two, strict=False))


def _group(run: list[Unit], root: Path, homes: Counter[str]) -> Group:
    """Named by its folder; by its file where several runs share the folder; by what the file calls it where that holds several."""
    files = [f for u in run for f in u.files]
    told = next((f for f in files if f.run), None)
    if told is not None:
        return Group(*_named(told), files)
    where = run[0].home
    alone = homes[where] == 1 and where != ""
    if alone:
        path = where if (root / where).exists() else PurePosixPath(run[0].files[0].source.path).parent.as_posix()
    else:
        path = run[0].files[0].source.path
    return Group(_id(path), str(root / path), files)


def _named(f: FileRead) -> tuple[str, str]:
    """Id and path of a run in a file of several; `forensics analyze` takes the path."""
    return _id(f"{f.source.path}/{f.run}"), f"{f.path}/{f.run}"


def _id(path: str) -> str:
    """A name that one folder can have: long ones end in a hash of the whole."""
    name = path.replace("/", "__")
    if len(name.encode("utf-8", "surrogateescape")) <= 200:
        return name
    return f"{name[:40]}-{hashlib.sha256(name.encode('utf-8', 'surrogateescape')).hexdigest()[:12]}"


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

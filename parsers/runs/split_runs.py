"""One run or several: which files below a folder belong together.

One run is a folder with its parts: checkpoints, train/val sub-folders, rank files, restarts that go on from it.
Files that log the same metrics over the same steps with *other* values are several runs. The decision rests on what
the files say, then on where they lie:

* equal values at equal steps: the same run, logged twice;
* another format in the same folder, or a row an epoch beside a row a step: the same run;
* different metrics: the same run, when their folders are parts of one (``train/``, ``logs/``, ``wandb/run-*``);
* steps that begin in the middle of the other's: a restart of the same run;
* otherwise: runs of their own.

Where a file itself says that it holds several runs (a database), each is a run of its own.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path, PurePosixPath

from parsers import rank_names
from parsers.runs import one_log
from parsers.runs.assemble import FileRead, Group, parts
from parsers.runs.homes import ONE_RUN, TRACKERS, home, inside, nearness, run_id
from parsers.runs.run_folders import Unit, counted_otherwise, is_copy, saved_of, shared, sums_up_epochs, units
from parsers.runs.spans import goes_on

MONITOR = "monitor.csv"  # what Stable-Baselines3 and Gym end the names of these files with


def split(files: list[FileRead], root: Path, overrides: dict[str, str]) -> list[Group]:
    """The runs below root, the one that ran last by its own clock at the end; files without metrics go with the run they lie nearest to."""
    files = [part for f in files for part in parts(f)]
    silent = [f for f in files if f.run and not f.batches.get("metrics")]  # runs that ended before they logged anything
    rest = [f for f in files if not (f.run and not f.batches.get("metrics"))]
    known = units(rest, overrides)
    if silent and not known:
        return [Group(*_named(f), [f, *rest]) for f in silent]
    tracked = _tracked_in_silence(rest, known)
    placed = {id(f) for files in tracked.values() for f in files}
    early = [_group_in(own[0].source.path.rpartition("/")[0], root, own) for own in tracked.values()]
    early += [Group(*_named(f), [f]) for f in silent]
    return [*early, *_split([f for f in rest if id(f) not in placed], known, root, alone=not early)]


def _tracked_in_silence(files: list[FileRead], known: list[Unit]) -> dict[str, list[FileRead]]:
    """Folder -> files of runs that a tracker has on record without a metric, where it has metrics of their siblings."""
    logged = {u.home for u in known}
    parents = {u.parent for u in known if u.format in TRACKERS}
    found: dict[str, list[FileRead]] = {}
    for f in files:
        where = home(f.source.path)
        if where not in logged and where.rpartition("/")[0] in parents:
            found.setdefault(where, []).append(f)
    return {where: own for where, own in found.items() if any(f.source.format in TRACKERS and f.source.records for f in own)}


def _group_in(path: str, root: Path, files: list[FileRead]) -> Group:
    return Group(run_id(path), str(root / path), files)


def _split(files: list[FileRead], known: list[Unit], root: Path, alone: bool) -> list[Group]:
    runs: list[list[Unit]] = []
    for unit in sorted(known, key=lambda u: (u.span.times or (0.0, 0.0), u.home, u.files[0].source.path)):
        near = [r for r in runs if any(_related(u, unit) for u in r)]
        own = [r for r in near if not any(_conflict(u, unit) for u in r) or any(_told_twice(u, unit) for u in r)]
        if own:
            beside = [r for r in own if unit.format in TRACKERS and all(u.home == unit.home for u in r)]
            copied = [r for r in own if r not in beside and any(is_copy(u, unit) for u in r)]
            nearest = max(copied or own, key=lambda r: max(nearness(u.home, unit.home) for u in r))
            proven = [r for r in own if any(_told_twice(u, unit) for u in r)]  # of one life with it, and so with each other
            kept = beside if copied else []  # by a tracker beside a launch: it goes with it
            for r in [*kept, *(proven if nearest in proven else [])]:
                if r is not nearest and r in runs:
                    nearest += r
                    runs.remove(r)
            nearest.append(unit)
        else:
            runs.append([unit])
    runs = one_log.joined_runs(runs)
    if len(runs) <= 1 and alone and not any(f.run for f in files):
        return [Group(root.resolve().name or "run", str(root), files)]
    homes = Counter(where for r in runs for where in {u.home for u in r})
    groups = [_group(r, root, homes) for r in runs]
    by_itself = _attach_rest(groups, files, {id(f) for u in known for f in u.files}, root)
    _tell_apart([*groups, *by_itself])
    latest = {id(g): max((u.span.times[1] for u in r if u.span.times), default=0.0) for g, r in zip(groups, runs, strict=True)}
    return by_itself + sorted(groups, key=lambda g: (latest[id(g)], g.id))


def _related(a: Unit, b: Unit) -> bool:
    """Near enough to be one run: the same folder, one above the other, or siblings that continue or copy each other."""
    if a.home == b.home or inside(a.home, b.home) or inside(b.home, a.home) or is_copy(a, b):
        return True
    return a.parent == b.parent and _continued(a, b) and bool(shared(a, b))


def _conflict(a: Unit, b: Unit) -> bool:
    """True where both log the same metric over the same steps with other values: two runs."""
    one, two = a.files[0], b.files[0]
    if one.path == two.path and one.run != two.run:
        return True
    if (a.home == b.home and a.format != b.format) or not shared(a, b):
        return False
    if rank_names.of_one_job(one.source.path, two.source.path) or _streams(one, two) or _continued(a, b):
        return False
    near = a.home == b.home or inside(a.home, b.home) or inside(b.home, a.home)
    if _told_twice(a, b) or (near and _episodes_and_means(a, b)) or _environments(a, b):
        return False
    return (is_copy(a, b) is False or a.home != b.home) and not (a.home == b.home and sums_up_epochs(a, b))


def _episodes_and_means(a: Unit, b: Unit) -> bool:
    """Does one have the reward of each episode, as an environment's monitor writes it, and the other the mean of the last ones, under other names?"""
    return all(key.startswith("rl.") for key in shared(a, b)) and not a.tags() & b.tags()


def _environments(a: Unit, b: Unit) -> bool:
    """Are both the monitors of environments that one training stepped at the same time?"""
    monitors = all(u.files[0].source.path.endswith(MONITOR) for u in (a, b))
    one, two = a.span.times, b.span.times
    return monitors and a.home == b.home and bool(one and two) and max(one[0], two[0]) < min(one[1], two[1])  # type: ignore[index]


def _told_twice(a: Unit, b: Unit) -> bool:
    """Is it proven that both tell of one life, by equal values, by names that differ in the number of the process alone or by the folder that a tracker gave it:
    whatever else lies beside one of them?"""
    if a.home == b.home and rank_names.of_one_job(a.files[0].source.path, b.files[0].source.path):
        return True
    if a.home == b.home and {a.format, b.format} & TRACKERS & ONE_RUN:  # `files/output.log` beside the .wandb file
        return True
    below = a.format != b.format and (inside(a.home, b.home) or inside(b.home, a.home))
    return bool(is_copy(a, b)) or (below and (counted_otherwise(a, b) or saved_of(a, b) or saved_of(b, a)))


def _continued(a: Unit, b: Unit) -> bool:
    return goes_on(a.span, b.span) or goes_on(b.span, a.span)


def _group(run: list[Unit], root: Path, homes: Counter[str]) -> Group:
    """Named by its folder; by its file where several runs share the folder; by what the file calls it where that holds several."""
    files = [f for u in run for f in u.files]
    told = next((f for f in files if f.run), None)
    if told is not None:
        return Group(*_named(told), files)
    path, where = run[0].files[0].source.path, run[0].home
    if homes[where] == 1 and where != "":
        path = where if (root / where).exists() else PurePosixPath(path).parent.as_posix()
    return _group_in(path, root, files)


def _named(f: FileRead) -> tuple[str, str]:
    """Id and path of a run in a file of several; `forensics analyze` takes the path."""
    return run_id(f"{f.source.path}/{f.run}"), f"{f.path}/{f.run}"


def _tell_apart(groups: list[Group]) -> None:
    """`a/b` and `a__b` are two runs."""
    seen: Counter[str] = Counter()
    for g in groups:
        seen[g.id] += 1
        g.id += f"~{seen[g.id]}" if seen[g.id] > 1 else ""


def _attach_rest(groups: list[Group], files: list[FileRead], placed: set[int], root: Path) -> list[Group]:
    """Files without metrics go to the nearest run, of several the one whose log is called so, those in a common folder to every
    run below it. -> runs that such a log tells of alone: it died, and which of several runs it was cannot be told."""
    homes = [{home(f.source.path) for f in g.files} for g in groups]
    names = [{_stem(f) for f in g.files} for g in groups]
    alone: list[Group] = []
    for f in files:
        if id(f) in placed:
            continue
        folder = home(f.source.path)
        scores = [max(nearness(folder, h) for h in known) for known in homes]
        near = [i for i, score in enumerate(scores) if score == max(scores)]
        near = [i for i in near if _stem(f) in names[i]] or near
        if len(near) > 1 and _died(f):
            alone.append(_group_in(f.source.path, root, [f]))
            continue
        for i in near:
            groups[i].files.append(f)
            homes[i].add(folder)
    return alone


def _stem(f: FileRead) -> str:
    """`job_7.out` and `job_7.err` are of one process."""
    return f.source.path.rpartition(".")[0] or f.source.path


def _streams(one: FileRead, two: FileRead) -> bool:
    """Are they what one process wrote to its output and what it wrote to its errors, as a scheduler keeps them?"""
    kinds = {f.source.path.rpartition(".")[2].lower() for f in (one, two)}
    return kinds in ({"out", "err"}, {"stdout", "stderr"}) and _stem(one) == _stem(two)


def _died(f: FileRead) -> bool:
    """Does a log tell of an uncaught exception?"""
    if f.source.format != "console":
        return False
    told = ((k, v) for b in f.batches.get("events", ()) for k, v in zip(b["kind"].to_pylist(), b["level"].to_pylist(), strict=True))
    return any(kind in ("traceback", "oom") and level == "error" for kind, level in told)

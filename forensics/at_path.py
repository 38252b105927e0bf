"""From a path to its runs, and to the one that speaks for it: of several the worst, which names the others."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import parsers
from forensics import remote, services, standard_input
from forensics.errors import ForensicsError, NoSingleRun
from forensics.run import metric_aliases, seed_group
from forensics.run.series import names, series
from parsers import secrets
from parsers.runs.homes import ONE_RUN
from parsers.tables import Gap, Run

Progress = Callable[[str, int, int], None]
LISTED = 30  # runs in a message


def read(
    path: str, *, run: str | None = None, metrics: dict[str, str] | None = None, run_config: bool = True, progress: Progress | None = None
) -> Run:
    """The run whose case ``analyze`` makes of the same path."""
    return choose(read_runs(path, metrics=metrics, run_config=run_config, progress=progress), path, name=run, progress=progress)


def read_runs(
    path: str, *, metrics: dict[str, str] | None = None, of_all: bool = True, run_config: bool = True, progress: Progress | None = None
) -> list[Run]:
    """Every run below a path or URL, of a tracker's name, or of the log on standard input (`-`); without ``run_config`` a
    forensics.toml that came with the run is left out. ``of_all``: the tags of `metrics` must be there. Raises ForensicsError where
    nothing is readable."""
    if services.of(path) is not None:
        return _of_service(path, metrics=metrics, of_all=of_all, run_config=run_config, progress=progress)
    folder, copy, refused = _local(path, progress)
    runs = _below(folder, path, metrics=metrics, of_all=of_all, run_config=run_config, progress=progress)
    for r in runs:
        r.gaps += refused
        if copy is not None:
            r.copy = copy
            r.path = r.path.replace(str(folder), path.rstrip("/"), 1)
    return runs


def _below(
    folder: Path, path: str, *, metrics: dict[str, str] | None, of_all: bool, run_config: bool, progress: Progress | None
) -> list[Run]:
    """Every run in a folder here, which the user calls by `path`."""
    aliases = metric_aliases.read(folder, metrics, run_config=run_config)
    metric_aliases.check_names(aliases)
    try:
        runs = parsers.read_all(folder, overrides=aliases.names, progress=progress)
    except FileNotFoundError as e:
        raise ForensicsError(str(e), "Give the folder of a run, or one of its files.") from e
    if not any(s.claimed for r in runs for s in r.sources):
        raise ForensicsError(f"nothing readable in {path}: {_why(runs)}", "`forensics formats` lists what is read.")
    if of_all:
        metric_aliases.check_tags(aliases, runs)
    gaps = [*aliases.gaps, *metric_aliases.unused(runs, aliases)]
    for r in runs:
        r.gaps += gaps
        r.aliases = aliases
    return runs


def _of_service(text: str, **options: Any) -> list[Run]:
    """The runs that a tracker's name stands for; of several those that could be fetched."""
    runs: list[Run] = []
    failed: list[ForensicsError] = []
    for found, folder in services.runs(text, progress=options["progress"]):
        if isinstance(folder, ForensicsError):
            failed.append(folder)
            continue
        inside = _below(folder, found.text, **options)
        for r in inside:
            r.id = found.id if len(inside) == 1 else f"{found.id}__{r.id}"
            r.path = found.text
        runs += inside
    if not runs:
        raise failed[0] if failed else ForensicsError(f"no run in {text}", "The project or experiment is there, and empty.")
    for e in failed:
        runs[0].gaps.append(Gap("byte 0", f"another run could not be fetched: {e.message}", None, text))
    return runs


def _why(runs: list[Run]) -> str:
    found = [f"{s.path} is {s.format}" for r in runs for s in r.sources if s.format]
    found += [f"{g.path or 'it'}: {g.what}" for r in runs for g in r.gaps]
    return "the folder is empty" if not found else "; ".join(found[:3]) + (f"; and {len(found) - 3} more" if len(found) > 3 else "")


def _local(path: str, progress: Progress | None) -> tuple[Path, Any, list[Gap]]:
    """The path itself, or a temporary copy of what an fsspec URL names (an ``outlines.Copy``) or was piped in, and what was not copied."""
    if path == standard_input.NAME:
        return *standard_input.saved(), []
    if not remote.is_url(path := remote.local(path)):
        return Path(path), None, []
    from forensics.outlines import Copy

    members, (_, base) = remote.listed(path), remote.opened(path)
    keep = tempfile.TemporaryDirectory(prefix="forensics-")
    file = members[0].name if [m.key for m in members] == [base] else ""
    name = path.rstrip("/").rpartition("/")[2]  # the run is called by it
    folder = Path(keep.name) / ("" if file else name if name not in ("", ".", "..") else "run")
    folder.mkdir(exist_ok=True)
    copy = Copy(path, folder, keep)
    return folder / file, copy, [*remote.refused(members), *copy.fetch(members, progress)]


def trained(run: Run) -> bool:
    """Whether it counts as a run: steps of a metric, events, checkpoints, or the folder that a tracker opened for it, even an
    empty one. A table of results or a list of files is none."""
    if run.tables["checkpoints"].num_rows or run.tables["events"].num_rows or any(s.format in ONE_RUN for s in run.sources):
        return True
    known = [s for n in names(run) if not n.startswith("axis/") and (s := series(run, n)) is not None]
    stepped = any(len(s) and s.step.min() < s.step.max() for s in known)
    return stepped and (len(run.sources) > 1 or any(not n.startswith("other/") for n in names(run)))


def counted(runs: list[Run]) -> list[Run]:
    """The runs among those of a path that somebody named; what is no run is one where there is nothing else."""
    return [r for r in runs if trained(r)] or runs[:1]


def choose(runs: list[Run], path: str, *, name: str | None = None, progress: Progress | None = None) -> Run:
    """The run that speaks for what lies below `path`: the one of that `name`; else the worst, with its group where all are one
    configuration under several seeds. Its ``siblings`` are the others, the worst first."""
    known = counted(runs)
    if name is None and len(known) == 1:
        return known[0]
    from forensics.many_runs import worst_first  # all detectors: `tables` of one run needs none

    if name is not None:
        chosen = named(runs, name, path)
        others = [worst_first.unjudged(r) for r in known if r is not chosen]
    else:
        (chosen, _), *rest = worst_first.judged(known, progress)
        others = [said for _, said in rest]
        if seed_group.are_seeds(known):
            chosen.group = known
            chosen.cache.clear()  # judged alone before
    chosen.siblings = [said | {"command": command(path, said["id"])} for said in others]
    return chosen


def command(path: str, id: str) -> str:
    """What opens one of the runs at a path."""
    return f"forensics analyze {shlex.quote(secrets.mask_shapes(path))} --run {shlex.quote(id)}"


def named(runs: list[Run], name: str, path: str) -> Run:
    """The run of that id, else the one whose id alone begins or ends like that. Raises NoSingleRun where that is none, or several."""
    wanted = name.strip("/").replace("/", "__")  # as ids are made of paths
    found = [r for r in runs if r.id == wanted] or [r for r in runs if wanted and (r.id.startswith(wanted) or r.id.endswith(wanted))]
    if len(found) == 1:
        return found[0]
    what = f"{len(found)} runs in {path} begin or end with {name}" if found else f"no run {name} in {path}"
    raise NoSingleRun(f"{what}: {_ids(found or runs)}", "Give an id as it stands here, or as much of it as is its alone.")


def only(runs: list[Run], path: str) -> Run:
    """The one run at a path. Raises NoSingleRun where there are several: none of them is meant before another."""
    known = counted(runs)
    if len(known) == 1:
        return known[0]
    raise NoSingleRun(f"{len(known)} runs lie in {path}, and one is needed", f"Give the path of one: {_listed([r.path for r in known])}")


def _ids(runs: list[Run]) -> str:
    return _listed([r.id for r in runs])


def _listed(texts: list[str]) -> str:
    return ", ".join(texts[:LISTED]) + (f" and {len(texts) - LISTED} more" if len(texts) > LISTED else "")

"""What the tags of a team mean: `forensics.toml` in the run folder or in the home folder.

    [metrics]
    "loss.train" = "my/own/tag"

The option --metric goes before the run folder's file, that before the home folder's. The run's file came with the run, maybe
from somebody else: the report names it, with what it changes, and `--no-run-config` leaves it out.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from parsers import names, objectives
from parsers.tables import Gap, Run
from parsers.walk import is_regular

FILE = "forensics.toml"
LARGEST = 1 << 20  # bytes; a team has some dozens of tags


@dataclass(frozen=True)
class Aliases:
    """Canonical name -> tag: all together, and those that only the run's own file says. ``gaps``: what of the files is not usable."""

    names: dict[str, str] = field(default_factory=dict)
    of_run: dict[str, str] = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()


def read(run: Path, given: Mapping[str, str] | None = None, *, run_config: bool = True) -> Aliases:
    """The aliases for a run folder or file; without ``run_config`` the run's own file is not looked at."""
    try:
        found, gaps = _file(Path.home() / FILE, "~/" + FILE, follow=True)
    except RuntimeError:  # neither HOME nor an entry for the user
        found, gaps = {}, []
    own: dict[str, str] = {}
    if run_config:
        own, more = _file((run if run.is_dir() else run.parent) / FILE, FILE, follow=False)
        gaps += more
    both = found | own | dict(given or {})
    return Aliases(both, {n: t for n, t in own.items() if both[n] == t and found.get(n) != t}, tuple(gaps))


def _file(path: Path, shown: str, *, follow: bool) -> tuple[dict[str, str], list[Gap]]:
    """The aliases of one file, as far as it is what it should be."""

    def gap(what: str, at: str = "line 1") -> list[Gap]:
        return [Gap(at, f'{what}: left out. It should hold [metrics] with lines like "loss.train" = "my/own/tag"', None, shown)]

    try:
        path.lstat()  # FileNotFoundError: nobody has to have one
        if not is_regular(path, links=follow) or path.stat().st_size > LARGEST:
            return {}, gap("not a regular file of a few lines")
        metrics: Any = tomllib.loads(path.read_bytes().decode("utf-8-sig")).get("metrics", {})
    except FileNotFoundError:
        return {}, []
    except OSError as e:
        return {}, gap(f"cannot be opened ({e.strerror})")
    except (ValueError, RecursionError) as e:
        return {}, gap(f"not valid TOML ({e})")
    if not isinstance(metrics, dict):
        return {}, gap("[metrics] is no table")
    wrong = [n for n, tag in metrics.items() if not isinstance(tag, str) or not n or not tag]
    return {n: tag for n, tag in metrics.items() if n not in wrong}, [g for n in wrong[:20] for g in gap(f"{n!r} names no tag")]


def unused(runs: Iterable[Run], aliases: Aliases) -> list[Gap]:
    """The aliases whose tags none of the runs logged: they change nothing."""
    logged = {tag for r in runs for _, tag in r.meanings}
    files = {True: FILE, False: "--metric or ~/" + FILE}
    return [
        Gap("line 1", f"{name} = {tag}: no metric of that tag was logged"[:300], None, files[name in aliases.of_run])
        for name, tag in aliases.names.items() if tag not in logged
    ]  # fmt: skip


def changes(run: Run, aliases: Aliases) -> list[str]:
    """What the run's own file makes of its metrics, in sentences: "acc is read as loss.train, not as acc.train"."""
    without = {n: t for n, t in aliases.names.items() if n not in aliases.of_run}
    tags: dict[str, list[str]] = {}
    for source, tag in run.meanings:
        tags.setdefault(source, []).append(tag)
    plain: dict[tuple[str, str], names.Meaning] = {}
    for source, logged in tags.items():
        told = names.meanings(logged, framework=run.framework, folder=source.rpartition("/")[0], overrides=without)
        plain |= {(source, tag): told[tag] for tag in logged}
    plain |= objectives.stand_ins(plain)
    said = {}
    for source, tag in run.meanings:
        before, now = plain[source, tag].name, run.meanings[source, tag].name
        if before != now:
            said[tag] = f"{tag} is read as {_shown(now)}, not as {_shown(before)}"
    return list(said.values())


def _shown(name: str) -> str:
    return "a metric of its own" if name.startswith("other/") else name

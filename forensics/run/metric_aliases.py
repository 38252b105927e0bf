"""What the tags of a team mean: `forensics.toml` in the run folder or in the home folder.

    [metrics]
    "loss.train" = "my/own/tag"

The option --metric goes before the run folder's file, that before the home folder's. The run's file came with the run, maybe
from somebody else: the report names it, with what it changes, and `--no-run-config` leaves it out. A wrong name that the user
gave is an error; one in a file that came with the run is a gap.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from forensics import rules, settings_file
from forensics.errors import WrongUsage
from parsers import loss_by_course, names, objectives, value_names
from parsers.loss_names import home
from parsers.name_rules import words
from parsers.tables import Gap, Run

FILE = settings_file.NAME
MOST_COMPARED = 5000  # tags; bound: comparing a name with as many takes a tenth of a second
FEW = 8  # tags that a message may list
_NAMES = "`forensics explain metrics` lists the names: loss.train, loss.eval, grad.norm, lr and others."
_TAGS = "`forensics tables RUN --out DIR` writes every tag to metrics.parquet."


@dataclass(frozen=True)
class Aliases:
    """Canonical name -> tag: all together, those that the command was given, and those that only the run's own file says.
    ``gaps``: what of the files is not usable; ``mistakes``: names that the user gave and that do not exist, as sentences."""

    names: dict[str, str] = field(default_factory=dict)
    given: dict[str, str] = field(default_factory=dict)
    of_run: dict[str, str] = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()
    mistakes: tuple[str, ...] = ()


def read(run: Path, given: Mapping[str, str] | None = None, *, run_config: bool = True) -> Aliases:
    """The aliases for a run folder or file; without ``run_config`` the run's own file is not looked at."""
    try:
        found, gaps = _file(Path.home() / FILE, "~/" + FILE, follow=True)
    except RuntimeError:  # neither HOME nor an entry for the user
        found, gaps = {}, []
    mistakes = [said for n in given or () if (said := _unknown(n))] + [f"~/{FILE}: {said}" for n in found if (said := _unknown(n))]
    own: dict[str, str] = {}
    if run_config:
        own, more = _file((run if run.is_dir() else run.parent) / FILE, FILE, follow=False)
        gaps += more
        gaps += [Gap("line 1", f"{said}: left out", None, FILE) for n in own if (said := _unknown(n))]
    known = {n: t for n, t in (found | own | dict(given or {})).items() if not _unknown(n)}
    of_run = {n: t for n, t in own.items() if known.get(n) == t and found.get(n) != t}
    return Aliases(known, dict(given or {}), of_run, tuple(gaps), tuple(mistakes))


def check_names(aliases: Aliases) -> None:
    """Raises WrongUsage where the user gave a name that does not exist."""
    if aliases.mistakes:
        raise WrongUsage(aliases.mistakes[0], _NAMES)


def check_tags(aliases: Aliases, runs: Iterable[Run]) -> None:
    """Raises WrongUsage where the command was given a tag that none of the runs logged."""
    logged = _logged(runs)
    for name, tag in aliases.given.items():
        if tag not in logged:
            raise WrongUsage(f"{name}={tag}: no metric of that tag was logged{_near(tag, logged)}", _TAGS)


@cache
def _canonical() -> frozenset[str]:
    """Our names, and those that detectors of other packages ask for."""
    needed = {n for d in rules.detectors() for need in d.NEEDS for n in need.split("|")}
    return frozenset({*names.vocabulary(), *needed})


def _unknown(name: str) -> str:
    """What to say of a name that no metric has; nothing of others."""
    if name in names.vocabulary() or name in _canonical():
        return ""
    return f"{name} is not a canonical metric name{_near(name, _canonical())}"


def _near(text: str, known: Iterable[str]) -> str:
    compared = sorted(known)[:MOST_COMPARED]
    near = difflib.get_close_matches(text[:200], compared, 1)
    return f" (nearest: {near[0]})" if near else f" (there are: {', '.join(compared[:FEW])})" if 0 < len(compared) <= FEW else ""


def _logged(runs: Iterable[Run]) -> dict[str, None]:
    return dict.fromkeys(tag for r in runs for _, tag in r.meanings)


def _file(path: Path, shown: str, *, follow: bool) -> tuple[dict[str, str], list[Gap]]:
    """The aliases of one file, as far as it is what it should be."""

    def gap(what: str, at: str = "line 1") -> list[Gap]:
        return [Gap(at, f'{what}: left out. It should hold [metrics] with lines like "loss.train" = "my/own/tag"', None, shown)]

    try:
        whole = settings_file.read(path, follow=follow)
    except settings_file.Unusable as e:
        return {}, gap(str(e))
    metrics = (whole or {}).get("metrics", {})
    if not isinstance(metrics, dict):
        return {}, gap("[metrics] is no table")
    wrong = [n for n, tag in metrics.items() if not isinstance(tag, str) or not n or not tag]
    return {n: tag for n, tag in metrics.items() if n not in wrong}, [g for n in wrong[:20] for g in gap(f"{n!r} names no tag")]


def unused(runs: Iterable[Run], aliases: Aliases) -> list[Gap]:
    """The aliases whose tags none of the runs logged: they change nothing."""
    logged = _logged(runs)
    files = {True: FILE, False: "--metric or ~/" + FILE}
    return [
        Gap("line 1", f"{name} = {tag}: no metric of that tag was logged"[:300] + _near(tag, logged), None, files[name in aliases.of_run])
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
        told = names.meanings(logged, framework=run.framework, folder=home(source), overrides=without)
        plain |= {(source, tag): told[tag] for tag in logged}
    plain |= objectives.stand_ins(plain, objectives.criteria(run.tables["config"]))
    said = {}
    for source, tag in run.meanings:
        before, now = plain[source, tag].name, run.meanings[source, tag].name
        by_values = words(tag).rpartition("/")[2] in value_names.EITHER or loss_by_course.is_told(run.meanings[source, tag])
        if before != now and not by_values:  # which are not known here
            said[tag] = f"{tag} is read as {_shown(now)}, not as {_shown(before)}"
    return list(said.values())


def _shown(name: str) -> str:
    return "a metric of its own" if name.startswith("other/") else name

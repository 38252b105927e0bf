"""The pipeline, top to bottom: files to tables, tables to findings, findings to ranked causes, all into one case."""

from __future__ import annotations

import inspect
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import parsers
from forensics import ranking, remote
from forensics.batches.culprits import culprits
from forensics.case import Case, Check, Finding, Hypothesis
from forensics.case_parts import headline, summary, timeline
from forensics.errors import CannotTell, ForensicsError
from forensics.many_runs import baseline as known_good
from forensics.replay import advice
from forensics.rules import id_of, modules
from forensics.run import metric_aliases, seed_group
from forensics.run.inputs import ANY_LOSS
from forensics.run.series import series
from forensics.version import VERSION
from parsers.tables import Gap, Run

Progress = Callable[[str, int, int], None]
SHOWN_PER_DETECTOR = 60  # more findings of one kind are counted, not listed


def analyze(
    path: str,
    *,
    metrics: dict[str, str] | None = None,
    progress: Progress | None = None,
    command: Sequence[str] = (),
    baseline: str | None = None,
) -> Case:
    """The case of the run at `path`; `metrics` maps canonical names to the tags of this house, `baseline` is a known good run."""
    run = choose(read_runs(path, metrics=metrics, progress=progress))
    known = choose(read_runs(baseline, metrics=metrics, progress=progress)) if baseline is not None else None
    return analyze_run(run, command=command, baseline=known)


def choose(runs: list[Run]) -> Run:
    """The run that speaks for a folder: the one written last; with its group, where all are one configuration under several seeds."""
    run = runs[-1]
    if seed_group.are_seeds(runs):
        run.group = runs
    return run


def analyze_run(run: Run, *, command: Sequence[str] = (), baseline: Run | None = None, brief: bool = False) -> Case:
    """The case of a run; a `baseline` (a known good run) adds a finding and clues. With `brief` a run that is not unhealthy
    goes without what only a page shows: the timeline, and the smallest effects that the checks could have seen."""
    findings, checks = detect(run)
    weighed, broken = weigh(run, findings)
    checks += broken
    if baseline is not None:
        beside = known_good.beside(run, baseline)
        weighed = known_good.clues(weighed, beside, findings)
        findings, checks = [*findings, *beside.findings], [*checks, known_good.check(beside)]
    hypotheses = ranking.rank(weighed)
    verdict = headline.verdict(run, findings, checks)
    shown = verdict == "unhealthy" or not brief
    if shown:
        checks, hypotheses = _with_effects(run, checks), advice.offered(run, hypotheses)
    return Case(
        tool={"name": "forensics", "version": VERSION, "command": list(command)},
        run=summary.run(run, findings),
        verdict=verdict,
        answer=headline.sentence(run, verdict, findings, hypotheses, checks),
        hypotheses=hypotheses,
        spikes=summary.spikes(run, findings),
        culprits=culprits(run, hypotheses, findings, verdict),
        findings=tuple(findings),
        checks=tuple(checks),
        blind_spots=summary.blind_spots(run, hypotheses),
        sources=summary.sources(run),
        gaps=summary.gaps(run),
        timeline=timeline.build(run, findings) if shown else {},
    )


def read_runs(path: str, *, metrics: dict[str, str] | None = None, run_config: bool = True, progress: Progress | None = None) -> list[Run]:
    """Every run below a path or URL, the one written last at the end; without ``run_config`` a forensics.toml that came with
    the run is left out. Raises ForensicsError where nothing is readable."""
    folder, keep, refused = _local(path)
    aliases = metric_aliases.read(folder, metrics, run_config=run_config)
    try:
        runs = parsers.read_all(folder, overrides=aliases.names, progress=progress)
    except FileNotFoundError as e:
        raise ForensicsError(str(e), "Give the folder of a run, or one of its files.") from e
    if not any(s.claimed for r in runs for s in r.sources):
        raise ForensicsError(f"nothing readable in {path}: {_why(runs)}", "See `forensics analyze --help` for the formats.")
    gaps = [*refused, *aliases.gaps, *metric_aliases.unused(runs, aliases)]
    for r in runs:
        r.gaps += gaps
        r.aliases = aliases
    if keep is not None:
        for r in runs:
            r.copy = keep
            r.path = r.path.replace(str(folder), path.rstrip("/"), 1)
            r.siblings = [s.replace(str(folder), path.rstrip("/"), 1) for s in r.siblings]
    return runs


def _why(runs: list[Run]) -> str:
    found = [f"{s.path} is {s.format}" for r in runs for s in r.sources]
    return "the folder is empty" if not found else "; ".join(found[:3]) + (f"; and {len(found) - 3} more" if len(found) > 3 else "")


def _local(path: str) -> tuple[Path, tempfile.TemporaryDirectory[str] | None, list[Gap]]:
    """The path itself, or a temporary copy of what an fsspec URL names, with the folder that holds it and what was not copied."""
    if not remote.is_url(path := remote.local(path)):
        return Path(path), None, []
    members, (_, base) = remote.listed(path), remote.opened(path)
    keep = tempfile.TemporaryDirectory(prefix="forensics-")
    file = members[0].name if [m.key for m in members] == [base] else ""
    name = path.rstrip("/").rpartition("/")[2]  # the run is called by it
    folder = Path(keep.name) / ("" if file else name if name not in ("", ".", "..") else "run")
    folder.mkdir(exist_ok=True)
    gaps = remote.refused(members) + remote.fetch(path, [m.name for m in members if m.name], folder)
    return folder / file, keep, gaps


def detect(run: Run) -> tuple[list[Finding], list[Check]]:
    """All symptoms in step order, and what became of every detector."""
    findings: list[Finding] = []
    checks = []
    for detector in modules("detectors"):
        name = id_of(detector)
        missing = [need for need in detector.NEEDS if not any(series(run, n) for n in need.split("|"))]
        if missing:
            checks.append(Check(name, "cannot_tell", " and ".join(map(_absent, missing))))
            continue
        try:
            found = list(detector.detect(run))
        except CannotTell as e:
            checks.append(Check(name, "cannot_tell", str(e)))
            continue
        except Exception as e:  # one broken detector costs only itself, and says so on the page
            checks.append(Check(name, "error", f"{type(e).__name__}: {e}"[:300]))
            continue
        note = f"{len(found)} found" + (f", the first {SHOWN_PER_DETECTOR} are listed" if len(found) > SHOWN_PER_DETECTOR else "")
        checks.append(Check(name, "fired", note, rule=_rule(detector)) if found else Check(name, "clear"))
        findings += found[:SHOWN_PER_DETECTOR]
    findings.sort(key=lambda f: (f.first_step is None, f.first_step or 0, f.kind))
    return findings, checks


def _with_effects(run: Run, checks: Sequence[Check]) -> list[Check]:
    """The checks, each that ran with the smallest effect that it could have seen."""
    detectors = {id_of(d): d for d in modules("detectors")}
    ran = {c.id for c in checks if c.status in ("fired", "clear")}
    return [replace(c, smallest_effect=_effect(detectors[c.id], run)) if c.id in ran & detectors.keys() else c for c in checks]


def _effect(detector: ModuleType, run: Run) -> str:
    """What the detector says: ``SMALLEST_EFFECT``, or ``smallest_effect(run)`` where it hangs on the run."""
    try:
        return str(detector.smallest_effect(run) if hasattr(detector, "smallest_effect") else getattr(detector, "SMALLEST_EFFECT", ""))
    except CannotTell:
        return ""
    except Exception as e:  # what the detector found stands
        return f"unknown: {type(e).__name__}: {e}"[:300]


def _absent(need: str) -> str:
    """'lr was not logged', 'neither a nor b was logged'"""
    names = need.split("|")
    if ANY_LOSS in need:
        return "no loss was logged, nor a perplexity or a term of a loss"
    return f"{need} was not logged" if len(names) == 1 else f"neither {', '.join(names[:-1])} nor {names[-1]} was logged"


def _rule(detector: ModuleType) -> str:
    """How the detector decides, from its docstring: on the page beside what it found."""
    _, _, rest = inspect.cleandoc(detector.__doc__ or "").partition("\nHow it decides\n")
    return re.sub(r"\*(\w+)\*", r"\1", " ".join(rest.split("\n\n")[0].split()).replace("``", "`"))


def weigh(run: Run, findings: Sequence[Finding]) -> tuple[list[Hypothesis], list[Check]]:
    """Every cause that has something to say about the findings, not yet ranked; and those that broke."""
    weighed, broken = [], []
    for hypothesis in modules("causes"):
        try:
            found = hypothesis.weigh(run, findings)
        except Exception as e:  # as for detectors: it costs only itself
            broken.append(Check(id_of(hypothesis), "error", f"{type(e).__name__}: {e}"[:300]))
            continue
        if found is not None:
            weighed.append(found)
    return weighed, broken

"""The pipeline of one run, top to bottom: tables to findings, findings to ranked causes, all into one case."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import ModuleType

from forensics import ranking
from forensics.batches.culprits import culprits
from forensics.case import Case, Check, Finding, Hypothesis
from forensics.case_parts import axis_words, headline, last_lines, pictures, run_again, sign_findings, summary, timeline
from forensics.case_parts.blind_spots import blind_spots
from forensics.causes import weigh as weighing
from forensics.checkpoints import run_saves
from forensics.errors import CannotTell
from forensics.findings import ALL, GRAVE
from forensics.guards.guarded import guarded
from forensics.many_runs import baseline as known_good
from forensics.many_runs import baseline_signs
from forensics.replays import advice
from forensics.rules import detectors, further_causes, id_of
from forensics.run import endings
from forensics.run.inputs import ANY_LOSS, OBJECTIVE
from forensics.run.once import once
from forensics.run.series import series
from forensics.signs.sign import SEEN, Sign, Symptoms, look
from forensics.version import VERSION
from parsers.tables import Run

FATAL = ("ending", "nonfinite")  # findings that are critical where the process, or the loss, is dead
SHOWN_PER_DETECTOR = 60  # more findings of one kind are counted, not listed


@dataclass(frozen=True)
class Judged:
    """What a run comes to: symptoms in step order, what became of each check, ranked causes, verdict, and the sentence that says so."""

    findings: tuple[Finding, ...]
    checks: tuple[Check, ...]
    hypotheses: tuple[Hypothesis, ...]
    verdict: str
    answer: str


def judge(run: Run, baseline: Run | None = None) -> Judged:
    """The verdict on a run and what it rests on; a `baseline` (a known good run) adds a finding and clues."""
    findings, checks, signs = examined(run)
    weighed, broken = causes_of(run)
    checks = (*checks, *broken)
    if baseline is not None:
        beside = known_good.beside(run, baseline)
        weighed = tuple(baseline_signs.clues(weighed, beside, findings))
        findings, checks = (*findings, *beside.findings), (*checks, known_good.check(beside))
    verdict = headline.verdict(run, findings, checks)
    dead = any(f.kind in FATAL and f.severity == GRAVE[-1] for f in findings)
    hypotheses = ranking.ranked(weighed, signs, verdict, dead)
    return Judged(findings, checks, hypotheses, verdict, headline.sentence(run, verdict, findings, hypotheses, checks))


def analyze_run(run: Run, *, command: Sequence[str] = (), baseline: Run | None = None, brief: bool = False) -> Case:
    """The case of a run. With `brief` a run that is not unhealthy goes without what only a page shows: the timeline, the pictures, and
    the smallest effects that the checks could have seen."""
    if baseline is not None:
        known_good.refuse_itself(run, baseline)
    told = _in_words_of_its_axis(run, judge(run, baseline))
    checks, hypotheses = told.checks, told.hypotheses
    shown = told.verdict == "unhealthy" or not brief
    if shown:
        checks, hypotheses = tuple(_with_smallest_effects(run, checks)), tuple(advice.offered(run, hypotheses))
    section = summary.run(run, told.findings)
    section["again"] = run_again.of(told.verdict, section, hypotheses, told.findings, bool(endings.events(run, "checkpoint_saved")))
    return Case(
        tool={"name": "forensics", "version": VERSION, "command": list(command)},
        run=section | ({"last_lines": last_lines.last_lines(run)} if told.verdict == "inconclusive" else {}),
        verdict=told.verdict,
        answer=told.answer,
        hypotheses=hypotheses,
        spikes=summary.spikes(run, told.findings),
        culprits=culprits(run, hypotheses, told.findings, told.verdict),
        findings=told.findings,
        checks=checks,
        blind_spots=blind_spots(run, hypotheses, told.findings),
        sources=summary.sources(run),
        gaps=summary.gaps(run),
        timeline=timeline.build(run, told.findings) if shown else {},
        pictures=pictures.build(run, told.findings, baseline) if shown else {},
        guards=guarded(run, told.findings).to_json() if told.verdict == "unhealthy" else None,
    )


def _in_words_of_its_axis(run: Run, told: Judged) -> Judged:
    """What was judged, in the labels that the log prints."""
    say = axis_words.words(run)
    if say is None:
        return told
    findings, checks = tuple(axis_words.finding(run, f, say) for f in told.findings), tuple(axis_words.check(c, say) for c in told.checks)
    hypotheses = tuple(axis_words.hypothesis(run, h, say) for h in told.hypotheses)
    return Judged(findings, checks, hypotheses, told.verdict, axis_words.answer(run, told.answer, say))


@once
def examined(run: Run) -> tuple[tuple[Finding, ...], tuple[Check, ...], dict[str, Sign]]:
    """Symptoms in step order, what became of each check, signs: kept, for a run that is chosen among several is judged first."""
    found, checks = detect(run)
    signs, errors = look(Symptoms(run, tuple(found)))
    told = _settings_in_context(found, signs)
    more, looked = sign_findings.symptoms(run, signs, {f.id for f in told if f.severity in GRAVE})
    findings = sorted([*told, *more], key=_in_order)
    broken = [Check(name, "error", error) for name, error in errors.items()]
    return tuple(findings), (*sign_findings.answered(checks, more), *looked, *broken), signs


@once
def causes_of(run: Run) -> tuple[tuple[Hypothesis, ...], tuple[Check, ...]]:
    """The causes of which an effect was seen, not ranked, each with what would settle it alone; those of other packages, and which broke."""
    findings, _, signs = examined(run)
    weighed, broken = weighing.weigh(signs, findings, run_saves.numbers(run, findings)), []
    for cause in further_causes():
        try:
            found = cause.weigh(run, findings)
        except Exception as e:  # it costs only itself
            broken.append(Check(id_of(cause), "error", f"{type(e).__name__}: {e}"[:300]))
            continue
        weighed += [found] if found is not None else []
    return tuple(weighed), tuple(broken)


def detect(run: Run) -> tuple[list[Finding], list[Check]]:
    """All symptoms in step order, and what became of every detector."""
    findings: list[Finding] = []
    checks = []
    for detector in detectors():
        name = id_of(detector)
        missing = [need for need in detector.NEEDS if not any(series(run, n) for n in need.split("|"))]
        if missing:
            needs = tuple(n for need in missing for n in need.split("|"))
            checks.append(Check(name, "cannot_tell", " and ".join(map(_absent, missing)), needs=needs))
            continue
        found: list[Finding] = []
        try:
            found.extend(detector.detect(run))
            note = f"{len(found)} found" + (f", the gravest {SHOWN_PER_DETECTOR} are listed" if len(found) > SHOWN_PER_DETECTOR else "")
            check = Check(name, "fired", note, rule=_rule(detector)) if found else Check(name, "clear")
        except CannotTell as e:  # what it told before stands
            inputs = getattr(detector, "INPUTS", None) or [n for need in detector.NEEDS for n in need.split("|")]
            check = Check(name, "cannot_tell", str(e), needs=tuple(inputs))
        except Exception as e:  # one broken detector costs only itself, and says so on the page
            found, check = [], Check(name, "error", f"{type(e).__name__}: {e}"[:300])
        checks.append(check)
        findings += sorted(found, key=lambda f: -ALL.index(f.severity))[:SHOWN_PER_DETECTOR]
    return sorted(findings, key=_in_order), checks


def _in_order(f: Finding) -> tuple[bool, int, str]:
    return f.first_step is None, f.first_step or 0, f.kind


def _settings_in_context(findings: Sequence[Finding], signs: dict[str, Sign]) -> list[Finding]:
    """The findings, those of a setting as information where its effect was not seen, or where it was meant.

    A detector of settings names the sign of their effect (``EFFECT``); one may name the signs that the change was meant (``MEANT``):
    of those findings that such a sign names, where it names any.
    """
    by_kind = {id_of(d): d for d in detectors()}

    def stands(f: Finding) -> bool:
        detector = by_kind.get(f.kind)
        effect, meant = getattr(detector, "EFFECT", ""), [signs[name] for name in getattr(detector, "MEANT", ())]
        was_meant = any(s.state == SEEN and (not s.findings or f in s.findings) for s in meant)
        return (not effect or signs[effect].state == SEEN) and not was_meant

    return [f if f.severity == "info" or stands(f) else replace(f, severity="info") for f in findings]


def _with_smallest_effects(run: Run, checks: Sequence[Check]) -> list[Check]:
    """The checks, each that ran with the smallest effect that it could have seen."""
    known = {id_of(d): d for d in detectors()}
    ran = {c.id for c in checks if c.status in ("fired", "clear")}
    return [replace(c, smallest_effect=_effect(known[c.id], run)) if c.id in ran & known.keys() else c for c in checks]


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
        others = ", a term of a loss, an error, a score or a reward" if OBJECTIVE in need else " or a term of a loss"
        return f"no loss was logged, nor a perplexity{others}"
    return f"{need} was not logged" if len(names) == 1 else f"neither {', '.join(names[:-1])} nor {names[-1]} was logged"


def _rule(detector: ModuleType) -> str:
    """How the detector decides, from its docstring: on the page beside what it found."""
    _, _, rest = inspect.cleandoc(detector.__doc__ or "").partition("\nHow it decides\n")
    return re.sub(r"\*(\w+)\*", r"\1", " ".join(rest.split("\n\n")[0].split()).replace("``", "`"))

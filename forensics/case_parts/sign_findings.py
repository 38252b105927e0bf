"""What signs alone saw: findings and checks of what no detector looks for."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace

from forensics import evidence
from forensics.case import Check, Evidence, Finding
from forensics.case_parts.finding_kinds import kind_of
from forensics.causes.files import causes
from forensics.findings import GRAVE
from forensics.run.series import Series, series
from forensics.signs.sign import CANNOT_TELL, SEEN, Sign, effects, looks
from parsers.tables import Run


def symptoms(run: Run, signs: dict[str, Sign], grave: Container[str]) -> tuple[list[Finding], list[Check]]:
    """The signs that are symptoms of their own as findings and checks, where no detector's finding says the same; and the settings that
    a cause warns of, beside what the curve shows of it, where no `grave` finding does."""
    found, checks = [], []
    for name, at in effects().items():
        sign, said = signs[name], signs[name].text.rstrip(".")
        if sign.state == CANNOT_TELL:
            checks.append(Check(name, "cannot_tell", said, needs=(at,)))
        elif sign.state == SEEN:
            checks.append(Check(name, "fired", "1 found", rule=looks()[name].__doc__ or ""))
            if not any(f.severity in GRAVE for f in sign.findings):
                steps = _steps(run, at, sign)
                found.append(Finding(f"{name}-{steps[0]}", name, said, *steps, "warning", _shown(run, at, sign)))
        else:
            checks.append(Check(name, "clear"))
    there = {name for name, sign in signs.items() if sign.state == SEEN}
    for name, *beside in sorted({e.signs for c in causes().values() for e in c.warns if e.among(there)}):
        said = "; ".join(signs[n].text.rstrip(".") for n in (name, *beside))
        if all(f.kind != name for f in found) and not any(f.id in grave for f in signs[name].findings):
            checks.append(Check(name, "fired", "1 found", rule=looks()[name].__doc__ or ""))
            found.append(Finding(name, name, said, None, None, "warning", _shown(run, "", signs[name])))
    return found, checks


def answered(checks: Sequence[Check], found: Sequence[Finding]) -> list[Check]:
    """The checks of detectors, of which one has fired where a sign alone answered its question."""
    seen, ran = {kind_of(f.kind): f.id for f in found}, {"clear", "cannot_tell"}
    return [replace(c, status="fired", note=f"seen by {seen[c.id]}") if c.id in seen and c.status in ran else c for c in checks]


def _steps(run: Run, at: str, sign: Sign) -> tuple[int | None, int | None]:
    """Where a sign was seen: from a step on to the end of the curve that it looks at, else of the run, where it names no last one; where it names none at
    all, the whole of that curve."""
    s, first, last = _curve(run, at), sign.numbers.get("first"), sign.numbers.get("last")
    if first is None and last is None:
        return (int(s.step.min()), int(s.step.max())) if s is not None else (None, None)
    if last is None:
        last = int(s.step.max()) if s is not None else max((a["steps"][1] for a in run.attempts if a["steps"][1] is not None), default=None)
    return last if first is None else first, last


def _curve(run: Run, at: str) -> Series | None:
    return next((s for name in at.split("|") if (s := series(run, name)) is not None and len(s)), None)


def _shown(run: Run, at: str, sign: Sign) -> tuple[Evidence, ...]:
    """The curve that a sign looks at, around its steps; else the place where what it saw stands."""
    s, (first, last) = _curve(run, at), _steps(run, at, sign)
    if s is not None and first is not None and last is not None and len(s) > 1:
        return (evidence.window(s, first, last, title=s.tag, where=sign.where or s.place(run, 0)),)
    return (evidence.text("where it stands", [], sign.where),) if sign.where else ()

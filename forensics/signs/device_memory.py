"""Memory of the device and the host: what the log says of its want, and what the memory curve did."""

from __future__ import annotations

import numpy as np

from forensics.detectors import ending as symptom
from forensics.detectors import memory
from forensics.run import memory_kinds
from forensics.run.how_it_ended import ending
from forensics.run.inputs import surviving
from forensics.run.robust import median
from forensics.run.series import Series, series
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen

_CURVES = ("mem.alloc", "mem.reserved", "gpu.mem")


def out_of_memory_quoted(s: Symptoms) -> Sign:
    """A line of the log says that memory ran out (CUDA out of memory, oom-kill, cannot allocate)."""
    said = [f for f in s.of(memory.Facts) if f.facts.said]
    if said:
        facts = said[0].facts
        return seen(
            symptom.stopped(said[0].title),
            said,
            do=facts.do or (),
            kind=facts.words or "",
            id=facts.kind,
            first=facts.step,
            last=facts.step,
        )
    e = ending(s.run)
    if e.kind in ("unknown", "cut"):
        return cannot_tell("no line says how the run ended, and none speaks of memory.")
    return absent(f"No line speaks of memory that ran out. {symptom.sentence(e)}", where=e.where)


def memory_kind_known(s: Symptoms) -> Sign:
    """Stack, sizes, memory curve or words tell which want of memory it was (a leak, fragmentation, an evaluation ...)."""
    said = [f for f in s.of(memory.Facts) if f.facts.said]
    if not said:
        return does_not_arise("no line says that memory ran out.")
    facts = said[0].facts
    if facts.words and facts.why:
        return seen(facts.why, said, do=facts.do or (), kind=facts.words, id=facts.kind, first=facts.step, last=facts.step)
    if _curve(s) is None:
        return cannot_tell("memory was not logged, and the error's own words do not tell its kind.")
    return absent("Neither the error's words and stack nor the memory curve tells its kind.", said)


def killed_without_reason(s: Symptoms) -> Sign:
    """A process was killed (SIGKILL, code 137) and no scheduler says why, which the kernel does for want of host memory."""
    killed = [f for f in s.of(memory.Facts) if f.facts.killed]
    if killed:
        where = next((x.where for x in killed[0].evidence if x.where), "")
        step = killed[0].facts.step
        when = f"after step {step}" if step is not None else "before a step was logged"
        text = f"A process was killed (SIGKILL) {when}, and no scheduler says why."
        return seen(text, killed, where=where, kind=killed[0].facts.words or "", first=step, last=step)
    e = ending(s.run)
    if e.kind in ("unknown", "cut"):
        return cannot_tell("no line says how the run ended.")
    return absent(f"No process was killed without a word of why. {symptom.sentence(e)}", where=e.where)


def memory_grew(s: Symptoms) -> Sign:
    """Logged memory rose by 15 % or more over the second half of the run and was rising still."""
    grown = [f for f in s.of(memory.Facts) if f.facts.growth]
    if grown:
        facts, first, last = grown[0].facts, grown[0].first_step, grown[0].last_step
        text = f"{grown[0].title}."
        if facts.said:  # the finding stands at the end; the growth began before
            a_step = f", by {facts.per_step:.3g} a step in the unit of the log" if facts.per_step else ""
            text = f"Memory grew by {facts.growth:.0%} over the second half of the run{a_step}."
            curve = _curve(s)
            first, last = (int(curve.step[_half(curve)[0]]), int(curve.step[_half(curve)[-1]])) if curve is not None else (first, first)
        return seen(text, grown, first=first, last=last, growth=facts.growth, per_step=facts.per_step, kind="a leak")
    curve = _curve(s)
    return cannot_tell(_missing(s)) if curve is None else absent(_levels(s, curve), where=_where(s, curve))


def memory_steady_before(s: Symptoms) -> Sign:
    """Logged memory did not grow over the second half of the run, whatever happened then."""
    curve = _curve(s)
    if curve is None:
        return cannot_tell(_missing(s))
    grown = [f for f in s.of(memory.Facts) if f.facts.growth]
    if grown:
        return absent(f"Memory grew by {grown[0].facts.growth:.0%} over the second half of the run.", grown)
    rows = _half(curve)
    return seen(_levels(s, curve), where=_where(s, curve), first=int(curve.step[rows[0]]), last=int(curve.step[rows[-1]]))


def _curve(s: Symptoms) -> Series | None:
    """The memory curve that the detector looks at, where it is long enough for it."""
    logged = [x for name in _CURVES if (x := series(s.run, name)) is not None]
    return next((x for x in logged if len(surviving(x)) >= 2 * memory_kinds.HALF_ROWS), None)


def _missing(s: Symptoms) -> str:
    few = [len(surviving(x)) for name in _CURVES if (x := series(s.run, name)) is not None]
    return f"memory was logged {max(few)} times only." if few else "the memory of the device was not logged by step."


def _half(curve: Series) -> np.ndarray:
    rows = surviving(curve)
    return rows[len(rows) // 2 :]


def _levels(s: Symptoms, curve: Series) -> str:
    rows = _half(curve)
    parts = [median(curve.value[p]) for p in np.array_split(rows, 4)]
    low, high = min(parts), max(parts)
    unit = f" {curve.unit}" if curve.unit else ""
    levels = f"at {low:.4g}{unit}" if f"{low:.4g}" == f"{high:.4g}" else f"between {low:.4g} and {high:.4g}{unit}"
    return f"{curve.tag} stayed {levels} from step {curve.step[rows[0]]} to {curve.step[rows[-1]]} (medians of its quarters)."


def _where(s: Symptoms, curve: Series) -> str:
    return curve.place(s.run, _half(curve)[-1])

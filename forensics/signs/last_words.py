"""How the run ended: the line that tells it, its plan, its exit code. One line may show several of these signs, metrics none."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from forensics.detectors import ending as symptom
from forensics.detectors import memory
from forensics.run import connections, endings, failed_saves, fatal_lines, hang_ranks, how_it_ended, index_errors, plan
from forensics.run.how_it_ended import Ending, ending
from forensics.run.kinds import Kind
from forensics.signs.sign import SEEN, Sign, Symptoms, absent, cannot_tell, does_not_arise, seen
from parsers.lazy_regex import lazy_re

_SILENT = lazy_re(r"(?i)exit code|\W*failed\b|traceback without")  # that it failed, not of what
_GUARD = lazy_re(r"\b(?:nan|inf|non-?finite|not finite|loss scale already at minimum)\b", re.I)  # raised because a value was not finite
_REASON = lazy_re(r"^(?:an exception ended the run|hardware failure(?=: .*CUDA error)): (.+?)(?:; the next attempt begins .*)?$", re.S)
_CLASS = lazy_re(r"[A-Za-z_][\w.]{0,59}(?=:|$)")
_NUMBER = lazy_re(r"0x[0-9a-f]+|\d+", re.I)
_PEER = lazy_re(r"(?i)\bconnection (?:was )?(?:reset|closed) by (?:the )?(?:remote )?peer")
_SENDERS = {"interrupt": "a person", "scheduler": "the scheduler", "signal": "a signal"}
_LONGEST = 200  # characters of a quoted line


def exception_quoted(s: Symptoms) -> Sign:
    """The last words of the run are an exception of the program that nobody caught. Not: memory, disk, device, NaN guard, time-out, nor the
    word that another process is gone."""
    died = _died_of(
        s,
        "exception",
        lambda e: (
            not _names_nothing(e)
            and not fatal_lines.GONE.search(e.says)
            and not _GUARD.search(e.says)
            and not fatal_lines.of_device(e.kind, e.says)
        ),
    )
    return _told_by(died, index_errors.of_run(s.run))


def launcher_says_failed(s: Symptoms) -> Sign:
    """Only a launcher, a tracker or an exit code says that the run failed, and nothing says of what, not even that another rank was gone."""
    return _died_of(s, "exception", lambda e: _names_nothing(e) and not _lost_peer(s))


def peer_gone(s: Symptoms) -> Sign:
    """A rank failed as its connection to another one was reset or closed, and no line of any rank says of what that one died."""
    lost, died = _lost_peer(s), _died_of(s, "exception", _names_nothing)
    if died.state != SEEN:
        return died
    if not lost:
        return absent("No line of a rank says that its connection to another one was reset or closed.", died.findings)
    return seen(f'{died.text} A rank says: "{lost[:160]}".', died.findings, where=died.where, **died.numbers)


def _lost_peer(s: Symptoms) -> str:
    """What a rank says of a connection to another one that was reset or closed; empty where none does."""
    return next((str(e["text"]) for e in endings.events(s.run, "nccl", "traceback", "warning") if _PEER.search(str(e["text"]))), "")


def exception_repeats(s: Symptoms) -> Sign:
    """The same exception, or error of CUDA, ended two attempts or more (numbers in it aside): a crash loop."""
    told = [(a, m[1]) for a in how_it_ended.attempts(s.run) if (m := _REASON.match(str(a["why"]))) is not None]
    told = [(a, words) for a, words in told if not _SILENT.match(words)]
    if len(s.run.attempts) < 2:
        return does_not_arise("one attempt alone was logged, which repeats nothing.")
    same: dict[str, list[tuple[dict[str, Any], str]]] = {}
    for a, words in told:
        same.setdefault(_NUMBER.sub("#", words), []).append((a, words))
    best = max(same.values(), key=len, default=[])
    if len(best) < 2:
        return absent(f"No exception ended two of the {len(s.run.attempts)} attempts: {len(told)} of them ended with one.")
    steps = [int(a["steps"][1]) for a, _ in best]
    where = f"at step {steps[0]} each time" if len(set(steps)) == 1 else f"at steps {', '.join(map(str, steps[:5]))}"
    text = f"The same exception ended {len(best)} of {len(s.run.attempts)} attempts, {where}: {_short(best[0][1])}"
    last = _place(s) if _REASON.match(str(how_it_ended.attempts(s.run)[-1]["why"])) else ""
    return seen(_stop(text), _findings(s), where=last, first=min(steps), last=max(steps), times=len(best))


def stopped_short_of_plan(s: Symptoms) -> Sign:
    """The last step is short of the planned length, by more than a logging interval."""
    e, planned = ending(s.run), plan.plan(s.run)
    if planned is None:
        return cannot_tell("no planned length was logged.")
    if e.kind == "running":
        return does_not_arise(f"the run still goes on, at {e.unit} {e.step} of {planned.value} planned.")
    if e.step is None:
        return cannot_tell(f"no {e.unit} of the {planned.value} planned was logged.")
    if plan.reached(s.run):
        return absent(f"The run came to {e.unit} {e.step} of {planned.value} planned.", where=planned.where)
    text = f"The run stopped at {e.unit} {e.step} of {planned.value} planned."
    return seen(text, _findings(s), where=planned.where, first=e.step, last=e.step, planned=planned.value)


def died_before_first_step(s: Symptoms) -> Sign:
    """The process died, or was stopped, and no step of it was logged."""
    e = ending(s.run)
    if e.step is not None:
        return absent(f"The run logged steps until {e.unit} {e.step}.")
    if e.died or e.status == "stopped":
        died = seen(f'It ended before its first step was logged: "{_short(e.says)}".', _findings(s), where=e.where, **_at(e))
        return _told_by(died, connections.meeting(s.run))
    return cannot_tell("no step was logged, and no line says how the run ended.")


def disk_full_quoted(s: Symptoms) -> Sign:
    """The last words of the run are the system's error of a full disk or quota (ENOSPC, EDQUOT), or torch.save's of a short write."""
    return _died_of(s, "disk", lambda e: True)


def hardware_fault_quoted(s: Symptoms) -> Sign:
    """The driver, the kernel or the scheduler names a device or node that failed (Xid, ECC, off the bus, node fail)."""
    return _died_of(s, "hardware", lambda e: bool(fatal_lines.HARDWARE.search(e.says)))


def cuda_error_ended_it(s: Symptoms) -> Sign:
    """A CUDA error ended the run, and neither kernel nor scheduler speaks of a device."""
    died = _died_of(s, "hardware exception", lambda e: fatal_lines.of_device(e.kind, e.says) and not fatal_lines.INSIDE.search(e.says))
    return _told_by(died, index_errors.of_run(s.run))


def library_failed_inside(s: Symptoms) -> Sign:
    """A status of cuBLAS or cuDNN ended the run, and neither kernel nor scheduler speaks of a device."""
    return _died_of(s, "hardware exception", lambda e: fatal_lines.of_device(e.kind, e.says) and bool(fatal_lines.INSIDE.search(e.says)))


def stopped_by_others_quoted(s: Symptoms) -> Sign:
    """A line says that a person, the scheduler (limit, preemption) or a signal sent on purpose stopped the run."""
    return _died_of(s, " ".join(_SENDERS), lambda e: e.status == "stopped")


def killed_by_signal_unexplained(s: Symptoms) -> Sign:
    """A signal such as SIGKILL ended a process, and no line says who sent it; none that a program brings on itself."""
    if suspected := [f for f in s.of(memory.Facts) if f.facts.killed]:
        return absent(f"{suspected[0].title}: the kernel kills so for want of memory.", suspected)
    return _died_of(s, "signal", lambda e: e.status != "stopped" and not fatal_lines.OWN_SIGNAL.search(e.says))


def crashed_in_native_code(s: Symptoms) -> Sign:
    """The process, or a worker of its, died of a signal that a program brings on itself: a segmentation fault, a bus error, an illegal instruction, an
    abort. A library's native code, a build for another machine, or memory shared by workers that ran out; the log does not say which."""
    return _died_of(s, "signal exception", lambda e: bool(fatal_lines.OWN_SIGNAL.search(e.says)))


def finished_as_planned(s: Symptoms) -> Sign:
    """The run came to its own end: its closing line, exit code zero, its planned length, or its own early stopping."""
    e = ending(s.run)
    if e.kind == "running":
        return does_not_arise(f"the run still goes on, at {e.unit} {e.step}.")
    if e.kind == "unknown":
        return _untold(e)
    if e.kind == "finished":
        return seen(symptom.sentence(e), where=e.where, how=e.how, **_at(e))
    return absent(symptom.stopped(symptom.title(e)), _findings(s), where=e.where)


def error_explains_end(s: Symptoms) -> Sign:
    """The last attempt ended in an error that needs no other failure to explain it: an exception, memory, a device; no time-out."""
    run = s.run
    e, last = ending(run), len(run.attempts) - 1
    if e.kind == "finished":
        return absent(f"No error ended it. {symptom.sentence(e)}", where=e.where)
    roots = [x for x in hang_ranks.roots(run) if x["attempt"] in (None, last) and not endings.steps_after(run, x)]
    if roots:
        text = f'The log ends in an error: "{_short(fatal_lines.words(roots[0]))}".'
        return seen(text, _findings(s), where=run.where(roots[0]["source"], roots[0]["at"]), **_at(e))
    waits = hang_ranks.said(run)
    if waits:
        return absent(
            f"The log ends in {len(waits)} line{'s' * (len(waits) > 1)} of processes that wait, and in no error of another kind.",
            where=_place(s),
        )
    if e.kind in ("unknown", "cut", "running"):
        return _untold(e)
    return absent(f"No error stands there. {symptom.stopped(symptom.title(e))}", _findings(s), where=e.where)


def save_failed(s: Symptoms) -> Sign:
    """An exception was raised while a checkpoint was saved (torch.save, its writer, safetensors, a function that saves), and it names no other
    reason than that it could not be written."""
    run = s.run
    errors = endings.events(run, "traceback", "oom", "warning")
    named = [x for x in errors if x["level"] == "error" and x["kind"] != "warning" and not str(x["text"]).startswith(fatal_lines.UNNAMED)]
    saving = failed_saves.errors(run)
    if not saving and not named:
        return does_not_arise("no exception was logged.")
    unwritten = [x for x in saving if failed_saves.for_want_of_room(x)]
    e = (unwritten or saving or named)[0]
    step, where = e["step"] if e["step"] is not None else ending(run).step, run.where(e["source"], e["at"])
    told = _short(" ".join(str(e["text"]).split()))
    if unwritten:
        return seen(f'Saving a checkpoint failed: "{told}".', _findings(s), where=where, first=step, last=step)
    return absent(f'{"A save failed for another reason" if saving else "The traceback names no save"}: "{told}".', where=where)


def _died_of(s: Symptoms, kinds: str, holds: Callable[[Ending], bool]) -> Sign:
    """Seen where the run ended so, absent where it is told that it ended otherwise."""
    e = ending(s.run)
    if e.kind in kinds.split() and holds(e):
        return seen(symptom.stopped(symptom.title(e)), _findings(s), where=e.where, kind=_name(e), says=e.says, **_at(e))
    if e.kind in ("unknown", "cut", "running"):
        return _untold(e)
    return absent(symptom.sentence(e), _findings(s), where=e.where)


def _told_by(sign: Sign, kind: Kind | None) -> Sign:
    """A sign that was seen, with what another line tells of the error and what to do about it first."""
    return replace(sign, text=f"{sign.text} {kind.why}", do=kind.do) if kind is not None and sign.state == SEEN else sign


def _name(e: Ending) -> str:
    """The class of an exception, or who stopped the run, for titles; empty where the line names neither."""
    name = _CLASS.match(e.says)
    return _SENDERS.get(e.kind) or (name[0] if name else "")


def _names_nothing(e: Ending) -> bool:
    return bool(_SILENT.match(e.says) or fatal_lines.CONSEQUENCE.search(e.says))


def _untold(e: Ending) -> Sign:
    if e.kind == "running":
        return does_not_arise(f"the run still goes on, at {e.unit} {e.step}.")
    if e.step is None:
        return cannot_tell("neither a step nor a line that says how the run ended was logged.")
    of = f" of {e.planned} planned" if e.planned is not None and e.kind == "cut" else ""
    return cannot_tell(f"no line says how the run ended; the log stops after {e.unit} {e.step}{of}.")


def _findings(s: Symptoms) -> list[Any]:
    return s.of(symptom.Facts)


def _place(s: Symptoms) -> str:
    return ending(s.run).where


def _at(e: Ending) -> dict[str, Any]:
    return {"first": e.step, "last": e.step}


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST].rstrip() + " \u2026"


def _stop(text: str) -> str:
    return symptom.stopped(text)

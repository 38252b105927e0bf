"""Restart

What it sees
    The run ended and began again: steps go back, a second event file begins, a line says that training resumes.

How it decides
    ``parsers.runs.attempts`` tells the attempts apart (and where a log names no steps, an epoch that goes back to one between the
    first and the last); this names each new one, the steps that were done twice (none where the logged epoch goes on; whole logging intervals where rows name their last step),
    the time between,
    and why the attempt before it ended where a line says so. Work done twice is a warning where all restarts together cost 5 % of the
    steps or of the time; less, as a stop between two saves costs, a stop by hand, for which somebody chose the moment, and a clean
    continuation are only told; so is a new beginning, within a logging interval of the first step of all, where no line says what ended the attempt before or that it was
    resumed: another launch, seed, fold or phase; and so are trainings in the same file that begin anew, steps that the loop says it undoes itself, and
    launches that died before their first step: of an exception that nothing caught, or by a signal below the log's first lines, come again; and three and
    more that nothing but the log's first line tells of, come again before anything was measured.

Cannot tell
    A restart that continues at the very next step, in the same file, without a word and without a clock, leaves no trace. Where several
    processes write into one file by turns, which step or epoch is whose.

Folklore
    BLOOM-176B's public TensorBoard folder has 117 event files; 50 begin at a step that was already logged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from forensics import evidence
from forensics.case import BaseFacts, Finding
from forensics.errors import CannotTell
from forensics.run import done_twice, endings, fatal_lines, how_it_ended, reach
from forensics.run.announced_returns import returns
from forensics.run.failed_launches import failed
from forensics.run.series import series
from parsers.records.by_turns import BY_TURNS, leaps_back, taken_up_again
from parsers.tables import DOUBTED, Run

# of the steps or the time; unit: a twentieth of the run, whatever counts it (docs/case.md). measured: 29 runs met blind whose restarts
# are called clean did 0 to 2.3 % twice (7.7 % of one that was stopped by hand), and ten that lost work 5.1 to 27 %
LOST = 0.05
NEEDS: list[str] = []
INPUTS = ["epoch"]
SMALLEST_EFFECT = "one step logged twice"


@dataclass(frozen=True)
class Facts(BaseFacts):
    """The end of one attempt and the beginning of the next."""

    from_: int  # first step of the new attempt
    ended: int  # last step of the old one
    redone: int  # steps that are done twice
    idle: float | None  # seconds between them
    why: str  # the old one ended
    attempt: int


@dataclass(frozen=True)
class Launch(BaseFacts):
    """One of several trainings that wrote the same files."""

    number: int
    launches: int


@dataclass(frozen=True)
class Unstarted(BaseFacts):
    """Launches in the same log that ended before their first step."""

    launches: int
    says: tuple[str, ...]  # what ended each


@dataclass(frozen=True)
class Begun(BaseFacts):
    """A log that begins where an earlier one, which is not here, was resumed."""

    step: int


def detect(run: Run) -> Iterator[Finding]:
    yield from _one_of_many(run)
    yield from _begun(run)
    yield from _unstarted(run)
    told = how_it_ended.attempts(run)
    yield from _by_epoch(run)
    _one_writer(run)
    severity, ordered = "warning" if _cost(run) else "info", _by_hand(run)
    for before, after, attempt in zip(run.attempts, run.attempts[1:], told, strict=False):
        begin, end = after["steps"][0], before["steps"][1]
        redone = done_twice.steps(run, before, after)
        idle = after["started"] - before["ended"] if after["started"] and before["ended"] else None
        idle = None if idle is not None and idle > DOUBTED else idle
        wait = f", {_duration(idle)} later" if idle and idle > 0 else ""
        what = f"{redone} step{'s' * (redone > 1)} repeated" if redone else "no step repeated"
        undone = begin in returns(run)
        title = f"The run {'undoes steps by itself' if undone else 'stops'} at step {end} and resumes from step {begin}{wait}: {what}"
        facts = Facts(begin, end, redone, idle, attempt["why"], after["index"])
        shown = []
        loss = series(run, "loss.train") or series(run, "loss.eval")
        if loss is not None:
            marks = [{"step": begin, "label": f"restart at step {begin}", "kind": "restart"}]
            shown.append(evidence.window(loss, begin, max(end, begin), *marks, title="loss in both attempts"))
        if continues := how_it_ended.continues(run, after):
            shown.append(evidence.text("what shows that it continues", [continues]))
        told_of = endings.events(run, "resume", "signal", "scheduler", "oom", "traceback")
        lines = [e for e in told_of if e["attempt"] in (before["index"], after["index"])]
        if lines:
            where = run.where(lines[0]["source"], lines[0]["at"])
            shown.append(evidence.text("what the log says", [e["text"][:300] for e in lines[:6]], where))
        anew = begin <= run.attempts[0]["steps"][0] + after["span"].interval and not lines
        key, times = f"{begin}-attempt{after['index']}" if after["index"] > 1 else begin, (before["ended"], after["started"])
        yield evidence.found(
            facts,
            title,
            (begin, max(end, begin)),
            severity if redone > 1 and not undone and not anew and before["index"] not in ordered else "info",
            *shown,
            key=key,
            times=times,
        )


def _one_of_many(run: Run) -> Iterator[Finding[Launch]]:
    """Where the files hold other trainings, too: jumps from one to the next are none of the loss."""
    number, launches = run.launch
    if launches < 2:
        return
    files = sorted(set().union(*(a["files"] for a in run.attempts)))
    title = f"{files[0] if files else 'The log'} holds {launches} trainings, each from its beginning: this is number {number}"
    began = run.attempts[0]["begun"] if run.attempts else None
    shown = [evidence.text("where it begins", [began.text], run.where(began.source, began.at))] if began and began.text else []
    yield evidence.found(Launch(number, launches), title, (None, None), "info", *shown, key="launches")


def _begun(run: Run) -> Iterator[Finding[Begun]]:
    """What was before the first step stands in another log: a first value, a warmup or a rate at its top are none of a beginning."""
    first, near = reach.first(run), reach.interval(run)
    told = [
        e for e in endings.events(run, "resume") if e["attempt"] in (0, None) and e["step"] and first and abs(e["step"] - first) <= near
    ]
    if first is None or not told or first <= near:
        return
    shown = evidence.text("what the log says", [str(told[0]["text"])[:300]], run.where(told[0]["source"], told[0]["at"]))
    title = f"The log begins at step {first}, where the run was resumed: what was before is not in it"
    yield evidence.found(Begun(first), title, (first, first), "info", shown, key="begun")


def _unstarted(run: Run) -> Iterator[Finding[Unstarted]]:
    """Launches that trained nothing cost no step, but say what was mended before, or that it did not come up again."""
    found = failed(run)
    if not found:
        return
    says = tuple(dict.fromkeys(f.says for f in found))
    launches = (
        "1 launch in this log ended before its first step"
        if len(found) == 1
        else f"{len(found)} launches in this log ended before their first step"
    )
    shown = [evidence.text("what ended it", [f.says[:300]], f.where) for f in found[:6]]
    title = f"{launches}: {'; '.join(s[:120] for s in says[:3])}"
    yield evidence.found(Unstarted(len(found), says), title, (None, None), "info", *shown, key="unstarted")


def _one_writer(run: Run) -> None:
    """Raises CannotTell where the steps of several processes stand in the log by turns."""
    s = series(run, "loss.train") or series(run, "loss.eval") or series(run, "rl.reward")
    if s is None or len(run.attempts) <= BY_TURNS:
        return
    one = np.flatnonzero(s.source_code == s.source_code[0])
    written = one[np.argsort(s.at[one], kind="stable")]
    if (turns := taken_up_again(s.step[written] // s.interval)) >= BY_TURNS:
        raise CannotTell(f"several processes write into the log by turns: its steps fall, and go on {turns} times where others had stopped")


def _by_epoch(run: Run) -> Iterator[Finding[Facts]]:
    """In a log of one attempt whose lines are counted for want of steps, the epoch tells where the run goes on from an earlier state.
    Evaluation lines repeat an epoch; it never falls but there."""
    s = series(run, "epoch")
    if s is None or len(run.attempts) > 1:
        return
    told = np.flatnonzero(np.isfinite(s.value))
    x, step = s.value[told], s.step[told]
    if (leaps := leaps_back(x)) >= BY_TURNS:
        raise CannotTell(f"several processes write into the log by turns: its epoch falls and leaps back up {leaps} times")
    for i in np.flatnonzero(np.diff(x) < 0) + 1:
        if x[i] <= x[0] or x[i : i + 2][-1] >= x[i - 1]:
            continue  # another run begins; or one line counts from zero ("Epoch 3.00", "Epoch 2 starts", "Epoch 3.01")
        redone = int(np.sum(x[:i] >= x[i]))
        severity = "warning" if redone > 1 and redone >= LOST * len(x) else "info"
        title = f"The epoch goes back from {x[i - 1]:.4g} to {x[i]:.4g} after row {step[i - 1]}: {redone} row{'s' * (redone > 1)} repeated"
        facts = Facts(int(step[i]), int(step[i - 1]), redone, None, "", 1)
        marks = [{"step": int(step[i]), "label": "restart", "kind": "restart"}]
        shown = evidence.window(s, int(step[i]), int(step[i]), *marks, title=s.tag, where=s.place(run, told[i]))
        yield evidence.found(facts, title, (int(step[i - 1]), int(step[i])), severity, shown, key=f"{step[i]}-epoch")


def _by_hand(run: Run) -> set[int]:
    """The attempts that somebody ended from the keyboard: no crash."""
    return {e["attempt"] for e in endings.events(run, "signal", "traceback") if fatal_lines.kind(e) == "interrupt"}


def _cost(run: Run) -> bool:
    """Do the steps that all restarts did twice weigh, by their number or by the time that they took? Those of a stop by hand do not."""
    redone, seconds, ordered = 0.0, 0.0, _by_hand(run)
    for before, after in zip(run.attempts, run.attempts[1:], strict=False):
        if before["index"] in ordered:
            continue
        again, done = done_twice.steps(run, before, after), before["steps"][1] - before["steps"][0] + 1
        redone += again
        if before["started"] and before["ended"]:
            seconds += (before["ended"] - before["started"]) * again / done
    steps = max(a["steps"][1] for a in run.attempts) - min(a["steps"][0] for a in run.attempts) + 1 if run.attempts else 1
    clocked = sum(a["ended"] - a["started"] for a in run.attempts if a["started"] and a["ended"])
    return redone >= LOST * steps or seconds > LOST * clocked > 0


def _duration(seconds: float) -> str:
    for size, unit in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} seconds"

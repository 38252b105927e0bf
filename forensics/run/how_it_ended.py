"""How the process ended: what killed it, in its own words, and where they stand; or that it finished, goes on, or is silent.

What metrics measured plays no part, only how far they go. A fatal line counts only where nothing went on after it in its file:
an exception that was caught, noise of an exit handler and words that only sound like harm are followed by steps or by a
closing line. Of several fatal lines the cause comes before its consequences: ranks that lost their peer, the launcher's
report, the scheduler's exit code.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace
from typing import Any

from forensics.case import utc
from forensics.run import done_twice, endings, fatal_lines, proper_end, reach, silence
from forensics.run.endings import Event
from forensics.run.once import once
from forensics.run.plan import planned_steps, said, unit
from parsers.lazy_regex import lazy_re
from parsers.tables import ZONES_APART, Run

TORN = lazy_re(r"\b(?:torn|truncated|cut off|incomplete|no whole)\b", re.I)
ANEW = 10  # settings: stdout and stderr of one launch share hardly any, and two launches share most
# what a scheduler, or who redirects them, calls the two streams of one job
STREAM = lazy_re(r"\.(?:out|err|stdout|stderr)$|[._-](?:out|err|log|stdout|stderr)\.(?:txt|log)$")
RUNNING_SECONDS = 900.0  # a run whose own clock is younger than that may go on; longer than most logging intervals and saves
GRACE = 5  # bound: logged values between the notice of a scheduler and the kill, 30 s later where Slurm is not told otherwise
NEAR_END = 30  # lines by which an error without a stack may stand before the end of a log that has no steps
STATUS = {
    "finished": "finished", "exception": "crashed", "out of memory": "crashed", "disk": "crashed", "hardware": "crashed",
    "interrupt": "stopped", "scheduler": "stopped", "hang": "hung", "cut": "unknown", "running": "running", "unknown": "unknown",
}  # fmt: skip
WORDS = {
    "exception": "an exception ended the run", "out of memory": "out of memory", "disk": "disk full",
    "hardware": "hardware failure", "signal": "a signal ended the run", "hang": "the run hung",
    "interrupt": "stopped by hand", "scheduler": "the scheduler stopped the run", "cut": "the log just stops",
}  # fmt: skip
JUST_ENDS = "the log just ends and no reason is logged"


@dataclass(frozen=True)
class Ending:
    """``kind`` as docs/case.md lists them, with spaces; ``says``: the line that tells it (of a log that just ends: its last one),
    ``where``: its file and place, ``rank``: whose it was; ``step`` and ``planned`` count ``unit``s, steps or epochs; ``how`` it is
    known that it finished (`proper_end.Finish`), or ``left``: its loop was left in order with work still to do."""

    kind: str
    says: str = ""
    where: str = ""
    rank: int | None = None
    before_first_step: bool = False
    step: int | None = None
    planned: int | None = None
    how: str = ""
    unit: str = "step"

    @property
    def died(self) -> bool:
        return self.status in ("crashed", "hung")

    @property
    def status(self) -> str:
        """finished | crashed | stopped | hung | running | unknown"""
        if self.kind == "signal":
            return "crashed" if fatal_lines.CRASHING_SIGNAL.search(self.says) else "stopped"
        return STATUS[self.kind]


@once
def ending(run: Run) -> Ending:
    """How the last attempt of a run ended."""
    told = _died(run, len(run.attempts) - 1)
    return replace(_alive(run) if told is None else told, unit=unit(run))


@once
def _died(run: Run, attempt: int) -> Ending | None:
    """What ended an attempt, by its last fatal line; None where no line tells it."""
    step = run.attempts[attempt]["steps"][1] if run.attempts else reach.saved(run)
    last = endings.of_attempt(run, attempt)
    closed = {e["source"]: e["at"] or 0 for e in proper_end.closings(run, last)}  # file -> place of its last closing line
    fatal = [(kind, e) for e in last if (kind := fatal_lines.kind(e)) and not _survived(run, e, closed) and _of_this_launch(run, e)]
    fatal = fatal_lines.of_last_launch(fatal)
    many = len({e["rank"] for e in last if e["rank"] is not None}) > 1
    limits = {e["source"]: e["at"] or 0 for k, e in fatal if k == "scheduler"}
    for kind in fatal_lines.ORDER:
        of_kind = [e for k, e in fatal if k == kind]
        if kind == "exception" and not many:  # one process that raised cannot be cancelled later: what it raised was caught
            of_kind = [e for e in of_kind if limits.get(e["source"], -1) <= (e["at"] or 0)]
        if kind == "error line":
            of_kind = [e for e in of_kind if _ends_its_log(run, e)]
        if not of_kind:
            continue
        if kind == "signal" and any(k == "hang" for k, _ in fatal) and all(fatal_lines.ABORT.search(str(e["text"])) for e in of_kind):
            continue  # the watchdog of a collective aborts its own process
        if kind not in ("hardware", "out of memory") and _closed_elsewhere(of_kind, last, closed):
            continue
        hung = kind == "scheduler" and silence.stalled(run)  # the limit only ended the wait
        telling = fatal_lines.telling(kind, of_kind)
        return _told(run, "hang" if hung else fatal_lines.means(kind, telling), telling, step)
    return None


def _alive(run: Run) -> Ending:
    """How the last attempt ended where no fatal line tells it: finished, failed by a code or a word alone, silent, running, cut."""
    last, planned = endings.of_attempt(run, len(run.attempts) - 1), planned_steps(run)
    step = reach.last(run) if run.attempts else reach.saved(run)
    if step is not None:
        step = max(step, *(n for n, _ in said(run, "reached")), 0)  # where the bar over the training stood at last
    if (end := proper_end.finish(run)) is not None:
        return Ending("finished", end.says, end.where, step=step, planned=planned, how=end.how)
    if codes := [e for e in last if e["kind"] == "exit" and e["level"] == "error"]:
        return _told(run, "exception", codes[-1], step)
    for word, kind in (("FAILED", "exception"), ("KILLED", "signal")):  # a tracker's word
        told = [e for e in last if e["kind"] == "status" and word in str(e["text"]).upper()]
        if told:
            return _told(run, kind, told[-1], step)
    if silence.stalled(run):
        return Ending("hang", (silence.silence(run) or (0, 0, ""))[2], step=step)
    clock = run.attempts[-1]["ended"] if run.attempts else None
    if clock is not None and abs(time.time() - clock) < RUNNING_SECONDS:
        return Ending("running", step=step)
    return _silent_end(run, step, planned, last)


def _silent_end(run: Run, step: int | None, planned: int | None, last: list[Event]) -> Ending:
    """Of a log that says nothing of its end: one that looks finished, was left by its loop, is cut, or just ends."""
    if (end := proper_end.likely(run)) is not None:
        return Ending("finished", end.says, end.where, step=step, planned=planned, how=end.how)
    # a log of numbers has no closing line: only work that was left, or a torn end, says that it was cut
    end_of_loop = proper_end.broken_off(run)
    torn = any(TORN.search(g.what) for g in run.gaps)
    short = torn or reach.within_epoch(run) or proper_end.work_left(run)
    kind = "cut" if end_of_loop is None and step is not None and short else "unknown"
    e = end_of_loop or endings.last_line(run, last)
    says, where = (fatal_lines.words(e), run.where(e["source"], e["at"])) if e else ("", "")
    return Ending(kind, says, where, None, step is None, step, planned, how="left" if end_of_loop else "")


def status(run: Run) -> str:
    """finished | crashed | stopped | hung | running | unknown"""
    return ending(run).status


def attempts(run: Run) -> list[dict[str, Any]]:
    """The attempts as the case shows them: steps, clock, and why each ended."""
    found = []
    for i, attempt in enumerate(run.attempts):
        told, following = _died(run, i), run.attempts[i + 1 : i + 2]
        why = f"{WORDS[told.kind]}: {told.says[:160].rstrip('. ')}" if told is not None else ""
        if following:
            begin, twice = following[0]["steps"][0], done_twice.steps(run, attempt, following[0])
            redone = f", {twice} steps are done twice" if twice else ""
            why = f"{why or 'no reason is logged'}; the next attempt begins at step {begin}{redone}"
        elif not why:
            e = _alive(run)
            why = {"cut": JUST_ENDS, "unknown": JUST_ENDS, "running": "it is still going"}.get(e.kind) or WORDS.get(e.kind, e.kind)
            why += f": {e.says[:160]}" if e.says else ""
        found.append(
            {
                "index": i, "steps": attempt["steps"], "started": utc(attempt["started"]), "ended": utc(attempt["ended"]),
                "why": why, "evidence": continues(run, attempt),
            }
        )  # fmt: skip
    return found


def continues(run: Run, attempt: dict[str, Any]) -> str:
    """What shows that an attempt continues the run, and where that stands; nothing for the first one."""
    shown = attempt.get("evidence")
    if shown is None:
        return ""
    return f"{run.where(shown.source, shown.at)}: {shown.text}" if shown.source else str(shown.text)


def shown(run: Run) -> dict[str, Any]:
    """`run.ending` of the case."""
    e = ending(run)
    told = {"kind": e.kind.replace(" ", "_"), "says": e.says, "where": e.where, "rank": e.rank, "before_first_step": e.before_first_step}
    return told | {"step": e.step, "unit": e.unit, "how": e.how}


def of_case(document: dict[str, Any]) -> Ending | None:
    """The ending as a case tells it; None in cases of before it was told."""
    told = document.get("ending")
    if not told or "how" not in told:
        return None
    return Ending(**(told | {"kind": told["kind"].replace("_", " ")}), planned=document.get("planned_steps"))


def _survived(run: Run, e: Event, closed: dict[str, int]) -> bool:
    """A later step or a closing line follows in the same file, or steps were logged long after it where the two clocks are moments; or it is an exception
    from which the run went on before, and more than its last words follow. A job that a scheduler ends may write on for the seconds until it is killed
    (Slurm's KillWait): a few values."""
    few = GRACE * reach.interval(run) if e["kind"] == "scheduler" else 0
    if closed.get(str(e["source"]), -1) > (e["at"] or 0) or endings.steps_after(run, e) > few:
        return True
    line = endings.last_lines(run).get(str(e["source"]))
    if e["kind"] == "traceback" and line is not None and (line["at"] or 0) - (e["at"] or 0) > NEAR_END and endings.went_on_before(run, e):
        return True
    return endings.outlived(run, e)


def _ends_its_log(run: Run, e: Event) -> bool:
    """An error that was printed without a stack may have been caught: it counts at the end of the log that has the steps."""
    return (str(e["source"]) in endings.progress(run) or not run.attempts) and endings.stands_last(run, e, NEAR_END)


def _of_this_launch(run: Run, e: Event) -> bool:
    """Not a line of before the run began (the kernel's messages go back to the machine's last start), nor one of a log that
    has no step and prints the settings anew that the log with the steps had printed: another launch that died at once; unless
    the line names the job that the log with the steps is called after, or both are called the same but for .out and .err."""
    began = run.attempts[0]["started"] if run.attempts else None
    if began is not None and e["time"] is not None and e["time"] < began - ZONES_APART:
        return False
    stepped, printed, source = endings.progress(run), _printed_settings(run), str(e["source"])
    if source in stepped or e["rank"] or any(job in log for job in fatal_lines.JOB.findall(str(e["text"])) for log in stepped):
        return True
    if any(STREAM.sub("", source) == STREAM.sub("", log) for log in stepped):
        return True
    mine = printed.get(source, frozenset())
    return not any(len(mine & printed.get(log, frozenset())) >= ANEW for log in stepped)


@once
def _printed_settings(run: Run) -> dict[str, frozenset[str]]:
    """Log -> the keys of the settings that it prints."""
    logs = {s.path for s in run.sources if s.format == "console"}
    found: dict[str, set[str]] = {}
    for key, source in zip(run.tables["config"]["key"].to_pylist(), run.tables["config"]["source"].to_pylist(), strict=True):
        if source in logs:
            found.setdefault(source, set()).add(key)
    return {source: frozenset(keys) for source, keys in found.items()}


def _closed_elsewhere(fatal: list[Event], last: list[Event], closed: dict[str, int]) -> bool:
    """Another file has a closing line, and no exit code speaks against it. One of the same job's other stream closes the loop alone: what dies behind it
    (an export, a last test) dies all the same."""
    streams = {STREAM.sub("", str(e["source"])) for e in fatal}
    elsewhere = {source for source in closed.keys() - {e["source"] for e in fatal} if STREAM.sub("", source) not in streams}
    return bool(elsewhere) and not any(o["level"] == "error" and fatal_lines.CONSEQUENCE.search(str(o["text"])) for o in last)


def _told(run: Run, kind: str, e: Event, step: int | None) -> Ending:
    planned = planned_steps(run)
    return Ending(kind, fatal_lines.words(e), run.where(e["source"], e["at"]), fatal_lines.rank(run, e), step is None, step, planned)

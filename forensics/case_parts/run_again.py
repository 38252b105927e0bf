"""Whether to start a run again, from where, and what to do first: one answer for the run's page and for the audit's row.

`not yet` means: look first. What a cause asks for first may change nothing by itself (print, compare, replay), and acting on an open cause is
a guess.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from forensics.case import Finding, Hypothesis
from forensics.causes.files import UNKNOWN, causes
from forensics.certainty import OPEN, of_cause, within
from forensics.checkpoints.run_saves import trouble_from
from forensics.detectors import divergence, loss_spike, nonfinite
from forensics.findings import GRAVE
from parsers.lazy_regex import lazy_re

LONGEST, SENTENCE = 160, lazy_re(r"\.\s+(?=[A-Z])")  # characters of what to do; where a sentence ends
BACK, KEEP, LOG = ("Resume from", "Go back to the checkpoint"), "Keep the run", "Log "
LOOKS = (  # they change nothing by themselves
    "Look ", "Print ", "Check ", "Find ", "Compare ", "Decide ", "Read ", "Count ", "Overfit ", "Profile ", "Evaluate ", "Report ", "Run a ", "Run ten ",
    "Run the step ", "Train a ", "With the data at hand", "Without labels: look", "Of trees, look", "Then look", "Do not trust",
)  # fmt: skip
# harmless in a run that finished all the same
PASSING = ("restart", "throughput", "stall", "memory", "grad_spike", "loss_spike", "nonfinite")
NOTHING = "Nothing needs doing."
INTERRUPTED = "Nothing measured needs fixing; the run did not come to its own end: resume it if it was to go on."
UNFINISHED = ("cut", "interrupt", "scheduler", "signal")  # endings that the training did not choose
NOT_OURS = {
    "interrupt": "stopped by hand: its owner knows why",
    "cut": "the log just stops: look whether its process lives (ps, nvidia-smi), and what the scheduler or the kernel wrote of it (sacct, dmesg)",
    "unknown": "nothing says whether it finished",
}
Told = tuple[str | None, str]  # (what is said, or None; why nothing is)


def of(verdict: str, run: dict[str, Any], hypotheses: Sequence[Hypothesis], findings: Sequence[Finding], saved: bool) -> dict[str, Any]:
    """``run.again`` of case.json; `run`: its other keys. `saved`: the log tells of checkpoints, wherever they are."""
    lasting = not all(map(_passed, (f for f in findings if f.severity in GRAVE)))
    told = {"lasting": lasting, "saved": saved, "trouble_from": trouble_from(findings)}
    return told | ranked_anew(verdict, run | {"again": told}, hypotheses)


def ranked_anew(verdict: str, run: dict[str, Any], hypotheses: Sequence[Hypothesis]) -> dict[str, Any]:
    """The same with other causes in front: what was measured stays."""
    first = first_action(verdict, run, hypotheses)
    says, why = _says(verdict, run, hypotheses, first)
    known: dict[str, Any] = run["again"] | {"answer": _answer(says), "says": says, "why": why, "first": first}
    return known


def _answer(says: str | None) -> str | None:
    return next((a for a in ("yes", "not yet", "no") if says and says.startswith(a)), None)


def first_action(verdict: str, run: dict[str, Any], hypotheses: Sequence[Hypothesis]) -> str:
    """What comes first on the page; empty where only more logs could tell."""
    leader = hypotheses[0] if hypotheses else None
    if leader is None or leader.id == UNKNOWN or (verdict == "healthy" and run["status"] != "stopped"):
        if verdict == "healthy":
            return INTERRUPTED if run["ending"]["kind"] in UNFINISHED else NOTHING
        return next((h.settle for h in hypotheses[:3] if h.settle), "") if verdict == "unhealthy" else ""
    if _is_open(leader) and verdict == "unhealthy":
        return next((h.settle for h in hypotheses[:3] if h.settle), _first(leader))
    return _first(leader) if run["ending"]["kind"] != "interrupt" or verdict != "healthy" else INTERRUPTED


def _first(leader: Hypothesis) -> str:
    return next(iter(leader.interventions), "")


def _is_open(leader: Hypothesis) -> bool:
    return leader.id == UNKNOWN or of_cause(leader.title, leader.probability, True) == OPEN


def _says(verdict: str, run: dict[str, Any], hypotheses: Sequence[Hypothesis], first: str) -> Told:
    status, kind = run["status"], run["ending"]["kind"]
    if status == "running":
        return "no: it is still running", ""
    if verdict == "unhealthy":
        return _of_trouble(run, hypotheses, first)
    if status == "finished":
        return ("no: finished and healthy", "") if verdict == "healthy" else (None, "cannot tell whether it is healthy")
    if kind in NOT_OURS:
        return None, NOT_OURS[kind]
    return _do(run, hypotheses[:1], first) if first else (None, "why it ended is open")


def _of_trouble(run: dict[str, Any], hypotheses: Sequence[Hypothesis], first: str) -> Told:
    if run["status"] == "finished" and not run["again"]["lasting"]:
        return "no: finished, and what went wrong did not last", ""
    leader = hypotheses[0] if hypotheses else None
    if leader is None or _is_open(leader):
        how = SENTENCE.split(first, maxsplit=1)[0]  # what the outcomes would mean, the page says
        return (f"not yet, its cause is open: {_shortened(how)}", "") if how else (None, "its cause is open")
    cause = causes().get(leader.id)
    if cause is not None and cause.no_rerun:
        return f"no: {cause.no_rerun}", ""
    if first.startswith(KEEP):
        return f"no: {_shortened(first)}", ""
    return _do(run, [leader], first) if first else (None, f"nothing is known that fixes {within(leader.title)}")


def _do(run: dict[str, Any], leader: Sequence[Hypothesis], first: str) -> Told:
    """Yes, with what to change; or not yet, with what to look at before."""
    start = _start(run)
    others = [text for h in leader for text in h.interventions if text != first and not text.startswith((*LOOKS, *BACK, LOG))]
    then = f"{_shortened(others[0])}" if others else ""
    if first.startswith(LOOKS):
        look = _shortened(first)
        word = " Then" if look.endswith("?") else "; then"
        later = f"{word}, {start}: {then}" if then else f"{word} go on {start}" if run["last_healthy_checkpoint"] else ""
        return f"not yet: {look}{later}", ""
    parts = [then] if first.startswith(BACK) else [_shortened(first), then] if first.startswith(LOG) else [_shortened(first)]
    return f"yes, {start}: {'; '.join(filter(None, parts)) or 'go on'}", ""


def _start(run: dict[str, Any]) -> str:
    if run["last_healthy_checkpoint"]:
        return f"from {run['last_healthy_checkpoint']['path']}"
    return "from a checkpoint that was not among its files" if run["again"]["saved"] and run["checkpoints"] is None else "from the start"


def _shortened(text: str) -> str:
    said = within(text).rstrip(".")
    return said if len(said) <= LONGEST else said[: LONGEST - 1].rstrip() + "\u2026"


def _passed(f: Finding) -> bool:
    if isinstance(f.facts, nonfinite.Facts) and not f.facts.recovered:
        return False
    return f.kind in PASSING and not lasts(f.facts)


def lasts(facts: Any) -> bool:
    """Whether the facts of a finding are of a loss that never recovered."""
    if isinstance(facts, nonfinite.Facts):
        return facts.recovered is False and facts.metric.startswith("loss")
    if isinstance(facts, loss_spike.Facts):
        return facts.class_ == "non_recovering" and facts.alive and not facts.censored
    return isinstance(facts, divergence.Facts) and facts.above_first is None

"""The runs of one place, where a case is of one of several: why it is this one, and what is said of each of the others."""

from __future__ import annotations

from typing import Any

from reports import text_format

Case = dict[str, Any]
VERDICTS = ("unhealthy", "inconclusive", "healthy")  # the worst first, as in the case
OPEN, SHOWN = 4, 100  # of the others: so many are not folded on the page, so many are shown at all
ANSWER = 100  # characters of an answer in a line of the terminal


def heading(case: Case) -> str:
    """'4 runs lie here, 2 of them unhealthy; of these this one ran last'; empty where there is one run. Takes a case that
    ``schema.complete`` filled."""
    others = case["run"]["siblings"]
    if not others:
        return ""
    here = f"{len(others) + 1} runs lie here"
    if any(c["id"] == "seed_spread" and c["status"] in ("fired", "clear") for c in case["checks"]):
        return f"{here}, of one configuration under several seeds; this case is of them all"
    told = [o["verdict"] for o in others]
    if not any(told):
        return f"{here}; the others were not judged with this one"
    mine = case["verdict"]
    counts = text_format.joined([f"{n} {v}" for v in VERDICTS if (n := [mine, *told].count(v))])
    if any(_rank(v) < _rank(mine) for v in told):
        return f"{here}: {counts}"
    alike = [o for o in others if o["verdict"] == mine]
    if not alike:
        return f"{here}, and this one is the worst: {counts}"
    of_them = f"all {mine}" if len(alike) == len(others) else f"{len(alike) + 1} of them {mine}"
    return f"{here}, {of_them}; {'of these this one ran last' if _ran_last(case, alike) else 'no clock tells which of these ran last'}"


def _rank(verdict: str) -> int:
    return VERDICTS.index(verdict) if verdict in VERDICTS else len(VERDICTS)


def _ran_last(case: Case, others: list[Case]) -> bool:
    ended = case["run"]["attempts"][-1]["ended"] if case["run"]["attempts"] else ""
    return bool(ended) and all(o["ended"] < ended for o in others)


def lines(case: Case) -> list[str]:
    """For the terminal: the heading, then one line for each of the others with the command that opens it."""
    others = case["run"]["siblings"]
    if not others:
        return []
    shown = others[:SHOWN]
    wide = max(len(o["command"]) for o in shown)
    more = [f"  and {len(others) - SHOWN} more; `forensics audit` gives each a row"] if len(others) > SHOWN else []
    said = [f"  {o['verdict'] or 'not judged':<12}  {o['command']:<{wide}}  {short(o)}".rstrip() for o in shown]
    return [f"{heading(case)}. This report covers {case['run']['id']}; the others:", *said, *more]


def short(other: Case) -> str:
    return text_format.cut(text_format.one_line(other["answer"]), ANSWER)

"""What the first screen says, as plain data: when, why, or else, cost, last healthy checkpoint, what to do next.

Shared by the page, the Markdown and the terminal, so that all three tell the same story. The sentences that this module
adds are about the case itself (what is open, what is missing); everything about training comes from the case.
"""

from __future__ import annotations

import shlex
from bisect import bisect_left
from itertools import pairwise
from typing import Any

from reports import words

Case = dict[str, Any]
SEVERITIES = ("critical", "warning", "info")


def causes(case: Case) -> list[dict[str, Any]]:
    """The causes that still compete (one that the author ruled out stays in the case and on the page)."""
    return [h for h in case["hypotheses"] if not h.get("ruled_out")]


def top(case: Case) -> dict[str, Any] | None:
    """The leading cause where there is something to explain."""
    ranked = causes(case)
    return ranked[0] if ranked and case["verdict"] != "healthy" else None


def ruled_out(case: Case) -> list[tuple[str, str]]:
    """(title, the author's reason) of each cause that the author ruled out."""
    found = [(h, h["ruled_out"]) for h in case["hypotheses"] if h.get("ruled_out")]
    return [(str(h.get("title")), str(why.get("because") if isinstance(why, dict) else why)) for h, why in found]


def remarks(case: Case) -> list[str]:
    """What the author added."""
    return [str(n.get("text") if isinstance(n, dict) else n) for n in case["notes"]]


def is_open(case: Case) -> bool:
    """Whether no cause leads clearly enough to be acted on alone."""
    leader = top(case)
    return leader is not None and (leader["probability"] < 0.55 or leader.get("id") == "unknown")


def why(h: dict[str, Any], first: bool = True) -> str:
    """'almost certain, 98 %'"""
    return f"{words.certainty(h['probability'], first)}, {words.percent(h['probability'])}"


def alternatives(case: Case, limit: int = 3) -> list[dict[str, Any]]:
    return causes(case)[1 : limit + 1]


def times(case: Case, step: Any) -> list[tuple[int, str]]:
    """(attempt, wall clock) of a step in every life that passed it, earliest life first."""
    found = []
    for life in case["timeline"]["clock"]:
        points = life["points"]
        at = [p[0] for p in points]
        if not isinstance(step, (int, float)) or not points or not at[0] <= step <= at[-1]:
            continue
        i = bisect_left(at, step)
        (s1, t1), (s0, t0) = points[i], points[i - 1] if i else points[i]
        stamp = words.stamp(t1 if s1 == s0 else t0 + (t1 - t0) * (step - s0) / (s1 - s0))
        if stamp:
            found.append((life["attempt"], stamp))
    return found


def when(case: Case) -> tuple[str, str]:
    """(steps, wall clock) of what the leading cause explains; else of the first serious finding; else of the run."""
    leader = top(case)
    serious = [f for f in case["findings"] if f.get("severity") in SEVERITIES[:2]]
    cited = [f for f in serious if leader and any(f.get("id") in (c.get("findings") or []) for c in leader["clues"])]
    for pair in [leader.get("steps") if leader else None, *(f.get("steps") for f in cited + serious)]:
        text = words.steps(pair)
        if text and case["verdict"] != "healthy":
            return text, _clock(case, pair, cited + serious)
    run = case["run"]
    first, last = (run.get("steps") or [None, None])[:2]
    begin, end = times(case, first), times(case, last)
    return words.steps(run.get("steps")), words.period([begin[0][1], end[-1][1]]) if begin and end else ""


def _clock(case: Case, pair: Any, findings: list[dict[str, Any]]) -> str:
    begin, end = times(case, pair[0]), dict(times(case, pair[1]))
    if not begin:
        known = [f["times"] for f in findings if f.get("steps") == list(pair) and f.get("times")]
        return words.period(known[0]) if known else ""
    attempt, first = begin[0]
    if end and attempt not in end:  # it runs over more than one life
        return words.period([first, max(end.values())])
    text = words.period([first, end.get(attempt)])
    return text + (f"; again {words.moment(begin[-1][1])}" if len(begin) > 1 else "")


def cost(case: Case) -> str:
    """What it cost in steps: done twice, and spent until the loss was back."""
    attempts = [a["steps"] for a in case["run"]["attempts"] if None not in (a.get("steps") or [None])]
    again = sum(max(0, a[1] - b[0] + 1) for a, b in pairwise(attempts))
    spent = sum(s.get("cost_steps") or 0 for s in case["spikes"] if s.get("class") != "not_a_spike")
    parts = [f"{words.plural(again, 'step')} done twice"] if again else []
    return "; ".join(parts + ([f"{words.plural(spent, 'step')} until the loss was back"] if spent else []))


def goodput(case: Case) -> str:
    """How much of the work was of use, in one line; nothing where nothing interrupted the run."""
    found = case["run"].get("goodput")
    known = {k: v for k, v in found.items() if isinstance(v, (int, float))} if isinstance(found, dict) else {}
    if not known.get("interruptions") or min(known.get("share_steps", 0), known.get("share_time", 0)) >= 1:
        return ""
    shares = [("share_steps", "of the steps"), ("share_time", "of the wall clock")]
    parts = [f"{words.percent(known[key])} {of}" for key, of in shares if key in known]
    line = " and ".join(parts) + " of use; " if parts else ""
    line += words.plural(int(known["interruptions"]), "interruption")
    if "seconds_between" in known:
        line += f", one in {words.duration(known['seconds_between'])} of running"
    if "checkpoint_every_steps" in known:
        line += f"; saved every {words.plural(int(known['checkpoint_every_steps']), 'step')}"
        line += f", Young's rule says every {known['best_every_steps']}" if "best_every_steps" in known else ""
    return line


def checkpoint(case: Case) -> str:
    """The last healthy checkpoint, as path and step, with the warning where the run is about to delete it."""
    found = case["run"].get("last_healthy_checkpoint")
    if not isinstance(found, dict):
        return f"`{found}`" if found else ""
    text = f"`{found.get('path', '?')}`" + (f", step {found['step']}" if found.get("step") is not None else "")
    return text + (f". {str(found['warning'])[:1].upper()}{str(found['warning'])[1:]}" if found.get("warning") else "")


def suspects(case: Case, limit: int = 3) -> list[str]:
    """The samples that are blamed, one line a step."""
    lines = []
    for c in case["culprits"][:limit]:
        ids = c.get("samples") or []
        samples = words.number(ids)
        sure = f"{c.get('how', '?')}, {words.percent(c.get('confidence'))}"
        lines.append(
            f"step {c.get('step')}: "
            + (f"sample{'s' * (len(ids) > 1)} {samples} ({sure})" if ids else f"its batch ({sure})")
        )
    hidden = len(case["culprits"]) - limit
    return lines + ([f"and {words.plural(hidden, 'step')} more"] if hidden > 0 else [])


def looked_at(case: Case, limit: int = 5) -> list[str]:
    """What `--data` showed of the suspects, or why nothing; [] where it was not asked for."""
    found = case.get("suspects")
    if not found:
        return []
    if found["why"]:
        return [f"{found['data']} was not looked at: {found['why']}"]
    asked = f"{words.plural(int(found.get('looked_at') or 0), 'sample')} of {found['data']} compared with {found.get('random')} random rows"
    return [f"{asked}: nothing stands out"] if not found["lines"] else [*found["lines"][:limit], asked]


def counted(case: Case) -> str:
    """'1 critical, 2 warnings' among the findings."""
    n = {s: sum(f.get("severity") == s for f in case["findings"]) for s in SEVERITIES}
    parts = [f"{n['critical']} critical"] if n["critical"] else []
    parts += [words.plural(n["warning"], "warning")] if n["warning"] else []
    return ", ".join(parts) or ("no symptom worth a warning" if case["findings"] else "no symptom")


def first_step(pair: Any) -> float:
    """Where a finding is sorted; one without a step comes first."""
    first = pair[0] if isinstance(pair, (list, tuple)) and pair else None
    return float(first) if isinstance(first, (int, float)) and not isinstance(first, bool) else -1.0


def by_status(case: Case, *status: str) -> list[dict[str, Any]]:
    return [c for c in case["checks"] if c.get("status") in status]


def do_next(case: Case) -> list[tuple[str, str]]:
    """The first things to do, quickest first: (lead-in, text or command of the case)."""
    leader = top(case)
    blind = [b for b in case["blind_spots"] if b.get("would_tell")]
    log = [(f"Next time log `{b.get('what')}`, which would show", str(b["would_tell"])) for b in blind]
    if case["verdict"] == "healthy":
        return [("", "Nothing needs doing."), *log[:2]]
    if leader is None:
        return log[:3]
    if is_open(case):  # acting on a guess is worse than deciding first: the commands that split the leaders
        by_text: dict[str, list[str]] = {}
        for h in causes(case)[:3]:
            if h.get("settle"):
                by_text.setdefault(str(h["settle"]), []).append(str(h.get("title")))
        split = [
            ("To settle " + " and ".join(f"\u201c{t}\u201d" for t in titles) + ":", text)
            for text, titles in by_text.items()
        ][:2]
        return split + [("", str(i)) for i in leader["interventions"][:1]] + log[:1]
    steps = [("", str(i)) for i in leader["interventions"][:3]]
    return steps + ([("To settle it:", str(leader["settle"]))] if leader.get("settle") else [])


def look(case: Case) -> str:
    """The command that prints the suspect batch."""
    step = next((c.get("step") for c in case["culprits"]), None)
    path = case["run"].get("path")
    return f"forensics batch {shlex.quote(words.one_line(path))} --step {step}" if step is not None and path else ""

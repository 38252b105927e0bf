"""What the first screen says, as plain data: status, headline, when, which cause. The rows below are first_rows, what to do is do_next.

Shared by the page, the Markdown and the terminal, so that all three tell the same story. The sentences that this module
adds are about the case itself (what is open, what is missing); everything about training comes from the case.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import Any

from reports import replay_section, text_format

Case = dict[str, Any]
TELLING = ("loss_spike", "nonfinite", "divergence", "grad_spike", "plateau", "throughput")  # of the clear checks, first
SEVERITIES = ("critical", "warning", "info")
LEAST = 0.01  # probability below which a cause is not worth the first screen
TIED = 0.02  # of probability: what the weights cannot tell apart is not ranked on the first screen
QUOTED = 60  # unit: characters of a log line in the headline; a longer one has a row of its own
SURE = 0.95  # probability from which nothing is left to settle ("almost certain", forensics.certainty)


def causes(case: Case) -> list[dict[str, Any]]:
    """The causes that still compete (one that the author ruled out stays in the case and on the page)."""
    return [h for h in case["hypotheses"] if not h.get("ruled_out")]


def top(case: Case) -> dict[str, Any] | None:
    """The leading cause where there is something to explain."""
    ranked = causes(case)
    idle = case["verdict"] == "healthy" or (case["verdict"] == "inconclusive" and ranked and ranked[0].get("id") == "unknown")
    return ranked[0] if ranked and not idle else None


def ruled_out(case: Case) -> list[tuple[str, str]]:
    """(title, the author's reason) of each cause that the author ruled out."""
    found = [(h, h["ruled_out"]) for h in case["hypotheses"] if h.get("ruled_out")]
    return [(str(h.get("title")), str(why.get("because") if isinstance(why, dict) else why)) for h, why in found]


def remarks(case: Case) -> list[str]:
    """What the author added."""
    return [str(n.get("text") if isinstance(n, dict) else n) for n in case["notes"]]


def config_file(case: Case) -> str:
    """What a settings file that came with the run changed; empty where there was none."""
    found = case["run"].get("config_file")
    if not isinstance(found, dict):
        return ""
    changes = found.get("changes")
    said = text_format.joined([str(c) for c in changes], 5) if isinstance(changes, list) and changes else "it changes nothing here"
    return f"{found.get('path')} in the run folder decides what tags mean: {said}. --no-run-config leaves it out."


def is_open(case: Case) -> bool:
    """Whether no cause leads clearly enough to be acted on alone."""
    leader = top(case)
    return leader is not None and (leader["certainty"] == "open" or leader.get("id") == "unknown")


def why(h: dict[str, Any]) -> str:
    """'almost certain, 98 %'"""
    return f"{h['certainty']}, {text_format.percent(h['probability'])}"


def leading(case: Case) -> list[dict[str, Any]]:
    """The serious findings in the order in which they lead: gravest, then what speaks for the leading cause, then earliest."""
    leader = top(case)
    cited = {i for c in (leader["clues"] if leader else []) if (c.get("weight") or 0) > 0 for i in c.get("findings") or []}
    serious = [f for f in case["findings"] if f.get("severity") in SEVERITIES[:2]]
    return sorted(serious, key=lambda f: (SEVERITIES.index(f["severity"]), f.get("id") not in cited, first_step(f.get("steps"))))


def proof(case: Case) -> list[dict[str, Any]]:
    """The findings that prove the leading cause, in the order in which its clues cite them; then the serious ones as they lead."""
    leader = top(case)
    clues = leader["clues"] if leader and leader.get("id") != "unknown" else []
    # the first clue is the effect that the cause explains, whatever it weighs
    cited = [i for n, c in enumerate(clues) if not n or (c.get("weight") or 0) > 0 for i in c.get("findings") or []]
    by_id = {f.get("id"): f for f in case["findings"]}
    told = [by_id[i] for i in dict.fromkeys(cited) if i in by_id]
    return [*told, *(f for f in leading(case) if f not in told)]


def alternatives(case: Case, limit: int = 3, least: float = LEAST) -> list[dict[str, Any]]:
    """What else it may be: the next causes, without those that are as good as ruled out."""
    return [h for h in causes(case)[1 : limit + 1] if (h.get("probability") or 0) >= least]


def named(case: Case) -> str:
    """The leading cause by its title; of causes as likely as it, the titles with "or" between them."""
    ranked = causes(case)
    best = ranked[0].get("probability") or 0
    titles = [str(h.get("title")) for h in ranked[:3] if best - (h.get("probability") or 0) < TIED]
    return " or ".join([titles[0], *(t[:1].lower() + t[1:] if t.split(" ")[0][1:].islower() else t for t in titles[1:])])


def headline(case: Case) -> str:
    """The answer without what stands below it: a long quoted line ("Log says"), and that the run finished (the status)."""
    answer, ended = str(case.get("answer") or "No answer was written."), case["run"]["ending"]
    says = ended["says"].rstrip(". ")
    if ended["kind"] == "finished" and says:
        return re.sub(rf' The run finished(, by the look of it)?: "?{re.escape(says)}"?\.$', "", answer)
    at = answer.find(f": {says[:QUOTED]}") if len(says) > QUOTED else -1
    if at < 0:
        return answer
    end = at + 2 + len(says) if says in answer else answer.find("\u2026", at) + 1
    return f"{answer[:at]}.{answer[end:].removeprefix('.')}" if end > at else answer


def times(case: Case, step: Any) -> list[tuple[int, str]]:
    """(attempt, wall clock) of a step in every attempt that passed it, earliest attempt first."""
    found = []
    for attempt in case["timeline"]["clock"]:
        points = attempt["points"]
        at = [p[0] for p in points]
        if not isinstance(step, (int, float)) or not points or not at[0] <= step <= at[-1]:
            continue
        i = bisect_left(at, step)
        (s1, t1), (s0, t0) = points[i], points[i - 1] if i else points[i]
        stamp = text_format.stamp(t1 if s1 == s0 else t0 + (t1 - t0) * (step - s0) / (s1 - s0))
        if stamp:
            found.append((attempt["attempt"], stamp))
    return found


def when(case: Case) -> tuple[str, str]:
    """(steps, wall clock) of what the leading cause explains; else of the first serious finding; else of the run."""
    leader = top(case)
    serious = [f for f in case["findings"] if f.get("severity") in SEVERITIES[:2]]
    cited = [f for f in serious if leader and any(f.get("id") in (c.get("findings") or []) for c in leader["clues"])]
    run = case["run"]
    said = [leader] * (leader is not None) + cited
    narrow = [told for told in said if told.get("steps") != text_format.axis(run)]  # "steps 0 to the end" says least
    for told in [*narrow, *said, *serious]:
        text = text_format.at(run, told)
        if text and case["verdict"] != "healthy":
            return text, _clock(case, told["steps"], cited + serious)
    first, last = text_format.axis(run)
    begin, end = times(case, first), times(case, last)
    return text_format.reach(run), text_format.period([begin[0][1], end[-1][1]]) if begin and end else ""


def _clock(case: Case, pair: Any, findings: list[dict[str, Any]]) -> str:
    begin, end = times(case, pair[0]), dict(times(case, pair[1]))
    if not begin:
        known = [f["times"] for f in findings if f.get("steps") == list(pair) and f.get("times")]
        return text_format.period(known[0]) if known else ""
    attempt, first = begin[0]
    if end and attempt not in end:  # it runs over more than one attempt
        return text_format.period([first, max(end.values())])
    text = text_format.period([first, end.get(attempt)])
    return text + (f"; again {text_format.moment(begin[-1][1])}" if len(begin) > 1 else "")


def counted(case: Case) -> str:
    """'1 critical, 2 warnings' among the findings."""
    n = {s: sum(f.get("severity") == s for f in case["findings"]) for s in SEVERITIES}
    parts = [f"{n['critical']} critical"] if n["critical"] else []
    parts += [text_format.plural(n["warning"], "warning")] if n["warning"] else []
    return ", ".join(parts) or ("no symptom worth a warning" if case["findings"] else "no symptom")


def status(case: Case) -> tuple[str, str]:
    """How well the cause is known, in words, and what was found: ("Cause almost certain", "1 warning"), ("Cause open", "2 warnings"),
    ("Nothing found", "in 23 of 60 checks; the others had no data")."""
    clear = by_status(case, "clear")
    checked = f"in {len(clear)} of {text_format.plural(len(case['checks']), 'check')}"
    checked += "; the others had no data" if by_status(case, "cannot_tell", "error") else ""
    if case["verdict"] == "unhealthy":
        return f"Cause {doubt(case)}", counted(case)
    if case["verdict"] == "healthy":
        return "Nothing found", checked
    return "Inconclusive", f"nothing found {checked}" if not case["findings"] else counted(case)


def doubt(case: Case) -> str:
    """How sure the leading cause is, in one word or a few; "proven by replay" where a replay showed it."""
    leader = top(case)
    if leader is None or is_open(case):
        return "open"
    return "proven by replay" if replay_section.logs_alone(case) is not None else str(leader["certainty"])


def first_step(pair: Any) -> float:
    """Where a finding is sorted; one without a step comes first."""
    first = pair[0] if isinstance(pair, (list, tuple)) and pair else None
    return float(first) if isinstance(first, (int, float)) and not isinstance(first, bool) else -1.0


def by_status(case: Case, *status: str) -> list[dict[str, Any]]:
    return [c for c in case["checks"] if c.get("status") in status]


def would_have_seen(case: Case, most: int = 4) -> list[dict[str, Any]]:
    """The clear checks that carry a clean bill of health, with the smallest effect each could have seen."""
    known = {c.get("id"): c for c in by_status(case, "clear") if c.get("smallest_effect")}
    return [known[i] for i in (*(i for i in TELLING if i in known), *(i for i in known if i not in TELLING))][:most]

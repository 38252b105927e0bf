"""What the first screen says, as plain data: when, why, or else, cost, last healthy checkpoint, what to do next.

Shared by the page, the Markdown and the terminal, so that all three tell the same story. The sentences that this module
adds are about the case itself (what is open, what is missing); everything about training comes from the case.
"""

from __future__ import annotations

import shlex
from bisect import bisect_left
from typing import Any

from reports import text_format
from reports.checkpoint_table import last_healthy as last_healthy
from reports.costs import cost as cost
from reports.costs import goodput as goodput
from reports.suspects import how_to_read as how_to_read
from reports.suspects import looked_at as looked_at
from reports.suspects import suspects as suspects

Case = dict[str, Any]
TELLING = ("loss_spike", "nonfinite", "divergence", "grad_spike", "plateau", "throughput")  # of the clear checks, first
SEVERITIES = ("critical", "warning", "info")
UNFINISHED = ("cut", "interrupt", "scheduler", "signal")  # endings that the training did not choose
LEAST = 0.01  # probability below which a cause is not worth the first screen
SURE = 0.95  # probability from which nothing is left to settle ("almost certain", forensics.certainty)
MOST = 4  # things to do next
INTERRUPTED = "Nothing measured needs mending; the run did not come to its own end: resume it if it was to go on."


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


def alternatives(case: Case, limit: int = 3, least: float = LEAST) -> list[dict[str, Any]]:
    """What else it may be: the next causes, without those that are as good as ruled out."""
    return [h for h in causes(case)[1 : limit + 1] if (h.get("probability") or 0) >= least]


def told_in(case: Case) -> str:
    """Where the line stands that tells how the run ended, as code."""
    where = case["run"]["ending"]["where"]
    return f"told in `{where}`" if where else ""


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
    said = [leader.get("steps") if leader else None, *(f.get("steps") for f in cited)]
    narrow = [pair for pair in said if pair != text_format.axis(run)]  # "steps 0 to the end" says least
    for pair in [*narrow, *said, *(f.get("steps") for f in serious)]:
        text = text_format.steps(pair, text_format.axis_unit(run))
        if text and case["verdict"] != "healthy":
            return text, _clock(case, pair, cited + serious)
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


def status(case: Case) -> str:
    """'explained, 1 warning', 'one cause leads, 1 critical', 'cause open, 2 warnings', 'nothing found in 23 of 60 checks'; the others had no data."""
    leader = top(case)
    if case["verdict"] == "unhealthy":
        known = leader is not None and not is_open(case)
        sure = known and (leader or {}).get("probability", 0) >= SURE
        return f"{'explained' if sure else 'one cause leads' if known else 'cause open'}, {counted(case)}"
    clear = by_status(case, "clear")
    return (
        f"nothing found in {len(clear)} of {text_format.plural(len(case['checks']), 'check')}"
        if case["verdict"] == "healthy"
        else counted(case)
    )


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


def do_next(case: Case) -> list[tuple[str, str]]:
    """The first things to do, quickest first: (lead-in, text or command of the case)."""
    leader = top(case)
    blind = [b for b in case["blind_spots"] if b.get("would_tell")]
    lead = "Log" if case["verdict"] == "healthy" else "Next time log"
    log = [(f"{lead} `{b.get('what')}`, which would show", f"{str(b['would_tell']).rstrip('.')}.") for b in blind]
    if case["verdict"] == "healthy":
        return [("", INTERRUPTED if case["run"]["ending"]["kind"] in UNFINISHED else "Nothing needs doing."), *log[:2]]
    if leader is None:
        return log[:3]
    if is_open(case):  # acting on a guess is worse than deciding first: what splits the leaders
        steps = [*_decide(causes(case)[:3])[:2], *_commands(case), *(("", str(i)) for i in leader["interventions"][:1])]
        return [*steps, *log[:1]][:MOST]
    settle = [("To settle it:", str(leader["settle"]))] if leader.get("settle") and (leader.get("probability") or 0) < SURE else []
    last = [*settle, *_commands(case)]
    return [*(("", str(i)) for i in leader["interventions"][: max(MOST - len(last), 1)]), *last][:MOST]


def _decide(leaders: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """What settles the leading causes; one experiment that is told from either's side is told once."""
    by_experiment: dict[str, tuple[list[str], str]] = {}
    for h in leaders:
        if text := str(h.get("settle") or ""):
            titles, _ = by_experiment.setdefault(text.split(". If ")[0], ([], text))
            titles.append(f"\u201c{h.get('title')}\u201d")
    return [(f"To {'settle' if len(t) == 1 else 'decide between'} {text_format.joined(t)}:", text) for t, text in by_experiment.values()]


def _commands(case: Case) -> list[tuple[str, str]]:
    """Commands to paste that do what the sentences ask for: print the suspect batch, run the steps again."""
    path = case["run"].get("path")
    leader = top(case)
    if not path or leader is None or case["verdict"] != "unhealthy":
        return []
    run = shlex.quote(text_format.one_line(path))
    step = next((c.get("step") for c in case["culprits"]), None)
    out = [("Look at the batch:", f"forensics batch {run} --step {step}")] if step is not None else []
    asked = " ".join(str(h.get("settle") or "") for h in (causes(case)[:2] if is_open(case) else [leader]))
    if "replay" in asked.lower() and "forensics replay" not in asked and not case.get("replay"):
        out.append(("To run the steps again:", f"forensics replay {run} --adapter adapter.py"))
    return out

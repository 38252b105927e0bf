"""What to do next, quickest first: at most four things, in the imperative, for the page, Markdown and the terminal alike."""

from __future__ import annotations

import shlex
from typing import Any

from reports import text_format
from reports.first_screen import SURE, causes, is_open, top

Case = dict[str, Any]
MOST = 4  # things to do next
NOTHING = "Nothing needs doing."
INTERRUPTED = "The run did not come to its own end: resume it if it was to go on."  # of a case that an earlier version wrote
UNFINISHED = ("cut", "interrupt", "scheduler", "signal")  # endings that the training did not choose


def do_next(case: Case) -> list[tuple[str, str]]:
    """The first things to do, quickest first: (lead-in, text or command of the case)."""
    leader = top(case)
    blind = [b for b in case["blind_spots"] if b.get("would_tell")]
    lead = "Log" if case["verdict"] == "healthy" else "Next time log"
    log = [(f"{lead} `{b.get('what')}`, which would show", f"{str(b['would_tell']).rstrip('.')}.") for b in blind]
    if case["verdict"] == "healthy":
        ended = case["run"]["ending"]["kind"]
        return [("", case["run"]["again"]["first"] or (INTERRUPTED if ended in UNFINISHED else NOTHING)), *log[:2]]
    if leader is None:
        return [_read_more(case), *log[:2]]
    if is_open(case):  # acting on a guess is worse than deciding first: what splits the leaders
        steps = [*_decide(causes(case)[:3])[:2], *_commands(case), *(("", str(i)) for i in leader["interventions"][:1])]
        return [*steps, *log[:1]][:MOST]
    settle = [("To settle it:", str(leader["settle"]))] if leader.get("settle") and (leader.get("probability") or 0) < SURE else []
    last = [*settle, *_commands(case)]
    return [*(("", str(i)) for i in leader["interventions"][: max(MOST - len(last), 1)]), *last][:MOST]


def _read_more(case: Case) -> tuple[str, str]:
    """One command that may make more of what was read: name the loss, look at the tables, or read another folder."""
    run, metrics = shlex.quote(text_format.one_line(case["run"].get("path") or "RUN")), case["run"].get("metrics") or {}
    tags = [str(m.get("tag")) for name, m in metrics.items() if str(name).startswith("other/") and isinstance(m, dict) and m.get("tag")]
    if tags and not any(str(name).startswith("loss.") for name in metrics):
        tag = next((t for t in tags if "loss" in t.lower()), tags[0])
        return "If this is the loss, say so:", f"forensics analyze {run} --metric loss.train={shlex.quote(text_format.one_line(tag))}"
    if metrics:
        return "Look at everything that was read:", f"forensics tables {run} --out tables"
    return "Read the folder that holds the metrics (event files, CSV, JSON lines, trainer_state.json):", "forensics analyze FOLDER"


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

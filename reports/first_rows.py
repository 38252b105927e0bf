"""The rows of the first screen below the cause: harm, the log's own words, suspects, where to go back to, what was not checked.

The page, Markdown and the terminal show the same rows. Takes a case that ``schema.complete`` filled.
"""

from __future__ import annotations

from typing import Any

from reports import first_screen, replay_section, text_format
from reports.checkpoint_table import last_healthy
from reports.costs import cost, goodput
from reports.suspects import looked_at, suspects

Case = dict[str, Any]
Row = tuple[str, list[str]]
LINE, LINES = 300, 2  # unit: characters of a quoted log line, and such lines
PASSING = {"loss_spike", "grad_spike"}  # kinds of findings that may pass without harm
SAME = 40  # characters by which a quoted line is known
MISSED = 4  # names of what was not logged


def rows(case: Case) -> list[Row]:
    """(name, sentences) of each row that has something to say; code stands between backticks."""
    sick = case["verdict"] == "unhealthy"
    found: list[Row] = [
        ("Beware", [first_screen.config_file(case)]),
        ("Harm", harm(case) if sick else []),
        ("Log says", log_says(case)),
        ("Suspects", suspects(case)),
        ("In the data", looked_at(case)),
        ("Go back to", [go_back(case)]),
        ("Run again", [run_again(case)]),
        *(left_behind(case) if case["verdict"] == "inconclusive" else []),
        ("Not checked", [not_checked(case)]),
    ]
    kept = ((name, [t for t in told if t]) for name, told in found)
    return [(name, told) for name, told in kept if told]


def harm(case: Case) -> list[str]:
    """What it cost, and whether it lasted, as far as evaluations or a replay tell."""
    told = replay_section.of(case).get("harm")
    lasting = str(told["says"]) if isinstance(told, dict) and told.get("says") else ""
    blind = any(b["what"] == "loss.eval" for b in case["blind_spots"])
    spent = cost(case)
    if spent and blind and not lasting:
        lasting = "Evaluation was not logged: whether harm lasts is not known."
    return [spent, lasting, goodput(case)]


def log_says(case: Case) -> list[str]:
    """The lines that tell how the process died, or that nothing went wrong; else the first that speaks for the leading cause. With file and place."""
    ended, shown = case["run"]["ending"], [e for f in first_screen.leading(case) for e in f["evidence"] if e["where"]]
    texts = [e for e in shown if e["kind"] == "text" and e["data"]["lines"]]
    died = case["run"].get("status") in ("crashed", "hung", "stopped")
    if ended["says"] and ended["where"] and (died or case["verdict"] != "unhealthy"):
        also = [e for e in texts if any(ended["says"][:SAME] in line for line in e["data"]["lines"])]
        told = max((e["data"]["lines"] for e in also), key=len, default=[ended["says"]])
        told = told[:LINES]
        return [quoted(line, "" if i else ended["where"], LINE // len(told)) for i, line in enumerate(told)]
    for e in shown:
        said = [m["label"] for m in e["data"]["marks"] if any(c.isdigit() for c in m["label"])]  # a value, as it was logged
        if e["kind"] == "text" and e["data"]["lines"]:
            return [quoted(e["data"]["lines"][0], e["where"])]
        if e["kind"] == "series" and said:
            return [f"{e['title'].split(' around ')[0]}, {said[0]} (`{e['where']}`)"]
    return []


def quoted(line: str, where: str, most: int = LINE) -> str:
    """A log line as code, with where it stands."""
    said = f"`{text_format.cut(text_format.one_line(line), most).replace('`', chr(39))}`"
    return f"{said} ({where})" if where else said


def go_back(case: Case) -> str:
    """The last healthy checkpoint, and whether the training loss calls for it."""
    found = last_healthy(case)
    grave = {f["kind"] for f in case["findings"] if f["severity"] in first_screen.SEVERITIES[:2]}
    spikes = [s for s in case["spikes"] if s["class"] != "not_a_spike"]
    if not found or not spikes or grave - PASSING or any(s.get("end") is None for s in spikes):
        return found
    return f"nothing to roll back by the training loss, which came back; {'the last checkpoint before it: ' * found.startswith('`')}{found}"


def run_again(case: Case) -> str:
    """Whether to start it again and what to do first, as an audit's row says it; nothing where a healthy run came to its end."""
    again = case["run"]["again"]
    if case["verdict"] == "healthy" and case["run"]["status"] == "finished":
        return ""
    return str(again["says"] or (f"not known: {again['why']}" if again["why"] else ""))


def left_behind(case: Case) -> list[Row]:
    """What lies in a run that could not be judged: its files, and the last lines of its logs."""
    files = [f"`{s['path']}` ({s['format'] or 'not read'}, {text_format.bytes_(s.get('bytes'))})" for s in case["sources"]]
    told = [quoted(line, "" if i else log["path"]) for log in case["run"]["last_lines"] for i, line in enumerate(log["lines"])]
    return [("Lies here", [text_format.joined(files, 5)]), ("Last lines", told)]


def not_checked(case: Case) -> str:
    """'not logged: evaluation loss, checkpoints and 7 more; 36 of 62 checks had no data'"""
    missed = [text_format.metric(b["what"]) for b in case["blind_spots"]]
    unsure = len(first_screen.by_status(case, "cannot_tell", "error"))
    parts = [f"not logged: {text_format.joined(missed, MISSED)}"] if missed else []
    parts += [f"{unsure} of {text_format.plural(len(case['checks']), 'check')} had no data"] if unsure else []
    return "; ".join(parts)

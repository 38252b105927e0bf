"""A case, and what was looked up beside it, in a few hundred tokens: the answers of `forensics mcp`.

Each answer names the ids with which to ask further. None is longer than `LONGEST`; what did not fit is counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from reports import do_next, first_screen, text_format
from reports.clues import said_once
from reports.schema import complete
from reports.text_format import cut, one_line

Case = dict[str, Any]
LONGEST = 2400  # characters of an answer, some 600 tokens
SENTENCE = 220  # characters of one line in a list
CAUSES, FINDINGS, CLUES, INCIDENTS, UNSURE = 5, 8, 10, 2, 10  # entries of lists in an answer


def bounded(text: str, part: int = 1) -> str:
    """One part of a text, none longer than an answer may be; says how many there are."""
    room = LONGEST - 80
    if len(text) <= LONGEST and part == 1:
        return text
    lines = [line[i : i + room] for line in text.splitlines() for i in range(0, max(len(line), 1), room)]
    parts = [""]
    for line in lines:
        if len(parts[-1]) + len(line) >= room:
            parts.append("")
        parts[-1] += f"{line}\n"
    if not 1 <= part <= len(parts):
        return f"There is no part {part}: the text has {len(parts)}."
    return f"{parts[part - 1]}[part {part} of {len(parts)}]"


def fitted(head: Iterable[str], rows: Sequence[str], more: str = "more") -> str:
    """The head, and of the rows those that fit; the others are counted."""
    lines = [line for line in head if line]
    room = LONGEST - sum(len(line) + 1 for line in lines) - len(more) - 20
    for i, row in enumerate(rows):
        room -= len(row) + 1
        if room < 0:
            return "\n".join([*lines, f"and {len(rows) - i} {more}"])
        lines.append(row)
    return "\n".join(lines)


def _said(text: Any, most: int = SENTENCE) -> str:
    return cut(one_line(text), most)


def runs(found: Sequence[dict[str, Any]]) -> str:
    """The places of runs, the last written first."""
    rows = [f"{p['path']}  ({text_format.plural(p['files'], 'file')}, written {_when(p['written'])})" for p in found]
    return fitted([f"{text_format.plural(len(found), 'place')} with runs, the last written first:"], rows, "more; ask for a folder below")


def _when(seconds: float) -> str:
    return text_format.moment(text_format.stamp(seconds) or "") or "at an unknown time"


def analysis(case: Case) -> str:
    """Verdict, answer, causes and gravest findings with their ids, and what to do."""
    full = complete(case)
    run, ending = full["run"], full["run"]["ending"]
    head = [
        f"{one_line(run['id'])}: {full['verdict']}, {one_line(run['status'])}, {text_format.reach(run)}",
        _said(full["answer"], 500),
        f"ending: {ending['kind']}, {_said(ending['says'], 160)} ({_said(ending['where'], 80)})" if ending["where"] else "",
    ]
    causes = [f"  {_cause(h)}" for h in first_screen.causes(full)[:CAUSES] if first_screen.top(full)]
    ranked = sorted(full["findings"], key=lambda f: first_screen.SEVERITIES.index(f["severity"]))[:FINDINGS]
    rest = len(full["findings"]) - len(ranked)
    todo = [f"  {i}. {_said(f'{lead} {text}'.strip())}" for i, (lead, text) in enumerate(do_next.do_next(full), 1)]
    blind = [str(b["what"]) for b in full["blind_spots"]]
    unsure = len(first_screen.by_status(full, "cannot_tell", "error"))
    rows = [
        *(["causes (`cause` with an id has the clues for and against):", *causes] if causes else []),
        *(["findings (`finding` with an id has the evidence):"] if ranked else []),
        *("  " + _finding(full["run"], f) for f in ranked),
        *([f"  and {rest} more: `findings`"] if rest else []),
        *(["do next:", *todo] if todo else []),
        f"checked: {len(first_screen.by_status(full, 'clear'))} clear, {unsure} could not tell",
        *([f"not logged: {_said(text_format.joined(blind, 8))}"] if blind else []),
        *_others(run["siblings"]),
    ]
    return fitted(head, rows, "more lines; ask `findings` or `cause`")


def _others(siblings: Sequence[Case]) -> list[str]:
    """The other runs of the place, the worst first, as the argument `name` takes them."""
    told = [f"{one_line(o['id'])} ({o['verdict'] or 'not judged'})" for o in siblings]
    return [f"other runs there, by `name`: {_said(text_format.joined(told, 6), 300)}"] if told else []


def _cause(h: Case) -> str:
    return f"{h['id']}  {first_screen.why(h)}: {_said(h['title'], 90)}"


def _finding(run: Case, f: Case) -> str:
    at = text_format.at(run, f)
    return f"{f['severity']} {one_line(f['id'])}{f', {at}' if at else ''}: {_said(f['title'])}"


def findings(case: Case) -> str:
    """Every symptom in a line."""
    full = complete(case)
    rows = [_finding(full["run"], f) for f in sorted(full["findings"], key=lambda f: first_screen.SEVERITIES.index(f["severity"]))]
    unsure = first_screen.by_status(full, "cannot_tell", "error")
    why = [f"{c['id']} could not be checked: {_said(c['note'], 100)}" for c in unsure[:UNSURE]]
    rest = [f"nor could {len(unsure) - UNSURE} more"] if len(unsure) > UNSURE else []
    return fitted([f"{text_format.plural(len(rows), 'finding')}, the gravest first:"], [*rows, *why, *rest], "more lines")


def finding(case: Case, id: str) -> str | None:
    """One symptom with its evidence; None where the case has none of that id."""
    full = complete(case)
    f = next((f for f in full["findings"] if f["id"] == id), None)
    if f is None:
        return None
    rows = [f"{name}: {_said(text_format.number(value), 120)}" for name, value in f["facts"].items() if value not in (None, "")]
    for e in f["evidence"]:
        where = f" ({one_line(e['where'])})" if e["where"] else ""
        rows.append(f"{e['kind']}: {_said(e['title'])}{where}")
        rows += [f"  {_said(line, 160)}" for line in e["data"]["lines"][:8]]
        rows += [f"  {_said(', '.join(text_format.number(x) for x in row), 160)}" for row in e["data"]["rows"][:6]]
    cited = [h["id"] for h in full["hypotheses"] if any(id in c["findings"] for c in h["clues"])]
    rule = next((c["rule"] for c in full["checks"] if c["id"] == f["kind"]), "")
    rows += [f"speaks to the causes: {', '.join(cited)}"] if cited else []
    rows += [f"how it decides: {_said(rule, 400)}"] if rule else []
    return fitted([_finding(full["run"], f), text_format.period(f["times"])], rows, "more lines")


def cause(case: Case, id: str) -> str | None:
    """One cause with its clues for and against, what settles it and what to do; None where the case has none of that id."""
    full = complete(case)
    h = next((h for h in full["hypotheses"] if h["id"] == id), None)
    if h is None:
        return None
    clues = sorted((c for c in said_once(h["clues"]) if c["weight"]), key=lambda c: -abs(c["weight"]))[:CLUES]
    ruled = h.get("ruled_out")
    head = [_cause(h), "ruled out by the author" if ruled else "", text_format.at(full["run"], h)]
    head += [f"what settles it: {_said(h['settle'], 300)}"] if h["settle"] else []
    told = [f"  {text_format.decibans(c['weight'])}  {_said(c['text'])}{_ids(c['findings'])}" for c in clues]
    unsure = [f"  {_said(c['text'])}" for c in h["clues"] if not c["weight"]]
    rows = [
        *(["clues in decibans (+10: ten times likelier):", *told] if told else ["no clue speaks for or against it"]),
        *(["could not tell, or said nothing:", *unsure[:4]] if unsure else []),
        *(["what to do, quickest first:", *(f"  {_said(i)}" for i in h["interventions"])] if h["interventions"] else []),
        *(f"seen before: {_said(b['says'])} {one_line(b['source'])}" for b in h["seen_before"][:INCIDENTS]),
    ]
    return fitted(head, rows, "more lines")


def _ids(ids: Sequence[str]) -> str:
    return f" [{', '.join(map(one_line, ids[:3]))}]" if ids else ""


def metrics(case: Case) -> str:
    """What was logged: canonical name, tag, number of points."""
    known = complete(case)["run"]["metrics"]
    rows = [
        f"{one_line(name)}  (tag {_said(m.get('tag'), 60)}, {m.get('points')} points)" for name, m in known.items() if isinstance(m, dict)
    ]
    return fitted([f"{text_format.plural(len(rows), 'metric')}; give one of them as `metric`:"], rows)


def series(found: dict[str, Any]) -> str:
    """Some points of a metric, with its extremes."""
    first, last = found["steps"]
    unit = f", {found['unit']}" if found["unit"] else ""
    head = [f"{one_line(found['metric'])} (tag {_said(found['tag'], 80)}{unit}): {found['logged']} values from step {first} to {last}"]
    for what in ("lowest", "highest"):
        if found[what]:
            step, value, where = found[what]
            head.append(f"{what}: {text_format.number(value)} at step {step} ({one_line(where)})")
    head += [f"not finite: {found['nonfinite']}"] if found["nonfinite"] else []
    head += ["step value; thinned, extremes kept:" if len(found["points"]) < found["logged"] else "step value:"]
    return fitted(head, [f"{step} {text_format.number(value)}" for step, value in found["points"]], "more points; ask for fewer")


def lines(file: str, asked: int, found: Sequence[tuple[int, str]]) -> str:
    """Lines of a log; the one that was asked for is marked. Where they do not fit, the nearest do."""
    room = max((LONGEST - 200) // max(len(found), 1) - 12, 60)
    shown = [f"{'>' if n == asked else ' '} {n}: {_said(text, room)}" for n, text in found]
    return fitted([f"{one_line(file)}:"], shown, "more lines")


def batch(found: dict[str, Any]) -> str:
    """Which samples were in a batch."""
    samples = ", ".join(map(one_line, found["samples"][:60])) or "unknown"
    more = f" and {len(found['samples']) - 60} more" if len(found["samples"]) > 60 else ""
    head = [f"step {found['step']}: {_said(samples, 900)}{more}", f"shard {_said(found['shard'])}" if found["shard"] else "shard unknown"]
    sure = f", {text_format.percent(found['confidence'])} sure" if found["how"] == "rebuilt" else ""
    rows = [f"{name} {_said(x)}" for name, key in (("rests on", "rests_on"), ("assumed", "assumed")) for x in found.get(key) or ()]
    return fitted([*head, f"{found['how']}{sure}: {_said(found['why'], 400)}"], rows)

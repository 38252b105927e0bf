"""Findings, causes and sentences in the labels that the log prints, where the tables count something else.

Detectors, signs and causes say "step 6". Where the axis counts epochs, sentences say "epoch 6"; where it is made of epoch and iteration,
"step 2418 (epoch 9)", for "epoch 9" is what its reader finds in the log. Changed where a case is put together, once for all sentences.
What is quoted, code and options of commands stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from forensics.case import Check, Evidence, Finding, Hypothesis, Labels
from forensics.run import facts, how_it_ended, plan
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

_QUOTED = lazy_re(r'("[^"]*"|`[^`]*`)')
_COUNTED = lazy_re(r"(?<![-\w/])(S|s)tep(s?)(?= \d)|(?<=\d )(s)tep(s?)\b")
_PLACE = lazy_re(
    r"(?P<open>\()?(?<![-\w/])(?P<word>[Ss]tep|[Ee]poch)(?P<more>s?) (?P<first>\d+)(?:(?P<link> to | and )(?P<last>\d+))?(?![\d%]|[.,]\d)"
)
Say = Callable[[str], str]


def words(run: Run) -> Say | None:
    """How a sentence with steps is said in this run; None where the steps are the labels."""
    of_epochs, other = plan.unit(run) == "epoch", facts.labels_differ(run)
    label = (lambda step: facts.label(run, step)) if other else None
    if of_epochs:
        return lambda text: in_epochs(text, label)
    return (lambda text: with_epochs(text, label)) if label is not None else None


def in_epochs(text: str, label: Callable[[int], int | None] | None = None) -> str:
    """The sentence with its steps called epochs, each by its label; not within quotes."""
    said = _unquoted(text, lambda part: _COUNTED.sub(_epoch, part))
    return said if label is None else _unquoted(said, lambda part: _PLACE.sub(lambda m: _relabelled(m, label), part))


def with_epochs(text: str, label: Callable[[int], int | None]) -> str:
    """The sentence with the epoch beside each step that it names first; not within quotes."""
    told: set[str] = set()

    def beside(m: re.Match[str]) -> str:
        first, last = label(int(m["first"])), label(int(m["last"])) if m["last"] else None
        said = f"epoch {first}" if last in (None, first) else f"epochs {first}{m['link']}{last}"
        if said in told or m["word"] in ("Epoch", "epoch"):
            return m[0]
        told.add(said)
        return f"{m[0]}, {said}" if m["open"] else f"{m[0]} ({said})"

    return _unquoted(text, lambda part: _PLACE.sub(beside, part))


def _relabelled(m: re.Match[str], label: Callable[[int], int | None]) -> str:
    last = f"{m['link']}{label(int(m['last']))}" if m["last"] else ""
    return f"{m['open'] or ''}{m['word']}{m['more']} {label(int(m['first']))}{last}"


def _unquoted(text: str, change: Say) -> str:
    return "".join(part if i % 2 else change(part) for i, part in enumerate(_QUOTED.split(text)))


def _beside_lines(text: str, say: Say, logged: Sequence[str]) -> str:
    """Not in what a sentence takes from the lines ``logged``."""
    line = next((cut for said in logged for cut in (said, said[:40]) if len(cut) > 20 and cut in text), "")
    if not line:
        return say(text)
    before, after = text.split(line, 1)
    return say(before) + line + say(after)


def _epoch(m: re.Match[str]) -> str:
    return ("E" if m[1] == "S" else "e") + "poch" + (m[2] or m[4] or "")


def finding(run: Run, f: Finding[Any], say: Say) -> Finding[Any]:
    logged = [str(line) for e in f.evidence if e.kind == "text" for line in e.data.get("lines", ())]
    evidence = tuple(_evidence(e, say) for e in f.evidence)
    return replace(f, title=_beside_lines(f.title, say, logged), evidence=evidence, labels=_labels(run, (f.first_step, f.last_step)))


def answer(run: Run, text: str, say: Say) -> str:
    return _beside_lines(text, say, [how_it_ended.ending(run).says])


def _labels(run: Run, steps: Labels) -> Labels | None:
    return (facts.label(run, steps[0]), facts.label(run, steps[1])) if facts.labels_differ(run) else None


def _evidence(e: Evidence, say: Say) -> Evidence:
    marks = [m | {"label": say(str(m.get("label") or ""))} for m in e.data.get("marks", ())]
    return replace(e, title=say(e.title), data=e.data | ({"marks": marks} if marks else {}))


def hypothesis(run: Run, h: Hypothesis, say: Say) -> Hypothesis:
    clues = tuple(replace(c, text=say(c.text)) for c in h.clues)
    return replace(h, clues=clues, settle=say(h.settle), interventions=tuple(map(say, h.interventions)), labels=_labels(run, h.steps))


def check(c: Check, say: Say) -> Check:
    return replace(c, note=say(c.note), smallest_effect=say(c.smallest_effect))

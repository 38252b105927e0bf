"""Sentences of a run whose axis counts epochs: detectors, signs and causes say "step 6", and the reader of such a log knows epochs only.

Changed where a case is put together, once for all sentences. What is quoted, code and options of commands stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from forensics.case import Check, Evidence, Finding, Hypothesis
from parsers.lazy_regex import lazy_re

_QUOTED = lazy_re(r'("[^"]*"|`[^`]*`)')
_COUNTED = lazy_re(r"(?<![-\w/])(S|s)tep(s?)(?= \d)|(?<=\d )(s)tep(s?)\b")


def in_epochs(text: str, logged: Sequence[str] = ()) -> str:
    """The sentence with its steps called epochs; not within quotes, nor in what it takes from the lines ``logged``."""
    line = next((cut for said in logged for cut in (said, said[:40]) if len(cut) > 20 and cut in text), "")
    if line:
        before, after = text.split(line, 1)
        return in_epochs(before) + line + in_epochs(after)
    return "".join(part if i % 2 else _COUNTED.sub(_epoch, part) for i, part in enumerate(_QUOTED.split(text)))


def _epoch(m: re.Match[str]) -> str:
    return ("E" if m[1] == "S" else "e") + "poch" + (m[2] or m[4] or "")


def finding(f: Finding[Any]) -> Finding[Any]:
    logged = [str(line) for e in f.evidence if e.kind == "text" for line in e.data.get("lines", ())]
    return replace(f, title=in_epochs(f.title, logged), evidence=tuple(map(_evidence, f.evidence)))


def _evidence(e: Evidence) -> Evidence:
    marks = [m | {"label": in_epochs(str(m.get("label") or ""))} for m in e.data.get("marks", ())]
    return replace(e, title=in_epochs(e.title), data=e.data | ({"marks": marks} if marks else {}))


def hypothesis(h: Hypothesis) -> Hypothesis:
    clues = tuple(replace(c, text=in_epochs(c.text)) for c in h.clues)
    return replace(h, clues=clues, settle=in_epochs(h.settle), interventions=tuple(map(in_epochs, h.interventions)))


def check(c: Check) -> Check:
    return replace(c, note=in_epochs(c.note), smallest_effect=in_epochs(c.smallest_effect))

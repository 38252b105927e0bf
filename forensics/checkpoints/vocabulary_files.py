"""Vocabularies that lie with a run as files: a JSON of token to number, or a line a token (``the 4``, or ``the`` in the order of the numbers)."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

from parsers.lazy_regex import lazy_re
from parsers.loss_names import EVAL, TRAIN
from parsers.name_rules import words
from parsers.tables import Run
from parsers.walk import is_regular

LARGEST, MOST = 16 << 20, 64  # bound: bytes of one; files looked at
FEW, MOVED = 8, 0.5  # bound: tokens that both have; unit: half of them have another number. Special tokens keep theirs
_NAMED = lazy_re(r"(?i)(?:^|[\W_])(?:vocab(?:ulary|s)?|token(?:s|2id|_to_id)?|char(?:s|set|2id)?|dict(?:ionary)?|alphabet)(?:[\W_]|$)")


def apart_by_side(run: Run) -> str:
    """What tells that the vocabulary of an evaluation gives tokens other numbers than that of the training, whose file is named alike; '' where nothing does."""
    named = [s.path for s in run.sources if _NAMED.search(s.path.rpartition("/")[2])][:MOST]
    for path in (p for p in named if TRAIN.search(words(p))):
        for other in (p for p in named if EVAL.search(words(p)) and EVAL.sub("", words(p)).split() == TRAIN.sub("", words(path)).split()):
            one, two = vocabulary(run.file(path)), vocabulary(run.file(other))
            both = one.keys() & two.keys()
            moved = sum(one[k] != two[k] for k in both)
            if len(both) >= FEW and moved >= MOVED * len(both):
                return f"Of {len(both)} tokens that {path} and {other} share {moved} have another number"
    return ""


def vocabulary(path: Path) -> dict[str, int]:
    """Token -> number; empty where the file holds none."""
    if not is_regular(path) or path.stat().st_size > LARGEST:
        return {}
    text = path.read_text("utf-8", errors="replace")
    if text.lstrip()[:1] == "{":
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            return {}
        return {k: v for k, v in found.items() if type(v) is int}
    lines = [line for line in text.splitlines() if line]
    pairs = [line.rsplit(None, 1) for line in lines]
    if all(len(p) == 2 and p[1].isdigit() for p in pairs):
        return {token: int(number) for token, number in pairs}
    if any(len(line.split()) != 1 for line in islice(lines, 1000)):  # a text, no list
        return {}
    return {token: i for i, token in enumerate(lines)}

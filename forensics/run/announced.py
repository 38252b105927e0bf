"""Changes on the way that the settings of a run announce: a curriculum, a ramp of the batch size, a note that names a step; or lines of its log."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from forensics.run import endings, settings
from forensics.run.once import once
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

DATA = lazy_re(r"data|corpus|corpora|mix(?:ture)?|blend|curriculum|stages?|phases?|shards?|sources?|sampl(?:er|ing)|seq_?len", re.I)
BATCH = lazy_re(r"batch|accum|bsz|ramp", re.I)
# what the loss is made of
LOSS = lazy_re(r"weights?(?![ _-]?decay)|lambda|coeff?(?:icient)?s?$|negatives|temperature|margin|penalty|beta$|gamma$", re.I)
BEGINS = lazy_re(
    r"^(?:from|start|begin|first|at|since|until|end|switch|boundar\w{0,8}|milestones?)?_?(?:iter\w{0,8}|steps?|epochs?|batch\w{0,8}|boundar\w{0,8}|milestones?)?$",
    re.I,
)
LASTS = lazy_re(r"^(?:num_|n_)?(?:iter\w{0,8}|steps?|updates?)$", re.I)
# "stage2_start": 1000
STAGE = lazy_re(
    r"^(?:stage|phase|task|part|curriculum|switch|unfreeze|second)_?\w{0,12}?_?(?:start|begins?|from|at|step|iter|epoch)$", re.I
)
SAID = lazy_re(r"\b(?:from|at|after|since|until|by|on)\s+(?:the\s+)?(?:iter(?:ation)?s?|steps?|epochs?|update)\s*#?(\d{1,12})\b", re.I)
# "1 until 1500, 30 after"
STAGED = lazy_re(r"\buntil\s+(?:(?:iter(?:ation)?|step|epoch|update)\s*)?(\d{1,12})\b(?=.{0,60}(?:,|\bafter|\bthen)\s)", re.I)
THEN = lazy_re(r"\b(?:from|at|after|until)\s+(?:(?:iter(?:ation)?|step|epoch|update)\s*)?(\d{1,12})\b", re.I)
MEANT = lazy_re(r"->|=>|\u2192|\b(?:planned|scheduled|intended|by design|on purpose)\b", re.I)  # a plan, not the tale of what happened
ABOUT = {"data": DATA, "batch": BATCH, "loss": LOSS}
LOG_LINE = "log line"  # stands for the name of a setting
MOST = 200  # steps that one setting, or a log, announces


@dataclass(frozen=True)
class Announced:
    """``about``: data, batch, loss (what it is made of) or other; ``says``: the setting as it stands in the file."""

    step: int
    about: str
    key: str
    says: str
    where: str


@once
def announced(run: Run) -> tuple[Announced, ...]:
    """Every step beyond the first at which a setting, or a line of the log, says that something changes, in order."""
    found: dict[tuple[int, str], Announced] = {}
    for e in endings.events(run, "stage")[:MOST]:
        if e["step"]:
            found.setdefault(
                (e["step"], LOG_LINE), Announced(e["step"], "data", LOG_LINE, str(e["text"])[:120], run.where(e["source"], e["at"]))
            )
    table = run.tables["config"]
    for key, text, source, at in zip(*(table[c].to_pylist() for c in ("key", "value", "source", "at")), strict=True):
        value = said_as = settings.plain(text)
        *above, name = re.split(r"[./]", key)
        if above and name.isdigit():  # of {"500": 64}, which a config that lists its settings one by one takes apart
            name, value = above[-1], {name: value}
        about = next((what for what, words in ABOUT.items() if words.search(name)), "other")
        steps = list(_steps(value, about != "other"))[:MOST] if isinstance(value, (list, dict, str)) else []
        if type(value) is int and value > 0 and STAGE.match(name):
            about, steps = "data", [value]
        for step in steps:
            said = about
            if isinstance(value, str) and about != "loss":
                said = next((what for what in ("batch", "data") if ABOUT[what].search(value)), "other")
            found.setdefault((step, key), Announced(step, said, key, str(said_as)[:120], run.where(source, at)))
    return tuple(sorted(found.values(), key=lambda a: a.step))


def _lengths(stages: list[Any]) -> list[int]:
    """How long each stage lasts, where all tell so: numbers of steps that do not grow from stage to stage are no places."""
    found = [[v for k, v in item.items() if LASTS.match(str(k))] if isinstance(item, dict) else [] for item in stages]
    told = [int(n[0]) for n in found if len(n) == 1 and isinstance(n[0], int) and n[0] > 0]
    grows = all(b > a for a, b in pairwise(told))
    return told if 1 < len(told) == len(stages) and not grows else []


def _of_list(stages: list[Any]) -> Iterator[int]:
    for item in stages:
        if isinstance(item, dict):
            yield from _steps(item, True)
        elif isinstance(item, list) and len(item) == 2 and isinstance(item[0], int) and item[0] > 0:
            yield item[0]


def _steps(value: Any, listed: bool) -> Iterator[int]:
    """Steps that a value names: of stages that begin somewhere, [{"from_iter": 300, ...}], [[0, 12], [300, 48]] or {"300": ...}, or last so
    long, [{"steps": 300}, {"steps": 300}], and in words, "1 -> 4 from iter 300 on", "1 until 300, 4 after"."""
    if isinstance(value, str):
        if STAGED.search(value):  # "numeric until 160, then words, then mixed at 290"
            yield from (int(n) for n in THEN.findall(value) if int(n) > 0)
        if not MEANT.search(value):
            return
        yield from (int(n) for n in SAID.findall(value) if int(n) > 0)
    elif isinstance(value, list) and listed:
        yield from accumulate(lengths[:-1]) if (lengths := _lengths(value)) else _of_list(value)
    elif isinstance(value, dict) and listed:
        for key, item in value.items():
            number = settings.as_number(item)
            if str(key).isdigit():
                number = float(key)
            elif not BEGINS.match(str(key)) or not key:
                continue
            if number is not None and number > 0 and number == int(number):
                yield int(number)

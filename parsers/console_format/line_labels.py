"""Finds the words of a console line that say of which data its numbers are: ``Test:`` in front, ``Train: loss 0.3 - Val: loss 0.4``, ``[val] acc 0.9``.

A word in front speaks of the whole line. A label (a split's name, maybe a word or two, and a colon before other words; a split's name in brackets; or
one that stands alone before several measurements: ``train loss=0.3 acc=0.9 VAL loss=0.4 acc=0.8``; or the first word of a measure's name, where the
line begins with one: ``train acc: 0.8 | loss: 1.2``) speaks of the numbers behind it, up to the next label. A word for what is measured of each part (``weights: emb=6.5 head=6.25``) goes in front of the parts.
"""

from __future__ import annotations

from parsers.console_format.grammars import EVAL, STRONG
from parsers.console_format.line_prefix import Line
from parsers.lazy_regex import lazy_re

_EVAL = "|".join(EVAL)
EVAL_WORD = lazy_re(rf"(?i)(?:^|[\W_])(?:{_EVAL})(?:[\W_]|$)")
TRAIN_WORD = lazy_re(r"(?i)(?:^|[\W_])train(?:ing)?(?:[\W_]|$)")
_MODE = lazy_re(
    rf"(?i)^(?:\[[a-z_][\w.:-]{{0,40}}\] )?[\s*>|=\[(\"'└├╰─→↳-]*(?P<head>{_EVAL})\b|\((?P<paren>val|test|eval)\)"
    rf"|\| (?P<pipe>valid|test) \||\b(?P<count>{_EVAL})[ _-](?:step|iter|iteration|batch)\b[ :=\[]{{0,3}}\d"
    r"|^\W*(?P<saved>saving dict for global step) \d"  # TensorFlow's Estimator, of what an evaluation gave
    r"|^ *\*\s+(?P<starred>(?:acc|prec)@1)\s"  # PyTorch's ImageNet example and its many heirs, below an evaluation
)
_SPLIT = rf"(?:train(?:ing)?|{_EVAL})"
_STEMS = ("train", "val", "eval", "test", "dev", "hold", "held")  # what every split's name has: looked for before the pattern is
_LABEL = lazy_re(
    rf"(?i)(?<![\w./-])(?P<word>{_SPLIT})(?: [A-Za-z][A-Za-z_-]*){{0,2}}(?: \([^()]{{1,40}}\))? ?:(?=\s+[A-Za-z\"'\[{{])(?!\s+(?:nan|inf)\b)"
    rf"|(?:(?<!\w)|(?![\[(]\w{{1,12}}[\])][ :=]{{0,3}}[-+.\d]))[\[(](?P<boxed>{_SPLIT})[\])]|[|;]\s{{1,4}}(?P<cell>{_SPLIT})(?=\s+[A-Za-z][\w@/-]{{0,30}}\s+[-\d.])"  # "| dev xent 1.70 acc 0.58 |"
)
# "VAL loss=1.5 acc=0.4": a word that stands alone before several measurements; "val loss=0.3, lr=0.1" goes on with something else
_PAIR = r"\s{1,4}[A-Za-z][\w@/.-]{0,30}="
_ALONE = lazy_re(rf"(?i)(?<![\w./-])(?P<word>{_SPLIT})(?={_PAIR}[-+]?\d{{0,9}}\.\d{{1,20}}%?{_PAIR}(?:[-+]?[\d.]|nan|inf))")
# "Train acc: 0.8 | loss: 11.2", "train Loss:5.1 Acc_200:0.04 | test Loss:4.5 Acc_200:0.1": a name that begins with a split speaks of the measures behind it
_NAMED = lazy_re(rf"(?i)(?P<word>{_SPLIT})[. ]\s{{0,3}}[A-Za-z]")
_OF_PARTS = r"(?:grad(?:ient)?s?|weights?|params?|parameters|activations?|norms?|losses|terms|updates?|entropies|stds?|means?|rms)"
_GROUP = lazy_re(rf"(?i)(?<![\w./-])(?P<group>(?:{_OF_PARTS}[ _-]){{0,2}}{_OF_PARTS}):\s{{1,4}}(?=[A-Za-z][\w.]{{0,60}}=-?[\d.])")
# "valid n=12000 loss=0.15": a count of what was evaluated
_COUNTED = lazy_re(rf"(?i)(?<![\w./-])(?P<word>{_SPLIT})\s+(?:n|size|count|num|samples|examples|rows|batches) ?[=:] ?\d")
# SlowFast's rows: {"_type": "val_epoch", "epoch": "50/400", "top1_err": 27.8}
_KEYED = lazy_re(
    rf"""(?i)["'](?:_?type|split|mode|phase|stage)["'] {{0,2}}: {{0,2}}["'](?P<word>{_EVAL})(?:_(?:epoch|iter|step|batch))?["']"""
)
_BEST = lazy_re(r"(?i)\b(?:best|previous|last)\W{1,2}$")  # what was reached before is no evaluation of now
# "loss 0.74  test: loss 0.81": what stands in front of the label is of something else
_MEASURED = lazy_re(
    r"(?i)(?<![\w./-])(?!(?:epochs?|ep|steps?|iter|it|time|elapsed)\b)[A-Za-z][\w/-]{0,40}(?:\(\w{1,12}\))?[ :=]{1,3}[-+]?\d{1,12}\.\d"
)
# what a loop says of itself, of whatever data the numbers beside it are
OF_LOOP = lazy_re(r"(?i)\btimes?\b|_time|elapsed|duration|\blr\b|learning[ _]rate|/s(?:ec)?$|^(?:best|mem|grad|g_?norm|grad[ _-]?norm)$")
_VALUE = lazy_re(r"[ :=]{0,3}[-+.\d]")
_EVALS = frozenset(EVAL.values())
_LONGEST = 2000  # characters of a dict in which its split is looked for (a bound)
_FRONT = 80  # characters in which a line says what it speaks of


def mode_of(body: str) -> str:
    """The word by which the line says that all of it speaks of evaluation."""
    m = _MODE.search(body[:_FRONT])
    # "Loss(Tr) 2.4 | Loss(Val) 2.6" names cells; "Epoch(val) [3]" the line
    glued = m is not None and m["paren"] and body[: m.start()][-1:].isalnum() and _VALUE.match(body, m.end()) is not None
    cell = glued or (m is not None and m["paren"] and _MEASURED.search(body[: m.start()]))
    if m is not None and not cell and body[m.end() : m.end() + 1] not in {"_", "/"}:
        return "eval" if m["saved"] or m["starred"] else EVAL[(m["head"] or m["paren"] or m["pipe"] or m["count"]).lower()]
    if (m := _KEYED.search(body[:_LONGEST]) if "{" in body[:_FRONT] else None) is not None:
        return EVAL[m["word"].lower()]
    counted = list(_COUNTED.finditer(body)) if _names_split(body) else []
    if len(counted) == 1 and (word := EVAL.get(counted[0]["word"].lower())) and not _MEASURED.search(body[: counted[0].start()]):
        return word
    found = _labels(body)
    of_all = found and found[0][0] < _FRONT and all(word in _EVALS for _, word in found) and not _MEASURED.search(body[: found[0][0]])
    return found[0][1] if of_all else ""


def put_labels(line: Line) -> None:
    """Gives the tags of evaluation their word, where they do not have one themselves; and those of training, where the line speaks of both."""
    if not line.has("metric"):
        return
    labels = [(line.body, line.mode), *((line.body + at, word) for at, word in _labels(line.text[line.body :]))]
    alone = [] if line.mode else _alone(line)
    named = _named(line)
    labels = sorted([*labels, *alone, *named])
    if not any(word in _EVALS for _, word in labels):
        return
    for i, f in enumerate(line.fields):
        if f.role == "metric" and not EVAL_WORD.search(f.tag) and not TRAIN_WORD.search(f.tag):
            at, word = next(((at, w) for at, w in reversed(labels) if at <= f.start), (0, ""))
            if OF_LOOP.search(f.tag) and ("|" in line.text[at : f.start] or (at, word) in alone):
                continue  # "| valid MAE 0.61 | best 0.55 | grad 5.5 |": another cell, of the run
            if (at, word) in alone and line.text[f.start : f.end].isdigit():
                continue  # "val loss=0.6 tokens=9000": a count, of the run
            if (at, word) in named and not STRONG.search(f.tag):
                continue  # "train loss 0.5 val loss 0.6 norm 1.2"
            line.fields[i] = f._replace(tag=f"{word} {f.tag}") if word else f


def put_groups(line: Line) -> None:
    """``weights: emb=6.5 head=6.25``: puts what is measured of several parts in front of the parts, up to the next bar or group."""
    if ": " not in line.text or "=" not in line.text:
        return
    groups = [(m.end(), m["group"].strip()) for m in _GROUP.finditer(line.text, line.body)]
    for i, f in enumerate(line.fields):
        at, group = next(((at, g) for at, g in reversed(groups) if at <= f.start), (0, ""))
        if group and f.role == "metric" and "|" not in line.text[at : f.start]:
            line.fields[i] = f._replace(tag=f"{group}/{f.tag}")


def _alone(line: Line) -> list[tuple[int, str]]:
    """Where splits end that stand alone before several measurements, and their word."""
    if "=" not in line.text or not _names_split(line.text):
        return []
    found = _ALONE.finditer(line.text, line.body)
    return [
        (m.end(), EVAL.get(m["word"].lower(), "train")) for m in found if not _BEST.search(line.text, max(0, m.start() - 10), m.start())
    ]


def _named(line: Line) -> list[tuple[int, str]]:
    """Where names of measures end that begin with a split, and its word. Behind a measure without one (``loss=0.5 val loss=0.6, acc=0.4``) it is open
    of what the rest is."""
    measures = [f for f in line.fields if f.role == "metric" and not OF_LOOP.search(f.tag)]
    if not measures or _NAMED.match(measures[0].tag) is None:
        return []
    found = [(f.end, m) for f in measures if STRONG.search(f.tag) and (m := _NAMED.match(f.tag)) is not None]
    return [(end, EVAL.get(m["word"].lower(), "train")) for end, m in found]


def _names_split(body: str) -> bool:
    low = body.lower()
    return any(stem in low for stem in _STEMS)


def _labels(body: str) -> list[tuple[int, str]]:
    """Where labels end, and their word."""
    found: list[tuple[int, str]] = []
    if not _names_split(body):
        return found
    for m in _LABEL.finditer(body):
        if not _BEST.search(body, max(0, m.start() - 10), m.start()):
            found.append((m.end(), EVAL.get((m["word"] or m["boxed"] or m["cell"]).lower(), "train")))
    return found

"""Settings that a sentence names by words which nothing else goes by: ``adam lr=0.002``, ``Adam 1e-3``, ``AMP: float16, static loss scale 65536``.

Each of them needs its own pair of words beside each other: an optimizer and its rate, the mixing of precisions and a type, a loss scale and what is done with it,
the inputs and their statistics, data and their classes.
"""

from __future__ import annotations

from parsers.lazy_regex import lazy_re

OPTIMIZERS = frozenset({"sgd", "nag", "adam", "adamw", "adamax", "nadam", "radam", "adagrad", "adadelta", "rmsprop", "adafactor", "lamb", "lars", "lion", "muon", "lbfgs"})  # fmt: skip
_MOST = 600  # characters: a longer line is no sentence
_RATE = r"(?P<rate>\d{1,3}(?:\.\d{1,12})?(?:e-?\d{1,2})?)(?![\w.]\w)"
_OPTIMIZER = lazy_re(
    rf"(?i)(?<![\w./-])(?P<optimizer>{'|'.join(sorted(OPTIMIZERS, key=len, reverse=True))})"
    rf"(?:[ (,:]{{1,2}}(?:with )?(?:lr|learning[ _]rate) ?[ =:] ?{_RATE}| (?:at |with )?(?P<small>\d(?:\.\d{{1,6}})?e-\d{{1,2}})(?!\w))"
)
_PRECISION = lazy_re(
    r"(?i)(?<![\w./-])(?:amp|autocast|mixed[ -]precision)(?: ?[:=,(]| in| with|) ?(?P<type>b?float16|fp16|bf16)(?!\w)|(?<![\w./-])(?P<before>b?float16|fp16|bf16) (?:amp|autocast|mixed[ -]precision)\b"
)
_SCALE = lazy_re(
    r"(?i)(?<![\w./-])(?:static|fixed|constant) loss[ _]scal(?:e|ing)(?: of| at| is|) ?[:=]? ?(?P<scale>\d{1,12}(?:\.\d{1,6})?)(?![\w.]\w)"
)
_CLASSES = lazy_re(r"(?i)(?:\b(?:belonging to|with|among|into|over)|,) (?P<n>\d{2,5}|[2-9]) classes\b")
_CELLS = 3  # bound: cells of a line; two may be anything
_CELL = lazy_re(r"\s*(?P<key>[A-Za-z][A-Za-z_-]{1,20}(?: [A-Za-z]{1,20}){0,2})[ :=]{1,2}(?P<n>\d{1,3}(?:,\d{3}){1,5}|\d{1,15})\s*")
_OF = r"(?P<of>(?:[a-z]\w{0,20} ){0,2}(?:x|batch|images?|pixels?|inputs?|features?))"
_NUMBER = r"-?\d{1,12}(?:\.\d{0,12})?(?:e[-+]?\d\d?)?"
_RANGE = lazy_re(rf"(?i)\b{_OF} range[ :=(\[]{{1,3}}(?P<min>{_NUMBER})(?:, ?| to | ?\.\. ?)(?P<max>{_NUMBER})")
# "x (32, 1, 14, 14) min 0.00 max 255.00 mean 56.36"
_ONE = rf"(?:min|max|mean|std)[ =:]{{1,2}}{_NUMBER}"
_STATISTICS = lazy_re(rf"(?i)\b{_OF}(?: ?[(\[][\d, x]{{1,40}}[)\]])?[ :,]{{1,2}}(?P<told>{_ONE}(?:[ ,;|]{{1,3}}{_ONE}){{1,3}})\b")
_STATISTIC = lazy_re(rf"(?i)(?P<what>min|max|mean|std)[ =:]{{1,2}}(?P<value>{_NUMBER})")


def in_words(text: str) -> list[tuple[str, object]]:
    """The settings that a sentence names so."""
    if len(text) > _MOST:
        return []
    found: list[tuple[str, object]] = _of_cells(text)
    named = list(_OPTIMIZER.finditer(text))
    if len(named) == 1:  # of several each has its own parameters, or they are compared
        found += [("optimizer", named[0]["optimizer"]), ("lr", float(named[0]["rate"] or named[0]["small"]))]
    if (m := _PRECISION.search(text)) is not None:
        found.append(("mixed_precision", (m["type"] or m["before"]).lower()))
    if (m := _SCALE.search(text)) is not None:
        found.append(("static_loss_scale", float(m["scale"])))
    if (m := _CLASSES.search(text)) is not None:
        found.append(("num_classes", int(m["n"])))
    return [*found, *of_inputs(text)]


def _of_cells(text: str) -> list[tuple[str, object]]:
    """What cells of nothing but words and a whole number count: ``vocab 94 | train chars 431959 | params 116318``."""
    cells = [_CELL.fullmatch(cell) for cell in text.split("|")]
    if len(cells) < _CELLS or not all(cells):
        return []
    return [("_".join(m["key"].split()), int(m["n"].replace(",", ""))) for m in cells if m is not None]


def of_inputs(text: str) -> list[tuple[str, object]]:
    """The range of the inputs, or their statistics, that a line tells."""
    if len(text) > _MOST:
        return []
    found: list[tuple[str, object]] = []
    if (m := _RANGE.search(text)) is not None:
        found += [(f"{m['of']}.{end}", float(m[end])) for end in ("min", "max")]
    if (m := _STATISTICS.search(text)) is not None:
        found += [(f"{m['of']}.{p['what'].lower()}", float(p["value"])) for p in _STATISTIC.finditer(m["told"])]
    return found

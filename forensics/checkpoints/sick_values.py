"""What is sick in the values of a checkpoint, and in the file.

Every look takes names and statistics that are already there. Thresholds stand at the top, with where they come from.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forensics.checkpoints.describe import Checkpoint
from forensics.checkpoints.looks import MOMENTS, WEIGHTS, Found, finding, is_state, measured
from parsers.checkpoints import danger
from parsers.checkpoints.contents import Tensor, chunks
from parsers.checkpoints.statistics import values
from parsers.checkpoints.value_stats import Stats
from parsers.lazy_regex import lazy_re

ABSURD = 1e6  # no trained weight is this large; bfloat16's bit flips give 1e38
BEYOND_COUNTS = 1e20  # no count of tokens or sum of squares gets there; a flipped top exponent bit multiplies by 3e38
ALL_ALIKE = 1e-3  # of the largest; bound: a flipped bit of an exponent that makes a usual weight absurd makes it a million times larger
FLIPPED = 2.0**16  # times the others; bound: the least that a flip of one of the four top exponent bits multiplies by
ALONE = 0.9  # one value with this share of a tensor's squares
SOUND = (
    10.0  # unit: trained weights are a few at most in the mean; where the others are ten and more it is training that went wrong, no bit
)
ALONE_SIZE = 50.0  # times what the others are worth (root mean square), in tensors of at least ALONE_COUNT
ALONE_COUNT = 256


def damaged(c: Checkpoint) -> bool:
    """Whether a value of it can be no trained one."""
    return bool(nonfinite(c) or absurd(c) or blown_up(c))


def foreign_code(c: Checkpoint) -> list[Found]:
    names = [r["what"] for r in c.contents.refused]
    held = [n for n in names if n.startswith(("TorchScript code", "a Lambda layer", "an array of objects"))]
    bad = [n for n in names if n not in held and (danger.dangerous(n) or " " in n)]
    others = [n for n in names if n not in held and n not in bad]
    found = []
    if bad:
        title = "The file asks its reader to run or reach what no checkpoint needs: "
        found.append(finding("foreign_code", "critical", f"{title}{', '.join(bad[:4])}; nothing of it was done"))
    if held:
        found.append(finding("holds_code", "info", f"The file holds code, as its format may; it was left closed: {', '.join(held[:4])}"))
    if others:
        title = f"{len(others)} names of classes outside the usual libraries were not followed: {', '.join(others[:4])}"
        found.append(finding("unknown_names", "info", title))
    return found


def incomplete(c: Checkpoint) -> list[Found]:
    lost = [t for t in c.contents.tensors if "missing" in t.why or "beyond" in t.why]
    found = []
    if wrong := [g for g in c.contents.gaps if g.what.startswith("the checksum of ")]:
        places = {g.at for g in wrong}  # where a damaged member begins, the values of its tensor do
        title = f"{len(wrong)} parts of the file are not what was saved, by their checksums; {wrong[0].what}"
        found.append(finding("checksum", "critical", title, [t.name for t in c.contents.tensors if f"byte {t.at}" in places]))
    if c.contents.complete is False:
        why = c.contents.gaps[0].what if c.contents.gaps else "a part is missing"
        found.append(
            finding("incomplete", "critical" if lost else "warning", f"The checkpoint is incomplete: {why}", [t.name for t in lost])
        )
    return found


def without_tensors(c: Checkpoint) -> list[Found]:
    """A file that is named as weights and holds none, as PEFT saved it where a script had replaced ``state_dict``."""
    if c.contents.tensors or c.kind != "other" or c.contents.format not in ("torch", "safetensors") or not _claims_weights(c):
        return []
    return [finding("no_tensors", "warning", "A file of weights that holds no tensor")]


def _claims_weights(c: Checkpoint) -> bool:
    return any(re.search(r"(?i)model|adapter|weights", f.name) and f.suffix != ".json" for f in c.contents.files)


def nonfinite(c: Checkpoint) -> list[Found]:
    state = [(t, s) for t, s in measured(c, "other") if t.count > 1 and is_state(t.name)]  # single numbers: rates, best losses
    bad = [(t, s) for t, s in [*measured(c, *WEIGHTS, *MOMENTS, "buffer"), *state] if s.nonfinite and not _mask(t, s)]
    if not bad:
        return []
    n, first = sum(s.nonfinite for _, s in bad), bad[0][0]
    where = f"in {len(bad)} of {len(c.contents.tensors)} tensors, {first.name} first" if len(bad) > 1 else f"in {first.name}"
    title = f"{n} non-finite value{'s' if n > 1 else ''} {where}"
    return [finding("nonfinite", "critical", title, [t.name for t, _ in bad])]


def _mask(t: Tensor, s: Stats) -> bool:
    """Causal masks are stored as buffers full of minus infinity, and mean it; so does a best score before the first."""
    if t.role == "buffer" and re.search(r"(?i)mask|bias|alibi|tril", t.name):
        return True
    if t.count == 1:
        return bool(re.search(r"(?i)best|metric|loss|score|patience", t.name))
    return not s.norm and s.zeros > 0 and s.zeros + s.nonfinite == s.count and all(_holes(values(b, t.dtype)) for b in chunks(t))


def _holes(x: NDArray[Any]) -> bool:
    return bool(((x == 0) | np.isneginf(x)).all())


def blown_up(c: Checkpoint) -> list[Found]:
    """Weights that are absurd throughout: training did that, where a flipped bit changes one of them."""
    large = [(t, s) for t, s in measured(c, "weight") if _is_absurd(t, s) and _throughout(t, s)]
    if not large:
        return []
    t, s = large[0]
    title = f"{t.name} is blown up throughout: its values are about {_rest(t, s):.2g}, the largest {s.absmax:.3g}, which no sound training reaches"
    return [finding("blown_up", "critical", title, [t.name for t, _ in large])]


def _throughout(t: Tensor, s: Stats) -> bool:
    return _rest(t, s) > min(ALL_ALIKE * s.absmax, ABSURD)


def _is_absurd(t: Tensor, s: Stats) -> bool:
    return s.absmax > (BEYOND_COUNTS if _may_count(t) or _as_the_others(t, s) else ABSURD)


def absurd(c: Checkpoint) -> list[Found]:
    """Single absurd values. Where whole weights are blown up, that says it, and what else is absurd may follow from it."""
    if blown_up(c):
        return []
    found = []
    for t, s in measured(c, *WEIGHTS, "exp_avg"):
        if _is_absurd(t, s):
            title = f"{t.name} holds a value of {s.absmax:.3g}, which no training reaches; the others are about {_rest(t, s):.2g}"
            found.append(finding("absurd_value", "critical", title, [t.name]))
    lone = [(t, s, _rest(t, s)) for t, s in measured(c, *WEIGHTS) if not _is_absurd(t, s) and _stands_alone(s)]
    if all(rest <= SOUND for _, _, rest in lone):  # else units ran away in training, and none of these values is a flipped bit
        for t, s, rest in lone:
            found.append(
                finding("lone_value", "warning", f"One value of {t.name} is {s.absmax:.3g} where the others are about {rest:.2g}", [t.name])
            )
    return found


_TRAINED = lazy_re(r"(?i)(^|[._/])(weight|bias|kernel|gamma|beta|gain|scale|embedding)(_\w*|:0)?$")


def _may_count(t: Tensor) -> bool:
    """Single numbers, and vectors without the name of a parameter: modules keep counters and running sums as floats, too."""
    return t.count == 1 or (t.role != "exp_avg" and len(t.shape) < 2 and not _TRAINED.search(t.name))


def _as_the_others(t: Tensor, s: Stats) -> bool:
    """A moment has the size of the loss' gradients, whatever that is, and those of a loss of millions are large everywhere."""
    moment = t.role == "exp_avg" or is_state(t.name)
    return moment and s.absmax > ABSURD and s.absmax < FLIPPED * _rest(t, s)


def _stands_alone(s: Stats) -> bool:
    """One value holds nearly all of the tensor's squares, far above what the rest is worth."""
    if s.count < ALONE_COUNT or s.absmax**2 < ALONE * s.squares:
        return False
    rest = max(s.squares - s.absmax**2, 0.0)
    return s.absmax**2 > ALONE_SIZE**2 * rest / (s.finite - 1)


def _rest(t: Tensor, s: Stats) -> float:
    """Root mean square of the values less than half the largest: read again, because the sums have lost them."""
    squares, n = 0.0, 0
    for block in chunks(t):
        x = np.abs(values(block, t.dtype).astype(np.float64))
        x = x[x < s.absmax / 2]
        squares, n = squares + float(np.dot(x, x)), n + len(x)
    return math.sqrt(squares / n) if n else 0.0

"""Weights that cannot be those of a trained layer: empty, constant, of rank one, far out of scale, of a type of their own.

A layer is judged by its kin: weights whose names differ in numbers alone. Where the training is at its start, zeros are a
usual recipe (residual branches, adapters, last layers), so nothing is said there.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from statistics import median

from forensics.checkpoints.age import counters
from forensics.checkpoints.describe import Checkpoint
from forensics.checkpoints.sick_values import WEIGHTS, Found, finding, measured
from forensics.run.robust import SIGMA
from parsers.checkpoints.contents import Tensor
from parsers.checkpoints.value_stats import Stats

STARTED = 2  # steps; weights made as zeros have moved by then
ZEROS_MEANT = re.compile(r"(?i)lora_|adapter|zero_conv|zero_module|adaln|ada_ln|modulation|gate|gain|gamma|alpha|scale|token|pos_emb|posit|memory|mask|bias|delta|prompt|controlnet|zeros|_amax|rel_pos|relative|hidden_init|initial")  # fmt: skip
FIXED = re.compile(r"(?i)scale|zero|amax|mask|anchor|prior|freq|sin|cos|pos|grid|index|ones|window|kernel2d|blur|fir|upsample|sobel|dft|mel|basis|mean$|std$|prototype|bias|gamma|gain|token|lora")  # fmt: skip
NORM = re.compile("(?i)norm|ln|bn")
OUT = 10.0  # times the median of the kin: layers of one kind stay within about three of each other through training
SPREADS = 10.0  # and as many of the kin's own spreads (median absolute deviation of the logarithm)
LEAST_KIN = 4
LEAST_TYPES = 3  # matrices
DROWNED = (
    100.0  # a bias of such a size decides what its layer gives, where inputs are of order one; and so many times the largest of the others
)
GAIN = 100.0  # root mean square times sqrt(inputs): recipes give about 1, trained layers stay below 20
GAIN_TIMES = 30.0  # times the largest of the other matrices


def kin(name: str) -> str:
    """The name without its numbers: what all layers of one kind share."""
    return re.sub(r"\d+", "#", name)


def is_matrix(t: Tensor) -> bool:
    return t.count >= 16 and t.count > max(t.shape)  # two axes longer than one


def young(c: Checkpoint) -> bool:
    """At its start, or of an age that the file tells nowhere and its name neither; None of either counts as old where an optimizer moved."""
    n = counters(c)
    ages = [x for x in (n.optimizer, n.label) if x is not None]
    return bool(ages) and max(ages) < STARTED


def empty(c: Checkpoint) -> list[Found]:
    """Matrices of zeros, and norm layers whose weights are zero where their kin have not lost theirs."""
    if young(c):
        return []
    weights = measured(c, *WEIGHTS)
    zero = [t for t, s in weights if is_matrix(t) and s.zeros == s.count and not ZEROS_MEANT.search(t.name)]
    norms = [(t, s) for t, s in weights if len(t.shape) == 1 and t.name.lower().endswith(".weight") and NORM.search(t.name)]
    alive = {kin(t.name) for t, s in norms if s.zeros < s.count}
    zero += [t for t, s in norms if s.zeros == s.count and t.count > 1 and kin(t.name) in alive]
    matrices = sum(is_matrix(t) for t, _ in weights)
    if not zero:
        return []
    title = f"{len(zero)} of {matrices} weights are zero throughout, {zero[0].name} first: what they held is lost"
    return [finding("zero_weight", "critical" if len(zero) > 0.5 * matrices else "warning", title, [t.name for t in zero])]


def alike(c: Checkpoint) -> list[Found]:
    """Matrices that say one thing only: all values equal, or all rows multiples of one row."""
    if young(c):
        return []
    found = []
    weights = measured(c, "weight", "master")
    for t, s in weights:
        constant = s.std <= 1e-6 * s.absmax and s.absmax > 0  # the sums' own error
        if (constant or s.parallel) and is_matrix(t) and not s.nonfinite and s.zeros <= 0.5 * s.count and not FIXED.search(t.name):
            found.append(
                (
                    t.name,
                    f"every value of {t.name} is {s.mean:.4g}"
                    if constant
                    else f"the rows of {t.name} are multiples of one another (rank one)",
                )
            )
    if found and len(found) < sum(is_matrix(t) for t, _ in weights):  # a whole kind that is so was made so: Mamba's A_log, layer scales
        sizes, odd = Counter(kin(t.name) for t, _ in weights), Counter(kin(n) for n, _ in found)
        found = [x for x in found if odd[k := kin(x[0])] < sizes[k] or sizes[k] == 1]
    if not found:
        return []
    more = f", and {len(found) - 1} more like it" if found[1:] else ""
    return [finding("constant_weight", "warning", f"A weight that says one thing only: {found[0][1]}{more}", [n for n, _ in found])]


def rms(s: Stats) -> float:
    return s.norm / math.sqrt(s.finite) if s.finite else 0.0


def gain(t: Tensor, s: Stats) -> float:
    """How much a layer makes of its input: 1 at most recipes."""
    return rms(s) * math.sqrt(max(t.count // t.shape[0], 1))


def scale(c: Checkpoint) -> list[Found]:
    """A layer far out of scale beside its kin, or where it has none beside all others."""
    groups: defaultdict[str, list[tuple[Tensor, Stats]]] = defaultdict(list)
    matrices = [(t, s) for t, s in measured(c, "weight") if is_matrix(t) and s.squares > 0]
    for t, s in matrices:
        groups[kin(t.name)].append((t, s))
    found = []
    for members in groups.values():
        logs = [math.log(rms(s)) for _, s in members]
        middle = median(logs)
        spread = SIGMA * median(abs(x - middle) for x in logs)
        for (t, s), x in zip(members, logs, strict=True):
            if len(members) >= LEAST_KIN and abs(x - middle) > max(math.log(OUT), SPREADS * spread) and not FIXED.search(t.name):
                found.append((abs(x - middle), t.name, rms(s), math.exp(x - middle), f"its {len(members) - 1} kin"))
    gains = sorted(((g, t.name) for t, s in matrices if (g := gain(t, s)) < GAIN or not FIXED.search(t.name)), reverse=True)
    if len(gains) >= 3 and gains[0][0] > max(GAIN, GAIN_TIMES * gains[1][0]):
        t, s = next(x for x in matrices if x[0].name == gains[0][1])
        found.append((math.log(gains[0][0]), t.name, rms(s), gains[0][0] / gains[len(gains) // 2][0], "the other layers"))
    if not found or len(found) > 0.25 * len(matrices):  # many: two kinds of layers under one name
        return [] if not found or len(found) > 1 else [_out(found)]
    return [_out(found)]


def drowned(c: Checkpoint) -> list[Found]:
    """Biases and norms that shift or stretch all units alike, beyond anything that the others hold: the layer says one thing only."""
    found = []
    for what in (".bias", ".weight"):
        vectors = [(t, s) for t, s in measured(c, "weight") if len(t.shape) == 1 and t.count >= 4 and t.name.endswith(what)]
        inner = vectors if what == ".weight" else vectors[:-1]  # the last bias may be the mean of what is predicted
        for t, s in inner if len(vectors) >= LEAST_TYPES else []:
            others = max(u.absmax for x, u in vectors if x is not t)
            if s.std < 0.5 * abs(s.mean) and rms(s) > DROWNED * max(others, 1.0):
                title = f"All values of {t.name} are about {s.mean:.4g}, the largest of the other {len(vectors) - 1} is {others:.3g}: its layer is drowned"
                found.append(finding("scale", "warning", title, [t.name]))
    return found


def _out(found: list[tuple[float, str, float, float, str]]) -> Found:
    found = sorted(found, reverse=True)
    _, name, size, times, others = found[0]
    return finding(
        "scale",
        "warning",
        f"The values of {name} are about {size:.3g}, {times:.3g} times what {others} have",
        dict.fromkeys(x[1] for x in found),
    )


NEVER_MIXED = [{"float16", "bfloat16"}, {"float64", "bfloat16"}, {"float64", "float16"}, {"float64", "float32"}]
"""Types that no recipe mixes within one kind of layer; float32 beside the half ones, and 8 bits, are meant."""


def mixed_types(c: Checkpoint) -> list[Found]:
    """A few layers of another type than their kin, or than nine tenths of all matrices."""
    if len({t.dtype for t in c.contents.tensors}) < 2:
        return []
    weights = [t for t in c.contents.tensors if t.role == "weight" and is_matrix(t) and not FIXED.search(t.name)]
    usual = Counter(t.dtype for t in weights).most_common(1)
    names = {t.name for t in c.contents.tensors}
    if not usual or len(weights) < LEAST_TYPES or usual[0][1] < min(0.75 * len(weights), len(weights) - 1):
        return []
    dtype = usual[0][0]
    odd = [t for t in weights if {t.dtype, dtype} in NEVER_MIXED]
    if dtype == "float32" and usual[0][1] == len(weights) - 1:  # a single one; several are a recipe (half-precision towers)
        odd += [t for t in weights if t.dtype in ("float16", "bfloat16") and not re.search(r"(?i)emb|wte|head", t.name)]
    kinds = {kin(t.name) for t in weights}
    odd += [t for t in c.contents.tensors if t.dtype in ("int8", "int32", "int64") and is_matrix(t) and t.name.endswith("weight")
            and kin(t.name) in kinds and not any(n.startswith(t.name.removesuffix("weight")) and re.search(r"(?i)scale|zero|SCB|absmax", n) for n in names)]  # fmt: skip
    if not odd or len(odd) > 0.1 * len(weights) + 1:
        return []
    return [
        finding(
            "mixed_types",
            "warning",
            f"{len(odd)} of {len(weights)} matrices are {odd[0].dtype} where the others are {dtype}: {odd[0].name} first",
            [t.name for t in odd],
        )
    ]

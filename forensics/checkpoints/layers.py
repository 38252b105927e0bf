"""Weights that cannot be those of a trained layer: empty, constant, of rank one, far out of scale, of a type of their own.

A layer is judged by its kin: weights whose names differ in numbers alone. Where the training is at its start, zeros are a
usual recipe (residual branches, adapters, last layers), so nothing is said there.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from statistics import median

from forensics.checkpoints.age import counters
from forensics.checkpoints.describe import Checkpoint
from forensics.checkpoints.looks import WEIGHTS, Found, Measured, finding, gain, is_matrix, kin, of_weights, others, rms
from forensics.run.robust import SIGMA
from parsers.lazy_regex import lazy_re

STARTED = 2  # steps; weights made as zeros have moved by then
ZEROS_MEANT = lazy_re(r"(?i)lora_|adapter|zero_conv|zero_module|adaln|ada_ln|modulation|gate|gain|gamma|alpha|scale|token|pos_emb|posit|memory|mask|bias|delta|prompt|controlnet|zeros|_amax|rel_pos|relative|hidden_init|initial")  # fmt: skip
FIXED = lazy_re(r"(?i)scale|zero|amax|mask|anchor|prior|freq|sin|cos|pos|grid|index|ones|window|kernel2d|blur|fir|upsample|sobel|dft|mel|basis|mean$|std$|prototype|bias|gamma|gain|token|lora")  # fmt: skip
NORM = lazy_re("(?i)norm|ln|bn")
OUT = 10.0  # times the median of the kin: layers of one kind stay within about three of each other through training
SPREADS = 10.0  # and as many of the kin's own spreads (median absolute deviation of the logarithm)
LEAST_KIN = 4
LEAST_TYPES = 3  # matrices
DROWNED = 100.0  # a bias of such a size, and so many times the largest of the others, decides alone what its layer gives
GAIN = 100.0  # root mean square times sqrt(inputs): recipes give about 1, trained layers stay below 20
GAIN_TIMES = 30.0  # times the largest of the other matrices


def young(c: Checkpoint) -> bool:
    """At its start; an age that neither the file nor its name tells counts as old."""
    age = counters(c).age
    return age is not None and age < STARTED


def empty(c: Checkpoint) -> Iterator[Found]:
    """Matrices of zeros, and norm layers whose weights are zero where their kin have not lost theirs."""
    if young(c):
        return
    weights = of_weights(c, *WEIGHTS)
    zero = [t for t, s in weights if is_matrix(t) and s.zeros == s.count and not ZEROS_MEANT.search(t.name)]
    norms = [(t, s) for t, s in weights if len(t.shape) == 1 and t.name.lower().endswith(".weight") and NORM.search(t.name)]
    alive = {kin(t.name) for t, s in norms if s.zeros < s.count}
    zero += [t for t, s in norms if s.zeros == s.count and t.count > 1 and kin(t.name) in alive]
    matrices = sum(is_matrix(t) for t, _ in weights)
    if zero:
        title = f"{len(zero)} of {matrices} weights are zero throughout, {zero[0].name} first: what they held is lost"
        yield finding("zero_weight", "critical" if len(zero) > 0.5 * matrices else "warning", title, [t.name for t in zero])


def alike(c: Checkpoint) -> Iterator[Found]:
    """Matrices that say one thing only: all values equal, or all rows multiples of one row."""
    if young(c):
        return
    found: dict[str, str] = {}
    weights = of_weights(c, "weight", "master")
    for t, s in weights:
        constant = s.std <= 1e-6 * s.absmax and s.absmax > 0  # the sums' own error
        if (constant or s.parallel) and is_matrix(t) and not s.nonfinite and s.zeros <= 0.5 * s.count and not FIXED.search(t.name):
            one = f"every value of {t.name} is {s.mean:.4g}"
            found[t.name] = one if constant else f"the rows of {t.name} are multiples of one another (rank one)"
    if found and len(found) < sum(is_matrix(t) for t, _ in weights):  # a whole kind that is so was made so: Mamba's A_log, layer scales
        sizes, odd = Counter(kin(t.name) for t, _ in weights), Counter(map(kin, found))
        found = {n: what for n, what in found.items() if odd[k := kin(n)] < sizes[k] or sizes[k] == 1}
    if found:
        more = f"{others(found)} like it" if len(found) > 1 else ""
        yield finding("constant_weight", "warning", f"A weight that says one thing only: {next(iter(found.values()))}{more}", found)


def scale(c: Checkpoint) -> Iterator[Found]:
    """A layer far out of scale beside its kin, or where it has none beside all others."""
    groups: defaultdict[str, list[Measured]] = defaultdict(list)
    matrices = [(t, s) for t, s in of_weights(c, "weight") if is_matrix(t) and s.squares > 0]
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
    gains = sorted(((g, t.name, rms(s)) for t, s in matrices if (g := gain(t, s)) < GAIN or not FIXED.search(t.name)), reverse=True)
    if len(gains) >= 3 and gains[0][0] > max(GAIN, GAIN_TIMES * gains[1][0]):
        most, name, size = gains[0]
        found.append((math.log(most), name, size, most / gains[len(gains) // 2][0], "the other layers"))
    if found and len(found) <= max(1, 0.25 * len(matrices)):  # more: two kinds of layers under one name
        found.sort(reverse=True)
        _, name, size, times, beside = found[0]
        title = f"The values of {name} are about {size:.3g}, {times:.3g} times what {beside} have"
        yield finding("scale", "warning", title, dict.fromkeys(x[1] for x in found))


def drowned(c: Checkpoint) -> Iterator[Found]:
    """Biases and norms that shift or stretch all units alike, beyond anything that the others hold: the layer says one thing only."""
    for what in (".bias", ".weight"):
        vectors = [(t, s) for t, s in of_weights(c, "weight") if len(t.shape) == 1 and t.count >= 4 and t.name.endswith(what)]
        inner = vectors if what == ".weight" else vectors[:-1]  # the last bias may be the mean of what is predicted
        for t, s in inner if len(vectors) >= LEAST_TYPES else []:
            largest = max(u.absmax for x, u in vectors if x is not t)
            if s.std < 0.5 * abs(s.mean) and rms(s) > DROWNED * max(largest, 1.0):
                title = f"All values of {t.name} are about {s.mean:.4g}, the largest of the other {len(vectors) - 1} is {largest:.3g}: its layer is drowned"
                yield finding("scale", "warning", title, [t.name])


NEVER_MIXED = [{"float16", "bfloat16"}, {"float64", "bfloat16"}, {"float64", "float16"}, {"float64", "float32"}]
"""Types that no recipe mixes within one kind of layer; float32 beside the half ones, and 8 bits, are meant."""


def mixed_types(c: Checkpoint) -> Iterator[Found]:
    """A few layers of another type than their kin, or than nine tenths of all matrices."""
    if len({t.dtype for t in c.contents.tensors}) < 2:
        return
    weights = [t for t in c.contents.tensors if t.role == "weight" and is_matrix(t) and not FIXED.search(t.name)]
    usual = Counter(t.dtype for t in weights).most_common(1)
    if not usual or len(weights) < LEAST_TYPES or usual[0][1] < min(0.75 * len(weights), len(weights) - 1):
        return
    dtype = usual[0][0]
    odd = [t for t in weights if {t.dtype, dtype} in NEVER_MIXED]
    if dtype == "float32" and usual[0][1] == len(weights) - 1:  # a single one; several are a recipe (half-precision towers)
        odd += [t for t in weights if t.dtype in ("float16", "bfloat16") and not re.search(r"(?i)emb|wte|head", t.name)]
    kinds, scales = {kin(t.name) for t in weights}, [t.name for t in c.contents.tensors if _SCALE.search(t.name)]
    whole = [t for t in c.contents.tensors if t.dtype in ("int8", "int32", "int64") and is_matrix(t) and t.name.endswith("weight")]
    odd += [t for t in whole if kin(t.name) in kinds and not any(n.startswith(t.name.removesuffix("weight")) for n in scales)]
    if odd and len(odd) <= 0.1 * len(weights) + 1:
        title = f"{len(odd)} of {len(weights)} matrices are {odd[0].dtype} where the others are {dtype}: {odd[0].name} first"
        yield finding("mixed_types", "warning", title, [t.name for t in odd])


_SCALE = lazy_re(r"(?i)scale|zero|SCB|absmax")  # beside weights that were quantized on purpose

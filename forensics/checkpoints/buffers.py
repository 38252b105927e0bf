"""What stands beside the weights: statistics of batch norms, averages of the weights, adapters, quantized values."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from forensics.checkpoints.age import counters
from forensics.checkpoints.describe import Checkpoint, difference
from forensics.checkpoints.layers import young
from forensics.checkpoints.looks import Found, Measured, cosine, finding, is_matrix, measured, others
from parsers.checkpoints.contents import Tensor
from parsers.lazy_regex import lazy_re

SETTLED = 10  # steps after which statistics, adapters and averages have moved
HUGE = 1e8  # of a running variance: unscaled images (0 to 255) give 1e4 at the first layer
HUGE_TIMES = 1e4  # and so many times the median of the others
UNLIKE = 0.1  # cosine between weights and their average: that of an average of the same training stays near 1
READ = 64 << 20  # bytes of weights that are compared to their average


def batchnorm(c: Checkpoint) -> Iterator[Found]:
    """Variances that no batch gives, and statistics that no batch has touched."""
    held = [(t, s) for t, s in measured(c, "buffer") if t.name.endswith("running_var")]
    variances = [(t, s) for t, s in held if not _EMA_PREFIX.match(t.name)]  # averages see none before their end
    if not variances:
        return
    middle = sorted(s.mean for _, s in variances)[(len(variances) - 1) // 2]
    for level, what, names in (
        ("critical", "values below zero", [t.name for t, s in variances if s.negative]),
        ("warning", "a variance of zero throughout", [t.name for t, s in variances if s.count > 1 and s.zeros == s.count]),
        ("warning", f"a variance above {HUGE:.0e}, {HUGE_TIMES:.0e} times that of the others", [t.name for t, s in variances if s.mean > HUGE and s.mean > HUGE_TIMES * middle]),
        ("info", "channels with a variance of exactly zero", [t.name for t, s in variances if 0 < s.zeros < s.count]),
    ):  # fmt: skip
        if names:
            yield finding("batchnorm", level, f"{names[0]} of a batch norm has {what}{others(names)}", names)
    yield from _untouched(c, variances)


def _untouched(c: Checkpoint, variances: list[Measured]) -> Iterator[Found]:
    """Layers that still have mean 0 and variance 1, or have counted no batch where others counted many."""
    if (counters(c).age or 0) < SETTLED:
        return
    zero = {t.name.removesuffix("mean") for t, s in measured(c, "buffer") if t.name.endswith("running_mean") and s.zeros == s.count}
    fresh = [t.name for t, s in variances if s.mean == 1 and s.std == 0 and t.name.removesuffix("var") in zero]
    if fresh:
        title = f"{len(fresh)} of {len(variances)} layers of batch norm never saw a batch ({fresh[0]} is 1 throughout, its mean 0)"
        yield finding("batchnorm", "warning", title, fresh)
        return
    tracked = {t.name: c.contents.values.get(t.name.removesuffix("running_var") + "num_batches_tracked") for t, _ in variances}
    counts = {name: v for name, v in tracked.items() if isinstance(v, (int, float))}
    none, most = [k for k, v in counts.items() if v == 0], max(counts.values(), default=0)
    if none and most >= SETTLED:
        layer = none[0].removesuffix("running_var")[:-1]
        yield finding("batchnorm", "warning", f"{layer} of a batch norm has counted no batch where others counted {most:.0f}", none)
    elif len(set(counts.values())) > 1 and not none:
        yield finding("batchnorm", "info", f"Layers of batch norm have counted {min(counts.values()):.0f} to {most:.0f} batches")


_EMA_PREFIX = lazy_re(r"(?i)^(.*?[:.])?(ema|model_ema|ema_model|ema_state_dict|shadow_params|averaged_model|state_dict_ema|swa_model)(\.(module|model|state_dict|shadow|shadow_params|ema_model))*\.")  # fmt: skip
_MODEL_PREFIX = lazy_re(r"^(model|state_dict|model_state_dict|module|net|network)(\.(model|module|state_dict|module))*\.")


def averages(c: Checkpoint) -> list[tuple[Tensor, Tensor]]:
    """(weight, its average) by their names."""
    weights = {_MODEL_PREFIX.sub("", t.name): t for t in c.contents.tensors if t.role == "weight"}
    found = []
    for t in c.contents.tensors:
        if t.role == "ema" and (w := weights.get(_MODEL_PREFIX.sub("", _EMA_PREFIX.sub("", t.name)))) is not None:
            found.append((w, t))
    return found


def ema(c: Checkpoint) -> Iterator[Found]:
    """Averages of the weights that are empty, of other shapes, not all there, or nothing like the weights."""
    pairs = averages(c)
    if not pairs:
        return
    have, prefix = {w.name for w, _ in pairs}, pairs[0][0].name.partition(".")[0]
    lacking = [t.name for t in c.contents.tensors if t.role == "weight" and t.name not in have and t.name.partition(".")[0] == prefix]
    told = (
        ("are zero throughout", [e.name for w, e in pairs if is_matrix(e) and _zero(c, e) and not _zero(c, w)]),
        ("have other shapes than the weights", [e.name for w, e in pairs if e.shape != w.shape]),
        ("are missing beside their weights", lacking if len(lacking) < len(pairs) else []),
    )
    for what, names in told:
        if names:
            yield finding("ema", "warning", f"{len(names)} averages of weights (EMA) {what}: {names[0]} first", names)
    if not any(names for _, names in told):
        yield from _unlike(c, pairs)


def _zero(c: Checkpoint, t: Tensor) -> bool:
    s = c.stats.get(t.name)
    return s is not None and s.count > 0 and s.zeros == s.count


def _unlike(c: Checkpoint, pairs: list[tuple[Tensor, Tensor]]) -> Iterator[Found]:
    unlike, looked, left = [], 0, READ
    for w, e in pairs:
        a, b = c.stats.get(w.name), c.stats.get(e.name)
        if a is None or b is None or not is_matrix(w) or not a.norm or not b.norm or c.contents.values.get("n_averaged") == 0:
            continue
        left -= 8 * w.count
        if left < 0:
            break
        far = difference(w, e, a)["update_norm"]
        if far is not None and math.isfinite(far):
            looked += 1
            if cosine(a, b, far) < UNLIKE:
                unlike.append(e.name)
    if looked >= 3 and len(unlike) >= 0.8 * looked:
        title = f"The averages (EMA) have nothing in common with the weights: {len(unlike)} of {looked} matrices point elsewhere (cosine below {UNLIKE})"
        yield finding("ema", "warning", title, unlike)


def adapters(c: Checkpoint) -> Iterator[Found]:
    """LoRA whose second matrices are zero, as they are made, after steps that should have moved them."""
    second = [(t, s) for t, s in measured(c, "weight") if re.search(r"(?i)lora_(embedding_)?B|lora_up", t.name)]
    zero = [t.name for t, s in second if s.count and s.zeros == s.count]
    age = counters(c).age or 0
    if zero and age >= SETTLED:
        title = f"{len(zero)} of {len(second)} adapters (LoRA) do nothing: their B matrices are zero at step {age}, as they are made"
        yield finding("adapter_zero", "warning", title, zero)


_LARGEST = {"int8": 127.0, "float8_e4m3fn": 448.0, "float8_e5m2": 57344.0, "float8_e4m3fnuz": 240.0, "float8_e5m2fnuz": 57344.0}
SATURATED = 0.8  # of the largest square: a bell of values scaled to its largest has 0.1


def saturated(c: Checkpoint) -> Iterator[Found]:
    """Quantized weights that stand at the ends of their range."""
    found = []
    for t, s in measured(c, "weight", "buffer"):
        most = _LARGEST.get(t.dtype)
        if most and is_matrix(t) and s.finite and s.squares / s.finite > SATURATED * most * most and s.absmax >= most:
            found.append(t.name)
    if found and not young(c):
        title = f"{len(found)} quantized weights stand at the ends of their range, {found[0]} first: their scale was too small"
        yield finding("saturated", "warning", title, found)

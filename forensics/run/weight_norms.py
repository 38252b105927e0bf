"""Norms of the weights, whole and by layer, as they were logged: whether they move, and whether they were printed finely enough to tell."""

from __future__ import annotations

import numpy as np

from forensics.run import settings
from forensics.run.metrics_in_words import worded
from forensics.run.series import Floats, Ints, Series, parts, series
from forensics.run.usual_rate import is_set, tuned_by_adapters
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

LEAST = 5  # bound: values; five that agree in six digits do not by chance
DIGITS = 6  # significant digits: those of a 32-bit float that hold in decimal; coarser prints hide small moves
_OF_EMBEDDINGS = r"^(?!.*\b(grad|act\w*|update|delta|pre|post)\b)(?=.*\b(emb|embed|embeddings?|embeds|user|item|table|factors?)\b).*\bnorms?( mean| avg| l 2)?$"
_OF_PARTS = r"^(?!.*\b(grads?|gradient|g|act\w*|update|delta|pre|post|loss|embed\w*|layer ?norm|batch ?norm|norm ?layer)\b)(?:(.*[ /])?[pw]?norms?[ /]\w|(.*[ /])?(?!max|min|clip|total|global|target)[a-z]\w* norms?$)"
_MEANT = lazy_re(
    r"(?i)(^|[./_])(freez\w*|frozen\w*|lock(ed)?_(image|text|tower|encoder|backbone)\w*|linear_?prob\w*|train_?only|head_?only)([./_]|$)"
)


def norms(run: Run) -> list[Series]:
    """Those that were logged finely enough and often enough to tell whether they move."""
    named = [s for name in ("param.norm_layer", "param.norm") for s in parts(run, name)]
    found = [s for s in (*named, *worded(run, _OF_EMBEDDINGS)) if len(s) >= LEAST]
    return found if any(digits(float(v)) >= DIGITS for s in found for v in s.value[:LEAST] if np.isfinite(v)) else []


def of_parts(run: Run) -> list[Series]:
    """Norms of parts of the model that were logged finely enough, those that are called `norm_head`, `norm/head` or `head_norm` among them."""
    found = [s for s in (*parts(run, "param.norm_layer"), *worded(run, _OF_PARTS)) if len(s) >= LEAST and np.isfinite(s.value).all()]
    return [s for s in found if s.value.any() and max(digits(float(v)) for v in s.value[:LEAST]) >= DIGITS]


def whole(run: Run) -> tuple[Ints, Floats] | None:
    """(step, norm of all logged weights): as logged, else the root of the squares of the layers' that were logged together."""
    total = series(run, "param.norm")
    if total is not None:
        return total.step, total.value
    layers = parts(run, "param.norm_layer")
    if not layers or any(not np.array_equal(layers[0].step, s.step) for s in layers):
        return None
    return layers[0].step, np.sqrt(sum(s.value**2 for s in layers))


def still(s: Series) -> bool:
    """Whether the norm is the same number to its last digit throughout."""
    return bool(np.ptp(s.value) == 0)


def frozen_on_purpose(run: Run) -> bool:
    """Whether config freezes parts of the model, or trains adapters on it."""
    return tuned_by_adapters(run) or any(is_set(s) and _MEANT.search(s.key) for s in settings.every(run))


def as_logged(value: float) -> str:
    """The shortest text of a number; event files hold 32 bits of it, in which 9.6 is 9.60000038."""
    single = np.float32(value)
    return str(single) if float(single) == value else f"{value:.12g}"


def digits(value: float) -> int:
    """Significant digits of a number as it was logged."""
    return len(as_logged(abs(value)).partition("e")[0].replace(".", "").strip("0"))

"""The std of the initial weights, as configured, beside what keeps the variance of layers."""

from __future__ import annotations

import math
from typing import NamedTuple

from forensics.errors import CannotTell
from forensics.run import settings
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

DEFAULT = 0.02  # of GPT-2, BERT and GPT-NeoX at any width: no fault of its own
LARGE = 2.0  # times sqrt(1 / (3 width)): twice the std is four times the variance that He and Glorot initialization keep constant
# bound: beyond LARGE as a factor of the std and as one of the variance; a loss scale of the same name begins at 2**8
SCALES = (LARGE**2, 100.0)
# T5 and its kin alone have both keys; its library begins with embeddings, which are the output layer, too, of an std of 1 (transformers, modeling_t5.py)
_OF_T5 = ("initializer_factor", "relative_attention_num_buckets")
INITIALIZERS = "init initializer kernel_initializer kernel_init weight_init weights_init initialization"
_NORMAL = lazy_re(
    r"(?:random_?|truncated_?)?normal[\W_]{0,2}(?:(?:std|stddev)\W{1,2})?(?P<std>\d{1,6}(?:\.\d{1,9})?|\.\d{1,9})\)?"
)  # "normal_2.0", "normal(std=0.5)"


class Std(NamedTuple):
    std: float
    usual: float  # sqrt(1 / (3 width)), of a width of one where none is known; of a factor LARGE
    where: str
    text: str

    @property
    def large(self) -> bool:
        return self.std > max(LARGE * self.usual, DEFAULT)


def configured(run: Run) -> Std:
    """Raises CannotTell where config does not name the std; nor the width, unless the std is too large for any."""
    told = settings.setting(run, "init_std")
    std, width = settings.as_number(told.value) if told else None, settings.number(run, "width")
    if told is not None and told.key.endswith("scale"):  # a factor of an std that nobody names
        if std is None or not SCALES[0] < std < SCALES[1]:
            raise CannotTell("config does not name the std of the initial weights")
        return Std(std, LARGE, told.where, f"Config multiplies the usual initial weights by {std:g}: {told.key}.")
    if told is None:
        named = ((t, m) for t in settings.named(run, INITIALIZERS) if (m := _NORMAL.fullmatch(str(t.value).lower())) is not None)
        told, std = next(((t, float(m["std"])) for t, m in named), (None, None))
    if told is None or not std or std < 0:
        raise CannotTell("config does not name the std of the initial weights")
    usual = math.sqrt(1 / 3 / (width if width and width > 0 else 1))
    found = Std(
        std, usual, told.where, f"Config sets an init std of {std:g}, and {usual:.3g} keeps the variance of layers: sqrt(1 / (3 width))."
    )
    if not (width and width > 0) and not found.large:
        raise CannotTell("config does not name the width of the model, so that no usual std of the initial weights is known")
    return found


def of_library(run: Run, first: float, chance: float | None) -> str:
    """What config says of the model where a first loss, in nats, is no higher than the weights make it that its library begins with: T5's logits have an
    std of sqrt(width), and the largest of n normal numbers is sqrt(2 ln n) times that at most, in the mean."""
    width = settings.number(run, "width")
    if chance is None or width is None or width <= 0 or not all(settings.named(run, key) for key in _OF_T5):
        return ""
    most = chance + math.sqrt(2 * chance * width)
    said = f"config describes a T5, whose library begins with logits so large that a first loss up to {most:.3g} is usual"
    return said if first <= most else ""

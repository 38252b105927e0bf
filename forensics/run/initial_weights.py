"""The std of the initial weights, as configured, beside what keeps the variance of layers."""

from __future__ import annotations

import math
from typing import NamedTuple

from forensics.errors import CannotTell
from forensics.run import settings
from parsers.tables import Run

DEFAULT = 0.02  # of GPT-2, BERT and GPT-NeoX at any width: no fault of its own
LARGE = 2.0  # times sqrt(1 / (3 width)): twice the std is four times the variance that He and Glorot initialization keep constant


class Std(NamedTuple):
    std: float
    usual: float  # sqrt(1 / (3 width)); of a width of one where none is known
    where: str

    @property
    def large(self) -> bool:
        return self.std > max(LARGE * self.usual, DEFAULT)


def configured(run: Run) -> Std:
    """Raises CannotTell where config does not name the std; nor the width, unless the std is too large for any."""
    told = settings.setting(run, "init_std")
    std, width = settings.as_number(told.value) if told else None, settings.number(run, "width")
    if told is None or not std or std < 0 or told.key.endswith("scale"):  # a scale is a factor of an std that nobody names
        raise CannotTell("config does not name the std of the initial weights")
    if (not width or width <= 0) and (anyway := Std(std, math.sqrt(1 / 3), told.where)).large:
        return anyway
    if not width or width <= 0:
        raise CannotTell("config does not name the width of the model, so that no usual std of the initial weights is known")
    return Std(std, math.sqrt(1 / (3 * width)), told.where)

"""What the log itself says about the order of the data: first label, samples consumed, steps an epoch."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np

from forensics.run.endings import step_origin
from forensics.run.once import once
from forensics.run.series import Series, series
from parsers import arrow
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

_TWIN = lazy_re(r"^(?P<base>.+?)[ _/-]vs[ _-]samples$", re.I)
SINGLE = 1.2e-7  # TensorBoard keeps single precision
_AXIS = lazy_re(r"^Train/Samples/(?P<what>\w+)$")


@dataclass(frozen=True)
class Consumed:
    """step -> samples consumed once that step is done, as far as the log says it."""

    after: dict[int, int]
    what: str  # where it was read: "the series 'consumed samples'"

    def span(self, step: int, origin: int) -> tuple[int, int] | None:
        """[first, last) place of a step in the order of samples; None where the log leaves it open."""
        last, first = self._at(step, origin), self._at(step - 1, origin)
        return (first, last) if first is not None and last is not None and last > first else None

    def _at(self, step: int, origin: int) -> int | None:
        """At that step, or between two logged ones a whole share of a growth that is even over its neighbours, too."""
        if step in self.after:
            return self.after[step]
        if step == origin - 1:
            return 0
        known = sorted([origin - 1, *self.after])
        later = int(np.searchsorted(known, step))
        if later in (0, len(known)):
            return None
        a, b = known[later - 1], known[later]
        grown = self.after[b] - self.after.get(a, 0)
        rates = [self._rate(known, i) for i in (later - 1, later, later + 1)]
        if grown % (b - a) or len({r for r in rates if r is not None}) > 1:
            return None  # the batch size changes here or nearby: where exactly is not known
        return self.after.get(a, 0) + grown // (b - a) * (step - a)

    def _rate(self, known: list[int], i: int) -> float | None:
        if not 0 < i < len(known):
            return None
        return (self.after[known[i]] - self.after.get(known[i - 1], 0)) / (known[i] - known[i - 1])


@once
def consumed(run: Run) -> Consumed | None:
    """From a series of samples so far, or from a twin series that is logged over samples; None where neither is there."""
    return _from_series(run) or _from_twin(run)


def _from_series(run: Run) -> Consumed | None:
    s = series(run, "samples.seen")
    if s is None or len(s) < 2 or not np.isfinite(s.value).all() or (s.value != np.round(s.value)).any():
        return None
    return _checked(s.step[s.alive], s.value[s.alive], f"'{s.tag}'", step_origin(run))


def _checked(steps: np.ndarray, values: np.ndarray, what: str, first: int) -> Consumed | None:
    """Some write the count before the step is done: told by the first rows, where the batch size is known from the growth."""
    grown, apart = np.diff(values), np.diff(steps)
    usual = np.flatnonzero((apart > 0) & (grown > 0))
    if not len(usual) or (grown[apart > 0] < 0).any():
        return None
    size = grown[usual[0]] / apart[usual[0]]
    before = values[0] == size * (steps[0] - first)
    after = {int(s) - int(before): int(v) for s, v in zip(steps, values, strict=True)}
    return Consumed(after, what)


def _from_twin(run: Run) -> Consumed | None:
    """'lm loss vs samples' beside 'lm loss': the same values in the same order, over samples instead of steps."""
    table = run.tables["metrics"]
    if not table.num_rows:
        return None
    codes, tags = arrow.codes(table["tag"])
    for i, tag in enumerate(tags):
        m = _TWIN.match(tag)
        base = next((t for t in (m["base"], m["base"].rsplit("/", 1)[-1]) if t in tags), None) if m else None
        if base is None:
            continue
        twin, plain = (table.take(np.flatnonzero(codes == c)) for c in (i, tags.index(base)))
        if twin.num_rows != plain.num_rows or any(t["step"].null_count for t in (twin, plain)):
            continue
        over_samples, values = arrow.values(twin["step"]), arrow.values(twin["value"])
        steps, same = arrow.values(plain["step"]), arrow.values(plain["value"])
        if np.array_equal(values, same, equal_nan=True) and (over_samples > steps).any():
            last = {int(s): int(n) for s, n in zip(steps, over_samples, strict=True)}  # of a step done twice the last
            return Consumed(last, f"'{tag}' beside '{base}'")
    return None


def sample_axis(run: Run) -> list[int] | None:
    """The labels of DeepSpeed's ``Train/Samples/...``, which are samples consumed; None where the steps are steps."""
    s = series(run, "loss.train")
    return [int(x) for x in s.step[s.alive]] if s is not None and _AXIS.match(s.tag) else None


def epoch_length(run: Run) -> tuple[float, float, str] | None:
    """(least, most, tag): bounds of the optimizer steps in an epoch, from the logged epochs; None where they say nothing."""
    s = series(run, "epoch")
    if s is None or len(s) < 2:
        return None
    keep = s.usable
    steps, epochs = s.step[keep], s.value[keep]
    if len(steps) < 2 or (np.diff(epochs) < 0).any():
        return None
    if (epochs != np.floor(epochs)).any():
        bounds = _fractional(steps - step_origin(run) + 1, epochs) or _fractional(steps - step_origin(run), epochs)
    else:
        bounds = _whole(steps - step_origin(run), epochs, s)
    return (*bounds, s.tag) if bounds else None


def _fractional(done: np.ndarray, epochs: np.ndarray) -> tuple[float, float] | None:
    """Epochs that grow with every step: each row bounds the length by its rounding."""
    rows = np.flatnonzero((done > 0) & (epochs > 0))
    if not len(rows):
        return None
    digits = max(_digits(float(e)) for e in epochs[rows[:50]])
    half = np.maximum(0.5 * 10.0**-digits, SINGLE * epochs[rows])
    low = float((done[rows] / (epochs[rows] + half)).max())
    high = float((done[rows] / np.maximum(epochs[rows] - half, 1e-12)).min())
    return (low, high) if low <= high else None


def _whole(index: np.ndarray, epochs: np.ndarray, s: Series) -> tuple[float, float] | None:
    """Epochs as whole numbers: the first row of the m-th later epoch is at or after m lengths, the row before it is not."""
    later = epochs - epochs[0]
    if index[0] > s.interval:
        return None  # the log begins in the middle
    low, high = float(index[-1] / (later[-1] + 1)), math.inf
    for i in np.flatnonzero(np.diff(later) > 0):
        low = max(low, float(index[i] / later[i + 1]))
        high = min(high, float(index[i + 1] / later[i + 1]))
    return (low, high) if low < high else None


def _digits(x: float) -> int:
    text = f"{x:.10f}".rstrip("0")
    return len(text.partition(".")[2])

"""Hugging Face's NaN filter, inverted: how many micro-batches were NaN, from the value that was logged.

The Trainer (``logging_nan_inf_filter``, on by default) adds S / (1 + m) in place of a micro-loss that is not
finite: S is the sum since the last log, m the optimizer steps finished since then. With k steps a log, a
micro-batches a step and a loss of L, n NaN micro-batches that come first in step m + 1 of the interval are
logged as

    X k = L (m (1 + 1/(1 + m))^n + (a - n)/a + (k - m - 1)),

and NaN from there on as L m prod (1 + 1/(1 + m'))^a over the steps m' that are left, then exact zeros. Verified on
transformers 5.23.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Match:
    """NaN micro-batches `nans` of step `finished` + 1 in the interval; `forever` where all later ones are NaN too."""

    finished: int
    nans: int
    expected: float  # what the filter would have logged
    forever: bool = False


def logged(level: float, steps: int, micro: int, finished: int, nans: int) -> float:
    """The mean that the Trainer logs for an interval with `nans` NaN micro-batches after `finished` whole steps."""
    grown = finished * (1 + 1 / (1 + finished)) ** nans
    return level * (grown + (micro - nans) / micro + steps - finished - 1) / steps


def logged_forever(level: float, steps: int, micro: int, finished: int) -> float:
    """The same where every micro-batch is NaN from there on; intervals after this one are exactly zero."""
    total = level * finished
    for m in range(finished, steps):
        total *= (1 + 1 / (1 + m)) ** micro
    return total / steps


def explain(
    value: float, level: float, noise: float, steps: int, micro: int, *, forever: bool = False, at_end: bool = False
) -> Match | None:
    """How the filter could have made `value` out of `level`, within three times `noise`; None where it could not.

    Several ways may fit. Whole steps come before parts of one, and with `at_end` (the gradient norm of the row,
    which is the last step's, was not finite) the last step comes before the others; then the nearest. With
    `forever` only NaN without an end is tried: say so where the next logged value is exactly zero.
    """
    if level <= 0:
        return None
    if forever:
        tries = [Match(m, micro, logged_forever(level, steps, micro, m), True) for m in range(steps)]
    else:
        tries = [Match(m, n, logged(level, steps, micro, m, n)) for m in range(steps) for n in range(1, micro + 1)]
    fitting = [t for t in tries if abs(t.expected - value) <= max(3 * noise, 1e-3 * level) * max(t.expected / level, 1.0)]
    return min(fitting, key=lambda t: (at_end and t.finished != steps - 1, t.nans != micro, abs(t.expected - value)), default=None)

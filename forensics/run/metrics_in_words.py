"""Metrics that have no canonical name, found by the words of their tags: losses of two players, terms of a sum, routers."""

from __future__ import annotations

import re

import numpy as np

from forensics.run.once import once
from forensics.run.series import Floats, Ints, Series, names, parts
from forensics.run.usable_values import first_level, last_level
from forensics.spikes.medians import centred_median
from parsers.name_rules import words
from parsers.tables import Run

LEAST, MOST = 5, 400  # values of a series; tags that are looked at: experts by layer are many, wandb's system metrics more
LONGEST = 200  # characters of a tag that are looked at: some of the patterns take the square of it


@once
def worded(run: Run, pattern: str) -> tuple[Series, ...]:
    """The term of a loss, layer of a norm and nameless metric whose words match, the most values first."""
    found: list[Series] = []
    for name in names(run, LEAST):
        if name.startswith("other/") and re.search(pattern, words(name.removeprefix("other/"))[:LONGEST]) and len(found) < MOST:
            found += parts(run, name)
    for name in ("loss.aux", "loss.part", "loss.train", "rl.kl"):
        found += [p for p in parts(run, name)[:MOST] if re.search(pattern, words(p.tag)[:LONGEST])]
    return tuple(sorted((s for s in found if s.usable.sum() >= LEAST), key=lambda s: -int(s.usable.sum())))


def probability(found: tuple[Series, ...]) -> Series | None:
    """The first series that is a probability."""
    return next((p for p in found if p.value[p.usable].min() >= 0 and p.value[p.usable].max() <= 1), None)


def together(*found: Series) -> tuple[Ints, tuple[Floats, ...]]:
    """The steps at which all of them have a usable value, and their values there."""
    by_step = [dict(zip(p.step[p.usable].tolist(), p.value[p.usable].tolist(), strict=True)) for p in found]
    step = sorted(set.intersection(*(set(d) for d in by_step)))
    return np.array(step, np.int64), tuple(np.array([d[i] for i in step], np.float64) for d in by_step)


def both_levels(s: Series) -> tuple[float, float]:
    """Medians of the first and of the last tenth of the values, of three at least; NaN of an empty series."""
    x = s.value[s.usable]
    return last_level(x[::-1]), last_level(x)


def moved_from(s: Series) -> tuple[float, float]:
    """The first values and the last tenth: what a fall within the first steps does not blur; NaN of an empty series."""
    x = s.value[s.usable]
    return first_level(x), last_level(x)


def stays_from(s: Series, limit: float) -> int | None:
    """The first step from which on the series, smoothed over a tenth of its values, never lies above `limit`; None where its end does."""
    step, x = s.step[s.usable], s.value[s.usable]
    x = centred_median(x, max(len(x) // 10, 1) | 1)
    above = np.flatnonzero(x > limit)
    if not len(x) or (len(above) and above[-1] == len(x) - 1):
        return None
    return int(step[above[-1] + 1]) if len(above) else int(step[0])

"""What a log could have shown at most: the smallest spike that survives its noise, interval and smoothing."""

from __future__ import annotations

import re

from forensics.run.series import Series
from forensics.spikes.excursions import PEAK_SIGMA, smallest_visible

TIMES = 10.0  # a larger rise is told as a factor: four-digit percentages are hard to read


def smallest_spike(s: Series) -> str:
    """The smallest spike this series would have shown, in words; '' where it is too short to say.

    In the value as logged it is six sigmas, at least 1 %. A spike of a single step is that many times larger where a
    value is the mean of several steps, and of any size where values between are not logged, or where a median eats it.
    """
    share = smallest_visible(s.value[s.alive])
    if share is None:
        return ""
    up = f"+{share:.1%}" if share < TIMES else f"{1 + share:.0f} times the level"
    smoothing, window = s.smoothing or "none", s.interval
    counted = re.search(r"\d+", smoothing)
    decay = re.search(r"0\.\d+", smoothing)
    if "median" in smoothing:
        width = int(counted.group()) if counted else max(window, 2)
        return f"{up} for at least {width // 2 + 1} steps (a median of {width} hides what is shorter)"
    if decay:
        gain = 1 - float(decay.group())
        one = f"+{share / gain:.0%} in one step"
        return f"{up} in the smoothed value: {one} (moving average, decay {decay.group()})"
    if smoothing != "none":
        steps = int(counted.group()) if counted and "." not in smoothing else window
        return f"{up} in one logged value: +{share * steps:.0%} in one step ({smoothing} over {steps} steps)"
    if window > 1:
        return f"{up} in one value, if it falls on a logged step (every {window}), or lasts {window} steps"
    return f"{up} in one value ({PEAK_SIGMA:.0f} sigmas)"

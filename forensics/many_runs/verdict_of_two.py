"""What sets two runs apart, as one verdict: where they part, how the end differs, what a step takes, and the most suspect difference."""

from __future__ import annotations

from typing import Any

import numpy as np

from forensics.run import pace
from forensics.run.robust import error_of_median, median, robust_sigma
from forensics.run.series import Floats, series
from parsers.tables import Run

SUSPECT = 30.0  # settings below this are names, or excused
ERRORS = 3.0  # statistical: standard errors; chance does it once in 370
FASTER = 0.02  # unit: a step that takes 2 % less is told; less is no reason to choose a run
LEAST = 5  # steps with a clock


def answer(told: dict[str, Any]) -> str:
    """What a reader has to know of two runs, in one to three sentences; each difference with whether it is beyond the noise."""
    parted = told["divergence"].get(told["metric"]) if told["metric"] else None
    if parted is None:
        return "Cannot tell where the runs part: their losses have too few steps in common."
    first, blamed = _parted(told, parted)
    return " ".join(filter(None, [first, _pace(told["step_seconds"]), _blame(told) if blamed else ""]))


def _parted(told: dict[str, Any], parted: dict[str, Any]) -> tuple[str, bool]:
    """(how the losses differ, whether that is something to explain)."""
    spike = next(iter(told["spikes"]), None)
    alone = f"at step {spike['step']} {spike['run']} alone spikes ({spike['class'].replace('_', ' ')})" if spike else ""
    if parted["equal"] == parted["common"]:
        return f"The losses are equal at all {parted['common']} common steps{f', but {alone}' if alone else ''}.", False
    start = f"The losses are equal to step {parted['last_equal']}; they" if parted["equal"] >= 3 else "The losses"
    if parted["level"] is not None:
        return f"{start} part at step {parted['level']}, {_end(told, parted)}.", True
    if alone:
        more = len(told["spikes"]) - 1
        others = f"; {more} more spikes are of one alone" if more else ""
        return f"{start} agree within their noise, but {alone}{others}.", True
    if parted["excursion"] is not None:
        which, way = parted["excursion_by"], parted["excursion_way"]
        # one easy batch is nothing to explain
        return f"{start} agree within their noise, but at step {parted['excursion']} {which} alone {way}.", way != "drops"
    return f"{start} do not part beyond their noise over {parted['common']} common steps.", False


def _end(told: dict[str, Any], parted: dict[str, Any]) -> str:
    """'and B ends 12 % lower, beyond the noise'."""
    entry = next((e for e in told["learning"] if e["axis"] == "steps" and not e["cannot_tell"]), None)
    if entry is None:
        return f"and B ends {'higher' if parted['last_difference'] > 0 else 'lower'}"
    if entry["better"] is None:
        return "but end within the noise of each other"
    a, b = entry["a"], entry["b"]
    if a <= 0 or b <= 0:
        size = f"{abs(b - a):.3g} {'higher' if b > a else 'lower'}"
    elif max(a / b, b / a) >= 2:
        size = f"{b / a:.3g} times as high"
    else:
        size = f"{100 * abs(b / a - 1):.2g} % {'higher' if b > a else 'lower'}"
    return f"and B ends {size}, beyond the noise"


def _pace(seconds: dict[str, Any] | None) -> str:
    if seconds is None:
        return ""
    a, b = (_duration(seconds[k]) for k in "ab")
    if seconds["faster"] is None:
        return f"A step takes as long in both ({a})." if a == b else f"A step takes {a} in A and {b} in B, no difference beyond the noise."
    less = 1 - min(seconds["a"], seconds["b"]) / max(seconds["a"], seconds["b"])
    return f"A step takes {a} in A and {b} in B: {seconds['faster']} is {100 * less:.2g} % faster, beyond the noise."


def _duration(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"


def _blame(told: dict[str, Any]) -> str:
    suspect = [d for d in told["config"] + told["environment"] if d["suspicion"] >= SUSPECT]
    if not suspect:
        return "No setting that was logged explains it."
    first = max(suspect, key=lambda d: d["suspicion"])
    values = f"{_value(first['a'])} in A and {_value(first['b'])} in B"
    if all(d["kind"] == "seed" for d in suspect):
        return f"Of the settings that were logged only the seed differs ({values})."
    others = f" (and {len(suspect) - 1} more)" if len(suspect) > 1 else ""
    return f"The most suspect difference: {first['key']}, {values}{others}."


def _value(v: Any) -> str:
    return "not set" if v is None else str(v)


def step_seconds(a: Run, b: Run) -> dict[str, Any] | None:
    """``{"a", "b", "sigma", "faster"}``: what a step usually takes in seconds, by ``time.step`` or the clock; None where one has neither."""
    one, two = _seconds(a), _seconds(b)
    if one is None or two is None:
        return None
    x, y = median(one), median(two)
    sigma = float(np.hypot(error_of_median(robust_sigma(one), len(one)), error_of_median(robust_sigma(two), len(two))))
    apart = abs(x - y) > max(ERRORS * sigma, FASTER * max(x, y))
    return {"a": x, "b": y, "sigma": sigma, "faster": None if not apart else "A" if x < y else "B"}


def _seconds(r: Run) -> Floats | None:
    said = series(r, "time.step")
    if said is not None and said.usable.sum() >= LEAST and said.unit in ("", "s"):
        return said.value[said.usable]
    s = series(r, "loss.train")
    if s is None:
        return None
    a_step = pace.pauses(s).a_step
    good = a_step[np.isfinite(a_step) & (a_step > 0)]
    return good if len(good) >= LEAST else None

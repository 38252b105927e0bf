"""Reproduce first: the same steps three times, the noise floor, and where replay and log part.

Two kinds of noise are measured: what identical replays differ by (kernels that are not deterministic), and what a change of
the weights by one rounding grows to (what another machine or kernel would give). A difference from the log counts only
where it is larger than both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from forensics.replays.agreement import FLOOR, REACH, View, shown, tolerance
from forensics.replays.runner import Effect, Lab, Trace, peak, spread
from forensics.replays.targets import SHARE, Logged, Trouble

TIMES = 3
BACK = 24  # steps before the onset in which the cause is looked for
SAME = 1.1e-3  # of a logged value: what a log rounds away (about four digits)


@dataclass(frozen=True)
class Overlay:
    """The replay laid over the log. `parts`: first label where they differ by more than noise."""

    view: View
    agreed: int  # labels that agreed before they part, or in all
    parts: int | None
    why: str  # "loss", "grad.norm" or "lr": what parts first

    @property
    def shift(self) -> int:
        return self.view.shift


@dataclass(frozen=True)
class Reproduction:
    traces: tuple[Trace, ...]
    floor: float
    drift: tuple[float, ...]  # by step: what a change of one rounding makes of the loss
    overlay: Overlay
    effect: Effect | None  # None where the effect does not come back
    seen: int  # in how many of the identical replays
    first: int  # the step where the effect shows in the replay (the onset in the log, where it does not)

    @property
    def trace(self) -> Trace:
        return self.traces[0]


def overlay(traces: tuple[Trace, ...], drift: tuple[float, ...], floor: float, log: Logged, view: View, last: int) -> Overlay:
    """Where the agreement of replay and log ends."""
    trace = traces[0]
    agreed, parts, why, reach = 0, None, "", 0.0
    labels = [s for s in sorted(log.loss) if s <= last]
    width = tolerance(log, labels)
    plain = not view.words
    for label in labels:
        value = shown(trace, view, log, label)
        if value is None:
            continue
        step = label - view.shift
        noise = drift[step - trace.first] if step - trace.first < len(drift) else math.inf
        reach = max(reach, noise) if math.isfinite(noise) else reach
        off = _apart(value, log.loss[label], max(REACH * reach, FLOOR * floor) + width + SAME * abs(log.loss[label]))
        norm = trace.norm[step - trace.first]
        off_norm = label in log.norm and norm is not None and _apart(norm, log.norm[label], 0.2 * abs(norm))
        off_lr = label in log.lr and plain and _apart(trace.lr[step - trace.first], log.lr[label], 0.02 * abs(log.lr[label]))
        if off or (off_norm and plain):
            parts, why = label, "loss" if off else "grad.norm"
            break
        if off_lr and not why:
            why = "lr"
        agreed += 1
    return Overlay(view, agreed, parts, why)


def _apart(replayed: float, logged: float, noise: float) -> bool:
    """Differ by more than noise."""
    if not (math.isfinite(replayed) and math.isfinite(logged)):
        return math.isfinite(replayed) != math.isfinite(logged)
    return abs(replayed - logged) > noise + 1e-7


def reproduce(lab: Lab, start: int, trouble: Trouble, log: Logged, view: View, most: int) -> Reproduction:
    """Runs from the start state to the end of the trouble, keeps at most so many states around its onset, and lays it over the log."""
    last = trouble.until - view.shift
    first_kept = max(start, trouble.onset - view.shift - max(BACK, 2 * log.interval))
    thin = math.ceil((last + 1 - first_kept) / most)
    keep = {s: f"at {s}" for s in range(first_kept, last + 1) if (s - first_kept) % thin == 0 and s != start}
    middle = (start + first_kept) // 2
    if middle - start >= 16:
        keep[middle] = f"at {middle}"  # another state to try a batch at
    state = "start"
    lab.states = {start: state}
    steps = range(start, last + 1)
    traces = [lab.run(state, start, steps, keep={str(s - start): name for s, name in keep.items()})]
    lab.states |= keep
    traces += [lab.run(state, start, steps) for _ in range(TIMES - 1)]
    floor = max((_largest(traces[0].loss, t.loss) for t in traces[1:]), default=0.0)
    nudged = lab.run(state, start, steps, changes={"nudge": 1})
    drift = tuple(abs(a - b) for a, b in zip(traces[0].loss, nudged.loss, strict=True))
    over = overlay(tuple(traces), drift, floor, log, view, trouble.until)
    effects = [_effect(t, trouble, log, over, floor) for t in traces]
    seen = [e for e in effects if e is not None]
    effect = effects[0] or (seen[0] if seen else None)
    return Reproduction(tuple(traces), floor, drift, over, effect, len(seen), _first(traces[0], trouble, over, log, effect))


def _largest(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    pairs = [(x, y) for x, y in zip(a, b, strict=True) if math.isfinite(x) or math.isfinite(y)]
    return max((abs(x - y) if math.isfinite(x - y) else math.inf for x, y in pairs), default=0.0)


def _effect(trace: Trace, trouble: Trouble, log: Logged, over: Overlay, floor: float) -> Effect | None:
    """The effect in a replay, None where it does not come back to at least half of its logged height."""
    begin = trouble.onset - over.shift - (log.interval - 1)
    if trouble.subtle:
        return None
    before, inside = trace.window(begin - 32, begin - 1), trace.window(begin, trouble.until - over.shift)
    level, sigma = spread(list(before))
    if not math.isfinite(level):
        level = trouble.level
    top = peak(inside)
    if not inside:
        return None
    if math.isnan(top):
        ordinary = [x for x in trace.loss if math.isfinite(x)]
        usual, noise = spread(ordinary)
        return Effect(level, math.nan, usual + max(abs(usual), 20 * noise, 3 * floor), sigma, True, floor)
    if trouble.nonfinite:
        return None
    height = top - level
    labels = [v for s in log.loss if trouble.onset <= s <= trouble.until and (v := shown(trace, over.view, log, s)) is not None]
    as_logged = max(labels, default=top) if over.view.words else top
    if as_logged - trouble.level < SHARE * (trouble.top - trouble.level) or height <= 3 * floor:
        return None
    rises = ((begin + i, x - level) for i, x in enumerate(inside) if x - level > 2 * sigma)
    shape = tuple((s, x) for s, x in rises if trouble.end is None or s < max(trouble.end - over.shift, begin + 1))
    return Effect(level, height, level + max(0.5 * height, 3 * floor), sigma, False, floor, shape)


def _first(trace: Trace, trouble: Trouble, over: Overlay, log: Logged, effect: Effect | None) -> int:
    """The step where the effect first shows in the replay."""
    begin = trouble.onset - over.shift - (log.interval - 1)
    steps = (trace.first + i for i, x in enumerate(trace.loss) if effect is not None and effect.of([x]) in ("spike", "nan"))
    return next((s for s in steps if s >= begin), trouble.onset - over.shift)

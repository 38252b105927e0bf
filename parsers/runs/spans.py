"""What two stretches of log are to each other: one attempt, a restart of the other, or neither. By steps, and by clocks where there are any.

`parsers.read` tells runs and attempts apart by these rules, and so does an audit that looks for restarts in other folders.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

BEGINS = 0.02  # share of the other's steps after which a restart begins; before, both begin at the beginning
AFTER = 0.25  # share of the other's steps that may be missing between the two: work whose log was lost
AT_ONCE = 0.1  # share of the shorter of two times that one attempt's files have in common
SAME_STEPS = 0.5  # the same for steps, without clocks


@dataclass(frozen=True)
class Span:
    """First and last step, first and last moment in seconds since 1970 where the log has a clock, and steps between two rows."""

    first: int
    last: int
    times: tuple[float, float] | None = None
    interval: int = 1


def joined(spans: Iterable[Span]) -> Span:
    """The span that covers all of them."""
    spans = list(spans)
    times = [t for s in spans if s.times for t in s.times]
    return Span(min(s.first for s in spans), max(s.last for s in spans), (min(times), max(times)) if times else None)


def goes_on(a: Span, b: Span) -> bool:
    """Does b go on from a: from within its steps, or right after them, and begun later where both have a clock?"""
    steps = max(a.last - a.first, 1)
    if not a.first + max(BEGINS * steps, 2 * a.interval) <= b.first <= a.last + AFTER * steps + 1:
        return False
    return a.times is None or b.times is None or a.times[0] < b.times[0]


def at_once(a: Span, b: Span) -> bool:
    """Were both written at the same time, as the files of one attempt are?"""
    if a.times is None or b.times is None:
        return False
    shared = min(a.times[1], b.times[1]) - max(a.times[0], b.times[0])
    shortest = min(a.times[1] - a.times[0], b.times[1] - b.times[0])
    return shared > AT_ONCE * shortest or (shared >= 0 and shortest == 0)


def shared_steps(a: Span, b: Span) -> float:
    """Share of the shorter one's steps that the other covers; below zero where steps lie between them."""
    return (min(a.last, b.last) - max(a.first, b.first) + 1) / (min(a.last - a.first, b.last - b.first) + 1)

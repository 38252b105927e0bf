"""What two stretches of log are to each other: one attempt, a restart of the other, or neither. By steps, and by clocks where there are any.

`parsers.read` tells runs and attempts apart by these rules, and so does an audit that looks for restarts in other folders.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

BEGINNING = 1.5  # logging intervals within which a log's first row stands, whether its steps count from 0 or from 1
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
    ends = (min(times), max(times)) if times else None
    return Span(min(s.first for s in spans), max(s.last for s in spans), ends, min(s.interval for s in spans))


def goes_on(a: Span, b: Span) -> bool:
    """Does b go on from a: from within its steps, or right after them, and begun later where both have a clock?

    A log's first row at its own logging interval is its beginning, and nothing went before.
    """
    every = max(a.interval, b.interval)
    if b.first <= max(1, a.first, BEGINNING * every) or b.first > a.last + AFTER * (a.last - a.first) + every:
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

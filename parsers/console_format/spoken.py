"""What the text in a field of a record reports: a line or several, with a traceback perhaps. A helper, no parser."""

from __future__ import annotations

from functools import lru_cache

from parsers.console_format.event_lines import Event, event_of
from parsers.console_format.line_prefix import Where
from parsers.console_format.tracebacks import TRACEBACK, Traceback

_MOST_LINES = 2000


@lru_cache(maxsize=4096)  # rows say the same again and again
def event_in(text: str) -> Event | None:
    """The last exception that a text holds, else the gravest thing that one of its lines reports; None for chatter."""
    lines = text.splitlines()[:_MOST_LINES]
    if len(lines) < 2:
        return event_of(text)
    begins = [i for i, line in enumerate(lines) if TRACEBACK.search(line)]
    if begins:
        traceback = Traceback(Where(0, None))
        for line in lines[begins[-1] + 1 :]:
            if not traceback.feed(line):
                break
        return traceback.event()
    found = [event for line in lines if (event := event_of(line)) is not None]
    return next((event for event in found if event.level == "error"), found[0] if found else None)

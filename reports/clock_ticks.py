"""Round moments on a wall clock."""

from __future__ import annotations

import math

from markupsafe import Markup

from reports import text_format
from reports.labels import pct, tag
from reports.scales import Scale

ROUND = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)  # seconds


def ticks(lo: float, hi: float, n: int = 6) -> list[tuple[float, str, str]]:
    """About n moments in [lo, hi], seconds since 1970: (moment, 'HH:MM' or, where these would repeat, 'HH:MM:SS', the day where it is new)."""
    span = max(hi - lo, 1.0)
    every = next((s for s in ROUND if s * n >= span), 86400 * math.ceil(span / n / 86400))
    found: list[tuple[float, str, str]] = []
    day = ""
    for i in range(math.ceil(lo / every), math.floor(hi / every) + 1):
        stamp = text_format.stamp(i * every)
        if stamp is not None:
            today = text_format.day(stamp)
            found.append((float(i * every), stamp[11:16] if every >= 60 else stamp[11:19], today if today != day else ""))
            day = today
    return found


def drawn(x: Scale, y: int, n: int = 5) -> list[Markup]:
    """The moments beneath a drawing, days on a second line; on a phone every second moment."""
    out = []
    for i, (at, clock, day) in enumerate(ticks(x.lo, x.hi, n)):
        edge = "first" if x(at) < 0.06 else "last" if x(at) > 0.94 else ""
        for row, said in enumerate([clock, day] if day else [clock]):
            out.append(
                tag('<text class="xl {}" x="{}" y="{}">{}</text>', f"{edge}{' wide' if i % 2 else ''}", pct(x(at)), y + 15 * row, said)
            )
    return out

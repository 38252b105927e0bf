"""How the answers of a model that is rewarded for them end: by themselves, or cut off at their longest length."""

from __future__ import annotations

import numpy as np

from forensics.run import settings
from forensics.run.robust import median
from forensics.run.series import Series, series
from parsers.tables import Run

CUT = 0.25  # unit: one answer in four, whose reward is that of a text without its end
FULL = 0.95  # of the longest length: a mean that near leaves room for few answers that end
TENTH = 10  # bound: the last tenth of the values is the end
_LONGEST = "max_completion_length max_response_length response_length max_new_tokens max_gen_len max_tokens generate_max_len"


def cut_off(run: Run, least: int) -> tuple[Series, int, float, float] | None:
    """(series, row, level at first, level at the end) where a quarter of the answers are cut off at the end, or their mean length is nearly
    the longest that config allows; None where most of them end by themselves, or nothing tells."""
    shares, lengths, longest = series(run, "rl.trunc"), series(run, "rl.len"), settings.named(run, _LONGEST)
    most = settings.as_number(longest[-1].value) if longest else None
    for s, limit in ((shares, CUT), (lengths, FULL * most if most else None)):
        if s is None or limit is None or s.usable.sum() < least:
            continue
        rows = np.flatnonzero(s.usable)
        x = s.value[rows] / (100 if s is shares and s.value[rows].max() > 1 else 1)
        part = max(len(x) // TENTH, 3)
        first, last = median(x[:part]), median(x[-part:])
        if last >= limit:
            return s, int(rows[int(np.argmax(x >= limit))]), first, last
        return None
    return None

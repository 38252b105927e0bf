"""Settings against outcomes, as plain tables with counts: no model, no claim; a reader judges what else differed.

One table a setting that takes at least two values: for each value (or range, where there are many) the number of runs,
how many went wrong, how many spiked, and the median of the last loss among runs of the commonest family, because losses of
different tasks do not compare.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from forensics.many_runs.brief import Brief
from forensics.run.robust import median
from parsers.lazy_regex import lazy_re

MOST_VALUES, MOST_ROWS = 8, 40
_DEBRIS = lazy_re(r"[{}()\[\]'\"=]|\s#[0-9a-f]{8}$")  # of a structure that was printed, cut or not: no value to count by


def tables(runs: Sequence[Brief]) -> list[dict[str, Any]]:
    """``{"name", "known", "rows": [{"value", "runs", "unhealthy", "spiked", "loss", "losses"}]}``, by name."""
    common = Counter(r.family for r in runs if r.levels)
    family = min(common, key=lambda f: (-common[f], f)) if common else ""
    found = []
    for name in sorted({k for r in runs for k in r.settings}):
        known = [r for r in runs if r.settings.get(name) is not None and not _DEBRIS.search(str(r.settings[name]))]
        bins = _bins([r.settings[name] for r in known])
        if len(set(bins)) < 2:
            continue
        order = list(dict.fromkeys(b for _, b in sorted(zip((_order(r.settings[name]) for r in known), bins, strict=True))))
        members: dict[str, list[Brief]] = defaultdict(list)
        for r, b in zip(known, bins, strict=True):
            members[b].append(r)
        found.append({"name": name, "known": len(known), "rows": [_row(b, members[b], family) for b in order[:MOST_ROWS]]})
    return found


def _order(value: Any) -> tuple[int, float, str]:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return (0, float(value), "") if number else (1, 0.0, str(value))


def _bins(values: Sequence[Any]) -> list[str]:
    """The values themselves where there are few, ranges with about equally many runs where there are many numbers."""
    distinct = set(map(str, values))
    numbers = [v for v in values if isinstance(v, (int, float)) and not isinstance(v, bool)]
    if len(distinct) <= MOST_VALUES or len(numbers) < len(values):
        return [_plain(v) for v in values]
    edges = np.unique(np.quantile(np.array(numbers, np.float64), np.linspace(0, 1, 6)))
    code = np.clip(np.searchsorted(edges, numbers, "right") - 1, 0, len(edges) - 2)
    last = len(edges) - 2
    return [f"{edges[i]:.4g} to {'' if i == last else 'below '}{edges[i + 1]:.4g}" for i in code]


def _plain(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)[:60]


def _row(value: str, runs: Sequence[Brief], family: str) -> dict[str, Any]:
    levels = [r.levels["loss.train"][0] for r in runs if r.family == family and "loss.train" in r.levels]
    return {
        "value": value,
        "runs": len(runs),
        "unhealthy": sum(r.unhealthy for r in runs),
        "spiked": sum(r.spikes > 0 for r in runs),
        "loss": median(levels) if levels else None,
        "losses": len(levels),
    }

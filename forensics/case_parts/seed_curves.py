"""All seeds of a group in one picture."""

from __future__ import annotations

from typing import Any

from forensics.detectors import seed_spread
from forensics.run import settings
from forensics.run.downsample import m4
from forensics.run.series import series
from parsers.tables import Run

COLUMNS, MOST = 100, 40  # unit: columns of a curve; curves


def seeds(run: Run) -> dict[str, Any] | None:
    """The keys of `pictures.seeds`: the loss of each run of the group, the lowest last level first; None for a run alone."""
    for name in ("loss.eval", "loss.train"):
        known = [(level[0], r, s) for r in run.group if (level := seed_spread.level(r, name)) and (s := series(r, name)) is not None]
        if len(known) < 2:
            continue
        known.sort(key=lambda k: k[0])
        kept = known if len(known) <= MOST else [*known[: MOST - 10], *known[-10:]]
        runs = [
            {"id": r.id, "seed": _seed(r), "last": level, "points": m4(s.step[s.alive], s.value[s.alive], COLUMNS)} for level, r, s in kept
        ]
        log = all(s.scale == "log" for _, _, s in kept)
        return {
            "metric": name,
            "unit": known[0][2].unit,
            "scale": "log" if log else "linear",
            "runs": runs,
            "left_out": len(known) - len(kept),
        }
    return None


def _seed(run: Run) -> int | None:
    seed = settings.number(run, "seed")
    return int(seed) if seed is not None else None

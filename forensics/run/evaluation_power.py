"""What differences an evaluation can tell: its scatter from one to the next, how far the run moved it, and the error of a share of few items.

Of two metrics, the one that moves more times its own scatter tells more of small changes (signal and noise of benchmarks: arXiv 2508.13144).
"""

from __future__ import annotations

import numpy as np

from forensics.run import settings
from forensics.run.evaluation_noise import noise_of
from forensics.run.inputs import surviving
from forensics.run.series import Series, parts
from parsers.tables import Run

LEAST = 6  # bound: the four second differences of six make a scatter (forensics.detectors.dataset_loss)
SHOWN = 6  # unit: metrics that a page tells, those that tell most first
SURE = 1.96  # statistical: standard errors, within which chance stays in 95 % of cases
NAMES = ("loss.eval", "acc.eval", "ppl.eval", "bpb.eval")
_ITEMS = "eval_samples num_eval_samples n_eval n_eval_samples eval_size val_size n_val num_val_samples test_size n_test num_test_samples eval_limit"


def told(run: Run) -> list[tuple[Series, int, str, str]]:
    """(series, row of its last value, what it can tell, how that is known) of each evaluation, the most telling one first."""
    found = []
    for s in (p for name in NAMES for p in parts(run, name)):
        rows = surviving(s)
        x = s.value[rows]
        noise = noise_of(x) if len(x) >= LEAST else 0.0
        if noise <= 0:
            continue
        third = len(x) // 3
        moved = abs(float(np.median(x[-third:]) - np.median(x[:third])))
        text = f"{noise:.2g} from one evaluation to the next: two that differ by less than {SURE * np.sqrt(2) * noise:.2g} are equal"
        how = f"the run moved it by {moved:.2g}, {moved / noise:.2g} times that{_of_items(run, s, float(x[-1]))}"
        found.append((moved / noise, s, int(rows[-1]), text, how))
    return [f[1:] for f in sorted(found, key=lambda f: (-f[0], f[1].tag))[:SHOWN]]


def _of_items(run: Run, s: Series, value: float) -> str:
    """The error of a share of so many items, of two models beside each other."""
    items = next((n for x in settings.named(run, _ITEMS) if (n := settings.as_number(x.value)) and n >= 1), None)
    share = value / 100 if value > 1 else value
    if s.name != "acc.eval" or items is None or not 0 < share < 1:
        return ""
    apart = SURE * float(np.sqrt(2 * share * (1 - share) / items))
    return f"; of {items:.0f} items, two models have to differ by {apart:.1%}, and to tell half of that takes {4 * items:.0f}"

"""What a culprit batch did to the run: ordinary batches some steps later, with and without it.

A batch may be hard to read and leave nothing behind: its loss is high, and the next steps go on as before. Then there is nothing
to repair, and the batch is worth reading.
"""

from __future__ import annotations

import math
from typing import Any

from forensics.replays.bisect_batches import swapped
from forensics.replays.request import Scene

LATER = 5  # steps after the last culprit, where the replay reaches so far
BATCHES = 8  # ordinary ones that are looked at
CLEAR = 3  # times the standard error of their mean difference
WORTH = 0.02  # of the loss: what is less is no harm that anybody would repair


def measured(scene: Scene, culprits: tuple[int, ...], spare: list[int]) -> dict[str, Any]:
    """``{"step", "with", "without", "difference", "error", "harmed", "says"}``: mean losses of ordinary batches at the state of a step."""
    lab, shift = scene.lab, scene.shift
    at = min(culprits[-1] + 1 + LATER, scene.again.trace.first + len(scene.again.trace))
    first, states = culprits[0], {}
    for name, swap in (("with", {}), ("without", swapped(culprits, spare))):
        begin = lab.nearest(first)
        states[name] = f"harm {name}"
        lab.along(first, at - 1, swap, keep={str(at - begin): states[name]})
    chosen = list(dict.fromkeys(spare))[:BATCHES]
    losses = {k: [float(x) for x in lab.worker.ask("losses", state=s, batches=chosen)["losses"]] for k, s in states.items()}
    lab.looks += 2 * len(chosen)
    each = [a - b for a, b in zip(losses["with"], losses["without"], strict=True)]
    mean, usual = sum(each) / len(each), sum(losses["without"]) / len(each)
    error = math.sqrt(sum((d - mean) ** 2 for d in each) / max(len(each) - 1, 1) / len(each)) if len(each) > 1 else math.inf
    harmed = not math.isfinite(mean) or (mean > CLEAR * error and mean > WORTH * abs(usual))
    costs = (
        f"{at - culprits[-1] - 1} steps after it, {len(chosen)} ordinary batches cost {usual + mean:.4g} with it and {usual:.4g} without it"
    )
    says = f"{costs}: it did harm to the run." if harmed else f"{costs}: its loss was high, and it left no harm behind."
    return {"step": at + shift, "with": usual + mean, "without": usual, "difference": mean, "error": error, "harmed": harmed, "says": says}

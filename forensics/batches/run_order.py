"""The order of the data over many steps, for a replay whose adapter gives the data set and no batches."""

from __future__ import annotations

from typing import Any

from forensics.batches import match_loader, recorded, step_to_samples
from forensics.errors import ForensicsError
from parsers.tables import Run

MOST = 20_000  # steps that are handed over, those nearest to the one of interest
AROUND = (400, 260)  # steps before and after it of an order that has to be rebuilt


def around(run: Run, step: int) -> tuple[dict[int, list[Any]], str]:
    """(samples by logged step, how they are known). Raises ForensicsError where nothing tells them."""
    attempts = [a["index"] for a in run.attempts if a["steps"][0] <= step <= a["steps"][1]]
    attempt = max(attempts, default=0)
    listed: dict[int, tuple[int, list[Any]]] = {}
    for (a, s), (samples, _) in recorded.recorded(run).items():
        if samples and a <= attempt and (s not in listed or listed[s][0] <= a):
            listed[s] = (a, samples)
    if listed:
        near = sorted(listed, key=lambda s: abs(s - step))[:MOST]
        return {s: listed[s][1] for s in sorted(near)}, "recorded"
    found: dict[int, list[Any]] = {}
    why = "no file of the run says what its loader did"
    for s in range(max(step - AROUND[0], 0), step + AROUND[1] + 1):
        told = step_to_samples.rebuilt(run, s, attempt, match_loader.THOROUGH)
        if told["how"] != "unknown" and told["samples"]:
            found[s] = told["samples"]
        elif s == step:
            why = str(told["why"])
    if not found:
        raise ForensicsError(
            f"the order of the data is not known: {why}", "Give the adapter a batch(step), or name a manifest with --batches."
        )
    return found, "rebuilt"

"""What each part of the suspect samples costs, beside samples of an ordinary batch: losses of tokens, pixels or fields, never their content."""

from __future__ import annotations

from typing import Any

from forensics.replays import samples
from forensics.replays.client import ReplayFailed
from forensics.replays.request import Scene

BLAMED, OTHERS, ORDINARY = 10, 4, 4  # rows: what stays readable as one picture


def strips(scene: Scene, step: int, others: tuple[int, ...], found: samples.Found, spare: list[int]) -> dict[str, Any] | None:
    """``{"each", "per", "rows", "ordinary", "beside"}``; a row: ``row``, ``loss``, ``blamed``, ``parts``. None where the adapter's loss does not
    come apart."""
    blamed = [r["row"] for r in found.table if r["row"] in found.rows][:BLAMED]
    kept = [r["row"] for r in found.table if r["row"] not in found.rows][:OTHERS]
    if not blamed or not spare:
        return None
    state = samples.state_before(scene.lab, step, others, spare)
    try:
        ids = scene.lab.worker.ask("ids", batches=[spare[0]])
        ordinary = list(range(min(ORDINARY, ids["rows"][0])))
        looked = [
            scene.lab.worker.ask("elements", state=state, batch=b, rows=rows) for b, rows in ((step, blamed + kept), (spare[0], ordinary))
        ]
    except ReplayFailed as e:
        if e.kind != "adapter":
            raise
        return None
    scene.lab.looks += 2 * len(looked)
    if any("why" in found for found in looked):
        return None
    mine, usual = looked
    names = dict(enumerate(ids["ids"][0] or []))
    return {
        "each": mine["each"],
        "per": mine["per"],
        "rows": [
            {"row": r, "blamed": r in blamed, "loss": x, "parts": p}
            for r, x, p in zip(blamed + kept, mine["losses"], mine["parts"], strict=True)
        ],
        "ordinary": spare[0] + scene.shift,
        "beside": [
            {"sample": names.get(r, r), "loss": x, "parts": p} for r, x, p in zip(ordinary, usual["losses"], usual["parts"], strict=True)
        ],
    }

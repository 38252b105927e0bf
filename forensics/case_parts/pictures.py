"""What the pictures of the page are drawn from: plain numbers for each, None where the run shows nothing of the kind.

docs/case.md has the keys. Attempts and guards are drawn from what the case holds already.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from forensics.case import Finding
from forensics.case_parts import evaluation_error, layer_cells, memory_room, rank_cells, seed_curves
from forensics.many_runs import difference
from parsers.tables import Run


def build(run: Run, findings: Sequence[Finding[Any]], baseline: Run | None = None) -> dict[str, Any]:
    return {
        "ranks": rank_cells.ranks(run, findings),
        "layers": layer_cells.layers(run),
        "memory": memory_room.memory(run),
        "seeds": seed_curves.seeds(run),
        "baseline": difference.beside(baseline, run) if baseline is not None else None,
        "evaluation": evaluation_error.evaluation(run),
    }

"""The scores of a window for a terminal."""

from __future__ import annotations

from typing import Any

SHOWN = 12


def lines(found: dict[str, Any]) -> list[str]:
    """The answer, what it rests on, and the first rows."""
    start, (first, last) = found["from"], found["steps"]
    head = f"Batches of steps {first} to {last} and {found['ordinary']} ordinary ones, with the weights of {start['checkpoint']} (step {start['step']})."
    cells = [("step", "loss", "sigmas", "p", "corrected", "costliest sample", "its loss", "p")]
    for r in found["rows"][:SHOWN]:
        z = "-" if r["z"] is None else f"{r['z']:.1f}"
        cells.append(
            (
                str(r["step"]),
                f"{r['loss']:.4g}",
                z,
                f"{r['p']:.2g}",
                f"{r['corrected']:.2g}",
                str(r["sample"]),
                f"{r['sample_loss']:.4g}",
                f"{r['sample_p']:.2g}",
            )
        )
    wide = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    return [found["says"], head, found["counts"], "", *("  ".join(c.rjust(w) for c, w in zip(row, wide, strict=True)) for row in cells)]

"""A log that was copied off a terminal, whose lines break at its width; and logs that only have lines of one length."""

from pathlib import Path

import pyarrow as pa
import pytest

from parsers.console_format import terminal_width
from parsers.formats import console

NAMES = ("aux_mask_loss", "focal_loss", "prototype_loss", "contrastive_loss", "regression_loss")


def _record(i: int) -> str:
    """As detectron2 prints it."""
    parts = "  ".join(f"{name}_{k}: {1 / (i + k + 1):.4g}" for name in NAMES for k in range(4))
    return f"[12/22 22:{i:02}:54 d2.utils.events]:  eta: 0:02:30  iter: {20 * i + 19}  total_loss: {7 / (i + 1):.4f}  {parts}  lr: 0.0002"


def _shown(lines: list[str], columns: int) -> list[str]:
    """What a terminal makes of them: blanks at the end of a line are left out."""
    return [line[at : at + columns].rstrip() for line in lines for at in range(0, len(line), columns)]


def _metrics(folder: Path, lines: list[str]) -> list[dict]:
    path = folder / "train_log.txt"
    path.write_text("\n".join(lines) + "\n")
    return [
        r for b in console.parse(path) if isinstance(b, pa.RecordBatch) for r in b.to_pylist() if r.get("tag") and r["step"] is not None
    ]


@pytest.mark.parametrize("columns", [100, 120, 178])
def test_lines_that_a_terminal_broke_are_put_together(tmp_path: Path, columns: int) -> None:
    lines = [_record(i) for i in range(20)]
    shown = _shown(lines, columns)
    told = {(r["step"], r["tag"], r["value"]) for r in _metrics(tmp_path, lines)}
    rows = _metrics(tmp_path, shown)
    assert {(r["step"], r["tag"], r["value"]) for r in rows} == told
    assert {r["at"] for r in rows} == {i for i, s in enumerate(shown, 1) if s.startswith("[12/22")}  # lines keep their numbers


@pytest.mark.parametrize(
    "lines",
    [
        [f"step {i:06} | train_loss {3 + i / 1000:.6f} | learning_rate {1e-4:.3e}" for i in range(200)],  # of one length
        [_record(i % 10) for i in range(40)],  # longer than the terminal: nothing is broken
        ["=" * 80, "Layer (type)                 Output Shape              Param #".ljust(80, "_")] * 20,
    ],
)
def test_lines_of_one_length_are_whole(lines: list[str]) -> None:
    assert terminal_width.width("\n".join(lines)) == 0

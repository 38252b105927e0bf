"""Where lines of a console stand in the run: bars beyond their total, epochs beside losses without a step, batches within an epoch."""

from __future__ import annotations

from pathlib import Path

import parsers
from parsers.tables import Run


def read(tmp_path: Path, text: str, name: str = "train.log") -> Run:
    (tmp_path / name).write_text(text)
    return parsers.read(tmp_path)


def steps(run: Run, tag: str) -> list[int | None]:
    rows = run.tables["metrics"].to_pylist()
    return [r["step"] for r in rows if r["tag"] == tag]


def values(run: Run, tag: str) -> list[float]:
    rows = run.tables["metrics"].to_pylist()
    return [r["value"] for r in rows if r["tag"] == tag]


def _bars(beyond: int, total: int = 4, bare: bool = True) -> str:
    said = []
    for e in range(1, 4):
        updates = [f"Epoch {e}:   0%|          | 0/{total} [00:00<?, ?it/s]"] if bare else []
        updates += [f"Epoch {e}:  50%|#####     | {i}/{total} [00:0{i}<00:05, 1.00s/it, loss={9 - e - i / 10}]" for i in range(1, total + 1)]
        updates += [f"Epoch {e}: {i}it [00:0{i}, 1.00s/it, loss={9 - e - i / 10}]" for i in range(total + 1, total + 1 + beyond)]
        said.append("\r".join(updates) + f"\nEpoch {e} Loss: {9 - e}.5\n")
    return "".join(said)


def test_a_bar_that_runs_beyond_its_total_lengthens_its_epoch(tmp_path: Path) -> None:
    """tqdm was told fewer batches than there are, and says ``5it`` after ``4/4``."""
    for n, bare in enumerate((True, False)):
        (folder := tmp_path / str(n)).mkdir()
        run = read(folder, _bars(beyond=2, bare=bare))
        assert steps(run, "loss") == list(range(1, 19)) and len(run.attempts) == 1
        assert steps(run, "Loss") == [6, 12, 18]


def test_a_bar_that_ends_at_its_total_counts_as_before(tmp_path: Path) -> None:
    run = read(tmp_path, _bars(beyond=0))
    assert steps(run, "loss") == list(range(1, 13)) and steps(run, "Loss") == [4, 8, 12]


def test_a_bar_without_a_total_names_its_step(tmp_path: Path) -> None:
    run = read(tmp_path, "\r".join(f"Training: {i}it [00:0{i}, 1.00it/s, loss=0.{9 - i}]" for i in range(1, 8)) + "\n")
    assert steps(run, "loss") == list(range(1, 8))

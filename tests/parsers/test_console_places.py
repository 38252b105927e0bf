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
        updates += [
            f"Epoch {e}:  50%|#####     | {i}/{total} [00:0{i}<00:05, 1.00s/it, loss={9 - e - i / 10}]" for i in range(1, total + 1)
        ]
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


def _thousands(front: str, step: str) -> str:
    return "".join(
        f"{front}[epoch:{i // 8:3d}, iter:{step.format(n=900 + 50 * i):>8}, lr:(1.0e-04,)] l_pix: {2 - i / 20:.4e}\n" for i in range(12)
    )


def test_steps_with_commas_before_another_comma(tmp_path: Path) -> None:
    """ESRGAN and its heirs: ``iter:   1,000, lr:``, behind a clock with two digits of the year."""
    run = read(tmp_path, _thousands("26-03-01 10:00:00.123 - INFO: ", "{n:,d}"))
    assert steps(run, "l_pix") == [900 + 50 * i for i in range(12)] and len(run.attempts) == 1
    assert run.tables["metrics"]["time"].to_pylist()[0] == 1772359200.123


def test_steps_without_commas_and_lists_of_numbers_are_as_before(tmp_path: Path) -> None:
    run = read(tmp_path, _thousands("26-03-01 10:00:00 ", "{n:d}") + "weights [1,200,300,4] loss 0.5\n")
    assert steps(run, "l_pix") == [900 + 50 * i for i in range(12)]
    assert set(run.tables["metrics"]["time"].to_pylist()) == {None}, "no level behind it: a day, a month and a year in any order"
    assert 1200300.0 not in run.tables["metrics"]["value"].to_pylist()

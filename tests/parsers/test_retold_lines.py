"""Lines that a launch prints in the words of the launch before it: what differs in them are settings."""

from __future__ import annotations

from pathlib import Path

import pytest

import parsers

FRONT = "27.11.26 15:44:{second:02d},978 INFO    search.train | "


def config(tmp_path: Path, first: str, second: str, between: str = "resuming from ckpt/enc_200.pt (step 200)") -> list[tuple[str, str]]:
    """Key and value of each setting of a log of two launches, in the order of its lines."""
    said = [first, *(f"step {n}/400  nce {3 - n / 200:.4f}  in-batch acc 0.342  lr 0.001" for n in range(20, 220, 20))]
    said += [between, second, *(f"step {n}/400  nce {3 - n / 200:.4f}  in-batch acc 0.342  lr 0.001" for n in range(220, 420, 20))]
    (tmp_path / "train.log").write_text("".join(f"{FRONT.format(second=i)}{line}\n" for i, line in enumerate(said)))
    table = parsers.read(tmp_path).tables["config"]
    rows = sorted(zip(table["at"].to_pylist(), table["key"].to_pylist(), table["value"].to_pylist(), strict=True), key=lambda r: r[0] or 0)
    return [(key, value) for _, key, value in rows if key != "total_steps"]


@pytest.mark.parametrize(
    ("first", "second", "changed"),
    [
        ("AdamW with rate 0.001, linear decay, batch 64 (negatives in the batch)", "AdamW with rate 0.001, linear decay, batch 16 (negatives in the batch)", ("batch", "64", "16")),
        ("pairs 57600 | dim 64 | temperature 0.05", "pairs 57600 | dim 64 | temperature 0.5", ("temperature", "0.05", "0.5")),
        ("charset (12): 9542a87b6301", "charset (12): 0123456789ab", ("charset", '"9542a87b6301"', '"0123456789ab"')),
        ("model d=64 L=2 bs=16 lr=0.002 steps=600 dropout=0.0", "model d=64 L=2 bs=4 lr=0.005 steps=600 dropout=0.2", ("bs", "16", "4")),
        ("model d=64 L=2 bs=16 lr=0.002 steps=600 dropout=0.0", "model d=64 L=2 bs=4 lr=0.005 steps=900 dropout=0.2", ("steps", "600", "900")),
    ],
    ids=["in a sentence", "in cells", "a word", "settings", "a plan among settings"],
)  # fmt: skip
def test_what_differs_are_settings_of_either_launch(first: str, second: str, changed: tuple[str, str, str], tmp_path: Path) -> None:
    told = config(tmp_path, first, second)
    assert [value for key, value in told if key == changed[0]] == list(changed[1:])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("pairs 57600 | dim 64 | temperature 0.05", "pairs 57600 | dim 64 | temperature 0.05"),
        ("started with pid 3461, port 29500", "started with pid 3470, port 29501"),
        ("data read in 3.2s from /data/a1.bin", "data read in 4.7s from /data/a2.bin"),
        ("start at step 0", "start at step 200"),
    ],
    ids=["nothing differs", "a process", "times and places", "where it begins"],
)
def test_what_differs_between_any_two_launches_is_no_setting(first: str, second: str, tmp_path: Path) -> None:
    assert config(tmp_path, first, second) == []


def test_the_day_may_come_first_in_a_clock_and_names_are_set_apart_by_blanks(tmp_path: Path) -> None:
    config(tmp_path, "begin", "begin")
    rows = [r for r in parsers.read(tmp_path).tables["metrics"].to_pylist() if r["tag"] == "nce"]
    assert len(rows) == 20 and rows[0]["step"] == 20
    assert rows[0]["time"] == pytest.approx(1795794241.978)


@pytest.mark.parametrize(("cell", "rank"), [("r1", 1), ("rank 3", 3), ("run1", None), ("res50", None)])
def test_a_cell_behind_clock_and_level_may_name_the_rank(cell: str, rank: int | None, tmp_path: Path) -> None:
    lines = [f"2026-11-27 16:05:{i:02d}.475 | INFO     | {cell} | step {20 * i} bce {0.7 - i / 100:.4f} wsum 11.4" for i in range(1, 6)]
    (tmp_path / "out.log").write_text("\n".join(lines) + "\n")
    rows = parsers.read(tmp_path).tables["metrics"].to_pylist()
    assert {r["rank"] for r in rows} == {rank}
    assert [r["step"] for r in rows if r["tag"].endswith("bce")] == [20, 40, 60, 80, 100]

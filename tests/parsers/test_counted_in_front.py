"""Lines that begin with their step and no word for it, before measurements with their names."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

import parsers

FORMS = {
    "epoch, and seconds at the end": [f"{i:2d}  fit {0.6 - i / 50:.4f}  val {0.5 - i / 50:.4f}  acc 0.77{i}  0.{i}s" for i in range(6)],
    "cells": [
        f"  {10 * i:3d} xent {4.6 - i / 5:.4f} | step 4.00e-02 | push 2.8{i} | 3.6 ms | maxlogit 20{i}.86 ent 2.084" for i in range(6)
    ],
    "seconds in front": [f"   {4.18 + i / 10:.2f}   {6400 + 200 * i} td_loss={0.3 + i / 100:.5f} q_mean=16.{i} sps=1675" for i in range(6)],
    "in brackets of two kinds": [
        f"[ ({i} ) Loss:  0.{90 - i}, train_Acc: 0.948{i}, valid_Loss: 0.361, valid_Acc: 0.97{i}]" for i in range(6)
    ],
}
STEPS = {
    "epoch, and seconds at the end": range(6),
    "cells": range(0, 60, 10),
    "seconds in front": range(6400, 7600, 200),
    "in brackets of two kinds": range(6),
}
TAGS = {"epoch, and seconds at the end": "fit", "cells": "xent", "seconds in front": "td_loss", "in brackets of two kinds": "Loss"}


def steps(tmp_path: Path, lines: list[str]) -> dict[str, list[int | None]]:
    (tmp_path / "out.log").write_text("start of the training\n" + "\n".join(lines) + "\n")
    found: dict[str, list[int | None]] = defaultdict(list)
    for row in parsers.read(tmp_path).tables["metrics"].to_pylist():
        found[row["tag"]].append(row["step"])
    return found


@pytest.mark.parametrize("form", FORMS)
def test_the_number_in_front_is_the_step(form: str, tmp_path: Path) -> None:
    found = steps(tmp_path, FORMS[form])
    assert found[TAGS[form]] == list(STEPS[form])


def test_numbers_that_do_not_rise_count_nothing(tmp_path: Path) -> None:
    sizes = [f"{n} train 0.{n} test 0.5{n}" for n in (512, 64, 128, 32, 256)]
    assert set(steps(tmp_path, [*FORMS["cells"], *sizes])["train"]) <= {None, *STEPS["cells"]}


def test_rows_of_a_table_of_jobs_count_nothing(tmp_path: Path) -> None:
    """sacct's: they tell how a job ended."""
    rows = [f"{6757294 + i:>13} {'train':>13} {'gpu':>13} {16:>13} {'NODE_FAIL':>13} {'1:0':>13}" for i in range(4)]
    assert "NODE_FAIL" not in steps(tmp_path, [*FORMS["cells"], *rows])
    assert any("NODE_FAIL" in str(e["text"]) for e in parsers.read(tmp_path).tables["events"].to_pylist())


def test_rows_of_each_class_below_the_heading_of_an_epoch_count_nothing(tmp_path: Path) -> None:
    block = [f"    {i}  Both: {50 - i}.43% (  64{i}/ 1279)  Adr: {86 - i}.16% ( 110{i}/ 1279)" for i in range(5)]
    found = steps(tmp_path, [line for e in range(1, 5) for line in (f"Epoch: {e}", f"  loss: {4 / e:.3f}", *block)])
    assert {s for told in found.values() for s in told} <= {1, 2, 3, 4, None}


def test_prose_that_begins_with_a_number_counts_nothing(tmp_path: Path) -> None:
    prose = [f"{n} files were read in {n / 10:.1f} s from shard {n}" for n in (1, 2, 3, 4)]
    assert {tag: found for tag, found in steps(tmp_path, [*FORMS["cells"], *prose]).items() if found[0] in (1, 2, 3, 4)} == {}

"""What the cells of a notebook printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import forensics
from forensics.run.series import series
from parsers.formats import notebook_outputs


def notebook(folder: Path, *outputs: list[dict[str, Any]]) -> Path:
    cells = [{"cell_type": "markdown", "source": ["# Training"]}, *({"cell_type": "code", "source": [], "outputs": o} for o in outputs)]
    path = folder / "train.ipynb"
    path.write_text(json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}))
    return path


def printed(*lines: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": "stdout", "text": [f"{x}\n" for x in lines]}


def test_what_the_cells_printed_is_read_with_their_numbers(tmp_path: Path) -> None:
    died = ["\x1b[0;31mTraceback (most recent call last)\x1b[0m:", '  File "/x/a.py", line 9, in run', "ValueError: gone"]
    notebook(
        tmp_path,
        [printed("lr: 0.1", "epochs: 9")],
        [printed(*(f"Epoch {i}/9, Loss: {1 / i:.3f}" for i in range(1, 6))), {"output_type": "error", "traceback": died}],
    )
    run = forensics.read(str(tmp_path))
    loss = series(run, "loss.train")
    assert loss is not None and list(zip(loss.step.tolist(), loss.value.tolist(), strict=True))[:2] == [(1, 1.0), (2, 0.5)]
    assert loss.place(run, 0) == "train.ipynb cell 3"
    assert [e["text"][:16] for e in run.tables["events"].to_pylist() if e["kind"] == "traceback"] == ["ValueError: gone"]


def test_other_notebooks_are_left_alone(tmp_path: Path) -> None:
    plot = {"output_type": "display_data", "data": {"image/png": "iVBOR", "text/plain": ["<Figure size 640x480 with 1 Axes>"]}}
    path = notebook(tmp_path, [printed("accuracy 0.9")], [plot])
    assert not notebook_outputs.claims(path, path.read_bytes())
    path.write_text(path.read_text()[:-40])
    assert not notebook_outputs.claims(path, path.read_bytes())


def test_a_cell_that_trains_and_died_is_a_run(tmp_path: Path) -> None:
    error = {"output_type": "error", "ename": "ValueError", "evalue": "gone", "traceback": ["ValueError: gone"]}
    for source, claimed in (("loss.backward()", True), ("model.fit(x, y)", True), ("plot(x)", False), ("import torch", False)):
        cells = [{"cell_type": "code", "source": [source], "outputs": [error]}]
        path = tmp_path / "train.ipynb"
        path.write_text(json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}))
        assert notebook_outputs.claims(path, path.read_bytes()) is claimed, source

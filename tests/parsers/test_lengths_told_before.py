"""Lines of a launch that tell how long it is to be are no place in the run; and what looks like them."""

from pathlib import Path

import pyarrow as pa
import pytest

from forensics.run import fatal_lines
from parsers.formats import console


def _rows(folder: Path, text: str) -> list[dict]:
    path = folder / "train.log"
    path.write_text(text)
    return [row for batch in console.parse(path) if isinstance(batch, pa.RecordBatch) for row in batch.to_pylist()]


def _steps(rows: list[dict]) -> list[int]:
    return sorted({row["step"] for row in rows if row.get("tag") and row["step"] is not None})


LOOP = "step 1 | loss 2.5\nstep 2 | loss 2.4\nstep 3 | loss 2.3\n"


@pytest.mark.parametrize(
    "header",
    [
        "[CONFIG] Exp: a | Steps: 288000 | LR: 2.5e-6",
        "Data size: 1490, batch size: 500, training epoch: 100.",
        "STEPS: (60000, 80000)  # Decay at 60k",
    ],
)
def test_a_length_among_settings_is_no_step(tmp_path: Path, header: str) -> None:
    assert _steps(_rows(tmp_path, f"{header}\n{LOOP}")) == [1, 2, 3]


@pytest.mark.parametrize("line", ["Steps: {} | LR: 2.5e-6 | Loss: 2.5", "step: {} | lr: 2.5e-6"])
def test_a_step_beside_a_rate_is_one(tmp_path: Path, line: str) -> None:
    assert _steps(_rows(tmp_path, "".join(line.format(i) + "\n" for i in (10, 20, 30)))) == [10, 20, 30]


def test_a_product_of_epochs_is_the_planned_length(tmp_path: Path) -> None:
    rows = _rows(tmp_path, f"Training for 50 epochs = 312500 total batches\n{LOOP}")
    assert [str(row["value"]).strip('"') for row in rows if row.get("key") == "total_steps"] == ["312500"]
    rows = _rows(tmp_path, f"Found 312500 total batches of 50 epochs\n{LOOP}")
    assert not [row for row in rows if row.get("key") == "total_steps"]


def test_errors_of_a_job_whose_number_the_suffix_leaves_out(tmp_path: Path) -> None:
    assert console.claims(tmp_path / "SOAP_11.e", b"a job\nslurmstepd: error\n")
    assert not console.claims(tmp_path / "SOAP_11.o", b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\0\0\0" * 9)


@pytest.mark.parametrize("text", ["NaN loss detected at step 816! Skipping step", "NaN or Inf found in input tensor."])
def test_a_guard_that_skips_and_a_logger_that_warns_are_no_death(text: str) -> None:
    event = {"level": "error", "kind": "nonfinite", "text": text}
    assert fatal_lines.kind(event) is None
    assert fatal_lines.kind(event | {"text": "NaN loss detected at step 816!"}) == "exception"

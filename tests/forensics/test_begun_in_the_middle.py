"""A log that begins where a run was resumed; one that begins at its beginning, and one that loads weights to begin from."""

from pathlib import Path

import pytest

import forensics


@pytest.mark.parametrize(
    ("said", "first", "told"),
    [
        ("[Checkpoint] resumed from ./checkpoints/latest.pt at step 47700", 47700, True),
        ("[Checkpoint] resumed from ./checkpoints/latest.pt at step 47700", 0, False),  # counted anew
        ("", 47700, False),
        ("Loading weights from ./pretrained/model.pt", 47700, False),
    ],
)
def test_a_log_that_begins_in_the_middle_says_so(tmp_path: Path, said: str, first: int, told: bool) -> None:
    path = tmp_path / "train.out"
    path.write_text(f"{said}\n" + "".join(f"step {first + 10 * i} | loss {3 - i / 50:.4f} | lr 1e-04\n" for i in range(60)))
    found = [f for f in forensics.analyze(path).to_json()["findings"] if f["kind"] == "restart"]
    assert [(f["severity"], f["steps"]) for f in found] == ([("info", [first, first])] if told else [])

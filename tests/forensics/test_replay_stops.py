"""Adapters and checkpoints that fail in the middle of a replay: one sentence, and what was learned until then is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from replays import replayed, train, train_again

pytestmark = pytest.mark.filterwarnings("ignore:TF32 acceleration")


STOPS = """
_batch, _left = batch, [N]
def batch(step):
    _left[0] -= 1
    if not _left[0]:
        raise WHAT
    return _batch(step)
"""


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("left", "what", "sentence"),
    [
        (86, "MemoryError('no room for the batch')", "MemoryError: no room for the batch"),
        (86, "torch.OutOfMemoryError('CUDA out of memory')", "OutOfMemoryError: CUDA out of memory"),
        (76, "FileNotFoundError('shard 7 is gone')", "FileNotFoundError: shard 7 is gone"),
        (76, "KeyboardInterrupt()", "interrupted; what was learned until then is in the report"),
    ],
)
def test_what_was_learned_before_the_end_is_kept(left: int, what: str, sentence: str, tmp_path: Path) -> None:
    train(tmp_path)
    adapter = train_again(tmp_path, STOPS.replace("N", str(left), 1).replace("WHAT", what))
    case, result = replayed(tmp_path, adapter)
    told = result.document
    assert result.failed == told["trouble"] == sentence
    assert told["verdict"] == "undecided"
    assert told["steps_replayed"] > 20
    assert case.hypotheses[0].id == "bad_data_batch"
    assert case.culprits == ()


@pytest.mark.usefixtures("here")
def test_a_checkpoint_that_was_named_and_cannot_be_used_is_told(tmp_path: Path) -> None:
    adapter = train(tmp_path)
    for name, content, what in (
        ("none.pt", None, "is gone"),
        ("odd.pt", b"no checkpoint at all", "cannot be loaded without running code in it"),
    ):
        path = tmp_path / name
        if content:
            path.write_bytes(content)
        case, result = replayed(tmp_path, adapter, checkpoint=str(path))
        assert what in result.failed
        assert case.verdict == "unhealthy"
    later = tmp_path / "later"
    later.mkdir()
    _, result = replayed(later, train(later, "BAD = {30}"), checkpoint=str(later / "checkpoints/step_40.pt"))
    assert result.failed == "the state to begin from is of step 40, after the trouble at step 30"

"""Arms that decide no verdict, and what they say of causes; the worker's commands run in this process."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from replays import PLAIN, Direct, outcome, replayed, train, train_again

from forensics import at_path, pipeline, ranking
from forensics.case import Clue, Hypothesis
from forensics.replays import advice, extra_arms, into_case, session, verdict
from forensics.replays.client import further_cards
from forensics.replays.runner import Lab
from forensics.replays.session import Options

pytestmark = pytest.mark.filterwarnings("ignore:TF32 acceleration")


@pytest.mark.usefixtures("here")
def test_a_given_budget_runs_every_arm_and_each_says_what_the_plant_makes_it_say(tmp_path: Path) -> None:
    case, result = replayed(tmp_path, train(tmp_path), 2000)
    assert result.document["verdict"] == "data"
    assert outcome(result, "200 batches skipped") == "no spike"
    assert outcome(result, "batch 60 moved 8 steps later") == "spike"
    assert outcome(result, "other kernels") == "spike"
    heart = next(a for a in result.document["arms"] if "40 times over" in a["name"])
    assert heart["says"].startswith("learnt: loss")
    assert result.document["not_tried"] == []
    texts = [c.text for c in case.hypotheses[0].clues if c.part == "replay"]
    assert "Replay: the batch makes the effect some steps later, too." in texts
    assert not any(advice.ASKS.search(h.settle) for h in case.hypotheses)


@pytest.mark.usefixtures("here")
def test_a_bad_batch_at_the_very_beginning_is_tried_a_little_later(tmp_path: Path) -> None:
    adapter = train(tmp_path, "BAD = {2}", steps=60, save=None)
    case, result = replayed(tmp_path, adapter, 2000, steps=(0, 8))
    assert outcome(result, "batch 2 moved 8 steps later") == "spike"
    assert result.document["verdict"] == "data"
    assert [(c["step"], c["samples"]) for c in case.culprits] == [(2, [18, 21])]


@pytest.mark.usefixtures("here")
def test_a_rate_that_jumps_is_told_with_the_arms_that_were_left_out(tmp_path: Path) -> None:
    jump = "BAD = set()\ndef factor(step):\n    return 200.0 if 60 <= step < 64 else 1.0"
    adapter = train(tmp_path, jump)
    case, result = replayed(tmp_path, adapter, 2000)
    assert result.document["verdict"] == "optimizer-hyperparameter"
    assert outcome(result, "rate held") == "no spike"
    assert "moments as saved" in {a["name"] for a in result.document["arms"]}
    assert case.culprits == ()
    case, result = replayed(tmp_path, adapter, result.document["steps_replayed"] - 170)
    assert result.document["not_tried"]
    assert result.document["steps_replayed"] <= result.document["budget"]
    if result.document["verdict"] == "undecided":
        assert any("--budget" in h.settle for h in case.hypotheses)


@pytest.mark.usefixtures("here")
def test_batches_that_do_not_exist_cost_their_arm_only(tmp_path: Path) -> None:
    ends = "_batch = batch\ndef batch(step):\n    if step > 99:\n        raise IndexError('the data end at 99')\n    return _batch(step)"
    _, result = replayed(tmp_path, train(tmp_path, ends), 2000)
    assert result.document["verdict"] == "data"
    row = next(a for a in result.document["arms"] if a["name"] == "200 batches skipped")
    assert (row["outcome"], row["says"]) == ("undecided", "IndexError: the data end at 99")
    _, result = replayed(tmp_path, train_again(tmp_path, ends + "\nLAST_STEP = 100"), 2000)
    assert outcome(result, "37 batches skipped") == "no spike"  # as many as there are


STALE = """
def build():
    torch.manual_seed(3)
    model = nn.Linear(6, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.8)
    return model, optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: factor(k))

def batch(step):
    x = torch.randn(8, 6, generator=torch.Generator().manual_seed(step))
    y = x.sum(1) + 0.1 * torch.sin(9 * x[:, 0])
    if step == 39:
        y[[2, 5]] = 9.0
    return {"x": x, "y": y}
"""


@pytest.mark.usefixtures("here")
def test_the_moments_of_an_older_checkpoint_put_in_later_are_no_hardware_fault(tmp_path: Path) -> None:
    """A bad batch just before the checkpoint leaves a large momentum there; put in again 30 steps later it kicks the weights."""
    _, result = replayed(tmp_path, train(tmp_path, STALE, steps=110, stale=70), 2000, steps=(70, 80))
    assert result.document["verdict"] == "optimizer-hyperparameter"
    row = next(a for a in result.document["arms"] if a["name"] == "moments of step 40 at step 70")
    assert (row["outcome"], row["says"]) == ("spike", "agrees with the log")
    assert result.culprits == []


@pytest.mark.parametrize(
    ("extra", "word"),
    [
        ("BAD = set()", "learnt"),
        ("BAD = set()\ndef factor(step):\n    return 0.02", "faster"),
        ("def loss(model, batch):\n    return model(batch['x'])[:, 0].detach().sum() * 0 + (model[0].weight * 0).sum() + 2.0", "no"),
    ],
)
def test_learning_one_batch_by_heart_tells_a_broken_loss_from_data(extra: str, word: str, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(PLAIN + extra)
    with Direct("", path) as worker:
        about = worker.open("cpu", 1)
        rows: list[dict[str, Any]] = []
        found = extra_arms.by_heart(Lab(worker, 1000), rows, "built", 0, float(about["settings"]["lr"]), 0)  # type: ignore[arg-type]
    assert found == word
    assert len(rows) == {"learnt": 1, "faster": 2, "no": 3}[word]
    assert all(r["outcome"] == "no spike" and r["steps"] == extra_arms.HEART for r in rows)


@pytest.mark.usefixtures("here")
def test_a_run_without_a_step_to_replay_is_asked_to_learn_one_batch(tmp_path: Path) -> None:
    flat = "def loss(model, batch):\n    return sum((p * 0).sum() for p in model.parameters()) + batch['y'].abs().mean()"
    adapter = train(tmp_path, "BAD = set()\n" + flat)
    run = at_path.read(str(tmp_path))
    suspects = ranking.rank([*(Hypothesis(c, c, (Clue("x", 1.0),)) for c in ("frozen_parameters", "labels_wrong"))])
    case = replace(pipeline.analyze_run(run), verdict="unhealthy", hypotheses=suspects, findings=())
    options = Options(adapter, sys.executable, "cpu")
    result = session.replay(run, case, options, lambda *_: None)
    assert result.document["verdict"] == "nothing to explain"
    assert result.document["from"]["step"] == 40
    assert result.document["steps_replayed"] == 3 * extra_arms.HEART == sum(a["steps"] for a in result.document["arms"])
    before = {h.id: h.probability for h in suspects}
    after = into_case.concluded(run, case, result, options)
    assert after.hypotheses[0].id == "frozen_parameters"
    assert after.hypotheses[0].probability > before["frozen_parameters"]
    assert "cannot overfit one batch" in after.hypotheses[0].clues[-1].text
    healthy = session.replay(run, replace(case, verdict="healthy"), options, lambda *_: None)
    assert healthy.document["arms"] == []


def test_what_cannot_learn_one_batch_speaks_against_data_and_for_the_model() -> None:
    sentence, weights = verdict.more("nothing to explain", {"heart": "no"})[0]
    assert "cannot overfit one batch" in sentence
    assert weights["dead_or_saturated_units"] > 0 > weights["labels_wrong"]
    assert verdict.more("data", {"skip": "no spike", "device": "spike"}) == []  # the verdict has said it
    assert verdict.more("undecided", {"device": "no spike"})[0][1] == {"silent_data_corruption": 10.0}


def test_the_leading_causes_choose_the_arms() -> None:
    assert extra_arms.chosen(["silent_data_corruption", "bad_data_batch", "unknown"], False) == ["device", "kernels", "skip", "later"]
    assert extra_arms.chosen(["lr_jump"], False) == []
    assert set(extra_arms.chosen(["lr_jump"], True)) == set(extra_arms.NAMES)


def test_a_second_device_is_another_gpu_else_the_cpu_else_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert further_cards("cuda", 3) == ["1", "2"]
    assert further_cards("cuda:1", 3) == ["0", "2"]
    assert further_cards("cpu", 0) == []
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,GPU-abc")
    assert further_cards("auto", 2) == ["GPU-abc"]

    def told(gpus: int, parameters: int) -> Any:
        return SimpleNamespace(options=Options(Path("a.py"), "python", "cuda"), about={"gpus": gpus, "parameters": parameters})

    assert extra_arms.second_device(told(2, 10)) == ("cuda", "GPU-abc")
    assert extra_arms.second_device(told(1, 10)) == ("cpu", None)
    assert extra_arms.second_device(told(1, extra_arms.SMALL + 1)) is None
    assert extra_arms.second_device(told(0, 10)) is None


@pytest.mark.usefixtures("here")
def test_a_second_device_runs_the_same_steps_from_the_same_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extra_arms, "second_device", lambda scene: ("cpu", None))
    _, result = replayed(tmp_path, train(tmp_path), 2000)
    row = next(a for a in result.document["arms"] if a["name"].startswith("on a second device: cpu"))
    assert (row["outcome"], row["steps"]) == ("spike", 23)
    assert sum(a["steps"] for a in result.document["arms"]) <= result.document["steps_replayed"]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_on_a_gpu_other_kernels_and_the_cpu_show_the_effect_of_a_bad_batch(tmp_path: Path) -> None:
    run = at_path.read(str(tmp_path)) if train(tmp_path) else None
    assert run is not None
    _, result = into_case.replayed(run, Options(tmp_path / "train.py", sys.executable, "cuda", 2000), None)
    assert outcome(result, "other kernels") == "spike"
    assert outcome(result, "on a second device") == "spike"

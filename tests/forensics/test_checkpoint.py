"""`forensics checkpoint`: what is in a file, what is sick in it, what changed between two."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from trained import make, save, tokenizer, train

from forensics.checkpoints import sick_document
from forensics.cli import main

torch = pytest.importorskip("torch")
torch.set_num_threads(1)  # tiny models: threads only wait for each other
sys.path.insert(0, str(Path(__file__).parents[1]))
import hostile_pickles as hostile  # noqa: E402

SAMPLES = Path(__file__).parents[2] / "samples"


def ids(document: dict[str, Any], *severities: str) -> set[str]:
    return {f["id"] for f in document["findings"] if f["severity"] in (severities or ("info", "warning", "critical"))}


def test_the_document_is_that_of_the_contract(tmp_path: Path) -> None:
    model, optimizer, schedule = make()
    train(model, optimizer, schedule, 60)
    document = sick_document.report(save(tmp_path / "ckpt.pt", 60, model, optimizer, schedule))
    assert set(document) == {
        "schema",
        "path",
        "format",
        "kind",
        "step",
        "complete",
        "bytes",
        "tensors",
        "findings",
        "refused",
        "gaps",
        "changed",
    }
    assert (document["schema"], document["format"], document["kind"], document["step"], document["complete"]) == (
        1,
        "torch",
        "full",
        60,
        True,
    )
    assert document["changed"] is None and ids(document, "warning", "critical") == set()
    weight = next(t for t in document["tensors"] if t["name"] == "model.2.weight")
    want = model[2].weight.detach().double()
    assert weight["role"] == "weight" and weight["shape"] == [32, 64] and weight["nonfinite"] == 0
    assert weight["norm"] == pytest.approx(want.norm().item(), rel=1e-5) and weight["absmax"] == want.abs().max().item()
    assert weight["mean"] == pytest.approx(want.mean().item(), abs=1e-7) and weight["std"] == pytest.approx(
        want.std(correction=0).item(), rel=1e-5
    )
    json.dumps(document, allow_nan=False)


def test_sick_values_are_found_and_placed(tmp_path: Path) -> None:
    model, optimizer, schedule = make()
    train(model, optimizer, schedule, 5)
    with torch.no_grad():
        model[2].weight[3, 4] = float("nan")
        model[3].weight[0, 0] = 4e37
    document = sick_document.report(save(tmp_path / "a.pt", 5, model, optimizer))
    found = {f["id"]: f for f in document["findings"]}
    assert found["nonfinite"]["tensors"] == ["model.2.weight"] and found["nonfinite"]["severity"] == "critical"
    assert found["absurd_value"]["tensors"] == ["model.3.weight"] and "4e+37" in found["absurd_value"]["title"]


def test_weights_that_are_blown_up_throughout_are_of_no_flipped_bit(tmp_path: Path) -> None:
    model, optimizer, schedule = make()
    train(model, optimizer, schedule, 5)
    with torch.no_grad():
        model[2].weight *= 1e24
        model[2].bias[0] = 4e22
    found = ids(sick_document.report(save(tmp_path / "a.pt", 5, model, optimizer)))
    assert "blown_up" in found and "absurd_value" not in found


def test_masks_of_infinities_are_no_damage(tmp_path: Path) -> None:
    torch.save({"attn.mask": torch.full((8, 8), -math.inf), "attn.weight": torch.randn(8, 8)}, tmp_path / "model.pt")
    assert "nonfinite" not in ids(sick_document.report(tmp_path / "model.pt"))


@pytest.mark.parametrize(("label", "steps", "per_step", "expected"), [
    (100, 100, 1, set()), (100, 30, 1, {"optimizer_behind"}), (100, 100, 4, {"schedule_ahead"}),
])  # fmt: skip
def test_counts_that_disagree(tmp_path: Path, label: int, steps: int, per_step: int, expected: set[str]) -> None:
    model, optimizer, schedule = make()
    train(model, optimizer, schedule, steps, per_step)
    assert ids(sick_document.report(save(tmp_path / "a.pt", label, model, optimizer, schedule)), "warning") == expected


def test_an_empty_optimizer(tmp_path: Path) -> None:
    model, optimizer, _ = make()
    assert "optimizer_empty" in ids(sick_document.report(save(tmp_path / "a.pt", 50, model, optimizer)))


def test_what_changed(tmp_path: Path) -> None:
    model, optimizer, schedule = make()
    model[0].weight.requires_grad = False
    train(model, optimizer, schedule, 10)
    a = save(tmp_path / "a.pt", 10, model, optimizer)
    before = {k: v.clone() for k, v in model.state_dict().items()}
    train(model, optimizer, schedule, 10)
    document = sick_document.report(a, save(tmp_path / "b.pt", 20, model, optimizer))
    changed = {c["name"]: c for c in document["changed"]}
    assert changed["model.0.weight"]["equal"] and changed["model.0.weight"]["update_norm"] == 0
    for name in ("2.weight", "3.bias"):
        delta = (model.state_dict()[name] - before[name]).double().norm().item()
        assert changed[f"model.{name}"]["update_norm"] == pytest.approx(delta, rel=1e-5)
        assert changed[f"model.{name}"]["relative"] == pytest.approx(delta / before[name].double().norm().item(), rel=1e-4)
    assert ids(document, "warning") == set() and "frozen" in ids(document)  # it never had a gradient: on purpose
    assert ids(sick_document.report(a, a)) >= {"same_weights"}


def test_a_move_that_no_rate_explains(tmp_path: Path) -> None:
    model, optimizer, schedule = make()
    train(model, optimizer, schedule, 10)
    a = save(tmp_path / "a.pt", 10, model, optimizer)
    with torch.no_grad():
        model[2].weight += 1.0
    train(model, optimizer, schedule, 10)
    assert "too_far" in ids(sick_document.report(a, save(tmp_path / "b.pt", 20, model, optimizer)))


def test_two_files_that_are_not_one_model(tmp_path: Path) -> None:
    a = save(tmp_path / "a.pt", 10, make(0)[0])
    b = save(tmp_path / "b.pt", 20, make(1)[0])
    assert "another_model" in ids(sick_document.report(a, b))
    other = save(tmp_path / "c.pt", 20, torch.nn.Linear(3, 3))
    assert "another_model" in ids(sick_document.report(a, other))


def test_a_tokenizer_that_changed(tmp_path: Path) -> None:
    for name, bos in (("base", False), ("run", True)):
        save(tmp_path / name / "model.pt", 1, make()[0])
        (tmp_path / name / "tokenizer_config.json").write_text(json.dumps({"add_bos_token": bos, "chat_template": "x" * 100, "name": name}))
    found = {f["id"]: f for f in sick_document.report(tmp_path / "base", tmp_path / "run")["findings"]}
    assert found["tokenizer_changed"]["title"].endswith("add_bos_token (False -> True)")


@pytest.mark.parametrize(("change", "told"), [
    ({}, None), ({"bos": "<s>"}, "the token put before every text (none -> <s>)"), ({"template": "y" * 90}, "the chat template (100 characters -> 90 characters)"),
    ({"special": 2}, "eos_token (<1> -> <2>)"),
])  # fmt: skip
def test_the_files_of_a_tokenizer(tmp_path: Path, change: dict[str, Any], told: str | None) -> None:
    for name, settings in (("base", {}), ("run", change)):
        save(tmp_path / name / "model.pt", 1, make()[0])
        tokenizer(tmp_path / name, **settings)
    found = {f["id"]: f for f in sick_document.report(tmp_path / "base", tmp_path / "run")["findings"]}
    assert (told in found["tokenizer_changed"]["tensors"]) if told else ("tokenizer_changed" not in found)


def test_norms_that_differ_between_ranks(tmp_path: Path) -> None:
    for rank, norm in enumerate((1.0, 1.0, 1.5)):
        folder = tmp_path / "iter_0000010" / f"mp_rank_0{rank}"
        folder.mkdir(parents=True)
        torch.save({"model": {"ln.weight": torch.full((8,), norm), "fc.weight": torch.randn(4, 4)}}, folder / "model_optim_rng.pt")
    found = {f["id"]: f for f in sick_document.report(tmp_path / "iter_0000010")["findings"]}
    assert len(found["ranks_differ"]["tensors"]) == 1 and "ln.weight" in found["ranks_differ"]["tensors"][0]


def test_spikes_of_the_gradient_by_tensor(tmp_path: Path) -> None:
    """A gradient of g^2 > 5000 v in the last step is still seen in the moments; usual ones are not."""
    model, optimizer, schedule = make()
    train(model, optimizer, schedule, 400)
    assert "gradient_spike" not in ids(sick_document.report(save(tmp_path / "a.pt", 400, model, optimizer)))
    optimizer.zero_grad()
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    v = optimizer.state[model[2].weight]["exp_avg_sq"]
    model[2].weight.grad = 300 * v.sqrt() + 1e-4
    optimizer.step()
    found = {f["id"]: f for f in sick_document.report(save(tmp_path / "b.pt", 401, model, optimizer))["findings"]}
    assert found["gradient_spike"]["tensors"][0] == "optimizer.state.1.exp_avg"


def test_the_command(tmp_path: Path) -> None:
    model, optimizer, schedule = make()
    train(model, optimizer, schedule, 30)
    a = save(tmp_path / "a.pt", 30, model, optimizer)
    shown = CliRunner().invoke(main, ["checkpoint", str(a)])
    assert shown.exit_code == 0 and "model.2.weight" in shown.output and "step 30" in shown.output
    document = json.loads(CliRunner().invoke(main, ["checkpoint", str(a), str(a), "--json"]).output)
    assert {c["name"] for c in document["changed"]} >= {"model.2.weight"} and document["path"] == str(a)
    (tmp_path / "text.pt").write_text("hello")
    failed = CliRunner().invoke(main, ["checkpoint", str(tmp_path / "text.pt")])
    assert failed.exit_code == 1 and "cannot be read" in failed.output
    evil = tmp_path / "evil.pt"
    evil.write_bytes(hostile.torch_zip(hostile.PROTO + hostile.call("posix", "system", "true") + b"."))
    partly = CliRunner().invoke(main, ["checkpoint", str(evil), "--json"])
    assert partly.exit_code == 0 and json.loads(partly.output)["refused"][0]["what"] == "posix.system"

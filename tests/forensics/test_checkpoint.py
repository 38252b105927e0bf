"""`forensics checkpoint` and what the analysis takes from checkpoints."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import forensics
from forensics.checkpoints import sick_document
from forensics.cli import main

torch = pytest.importorskip("torch")
torch.set_num_threads(1)  # tiny models: threads only wait for each other
sys.path.insert(0, str(Path(__file__).parents[1]))
import hostile_pickles as hostile  # noqa: E402

SAMPLES = Path(__file__).parents[2] / "samples"


def make(seed: int = 0) -> tuple[Any, Any, Any]:
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Embedding(30, 16), torch.nn.Flatten(), torch.nn.Linear(64, 32), torch.nn.Linear(32, 30))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    return model, optimizer, torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=1000)


def train(model: Any, optimizer: Any, schedule: Any, steps: int, per_step: int = 1) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(torch.randint(0, 30, (8, 4))), torch.randint(0, 30, (8,))).backward()
        optimizer.step()
        for _ in range(per_step):
            schedule.step()


def save(path: Path, step: int, model: Any, optimizer: Any = None, schedule: Any = None) -> Path:
    state = {"model": model.state_dict(), "step": step}
    state |= {"optimizer": optimizer.state_dict()} if optimizer else {}
    state |= {"scheduler": schedule.state_dict()} if schedule else {}
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(state, path)
    return path


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


def tokenizer(folder: Path, *, bos: str = "", special: int = 1, template: str = "x" * 100) -> None:
    """The files that transformers saves beside a model."""
    single = [{"SpecialToken": {"id": bos, "type_id": 0}}] * bool(bos) + [{"Sequence": {"id": "A", "type_id": 0}}]
    whole = {"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}}, "added_tokens": [{"id": special, "content": "<s>"}],
             "post_processor": {"type": "TemplateProcessing", "single": single}, "normalizer": None}  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps(whole))
    (folder / "chat_template.jinja").write_text(template)
    (folder / "special_tokens_map.json").write_text(json.dumps({"eos_token": {"content": f"<{special}>"}}))


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


def test_a_tokenizer_that_changed_within_a_run(tmp_path: Path) -> None:
    model, optimizer, schedule = make()
    log(tmp_path, range(1, 201))
    for step, bos in ((100, ""), (200, "<s>")):
        train(model, optimizer, schedule, 100)
        save(tmp_path / f"checkpoint-{step}" / "model.pt", step, model, optimizer, schedule)
        tokenizer(tmp_path / f"checkpoint-{step}", bos=bos)
    found = [f for f in analyzed(tmp_path)["findings"] if f["kind"] == "checkpoint_state"]
    assert [(f["facts"]["what"], f["steps"]) for f in found] == [("tokenizer", [100, 200])]
    assert "the token put before every text (none -> <s>)" in found[0]["title"]


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


# --- the analysis


def log(folder: Path, steps: range, restart: int | None = None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        {"step": s, "loss": 3.0 - s / 200 + 0.01 * math.sin(s * 1.7), "time": 1.7e9 + s + (500 if restart and s >= restart else 0)}
        for s in steps
    ]
    (folder / "log.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))


def analyzed(folder: Path) -> dict[str, Any]:
    return forensics.analyze(str(folder)).to_json()


def test_a_sound_run_gets_no_warning(tmp_path: Path) -> None:
    model, optimizer, schedule = make()
    log(tmp_path, range(1, 201))
    for step in (100, 200):
        train(model, optimizer, schedule, 100)
        save(tmp_path / "checkpoints" / f"step_{step}.pt", step, model, optimizer, schedule)
    case = analyzed(tmp_path)
    kinds = {"checkpoint_damage", "checkpoint_state", "frozen_weights"}
    assert [f for f in case["findings"] if f["kind"] in kinds] == []
    assert {c["id"]: c["status"] for c in case["checks"] if c["id"] in kinds} == dict.fromkeys(kinds, "clear")


def test_an_optimizer_that_began_anew(tmp_path: Path) -> None:
    model, optimizer, schedule = make()
    log(tmp_path, range(1, 201))
    train(model, optimizer, schedule, 100)
    save(tmp_path / "checkpoints" / "step_100.pt", 100, model, optimizer, schedule)
    fresh = torch.optim.AdamW(model.parameters(), lr=1e-3)
    train(model, fresh, schedule, 100)
    schedule.last_epoch = 200
    save(tmp_path / "checkpoints" / "step_200.pt", 200, model, fresh, schedule)
    found = [f for f in analyzed(tmp_path)["findings"] if f["kind"] == "checkpoint_state"]
    assert [(f["facts"]["what"], f["steps"]) for f in found] == [("optimizer_anew", [101, 200])]


@pytest.mark.parametrize(("weights", "found"), [({}, 1), ({"lora_A.weight": torch.ones(4, 8), "lora_B.weight": torch.randn(8, 4)}, 0)])
def test_an_adapter_that_holds_nothing(weights: dict[str, torch.Tensor], found: int, tmp_path: Path) -> None:
    log(tmp_path, range(1, 201))
    torch.save(weights, tmp_path / "adapter_model.bin")
    told = [f for f in analyzed(tmp_path)["findings"] if f["kind"] == "checkpoint_damage"]
    assert [f["facts"]["what"] for f in told] == ["no_tensors"] * found


def test_the_last_healthy_checkpoint(tmp_path: Path) -> None:
    model, optimizer, schedule = make()
    log(tmp_path, range(1, 201))
    lines = (tmp_path / "log.jsonl").read_text().splitlines()
    bad = [line if json.loads(line)["step"] < 160 else json.dumps(json.loads(line) | {"loss": float("nan")}) for line in lines]
    (tmp_path / "log.jsonl").write_text("\n".join(bad) + "\n")
    (tmp_path / "config.json").write_text(json.dumps({"save_total_limit": 2, "learning_rate": 1e-3}))
    for step in (50, 100, 150, 200):
        train(model, optimizer, schedule, 50)
        if step == 150:  # sick before the log shows it
            with torch.no_grad():
                model[2].weight[0, 0] = float("inf")
        save(tmp_path / "checkpoints" / f"step_{step}.pt", step, model, optimizer, schedule)
    healthy = analyzed(tmp_path)["run"]["last_healthy_checkpoint"]
    assert (healthy["path"], healthy["step"]) == ("checkpoints/step_100.pt", 100)
    assert "deletes this one" in healthy["warning"]


def test_retention_is_told_by_the_saves_that_are_gone(tmp_path: Path) -> None:
    """No config says it: three saves lie there, one every fifty steps, and none of the first four."""
    model, optimizer, schedule = make()
    log(tmp_path, range(1, 351))
    train(model, optimizer, schedule, 200)
    for step in (250, 300, 350):
        train(model, optimizer, schedule, 50)
        if step == 300:
            with torch.no_grad():
                model[2].weight[0, 0] = float("nan")
        save(tmp_path / "checkpoints" / f"step_{step}.pt", step, model, optimizer, schedule)
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    bad = [r | ({"loss": float("nan")} if r["step"] >= 290 else {}) for r in lines]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(r) + "\n" for r in bad))
    healthy = analyzed(tmp_path)["run"]["last_healthy_checkpoint"]
    assert healthy["step"] == 250 and "the last 3 saves, one every 50 steps" in healthy["warning"]


def test_the_section_of_the_case_and_of_the_page(tmp_path: Path) -> None:
    from reports import html, markdown

    model, optimizer, schedule = make()
    log(tmp_path, range(1, 301))
    sizes = {}
    for step in (100, 200, 300):
        train(model, optimizer, schedule, 100)
        if step == 300:
            with torch.no_grad():
                model[2].weight[0, 0] = float("inf")
        save(tmp_path / "checkpoints" / f"step_{step}.pt", step, model, optimizer, schedule)
        sizes[step] = {k: v.clone() for k, v in model.state_dict().items()}
    case = analyzed(tmp_path)
    rows = {r["step"]: r for r in case["run"]["checkpoints"]["rows"]}
    assert [rows[s]["healthy"] for s in (100, 200, 300)] == [True, True, False]
    assert [rows[s]["optimizer_steps"] for s in (100, 200, 300)] == [100, 200, 300]
    moved = math.sqrt(sum((sizes[200][k] - sizes[100][k]).double().square().sum().item() for k in sizes[100]))
    assert rows[200]["moved"]["norm"] == pytest.approx(moved, rel=1e-4) and rows[200]["moved"]["since"] == 100
    assert 0 < rows[200]["moved"]["step_over_rate"] < 1
    assert [(f["step"], f["id"]) for f in case["run"]["checkpoints"]["findings"]][:1] == [(300, "nonfinite")]
    page, text = html.render(case), markdown.render(case)
    assert 'id="checkpoints"' in page and "## Checkpoints" in text and "broken values" in text


@pytest.mark.parametrize("room", ["describe.streamed", "run_saves.folder.join", "sick_document._LOOKS"])
def test_what_breaks_on_a_checkpoint_costs_only_itself(room: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise ZeroDivisionError("planted")

    model, optimizer, _ = make()
    log(tmp_path, range(1, 101))
    save(tmp_path / "step_100.pt", 100, model, optimizer)
    monkeypatch.setattr(f"forensics.checkpoints.{room}", (broken,) if room.endswith("_LOOKS") else broken)
    case = analyzed(tmp_path)
    section = case["run"]["checkpoints"] or {"rows": [], "findings": []}
    assert all(r["complete"] is not False for r in section["rows"])
    told = [g["what"] for g in case["gaps"]] + [f["title"] for f in section["findings"]]
    told += [g["what"] for g in describe_gaps(tmp_path / "step_100.pt")] if room == "describe.streamed" else []
    assert any("ZeroDivisionError: planted" in t for t in told)


def describe_gaps(path: Path) -> list[dict[str, Any]]:
    return json.loads(CliRunner().invoke(main, ["checkpoint", str(path), "--json"]).output)["gaps"]


def test_logs_alone_open_no_checkpoint(tmp_path: Path) -> None:
    log(tmp_path, range(1, 101))
    run = analyzed(tmp_path)["run"]
    assert run["last_healthy_checkpoint"] is None and run["checkpoints"] is None


def test_the_tensors_table(tmp_path: Path) -> None:
    import parsers
    from forensics.checkpoints import run_saves

    model, optimizer, _ = make()
    log(tmp_path, range(1, 101))
    save(tmp_path / "step_100.pt", 100, model, optimizer)
    run = parsers.read(tmp_path)
    assert run.tables["tensors"].num_rows == 0
    run_saves.tensors(run)
    rows = {r["name"]: r for r in run.tables["tensors"].to_pylist()}
    assert rows["model.2.weight"]["checkpoint"] == "step_100.pt" and rows["model.2.weight"]["shape"] == [32, 64]


@pytest.mark.parametrize(
    ("sample", "kind"),
    [("bit_flip_tensorboard", "checkpoint_damage"), ("frozen_body_jsonl", "frozen_weights"), ("optimizer_lost_jsonl", "checkpoint_state")],
)
def test_the_samples(sample: str, kind: str) -> None:
    assert kind in {f["kind"] for f in analyzed(SAMPLES / sample)["findings"]}


def test_saves_that_are_called_after_their_steps_are_no_parts_of_one(tmp_path: Path) -> None:
    model, optimizer, _ = make()
    for step in (100, 200):
        save(tmp_path / f"step_{step}.pt", step, model, optimizer)
    assert "parts of two saves" not in CliRunner().invoke(main, ["checkpoint", str(tmp_path)]).output
    for rank, step in ((0, 100), (1, 200)):
        (tmp_path / "shards").mkdir(exist_ok=True)
        save(tmp_path / f"shards/rank_{rank}.pt", step, model, optimizer)
    told = CliRunner().invoke(main, ["checkpoint", str(tmp_path / "shards")]).output
    assert "rank_0.pt is of step 100, rank_1.pt of step 200: parts of two saves" in told

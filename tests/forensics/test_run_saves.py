"""What the analysis of a run takes from its checkpoints."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from trained import make, save, tokenizer, train

import forensics
from forensics.cli import main

torch = pytest.importorskip("torch")
SAMPLES = Path(__file__).parents[2] / "samples"


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


@pytest.mark.parametrize(("by", "told"), [(4.0, True), (0.1, False)])
def test_a_weight_that_went_further_than_adam_takes_it(by: float, told: bool, tmp_path: Path) -> None:
    """A hundred updates at 1e-3 move a value by 0.1, and never by more than 0.33."""
    model, optimizer, schedule = make()
    log(tmp_path, range(1, 201))
    for step in (100, 200):
        train(model, optimizer, schedule, 100)
        with torch.no_grad():
            model[2].weight[3, 5] += by * (step == 200)
        save(tmp_path / "checkpoints" / f"step_{step}.pt", step, model, optimizer, schedule)
    found = [f["steps"] for f in analyzed(tmp_path)["findings"] if f["kind"] == "checkpoint_damage" and "Adam" in f["title"]]
    assert found == [[100, 200]] * told


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


@pytest.mark.parametrize(
    ("count", "adds_up", "told"),
    [(100, 1, ["optimizer_anew"]), (200, 1, []), (196, 1, []), (100, 2, [])],  # 196: skipped for overflows
)
def test_the_count_of_an_optimizer_beside_the_last_iteration(count: int, adds_up: int, told: list[str], tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"gradient_accumulation_steps": adds_up}))
    log(tmp_path, range(1, 111))
    text = (tmp_path / "log.jsonl").read_text()
    log(tmp_path, range(101, 201))
    (tmp_path / "log.jsonl").write_text(text + (tmp_path / "log.jsonl").read_text())
    model, optimizer, schedule = make()
    train(model, optimizer, schedule, count)
    torch.save({"model": model.state_dict(), "opt": optimizer.state_dict(), "it": 200}, tmp_path / "last.pt")
    found = [f for f in analyzed(tmp_path)["findings"] if f["kind"] == "checkpoint_state"]
    assert [f["facts"]["what"] for f in found] == told


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
    assert any("ZeroDivisionError: planted" in t for t in told)


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

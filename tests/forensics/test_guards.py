"""Guards: causal, equal live and replayed, quiet on the healthy twin, and firing in training at the step of the backtest."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import runs
from click.testing import CliRunner

import forensics
from forensics import cli
from forensics.errors import ForensicsError
from forensics.guards import live
from forensics.guards.guard_table import GUARDS, GuardRule
from forensics.guards.replayed import fires
from forensics.spikes.excursions import Floats

GUARD = {g.name: g for g in GUARDS}


def curves() -> dict[str, Floats]:
    rng = np.random.default_rng(5)
    t = np.arange(700)
    falling = 2 + 3 * np.exp(-t / 90) + 0.02 * rng.standard_normal(700)
    spiky = falling.copy()
    spiky[[60, 61, 62, 300, 301, 302, 303, 304, 305]] *= 4
    broken = spiky.copy()
    broken[[0, 3, 61, 200, 201]] = np.nan, np.inf, np.nan, np.nan, -np.inf
    heavy = rng.standard_t(2, 700)
    huge = falling.copy()
    huge[400:420] = 1e200
    named = {"falling": falling, "spiky": spiky, "broken": broken, "heavy": heavy, "negative": -falling, "huge": huge}
    return named | {"constant": np.ones(300), "empty": np.zeros(0), "one": np.ones(1), "short": falling[:30], "zeros": np.zeros(50)}


@pytest.mark.parametrize("rule", GUARDS, ids=lambda g: g.name)
@pytest.mark.parametrize("name", list(curves()))
def test_live_and_replayed_agree_step_for_step(rule: GuardRule, name: str) -> None:
    x = curves()[name]
    guard = live.Guard(rule.statistic(rule.window, rule.least), rule.threshold, rule.patience)
    assert [guard.update(float(v)) for v in x] == fires(rule, x).tolist()


@pytest.mark.parametrize("rule", GUARDS, ids=lambda g: g.name)
def test_what_comes_later_changes_nothing(rule: GuardRule) -> None:
    x = curves()["broken"]
    for cut in (1, 62, 150, 304, 600):
        assert fires(rule, x[:cut]).tolist() == fires(rule, x)[:cut].tolist()


def spike(i: int) -> float:
    return runs.loss(i) * (5 if 200 <= i < 206 else 1)


def test_the_spike_is_caught_and_its_twin_is_quiet(tmp_path: Path) -> None:
    faulty = forensics.guard(str(runs.write(tmp_path / "faulty", loss=spike)))
    assert faulty.best is not None
    assert (faulty.best.fired, faulty.best.lead, faulty.best.false_alarms) == (200, 0, 0)
    healthy = forensics.guard(str(runs.write(tmp_path / "healthy")))
    assert healthy.best is None and [r.false_alarms for r in healthy.rows] == [0] * len(healthy.rows)
    with pytest.raises(ForensicsError, match="nothing happened"):
        healthy.emit("python")
    assert "would not have caught" in healthy.emit("python", "loss_z")


def test_the_gradient_warns_before_the_loss(tmp_path: Path) -> None:
    def norm(i: int) -> float:
        return (1 + 0.05 * ((i * 31) % 7 - 3)) * (30 if 190 <= i < 206 else 1)

    told = forensics.guard(str(runs.write(tmp_path / "r", loss=spike, grad_norm=norm)))
    assert told.best is not None and (told.best.guard, told.best.fired, told.best.lead) == ("grad_z", 190, 10)


def test_an_end_above_the_beginning_leaves_a_healthy_part() -> None:
    told = forensics.guard(str(Path(__file__).parents[2] / "samples" / "lr_too_high_diverges"))
    assert told.best is not None and told.best.healthy_values > 150


def test_the_time_of_a_step_comes_from_the_clock(tmp_path: Path) -> None:
    def clock(i: int) -> float:
        return runs.START + 0.5 * i + 2.0 * max(0, i - 200)

    told = forensics.guard(str(runs.write(tmp_path / "slow", time=clock)))
    row = told.row("step_time")
    assert told.best is row and row.fired == 205


def test_the_case_and_the_page_tell_the_best_guard(tmp_path: Path) -> None:
    from reports import html

    case = runs.case(runs.write(tmp_path / "faulty", loss=spike))
    assert case["guards"]["best"] and case["guards"]["rows"][0]["fired"] == 200
    assert "What would have caught it" in html.render(case)
    assert runs.case(runs.write(tmp_path / "healthy"))["guards"] is None
    del case["guards"]
    assert "What would have caught it" not in html.render(case)


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = str(runs.write(tmp_path / "faulty", loss=spike))
    ask = CliRunner().invoke
    table = ask(cli.main, ["guard", run])
    assert table.exit_code == 0 and "loss_z" in table.stdout
    assert json.loads(ask(cli.main, ["guard", run, "--json"]).stdout)["rows"][0]["fired"] == 200
    assert ask(cli.main, ["guard", run, "--emit", "python"]).exit_code == 0
    best = forensics.guard(run).row().guard
    assert (tmp_path / f"guard_{best}.py").is_file()
    assert ask(cli.main, ["guard", run, "--emit", "python"]).exit_code == 1  # it is there
    assert ask(cli.main, ["guard", run, "--emit", "hf", "--force"]).exit_code == 0
    assert ask(cli.main, ["guard", run, "--guard", "nothing"]).exit_code == 1


def loaded(told: Any, framework: str, folder: Path, guard: str | None = None) -> Any:
    file = folder / f"emitted_{framework}.py"
    file.write_text(told.emit(framework, guard))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_emitted_file_fires_where_the_backtest_does(tmp_path: Path) -> None:
    told = forensics.guard(str(runs.write(tmp_path / "faulty", loss=spike)))
    for row in told.rows:
        module = loaded(told, "python", tmp_path, row.guard)
        if row.metric != "loss.train":
            continue
        guard, at = module.TrainingGuard(), []
        for i in range(1, 301):
            try:
                guard.watch(i, spike(i))
            except module.GuardFired:
                at.append(i)
        assert (at[0] if at else None) == row.fired


@pytest.mark.parametrize("framework", ["python", "torch", "hf", "lightning"])
def test_every_guard_has_a_file_that_parses_and_nothing_of_the_run_runs(framework: str, tmp_path: Path) -> None:
    from dataclasses import replace

    told = forensics.guard(str(runs.write(tmp_path / "faulty", loss=spike)))
    evil = '"""\nraise SystemExit\n"""\\ \u2028{x}'
    for rule in GUARDS:
        row = replace(told.rows[0], guard=rule.name, metric=rule.metric, tag=evil, rule=rule.says)
        harm = replace(told, run=evil, rows=(row,), harms=dict.fromkeys(told.harms, evil))
        compile(harm.emit(framework, rule.name), "emitted", "exec")
        assert "\nraise SystemExit" not in harm.emit(framework, rule.name)


# --- training -------------------------------------------------------------------------------------------------

BAD, STEPS = 60, 80


def batch(step: int) -> Any:
    """Inputs and targets of a step (from 0); those of one stretch are a thousand times too large."""
    import torch

    g = torch.Generator().manual_seed(step)
    x = torch.randn(16, 4, generator=g)
    return x, (x.sum(1, keepdim=True) + 0.1 * torch.randn(16, 1, generator=g)) * (1000 if BAD <= step < BAD + 4 else 1)


def small() -> Any:
    import torch

    torch.manual_seed(0)
    return torch.nn.Linear(4, 1)


def loop(watch: Any) -> list[dict[str, float]]:
    """A training loop in plain PyTorch; ``watch(step, loss, model)`` before the update."""
    import torch

    model = small()
    optimizer, rows = torch.optim.SGD(model.parameters(), 0.001), []
    for step in range(STEPS):
        x, y = batch(step)
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        norm = torch.linalg.vector_norm(torch.stack([p.grad.norm() for p in model.parameters()]))
        rows.append({"step": step, "loss": float(loss.detach()), "grad_norm": float(norm)})
        watch(step, loss, model)
        optimizer.step()
    return rows


@pytest.mark.parametrize("guard", ["loss_z", "grad_z"])
def test_torch_fires_while_training(guard: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    told = forensics.guard(str(runs.make(tmp_path / "run", loop(lambda *_: None))))
    module = loaded(told, "torch", tmp_path, guard)
    watching = module.TorchGuard()
    with pytest.raises(module.GuardFired):
        loop(lambda step, loss, model: watching.watch(step, loss=loss, model=model))
    assert watching.fired == told.row(guard).fired == BAD


@pytest.mark.parametrize("guard", ["loss_z", "grad_z"])
def test_hf_trainer_fires_and_stops(guard: str, tmp_path: Path) -> None:
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")

    class Model(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.linear = small()

        def forward(self, x: Any, labels: Any) -> dict[str, Any]:
            return {"loss": torch.nn.functional.mse_loss(self.linear(x), labels)}

    class Rows(torch.utils.data.Dataset):  # type: ignore[misc,name-defined]
        def __len__(self) -> int:
            return 16 * STEPS

        def __getitem__(self, i: int) -> dict[str, Any]:
            x, y = batch(i // 16)
            return {"x": x[i % 16], "labels": y[i % 16]}

    class Ordered(transformers.Trainer):  # type: ignore[misc,name-defined]
        def _get_train_sampler(self, *_: Any) -> Any:
            return torch.utils.data.SequentialSampler(self.train_dataset)

    def train(folder: Path, callbacks: list[Any]) -> Any:
        args = transformers.TrainingArguments(
            str(folder), per_device_train_batch_size=16, num_train_epochs=1, logging_steps=1, learning_rate=1e-3, max_grad_norm=1e9,
            save_strategy="no", report_to=[], disable_tqdm=True, optim="sgd", use_cpu=True,
        )  # fmt: skip
        trainer = Ordered(Model(), args, train_dataset=Rows(), callbacks=callbacks)
        trainer.train()
        return trainer.state

    state = train(tmp_path / "first", [])
    (tmp_path / "run").mkdir()
    state.save_to_json(str(tmp_path / "run" / "trainer_state.json"))
    told = forensics.guard(str(tmp_path / "run"))
    callback = loaded(told, "hf", tmp_path, guard).GuardCallback()
    stopped = train(tmp_path / "again", [callback])
    assert callback.fired == told.row(guard).fired == BAD + 1 == stopped.global_step
    assert (tmp_path / "again" / f"checkpoint-{BAD + 1}").is_dir()


@pytest.mark.parametrize("guard", ["loss_z", "grad_z"])
def test_lightning_fires_and_stops(guard: str, tmp_path: Path) -> None:
    torch, lightning = pytest.importorskip("torch"), pytest.importorskip("lightning.pytorch")

    class Module(lightning.LightningModule):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.linear = small()

        def training_step(self, rows: Any, i: int) -> Any:
            loss = torch.nn.functional.mse_loss(self.linear(rows[0]), rows[1])
            self.log("train_loss", loss)
            return loss

        def on_before_optimizer_step(self, optimizer: Any) -> None:
            self.log("grad_norm", torch.linalg.vector_norm(torch.stack([p.grad.norm() for p in self.parameters()])))

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), 1e-3)

    def train(callbacks: list[Any]) -> int:
        trainer = lightning.Trainer(
            max_steps=STEPS, logger=lightning.loggers.CSVLogger(str(tmp_path), name="run"), log_every_n_steps=1, accelerator="cpu",
            enable_progress_bar=False, enable_model_summary=False, enable_checkpointing=False, callbacks=callbacks,
        )  # fmt: skip
        trainer.fit(Module(), torch.utils.data.DataLoader([batch(i) for i in range(STEPS)], batch_size=None))
        return int(trainer.global_step)

    train([])
    told = forensics.guard(str(tmp_path / "run" / "version_0"))
    callback = loaded(told, "lightning", tmp_path, guard).GuardCallback()
    done = train([callback])
    assert callback.fired == told.row(guard).fired == BAD
    assert done == BAD + 1


def updates(i: int) -> float:
    """Of a linear warmup over the first 60 steps, then constant, with a scatter of its own."""
    return 1e-3 * min(i / 60, 1.0) * (1 + 0.1 * ((i * 31) % 7 - 3) / 3)


@pytest.mark.parametrize("logged", ["ratio", "norms"])
def test_updates_that_outgrow_the_weights_are_caught_and_a_warmup_is_not(logged: str, tmp_path: Path) -> None:
    def told(name: str, times: float) -> Any:
        def ratio(i: int) -> float:
            return updates(i) * (times if i >= 195 else 1)

        keys = {"update_ratio": ratio} if logged == "ratio" else {"update_norm": lambda i: 50 * ratio(i), "param_norm": lambda i: 50.0}
        return forensics.guard(str(runs.write(tmp_path / name, loss=spike if times > 1 else runs.loss, **keys))).row("update_ratio")

    assert told("faulty", 20).lead == 3
    assert told("healthy", 1).false_alarms == 0


def test_an_audit_counts_false_alarms_on_healthy_runs_alone(tmp_path: Path) -> None:
    from forensics.guards.over_runs import table

    told = [
        ["loss_z", "healthy", False, None, 2, 300],
        ["loss_z", "healthy", False, None, 0, 300],
        ["loss_z", "unhealthy", True, 3, 1, 180],
    ]
    (row,) = table([*told, ["loss_z", "unhealthy", True, -2, 0, 10], ["loss_z", "unhealthy", False, None, 4, 90]])
    counts = {k: row[k] for k in ("runs", "harmed", "caught", "before", "healthy", "alarmed", "alarms", "values")}
    assert counts == {"runs": 5, "harmed": 2, "caught": 2, "before": 1, "healthy": 2, "alarmed": 1, "alarms": 2, "values": 600}

"""What a checkpoint lost or should not hold is named; checkpoints of sound trainings of many kinds are not accused."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forensics.checkpoints import sick_document

torch = pytest.importorskip("torch")
nn = torch.nn
STEPS = 30
State = dict[str, Any]


class Block(nn.Module):  # type: ignore[misc,name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.up, self.norm, self.down = nn.Linear(16, 32), nn.BatchNorm1d(32), nn.Linear(32, 16)

    def forward(self, x: Any) -> Any:
        return x + self.down(torch.relu(self.norm(self.up(x))))


class Net(nn.Module):  # type: ignore[misc,name-defined]
    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.wte, self.h, self.lm_head = (nn.Embedding(24, 16), nn.ModuleList(Block() for _ in range(4)), nn.Linear(16, 24, bias=False))

    def forward(self, x: Any) -> Any:
        x = self.wte(x)
        for block in self.h:
            x = block(x)
        return self.lm_head(x)


def fit(model: Any, optimizer: Any, schedule: Any = None, steps: int = STEPS) -> None:
    for _ in range(steps):
        x = torch.randint(0, 24, (64,))
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), (x * 5 + 1) % 24).backward()
        optimizer.step()
        if schedule is not None:
            schedule.step()


def state_of(model: Any, optimizer: Any, schedule: Any, step: int) -> State:
    found = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step, "rng_state": torch.get_rng_state()}
    return copy.deepcopy(found | ({"scheduler": schedule.state_dict()} if schedule is not None else {}))


def trained(optimizer: Callable[[Any], Any] | None = None) -> tuple[Any, Any, Any]:
    model = Net()
    made = (optimizer or (lambda p: torch.optim.AdamW(p, 3e-3)))(model.parameters())
    schedule = torch.optim.lr_scheduler.LambdaLR(made, lambda i: min(1.0, (i + 1) / 5) * max(0.1, 1 - i / 100))
    fit(model, made, schedule)
    return model, made, schedule


@pytest.fixture(scope="module")
def sound() -> tuple[State, State]:
    """A checkpoint and the next."""
    model, optimizer, schedule = trained()
    first = state_of(model, optimizer, schedule, STEPS)
    fit(model, optimizer, schedule)
    return first, state_of(model, optimizer, schedule, 2 * STEPS)


def told(path: Path, *more: Path) -> set[str]:
    return {f["id"] for f in sick_document.report(path, *more)["findings"] if f["severity"] != "info"}


def weight(s: State, name: str = "h.1.up.weight") -> Any:
    return s["model"][name]


def moments(s: State, key: str) -> list[Any]:
    return [x[key] for x in s["optimizer"]["state"].values()]


def with_ema(s: State, change: Callable[[State], None]) -> None:
    s["ema"] = {k: v.clone() for k, v in s["model"].items()}
    change(s["ema"])


SICK: dict[str, tuple[str, Callable[[State], Any]]] = {
    "a matrix of zeros": ("zero_weight", lambda s: weight(s).zero_()),
    "an embedding of zeros": ("zero_weight", lambda s: weight(s, "wte.weight").zero_()),
    "a norm of zeros": ("zero_weight", lambda s: weight(s, "h.2.norm.weight").zero_()),
    "one value": ("constant_weight", lambda s: weight(s).fill_(0.02)),
    "an outer product": ("constant_weight", lambda s: weight(s).copy_(torch.randn(32, 1) * torch.randn(1, 16))),
    "a layer a hundred times as large": ("scale", lambda s: weight(s).mul_(100)),
    "a layer that vanished": ("scale", lambda s: weight(s).mul_(1e-5)),
    "one value of a flipped bit": ("lone_value", lambda s: weight(s)[3, 4].fill_(300.0)),
    "half the rows": ("zero_units", lambda s: weight(s)[:20].zero_()),
    "float16 among bfloat16": ("mixed_types", lambda s: s["model"].update({k: v.half() if k == "h.1.up.weight" else v.bfloat16() for k, v in s["model"].items() if v.is_floating_point()})),
    "variance below zero": ("batchnorm", lambda s: weight(s, "h.0.norm.running_var")[3].fill_(-0.1)),
    "variance of zero": ("batchnorm", lambda s: weight(s, "h.0.norm.running_var").zero_()),
    "no batch counted": ("batchnorm", lambda s: weight(s, "h.0.norm.num_batches_tracked").zero_()),
    "no batch seen": ("batchnorm", lambda s: [weight(s, "h.0.norm.running_mean").zero_(), weight(s, "h.0.norm.running_var").fill_(1)]),
    "an average of zeros": ("ema", lambda s: with_ema(s, lambda e: [v.zero_() for v in e.values()])),
    "an average of another shape": ("ema", lambda s: with_ema(s, lambda e: e.update({"wte.weight": torch.randn(30, 16)}))),
    "an average that lacks a part": ("ema", lambda s: with_ema(s, lambda e: [e.pop(k) for k in list(e) if "h.2" in k])),
    "an average of nothing": ("ema", lambda s: with_ema(s, lambda e: e.update({k: torch.randn_like(v) for k, v in e.items() if v.ndim == 2}))),
    "no optimizer": ("optimizer_missing", lambda s: s.update(optimizer={})),
    "an optimizer that is None": ("optimizer_missing", lambda s: s.update(optimizer=None)),
    "no state": ("optimizer_empty", lambda s: s["optimizer"]["state"].clear()),
    "first moments of zero": ("moment_zero", lambda s: [m.zero_() for m in moments(s, "exp_avg")]),
    "a second moment below zero": ("moment_negative", lambda s: moments(s, "exp_avg_sq")[4].view(-1)[2].fill_(-1e-9)),
    "moments of another shape": ("moment_shape", lambda s: s["optimizer"]["state"][1].update(exp_avg=torch.randn(5, 3), exp_avg_sq=torch.rand(5, 3))),
    "moments exchanged": ("moment_shape", lambda s: s["optimizer"]["state"].update({1: s["optimizer"]["state"][5], 5: s["optimizer"]["state"][1]})),
    "one count of its own": ("step_counts", lambda s: moments(s, "step")[3].fill_(4)),
    "a negative rate": ("rate", lambda s: s["optimizer"]["param_groups"][0].update(lr=-1.0)),
    "a rate that is not the schedule's": ("rate", lambda s: s["optimizer"]["param_groups"][0].update(lr=0.3)),
    "a schedule at its beginning": ("schedule_behind", lambda s: s["scheduler"].update(last_epoch=0, _step_count=1)),
    "a schedule behind": ("schedule_behind", lambda s: s["scheduler"].update(last_epoch=17)),
    "a scale of nothing": ("scaler", lambda s: s.update(scaler={"scale": 1e-7, "_growth_tracker": 0})),
    "an infinite scale": ("scaler", lambda s: s.update(scaler={"scale": float("inf"), "_growth_tracker": 0})),
    "another vocabulary": ("vocabulary", lambda s: s["model"].update({"lm_head.weight": torch.randn(20, 16)})),
}  # fmt: skip


@pytest.mark.parametrize("name", SICK)
def test_it_is_named(tmp_path: Path, sound: tuple[State, State], name: str) -> None:
    kind, change = SICK[name]
    state = copy.deepcopy(sound[0])
    change(state)
    torch.save(state, tmp_path / f"step_{STEPS}.pt")
    assert kind in told(tmp_path / f"step_{STEPS}.pt")


BETWEEN: dict[str, tuple[str, Callable[[State, State], Any]]] = {
    "a layer stood still": ("frozen", lambda a, b: weight(b).copy_(weight(a))),
    "all stood still": ("same_weights", lambda a, b: b.update(model=a["model"])),
    "a layer made anew": ("replaced", lambda a, b: weight(b).copy_(Net(7).h[1].up.weight.detach())),
    "two layers exchanged": ("replaced", lambda a, b: b["model"].update({"h.1.up.weight": weight(b, "h.2.up.weight"), "h.2.up.weight": weight(b)})),
    "a layer ran away": ("exploded", lambda a, b: weight(b).add_(torch.randn(32, 16) * 3)),
    "the optimizer stood still": ("left_behind", lambda a, b: b.update(optimizer=a["optimizer"])),
    "the averages stood still": ("left_behind", lambda a, b: [x.update(ema={k: v.clone() for k, v in a["model"].items()}) for x in (a, b)]),
    "the schedule went back": ("schedule_behind", lambda a, b: b["scheduler"].update(last_epoch=3)),
    "the optimizer went back": ("optimizer_behind", lambda a, b: [m.fill_(2) for m in moments(b, "step")]),
    "a weight is gone": ("weights_gone", lambda a, b: b["model"].pop("h.1.up.weight")),
}  # fmt: skip


@pytest.mark.parametrize("name", BETWEEN)
def test_it_is_named_between_two(tmp_path: Path, sound: tuple[State, State], name: str) -> None:
    kind, change = BETWEEN[name]
    a, b = copy.deepcopy(sound)
    change(a, b)
    torch.save(a, tmp_path / "step_30.pt")
    torch.save(b, tmp_path / "step_60.pt")
    assert kind in told(tmp_path / "step_30.pt", tmp_path / "step_60.pt")


OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "adamw": lambda p: torch.optim.AdamW(p, 3e-3), "sgd": lambda p: torch.optim.SGD(p, 0.05), "momentum": lambda p: torch.optim.SGD(p, 0.05, momentum=0.9),
    "rmsprop": lambda p: torch.optim.RMSprop(p, 1e-3), "adagrad": lambda p: torch.optim.Adagrad(p, 1e-2), "adafactor": lambda p: torch.optim.Adafactor(p, 1e-2),
    "amsgrad": lambda p: torch.optim.AdamW(p, 3e-3, amsgrad=True), "adamax": lambda p: torch.optim.Adamax(p, 3e-3), "nadam": lambda p: torch.optim.NAdam(p, 2e-3),
    "groups": lambda p: torch.optim.AdamW([{"params": list(p)[i::8] or []} for p in [list(p)] for i in range(8)], 3e-3),
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_sound_trainings_are_not_accused(tmp_path: Path, name: str) -> None:
    model, optimizer, schedule = trained(OPTIMIZERS[name])
    average = copy.deepcopy(model).state_dict()
    first = state_of(model, optimizer, schedule, STEPS) | {"scaler": {"scale": 65536.0, "_growth_tracker": STEPS}}
    torch.save(first, tmp_path / "step_30.pt")
    fit(model, optimizer, schedule)
    ema = {k: v.lerp(model.state_dict()[k], 0.5) if v.is_floating_point() else v for k, v in average.items()}
    torch.save(state_of(model, optimizer, schedule, 2 * STEPS) | {"ema": ema}, tmp_path / "step_60.pt")
    document = sick_document.report(tmp_path / "step_30.pt", tmp_path / "step_60.pt")
    assert [f for f in document["findings"] if f["severity"] != "info"] == [] and not document["refused"] and not document["gaps"]


def _pruned(s: State) -> None:
    for v in s["model"].values():
        if v.ndim == 2:
            v.mul_(v.abs() > v.abs().quantile(0.9))


def _masked(s: State) -> None:
    s["model"]["mask"] = torch.full((8, 8), float("-inf")).triu(1)
    s["model"]["causal"] = torch.full((8, 8), float("-inf")).triu(1)


HEALTHY: dict[str, Callable[[State], Any]] = {
    "pruned": _pruned,
    "masks and best scores": lambda s: [_masked(s), s.update(best_loss=torch.tensor(float("inf")))],
    "a scalar of its own": lambda s: s["model"].update(logit_scale=torch.tensor(4.6)),
    "zeros that are meant": lambda s: s["model"].update({"zero_convs.0.weight": torch.zeros(16, 16, 1, 1), "cls_token": torch.zeros(1, 4, 16), "bias": torch.zeros(9)}),
    "half precision, norms in float32": lambda s: s["model"].update({k: v if "norm" in k else v.bfloat16() for k, v in s["model"].items() if v.is_floating_point()}),
    "stripped for use": lambda s: [s.pop(k) for k in ("scheduler", "rng_state", "step")] and s.update(optimizer=None, ema=None, epoch=-1),
    "steps that overflowed": lambda s: s.update(step=STEPS + 2),
    "a schedule of epochs": lambda s: s.update(scheduler={"step_size": 2, "gamma": 0.1, "base_lrs": [0.003], "last_epoch": 3, "_step_count": 4}),
    "a label of accumulated steps": lambda s: s.update(step=4 * STEPS),
    "no gradient at first": lambda s: s["optimizer"]["state"].pop(12),
    "Mamba's steps": lambda s: s["model"].update({f"h.{i}.A_log": torch.log(torch.arange(1.0, 17)).repeat(32, 1) for i in range(4)}),
}  # fmt: skip


@pytest.mark.parametrize("name", HEALTHY)
def test_what_is_meant_is_not_accused(tmp_path: Path, sound: tuple[State, State], name: str) -> None:
    state = copy.deepcopy(sound[0])
    HEALTHY[name](state)
    path = tmp_path / ("best.pt" if name == "stripped for use" else f"step_{state.get('step')}.pt")
    torch.save(state, path)
    assert told(path) == set()


def test_an_untrained_net_is_not_accused(tmp_path: Path) -> None:
    model = Net()
    for block in model.h:
        nn.init.zeros_(block.down.weight)
        nn.init.zeros_(block.norm.weight)
    torch.save(state_of(model, torch.optim.AdamW(model.parameters()), None, 0), tmp_path / "step_0.pt")
    assert told(tmp_path / "step_0.pt") == set()


def _folder(path: Path, model: State, config: State, step: int = 30) -> Path:
    path.mkdir()
    torch.save(model, path / "pytorch_model.bin")
    (path / "config.json").write_text(json.dumps({"vocab_size": 24} | config))
    (path / "trainer_state.json").write_text(json.dumps({"global_step": step}))
    return path


def test_a_folder_is_held_against_what_it_says_of_itself(tmp_path: Path, sound: tuple[State, State]) -> None:
    model = sound[0]["model"]
    assert told(_folder(tmp_path / "checkpoint-30", model, {})) == set()
    assert told(_folder(tmp_path / "checkpoint-31", model, {})) == {"step_label"}
    assert told(_folder(tmp_path / "more_tokens", model, {"vocab_size": 40})) == {"vocabulary"}
    assert told(_folder(tmp_path / "padded", model, {"vocab_size": 21})) == set()
    assert told(_folder(tmp_path / "tied", model, {"tie_word_embeddings": True})) == {"untied"}
    odd = _folder(tmp_path / "tokenizer", model, {})
    (odd / "tokenizer.json").write_text(json.dumps({"model": {"vocab": {str(i): i for i in range(30)}}}))
    assert told(odd) == {"vocabulary"}
    shard = _folder(tmp_path / "shard", model, {})
    (shard / "pytorch_model.bin").rename(shard / "pytorch_model-00001-of-00003.bin")
    assert told(shard) == {"incomplete"}


def test_adapters_that_did_not_move(tmp_path: Path) -> None:
    adapter = {f"base_model.h.{i}.lora_{x}.weight": torch.randn(4, 16) if x == "A" else torch.zeros(16, 4) for i in range(3) for x in "AB"}
    for step, expected in ((0, set()), (500, {"adapter_zero"})):
        folder = tmp_path / f"checkpoint-{step}"
        folder.mkdir()
        torch.save(adapter, folder / "adapter_model.bin")
        assert told(folder) == expected


def test_saturated_integers(tmp_path: Path) -> None:
    sound = torch.randn(16, 16).mul(30).clamp(-127, 127).to(torch.int8)
    torch.save(
        {
            "a.weight": sound,
            "b.weight": torch.where(sound >= 0, 127, -128).to(torch.int8),
            "a.weight_scale": torch.ones(16, 1),
            "b.weight_scale": torch.ones(16, 1),
        },
        tmp_path / "m.pt",
    )
    document = sick_document.report(tmp_path / "m.pt")
    assert [f["tensors"] for f in document["findings"] if f["id"] == "saturated"] == [["b.weight"]]


def test_where_units_ran_away_no_value_is_of_a_flipped_bit(tmp_path: Path, sound: tuple[State, State]) -> None:
    run_away = copy.deepcopy(sound[0])
    weight(run_away)[3, 4] = 300.0
    weight(run_away, "h.2.up.weight").mul_(200)
    weight(run_away, "h.2.up.weight")[0, 0] = 7e4
    torch.save(run_away, tmp_path / "step_20.pt")
    assert "lone_value" not in told(tmp_path / "step_20.pt")

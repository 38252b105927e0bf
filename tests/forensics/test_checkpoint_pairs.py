"""Layers that are another one, parts that are gone, types and labels that disagree: named, and nothing said of the sound pair."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forensics.checkpoints import sick_document

torch = pytest.importorskip("torch")
State = dict[str, Any]


def state(step: int) -> State:
    """Of a model of four layers at a step: each moves a twentieth of its norm from one save to the next."""
    torch.manual_seed(0)
    start = {f"h.{i}.{n}": torch.randn(16, 16) * 0.1 for i in range(4) for n in ("up.weight", "down.weight")}
    start |= {f"h.{i}.up.bias": torch.randn(16) * 0.1 for i in range(4)} | {"wte.weight": torch.randn(40, 16)}
    torch.manual_seed(step)
    model = {k: v + 0.05 * v.std() * torch.randn_like(v) * (step > 20) for k, v in start.items()}
    model["lm_head.weight"] = model["wte.weight"]
    moments = {
        i: {"step": torch.tensor(float(step)), "exp_avg": torch.randn_like(v), "exp_avg_sq": torch.rand_like(v)}
        for i, v in enumerate(start.values())
    }
    group = {"lr": 0.01, "betas": (0.9, 0.999), "params": list(range(len(start)))}
    schedule = {"last_epoch": step, "_last_lr": [0.01]}
    return {"model": model, "optimizer": {"state": moments, "param_groups": [group]}, "scheduler": schedule, "step": step}


def swap(m: State, a: str, b: str) -> None:
    m[a], m[b] = m[b], m[a]


def findings(tmp_path: Path, *states: State) -> list[dict[str, Any]]:
    paths = [tmp_path / f"step_{20 * (i + 1)}.pt" for i in range(2)][-len(states) :]
    for path, s in zip(paths, states, strict=True):
        torch.save(s, path)
    return [f for f in sick_document.report(*paths)["findings"] if f["severity"] != "info"]


UP, DOWN = "h.1.up.weight", "h.1.down.weight"
PAIRS: dict[str, tuple[str, set[str], Callable[[State], Any]]] = {
    "drawn anew": ("exchanged", {UP}, lambda s: s["model"].update({UP: torch.randn(16, 16) * 0.1})),
    "negated": ("exchanged", {UP}, lambda s: s["model"].update({UP: -s["model"][UP]})),
    "transposed": ("exchanged", {UP}, lambda s: s["model"].update({UP: s["model"][UP].T.contiguous()})),
    "swapped with its neighbour": ("exchanged", {UP, "h.2.up.weight"}, lambda s: swap(s["model"], UP, "h.2.up.weight")),
    "swapped with another kind": ("exchanged", {UP, DOWN}, lambda s: swap(s["model"], UP, DOWN)),
    "another type": ("mixed_types", {UP}, lambda s: s["model"].update({UP: s["model"][UP].half()})),
    "untied": ("untied", {"wte.weight", "lm_head.weight"}, lambda s: s["model"].update({"lm_head.weight": s["model"]["wte.weight"] * 1.01})),
    "without its schedule": ("part_gone", set(), lambda s: s.pop("scheduler")),
    "without its optimizer": ("part_gone", set(), lambda s: s.pop("optimizer")),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_between_two(tmp_path: Path, name: str) -> None:
    kind, names, change = PAIRS[name]
    a, b = state(20), state(40)
    assert findings(tmp_path, a, b) == []
    change(b)
    told = [set(f["tensors"]) for f in findings(tmp_path, a, b) if f["id"] == kind]
    assert told and names <= {n.removeprefix("model.") for n in set().union(*told)}


def _resize(s: State) -> None:
    s["model"]["wte.weight"] = torch.cat([s["model"]["wte.weight"], torch.randn(8, 16)])
    s.pop("optimizer")


ALONE: dict[str, tuple[str, Callable[[State], Any]]] = {
    "a copy of another layer": ("copied_weight", lambda s: s["model"].update({UP: s["model"]["h.3.up.weight"].clone()})),
    "a layer drowned by its bias": ("scale", lambda s: s["model"]["h.1.up.bias"].fill_(-1000.0)),
    "one matrix in half precision": ("mixed_types", lambda s: s["model"].update({DOWN: s["model"][DOWN].bfloat16()})),
    "an embedding that was tied and grew": ("vocabulary", _resize),
    "moments written over the others": ("moment_same", lambda s: s["optimizer"]["state"][3].update(exp_avg=s["optimizer"]["state"][3]["exp_avg_sq"])),
    "NaN in a state of any name": ("nonfinite", lambda s: s["optimizer"]["state"][2].update(momentum_buffer=torch.tensor([1.0, float("nan")]))),
    "a sum of squares below zero": ("moment_negative", lambda s: s["optimizer"]["state"][2].update(sum=torch.tensor([1.0, -1.0]))),
    "another step inside": ("step_label", lambda s: s.update(step=30)),
}  # fmt: skip


@pytest.mark.parametrize("name", ALONE)
def test_alone(tmp_path: Path, name: str) -> None:
    kind, change = ALONE[name]
    s = state(40)
    assert findings(tmp_path, s) == []
    change(s)
    assert kind in {f["id"] for f in findings(tmp_path, s)}


SOUND: dict[str, Callable[[State, State], Any]] = {
    "layers cloned at the start": lambda a, b: [m["model"].update({f"h.{i}.up.weight": m["model"][UP].clone() for i in range(4)}) for m in (a, b)],
    "a target network copied hard": lambda a, b: [a["model"].update({"target.0.weight": torch.randn(16, 16)}), b["model"].update({"target.0.weight": a["model"][UP].clone()})],
    "norms and embedding in float32 among bfloat16": lambda a, b: [m["model"].update({k: v.bfloat16() for k, v in m["model"].items() if k.startswith("h.") and v.ndim > 1}) for m in (a, b)],
    "the output's bias at the mean of what is predicted": lambda a, b: [m["model"].update({"out.weight": torch.linspace(-0.3, 0.2, 64).view(4, 16), "out.bias": torch.full((4,), 2e4)}) for m in (a, b)],
    "no loss scaler any more": lambda a, b: a.update(scaler={"scale": 65536.0, "_growth_tracker": 3}),
    "micro-batches counted inside": lambda a, b: [m.update(step=4 * m["step"]) for m in (a, b)],
}  # fmt: skip


@pytest.mark.parametrize("name", SOUND)
def test_what_is_meant_is_not_accused(tmp_path: Path, name: str) -> None:
    a, b = state(20), state(40)
    for s in (a, b):  # shapes and counts of the optimizer are not what is looked at here
        s["optimizer"] = copy.deepcopy(s["optimizer"])
        s["optimizer"]["param_groups"][0].pop("betas")
    SOUND[name](a, b)
    accused = {f["id"] for f in findings(tmp_path, a, b)}
    assert not accused & {"copied_weight", "exchanged", "mixed_types", "scale", "part_gone", "step_label", "untied"}

"""Dead units, starts that left their recipe, and copies that differ between ranks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from forensics.checkpoints import sick_document

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parent))
from test_checkpoint import ids, save  # noqa: E402


def found(path: Path, kind: str) -> dict[str, Any]:
    return next((f for f in sick_document.report(path)["findings"] if f["id"] == kind), {})


# --- units


def relu_net(dead: int) -> tuple[Any, Any]:
    """A net of 64 hidden units of which the first `dead` never answer."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
    with torch.no_grad():
        model[0].bias[:dead] = -1e3
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(20):
        optimizer.zero_grad()
        model(torch.randn(32, 16)).square().sum().backward()
        optimizer.step()
    return model, optimizer


def test_dead_units_are_counted_by_rows_and_columns(tmp_path: Path) -> None:
    model, optimizer = relu_net(dead=5)
    told = found(save(tmp_path / "a.pt", 20, model, optimizer), "dead_units")
    assert "5 of 64 " in told["title"] and "in 20 steps (dead units)" in told["title"]
    assert told["tensors"] == ["model.2.weight", "model.0.weight"]  # columns of the one, rows of the other
    rows = {t["name"]: t for t in sick_document.report(tmp_path / "a.pt")["tensors"]}
    assert rows["optimizer.state.0.exp_avg_sq"]["zero_rows"] == 5
    assert rows["optimizer.state.2.exp_avg_sq"]["zero_columns"] == 5
    assert rows["model.0.weight"]["zero_rows"] == 0


def test_living_units_give_nothing(tmp_path: Path) -> None:
    model, optimizer = relu_net(dead=0)
    assert not {"dead_units", "zero_units"} & ids(sick_document.report(save(tmp_path / "a.pt", 20, model, optimizer)))


def test_tokens_that_no_batch_held_are_no_dead_units(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = torch.nn.ModuleDict({"embedding": torch.nn.Embedding(100, 8), "head": torch.nn.Linear(8, 4)})
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(20):
        optimizer.zero_grad()
        model["head"](model["embedding"](torch.randint(0, 30, (64,)))).square().sum().backward()
        optimizer.step()
    told = found(save(tmp_path / "a.pt", 20, model, optimizer), "dead_units")
    assert told["title"].startswith("70 of 100 rows of model.embedding.weight")
    assert "tokens that no batch held" in told["title"]


def test_rows_of_weights_that_were_cut_away(tmp_path: Path) -> None:
    model, _ = relu_net(dead=0)
    with torch.no_grad():
        model[0].weight[10:20] = 0
    assert "10 of 64 rows of model.0.weight" in found(save(tmp_path / "a.pt", 20, model), "zero_units")["title"]


# --- the start


def fresh(std: Any, layers: int = 4, width: int = 64) -> Any:
    """A small transformer's matrices with ``std(name, inputs)``."""
    torch.manual_seed(0)
    model = torch.nn.ModuleDict()
    for i in range(layers):
        block = torch.nn.ModuleDict({"qkv": torch.nn.Linear(width, 3 * width), "proj": torch.nn.Linear(width, width),
                                     "up": torch.nn.Linear(width, 4 * width), "down": torch.nn.Linear(4 * width, width)})  # fmt: skip
        model[f"h{i}"] = torch.nn.ModuleDict({str(i): block})
    for name, p in model.named_parameters():
        if p.ndim == 2 and std:
            torch.nn.init.normal_(p, std=std(name, p.shape[1]))
    return model


RECIPES = {
    "0.02": lambda name, inputs: 0.02,
    "1/sqrt(inputs)": lambda name, inputs: inputs**-0.5,
    "sqrt(2/(5 width))": lambda name, inputs: (2 / (5 * 64)) ** 0.5,
    "sqrt(1/(3 inputs))": None,  # torch.nn.Linear's own
}


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_start_by_the_recipe_is_named(tmp_path: Path, recipe: str) -> None:
    document = sick_document.report(save(tmp_path / "a.pt", 0, fresh(RECIPES[recipe])))
    assert "init_std" not in ids(document)
    told = next(f for f in document["findings"] if f["id"] == "init_recipe")
    assert told["title"].endswith(f"a standard deviation of {recipe}")


def test_residual_scaling_is_a_recipe(tmp_path: Path) -> None:
    model = fresh(lambda name, inputs: 0.02 / (8**0.5 if "proj" in name or "down" in name else 1), layers=4)
    assert "init_std" not in ids(sick_document.report(save(tmp_path / "a.pt", 0, model)))


def test_a_matrix_that_left_the_recipe(tmp_path: Path) -> None:
    model = fresh(lambda name, inputs: 0.3 if name == "h2.2.down.weight" else 0.02)
    told = found(save(tmp_path / "a.pt", 0, model), "init_std")
    assert told["severity"] == "warning" and told["tensors"] == ["model.h2.2.down.weight"]
    assert "0.3, 15 times as much" in told["title"]


def test_all_matrices_far_from_any_recipe(tmp_path: Path) -> None:
    told = found(save(tmp_path / "a.pt", 0, fresh(lambda name, inputs: 1.0)), "init_std")
    assert told["severity"] == "warning" and "16 of 16 matrices" in told["title"] and "larger" in told["title"]


def test_a_trained_model_is_not_held_against_a_recipe(tmp_path: Path) -> None:
    """Neither late in training, nor at step 0 of a run that began from trained weights."""
    model = fresh(lambda name, inputs: 0.3 if "h2" in name else 0.02)
    assert not {"init_std", "init_recipe"} & ids(sick_document.report(save(tmp_path / "a.pt", 5000, model)))
    g = torch.Generator().manual_seed(0)
    model = fresh(lambda name, inputs: 0.02 * float(torch.rand(1, generator=g) * 3 + 1))
    assert not {"init_std", "init_recipe"} & ids(sick_document.report(save(tmp_path / "b.pt", 0, model)))


# --- ranks


def save_ranks(folder: Path, states: list[dict[str, Any]], name: str = "rank_{}.pt") -> Path:
    for rank, state in enumerate(states):
        path = folder / name.format(rank)
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.save({"model": state}, path)
    return folder


def test_replicas_that_drifted_apart(tmp_path: Path) -> None:
    torch.manual_seed(0)
    states = [{"fc.weight": w, "out.weight": w.T.contiguous()} for w in [torch.randn(32, 16)] * 3]
    assert not found(save_ranks(tmp_path / "same" / "step_10", states), "ranks_differ")
    states[0] = states[0] | {"fc.weight": states[0]["fc.weight"] + 1e-3 * torch.randn(32, 16)}
    told = found(save_ranks(tmp_path / "odd" / "step_10", states), "ranks_differ")
    assert len(told["tensors"]) == 1 and "fc.weight first" in told["title"]
    assert "rank_0.pt is alone with its values in 1 of them" in told["title"]


@pytest.mark.parametrize("name", ["mp_rank_{:02}/model_optim_rng.pt", "consolidated.{:02}.pth", "rank_{}.pt"])
def test_parts_of_one_matrix_are_no_copies(tmp_path: Path, name: str) -> None:
    torch.manual_seed(0)
    norm = torch.ones(64) + 0.1 * torch.randn(64)
    states = [{"fc.weight": torch.randn(32, 16), "scale": 1 + 0.01 * torch.randn(64), "norm.weight": norm} for _ in range(4)]
    assert not found(save_ranks(tmp_path / "step_10", states, name), "ranks_differ")
    states[2]["norm.weight"] = norm + 1e-3
    told = found(save_ranks(tmp_path / "step_10", states, name), "ranks_differ")
    assert len(told["tensors"]) == 1 and "norm.weight" in told["tensors"][0]
    assert name.format(2) in told["title"]

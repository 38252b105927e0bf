"""What a sound training leaves in its checkpoints and looks odd: nothing of it is a warning."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import forensics
from forensics import at_path
from forensics.checkpoints import describe, run_saves, sick_document

torch = pytest.importorskip("torch")
nn = torch.nn


class Counting(nn.Module):  # type: ignore[misc,name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.net = plain()
        self.register_buffer("tokens_seen", torch.tensor(3.2e9))
        self.register_buffer("hits", torch.full((7,), 5.5e7))

    def forward(self, x: Any) -> Any:
        return self.net(x)


class Table(nn.Module):  # type: ignore[misc,name-defined]
    """An embedding of which most rows fill up the vocabulary."""

    def __init__(self) -> None:
        super().__init__()
        self.e, self.o = nn.Embedding(64, 8), nn.Linear(8, 5)
        self.e.weight.data[20:] = 0

    def forward(self, x: Any) -> Any:
        return self.o(self.e(x[:, 0].abs().long() % 20))


class Millions(nn.Module):  # type: ignore[misc,name-defined]
    """A loss in unscaled units: its gradients and their squares are as large."""

    def __init__(self) -> None:
        super().__init__()
        self.net = plain()

    def forward(self, x: Any) -> Any:
        return 1e9 * self.net(x)


def plain() -> Any:
    return nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 5))


def frozen() -> Any:
    net = plain()
    net[0].requires_grad_(False)
    net[2].requires_grad_(False)
    return net


def spectral() -> Any:
    net = plain()
    net[2] = nn.utils.parametrizations.spectral_norm(net[2])
    return net


def adam(p: Any) -> Any:
    return torch.optim.AdamW(p, 1e-3)


SOUND: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "LBFGS keeps one state for all": (plain, lambda p: torch.optim.LBFGS(p, lr=0.01, max_iter=2)),
    "ASGD, whose mu stays 1": (plain, lambda p: torch.optim.ASGD(p, 0.01)),
    "vectors of spectral norm": (spectral, adam),
    "frozen layers handed to the optimizer": (frozen, adam),
    "counters as floats": (Counting, adam),
    "a vocabulary filled up with zeros": (Table, adam),
    "moments of a loss of millions": (Millions, adam),
}


@pytest.mark.parametrize("name", SOUND)
def test_it_is_no_warning(tmp_path: Path, name: str) -> None:
    torch.manual_seed(0)
    model = SOUND[name][0]()
    optimizer = SOUND[name][1](list(model.parameters()))
    paths = []
    for step in (20, 40):
        for _ in range(20):
            x = torch.randn(256, 8)
            y = x[:, :5].argmax(1)

            def closure(x: Any = x, y: Any = y) -> Any:
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(x), y)
                loss.backward()
                return loss

            optimizer.step(closure)
        paths.append(tmp_path / f"step_{step}.pt")
        torch.save({"model": copy.deepcopy(model.state_dict()), "optimizer": optimizer.state_dict(), "step": step}, paths[-1])
    found = sick_document.report(*paths)["findings"]
    assert [f for f in found if f["severity"] != "info"] == []


def test_a_run_that_never_saves_its_optimizer_means_it(tmp_path: Path) -> None:
    def save(step: int, **more: Any) -> Path:
        path = tmp_path / f"step_{step}.pt"
        torch.save({"model": plain().state_dict(), "step": step, "scheduler": {"last_epoch": step}, **more}, path)
        return path

    def severity(path: Path) -> str:
        return next(f["severity"] for f in sick_document.report(path)["findings"] if f["id"] == "optimizer_missing")

    last = save(40)
    assert severity(last) == "warning"  # nothing beside it tells
    save(20)
    assert severity(last) == "info"
    optimizer = torch.optim.SGD(plain().parameters(), 0.1, momentum=0.9)
    save(30, optimizer=optimizer.state_dict())
    assert severity(last) == "warning"


@pytest.mark.parametrize(("folder", "step"), [("state_210", None), ("step_210", 210)])
def test_the_count_beside_random_numbers_is_no_step(tmp_path: Path, folder: str, step: int | None) -> None:
    """As accelerate's save_state leaves it: `step` counts micro-batches, 0 where nothing is accumulated."""
    where = tmp_path / folder
    where.mkdir()
    torch.save(plain().state_dict(), where / "pytorch_model.bin")
    torch.save({"step": 0, "torch_manual_seed": torch.get_rng_state()}, where / "random_states_0.pkl")
    assert describe.read(where).step == step


def test_where_neither_name_nor_file_says_the_step_the_optimizer_does(tmp_path: Path) -> None:
    """accelerate's save_state, whose folder a script names as it likes."""
    state = pytest.importorskip("accelerate.state")
    state.AcceleratorState._reset_state(reset_partial_state=True)  # what another test of this process left
    state.GradientState._reset_state()
    accelerator = pytest.importorskip("accelerate").Accelerator(cpu=True)
    model = plain()
    optimizer = adam(list(model.parameters()))
    model, optimizer = accelerator.prepare(model, optimizer)
    for step in range(1, 61):
        optimizer.zero_grad()
        accelerator.backward(model(torch.randn(4, 8)).square().mean())
        optimizer.step()
        if step % 30 == 0:
            accelerator.save_state(str(tmp_path / f"state_{'ab'[step // 30 - 1]}"))
    rows = [{"step": i, "loss": 2.0 - i / 100 if i < 70 else float("nan")} for i in range(100)]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, rows)))
    run = at_path.read(str(tmp_path))
    assert [c.step for c in run_saves.of_run(run)] == [30, 60]
    assert forensics.analyze(str(tmp_path)).to_json()["run"]["last_healthy_checkpoint"]["step"] == 60

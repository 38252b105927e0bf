"""Moments that are zero throughout: no gradient ever came, which is no damage of the file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import forensics
from forensics.pipeline import judge
from forensics.signs.sign import Symptoms
from forensics.signs.unfed_parameters import moments_zero_throughout

torch = pytest.importorskip("torch")


def trained(folder: Path, *, dead: bool, steps: int = 40) -> Path:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    if dead:
        torch.nn.init.constant_(model[0].bias, -60.0)
    optimizer, rows = torch.optim.Adam(model.parameters(), 1e-3), []
    for step in range(1, steps + 1):
        x = torch.randn(64, 8)
        loss = torch.nn.functional.cross_entropy(model(x), x[:, :4].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rows.append({"step": step, "loss": float(loss.detach())})
    (folder / "log.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": steps}, folder / f"step_{steps}.pt")
    return folder


@pytest.mark.parametrize(("dead", "steps", "state"), [(True, 40, "seen"), (False, 40, "absent"), (True, 2, "cannot tell")])
def test_no_gradient_ever_came(tmp_path: Path, dead: bool, steps: int, state: str) -> None:
    run = forensics.read(str(trained(tmp_path, dead=dead, steps=steps)))
    assert moments_zero_throughout(Symptoms(run, ())).state == state


def test_dead_units_lead_where_the_loss_stands_still(tmp_path: Path) -> None:
    assert judge(forensics.read(str(trained(tmp_path, dead=True)))).hypotheses[0].id == "dead_or_saturated_units"


@pytest.mark.parametrize("zero", ["optimizer/vars/4", "layers/dense/vars/0"])
def test_moments_under_a_number_are_no_weights(tmp_path: Path, zero: str) -> None:
    """Keras numbers them. A weight of zeros is lost, a moment of zeros was never fed."""
    safetensors = pytest.importorskip("safetensors.torch")
    names = ("layers/dense/vars/0", "layers/dense_1/vars/0", "optimizer/vars/2", "optimizer/vars/3", "optimizer/vars/4")
    safetensors.save_file({n: torch.randn(8, 8) * (n != zero) for n in names}, str(tmp_path / "step_500.safetensors"))
    found = [f for f in judge(forensics.read(str(tmp_path))).findings if f.kind == "checkpoint_damage"]
    assert bool(found) == (not zero.startswith("optimizer"))

"""What the worker does inside the training environment, called in this process: changes, states, looks, leaks."""

from __future__ import annotations

import random
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from replays import PLAIN as OF_REPLAYS  # noqa: E402
from replays import Direct  # noqa: E402

from forensics.replays.training import commands, layouts, leaks, whole_state  # noqa: E402
from forensics.replays.training.adapter import Wrong  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:TF32 acceleration")

PLAIN = """
import torch
from torch import nn
from torch.nn import functional as F

def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 1))
    return model, torch.optim.Adam(model.parameters(), lr=0.01)

def batch(step):
    x = torch.randn(8, 6, generator=torch.Generator().manual_seed(step))
    return {"x": x, "y": torch.tanh(x.sum(1))}

def loss(model, batch, reduction="mean"):
    rows = (model(batch["x"])[:, 0] - batch["y"]) ** 2
    return rows if reduction == "none" else rows.mean()
"""
READER = """
import torch
from torch import nn
from torch.nn import functional as F

class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.body, self.head = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False), nn.Linear(8, 11)
    def forward(self, x):
        h = self.embed(x)
        return self.head(READ(self, h))

def build():
    torch.manual_seed(0)
    model = Reader()
    return model, torch.optim.SGD(model.parameters(), lr=0.1)

def batch(step):
    x = torch.randint(11, (4, 9), generator=torch.Generator().manual_seed(step))
    mask = torch.ones(4, 8, dtype=torch.long)
    mask[0, -2:] = 0
    return {"x": x[:, :-1], "y": x[:, 1:], "attention_mask": mask}

def loss(model, batch):
    return F.cross_entropy(model(batch["x"]).flatten(0, 1), batch["y"].flatten())

CAUSAL = nn.Transformer.generate_square_subsequent_mask(8)
"""


def session(folder: Path, text: str) -> Any:
    torch.manual_seed(0)
    path = folder / "train.py"
    path.write_text(textwrap.dedent(text))
    found = commands.Session()
    commands.open_(found, None, str(path), "cpu", 0, 1 << 30)
    return found


def run(s: Any, plan: list[int], **options: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    commands.run(s, rows.append, options.pop("state", "built"), [{"batch": b} for b in plan], **options)
    return rows


def test_moments_of_another_state_are_put_in_and_everything_else_goes_on(tmp_path: Path) -> None:
    s = session(tmp_path, PLAIN)
    plain = run(s, list(range(8)), keep={"2": "early", "6": "late"})
    stale = run(s, [6, 7], state="late", moments=[0, "early"])
    assert stale[0]["loss"] == plain[6]["loss"]  # the weights are those of the late state
    assert stale[1]["loss"] != plain[7]["loss"]
    count = {float(x["step"]) for x in s.adapter.optimizer.state.values()}
    assert count == {4.0}  # two steps of the early moments, and two since
    assert [x["loss"] for x in run(s, [6, 7], state="late")] == [x["loss"] for x in plain[6:]]  # nothing of it stays


def test_other_kernels_give_the_same_loss_but_for_rounding_and_are_put_back(tmp_path: Path) -> None:
    s = session(tmp_path, PLAIN)
    threads = torch.get_num_threads()
    plain, other = run(s, [0, 1, 2]), run(s, [0, 1, 2], changes={"kernels": True})
    assert [x["loss"] for x in other] == pytest.approx([x["loss"] for x in plain], rel=1e-4)
    assert torch.get_num_threads() == threads
    assert torch.are_deterministic_algorithms_enabled()


def test_a_rate_of_zero_is_replaced_by_the_logged_one(tmp_path: Path) -> None:
    warm = PLAIN.replace(
        "return model, torch.optim.Adam(model.parameters(), lr=0.01)", "return model, torch.optim.SGD(model.parameters(), lr=0.0)"
    )
    s = session(tmp_path, warm)
    still = run(s, [0, 0, 0])
    assert len({x["loss"] for x in still}) == 1
    moved = run(s, [0, 0, 0], changes={"lr_as_logged": {str(i): 0.1 for i in range(3)}})
    assert moved[2]["loss"] < 0.9 * moved[0]["loss"]
    assert s.adapter.optimizer.param_groups[0]["lr"] == 0.0


def test_random_states_of_a_checkpoint_are_restored_numpy_among_them(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    s = session(tmp_path, PLAIN)
    a = s.adapter
    saved = {"python": random.getstate(), "numpy": numpy.random.get_state(), "cpu": torch.get_rng_state()}
    folder = tmp_path / "checkpoint-5"
    folder.mkdir()
    torch.save(a.model.state_dict(), folder / "pytorch_model.bin")
    torch.save(saved, folder / "rng_state.pth")
    wanted = (random.random(), float(numpy.random.rand()), float(torch.rand(())))
    told = commands.start(s, None, str(folder), "start")
    assert "random numbers" in told["parts"]
    commands.restore(s, "start")
    assert (random.random(), float(numpy.random.rand()), float(torch.rand(()))) == wanted


def test_making_a_batch_does_not_move_the_random_numbers_of_the_step(tmp_path: Path) -> None:
    text = PLAIN.replace("nn.Tanh(), nn", "nn.Tanh(), nn.Dropout(0.5), nn").replace(
        "    x = torch.randn(8", "    torch.rand(3)\n    x = torch.randn(8"
    )
    s = session(tmp_path, text)
    first = run(s, [0, 1, 2])  # here the batches are made, below they are kept
    assert run(s, [0, 1, 2]) == first
    assert run(s, [0, 1, 2, 0])[3]["loss"] != first[0]["loss"]


def test_the_loss_scale_of_a_checkpoint_is_restored(tmp_path: Path) -> None:
    s = session(tmp_path, PLAIN + '\nPRECISION = "fp16"\n')
    a = s.adapter
    state = {"model": a.model.state_dict(), "scaler": {**a.scaler.state_dict(), "scale": 512.0}, "step": 3}
    torch.save(state, tmp_path / "c.pt")
    assert commands.start(s, None, str(tmp_path / "c.pt"), "start")["parts"] == ["weights", "loss scale"]
    commands.restore(s, "built")
    assert a.scaler.get_scale() == 65536.0
    commands.restore(s, "start")
    assert a.scaler.get_scale() == 512.0


def test_a_checkpoint_that_runs_code_or_does_not_fit_is_refused_in_one_sentence(tmp_path: Path) -> None:
    s = session(tmp_path, PLAIN)
    torch.save({"model": s.adapter.model.state_dict(), "extra": Path("x")}, tmp_path / "code.pt")
    with pytest.raises(layouts.Unusable, match="cannot be loaded without running code"):
        commands.start(s, None, str(tmp_path / "code.pt"), "start")
    torch.save({"model": {"0.weight": torch.zeros(3, 3)}}, tmp_path / "other.pt")
    with pytest.raises(RuntimeError, match="loading state_dict") as e:
        commands.start(s, None, str(tmp_path / "other.pt"), "start")
    assert commands.describe(e.value)["kind"] == "adapter"
    with pytest.raises(layouts.Unusable, match="is gone"):
        commands.start(s, None, str(tmp_path / "none.pt"), "start")


def test_gradients_of_samples_are_taken_in_the_precision_of_the_run(tmp_path: Path) -> None:
    half = session(tmp_path, PLAIN + '\nPRECISION = "bf16"\n')
    norms = commands.gradients(half, None, "built", 0)
    assert norms["how"] == "torch.func"
    alone = []
    for i in range(8):
        half.adapter.optimizer.zero_grad()
        half.adapter.loss({k: v[i : i + 1] for k, v in half.adapter.batch(0).items()}).backward()
        alone.append(float(sum((p.grad**2).sum() for p in half.adapter.model.parameters()) ** 0.5))
    assert norms["norms"] == pytest.approx(alone, rel=0.05)


def test_a_model_of_mixed_precision_is_itself_again_after_an_experiment_in_another(tmp_path: Path) -> None:
    mixed = PLAIN.replace("    return model, torch", "    model[2].to(torch.bfloat16)\n    return model, torch")
    mixed = mixed.replace('model(batch["x"])[:, 0]', 'model[2](model[:2](batch["x"]).to(model[2].weight.dtype))[:, 0].float()')
    s = session(tmp_path, mixed)
    plain = run(s, [0, 1, 2])
    for name in ("fp32", "fp64"):
        other = run(s, [0, 1, 2], changes={"precision": name})
        assert [x["loss"] for x in other] != [x["loss"] for x in plain]
        assert [x["loss"] for x in run(s, [0, 1, 2])] == [x["loss"] for x in plain]
    assert [str(p.dtype) for p in s.adapter.model.parameters()] == ["torch.float32"] * 2 + ["torch.bfloat16"] * 2


def test_clipping_is_lifted_also_where_it_was_imported_by_name(tmp_path: Path) -> None:
    own = """
from torch.nn.utils import clip_grad_norm_

def train_step(model, optimizer, scheduler, batch):
    optimizer.zero_grad()
    value = loss(model, batch)
    value.backward()
    norm = clip_grad_norm_(model.parameters(), 1e-6)
    optimizer.step()
    return value.detach(), norm
"""
    s = session(
        tmp_path, PLAIN.replace("torch.optim.Adam(model.parameters(), lr=0.01)", "torch.optim.SGD(model.parameters(), lr=0.1)") + own
    )
    still, free = run(s, [0, 0, 0]), run(s, [0, 0, 0], changes={"clip": "off"})
    assert still[2]["loss"] == pytest.approx(still[0]["loss"], rel=1e-4)
    assert free[2]["loss"] < 0.9 * free[0]["loss"]
    assert [x["loss"] for x in run(s, [0, 0, 0])] == [x["loss"] for x in still]


def test_one_loss_a_sample_must_be_one_a_sample(tmp_path: Path) -> None:
    s = session(tmp_path, PLAIN.replace("return rows if", "return rows[:3] if"))
    with pytest.raises(Wrong, match=r"one loss a sample, shape \(8,\); it returned shape \(3,\)"):
        commands.losses(s, None, "built", [0], rows=True)


@pytest.mark.parametrize(
    ("read", "future", "others", "padding"),
    [
        ("READ = lambda m, h: m.body(h, mask=CAUSAL, is_causal=True)", False, False, False),
        ("READ = lambda m, h: m.body(h)", True, False, True),
        ("READ = lambda m, h: h + h.mean(0, keepdim=True)", False, True, True),
        ("READ = lambda m, h: h + h.roll(-1, 1)", True, False, True),
    ],
)  # fmt: skip
def test_what_outputs_see_is_told(read: str, future: bool, others: bool, padding: bool, tmp_path: Path) -> None:
    s = session(tmp_path, READER + read)
    found = leaks.leaks(s.adapter, s.adapter.batch(0))
    assert (found["future_gradient"] > 1e-8) == future
    assert (found["future_change"] > 1e-5) == future
    assert (found["other_samples_gradient"] > 1e-8) == others
    assert found["nan_spreads_to_samples"] == others
    assert (found["padding_change"] > 1e-5) == padding
    assert s.adapter.model.training


def test_a_model_of_numbers_is_probed_at_its_input(tmp_path: Path) -> None:
    plain = session(tmp_path, PLAIN)
    assert leaks.leaks(plain.adapter, plain.adapter.batch(0)) == {"other_samples_gradient": 0.0}
    mixing = PLAIN.replace("nn.Linear(12, 1))", "nn.Linear(12, 1), Mixing())").replace(
        "def build", "class Mixing(nn.Module):\n    def forward(self, x):\n        return x - x.mean(0)\n\ndef build"
    )
    mixed = session(tmp_path, mixing)
    assert leaks.leaks(mixed.adapter, mixed.adapter.batch(0))["other_samples_gradient"] > 1e-3


def test_the_operation_that_makes_infinity_is_named_with_its_module_and_what_went_in(tmp_path: Path) -> None:
    broken = PLAIN.replace("nn.Linear(12, 1))", "Odd(), nn.Linear(12, 1))").replace(
        "def build", "class Odd(nn.Module):\n    def forward(self, x):\n        return (x - x.max()).abs().log()\n\ndef build"
    )
    s = session(tmp_path, broken)
    seen = commands.frames(s, None, "built", 0)
    assert (seen["first"]["operation"], seen["first"]["module"], seen["first"]["phase"]) == ("log", "2", "forward")
    assert seen["first"]["inputs"][0]["absmin"] == 0.0
    odd = next(f for f in seen["frames"] if f["module"] == "2" and f["what"] == "output")
    assert odd["nonfinite"] >= 1
    before = [f for f in seen["frames"] if f["module"] in ("0", "1")]
    assert before
    assert all(f["nonfinite"] == 0 for f in before)


def test_a_hidden_state_kept_as_an_attribute_goes_with_the_state(tmp_path: Path) -> None:
    text = PLAIN + (
        "\n\n_build = build\n\n\ndef build():\n    model, *rest = _build()\n    model.hidden = None\n    return (model, *rest)\n"
        "\n\n_loss = loss\n\n\ndef loss(model, batch, reduction=\"mean\"):\n    value = _loss(model, batch, reduction)\n"
        "    value = value if model.hidden is None else value + 0.1 * model.hidden\n    model.hidden = value.mean().detach()\n    return value\n"
    )  # fmt: skip
    s = session(tmp_path, text)
    first = run(s, [0, 1, 2])
    assert s.adapter.model.hidden is not None
    assert run(s, [0, 1, 2]) == first


def test_settings_of_another_state_are_put_in_and_the_rate_where_no_schedule_sets_it(tmp_path: Path) -> None:
    s = session(tmp_path, PLAIN)
    group = s.adapter.optimizer.param_groups[0]
    group.update(weight_decay=0.5, lr=0.2)
    commands.put(s, "later")
    commands.restore(s, "built")
    plain = run(s, [0, 0, 0])
    other = run(s, [0, 0, 0], settings=[1, "later"])
    assert [x["lr"] for x in other] == [plain[0]["lr"], 0.2, 0.2]
    assert other[1]["loss"] == plain[1]["loss"] and other[2]["loss"] != plain[2]["loss"]


def test_attributes_are_put_back_where_they_were_and_weights_named_twice_stay_the_weights(tmp_path: Path) -> None:
    s = session(tmp_path, PLAIN)
    model, shared = s.adapter.model, []
    model.losses = shared
    model.count, model.cache, model.tied = 0, {}, [next(model.parameters())]
    commands.put(s, "early")
    model.count, model.new = 3, torch.ones(2)
    model.losses.append(torch.ones(1))
    model.cache["k"] = torch.ones(2)
    commands.restore(s, "early")
    assert (model.count, model.cache, model.losses) == (0, {}, [])
    assert model.losses is shared and not hasattr(model, "new")
    assert model.tied[0] is next(model.parameters())


def test_settings_are_what_the_constructor_takes_and_no_schedule_sets(tmp_path: Path) -> None:
    s = session(tmp_path, PLAIN)
    a = s.adapter
    a.optimizer.param_groups[0]["k"] = 7  # as optimizers keep their counts
    told = whole_state.settings(a, a.optimizer.param_groups)[0]
    assert {"lr", "betas", "eps", "weight_decay"} <= set(told)
    assert not {"k", "fused", "foreach", "params"} & set(told)
    a.scheduler = torch.optim.lr_scheduler.OneCycleLR(a.optimizer, 0.1, total_steps=10)
    assert not {"lr", "betas"} & set(whole_state.settings(a, a.optimizer.param_groups)[0])


def test_a_step_may_know_its_number_and_state_of_its_own_goes_with_the_others(tmp_path: Path) -> None:
    """An average of the weights that the loss is pulled to, kept by the adapter, and a rate that hangs on the step."""
    path = tmp_path / "train.py"
    path.write_text(OF_REPLAYS + textwrap.dedent(
        """
        mean = {"w": torch.zeros(1, 16)}

        def extra_state():
            return mean

        def set_extra_state(x):
            mean.update(x)

        def train_step(model, optimizer, scheduler, batch, step):
            optimizer.zero_grad()
            value = loss(model, batch) + 0.1 * (model[2].weight - mean["w"]).square().sum()
            value.backward()
            optimizer.param_groups[0]["lr"] = 0.01 / (step + 1)
            optimizer.step()
            mean["w"] = 0.9 * mean["w"] + 0.1 * model[2].weight.detach()
            return value
        """
    ))  # fmt: skip
    with Direct(sys.executable, path) as worker:
        worker.open("cpu", 1)
        first: list[dict[str, Any]] = []
        again: list[dict[str, Any]] = []
        worker.ask("run", first.append, state="built", plan=[{"batch": s} for s in range(8)], keep={"4": "at 4"})
        worker.ask("run", again.append, state="at 4", plan=[{"batch": s} for s in range(4, 8)])
    assert [r["loss"] for r in again] == [r["loss"] for r in first[4:]]
    assert [r["lr"] for r in first[1:4]] == [pytest.approx(0.01 / s) for s in (1, 2, 3)]

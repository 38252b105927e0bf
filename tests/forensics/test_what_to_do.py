"""What a run's own figures add to the advice of a cause, beside twins in which they do not."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch
from runs import case, loss, make, write

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.2 GiB is free.\n"


def advice(told: dict[str, Any]) -> str:
    return " ".join(step for h in told["hypotheses"] for step in h["interventions"])


def test_nobody_is_sent_to_a_checkpoint_that_is_not_there(tmp_path: Path) -> None:
    crash = 'Traceback (most recent call last):\n  File "train.py", line 9, in f\nKeyError: 1\n'
    rows = [{"step": i, "loss": loss(i)} for i in range(150)]
    assert "checkpoint" not in advice(case(make(tmp_path / "none", rows, log=crash)))
    folder = make(tmp_path / "saved", rows, log=crash)
    for step in (50, 100):
        torch.save({"model": {"w": torch.ones(4, 4)}, "step": step}, folder / f"step_{step}.pt")
    (folder / "step_140.pt").write_bytes(b"PK\x03\x04 cut off")  # damaged: no place to go on from
    told = case(folder)
    assert "Resume from the checkpoint of step 100." in advice(told)
    assert told["run"]["again"]["says"].startswith("yes, from step_100.pt: fix the line that the traceback names")


def test_a_checkpoint_after_the_first_bad_step_is_no_place_to_go_on_from(tmp_path: Path) -> None:
    """A run that was wrong from its first step, and finished: the checkpoint at its end is whole, and of no use."""
    rows = [{"step": i, "loss": math.nan if i else 2.0} for i in range(150)]
    folder = make(tmp_path / "wrong", rows, {"max_steps": 150})
    torch.save({"model": {"w": torch.ones(4, 4)}, "step": 149}, folder / "step_149.pt")
    told = case(folder)["run"]
    assert told["last_healthy_checkpoint"] is None and told["again"]["trouble_from"] in (0, 1)
    assert "from step_149.pt" not in (told["again"]["says"] or "")


def test_memory_of_the_optimizer_state_is_worked_out_where_it_leaves_no_room(tmp_path: Path) -> None:
    def said(name: str, **config: Any) -> str:
        told = case(make(tmp_path / name, [], {"optimizer": "adamw", **config}, log="starting\n" + OOM))
        return advice(told) + " ".join(c["text"] for h in told["hypotheses"] for c in h["clues"])

    large = said("large", n_params=7e9)
    assert "104 GiB" in large and "Shard the optimizer's state" in large and "8 bits" in large
    for name, config in {
        "small": {"n_params": 1e8},
        "sharded": {"n_params": 7e9, "fsdp": "full_shard"},
        "lora": {"n_params": 7e9, "lora_r": 8},
    }.items():
        assert "Adam's state of" not in said(name, **config), name


def test_the_rate_is_laid_beside_a_batch_that_changed(tmp_path: Path) -> None:
    from runs import read

    from forensics.detectors import config_change
    from forensics.signs.changed_settings import batch_size_differs
    from forensics.signs.sign import Symptoms

    def said(name: str, size: float, **more: Any) -> str:
        run = read(write(tmp_path / name, batch_size=lambda i: 64.0 if i <= 150 else size, **more))
        return " ".join(batch_size_differs(Symptoms(run, tuple(config_change.detect(run)))).do)

    rate = {"lr": lambda i: 1e-3}
    assert "the batch became 16 times as large, and the rate 1 times; SGD asks for 16 times, Adam for 4 to 16" in said(
        "faulty", 1024, **rate
    )
    assert said("healthy", 64, **rate) == said("no_rate", 1024) == ""


def test_fast_paths_that_config_turns_off_are_named_beside_a_low_mfu(tmp_path: Path) -> None:
    slow = {"precision": "fp32", "torch_compile": False, "attn_implementation": "eager", "fused": True}

    def titles(name: str, config: dict[str, Any], mfu: float) -> list[str]:
        return [f["title"] for f in case(write(tmp_path / name, config=config, mfu=lambda i: mfu))["findings"]]

    assert any("config leaves 3 fast paths off" in t for t in titles("slow", slow, 0.05))
    assert not any("fast path" in t for t in [*titles("fast", slow, 0.4), *titles("plain", {"precision": "bf16"}, 0.05)])


def test_a_long_momentum_is_named_where_the_loss_swings(tmp_path: Path) -> None:
    from runs import read

    from forensics.detectors import oscillation
    from forensics.signs.loss_shape import loss_swings
    from forensics.signs.sign import Symptoms

    def swings(i: int) -> float:
        return loss(i) * (1 if i < 150 else math.exp(0.9 * math.sin(i * 0.9)))

    for momentum, words in ((0.99, "Lower the momentum"), (0.9, "")):
        run = read(write(tmp_path / str(momentum), config={"optimizer": "sgd", "momentum": momentum}, loss=swings))
        sign = loss_swings(Symptoms(run, tuple(oscillation.detect(run))))
        assert sign.state == "seen" and " ".join(sign.do).startswith(words) and bool(sign.do) == bool(words)


def test_a_spike_of_the_gradient_names_the_layer_in_which_it_rose_most(tmp_path: Path) -> None:
    def titles(name: str, layers: int) -> list[str]:
        def norm(i: int, times: float) -> float:
            return (1 + 0.05 * ((i * 31) % 7 - 3)) * (times if i == 200 else 1)

        more = {f"grad_norm/layer.{k}": (lambda i, k=k: norm(i, 40 if k == 2 else 3)) for k in range(layers)}
        told = case(write(tmp_path / name, grad_norm=lambda i: norm(i, 20), **more))
        return [f["title"] for f in told["findings"] if f["kind"] == "grad_spike"]

    assert any("most of all in grad_norm/layer.2 (" in t for t in titles("layers", 4))
    assert titles("total", 0) and not any("most of all" in t for t in titles("total2", 0))


def test_epsilon_is_moved_the_way_that_helps() -> None:
    from forensics.causes import weigh
    from forensics.causes.files import causes

    told = causes()["optimizer_second_moment"].interventions
    assert weigh.filled(told, {"large_epsilon": "1"})[0].startswith("Lower epsilon from 1 to about 1e-8")
    assert weigh.filled(told, {"small_epsilon": "1e-16"})[0] == "Raise epsilon from 1e-16 towards the gradients' scale."
    assert weigh.filled(told, {}) == ["Raise beta2, or clip the update."]

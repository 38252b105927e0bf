"""Lists of fractions in a console line, by their index; and counts in brackets in front of it."""

from __future__ import annotations

from pathlib import Path

import pytest

import forensics
from parsers.console_format.line_numbers import read_line


def told(text: str) -> dict[str, float]:
    return dict(read_line(text).metrics())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("step 20 loss 4.5 | load L0 [0.25 0.25 0.5]", {"load L0/0": 0.25, "load L0/1": 0.25, "load L0/2": 0.5}),
        ("step: 10 loss: 4.5 expert_load: [0.500, 0, 0.500, 0]", {f"expert_load/{i}": (0.5, 0.0)[i % 2] for i in range(4)}),
        ("Epoch 3: Pseudo dice [0.5, 0.0]", {"Pseudo dice/0": 0.5, "Pseudo dice/1": 0.0}),
        ("tokens per expert (layer 0..1): 1.5 1.5 | share [0.25, 0.75]", {"expert share/0": 0.25, "expert share/1": 0.75}),
        ("step 3 loss 4.5  load 22/15/32/31", {f"expert load/{i}": x for i, x in enumerate((22.0, 15.0, 32.0, 31.0))}),
        ("step 3 loss 4.5  load 22/15/32/36", {}),  # more than a whole: of machines
        ("step 3 classes: 2 | share [0.25, 0.75]", {"share/0": 0.25, "share/1": 0.75}),
        ("iter 5: loss 2.5 | max logit per layer 5.5 6.25 7.0", {f"max logit per layer/{i}": x for i, x in enumerate((5.5, 6.25, 7.0))}),
        ("  expert load L0 0.0 0.25 0.75 | L1 0.5 0.5", {f"expert load L0/{i}": x for i, x in enumerate((0.0, 0.25, 0.75))}),
        ("Pseudo dice [np.float32(0.5), np.float32(0.0)]", {"Pseudo dice/0": 0.5, "Pseudo dice/1": 0.0}),  # at no step, but surely measured
    ],
)
def test_a_list_of_fractions_is_read_by_its_index(text: str, found: dict[str, float]) -> None:
    assert {k: v for k, v in told(text).items() if "/" in k} == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Epoch 10    [Avg. Loss, Loss]: [10.4449, 7.1693], 0", {"Avg. Loss": 10.4449, "Loss": 7.1693}),
        ("step 3 [loss, acc] = [0.5, 0.25]", {"loss": 0.5, "acc": 0.25}),
        ("Epoch 10 [Avg. Loss, Loss]: [10.4449, 7.1693, 3.5]", {}),  # more values than names
        ("[betas, eps]: [0.9, 0.999]", {}),  # at no place
    ],
)
def test_values_in_brackets_have_the_names_in_the_brackets_before(text: str, found: dict[str, float]) -> None:
    assert told(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "step 20 loss 4.5 ids [400, 0, 429]",  # whole numbers are samples, sizes, shapes
        "step 20 loss 4.5 lr [0.1, 0.01] betas [0.9, 0.999]",  # of parameter groups, and of the optimizer
        "loss weights [0.5, 0.5]",  # at no step
        "iter 5: loss 2.5 time per iteration 5.5 s, samples per rank 12 14 16",
        "max logit per layer 5.5 6.25 7.0",
        "classes of the data: 2 | share [0.25, 0.75]",  # of nothing that is known to be counted again and again
        "step 20 out [0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9 1.0 1.1 1.2 1.3 1.4 1.5 1.6 1.7]",  # a tensor that was printed
        "loss [" + 60 * "0.123456789 " + "...",  # and cut: it took minutes
    ],
)
def test_other_lists_are_not(text: str) -> None:
    assert not [k for k in told(text) if "/" in k]


def test_a_count_in_brackets_before_named_values_is_the_step() -> None:
    line = read_line("I0304 09:12:32.028397 140211 train.py:118] [25] train_loss=4.5, epoch=1")
    assert line.parts() == {"step": 25, "epoch": 1} and dict(line.metrics()) == {"train_loss": 4.5}
    assert read_line("[25] finished in 3 s").parts() == {}


def test_loads_below_a_step_are_of_that_step(tmp_path: Path) -> None:
    text = "".join(f"iteration {i}/60 | lm loss: 5.{i}\n  tokens per expert: 1.5 | share [0.25, 0.{i}]\n" for i in range(10, 60, 10))
    (tmp_path / "train.log").write_text("experts: 2 | share [0.1, 0.9]\n" + text)
    rows = forensics.read(str(tmp_path)).tables["metrics"].select(["tag", "step", "value"]).to_pylist()
    assert [(r["step"], r["value"]) for r in rows if r["tag"] == "expert share/1"] == [(i, i / 100) for i in range(10, 60, 10)]


def test_numbers_between_slashes_are_those_of_layers_where_they_are_three_or_more(tmp_path: Path) -> None:
    lines = [f"it {i} loss {2 - i / 50:.3f} qk_max {i}.0/{2 * i}.5/{3 * i}.25 batch 3/20" for i in range(1, 30)]
    (tmp_path / "out.log").write_text("\n".join(lines) + "\n")
    tags = set(forensics.read(str(tmp_path)).tables["metrics"]["tag"].to_pylist())
    assert {"qk_max/0", "qk_max/1", "qk_max/2"} <= tags

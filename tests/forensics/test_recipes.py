"""A run beside published recipes of its kind: where it says kind, size and optimizer, and nowhere else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from runs import case, make, read

from forensics.published import recipes
from reports import html, markdown

GPT = {"model": "gpt", "n_layer": 6, "n_head": 6, "n_embd": 768, "vocab_size": 50304, "optimizer": "adamw", "learning_rate": 6e-4,
       "beta2": 0.95, "grad_clip": 1.0, "weight_decay": 0.1, "warmup_iters": 100, "seed": 1}  # fmt: skip


def rows(folder: Path, **settings: Any) -> Path:
    config = {k: v for k, v in (GPT | settings).items() if v is not None}
    return make(folder, [{"step": i, "loss": 10 / (1 + i / 20) + 1} for i in range(1, 101)], config)


def stands(folder: Path) -> dict[str, str]:
    told = recipes.beside(read(folder))
    return {r["what"]: r["stands"] for r in told["rows"]} if told else {}


def test_a_rate_above_all_of_its_kind_and_its_twin(tmp_path: Path) -> None:
    sound = stands(rows(tmp_path / "sound"))
    assert sound["peak rate"] == sound["beta2"] == sound["gradient clip (0: none)"] == sound["weight decay"] == "within"
    assert stands(rows(tmp_path / "high", learning_rate=3e-2)) == sound | {"peak rate": "above"}
    assert stands(rows(tmp_path / "low", learning_rate=1e-6)) == sound | {"peak rate": "below"}


@pytest.mark.parametrize(
    "unknown",
    [
        {"optimizer": None},
        {"optimizer": None, "beta2": None},
        {"optimizer": "muon"},
        {"n_layer": None},
        {"n_embd": None},
        {"model": "mlp"},
        {"model": "meta-llama/Llama-3.2-1B"},
        {"pretrained": True},
        {"n_params": "300B", "optimizer": "sgd"},
        {"n_params": 2e4},
        {"n_layer": "auto", "n_embd": -3},
    ],
    ids=str,
)
def test_it_says_nothing_where_kind_size_or_optimizer_is_not_known(unknown: dict[str, Any], tmp_path: Path) -> None:
    if unknown == {"optimizer": None}:
        unknown |= {"beta2": None}  # which Adam alone has
    assert recipes.beside(read(rows(tmp_path / "run", **unknown))) is None


@pytest.mark.parametrize(("said", "size"), [("124M", 124e6), ("1.3B", 1.3e9), (7e9, 7e9), ("7000000", 7e6)])
def test_the_size_that_config_says(said: Any, size: float, tmp_path: Path) -> None:
    found = recipes.parameters(read(rows(tmp_path / "run", n_params=said)))
    assert found is not None and found[0] == size


def test_the_size_of_layers_and_width(tmp_path: Path) -> None:
    found = recipes.parameters(read(rows(tmp_path / "run", n_layer=12)))
    assert found is not None and found[0] == pytest.approx(124e6, rel=0.01)  # GPT-2


def test_it_is_context_in_case_and_pages_and_no_cause(tmp_path: Path) -> None:
    document = case(rows(tmp_path / "run", weight_decay=0.5))
    assert document["run"]["recipe"]["kind"] == "language model"
    assert document["verdict"] == "healthy" and [h["id"] for h in document["hypotheses"]] == ["unknown"]
    page, text = html.render(document), markdown.render(document)
    assert "The settings beside published recipes" in page and "GPT-3 Small" in page
    assert "weight decay" in text and "GPT-3 Small" in text
    document["run"]["recipe"] = None
    assert "beside published recipes" not in html.render(document) and "GPT-3 Small" not in markdown.render(document)


def test_the_table() -> None:
    table = recipes.published()
    assert len(table) >= 90 and len({p.model for p in table}) == len(table)
    assert recipes.KINDS.keys() <= {p.kind for p in table}
    for p in table:
        assert p.source and p.optimizer in ("", "adam", "sgd", "adafactor", "lion", "muon", "rmsprop")
        assert all(v is None or v >= 0 for v in p.values.values())
        assert all(0 < v < 1 for k in ("beta1", "beta2") if (v := p.values[k]) is not None)
        assert (p.values["warmup"] is None) == (p.warmup_unit == "") and (p.values["batch"] is None) == (p.batch_unit == "")

"""Leads in metrics without a name: what jumps, freezes, grows or is left behind, and what only looks so."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from forensics.detectors import odd_metric
from tests.forensics.curves_in_logs import N, learns, noise, run


def wanders(seed: int = 5) -> Callable[[int], float]:
    n = noise(seed, 0.05)
    return lambda i: 1.0 + n(i)


def odd(columns: Iterable[Callable[[int], float]], folder: Path) -> list[tuple[str, str]]:
    r = run(folder, loss=learns(4, 1), **{f"probe_{i}": f for i, f in enumerate(columns)})
    return [(f.facts.tag, f.facts.what) for f in odd_metric.detect(r)]


def test_leads(tmp_path: Path) -> None:
    w = wanders()
    sick: list[tuple[str, Callable[[int], float]]] = [
        ("nan", lambda i: w(i) if i < 150 else math.nan),
        ("frozen", lambda i: w(min(i, 130))),
        ("frozen", lambda i: w(i) if i < 130 else 0.0),
        ("jump", lambda i: w(i) * (4 if i > 100 else 1)),
        ("jump", lambda i: w(i) / (4 if i > 100 else 1)),
        ("growth", lambda i: w(i) * math.exp(max(i - 90, 0) / 15)),
    ]
    for k, (what, f) in enumerate(sick):
        assert odd([f], tmp_path / str(k)) == [("probe_0", what)]


def test_no_leads(tmp_path: Path) -> None:
    w = wanders()
    sound: list[Callable[[int], float]] = [
        w,
        lambda i: float(i * 100),  # a counter
        lambda i: 1.0 if i < 100 else 0.1,  # a schedule
        lambda i: learns(4, 0.01)(i),  # a term that falls
        lambda i: round(w(i), 1),  # a measure of few samples
        lambda i: w(i) + (3 if 80 < i < 100 else 0),  # it comes back
    ]
    assert odd(sound, tmp_path) == []


def test_at_most_a_handful_and_none_of_a_loss_that_is_no_number(tmp_path: Path) -> None:
    w = wanders()
    columns = {f"probe_{i}": (lambda k: w(k) * (4 if k > 100 else 1)) for i in range(9)}
    assert len(list(odd_metric.detect(run(tmp_path / "many", loss=learns(4, 1), **columns)))) == odd_metric.SHOWN
    good = learns(4, 1)
    assert list(odd_metric.detect(run(tmp_path / "nan", loss=lambda i: good(i) if i < 90 else math.nan, **columns))) == []


@pytest.mark.parametrize("tag", ["grad_norm/layer.3", "param_norm/layer.3", "layer.3/activation_mean", "loss_pde"])
def test_layers_weights_activations_and_terms_are_followed(tag: str, tmp_path: Path) -> None:
    w = wanders()

    def titles(name: str, f: Callable[[int], float]) -> list[str]:
        return [f.facts.what for f in odd_metric.detect(run(tmp_path / name, loss=learns(4, 1), **{tag: f, "z": w}))]

    assert titles("jumps", lambda i: w(i) * (4 if i > 100 else 1)) == ["jump"] and titles("stays", w) == []


def test_norms_of_weights_that_grow_on_are_told_and_those_that_settle_are_not(tmp_path: Path) -> None:
    def what(name: str, f: Callable[[int], float]) -> list[str]:
        return [f.facts.what for f in odd_metric.detect(run(tmp_path / name, loss=learns(4, 1), param_norm=f))]

    assert what("straight", lambda i: 10 + 0.1 * i) == ["grows on"]
    assert what("root", lambda i: 10 + math.sqrt(i)) == what("settles", lambda i: 30 - 20 * math.exp(-i / 40)) == []


def test_a_term_that_was_too_small_to_matter_is_left_behind(tmp_path: Path) -> None:
    def what(name: str, **terms: Callable[[int], float]) -> list[tuple[str, str]]:
        return [(f.facts.tag, f.facts.what) for f in odd_metric.detect(run(tmp_path / name, loss=learns(4, 1), **terms))]

    still, w = wanders(), noise(4, 0.001)
    assert what("bc", loss_pde=learns(3.9, 0.9), loss_bc=lambda i: 0.1 * still(i)) == [("loss_bc", "left behind")]
    assert what("both", loss_pde=learns(3.9, 0.9), loss_bc=lambda i: learns(0.1, 0.01)(i)) == []
    assert what("kl", loss_pde=learns(3.9, 0.9), kl_loss=lambda i: 0.05 + w(i)) == []  # a penalty has a level of its own


def test_answers_that_are_cut_off(tmp_path: Path) -> None:
    def what(name: str, config: dict[str, Any] | None = None, **columns: Callable[[int], float]) -> list[str]:
        return [f.facts.what for f in odd_metric.detect(run(tmp_path / name, config, reward=learns(0.1, 0.9), z=wanders(), **columns))]

    ratio = "completions__clipped_ratio"
    assert what("many", **{ratio: lambda i: min(0.05 + i / 250, 0.7)}) == ["cut off"]
    assert what("few", **{ratio: lambda i: 0.05}) == []
    length = "completions__mean_length"
    assert what("full", {"max_completion_length": 256}, **{length: lambda i: min(100.0 + i, 254.0)}) == ["cut off"]
    assert what("short", {"max_completion_length": 1024}, **{length: lambda i: min(100.0 + i, 254.0)}) == []


def test_histograms_are_followed(tmp_path: Path) -> None:
    def what(name: str, spread: Callable[[int], float]) -> list[tuple[str, str]]:
        r = run(tmp_path / name, loss=learns(4, 1))
        table = r.tables["histograms"]
        rows = [
            {"step": i, "tag": "grads/layer.3", "count": 64.0, "min": -3 * spread(i), "max": 3 * spread(i), "mean": 0.0, "std": spread(i), "source": "x", "at": i}
            for i in range(1, N + 1)
        ]  # fmt: skip
        r.tables["histograms"] = pa.Table.from_pylist(rows, schema=table.schema)
        return [(f.facts.tag, f.facts.what) for f in odd_metric.detect(r)]

    w = wanders()
    jumped = what("faulty", lambda i: w(i) * (5 if i > 100 else 1))
    assert jumped == [(f"{x} of grads/layer.3", "jump") for x in ("largest value", "spread")]
    assert what("healthy", w) == []

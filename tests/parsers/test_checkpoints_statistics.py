"""Statistics by streaming agree with float64 on whole arrays, for every type, size and temper of values."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from parsers.checkpoints.statistics import statistics
from parsers.checkpoints.value_stats import Stats

torch = pytest.importorskip("torch")

FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz,
          torch.float8_e5m2fnuz, torch.float8_e8m0fnu]  # fmt: skip


def raw(x: Any) -> np.ndarray:
    """The bytes of a tensor as the readers hand them over."""
    width = {1: torch.uint8, 2: torch.uint16}.get(x.element_size()) if str(x.dtype)[6:12] in ("bfloat", "float8") else None
    return np.asarray(x.contiguous().view(width) if width else x.contiguous()).reshape(-1)


def blocks(a: np.ndarray, size: int) -> list[np.ndarray]:
    return [a[i : i + size] for i in range(0, len(a), size)]


def check(got: Stats, x: Any, tolerance: float = 2e-6) -> None:
    full = x.double().numpy().reshape(-1)
    good = full[np.isfinite(full)]
    assert got.count == len(full)
    assert got.nonfinite == len(full) - len(good)
    assert got.zeros == int((good == 0).sum())
    if len(good):
        assert got.absmax == float(np.abs(good).max())
        assert got.norm == pytest.approx(float(np.sqrt((good**2).sum())), rel=tolerance)
        assert got.mean == pytest.approx(float(good.mean()), rel=tolerance, abs=tolerance * float(np.sqrt((good**2).mean()) + 1e-300))
        assert got.std == pytest.approx(float(good.std()), rel=1e-4, abs=1e-12 * float(np.abs(good).max()) + 1e-300)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("size", [1, 2, 3, 4095, 4097, 70_001])
def test_usual_weights(dtype: Any, size: int) -> None:
    g = torch.Generator().manual_seed(size)
    x = torch.randn(size, generator=g)
    x[:: max(size // 7, 1)] = 0.0
    x[:: max(size // 5, 1)] *= -0.0
    x = x.to(dtype)
    for n in (size, 1000, 33_333):
        check(statistics(blocks(raw(x), n), str(dtype)[6:]), x)


@pytest.mark.parametrize("dtype", FLOATS[:-1], ids=str)
def test_values_that_are_not_finite(dtype: Any) -> None:
    x = torch.randn(10_000)
    x[17], x[5000], x[9999] = float("nan"), float("inf"), float("-inf")
    x = x.to(dtype)
    check(statistics(blocks(raw(x), 3000), str(dtype)[6:]), x)


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e-38, 1e-20, 1e-12, 1.0, 1e12, 1e18, 1e37, 1e150, 1e300])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_magnitudes_at_the_edges(scale: float, dtype: Any) -> None:
    x = (torch.randn(5000, dtype=torch.float64) * scale).to(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = statistics([raw(x)], str(dtype)[6:])
    full = x.double().numpy()
    good = full[np.isfinite(full)]
    top = float(np.abs(good).max(initial=0.0)) or 1.0
    assert got.absmax == float(np.abs(good).max(initial=0.0)) and got.nonfinite == len(full) - len(good)
    if top < 1e150:
        assert got.norm == pytest.approx(float(np.sqrt(((good / top) ** 2).sum()) * top), rel=1e-5)


@pytest.mark.parametrize("offset", [1.0, 1000.0, -30.0])
def test_a_spread_tiny_beside_the_mean(offset: float) -> None:
    """Norm layers stand near one: float32 sums of squares would lose their spread."""
    x = (torch.randn(100_000, dtype=torch.float64) * 1e-3 * abs(offset) + offset).float()
    check(statistics(blocks(raw(x), 30_000), "float32"), x)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int8, torch.uint8, torch.bool, torch.int32], ids=str)
def test_integers(dtype: Any) -> None:
    x = torch.randint(0, 100, (5000,)).to(dtype)
    check(statistics([np.asarray(x)], str(dtype)[6:]), x)


def test_every_float8_value() -> None:
    for dtype in FLOATS[4:]:
        x = torch.arange(256, dtype=torch.uint8).view(dtype)
        check(statistics([raw(x)], str(dtype)[6:]), x)


def test_no_values() -> None:
    got = statistics([], "float32")
    assert (got.count, got.norm, got.std, got.absmax) == (0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize("dtype", FLOATS[:4], ids=str)
@pytest.mark.parametrize("shape", [(7, 5), (300, 41), (40, 3, 3, 2), (3, 1000), (1000, 3), (1, 6), (6, 1)])
def test_rows_and_columns_of_zeros(dtype: Any, shape: tuple[int, ...]) -> None:
    """However blocks cut the rows."""
    from parsers.checkpoints.contents import Tensor
    from parsers.checkpoints.units import lines_of

    g = torch.Generator().manual_seed(sum(shape))
    x = torch.randn(shape, generator=g)
    x[:: max(shape[0] // 3, 2)] = 0.0
    x.view(shape[0], -1)[:, 1::2] *= torch.rand(1, generator=g).round()
    x[torch.rand(shape, generator=g) < 0.1] = -0.0
    x = x.to(dtype)
    flat = x.double().view(shape[0], -1)
    want = (int((flat == 0).all(1).sum()), int((flat == 0).all(0).sum()))
    for size in (1, 7, 64, 1001, 100_000):
        lines = lines_of(Tensor("w", str(dtype)[6:], shape, "a"))
        assert lines is not None
        statistics(blocks(raw(x), size), str(dtype)[6:], lines.see)
        assert lines.counts() == want, size

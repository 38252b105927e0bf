"""What is asked of an adapter before it is believed: does a batch come back alike, and what do parts of a batch cost."""

from __future__ import annotations

from typing import Any

from .adapter import rows_of
from .states import generators, set_generators
from .tensors_in import flat


def impure(adapter: Any, batches: list[int]) -> list[int]:
    """The steps whose batch is another one when it is asked for once more, after others and from other random numbers."""
    import torch

    def made(step: int) -> list[Any]:
        return [t.detach().clone() for t in flat(adapter.made(step))]

    drawn = generators()
    first = {b: made(b) for b in batches}
    torch.rand(7)  # what a step would draw
    again = {b: made(b) for b in reversed(batches)}
    set_generators(drawn)
    return [b for b in batches if not _same(first[b], again[b])]


def _same(a: list[Any], b: list[Any]) -> bool:
    import torch

    return len(a) == len(b) and all(
        x.shape == y.shape and x.dtype == y.dtype and torch.allclose(x, y, rtol=0.0, atol=0.0, equal_nan=x.is_floating_point())
        for x, y in zip(a, b)  # noqa: B905  (Python 3.9)
    )


def part_losses(adapter: Any, batch: Any, counts: list[int]) -> dict[str, float]:
    """Losses of parts of a batch before its step: the first and the last of so many, and every so many-th row. Random numbers are
    given back."""
    import torch

    n, found = rows_of(batch), {}
    drawn = generators()
    with torch.no_grad():
        for k in counts:
            if n % k == 0 and n > k:
                size = n // k
                for name, rows in (
                    (f"the first 1/{k} of the batch", range(size)),
                    (f"the last 1/{k} of the batch", range(n - size, n)),
                    (f"one row in {k} of the batch", range(0, n, k)),
                ):
                    set_generators(drawn)
                    found[name] = float(adapter.loss(adapter.select(batch, list(rows))))
    set_generators(drawn)
    return found

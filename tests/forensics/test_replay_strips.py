"""What each part of a sample costs: caught from torch's loss functions, and told only where it adds up to the sample's loss."""

from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional as F  # noqa: E402

from forensics.replays.training import element_losses  # noqa: E402


class Adapter:
    """A linear model over rows of a fixed batch, with a loss of the test's choice."""

    def __init__(self, loss: Any) -> None:
        torch.manual_seed(0)
        self.model, self._loss = torch.nn.Linear(4, 5), loss

    def loss(self, batch: Any, rows: bool = False) -> Any:
        if rows:
            raise NotImplementedError
        return self._loss(self.model, batch)

    def select(self, batch: Any, indices: list[int]) -> Any:
        return {k: v[indices] for k, v in batch.items()}


def looked(loss: Any, **batch: Any) -> dict[str, Any]:
    return element_losses._looked(Adapter(loss), batch, len(batch["x"]))


def tokens(rows: int = 3, length: int = 6) -> dict[str, Any]:
    g = torch.Generator().manual_seed(1)
    return {"x": torch.randn(rows, length, 4, generator=g), "y": torch.randint(5, (rows, length), generator=g)}


def by_token(model: Any, batch: Any) -> Any:
    return F.cross_entropy(model(batch["x"]).flatten(0, 1), batch["y"].flatten())


def test_the_losses_of_tokens_are_those_of_the_model() -> None:
    batch = tokens()
    found = looked(by_token, **batch)
    assert (found["each"], found["per"]) == ("token", 1)
    assert [len(p) for p in found["parts"]] == [6, 6, 6]
    for parts, loss in zip(found["parts"], found["losses"], strict=True):
        assert sum(parts) / 6 == pytest.approx(loss, rel=0.01)


def test_what_the_loss_ignores_has_no_cell_and_long_samples_are_thinned() -> None:
    batch = tokens(2, 150)
    batch["y"][:, 100:] = -100
    found = looked(by_token, **batch)
    assert found["per"] == 3 and len(found["parts"][0]) == 50
    assert found["parts"][0][34:] == [None] * 16 and None not in found["parts"][0][:33]


def test_fields_of_a_regression_and_nan_stay() -> None:
    batch = {"x": torch.ones(2, 4), "y": torch.tensor([[0.0] * 5, [0.0] * 4 + [math.nan]])}
    found = looked(lambda model, b: F.mse_loss(model(b["x"]), b["y"]), **batch)
    assert found["each"] == "field" and found["parts"][1][4] == "NaN" and found["losses"][1] == "NaN"


@pytest.mark.parametrize(
    "loss",
    [
        lambda model, b: (model(b["x"]) - 1).square().mean(),  # no function of torch
        lambda model, b: 3 * by_token(model, b),  # does not add up
        lambda model, b: F.cross_entropy(model(b["x"]).mean(1), b["y"][:, 0]),  # one loss a sample
    ],
)
def test_what_does_not_come_apart_is_not_told(loss: Any) -> None:
    assert set(looked(loss, **tokens())) == {"why"}

"""Bars whose postfix is set at each batch: drawn at once, while the count is drawn now and then."""

from __future__ import annotations

from pathlib import Path

import pytest

from parsers.console_format import unwrapped
from tests.parsers.test_console_tables import series


def update(epoch: int, it: int, total: int, loss: float | None) -> str:
    shown = "" if loss is None else f", loss={loss:.4f}"
    return f"\rEpoch {epoch}/3: {100 * it // total:3}%|{'#' * (it * 10 // total):10}| {it}/{total} [00:01<00:02, 9.5it/s{shown}]"


def drawn(every: int, total: int = 40, epochs: int = 3, losses: int = 1) -> str:
    """As tqdm does it: the count every so many batches, with the postfix that is known by then; the postfix every `losses` batches."""
    text, loss = "", None
    for epoch in range(1, epochs + 1):
        text += update(epoch, 0, total, None)
        for i in range(total):
            if (i + 1) % losses == 0:
                loss = 3 / (40 * epoch + i)
                text += update(epoch, i // every * every, total, loss)
            if (i + 1) % every == 0 or i + 1 == total:
                text += update(epoch, i + 1, total, loss)
        text += "\n"
    return text


def loss_at(step: int, total: int = 40) -> float:
    epoch, i = divmod(step - 1, total)
    return round(3 / (40 * (epoch + 1) + i), 4)


@pytest.mark.parametrize("every", [7, 16, 40])
def test_each_update_is_a_batch_where_the_count_says_so(tmp_path: Path, every: int) -> None:
    found = series(tmp_path, drawn(every))["loss"]
    assert [step for step, _ in found] == list(range(1, 121))
    assert [value for _, value in found] == [loss_at(step) for step in range(1, 121)]


def test_batches_are_counted_through_what_is_handed_over_in_between(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unwrapped, "FLUSH_ROWS", 30)
    found = series(tmp_path, drawn(16))["loss"]
    assert [step for step, _ in found][30:] == list(range(31, 121))
    assert [value for _, value in found][30:] == [loss_at(step) for step in range(31, 121)]


@pytest.mark.parametrize(("every", "losses"), [(1, 1), (10, 5), (20, 20)])
def test_else_the_last_update_stands_for_its_count(tmp_path: Path, every: int, losses: int) -> None:
    """A slow loop, whose count is always drawn; a postfix that is set now and then."""
    found = series(tmp_path, drawn(every, losses=losses))["loss"]
    assert len(found) == len({step for step, _ in found})
    assert {step % every for step, _ in found} == {0}

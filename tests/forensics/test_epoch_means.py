"""A running mean that begins anew with each epoch scatters where few values make it: no spike, whatever its height."""

from __future__ import annotations

import numpy as np

from forensics.detectors import divergence, loss_spike, oscillation
from forensics.run import epoch_means
from forensics.run.inputs import loss_of
from forensics.spikes.excursions import Floats
from tests.forensics.curves import run_of

EPOCHS, ROWS = 12, 60
OF = np.repeat(np.arange(EPOCHS, dtype=np.float64), ROWS)
BATCH = 2 * np.exp(-np.arange(EPOCHS * ROWS) / 300) * np.exp(0.3 * np.random.default_rng(5).standard_normal(EPOCHS * ROWS))
MEANS = np.concatenate([np.cumsum(x) / np.arange(1, ROWS + 1) for x in BATCH.reshape(EPOCHS, ROWS)])
TALL = np.where(np.arange(EPOCHS * ROWS) == 6 * ROWS, 3.0, 0.0)  # the first value of an epoch, three above the others
INSIDE = np.roll(TALL, ROWS // 2)


def kinds(x: Floats, **more: Floats) -> list[tuple[str, str]]:
    run = run_of({"loss.train": x, **more})
    return [(f.facts.class_, f.facts.why) for f in loss_spike.detect(run) if f.facts.start // ROWS == 6]


def test_the_first_values_of_an_epoch_are_means_of_few() -> None:
    run = run_of({"loss.train": MEANS, "epoch": OF})
    few = epoch_means.few_make_it(run, loss_of(run)).reshape(EPOCHS, ROWS)
    assert few[:, : ROWS // 4].all() and not few[:, ROWS // 4 :].any()
    for x, epoch in ((BATCH, OF), (MEANS, OF / ROWS), (MEANS[:50], OF[:50])):  # of single batches; of one epoch; of too few values
        other = run_of({"loss.train": x, "epoch": epoch})
        assert not epoch_means.few_make_it(other, loss_of(other)).any()


def test_a_tall_first_value_of_a_running_mean_is_no_spike() -> None:
    assert kinds(MEANS + TALL, epoch=OF) == [("not_a_spike", "mean")]
    assert kinds(MEANS + TALL)[0][0] == "fast"  # nothing tells where epochs begin
    assert kinds(MEANS + INSIDE, epoch=OF)[0][0] == "fast"


def test_a_mean_that_was_low_for_a_while_and_rises_is_no_spike() -> None:
    low = np.ones((EPOCHS, ROWS))
    low[6, 20:50] = 0.8 + 0.2 * np.linspace(0, 1, 30)  # easy batches, and then the usual ones
    run = run_of({"loss.train": MEANS * low.ravel(), "epoch": OF})
    s = loss_of(run)
    assert epoch_means.only_wanders(run, s, 6 * ROWS + 20, 6 * ROWS + 49)
    high = np.ones((EPOCHS, ROWS))
    high[6:, :] = np.linspace(1, 3, ROWS)  # it goes up, and the epoch ends higher than those before it
    rising = run_of({"loss.train": MEANS * high.ravel(), "epoch": OF})
    assert not epoch_means.only_wanders(rising, loss_of(rising), 6 * ROWS + 20, 6 * ROWS + 49)
    assert not epoch_means.only_wanders(run, s, 6 * ROWS + 20, 6 * ROWS + 22)  # at once
    batches = run_of({"loss.train": BATCH, "epoch": OF})
    assert not epoch_means.only_wanders(batches, loss_of(batches), 6 * ROWS + 20, 6 * ROWS + 49)


def test_whether_such_means_diverge_their_last_values_tell() -> None:
    low = np.ones((EPOCHS, ROWS))
    low[7, 5:50] = 0.4  # an epoch that begins with easy batches
    easy = np.concatenate(
        [np.cumsum(x) / np.arange(1, ROWS + 1) for x in np.full((EPOCHS, ROWS), 1.0) * low + BATCH.reshape(EPOCHS, ROWS) / 40]
    )
    assert not list(divergence.detect(run_of({"loss.train": easy, "epoch": OF})))
    assert list(divergence.detect(run_of({"loss.train": easy})))  # nothing tells where epochs begin
    worse = MEANS * np.repeat(np.r_[np.ones(6), np.linspace(1, 9, 6)], ROWS)
    assert [f.severity for f in divergence.detect(run_of({"loss.train": worse, "epoch": OF}))] == ["critical"]


def test_a_printed_mean_that_stands_at_the_end_of_an_epoch_is_not_frozen() -> None:
    still = np.round(MEANS, 2)
    still[7 * ROWS + 15 : 8 * ROWS] = still[8 * ROWS - 1]
    assert list(oscillation.detect(run_of({"loss.train": still})))
    assert not list(oscillation.detect(run_of({"loss.train": still, "epoch": OF})))

"""After a restart: what ids and losses say of the data; sound restarts accuse nobody."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import forensics
from forensics.batches import resume_loss
from forensics.batches.data_passes import Batches, passes, surviving
from forensics.batches.resume_data import by_samples, unannounced
from forensics.batches.resume_loss import best_match, by_residuals, dip, prepared, residuals, surrogates
from forensics.detectors import repeated_data
from forensics.errors import CannotTell
from forensics.run.series import Series, series
from forensics.signs.data_order import samples_again_within_epoch, samples_repeated
from forensics.signs.sign import SEEN, Symptoms
from forensics.spikes.excursions import Floats
from parsers.tables import Run
from tests.forensics.curves import _table, run_of
from tests.forensics.test_spike_data import manifest

SIZE = 8


def batch(ids: Sequence[int]) -> frozenset[str]:
    return frozenset(map(str, ids))


def attempts(*parts: tuple[int, Sequence[Sequence[int]]]) -> Batches:
    """(first step, batches) of each attempt."""
    return {(a, first + i): batch(ids) for a, (first, got) in enumerate(parts) for i, ids in enumerate(got)}


def cut(order: Sequence[int]) -> list[list[int]]:
    return [list(order[i : i + SIZE]) for i in range(0, len(order) - SIZE + 1, SIZE)]


def shuffled(seed: int, data: int = 1600, epochs: int = 1) -> list[int]:
    rng = np.random.default_rng(seed)
    return [int(i) for _ in range(epochs) for i in rng.permutation(data)]


def test_a_loader_that_begins_anew_is_named_with_its_offset() -> None:
    got = cut(shuffled(1))
    found = by_samples(attempts((1, got[:120]), (121, got[:60])), 1)
    assert found is not None
    assert (found.what, found.offset, found.from_start, found.step) == ("repeated", 120, True, 121)


def test_a_restart_that_no_log_tells_of_shows_in_the_manifest() -> None:
    got = cut(shuffled(1))
    found = unannounced(attempts((1, [*got[:120], *got[:60]])))
    assert found is not None and (found.what, found.step, found.offset) == ("repeated", 121, 120)
    assert unannounced(attempts((1, got))) is None
    whole_epochs = [*got, *got, *got]  # one order, epoch after epoch
    assert unannounced(attempts((1, whole_epochs))) is None


def test_a_lossy_manifest_is_enough() -> None:
    got = cut(shuffled(1))
    again = [b[:-2] for b in got[40:90]]
    found = by_samples(attempts((1, got[:120]), (121, again)), 1)
    assert found is not None
    assert (found.what, found.offset, found.from_start) == ("repeated", 80, False)


def test_what_goes_on_is_left_in_peace() -> None:
    got = cut(shuffled(2, epochs=3))
    assert by_samples(attempts((1, got[:120]), (121, got[120:300])), 1) is None
    assert by_samples(attempts((1, got[:200]), (201, got[200:500])), 1) is None  # at the seam of two epochs
    assert by_samples(attempts((1, got[:150]), (121, got[120:300])), 1) is None  # steps done again, as they were


def test_an_order_that_repeats_each_epoch_goes_on() -> None:
    epoch = cut(range(1600))
    assert by_samples(attempts((1, epoch + epoch[:50]), (251, epoch[50:] + epoch[:30])), 1) is None
    assert by_samples(attempts((1, epoch), (201, epoch[:100])), 1) is None  # the epoch ended at the restart
    found = by_samples(attempts((1, epoch + epoch[:50]), (251, epoch[:60])), 1)  # but here it did not
    assert found is not None
    assert found.what == "repeated"
    assert found.from_start


def test_a_loader_that_was_not_set_back_skips() -> None:
    got = cut(shuffled(3))
    found = by_samples(attempts((1, got[:130]), (101, got[130:180])), 1)
    assert found is not None
    assert found.what == "reshuffled"  # the redone steps hold other samples; that they follow is not visible in shuffled ids
    found = by_samples(attempts((1, got[:130]), (101, got[110:180])), 1)
    assert found is not None
    assert (found.what, found.offset) == ("skipped", -10)


def test_a_gap_in_ids_that_count_upwards() -> None:
    got = cut(range(4000))
    found = by_samples(attempts((1, got[:100]), (101, got[137:200])), 1)
    assert found is not None
    assert (found.what, found.offset) == ("skipped", -37)
    assert "296 samples" in found.text
    assert by_samples(attempts((1, got[:100]), (111, got[110:200])), 1) is None  # ten steps that nobody logged


def test_an_epoch_that_ends_with_batches_that_nobody_saw() -> None:
    first, second = cut(shuffled(4)), cut(shuffled(5))
    found = by_samples(attempts((1, first[:100]), (101, first[140:] + second)), 1)
    assert found is not None
    assert found.what == "skipped"
    assert "320 samples" in found.text
    whole = cut(shuffled(6, epochs=3))
    assert by_samples(attempts((1, whole[:300]), (301, whole[300:])), 1) is None


def test_an_epoch_that_is_dealt_anew() -> None:
    found = by_samples(attempts((1, cut(shuffled(7))[:100]), (101, cut(shuffled(8))[:80])), 1)
    assert found is not None
    assert found.what == "reshuffled"
    assert found.share == pytest.approx(0.5, abs=0.1)


def test_draws_with_replacement_are_no_fault() -> None:
    rng = np.random.default_rng(9)
    got = rng.integers(0, 1600, (400, SIZE)).tolist()
    assert by_samples(attempts((1, got[:200]), (201, got[200:])), 1) is None


def test_sound_restarts_accuse_nobody() -> None:
    rng = np.random.default_rng(10)
    wrong = []
    for seed in range(150):
        data = int(rng.integers(300, 1500))
        order = shuffled(seed, data, epochs=4) if seed % 3 else list(range(data)) * 4
        drop = [i for e in range(4) for b in cut(order[e * data : (e + 1) * data]) for i in b]  # last batch dropped
        got = cut(drop)
        stop = int(rng.integers(20, len(got) - 40))
        back = int(rng.integers(0, 15))
        found = by_samples(attempts((1, got[:stop]), (stop - back + 1, got[stop - back :])), 1)
        wrong += [(seed, found)] if found else []
    assert not wrong


def test_passes_and_the_surviving_path() -> None:
    got = cut(shuffled(11, 400, epochs=3))
    batches = attempts((0, got[:90]), (80, got[80:150]))
    assert list(surviving(batches)) == list(range(150))
    assert passes(surviving(batches)) == [0, 50, 100]


# -- the loss alone ---------------------------------------------------------------------------------------------------


def course(hardness: Floats, noise: float, seed: int) -> Floats:
    """A falling loss whose batches are hard or easy."""
    rng = np.random.default_rng(seed)
    t = np.arange(len(hardness))
    return np.asarray(2 * (1 + t / 50) ** -0.15 * np.exp(0.05 * hardness + noise * rng.standard_normal(len(t))))


def restarted(values: Floats, begin: int, interval: int = 1) -> Series:
    n = len(values)
    run = run_of({"loss.train": values}, attempts=[int(i >= begin) for i in range(n)], steps=[i * interval for i in range(n)])
    s = series(run, "loss.train")
    assert s is not None
    return s


def test_repeated_data_are_named_by_the_loss_with_the_offset_in_steps() -> None:
    rng = np.random.default_rng(1)
    fresh = rng.standard_normal(500)
    hardness = np.concatenate([fresh[:400], fresh[130:330]])
    found = by_residuals(restarted(course(hardness, 0.03, 2), 400), 1, 1)
    assert found is not None
    assert (found.what, found.offset, found.sure, found.from_start) == ("repeated", 270, False, False)
    assert found.p is not None
    assert found.p < 1e-4
    sparse = by_residuals(restarted(course(hardness, 0.03, 2), 400, interval=5), 1, 1)
    assert sparse is not None
    assert sparse.offset == 1350


def test_an_order_that_repeated_before_the_restart_is_no_fault() -> None:
    rng = np.random.default_rng(3)
    epoch = rng.standard_normal(150)
    hardness = np.tile(epoch, 5)[:700]
    assert by_residuals(restarted(course(hardness, 0.03, 4), 400), 1, 1) is None


def test_losses_of_fresh_data_do_not_agree() -> None:
    alarms = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        values = course(rng.standard_normal(420), 0.02, seed + 1000)
        if seed % 2:  # as a logger that smooths writes it
            kernel = 0.8 ** np.arange(30)
            values = np.convolve(values, kernel / kernel.sum())[: len(values)]
            values = values[30:]
        alarms += by_residuals(restarted(values, 250), 1, 1) is not None
    assert alarms <= 4


def test_p_of_the_best_match_is_honest() -> None:
    """The share of unrelated series with p below 5 % is near 5 %, though the past is searched for the best match."""
    rng = np.random.default_rng(5)
    p = [best_match(prepared(rng.standard_normal(400), 100), rng.standard_normal(100)).p for _ in range(300)]
    assert 0.01 <= float(np.mean(np.array(p) < 0.05)) <= 0.10


def test_surrogates_keep_the_spectrum() -> None:
    x = residuals(course(np.random.default_rng(1).standard_normal(200), 0.02, 1))
    drawn = surrogates(x, 3, np.random.default_rng(2))
    assert drawn.shape == (3, 200)
    np.testing.assert_allclose(np.abs(np.fft.rfft(drawn[0]))[1:-1], np.abs(np.fft.rfft(x))[1:-1], rtol=1e-6)


def again(same: bool, seed: int) -> Series:
    """400 steps, back to step 300, and 200 more."""
    rng = np.random.default_rng(seed)
    fresh = rng.standard_normal(500)
    first = course(fresh, 0.005, seed)
    second = course(fresh if same else rng.standard_normal(500), 0.005, seed + 1)
    values = np.concatenate([first[:400], second[300:]])
    run = run_of({"loss.train": values}, attempts=[0] * 400 + [1] * 200, steps=[*range(400), *range(300, 500)])
    s = series(run, "loss.train")
    assert s is not None
    return s


def test_steps_done_again_with_other_batches() -> None:
    other = by_residuals(again(False, 1), 1, 1)
    assert other is not None
    assert (other.what, other.share) == ("reshuffled", None)
    assert [by_residuals(again(True, seed), 1, 1) for seed in range(20)] == [None] * 20


def dipped(depth: float, length: int, seed: int) -> Series:
    values = course(0.4 * np.random.default_rng(seed).standard_normal(1200), 0.0, seed)
    values[600 : 600 + length] *= 1 - depth
    return restarted(values, 600)


def test_a_lower_loss_that_joins_the_old_curve() -> None:
    found = dip(dipped(0.08, 160, 1), 1)
    assert found is not None
    assert found.share == pytest.approx(0.08, abs=0.03)
    assert 700 <= found.until <= 800


def test_no_dip_without_one() -> None:
    assert sum(dip(dipped(0.0, 160, seed), 1) is not None for seed in range(200)) <= 6


# -- the detector -----------------------------------------------------------------------------------------------------


def run_with(ids: Sequence[Sequence[int]], begin: int) -> Run:
    n = len(ids)
    rng = np.random.default_rng(1)
    attempts = [int(i >= begin) for i in range(n)]
    run = run_of({"loss.train": course(rng.standard_normal(n), 0.02, 2)}, attempts=attempts)
    run.attempts = [{**a, "steps": s} for a, s in zip(run.attempts, ([0, begin - 1], [begin, n - 1]), strict=True)]
    run.tables["batches"] = _table("batches", manifest(ids, attempts))
    return run


def test_samples_that_come_again_are_told_from_those_dealt_anew() -> None:
    got, other = cut(shuffled(1)), cut(shuffled(2))
    for ids, what, sign in (
        (got[:120] + got[:60], "repeated", samples_repeated),
        (got[:120] + other[:60], "reshuffled", samples_again_within_epoch),
    ):
        run = run_with(ids, 120)
        found = list(repeated_data.detect(run))
        assert [(f.facts.what, f.severity) for f in found] == [(what, "warning")]
        assert sign(Symptoms(run, tuple(found))).state == SEEN


def test_the_detector_says_what_it_needs() -> None:
    with pytest.raises(CannotTell, match="not restarted"):
        list(repeated_data.detect(run_of({"loss.train": course(np.zeros(50), 0.02, 1)})))


def test_a_short_attempt_says_nothing() -> None:
    assert by_residuals(restarted(course(np.zeros(120), 0.02, 1), 80), 1, 1) is None
    assert resume_loss.dip(restarted(course(np.zeros(120), 0.02, 1), 80), 1) is None


@pytest.mark.parametrize(("column", "again"), [("first_idx", True), ("goes on", False), ("counter", False), ("constant", False)])
def test_a_number_of_each_batch_tells_that_batches_come_again(tmp_path: Path, column: str, again: bool) -> None:
    """A log may name one sample of the batch, or count its tokens, instead of listing ids."""
    rng = np.random.default_rng(3)
    order = rng.integers(0, 100, 120)  # some come twice before the restart: more than one pass, so that none ends there
    number = {
        "first_idx": np.r_[order[:60], order[:60]],
        "goes on": order,
        "counter": np.r_[np.arange(60), np.arange(60)],
        "constant": np.full(120, 64),
    }[column]
    rows = (f"{5 * (i + 1)},{3 * np.exp(-i / 40) + 0.1 * rng.random():.4f},{n}\n" for i, n in enumerate(number))
    (tmp_path / "log.csv").write_text("step,loss,first_idx\n" + "".join(rows))
    (tmp_path / "out.log").write_text("step 100 loss 1.8\nstep 200 loss 1.1\nstep 300 loss 0.7\nresumed from ckpt.pt at step 300\n")
    run = forensics.read(tmp_path)
    assert len(run.attempts) == 2
    found = [f.facts for f in repeated_data.detect(run)]
    assert [(f.what, f.step, f.offset, f.from_start, f.how) for f in found] == [("repeated", 305, 300, True, "by first_idx")][: int(again)]


@pytest.mark.parametrize(("tag", "again"), [("chunk0", True), ("data/cursor", True), ("lines_printed", False)])
@pytest.mark.parametrize("anew", [True, False])
def test_a_place_in_the_data_that_begins_anew(tag: str, again: bool, anew: bool) -> None:
    """A counter with another name may count since the launch."""
    step = np.arange(40) * 10
    place = 64.0 * np.where(step < 200, step, step - 200 * anew)
    metrics = {f"other/{tag}": place, "epoch": step / 300, "loss.train": 3 - step / 400}
    found = list(repeated_data.detect(run_of(metrics, interval=10, attempts=[0] * 20 + [1] * 20)))
    assert [f.facts.what for f in found] == (["repeated"] if again and anew else [])

"""What spikes have in common: exact tests against brute force, planted culprits found, unrelated data not accused."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import comb

import numpy as np
import pytest

from forensics.batches import enrichment, recurrence
from forensics.batches.recurrence import Epochs, blame, epochs_of, recurring, window
from forensics.detectors import spike_data
from forensics.errors import CannotTell
from forensics.run.series import series
from forensics.spikes import measurements
from parsers.tables import SCHEMAS, Run
from tests.forensics.curves import _table, log_of, noisy, run_of

STEPS, SIZE, DATA, SHARD = 240, 4, 320, 20  # three epochs of 80 steps


def manifest(ids: Sequence[Sequence[int]], attempts: Sequence[int] | None = None) -> dict[str, list[object]]:
    columns: dict[str, list[object]] = {c: [] for c in SCHEMAS["batches"].names}
    for step, batch in enumerate(ids):
        for position, sample in enumerate(batch):
            row = {"step": step, "attempt": attempts[step] if attempts else 0, "position": position, "how": "recorded",
                   "sample": str(sample), "shard": f"web-{sample // SHARD:03d}", "source": "batches.jsonl", "at": step}  # fmt: skip
            for c, values in columns.items():
                values.append(row.get(c))
    return columns


def dealt(rng: np.random.Generator, shuffled: bool = True, steps: int = STEPS) -> list[list[int]]:
    """Batches of consecutive epochs, each shuffled anew or in one order."""
    order = [int(i) for _ in range(9) for i in (rng.permutation(DATA) if shuffled else np.arange(DATA))]
    return [order[s * SIZE : (s + 1) * SIZE] for s in range(steps)]


def run_with(ids: Sequence[Sequence[int]], spikes: Iterable[int] = (), interval: int = 1) -> Run:
    loss = noisy(len(ids), 0.02)
    for step in spikes:
        loss[step] *= 2
    values = loss[::interval] if interval == 1 else loss[: len(loss) // interval * interval].reshape(-1, interval).mean(1)
    steps = [i if interval == 1 else (i + 1) * interval - 1 for i in range(len(values))]
    run = run_of({"loss.train": values}, steps=steps)
    run.tables["batches"] = _table("batches", manifest(ids))
    return run


def common(run: Run, starts: Iterable[int]) -> list[enrichment.Shared]:
    s = series(run, "loss.train")
    assert s is not None
    return enrichment.shared(run, s, [(0, int(x)) for x in starts], epochs_of(run))


@pytest.mark.parametrize(("hits", "windows", "spikes", "total"), [(3, 5, 4, 50), (1, 1, 3, 10), (0, 4, 2, 9), (5, 30, 6, 40)])
def test_the_tail_is_exact(hits: int, windows: int, spikes: int, total: int) -> None:
    ways = sum(
        comb(windows, i) * comb(total - windows, spikes - i) for i in range(hits, min(windows, spikes) + 1) if spikes - i <= total - windows
    )
    assert enrichment.upper_tail(hits, windows, spikes, total) == pytest.approx(ways / comb(total, spikes), rel=1e-9)


def test_tests_that_could_never_be_significant_do_not_count() -> None:
    assert enrichment.tarone([(0.5, 10_000), (1e-6, 12)], 0.01) == 12
    assert enrichment.tarone([(0.004, 5), (1e-6, 2)], 0.01) == 3  # of seven tests only two could reach 0.01 / 3
    assert enrichment.tarone([], 0.01) == 1


def test_a_sample_that_spikes_in_every_epoch_is_named() -> None:
    ids = dealt(np.random.default_rng(1))
    run = run_with(ids)
    hit = [s for s, batch in enumerate(ids) if 77 in batch]
    found = common(run, hit)
    assert (found[0].kind, found[0].value, found[0].hits, found[0].lag) == ("sample", "77", 3, 0)
    assert found[0].corrected < 0.01
    assert list(found[0].steps) == hit


def test_the_batch_before_is_found_where_its_harm_shows_one_value_later() -> None:
    ids = dealt(np.random.default_rng(1), steps=400)
    hit = [s for s, batch in enumerate(ids) if 77 in batch]
    found = common(run_with(ids), [s + 1 for s in hit])
    assert (found[0].value, found[0].lag) == ("77", 1)


def test_a_shard_that_is_read_in_one_go_cannot_be_told_from_its_time() -> None:
    ids = [list(range(s * SIZE, (s + 1) * SIZE)) for s in range(STEPS)]  # one pass: each shard five steps in a row
    assert common(run_with(ids), [100, 101, 102, 103, 104]) == []


def test_a_shard_of_many_visits_is_named() -> None:
    rng = np.random.default_rng(3)
    ids = dealt(rng)
    hit = [s for s, batch in enumerate(ids) if any(i // SHARD == 7 for i in batch)]
    apart = [s for s in hit if s - 1 not in hit][:14]
    found = common(run_with(ids), apart)
    assert ("shard", "web-007") in {(x.kind, x.value) for x in found}


def test_sources_are_told_by_folder_or_name() -> None:
    assert enrichment.source_of("web-0031") == "web"
    assert enrichment.source_of("tales/en/part.00012.jsonl.zst") == "tales/en"
    assert enrichment.source_of("0007") == "0007"


@pytest.mark.parametrize("shuffled", [True, False])
@pytest.mark.parametrize("clustered", [True, False])
def test_spikes_that_have_nothing_to_do_with_the_data_accuse_nobody(shuffled: bool, clustered: bool) -> None:
    rng = np.random.default_rng(5)
    runs = [run_with(dealt(rng, shuffled)) for _ in range(5)]
    alarms = 0
    for i in range(250):
        k = int(rng.integers(2, 12))
        if clustered:
            starts = np.unique(rng.integers(0, STEPS - 20, 2)[:, None] + rng.integers(0, 20, (2, k)))
        else:
            starts = rng.choice(STEPS, k, replace=False)
        alarms += bool(common(runs[i % 5], starts))
    assert alarms <= 7  # at most 1 % are allowed; 8 or more of 250 would happen once in 500 such tests


def test_a_mean_of_ten_steps_blames_ten_batches() -> None:
    s = log_of(noisy(50, 0.02), interval=10, smoothing="mean of 10")
    assert window(s, 100) == (91, 100)
    assert blame(s, 100) == "one of the 10 batches of steps 91 to 100 (mean of 10)"
    assert window(log_of(noisy(50, 0.02)), 100) == (100, 100)
    assert window(log_of(noisy(50, 0.02), smoothing="ema 0.9"), 100) == (79, 100)


def test_with_means_of_ten_steps_the_sample_is_still_found_over_many_epochs() -> None:
    ids = dealt(np.random.default_rng(2), steps=640)
    hit = [s for s, batch in enumerate(ids) if 77 in batch]
    run = run_with(ids, interval=10)
    found = common(run, [s // 10 * 10 + 9 for s in hit])
    assert found and found[0].hits == len(hit)
    assert "77" in [x.value for x in found if x.p == found[0].p]


def test_spikes_at_the_same_place_of_each_epoch() -> None:
    epochs = Epochs(100.0, 0.0, "told")
    found = recurring([142, 241, 343, 442, 470], epochs, 499)
    assert found is not None
    assert (found.epochs, found.covered, found.seam) == (4, 4, False)
    assert found.steps == (142, 241, 343, 442)
    assert recurring([100, 200, 300, 400], epochs, 499).seam  # type: ignore[union-attr]
    assert recurring([140, 180], epochs, 199) is None  # one epoch


def test_spikes_anywhere_do_not_recur() -> None:
    rng = np.random.default_rng(7)
    epochs = Epochs(80.0, 0.0, "told")
    alarms = 0
    for _ in range(1000):
        steps = sorted(int(x) for x in rng.choice(400, int(rng.integers(2, 10)), replace=False))
        alarms += recurring(steps, epochs, 399) is not None
    assert alarms <= 30  # at most 1 % by the test, and the share of epochs makes it fewer


def test_epochs_are_known_from_the_log_or_from_the_ids() -> None:
    n = 300
    logged = run_of({"loss.train": noisy(n, 0.02), "epoch": np.round(np.arange(n) / 120.0, 4)})
    assert epochs_of(logged).steps == pytest.approx(120, rel=0.02)  # type: ignore[union-attr]
    ids = epochs_of(run_with(dealt(np.random.default_rng(1))))
    assert ids is not None
    assert (ids.steps, ids.how) == (80, "the ids of the batches")
    assert epochs_of(run_of({"loss.train": noisy(n, 0.02)})) is None


def test_the_detector_says_what_it_needs() -> None:
    with pytest.raises(CannotTell, match="less than two epochs"):
        list(spike_data.detect(run_of({"loss.train": noisy(300, 0.02)})))
    with pytest.raises(CannotTell, match="two are needed"):
        list(spike_data.detect(run_with(dealt(np.random.default_rng(1)))))


def test_one_order_in_all_epochs_gives_both_the_batch_and_the_place() -> None:
    ids = dealt(np.random.default_rng(1), shuffled=False, steps=400)
    found = list(spike_data.detect(run_with(ids, [133, 213, 293, 373])))
    assert [f.facts.how for f in found] == ["shared", "recurring"]
    assert found[0].facts.what == "batch"
    assert found[0].facts.steps == [133, 213, 293, 373]
    assert found[1].facts.alike == 1.0


def test_p_values_weigh_what_they_can_bear() -> None:
    assert enrichment.decibans(0.01, 12) == 9
    assert enrichment.decibans(1e-9, 12) == 12
    assert enrichment.decibans(0.5, 12) == 0


def test_the_source_whose_loss_moved_alone_is_named() -> None:
    web, code = noisy(300, 0.02, 1), noisy(300, 0.02, 2)
    web[200:203] *= 3
    run = run_of({"loss.train": (web + code) / 2})
    both = run_of({"loss.part": web})
    for column, values in (("loss/web", web), ("loss/code", code)):
        one = run_of({"loss.part": values})
        table = one.tables["metrics"].to_pydict()
        table["tag"] = [column] * len(values)
        both.tables["metrics"] = _table("metrics", table) if column == "loss/web" else _joined(both, table)
    found = measurements.source_first(both, 200, 200, 1)
    assert found is not None
    assert (found["tag"], found["step"], found["alone"], found["looked"]) == ("loss/web", 200, True, 2)
    assert measurements.source_first(run, 200, 200, 1) is None


def _joined(run: Run, table: dict[str, list[object]]) -> object:
    old = run.tables["metrics"].to_pydict()
    return _table("metrics", {c: old[c] + table[c] for c in old})


def test_reach_of_a_point_sample_is_the_interval() -> None:
    assert recurrence.reach(log_of(noisy(50, 0.02), interval=5)) == 5

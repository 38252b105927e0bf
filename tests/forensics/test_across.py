"""What many runs tell together, on simulated groups whose truth is known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from forensics.many_runs import copies_and_forks, outcomes, repeated_failures, seed_groups, shared_batches, shared_causes
from forensics.many_runs.brief import Brief
from forensics.many_runs.chance import some_tail, strata_tail, t_limit, t_tail
from forensics.many_runs.shifts import Spiked

RUNS = 30


def group(rng: np.random.Generator, *, bad: bool, each: bool = False) -> tuple[list[Spiked], np.ndarray]:
    """30 runs over one data order: up to some spikes of their own, and two bad batches that hit 85 %; a third counts with a shift."""
    length = int(rng.integers(800, 8000))
    shift = int(rng.integers(3, 60)) * int(rng.choice([-1, 1]))
    batches = np.sort(rng.choice(np.arange(length // 10, length * 9 // 10), 2, replace=False))
    runs = []
    for i in range(RUNS):
        spikes = rng.integers(20, length, rng.poisson(rng.uniform(0, 3))).tolist()
        offset = 0 if i % 3 else int(rng.integers(-80, 80)) if each else shift
        if bad:
            spikes += [int(b) + offset + int(rng.integers(-1, 2)) for b in batches if rng.random() < 0.85]
        runs.append(Spiked(f"r{i}", 0, length, np.unique(np.array(spikes, np.int64))))
    return runs, batches


@pytest.mark.parametrize("each", [False, True])
def test_two_bad_batches_are_found_through_shifted_counters(each: bool) -> None:
    rng, found, aligned, n = np.random.default_rng(1), 0, 0, 100
    for _ in range(n):
        runs, batches = group(rng, bad=True, each=each)
        told = shared_batches.find(runs)
        plain = [{s for name, s in t["steps"].items() if int(name[1:]) % 3} for t in told]
        found += all(any(steps and max(abs(s - b) for s in steps) <= 4 for steps in plain) for b in batches)
        aligned += len(told) == 2 and all(len(t["offset_groups"]) > 1 for t in told)
    assert found >= 0.99 * n
    assert each or aligned >= 0.9 * n


def test_none_is_invented() -> None:
    rng = np.random.default_rng(2)
    assert [x for _ in range(1000) for x in shared_batches.find(group(rng, bad=False)[0])] == []


def test_a_phase_in_which_all_runs_spike_is_no_batch() -> None:
    """The end of the warmup: every run spikes near step 200, each at a step of its own."""
    rng = np.random.default_rng(3)
    for _ in range(100):
        runs = [Spiked(f"r{i}", 0, 5000, np.unique(rng.normal(200, 40, 3).astype(np.int64))) for i in range(RUNS)]
        assert shared_batches.find(runs) == []


def test_recorded_samples_confirm_or_refute() -> None:
    for same in (True, False):
        runs = [Spiked(f"r{i}", 0, 5000, np.array([900]), batches={900: "x" if same else str(i)}) for i in range(10)]
        told = shared_batches.find(runs)
        assert [t["samples_recorded"] for t in told] == ([True] if same else [])


def test_runs_that_pass_a_bad_batch_are_named() -> None:
    runs = [Spiked(f"r{i}", 0, 5000, np.array([900] if i < 12 else [], np.int64)) for i in range(15)]
    (told,) = shared_batches.find(runs)
    assert told["runs"] == 12 and told["exposed"] == 15 and told["spared"] == ["r12", "r13", "r14"]
    assert "state matters" in told["says"]


def brief(
    name: str, *, config: dict[str, str] | None = None, level: float | None = None, cause: str | None = None, **more: object
) -> Brief:
    levels = {} if level is None else {"loss.train": (level, 0.001)}
    return Brief(name, f"runs/{name}", "f", cause is not None, cause, config or {}, {}, levels, **more)  # type: ignore[arg-type]


def test_seed_noise_is_not_called_a_difference() -> None:
    rng, called, n = np.random.default_rng(4), 0, 300
    for trial in range(n):
        k = 3 + trial % 6
        runs = [brief(f"{lr}-{s}", config={"seed": str(s), "lr": lr}, level=2 + rng.normal(0, 0.02)) for lr in ("1", "2") for s in range(k)]
        _, (told,) = seed_groups.find(runs)
        called += told["verdict"] != "not separable from seed noise"
    assert called <= 0.05 * n


def test_a_difference_beyond_seed_noise_is_called() -> None:
    rng = np.random.default_rng(5)
    runs = [
        brief(f"{lr}-{s}", config={"seed": str(s), "lr": lr}, level=2 + 0.2 * (lr == "2") + rng.normal(0, 0.02))
        for lr in ("1", "2")
        for s in range(6)
    ]
    groups, (told,) = seed_groups.find(runs)
    assert told["verdict"] == "b higher" and told["pairs"] == 6 and told["differs"] == [{"key": "lr", "a": "1", "b": "2"}]
    assert told["interval"][0] > 0 and told["interval"][0] < 0.2 < told["interval"][1]
    assert [g["seeds"] for g in groups] == [["0", "1", "2", "3", "4", "5"]] * 2


def test_a_seed_off_the_spread_and_a_wide_group() -> None:
    levels = [2.0, 2.01, 1.99, 2.02, 1.98, 2.6]
    runs = [brief(f"r{s}", config={"seed": str(s), "lr": "1"}, level=x) for s, x in enumerate(levels)]
    (told,), _ = seed_groups.find(runs)
    assert [o["id"] for o in told["off"]] == ["r5"] and not told["wide"]
    (told,), _ = seed_groups.find([*runs[:5], brief("r6", config={"seed": "6", "lr": "1"}, level=4.0)])
    assert told["wide"]


def test_a_host_that_keeps_coming_back() -> None:
    rng = np.random.default_rng(6)
    runs = []
    for i in range(120):
        bad_host = i % 12 == 0
        cause = "hang" if bad_host or rng.random() < 0.03 else None
        runs.append(brief(f"r{i}", cause=cause, hosts=(f"node{i % 12}",), config={"lr": str(rng.integers(3))}))
    (told,) = shared_causes.find(runs)
    assert (told["cause"], told["key"], told["value"], told["runs"]) == ("hang", "host", "node0", 10)
    assert told["expected"] < 3 and told["p"] < 1e-6


def test_nodes_and_shards_come_before_settings() -> None:
    """The setting is the more certain one; it goes with another cause, so that it is an entry of its own."""
    shares = {f"s{i}": 0.05 for i in range(20)}
    runs = []
    for i in range(120):
        cause = "hang" if i % 12 == 0 else "lr_too_high" if i % 2 else None
        config, struck = {"lr": "9" if i % 2 else "1"}, ("s7",) if i % 20 == 1 else ()
        runs.append(brief(f"r{i}", cause=cause, hosts=(f"node{i % 12}",), config=config, shards=shares, struck=struck))
    told = shared_causes.find(runs)
    keys = [e["key"] for e in told]
    assert keys == sorted(keys, key=lambda k: k not in ("host", "shard")) and {"host", "shard", "lr"} <= set(keys)
    assert min(e["p"] for e in told) == next(e["p"] for e in told if e["key"] == "lr")


def test_a_project_that_breaks_oftener_is_no_effect_of_its_settings() -> None:
    runs = []
    for i in range(80):
        project = i % 2
        cause = "hang" if project and i % 4 != 3 else None
        runs.append(Brief(f"r{i}", "", f"project{project}", cause is not None, cause, {"width": "64" if project else "128"}, {}, {}))
    assert shared_causes.find(runs) == []


def test_chance_makes_no_shared_cause() -> None:
    rng, told = np.random.default_rng(7), 0
    for _ in range(100):
        runs = [
            brief(f"r{i}", cause="hang" if rng.random() < 0.3 else None, config={f"k{j}": str(rng.integers(3)) for j in range(15)})
            for i in range(60)
        ]
        told += bool(shared_causes.find(runs))
    assert told <= 3


def test_a_shard_that_the_spikes_fall_into() -> None:
    shares = {f"s{i}": 0.05 for i in range(20)}
    runs = [brief(f"r{i}", cause="bad_data_batch", shards=shares, struck=("s7",)) for i in range(6)]
    told = shared_causes.find(runs)
    assert [(t["key"], t["value"], t["runs"]) for t in told] == [("shard", "s7", 6)]


def test_copies_and_forks() -> None:
    a = "12:12:aa 16:16:bb 21:21:cc 22:22:dd"
    fork = "12:12:aa 16:16:bb 21:21:ee 22:22:ff"
    runs = [
        brief("a", prefixes=a, config={"lr": "1"}),
        brief("b", prefixes=a, config={"lr": "1"}),
        brief("c", prefixes=fork, config={"lr": "2"}),
        brief("d", prefixes="12:12:99 13:13:98"),
        brief("short", prefixes="12:12:aa 16:16:bb 18:18:zz"),
    ]
    told = {(d["kind"], *d["runs"]): d for d in copies_and_forks.find(runs)}
    assert ("copy", "a", "b") in told
    fork_told = next(d for k, d in told.items() if k[0] == "fork")
    assert fork_told["until"] == 16 and fork_told["parts_by"] == 21 and fork_told["differs"] == [{"key": "lr", "a": "1", "b": "2"}]
    assert any(k[0] == "shorter copy" and "short" in k for k in told)
    assert not any("d" in k[1:] for k in told)


def test_outcome_tables_count() -> None:
    runs = [
        Brief(
            f"r{i}", "", "f", i % 2 == 1, "hang" if i % 2 else None, {}, {"lr": 1e-3 if i % 2 else 1e-4}, {"loss.train": (1.0 + i % 2, 0.1)}
        )
        for i in range(10)
    ]
    (table,) = outcomes.tables(runs)
    assert table["name"] == "lr" and [r["runs"] for r in table["rows"]] == [5, 5]
    assert [(r["unhealthy"], r["loss"]) for r in table["rows"]] == [(0, 1.0), (5, 2.0)]


def test_chances_are_exact() -> None:
    assert strata_tail(0, [(2, 3, 5)]) == pytest.approx(1)
    assert strata_tail(2, [(2, 3, 5)]) == pytest.approx(3 / 10)
    assert strata_tail(3, [(2, 3, 5), (1, 1, 2)]) == pytest.approx(3 / 20)
    assert some_tail([0.5] * 4, 3) == pytest.approx(5 / 16)
    assert some_tail([0.1, 0.2], 2) == pytest.approx(0.02)
    assert some_tail([1e-12] * 5, 4) == pytest.approx(5e-48, rel=1e-6)
    assert t_tail(1.0, 1) == pytest.approx(0.5)  # Cauchy
    assert t_tail(math.sqrt(2), 2) == pytest.approx(1 - math.sqrt(2) / 2)  # 1 - t / sqrt(2 + t^2)
    assert t_tail(t_limit(0.01, 7), 7) == pytest.approx(0.01)


def test_failures_that_repeat_are_told_by_their_line_without_what_varies() -> None:
    def row(id: str, line: str | None, ending: str = "exception", **more: Any) -> dict[str, Any]:
        return {"id": id, "error_line": line, "ending": ending, "host": None, "owner": None, "path": f"team/{id[0]}/{id}"} | more

    rows = [
        row("a1", "RuntimeError: CUDA error at 0x7f3a on rank 3, see /data/u1/run.log", host="n1, n2", owner="ada"),
        row("a2", "RuntimeError: CUDA error at 0x99 on rank 11, see /scratch/x/y.log", host="n1"),
        row("b1", "RuntimeError: shapes 3x4 and 5x6 differ"),
        row("b2", "KeyError: 'labels'"),
        row("c1", None),
        row("d1", "KeyboardInterrupt", "interrupt"),
        row("d2", "KeyboardInterrupt", "interrupt"),
    ]
    (found,) = repeated_failures.find(rows)
    assert (found["line"], found["runs"], found["ids"]) == ("RuntimeError: CUDA error at # on rank #, see #", 2, ["a1", "a2"])
    assert (found["hosts"], found["owners"], found["folders"], found["endings"]) == (["n1", "n2"], ["ada"], ["team/a"], ["exception"])

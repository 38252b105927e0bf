"""A lasting slow-down, in the forms in which logs tell of speed: per step, since the start, printed with few digits."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from curves import noisy, run_of

import forensics
from forensics.detectors import throughput
from forensics.errors import CannotTell

N = 40
SECONDS = np.where(np.arange(N) < 20, 1.0, 5.0) * np.random.default_rng(0).normal(1, 0.05, N)
EVEN = np.random.default_rng(1).normal(1, 0.05, N)


def found(name: str, values: np.ndarray, interval: int = 10) -> list[str]:
    run = run_of({"loss.train": noisy(len(values), 0.01), name: values}, interval=interval)
    return [f.severity for f in throughput.detect(run)]


STEPS = np.arange(10, 10 * (N + 1), 10)


def speeds(seconds: np.ndarray, speed: np.ndarray) -> list[tuple[str, float]]:
    run = run_of({"loss.train": noisy(N, 0.01), "tput.steps": speed, "time.total": np.cumsum(seconds)}, steps=STEPS.tolist())
    return [(f.severity, round(f.facts.ratio, 1)) for f in throughput.detect(run)]


@pytest.mark.parametrize(("seconds", "told"), [(SECONDS, [("warning", 0.2)]), (EVEN, [])])
def test_a_speed_since_the_start_is_taken_apart(seconds: np.ndarray, told: list[tuple[str, float]]) -> None:
    assert speeds(seconds, STEPS / np.cumsum(seconds)) == told


@pytest.mark.parametrize(("slower", "told"), [(1.3, [("info", 0.8)]), (1.0, [])])
def test_a_speed_of_the_last_rows_is_taken_as_it_is(slower: float, told: list[tuple[str, float]]) -> None:
    seconds = np.where(np.arange(N) < 20, 1.0, slower) * np.random.default_rng(2).normal(1, 0.001, N)
    assert speeds(seconds, 10 / seconds) == told


@pytest.mark.parametrize(("seconds", "told"), [(SECONDS, ["warning"]), (EVEN, [])])
@pytest.mark.parametrize("digits", [1, 6])
def test_a_time_that_is_that_of_a_step(seconds: np.ndarray, told: list[str], digits: int) -> None:
    assert found("time.total", np.round(seconds, digits)) == told


def test_a_time_since_the_start_is_none_of_a_step() -> None:
    assert found("time.total", np.round(np.cumsum(EVEN))) == []


@pytest.mark.parametrize(("after", "told"), [(0.31, ["warning"]), (0.02, [])])
def test_two_values_of_two_digits(after: float, told: list[str]) -> None:
    assert found("time.step", np.where(np.arange(24) < 14, 0.01, after)) == told


@pytest.mark.parametrize(("trained_from", "told"), [(0, ["warning"]), (20, [])])
def test_rollouts_before_the_first_update_are_no_speed(trained_from: int, told: list[str]) -> None:
    loss = np.where(np.arange(N) < trained_from, np.nan, noisy(N, 0.01))
    run = run_of({"loss.train": loss, "time.step": SECONDS}, interval=10)
    assert [f.severity for f in throughput.detect(run)] == told


def test_a_mean_since_the_start_lags_behind_the_first_update() -> None:
    """stable-baselines3's fps: all steps over all time, which sinks for long after a buffer was filled."""
    step, seconds = 10 * np.arange(1, N + 1), np.where(np.arange(N) < 20, 0.001, 0.02)
    fps = step / np.cumsum(10 * seconds)
    loss = np.where(np.arange(N) < 20, np.nan, noisy(N, 0.01))
    assert not list(throughput.detect(run_of({"loss.train": loss, "tput.steps": fps}, interval=10)))
    assert list(throughput.detect(run_of({"loss.train": noisy(N, 0.01), "tput.steps": fps}, interval=10))), "trained from the beginning"


@pytest.mark.parametrize(("faster", "told"), [(5, []), (20, ["warning"])])
def test_of_episodes_alone_the_first_tenth_may_be_of_a_random_policy(faster: int, told: list[str]) -> None:
    n = 100
    seconds = np.where(np.arange(n) < faster, 1.0, 5.0) * np.random.default_rng(0).normal(1, 0.05, n)
    run = run_of({"rl.reward": noisy(n, 0.1), "time.step": seconds}, interval=10)
    assert [f.severity for f in throughput.detect(run)] == told


@pytest.mark.parametrize(
    ("usual", "slower", "scatter", "severity"),
    [(0.02, 2.0, 0.15, "info"), (0.02, 2.0, 0.02, "warning"), (0.02, 5.0, 0.15, "warning"), (20.0, 2.0, 0.15, "warning")],
    ids=["seconds lost to a neighbour", "a speed that hardly scatters", "a collapse", "a quarter of an hour lost"],
)
def test_what_costs_seconds_and_a_neighbour_explains_is_no_warning(usual: float, slower: float, scatter: float, severity: str) -> None:
    seconds = np.where(np.arange(100) < 50, usual, usual * slower) * np.random.default_rng(3).normal(1, scatter, 100)
    assert found("time.step", seconds, interval=1) == [severity]


def test_seconds_lost_are_counted_in_the_unit_of_the_log(tmp_path: Path) -> None:
    took = np.where(np.arange(100) < 50, 20, 40) * np.random.default_rng(3).normal(1, 0.15, 100)
    for key, severity in (("step_time_ms", "info"), ("step_time_s", "warning")):
        rows = [{"step": i, "loss": 1 + 1 / (i + 1), key: took[i]} for i in range(100)]
        (tmp_path / f"{key}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
        assert [f.severity for f in throughput.detect(forensics.read(str(tmp_path / f"{key}.jsonl")))] == [severity]


@pytest.mark.parametrize(
    ("wait", "arithmetic", "told"),
    [
        ("grows", "even", ["warning"]),
        ("grows", "grows more", []),  # neighbours on the same cores, say: whatever runs takes longer
        ("grows", "far above", []),  # the loader slows down, and the steps hardly do
        ("even", "even", []),
    ],
)
def test_steps_that_take_ever_longer_for_the_wait_for_data_grows(wait: str, arithmetic: str, told: list[str]) -> None:
    t, rng = np.linspace(0, 1, 64), np.random.default_rng(4)
    data = {"grows": 0.002 + 0.06 * t**2, "even": 0.02 + 0 * t}[wait] * rng.normal(1, 0.3, 64).clip(0.3)
    rest = {"even": 0.02 + 0 * t, "grows more": 0.02 + 0.15 * t**2, "far above": 0.5 + 0 * t}[arithmetic] * rng.normal(1, 0.3, 64).clip(0.3)
    run = run_of({"loss.train": noisy(64, 0.01), "time.data": data, "time.step": data + rest}, interval=10)
    assert [f.severity for f in throughput.detect(run) if f.facts.metric == "time.data"] == told


GROWS = 1.0 * 1.05 ** np.arange(N)  # seven times as long in the end, with no edge
NOISE = np.random.default_rng(3).normal(1, 0.01, N)


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (GROWS * NOISE, ["warning"]),
        (1.01 ** np.arange(N) * NOISE, []),  # half as long again: a neighbour comes to one's core
        (1 + 3 * np.sin(np.pi * np.arange(N) / N) * NOISE, []),  # it comes and goes
    ],
)
def test_steps_that_take_ever_longer_without_an_edge(seconds: np.ndarray, told: list[str]) -> None:
    run = run_of({"loss.train": noisy(N, 0.01), "time.step": seconds}, interval=10)
    assert [f.severity for f in throughput._step_by_step(run)] == told


@pytest.mark.parametrize("name", ["sec", "epoch_time", "time_per_epoch", "train_seconds"])
@pytest.mark.parametrize(("seconds", "told"), [(SECONDS, ["warning"]), (EVEN, [])])
def test_the_time_of_an_epoch(name: str, seconds: np.ndarray, told: list[str]) -> None:
    assert found(f"other/{name}", np.round(60 * seconds, 2)) == told


@pytest.mark.parametrize("name", ["sec", "seconds_of_audio", "other_time"])
def test_a_column_of_seconds_that_is_none_of_an_epoch(name: str) -> None:
    values = np.cumsum(SECONDS) if name == "sec" else SECONDS
    with pytest.raises(CannotTell):
        found(f"other/{name}", values)


@pytest.mark.parametrize(("name", "second", "told"), [
    ("batch.accumulation", 8.0, []), ("batch.accumulation", 1.0, ["warning"]), ("batch.size", 4.0, []), ("samples.seen", 4.0, []), ("samples.seen", 1.0, ["warning"]),
])  # fmt: skip
def test_steps_that_hold_more_samples_take_longer(name: str, second: float, told: list[str]) -> None:
    held = np.r_[np.full(100, 1.0), np.full(100, second)]
    took = np.r_[np.full(100, 1.0), np.full(100, 5.0)] + np.random.default_rng(0).normal(0, 0.05, 200)
    logged = np.cumsum(held) if name == "samples.seen" else held
    run = run_of({"time.step": took, name: logged, "loss.train": np.linspace(3, 2, 200)})
    assert [f.severity for f in throughput.detect(run)] == told


@pytest.mark.parametrize(("after", "told"), [(1.0, []), (8.0, ["warning"])])
def test_a_logged_speed_that_the_clock_does_not_bear_out_is_a_mean_that_holds_a_pause(
    tmp_path: Path, after: float, told: list[str]
) -> None:
    """fairseq's words a second are those since the start, in a launch that went on 45 minutes later, too."""
    seconds = np.where(np.arange(40) < 20, 1.0, after)
    seconds[20] += 2700
    since = np.cumsum(seconds)
    rows = [
        {"step": 10 * i + 10, "loss": float(2 - i / 40), "wps": float(4000 * (i + 1) / since[i]), "time": 1.7e9 + float(since[i])}
        for i in range(40)
    ]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert [f.severity for f in throughput.detect(forensics.read(str(tmp_path)))] == told


@pytest.mark.parametrize(
    ("lengths", "fires"), [((60, 30), False), ((45, 45), True)], ids=["epochs of half as many steps", "epochs as long as before"]
)
def test_steps_of_more_samples_take_longer(lengths: tuple[int, int], fires: bool) -> None:
    """Gradients are added up over twice as many micro-batches: over the same data an epoch has half as many steps."""
    each = np.repeat(lengths, (3, 4))
    epoch = np.repeat(np.arange(7), each)
    seconds = np.where(epoch < 3, 1.0, 2.2) * np.random.default_rng(2).normal(1, 0.02, len(epoch))
    run = run_of({"loss.train": noisy(len(epoch), 0.01), "epoch": epoch, "time.step": seconds})
    assert bool(list(throughput.detect(run))) is fires


def test_a_batch_that_shrinks_is_no_slow_down() -> None:
    """Steps of an eighth of the samples that take half the time: neither slower nor, in samples, a fault of the machine."""
    late = np.arange(N) >= N // 2
    seconds = np.where(late, 0.5, 1.0) * (1 + 0.01 * EVEN)
    seen = np.cumsum(np.where(late, 1.0, 8.0))
    run = run_of({"loss.train": noisy(N, 0.01), "time.step": seconds, "samples.seen": seen})
    assert not list(throughput.detect(run))


@pytest.mark.parametrize(
    ("seconds", "told"), [(np.full(64, 1.0), []), (1.0 + np.arange(64) / 10, ["warning"])], ids=["as long as ever", "ever longer"]
)
def test_a_speed_since_the_start_that_a_fast_beginning_fades_out_of(seconds: np.ndarray, told: list[str]) -> None:
    """A buffer is filled before the first update: the mean since the start falls to the end, and is all that was logged."""
    step = 100 * np.arange(1, 65)
    run = run_of({"loss.train": noisy(64, 0.01), "tput.steps": step / np.cumsum(np.r_[0.001, 0.001, seconds[2:]])}, steps=step.tolist())
    assert [f.severity for f in throughput.detect(run)] == told


@pytest.mark.parametrize(("tag", "told"), [("time/fps", False), ("speed/fps", True)])
def test_a_speed_that_its_name_says_is_since_the_start(tmp_path: Path, tag: str, told: bool) -> None:
    """stable-baselines3 logs steps over the time since the start, and no clock beside it."""
    step, seconds = 250 * np.arange(1, 23), np.r_[0.004, 0.004, np.full(6, 0.5), np.full(14, 0.8)]
    rows = (
        f"{n},{n / t:.0f},{-200 + n / 100:.2f},{'' if i < 2 else 1 / (i + 3):.4}\n"
        for i, (n, t) in enumerate(zip(step, np.cumsum(seconds), strict=True))
    )
    (tmp_path / "progress.csv").write_text(f"time/total_timesteps,{tag},rollout/ep_rew_mean,train/critic_loss\n{''.join(rows)}")
    found = [f["kind"] for f in forensics.analyze(str(tmp_path)).to_json()["findings"] if f["severity"] != "info"]
    assert ("throughput" in found) == told


@pytest.mark.parametrize(("since", "severity"), [(20, "info"), (30, "warning"), (0, "warning")])
def test_a_loop_that_measures_more_from_the_step_on_does_more_there(since: int, severity: str) -> None:
    """A second phase has terms of its own, and takes its time."""
    term = np.where(np.arange(N) < since, np.nan, 0.3 + EVEN / 10)
    run = run_of({"loss.train": noisy(N, 0.01), "time.step": 100 * SECONDS, "other/cluster_loss": term}, interval=10)
    rows = [r for r in run.tables["metrics"].to_pylist() if r["value"] == r["value"]]
    run.tables["metrics"] = pa.Table.from_pylist(rows, run.tables["metrics"].schema)
    (slow,) = throughput.detect(run)
    assert slow.severity == severity
    assert ("where cluster_loss is measured for the first time" in slow.title) is (severity == "info")

"""What runs cost, whose they were and whether to start them again: planted runs of two GPUs with a known clock."""

from __future__ import annotations

import json
import math
import os
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from forensics import at_path, pipeline
from forensics.audits import collect, discover, gpu_hours, kept, rerun, row, totals
from forensics.audits.row_columns import LOSSES
from forensics.causes.files import named_cause
from forensics.many_runs.brief import Brief
from reports import do_next, first_rows
from reports.schema import complete

START = 1.7e9  # 2023-11-14
ROOT = Path(__file__).resolve().parents[2]


def falling(step: int) -> float:
    return 1.0 + 2.0 * 0.5 ** (step / 150) + 0.01 * random.Random(step).gauss(0, 1)


def lines(steps: Iterable[int], begin: float = START, loss: Callable[[int], float] = falling, clock: bool = True) -> str:
    """A step a second, from a moment on."""
    told = [{"step": s, "loss": loss(s)} | ({"time": begin + i} if clock else {}) for i, s in enumerate(steps)]
    return "".join(json.dumps(x) + "\n" for x in told)


def put(folder: Path, text: str, log: str = "", **config: Any) -> Path:
    folder.mkdir(parents=True)
    if text:
        (folder / "metrics.jsonl").write_text(text)
    (folder / "config.json").write_text(json.dumps({"lr": 1e-3, "batch_size": 8, "warmup_steps": 10, "world_size": 2} | config))
    if log:
        (folder / "train.log").write_text(log)
    return folder


def told(folder: Path) -> dict[str, Any]:
    run = at_path.read(str(folder))
    found: dict[str, Any] = row.of(run, pipeline.analyze_run(run, brief=True))["row"]
    return found


def lost(r: dict[str, Any]) -> dict[str, float]:
    return {k: v for k in LOSSES if (v := r[k])}


CRASH = 'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\n    step()\nRuntimeError: shapes differ\n'


def test_work_done_again_after_a_crash(tmp_path: Path) -> None:
    """600 steps, then 100 s of nothing, then 500 steps of which 100 are done again: 599 + 499 s on two GPUs."""
    r = told(put(tmp_path / "a", lines(range(600)) + lines(range(500, 1000), START + 700), project="vision", user="ada", job_id=81234))
    assert (r["gpus"], r["gpu_hours"], r["attempts"]) == (2, pytest.approx(2 * 1098 / 3600, abs=2e-6), 2)
    assert lost(r) == {"lost_repeated": pytest.approx(2 * 599 / 6 / 3600, abs=2e-6)} and r["lost_gpu_hours"] == r["lost_repeated"]
    assert (r["owner"], r["project"], r["job_id"]) == ("ada", "vision", "81234")


def test_a_hang(tmp_path: Path) -> None:
    """An hour in which no step was logged, between two steps."""
    r = told(put(tmp_path / "a", lines(range(150)) + lines(range(150, 300), START + 149 + 3600)))
    assert r["gpu_hours"] == pytest.approx(2 * (149 + 3600 + 149) / 3600, abs=2e-6)
    assert lost(r) == {"lost_hang": 2.0}


def test_a_hang_that_a_log_says_ends_the_run() -> None:
    """The watchdog of a collective gave up after ten minutes in which no rank logged anything."""
    r = told(ROOT / "samples" / "hang_torchrun")
    assert (r["gpus"], lost(r), r["ending"]) == (2, {"lost_hang": pytest.approx(2 * 600 / 3600, abs=0.001)}, "hang")
    assert r["gpu_hours"] == pytest.approx(r["lost_hang"] + 2 * r["seconds"] / 3600, abs=0.002)


def test_time_after_the_loss_diverged(tmp_path: Path) -> None:
    """NaN from step 300 of 600 on: the last 299 s are lost; and an hour of silence within them is lost as a hang."""
    odd = lambda s: falling(s) if s < 300 else math.nan  # noqa: E731
    r = told(put(tmp_path / "a", lines(range(600), loss=odd)))
    assert r["gpu_hours"] == pytest.approx(2 * 599 / 3600, abs=2e-6) and lost(r) == {
        "lost_diverged": pytest.approx(2 * 299 / 3600, abs=2e-6)
    }
    r = told(put(tmp_path / "b", lines(range(450), loss=odd) + lines(range(450, 600), START + 449 + 3600, odd)))
    assert lost(r) == {"lost_hang": 2.0, "lost_diverged": pytest.approx(2 * 298 / 3600, abs=2e-6)}


def test_seconds_since_the_start_count_as_a_clock(tmp_path: Path) -> None:
    rows = [{"step": s, "loss": falling(s) if s < 300 else math.nan, "_runtime": 100.0 + s} for s in range(600)]
    r = told(put(tmp_path / "a", "".join(json.dumps(x) + "\n" for x in rows)))
    assert r["started"] is None and r["gpu_hours"] == pytest.approx(2 * 599 / 3600, abs=2e-6)
    assert lost(r) == {"lost_diverged": pytest.approx(2 * 299 / 3600, abs=2e-6)}
    rows = [{"step": s, "loss": falling(s), "train_time": 5.0 + s % 3} for s in range(600)]  # of each step
    assert told(put(tmp_path / "b", "".join(json.dumps(x) + "\n" for x in rows)))["gpu_hours"] is None


def test_what_recovers_is_not_lost(tmp_path: Path) -> None:
    r = told(put(tmp_path / "a", lines(range(600), loss=lambda s: falling(s) + 3.0 * (s == 300))))
    assert (r["verdict"], r["spikes_fast"], r["lost_gpu_hours"], lost(r)) == ("unhealthy", 1, 0.0, {})


def test_dead_on_arrival(tmp_path: Path) -> None:
    """It loaded a checkpoint for 30 minutes, and died before its first step: all of it is lost."""
    died = "2024-01-01 10:30:00,000 ERROR CUDA out of memory. Tried to allocate 2.00 GiB\n"
    r = told(put(tmp_path / "a", "", "2024-01-01 10:00:00,000 INFO Loading checkpoint from x/step_4\n" + died))
    assert (r["status"], r["gpu_hours"], lost(r)) == ("crashed", 1.0, {"lost_at_start": 1.0})
    r = told(put(tmp_path / "b", "", died))
    assert r["gpu_hours"] is None and "lost_gpu_hours: no step was logged" in r["why_null"]
    odd = "2024-01-01 10:00:00,000 INFO Loading checkpoint from x/step_4\n" + died.replace("2024-01", "2025-01")
    assert "the clock is doubted" in told(put(tmp_path / "c", "", odd))["why_null"]


def test_what_is_not_known_says_why(tmp_path: Path) -> None:
    r = told(put(tmp_path / "a", lines(range(300)), world_size=None, max_steps=300))
    assert (r["gpus"], r["gpu_hours"], r["lost_gpu_hours"], r["lost_hang"]) == (None, None, None, None)
    assert r["why_null"].startswith("gpus, gpu_hours, lost_gpu_hours: neither config nor the ranks")
    assert "owner: no setting names" in r["why_null"] and "last_good_checkpoint: no checkpoint lies among its files" in r["why_null"]
    assert "rerun" not in r["why_null"]  # it is healthy: 'no: ...'
    folder = put(tmp_path / "b", lines(range(300), clock=False))
    os.utime(folder / "metrics.jsonl", (START, START + 86400))
    r = told(folder)
    assert (r["gpus"], r["gpu_hours"]) == (2, None) and "gpu_hours, lost_gpu_hours: the log has no clock" in r["why_null"]
    r = told(put(tmp_path / "c", lines(range(150)) + lines(range(150, 300), START + 90 * 86400)))
    assert r["gpu_hours"] is None and "more than 30 days" in r["why_null"]
    failed = row.failed("x", "x", "no such file")["row"]
    assert failed["why_null"].endswith("rerun: it could not be analyzed") and failed["gpus"] is None


def test_gpus_are_counted_across_nodes(tmp_path: Path) -> None:
    for i, (config, count) in enumerate(
        (
            ({"devices": 8, "num_nodes": 4}, 32),
            ({"num_gpus": 8, "num_nodes": 2}, 16),
            ({"n_gpu": 4}, 4),
            ({"world_size": 16, "devices": 8, "num_nodes": 2}, 16),
            ({"devices": "auto"}, None),
            ({"world_size": 2, "device": "cpu"}, 0),
            ({"world_size": 2, "use_cpu": True}, 0),
            ({"world_size": 2, "device": "cuda:0"}, 2),
        )
    ):
        assert gpu_hours.gpus(at_path.read(str(put(tmp_path / str(i), lines(range(20)), **({"world_size": None} | config))))) == count, (
            config
        )


def test_jobs_are_named_by_slurm_itself(tmp_path: Path) -> None:
    folder = put(tmp_path / "a", lines(range(20)))
    (folder / "slurm-445566.out").write_text("step 1 loss 2.0\n")
    assert told(folder)["job_id"] == "445566"


def test_whether_to_start_it_again(tmp_path: Path) -> None:
    r = told(put(tmp_path / "healthy", lines(range(300)), max_steps=300))
    assert r["rerun"] == "no: finished and healthy"
    r = told(put(tmp_path / "spike", lines(range(600), loss=lambda s: falling(s) + 3.0 * (s == 300)), max_steps=600))
    assert (r["status"], r["rerun"]) == ("finished", "no: finished, and what went wrong did not last")
    r = told(put(tmp_path / "crash", lines(range(300)), CRASH, max_steps=900))
    assert (r["top_cause"], r["rerun"]) == ("code_error", "yes, from the start: fix the line that the traceback names (train.log line 1)")
    limit = "slurmstepd: error: *** JOB 4455 ON n1 CANCELLED AT 2024-01-01T10:00:00 DUE TO TIME LIMIT ***\n"
    r = told(put(tmp_path / "limit", lines(range(300)), limit, max_steps=900))
    assert (r["ending"], r["rerun"], r["job_id"]) == (
        "scheduler",
        "yes, from the start: ask for a longer limit, or save more often than once a limit: with the same one it ends here again",
        "4455",
    )
    r = told(put(tmp_path / "hand", lines(range(300)), "Traceback (most recent call last):\nKeyboardInterrupt\n", max_steps=900))
    assert r["rerun"] is None and "rerun: stopped by hand: its owner knows why" in r["why_null"]
    r = told(put(tmp_path / "cut", lines(range(300)), max_steps=900))
    assert r["rerun"] is None and "rerun: the log just stops" in r["why_null"]
    r = told(ROOT / "samples" / "bit_flip_tensorboard")
    assert r["last_good_checkpoint"] == "checkpoints/step_000160" and r["rerun"].endswith("; then go on from checkpoints/step_000160")
    assert told(ROOT / "samples" / "phantom_spike_trainer")["rerun"] == "no: the log is wrong, not the training"
    assert told(ROOT / "samples" / "bad_sample_shuffled_jsonl")["rerun"].startswith("no: keep the run: the loss is back")
    assert (
        told(ROOT / "samples" / "lr_too_high_diverges")["rerun"]
        == "not yet: look at the loss against the rate: does trouble begin where the rate peaks? Then, from the start: run it again at a third of the peak rate; 3e-4 with Adam forgives much"
    )


@pytest.mark.parametrize("sample", sorted(p.name for p in (ROOT / "samples").iterdir() if (p / "expect.toml").exists())[::6])
def test_page_and_row_say_the_same(sample: str) -> None:
    """The first action, where to go on from and whether to start again come from one function."""
    case = pipeline.analyze_run(at_path.read(str(ROOT / "samples" / sample)))
    again, full = case.run["again"], complete(case.to_json())
    assert do_next.do_next(full)[0][1] == again["first"] or not again["first"] or case.verdict == "inconclusive"
    said, saved = again["says"] or "", case.run["last_healthy_checkpoint"]
    assert saved is None or not said.startswith("yes") or f"from {saved['path']}: " in said
    assert dict(first_rows.rows(full)).get("Run again", [said])[0] in (said, f"not known: {again['why']}")
    if again["trouble_from"] is not None and saved:
        assert saved["step"] < again["trouble_from"]


def test_another_run_with_the_same_config_that_finished_makes_it_needless() -> None:
    briefs = [Brief(f"r{i}", "", "f", i < 2, None, {"lr": "1", "seed": "1" if i != 1 else "2"}, {}, {}) for i in range(3)]
    bad = {"verdict": "unhealthy", "status": "crashed", "rerun": "yes, from the start: x", "ending": "hardware", "grave": 1}
    rows = [bad | {"id": f"r{i}"} for i in range(2)]
    rows.append({"id": "r2", "verdict": "healthy", "status": "finished", "rerun": "no: finished and healthy"})
    assert list(rerun.superseded(rows, briefs)) == [(0, "no: r2 finished healthy with the same config")]
    for other in ({"ending": "exception"}, {"ending": "finished"}, {"grave": 2}):  # a bug in the code leaves no trace in config
        rows[0] = bad | {"id": "r0"} | other
        told = "yes, from the start: x; r2 finished healthy with the same config: compare the code"
        assert list(rerun.superseded(rows, briefs)) == [(0, told)]


def test_totals_of_many_runs() -> None:
    empty = dict.fromkeys(LOSSES) | dict.fromkeys(
        ("gpu_hours", "lost_gpu_hours", "owner", "host", "shard", "rerun", "why_null", "top_cause", "probability")
    )
    rows = [
        empty | {"verdict": "unhealthy", "status": "hung", "ending": "hang", "gpu_hours": 4.0, "lost_gpu_hours": 2.0, "lost_hang": 2.0,
                 "host": "n1, n2", "owner": "ada", "top_cause": "hang", "probability": 0.9, "rerun": "yes, from the start: x"},
        empty | {"verdict": "unhealthy", "status": "crashed", "ending": "exception", "gpu_hours": 1.0, "lost_gpu_hours": 0.5,
                 "lost_repeated": 0.5, "host": "n2", "shard": "web-1", "top_cause": "code_error", "probability": 0.4},
        empty | {"verdict": "healthy", "status": "finished", "ending": "finished", "gpu_hours": 3.0, "lost_gpu_hours": 0.0, "host": "n3"},
        empty | {"verdict": "healthy", "status": "stopped", "ending": "scheduler", "why_null": "gpus: x; gpu_hours, lost_gpu_hours: no clock; owner: y"},
    ]  # fmt: skip
    assert totals.of(rows) == {
        "known": 3,
        "gpu_hours": 8.0,
        "lost_gpu_hours": 2.5,
        "by_ending": [{"value": "hang", "runs": 1}, {"value": "exception", "runs": 1}, {"value": "scheduler", "runs": 1}],
        "by_loss": [{"value": "lost_hang", "runs": 1, "lost_gpu_hours": 2.0}, {"value": "lost_repeated", "runs": 1, "lost_gpu_hours": 0.5}],
        "by_owner": [{"value": "ada", "runs": 1, "lost_gpu_hours": 2.0}],
        "by_host": [{"value": "n2", "runs": 2, "lost_gpu_hours": 2.5}, {"value": "n1", "runs": 1, "lost_gpu_hours": 2.0}],
        "by_shard": [{"value": "web-1", "runs": 1, "lost_gpu_hours": 0.5}],
        "by_top_cause": [
            {"value": "hang", "runs": 1, "lost_gpu_hours": 2.0},
            {"value": "unknown", "runs": 1, "lost_gpu_hours": 0.5},
        ],  # what does not lead is open
        "to_start_again": 1,
        "to_look_at_first": 0,
        "unknown": [{"value": "no clock", "runs": 1}],
    }
    assert totals.of([])["lost_gpu_hours"] is None


def test_a_cause_is_open_in_the_audit_where_its_page_calls_it_open() -> None:
    row = {"top_cause": "hang", "probability": 0.9}
    assert named_cause(row) == named_cause(row | {"certainty": "likely"}) == "hang"
    assert named_cause(row | {"certainty": "open"}) == named_cause(row | {"probability": 0.54}) == "unknown"
    assert named_cause(row | {"top_cause": None}) is None


def test_records_of_before_the_costs_still_load(tmp_path: Path) -> None:
    """`--resume` over the records of an earlier version: what they do not have is empty."""
    place = discover.Place(str(tmp_path), "", "a", "a", (), "5a")
    run = at_path.read(str(put(tmp_path / "a", lines(range(300)))))
    record = row.of(run, pipeline.analyze_run(run, brief=True))
    del record["row"]["gpu_hours"], record["row"]["why_null"], record["identity"]
    records = kept.Kept(str(tmp_path / "out"), tmp_path)
    records.add(kept.line(place, [record]))
    (found,) = collect.load([place], records, []).dicts()
    assert found["gpu_hours"] is None and totals.of([found])["unknown"] == [{"value": "it was analyzed by an earlier version", "runs": 1}]

"""What was not logged is listed with what it would have told, and first what speaks to the causes in play."""

from __future__ import annotations

import json
from pathlib import Path

import runs

import parsers
from forensics.case import Hypothesis
from forensics.case_parts.blind_spots import blind_spots


def test_the_most_useful_first(tmp_path: Path) -> None:
    rows = [json.dumps({"step": i, "loss": 3 - i / 100, "tokens_per_sec": 1000 + i % 3}) for i in range(100)]
    (tmp_path / "log.jsonl").write_text("\n".join(rows))
    run = parsers.read(tmp_path)

    def order(**probability: float) -> list[str]:
        causes = [Hypothesis(i, i, (), probability=p) for i, p in probability.items()]
        return [spot["what"] for spot in blind_spots(run, causes)]

    plain = order(unknown=1.0)
    assert "tput.tokens" not in plain and "loss.train" not in plain
    assert order(out_of_memory=0.7, unknown=0.3) == ["mem.alloc", *(x for x in plain if x != "mem.alloc")]
    assert order(fp16_overflow=0.5, bad_data_batch=0.3, unknown=0.2)[:3] == ["loss_scale", "grad.norm", "batch ids"]
    assert order(hang=0.9, unknown=0.1)[0] == "wall clock"


def spots(folder: Path) -> dict[str, str]:
    return {b["what"]: b["why"] for b in runs.case(folder)["blind_spots"]}


def test_what_only_some_runs_need_is_asked_where_they_do(tmp_path: Path) -> None:
    plain = spots(runs.write(tmp_path / "plain"))
    text = spots(
        runs.write(tmp_path / "text", config={"tokenizer": "gpt2", "world_size": 8}, eval_accuracy=lambda i: 0.5 if i % 50 == 0 else None)
    )
    for what in ("decoded samples", "share of padding", "logs of the other ranks", "engine of the evaluation"):
        assert what in text and what not in plain, what
    packed = {"tokenizer": "gpt2", "packing": True, "world_size": 1, "eval_engine": "vllm"}
    packed_text = spots(runs.write(tmp_path / "packed", config=packed, eval_accuracy=lambda i: 0.5 if i % 50 == 0 else None))
    assert not {"share of padding", "logs of the other ranks", "engine of the evaluation"} & set(packed_text)


def test_a_slow_run_is_asked_for_a_trace_and_a_fast_one_is_not(tmp_path: Path) -> None:
    slow = runs.write(tmp_path / "slow", time=lambda i: runs.START + 0.5 * i + 2.0 * max(0, i - 200))
    assert "profiler trace" in spots(slow) and "profiler trace" not in spots(runs.write(tmp_path / "fast"))


def test_the_share_of_the_peak_is_asked_where_a_speed_was_logged(tmp_path: Path) -> None:
    speed = {"tokens_per_sec": lambda i: 1000.0 + i % 3}
    assert "mfu" in spots(runs.write(tmp_path / "speed", **speed))
    assert "mfu" not in spots(runs.write(tmp_path / "known", mfu=lambda i: 0.4, **speed))
    assert "mfu" not in spots(runs.write(tmp_path / "none"))


def test_cached_data_are_asked_for_their_fingerprint(tmp_path: Path) -> None:
    log = "Loading cached processed dataset at /data/cache-1f3a.arrow\n"
    assert "train.log line 1" in spots(runs.write(tmp_path / "cached", log=log))["fingerprint of the cached data"]
    off = {"overwrite_cache": False, "data_cache": None}
    assert "fingerprint of the cached data" not in spots(runs.write(tmp_path / "fresh", config=off))
    assert "fingerprint of the cached data" in spots(runs.write(tmp_path / "kept", config={"data_cache": "prepared/a"}))


def test_memory_of_a_gpu_is_logged_memory_whatever_tool_logged_it(tmp_path: Path) -> None:
    assert "mem.alloc" in {b["what"] for b in runs.case(runs.write(tmp_path / "a"))["blind_spots"]}
    logged = {"system/gpu.0.memoryAllocatedBytes": lambda i: 1e9 + i}
    assert "mem.alloc" not in {b["what"] for b in runs.case(runs.write(tmp_path / "b", **logged))["blind_spots"]}


def test_padding_is_told_where_it_was_logged(tmp_path: Path) -> None:
    def titles(share: float) -> list[str]:
        case = runs.case(runs.write(tmp_path / str(share), padding_ratio=lambda i: share))
        assert case["verdict"] == "healthy"
        return [f["title"] for f in case["findings"] if "padding" in f["title"]]

    assert titles(0.45) == ["45% of the tokens of a usual batch are padding"] and titles(0.02) == []

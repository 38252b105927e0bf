"""Signs of speed: slower for good, pauses, waiting for data, devices, and a rank that lags."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from runs import START, loss, make, read

from forensics.detectors import rank_disagreement, stall, throughput, utilization
from forensics.errors import CannotTell
from forensics.signs import speed
from forensics.signs.sign import ABSENT, CANNOT_TELL, SEEN, Sign, Symptoms

N = 200
Value = Callable[[int], float]


def looked(sign: str, folder: Path) -> Sign:
    run = read(folder)
    findings = []
    for detector in (throughput, stall, utilization, rank_disagreement):
        try:
            findings += list(detector.detect(run))
        except CannotTell:
            continue
    found: Sign = getattr(speed, sign)(Symptoms(run, tuple(findings)))
    assert found.text.endswith("."), found
    return found


def rows(**more: Value) -> list[dict[str, float]]:
    return [{"step": i, "loss": loss(i)} | {k.replace("__", "/"): f(i) for k, f in more.items()} for i in range(1, N + 1)]


def late(before: float, after: float) -> Value:
    return lambda i: (before if i <= N // 2 else after) * (1 + 0.002 * (i % 5))


def clock(*pauses: int) -> Value:
    return lambda i: START + i + 600.0 * sum(i > p for p in pauses)


@pytest.mark.parametrize(("sign", "more", "state"), [
    ("steps_slower", {"step_time": late(0.5, 1.5)}, SEEN),
    ("steps_slower", {"step_time": late(0.5, 0.5)}, ABSENT),
    ("steps_slower", {}, CANNOT_TELL),
    ("long_pauses", {"time": clock(50, 150)}, SEEN),
    ("long_pauses", {"time": clock(50)}, ABSENT),
    ("long_pauses", {"time": clock()}, ABSENT),
    ("long_pauses", {}, CANNOT_TELL),
    ("waits_for_data_grew", {"step_time": late(0.5, 1.5), "data_time": late(0.02, 1.0)}, SEEN),
    ("waits_for_data_grew", {"step_time": late(0.5, 0.5), "data_time": late(0.02, 0.02)}, ABSENT),
    ("waits_for_data_grew", {"step_time": late(0.5, 1.5)}, CANNOT_TELL),
    ("utilization_fell", {"system__gpu__0__gpu": late(92, 30)}, SEEN),
    ("utilization_fell", {"system__gpu__0__gpu": late(92, 91)}, ABSENT),
    ("utilization_fell", {}, CANNOT_TELL),
    ("rank_straggles", {"step_time": late(0.5, 0.5)}, CANNOT_TELL),
    ("one_rank_waits_for_data", {}, CANNOT_TELL),
])  # fmt: skip
def test_one_process(tmp_path: Path, sign: str, more: dict[str, Value], state: str) -> None:
    found = looked(sign, make(tmp_path / "r", rows(**more)))
    assert found.state == state, found


@pytest.mark.parametrize(
    ("slow", "wait", "straggles", "waits"), [(1.0, 0.01, ABSENT, ABSENT), (1.5, 0.01, SEEN, ABSENT), (1.0, 0.4, ABSENT, SEEN)]
)
def test_one_rank_of_four(tmp_path: Path, slow: float, wait: float, straggles: str, waits: str) -> None:
    for rank in range(4):
        mine = rank == 2
        more = {"step_time": late(0.5, 0.5 * (slow if mine else 1)), "data_time": late(0.01, wait if mine else 0.01)}
        (tmp_path / f"rank{rank}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows(**more)))
    assert looked("rank_straggles", tmp_path).state == straggles
    found = looked("one_rank_waits_for_data", tmp_path)
    assert found.state == waits and (waits == ABSENT or found.numbers["rank"] == 2), found

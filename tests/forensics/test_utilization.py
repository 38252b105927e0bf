"""Loads, waiting times, MFU and clocks: what is low throughout, and what changed."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from pathlib import Path

import pytest
from runs import START, case, read, top, write

from forensics.detectors import utilization
from forensics.errors import CannotTell
from forensics.run import peak_flops


def facts(folder: Path) -> dict[str, utilization.Facts]:
    found = list(utilization.detect(read(folder)))
    assert all(f.severity == "info" for f in found)
    return {f.facts.what: f.facts for f in found}


def test_a_load_that_is_low_throughout_and_one_that_falls(tmp_path: Path) -> None:
    low = facts(write(tmp_path / "r", gpu_util=lambda i: 31 + i % 5))
    assert low["load"].to_json() == {"what": "load", "changed": False, "median": 33}
    fell = facts(write(tmp_path / "s", gpu_util=lambda i: (95 if i < 150 else 40) + i % 5))
    assert fell["load"].changed
    assert (fell["load"].before, fell["load"].after) == (97, 42)
    assert not facts(write(tmp_path / "t", gpu_util=lambda i: 92 + i % 5))


def test_waiting_for_data(tmp_path: Path) -> None:
    always = facts(write(tmp_path / "r", step_time=lambda i: 0.5, data_time=lambda i: 0.2))
    assert always["waiting"].median == pytest.approx(0.4)
    beside = facts(write(tmp_path / "s", step_time=lambda i: 0.2, data_time=lambda i: 0.6))
    assert beside["waiting"].median == pytest.approx(0.75)
    assert not facts(write(tmp_path / "t", step_time=lambda i: 0.5, data_time=lambda i: 0.01))


@pytest.mark.parametrize(("logged", "share"), [(0.04, 0.04), (4.2, 0.042)])
def test_mfu_as_logged(tmp_path: Path, logged: float, share: float) -> None:
    assert facts(write(tmp_path / "r", mfu=lambda i: logged))["mfu"].median == pytest.approx(share)


@pytest.mark.parametrize("mfu", [0.43, 43.0])
def test_a_good_mfu_says_nothing(tmp_path: Path, mfu: float) -> None:
    assert not facts(write(tmp_path / "r", mfu=lambda i: mfu))


def test_mfu_is_worked_out_from_tokens_parameters_and_device(tmp_path: Path) -> None:
    config = {"gpu_name": "NVIDIA A100-SXM4-80GB", "n_params": 124_000_000, "world_size": 8}
    run = read(write(tmp_path / "r", config=config, tokens_per_sec=lambda i: 150_000.0))
    assert peak_flops.peak(run) == ("NVIDIA A100-SXM4-80GB", 312e12)
    found = next(f for f in utilization.detect(run) if f.facts.what == "mfu")
    assert found.facts.median == pytest.approx(6 * 124e6 * 150_000 / (8 * 312e12))


@pytest.mark.parametrize(("text", "n"), [
    ("model has 124,439,808 parameters, 10281 training samples", 124_439_808),
    ("number of parameters: 123.59M", 123.59e6),
    (" > number of parameters on (tensor, pipeline) model parallel rank (0, 0): 8685440", 8_685_440),
])  # fmt: skip
def test_parameters_that_a_line_says(tmp_path: Path, text: str, n: float) -> None:
    assert peak_flops.parameters(read(write(tmp_path / "r", log=text + "\n"))) == pytest.approx(n)


@pytest.mark.parametrize(("name", "peak"), [
    ("NVIDIA H100 80GB HBM3", 989e12), ("NVIDIA H100 PCIe", 756e12), ("NVIDIA GeForce RTX 4090", 165e12), ("Tesla V100-SXM2-32GB", 125e12),
    ("NVIDIA L4", 121e12), ("NVIDIA L40S", 362e12), ("Some other device", None),
])  # fmt: skip
def test_devices_by_name(tmp_path: Path, name: str, peak: float | None) -> None:
    found = peak_flops.peak(read(write(tmp_path / "r", config={"gpu_name": name})))
    assert (found[1] if found else None) == peak


def monitored(folder: Path, heat: float) -> Path:
    """A device that warms up to `heat` and whose clock falls where that is 80 degrees and more."""
    lines = []
    for i in range(150):
        warm = min(50 + i, heat)
        clock = datetime.fromtimestamp(START + i, UTC).strftime("%Y-%m-%d %H:%M:%S")
        lines.append(f"{clock} alive gpu_temp={warm:.0f} gpu_clock={1980 if warm < 80 else 1350 + i % 7}\n")
    (folder / "monitor.log").write_text("".join(lines))
    return folder


def test_clocks_that_fall_in_the_heat(tmp_path: Path) -> None:
    found = facts(monitored(write(tmp_path / "r"), 88))
    assert found["heat"].after < 0.75 * found["heat"].before
    assert not facts(monitored(write(tmp_path / "s"), 70))


def test_only_what_changed_is_weighed_with_the_throughput(tmp_path: Path) -> None:
    slow = write(
        tmp_path / "r", step_time=lambda i: (0.5 if i < 150 else 1.6) + 0.01 * math.sin(i), data_time=lambda i: 0.02 if i < 150 else 1.1
    )
    best = top(case(slow))
    assert (best["id"], best["title"]) == ("throughput_collapse", "Throughput collapse: the device waits for data")
    always = case(write(tmp_path / "s", step_time=lambda i: 0.5, data_time=lambda i: 0.3))
    assert always["verdict"] == "healthy"


def test_nothing_logged_cannot_tell(tmp_path: Path) -> None:
    with pytest.raises(CannotTell, match="neither load"):
        list(utilization.detect(read(write(tmp_path / "r"))))

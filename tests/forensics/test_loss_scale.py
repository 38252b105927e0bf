"""Overflows that a program counts up itself, in a log that shows every tenth scale."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import runs
from curves import noisy, run_of

import forensics
from forensics.detectors import loss_scale, nonfinite
from forensics.signs import scaler
from forensics.signs.sign import Symptoms

N = 100
SLOW = 2.0**28 * 0.85 ** np.minimum(np.arange(N), 31)  # backs off a little at each overflow


@pytest.mark.parametrize(("skipped", "told"), [(np.minimum(np.arange(N) * 10, 310), [220]), (np.arange(N) // 30, [])])
def test_updates_that_the_program_counts_as_skipped(skipped: np.ndarray, told: list[int]) -> None:
    scale = SLOW if told else np.where(np.arange(N) % 30 < 15, 2.0**16, 2.0**15)
    run = run_of({"loss.train": noisy(N, 0.01), "loss_scale": scale, "skip.count": skipped.astype(float)}, interval=10)
    assert [f.facts.skipped for f in loss_scale.detect(run)] == told


SEARCHES = np.where(np.arange(N) < 8, np.inf, 1.0)


@pytest.mark.parametrize(
    ("metrics", "config", "state"),
    [
        ({"grad.norm": np.full(N, np.inf), "loss_scale": np.full(N, 2.0**24)}, {}, "seen"),
        ({"grad.norm": np.full(N, np.nan)}, {"fp16": True}, "seen"),
        ({"skip.count": np.full(N, 10.0), "loss_scale": np.full(N, 2.0**24)}, {}, "seen"),
        ({"grad.norm": SEARCHES, "loss_scale": np.full(N, 2.0**16)}, {}, "absent"),
        ({"skip.count": np.where(np.arange(N) % 3, 10.0, 6.0), "loss_scale": np.full(N, 2.0**19)}, {}, "seen"),  # fixed, and too large
        (
            {"skip.count": np.where(np.arange(N) % 3, 10.0, 6.0), "loss_scale": 2.0 ** (19 - np.arange(N) // 40)},
            {},
            "absent",
        ),  # it comes down
        ({"skip.count": np.where(np.arange(N) < 8, 10.0, 0.0), "grad.norm": SEARCHES}, {"fp16": True}, "absent"),
        ({"grad.norm": np.where(np.arange(N) % 20, 1.0, np.inf)}, {"fp16": True}, "absent"),  # it doubles too far now and then
        ({"grad.norm": np.where(np.arange(N) < 92, np.inf, 1.0)}, {"fp16": True}, "absent"),  # found its scale in the end
        ({"grad.norm": np.full(N, np.inf)}, {"bf16": True}, "cannot tell"),
        ({"grad.norm": np.full(12, np.inf)}, {"fp16": True}, "cannot tell"),  # stopped while the scale was looked for
        ({"skip.count": np.minimum(np.arange(N) * 10, 310.0)}, {"fp16": True}, "absent"),  # counted up, and at an end
        ({"skip.count": np.arange(N) * 10.0 + 10}, {"fp16": True}, "seen"),
        ({"skip.count": np.arange(N) * 10.0 + 10}, {}, "seen"),  # the program says so itself, whatever its scale
        ({"skip.count": np.arange(N) * 10.0 + 10}, {"bf16": True}, "cannot tell"),
        ({"skip.count": np.arange(N) * 10.0 % 500}, {"fp16": True}, "cannot tell"),  # counts something else
    ],
)
def test_overflows_that_do_not_end(metrics: dict[str, np.ndarray], config: dict[str, bool], state: str) -> None:
    run = run_of({"loss.train": noisy(N, 0.01)[: len(next(iter(metrics.values())))]} | metrics, interval=10, config=config)
    found = scaler.overflows_to_the_end(Symptoms(run, ()))
    assert found.state == state, found.text


@pytest.mark.parametrize(("told", "state"), [(1.0, "seen"), (0.0, "absent")])
def test_each_update_says_whether_it_overflowed(told: float, state: str) -> None:
    run = run_of({"loss.train": noisy(N, 0.01), "skip.count": np.full(N, told)}, config={"fp16": True})
    assert scaler.overflows_to_the_end(Symptoms(run, ())).state == state


@pytest.mark.parametrize(("tag", "told"), [("lg_loss_scale", [True]), ("loss_scale", [])])
def test_a_logarithm_of_the_scale_falls_by_what_it_stands_for(tmp_path: Path, tag: str, told: list[bool]) -> None:
    """Seven less is 2^7 of a logarithm, and next to nothing of a scale."""
    run = runs.read(runs.write(tmp_path / "run", 100, **{tag: lambda i: 23.0 if i < 50 else 16.0}))
    assert [f.facts.collapsed for f in loss_scale.detect(run)] == told


@pytest.mark.parametrize(("count", "told"), [("epoch", []), ("step", ["warning"])])
def test_halvings_of_epochs_are_few_of_their_steps(tmp_path: Path, count: str, told: list[str]) -> None:
    """Six halvings in sixteen epochs are nothing: each has hundreds of steps."""
    scale = [2.0 ** (15 + i % 3 % 2) for i in range(16)]
    rows = [{count: i, "train_loss": 2 - i / 20, "loss_scale": x} for i, x in enumerate(scale)]
    (tmp_path / "log.txt").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert [f.severity for f in loss_scale.detect(forensics.read(tmp_path))] == told


@pytest.mark.parametrize(
    ("at", "severity"), [([0, 1, 2], "info"), ([0, 1, 2, 60], "critical")], ids=["where the scale falls", "where it stays"]
)
def test_a_loss_that_overflows_while_the_scaler_looks_for_its_scale(at: list[int], severity: str) -> None:
    scale = 2.0**20 * 0.5 ** np.minimum(np.arange(N), 3)
    run = run_of({"loss.train": np.where(np.isin(np.arange(N), at), np.inf, noisy(N, 0.01)), "loss_scale": scale})
    assert [f.severity for f in nonfinite.detect(run)] == [severity]

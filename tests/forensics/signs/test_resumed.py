"""Signs at restarts, of changed settings, and of what checkpoints counted: on shipped samples, and on runs of two attempts."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forensics
from forensics import pipeline
from forensics.case import Finding
from forensics.detectors import checkpoint_state, loss_spike
from forensics.signs import changed_settings, resumed, saved_state
from forensics.signs.sign import ABSENT, CANNOT_TELL, SEEN, Symptoms
from tests.forensics.curves import noisy, run_of

SAMPLES = Path(__file__).parents[3] / "samples"
SIGNS = vars(changed_settings) | vars(resumed) | vars(saved_state)


@cache
def symptoms(sample: str) -> Symptoms:
    run = forensics.read(str(SAMPLES / sample))
    return Symptoms(run, tuple(pipeline.detect(run)[0]))


@pytest.mark.parametrize(
    ("sample", "seen", "absent", "cannot_tell"),
    [
        (
            "batch_size_changed_jsonl",
            "batch_size_differs batch_change_in_config_and_log behaves_differently_after_change restart_redid_little",
            "other_settings_differ rate_setting_differs restarted came_back_whole loss_higher_after_restart spike_after_restart work_lost_share",
            "decays_after_restart optimizer_counted_anew",
        ),
        (
            "config_changed_jsonl",
            "other_settings_differ behaves_differently_after_change loss_higher_after_restart",
            "batch_size_differs decays_after_restart came_back_whole",
            "batch_change_in_config_and_log optimizer_count_continues",
        ),
        (
            "optimizer_lost_jsonl",
            "optimizer_counted_anew optimizer_not_saved spike_after_restart restart_at_trouble",
            "optimizer_count_continues came_back_whole",
            "scheduler_ran_ahead",
        ),
        (
            "rollback_tensorboard",
            "restarted work_lost_share came_back_whole",
            "restart_redid_little loss_higher_after_restart",
            "batch_size_differs",
        ),
        ("data_restarted_jsonl", "restart_redid_little", "came_back_whole", "scheduler_counted_anew"),
        ("bad_batch_jsonl", "", "restart_at_trouble batch_size_differs", "other_settings_differ behaves_differently_after_change"),
    ],
)
def test_samples(sample: str, seen: str, absent: str, cannot_tell: str) -> None:
    for state, names in ((SEEN, seen), (ABSENT, absent), (CANNOT_TELL, cannot_tell)):
        for name in names.split():
            found = SIGNS[name](symptoms(sample))
            assert found.state == state, (name, found.text)


def twice(after: float, *findings: Finding[Any]) -> Symptoms:
    """Two attempts of 200 steps; the loss of the second stands `after` times as high, for forty steps."""
    x = noisy(400, 0.01)
    x[200:240] *= after
    run = run_of({"loss.train": x, "lr": np.full(400, 1e-3)}, attempts=[0] * 200 + [1] * 200)
    run.attempts[0]["steps"], run.attempts[1]["steps"] = [0, 199], [200, 399]
    return Symptoms(run, (*pipeline.detect(run)[0], *findings))


@pytest.mark.parametrize(("after", "higher"), [(1.5, SEEN), (0.6, ABSENT), (1.0, ABSENT)])
def test_the_loss_across_a_restart(after: float, higher: str) -> None:
    s = twice(after)
    assert resumed.loss_higher_after_restart(s).state == higher
    assert resumed.decays_after_restart(s).state == (SEEN if higher == SEEN else CANNOT_TELL)
    assert resumed.came_back_whole(s).state == (SEEN if after == 1 else ABSENT)


def test_a_spike_at_the_restart_is_looked_for_near_it() -> None:
    base = next(f for f in symptoms("bad_batch_jsonl").findings if isinstance(f.facts, loss_spike.Facts))
    assert resumed.spike_after_restart(twice(1.0)).state == ABSENT
    assert resumed.restart_at_trouble(symptoms("bad_batch_jsonl")).state == ABSENT
    assert base.title in resumed.restart_at_trouble(symptoms("bad_batch_jsonl")).findings[0].title


@pytest.mark.parametrize(
    ("what", "name"),
    [("scheduler_anew", "scheduler_counted_anew"), ("scheduler_ahead", "scheduler_ran_ahead"), ("optimizer_empty", "optimizer_not_saved")],
)
def test_what_the_detector_counted(what: str, name: str) -> None:
    facts = checkpoint_state.Facts(what, age=100, step=300, since=201, times=4.0)
    found = Finding("checkpoint_state", "checkpoint_state", "The count is another one", 201, 300, "warning", facts=facts)
    assert SIGNS[name](twice(1.0, found)).state == SEEN
    assert SIGNS[name](twice(1.0)).state == CANNOT_TELL


@pytest.mark.parametrize(
    ("text", "config", "state"),
    [
        ("resuming from ck_300.pt (model, ema)", {}, SEEN),
        ("=> resuming from last.pt (step 450) keys ['net', 'step']", {}, SEEN),
        ("resuming from ck_300.pt (model, opt, ema)", {}, CANNOT_TELL),
        ("resuming from ck_300.pt (epoch 4, step 300)", {}, CANNOT_TELL),  # not what was loaded
        ("resuming from ck_300.pt", {"no_load_optim": True}, SEEN),
        ("resuming from ck_300.pt", {"load_optimizer": False}, SEEN),
        ("resuming from ck_300.pt", {"no_load_optim": False, "load_optimizer_states": True}, CANNOT_TELL),
    ],
)
def test_a_restart_that_says_what_it_loads(text: str, config: dict[str, bool], state: str) -> None:
    event = {"kind": "resume", "text": text, "level": "info", "source": "train.log", "at": 7, "step": 300}
    run = run_of({"loss.train": noisy(400, 0.01)}, config=config, events=[event])
    assert saved_state.optimizer_said_lost(Symptoms(run, ())).state == state

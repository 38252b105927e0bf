"""Signs of the data's order, and of changes that the config announces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from forensics.case import BaseFacts, Finding
from forensics.detectors import config_change, dataset_loss, level_shift, loss_spike, repeated_data, spike_data
from forensics.errors import CannotTell
from forensics.evidence import found as finding
from forensics.run.announced import announced
from forensics.signs import data_order as D
from forensics.signs import health as W
from forensics.signs.sign import Sign, Symptoms
from parsers.tables import SCHEMAS, Run
from tests.forensics.curves import run_of

T = np.arange(400)
RNG = np.random.default_rng(3)
LOSS = 1 + 2 * np.exp(-T / 60) + 0.02 * RNG.standard_normal(400)
STRETCH = LOSS + np.where((T >= 200) & (T < 240), 2.0, 0)
ONCE = LOSS + np.where(T == 200, 5.0, 0)
TWICE = ONCE + np.where(T == 300, 5.0, 0)
STAGES = {"curriculum": [{"from_iter": 0, "data": "a"}, {"from_iter": 200, "data": "b"}]}


def some(facts: BaseFacts, step: int = 200) -> Finding[Any]:
    return finding(facts, "What was found", (step, 300), "warning")


ATTEMPTS = [0] * 200 + [1] * 200


def run(loss: Any = LOSS, batches: bool = False, **more: Any) -> Run:
    made = run_of({"loss.train": loss}, **more)
    if batches:
        attempts = list(more.get("attempts", [0] * len(loss)))
        rows: dict[str, list[Any]] = {c: [None] * len(loss) for c in SCHEMAS["batches"].names}
        rows |= {"step": list(range(len(loss))), "attempt": attempts, "sample": [str(i) for i in range(len(loss))]}
        rows["shard"] = [f"shard-{i // 40}" for i in range(len(loss))]
        made.tables["batches"] = pa.table({c: pa.array(v) for c, v in rows.items()})
    return made


def symptoms(made: Run, *more: Finding[Any]) -> Symptoms:
    out = list(more)
    for detector in (loss_spike, level_shift, config_change):
        try:
            out += detector.detect(made)
        except CannotTell:
            continue
    return Symptoms(made, tuple(out))


COMMON = spike_data.Common("shared", 1e-5, [200, 300], "sample", "7", 2, 2, 9, 0)
PLACE = spike_data.Place("recurring", 1e-3, [100, 200], 0.5, 2, 3, 100.0, False, None)
WORSE = dataset_loss.Facts("eval/wiki", 0.5, 200, 1, 100)
AGAIN = repeated_data.Facts("repeated", 200, 200, True, "by its samples", 1, None, None, lower=0.1, joins=300)
HEARD = replace(AGAIN, how="by the ups and downs of the loss", p=1e-4, from_start=False, lower=None)
DEALT = replace(AGAIN, what="reshuffled", share=0.5)

CASES: list[tuple[Callable[[Symptoms], Sign], str, Symptoms]] = [
    (D.spikes_share_samples, "seen", symptoms(run(), some(COMMON))),
    (D.spikes_share_samples, "absent", symptoms(run(TWICE, batches=True))),
    (D.spikes_share_samples, "cannot tell", symptoms(run(TWICE))),
    (D.spikes_same_place_in_epoch, "seen", symptoms(run(), some(PLACE))),
    (D.spikes_same_place_in_epoch, "cannot tell", symptoms(run(), some(replace(PLACE, seam=True)))),
    (D.spikes_same_place_in_epoch, "cannot tell", symptoms(run(TWICE))),
    (D.spikes_same_place_in_epoch, "absent", symptoms(run_of({"loss.train": TWICE, "epoch": T / 100}))),
    (D.stretch_is_a_shard, "seen", symptoms(run(STRETCH, batches=True))),
    (D.stretch_is_a_shard, "absent", symptoms(run(LOSS + np.where((T >= 215) & (T < 255), 2.0, 0), batches=True))),
    (D.stretch_is_a_shard, "cannot tell", symptoms(run(STRETCH))),
    (D.one_dataset_got_worse, "seen", symptoms(run(), some(WORSE))),
    (D.one_dataset_got_worse, "cannot tell", symptoms(run())),
    (D.dataset_worse_at_jump, "seen", symptoms(run(ONCE), some(WORSE))),
    (D.dataset_worse_at_jump, "absent", symptoms(run(ONCE), some(replace(WORSE, step=20)))),
    (D.dataset_worse_at_jump, "cannot tell", symptoms(run(ONCE))),
    (D.samples_repeated, "seen", symptoms(run(), some(AGAIN))),
    (D.samples_repeated, "absent", symptoms(run(batches=True))),
    (D.samples_repeated, "cannot tell", symptoms(run())),
    (D.samples_skipped, "seen", symptoms(run(), some(replace(AGAIN, what="skipped")))),
    (D.samples_skipped, "absent", symptoms(run(batches=True, attempts=ATTEMPTS))),
    (D.samples_skipped, "cannot tell", symptoms(run(batches=True))),
    (D.samples_again_within_epoch, "seen", symptoms(run(), some(DEALT))),
    (D.samples_again_within_epoch, "absent", symptoms(run(batches=True, attempts=ATTEMPTS))),
    (D.loss_says_samples_repeat, "seen", symptoms(run(), some(HEARD))),
    (D.loss_says_samples_repeat, "absent", symptoms(run(attempts=ATTEMPTS))),
    (D.loss_says_samples_repeat, "cannot tell", symptoms(run())),
    (D.begins_with_first_batch, "seen", symptoms(run(), some(AGAIN))),
    (D.begins_with_first_batch, "absent", symptoms(run(), some(HEARD))),
    (D.begins_with_first_batch, "cannot tell", symptoms(run())),
    (D.data_settings_changed, "seen", symptoms(run(STRETCH, config=STAGES))),
    (D.data_settings_changed, "absent", symptoms(run(LOSS, config=STAGES))),
    (D.data_settings_changed, "cannot tell", symptoms(run(STRETCH))),
    (W.changes_as_configured, "seen", symptoms(run(STRETCH, config=STAGES))),
    (W.changes_as_configured, "absent", symptoms(run(LOSS + np.where(T == 300, 5.0, 0), config=STAGES))),
    (W.changes_as_configured, "cannot tell", symptoms(run(STRETCH))),
    (W.changes_as_configured, "cannot tell", symptoms(run(LOSS, config=STAGES))),
]


@pytest.mark.parametrize(("look", "state", "s"), CASES, ids=[f"{c[0].__name__}-{c[1]}" for c in CASES])
def test_each_state(look: Callable[[Symptoms], Sign], state: str, s: Symptoms) -> None:
    found = look(s)
    assert found.state == state, found.text
    assert found.text.endswith(".")


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (STAGES, [(200, "data")]),
        ({"note": "accumulation 1 -> 4 from iter 300 on, planned"}, [(300, "batch")]),
        ({"note": "at step 300 the loss jumped"}, []),
        ({"ic_weight": "1 until 1500, 30 until 3000, 300 after"}, [(1500, "loss"), (3000, "loss")]),
        ({"curriculum": "numeric until 160, then words, then mixed with ordinals at 290"}, [(160, "data"), (290, "data")]),
        ({"note": "was fine until 1500"}, []),
        ({"data_mix": {"100": "a", "250": "b"}}, [(100, "data"), (250, "data")]),
        ({"batch_plan.0": 32, "batch_plan.500": 64, "train.accum.900": 4, "layers.2": 64}, [(500, "batch"), (900, "batch")]),
        ({"eval_interval": 300, "steps": 300, "layers": [{"from": 3}]}, []),
        (
            {"stages": [{"classes": [0, 1], "steps": 300}, {"classes": [2, 3], "steps": 300}, {"classes": [4], "steps": 300}]},
            [(300, "data"), (600, "data")],
        ),
        ({"stages": [{"step": 300, "classes": [0, 1]}, {"step": 900, "classes": [2, 3]}]}, [(300, "data"), (900, "data")]),
    ],
)
def test_steps_that_a_config_announces(config: dict[str, Any], told: list[tuple[int, str]]) -> None:
    assert [(a.step, a.about) for a in announced(run(config=config))] == told


def test_a_stage_that_only_the_log_announces() -> None:
    begins = {"kind": "stage", "text": "curriculum: horizon 1.0 (stage 2/3)", "level": "info", "source": "train.log", "at": 9, "step": 200}
    (told,) = announced(run(events=[begins]))
    assert (told.step, told.about, told.where) == (200, "data", "train.log line 9")
    assert D.data_settings_changed(symptoms(run(STRETCH, events=[begins]))).state == "seen"
    assert not announced(run(events=[begins | {"step": None}]))  # the first stage, before the first step


def test_a_change_of_the_batch_at_a_restart_that_the_log_calls_planned() -> None:
    planned = {
        "kind": "stage",
        "text": "planned: double the batch from here on",
        "level": "info",
        "source": "train.log",
        "at": 9,
        "step": 198,
    }
    changed = some(config_change.Facts(["batch"], [["64", "128"]], 200, batch=True))
    for events, state in (([planned], "seen"), ([planned | {"step": 90}], "cannot tell")):
        run = run_of({"loss.train": LOSS}, events=events, attempts=ATTEMPTS)
        run.attempts[1]["steps"] = [200, 399]
        assert W.changes_as_configured(Symptoms(run, (changed,))).state == state


def test_a_shard_gives_its_steps() -> None:
    found = D.stretch_is_a_shard(symptoms(run(STRETCH, batches=True)))
    assert found.numbers == {"shard": "shard-5", "first": 200, "last": 239}


LOOKS = [f for m in (D, W) for n, f in vars(m).items() if callable(f) and getattr(f, "__module__", "") == m.__name__ and n[0] != "_"]


@pytest.mark.parametrize("look", LOOKS, ids=[f.__name__ for f in LOOKS])
@pytest.mark.parametrize("x", [np.zeros(0), np.array([1.0]), np.full(30, np.nan), np.zeros(30)], ids=["empty", "one", "nan", "zero"])
def test_odd_runs_raise_nothing(look: Callable[[Symptoms], Sign], x: Any) -> None:
    made = run_of({"loss.train": x, "loss.eval": x, "lr": x, "epoch": x, "batch.size": x}, config=STAGES)
    assert look(Symptoms(made, ())).state in ("absent", "cannot tell", "seen")

"""Samples a step that change for good, by whatever the log counts; and counts that move without it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forensics
from forensics import evidence
from forensics.batches.batch_changes import batch_change
from forensics.case import Finding
from forensics.detectors import config_change, resume_break
from forensics.errors import CannotTell
from forensics.signs.changed_settings import batch_size_differs, behaves_differently_after_change, other_settings_differ
from forensics.signs.sign import Symptoms
from forensics.spikes.excursions import Floats
from parsers.tables import Run
from tests.forensics.curves import run_of

T = np.arange(120)
SIZES = np.where(T < 60, 48.0, 6.0)
LOSS = (2 - T / 200) * np.exp(0.02 * np.random.default_rng(4).standard_normal(120))


def epochs(*lengths: int, rows: int = 1) -> Mapping[str, Any]:
    """Steps and epochs of a log with some rows an epoch, the last of them at its end."""
    ends = np.cumsum(lengths)
    steps = [int(end - n + n * (r + 1) // rows) for end, n in zip(ends, lengths, strict=True) for r in range(rows)]
    return {"steps": steps, "metrics": {"epoch": np.repeat(np.arange(len(lengths), dtype=float), rows)}}


def test_the_steps_that_each_epoch_tells() -> None:
    took = np.repeat([17.0, 137.0], 8)
    found = batch_change(run_of({"loss.train": np.linspace(3, 1, 16), "step": took}))
    assert found is not None
    assert (found.step, found.before, found.after, found.of_epoch) == (8, 17, 137, True)
    assert batch_change(run_of({"loss.train": np.linspace(3, 1, 16), "step": np.repeat([100.0, 101.0], 8)})) is None


@pytest.mark.parametrize(
    "metrics",
    [
        {"batch.size": SIZES},
        {"other/train/samples": SIZES},
        {"other/examples_per_step": SIZES},
        {"other/bs": SIZES},
        {"other/batch": SIZES},
        {"samples.seen": np.cumsum(SIZES)},
        {"samples.seen": np.cumsum(SIZES) % 1000},  # counted anew with each pass over the data
        {"samples.seen": SIZES},  # called so by who means those of a step
        {"tokens.seen": SIZES},
    ],
)
def test_every_count_of_samples_shows_the_change(metrics: dict[str, Floats]) -> None:
    found = batch_change(run_of(metrics))
    assert found is not None
    assert (found.step, found.before, found.after, found.of_epoch) == (60, 48, 6, False)


@pytest.mark.parametrize(
    "metrics",
    [
        {"other/train/samples": np.where(T % 20 == 19, 6.0, 48.0)},  # a last short batch each epoch
        {"other/train/samples": np.minimum(48.0, 8.0 * (1 + T // 20))},  # a ramp
        {"other/val/samples": SIZES},  # of an evaluation
        {"other/train/samples": 48.0 * (T + 1)},  # so far
        {"tokens.seen": SIZES + T % 7},  # texts of other lengths
        {"tokens.seen": np.cumsum(SIZES)},  # so far: longer texts from a step on are no larger batch
        {"other/train/samples": np.full(120, 48.0)},
        {"samples.seen": 48.0 * (T + 1)},
        {"samples.seen": 48.0 * (T + 1) % 1000},
        {"samples.seen": SIZES * (1 + T % 2)},  # counted anew with every other row
        {"loss.train": LOSS},
    ],
)
def test_counts_that_move_without_a_change_of_the_batch(metrics: dict[str, Floats]) -> None:
    assert batch_change(run_of(metrics)) is None


@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize("last", [600, 200])  # a run may end within an epoch
def test_epochs_of_other_lengths_show_it_too(rows: int, last: int) -> None:
    told = epochs(*[40] * 5, *[600] * 5, last, rows=rows)
    found = batch_change(run_of(told["metrics"], steps=told["steps"]))
    assert found is not None
    assert (found.step, found.before, found.after, found.of_epoch) == (200, 40, 600, True)


@pytest.mark.parametrize(
    "lengths",
    [
        [40] * 10,
        [40] * 9 + [7],  # stopped within the last
        [40] * 5 + [44] * 5,  # some data were added
        [40, 60, 40, 60, 40, 60, 40, 60],  # batches by length
        [40] * 8 + [600] * 2,
    ],
)
def test_epochs_that_keep_their_length_or_have_none(lengths: list[int]) -> None:
    told = epochs(*lengths)
    assert batch_change(run_of(told["metrics"], steps=told["steps"])) is None


def test_the_noise_of_the_loss_says_that_it_matters() -> None:
    louder = np.where(T < 60, LOSS, LOSS * np.exp(0.08 * np.random.default_rng(5).standard_normal(120)))
    for loss, state in ((louder, "seen"), (LOSS, "absent")):
        run = run_of({"loss.train": loss, "other/train/samples": SIZES})
        s = Symptoms(run, tuple(config_change.detect(run)))
        assert batch_size_differs(s).state == "seen"
        assert behaves_differently_after_change(s).state == state


def test_an_interval_in_which_the_size_changed_is_no_size() -> None:
    found = batch_change(run_of({"samples.seen": np.cumsum(np.where(T == 60, 20.0, SIZES))}))
    assert found is not None and (found.step, found.before, found.after) == (60, 48, 6)


@pytest.mark.parametrize("l2", ["0.02", "2e-05"])
def test_settings_that_mlflow_keeps_in_files_of_their_own(tmp_path: Path, l2: str) -> None:
    """The launch that ran first is the one before, whatever the folders are called."""
    for name, begin, value in (("b" * 32, 0, "2e-05"), ("a" * 32, 10, l2)):
        home = tmp_path / "mlruns" / "1" / name
        for kind, files in {
            "params": {"lr": "0.003", "dim": "16", "l2": value},
            "metrics": {
                "train_loss": "".join(f"{1_700_000_000_000 + 1000 * (begin + i)} {2 - 0.05 * (begin + i)} {begin + i}\n" for i in range(10))
            },
            ".": {"meta.yaml": f"run_id: {name}\nstart_time: {1_700_000_000_000 + 1000 * begin}\nstatus: 3\n"},
        }.items():
            (home / kind).mkdir(parents=True, exist_ok=True)
            for file, text in files.items():
                (home / kind / file).write_text(text)
    (tmp_path / "run.out").write_text("".join(f"epoch {i} train loss {2 - 0.05 * i:.4f}\n" for i in range(20)))
    run = forensics.read(str(tmp_path))
    assert len(run.attempts) == 2
    changed = [f for f in config_change.detect(run) if "launches" in f.title]
    assert [f.title for f in changed] == (["Config changed between launches: l2 from 2e-05 to 0.02"] if l2 == "0.02" else [])


@pytest.mark.parametrize(
    ("second", "changed"),
    [
        ("flags: --batch=512 --lr=0.1 --dim=8", ["Config changed between launches: batch from 64 to 512"]),
        ("flags: --batch=64 --lr=0.1 --dim=8", []),
        ("", []),  # told once: it holds for both
    ],
)
def test_settings_in_a_log_that_tells_them_at_each_launch_while_a_table_has_the_metrics(
    tmp_path: Path, second: str, changed: list[str]
) -> None:
    (tmp_path / "train.log").write_text(f"flags: --batch=64 --lr=0.1 --dim=8\n{second}\nrestored state.pt: step 60\n")
    rows = [f"{i},{1 + 2 / (1 + i):.4f}\n" for i in (*range(61), *range(50, 120))]
    (tmp_path / "progress.csv").write_text("".join(["step,loss\n", *rows]))
    run = forensics.read(str(tmp_path))
    assert len(run.attempts) == 2
    assert [f.title for f in _found(run)] == changed


def _found(run: Run) -> list[Finding[Any]]:
    try:
        return list(config_change.detect(run))
    except CannotTell:
        return []


@pytest.mark.parametrize(("printed", "alike"), [("(0.25, 1.0)", True), ("(0.5, 1.0)", False)])
def test_a_list_is_the_tuple_that_another_file_prints(tmp_path: Path, printed: str, alike: bool) -> None:
    (tmp_path / "config.json").write_text('{"crop": [0.25, 1.0], "dim": 8, "depth": 2, "width": 4}')
    (tmp_path / "train.log").write_text(f"Namespace(crop={printed}, dim=8, depth=2, width=4)\nrestored state.pt: step 60\n")
    rows = [f"{i},{1 + 2 / (1 + i):.4f}\n" for i in (*range(61), *range(50, 120))]
    (tmp_path / "progress.csv").write_text("".join(["step,loss\n", *rows]))
    run = forensics.read(str(tmp_path))
    assert len(run.attempts) == 2
    assert bool(_found(run)) is not alike


@pytest.mark.parametrize(("level", "state"), [(0.5, "seen"), (1.0, "absent")])
def test_a_lower_level_behind_the_launch_is_another_one(level: float, state: str) -> None:
    loss = np.where(T < 60, 1.0, level) + 0.01 * np.random.default_rng(3).standard_normal(120)
    run = run_of({"loss.train": loss}, attempts=[0] * 60 + [1] * 60)
    facts = config_change.Facts(["batch"], [["256", "32"]], 60, True)
    change = evidence.found(facts, "Config changed", (60, 60), "warning", evidence.text("batch", ["32"]))
    s = Symptoms(run, (change, *resume_break.detect(run)))
    assert behaves_differently_after_change(s).state == state


@pytest.mark.parametrize(("launches", "severity", "batch"), [(1, "info", False), (2, "warning", True)])
def test_epochs_of_another_length_within_a_launch_are_of_more_data(launches: int, severity: str, batch: bool) -> None:
    lengths = epochs(*[40] * 5, *[600] * 5)
    attempts = [0] * 5 + [launches - 1] * 5
    run = run_of(lengths["metrics"] | {"loss.train": np.linspace(2, 1, 10)}, steps=lengths["steps"], attempts=attempts)
    for attempt, steps in zip(run.attempts, ([40, 200], [800, 3200]), strict=False):  # one row an epoch, at its end
        attempt["steps"] = steps
    assert [(f.severity, f.facts.batch) for f in _found(run) if isinstance(f.facts, config_change.Facts)] == [(severity, batch)]


@pytest.mark.parametrize(("before", "after", "state"), [(32.0, 64.0, "absent"), (64.0, 32.0, "seen"), ("32", "64", "absent")])
def test_what_a_larger_batch_brings_is_no_harm(before: Any, after: Any, state: str) -> None:
    """A loss that is lower by a tenth behind the launch, and scatters less."""
    loss = np.where(T < 60, 1.0, 0.9) + np.where(T < 60, 0.02, 0.01) * np.random.default_rng(3).standard_normal(120)
    run = run_of({"loss.train": loss}, attempts=[0] * 60 + [1] * 60)
    facts = config_change.Facts(["global_batch_size"], [[before, after]], 60, True)
    change = evidence.found(facts, "Batch size changed", (60, 60), "warning", evidence.text("batch", ["64"]))
    s = Symptoms(run, (change, *resume_break.detect(run)))
    assert behaves_differently_after_change(s).state == state


def test_processes_that_go_with_another_batch_are_no_other_setting(tmp_path: Path) -> None:
    """What shares the batch out is the batch; the rate is a setting of its own."""
    lines = "step={n} loss={loss:.4f} grad_norm={norm:.4f}\n"
    for rate, state in ((0.003, "absent"), (0.001, "seen")):
        text = ""
        for size, start, lr, norm in ((4, 0, 0.003, 0.7), (2, 200, rate, 1.0)):
            text += f"world_size={size} global_batch={8 * size} lr={lr} start_step={start}\n"
            text += "".join(
                lines.format(n=n, loss=2 - n / 500 + n % 3 / 100, norm=norm + n % 5 / 100) for n in range(start + 5, start + 205, 5)
            )
        (tmp_path / "train.log").write_text(text)
        run = forensics.read(str(tmp_path))
        s = Symptoms(run, tuple(config_change.detect(run)))
        assert other_settings_differ(s).state == state
        assert batch_size_differs(s).state == behaves_differently_after_change(s).state == "seen"


@pytest.mark.parametrize(
    ("after", "digits", "steps"),
    [(1 / 750, 2, 750), (1 / 94, 4, 94), (1 / 47, 2, None), (1 / 55, 2, None)],  # fewer samples a step; the same; data that grew
)
def test_the_share_of_an_epoch_that_a_step_takes(after: float, digits: int, steps: int | None) -> None:
    step = np.arange(25, 925, 25)
    epoch = np.round(np.where(step <= 450, step / 47, 450 / 47 + (step - 450) * after), digits)
    found = batch_change(run_of({"epoch": epoch}, steps=step.tolist()))
    assert (found is None) == (steps is None)
    assert found is None or (found.before == 47 and abs(found.after - (steps or 0)) < 0.05 * (steps or 0) and found.of_epoch)


def test_steps_of_an_epoch_that_change_at_a_restart_are_of_the_batch() -> None:
    step = np.arange(25, 925, 25)
    epoch = np.where(step <= 450, step / 47, 450 / 47 + (step - 450) / 188)
    run = run_of({"epoch": epoch, "loss.train": 2 - step / 1000}, steps=step.tolist(), attempts=(step > 450).astype(int).tolist())
    run.attempts = [{"index": i, "steps": [a, b]} for i, (a, b) in enumerate([(25, 450), (475, 900)])]
    assert [(f.severity, f.facts.at_restart) for f in config_change.detect(run)] == [("warning", True)]


@pytest.mark.parametrize(("after", "state"), [(0.12, "seen"), (0.03, "absent")], ids=["it scatters more", "as before"])
def test_a_smaller_batch_scatters_more_as_a_share_of_a_falling_loss(after: float, state: str) -> None:
    """Sixteen values on either side, the loss a tenth of what it was."""
    at = np.arange(32)
    loss = np.exp(-at / 8 + np.where(at < 16, 0.03, after) * np.random.default_rng(2).standard_normal(32))
    run = run_of({"batch.size": np.where(at < 16, 64.0, 8.0), "loss.train": loss}, interval=10)
    assert behaves_differently_after_change(Symptoms(run, tuple(config_change.detect(run)))).state == state


def test_the_place_within_an_epoch_is_no_size() -> None:
    assert batch_change(run_of({"other/batch": np.asarray(T % 40, float) * 10 + 10})) is None


def test_a_policy_that_behaves_differently_after_a_change() -> None:
    """Its loss is a surrogate that need not fall; that it leaves its level where a setting changed tells all the same."""
    attempts = [0] * 60 + [1] * 60
    value = np.where(T < 60, 3.0 - T / 100, 40.0 * np.exp(-(T - 60) / 4) + 2.4) * np.exp(
        0.02 * np.random.default_rng(5).standard_normal(120)
    )
    run = run_of({"loss.train": value, "rl.reward": 20 + T + 0.0, "rl.kl": 0.01 + 0 * T}, attempts=attempts)
    changed = evidence.found(config_change.Facts(["gamma"], [["0.98", "0.5"]], 60, False), "gamma", (60, 60), "warning")
    found = behaves_differently_after_change(Symptoms(run, (changed, *resume_break.detect(run))))
    assert found.state == "seen", found.text


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ('"[0.9, 0.999]"', "[0.9, 0.999]", True),  # a summary of TensorBoard keeps the text of the list that a file of settings keeps
        ('"[0.9, 0.99]"', "[0.9, 0.999]", False),
        ("1", "1.0", True),
        ('["a", "b"]', '["b", "a"]', True),
        ('"a"', '"b"', False),
    ],
)
def test_values_that_two_files_write_otherwise_are_one(old: str, new: str, same: bool) -> None:
    assert config_change._same(old, new) == same


@pytest.mark.parametrize(
    ("key", "state"), [("training.ignore_data_skip", "cannot tell"), ("reset_dataloader", "cannot tell"), ("dropout", "seen")]
)
def test_where_a_launch_begins_in_the_data_is_no_other_setting(key: str, state: str) -> None:
    run = run_of({"loss.train": np.linspace(2, 1, 120)}, attempts=[0] * 60 + [1] * 60)
    facts = config_change.Facts([key], [[False, True]], 60, False)
    change = evidence.found(facts, "A setting changed", (60, 60), "warning", evidence.text("settings", [key]))
    assert other_settings_differ(Symptoms(run, (change,))).state == state


def test_a_counter_of_two_launches_is_read_within_each() -> None:
    """The second one goes on from a checkpoint, with smaller batches; between them the counter jumps by what was not logged."""
    seen = np.cumsum(SIZES) + np.where(T < 60, 0, 100)
    found = batch_change(run_of({"samples.seen": seen}, attempts=(T >= 60).astype(int).tolist()))
    assert found is not None
    assert (found.before, found.after) == (48, 6)

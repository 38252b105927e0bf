"""What shells, terminals and schedulers put into a log, and which of several launches its last words are of: pairs."""

from __future__ import annotations

from pathlib import Path

import pytest

import forensics
import parsers
from forensics.run import how_it_ended
from tests.parsers.test_console_tables import series

EMPTY = "System.Management.Automation.RemoteException\n"
SHELL = "At line:1 char:1\n+ python train.py 2>&1 | Tee-Object train.log\n    + CategoryInfo          : NotSpecified: ({}:String) [], RemoteException\n"
SHELL += "    + FullyQualifiedErrorId : NativeCommandError\n \n"
STEPS = "".join(f"step {n} loss {3 - n / 10:.2f}\n" for n in range(1, 9))


def ending(folder: Path, text: str, name: str = "train.log") -> how_it_ended.Ending:
    (folder / name).write_text(text)
    return how_it_ended.ending(forensics.read(str(folder)))


def trace(error: str) -> str:
    return f'Traceback (most recent call last):\n  File "/x/train.py", line 9, in <module>\n    main()\n{error}\n'


def test_an_empty_line_that_powershell_shows_as_an_error_is_none(tmp_path: Path) -> None:
    found = ending(tmp_path, f"{STEPS}End of training\n{EMPTY}model.bin: 100%|####| 2/2 [00:01<00:00, 9.5MB/s]\n")
    assert (found.kind, found.says) == ("finished", "End of training")


@pytest.mark.parametrize("error", ["ValueError: two shapes differ", "acme.RemoteException: gone"])
def test_an_exception_that_powershell_shows_is_one(tmp_path: Path, error: str) -> None:
    first, *others = trace(error).splitlines(keepends=True)
    text = STEPS + f"python.exe : {first}" + SHELL.format(first.strip()) + "".join(others) + EMPTY
    assert (found := ending(tmp_path, text)).kind == "exception"
    assert found.says == error


def test_a_frame_that_a_window_broke_before_the_name_of_its_function(tmp_path: Path) -> None:
    broken = trace("ValueError: two shapes differ").replace("in <module>\n", "in \nrun_until_complete\n")
    found = ending(tmp_path, STEPS + broken)
    assert (found.kind, found.says) == ("exception", "ValueError: two shapes differ")


@pytest.mark.parametrize("clock", ["[08/21/25 02:37:18]", "08/21 [02:37:18]", "08/21/2025 02:37:18"])
def test_a_date_in_front_is_no_count_and_a_place_behind_no_value(tmp_path: Path, clock: str) -> None:
    """rich's handler of logging: the file that logs stands at the right."""
    text = "".join(f"{clock} INFO     step {n} loss {3 - n / 10:.2f}      train.py:{500 + n}\n" for n in range(1, 9))
    found = series(tmp_path, text)
    assert found == {"loss": [(n, round(3 - n / 10, 2)) for n in range(1, 9)]}


def test_a_fraction_in_front_of_a_line_without_a_clock_counts(tmp_path: Path) -> None:
    assert [step for step, _ in series(tmp_path, "".join(f"{n}/21 loss {3 - n / 10:.2f}\n" for n in range(1, 9)))["loss"]] == list(
        range(1, 9)
    )


SETTINGS = '{{"algo": "PPO", "seed": 17, "n_epochs": {}, "gamma": 0.99, "clip": 0.2, "from_step": {}}}\n'


@pytest.mark.parametrize(
    ("epochs", "between", "launches"),
    [
        (20, "", [[10, 400], [410, 800]]),  # other values
        (8, "loading checkpoint from step 400\n", [[10, 400], [410, 800]]),  # another line of a launch
        (8, "", [[10, 800]]),  # printed twice
    ],
)
def test_settings_that_are_stated_again_begin_a_launch(tmp_path: Path, epochs: int, between: str, launches: list[list[int]]) -> None:
    first, second = ("".join(f"step {n} loss {3 - n / 500:.3f}\n" for n in steps) for steps in (range(10, 401, 10), range(410, 801, 10)))
    again = SETTINGS.format(epochs, 0 if epochs == 8 else 400)
    (tmp_path / "train.log").write_text(SETTINGS.format(8, 0) + first + again + between + second)
    run = parsers.read(tmp_path)
    assert [a["steps"] for a in run.attempts] == launches


def test_settings_that_are_printed_with_each_epoch_begin_no_launch(tmp_path: Path) -> None:
    text = "".join(SETTINGS.format(n, 0) + "".join(f"step {n * 10 + i} loss {3 - n / 10:.3f}\n" for i in range(10)) for n in range(9))
    (tmp_path / "train.log").write_text(text)
    assert len(parsers.read(tmp_path).attempts) == 1


@pytest.mark.parametrize("name", ["Fetching 18 files", "Loading checkpoint shards", "Downloading shards"])
def test_a_bar_of_a_preparation_is_no_step(tmp_path: Path, name: str) -> None:
    bar = "".join(f"{name}: {100 * n // 4}%|{'#' * n:4}| {n}/4 [00:01<00:01,  3.54it/s]\n" for n in range(5))
    (tmp_path / "train.log").write_text(bar + trace("ValueError: no such split"))
    run = parsers.read(tmp_path)
    assert not run.attempts and "resume" not in run.tables["events"]["kind"].to_pylist()


@pytest.mark.parametrize("name", ["Training", "loading", "Loading batches"])
def test_a_bar_that_measures_is_one_of_training(tmp_path: Path, name: str) -> None:
    bar = "".join(f"{name}: {25 * n}%|{'#' * n:4}| {n}/4 [00:01<00:01,  3.54it/s, loss={3 - n / 2}]\n" for n in range(5))
    assert [value for _, value in series(tmp_path, bar)["loss"]] == [3, 2.5, 2, 1.5, 1]


BROKEN = '  File "train.py", line 9\n    lr=1e-3  decay=0.1\n             ^\nSyntaxError: invalid syntax\n'


@pytest.mark.parametrize(
    ("last", "says"),
    [
        (BROKEN, "SyntaxError: invalid syntax"),
        (trace("KeyError: 'lr'"), "OutOfMemoryError"),  # a rank beside the one that ran out
    ],
)
def test_a_program_that_could_not_begin_was_started_after_all_above(tmp_path: Path, last: str, says: str) -> None:
    found = ending(tmp_path, trace("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB") + "loading data\n" * 40 + last)
    assert says in found.says and found.before_first_step


def limit(job: int, minute: int) -> str:
    return f"slurmstepd: error: *** JOB {job} ON n{job % 7} CANCELLED AT 2026-01-02T03:{minute:02}:00 DUE TO TIME LIMIT ***\n"


def test_of_several_jobs_in_a_log_the_last_one_ended_it(tmp_path: Path) -> None:
    text = trace("ValueError: no such split") + limit(1001, 5) + "loading data\n" * 40 + limit(1002, 9)
    assert "JOB 1002" in ending(tmp_path, text).says


def test_of_one_job_the_first_word_is_quoted(tmp_path: Path) -> None:
    text = "loading data\n" * 40 + limit(1001, 5) + limit(1001, 5).replace("n0", "n1").replace("CANCELLED", "CANCELLED,")
    assert "CANCELLED," not in ending(tmp_path, text).says


@pytest.mark.parametrize(
    ("text", "step", "unit"),
    [
        ("Epoch 1 completed\nSaved checkpoint @ epoch 1\nEpoch 2 completed\nSaved checkpoint @ epoch 2\n", 2, "epoch"),
        ("Saving model checkpoint to out/checkpoint-500\n", 500, "step"),
        ("loading data\n" * 3, None, "step"),
    ],
)
def test_a_log_that_measures_nothing_came_as_far_as_its_saves(tmp_path: Path, text: str, step: int | None, unit: str) -> None:
    found = ending(tmp_path, text + limit(1001, 5))
    assert (found.step, found.unit, found.before_first_step) == (step, unit, step is None)

"""Runs and attempts: a continuation needs evidence, whatever the files are; a beginning without any is another run."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

import forensics
import parsers
from forensics.run import facts
from parsers.runs.equal_values import equal_share, same_stretch
from parsers.tables import Run


def loss(step: int, seed: int = 0) -> float:
    return float(2.0 * np.exp(-step / 40) + 0.05 * np.random.default_rng((seed, step)).standard_normal() + 1)


def rows(steps: Iterable[int], seed: int = 0, clock: float | None = None, **more: float) -> str:
    times = {} if clock is None else {"time": clock}
    return "".join(json.dumps({"step": s, "loss": loss(s, seed)} | {k: v + s for k, v in times.items()} | more) + "\n" for s in steps)


def printed(steps: Iterable[int], seed: int = 0) -> str:
    return "".join(f"step {s} | loss {loss(s, seed):.4f} | lr 1.0e-03\n" for s in steps)


def attempts(run: Run) -> list[list[int]]:
    return [a["steps"] for a in run.attempts]


def write(folder: Path, **texts: str) -> Path:
    for name, text in texts.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


# --- one file


def test_two_trainings_in_one_log_are_two_runs(tmp_path: Path) -> None:
    banner = "Starting training\nNamespace(lr=0.001, epochs=3)\n"
    write(tmp_path, train_dot_log=banner + printed(range(60)) + "Training finished\n" + banner + printed(range(80), 1))
    runs = parsers.read_all(tmp_path)
    assert [attempts(r) for r in runs] == [[[0, 59]], [[0, 79]]]
    assert [Path(r.path).name for r in runs] == ["launch-1", "launch-2"]
    assert [attempts(r) for r in parsers.read_all(Path(runs[0].path))] == [[[0, 59]]]
    assert [r.tables["config"].num_rows for r in runs] == [2, 2]  # what a launch prints before its first row is its own


@pytest.mark.parametrize(("a", "b", "runs"), [("out", "err", 1), ("stdout", "stderr", 1), ("out", "log", 2)])
def test_the_two_streams_of_one_job_are_one_run(tmp_path: Path, a: str, b: str, runs: int) -> None:
    """One has the loss of each iteration, the other sums up an epoch under the same name."""
    (tmp_path / f"job_7.{a}").write_text("".join(f"Train: data epoch: [0]  [{i:3}/250]  loss: {loss(i):.4f}\n" for i in range(0, 250, 50)))
    (tmp_path / f"job_7.{b}").write_text("Averaged stats at epoch 0: loss: 1.7841\nepoch 0 loss: 1.7841\n")
    assert len(parsers.read_all(tmp_path)) == runs


def test_launches_that_left_a_row_or_two_are_runs_where_a_longer_one_begins_anew_behind_them(tmp_path: Path) -> None:
    epochs = [1, 2, 1, 2, *range(1, 30)]
    folder = write(tmp_path / "r", train_dot_log="".join(f"Epoch {e}/29 | train loss {3 / e:.3f} | val loss {4 / e:.3f}\n" for e in epochs))
    assert [attempts(run) for run in parsers.read_all(folder)] == [[[1, 2]], [[1, 2]], [[1, 29]]]
    summed_up = [*range(1, 30), 3, 1]
    folder = write(
        tmp_path / "s", train_dot_log="".join(f"Epoch {e}/29 | train loss {3 / e:.3f} | val loss {4 / e:.3f}\n" for e in summed_up)
    )
    assert [attempts(run) for run in parsers.read_all(folder)] == [[[1, 29]]]


@pytest.mark.parametrize(("laps", "runs"), [((30, 41, 35, 60), 4), ((40, 40, 40, 25), 1), ((4, 9, 5, 7), 1)])
def test_a_counter_that_is_set_back_from_other_ends_each_time_tells_launches(laps: tuple[int, ...], runs: int, tmp_path: Path) -> None:
    """Epochs come as far each time, and episodes are short; nothing else tells one from the other where only terms of a loss are printed."""
    text = "".join(f"{i} Image loss: {0.5 + (i * 7 % 5) / 10} Fake loss: {0.7 + (i * 3 % 4) / 10}\n" for lap in laps for i in range(lap))
    assert len(parsers.read_all(write(tmp_path, train_dot_log=text))) == runs


def test_tables_of_another_name_and_fewer_columns_beside_each_other_are_of_one_attempt(tmp_path: Path) -> None:
    """Episodes and evaluations of one training, without a clock; a file that is called after what is held out names its losses, too."""
    episodes = "step,return,length\n" + "".join(f"{20 * i},{i},{i}\n" for i in range(1, 50))
    evaluations = "step,return\n" + "".join(f"{200 * i},{10 * i}\n" for i in range(1, 5))
    [run] = parsers.read_all(write(tmp_path / "a", episodes_dot_csv=episodes, eval_dot_csv=evaluations))
    assert len(run.attempts) == 1
    losses = "step,loss\n" + "".join(f"{i},{3 / (i + 1)}\n" for i in range(50))
    held_out = "step,loss\n" + "".join(f"{i},{4 / (i + 1)}\n" for i in range(0, 50, 10))
    [run] = parsers.read_all(write(tmp_path / "b", train_dot_csv=losses, val_dot_csv=held_out))
    assert {(r["source"], r["name"]) for r in run.tables["metrics"].to_pylist()} == {("train.csv", "loss.train"), ("val.csv", "loss.eval")}


def test_a_path_to_a_launch_that_is_not_there_says_so(tmp_path: Path) -> None:
    write(tmp_path, train_dot_log=printed(range(60)))
    with pytest.raises(FileNotFoundError, match="no run launch-7"):
        parsers.read_all(tmp_path / "launch-7")


def test_a_step_in_the_middle_continues_and_the_place_is_told(tmp_path: Path) -> None:
    write(tmp_path, train_dot_log=printed(range(60)) + "Resuming from checkpoints/step_40.pt\n" + printed(range(41, 90), 1))
    (run,) = parsers.read_all(tmp_path)
    assert attempts(run) == [[0, 59], [41, 89]]
    shown = run.attempts[1]["evidence"]
    assert (shown.text, run.where(shown.source, shown.at)) == ("Resuming from checkpoints/step_40.pt", "train.log line 61")
    assert "evidence" not in run.attempts[0]


@pytest.mark.parametrize("said", ["Loaded checkpoint best.pt for evaluation\n", "Loading checkpoint pretrained.pt (step 4000)\n"])
def test_a_checkpoint_that_is_loaded_is_no_restart_by_itself(tmp_path: Path, said: str) -> None:
    write(tmp_path, train_dot_log=said + printed(range(60)) + said + printed(range(60, 90)))
    (run,) = parsers.read_all(tmp_path)
    assert attempts(run) == [[0, 89]]


def test_a_line_that_resumes_by_epoch_is_held_against_the_epochs(tmp_path: Path) -> None:
    rows = [f"{e}epoch:train:1-20batch: loss={9 / e:.3f}, grad_norm=0.4" for e in range(1, 15)]
    said = "The training was resumed using exp/checkpoint.pth (epoch 8)"
    write(tmp_path, nohup_dot_out="\n".join([*rows[:8], "reached 8 epochs, exiting", "Vocabulary size: 22", said, *rows[8:]]) + "\n")
    (run,) = parsers.read_all(tmp_path)
    assert len(run.attempts) == 2


def test_whole_seconds_are_no_pauses(tmp_path: Path) -> None:
    """Rows of a few milliseconds each: the second in which a job ended had begun before."""
    lines = [f"[19:04:{10 + s // 40:02d}] iter {s}/420 loss={loss(s):.4f}" for s in range(1, 200)]
    end = "slurmstepd: error: *** JOB 48377 ON gpu00 CANCELLED AT 2026-11-26T19:04:14 DUE TO TIME LIMIT ***"
    write(tmp_path, slurm_dot_out="\n".join(["Job 48377 starting on gpu00 at Thu Nov 26 19:04:10 2026", *lines, end]))
    (run,) = parsers.read_all(tmp_path)
    assert attempts(run) == [[1, 199]]


@pytest.mark.parametrize(("behind", "launches"), [(2, 1), (20, 2)])
def test_steps_that_a_job_makes_while_it_dies_are_no_launch(tmp_path: Path, behind: int, launches: int) -> None:
    end = "slurmstepd: error: *** JOB 48377 ON gpu00 CANCELLED AT 2026-11-26T19:04:14 ***\n"
    write(tmp_path, slurm_dot_out=printed(range(60)) + end + printed(range(60, 60 + behind)))
    (run,) = parsers.read_all(tmp_path)
    assert len(run.attempts) == launches


def test_a_scheduler_writes_into_a_bar(tmp_path: Path) -> None:
    end = " 61%|██\ufffdslurmstepd: error: *** JOB 48377 ON gpu00 CANCELLED AT 2026-11-26T19:04:14 ***\n"
    write(tmp_path, slurm_dot_out=printed(range(60)) + end)
    (run,) = parsers.read_all(tmp_path)
    assert [e["text"][:17] for e in run.tables["events"].to_pylist() if e["kind"] == "scheduler"] == ["slurmstepd: error"]


def test_a_counter_that_is_set_back_each_epoch_starts_nothing(tmp_path: Path) -> None:
    text = "".join(rows(range(50), seed=epoch, epoch=epoch) for epoch in range(3))
    write(tmp_path, log_dot_jsonl=text)
    (run,) = parsers.read_all(tmp_path)
    assert len(run.attempts) == 1


def test_where_the_epoch_has_not_grown_either_it_is_another_run(tmp_path: Path) -> None:
    text = "".join(rows(range(50 * e, 50 * e + 50), seed, epoch=e) for seed, epochs in ((0, 3), (1, 2)) for e in range(epochs))
    write(tmp_path, log_dot_jsonl=text)
    assert [attempts(r) for r in parsers.read_all(tmp_path)] == [[[0, 149]], [[0, 99]]]


def test_a_time_since_the_launch_that_falls_back_is_another_run_though_the_clock_goes_on(tmp_path: Path) -> None:
    polled = [(s, s) for s in range(60)] + [(s, 60 + s) for s in range(60)]
    lines = (json.dumps({"step": s, "loss": loss(s, int(at > s)), "time": 1.7e9 + at, "elapsed": 2.0 * s}) + "\n" for s, at in polled)
    write(tmp_path, log_dot_jsonl="".join(lines))
    assert [attempts(r) for r in parsers.read_all(tmp_path)] == [[[0, 59]], [[0, 59]]]


def test_the_time_of_each_iteration_is_no_time_since_the_launch(tmp_path: Path) -> None:
    took = np.random.default_rng(0).uniform(0.1, 0.2, 300)
    text = "".join(f"step {s} | loss {loss(s, n):.4f} | time {took[100 * n + s]:.4f}\n" for n in range(3) for s in range(100))
    write(tmp_path, a__train_dot_log=text)
    assert len(parsers.read_all(tmp_path / "a")) == 3  # the loss begins again, whatever the first iteration took
    text = "".join(f"step {s} | loss {loss(100 * n + s, n):.4f} | time {took[100 * n + s]:.4f}\n" for n in range(3) for s in range(100))
    write(tmp_path, b__train_dot_log=text)
    assert [attempts(r) for r in parsers.read_all(tmp_path / "b")] == [[[0, 99]]]


def test_a_log_that_announces_one_launch_of_several(tmp_path: Path) -> None:
    def stamped(seed: int, begin: int, trained: int = 0) -> str:
        return "".join(f"2024-01-01 {begin}:{s // 60:02d}:{s % 60:02d} step {s} loss {loss(trained + s, seed):.4f}\n" for s in range(100))

    banner = "2024-01-01 09:59:59 Starting training\n"
    write(tmp_path, a__train_dot_log=banner + stamped(0, 10) + stamped(1, 12) + stamped(2, 14))
    assert len(parsers.read_all(tmp_path / "a")) == 3
    trained = stamped(0, 8, 500)  # the loss of the last launch is nowhere near the first one of the file
    write(tmp_path, c__train_dot_log=trained + banner + stamped(1, 12) + stamped(2, 14))
    assert len(parsers.read_all(tmp_path / "c")) == 3
    write(tmp_path, b__train_dot_log=banner + stamped(0, 10) + stamped(1, 12, 100) + stamped(2, 14, 200))
    assert len(parsers.read_all(tmp_path / "b")) == 1  # a long evaluation, and a counter that is set back each epoch


def test_summaries_of_a_row_each_are_no_attempts(tmp_path: Path) -> None:
    steps = (300, 340, 280, 410, 330)
    text = "".join(f"Optimization over at iteration {s}: score {s / 100}\nTraining finished\n" for s in steps)
    write(tmp_path, train_dot_log=text)
    assert sum(len(r.attempts) for r in parsers.read_all(tmp_path)) <= 1


def test_without_any_other_word_the_loss_tells(tmp_path: Path) -> None:
    write(tmp_path, a__log_dot_jsonl=rows(range(100)) + rows(range(100), 1))  # falls from 3 to 1.2, and begins at 3 again
    assert [attempts(r) for r in parsers.read_all(tmp_path / "a")] == [[[0, 99]], [[0, 99]]]
    first = [json.loads(line) for line in rows(range(100)).splitlines()]
    second = [{"step": s, "loss": loss(100 + s)} for s in range(100)]
    write(tmp_path, b__log_dot_jsonl="".join(json.dumps(x) + "\n" for x in [*first, *second]))
    assert [attempts(r) for r in parsers.read_all(tmp_path / "b")] == [[[0, 99]]]


def test_a_row_logged_again_and_a_pause_after_the_first_step_start_nothing(tmp_path: Path) -> None:
    steps = [s for s in range(0, 200, 10) for _ in range(2)]
    write(tmp_path, a__log_dot_jsonl=rows([*steps[:20], 80, *steps[20:]], clock=1.7e9))
    assert len(parsers.read_all(tmp_path / "a")[0].attempts) == 1
    late = rows([0], clock=1.7e9) + rows(range(1, 60), clock=1.7e9 + 500)
    write(tmp_path, b__log_dot_jsonl=late, b__config_20231114_222000_dot_yaml="lr: 0.1\n")
    assert attempts(parsers.read_all(tmp_path / "b")[0]) == [[0, 59]]


# --- several files


def test_separate_launches_in_files_of_one_folder_are_runs_under_their_own_names(tmp_path: Path) -> None:
    first = rows(range(10, 610, 10), clock=1.7e9)
    second = rows(range(10, 410, 10), seed=1, clock=1.7e9 + 9000)
    write(tmp_path, one_dot_jsonl=first, two_dot_jsonl=second)
    assert {r.id: attempts(r) for r in parsers.read_all(tmp_path)} == {"one.jsonl": [[10, 600]], "two.jsonl": [[10, 400]]}


def test_siblings_whose_logs_begin_at_their_interval_are_no_continuation(tmp_path: Path) -> None:
    write(tmp_path, a__log_dot_jsonl=rows(range(50, 1050, 50)), b__log_dot_jsonl=rows(range(50, 650, 50), seed=1))
    assert sorted(r.id for r in parsers.read_all(tmp_path)) == ["a", "b"]


def test_a_restart_in_a_sibling_folder_is_joined_where_its_steps_fit(tmp_path: Path) -> None:
    write(
        tmp_path, version_0__log_dot_jsonl=rows(range(0, 500, 10), clock=1.7e9),
        version_1__log_dot_jsonl=rows(range(410, 900, 10), seed=1, clock=1.7e9 + 900),
    )  # fmt: skip
    (run,) = parsers.read_all(tmp_path)
    assert attempts(run) == [[0, 490], [410, 890]]
    shown = run.attempts[1]["evidence"]
    assert "begins at step 410" in shown.text
    assert run.where(shown.source, shown.at) == "version_1/log.jsonl line 1"


def test_a_restart_of_mmengine_is_joined_where_each_launch_has_its_scalars_in_a_folder_of_their_own(tmp_path: Path) -> None:
    write(
        tmp_path, a__20260921_142033__20260921_142033_dot_log=printed(range(20, 500, 20)),
        a__20260921_142033__vis_data__scalars_dot_json=rows(range(20, 500, 20), clock=1.7e9),
        a__20260921_151638__20260921_151638_dot_log=printed(range(500, 900, 20), seed=1),
        a__20260921_151638__vis_data__scalars_dot_json=rows(range(500, 900, 20), seed=1, clock=1.7e9 + 900),
    )  # fmt: skip
    (run,) = parsers.read_all(tmp_path)
    assert attempts(run) == [[20, 480], [500, 880]]


def test_one_life_that_two_logs_tell_is_one_whatever_their_clocks_say(tmp_path: Path) -> None:
    write(tmp_path, a_dot_jsonl=rows(range(100), clock=1.7e9), b_dot_jsonl=rows(range(100), clock=1.6e9))
    (run,) = parsers.read_all(tmp_path)
    assert attempts(run) == [[0, 99]]


def test_a_summary_beside_the_log_is_no_attempt(tmp_path: Path) -> None:
    write(tmp_path, log_dot_jsonl=rows(range(300)), summary_dot_json=json.dumps({"step": 250, "loss": 1.1, "best_step": 200}))
    (run,) = parsers.read_all(tmp_path)
    assert len(run.attempts) == 1


def test_launches_that_share_a_log_keep_their_parts_of_every_file(tmp_path: Path) -> None:
    both = rows(range(60), clock=1.7e9) + rows(range(80), seed=1, clock=1.7e9 + 9000)
    evals = "".join(
        json.dumps({"step": s, "val_loss": loss(s, seed), "time": clock + s}) + "\n"
        for seed, clock, last in ((0, 1.7e9, 60), (1, 1.7e9 + 9000, 80))
        for s in range(0, last, 10)
    )
    write(tmp_path, log_dot_jsonl=both, eval_dot_jsonl=evals, config_dot_yaml="lr: 0.1\n")
    runs = parsers.read_all(tmp_path)
    assert [attempts(r) for r in runs] == [[[0, 59]], [[0, 79]]]
    assert [r.tables["metrics"].num_rows for r in runs] == [66, 88]
    assert all({"log.jsonl", "eval.jsonl", "config.yaml"} == {s.path for s in r.sources} for r in runs)
    assert all(set(r.tables["metrics"]["attempt"].to_pylist()) == {0} for r in runs)


def test_a_console_that_counts_from_1_is_the_run_of_the_table_that_counts_from_0(tmp_path: Path) -> None:
    table = "epoch,step,train_loss\n" + "".join(f"{s // 100},{s},{loss(s):.6f}\n" for s in range(9, 600, 10))
    write(tmp_path, logs__version_0__metrics_dot_csv=table)
    write(tmp_path, train_dot_log="".join(f"step {s + 1} | train_loss {loss(s):.3g}\n" for s in range(19, 600, 20)))
    (run,) = parsers.read_all(tmp_path)
    assert {s.path for s in run.sources} == {"train.log", "logs/version_0/metrics.csv"} and len(run.attempts) == 1


def test_a_log_that_died_at_once_beside_several_runs_is_a_run_unless_one_is_called_so(tmp_path: Path) -> None:
    died = "Traceback (most recent call last):\n  File 'train.py', line 3, in <module>\n    go()\nKeyError: 'lr'\n"
    write(tmp_path, a_dot_log=printed(range(60)), b_dot_log=printed(range(80), 1), b_dot_err=died, c_dot_log=died, notes_dot_yaml="lr: 1\n")
    runs = {r.id: ({s.path for s in r.sources}, attempts(r)) for r in parsers.read_all(tmp_path)}
    assert runs == {
        "a.log": ({"a.log", "notes.yaml"}, [[0, 59]]),
        "b.log": ({"b.log", "b.err", "notes.yaml"}, [[0, 79]]),
        "c.log": ({"c.log"}, []),
    }


def test_a_run_that_its_tracker_has_on_record_without_a_metric_is_a_run(tmp_path: Path) -> None:
    for name, text in (("20240101_000000-aaaa1111", rows(range(40))), ("20240102_000000-bbbb2222", "")):
        folder = tmp_path / "wandb" / f"run-{name}" / "files"
        folder.mkdir(parents=True)
        (folder / "wandb-metadata.json").write_text(json.dumps({"host": "n1", "program": "train.py", "state": "failed", "exitcode": 1}))
        (folder / "wandb-history.jsonl").write_text(text.replace('"step"', '"_step"'))
    runs = parsers.read_all(tmp_path)
    assert [r.id for r in runs] == [f"wandb__run-{d}__files" for d in ("20240102_000000-bbbb2222", "20240101_000000-aaaa1111")]
    assert [attempts(r) for r in runs] == [[], [[0, 39]]]


def test_a_console_that_counts_its_rows_is_the_run_of_the_folder_below(tmp_path: Path) -> None:
    history = [{"step": 5 * n, "loss": round(loss(5 * n), 4), "epoch": n / 10} for n in range(1, 41)]
    state = {"log_history": history, "global_step": 200, "max_steps": 200}
    write(tmp_path, train_dot_log="".join(f"{{'loss': {h['loss']}, 'epoch': {h['epoch']}}}\n" for h in history))
    write(tmp_path / "out" / "checkpoint-200", trainer_state_dot_json=json.dumps(state))
    early = {"log_history": history[:20], "global_step": 100, "max_steps": 200}
    write(tmp_path / "out" / "checkpoint-100", trainer_state_dot_json=json.dumps(early))
    (run,) = parsers.read_all(tmp_path)
    assert {s.path for s in run.sources} == {"train.log", *(f"out/checkpoint-{n}/trainer_state.json" for n in (100, 200))}


# --- copies


def points(values: Iterable[float]) -> tuple[np.ndarray, np.ndarray]:
    found = np.array(list(values))
    return np.arange(len(found)), found


@pytest.mark.parametrize("form", ["%.4f", "%.3g", "%.2e", "%.17g"])
def test_a_printed_copy_is_told_from_a_run_that_only_looks_alike(form: str) -> None:
    exact = [loss(s) * 10.0 ** (s % 3) for s in range(80)]
    printed = [float(form % v) for v in exact]
    assert equal_share(points(exact), points(printed)) == 1.0
    other = [v * 1.0005 for v in exact]  # another kernel, the same seed
    share = equal_share(points([float(f"{v:.6g}") for v in other]), points(exact))
    assert share is not None and share < 0.05


def test_a_prefix_and_work_done_again_are_no_copies() -> None:
    steps, values = points(loss(s) for s in range(100))
    whole, prefix, again = (steps, values), (steps[:50], values[:50]), (steps[60:], values[60:])
    assert same_stretch(whole, (steps[1:], values[1:])) and not same_stretch(whole, prefix) and not same_stretch(whole, again)


def test_constants_are_no_witnesses() -> None:
    assert equal_share(points([0.0] * 9), points([0.0] * 9)) is None


def test_epochs_that_begin_again_are_another_run(tmp_path: Path) -> None:
    """No loop sets a count of epochs back, wherever the loss begins again: from a checkpoint it may begin low."""
    first = "".join(f"Epoch [{e}/8], Train Loss: {2 / e:.4f}, Val Acc: 0.9\n" for e in range(1, 9))
    again = "".join(f"Epoch [{e}/5], Train Loss: {0.25 + 0.1 / e:.4f}, Val Acc: 0.9\n" for e in range(1, 6))
    found = parsers.read_all(write(tmp_path, train_dot_log=first + again))
    assert [attempts(r) for r in found] == [[[1, 8]], [[1, 5]]]
    assert [r.launch for r in found] == [(1, 2), (2, 2)]


@pytest.mark.parametrize(("second", "told"), [(range(60, 120, 2), [[0, 58], [60, 118]]), (range(40, 100, 2), None)])
def test_a_log_that_all_launches_wrote_to_beside_one_of_each(tmp_path: Path, second: range, told: list[list[int]] | None) -> None:
    """No line says so: the losses of each launch's own log, one behind the other, are those of the common one."""
    run = parsers.read(
        write(tmp_path, all_dot_jsonl=rows(range(0, 120, 2)), out_1_dot_txt=printed(range(0, 60, 2)), out_2_dot_txt=printed(second))
    )
    assert attempts(run) == told if told else attempts(run) != [[0, 58], [60, 118]]


def test_a_console_of_another_run_beside_two_launches_cuts_nothing(tmp_path: Path) -> None:
    texts = {
        "all_dot_jsonl": rows(range(0, 120, 2)),
        "out_1_dot_txt": printed(range(0, 60, 2)),
        "out_2_dot_txt": printed(range(60, 120, 2), seed=9),
    }
    assert [0, 118] in [a for run in parsers.read_all(write(tmp_path, **texts)) for a in attempts(run)]


def test_launches_without_a_clock_stand_in_the_order_of_their_steps(tmp_path: Path) -> None:
    """What the first one wrote was renamed before the second began; what evaluates wrote to one file through both."""
    evaluated = "".join(json.dumps({"step": s, "mean_return": s / 7}) + "\n" for s in range(4, 120, 8))
    texts = {"log_dot_jsonl": rows(range(60, 120, 2)), "log_part1_dot_jsonl": rows(range(2, 60, 2)), "eval_dot_jsonl": evaluated}
    run = parsers.read(write(tmp_path, **texts))
    assert attempts(run) == [[2, 58], [60, 118]]


@pytest.mark.parametrize("tags", [("r", "l"), ("rollout/ep_rew_mean", "rollout/ep_len_mean")])
def test_a_monitor_beside_the_table_of_a_trainer_is_no_launch(tmp_path: Path, tags: tuple[str, str]) -> None:
    """Two files of one format with the same metrics: under the same names they are two launches."""
    (tmp_path / "logs").mkdir()
    table = [f"{s},{20 + s / 100},{19 + s / 100}" for s in range(256, 6401, 256)]
    head = "time/total_timesteps,rollout/ep_rew_mean,rollout/ep_len_mean"
    (tmp_path / "logs" / "progress.csv").write_text("\n".join([head, *table]) + "\n")
    rows = [f"{s},{21 + s / 90:.3f},{20 + s / 90:.3f},{1.7e9 + s / 100:.2f}" for s in range(128, 6400, 64)]
    (tmp_path / "episodes.csv").write_text("\n".join([f"step,{tags[0]},{tags[1]},time", *rows]) + "\n")
    runs = parsers.read_all(tmp_path)
    assert [len(run.attempts) for run in runs] == ([1] if tags[0] == "r" else [1, 1])


@pytest.mark.parametrize("together", [True, False])
def test_monitors_of_environments_that_run_at_the_same_time_are_of_one_training(together: bool, tmp_path: Path) -> None:
    for k in range(3):
        begin = 1.7e9 + (0 if together else 1000 * k)
        rows = [f"{20 + i + k}.0,{20 + i + k},{3 * i + 2.5:.2f}" for i in range(60)]
        head = f'#{{"t_start": {begin}, "env_id": "Hopper-v4"}}\nr,l,t'
        (tmp_path / f"monitor_{k}.monitor.csv").write_text("\n".join([head, *rows]) + "\n")
    (tmp_path / "run").mkdir()
    table = [f"{s},{20 + s / 100},{19 + s / 100}" for s in range(256, 6401, 256)]
    (tmp_path / "run" / "progress.csv").write_text(
        "\n".join(["time/total_timesteps,rollout/ep_rew_mean,rollout/ep_len_mean", *table]) + "\n"
    )
    runs = parsers.read_all(tmp_path)
    assert len(runs) == (1 if together else 3)
    if together:  # the training counts the timesteps of all three
        rows = [r for r in runs[0].tables["metrics"].to_pylist() if r["tag"] == "r"]
        steps = {k: [r["step"] for r in rows if r["source"] == f"monitor_{k}.monitor.csv"] for k in range(3)}
        assert [steps[k][0] for k in range(3)] == [3 * 19 + 1, 3 * 20 + 2, 3 * 21 + 3]
        assert steps[0][-1] == 3 * (sum(range(20, 80)) - 1) + 1
        assert len(set().union(*steps.values())) == 180


@pytest.mark.parametrize(("n_envs", "times"), [(4, 4), (1, 1), (3, 1), (None, 1)])
def test_one_of_several_environments_has_a_monitor(n_envs: int | None, times: int, tmp_path: Path) -> None:
    """Its steps are those of one environment; config says how many there are, and the training's table ends as many times further."""
    rows = [f"{20 + i}.0,96,{3 * i + 2.5:.2f}" for i in range(78)]
    (tmp_path / "train.monitor.csv").write_text('#{"t_start": 1.7e9, "env_id": "None"}\nr,l,t\n' + "\n".join(rows) + "\n")
    table = [f"{s},{20 + s / 1000},96" for s in range(512, 30209, 512)]
    head = "time/total_timesteps,rollout/ep_rew_mean,rollout/ep_len_mean"
    (tmp_path / "progress.csv").write_text("\n".join([head, *table]) + "\n")
    (tmp_path / "config.json").write_text(json.dumps({"horizon": 96} | ({"n_envs": n_envs} if n_envs else {})))
    run = parsers.read(tmp_path)
    steps = [r["step"] for r in run.tables["metrics"].to_pylist() if r["tag"] == "r"]
    assert (steps[0], steps[-1]) == (times * 95 + 1, times * (96 * 78 - 1) + 1)


def test_launches_that_a_log_counts_and_a_checkpoint_that_is_picked_up(tmp_path: Path) -> None:
    rows = [f"upd {i:5d}  row {8 * i:6d}  nll {loss(i):.4f}  gn 0.845" for i in range(2, 121, 2)]
    second = ["signal: SIGUSR1 (requeue), leaving after checkpoint", "##### launch 2 on ws5 #####", "picked up last.pt (upd 60)"]
    text = "\n".join(["##### launch 1 on ws4 #####", *rows[:30], *second, *rows[30:]]) + "\n"
    assert attempts(parsers.read(write(tmp_path / "a", out_dot_txt=text))) == [[2, 60], [62, 120]]
    assert attempts(parsers.read(write(tmp_path / "b", out_dot_txt="\n".join(rows) + "\n"))) == [[2, 120]]


@pytest.mark.parametrize(("key", "cut"), [("attempt", True), ("restart_count", True), ("chunk", False)])
def test_rows_that_count_the_launch(tmp_path: Path, key: str, cut: bool) -> None:
    text = rows(range(0, 60, 2), **{key: 0}) + rows(range(60, 120, 2), **{key: 1})
    assert attempts(parsers.read(write(tmp_path, log_dot_jsonl=text))) == ([[0, 58], [60, 118]] if cut else [[0, 118]])


def test_what_is_told_once_does_not_say_where_a_launch_begins(tmp_path: Path) -> None:
    """As Lightning's logger writes hp_metric at step 0 of each launch, also of one that goes on."""

    def launch(name: str, first: int, last: int) -> None:
        rows = [{"step": 0, "hp_metric": -1.0}, *({"step": i, "loss": 3 / (1 + i / 40) + i % 3 / 50} for i in range(first, last, 5))]
        (tmp_path / name).mkdir()
        (tmp_path / name / "metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))

    launch("version_0", 4, 320)
    launch("version_1", 324, 480)
    (run,) = parsers.read_all(tmp_path)
    assert [a["steps"][1] for a in run.attempts] == [319, 479]
    launch("version_2", 4, 320)  # one that begins at the beginning is another run
    assert len(parsers.read_all(tmp_path)) == 2


@pytest.mark.parametrize(("name", "first"), [("hp_metric", 49), ("eval_loss", 0)])
def test_what_stands_for_a_metric_before_the_training_is_no_step_of_it(tmp_path: Path, name: str, first: int) -> None:
    """Lightning's logger writes hp_metric beside its hyperparameters; an evaluation before the first step is one."""
    lines = [{"step": 0, name: -1.0}, *({"step": i, "loss": loss(i)} for i in range(49, 400, 50))]
    write(tmp_path, metrics_dot_jsonl="".join(json.dumps(x) + "\n" for x in lines))
    (run,) = parsers.read_all(tmp_path)
    assert attempts(run) == [facts.labels(run)[0]] == [[first, 399]]


def test_behind_the_summary_of_a_trainer_another_training_begins(tmp_path: Path) -> None:
    """Two trainings of one script, the second one logged so seldom that a single row falls back."""
    said = "{{'loss': {:.4f}, 'learning_rate': {:.1e}, 'epoch': {:.2f}}}\n"
    first = "".join(said.format(1.6 / i, 2e-5 * (1 - i / 9), i / 4) for i in range(1, 9))
    second = "".join(said.format(0.2 / i, 4e-5 * (1 - i / 9), epoch) for i, epoch in enumerate((0.25, 3, 6, 9), 1))
    summed_up = "{'train_runtime': 30.5, 'train_loss': 0.4, 'epoch': 2.0}\n"
    (tmp_path / "train.log").write_text(first + summed_up + second + summed_up)
    found = parsers.read_all(tmp_path)
    assert sorted(len([x for x in r.tables["metrics"].to_pylist() if x["tag"] == "loss"]) for r in found) == [4, 8]


def test_two_axes_in_one_folder_go_on_each_by_itself(tmp_path: Path) -> None:
    """A resumed Keras run: batches count through the run, epochs beside them in the same files; neither goes back."""
    for k, (batches, epochs) in enumerate((((0, 160), (0, 4)), ((160, 480), (4, 12)))):
        rows = [(n, "batch_loss", 2 / (1 + n / 50), 1.7e9 + 100 * k + n / 10) for n in range(*batches, 10)]
        rows += [(n, "epoch_loss", 2 / (1 + n), 1.7e9 + 100 * k + 4 * n) for n in range(*epochs)]
        lines = [json.dumps({"step": n, tag: value, "time": at}) for n, tag, value, at in sorted(rows, key=lambda r: r[3])]
        (tmp_path / f"events_{k}.jsonl").write_text("\n".join(lines) + "\n")
    attempts = parsers.read(tmp_path).attempts
    assert [a["steps"] for a in attempts] == [[0, 150], [160, 470]]


def test_a_console_that_measures_nothing_more_tells_of_the_attempts_of_another_file(tmp_path: Path) -> None:
    """Evaluations stand in the console, losses in a file beside it: what died behind the line that resumes is the last launch."""
    died = "Traceback (most recent call last):\n  File \"/src/train.py\", line 7, in fit\nKeyError: 'source'\n"
    console = "".join(f"step {s}: eval mse {9 / s:.4f}\n" for s in range(50, 251, 50)) + died + "resuming from last.pt at step 250\n" + died
    (tmp_path / "train.log").write_text(console)
    steps = [*range(10, 291, 10), *range(260, 291, 10)]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps({"step": s, "train": {"loss": 5 / s}}) + "\n" for s in steps))
    run = forensics.read(str(tmp_path))
    assert len(run.attempts) == 2
    assert [e["attempt"] for e in run.tables["events"].to_pylist() if e["kind"] == "traceback"] == [0, 1]

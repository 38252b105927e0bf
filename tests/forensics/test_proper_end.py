"""A proper end has evidence: what the program said, what its tracker recorded, how far it got; and what does not count as one."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from runs import case, console, jsonl, read

from forensics.run import how_it_ended, proper_end
from forensics.signs import last_words
from forensics.signs.sign import Symptoms


@pytest.mark.parametrize(
    ("last", "how"),
    [
        ("Training finished.\n", "said"),
        ("Overall training speed: 97 iterations in 0:01:40 (0.6833 s / it)\n", "said"),
        ("stopping_early: wallclock_cap train_time:600061ms step:96/20000\n", "early"),
        ("EarlyStopping: no improvement in 5 epochs\nsaved out.pt\n", "early"),
        ("| End of training | test loss 4.93 | test ppl 138.31\n", "said"),
        ("training Res18 finished\n", "said"),
        ("Total Execution Time: 415.10 seconds\n", "said"),
        ("finish\n", "said"),
        ("precision    recall  f1-score   support\n\n         cat       1.00      0.75      0.86         4\n", "said"),
        ("2026-03-04 05:06:07,000 - vae - INFO - finished\n", "said"),
    ],
)
def test_a_closing_line_is_quoted(tmp_path: Path, last: str, how: str) -> None:
    ended = how_it_ended.ending(read(console(tmp_path / "r", last)))
    assert (ended.kind, ended.how) == ("finished", how)
    assert last.splitlines()[0].strip().endswith(ended.says) and ended.where.startswith("train.log line 98")


def test_a_summary_that_hooks_write_is_no_end_where_work_was_left(tmp_path: Path) -> None:
    last = "Overall training speed: 97 iterations in 0:01:40 (0.6833 s / it)\neta: 17:59:33  iter: 97  loss 1.51\n"
    got = case(console(tmp_path / "r", last))
    assert got["run"]["status"] == "unknown"
    assert 'with work still to do, and no reason is logged: "Overall training speed: 97' in got["answer"]


def test_words_after_which_the_run_went_on_before_close_nothing(tmp_path: Path) -> None:
    """A verifier of answers prints a final score for each of them."""
    (tmp_path / "train.log").write_text(
        "".join(f"step {i} loss {2 - i / 90:.3f}\n---- Final Score ----\n  Total: {i % 3}\n" for i in range(83))
    )
    assert proper_end.finish(read(tmp_path)) is None


def test_an_exception_from_which_the_run_went_on_before_ends_nothing_unless_it_stands_last(tmp_path: Path) -> None:
    raised = 'Traceback (most recent call last):\n  File "act.py", line 3, in act\n    x, y = found\nTypeError: cannot unpack non-iterable NoneType object\n'
    text = "".join(f"step {i} loss {2 - i / 90:.3f}\n" + raised * (i % 20 == 2) for i in range(83))
    (tmp_path / "train.log").write_text(text + "answer: none\n" * 60)
    assert how_it_ended.ending(read(tmp_path)).kind != "exception"
    (tmp_path / "train.log").write_text(text)
    assert how_it_ended.ending(read(tmp_path)).kind == "exception"


def test_a_done_before_the_first_step_closes_nothing(tmp_path: Path) -> None:
    folder = console(tmp_path / "r")
    (folder / "train.log").write_text("building the cache\ndone.\n" + (folder / "train.log").read_text())
    assert proper_end.finish(read(folder)) is None


def test_numbers_that_run_down_to_the_end_look_finished(tmp_path: Path) -> None:
    down = [{"step": i, "loss": 2 - i / 300, "eta_seconds": 2.0 * (96 - i)} for i in range(97)]
    assert how_it_ended.ending(read(jsonl(tmp_path / "eta", down))).how == "plan"
    assert how_it_ended.ending(read(jsonl(tmp_path / "half", down[:50]))).kind == "cut"
    rate = [{"step": i, "loss": 2 - i / 300, "lr": 3e-4 * (1 - i / 197)} for i in range(197)]
    assert "learning rate had run down" in how_it_ended.ending(read(jsonl(tmp_path / "lr", rate))).says
    assert how_it_ended.ending(read(jsonl(tmp_path / "lr_half", rate[:120]))).kind == "unknown"
    called_eta = [{"step": i, "loss": 2 - i / 300, "eta": 0.3 * math.exp(-i / 20)} for i in range(97)]
    assert "time left" not in how_it_ended.ending(read(jsonl(tmp_path / "rate", called_eta))).says
    stairs = [{"step": i, "loss": 2 - i / 300, "lr": 3e-4 * 0.1 ** (i // 30)} for i in range(97)]
    assert how_it_ended.ending(read(jsonl(tmp_path / "stairs", stairs))).kind == "unknown"


def test_a_round_number_of_steps_is_no_sign_of_an_end(tmp_path: Path) -> None:
    rows = [{"step": i, "loss": 2 - i / 300} for i in range(1, 151)]
    assert how_it_ended.ending(read(jsonl(tmp_path / "round", rows))).kind == "unknown"


@pytest.mark.parametrize(("epochs", "kind"), [(150, "finished"), (151, "unknown"), (501, "finished"), (147, "unknown"), (10, "unknown")])
def test_a_round_number_of_whole_epochs_looks_finished(tmp_path: Path, epochs: int, kind: str) -> None:
    rows = [{"epoch": i, "loss": 2 - i / 300} for i in range(epochs)]
    end = how_it_ended.ending(read(jsonl(tmp_path / "round", rows)))
    assert (end.kind, end.how) == (kind, "guess" if kind == "finished" else "")


@pytest.mark.parametrize(("last", "kind"), [(600, "finished"), (590, "unknown")])
def test_a_round_number_of_epochs_of_which_some_were_logged(tmp_path: Path, last: int, kind: str) -> None:
    (tmp_path / "log.txt").write_text("".join(f"epoch:{n}, trainLoss:{2 + 1 / n:.4f}\n" for n in range(10, last + 1, 10)))
    assert how_it_ended.ending(read(tmp_path)).kind == kind


def test_a_round_epoch_that_is_cut_short_looks_like_no_end(tmp_path: Path) -> None:
    rows = [{"epoch": i // 5, "step": i, "loss": 2 - i / 300} for i in range(100)]
    assert how_it_ended.ending(read(jsonl(tmp_path / "whole", rows))).how == "guess"
    assert how_it_ended.ending(read(jsonl(tmp_path / "cut", rows[:-2]))).kind == "unknown"


def test_the_trainers_summary_after_its_last_step_is_an_end(tmp_path: Path) -> None:
    rows = [{"step": i, "loss": 2 - i / 300} for i in range(1, 98)] + [{"step": 97, "train_runtime": 34037.8}]
    assert "train_runtime 34037.8" in how_it_ended.ending(read(jsonl(tmp_path / "r", rows))).says


def test_an_exception_belongs_to_the_launch_whose_log_it_stands_in(tmp_path: Path) -> None:
    settings = "".join(f"{k}: {i}\n" for i, k in enumerate(("seed", "width", "depth", "batch_size", "lr", "beta1", "beta2", "eps", "clip",
                                                             "warmup", "workers", "vocab")))  # fmt: skip
    folder = console(tmp_path / "r", "Training finished.\n")
    (folder / "train.log").write_text(settings + (folder / "train.log").read_text())
    error = 'Traceback (most recent call last):\n  File "a.py", line 3, in f\nValueError: too small\n'
    (folder / "other.log").write_text(settings + error)
    assert how_it_ended.ending(read(folder)).kind == "finished"
    (folder / "train.log").write_text((folder / "train.log").read_text().replace("Training finished.\n", ""))
    assert how_it_ended.ending(read(folder)).kind == "unknown"
    (folder / "other.log").write_text(error)  # a log of its own for the errors of this launch
    assert how_it_ended.ending(read(folder)).kind == "exception"


def test_two_streams_of_one_job_are_one_launch_though_both_print_its_settings(tmp_path: Path) -> None:
    settings = "".join(f"setting_{i}: {i}\n" for i in range(12))
    folder = tmp_path / "r"
    console(folder)
    (folder / "train.log").rename(folder / "job-7.out")
    (folder / "job-7.out").write_text(settings + (folder / "job-7.out").read_text())
    error = 'Traceback (most recent call last):\n  File "a.py", line 3, in f\nValueError: too small\n'
    (folder / "job-7.err").write_text(settings + error)
    assert how_it_ended.ending(read(folder)).says == "ValueError: too small"
    (folder / "job-7.err").rename(folder / "job-8.err")
    assert how_it_ended.ending(read(folder)).kind == "unknown"


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("(raylet) A worker died or was killed. Some common causes include: (1) the process was killed by the OOM killer", "exception"),
        ("E       RuntimeError: CUDA out of memory. Tried to allocate 16.00 MiB", "unknown"),
        ("fatal: Not a git repository (or any of the parent directories): .git", "unknown"),
        ("RuntimeError: DataLoader worker (pid 4020404) is killed by signal: Terminated.", "signal"),
        ("command terminated with exit code 137", "signal"),
    ],
)
def test_what_an_error_line_tells(tmp_path: Path, line: str, kind: str) -> None:
    assert how_it_ended.ending(read(console(tmp_path / "r", line + "\n"))).kind == kind


@pytest.mark.parametrize(("tests", "kind"), [([97], "finished"), ([40, 97], "unknown"), ([], "unknown")])
def test_a_test_set_looked_at_once_behind_everything_closes_a_run(tmp_path: Path, tests: list[int], kind: str) -> None:
    rows: list[dict[str, Any]] = []
    for i in range(97):
        rows.append({"step": i, "loss": 2 - i / 200})
        rows += [{"step": i, "val_r2": i / 100}] * (i % 10 == 9) + [{"step": i, "test_r2": i / 100}] * (i in tests)
    rows += [{"step": 97, "test_r2": 0.9}] * (97 in tests)
    assert how_it_ended.ending(read(jsonl(tmp_path / "r", rows))).kind == kind


@pytest.mark.parametrize(("last", "kind"), [(100.0, "finished"), (60.0, "unknown")])
def test_a_share_of_the_work_that_comes_to_a_hundred(tmp_path: Path, last: float, kind: str) -> None:
    rows = [{"step": i, "loss": 2 - i / 200, "progress": last * (i + 1) / 98} for i in range(97)]
    assert how_it_ended.ending(read(jsonl(tmp_path / "r", rows))).kind == kind


@pytest.mark.parametrize(
    ("said", "kind"), [("Error, unfinished job no longer exists, log is in train.log,", "scheduler"), ("job 205350 done,", "cut")]
)
def test_a_queue_that_misses_its_job_tells_the_end_and_measures_nothing(tmp_path: Path, said: str, kind: str) -> None:
    lines = "".join(f"step {i}/346 loss: {2 - i / 200:.4f}\n" for i in range(97))
    (tmp_path / "train.log").write_text(lines)
    (tmp_path / "nohup.log").write_text(f"nohup: ignoring input\nstart a new sge\nqueue.pl: {said} last line is 'step 96/346 loss: 1.52'\n")
    run = read(tmp_path)
    assert how_it_ended.ending(run).kind == kind
    assert kind == "cut" or {r["source"] for r in run.tables["metrics"].to_pylist()} == {"train.log"}


@pytest.mark.parametrize(("level", "kinds"), [("I", set()), ("E", {"memory"})])
def test_an_allocator_that_asks_for_less_says_so_as_information(tmp_path: Path, level: str, kinds: set[str]) -> None:
    where = f"2021-05-09 18:30:53.337423: {level} tensorflow/stream_executor/cuda/cuda_driver.cc:789]"
    line = f"{where} failed to allocate 613.15M (642935552 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory\n"
    folder = console(tmp_path / "r")
    text = (folder / "train.log").read_text()
    (folder / "train.log").write_text(text[: len(text) // 3].rpartition("\n")[0] + "\n" + line + text[len(text) // 3 :].partition("\n")[2])
    assert {f["kind"] for f in case(folder)["findings"] if f["kind"] == "memory"} == kinds


def test_a_worker_that_is_gone_is_no_exception_of_the_program(tmp_path: Path) -> None:
    last = (
        'Traceback (most recent call last):\n  File "main.py", line 3, in run\n    ray.get(job)\n'
        "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n"
    )
    run = read(console(tmp_path / "r", last))
    assert how_it_ended.ending(run).kind == "exception"
    assert last_words.exception_quoted(Symptoms(run, ())).state == "absent"


@pytest.mark.parametrize(
    ("steps", "every", "says"), [(1001, 1, "it ends at step 1000"), (2000, 1, "it ends at step 1999"), (1037, 1, ""), (1001, 50, "")]
)
def test_a_round_step_looks_finished_where_a_cut_would_seldom_fall_there(tmp_path: Path, steps: int, every: int, says: str) -> None:
    lines = "".join(f"step {i}: loss {2 - i / 2500:.4f}\n" for i in range(0, steps, every))
    (tmp_path / "train.log").write_text(lines)
    found = proper_end.likely(read(tmp_path))
    assert (found is not None) == bool(says)
    if found is not None:
        assert found.how == "guess" and found.says.startswith(says)


@pytest.mark.parametrize(("rows", "short", "says"), [(24, 0, "its last epoch has all of its 24 rows"), (24, 1, ""), (8, 0, "")])
def test_a_whole_last_epoch_looks_finished_where_a_cut_would_seldom_fall_there(tmp_path: Path, rows: int, short: int, says: str) -> None:
    counts = [(e, i) for e in range(7) for i in range(rows)]
    lines = [f"Epoch: [{e}] [{i * 50:>5}/1200] loss: {2 - (e * rows + i) / 300:.4f}\n" for e, i in counts]
    (tmp_path / "train.log").write_text("".join(lines[: len(lines) - short]))
    found = proper_end.likely(read(tmp_path))
    assert (found.says if found is not None else "").startswith(says) and bool(found) == bool(says)


@pytest.mark.parametrize(("begins", "rows", "ends"), [(1, 701, True), (1, 690, False), (0, 701, False)])
def test_epochs_that_are_counted_as_they_are_done(tmp_path: Path, begins: int, rows: int, ends: bool) -> None:
    """Chainer's LogReport: the row of the last iteration is the first with the count; one that counts its steps from 0 has begun another epoch."""
    counts = range(begins, begins + rows)
    (tmp_path / "log.jsonl").write_text(
        "".join(f'{{"epoch": {i // 100}, "step": {i}, "loss": {2 - i / 900:.4f}}}\n' for i in counts if i < 701)
    )
    assert bool(proper_end.likely(read(tmp_path))) is ends


@pytest.mark.parametrize(
    ("epochs", "evaluated", "kind"), [(4, (4,), "finished"), (4, (2, 4), "unknown"), (1, (1,), "unknown"), (4, (3,), "unknown")]
)
def test_one_evaluation_behind_all_epochs_closes_them(tmp_path: Path, epochs: int, evaluated: tuple[int, ...], kind: str) -> None:
    lines = [
        f"Epoch {i}: Average Training Loss = {0.7 - i / 100}\n" + "Validation Accuracy: 0.5443\n" * (i in evaluated)
        for i in range(1, epochs + 1)
    ]
    (tmp_path / "train.out").write_text("".join(lines))
    assert how_it_ended.ending(read(tmp_path)).kind == kind


@pytest.mark.parametrize(("last", "kind"), [("3.204280902042788", "finished"), ("0.03204280902042788", "finished"), ("3.20428", "unknown")])
def test_a_last_number_in_full_is_not_cut(tmp_path: Path, last: str, kind: str) -> None:
    lines = "".join(f"Epoch  {i} Train Loss:  {5 - i / 70}\n" for i in range(99))
    (tmp_path / "train.out").write_text(f"{lines}Epoch  99 Train Loss:  {last}")
    run = read(tmp_path)
    assert how_it_ended.ending(run).kind == kind and bool(run.gaps) == (kind == "unknown")


def test_a_trainers_summary_closes_a_log_without_a_step(tmp_path: Path) -> None:
    said = {"train_runtime": 9.3, "train_samples_per_second": 0.8, "train_steps_per_second": 0.8, "train_loss": 1.5, "epoch": 1.0}
    (tmp_path / "train.out").write_text(f"Training adapter\n{said}\n")
    ended = how_it_ended.ending(read(tmp_path))
    assert ended.kind == "finished" and "train_runtime" in ended.says


@pytest.mark.parametrize(("epochs", "kind"), [((29, 29, 29), "finished"), ((29, 23, 17), "unknown")])
def test_trainings_of_one_log_that_are_equally_long_look_finished(tmp_path: Path, epochs: tuple[int, ...], kind: str) -> None:
    logs = ("".join(f"Epoch {i}: Train Loss: {2 - i / 40:.4f}\n" for i in range(1, n + 1)) for n in epochs)
    (tmp_path / "folds.log").write_text("".join(f"Fold {k}\n{log}" for k, log in enumerate(logs)))
    ended = how_it_ended.ending(read(tmp_path / "folds.log" / "launch-3"))
    assert ended.kind == kind


@pytest.mark.parametrize(
    ("last", "kind"),
    [
        ("Finetuned model saved: out_final.pth\n", "finished"),
        ("Saved final model to: runs/fight/model_final.zip\n", "finished"),
        ("Model saved to checkpoints/best.pt\n", "unknown"),  # the best so far
        ("Models saved to agents/ebe061ad\n", "finished"),  # and nothing before
        ("Best Iter(validation)= 35  train = 0.09, valid = 0.31 [266.3 s]\n", "finished"),
        ("Best epoch so far: 35\n", "unknown"),
        ("Saved final model to: runs/fight/model_final.zip\nstep 97: loss 1.5\nstep 98: loss 1.5\nstep 99: loss 1.5\n", "unknown"),
        ("----------- Total 1 run: 480.39132952690125s -----------\n", "finished"),
        ("Total 4 runs were planned\n", "unknown"),
        ("Final test accuracy: 0.912\n", "finished"),
        ("=== Final evaluation metrics ===\n  precision 0.91\n  recall 0.88\n", "finished"),
        ("Final learning rate: 0.001\n", "unknown"),
        ("Final test accuracy: 0.31\nstep 97: loss 1.5\nstep 98: loss 1.5\nstep 99: loss 1.5\n", "unknown"),  # of a part of the run
    ],
)
def test_what_is_saved_or_summed_up_after_the_loop_ends_it(tmp_path: Path, last: str, kind: str) -> None:
    assert how_it_ended.ending(read(console(tmp_path / "r", last))).kind == kind


@pytest.mark.parametrize(("lines", "kind"), [(20, "unknown"), (200, "finished")])
def test_what_has_no_step_and_is_said_again_long_after_is_of_another_launch(tmp_path: Path, lines: int, kind: str) -> None:
    """Ranks say the same one behind the other."""
    folder = tmp_path / "r"
    folder.mkdir()
    between = "".join(f"cell {'abcdefghij'[i % 10]} of the array\n" for i in range(lines))
    after = "".join(f"artefact {'abcdefghij'[i % 10]}\n" for i in range(40))
    (folder / "train.log").write_text(f"building the model\nTraining finished.\n{between}Training finished.\n{after}")
    assert how_it_ended.ending(read(folder)).kind == kind

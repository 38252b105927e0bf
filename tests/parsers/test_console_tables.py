"""Tables, boxes and counted lines of consoles: read where they prove a step, left alone where they do not."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

import parsers

Series = dict[str, list[tuple[int | None, float]]]


def series(folder: Path, text: str, name: str = "train.log") -> Series:
    path = folder / name
    path.write_text(text)
    found: Series = defaultdict(list)
    for batch in parsers.read_file(path, folder).batches.get("metrics", []):
        for row in batch.to_pylist():
            found[row["tag"]].append((row["step"], row["value"]))
    return dict(found)


LOSSES = [(1, 2.0), (2, 1.0), (3, 0.5)]
TABLES = {
    "spaces": "epoch  train_loss  valid_acc   time\n-----  ----------  ---------  -----\n"
    "    1      2.0000     0.1000  4.29s\n    2      1.0000     0.2000  0.38s\n=> saved last.pt (step 90)\n    3      0.5000     0.3000  0.27s\n",
    "names of several words": "      Iter       train_loss   Remaining Time \n"
    "         1           2.0000            1.20m\n         2           1.0000            5.33s\n         3           0.5000            0.00s\n",
    "header again for every row": "".join(f"epoch     train_loss  time    \n{i}         {v:.6f}    00:1{i}     \n" for i, v in LOSSES),
    "border": "+-------+------------+\n| epoch | train_loss |\n+-------+------------+\n|     1 |     2.0000 |\n|     2 |     1.0000 |\n"
    "|     3 |     0.5000 |\n+-------+------------+\n",
    "box drawing": "┏━━━━━━━┳━━━━━━━━━━━━┓\n┃ Epoch ┃ train_loss ┃\n┡━━━━━━━╇━━━━━━━━━━━━╇\n│ 1     │ 2.0000     │\n│ 2     │ 1.0000     │\n"
    "│ 3     │ 0.5000     │\n└───────┴────────────┘\n",
    "colours": "  epoch    train_loss     dur\n-------  ------------  ------\n"
    + "".join(f"      {i}        \x1b[36m{v:.4f}\x1b[0m  0.1234\n" for i, v in LOSSES),
    "commas in a log": "start\nepoch, train_loss, lr\n1, 2.0, 1e-3\n2, 1.0, 1e-3\n3, 0.5, 1e-4\ndone in 12.3 s\n",
    "an index without a name": "Results\n\n,train_loss,val_acc\n1,2.0,0.1\n2,1.0,0.2\n3,0.5,0.3\n\nBest\n",
    "clock in front": "2024-01-01 10:00:00 INFO  epoch   train_loss\n"
    + "".join(f"2024-01-01 10:0{i}:00 INFO  {i:5d}   {v:10.4f}\n" for i, v in LOSSES),
    "a word that must rise": "episode  train_loss\n1  2.0\n2  1.0\n3  0.5\n",
    "spaCy": "E    #       train_loss  SCORE \n---  ------  ----------  ------\n"
    + "".join(f"  {i // 2}  {i:6d}  {v:10.2f}    0.{i}3\n" for i, v in LOSSES),
    "values and marks": "epoch | train_loss | val_loss\n    1 |     2.0000 |        -\n    2 |    1.0000* | 0.9000\n    3 |    0.5000* |        -\n",
}


@pytest.mark.parametrize("text", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("name", ["train.log", "progress.txt"])
def test_a_printed_table_is_read(tmp_path: Path, text: str, name: str) -> None:
    assert series(tmp_path, text, name)["train_loss"] == LOSSES


def test_exactly_one_parser_claims_a_table(tmp_path: Path) -> None:
    for text in TABLES.values():
        for name in ("train.log", "progress.txt"):
            assert len(parsers.claimants(tmp_path / name, text.encode())) == 1


def test_empty_and_odd_cells_are_no_values(tmp_path: Path) -> None:
    found = series(tmp_path, "step    loss    val_loss   acc\n100    2.0000              45%\n200    nan      1.5000      -\n")
    assert found["val_loss"] == [(200, 1.5)]
    assert found["acc"] == [(100, 45.0)]
    assert [s for s, _ in found["loss"]] == [100, 200]
    assert "time" not in series(tmp_path, TABLES["header again for every row"])


def test_several_tables_in_a_log(tmp_path: Path) -> None:
    found = series(tmp_path, "step   loss   gnorm\n1   2.0   0.5\n2   1.0   0.4\n\nvalidation\nstep   loss   acc\n2      1.5   0.3\n")
    assert found["loss"] == [(1, 2.0), (2, 1.0)]
    assert found["validation loss"] == [(2, 1.5)]
    assert found["validation acc"] == [(2, 0.3)]


NOT_REPORTS = {
    "packages": "Package            Version\n------------------ ---------\nabsl-py            2.1.0\nnumpy              1.26.4\ntorch              2.3\n",
    "report by class": "              precision    recall  f1-score   support\n\n           0       0.97      0.98      0.97        42\n"
    "           1       0.98      0.97      0.97        43\n",
    "confusion matrix": "Confusion matrix\n    0   1   2\n0  12   3   1\n1   2  14   0\n2   1   0  11\n",
    "summary of a model": "  | Name  | Type             | Params\n-----------------------------------\n0 | model | Linear           | 1.2 K\n1 | head  | Linear  | 0\n",
    "histogram": "bin   count   frac\n0     12      0.1\n1     24      0.2\n2     36      0.3\n",
    "prose": "Starting epoch training loop\nThe first epoch takes 12.5 minutes\nBatch size 16 needs 3.5 GB\nBatch size 32 needs 6.5 GB\n",
    "profile": "Name   Self CPU %   Self CPU   # of Calls\n------  -------  -------  -----\naten::mm  32.1%  1.2ms  20\naten::add  12.1%  0.2ms  20\n",
    "sizes": "batch 32 throughput: 120.5\nbatch 16 throughput: 90.5\nbatch 8 throughput: 60.5\n",
    "settings": "epoch: 10\nbatch: 32\nlr: 0.001\n",
}


@pytest.mark.parametrize("text", NOT_REPORTS.values(), ids=NOT_REPORTS)
def test_what_only_looks_like_a_table_gives_no_metric_at_a_step(tmp_path: Path, text: str) -> None:
    for name in ("train.log", "notes.txt"):
        found = series(tmp_path, text, name)
        assert not [x for rows in found.values() for x in rows if x[0] is not None]


COUNTED = {
    "Episode {n}\tlast reward: {v}\tH: 0.6": "last reward",
    "Episode batch {n}\tpolicy loss: 0.1\treward: {v}": "reward",
    "epoch 0 batch {n} mse {v} (15.9 ms/batch)": "mse",
    "{n}:\tlearn: {v}\tbest: 0.3 ({n})\tremaining: 9.2s": "learn",
    "Generation {n}: best {v}, mean 0.2": "best",
    "{n:2d}  train {v:.4f}   test 2.3002   acc 0.091": "train",
    "{n} loss={v} lr=0.1": "loss",
    "s={n} xent={v} gn=0.19": "xent",
    "2026-11-26 21:17:53,183 [rank1] INFO seqtag: s={n} xent={v} step_ms=220.5": "xent",
    "ep {n:3d}   fit {v:.4f}   spread 0.8225   rss 422 MB": "fit",
    "[{n}] val nll {v} bpd 0.3437 best 2.3825": "val nll",
}


@pytest.mark.parametrize(("line", "tag"), COUNTED.items())
def test_a_counter_that_rises_is_the_step(tmp_path: Path, line: str, tag: str) -> None:
    text = "".join(line.format(n=10 * i, v=v) + "\n" for i, v in LOSSES)
    for name in ("train.log", "notes.txt"):
        found = series(tmp_path, text, name)
        assert found[tag] == [(10 * i, v) for i, v in LOSSES]
        assert "best (avg)" not in found


def test_a_counter_that_does_not_rise_is_none(tmp_path: Path) -> None:
    found = series(tmp_path, "".join(f"batch {n} loss: {v}\n" for n, v in ((64, 2.0), (64, 1.5), (32, 1.0), (64, 0.5))))
    assert all(step is None for rows in found.values() for step, _ in rows)
    assert [v for _, v in found["loss"]] == [2.0, 1.5, 1.0, 0.5]


@pytest.mark.parametrize("line", ["epoch {n} took 12.5 s and 3 retries", "epoch {n} sent 3 files", "p={n} xent 0.5"])
def test_an_epoch_in_a_sentence_measures_nothing(tmp_path: Path, line: str) -> None:
    found = series(tmp_path, "".join(line.format(n=n) + "\n" for n in range(8)))
    assert not [step for rows in found.values() for step, _ in rows if step is not None]


def test_batches_count_within_the_epoch_above_them(tmp_path: Path) -> None:
    text = "".join(f"Epoch {e}\n" + "".join(f"Batch {b} loss: {e + b / 100}\n" for b in (1, 2, 3, 4)) for e in (1, 2))
    assert [s for s, _ in series(tmp_path, text)["loss"]] == [1, 2, 3, 4, 5, 6, 7, 8]


def test_an_epoch_above_its_lines_is_their_step(tmp_path: Path) -> None:
    text = "".join(f"-- Epoch {i}\nNorm: 2.1, NNZs: 20, Avg. loss: {v}\nTotal training time: 0.1 seconds.\n" for i, v in LOSSES)
    assert series(tmp_path, text, "sgd.txt")["Avg. loss"] == LOSSES


@pytest.mark.parametrize(("step", "name"), [("step", "loss"), ("Epoch", "LossPi"), ("frame", "value_loss")])
def test_a_box_of_two_columns_names_its_step(tmp_path: Path, step: str, name: str) -> None:
    rule = "-" * 25
    text = "".join(f"{rule}\n| {name:9} | {v:<8} |\n| {step:9} | {i:<8} |\n{rule}\n" for i, v in LOSSES)
    assert series(tmp_path, text)[name] == LOSSES


def test_a_table_in_markdown_has_no_gap(tmp_path: Path) -> None:
    path = tmp_path / "steps.txt"
    path.write_text("| Step | Training Loss | Validation Loss |\n|------|------|------|\n| 100 | 2.0 | No log |\n| 200 | 1.0 | 1.5 |\n")
    read = parsers.read_file(path, tmp_path)
    assert not read.gaps


@pytest.mark.parametrize("between", ["", "step   loss   gnorm\n", "Traceback: none\nstep   loss   gnorm\n"])
def test_a_table_goes_on_after_a_restart(tmp_path: Path, between: str) -> None:
    rows = "".join(f"{i:4d} {v:.4f} 0.500\n" for i, v in LOSSES)
    assert series(tmp_path, "step   loss   gnorm\n" + rows + between + rows)["loss"] == LOSSES * 2


def test_other_rows_of_as_many_columns_are_not_the_tables(tmp_path: Path) -> None:
    found = series(
        tmp_path, "step   loss   gnorm\n   7 2.0000 0.500\n   8 1.0000 0.500\nConfusion matrix\n0 12 3\n1 2 14\n9 0.5 0.500\n2 0.97 0.98\n"
    )
    assert found["loss"] == [(7, 2.0), (8, 1.0), (9, 0.5)]


def test_numbers_without_names_are_named_so(tmp_path: Path) -> None:
    path = tmp_path / "values.txt"
    path.write_text("10 2.0 2.1\n20 1.0 -1.1\n30 nan 1e-3\n")
    assert parsers.read_file(path, tmp_path).source.format == "a table of numbers without names of columns"
    path.write_text("10 steps 2.1\n20 steps 1.1\n")
    assert parsers.read_file(path, tmp_path).source.format == "text that no parser knows"


def test_a_norm_in_bars_is_a_column(tmp_path: Path) -> None:
    text = "# hidden=48x3 seed=61\n   iter        total        |g|         lr\n" + "".join(
        f"  {20 * i:5d}  {1 / (i + 1):.5e}  {2 / (i + 1):.3e}  2.000e-03\n" for i in range(5)
    )
    found = series(tmp_path, text, "run.txt")
    assert found["|g|"] == [(20 * i, pytest.approx(2 / (i + 1), rel=1e-3)) for i in range(5)]
    assert {r.name for r in (parsers.read_all(tmp_path)[0].meanings).values()} >= {"grad.norm", "loss.train", "lr"}


@pytest.mark.parametrize("corner", ["METRIC", "Measure", "Client"])
def test_a_column_for_each_data_set(tmp_path: Path, corner: str) -> None:
    """A corner that names something else heads rows of clients or layers, not of metrics."""
    table = f"-----\n{corner:10} | TRAIN  | VALIDATION\n-----\n" + "Loss       | {}.50   | {}.75\nF1 Score   | 0.5000 | 25 %\n-----\n"
    text = (
        "".join(f"\nEpoch {e}/3\n" + table.format(4 - e, 5 - e) for e in (1, 2, 3)) + "Loss | 9.5 | 9.5\nand | so | on\nLoss | 9.5 | 9.5\n"
    )
    found = series(tmp_path, text)
    if corner == "Client":
        assert "train Loss" not in found
        return
    assert found["train Loss"][:3] == [(1, 3.5), (2, 2.5), (3, 1.5)]
    assert found["validation Loss"][:3] == [(1, 4.75), (2, 3.75), (3, 2.75)]
    assert found["validation F1 Score"] == [(1, 25.0), (2, 25.0), (3, 25.0)] and len(found["train Loss"]) == 4  # until another line comes


def test_a_split_in_brackets_is_of_the_name_that_it_touches(tmp_path: Path) -> None:
    text = "".join(f"Epoch {n}/9 | Loss(Tr) {v} | Loss(Val) {v + 1} | Acc (Val) 0.5\n" for n, v in LOSSES)
    found = series(tmp_path, text)
    assert found["Loss(Tr)"] == [*LOSSES] and "val Loss(Tr)" not in found
    assert {"Loss(Val)", "Acc (Val)"} <= found.keys()


def test_a_total_with_the_unit_of_a_time_is_no_sum_of_losses(tmp_path: Path) -> None:
    """CatBoost writes milliseconds at first, and then seconds."""
    text = "".join(
        f"{100 * n}:\tlearn: {0.6 - n / 20:.4f}\ttest: {0.7 - n / 30:.4f}\tbest: 0.3 ({n})\ttotal: {n + 1}.5{'s' if n else 'ms'}\tremaining: 9s\n"
        for n in range(9)
    )
    (tmp_path / "train.log").write_text(text)
    (run,) = parsers.read_all(tmp_path)
    told = {r["tag"]: r["name"] for r in run.tables["metrics"].to_pylist()}
    assert (told["learn"], told["test"], told["total so far"]) == ("loss.train", "loss.eval", "other/total so far")

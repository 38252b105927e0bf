"""Tables of numbers without names of columns: what is read of them, and what is left alone."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import parsers
from parsers.formats import console, csv_log, yolo_results
from parsers.tables import HEAD_BYTES

ROWS = range(20)


def read(tmp_path: Path, name: str, text: str) -> dict[str, list[tuple[int, float]]]:
    (tmp_path / name).write_text(text)
    series: dict[str, list[tuple[int, float]]] = {}
    for row in parsers.read(tmp_path).tables["metrics"].to_pylist():
        series.setdefault(f"{row['tag']} {row['name']}", []).append((row["step"], row["value"]))
    return series


@pytest.mark.parametrize("name", ["rewards.txt", "reward.dat", "rewards.csv", "rewards.log"])
def test_the_one_column_that_does_not_count_is_named_by_the_file(tmp_path: Path, name: str) -> None:
    found = read(tmp_path, name, "".join(f"{i:3} {1000 * i:7} {i / 8}\n" for i in ROWS))
    assert found[f"{Path(name).stem} rl.reward"] == [(1000 * i, i / 8) for i in ROWS]


def test_a_column_alone_is_read_where_the_file_names_it(tmp_path: Path) -> None:
    found = read(tmp_path, "val_loss.txt", "".join(f"{3 - i / 8:.3e}\n" for i in ROWS))
    assert found == {"val_loss loss.eval": [(i, 3 - i / 8) for i in ROWS]}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("data.txt", "".join(f"{i} {i / 8}\n" for i in ROWS)),  # a name that says nothing
        ("loss.txt", "".join(f"{i / 8} {i / 7} {i / 3}\n" for i in ROWS)),  # which of the three?
        ("accuracy.txt", "0.93\n"),  # one number shows no habit
        ("loss.txt", "".join(f"{i} {i / 8}\n" for i in ROWS) + "good enough\n" * 9),
    ],
)
def test_numbers_that_nothing_names_are_not_read(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert not csv_log.claims(path, text.encode()[:HEAD_BYTES])


def split_log(accuracy: str = "falls", mark: str = " ") -> str:
    hits = {"falls": lambda i: 0.5 + i / 64, "few": lambda i: (i * 7 % 5) / 8, "open": lambda i: (i * 7 % 20) / 32}[accuracy]
    return "".join(f"{i}{mark}{0.5 + ((i * 3) % 20) / 64 if accuracy != 'falls' else 0.9 - i / 64}{mark}{hits(i)}\n" for i in ROWS)


@pytest.mark.parametrize(("name", "kind"), [("train_log.txt", "train"), ("eval.log", "eval"), ("validation_history.txt", "eval")])
@pytest.mark.parametrize("accuracy", ["falls", "few"])
@pytest.mark.parametrize("mark", [" ", ", "])
def test_the_log_of_a_split_is_one_of_loss_and_accuracy(tmp_path: Path, name: str, kind: str, accuracy: str, mark: str) -> None:
    found = read(tmp_path, name, split_log(accuracy, mark))
    split = name.removesuffix(".txt").removesuffix(".log").partition("_")[0]
    assert len(found[f"{split}/loss loss.{kind}"]) == len(found[f"{split}/accuracy acc.{kind}"]) == len(ROWS)


@pytest.mark.parametrize(
    ("name", "accuracy"),
    [
        ("train_log.txt", "open"),  # which is which?
        ("train.txt", "falls"),  # a data set is called so, too
        ("log.txt", "falls"),
        ("train_eval_log.txt", "falls"),
    ],
)
def test_columns_of_which_nothing_says_what_they_are(tmp_path: Path, name: str, accuracy: str) -> None:
    path = tmp_path / name
    path.write_text(split_log(accuracy))
    assert not csv_log.claims(path, path.read_bytes()[:HEAD_BYTES])


@pytest.mark.parametrize("exact", [True, False])
def test_a_perplexity_is_the_exponent_of_the_loss_beside_it(tmp_path: Path, exact: bool) -> None:
    text = "".join(f"{i}, {150 - i}.0, {math.exp(min(150 - i, 100)):.5f}, {47 + i % 7}.5\n" for i in range(60))
    found = read(tmp_path, "train.log", text if exact else text.replace("2688117", "9688117"))
    assert ("train/ppl ppl.train" in found) == exact and ("train/accuracy acc.train" in found) == exact


def test_launches_that_append_to_the_log_of_a_split(tmp_path: Path) -> None:
    """Rows of the later one lack the perplexity, and its counter begins anew: an epoch does."""
    first = "".join(f"{i}, nan, nan, {47 + i % 7}.5\n" for i in range(12))
    (tmp_path / "eval.log").write_text(first + "".join(f"{i}, {4 - i / 32}, nan\n" for i in range(30)))
    run = parsers.read(tmp_path)
    rows = [r for r in run.tables["metrics"].to_pylist() if r["tag"] == "eval/loss"]
    assert [r["step"] for r in rows] == [*range(30)] and rows[-1]["value"] == 4 - 29 / 32


def test_a_best_score_that_mostly_rises_is_no_step(tmp_path: Path) -> None:
    found = read(tmp_path, "results.csv", "".join(f"{i},{i * i},{-i / 8}\n" for i in ROWS))
    assert found["column_2 other/column_2"] == [(i, i * i) for i in ROWS]


def test_a_clock_is_no_metric_but_tokens_are(tmp_path: Path) -> None:
    found = read(tmp_path, "a.csv", "".join(f"{i},{i / 8},{1_700_000_000 + 60 * i + i % 3},{10_000_000 * i * i}\n" for i in ROWS))
    assert sorted(found) == ["column_1 other/column_1", "column_2 other/column_2", "column_4 other/column_4"]


def test_blanks_set_the_columns_of_a_csv_apart(tmp_path: Path) -> None:
    found = read(tmp_path, "fitness_history.csv", "".join(f"{-i / 8}  {-i / 4}\r\r\n" for i in ROWS))
    assert found["column_2 other/column_2"] == [(i, -i / 4) for i in ROWS]


def test_the_logger_of_torch7(tmp_path: Path) -> None:
    text = "% mean class accuracy (train set)\t% mean class accuracy (test set)\t\n" + "".join(f" {i}.5\t {i}.25\t\n" for i in ROWS)
    found = read(tmp_path, "train.log", text)
    assert found["% mean class accuracy (train set) acc.train"] == [(i, i + 0.5) for i in ROWS]
    assert found["% mean class accuracy (test set) acc.eval"] == [(i, i + 0.25) for i in ROWS]


def yolo(epochs: range, last: str = "0.5", evaluated: bool = True) -> str:
    row = "{0:>10}/99     3.66G      0.04      0.03      0.02      0.09        13       640"
    tail = f"       0.8       0.4       0.6 {last:>9}      0.05      0.04      0.03\n" if evaluated else "         0" * 7 + "\n"
    return "".join(row.format(i) + tail for i in epochs)


def test_results_of_yolo_have_fixed_columns(tmp_path: Path) -> None:
    found = read(tmp_path, "results.txt", yolo(range(3), evaluated=False) + yolo(range(3, 6)) + "       6/99     3.66G      0.0")
    assert found["train/loss loss.train"] == [(i, 0.09) for i in range(6)]
    assert found["metrics/mAP_0.5:0.95 other/metrics/mAP_0.5:0.95"] == [(i, 0.5) for i in range(3, 6)]  # seven zeros: no evaluation
    assert found["val/obj_loss loss.aux"] == [(i, 0.04) for i in range(3, 6)]
    assert not any("640" in name or value[0][1] in (13.0, 640.0) for name, value in found.items())


def test_the_f1_of_yolov3_is_no_map(tmp_path: Path) -> None:
    found = read(tmp_path, "results.txt", yolo(range(5), last="0.5333"))  # 2 * 0.8 * 0.4 / 1.2
    assert "metrics/F1 other/metrics/F1" in found


def test_a_bar_of_fewer_columns_is_no_result_of_yolo(tmp_path: Path) -> None:
    text = "".join(f" {i}/99  3.66G  0.04  0.03  0.02\n" for i in ROWS)
    path = tmp_path / "results.txt"
    assert not yolo_results.claims(path, text.encode()) and not console.claims(path, yolo(range(9)).encode())


def test_whole_numbers_that_count_nothing_are_a_data_set(tmp_path: Path) -> None:
    """Triples of a graph beside a log: their rows are no steps."""
    (tmp_path / "train.tsv").write_text("".join(f"{(7 * i) % 31}\t{(5 * i) % 3}\t{(11 * i) % 29}\n" for i in range(200)))
    (tmp_path / "log.jsonl").write_text("".join(f'{{"step": {i}, "loss": {3 - i / 50}}}\n' for i in ROWS))
    run = parsers.read(tmp_path)
    assert {row["tag"] for row in run.tables["metrics"].to_pylist()} == {"loss"}
    assert "a data set" in next(s.note for s in run.sources if s.path == "train.tsv")


def test_a_console_that_was_sent_to_a_file_called_a_table_is_read_as_one(tmp_path: Path) -> None:
    found = read(
        tmp_path, "train_log.csv", "".join(f"Epoch: [{i}/20], training loss: {3 - i / 16}, training accuracy: {i}.0%\n" for i in ROWS)
    )
    assert len(found["training loss loss.train"]) == len(ROWS)
    (tmp_path / "log.csv").write_text('  File "train.py", line 3, in main\n    fit()\nKeyError: "IMAGENET1K_V2"\n')
    assert "KeyError" in str(parsers.read(tmp_path / "log.csv").tables["events"].to_pylist())

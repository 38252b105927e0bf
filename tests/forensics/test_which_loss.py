"""Which logged series is judged as the loss where none is called so, or where several might be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import forensics
from forensics.errors import CannotTell
from forensics.run import inputs
from forensics.run.scores import scores
from forensics.run.series import series
from parsers.objectives import objective
from tests.forensics.curves_in_logs import learns, run

SETS = "{i:2d}  train {a:.4f}   test {b:.4f}\n"


def test_the_same_error_on_both_sides(tmp_path: Path) -> None:
    r = run(tmp_path, train_mae=learns(2, 1), train_mse=learns(4, 1), val_mse=learns(4, 1.2), val_mae=learns(2, 1))
    assert [s.tag for name in ("loss.train", "loss.eval") if (s := series(r, name)) is not None] == ["train_mse", "val_mse"]
    assert "train_mae" in next(m.trap for (_, tag), m in r.meanings.items() if tag == "train_mse")


def test_nothing_stands_for_a_loss_that_was_logged(tmp_path: Path) -> None:
    r = run(tmp_path, loss=learns(4, 1), val_mse=learns(4, 1))
    assert series(r, "loss.eval") is None
    assert series(r, "other/val_mse") is not None


@pytest.mark.parametrize(("loss", "judged"), [("mse", "val_mse"), ("mse_loss", "val_mse"), ("huber", None)])
def test_the_error_that_config_names_as_the_loss_is_that_of_the_evaluation(loss: str, judged: str | None, tmp_path: Path) -> None:
    log = tmp_path / "metrics.jsonl"
    log.write_text("".join(json.dumps({"step": i, "loss": 1 / (i + 1), "val_mse": 2 / (i + 1)}) + "\n" for i in range(9)))
    (tmp_path / "config.json").write_text(json.dumps({"lr": 0.1, "loss": loss}))
    found = series(forensics.read(tmp_path), "loss.eval")
    assert (found.tag if found is not None else None) == judged


@pytest.mark.parametrize(
    ("tags", "judged"),
    [
        (["ctc", "val_loss"], "ctc"),
        (["kd/total", "kd/hard", "kd/soft", "val_loss"], "kd/total"),
        (["time/total", "time/data", "time/step", "val_loss"], None),
        (["kd/total", "val_loss"], None),  # of what?
        (["ctc", "infonce", "val_loss"], None),  # either
        (["ctc", "train_loss", "val_loss"], "train_loss"),
        (["mse_tr", "mse_te"], "mse_tr"),
    ],
)
def test_the_whole_of_a_training_beside_the_loss_of_its_evaluation(tags: list[str], judged: str | None, tmp_path: Path) -> None:
    found = series(run(tmp_path, **{tag.replace("/", "__"): learns(3, 1, i) for i, tag in enumerate(tags)}), "loss.train")
    assert (found.tag if found is not None else None) == judged


@pytest.mark.parametrize(
    ("tags", "judged"),
    [
        (["G/l1_hole", "D/loss", "val/l1_hole"], ["G/l1_hole", "val/l1_hole"]),
        (["l1_hole", "l1_whole", "val_l1_hole"], ["l1_hole", "val_l1_hole"]),  # the one that both have
        (["l1_hole", "l1_whole"], ["l1_hole"]),  # either: by its course the first
        (["G/l1_weight", "val/l1_weight"], []),
    ],
)
def test_an_error_says_in_front_or_behind_of_what_it_is(tags: list[str], judged: list[str], tmp_path: Path) -> None:
    r = run(tmp_path, **{tag.replace("/", "__"): learns(3, 1, i) for i, tag in enumerate(tags)})
    assert [s.tag for name in ("loss.train", "loss.eval") if (s := series(r, name)) is not None] == judged


def test_a_score_may_be_averaged_over_classes() -> None:
    for tag in ("val/f1_macro", "val_macro_f1", "val/weighted_f1"):
        assert (told := objective(tag)) is not None
        assert told.core == "f 1"
    assert objective("val/macro_size") is None


def test_the_sets_of_catboost_stand_for_the_loss_where_no_other_file_names_it(tmp_path: Path) -> None:
    rows_ = [
        f"{i}:\tlearn: {1 / (i + 2):.7f}\ttest: {1.1 / (i + 2):.7f}\tbest: 0.01 ({i})\ttotal: 7{i}ms\tremaining: 1s\n" for i in range(60)
    ]
    (tmp_path / "fit.log").write_text("".join(rows_) + "{'learn': {'Logloss': 0.0161}}\n")
    found = forensics.read(str(tmp_path))
    assert [s and (s.tag, len(s.value)) for s in (series(found, "loss.train"), series(found, "loss.eval"))] == [("learn", 60), ("test", 60)]
    (tmp_path / "learn_error.tsv").write_text("iter\tLogloss\n" + "".join(f"{i}\t{1 / (i + 2)}\n" for i in range(60)))
    named = series(forensics.read(str(tmp_path)), "loss.train")
    assert named is not None and named.tag == "train/Logloss"


def test_other_columns_of_these_names_are_no_loss(tmp_path: Path) -> None:
    (tmp_path / "fit.log").write_text("".join(f"step {i} learn: {i}.5 test: {i}.7 best: {i}.3\n" for i in range(60)))
    assert series(forensics.read(str(tmp_path)), "loss.train") is None


@pytest.mark.parametrize(
    ("first", "last", "judged"), [(2.3, 0.1, True), (0.9, 0.2, True), (2.3, 400.0, True), (0.1, 0.95, False), (11.0, 93.0, False)]
)
def test_sets_without_a_metric_are_losses_unless_they_rise_as_hits_do(first: float, last: float, judged: bool, tmp_path: Path) -> None:
    values = [first + (last - first) * i / 29 for i in range(30)]
    (tmp_path / "out.log").write_text("".join(SETS.format(i=i, a=v, b=1.02 * v) for i, v in enumerate(values)))
    r = forensics.read(str(tmp_path))
    if judged:
        assert inputs.loss_of(r).tag == "train"
    else:
        with pytest.raises(CannotTell, match="names no metric"):
            inputs.loss_of(r)


def test_sets_beside_a_named_accuracy_are_losses_though_they_rise(tmp_path: Path) -> None:
    rising = [2.0 + i for i in range(30)]
    (tmp_path / "out.log").write_text("".join(f"epoch {i} train {v:.4f} val {1.02 * v:.4f} acc 0.1{i}\n" for i, v in enumerate(rising)))
    assert inputs.loss_of(forensics.read(str(tmp_path))).tag == "train"


def test_a_set_alone_is_no_loss(tmp_path: Path) -> None:
    (tmp_path / "out.log").write_text("".join(f"step {i} train: {2.3 / (i + 1)} pixels: {i}.5\n" for i in range(30)))
    assert series(forensics.read(str(tmp_path)), "loss.train") is None


def test_of_two_errors_the_one_whose_tag_names_the_training_is_judged(tmp_path: Path) -> None:
    (tmp_path / "curve.csv").write_text("ep,mae_train,mae_val,rmse_val\n" + "".join(f"{i},{1 / (i + 1)},0.5,0.6\n" for i in range(20)))
    (tmp_path / "out.log").write_text("".join(f"epoch {i} train MAE {1 / (i + 1):.4f} val MAE 0.5 RMSE 0.6\n" for i in range(20)))
    assert inputs.loss_of(forensics.read(str(tmp_path))).tag in ("mae_train", "train MAE")


def test_a_key_that_is_a_call_keeps_the_number_in_it(tmp_path: Path) -> None:
    lines = [f"step {30 * i} rmse(train, last 30)={1.2 / i:.4f}" for i in range(1, 40)]
    lines += [f"step {30 * i} rmse(held-out)={1.3 / i:.4f} mae=0.9 n=8000" for i in range(10, 40, 10)]
    (tmp_path / "recsys.log").write_text("\n".join(lines) + "\n")
    r = forensics.read(str(tmp_path))
    assert [s and s.tag for s in (series(r, "loss.train"), series(r, "loss.eval"))] == ["rmse(train, last 30)", "rmse(held-out)"]


@pytest.mark.parametrize(
    ("tag", "judged"), [("lm/nats_per_byte", True), ("vae/objective", True), ("time/total", False), ("reg/cost", False), ("a/b/mse", False)]
)
def test_what_a_group_of_tags_calls_whole_is_judged(tag: str, judged: bool) -> None:
    assert (objective(tag) is not None) == judged


@pytest.mark.parametrize(("tag", "judged"), [("bpc", "bpc"), ("wer", "ppl")])
def test_a_whole_objective_goes_before_a_perplexity_that_was_logged_now_and_then(tag: str, judged: str, tmp_path: Path) -> None:
    logged = [{"step": i, tag: 2 + 3 / (1 + i)} | ({"ppl": 9 + 5 / (1 + i)} if i % 10 == 9 else {}) for i in range(60)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(r) + "\n" for r in logged))
    assert inputs.loss_of(forensics.read(str(tmp_path))).tag == judged


def test_a_recall_is_no_score_beside_a_precision(tmp_path: Path) -> None:
    alone = run(tmp_path / "a", loss=learns(4, 1), val_recall=learns(1, 0.1))
    beside = run(tmp_path / "b", loss=learns(4, 1), val_recall=learns(1, 0.1), val_precision=learns(1, 0.1))
    first_ten = run(tmp_path / "c", loss=learns(4, 1), val_recall_at_10=learns(1, 0.1), val_precision=learns(1, 0.1))
    assert [len(scores(r)) for r in (alone, beside, first_ten)] == [1, 0, 1]

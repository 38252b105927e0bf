"""Evaluations that scatter, stop improving, step or turn for the worse."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from runs import case, every, make, only, read, write

from forensics.detectors import divergence, eval_jump, eval_noise, eval_shadow, nonfinite, plateau, train_eval_gap
from forensics.errors import CannotTell


def scatter(i: int) -> float:
    return 0.02 * math.sin(i * i * 0.37)


def test_evaluations_within_their_noise_are_saturated(tmp_path: Path) -> None:
    flat = write(tmp_path / "r", 600, val_loss=every(20, lambda i: 0.05 + 2 * math.exp(-i / 60) + scatter(i)))
    found = only(list(eval_noise.detect(read(flat))))
    assert found.severity == "info"
    assert found.facts.noise == pytest.approx(0.014, abs=0.01)
    falling = write(tmp_path / "s", 600, val_loss=every(20, lambda i: 3.5 - i / 400 + scatter(i)))
    assert not list(eval_noise.detect(read(falling)))


@pytest.mark.parametrize(
    ("learns", "kind", "title"),
    [(0.0003, "plateau", "val_loss does not get better after step"), (0.002, "train_eval_gap", "while training loss falls by")],
)
def test_an_evaluation_that_no_later_one_betters_is_told(learns: float, kind: str, title: str, tmp_path: Path) -> None:
    """As a plateau; where training goes on to learn, beside what it learns."""
    held = every(20, lambda i: 1.5 + 2 * math.exp(-i / 60) + scatter(i) / 4)
    folder = write(tmp_path / "r", 600, loss=lambda i: 1.5 + 2 * math.exp(-i / 60) - learns * i + scatter(i), val_loss=held)
    run = read(folder)
    assert not list(eval_noise.detect(run))
    found = {f.kind: f for d in (plateau, train_eval_gap) for f in d.detect(run) if "after step" in f.title}
    assert found.keys() == {kind}
    assert title in found[kind].title
    assert found[kind].severity == "info"
    assert 180 <= found[kind].first_step <= 320


def test_a_smooth_trend_is_no_noise(tmp_path: Path) -> None:
    run = read(write(tmp_path / "r", 600, val_loss=every(20, lambda i: 3.5 - i / 400)))
    assert eval_noise.smallest_effect(run).startswith("a difference of")
    assert not list(eval_noise.detect(run))


def test_few_evaluations_cannot_tell(tmp_path: Path) -> None:
    with pytest.raises(CannotTell, match="fewer than 15"):
        list(eval_noise.detect(read(write(tmp_path / "r", 100, val_loss=every(20, lambda i: 2.0)))))


@pytest.mark.parametrize(("held", "told"), [(0.44, True), (0.9, False)])
def test_training_that_is_right_far_more_often_is_told_though_the_evaluation_improves(held: float, told: bool, tmp_path: Path) -> None:
    more = {
        "train_acc": lambda i: 0.97 - 0.9 * math.exp(-i / 60),
        "val_acc": every(50, lambda i: held - 0.3 * math.exp(-i / 200)),
        "val_loss": every(50, lambda i: 2.5 + math.exp(-i / 200)),
    }
    found = list(train_eval_gap.detect(read(write(tmp_path / "r", 600, **more))))  # type: ignore[arg-type]
    assert [(type(f.facts), f.severity) for f in found] == [(train_eval_gap.AnswersApart, "info")] * told


def test_any_metric_that_is_nan_to_the_end_is_told(tmp_path: Path) -> None:
    nan = float("nan")
    more = {
        "dice": every(50, lambda i: nan),
        "late": every(50, lambda i: 0.5 if i < 500 else nan),
        "once": every(50, lambda i: nan if i == 200 else 0.5),
    }
    found = list(nonfinite.detect(read(write(tmp_path / "r", 600, **more))))  # type: ignore[arg-type]
    assert [(f.facts.metric, f.severity) for f in found] == [("other/dice", "info")]


def test_a_mean_of_an_epoch_that_is_nan_is_told_though_no_logged_step_is(tmp_path: Path) -> None:
    epoch_means = every(50, lambda i: float("nan") if i == 150 else 0.5)
    (found,) = nonfinite.detect(read(write(tmp_path / "r", 300, train_loss=epoch_means)))
    assert (found.first_step, found.title) == (150, "train_loss is NaN at step 150, 1 value in all, finite again in between")


def test_hits_that_fall_with_the_training_loss_are_no_other_evaluation(tmp_path: Path) -> None:
    def log(name: str, after: float) -> Path:
        hits = every(20, lambda i: 0.9 - 0.5 * (i > 200) + scatter(i) / 4)
        return write(tmp_path / name, 400, loss=lambda i: 0.3 if i <= 200 else after, val_acc=hits)

    assert only(list(eval_jump.detect(read(log("calm", 0.3))))).facts.metric == "acc.eval"
    assert not list(eval_jump.detect(read(log("jumps", 8.0))))


@pytest.mark.parametrize(("last", "fires"), [(24.0, True), (16.0, False)])
def test_a_steep_first_fall_does_not_hide_what_is_lost_again(last: float, fires: bool, tmp_path: Path) -> None:
    """The evaluation begins at 174, is best at 15 and ends half as high again: a twentieth of all it had gained. Or a little above its best."""
    up = every(10, lambda i: 15 + (last - 15) * (i - 100) / 400 if i > 100 else 15 + 159 * math.exp(-i / 12))
    rows = [{"step": i, "loss": 240 * math.exp(-i / 90), "val_loss": up(i)} for i in range(1, 501)]  # type: ignore[operator]
    run = read(make(tmp_path, [{k: v for k, v in r.items() if v is not None} for r in rows]))
    found = [f for f in train_eval_gap.detect(run) if isinstance(f.facts, train_eval_gap.Facts)]
    assert bool(found) == fires


@pytest.mark.parametrize(("last", "fires"), [(0.7, True), (0.5, False)])
def test_evaluations_that_scatter_widely_are_judged_by_medians_of_many(last: float, fires: bool, tmp_path: Path) -> None:
    noise = np.random.default_rng(2).normal(0, 0.06, 201)
    level = lambda i: 0.5 + 1.4 * math.exp(-i / 20) + (last - 0.5) * min(i / 200, 1)  # noqa: E731
    more = {"val_loss": every(3, lambda i: level(i) + float(noise[i // 3])), "loss": lambda i: 1.9 * math.exp(-i / 100)}
    assert bool([f for f in train_eval_gap.detect(read(write(tmp_path / "r", 600, **more))) if f.severity == "warning"]) == fires  # type: ignore[arg-type]


@pytest.mark.parametrize("plateau", [2, 12])
def test_an_evaluation_that_leaves_the_level_of_a_guess_has_learnt(plateau: int, tmp_path: Path) -> None:
    """At first not at all, then fast, in a log without a training loss."""
    rows = [{"step": 10 * k, "val_loss": (1.386 if k <= plateau else 0.7) + scatter(10 * k) / 10} for k in range(1, 26)]
    found = only(list(eval_jump.detect(read(make(tmp_path, rows)))))
    assert (found.severity, found.facts.step) == ("info", 10 * plateau + 10)


def test_a_better_evaluation_out_of_nothing_is_told_after_learning_has_become_slow(tmp_path: Path) -> None:
    held = every(10, lambda i: (2 * math.exp(-i / 30) + 1 if i <= 150 else 0.5) + scatter(i) / 10)
    found = only(list(eval_jump.detect(read(write(tmp_path / "r", 300, loss=lambda i: 1.0, val_loss=held)))))
    assert (found.severity, found.facts.step) == ("warning", 160)


def test_a_better_evaluation_where_the_rate_falls_is_learning(tmp_path: Path) -> None:
    held = every(10, lambda i: (2 * math.exp(-i / 30) + 1 if i <= 150 else 0.5) + scatter(i) / 10)
    run = read(write(tmp_path / "r", 300, loss=lambda i: 1.0 + scatter(i), val_loss=held, lr=lambda i: 0.02 if i <= 151 else 0.002))
    assert only(list(eval_jump.detect(run))).severity == "info"


def test_a_score_that_steps_alone_beside_its_evaluation_loss_is_information(tmp_path: Path) -> None:
    for alone, severity in ((True, "info"), (False, "warning")):
        error = every(10, lambda i: (0.3 if i <= 150 else 0.9) + scatter(i) / 10)
        loss = every(10, lambda i, alone=alone: (1.0 if alone or i <= 150 else 2.5) + scatter(i) / 10)
        run = read(write(tmp_path / severity, 300, loss=lambda i: 1.0 + scatter(i), val_nll=loss, val_rmse=error))
        assert [f.severity for f in eval_jump.detect(run)] == [severity]


def test_a_fast_first_fall_hides_no_evaluation_that_became_worse(tmp_path: Path) -> None:
    losses = [1.388, 1.093, 0.648, 0.516, 0.497, 0.491, 0.845, 0.913, 0.805, 0.815, 0.859]
    rows = [{"step": i, "loss": 2 * math.exp(-i / 100)} | ({"val_loss": losses[i // 50 - 1]} if i % 50 == 0 else {}) for i in range(1, 560)]
    assert only(list(eval_jump.detect(read(make(tmp_path, rows))))).first_step == 350


def test_a_few_bad_evaluations_that_are_over_are_no_other_level(tmp_path: Path) -> None:
    """The summed validation losses of a YOLO run: two of eighteen were bad."""
    losses = [
        5.66,
        4.86,
        4.46,
        4.02,
        3.77,
        3.42,
        3.12,
        2.80,
        2.58,
        2.41,
        2.23,
        2.12,
        2.27,
        2.17,
        2.25,
        2.87,
        3.54,
        2.03,
        2.03,
        2.04,
        1.91,
        1.94,
        1.98,
        1.99,
    ]
    rows = [
        {"step": i, "loss": 1 + math.exp(-i / 100)} | ({"val_loss": losses[i // 50 - 1]} if i % 50 == 0 else {}) for i in range(1, 1201)
    ]
    assert not list(eval_jump.detect(read(make(tmp_path, rows))))


def test_a_training_loss_that_climbs_while_evaluations_go_on_improving_harms_nothing(tmp_path: Path) -> None:
    def climbs(i: int) -> float:
        return 0.1 + max(i - 100, 0) / 500 + scatter(i) / 10

    better = case(write(tmp_path / "r", 600, loss=climbs, val_loss=every(20, lambda i: 3.5 - i / 400 + scatter(i))))
    assert better["verdict"] == "healthy"
    (told,) = [f for f in better["findings"] if f["kind"] == "divergence"]
    assert told["severity"] == "info" and "while the evaluation loss goes on falling" in told["title"]
    worse = write(tmp_path / "s", 600, loss=climbs, val_loss=every(20, lambda i: 3.5 - min(i, 200) / 400 + scatter(i)))
    assert "critical" in {f.severity for f in divergence.detect(read(worse))}


def test_a_score_speaks_for_harder_data_where_no_evaluation_loss_was_logged(tmp_path: Path) -> None:
    def climbs(i: int) -> float:
        return 11 + max(i - 100, 0) / 50 + scatter(i)

    better = case(write(tmp_path / "r", 600, loss=climbs, val_elbo=every(20, lambda i: -60 + i / 20 + scatter(i))))
    (told,) = [f for f in better["findings"] if f["kind"] == "divergence"]
    assert told["severity"] == "info" and "while val_elbo goes on getting better, from -5" in told["title"]
    worse = write(tmp_path / "s", 600, loss=climbs, val_elbo=every(20, lambda i: -60 + min(i, 200) / 20 + scatter(i)))
    assert "critical" in {f.severity for f in divergence.detect(read(worse))}


def hits_step(i: int, to: float = 0.42) -> float:
    """MRR that was learnt by step 200 and steps up at step 600."""
    return min(0.2 + i / 5000, 0.24) + 0.005 * math.sin(i) if i <= 600 else to + 0.005 * math.sin(i)


def settled(i: int) -> float:
    return 5 * math.exp(-i / 50) + 0.2 + scatter(i) / 10


def test_hits_that_step_up_beside_a_settled_training_loss_are_another_evaluation(tmp_path: Path) -> None:
    runs = {
        "other pool": ("warning", settled, hits_step, None),
        "learns": ("info", lambda i: 3.0 - i / 500, hits_step, None),  # training falls on
        "rate decay": ("info", settled, hits_step, lambda i: 1e-3 if i <= 650 else 1e-4),
        "grokking": ("info", settled, lambda i: hits_step(i, to=0.99), None),
        "goes on": ("info", settled, lambda i: hits_step(i) + max(0, i - 700) / 2000, None),
    }
    for name, (severity, train, held, rate) in runs.items():
        more = {"lr": rate} if rate is not None else {}
        run = read(write(tmp_path / name, 1000, loss=train, val_mrr=every(100, held), **more))
        assert [f.severity for f in eval_jump.detect(run)] == [severity], name


@pytest.mark.parametrize(("recon", "kl", "grave"), [(2.0, 1.0, True), (1.0, 2.0, False), (1.0, 1.0, False)])
def test_a_term_of_the_evaluation_that_steps_where_no_whole_was_logged(recon: float, kl: float, grave: bool, tmp_path: Path) -> None:
    """An autoencoder evaluates its reconstruction alone; a divergence is a penalty."""
    train = {"train/recon": lambda i: 40 + 60 * math.exp(-i / 60), "train/kl": lambda i: 5.0}
    held = {
        "eval/recon": every(20, lambda i: (recon if i > 200 else 1) * (42 + 60 * math.exp(-i / 60))),
        "eval/kl": every(20, lambda i: 5 * (kl if i > 200 else 1)),
    }
    run = read(write(tmp_path / "r", 400, loss=lambda i: 45 + 60 * math.exp(-i / 60), **train, **held))  # type: ignore[arg-type]
    try:
        found = [f.facts.step for f in eval_jump.detect(run) if f.severity == "warning"]
    except CannotTell:
        found = []
    assert found == [220] * grave


@pytest.mark.parametrize(("back", "told"), [(5, ["warning"]), (2, [])])
def test_a_step_of_the_evaluation_stays(back: int, told: list[str], tmp_path: Path) -> None:
    """Three high ones among others are noise."""
    held = [1.0 + 0.03 * (k % 3) for k in range(16)]
    held[8 : 8 + back + 1] = [1.6] * len(held[8 : 8 + back + 1])
    rows = write(tmp_path / "r", 320, loss=lambda i: 1.0, val_loss=lambda i: held[i // 20 - 1] if i % 20 == 0 else None)
    assert [f.severity for f in eval_jump.detect(read(rows))] == told


def test_a_curve_that_falls_as_fast_behind_a_step_for_the_better_is_learning(tmp_path: Path) -> None:
    held = [1.42, 1.31, 1.21, 0.92, 0.80, 0.67, 0.61, 0.50, 0.45, 0.43, 0.44, 0.39, 0.38, 0.36, 0.36, 0.33]
    noisy = [2.0, 5.7, 14.0, 5.7, 1.1, 0.5]
    rows = write(tmp_path / "r", 320, loss=lambda i: noisy[i % 6], val_loss=lambda i: held[i // 20 - 1] if i % 20 == 0 else None)
    assert [f for f in eval_jump.detect(read(rows)) if f.severity != "info"] == []


@pytest.mark.parametrize(("end", "grave"), [(-12.9, True), (-14.0, False)])
def test_an_evaluation_on_another_scale_that_loses_what_it_had_gained(end: float, grave: bool, tmp_path: Path) -> None:
    """Likelihoods of other sums: the evaluation lies below the training loss throughout, and what it had gained is lost by half."""
    held = every(10, lambda i: -12.7 - 1.95 * min(i / 100, 1) + (end + 14.65) * max(i - 100, 0) / 300)
    run = read(write(tmp_path / "r", 400, loss=lambda i: -5 - 5.3 * (1 - math.exp(-i / 90)), val_loss=held))
    assert [f.severity for f in train_eval_gap.detect(run)] == (["warning"] if grave else ["info"])


@pytest.mark.parametrize(
    ("final", "hits", "severity"),
    [
        (0.26, lambda i: 0.95, "info"),
        (0.26, lambda i: 0.95 - max(i - 150, 0) / 3000, "warning"),
        (0.40, lambda i: 0.95, "warning"),  # twice what it was
        (0.26, None, "warning"),
    ],
)
def test_a_little_more_loss_with_as_many_hits_is_told(
    final: float, hits: Callable[[int], float] | None, severity: str, tmp_path: Path
) -> None:
    up = every(10, lambda i: 0.2 + (final - 0.2) * (i - 100) / 400 if i > 100 else 0.2 + math.exp(-i / 12))
    more = {"val_acc": every(10, hits)} if hits else {}
    run = read(write(tmp_path / "r", 500, loss=lambda i: 2 * math.exp(-i / 60), val_loss=up, **more))  # type: ignore[arg-type]
    assert only(list(train_eval_gap.detect(run))).severity == severity


def test_a_loop_that_counts_anew_is_no_other_evaluation(tmp_path: Path) -> None:
    """A second loop of a notebook goes on with another rate, or without augmentation."""
    lines = [
        f"{i:2d}  train {1.6 + scatter(i):.4f}   test {1.05 + scatter(i + 1):.4f}   acc {0.86 + scatter(i) / 10:.3f}" for i in range(20)
    ]
    lines += [f"{i:2d}  train {0.8 / (1 + i):.4f}   test {0.32 / (1 + i / 4):.4f}   acc {0.93 + i / 400:.3f}" for i in range(8)]
    (tmp_path / "out.log").write_text("\n".join(lines) + "\n")
    assert not [f for f in eval_jump.detect(read(tmp_path)) if f.severity != "info"]


@pytest.mark.parametrize(
    ("more", "fires"),
    [
        ({}, True),
        ({"loss": lambda i: 2 - i / 400}, False),  # the whole of the training was logged, and no evaluation of it
        ({"val_cls": every(20, lambda i: 1.2 - i / 1000)}, False),
        ({"val_cls": lambda i: None}, False),
        ({"val_box": every(20, lambda i: 0.4 - i / 5000)}, False),  # another term gets better
        ({"val_box": every(20, lambda i: 0.2 + i / 5000)}, True),
    ],
)
def test_a_term_of_both_where_no_whole_was_logged(more: dict[str, Callable[[int], object]], fires: bool, tmp_path: Path) -> None:
    """As the tables of Ultralytics and many a notebook have it."""
    of = {"cls": lambda i: math.exp(-i / 200), "box": lambda i: 0.3 * math.exp(-i / 200), "val_cls": every(20, lambda i: 0.8 + i / 600)}
    logged = {**of, **more}
    rows = [{"step": i} | {k: x for k, f in logged.items() if (x := f(i)) is not None} for i in range(600)]
    run = read(make(tmp_path / "r", rows))
    try:
        found = list(train_eval_gap.detect(run))
    except CannotTell:
        found = []
    assert [f.title.partition(" is ")[0] for f in found] == ["val_cls"] * fires


@pytest.mark.parametrize(
    ("tag", "value", "told"),
    [
        ("val_loss", lambda i: 2 - i / 300 if i < 200 else 1.333 + (i - 200) / 6000, "Evaluation loss is lowest at step 200"),
        ("metrics/psnr", lambda i: 20 + i / 25 if i < 200 else 28 - (i - 200) / 400, "metrics/psnr is highest at step 200"),
        ("val_loss", lambda i: 2 - i / 300 if i < 200 else 1.333 + (i - 200) / 30000, None),  # 1 %
        ("metrics/train_psnr", lambda i: 20 + i / 25 if i < 200 else 28 - (i - 200) / 200, None),
        ("val_loss", lambda i: 1.5 + scatter(i), None),
    ],
)
def test_an_evaluation_past_its_best_is_told(tag: str, value: Callable[[int], float], told: str | None, tmp_path: Path) -> None:
    run = read(write(tmp_path / "r", 600, loss=lambda i: 2 - 1e-9 * i, **{tag: every(50, value)}))
    try:
        found = [f for f in train_eval_gap.detect(run) if isinstance(f.facts, train_eval_gap.PastBest)]
    except CannotTell:
        found = []
    assert [(f.severity, f.title.startswith(told or "")) for f in found] == ([("info", True)] if told else [])


@pytest.mark.parametrize(
    ("train", "hits", "severity"),
    [(0.3, 0.6, "warning"), (0.3, 0.8, "info"), (3.0, 0.6, "warning")],
    ids=["and fewer answers right", "and as many answers right", "below a training loss that falls"],
)
def test_an_evaluation_that_ends_at_twice_its_best_is_a_warning(train: float, hits: float, severity: str, tmp_path: Path) -> None:
    """Whatever the training loss does: no overfitting, and nothing that its owner would keep."""
    more = {"val_loss": lambda i: 0.2 if i < 300 else 0.4, "val_acc": lambda i: 0.8 if i < 300 else hits}
    rows = write(tmp_path / "r", 600, loss=lambda i: train * (1 + (train > 1) / i), **{k: every(50, f) for k, f in more.items()})  # type: ignore[arg-type]
    found = list(train_eval_gap.detect(read(rows)))
    assert [(type(f.facts), f.severity) for f in found] == [(train_eval_gap.PastBest, severity)]


def test_of_three_evaluations_a_tenth_is_told(tmp_path: Path) -> None:
    for name, last, fires in (("a", 0.443, True), ("b", 0.33, False)):
        rows = [{"step": i, "loss": 0.5 - i / 10, "val_loss": v} for i, v in enumerate((0.318, 0.32, last))]
        try:
            found = list(train_eval_gap.detect(read(make(tmp_path / name, rows))))
        except CannotTell:
            found = []
        assert bool(found) == fires


@pytest.mark.parametrize(("tag", "test", "fires"), [("rmse", 1.2, True), ("rmse", 0.5, False), ("mse", 1.2, False), ("loss", 1.2, False)])
def test_roots_of_squared_errors_are_held_against_each_other_as_squares(tag: str, test: float, fires: bool, tmp_path: Path) -> None:
    def held(i: int) -> float:
        return 0.4 + math.exp(-i / 20)

    rows = [{"step": i, "epoch": 0, f"train_{tag}": held(i), f"val_{tag}": held(i)} for i in range(100)]
    run = read(make(tmp_path, [*rows, {"step": 99, f"test_{tag}": test}]))
    assert [f.facts.other for f in eval_shadow.detect(run) if f.facts.other is not None] == [test] * fires


def test_two_evaluations_are_no_level_from_which_one_steps_for_the_better(tmp_path: Path) -> None:
    """The first two of a run that learns fast scatter; later ones lie at half of the second."""
    held = [1.0, 1.34, 0.65, 0.73, 0.71, 0.66, 0.55, 0.53, 0.56, 0.6, 0.58, 0.55]
    run = read(write(tmp_path / "early", 240, loss=lambda i: 1.0, val_loss=lambda i: held[i // 20 - 1] if i % 20 == 0 else None))
    assert [f.severity for f in eval_jump.detect(run)] == ["info"]
    later = [1.3, 1.34, 1.31, 1.33, 1.3, 0.65, 0.66, 0.64, 0.65, 0.66, 0.65, 0.64]
    run = read(write(tmp_path / "later", 240, loss=lambda i: 1.0, val_loss=lambda i: later[i // 20 - 1] if i % 20 == 0 else None))
    assert [f.severity for f in eval_jump.detect(run)] == ["warning"]

"""Signs of the loss beside the share of right answers: each in a faulty run and its healthy twin."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from forensics.run.evaluations import outcomes
from forensics.run.series import Floats
from forensics.signs import loss_below_misses, loss_beside_hits, loss_level
from forensics.signs.sign import ABSENT, CANNOT_TELL, SEEN, Symptoms
from parsers.names import Meaning
from tests.forensics.curves import run_of
from tests.forensics.small_runs import analyzed, kinds

N = 60
HITS = np.linspace(0.1, 0.97, N) ** 0.3
TWICE = math.log(math.e + 9) - HITS  # probabilities for logits, once the model is sure
SURE = 0.05 + 3 * (1 - HITS)
SMOOTHED = SURE + 0.5
CONFIG = {"num_classes": 10}


@pytest.mark.parametrize(
    ("loss", "floor", "high"), [(TWICE, SEEN, SEEN), (SURE, ABSENT, ABSENT), (SMOOTHED, ABSENT, SEEN)], ids=["twice", "sure", "smoothed"]
)
@pytest.mark.parametrize("hits", [HITS, 100 * HITS], ids=["share", "percent"])
def test_what_keeps_the_loss_up(loss: Floats, hits: Floats, floor: str, high: str) -> None:
    s = Symptoms(run_of({"loss.train": loss, "acc.train": hits}, config=CONFIG), ())
    assert loss_beside_hits.loss_of_probabilities(s).state == floor
    assert loss_beside_hits.loss_high_for_its_hits(s).state == high


def test_label_smoothing_holds_a_loss_up_as_well() -> None:
    s = Symptoms(run_of({"loss.train": TWICE, "acc.train": HITS}, config=CONFIG | {"label_smoothing": 0.1}), ())
    assert loss_beside_hits.loss_of_probabilities(s).state == CANNOT_TELL


def test_a_loss_that_was_below_what_probabilities_allow_is_of_logits() -> None:
    """A regularized model whose loss and hits only happen to add up: it came lower before, or beside fewer hits."""
    by_chance = TWICE - np.where(np.arange(N) < 40, 0.2, 0.0)
    s = Symptoms(run_of({"loss.train": by_chance, "acc.train": HITS}, config=CONFIG), ())
    assert loss_beside_hits.loss_of_probabilities(s).state == ABSENT


def test_dropout_and_overfitting_do_not_make_it() -> None:
    """Of held-out answers the lower of both losses counts: dropout lifts that of training, overfitting that of evaluation."""
    for train, held_out in ((SMOOTHED, SURE), (SURE, SMOOTHED)):
        s = Symptoms(run_of({"loss.train": train, "loss.eval": held_out, "acc.eval": HITS}, config=CONFIG), ())
        assert loss_beside_hits.loss_high_for_its_hits(s).state == ABSENT


def test_the_classes_are_read_off_the_first_loss() -> None:
    for first, state in ((math.log(10), SEEN), (math.log(10.4), CANNOT_TELL), (math.log(5000), CANNOT_TELL)):
        loss = np.r_[first, TWICE[1:]]
        assert loss_beside_hits.loss_of_probabilities(Symptoms(run_of({"loss.train": loss, "acc.train": HITS}), ())).state == state


@pytest.mark.parametrize("metrics", [{}, {"loss.train": TWICE}, {"acc.train": HITS}, {"loss.train": TWICE[:2], "acc.train": HITS[:2]}])
def test_what_was_not_logged(metrics: dict[str, Floats]) -> None:
    s = Symptoms(run_of(metrics, config=CONFIG), ())
    assert loss_beside_hits.loss_of_probabilities(s).state == loss_beside_hits.loss_high_for_its_hits(s).state == CANNOT_TELL


def test_a_model_with_labels_answers_with_them() -> None:
    """Not with the vocabulary of its inputs; two labels are in every config of transformers, of language models as well."""
    for labels, expected in ((4, 4), (2, 32)):
        config = {"vocab_size": 32} | {f"model.id2label.{i}": f"LABEL_{i}" for i in range(labels)}
        assert outcomes(run_of({"loss.train": TWICE}, config=config)) == expected


FAR = SURE + 2.0


@pytest.mark.parametrize(
    ("loss", "others", "config", "state"),
    [
        (FAR, {}, CONFIG, SEEN),
        (SMOOTHED, {}, CONFIG, ABSENT),  # what a label smoothing of 0.1 costs
        (FAR, {"loss.eval": SURE}, CONFIG, ABSENT),  # dropout, or a penalty of the training loss alone
        (FAR, {"loss.aux": FAR - SURE}, CONFIG, CANNOT_TELL),  # a sum
        (FAR, {}, {}, CANNOT_TELL),  # of how many classes?
    ],
)
def test_a_loss_far_above_its_hits(loss: Floats, others: dict[str, Floats], config: dict[str, int], state: str) -> None:
    s = Symptoms(run_of({"loss.train": loss, "acc.train": HITS, **others}, config=config), ())
    assert loss_beside_hits.loss_far_above_hits(s).state == state


@pytest.mark.parametrize(
    ("term", "smoothing", "state"),
    [
        (FAR - SURE, "mean of interval", CANNOT_TELL),  # all are means of ten steps: a term is one as well
        (SURE, "running mean", CANNOT_TELL),
        (FAR, "running mean", SEEN),  # the loss itself, smoothed
        (FAR, "mean of interval", CANNOT_TELL),  # a term that is nearly all of it
    ],
)
def test_a_smoothed_copy_is_no_term_and_a_smoothed_term_is_no_copy(term: Floats, smoothing: str, state: str) -> None:
    run = run_of({"loss.train": FAR, "acc.train": HITS, "loss.aux": term}, config=CONFIG)
    for tag, how in (("loss.train", "mean of interval"), ("loss.aux", smoothing)):
        run.meanings["log.jsonl", tag] = Meaning(tag, smoothing=how)
    assert loss_beside_hits.loss_far_above_hits(Symptoms(run, ())).state == state


@pytest.mark.parametrize(
    ("terms", "state"),
    [
        ({"loss_cls": SURE, "loss_bbox": SMOOTHED - SURE}, CANNOT_TELL),  # boxes beside answers
        ({"loss_cls": SMOOTHED, "loss_center": 0.001 + 0 * SURE}, SEEN),  # too small to matter
        ({"loss_ce": SURE, "l2_penalty": SMOOTHED - SURE}, SEEN),  # what holds the loss up
    ],
)
def test_a_total_of_several_targets_is_not_held_against_the_hits(terms: dict[str, Floats], state: str) -> None:
    run = run_of({"loss.train": SMOOTHED, "acc.train": HITS} | {f"other/{tag}": x for tag, x in terms.items()}, config=CONFIG)
    table = run.tables["metrics"]
    names = ["loss.aux" if n.startswith("other/") else n for n in table["name"].to_pylist()]
    column = pa.array(names, pa.string()).cast(table.schema.field("name").type)
    run.tables["metrics"] = table.set_column(table.schema.get_field_index("name"), table.schema.field("name"), column)
    assert loss_beside_hits.loss_high_for_its_hits(Symptoms(run, ())).state == state


@pytest.mark.parametrize(("held_out", "state"), [(TWICE, SEEN), (SURE, CANNOT_TELL)])
def test_the_classes_of_a_loss_of_probabilities_follow_from_its_begin_and_its_end(held_out: Floats, state: str) -> None:
    """The first logged loss is the mean of an epoch, a little below chance; an evaluation below the floor is of another loss."""
    train = np.r_[math.log(10) - 0.06, TWICE[1:]]
    s = Symptoms(run_of({"loss.train": train, "acc.train": HITS, "loss.eval": held_out}, steps=list(range(50, 50 * N + 1, 50))), ())
    assert loss_beside_hits.loss_of_probabilities(s).state == state


@pytest.mark.parametrize(
    ("train", "held_out", "state"),
    [
        (TWICE + 1.0, TWICE, SEEN),  # distillation: the training loss adds up another term
        (TWICE - 0.02, TWICE, SEEN),  # right more often on what was learnt
        (SURE, TWICE, ABSENT),  # the training loss was lower than probabilities allow: evaluations are too sure
        (TWICE + 1.0, SMOOTHED, ABSENT),
    ],
)
@pytest.mark.parametrize("config", [{}, CONFIG], ids=["no classes", "classes"])
def test_the_evaluations_show_it_by_themselves(train: Floats, held_out: Floats, state: str, config: dict[str, int]) -> None:
    metrics = {"loss.train": train, "loss.eval": np.r_[math.log(10), held_out[1:]], "acc.eval": HITS}
    told = loss_beside_hits.loss_of_probabilities(Symptoms(run_of(metrics, config=config), ())).state
    assert told == state or (state == ABSENT and told == CANNOT_TELL)


@pytest.mark.parametrize(
    ("first", "highest", "state"),
    [
        (2.17, 2.3, SEEN),  # of probabilities, 45 % right cost so much
        (1.9, 2.3, CANNOT_TELL),  # less than a model as sure as it is right
        (2.17, 2.7, CANNOT_TELL),  # more than a cross entropy of probabilities ever is
    ],
)
def test_a_log_that_begins_late_is_held_against_its_first_hits(first: float, highest: float, state: str) -> None:
    loss, hits = np.r_[first, highest, TWICE[2:]], np.r_[0.45, 0.4, HITS[2:]]
    run = run_of({"loss.train": loss, "acc.train": hits}, steps=list(range(50, 50 * N + 1, 50)))
    sign = loss_beside_hits.loss_of_probabilities(Symptoms(run, ()))
    assert sign.state == state, sign.text


@pytest.mark.parametrize(("hits", "state"), [(0.97, ABSENT), (0.6, SEEN)])
def test_a_loss_as_low_as_its_hits_allow_need_not_fall(hits: float, state: str) -> None:
    """A log that begins behind the first epoch of an easy task."""
    s = Symptoms(run_of({"loss.train": np.linspace(0.17, 0.15, N), "acc.train": np.full(N, hits)}), ())
    assert loss_level.loss_fell_little(s).state == state


WEIGHTED = np.full(N, 0.48)  # with 18 % right the misses alone cost 0.57


@pytest.mark.parametrize(
    ("metrics", "config", "state"),
    [
        ({"loss.eval": WEIGHTED, "acc.eval": np.full(N, 0.18)}, {}, SEEN),
        ({"loss.eval": WEIGHTED, "acc.eval": np.full(N, 18.0)}, {}, SEEN),
        ({"loss.eval": WEIGHTED, "acc.eval": np.full(N, 0.5)}, {}, ABSENT),  # halves of two classes, and unsure
        ({"loss.eval": np.where(np.arange(N) == 7, 0.1, 2.0), "acc.eval": np.full(N, 0.18)}, {}, ABSENT),  # one slip
        ({"loss.eval": WEIGHTED, "acc.eval": np.full(N, 0.18)}, {"loss": "focal"}, CANNOT_TELL),
        ({"loss.eval": WEIGHTED, "acc.eval": np.full(N, 0.18), "pref.margin": WEIGHTED}, {}, CANNOT_TELL),
        ({"loss.train": WEIGHTED, "acc.eval": np.full(N, 0.18)}, {}, CANNOT_TELL),
        # of each bit of a key, and the keys with every bit right; or of two classes whose weights lower it
        ({"loss.eval": np.r_[math.log(2), WEIGHTED[1:]], "acc.eval": np.r_[0.01, np.full(N - 1, 0.18)]}, {}, CANNOT_TELL),
        ({"loss.eval": np.r_[math.log(2), WEIGHTED[1:] / 3], "acc.eval": np.r_[0.5, np.full(N - 1, 0.6)]}, {}, SEEN),
        (
            {"loss.train": WEIGHTED, "acc.train": np.full(N, 0.18)},
            {},
            CANNOT_TELL,
        ),  # means of batches summed, over the samples: many a loop logs it so
    ],
)
def test_a_loss_below_what_its_misses_cost(metrics: dict[str, Floats], config: dict[str, str], state: str) -> None:
    sign = loss_below_misses.loss_too_low_for_its_misses(Symptoms(run_of(metrics, config=config), ()))
    assert sign.state == state, sign.text


def test_an_overlap_or_hits_at_chance_say_nothing_of_probabilities() -> None:
    """Six classes: the loss of probabilities ends at 2.044 less the share of hits."""
    n = np.arange(40)
    for hits, others, state in ((0.8, {}, SEEN), (0.8, {"other/val_dice": 0.5 + n / 100}, CANNOT_TELL), (0.17, {}, CANNOT_TELL)):
        loss = 2.05 - hits + (math.log(6) - 2.05 + hits) * np.exp(-n / 5)
        logged = {"loss.train": loss, "loss.eval": loss, "acc.eval": hits - 0.3 * np.exp(-n / 5) * (hits > 0.5)} | others
        sign = loss_beside_hits.loss_of_probabilities(Symptoms(run_of(logged), ()))
        assert sign.state == state, sign.text


@pytest.mark.parametrize(("hits", "told"), [("eval_accuracy", True), ("eval_mean_token_accuracy", False)])
def test_two_losses_tell_no_vocabulary(hits: str, told: bool, tmp_path: Path) -> None:
    """Tokens that are right are out of a vocabulary: a loss and their share that add up to ln(e + 9) are not those of ten classes."""
    at = [*range(0, N, 4)]
    rows: list[dict[str, Any]] = [{"step": i + 1, "loss": float(TWICE[i]) if i else math.log(10)} for i in range(N)]
    rows += [{"step": i + 1, "eval_loss": float(TWICE[i]), hits: float(HITS[i])} for i in at]
    assert ("loss_of_probabilities" in kinds(analyzed(tmp_path / "a", rows))) == told


@pytest.mark.parametrize(("hits", "told"), [("eval_accuracy", True), ("eval_mean_token_accuracy", False)])
def test_tokens_of_a_small_set_stand_at_one_share(hits: str, told: bool, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"step": i, "loss": 3 - i / 40} for i in range(1, 61)]
    rows += [{"step": i, "eval_loss": 3 - i / 80, hits: 77 / 104} for i in range(10, 61, 10)]
    assert ("accuracy_is_one_class" in kinds(analyzed(tmp_path / "a", rows))) == told


@pytest.mark.parametrize(("train", "held_out", "classes", "state"), [
    (1.4, 0.57, 7, SEEN),
    (1.4, 1.2, 7, ABSENT),
    (1.1, 1.3, 7, SEEN),
    (1.4, 0.57, None, CANNOT_TELL),
])  # fmt: skip
def test_a_loss_that_probabilities_cannot_reach(train: float, held_out: float, classes: int | None, state: str) -> None:
    metrics = {"loss.train": train + np.exp(-np.arange(40) / 5), "loss.eval": held_out + np.exp(-np.arange(40) / 5)}
    run = run_of(metrics, config={"num_labels": classes} if classes else {})
    assert loss_below_misses.loss_below_probabilities(Symptoms(run, ())).state == state


def test_a_loss_of_few_values_that_still_falls_tells_no_floor() -> None:
    x = np.array([0.681, 0.539, 0.505, 0.481, 0.459])
    run = run_of({"loss.train": x, "acc.train": np.full(5, 0.854)})
    assert loss_beside_hits.loss_of_probabilities(Symptoms(run, ())).state == "cannot tell"
    assert (
        loss_beside_hits.loss_of_probabilities(
            Symptoms(run_of({"loss.train": np.r_[x[:4], np.full(9, 0.48)], "acc.train": np.full(13, 0.854)}), ())
        ).state
        == "seen"
    )

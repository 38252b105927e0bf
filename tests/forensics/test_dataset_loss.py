"""One set of an evaluation that becomes worse while the others improve."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
from runs import case, every, only, read, write

from forensics.detectors import dataset_loss
from forensics.errors import CannotTell


def test_one_dataset_becomes_worse_while_others_improve(tmp_path: Path) -> None:
    more = {
        "eval/wiki/loss": every(50, lambda i: 2 - i / 1000 if i < 300 else 1.7 + (i - 300) / 300),
        "eval/code/loss": every(50, lambda i: 3 - i / 500),
        "eval/web/loss": every(50, lambda i: 2.5 - i / 800),
    }
    found = only(list(dataset_loss.detect(read(write(tmp_path / "r", 600, **more)))))  # type: ignore[arg-type]
    assert found.facts.tag == "eval/wiki/loss"
    assert (found.first_step, found.severity) == (300, "info")
    assert case(tmp_path / "r")["verdict"] != "inconclusive"


def test_the_batches_of_one_test_are_no_curve(tmp_path: Path) -> None:
    """Lightning counts the batches of ``trainer.test`` from 0."""
    more = {"val_loss": every(50, lambda i: 3 - i / 500), "test_loss_step": lambda i: 1 + i / 3 if i < 6 else None}
    with pytest.raises(CannotTell):
        list(dataset_loss.detect(read(write(tmp_path / "r", 600, **more))))  # type: ignore[arg-type]


def test_a_loss_that_is_zero_at_first_is_computed_later_on(tmp_path: Path) -> None:
    more = {
        "eval/wiki/loss": every(50, lambda i: 0.0 if i < 200 else 1.7 + i / 300),
        "eval/code/loss": every(50, lambda i: 3 - i / 500),
        "eval/web/loss": every(50, lambda i: 2.5 - i / 800),
    }
    assert not list(dataset_loss.detect(read(write(tmp_path / "r", 600, **more))))  # type: ignore[arg-type]


def test_a_set_that_never_was_better_than_nothing_became_no_worse(tmp_path: Path) -> None:
    more = {"val_token_acc": every(50, lambda i: 0.06 + i / 9000), "val_seq_acc": every(50, lambda i: 0.0)}
    assert not list(dataset_loss.detect(read(write(tmp_path / "r", 600, **more))))  # type: ignore[arg-type]


def test_all_datasets_worse_is_another_matter(tmp_path: Path) -> None:
    more = {f"eval/{n}/loss": every(50, lambda i: 2 - i / 1000 if i < 300 else 1.7 + (i - 300) / 300) for n in ("wiki", "code")}
    assert not list(dataset_loss.detect(read(write(tmp_path / "r", 600, **more))))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("old", "fires"), [(lambda i: 5.5 * math.exp(i / 100), True), (None, False), (lambda i: 300 * math.exp(-i / 200), False)]
)
def test_a_perplexity_of_another_set_is_a_dataset(old: Callable[[int], float] | None, fires: bool, tmp_path: Path) -> None:
    """What a model knew before, told as a perplexity; None: that of the loss beside it, which is no set of its own."""
    loss = lambda i: 5.5 - i / 150  # noqa: E731
    more = {"eval_loss": every(50, loss), "eval_pretrain_ppl": every(50, old or (lambda i: round(math.exp(loss(i)), 3)))}
    run = read(write(tmp_path / "r", 600, **more))  # type: ignore[arg-type]
    if old is None:
        with pytest.raises(CannotTell, match="fewer than two"):
            list(dataset_loss.detect(run))
        return
    found = list(dataset_loss.detect(run))
    assert [(f.facts.tag, f.severity) for f in found] == ([("eval_pretrain_ppl", "warning")] if fires else [])
    assert not fires or found[0].title.startswith("eval_pretrain_ppl rises from 9.068 at step 50 to 1346 while the other one improves")


@pytest.mark.parametrize(("times", "severity"), [(30.0, "warning"), (4.0, "info")])
def test_a_perplexity_that_ends_at_ten_times_its_best_is_a_warning(times: float, severity: str, tmp_path: Path) -> None:
    """Of a set that was worse than the others from the start."""
    more = {"eval_loss": every(50, lambda i: 0.5 - i / 1500), "eval_prose_ppl": every(50, lambda i: 12000 * times ** (i / 600))}
    found = only(list(dataset_loss.detect(read(write(tmp_path / "r", 600, **more)))))  # type: ignore[arg-type]
    assert (found.facts.tag, found.severity) == ("eval_prose_ppl", severity)


def test_the_same_evaluation_in_two_files_is_no_other_set(tmp_path: Path) -> None:
    """A console that rounds, one step behind: its hits seem to rise where the others have fallen."""
    hits = [0.166, 0.103, 0.109, 0.144, 0.144, 0.128, 0.106, 0.103]
    write(tmp_path / "r", 400, acc_dev=lambda i: hits[i // 50] + 3e-4 if i % 50 == 0 and i < 400 else None)
    lines = [f"step {50 * k + 10} dev acc {v:.3f}\n" for k, v in enumerate(hits)]
    (tmp_path / "r" / "run.log").write_text("".join(lines))
    with pytest.raises(CannotTell, match="fewer than two"):
        list(dataset_loss.detect(read(tmp_path / "r")))


@pytest.mark.parametrize("of_codes", [True, False])
def test_a_perplexity_that_is_none_of_the_loss_beside_it_counts_codes(of_codes: bool, tmp_path: Path) -> None:
    """How many entries of a codebook are in use may rise; what a language model knew of other text may not."""
    used = lambda i: 13.0 + i / 20  # noqa: E731
    more = {"eval_loss": every(50, lambda i: 0.9 - i / 800), "eval_ppl": every(50, lambda i: 13.0 * math.exp(i / 100))}
    more |= {"train_ppl": used} if of_codes else {}  # type: ignore[dict-item]
    run = read(write(tmp_path / "r", 600, **more))  # type: ignore[arg-type]
    if of_codes:
        with pytest.raises(CannotTell, match="fewer than two"):
            list(dataset_loss.detect(run))
    else:
        assert [f.facts.tag for f in dataset_loss.detect(run)] == ["eval_ppl"]


@pytest.mark.parametrize(("rises_to", "first", "severity"), [(2.3, 1, "warning"), (1.8, 1, "info"), (2.3, 100, "info")])
def test_a_set_that_was_known_before_the_first_step_and_is_lost(rises_to: float, first: int, severity: str, tmp_path: Path) -> None:
    """By a quarter of its loss; what was lost after the training had begun may have been learnt in it."""

    def general(i: int) -> float | None:
        return None if (i % 50 and i != 1) or i < first else 1.65 + (rises_to - 1.65) * min(1.0, (i - first) / 200)

    more = {"eval_general_loss": general, "eval_domain_loss": every(50, lambda i: 1.8 - i / 800)}
    found = only(list(dataset_loss.detect(read(write(tmp_path / "r", 600, **more)))))  # type: ignore[arg-type]
    assert (found.facts.tag, found.severity) == ("eval_general_loss", severity)


def test_one_dataset_cannot_tell(tmp_path: Path) -> None:
    with pytest.raises(CannotTell, match="fewer than two"):
        list(dataset_loss.detect(read(write(tmp_path / "r", 600, val_loss=every(50, lambda i: 2.0)))))  # type: ignore[arg-type]


@pytest.mark.parametrize(("old", "fires"), [(lambda i: 0.7 - 0.25 * i / 600, True), (lambda i: 0.7 + 0.1 * i / 600, False)])
def test_a_benchmark_that_falls_while_others_rise_is_told(old: Callable[[int], float], fires: bool, tmp_path: Path) -> None:
    scores = {
        "eval/mmlu_acc": every(50, lambda i: old(i) + 0.002 * (i % 3)),
        "eval/gsm8k_acc": every(50, lambda i: 0.3 + 0.3 * i / 600 + 0.002 * (i % 2)),
        "eval/arc_acc": every(50, lambda i: 0.5 + 0.1 * i / 600 + 0.002 * (i % 2)),
    }
    told = case(write(tmp_path / "r", 600, **scores))  # type: ignore[arg-type]
    found = [f for f in told["findings"] if f["kind"] == "dataset_loss"]
    assert bool(found) == fires and told["verdict"] == "healthy"
    assert not fires or found[0]["title"].startswith("eval/mmlu_acc falls from 0.68")


def test_two_loggers_of_one_evaluation_are_no_two_datasets(tmp_path: Path) -> None:
    """The one smooths what the other says, from 0 on."""
    more = {"val_loss": every(50, lambda i: 1.2 * (1 - math.exp(-(i + 50) / 200))), "val/loss": every(50, lambda i: 1.2 - i / 1200)}
    with pytest.raises(CannotTell):
        list(dataset_loss.detect(read(write(tmp_path / "r", 600, **more))))  # type: ignore[arg-type]
    more = {"val_wiki/loss": more["val_loss"], "val_code/loss": more["val/loss"]}
    assert list(dataset_loss.detect(read(write(tmp_path / "s", 600, **more))))  # type: ignore[arg-type]

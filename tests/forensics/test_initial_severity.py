"""A first loss far too high: a warning where something says that it is the mean over tokens or classes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from forensics.detectors import initial_loss, plateau
from forensics.errors import CannotTell
from tests.forensics.curves import run_of
from tests.forensics.curves_in_logs import run

T = np.arange(60)
HITS = 0.5 - 0.5 * np.exp(-T / 9)
LOSS = 3.0 + 17 * np.exp(-T / 3)
GPT = {"n_layer": 2, "n_head": 4, "n_embd": 64, "block_size": 64}


@pytest.mark.parametrize(
    ("config", "metrics", "severity"),
    [
        ({}, {}, "info"),
        (GPT, {}, "warning"),
        ({"n_head": 4, "seq_len": 64}, {}, "info"),  # of numbers in time, too
        ({"block_size": 64}, {}, "info"),
        ({}, {"acc.train": HITS}, "warning"),
        ({"loss.config.reduction": "sum_over_batch_size"}, {"acc.train": HITS}, "warning"),
        ({"reduction": "sum"}, {"acc.train": HITS}, "info"),
        ({}, {"acc.train": 2 * HITS}, "info"),  # 3 nats where nearly all are right: the loss has other terms
        (
            {},
            {"acc.train": HITS / 1000},
            "info",
        ),  # hardly any is right that has a twentieth of the probability: whole sequences are counted
    ],
)
def test_a_first_loss_far_too_high(config: Any, metrics: Any, severity: str) -> None:
    (found,) = initial_loss.detect(run_of({"loss.train": LOSS, **metrics}, config=config))
    assert found.severity == severity
    assert ("a guess over any vocabulary" if severity == "warning" else "times what it comes down to") in found.title


def test_a_loss_of_sequences_is_not_bounded_by_the_number_of_classes() -> None:
    config = {"num_classes": 100, "batch": 8, "lr": 1e-3}
    (found,) = initial_loss.detect(run_of({"loss.train": LOSS}, config=config))
    assert found.severity == "warning"
    with pytest.raises(CannotTell, match="of a sequence"):
        list(initial_loss.detect(run_of({"loss.train": LOSS}, config=config | {"loss_weights.SeqCTC": 1.0})))


def test_a_t5_begins_with_large_logits() -> None:
    config = {"vocab_size": 66, "d_model": 40, "initializer_factor": 1.0, "relative_attention_num_buckets": 32}
    with pytest.raises(CannotTell, match="a T5"):
        list(initial_loss.detect(run_of({"loss.train": LOSS}, config=config)))
    (found,) = initial_loss.detect(run_of({"loss.train": LOSS + 90 * np.exp(-T)}, config=config))  # beyond what its library begins with
    assert found.severity == "warning"
    (found,) = initial_loss.detect(run_of({"loss.train": LOSS}, config={"vocab_size": 66, "d_model": 40}))
    assert found.severity == "warning"


@pytest.mark.parametrize(("last", "severity"), [(60.0, "info"), (1.0, "warning")])
def test_what_never_comes_as_low_as_guessing_is_a_sum(last: float, severity: str) -> None:
    config = {"num_classes": 100, "batch": 8, "lr": 1e-3}
    (found,) = initial_loss.detect(run_of({"loss.train": last + 500 * np.exp(-T / 3)}, config=config))
    assert found.severity == severity


@pytest.mark.parametrize(("first", "last", "severity"), [(3e6, 1.0, "warning"), (3e6, 1e4, "info"), (3e5, 1.0, "info")])  # of raw targets
def test_a_loss_of_millions_that_comes_down_to_a_thousandth(first: float, last: float, severity: str) -> None:
    (found,) = initial_loss.detect(run_of({"loss.train": last + (first - last) * np.exp(-T / 3)}))
    assert found.severity == severity


@pytest.mark.parametrize(("more", "severity"), [({}, "info"), ({"ppl": lambda i: 1000.0 / i}, "warning")])
def test_minus_the_log_likelihood_of_numbers_has_no_bound(tmp_path: Path, more: dict[str, Any], severity: str) -> None:
    """A flow's, of twelve numbers a row; with a perplexity beside it it is that of a token."""
    (found,) = initial_loss.detect(run(tmp_path, nll=lambda i: 3.0 + 20 * math.exp(-i / 10), **more))
    assert found.severity == severity


def test_another_loggers_copy_of_the_loss_is_no_term_of_it() -> None:
    """Both begin a little below the median of their first values, as a loss does that still climbs."""
    climbs = np.where(T < 3, 19.0 + T, LOSS)
    run = run_of({"loss.train": climbs})
    rows = run.tables["metrics"].to_pylist()
    copy = [r | {"tag": "train/loss", "source": "other.jsonl", "value": round(r["value"], 1)} for r in rows]
    run.tables["metrics"] = pa.Table.from_pylist([*rows, *copy], run.tables["metrics"].schema)
    assert list(initial_loss.detect(run))


@pytest.mark.parametrize(("end", "told"), [(4.11, True), (3.6, False)])
def test_a_loss_that_stands_a_little_below_guessing_has_learnt_next_to_nothing(end: float, told: bool) -> None:
    """What each token costs by how often it comes: 94 % of ln(78)."""
    run = run_of({"loss.train": end + (4.36 - end) * np.exp(-T / 4) + 0.01 * np.sin(T)}, config={"vocab_size": 78})
    assert any(f.severity == "warning" and "next to nothing was learnt" in f.title for f in plateau.detect(run)) == told

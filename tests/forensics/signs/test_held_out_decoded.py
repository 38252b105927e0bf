"""What is decoded, beside the loss of the answers that are given; losses that no probability can have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forensics.run.series import Floats
from forensics.signs import held_out_decoded, loss_level
from forensics.signs.sign import ABSENT, CANNOT_TELL, SEEN, Symptoms
from tests.forensics.curves import run_of
from tests.forensics.runs import make, read

T = np.arange(60)
CTC = 25 * np.exp(-T / 10) + 0.5
BLANKS = 22 * np.exp(-T / 5) + 3.0  # nothing but blanks: ln(V) for each symbol is left
NLL = 3.8 * np.exp(-T / 6) + 0.06
DONE = ({"kind": "finished", "level": "info", "text": "training done", "attempt": 0, "step": 59, "source": "log.jsonl", "at": 100},)
WRONG, RIGHT = 0.95 + 0.04 * np.cos(T), np.clip(1.2 - T / 40, 0.1, 1.0)


def metrics(loss: Floats, **others: Floats) -> dict[str, Floats]:
    return {"loss.train": loss} | {f"other/{k}": v for k, v in others.items()}


@pytest.mark.parametrize(
    ("logged", "state"),
    [
        (metrics(CTC, dev_wer=WRONG), SEEN),
        (metrics(CTC, dev_ter=150 * WRONG), SEEN),  # in percent
        (metrics(CTC, dev_cer=1.5 * WRONG), SEEN),  # a share above one: it inserts
        (metrics(CTC, dev_cer=0.9 * WRONG), SEEN),  # of few letters some fit by chance
        (metrics(CTC, dev_wer=RIGHT), ABSENT),
        (metrics(BLANKS, dev_wer=WRONG), ABSENT),
        (metrics(CTC), CANNOT_TELL),
        (metrics(NLL, val_exact_match=0 * T) | {"loss.eval": NLL}, SEEN),
        (metrics(NLL, val_exact_match=0 * T) | {"loss.eval": NLL + 0.5}, ABSENT),  # long answers, of which a word is mostly wrong
        (metrics(NLL, val_exact_match=T / 60) | {"loss.eval": NLL}, ABSENT),
        (
            metrics(NLL, val_exact_match=0 * T) | {"loss.eval": 5 + T / 60},
            SEEN,
        ),  # learnt by heart, and of no use from the first evaluation on
        (metrics(NLL, val_rouge1=0.05 + 0 * T) | {"loss.eval": NLL}, SEEN),
        (metrics(NLL, val_rouge1=4 + 0 * T) | {"loss.eval": NLL}, SEEN),  # in percent
        (metrics(NLL, val_rouge1=0.05 + T / 200) | {"loss.eval": NLL}, ABSENT),
        (metrics(NLL, val_bleu=0.05 + 0 * T) | {"loss.eval": NLL + 2}, ABSENT),  # hard to translate
    ],
)
def test_nothing_is_decoded_right_beside_a_low_loss(logged: dict[str, Floats], state: str) -> None:
    sign = held_out_decoded.nothing_decoded_right(Symptoms(run_of(logged), ()))
    assert sign.state == state, sign.text


@pytest.mark.parametrize(
    ("rate", "events", "state"),
    [
        (1 + 0 * T, DONE, SEEN),
        (100 + T / 60, DONE, SEEN),  # in percent, and it inserts
        (1 + 0 * T, (), CANNOT_TELL),  # what comes later, nobody knows
        (np.where(T < 50, 1.0, 0.9), DONE, ABSENT),
        (0.95 + 0 * T, DONE, ABSENT),
    ],
)
def test_every_word_is_wrong_to_the_end(rate: Floats, events: Any, state: str) -> None:
    run = run_of(metrics(BLANKS, dev_wer=rate), events=events)
    sign = held_out_decoded.every_word_wrong_to_the_end(Symptoms(run, ()))
    assert sign.state == state, sign.text


def test_every_word_is_wrong_and_nothing_moves_any_more() -> None:
    still, falls = np.where(T < 18, 4.0, 2.5), 4 - T / 30
    for held_out, state in ((still, SEEN), (falls, CANNOT_TELL)):
        run = run_of(metrics(2.4 + np.exp(-T / 3), valid_uer=100 + 0 * T) | {"loss.eval": held_out})
        sign = held_out_decoded.every_word_wrong_to_the_end(Symptoms(run, ()))
        assert sign.state == state, sign.text


def test_a_loss_that_is_given_words_may_show_its_answers(tmp_path: Path) -> None:
    shown = metrics(NLL, val_exact_match=0 * T) | {"loss.eval": NLL}
    for logged, state in (
        (shown, SEEN),
        (metrics(CTC, dev_wer=WRONG), ABSENT),
        (metrics(NLL, val_exact_match=T / 60) | {"loss.eval": NLL}, ABSENT),
    ):
        sign = held_out_decoded.loss_shows_its_answers(Symptoms(run_of(logged), ()))
        assert sign.state == state, sign.text


@pytest.mark.parametrize(
    ("tag", "loss", "state"),
    [
        ("ctc_loss", CTC - 2, SEEN),
        ("ctc_loss", CTC, ABSENT),
        ("ctc_loss", np.where(np.arange(len(CTC)) % 20 == 7, -0.2, CTC), SEEN),  # now and then is as impossible
        ("ctc_loss", np.where(np.arange(len(CTC)) % 20 == 7, -0.001, CTC), ABSENT),  # rounded
        ("nll", CTC - 2, CANNOT_TELL),  # of numbers
        ("loss", CTC - 2, CANNOT_TELL),
    ],
)
def test_a_cross_entropy_below_zero(tmp_path: Path, tag: str, loss: Floats, state: str) -> None:
    run = read(make(tmp_path, [{"step": i, tag: float(x)} for i, x in enumerate(loss)]))
    sign = loss_level.likelihood_below_zero(Symptoms(run, ()))
    assert sign.state == state, sign.text

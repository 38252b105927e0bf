"""Signs of saved weights and of the loss scaler: on shipped samples and made runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forensics
from forensics import pipeline
from forensics.case import Finding
from forensics.detectors import checkpoint_damage, checkpoint_state, config_change
from forensics.signs import saved_weights, scaler
from forensics.signs.sign import ABSENT, CANNOT_TELL, SEEN, Symptoms
from tests.forensics.curves import run_of

SAMPLES = Path(__file__).parents[3] / "samples"
SIGNS = vars(saved_weights) | vars(scaler)


def made(metrics: dict[str, Any], *findings: Finding[Any], **more: Any) -> Symptoms:
    run = run_of(metrics, **more)
    return Symptoms(run, (*pipeline.detect(run)[0], *findings))


@pytest.mark.parametrize(
    ("sample", "seen", "absent", "cannot_tell"),
    [
        (
            "bit_flip_tensorboard",
            "absurd_weight weights_all_move",
            "weights_bit_equal checkpoint_torn weight_not_finite",
            "tokenizer_differs",
        ),
        ("frozen_body_jsonl", "weights_bit_equal", "weights_all_move absurd_weight", "scale_collapsed"),
        ("fp16_overflow_deepspeed", "scale_collapsed steps_skipped", "scale_static scale_healthy", "absurd_weight weights_all_move"),
        ("bad_batch_jsonl", "", "", "absurd_weight checkpoint_torn weights_bit_equal scale_healthy steps_skipped"),
    ],
)
def test_samples(sample: str, seen: str, absent: str, cannot_tell: str) -> None:
    run = forensics.read(str(SAMPLES / sample))
    s = Symptoms(run, tuple(pipeline.detect(run)[0]))
    for state, names in ((SEEN, seen), (ABSENT, absent), (CANNOT_TELL, cannot_tell)):
        for name in names.split():
            assert SIGNS[name](s).state == state, (name, SIGNS[name](s).text)


def test_findings_of_files() -> None:
    torn = Finding("t", "checkpoint_damage", "Checkpoint a.pt is damaged", 3, 3, "warning", facts=checkpoint_damage.Facts("a.pt", bytes=0))
    nan = Finding(
        "n", "checkpoint_damage", "Checkpoint a.pt holds NaN", 3, 3, "critical", facts=checkpoint_damage.Facts("a.pt", what="nonfinite")
    )
    other = Finding(
        "o", "checkpoint_state", "The tokenizer is another one", 1, 3, "warning", facts=checkpoint_state.Facts("tokenizer", differ=["x"])
    )
    s = made({"loss.train": np.ones(30)}, torn, nan, other)
    for look in (saved_weights.checkpoint_torn, saved_weights.weight_not_finite, saved_weights.tokenizer_differs):
        assert look(s).state == SEEN
    assert saved_weights.checkpoint_torn(s).place == "a.pt"


def test_a_launch_that_sets_another_vocabulary() -> None:
    for key, state in (("data.vocab_file", SEEN), ("charset", SEEN), ("vocab_size_scale", CANNOT_TELL)):
        changed = config_change.Facts([key], [["a", "b"]], 200, batch=False)
        f = Finding("c", "config_change", "Config changed", 200, 200, "warning", facts=changed)
        assert saved_weights.tokenizer_differs(made({"loss.train": np.ones(30)}, f)).state == state


@pytest.mark.parametrize(
    ("config", "state"),
    [
        ({"train_alphabet": "ACDE", "eval_alphabet": "CADE"}, SEEN),
        ({"train.tokenizer": "a/32k", "val.tokenizer": "b/32k"}, SEEN),
        ({"train_alphabet": "ACDE", "eval_alphabet": "ACDE"}, CANNOT_TELL),
        ({"train_alphabet": "ACDE", "alphabet": "CADE"}, CANNOT_TELL),
        ({"train_files": "a", "eval_files": "b"}, CANNOT_TELL),
    ],
)
def test_a_launch_that_encodes_the_evaluation_otherwise(config: Any, state: str) -> None:
    assert saved_weights.tokenizer_differs(made({"loss.train": np.ones(30)}, config=config)).state == state


IDS = {c: i for i, c in enumerate("abcdefghijkl")}
MOVED = {c: i for i, c in enumerate("lkjihgfedcba")}
LINES = "".join(f"{c} {i}\n" for c, i in IDS.items())


@pytest.mark.parametrize(
    ("files", "state"),
    [
        ({"vocab_train.json": json.dumps(IDS), "vocab_valid.json": json.dumps(MOVED)}, SEEN),
        ({"data/vocab.train.en": LINES, "data/vocab.valid.en": "".join(f"{c} {i}\n" for c, i in MOVED.items())}, SEEN),
        ({"train_tokens.txt": "\n".join(IDS), "val_tokens.txt": "\n".join(MOVED)}, SEEN),
        ({"vocab_train.json": json.dumps(IDS), "vocab_valid.json": json.dumps(IDS | {"z": 12})}, CANNOT_TELL),
        ({"vocab_train.json": json.dumps(IDS), "vocab.json": json.dumps(MOVED)}, CANNOT_TELL),  # of what is not said
        ({"data/vocab.train.en": LINES, "data/vocab.valid.fr": "".join(f"{c} {i}\n" for c, i in MOVED.items())}, CANNOT_TELL),
        ({"vocab_train.json": "{", "vocab_valid.json": "[]"}, CANNOT_TELL),
    ],
)
def test_vocabularies_that_lie_with_the_run(tmp_path: Any, files: Any, state: str) -> None:
    (tmp_path / "log.jsonl").write_text("".join(f'{{"step": {i}, "loss": {2 - i / 50}}}\n' for i in range(30)))
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    found = saved_weights.tokenizer_differs(Symptoms(forensics.read(str(tmp_path)), ()))
    assert found.state == state, found.text


HEALTHY = np.r_[np.full(100, 65536.0), np.full(200, 32768.0)]


@pytest.mark.parametrize(
    ("scale", "healthy", "static", "collapsed"),
    [
        (HEALTHY, SEEN, ABSENT, ABSENT),
        (np.full(300, 128.0), CANNOT_TELL, SEEN, ABSENT),
        (np.ones(300), CANNOT_TELL, ABSENT, CANNOT_TELL),
        (np.r_[np.full(200, 65536.0), np.ones(100)], ABSENT, ABSENT, SEEN),
        (HEALTHY[:4], CANNOT_TELL, CANNOT_TELL, CANNOT_TELL),
    ],
)
def test_the_logged_scale(scale: Any, healthy: str, static: str, collapsed: str) -> None:
    s = made({"loss_scale": scale})
    assert (scaler.scale_healthy(s).state, scaler.scale_static(s).state, scaler.scale_collapsed(s).state) == (healthy, static, collapsed)


def test_what_skipped_steps_need() -> None:
    none = scaler.steps_skipped(made({"loss.train": np.ones(30)}, config={"bf16": True}))
    assert none.state == CANNOT_TELL and not none.missing
    assert scaler.steps_skipped(made({"loss.train": np.ones(30)}, config={"fp16": True})).missing

"""How many parameters train, in the words of frameworks and people."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forensics
from forensics import pipeline
from forensics.case import Finding
from forensics.detectors import frozen_weights
from forensics.run.parameter_counts import counts
from forensics.signs import parameters as signs
from forensics.signs.parameters import few_parameters_train
from forensics.signs.sign import Sign, Symptoms
from parsers.tables import Run
from tests.forensics.curves import run_of
from tests.forensics.runs import write

LIGHTNING = "0         Trainable params\n1.2 K     Non-trainable params\n1.2 K     Total params"
KERAS = " Total params: 1,234 (4.82 KB)\n Trainable params: 34 (0.13 KB)\n Non-trainable params: 1,200 (4.69 KB)"


def logged(folder: Path, text: str) -> Run:
    return forensics.read(str(write(folder / "run", 20, log=text + "\n")))


@pytest.mark.parametrize(
    ("text", "training", "every", "state"),
    [
        ("trainable params: 6,144 || all params: 68,928 || trainable%: 8.9136", 6144, 68928, "absent"),
        ("trainable params: 6,144 || all params: 68,928\ntrainable params: 0", 0, 68928, "seen"),
        ("INFO model has 47,188 parameters, 196 trainable", 196, 47188, "seen"),
        ("kwsnet-s: 11040 params (132 trainable), 1920 train utterances", 132, 11040, "seen"),
        ("model: 68.8k params, 0.3k require grad", 300, 68800, "seen"),
        ("params 73.0k, in optimizer 0.4k", 400, 73000, "seen"),
        ("params total 328.3k trainable 0.2k", 200, 328300, "seen"),
        ("parameters 15338 trainable 1290", 1290, 15338, "absent"),
        ("model parameters: 261860, optimised: 9764", 9764, 261860, "seen"),
        ("trainable params: 614 || all params: 68,928 || trainable%: 0.89", 614, 68928, "cannot tell"),  # adapters
        ("train 1600 eval 400; trainable params 455 / 141447", 455, 141447, "seen"),
        ("trainable params 141447 / 141447", 141447, 141447, "absent"),
        ("INFO 455/141,447 trainable params", 455, 141447, "seen"),
        ("455 of 141,447 trainable parameters", 455, 141447, "seen"),
        ("Number of trainable parameters = 68,928", 68928, None, "cannot tell"),
        (LIGHTNING, 0, 1200, "seen"),
        (KERAS, 34, 1234, "seen"),
        ("1.2 M     Trainable params\n0         Non-trainable params", 1.2e6, 1.2e6, "absent"),
    ],
)
def test_what_logs_say(text: str, training: float, every: float | None, state: str, tmp_path: Path) -> None:
    run = logged(tmp_path, text)
    found = counts(run)
    assert found is not None
    assert (found.training, found.all) == (training, every)
    assert found.where.startswith("train.log")
    assert few_parameters_train(Symptoms(run, ())).state == state


def test_a_log_that_says_nothing(tmp_path: Path) -> None:
    run = logged(tmp_path, "hello")
    assert counts(run) is None
    assert few_parameters_train(Symptoms(run, ())).state == "cannot tell"


T = np.arange(300)
RNG = np.random.default_rng(1)
NOISE = RNG.standard_normal(300)
CRAWLS = 5.4 - 0.4 * T / 300 + 0.01 * NOISE  # a cross entropy that an untrained model begins with
LEARNS = 1 + 4.4 * np.exp(-T / 60) + 0.01 * NOISE
NORM = 8 + 0.2 * NOISE
STILL = np.full(300, 13.321462631225586)
GROWS = STILL + T / 1000
CREEPS = STILL * (1 + 1e-6 * T / 300)
COARSE = np.full(300, 13.32)
RUN = {"loss.train": CRAWLS, "grad.norm": NORM}

MOVES: list[tuple[Callable[[Symptoms], Sign], str, dict[str, Any], dict[str, Any]]] = [
    (signs.weights_never_move, "seen", RUN | {"param.norm": STILL}, {}),
    (signs.weights_never_move, "absent", RUN | {"param.norm": GROWS}, {}),
    (signs.weights_never_move, "cannot tell", RUN | {"param.norm": COARSE}, {}),  # four digits hide what a sound run moves
    (signs.weights_never_move, "cannot tell", {"loss.train": CRAWLS, "param.norm": STILL}, {}),
    (signs.weights_never_move, "cannot tell", RUN | {"param.norm": STILL, "grad.norm": 0 * NORM}, {}),
    (signs.weights_never_move, "cannot tell", RUN | {"param.norm": STILL}, {"config": {"freeze_backbone": True}}),
    (signs.weights_never_move, "cannot tell", RUN, {}),
    (signs.weights_never_move, "seen", {"loss.train": LEARNS, "other/emb_norm": STILL}, {"config": {"lr": 0.005}}),  # a bias learns alone
    (
        signs.weights_never_move,
        "seen",
        {"loss.train": LEARNS, "other/emb_norm": STILL},
        {"config": {"lr": 0.005, "package.peft": "0.21.2"}},
    ),
    (signs.weights_never_move, "absent", {"loss.train": LEARNS, "other/emb_norm": GROWS}, {"config": {"lr": 0.005}}),
    (
        signs.weights_never_move,
        "cannot tell",
        {"loss.train": LEARNS, "other/emb_norm": 0 * STILL + 1},
        {"config": {"lr": 0.005}},
    ),  # of length one
    (
        signs.weights_never_move,
        "cannot tell",
        {"loss.train": LEARNS, "other/emb_norm": STILL},
        {"config": {"lr": 0.005, "freeze_emb": True}},
    ),
    (signs.weights_never_move, "cannot tell", {"loss.train": LEARNS, "other/emb_norm": STILL}, {}),  # nothing says whether it is meant
    (signs.weights_never_move, "cannot tell", {"loss.train": LEARNS, "other/grad_norm_emb": STILL}, {"config": {"lr": 0.005}}),
    (signs.weights_hardly_move, "seen", RUN | {"param.norm": CREEPS}, {}),
    (signs.weights_hardly_move, "seen", RUN | {"upd.ratio": 2e-5 * np.sin(T / 100) ** 2}, {}),
    (signs.weights_hardly_move, "seen", RUN | {"param.norm": STILL, "upd.norm": np.full(300, 2e-4)}, {}),
    (signs.weights_hardly_move, "absent", RUN | {"upd.ratio": np.where(T < 30, 1e-3, 1e-6)}, {}),  # the end of a decay
    (signs.weights_hardly_move, "absent", RUN | {"loss.train": LEARNS, "param.norm": CREEPS}, {}),  # norms that are held by construction
    (signs.weights_hardly_move, "absent", RUN | {"param.norm": CREEPS, "grad.norm": NORM * np.exp(-T / 100)}, {}),  # it comes to rest
    (signs.weights_hardly_move, "absent", RUN | {"param.norm": GROWS}, {}),
    (signs.weights_hardly_move, "cannot tell", RUN | {"loss.train": 0.3 * CRAWLS, "param.norm": CREEPS}, {}),  # a trained model is tuned
    (signs.weights_hardly_move, "cannot tell", RUN | {"param.norm": CREEPS[:60], "loss.train": CRAWLS[:60], "grad.norm": NORM[:60]}, {}),
    (signs.weights_hardly_move, "cannot tell", RUN | {"param.norm": CREEPS}, {"config": {"lora_r": 8}}),
    (signs.weights_hardly_move, "cannot tell", RUN, {}),
]


@pytest.mark.parametrize(("sign", "state", "metrics", "more"), MOVES)
def test_whether_weights_move(sign: Callable[[Symptoms], Sign], state: str, metrics: dict[str, Any], more: dict[str, Any]) -> None:
    found = sign(Symptoms(run_of(metrics, **more), ()))
    assert found.state == state, found.text


def test_an_accuracy_of_next_to_nothing_tells_an_untrained_model() -> None:
    x = RUN | {"loss.train": 0.3 * CRAWLS, "param.norm": CREEPS}
    found = [signs.weights_hardly_move(Symptoms(run_of(x | {"acc.train": np.full(300, a)}), ())).state for a in (0.02, 0.6)]
    assert found == ["seen", "cannot tell"]


@pytest.mark.parametrize(
    ("config", "severity"), [({}, "warning"), ({"freeze_encoder": True}, "info"), ({"freeze_encoder": False}, "warning")]
)
def test_layers_that_are_frozen_on_purpose_are_only_noted(config: dict[str, Any], severity: str) -> None:
    run = run_of({"loss.train": LEARNS, "grad.norm": NORM, "param.norm_layer": STILL}, config=config)
    assert [f.severity for f in pipeline.detect(run)[0] if f.kind == "layer_gradients"] == [severity]


@pytest.mark.parametrize(
    ("share", "severity", "state"), [(1.0, "warning", "seen"), (0.5, "warning", "cannot tell"), (1.0, "info", "cannot tell")]
)
def test_weights_that_are_the_same_in_every_checkpoint_never_move(share: float, severity: str, state: str) -> None:
    facts = frozen_weights.Facts(int(20 * share), 20, share, False, ["a.weight"])
    still = Finding("a", "frozen_weights", "Weights are bit for bit the same", 50, 240, severity, facts=facts)
    assert signs.weights_never_move(Symptoms(run_of({"loss.train": CRAWLS}), (still,))).state == state


N = 30
STILL, MOVES = np.full(N, 52.4471893), 4.8575034 + np.arange(N) / 97


@pytest.mark.parametrize(
    ("norms", "config", "state"),
    [
        ({"norm_body": STILL, "norm_head": MOVES}, {}, "seen"),
        ({"pnorm/conv1": STILL, "pnorm/fc": MOVES}, {}, "seen"),
        ({"enc_norm": STILL, "dec_norm": MOVES}, {}, "seen"),
        ({"max_norm": STILL, "total_norm": MOVES}, {}, "cannot tell"),
        ({"norm_body": STILL, "norm_head": MOVES}, {"freeze_body": True}, "cannot tell"),
        ({"norm_body": 2 * MOVES, "norm_head": MOVES}, {}, "absent"),
        ({"norm_body": STILL, "norm_head": STILL}, {}, "absent"),  # all of them: another sign
        ({"norm_body": np.round(STILL, 1), "norm_head": np.round(MOVES, 1)}, {}, "cannot tell"),
        ({"grad norm/body": STILL, "grad norm/head": MOVES}, {}, "cannot tell"),
        ({"norm_body": STILL}, {}, "cannot tell"),
        ({"norm_body": STILL[:7], "norm_head": MOVES[:7]}, {}, "seen"),
        ({"norm_body": STILL[:4], "norm_head": MOVES[:4]}, {}, "cannot tell"),
    ],
)
def test_parts_that_never_move_beside_others(norms: dict[str, Any], config: dict[str, Any], state: str) -> None:
    n = len(next(iter(norms.values())))
    run = run_of({f"other/{tag}": x for tag, x in norms.items()} | {"loss.train": 2 + np.zeros(n)}, config=config)
    found = signs.some_weights_never_move(Symptoms(run, ()))
    assert found.state == state, found.text

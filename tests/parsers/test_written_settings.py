"""Settings that a program wrote as a text into TensorBoard, and texts like them that hold none."""

from __future__ import annotations

import pytest

from parsers.tensorboard_format.written_settings import written


@pytest.mark.parametrize(
    ("tag", "text", "found"),
    [
        ("args", '{"lr": 0.1, "optim": {"name": "adamw"}}', {"lr": 0.1, "optim.name": "adamw"}),
        ("hparams/text_summary", "{'lr': 0.002, 'weight_decay': 6.0}", {"lr": 0.002, "weight_decay": 6.0}),
        ("hyperparameters/text_summary", "|param|value|\n|-|-|\n|num_envs|16|\n|seed|1|", {"num_envs": 16, "seed": 1}),
        ("args/text_summary", "batch=128 lr=1e-3 T=400", {"batch": 128, "lr": 1e-3, "T": 400}),
        ("hparams", "weight_decay 6\nlr 0.1  \n", {"weight_decay": 6, "lr": 0.1}),
        ("config", "# the run\n- **lr**: 0.1\n- *opt*: `adamw`", {"lr": 0.1, "opt": "adamw"}),
        ("notes", "lr: 0.1\nwidth: 64\nopt: adamw", {"lr": 0.1, "width": 64, "opt": "adamw"}),
        ("notes", "{'lr': 0.002, 'width': 64, 'opt': 'adamw'}", {"lr": 0.002, "width": 64, "opt": "adamw"}),
    ],
)
def test_texts_whose_tag_or_content_says_that_they_hold_settings(tag: str, text: str, found: dict[str, object]) -> None:
    assert dict(written(tag, text)) == found


@pytest.mark.parametrize(
    ("tag", "text"),
    [
        ("samples", '{"lr": "an answer"}'),
        ("samples", "the lr: 0.1\nwidth: 64\nopt: adamw\nis a good choice"),  # more than settings
        ("report", "lr: 0.1\nval_loss: 0.3\nwidth: 64"),  # a result among them
        ("report", "step: 10\nlr: 0.1\nwidth: 64"),  # where the run is
        ("report", "|class|hits|\n|-|-|\n|dog|16|\n|cat|1|"),
        ("config", "lr: 0.1 and a word"),
        ("config", "we took what the paper says"),
        ("config", '{"cut'),
        ("config", "lr: " + 200_000 * "1"),
    ],
)
def test_texts_that_hold_none(tag: str, text: str) -> None:
    assert written(tag, text) == []

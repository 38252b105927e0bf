"""The recipe of a run in figures: how large its peak rate is for a model of its kind, and how long it warmed up.

What is usual: Adam on a model with attention takes about 3e-3 at width 64 and less as the square root of the width (3e-4 at
4096 agrees with published large runs); Adam on others about 1e-3, SGD about 1e-1. A rate is judged by its ratio to that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from forensics.run import rate_shape, settings
from forensics.run.once import once
from forensics.run.robust import median
from forensics.run.series import series
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

LANGUAGE = (
    "megatron",
    "megatron-deepspeed",
    "gpt-neox",
    "nanogpt",
    "nanochat",
    "torchtitan",
    "modded-nanogpt",
    "olmo",
    "olmo-core",
    "llm.c",
    "nanotron",
)
ADAM_ATTENTION, WIDTH, ADAM, SGD = 3e-3, 64.0, 1e-3, 1e-1
HIGH = 3.0  # a rate of so many times the usual is too high by itself
FAR = 3 * HIGH  # and of so many far too high: it alone explains what comes of it

_MODEL = lazy_re(
    r"(?i)(^|[./])(model|net|network|backbone)([./](name|type|arch|kind))?$|(^|[./])(model_type|model_name|arch|architecture)$"
)
_ATTENTION = lazy_re(r"(?i)gpt|bert|llama|former|vit|t5|attention|mistral|qwen|opt-|bloom|sft")


@dataclass(frozen=True)
class Recipe:
    """Numbers are None where neither log nor config says them."""

    rate: float | None  # peak, as logged, else as configured
    usual: float | None  # what is usual for such a model and optimizer
    warmup: float | None  # steps until the peak, as logged, else as configured
    attention: bool
    sgd: bool
    clip: float | None  # 0: clipping is off by config

    @property
    def ratio(self) -> float | None:
        """Peak rate over the usual one."""
        return self.rate / self.usual if self.rate and self.usual else None


def of_width(width: float) -> float:
    """The usual peak rate of Adam on a model with attention."""
    return ADAM_ATTENTION * math.sqrt(WIDTH / width)


@once
def recipe(run: Run) -> Recipe:
    """From the log where it says it, else from the config."""
    shape = rate_shape.shape(run)
    optimizer = settings.setting(run, "optimizer")
    sgd = optimizer is not None and "sgd" in str(optimizer.value).lower()
    attention = run.framework in LANGUAGE or settings.setting(run, "heads") is not None or series(run, "attn.max_logit") is not None
    attention = attention or any(_ATTENTION.search(told) for told in models(run))
    width = settings.number(run, "width")
    usual = sgd_rate(run) if sgd else of_width(width) if attention and width else ADAM
    return Recipe(shape.peak if shape else settings.number(run, "lr"), usual, _warmup(run, shape), attention, sgd, _clip(run))


def models(run: Run) -> list[str]:
    """What config calls the model."""
    return [str(s.value) for s in settings.every(run) if _MODEL.search(s.key) and isinstance(s.value, str)]


def sgd_rate(run: Run) -> float | None:
    """The usual rate of SGD. Where gradients are clipped to less than they usually are, a step is the rate times the clip, whatever the gradient: the
    rate that makes the usual step is as many times larger, and None where their norm was not logged (PyTorch's word_language_model: 20, clipped at
    0.25)."""
    clip, norm = _clip(run), series(run, "grad.norm")
    if not clip:
        return SGD
    if norm is None or not norm.usable.any():
        return None
    return SGD * max(median(norm.value[norm.usable]) / clip, 1.0)


def _warmup(run: Run, shape: rate_shape.Shape | None) -> float | None:
    configured = settings.number(run, "warmup_steps")
    if shape is not None and shape.warmup:
        return float(shape.warmup)
    if configured is not None:
        return configured
    s = series(run, "lr")
    return 0.0 if shape is not None and s is not None and s.interval <= 5 else None


def _clip(run: Run) -> float | None:
    found = settings.setting(run, "clip")
    if found is None:
        return None
    value = settings.as_number(found.value)
    return value if value is not None and 0 < value < 1e3 else 0.0

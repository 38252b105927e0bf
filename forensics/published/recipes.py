"""Published training recipes, and where a run stands beside those of its kind: context for a reader, and never a cause.

recipes.csv has a row a model, with its source; what its paper does not say is empty. A run is set beside recipes of the same kind of
model, the same family of optimizer and a size within three times its own, and only where the run says all three by itself.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from forensics.batches import sizes
from forensics.run import settings, usual_rate
from forensics.run.recipe import LANGUAGE, models, recipe
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

FACTOR = (
    3.0  # paper: GPT-3 (arXiv 2005.14165, table 2.1) halves its rate from 125M to 350M, so that recipes further away are of other rates
)
LEAST = 3  # bound: fewer make no range
SMALLEST = 1e4  # bound: a count of parameters below it is one in millions, or of something else
LAYER = 12  # paper: a layer of a transformer has 12 width^2 weights (Kaplan et al., arXiv 2001.08361, table 1)
UNITS = {"k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}  # unit
NUMBERS = ("parameters", "tokens", "rate", "warmup", "beta1", "beta2", "epsilon", "clip", "decay", "batch")
_COUNT = "n_params num_params num_parameters n_parameters total_params total_parameters model_params model_parameters parameter_count"
_LAYERS = "n_layer n_layers num_layers num_hidden_layers depth"
_LENGTH = "seq_len seq_length sequence_length max_seq_length max_seq_len context_length block_size n_ctx"
_SIZE = lazy_re(r"(?i)^([\d.]+)\s*([kmbt])$")
# The words by which configs name a model; the first that fits decides
KINDS = {
    "images and text": r"\bclip\b|clip[-_ ](vit|rn)|siglip",
    "speech": r"whisper|wav2vec|hubert",
    "diffusion": r"ddpm|diffusion|\bdit\b|\bdit[-_]",
    "text to text": r"\bm?t5\b|\bt5[-_]|\bbart\b",
    "masked language model": r"bert",
    "image classifier": r"\bvit\b|\bvit[-_]|deit|resnet|swin|convnext",
    "language model": r"gpt|llama|mistral|qwen|gemma|bloom|pythia|olmo|falcon|\bmpt\b|\bopt-|deepseek",
}


@dataclass(frozen=True)
class Published:
    """A row of recipes.csv; None where its source does not say. `values` has the columns that are numbers."""

    model: str
    kind: str
    optimizer: str
    schedule: str
    warmup_unit: str
    batch_unit: str
    source: str
    values: dict[str, float | None]


@cache
def published() -> tuple[Published, ...]:
    """All of them, kind by kind."""
    text = resources.files("forensics.published").joinpath("recipes.csv").read_text("utf-8")
    named = ("model", "kind", "optimizer", "schedule", "warmup_unit", "batch_unit", "source")
    rows = csv.DictReader(text.splitlines())
    return tuple(Published(**{k: r[k] for k in named}, values={k: float(r[k]) if r[k] else None for k in NUMBERS}) for r in rows)


def beside(run: Run) -> dict[str, Any] | None:
    """The run's settings beside those of published recipes of its kind and size; None where kind, size or optimizer is not known."""
    kind, family = kind_of(run), usual_rate.family(run)
    size = parameters(run) if kind else None
    if kind is None or size is None or family not in usual_rate.FAMILIES or _tuned(run):
        return None
    like = [p for p in published() if (p.kind, p.optimizer) == (kind, family) and _near(p.values["parameters"], size[0])]
    rows = [row for what, (value, key, unit) in _settings(run).items() if (row := _row(what, value, _span(like, key, unit)))]
    if len(like) < LEAST or not rows:
        return None
    return {"kind": kind, "parameters": size[0], "how": size[1], "rows": rows, "models": [p.model for p in like]}


def kind_of(run: Run) -> str | None:
    """The kind of model, by the name that config gives it, else by a framework that trains one kind only."""
    for name in models(run):
        for kind, words in KINDS.items():
            if re.search(words, name.lower()):
                return kind
    return "language model" if run.framework in LANGUAGE else None


def parameters(run: Run) -> tuple[float, str] | None:
    """How many parameters the model has and how that is known: config says it, or gives layers and width of a model with attention."""
    for s in settings.named(run, _COUNT):
        value = _count(s.value)
        if value is not None and value >= SMALLEST:
            return value, f"{s.key} in {s.where}" if s.where else s.key
    layers = next((v for s in settings.named(run, _LAYERS) if (v := settings.as_number(s.value)) and v > 0), None)
    width = settings.number(run, "width")
    if not layers or not width or width <= 0 or not recipe(run).attention:
        return None
    return LAYER * layers * width**2 + (settings.number(run, "vocab_size") or 0) * width, f"{layers:g} layers of width {width:g}"


def _count(value: Any) -> float | None:
    """124e6, '124M', '1.3B'"""
    m = _SIZE.match(value.strip()) if isinstance(value, str) else None
    return (settings.as_number(m[1]) or 0.0) * UNITS[m[2].lower()] if m else settings.as_number(value)


def _tuned(run: Run) -> bool:
    """Whether the model was trained before: config says so, or names it as a hub does (owner/model)."""
    return usual_rate.tuned(run) or any("/" in name for name in models(run))


def _near(published: float | None, size: float) -> bool:
    return published is not None and size / FACTOR <= published <= size * FACTOR


def _settings(run: Run) -> dict[str, tuple[float | None, str, str]]:
    """What the run set: (value, column of the table, unit that a row must have)."""
    r = recipe(run)
    return {
        "peak rate": (r.rate, "rate", ""),
        "warmup, steps": (r.warmup, "warmup", "steps"),
        "beta2": (settings.number(run, "beta2"), "beta2", ""),
        "epsilon": (settings.number(run, "eps"), "epsilon", ""),
        "gradient clip (0: none)": (r.clip, "clip", ""),
        "weight decay": (settings.number(run, "weight_decay"), "decay", ""),
        "batch, tokens": (_tokens(run), "batch", "tokens"),
    }


def _tokens(run: Run) -> float | None:
    """Tokens of an optimizer step, where no file leaves open how many samples that is."""
    ways, length = sizes.sizes(run), sizes.whole(run, _LENGTH)
    sure = {w.total for w in ways if not w.assumed}
    return float(sure.pop() * length[0]) if length and len(sure) == 1 and not any(w.assumed for w in ways) else None


def _span(like: Sequence[Published], key: str, unit: str) -> list[float]:
    """What the recipes set, lowest first."""
    fit = [p.values[key] for p in like if not unit or getattr(p, f"{key}_unit") == unit]
    return sorted(v for v in fit if v is not None)


def _row(what: str, here: float | None, told: list[float]) -> dict[str, Any] | None:
    if here is None or len(told) < LEAST:
        return None
    low, high = told[0], told[-1]
    stands = "below" if here < low else "above" if here > high else "within"
    return {"what": what, "here": here, "low": low, "high": high, "recipes": len(told), "stands": stands}

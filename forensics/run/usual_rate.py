"""What is usual for the peak rate with this optimizer: one rate where the run says what model it is, else the span over all models.

``forensics.run.recipe`` holds the figures; nothing is guessed. A pretrained model is tuned at rates of its own, which no rule gives.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from forensics.run import settings
from forensics.run.once import once
from forensics.run.recipe import ADAM, SGD, models, of_width, recipe, sgd_rate
from forensics.run.settings import Setting
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

FAMILIES = ("adam", "sgd")
_ESTIMATORS = {
    "MLPClassifier": "adam",
    "MLPRegressor": "adam",
    "SGDClassifier": "sgd",
    "SGDRegressor": "sgd",
}  # the defaults of scikit-learn
_DEFAULTS = {"hf-trainer": "adam"}  # of frameworks: TrainingArguments.optim is AdamW where nothing else is asked for
# times the rate of the whole model; source: Schulman et al., "LoRA Without Regret" (2025), the best of 14 models tuned both ways
ADAPTERS = 10.0
NARROWEST, WIDEST = 16.0, 16384.0  # of models with attention: toys, and Llama 3 405B (arXiv 2407.21783) at the other end
_NAMED = lazy_re(r"(?i)(^|[./])(optim|optimizer)[./](name|type|class|kind|_target_)$")
_ADAM_KEYS = lazy_re(r"(?i)(^|[./_])(adam_)?(beta_?2|betas|adam_eps(ilon)?)$")
_OPTAX = "b2"  # how optax and Flax call it; a bias may have the name, but not such a value
_OTHER = lazy_re(
    r"(?i)mlp|mixer|cnn|conv|res_?net|vgg|gru|lstm|rnn|u-?net|efficientnet|densenet|mobilenet|vae|gan\b|linear|dqn|ppo|lenet|yolo"
)
_PRETRAINED = lazy_re(
    r"(?i)(^|[./])(pretrained|model_name_or_path|finetune[a-z_]*|pretrained_model[a-z_]*|init_checkpoint|load_pretrained)$"
)
_ADAPTER = lazy_re(r"(?i)(^|[./_])(lora|peft|adapters?|qlora)([./_]|$)")
_ADAPTER_SWITCH = lazy_re(r"(?i)^(use_|enable_)?(lora|peft|adapters?)(_r|_rank|_enabled?)?$")
NO = ("", "0", "0.0", "false", "none", "null", "no", "[]", "{}", "scratch")


@dataclass(frozen=True)
class Usual:
    """The usual rate lies from `low` to `high`, which are one where the model is known; `why` says what keeps it from being known."""

    low: float | None
    high: float | None
    why: str = ""
    missing: bool = False  # config does not say it


def is_set(s: Setting) -> bool:
    """Whether a setting turns something on."""
    return str(s.value).strip().lower() not in NO


def tuned_by_adapters(run: Run) -> bool:
    """Whether config asks for adapters (LoRA and kin), and no switch turns them off."""
    found = [s for s in settings.every(run) if _ADAPTER.search(s.key) and "version" not in s.key.lower()]
    off = any(not is_set(s) and _ADAPTER_SWITCH.search(s.key.rpartition(".")[2]) for s in found)
    return not off and any(is_set(s) for s in found)


@once
def _optimizers(run: Run) -> list[Setting]:
    """The settings that name an optimizer."""
    # elsewhere a solver integrates a differential equation
    names = [*settings.names_of("optimizer"), *(["solver"] if settings.named(run, "estimator") else [])]
    plain = [s for s in settings.named(run, " ".join(names)) if isinstance(s.value, str)]
    return plain + [s for s in settings.every(run) if _NAMED.search(s.key) and s not in plain]


@once
def optimizer(run: Run) -> Setting | None:
    """The setting that names the optimizer, or one that only Adam and its kin have; None where two settings name different ones."""
    named = _optimizers(run)
    if len({_family(str(s.value)) for s in named}) > 1:
        return None
    return named[-1] if named else next((s for s in settings.every(run) if _adams(s)), None)


def _adams(s: Setting) -> bool:
    """Whether only Adam and its kin have such a setting."""
    value = settings.as_number(s.value) if s.key.rpartition(".")[2] == _OPTAX else None
    return _ADAM_KEYS.search(s.key) is not None or (value is not None and 0.5 <= value < 1)


def family(run: Run) -> str | None:
    """'adam', 'sgd', 'other', or None where config does not name the optimizer, or names two."""
    found = optimizer(run)
    if found is None:
        told = next((f for s in settings.named(run, "estimator") if (f := _ESTIMATORS.get(str(s.value)))), None)
        return told or (None if _optimizers(run) else _DEFAULTS.get(run.framework or ""))
    return "adam" if _adams(found) else _family(str(found.value))


def _family(name: str) -> str:
    name = name.lower()
    return next((f for f in FAMILIES if f in name and not re.search("adamax|muon", name)), "other")


def named(run: Run) -> bool:
    """Whether config names an optimizer, or several."""
    return optimizer(run) is not None or bool(_optimizers(run) or settings.named(run, "estimator"))


def tuned(run: Run) -> bool:
    """Whether config says that the model was trained before, or trains adapters of one."""
    return tuned_by_adapters(run) or any(is_set(s) for s in settings.every(run) if _PRETRAINED.search(s.key))


def _attention(run: Run) -> bool | None:
    """Whether the model has attention; None where neither framework nor config tells."""
    if recipe(run).attention:
        return True
    return False if any(_OTHER.search(t) for t in models(run)) else None


@once
def usual(run: Run) -> Usual:
    """The usual peak rate; where the model is not known, from that of the widest to that of the narrowest (others lie between)."""
    kind, attention, width = family(run), _attention(run), settings.number(run, "width")
    if kind is None:
        return Usual(None, None, "config does not name one optimizer, so that no usual rate is known", missing=True)
    if kind == "other":
        return Usual(None, None, f"no usual rate is known for the optimizer {str(getattr(optimizer(run), 'value', ''))[:40]}")
    if tuned(run):
        return Usual(None, None, "the model was trained before (config), and no usual rate is known for tuning it")
    if kind == "sgd":
        highest = sgd_rate(run)
        clipped = "gradients are clipped and their norm was not logged, so that it is not known how far a rate of SGD moves the weights"
        return Usual(SGD, highest) if highest else Usual(None, None, clipped, missing=True)
    if attention is False:
        return Usual(ADAM, ADAM)
    if attention and width and width > 0:
        return Usual(of_width(width), of_width(width))
    why = "does not name the width of the model" if attention else "does not say what kind of model it is"
    return Usual(of_width(WIDEST), of_width(NARROWEST), f"config {why}, and some models take such a rate")

"""What the run was told to do: clipping, epsilon and memory of the optimizer, precision, and settings of the model."""

from __future__ import annotations

import math
import re

from forensics.checkpoints.first_norm import first_norm
from forensics.detectors import peak_rate
from forensics.errors import CannotTell
from forensics.run import initial_weights, settings, weight_norms
from forensics.run.plan import planned_steps
from forensics.run.recipe import recipe
from forensics.run.series import names, series
from forensics.run.settings import Setting
from forensics.run.usual_rate import family, is_set, optimizer, usual
from forensics.signs.sign import SEEN, Sign, Symptoms, absent, cannot_tell, does_not_arise, seen
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

CLIPS_NOTHING = 1e3  # a norm that no gradient of a run that still learns reaches (forensics.run.recipe)
TINY_EPSILON = 1e-9  # a tenth of the 1e-8 of Adam's paper (arXiv 1412.6980), which is the smallest default of any framework
LARGE_EPSILON = 1e-3  # the RMS of a language model's gradients is 1e-4 to 1e-2 (arXiv 2304.09871): the denominator is then epsilon
SHORT = 0.9  # beta2 of WGAN-GP (arXiv 1704.00028), the shortest memory of a published recipe; of large models 0.95 (arXiv 2005.14165)
SHRINKS = 1e-3  # of the weights a step: they are forgotten as fast as Adam's own second moment forgets (1 - 0.999)
# Decay of a weight of 0.02 (initial_weights.DEFAULT) is as large as the largest usual gradient, 0.01: where it is added to it, it outweighs it
OUTWEIGHS = 0.5
OUTWEIGHS_SGD = 0.05  # unit: a hundred times what recipes of SGD have (5e-4: Wide ResNets, arXiv 1605.07146)
MOMENTUM = 0.9  # of SGD in every recipe that has it; batch norms, averages of weights and other optimizers use other numbers
PERCEPTRON_BATCH = 200.0  # samples a step of scikit-learn's perceptrons where none is set (sklearn.neural_network)
_NOT_ADAM = lazy_re(r"(?i)norm|(^|[./_])(bn|ln)[./_]|attack|explor|greedy|smooth|clip|privacy")


def clipping_off(s: Symptoms) -> Sign:
    """The config turns gradient clipping off, or sets a norm that clips nothing."""
    return _clipping(s.run, on=False)


def clipping_on(s: Symptoms) -> Sign:
    """The config clips the norm of the gradients."""
    return _clipping(s.run, on=True)


def epsilon_tiny(s: Symptoms) -> Sign:
    """Adam's epsilon is far below the usual 1e-8, so that tiny second moments make large updates (arXiv 2304.09871)."""
    return _epsilon(s.run, "small_epsilon", 0.0, TINY_EPSILON, "far below the usual 1e-8")


def epsilon_large(s: Symptoms) -> Sign:
    """Adam's epsilon is as large as usual gradients, so that updates shrink with them as those of SGD do (arXiv 2304.09871)."""
    return _epsilon(s.run, "large_epsilon", LARGE_EPSILON, math.inf, "no smaller than usual gradients are")


def beta2_short(s: Symptoms) -> Sign:
    """Adam's second moment remembers fewer steps than in any published recipe (beta2 below 0.9)."""
    told = settings.setting(s.run, "beta2")
    value = settings.as_number(told.value) if told else None
    if told is None or value is None or not 0 <= value < 1:
        return cannot_tell("config does not name beta2.")
    text = f"Beta2 is {value:g}: the second moment remembers some {1 / (1 - value):.0f} steps."
    return seen(text, where=told.where) if value < SHORT else absent(text, where=told.where)


def half_precision(s: Symptoms) -> Sign:
    """The config asks for fp16, or a loss scale was logged, which only fp16 needs (Micikevicius et al., arXiv 1710.03740, section 3.2)."""
    scale = series(s.run, "loss_scale")
    if (
        settings.precision(s.run) is None
        and scale is not None
        and scale.usable.any()
        and (highest := float(scale.value[scale.usable].max())) > 1
    ):
        return seen(f"A loss scale of {highest:.6g} was logged, which only fp16 needs.", where=scale.place(s.run, 0))
    return _precision(s.run, ("fp16",))


def full_range_precision(s: Symptoms) -> Sign:
    """The config asks for bf16 or fp32, whose range is that of fp32 (largest value 3.4e38, of fp16 65504)."""
    return _precision(s.run, ("bf16", "fp32"))


def qk_norm_off(s: Symptoms) -> Sign:
    """The config has no normalization of queries and keys (ViT-22B, arXiv 2302.05442)."""
    return _switch(s.run, "qk_norm", "the normalization of queries and keys", on=False)


def qk_norm_on(s: Symptoms) -> Sign:
    """The config normalizes queries and keys (ViT-22B, arXiv 2302.05442)."""
    return _switch(s.run, "qk_norm", "the normalization of queries and keys", on=True)


def inputs_left_raw(s: Symptoms) -> Sign:
    """The config turns the scaling of the inputs off (LeCun et al., Efficient BackProp: mean 0, and one variance for all inputs)."""
    return _switch(s.run, "inputs_scaled", "the scaling of the inputs", on=False)


def init_std_large(s: Symptoms) -> Sign:
    """The configured std of the initial weights is more than twice sqrt(1 / (3 width)), which keeps the variance of layers, and above the 0.02 of GPT-2;
    or the first logged norm of the weights is larger than usual weights of their shapes have, and training does not make it larger."""
    try:
        init = initial_weights.configured(s.run)
    except CannotTell as e:
        began = first_norm(s.run)
        if began is None or began.norm <= began.most:
            return cannot_tell(f"{e}.")
        return seen(
            f"The first logged norm of the weights is {began.norm:.4g}; usual ones of these shapes have {began.most:.4g} at most.",
            where=began.where,
        )
    return (seen if init.large else absent)(init.text, where=init.where)


def weight_decay_strong(s: Symptoms) -> Sign:
    """Weight decay takes a thousandth of the weights or more a step, and the run is longer than that memory (arXiv 1711.05101, 2405.13698)."""
    (told, decay), rate = _decay(s.run), settings.number(s.run, "lr") or recipe(s.run).rate
    if told is None or decay is None or rate is None:
        return cannot_tell("config does not name the weight decay." if decay is None else "neither log nor config says the learning rate.")
    steps, shrinks, where = planned_steps(s.run), rate * decay, told.where
    text = f"A weight decay of {decay:g} at a learning rate of {rate:.3g} takes {shrinks:.2g} of each weight a step"
    sgd = _is_sgd(s.run)
    if sgd and decay < OUTWEIGHS_SGD:
        return absent(f"A weight decay of {decay:g} is added to the gradient of SGD, at whatever rate.", where=told.where)
    if not sgd and not _decoupled(s.run) and 0 < decay < OUTWEIGHS:
        return cannot_tell("config does not say that the weight decay is decoupled (AdamW).")
    if not sgd and not _decoupled(s.run) and decay > 0:
        unless = "" if optimizer(s.run) is not None else ", unless the optimizer keeps the two apart (AdamW), which config does not say"
        return seen(f"A weight decay of {decay:g} outweighs the gradient that it is added to{unless}.", where=where)
    if shrinks < SHRINKS or (steps is not None and shrinks * steps < 1):
        return absent(f"{text}{f', {shrinks * steps:.2g} times over in {steps} steps' if steps else ''}.", where=where)
    if (norm := weight_norms.whole(s.run)) is not None and norm[1][-1] >= norm[1][0]:
        return absent(
            f"{text}, but their norm goes from {norm[1][0]:.4g} to {norm[1][-1]:.4g}: the gradient holds against it.", where=where
        )
    usual_rate = usual(s.run).high
    if usual_rate is None and (by_width := recipe(s.run).usual) is not None:  # what tunes a trained model is no larger than what trains it
        usual_rate = peak_rate.RATIO * by_width
    if usual_rate is not None and rate > usual_rate and usual_rate * decay < SHRINKS:
        return absent(
            f"{text}, but at a usual rate of {usual_rate:.2g} it would take {usual_rate * decay:.2g}: it is the rate.", where=where
        )
    return seen(f"{text}.", where=where)


def _decay(run: Run) -> tuple[Setting | None, float | None]:
    """The setting and what it comes to a step: scikit-learn calls it `alpha`, and a perceptron divides it by the samples of a batch."""
    told, decay = settings.setting(run, "weight_decay"), settings.number(run, "weight_decay")
    estimator = settings.named(run, "estimator")
    if told is not None or not estimator:
        return told, decay
    told = next(iter(settings.named(run, "alpha")), None)
    decay = settings.as_number(told.value) if told else None
    if decay is not None and str(estimator[-1].value).startswith("MLP"):
        decay /= settings.number(run, "batch_size") or PERCEPTRON_BATCH
    return told, decay


def _decoupled(run: Run) -> bool:
    """Whether the optimizer is one that takes rate times decay of each weight a step."""
    name = optimizer(run)
    return name is not None and bool(re.search(r"(?i)adamw|lion|decoupled", str(name.value)))


def _is_sgd(run: Run) -> bool:
    """Whether a decay is weighed against the gradient itself, not against steps of the length of the rate."""
    unnamed = optimizer(run) is None and any(settings.as_number(m.value) == MOMENTUM for m in settings.named(run, "momentum sgd_momentum"))
    return family(run) == "sgd" or unnamed


def label_smoothing_set(s: Symptoms) -> Sign:
    """The config smooths labels, which lifts the lowest loss that can be reached (arXiv 1512.00567)."""
    told, value = settings.setting(s.run, "label_smoothing"), settings.number(s.run, "label_smoothing")
    if told is None or value is None:
        return cannot_tell("config does not mention label smoothing.")
    text = f"Config sets label smoothing to {value:g}."
    return seen(text, where=told.where) if value > 0 else absent(text, where=told.where)


def scale_configured_static(s: Symptoms) -> Sign:
    """The config fixes the loss scale of half precision, so that it cannot give way to an overflow."""
    fixed = settings.named(s.run, "loss_scale static_loss_scale")
    precision = settings.precision(s.run)
    if precision in ("bf16", "fp32"):
        return does_not_arise(f"no loss scale is needed: config asks for {precision}.")
    if not fixed:
        return cannot_tell("config does not mention a loss scale.")
    value = settings.as_number(fixed[-1].value)
    if value is not None and (value > 1 or (value == 1 and precision == "fp16")):
        return seen(f"Config fixes the loss scale at {value:g}.", where=fixed[-1].where)
    return absent(f"Config leaves the loss scale to move: {fixed[-1].key} is {str(fixed[-1].value)[:40]}.", where=fixed[-1].where)


def _clipping(run: Run, *, on: bool) -> Sign:
    told = settings.setting(run, "clip")
    if told is None or (isinstance(told.value, str) and is_set(told) and _number(told) is None):
        return cannot_tell("config does not say whether gradients were clipped.")
    value = _number(told)
    clips = told.value is True or (value is not None and 0 < value < CLIPS_NOTHING)
    at = f" at {value:g}" if clips and value is not None else ""
    text = f"Config clips the gradients{at}." if clips else f"Config turns gradient clipping off: {told.key} is {_shown(told)}."
    return (seen if clips == on else absent)(text, where=told.where)


def _number(told: Setting) -> float | None:
    """As a number; infinite is one here, and clips nothing."""
    if isinstance(told.value, bool) or told.value is None:
        return None
    try:
        return float(told.value)
    except (TypeError, ValueError, OverflowError):
        return None


def _shown(told: Setting) -> str:
    return "none" if told.value is None else str(told.value)[:40]


def _epsilon(run: Run, name: str, least: float, end: float, words: str) -> Sign:
    """SEEN where Adam's epsilon lies in [least, end); `name`: what advice calls it."""
    told = [x for x in settings.settings(run, "eps") if not _NOT_ADAM.search(x.key) and settings.as_number(x.value) is not None]
    if family(run) == "sgd":
        return does_not_arise("there is no epsilon in SGD.")
    if not told:
        return cannot_tell("config does not name Adam's epsilon.")
    if family(run) not in ("adam", None) or (family(run) is None and "adam" not in told[-1].key and "rl.reward" in names(run)):
        return cannot_tell("config does not say that the optimizer is Adam or its kin, which alone has this epsilon.")
    eps, where = float(told[-1].value), told[-1].where
    if least <= eps < end:
        return Sign(SEEN, f"Epsilon is {eps:g}, {words}.", where=where, numbers={name: f"{eps:g}"})
    return absent(f"Epsilon is {eps:g}.", where=where)


def _precision(run: Run, wanted: tuple[str, ...]) -> Sign:
    found = settings.precision(run)
    if found is None:
        return cannot_tell("config does not say which precision was used.")
    where = next((x.where for x in settings.settings(run, "precision")), "")
    text = f"Config asks for {found}."
    return (seen if found in wanted else absent)(text, where=where)


def _switch(run: Run, what: str, words: str, *, on: bool) -> Sign:
    told = settings.setting(run, what)
    if told is None:
        return cannot_tell(f"config does not mention {words}.")
    text = f"Config turns {words} {'on' if is_set(told) else 'off'}: {told.key} is {_shown(told)}."
    return (seen if is_set(told) == on else absent)(text, where=told.where)

"""Settings that leave the loss no room by what they compute, beside a loss that fell little."""

from __future__ import annotations

import math

from forensics.run import boosting, settings
from forensics.run.evaluations import outcomes
from forensics.run.inputs import is_policy
from forensics.run.plan import planned_steps
from forensics.run.series import series
from forensics.run.usable_values import first_level, metric, usable
from forensics.run.usual_rate import family, is_set
from forensics.signs import configured, learning_rate, loss_level
from forensics.signs.input_statistics import inputs_far_from_unit
from forensics.signs.loss_shape import loss_diverged
from forensics.signs.sign import ABSENT, SEEN, Sign, Symptoms, absent, cannot_tell, does_not_arise, seen
from parsers.lazy_regex import lazy_re
from parsers.loss_names import is_likelihood

EFFECTS = {"setting_holds_loss_up": "config", "boosting_overshoots": "config"}  # symptoms of their own, for which there is no detector
SUBJECT = "configured"
USUAL = 0.2  # twice what papers smooth by (arXiv 1512.00567, 1706.03762); of two answers it costs half of the loss, and is meant to
HALF = 0.5  # bound: of the first loss, below which loss_fell_little is not seen; of the planned steps; of the first gradient


def smoothing_costs_half(s: Symptoms) -> Sign:
    """The entropy of the smoothed targets, which no model gets below, is more than half of the first loss (arXiv 1512.00567, section 7)."""
    told, share = settings.setting(s.run, "label_smoothing"), settings.number(s.run, "label_smoothing")
    loss, (_, x), held_out = metric(s.run), usable(s.run), series(s.run, "loss.eval")
    if told is None or share is None:
        return cannot_tell("config does not mention label smoothing.")
    named = any(m is not None and is_likelihood(m.tag) for m in (loss, held_out))  # an "objective" beside a "held-out nll" is one, too
    if not len(x) or not named or not 0 <= share < 1:
        return cannot_tell("no cross entropy was logged, whose lowest value smoothing could lift.")
    first = first_level(x)
    known = outcomes(s.run)
    among = max(known or math.exp(min(first, 20.0)), 2.0)  # an untrained model guesses among them, or begins higher
    floor, where = _smoothed_entropy(share, among), told.where
    if (lowest := float(x.min())) < (floor if known else _smoothed_entropy(share, max(HALF * among, 2.0))):
        return absent(
            f"The loss comes to {lowest:.3g}, below the {floor:.3g} that smoothing would leave: it is no smoothed one.", where=where
        )
    text = f"Label smoothing of {share:g} over {'' if known else 'about '}{among:.0f} outcomes costs {floor:.3g} of a loss that begins at {first:.3g}."
    return seen(text, where=where) if floor > HALF * first else absent(text, where=where)


SQUASHED = {"softmax", "sigmoid"}
_HEAD = lazy_re(r"(?i)(?:^|[./])(?:\w{1,30}_)?(?:head|last|output|out|final|last_layer|output_layer)(?:_activation)?$")
# Keras's word, and torch's losses of logits
_LOGITS = lazy_re(r"(?i)\bfrom_logits\s*=\s*(true|1)\b|WithLogits|^(?:torch\.)?(?:nn\.)?CrossEntropyLoss\b")


def config_squashes_twice(s: Symptoms) -> Sign:
    """Config lets the model end in a softmax or sigmoid, and gives the loss logits (Keras's `from_logits`, torch's CrossEntropyLoss)."""
    heads = [t for t in settings.every(s.run) if _HEAD.search(t.key)]
    told = next((t for t in heads if str(t.value).lower() in SQUASHED), None)
    logits = next(iter(settings.named(s.run, "from_logits")), None)
    logits = logits or next((t for t in settings.every(s.run) if isinstance(t.value, str) and _LOGITS.search(t.value)), None)
    if logits is None or not heads:
        return cannot_tell("config does not say both what the model ends in and what the loss is given.")
    given = is_set(logits)
    if told is None or not given:
        return absent(f"Config tells the loss that it is {'not ' * (not given)}given logits, as the model ends.", where=logits.where)
    return seen(
        f"Config lets the model end in a {told.value} ({told.key}) and tells the loss that it gets logits ({logits.key}).", where=told.where
    )


def rounds_cannot_reach(s: Symptoms) -> Sign:
    """Boosting ends after so few rounds that its rate leaves more than half: each takes a rate's share of what is left (Friedman 2001, section 5)."""
    if not boosting.trees(s.run):
        return does_not_arise("config names no trees, which boosting would add up.")
    told, rate = boosting.rate(s.run)
    step, _ = usable(s.run)
    if told is None or rate is None or not 0 < rate < 1 or not len(step):
        return cannot_tell("neither log nor config says the learning rate of the boosting.")
    rounds = max(int(step[-1]) + 1, planned_steps(s.run) or 0)
    reached = 1 - (1 - rate) ** rounds
    text = f"Boosting at a learning rate of {rate:g} reaches no more than {reached:.2g} of what there is to learn in {rounds} rounds."
    return seen(text, where=told.where) if reached < HALF else absent(text, where=told.where)


def boosting_overshoots(s: Symptoms) -> Sign:
    """The learning rate of boosting is above 1: each round adds more than all that is left to learn (Friedman 2001, section 5: from 0 to 1)."""
    if not boosting.trees(s.run):
        return does_not_arise("config names no trees, which boosting would add up.")
    told, rate = boosting.rate(s.run)
    if told is None or rate is None:
        return cannot_tell("neither log nor config says the learning rate of the boosting.")
    text = f"Boosting adds {rate:g} times what each round finds is left to learn"
    return seen(f"{text}: more than all of it.", where=told.where) if rate > 1 else absent(f"{text}.", where=told.where)


def setting_holds_loss_up(s: Symptoms) -> Sign:
    """The loss falls by less than half, and a setting leaves it no more: smoothing, decay, epsilon, a rate far from any usual, too few rounds, inputs as
    they were measured."""
    if is_policy(s.run):
        return does_not_arise("the loss of a policy need not fall.")
    planned, step = planned_steps(s.run), usable(s.run)[0]
    if planned and len(step) and step[-1] < HALF * planned:
        return cannot_tell("the run came to less than half of its plan.")
    if (turned := loss_diverged(s)).state == SEEN:
        return absent(f"{turned.text.rstrip('.')}: it is not held, it is driven.")
    fell = loss_level.loss_fell_little(s)
    if fell.state != SEEN:
        return absent(fell.text) if fell.state == ABSENT else fell
    smoothed = (settings.number(s.run, "label_smoothing") or 0) > USUAL
    looked = [
        *([smoothing_costs_half(s)] if smoothed else []),
        rounds_cannot_reach(s),
        configured.weight_decay_strong(s),
        configured.epsilon_large(s),
        inputs_far_from_unit(s),
        learning_rate.rate_far_below_usual(s),
    ]
    if family(s.run) == "adam":  # how much SGD bears hangs on the scale of the loss, and on clipping
        looked.append(learning_rate.rate_far_above_usual(s))
    told = next((x for x in looked if x.state == SEEN), None)
    if told is None:
        return absent("No setting that was read holds the loss up.")
    return seen(f"{told.text.rstrip('.')}. {fell.text}", where=told.where, **fell.numbers)


def _smoothed_entropy(share: float, among: float) -> float:
    """Entropy in nats of targets that keep 1 - `share` and spread the rest over `among` outcomes evenly."""
    each = share / among
    right = 1 - share + each
    return -right * math.log(right) - ((among - 1) * each * math.log(each) if each > 0 else 0.0)

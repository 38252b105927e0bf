"""The share of right answers through the run: whether it ever leaves where it began."""

from __future__ import annotations

import math

import numpy as np

from forensics.run import plan, settings
from forensics.run.evaluations import MANY_ANSWERS, answers_at_end, shares
from forensics.run.levels import LEVEL
from forensics.run.robust import error_of_median, median, noise_by_steps
from forensics.run.series import Floats, Series, names, series
from forensics.run.usual_rate import is_set
from forensics.run.weight_norms import frozen_on_purpose
from forensics.signs.held_out_chance import GUESSED
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen
from forensics.spikes.visible import MARGIN
from parsers.lazy_regex import lazy_re
from parsers.loss_names import is_likelihood
from parsers.tables import Run

SUBJECT = "held_out"  # the other half of it
EFFECTS = {"hits_never_rise": "acc.eval", "training_right_less_often": "acc.train"}  # symptoms of their own, for which there is no detector

LEAST, MANY = 4, 20  # bound: evaluations, as the plateau detector wants them; values whose fifths are four each
LOW = 0.5 / GUESSED  # bound: below what one of two answers scatters to; a domain classifier of adversarial training is meant to guess
# bound: fifths of MANY values are four each; the first tenth and the last are the least that has a beginning and an end
FIFTHS, TENTHS = 5, 10
ROOM = 0.25  # of the level; measured: the hits of runs that learn rise by more than a quarter (held_out_chance)
_MIXED = lazy_re(r"(?i)mix_?up|cut_?mix|augment|aug_|randaug|label_?noise|smooth|corrupt|mask")
_TRAINED = lazy_re(
    r"(?i)(^|[./_])(pre_?trained\w*|init_from|load_from|resume_from\w*|fine_?tun\w*|model_name_or_path|init_checkpoint)([./_]|$)"
)
_TOKENS = lazy_re(r"(?i)tok(en)?s?([^a-z]|$)|(^|[^a-z])(mlm|lm|next|domain|adv\w*|disc\w*|fg|frozen|probe|teacher|ema)([^a-z]|$)")


def hits_never_rise(s: Symptoms) -> Sign:
    """The share of right answers stays far below half and where it began, through the whole run, in training and evaluation. An accuracy that is
    logged in the course of each epoch shows that by itself; one that is first logged after an epoch only where the loss is what as many answers
    cost who guess: 1/K right and ln(K). A model that was trained before may have nothing left to learn."""
    logged = [a for name in ("acc.eval", "acc.train") if (a := series(s.run, name)) is not None and a.usable.sum() >= LEAST]
    if not logged:
        return cannot_tell(f"fewer than {LEAST} values of an accuracy were logged.")
    if why := _no_question(s.run, logged):
        return does_not_arise(why)
    told = {a.tag: shares(a.value[a.usable]) for a in logged}
    low = {
        tag: f"{tag} is {np.median(x[:LEVEL]):.3g} at first, {x.max():.3g} at most and {np.median(x[-LEVEL:]):.3g} at the end"
        for tag, x in told.items()
    }
    for tag, x in told.items():
        if _moves(x):
            return absent(f"{low[tag]}.")
    own = [a for a in logged if len(told[a.tag]) >= MANY and not _by_epoch(s.run, a)]
    beside = [a for a in logged if _costs_as_guessing(s.run, told[a.tag])]
    shown = [a for a in own if _room(told[a.tag]) <= ROOM * median(told[a.tag])] + beside
    if not shown:
        return cannot_tell(f"how hits began was not logged, or they scatter too widely: {low[logged[0].tag]}.")
    a = shown[0]
    rows = np.flatnonzero(a.usable)
    text = f"The answers never get better: {' and '.join(low.values())}"
    return seen(f"{text}.", where=a.place(s.run, int(rows[0])), first=int(a.step[rows[0]]), last=int(a.step[rows[-1]]))


def _no_question(run: Run, logged: list[Series]) -> str:
    """Why hits that stay where they are say nothing here."""
    if any(name.startswith(("rl.", "pref.", "gan.", "ppl.")) for name in names(run, LEAST)):
        return "a policy, a preference, a generator or a language model is trained, whose hits need not rise."
    if frozen_on_purpose(run) or any(is_set(x) and _TRAINED.search(x.key) for x in settings.every(run)):
        return "config goes on from a trained model, which may have nothing left to learn."
    if settings.number(run, "vocab_size") or any(_TOKENS.search(a.tag) for a in logged):
        return f"{logged[0].tag} is that of tokens or of a part that need not get better."
    if any(not np.ptp(a.value[a.usable]) for a in logged):
        return f"{logged[0].tag} is one and the same number throughout."
    return ""


def _moves(x: Floats) -> bool:
    """Whether hits are many, none, or rise beyond their scatter at some time."""
    first = median(x[: max(len(x) // TENTHS, LEVEL)])
    if len(x) < MANY:
        return not 0 < first <= LOW or float(x.max()) > GUESSED * first
    best = max(median(part) for part in np.array_split(x, FIFTHS))
    return not 0 < best <= LOW or best - first > _room(x)


def _room(x: Floats) -> float:
    """A rise between the medians of two fifths that may be scatter."""
    return MARGIN * math.sqrt(2) * error_of_median(noise_by_steps(x), max(len(x) // FIFTHS, 1))


def _by_epoch(run: Run, a: Series) -> bool:
    """Whether the first value came after an epoch: what was learnt until then is not seen."""
    epoch = series(run, "epoch")
    if plan.counts_epochs(run) or epoch is None or not epoch.usable.any():
        return True
    step, x = epoch.step[epoch.usable], epoch.value[epoch.usable]
    within = step[x <= max(float(np.floor(x[0])), 1.0)]
    return int((a.step[a.usable] <= within[-1]).sum()) < LEVEL if len(within) else True


def _costs_as_guessing(run: Run, hits: Floats) -> bool:
    """Whether the loss is -ln of the share of hits at the end. What a model knows makes it dearer or the hits more, except where it takes all
    answers for equally likely."""
    loss = series(run, "loss.eval") or series(run, "loss.train")
    if loss is None or not is_likelihood(loss.tag) or loss.usable.sum() < LEAST:
        return False
    x = loss.value[loss.usable]
    end = median(x[-max(len(x) // FIFTHS, LEVEL) :])
    return abs(end + math.log(float(np.mean(hits)))) <= math.log(GUESSED)


def training_right_less_often(s: Symptoms) -> Sign:
    """At the end training is right in a quarter of all answers less than the evaluation, and no setting mixes or distorts its samples."""
    train, ends = series(s.run, "acc.train"), answers_at_end(s.run)
    if train is None or ends is None:
        return cannot_tell("accuracies of training and evaluation were not logged three times each.")
    text = f"At the end {ends[0]:.1%} of the answers are right in training and {ends[1]:.1%} in the evaluation"
    if ends[1] - ends[0] < MANY_ANSWERS:
        return absent(f"{text}.")
    if (mixed := next((t for t in settings.every(s.run) if is_set(t) and _MIXED.search(t.key)), None)) is not None:
        return does_not_arise(f"{text}, and config makes training harder ({mixed.key}).")
    return seen(f"{text}: the model answers well, and training says otherwise.", where=train.place(s.run, -1))

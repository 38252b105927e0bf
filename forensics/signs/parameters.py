"""How much of the model trains, as the log says, and whether its weights move."""

from __future__ import annotations

import numpy as np

from forensics.detectors import frozen_weights, plateau
from forensics.findings import GRAVE
from forensics.run import settings, trained_before, usual_rate, weight_norms
from forensics.run.evaluations import guessing, shares
from forensics.run.levels import LEVEL, ROOM
from forensics.run.parameter_counts import counts
from forensics.run.robust import error_of_median, median, noise_by_steps
from forensics.run.series import Floats, Series, series
from forensics.run.usable_values import begins_late, first_level, lacking, last_level, usable
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen
from parsers.tables import Run

EFFECTS = {
    "weights_never_move": "param.norm|param.norm_layer",
    "weights_hardly_move": "param.norm|param.norm_layer|upd.ratio",
}  # symptoms of their own, for which there is no detector

# Of all parameters: adapters of LoRA train 0.01 to 4 % (arXiv 2106.09685, tables 2 to 4), a new head on a frozen body less than 1 %
FEW = 0.05
# Of the weights: an update is usually a thousandth, and a rate whose updates are far below is too low (Karpathy, CS231n notes, "ratio of
# weights:updates"); below a tenth of that at the largest of the run
UPDATED = 1e-4
# Of a norm: updates of a thousandth that stand upright on the weights lengthen them by the square of it over two, 5e-7 each, so that this is
# passed after 20 of them; asked of runs of at least five times as many
MOVED, UPDATES = 1e-5, 100
NOISES = 8.0  # statistical: as in the divergence detector
KNOWS = 0.1  # unit: one answer in ten is right; what was trained before and is tuned knows more
FIFTHS, PAIR = 5, 2  # of the loss, and values in one: two have a scatter
STEADY = 0.5  # of the gradient norm of the first third is left in the last: less, and the model is coming to rest


def few_parameters_train(s: Symptoms) -> Sign:
    """The log says that no parameter trains, or that less than a twentieth of them do."""
    found = counts(s.run)
    if found is None:
        return cannot_tell("the log does not say how many parameters train.")
    if found.training == 0:
        return seen("The log says that no parameter trains.", where=found.where)
    if found.share is None:
        return cannot_tell("the log does not say how many parameters there are.")
    text = f"The log says that {found.training:,.0f} of {found.all:,.0f} parameters train ({found.share:.2g} of them)."
    if found.share >= FEW:
        return absent(text, where=found.where)
    if found.adapters or usual_rate.tuned(s.run):
        return does_not_arise(f"{text[:-1]}, and the others were trained before.")
    return seen(text, where=found.where)


ON_PURPOSE = "config freezes parts of the model, whose weights are not meant to move."
NO_NORMS = "the norm of the weights was not logged, or too coarsely to tell small moves."


def weights_never_move(s: Symptoms) -> Sign:
    """Every weight is bit for bit the same in all checkpoints, three or more; or every logged norm of weights is the same to its last digit from
    the first value to the last, while there is a gradient, or while the loss moves at a rate that config gives and config freezes nothing."""
    if stored := [f for f in s.of(frozen_weights.Facts) if f.facts.share == 1 and not f.facts.adapter and f.severity in GRAVE]:
        return seen(f"{stored[0].title}.", stored, first=stored[0].first_step, last=stored[0].last_step)
    norms, driven = weight_norms.norms(s.run), _driven(s.run)
    if not norms:
        return cannot_tell(NO_NORMS)
    if weight_norms.frozen_on_purpose(s.run):
        return does_not_arise(ON_PURPOSE)
    if series(s.run, "param.norm") is None and not settings.every(s.run):
        return does_not_arise("norms of parts of the model were logged, and no config says whether these are meant to move.")
    moving = [n for n in norms if not weight_norms.still(n)]
    told = f"{len(norms)} logged norm{'s' if len(norms) > 1 else ''} of weights"
    if moving:
        return absent(f"Of {told} {len(moving)} move{'s' if len(moving) == 1 else ''}.", where=moving[0].place(s.run, 0))
    if not driven:
        return does_not_arise(f"none of {told} moves, and there is nothing that should move them, or it was not logged.")
    first = norms[0]
    text = f"None of {told} moves in any digit ({first.tag} is {weight_norms.as_logged(first.value[0])} in all {len(first)} values), while {driven}."
    return seen(text, where=first.place(s.run, 0), first=int(first.step[0]), last=int(first.step[-1]))


def some_weights_never_move(s: Symptoms) -> Sign:
    """Norms of some parts of the model are the same to their last digit throughout, while those of others move, and config freezes nothing. By itself
    no harm: a body may be meant to stay."""
    norms = weight_norms.of_parts(s.run)
    if len(norms) < 2:
        return cannot_tell("norms of two parts of the model were not logged, or too coarsely to tell small moves.")
    if weight_norms.frozen_on_purpose(s.run):
        return does_not_arise(ON_PURPOSE)
    still = [n for n in norms if weight_norms.still(n)]
    text = f"Of the norms of {len(norms)} parts of the model {len(still)} never move"
    if not still or len(still) == len(norms):
        return absent(f"{text}.", where=norms[0].place(s.run, 0))
    n = still[0]
    text += f" in any digit ({n.tag} is {weight_norms.as_logged(n.value[0])} in all {len(n)} values)"
    return seen(f"{text}.", where=n.place(s.run, 0), first=int(n.step[0]), last=int(n.step[-1]))


def _driven(run: Run) -> str:
    """What should move the weights, in words: a gradient, or a rate above zero that moves the loss by more than it scatters."""
    grad, loss, rate = usable(run, "grad.norm")[1], usable(run, "loss.train")[1], settings.number(run, "lr")
    if len(grad):
        return "there is a gradient" if np.median(grad) > 0 else ""
    if rate is None or rate <= 0 or len(loss) < FIFTHS * PAIR:
        return ""
    fifth = len(loss) // FIFTHS
    first, last = median(loss[:fifth]), median(loss[-fifth:])
    moves = abs(last - first) > NOISES * error_of_median(noise_by_steps(loss), fifth)
    return f"the loss goes from {first:.4g} to {last:.4g} at a learning rate of {rate:g}" if moves else ""


def weights_hardly_move(s: Symptoms) -> Sign:
    """Weights of an untrained model move by next to nothing in the whole run, while its loss hardly falls and the gradient does not fade."""
    told = _move(s.run)
    if told is None:
        return cannot_tell(f"{NO_NORMS[:-1]}, nor was the size of the updates.")
    text, where, small = told
    if not small:
        return absent(f"{text}.", where=where)
    if weight_norms.frozen_on_purpose(s.run):
        return does_not_arise(ON_PURPOSE)
    if why := lacking(s.run, plateau.LEAST_VALUES, "loss.train") or lacking(s.run, plateau.LEAST_VALUES, "grad.norm") or begins_late(s.run):
        return cannot_tell(why)
    (step, x), norm, loss = usable(s.run, "loss.train"), usable(s.run, "grad.norm")[1], series(s.run, "loss.train")
    third = len(norm) // 3 + 1
    early, late = median(norm[:third]), median(norm[-third:])
    first, last = first_level(x), last_level(x)
    if loss is None or not (trained_before.from_scratch(loss, first, guessing(s.run, loss)) or _hardly_right(s.run)):
        return does_not_arise(f"{text}, and nothing says that the model was untrained: one that was trained is tuned by small moves.")
    told_loss = f"the loss goes from {first:.4g} to {last:.4g} and the gradient norm from {early:.3g} to {late:.3g}"
    if last < (1 - ROOM) * first or late < STEADY * early:
        return absent(f"{text}, but {told_loss}.", where=where)
    return seen(f"{text}, while {told_loss}.", where=where, first=int(step[0]), last=int(step[-1]))


def _hardly_right(run: Run) -> bool:
    """Whether an accuracy says that the model knew next to nothing at first."""
    hits = [shares(a.value[a.usable]) for name in ("acc.train", "acc.eval") if (a := series(run, name)) is not None and a.usable.any()]
    return any(median(x[:LEVEL]) < KNOWS for x in hits)


def _move(run: Run) -> tuple[str, str, bool] | None:
    """(how far the weights move in the whole run, in words, where that stands, whether it is next to nothing)."""
    ratio, update, total = series(run, "upd.ratio"), series(run, "upd.norm"), weight_norms.whole(run)
    if ratio is None and update is not None and total is not None:
        _, at, beside = np.intersect1d(total[0], update.step, return_indices=True)
        sizes: Floats = update.value[beside] / np.where(total[1][at] > 0, total[1][at], np.nan)
        if np.isfinite(sizes).any():
            return _of_ratio(sizes, update.place(run, 0))
    if ratio is not None and ratio.usable.any():
        return _of_ratio(ratio.value[ratio.usable], ratio.place(run, 0))
    norms = [n for n in weight_norms.norms(run) if np.isfinite(n.value).all() and n.value[0] > 0]
    if not norms or not all(_long(n) for n in norms):
        return None
    widest = max(norms, key=_relative)
    text = f"No norm of weights moves by more than {_relative(widest):.2g} of itself in the whole run ({widest.tag})"
    return text, widest.place(run, 0), 0 < _relative(widest) < MOVED


def _of_ratio(sizes: Floats, where: str) -> tuple[str, str, bool]:
    largest = float(np.nanmax(sizes))
    return f"The largest update is {largest:.2g} of the weights", where, 0 < largest < UPDATED


def _relative(s: Series) -> float:
    return float(np.ptp(s.value) / np.median(s.value))


def _long(s: Series) -> bool:
    return bool(s.step[-1] - s.step[0] >= UPDATES)

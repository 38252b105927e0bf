"""Where the evaluation stands: below or above training, still improving or not, one class for all."""

from __future__ import annotations

import numpy as np

from forensics.detectors import eval_jump, eval_noise, train_eval_gap
from forensics.errors import CannotTell
from forensics.findings import GRAVE
from forensics.run import evaluations as held
from forensics.run.evaluation_noise import noise_of
from forensics.run.evaluations import FIFTHS
from forensics.run.robust import median
from forensics.run.scores import answers_improve
from forensics.run.series import Floats, names, series
from forensics.run.usable_values import first_level, nan_from
from forensics.signs.held_out_chance import NO_LOSS, NO_TRAIN
from forensics.signs.sign import SEEN, Sign, Symptoms, absent, cannot_tell, does_not_arise, seen
from forensics.spikes.trend import falls_without_end
from parsers.loss_names import is_likelihood

SUBJECT = "held_out"  # the other half of it
EFFECTS = {
    "accuracy_is_one_class": "acc.eval",
    "eval_left_behind": "loss.eval",
    "next_token_certain": "loss.eval",
}  # symptoms of their own, for which there is no detector

BEYOND = 10.0  # unit: ten times
BY_HEART = 0.1  # of the early level: where the shadow detector calls any task memorized
# measured: of 159 runs nine end further apart, 20 to 2,300 times, all faulty, and no sound one 15 times; unit: half; a healthy run of the seen sets whose
# training ends there keeps a third, with 98 % right
APART, HALF = 0.05, 0.5
FEWER = 0.05  # unit: a twentieth of the wrong answers
HARDLY = 0.7  # measured: of 28 runs whose training goes on to a tenth of a standing evaluation the sound ones bring that to 0.51 of its first or less
EARLY, LEAST = 5, 20  # statistical: medians of 5 and 15 are off by half and a third of a noise; their sum at least
FEWEST = 10  # bound: means of ten epochs, of which three each make a level; three values of batches scatter by far less than ten times
BEGINS = 0.1  # share of the run by which its log must begin, as for the plateau detector
BELOW = 6  # evaluations: all of six on one side by chance has a probability of 1 in 64
ABOVE = 0.1  # unit: a tenth of all answers; what training gets right beyond the share of one class
FEW, WHOLE = 50, 1e-4  # answers; bound: of fifty the share of right ones scatters by 5 %, two or three steps of it; the digits of a log
ALIKE = 4  # statistical: evaluations; four equal ones to the printed digits are no chance while the loss moves
ERRORS = 2  # statistical: standard errors; of no difference it is once in twenty
EARLY_ONES = 3  # bound: three values make a median that one odd value does not move
# paper: a reader guesses the next letter of English at 0.6 bits, 0.42 nats, at best (Shannon 1951); a quarter of it, for tokens that are letters
CERTAIN, MANY = 0.1, 3.0  # bound: nats of the first loss, a guess among twenty tokens: the model knew nothing of them
MOVES = 0.03  # share of the first value: less is still for the plateau detector


def training_learnt_by_heart(s: Symptoms) -> Sign:
    """Training loss fell below a tenth of its early level."""
    train = series(s.run, "loss.train")
    if train is None:
        return cannot_tell(NO_TRAIN)
    x, step = train.value[train.usable], train.step[train.usable]
    if len(x) < FEWEST or step.min() > BEGINS * step.max():
        return cannot_tell(f"the log does not hold the beginning of training, or fewer than {FEWEST} values of it.")
    early, late = (median(x[:EARLY]), median(x[-held.LEVEL :])) if len(x) >= LEAST else (median(x[:EARLY_ONES]), median(x[-EARLY_ONES:]))
    if early <= 0:
        return cannot_tell("the training loss is not positive, so shares of it say nothing.")
    if falls_without_end(x):
        return absent(
            f"Training loss falls from {early:.3g} to {late:.3g}, without end: what is known by heart costs nothing, and no less."
        )
    text = f"Training loss ends at {late:.3g}, {late / early:.1%} of its early level ({early:.3g})."
    return seen(text) if late < BY_HEART * early else absent(text)


def evaluation_beyond_training(s: Symptoms) -> Sign:
    """Every evaluation loss is ten times the highest training loss or more, and the last is no lower than the first: from the first one on the evaluation sees
    something else, or another way. What is known by heart begins as low as training does."""
    train, x = series(s.run, "loss.train"), held.evaluations(s.run)[1]
    if train is None or len(x) < EARLY_ONES or not train.usable.any():
        return cannot_tell(NO_TRAIN if train is None else f"fewer than {EARLY_ONES} evaluation losses were logged.")
    highest = float(train.value[train.usable].max())
    text = f"The evaluation loss is {x[0]:.4g} at first and {x.min():.4g} at best, the training loss {highest:.4g} at most."
    beyond = highest > 0 and x.min() >= BEYOND * highest and median(x[-EARLY_ONES:]) >= x[0]
    return seen(text, first=int(held.evaluations(s.run)[0][0])) if beyond else absent(text)


def next_token_certain(s: Symptoms) -> Sign:
    """A language model that began at a guess ends with a loss on held-out tokens below a tenth of a nat: no text is as foreseeable, so that what it is to
    predict stands in what it is given, or was trained on."""
    train, x = series(s.run, "loss.train"), held.evaluations(s.run)[1]
    if not any(series(s.run, name) is not None for name in ("tokens.seen", "ppl.eval", "ppl.train", "tput.tokens")):
        return does_not_arise("nothing says that tokens are predicted.")
    if train is None or len(x) < EARLY_ONES or not train.usable.any():
        return cannot_tell(NO_TRAIN if train is None else f"fewer than {EARLY_ONES} evaluation losses were logged.")
    first, end = float(train.value[train.usable][0]), median(x[-EARLY_ONES:])
    text = f"The loss of a token goes from {first:.3g} at first to {end:.2g} on held-out data"
    if 0 <= end < CERTAIN and first >= MANY:
        return seen(f"{text}: no text is as foreseeable.", first=int(held.evaluations(s.run)[0][0]))
    return absent(f"{text}.")


def eval_left_behind(s: Symptoms) -> Sign:
    """Training loss ends at less than a twentieth of the evaluation loss, which still is more than half of what training began with; or at less than a
    tenth, and no evaluation is better than the first by three tenths: what was learnt is the training set, whether the evaluation turns up or only
    stands still."""
    train, x = series(s.run, "loss.train"), held.evaluations(s.run)[1]
    if train is None or len(x) <= EARLY_ONES:
        return cannot_tell(NO_TRAIN if train is None else f"fewer than {EARLY_ONES + 1} evaluation losses were logged.")
    if (by_heart := training_learnt_by_heart(s)).state != SEEN:
        return by_heart
    first, last = first_level(train.value[train.usable]), held.level_at(train, int(train.step[-1]), EARLY_ONES)
    if last is None:
        return cannot_tell("no training loss was logged near the end of the run.")
    end = median(x[-EARLY_ONES:])
    text = f"Training loss goes from {first:.4g} to {last:.3g}, and the evaluation loss ends at {end:.4g}"
    step = held.evaluations(s.run)[0]
    stands = x.min() > 0 and x.min() >= HARDLY * x[0] and step[0] <= (train.step[0] + train.step[-1]) / FIFTHS  # the first one came early
    apart = APART if end > HALF * first else 0.0
    most = max(apart, BY_HEART if stands else 0.0) * end
    if last >= most or most <= 0:
        return absent(f"{text}.")
    if stepped := [f for f in s.of(eval_jump.Facts, severity=GRAVE) if f.facts.metric == "loss.eval" and f.facts.size > 0]:
        return absent(f"{stepped[0].title}: it is left behind all at once.", stepped)
    below = train.step[train.usable & (train.value < most)]
    if answers_improve(s.run, int(below[0]), FEWER):
        return absent(f"{text}, and fewer and fewer answers on held-out data are wrong.")
    text = f"{text}: {end / last:.0f} times as much." if last > 0 else f"{text}."
    return seen(text, s.of(train_eval_gap.Facts), first=int(below[0]), last=int(train.step[-1]))


def eval_improves_to_end(s: Symptoms) -> Sign:
    """The best evaluation loss lies in the last fifth, which as a whole is better than the fifth before."""
    step, x = held.evaluations(s.run)
    if len(x) < FIFTHS:
        return cannot_tell(NO_LOSS if not len(x) else f"only {len(x)} evaluations were logged, {FIFTHS} are needed.")
    fifth, best = len(x) // FIFTHS, int(np.argmin(x))
    better = median(x[-fifth:]) < median(x[-2 * fifth : -fifth])
    text = f"The best of {len(x)} evaluation losses is {x[best]:.4g}, at step {step[best]} of {step[-1]}; the last is {x[-1]:.4g}."
    return seen(text, first=int(step[best])) if best >= len(x) - fifth and better else absent(text)


def eval_below_training(s: Symptoms) -> Sign:
    """Evaluation loss lies below training loss at every evaluation but the first ones, by more than evaluations scatter."""
    train, (step, x) = series(s.run, "loss.train"), held.evaluations(s.run)
    if train is None or not len(x):
        return cannot_tell(NO_LOSS if train is not None else NO_TRAIN)
    if stepped := [f for f in s.of(eval_jump.Facts) if f.facts.metric == "loss.eval" and f.facts.size < 0]:
        return absent(f"{stepped[0].title}: before that it lay higher.", stepped)
    gaps = held.gaps_to(train, step, x)[1 if len(x) <= BELOW else len(x) // 4 :]  # at first a mean of training lags behind
    gaps = gaps[np.isfinite(gaps)]
    if len(gaps) < BELOW:
        return cannot_tell(f"only {len(gaps)} evaluations have training losses beside them, {BELOW} are needed.")
    apart = median(gaps)
    below = int((gaps > 0).sum())
    text = f"Evaluation loss lies below training loss in {below} of {len(gaps)} evaluations ({apart:+.3g} between them, in the median)."
    return seen(text) if below == len(gaps) and apart > noise_of(x) else absent(text)


def accuracy_is_one_class(s: Symptoms) -> Sign:
    """The last evaluations give one and the same accuracy while the loss moves, as a model does that always names one class."""
    step, share = held.evaluations(s.run, "acc.eval")
    loss, sick = held.evaluations(s.run)[1], nan_from(s.run)
    if sick is not None:  # what a model of NaN answers is one class, and no cause
        step, share = step[step < sick], share[step < sick]
    if len(share) < ALIKE:
        return cannot_tell(
            "the evaluation accuracy was not logged." if not len(share) else f"only {len(share)} evaluation accuracies were logged."
        )
    if any(name.startswith("pref.") for name in names(s.run, 1)):
        return cannot_tell("the accuracy counts pairs of answers in the right order, which are of no class.")
    if held.of_tokens(s.run, counted := series(s.run, "acc.eval")) and counted is not None:
        return cannot_tell(
            f"{counted.tag} counts tokens of a vocabulary, and a model that names one of them whatever it reads is another trouble."
        )
    if len(loss) < ALIKE:
        train = series(s.run, "loss.train")
        loss = train.value[train.usable] if train is not None else loss
    if len(loss) < ALIKE:
        return cannot_tell("no loss was logged beside the accuracy.")
    if (by_heart := training_learnt_by_heart(s)).state == SEEN:
        return absent(f"{by_heart.text} A constant answer cannot do that.")
    last, held_out = float(held.shares(share)[-1]), series(s.run, "loss.eval")
    by_itself = -(last * np.log(last) + (1 - last) * np.log1p(-last)) if 0 < last < 1 else 0.0  # the entropy of right and wrong
    if held_out is not None and is_likelihood(held_out.tag) and median(loss[-EARLY_ONES:]) < by_itself:
        return absent(
            f"The evaluation loss ends at {loss[-1]:.3g}: one answer for all that is right {last:.1%} of the time costs {by_itself:.3g} and more."
        )
    hits = series(s.run, "acc.train")
    late = hits.value[hits.usable & (hits.step >= step[len(step) // 2])] if hits is not None else share[:0]
    if len(np.unique(late)) >= ALIKE and median(held.shares(late)) > held.shares(share)[-1] + ABOVE:
        return absent(
            f"The training accuracy is {median(late):.3g}, above that of the evaluations ({share[-1]:.3g}): a constant answer cannot do that."
        )
    same = int(np.flatnonzero(np.r_[True, share[::-1] != share[-1]][1:])[0]) if (share != share[-1]).any() else len(share)
    full, least = share[-1] in (0, 1, 100), ALIKE * (1 + (_of_few(held.shares(share)) and same < len(share)))
    moved = float(np.ptp(loss[-max(same * len(loss) // len(share), 2) :])) > MOVES * abs(float(loss[0]))
    if same >= max(least, len(share) // 2) and moved and not full:
        return seen(
            f"The last {same} of {len(share)} evaluation accuracies are all {share[-1]:.6g}, while the loss moves.", first=int(step[-same])
        )
    return absent(f"{len(share)} evaluation accuracies take {len(np.unique(share))} values, from {share.min():.4g} to {share.max():.4g}.")


def _of_few(share: Floats) -> bool:
    """Whether all shares are whole numbers of so few answers that neighbouring evaluations are often alike."""
    return any((np.abs(share * n - np.round(share * n)) <= WHOLE * n).all() for n in range(2, FEW + 1))


def eval_noisy(s: Symptoms) -> Sign:
    """Evaluations no longer improve by more than they scatter."""
    try:
        told, (_, x, _) = next(eval_noise.saturated(s.run), None), eval_noise.values(s.run)
    except CannotTell as e:
        return cannot_tell(f"{e}.")
    if told is not None:
        return seen(f"{told.title}.", s.of(eval_noise.Facts), first=told.facts.step)
    ends = f"from {x[0]:.4g} to {x[-1]:.4g}"
    return absent(f"{len(x)} evaluations, {ends}, do not stand still within their scatter of {noise_of(x):.2g}.")

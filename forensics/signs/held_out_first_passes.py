"""The first passes over the data, in which no sample was seen before: there the training loss is one of held-out data, and evaluation has to agree."""

from __future__ import annotations

import math

import numpy as np

from forensics.run import evaluations as held
from forensics.run import settings
from forensics.run.robust import error_of_median, median, robust_sigma
from forensics.run.series import Series, parts, series
from forensics.run.usable_values import beginning
from forensics.run.usual_rate import tuned
from forensics.signs.held_out_chance import NO_LOSS, NO_TRAIN, eval_at_chance_throughout, eval_never_better
from forensics.signs.held_out_level import BY_HEART, ERRORS
from forensics.signs.sign import ABSENT, CANNOT_TELL, SEEN, Sign, Symptoms, absent, cannot_tell, does_not_arise, seen
from parsers.lazy_regex import lazy_re
from parsers.loss_names import is_likelihood
from parsers.name_rules import words
from parsers.tables import Run

SUBJECT = "held_out"  # another half of it
EFFECTS = {
    "evaluation_apart_from_first_pass": "loss.eval",
    "eval_like_training_with_dropout": "loss.eval",
}  # symptoms of their own, for which there is no detector

LEAST = 3  # bound: three values make a level that one odd value does not move
FELL = (
    0.8  # of the first training loss, or of that at an evaluation before: a fifth was learnt, as where an evaluation is called never better
)
STAYS = 0.9  # of an evaluation before, or of the first training loss: less than a tenth was learnt
# of what training has learnt; measured: of 201 runs of nine makers the healthy ones lack at most 0.27 by the end of the second pass (a batch norm that
# settles), those that evaluate something else 0.49 and more
APART = 0.4
BEHIND = 0.1  # of a pass; bound: so few samples come again by an evaluation that its first pass is told by
ALIKE = 4  # statistical: evaluations; four equal ones to the printed digits are no chance while the loss moves
HALF = 0.5  # unit: of what guessing gives, or of all answers
NO_DROPOUT = "config does not mention dropout."
STRONG = 0.5  # dropout: that of hidden units in the paper (JMLR 15, 2014); of less, less is seen
COSTS = 0.02  # of the loss; measured: a dropout of 0.45 costs 4.8 % in the first pass of a healthy run of the seen sets
_TRAIN = lazy_re(r"\btrain(ing)?\b")


def evaluation_apart_from_first_pass(s: Symptoms) -> Sign:
    """In the first pass over the data each sample is new, and the evaluation at its end lacks two fifths or more of what the training loss has come down
    by, does not fall with it, and never catches up: it sees something else. So it does where a model that knew nothing after the first pass learns in
    the second, and evaluation nothing: nothing is known by heart so soon (Zhang et al., arXiv 1611.03530, figure 1)."""
    train, end = series(s.run, "loss.train"), held.first_pass(s.run)
    sets = [p for p in parts(s.run, "loss.eval") if p.usable.sum() >= 2 and not _TRAIN.search(words(p.tag))]
    if train is None or not sets:
        return cannot_tell(NO_TRAIN if train is None else NO_LOSS)
    if end is None or (train.usable & (train.step <= end)).sum() < LEAST:
        return cannot_tell(f"{LEAST} training losses of the first pass over the data were not logged.")
    if train.value[train.usable].min() <= 0:
        return cannot_tell("the losses are not positive, so shares of them say nothing.")
    told = [_beside(s.run, train, p, end) for p in sets]
    if None in told:
        return cannot_tell("two evaluations within two passes over the data were not logged.")
    apart = [t for t in told if t is not None and t[0]]
    if len(apart) < len(sets):
        return absent("Evaluation learns what training learns in its first passes over the data.")
    text, step = apart[0][1:]
    return seen(text, where=sets[0].place(s.run, 0), first=step)


def _beside(run: Run, train: Series, p: Series, end: int) -> tuple[bool, str, int] | None:
    """(whether an evaluation is apart, in words, its step); None with fewer than two evaluations within two passes."""
    rows = np.argsort(train.step[train.usable], kind="stable")
    begin, first = int(train.step[train.usable][rows[0]]) - train.interval, beginning(train.value[train.usable][rows])
    at, x = p.step[p.usable], p.value[p.usable]
    early = int((at <= 2 * end - begin).sum())
    if early < 2:
        return None
    in_first = int((at <= end + BEHIND * (end - begin)).sum())
    nothing = not tuned(run) and bool((x[:early] >= STAYS * first).all())
    for k, last in [(in_first - 1, end), *([(early - 1, int(at[-1]))] if nothing else [])]:
        level = np.array(
            [held.level_at(train, min(int(step), last if i <= k else int(step)), LEAST) or np.nan for i, step in enumerate(at)]
        )
        fell = k > 0 and level[k] <= FELL * min(first, float(np.nanmax(level[:k], initial=0)))
        lacks = (x[k:] - level[k:] >= APART * (first - level[k:])).all()
        if fell and lacks and x[k] >= STAYS * x[0]:
            passes = f"{(at[k] - begin) / (end - begin):.2g} passes over the data"
            text = f"Within {passes} (step {at[k]}) training loss falls from {first:.4g} to {level[k]:.4g} while {p.tag} goes from {x[0]:.4g} to {x[k]:.4g}"
            text += f"; the best later on is {x[k:].min():.4g}."
            return True, text, int(at[k])
    return False, "", int(at[early - 1])


def first_pass_learnt_evaluation_not(s: Symptoms) -> Sign:
    """In the first pass over the data, on samples that were all new, the training loss fell by a fifth, and no evaluation is better than guessing or
    than the first one: what the training samples teach holds for others of their kind, so those of the evaluation are of another."""
    train, end = series(s.run, "loss.train"), held.first_pass(s.run)
    if train is None or end is None:
        return cannot_tell(NO_TRAIN if train is None else "the log does not say where the first pass over the data ends.")
    rows = np.flatnonzero(train.usable & (train.step <= end))
    if len(rows) < 2 * LEAST:
        return cannot_tell(f"fewer than {2 * LEAST} training losses of the first pass over the data were logged.")
    never = next((t for look in (eval_at_chance_throughout, eval_never_better) if (t := look(s)).state != CANNOT_TELL), None)
    if (apart := evaluation_apart_from_first_pass(s)).state == SEEN:
        return apart
    if never is None:
        return cannot_tell("the evaluation cannot be held against guessing, nor against its own first value.")
    first, last = beginning(train.value[rows]), median(train.value[rows[-LEAST:]])
    text = f"Training loss goes from {first:.4g} to {last:.4g} in the first pass over the data, until step {train.step[rows[-1]]}"
    if never.state == ABSENT or not 0 < last <= FELL * first:
        return absent(f"{text}{'; the evaluation learns, too' if never.state == ABSENT else ''}.")
    return seen(f"{text}; {never.text[0].lower()}{never.text[1:]}", first=int(train.step[rows[0]]))


def answers_permuted(s: Symptoms) -> Sign:
    """Beside a training loss that comes down, evaluation hits far less than guessing does, or hits one and the same share of less than half to the last
    digit once training is known by heart: each class is told as another one, and always as the same."""
    train, (step, x) = series(s.run, "loss.train"), held.evaluations(s.run, "acc.eval")
    if train is None or len(x) < ALIKE or held.of_tokens(s.run, series(s.run, "acc.eval")):
        return cannot_tell(NO_TRAIN if train is None else f"{ALIKE} accuracies of an evaluation with classes were not logged.")
    share, first, last = held.shares(x), beginning(train.value[train.usable]), held.level_at(train, int(step[-1]), LEAST)
    if last is None or last > FELL * first:
        return does_not_arise("the training loss does not come down.")
    later = share[len(share) // 2 :]
    n = held.classes(s.run) or (math.exp(min(first, 99.0)) if is_likelihood(train.tag) else None)
    text = f"The last {len(later)} accuracies of the evaluation lie between {later.min():.3g} and {later.max():.3g}"
    if n is not None and n >= LEAST and later.max() <= HALF / n:  # of two classes they are reversed
        return seen(f"{text}; guessing gives {1 / n:.3g}.", first=int(step[len(share) // 2]))
    alike = len(later) >= ALIKE and len(np.unique(later)) == 1 and 0 < later[0] < HALF
    return seen(f"{text}.", first=int(step[len(share) // 2])) if alike and last <= BY_HEART * first else absent(f"{text}.")


def tokens_of_a_vocabulary(s: Symptoms) -> Sign:
    """The model reads or writes the tokens of a vocabulary, by its config or by what is counted: a text, not measurements or a picture."""
    if (told := settings.setting(s.run, "vocab_size")) is not None:
        return seen(f"Config sets {told.key} = {told.value}.", where=told.where)
    counted = next((a for name in ("acc.eval", "ppl.eval", "ppl.train") if (a := series(s.run, name)) is not None), None)
    if counted is not None and (counted.name != "acc.eval" or held.of_tokens(s.run, counted)):
        return seen(f"{counted.tag} counts tokens.", where=counted.place(s.run, 0))
    return cannot_tell("config names no vocabulary, and nothing that is logged counts tokens.")


def eval_like_training_with_dropout(s: Symptoms) -> Sign:
    """In the first pass over the data, with dropout, evaluation costs what training does: there dropout is all that lifts training above it."""
    train, (step, x), told = series(s.run, "loss.train"), held.evaluations(s.run), settings.setting(s.run, "dropout")
    share = settings.as_number(told.value) if told is not None else None
    if train is None or not len(x):
        return cannot_tell(NO_LOSS if train is not None else NO_TRAIN)
    if told is None or share is None or not STRONG <= share < 1:
        return does_not_arise(f"config sets no dropout of {STRONG:g} or more.") if share is not None else cannot_tell(NO_DROPOUT)
    if (end := held.first_pass(s.run)) is None:
        return cannot_tell("the log does not say how long the first pass over the data was.")
    gaps = (held.gaps_to(train, step, x) / np.abs(x))[step <= end]
    gaps = gaps[np.isfinite(gaps)]
    if len(gaps) < LEAST:
        return cannot_tell(f"{len(gaps)} evaluations in the first pass have training losses beside them, {LEAST} are needed.")
    apart, error = median(gaps), error_of_median(robust_sigma(gaps), len(gaps))
    text = f"With a dropout of {share:g}, training loss is {apart:+.1%} apart from evaluation loss in the first pass (median of {len(gaps)} evaluations)."
    if abs(apart) - ERRORS * error >= COSTS:
        return absent(text, where=told.where)
    if abs(apart) >= COSTS or error > COSTS:
        return cannot_tell(f"the losses of the first pass scatter too much ({apart:+.1%} apart, give or take {error:.1%}).")
    return seen(text, where=told.where)

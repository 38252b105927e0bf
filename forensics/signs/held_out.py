"""What the evaluation did, beside the training loss."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from forensics.case import BaseFacts, Finding
from forensics.detectors import (
    divergence,
    eval_jump,
    eval_shadow,
    initial_loss,
    level_shift,
    loss_spike,
    lr_schedule,
    nonfinite,
    resume_break,
)
from forensics.detectors import train_eval_gap as gap
from forensics.detectors.dataset_loss import Facts as OneSet
from forensics.findings import GRAVE
from forensics.run import evaluations as held
from forensics.run.robust import median
from forensics.run.scores import curve, held_out
from forensics.run.series import Series, parts, series
from forensics.signs.held_out_chance import NO_LOSS, NO_TRAIN, eval_at_chance_throughout, eval_never_better
from forensics.signs.held_out_decoded import nothing_decoded_right
from forensics.signs.held_out_first_passes import evaluation_apart_from_first_pass
from forensics.signs.held_out_level import BY_HEART
from forensics.signs.sign import SEEN, Sign, Symptoms, absent, cannot_tell, seen
from parsers.tables import Run

EFFECTS = {
    "other_evaluation_far_higher": "loss.eval",
    "eval_turned_where_training_jumped": "loss.eval",
}  # symptoms of their own, for which there is no detector

FAR = 0.15  # measured: none of the 14 healthy runs of the open zoos that have six evaluations ends so far above its best
AFTER = 3  # evaluations that the detector of the gap wants after the lowest one
LASTS, HALF = 3, 0.5  # bound: a batch is over within two logged values; unit: the most of it
BACK = 3  # bound: three values make a median
NEAR = 20  # steps: two logging intervals of ten, the most usual one


def _too_few(s: Symptoms, least: int) -> str:
    """What is missing where fewer than `least` evaluation losses were logged, or no training loss; empty where nothing is."""
    curve = held_out(s.run)
    if curve is None:
        return NO_LOSS
    n = int(curve.usable.sum())
    if n < least:
        return f"only {n} evaluation{'s were' if n != 1 else ' was'} logged, {least} are needed."
    return NO_TRAIN if series(s.run, "loss.train") is None else ""


def _worsened(run: Run) -> tuple[int, float, float]:
    """(step of the lowest evaluation loss, that loss, the level of the last three)."""
    step, x = curve(run)
    best = int(np.argmin(x))
    return int(step[best]), float(x[best]), median(x[-3:])


def _named(run: Run) -> tuple[str, str, int]:
    """What the evaluation is judged by, the word for its best value, and the sign with which it was logged."""
    s = held_out(run)
    return (s.tag, "highest", -1) if s is not None and s.rises else ("Evaluation loss", "lowest", 1)


def _after(run: Run) -> int:
    """How many evaluations follow the lowest one."""
    x = curve(run)[1]
    return len(x) - 1 - int(np.argmin(x))


def eval_turned_up(s: Symptoms) -> Sign:
    """Evaluation loss passed its lowest value and rose for good, while training loss went on falling."""
    if found := s.of(gap.Facts):
        f, judged = found[0], held_out(s.run)
        tag = judged.tag if judged is not None else ""
        others = [
            p for p in parts(s.run, "loss.eval") if p.tag != tag and "train" not in p.tag.lower()
        ]  # that falls where it is learnt by rote
        worse = [d for d in s.of(OneSet) if d.facts.tag == tag]
        if others and worse and not _far_below(s.run, others):
            return absent(f"{worse[0].title}: evaluation as a whole does not turn up.", worse)
        if (never := nothing_decoded_right(s)).state == SEEN:
            return absent(f"{never.text} So it does not turn.", [f])
        beyond = [x for x in s.of(initial_loss.Facts, severity=GRAVE) if f.facts.best > initial_loss.LARGEST]
        if beyond and judged is not None and not judged.rises:
            text = f"{beyond[0].title}, and the lowest evaluation ({f.facts.best:.4g}) is so, too: there was nothing to overfit."
            return absent(text, [f, *beyond])
        if jumped := [j for j in s.of(eval_jump.Facts, severity=GRAVE) if _makes_the_rise(j, f)]:
            return absent(f"{jumped[0].title}: evaluation jumps and does not turn.", [*jumped, f])
        if (with_it := eval_turned_where_training_jumped(s)).state == SEEN:
            return absent(f"{with_it.text} That is no slow turn.", [f, *with_it.findings])
        if any(
            (never := look(s)).state == SEEN for look in (eval_never_better, eval_at_chance_throughout, evaluation_apart_from_first_pass)
        ):
            return absent(f"{never.text} So it does not turn.", [f])
        return seen(f"{f.title}.", [f], first=f.first_step, last=f.last_step, best_step=f.facts.best_step)
    if missing := _too_few(s, gap.LEAST_EVALS):
        return cannot_tell(missing)
    step, best, final = _worsened(s.run)
    after = _after(s.run)
    name, word, sign = _named(s.run)
    if not after:
        return absent(f"{name} is {word} at its end, {sign * best:.4g} at step {step}.")
    text = f"{name} ends at {sign * float(curve(s.run)[1][-1]):.4g}; its {word} is {sign * best:.4g}, at step {step}"
    if final < best + gap.RISE * abs(best):
        return absent(f"{text}.")
    if after < AFTER:
        return cannot_tell(f"only {after} evaluation{'s follow' if after > 1 else ' follows'} the best one, of step {step}.")
    return absent(f"{text}, but training loss rises as well, or evaluations scatter as much.")


def _far_below(run: Run, sets: Sequence[Series]) -> bool:
    """Whether training ends below a tenth of every one of these evaluations: what it learns by heart helps none of them."""
    train = series(run, "loss.train")
    ends = [median(p.value[p.usable][-BACK:]) for p in sets if p.usable.sum() >= BACK]
    last = held.level_at(train, int(train.step[-1]), BACK) if train is not None else None
    return last is not None and bool(ends) and last < BY_HEART * min(ends)


def _makes_the_rise(jump: Finding[eval_jump.Facts], turn: Finding[gap.Facts]) -> bool:
    """Whether a jump after the best evaluation makes the most of what evaluation loss rises by."""
    j, f = jump.facts, turn.facts
    after = jump.first_step is not None and jump.first_step >= f.best_step
    return after and (j.metric != "loss.eval" or 2 * abs(j.after - j.before) >= abs(f.final - f.best))


def train_falls_on(s: Symptoms) -> Sign:
    """Training loss went on falling after the evaluation loss had passed its lowest value."""
    train = series(s.run, "loss.train")
    missing = _too_few(s, gap.LEAST_EVALS)
    if missing or train is None:
        return cannot_tell(missing or NO_TRAIN)
    step, best, final = _worsened(s.run)
    if final < best + gap.RISE * abs(best) or _after(s.run) < 2:
        return cannot_tell("the evaluation does not turn, so there is no time after the turn.")
    then, now = held.level_at(train, step), held.level_at(train, int(curve(s.run)[0][-1]))
    if then is None or now is None:
        return cannot_tell(f"no training loss was logged until step {step}, at which evaluation is best.")
    text = f"After evaluation was best, at step {step}, training loss goes from {then:.4g} to {now:.4g}."
    return seen(text, s.of(gap.Facts), first=step) if now < then else absent(text)


def eval_jumped(s: Symptoms) -> Sign:
    """An evaluation metric stepped to another level between two evaluations and stayed there, while training went on as before."""
    steps = [f for f in s.of(eval_jump.Facts) if not f.facts.alone]
    if found := [f for f in steps if f.severity in GRAVE]:
        return seen(f"{found[0].title}.", found, first=found[0].first_step)
    if steps:
        return absent(f"{steps[0].title}; so fast it had learnt before, too.", steps)
    most = max((int(c.usable.sum()) for c, _ in eval_jump.curves(s.run)), default=0)
    if most < eval_jump.LEAST:
        return cannot_tell(f"fewer than {eval_jump.LEAST} evaluations were logged.")
    return absent(f"None of {most} evaluations steps to another level for good.")


def hits_jumped_alone(s: Symptoms) -> Sign:
    """A share of hits stepped to another level, and the evaluation loss beside it did not."""
    found = s.of(eval_jump.Facts)
    if alone := [f for f in found if f.facts.alone]:
        return seen(f"{alone[0].title}.", alone, first=alone[0].first_step)
    if not found:
        return cannot_tell("no evaluation metric jumps.")
    if any(len(held.evaluations(s.run, name)[0]) < eval_jump.LEAST for name in ("loss.eval", "acc.eval")):
        return cannot_tell("only one of evaluation loss and accuracy was logged.")
    return absent(f"{found[0].title}; the loss itself moves.", found)


def training_moved_near_eval_jump(s: Symptoms) -> Sign:
    """The training loss or the rate moved between the two evaluations that differ, or within 20 steps of them."""
    jumps = s.of(eval_jump.Facts)
    if not jumps:
        return cannot_tell("no evaluation metric jumps.")
    f, step = jumps[0], jumps[0].facts.step
    before = step if f.facts.previous is None else f.facts.previous
    moved = s.of(
        loss_spike.Facts, lr_schedule.Facts, level_shift.Facts, resume_break.Facts, divergence.Facts, nonfinite.Facts, severity=GRAVE
    )
    near = [m for m in moved if m.first_step is not None and min(before, step - NEAR) <= m.first_step <= step + NEAR]
    if near:
        return seen(f"Near the jump of the evaluation at step {step}: {near[0].title}.", [*near[:2], f], first=near[0].first_step)
    if series(s.run, "loss.train") is None:
        return cannot_tell(NO_TRAIN)
    return absent(f"Neither training loss nor rate moves between steps {min(before, step - NEAR)} and {step + NEAR}.", [f])


def eval_turned_where_training_jumped(s: Symptoms) -> Sign:
    """A spike of the training loss begins at the best evaluation or before the next one, and the evaluation does not come back with it. One of the
    height of scatter counts where the next evaluation has the most of what evaluation loses: overfitting turns slowly."""
    if missing := _too_few(s, 4):
        return cannot_tell(missing)
    steps, x = curve(s.run)
    best, lowest, final = _worsened(s.run)
    after = steps[steps > best]
    if len(after) < 2 or final < lowest + gap.RISE * abs(lowest):
        return cannot_tell("the evaluation loss does not turn up.")
    at_once = len(after) >= AFTER and float(x[steps > best].min() - lowest) > HALF * (final - lowest)
    moved = [f for f in s.of(loss_spike.Facts, level_shift.Facts) if (f.severity in GRAVE or at_once) and not _one_batch(f.facts)]
    there = [f for f in moved if f.first_step is not None and best <= f.first_step <= int(after[0])]
    turned = s.of(gap.Facts)
    if there:
        name, word, sign = _named(s.run)
        text = f"{name} is {word} at step {best} ({sign * lowest:.4g}), and the training loss jumps at step {there[0].first_step}, before the next one"
        return seen(f"{text}; it ends at {sign * final:.4g}.", [there[0], *turned], first=there[0].first_step)
    return absent(f"Training loss does not jump between step {best}, at which evaluation is lowest, and the next evaluation.", turned)


def _one_batch(spike: BaseFacts) -> bool:
    """Whether a jump is over as fast as one batch: not where its fall takes as many values as make a level."""
    return isinstance(spike, loss_spike.Facts) and spike.class_ == "fast" and spike.values < LASTS


def _passes(s: Symptoms) -> float | None:
    epoch = series(s.run, "epoch")
    return float(epoch.value[epoch.usable].max()) if epoch is not None and epoch.usable.any() else None


def eval_follows_training(s: Symptoms) -> Sign:
    """After many passes over the data evaluation loss followed training loss into memorization."""
    if found := [f for f in s.of(eval_shadow.Facts) if f.facts.passes is not None]:
        if found[0].severity not in GRAVE:
            return absent(f"{found[0].title}.", found)
        return seen(f"{found[0].title}.", found, first=found[0].first_step, last=found[0].last_step)
    train, (steps, x), passes = series(s.run, "loss.train"), held.evaluations(s.run), _passes(s)
    missing = _too_few(s, eval_shadow.LEAST) if len(x) else NO_LOSS
    if missing or train is None:
        return cannot_tell(missing or NO_TRAIN)
    if passes is None:
        return cannot_tell("the log does not say how many passes over the data there were.")
    least, memorized = eval_shadow.TEXT if eval_shadow.of_language(s.run) else eval_shadow.ANY
    then, now = held.level_at(train, int(steps[0])), held.level_at(train, int(steps[-1]))
    if passes < least:
        return cannot_tell(f"there were {passes:.3g} passes over the data, in which evaluation and training may be alike by nature.")
    if then is None or now is None or not 0 < now < memorized * then:
        return cannot_tell("the training loss did not fall so far that it would have to part from the evaluation loss.")
    return absent(f"After {passes:.3g} passes evaluation loss ends at {x[-1]:.4g}, training loss at {now:.4g}.")


def other_evaluation_far_higher(s: Symptoms) -> Sign:
    """A last evaluation on other data gave at least five times the loss of the one used along the way."""
    if found := [f for f in s.of(eval_shadow.Facts) if f.facts.passes is None]:
        return seen(f"{found[0].title}.", found, last=found[0].last_step)
    return cannot_tell("no last evaluation on other data was logged that would differ.")

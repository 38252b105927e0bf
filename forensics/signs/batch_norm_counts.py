"""Whether evaluations were counted by batch norm: each forward in training mode adds one to num_batches_tracked, none in evaluation mode does."""

from __future__ import annotations

from collections.abc import Sequence

from forensics.checkpoints import run_saves
from forensics.checkpoints.age import numbers
from forensics.checkpoints.describe import Checkpoint
from forensics.run import plan, settings
from forensics.run.scores import held_out
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, seen
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

EFFECTS = {"batch_norm_counts_evaluations": "checkpoints"}  # a symptom of its own, for which there is no detector

LEAST = 4  # bound: evaluations; a surplus of any other origin is a multiple of their number once in as many runs
EACH = 2  # batches of an evaluation: a single forward an epoch may draw a picture
SANITY = 2  # batches that Lightning evaluates before it trains, unless it is told another number
_MEANT = lazy_re(r"(?i)precise_?bn|update_?bn|\bswa|_swa")  # statistics that are estimated anew with forwards in training mode
_COUNTED = lazy_re(r"(^|[.:])num_batches_tracked$")
_TRAINED = lazy_re(r"loops\.fit_loop\.epoch_loop\.batch_progress\.total\.completed$")
_BY_HAND = lazy_re(r"manual_optimization\.optim_step_progress\.total\.completed$")
_EPOCHS = lazy_re(r"loops\.fit_loop\.epoch_progress\.total\.ready$")
_EVALUATED = lazy_re(r"fit_loop\.epoch_loop\.val_loop\.batch_progress\.current\.completed$")


def batch_norm_counts_evaluations(s: Symptoms) -> Sign:
    """In a checkpoint batch norm has counted more batches than were trained on, by just those of all evaluations: these ran in training mode. The batches
    of each are known from Lightning's own count, else the run must have trained on fewer in all, or the surplus over the step grows from save to save as
    the evaluations do. Several forwards for one step are no surplus."""
    counted = [(c, count) for c in run_saves.of_run(s.run) if (count := _count(c))]
    if not counted:
        return cannot_tell("no checkpoint in the folder holds one count of batches that all layers of batch norm share.")
    if each := _by_saves(s.run, counted):
        c, count = counted[-1]
        text = f"In {run_saves.name(c, s.run)} batch norm has counted {count} batches in training mode, and the step is {c.step}"
        return seen(f"{text}: in each of {len(counted)} saves {each} more for each evaluation before it.", where=run_saves.name(c, s.run))
    clear = ""
    for c, count in reversed(counted):
        found = _by_lightning(c, count) or _by_length(s.run, c, count)
        if found is None:
            continue
        surplus, told = found
        text = f"In {run_saves.name(c, s.run)} batch norm has counted {count} batches in training mode"
        if surplus:
            return seen(f"{text}: {told}.", where=run_saves.name(c, s.run))
        clear = clear or f"{text}, {told}."
    return absent(clear) if clear else cannot_tell("how many batches were trained on and evaluated is not known.")


def _count(c: Checkpoint) -> int:
    """The batches that all layers have counted; zero where they disagree, as where a part was frozen or is used more than once."""
    found = {int(v) for v in numbers(c, _COUNTED).values()}
    return found.pop() if len(found) == 1 else 0


def _by_lightning(c: Checkpoint, count: int) -> tuple[bool, str] | None:
    """(whether evaluations were counted, in words), by the counts of its loops; None where there are none, or steps are taken by hand."""
    told = [max(numbers(c, rule).values(), default=0) for rule in (_TRAINED, _EVALUATED, _EPOCHS)]
    trained, batches, epochs = map(int, told)
    if not trained or not batches or not epochs or any(numbers(c, _BY_HAND).values()):
        return None
    if count == trained:
        return False, "those that were trained on"
    times, more = divmod(count - trained, batches)
    if count < trained or times not in (epochs, epochs - 1) or not times or more not in (0, min(SANITY, batches)):
        return None
    sanity = f" and {more} of the check before training" if more else ""
    return True, f"the {trained} that were trained on, and those of {times} evaluations of {batches} batches{sanity}"


def _by_saves(run: Run, counted: Sequence[tuple[Checkpoint, int]]) -> int:
    """The batches that every save has counted beyond its step for each evaluation until then; zero where they are not as many, or come of steps."""
    curve = held_out(run)
    if curve is None or len({c.step for c, _ in counted}) < LEAST or _is_meant(run):
        return 0
    before = [(n - (c.step or 0), int((curve.step[curve.usable] <= (c.step or 0)).sum()), c.step or 0) for c, n in counted]
    each = {divmod(more, times) if times else (0, 0) for more, times, _ in before}
    fits = len(each) == 1 and all(0 < more < step for more, _, step in before)
    batches, rest = each.pop()
    return batches if fits and not rest else 0


def _is_meant(run: Run) -> bool:
    return any(_MEANT.search(x.key) for x in settings.every(run))


def _by_length(run: Run, c: Checkpoint, count: int) -> tuple[bool, str] | None:
    """The same by the steps of the whole run, where it evaluated each epoch and the save holds the last evaluation."""
    curve, whole = held_out(run), plan.plan(run)
    if numbers(c, _TRAINED) or curve is None or not curve.usable.any() or whole is None or whole.unit != "step":
        return None
    if len(run.attempts) != 1 or not plan.reached(run) or _is_meant(run):
        return None
    steps, times = int(whole.value), int(curve.usable.sum())
    if steps % times == 0 and count % (steps // times) == 0 and count <= steps:
        return False, f"those of {count} of {steps} steps"
    far = count <= steps or count >= 2 * steps or times < LEAST  # twice as many: trained before, or forwards of another kind
    each, more = divmod(count - steps, times)
    if far or steps % times or more or each < EACH or int(curve.step[-1]) < steps:
        return None
    return True, f"more than the {steps} steps of the run, by {each} for each of its {times} evaluations"

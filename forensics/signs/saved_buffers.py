"""What batch norms have counted by a checkpoint, beside the steps of the run: every pass in training mode adds one."""

from __future__ import annotations

from forensics.checkpoints import run_saves
from forensics.run import reach, settings
from forensics.run.series import series
from forensics.run.usual_rate import tuned
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen
from parsers.tables import Run

EFFECTS = {"batchnorm_counted_more_than_steps": "checkpoints"}  # a symptom of its own, for which there is no detector

COUNTER = ".num_batches_tracked"  # of PyTorch's batch norm
# bound: passes a step; WGAN trains its critic five times for one step of the generator (arXiv 1701.07875)
PASSES = 8
MOST = 20  # unit: times the steps; a count further off began in another training


def batchnorm_counted_more_than_steps(s: Symptoms) -> Sign:
    """A batch norm has counted more batches by a checkpoint than the whole run has steps, and no whole multiple of those until it was saved, or until any end of an epoch:
    other passes than those of training were made in training mode. Of several passes a step it would be a multiple."""
    counts = {run_saves.name(c, s.run): (int(n), c.step) for c in run_saves.of_run(s.run) if (n := _counted(c.contents.values))}
    first, last = reach.first(s.run), reach.last(s.run)
    if not counts or first is None or last is None:
        return cannot_tell("there is no checkpoint in the folder with the counter of a batch norm.")
    if tuned(s.run) or (settings.number(s.run, "accumulation") or 1) > 1:
        return does_not_arise("weights of another training are tuned, or gradients accumulated: batches are no steps.")
    name, (count, saved) = max(counts.items(), key=lambda x: x[1][0])
    steps = last - first + 1
    unlogged = reach.widest_gap(s.run) - 1
    text = f"The batch norms in {name} have counted {count} batches, and the run has {steps} steps"
    if count <= steps + unlogged + 1:
        return absent(f"{text}.", where=name)
    ends = [*_ends(s.run, steps), *([saved] if saved else [])]
    if (
        not ends
        or count > MOST * steps
        or any(_multiple(count, at, unlogged) for at in (*ends, *(a["steps"][1] for a in s.run.attempts), steps))
    ):
        return cannot_tell(
            f"whether each step makes several passes, or the counter began in another training, is not logged: {text[0].lower()}{text[1:]}."
        )
    return seen(f"{text}: evaluations were counted, too.", where=name, first=first, last=last)


def _counted(values: dict[str, object]) -> float:
    """The most batches that a layer has counted."""
    return max((v for k, v in values.items() if k.endswith(COUNTER) and isinstance(v, (int, float))), default=0)


def _ends(run: Run, steps: int) -> list[int]:
    """Numbers of steps at the end of each epoch, where a checkpoint is saved that does not tell its step; none where epochs were not logged."""
    epoch = series(run, "epoch")
    if epoch is None or not epoch.usable.any():
        return []
    x = epoch.value[epoch.usable]
    epochs = max(int(x.max()) - int(x.min()) + 1, 1)
    return [round(steps * k / epochs) for k in range(1, epochs + 1)]


def _multiple(count: int, steps: int, unlogged: int) -> bool:
    """Whether each step counted the same number of batches, where so many steps may have followed."""
    return any(times * steps - 1 <= count <= times * (steps + unlogged) + 1 for times in range(2, PASSES + 1))

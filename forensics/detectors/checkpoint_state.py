"""Checkpoint state

What it sees
    Optimizer, schedule and weights of a checkpoint that do not belong together: the optimizer has counted fewer steps than
    the weights, its state is empty or missing, the schedule began anew, runs ahead or is in no save any more. A tokenizer or chat template that
    changed between two checkpoints.

How it decides
    Each checkpoint says how many steps its optimizer has taken (``state.*.step`` of Adam) and where its schedule stands
    (``last_epoch``). Counts that go with the steps up to one checkpoint and fall back in a later one began anew in between.
    A first checkpoint is judged against the restarts of the log: a count from there on is a count begun there. A schedule
    at a whole multiple of the steps in all checkpoints was stepped so many times a step (or once for each process).
    Tokenizer files beside two checkpoints are compared by their settings, special tokens, template and vocabulary.

Cannot tell
    Optimizers that count nothing (SGD), schedules stepped by the epoch, runs without checkpoints. Skipped steps of half
    precision make the optimizer's count a little smaller than the label; only a fall or a gap that a restart explains counts.

Folklore
    "Training resumes with increased loss despite checkpoint loading" (transformers#33336): the count tells which part was not loaded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from forensics import evidence
from forensics.case import BaseFacts, Finding
from forensics.checkpoints import run_saves, tokenizer_files
from forensics.checkpoints.age import Counters, counters
from forensics.checkpoints.describe import Checkpoint
from forensics.checkpoints.looks import kin
from forensics.checkpoints.lost_parts import parts, parts_gone
from forensics.errors import CannotTell
from forensics.run import endings, settings
from forensics.run.series import series
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

NEEDS: list[str] = []
INPUTS = ["checkpoints"]
CLOSE = 0.02  # of the step: counts that differ less are the same (skipped steps, a label that is one off); docs/thresholds.md: not critical
MOST_TIMES = 64  # bound: processes of eight nodes; a whole ratio above it is a schedule that counts samples
BEHIND = 0.9  # of the step: five times CLOSE, so that no count is both close and behind
NAMES = lazy_re(r"[\w.-]+")  # of files and folders, in what a line says

Row = tuple[Checkpoint, Counters]
SMALLEST_EFFECT = "a count that is off by a tenth of the step"


@dataclass(frozen=True)
class Facts(BaseFacts):
    """What does not belong together; fields that a kind of trouble has not are None."""

    what: str  # optimizer_anew, scheduler_anew, scheduler_ahead, optimizer_empty, optimizer_missing, part_gone, tokenizer
    parts: list[str] | None = None  # that are gone
    differ: list[str] | None = None  # settings of the tokenizer
    age: int | None = None  # steps that were counted
    step: int | None = None  # of the checkpoint that says so
    since: int | None = None  # step at which the count began
    fell: bool | None = None  # the count is lower than in an earlier checkpoint
    times: float | None = None  # counts for each step
    resumed: list[int | None] | None = None  # steps of such checkpoints that the run went on from


def detect(run: Run) -> Iterator[Finding]:
    changed = list(_tokenizer(run))
    yield from changed
    found = [(c, counters(c)) for c in run_saves.of_run(run) if c.step]
    if not found and not changed:
        raise CannotTell("no checkpoint with a step could be read")
    starts = [a["steps"][0] for a in run.attempts[1:] if a.get("steps")]
    yield from _began_anew(run, found, starts, "optimizer")
    yield from _began_anew(run, found, starts, "scheduler")
    yield from _ahead(run, found)
    yield from _without(run, found)
    yield from _part_gone(run, found)


def _part_gone(run: Run, found: list[Row]) -> Iterator[Finding]:
    """A schedule that saves of one kind held up to a step and none holds after it."""
    families: defaultdict[str, list[Row]] = defaultdict(list)
    for c, n in found:
        families[kin(run_saves.name(c, run))].append((c, n))
    for rows in families.values():
        for k in range(1, len(rows)):
            told = [f for f in parts_gone(rows[k - 1][0], rows[k][0]) if f["severity"] == "warning"]
            gone = parts(rows[k - 1][0]) - {"optimizer", "loss scaler"} - {p for c, _ in rows[k:] for p in parts(c)}
            if told and gone:
                a, b = rows[k - 1][0], rows[k][0]
                title = f"The {' and the '.join(sorted(gone))} of the checkpoint of step {a.step} is in none from step {b.step} on: a resume begins without"
                yield _finding(run, Facts("part_gone", parts=sorted(gone)), title, (a.step, b.step), rows)
                return


def _tokenizer(run: Run) -> Iterator[Finding]:
    """The first checkpoint whose tokenizer is not that of the one before."""
    for a, b in pairwise(run_saves.of_run(run)):
        differ = tokenizer_files.differences(tokenizer_files.home(a.path), tokenizer_files.home(b.path))
        if differ:
            names = [run_saves.name(c, run) for c in (a, b)]
            title = f"The tokenizer of {names[1]} is not that of {names[0]}: {'; '.join(differ[:3])}"
            shown = evidence.table("what differs in the tokenizer's files", ["setting"], [[d] for d in differ[:30]], names[1])
            yield evidence.found(Facts("tokenizer", differ=differ[:30]), title, (a.step, b.step), "warning", shown, key="tokenizer")
            return


def _began_anew(run: Run, found: list[Row], starts: list[int], part: str) -> Iterator[Finding]:
    counted = [(c, n) for c, n in found if getattr(n, part) is not None]
    adds_up = settings.number(run, "accumulation") or 1  # micro-batches for one update, where these are what the label counts
    skips = series(run, "loss_scale") is not None  # steps that overflow are not counted: a count may stand still
    before: Row | None = None
    for c, n in counted:
        age, step = getattr(n, part), c.step or 0
        begins = starts + [(o.step or 0) + 1 for o, _ in found if o.step and o.step < step and not skips]
        since = next((s for s in begins if s <= step and (_close(age, step - s, step) or _close(age, step - s + 1, step))), None)
        told = since is not None and age < BEHIND * step and not (part == "optimizer" and _close(age * adds_up, step, step))
        fell = before is not None and age < getattr(before[1], part)
        if _close(age, step, step):
            before = (c, n)
        if not fell and not (told and (before is not None or (part == "optimizer" and since in starts))):
            continue
        begin = since if told and since is not None else step - age
        what = "optimizer state" if part == "optimizer" else "learning-rate schedule"
        title = f"The {what} was reset after step {max(begin - 1, 0) if told else begin}: in the checkpoint of step {step} it has counted {age} steps"
        yield _finding(run, Facts(f"{part}_anew", age=age, step=step, since=begin, fell=fell), title, (begin, step), counted)
        return


def _close(a: float, b: float, step: float) -> bool:
    return abs(a - b) <= max(CLOSE * step, 2)


def _ahead(run: Run, found: list[Row]) -> Iterator[Finding]:
    """A schedule that stands at k times the steps, k whole and the same in all."""
    rows = [(c, n) for c, n in found if n.scheduler]
    times = {round((n.scheduler or 0) / (n.optimizer or c.step or 1), 2) for c, n in rows}
    if not rows or len(times) != 1 or any(n.scheduler == c.step for c, n in rows):
        return
    k = times.pop()
    if k != int(k) or not 2 <= k <= MOST_TIMES or (len(rows) < 2 and rows[0][1].optimizer is None):
        return
    title = f"The learning-rate schedule was stepped {k:.0f} times for each step: it is at {rows[-1][1].scheduler} in the checkpoint of step {rows[-1][0].step}"
    yield _finding(run, Facts("scheduler_ahead", times=k), title, (None, rows[-1][0].step), rows)


def _without(run: Run, found: list[Row]) -> Iterator[Finding]:
    """Weights without an optimizer where others of the run have one; worse, where an attempt began from them. Adam without state."""
    empty = [(c, n) for c, n in found if n.adam and n.params and not n.states and n.optimizer is None and (c.step or 0) > 1]
    if empty:
        title = f"The optimizer state is empty in the checkpoint of step {empty[0][0].step}: resuming from it resets the optimizer moments"
        yield _finding(run, Facts("optimizer_empty"), title, (empty[0][0].step, empty[-1][0].step), empty)
    if not any(c.kind in ("full", "optimizer") for c, _ in found):
        yield from _went_on_without(run, found)
        return
    bare = [(c, n) for c, n in found if c.kind == "weights" or (c.kind == "other" and c.contents.gaps)]  # or weights that cannot be read
    if not bare:
        return
    begins = _begins(run)
    begun = [c.step for c, _ in bare if any(abs(s - (c.step or 0)) <= 1 or 0 <= s - (c.step or 0) <= gap for s, gap in begins)]
    which = ", ".join(str(c.step) for c, _ in bare[:5])
    title = f"Checkpoints of step {which} hold no optimizer, unlike others of the run"
    title += f"; the run went on from that of step {begun[0]}" if begun else ""
    steps = (bare[0][0].step, bare[-1][0].step)
    yield _finding(run, Facts("optimizer_missing", resumed=begun), title, steps, found, "warning" if begun else "info")


def _begins(run: Run) -> list[tuple[int, int]]:
    """(first logged step, logging interval) of each launch after the first: it began within an interval before."""
    return [(a["steps"][0], max(run.attempts[k]["span"].interval, 1)) for k, a in enumerate(run.attempts[1:]) if a.get("steps")]


def _went_on_without(run: Run, found: list[Row]) -> Iterator[Finding]:
    """A launch that goes on right behind a checkpoint that holds weights and no optimizer: a folder of the Trainer's (trainer_state.json counts its
    steps) as save_only_model leaves it, or a file that a line names as what was loaded. An optimizer, a schedule or random numbers beside it count."""
    begins = _begins(run)
    loaded = {word.rstrip(".") for e in endings.events(run, "resume") for word in NAMES.findall(str(e["text"]))}
    for c, _ in found:
        step, home = c.step or 0, c.path if c.path.is_dir() else c.path.parent
        kept = [f for rule in ("*optim*", "sched*", "rng_state*", "global_step*", "*.distcp") for f in home.glob(rule)]
        if c.kind != "weights" or kept or not (c.path.name in loaded or (home / "trainer_state.json").is_file()):
            continue
        if begun := [s for s, gap in begins if 0 <= s - step <= gap]:
            title = f"{run_saves.name(c, run)}, from which the run goes on at step {begun[0]}, holds weights and no optimizer, schedule or random state: "
            title += "the moments begin anew"
            yield _finding(run, Facts("optimizer_missing", resumed=[step]), title, (step, begun[0]), found)
            return


def _finding(
    run: Run, facts: Facts, title: str, steps: tuple[int | None, int | None], rows: list[Row], severity: str = "warning"
) -> Finding[Facts]:
    columns = ["checkpoint", "step", "optimizer counts", "schedule counts", "states", "rate"]
    shown = [[run_saves.name(c, run), c.step, n.optimizer, n.scheduler, n.states, n.lr] for c, n in rows[:30]]
    table = evidence.table("what the checkpoints say of their age", columns, shown)
    return evidence.found(facts, title, steps, severity, table, key=facts.what)

"""What checkpoints say of the optimizer and the schedule: how many steps they have counted, and whether they were saved."""

from __future__ import annotations

from collections.abc import Callable

from forensics.case import Finding
from forensics.checkpoints import run_saves
from forensics.checkpoints.age import counters
from forensics.detectors import checkpoint_state
from forensics.run import endings, settings
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

EFFECTS = {"optimizer_said_lost": "checkpoints"}  # a symptom of its own, for which there is no detector

# names of what checkpoints hold, and of settings of restarts: those of Megatron-LM, fairseq, OpenNMT and common loops
_LIST = lazy_re(r"[(\[{]([^()\[\]{}]{3,200})[)\]}]")
_WEIGHTS = lazy_re(r"(?i)(?:model|net|network|weights|params?|parameters|ema)(?:_?(?:state_?dict|state|weights|params))?")
_OPTIMIZER = lazy_re(r"(?i)opt|adam|sgd|solver|moment|all|state$")
OF_OPTIMIZER_STATE = lazy_re(
    r"(?i)(?:.*\.)?(?:(no|skip|reset)[_-]?(?:load[_-]?)?|load[_-]?|restore[_-]?|resume[_-]?)optim(?:izer)?(?:[_-]states?)?"
)
SETTLED = 5  # steps after a restart from which on a count that went on and one that began anew are told apart
WORDS = {"optimizer": "optimizer", "scheduler": "schedule"}


def optimizer_counted_anew(s: Symptoms) -> Sign:
    """In a checkpoint after a restart the optimizer has counted its steps from the restart on."""
    return _anew(s, "optimizer")


def scheduler_counted_anew(s: Symptoms) -> Sign:
    """In a checkpoint after a restart the schedule has counted its steps from the restart on."""
    return _anew(s, "scheduler")


def optimizer_count_continues(s: Symptoms) -> Sign:
    """In a checkpoint after a restart the optimizer has counted the steps before it, too."""
    if found := _of(s, "optimizer_anew"):
        return absent(f"{found[0].title}.", found)
    return _counted(s.run, "optimizer", seen)


def optimizer_not_saved(s: Symptoms) -> Sign:
    """The run went on from a checkpoint without an optimizer, or the state of the optimizer is empty."""
    missing = [f for f in _of(s, "optimizer_missing") if f.facts.resumed]
    if found := missing or _of(s, "optimizer_empty"):
        return seen(f"{found[0].title}.", found, first=found[0].first_step)
    full = [c for c in run_saves.of_run(s.run) if c.kind in ("full", "optimizer")]
    if not full:
        return cannot_tell("no checkpoint in the folder holds an optimizer to compare with.")
    text = f"{len(full)} checkpoints hold the state of the optimizer, the last of them {run_saves.name(full[-1], s.run)}."
    return absent(text, where=run_saves.name(full[-1], s.run))


def optimizer_said_lost(s: Symptoms) -> Sign:
    """A line of a launch that goes on from a checkpoint says that the state of the optimizer was not found or not loaded, or lists what was loaded
    without one; or a setting of that launch asked for it."""
    resumed = endings.events(s.run, "resume")
    if len(s.run.attempts) < 2 and not resumed:
        return does_not_arise("the run was not restarted, so that no state was to be loaded.")
    if said := [*endings.events(s.run, "optimizer_lost"), *(e for e in resumed if _lists_none(str(e["text"])))]:
        e = said[0]
        where = s.run.where(e["source"], e["at"])
        return seen(f'The log says: "{str(e["text"]).strip()[:120]}".', where=where, first=e["step"], last=e["step"])
    for x in settings.every(s.run):
        m = OF_OPTIMIZER_STATE.fullmatch(x.key)
        if m and x.attempt != 0 and x.value is (m[1] is not None):
            return seen(f"The run was restarted with {x.key} = {x.value}.", where=x.where)
    return cannot_tell("no line speaks of the optimizer's state.")


def _lists_none(text: str) -> bool:
    """Whether a line lists in brackets what it loaded, weights among it and no optimizer: "resuming from last.pt (model, ema)"."""
    for m in _LIST.finditer(text):
        parts = [part.strip(" '\"") for part in m[1].split(",")]
        if len(parts) > 1 and any(_WEIGHTS.fullmatch(part) for part in parts) and not any(_OPTIMIZER.search(part) for part in parts):
            return True
    return False


def scheduler_ran_ahead(s: Symptoms) -> Sign:
    """In every checkpoint the schedule has counted the same whole multiple of the steps."""
    if found := _of(s, "scheduler_ahead"):
        return seen(f"{found[0].title}.", found)
    for c in reversed(run_saves.of_run(s.run)):
        count = counters(c).scheduler
        if count is not None and c.step:
            text = f"The schedule has counted {count} steps in the checkpoint of step {c.step}."
            return absent(text, where=run_saves.name(c, s.run))
    return cannot_tell("no checkpoint in the folder holds a count of the schedule.")


def _of(s: Symptoms, what: str) -> list[Finding[checkpoint_state.Facts]]:
    return [f for f in s.of(checkpoint_state.Facts) if f.facts.what == what]


def _anew(s: Symptoms, part: str) -> Sign:
    if found := _of(s, f"{part}_anew"):
        return seen(f"{found[0].title}.", found, first=found[0].facts.since)
    return _counted(s.run, part, absent)


def _counted(run: Run, part: str, state: Callable[..., Sign]) -> Sign:
    """SEEN or ABSENT by the last checkpoint after a restart whose count goes with its step; else what is missing."""
    begins = [a["steps"][0] for a in run.attempts[1:]]
    if not begins:
        return does_not_arise("the run was not restarted, so that no count could begin anew.")
    counted = [(c, n) for c in run_saves.of_run(run) if c.step is not None and (n := getattr(counters(c), part)) is not None]
    if not counted:
        return cannot_tell(f"no checkpoint in the folder holds a count of the {WORDS[part]}.")
    after = [(c, n) for c, n in counted if (c.step or 0) >= min(begins) + SETTLED]
    kept = [(c, n) for c, n in after if abs(n - (c.step or 0)) <= checkpoint_state.CLOSE * (c.step or 0) + 2]
    if not kept:
        return cannot_tell(f"no checkpoint after the restart at step {begins[0]} has a count that goes with its step.")
    c, n = kept[-1]
    text = f"In the checkpoint of step {c.step}, after a restart, the {WORDS[part]} has counted {n} steps."
    return state(text, where=run_saves.name(c, run))

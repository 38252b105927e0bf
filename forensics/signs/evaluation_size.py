"""How many samples an evaluation takes, as the log counts them, or as its time and its speed say."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from forensics.detectors import config_change
from forensics.run import settings
from forensics.run.series import Floats, Ints, Series, names, parts, series
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, seen
from parsers.records.vocabulary import EVALUATION
from parsers.tables import Run

SUBJECT = "held_out"  # another half of it
EFFECTS = {"evaluation_size_changed": "acc.eval"}  # a symptom of its own, for which there is no detector

LASTS, TWO = 3, 2  # bound: evaluations on either side, in a short log two; a last one of the whole set is no other evaluation
QUARTER = 4  # bound: of the evaluations on either side: where there are fewer than twelve, three would be most of them
SHARE = 0.05  # relative; bound: times of a tenth of a second that are printed with four digits, and their product with a speed
TIMES = 3.0  # bound: the largest of the other steps; an evaluation that scatters has no such step
_SETS = {*EVALUATION, "held", "heldout", "knn", "probe"}
_COUNTED = {
    "n", "num", "count", "size", "total", "samples", "examples", "sequences", "images", "rows", "items", "pairs", "questions", "batches",
    "char", "chars", "characters", "token", "tokens", "words", "frames", "utts", "utterances", "users", "queries", "clips", "files", "patients", "subjects", "cases", "scans", "studies", "volumes", "slices", "documents", "episodes",
}  # fmt: skip
_SPEEDS = ("samples_per_second", "examples_per_second")


def evaluation_size_changed(s: Symptoms) -> Sign:
    """From one evaluation on, and for good, the evaluations take fewer samples, or more: the values before and after are not of the same data."""
    if (told := _set_otherwise(s)) is not None:
        return told
    counted = list(_counts(s.run))
    if not counted:
        return cannot_tell("the log does not say how many samples the evaluations take.")
    for count, step, n, known in counted:
        at = _changes_once(n)
        moves = "" if at is None or known else _evaluation_moves(s.run, int(step[at - 1]), int(step[at]))
        if at is None or not (known or moves):
            continue
        text = f"By {count.tag} evaluations take {n[at - 1]:.0f} samples up to step {step[at - 1]}, and {n[at]:.0f} from step {step[at]} on"
        if not known:
            text = f"{count.tag} goes from {n[at - 1]:.0f} to {n[at]:.0f} at step {step[at]}, where {moves} takes by far its largest step"
        place = count.place(s.run, int(np.flatnonzero(count.step == step[at])[0]))
        return seen(f"{text}.", where=place, first=int(step[at]), last=int(step[-1]))
    count, step, n, known = max(counted, key=lambda c: c[3])
    if not known:
        return cannot_tell("the log does not say how many samples the evaluations take.")
    return absent(
        f"By {count.tag} evaluations take {n[0]:.0f} samples at step {step[0]} and {n[-1]:.0f} at step {step[-1]}, with no lasting change."
    )


def _set_otherwise(s: Symptoms) -> Sign | None:
    """A setting that counts what is evaluated, and that two launches have otherwise (``val_chars``)."""
    for f in s.of(config_change.Facts):
        for key, (old, new) in zip(f.facts.keys, f.facts.changes, strict=True):
            before, after = settings.as_number(old), settings.as_number(new)
            if _counts_evaluated(key) and before and after and abs(np.log(abs(after / before))) > SHARE:
                return seen(f"Between two launches {key} goes from {before:.6g} to {after:.6g}.", [f], first=f.first_step)
    return None


def _counts(run: Run) -> Iterator[tuple[Series, Ints, Floats, bool]]:
    """(what counts, steps, samples, whether it is known to be of an evaluation) of every count that was logged often enough."""
    told = [name for name in names(run, 2 * TWO) if name.startswith("other/") or name == "tput.samples"]
    for s in (p for name in told for p in parts(run, name) if p.usable.sum() >= 2 * TWO):
        step, x = s.step[s.usable], s.value[s.usable]
        if (_counts_evaluated(s.tag) or _counts_something(s.tag)) and (x == np.round(x)).all() and (x > 0).all():
            yield s, step, x, _counts_evaluated(s.tag)
        elif (what := _of_speed(s.tag)) and (timed := _time_of(run, what)) is not None:
            both, i, j = np.intersect1d(step, timed.step[timed.usable], return_indices=True)
            if len(both) >= 2 * TWO:
                yield s, both, x[i] * timed.value[timed.usable][j], True


def _words(tag: str) -> list[str]:
    return re.split(r"[/_. ]+", tag.lower())


def _counts_something(tag: str) -> bool:
    """Is it a number of things, of which the name does not say whether they are evaluated (``n_windows``)?"""
    words = _words(tag)
    return len(words) == 2 and words[0] in {"n", "num"} and not words[1].isdigit()


def _evaluation_moves(run: Run, before: int, at: int) -> str:
    """The evaluation that takes its largest step there, by far: it is of what was counted. Else ""."""
    for name in ("loss.eval", "acc.eval", "score.eval"):
        s = series(run, name)
        if s is None or s.usable.sum() < 2 * LASTS:
            continue
        step, x = s.step[s.usable], s.value[s.usable]
        there = np.flatnonzero((step[:-1] >= before) & (step[1:] <= at))
        late = np.flatnonzero(step[:-1] >= step[len(step) // 4])  # an evaluation moves fast at first
        others = np.abs(np.diff(x))[np.setdiff1d(late, there)]
        if len(there) == 1 and len(others) >= LASTS and abs(x[there[0] + 1] - x[there[0]]) > TIMES * float(others.max()):
            return s.tag
    return ""


def _counts_evaluated(tag: str) -> bool:
    """Is it the number of an evaluation's samples or batches (``eval/n_samples``, ``knn_n``), and not the size of a batch?"""
    *before, last = words = _words(tag)
    batch = "batchsize" in before or (last == "size" and before[-1:] == ["batch"])
    in_front = words[0] in _COUNTED and len(words) == 2 and last in _SETS  # "n_oos"
    return in_front or (last in _COUNTED and not _SETS.isdisjoint(before) and not batch)


def _of_speed(tag: str) -> str:
    """What a tag is in front of its samples a second (``eval_samples_per_second``), of an evaluation; else ""."""
    end = next((end for end in _SPEEDS if tag.lower().endswith(end)), "")
    what = tag[: -len(end) - 1] if end else ""
    return what if not _SETS.isdisjoint(_words(what)) else ""


def _time_of(run: Run, what: str) -> Series | None:
    """How long the evaluation took, as it was logged beside its speed."""
    return next(
        (s for place in ("axis", "other") for end in ("_", "/") if (s := series(run, f"{place}/{what}{end}runtime")) is not None), None
    )


def _changes_once(n: Floats) -> int | None:
    """The first evaluation of another size; None where sizes stay or keep changing."""
    with np.errstate(divide="ignore", invalid="ignore"):
        moves = np.flatnonzero(np.abs(np.diff(np.log(n))) > SHARE)
    least = min(LASTS, max(TWO, len(n) // QUARTER))
    if len(moves) != 1 or not least <= moves[0] + 1 <= len(n) - least:
        return None
    return int(moves[0]) + 1

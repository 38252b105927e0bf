"""Data behind the spikes

What it sees
    Several spikes have something in common in their data: a shard, a source, a sample, a whole batch, a place in the
    epoch. One spike alone shows nothing of the kind, however bad its batch.

How it decides
    Exact one-sided test (hypergeometric) of each feature against all batches of the run, at most 1 % chance of any wrong
    accusation (Tarone's correction); spikes within one visit of a feature count once, so that a shard which is read in one
    go is not blamed for what its time did. Where no ids are known but the epoch is: whether spikes of different epochs
    lie at the same place, against epochs turned by chance (p below 0.01).

Cannot tell
    With fewer than two spikes, and with neither batch ids nor two epochs. Where a logged value is the mean of ten
    steps it speaks of ten batches, and no log tells them apart.

Folklore
    "We need a way to identify which batches caused loss spikes" (metaseq#500). PaLM's batches were harmless at
    another state: what comes back in every epoch is the data, what does not is the state.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from forensics import evidence
from forensics.batches import recurrence
from forensics.batches.data_passes import contents
from forensics.batches.enrichment import Shared, shared
from forensics.batches.recurrence import Recurrence
from forensics.case import BaseFacts, Finding
from forensics.detectors import loss_spike
from forensics.errors import CannotTell
from forensics.run.inputs import needed
from forensics.run.series import series
from parsers.tables import Run

NEEDS = ["loss.train"]
INPUTS = ["batch ids"]
MOST = 200  # spikes; bound: more share what many batches have, and each costs a look at all batches


@dataclass(frozen=True)
class Facts(BaseFacts):
    """What several spikes have in common."""

    how: str  # shared: a feature of their batches; recurring: a place in the epoch
    p: float  # corrected for all that was tried
    steps: list[int]  # starts of the spikes


@dataclass(frozen=True)
class Common(Facts):
    what: str  # shard, source, sample, batch, rank, place
    value: str
    hits: int  # spikes with it
    spikes: int
    tests: int
    lag: int  # values by which the batch is before the spike


@dataclass(frozen=True)
class Place(Facts):
    place: float  # share of the epoch
    epochs: int  # with a spike there
    covered: int  # epochs of the run
    length: float  # steps of an epoch
    seam: bool  # where an epoch begins or ends
    alike: float | None  # share of samples that the batches there have in common, None where unknown


def detect(run: Run) -> Iterator[Finding]:
    s = needed(run, "loss.train")
    batches = run.tables["batches"].num_rows > 0
    epochs = recurrence.epochs_of(run)
    last = int(s.step.max())
    two = epochs is not None and int(epochs.number(last)) - int(epochs.number(int(s.step.min()))) >= 1
    if not batches and not two:
        raise CannotTell("no file maps steps to samples, and less than two epochs are known")
    spikes = [f for f in loss_spike.detect(run) if f.facts.alive and _counts(f)][:MOST]
    if len(spikes) < 2:
        raise CannotTell(f"{len(spikes) or 'no'} spike{'s' if not spikes else ''}, two are needed")
    grave = {f.facts.start for f in spikes if f.severity != "info"}
    common = shared(run, s, [(f.facts.attempt, f.facts.start) for f in spikes], epochs) if batches else []
    common = [c for c in common if c.kind != "place"] or common
    if common:
        yield _common(run, common, len(grave & set(common[0].steps)))
    again = None
    if two and epochs is not None:
        again = recurrence.recurring([f.facts.start for f in spikes], epochs, last, max(s.interval, 1))
    if again is not None:
        alike = _same_batches(run, again) if batches else None
        yield _again(again, epochs.steps if epochs else 0, alike, len(grave & set(again.steps)))


def _counts(f: Finding[loss_spike.Facts]) -> bool:
    """What only looks like a spike does not count, but for the same bump at regular distances: those are asked here."""
    return f.facts.class_ != "not_a_spike" or f.facts.why == "periodic"


def _common(run: Run, found: list[Shared], grave: int) -> Finding:
    top = found[0]
    after = ", in the value before the spike" if top.lag else ""
    title = (
        f"{top.hits} of {top.spikes} spikes fall on {_words(top)}{after}, which only {top.windows} of "
        f"{top.all_windows} logged values have (p = {top.corrected:.1g} after correction)"
    )
    rows = [[x.kind, x.value, x.hits, x.spikes, x.windows, x.all_windows, f"{x.p:.2g}", f"{x.corrected:.2g}"] for x in found[:20]]
    columns = ["what", "which", "spikes with it", "spikes", "values with it", "values", "p", "p, corrected"]
    facts = Common("shared", top.corrected, list(top.steps), top.kind, top.value, top.hits, top.spikes, top.tests, top.lag)
    shown = evidence.table("what the spikes share, more than chance allows", columns, rows)
    return evidence.found(facts, title, (top.steps[0], top.steps[-1]), "warning" if grave >= 2 else "info", shown)


def _words(x: Shared) -> str:
    names = {"place": "the part of the epoch from", "rank": "rank", "batch": "the same batch", "sample": "sample"}
    named = names.get(x.kind, x.kind)
    return named if x.kind == "batch" else f"{named} {x.value}"


def _again(x: Recurrence, length: float, alike: float | None, grave: int) -> Finding:
    where = "where the epoch begins or ends" if x.seam else f"{x.place:.1%} into the epoch"
    title = f"Spikes of {x.epochs} of {x.covered} epochs come at the same place, {where} (p = {x.p:.1g})"
    facts = Place("recurring", x.p, list(x.steps), x.place, x.epochs, x.covered, length, x.seam, alike)
    lines = [f"step {step}" for step in x.steps[:20]]
    lines += [f"the batches there share {alike:.0%} of their samples"] if alike is not None else []
    severity, shown = "warning" if grave >= 2 and not x.seam else "info", evidence.text("spikes at this place", lines)
    return evidence.found(facts, title, (x.steps[0], x.steps[-1]), severity, shown, key=f"epochs-{x.steps[0]}")


def _same_batches(run: Run, x: Recurrence) -> float | None:
    """Share of samples that the batches at that place have in common, the mean over neighbours; None where unknown."""
    batches = contents(run)
    known = [b for s in x.steps if (b := next((batches[k] for k in batches if k[1] == s), None))]
    shares = [len(a & b) / max(len(a | b), 1) for a, b in zip(known, known[1:], strict=False)]
    return sum(shares) / len(shares) if shares else None


def smallest_effect(run: Run) -> str:
    s = series(run, "loss.train")
    reach = recurrence.reach(s) if s is not None else 1
    open_ = f"; a value speaks of {reach} batches" if reach > 1 else ""
    return f"two spikes that share what few batches have{open_}"

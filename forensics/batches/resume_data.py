"""After a restart: does the run go on with the data that come next, or are some repeated, skipped, or dealt anew?

From the ids of the batches. Nothing is wrong where the steps that a rollback does again hold the samples they held
before, or where the order repeats because an epoch ended. Wrong is, most telling first:

repeated    batches in a row are those of an earlier stretch at another step, and that was not so before the restart
skipped     the batches are those that the attempt before had already read past the restart; or ids that count upwards
            leave a gap; or the epoch ends with batches that nobody saw
reshuffled  before the epoch ends, samples come that it had already seen; or steps that are done again hold others

Everything is plain sets of ids; ``resume_loss`` asks the same of the loss alone.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from forensics.batches.data_passes import Attempt, Batches, passes, size_of, surviving, union

BY_LOSS = "by the ups and downs of the loss"
MOST = 20  # places of one manifest that are looked at
IN_A_ROW = 5  # equal batches that are no accident
ALIKE = 0.6  # share of a batch that makes it the same one: manifests lose lines
AGAIN = 0.05  # share of samples seen before in this epoch
WHOLE = 0.98  # share of the data that makes an epoch
OFF = 0.1  # bound: of a pass; its length is read off rounded epochs, and a loader drops its last batch
NEAR = 0.8  # of the rest of the epoch is looked at for samples that come again: its end may be a little off


@dataclass(frozen=True)
class Change:
    """What became of the data at a restart. The batch of step s is the one that step s - offset had."""

    what: str  # repeated | skipped | reshuffled
    attempt: int
    step: int  # the first one after the restart
    text: str  # "sees the data of step 1 and on again"
    offset: int | None = None
    how: str = "by its samples"  # or by a number of each batch, or BY_LOSS
    p: float | None = None  # chance that sound data would look like this; None where ids prove it
    lines: tuple[str, ...] = ()
    from_start: bool = False
    share: float | None = None  # of samples that come again

    @property
    def sure(self) -> bool:
        """Recorded ids say it."""
        return self.how != BY_LOSS


def moved(attempt: int, begin: int, offset: int, **more: Any) -> Change:
    """A stretch that another step had: data repeated, or skipped where it comes later."""
    if offset > 0:
        return Change("repeated", attempt, begin, f"sees the data of step {max(begin - offset, 0)} and on again", offset, **more)
    text = f"continues with the data that step {begin - offset} had before it: {-offset} batches are skipped"
    return Change("skipped", attempt, begin, text, offset, **more)


@dataclass(frozen=True)
class _Restart:
    """step -> samples: of the attempt that begins (`new`), of what it was built upon (`before`), of the abandoned branch (`gone`)."""

    attempt: int
    new: Attempt
    before: Attempt
    gone: Attempt
    batches: Batches
    epoch: float | None  # its length in steps, where the log says it

    @property
    def begin(self) -> int:
        return min(self.new)

    def change(self, what: str, text: str, offset: int | None = None, **more: Any) -> Change:
        return Change(what, self.attempt, self.begin, text, offset, **more)


def by_samples(batches: Batches, attempt: int, epoch: float | None = None) -> Change | None:
    """What became of the data at the restart that begins an attempt; None where they go on, or where the ids cannot tell.

    `epoch`: its length in steps, where the log says it.
    """
    new = {s: x for (a, s), x in sorted(batches.items()) if a == attempt}
    path = surviving(batches, attempt)
    if len(new) < IN_A_ROW or len(path) < IN_A_ROW:
        return None
    begin = min(new)
    gone = {s: x for (a, s), x in sorted(batches.items()) if a < attempt and s >= begin}  # the abandoned branch
    before = {s: x for s, x in path.items() if s < begin}
    if not before:
        return None  # from scratch
    twice = [s for s in new if s in gone]
    same = sum(_alike(new[s], gone[s]) for s in twice)
    if len(twice) >= IN_A_ROW and same >= 0.9 * len(twice):
        return None
    r = _Restart(attempt, new, before, gone, batches, epoch)
    return _at_another_step(r) or _seen_in_this_epoch(r) or _gap(r) or _never_seen(r) or _others(r, twice, same)


def unannounced(batches: Batches, epoch: float | None = None) -> Change | None:
    """In a run whose log tells of no restart: batches in a row that come again at another step, before their epoch is over."""
    path = {s: x for (_, s), x in sorted(batches.items())}
    steps, seen = list(path), dict[frozenset[str], int]()
    offsets = []
    for s, x in path.items():
        offsets.append(s - seen[x] if x in seen else 0)
        seen.setdefault(x, s)
    runs = [i for i in range(len(steps) - IN_A_ROW + 1) if offsets[i] and len(set(offsets[i : i + IN_A_ROW])) == 1]
    for i in [i for i in runs if i - 1 not in runs][:MOST]:
        split = {(int(s >= steps[i]), s): x for s, x in path.items()}
        found = by_samples(split, 1, epoch)
        if found is not None and found.what == "repeated":
            return found
    return None


def _at_another_step(r: _Restart) -> Change | None:
    """Batches in a row that are those of another stretch."""
    where: dict[str, list[int]] = {}
    for s, x in [*r.before.items(), *r.gone.items()]:
        for sample in x:
            where.setdefault(sample, []).append(s)
    row = list(r.new)[: 3 * IN_A_ROW]
    shared = {s: Counter(old for sample in r.new[s] for old in where.get(sample, [])) for s in row}
    alike = {s: {old for old, n in c.items() if n >= ALIKE * len(r.new[s])} for s, c in shared.items()}
    offsets = {s - old for s in row[:3] for old in alike[s] if s != old}
    matched = {o: sum(s - o in alike[s] for s in row) for o in offsets}
    matched = {o: n for o, n in matched.items() if n >= IN_A_ROW}
    if not matched or any(_goes_on(r, o) for o in matched if o > 0):
        return None
    offset = min(matched, key=lambda o: (-matched[o], abs(o)))
    lines = tuple(f"step {s} has the batch of step {s - offset}" for s in row[:IN_A_ROW])
    if offset < 0:
        return moved(r.attempt, r.begin, offset, lines=lines)
    start = r.begin - max(matched) <= min(r.before) + 1  # the earliest of several passes
    return moved(r.attempt, r.begin, offset, lines=lines, from_start=start, share=1.0)


def _goes_on(r: _Restart, offset: int) -> bool:
    """True where an order that repeats each epoch simply goes on: it did so before, or the epoch ended right there."""
    before, epoch = r.before, r.epoch
    tail = [s for s in list(before)[-IN_A_ROW:] if s - offset in before]
    if len(tail) >= IN_A_ROW - 1 and all(_alike(before[s], before[s - offset]) for s in tail):
        return True
    off = abs(offset / epoch - round(offset / epoch)) if epoch else 0.0  # passes by which the epoch did not end there
    if epoch and (off * epoch <= 1 or off > OFF):
        return off <= OFF
    between = [x for s, x in before.items() if s >= r.begin - offset]
    seen = union(between)
    once = sum(len(x) for x in between) <= (2 - WHOLE) * len(seen)  # one pass, not more
    return once and len(seen) >= WHOLE * size_of(union([*before.values(), *r.new.values()]))


def _alike(a: frozenset[str], b: frozenset[str]) -> bool:
    return len(a & b) >= ALIKE * max(min(len(a), len(b)), 1)


def _this_epoch(before: Attempt) -> tuple[frozenset[str], bool]:
    """(the samples since the last pass began, whether they come once a pass)."""
    begins = passes(before)
    current = [x for s, x in before.items() if s >= begins[-1]]
    seen, drawn = union(current), sum(len(x) for x in current)
    return seen, drawn - len(seen) <= 0.01 * drawn


def _seen_in_this_epoch(r: _Restart) -> Change | None:
    """Samples that this epoch had already seen, before it can have ended."""
    seen, once = _this_epoch(r.before)
    left = NEAR * (size_of(union(r.batches.values())) - len(seen))
    drawn = again = steps = 0
    for batch in r.new.values():
        if drawn + len(batch) > left or steps >= 50:
            break
        steps += 1
        drawn += len(batch)
        again += len(batch & seen)
    if not once or steps < 3 or again < 10 or again < AGAIN * drawn:
        return None
    text = f"reshuffles the data: {again / drawn:.0%} of the next {drawn} samples had been seen in this epoch already"
    return r.change("reshuffled", text, share=again / drawn)


def _gap(r: _Restart) -> Change | None:
    """Ids that count upwards, batch after batch, and leave a gap at the restart."""
    tail, head = list(r.before)[-IN_A_ROW:], list(r.new)[:IN_A_ROW]
    steps = [*tail, *head]
    known = [x for x in map(_span, [*(r.before[s] for s in tail), *(r.new[s] for s in head)]) if x is not None]
    if len(known) < len(steps):
        return None
    size = known[0][1] - known[0][0] + 1
    missing = [b[0] - a[1] - 1 - size * (t - s - 1) for a, b, s, t in zip(known, known[1:], steps, steps[1:], strict=False)]
    here = missing.pop(len(tail) - 1)
    if any(missing) or here < size:
        return None
    return r.change("skipped", f"skips {here} samples ({here / size:.0f} batches) that come next by their ids", -(here // size))


def _span(batch: frozenset[str]) -> tuple[int, int] | None:
    """(first, last) of ids without a hole."""
    if not all(x.isdecimal() and len(x) < 18 for x in batch):
        return None
    ids = [int(x) for x in batch]
    return (min(ids), max(ids)) if max(ids) - min(ids) == len(ids) - 1 else None


def _never_seen(r: _Restart) -> Change | None:
    """The epoch of the restart ends, and leaves out more than a last incomplete batch; the passes before did not."""
    begins = passes(r.before)
    whole = {**r.before, **r.new}
    later = [s for s in passes(whole) if s > begins[-1]]
    if not later or later[0] <= r.begin or not _this_epoch(r.before)[1]:
        return None
    edges, everything = [*begins, later[0]], len(union(r.batches.values()))
    left = [everything - len(union(x for s, x in whole.items() if a <= s < b)) for a, b in zip(edges, edges[1:], strict=False)]
    largest = max(len(x) for x in whole.values())
    if left[-1] < max(2 * largest, 0.02 * everything) or any(x > 0.5 * left[-1] for x in left[:-1]):
        return None
    text = f"ends the epoch without {left[-1]} samples that other epochs have: about {left[-1] // largest} batches are skipped"
    return r.change("skipped", text)


def _others(r: _Restart, twice: list[int], same: int) -> Change | None:
    """Steps that are done again with other samples: no harm by itself, and often meant so."""
    if len(twice) < IN_A_ROW or same > 0.1 * len(twice):
        return None
    lines = tuple(f"step {s}: {len(r.new[s] & r.gone[s])} of {len(r.new[s])} samples are the same" for s in twice[:IN_A_ROW])
    return r.change("reshuffled", f"does {len(twice)} steps again with other samples than before", lines=lines, share=0.0)

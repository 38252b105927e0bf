"""After a restart: does the run go on with the data that come next, or are some repeated, skipped, or dealt anew?

From the ids of the batches. Nothing is wrong where the steps that a rollback does again hold the samples they held
before, or where the order repeats because an epoch ended. Wrong is, most telling first:

repeated    batches in a row are those of an earlier stretch at another step, and that was not so before the restart
skipped     the batches are those that the life before had already read past the restart; or ids that count upwards
            leave a gap; or the epoch ends with batches that nobody saw
reshuffled  before the epoch ends, samples come that it had already seen; or steps that are done again hold others

Everything is plain sets of ids; ``resume_loss`` asks the same of the loss alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from parsers.tables import Run

Batches = dict[tuple[int, int], frozenset[str]]  # (attempt, step) -> samples
MOST = 20  # places of one manifest that are looked at
IN_A_ROW = 5  # equal batches that are no accident
ALIKE = 0.6  # share of a batch that makes it the same one: manifests lose lines
AGAIN = 0.05  # share of samples seen before in this epoch
WHOLE = 0.98  # share of the data that makes an epoch
NEAR = 0.8  # of the rest of the epoch is looked at for samples that come again: its end may be a little off


@dataclass(frozen=True)
class Change:
    """What became of the data at a restart. The batch of step s is the one that step s - offset had."""

    what: str  # repeated | skipped | reshuffled
    attempt: int
    step: int  # the first one after the restart
    offset: int | None
    how: str  # "by its samples" | "by the ups and downs of the loss"
    sure: bool  # recorded ids say it
    p: float | None  # chance that sound data would look like this; None where ids prove it
    text: str  # "sees the data of step 1 and on again"
    lines: tuple[str, ...] = ()
    from_start: bool = False
    share: float | None = None  # of samples that come again


def contents(run: Run) -> Batches:
    """The samples of each (attempt, step), ranks together."""
    if "contents" not in run.cache:
        table = run.tables["batches"]
        found: dict[tuple[int, int], set[str]] = {}
        for attempt, step, sample in zip(*(table[c].to_pylist() for c in ("attempt", "step", "sample")), strict=True):
            if sample is not None and step is not None:
                found.setdefault((attempt or 0, step), set()).add(sample)
        run.cache["contents"] = {k: frozenset(v) for k, v in found.items()}
    batches: Batches = run.cache["contents"]
    return batches


def surviving(batches: Batches, before: int | None = None) -> dict[int, frozenset[str]]:
    """step -> samples of what was built upon: of each step the last life's, up to the restart that begins life `before`."""
    lives = sorted({a for a, _ in batches if before is None or a < before})
    begins = {a: min(s for b, s in batches if b == a) for a in lives}
    path: dict[int, frozenset[str]] = {}
    for a in lives:
        path = {s: x for s, x in path.items() if s < begins[a]}
        path.update({s: x for (b, s), x in batches.items() if b == a})
    return dict(sorted(path.items()))


def passes(path: Mapping[int, frozenset[str]]) -> list[int]:
    """The steps at which a pass through the data begins; only the first where samples are drawn with replacement.

    A pass ends where most of a batch was seen in it. Samples that come again before that are no passes.
    """
    begins: list[int] = []
    seen: set[str] = set()
    drawn = again = 0
    for step, batch in path.items():
        known = len(batch & seen)
        if not begins or known > len(batch) / 2:
            if again > 0.02 * drawn + 1:
                return begins[:1]
            begins.append(step)
            seen, drawn, again = set(), 0, 0
            known = 0
        seen |= batch
        drawn += len(batch)
        again += known
    return begins


def by_samples(batches: Batches, attempt: int, epoch: float | None = None) -> Change | None:
    """What became of the data at the restart that begins a life; None where they go on, or where the ids cannot tell.

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
    return (
        _at_another_step(new, before, gone, attempt, epoch)
        or _seen_in_this_epoch(new, before, batches, attempt)
        or _gap(new, before, attempt)
        or _never_seen(new, before, batches, attempt)
        or _others(new, gone, twice, same, attempt)
    )


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


def _at_another_step(
    new: Mapping[int, frozenset[str]],
    before: Mapping[int, frozenset[str]],
    gone: Mapping[int, frozenset[str]],
    attempt: int,
    epoch: float | None,
) -> Change | None:
    """Batches in a row that are those of another stretch."""
    where: dict[str, list[int]] = {}
    for s, x in [*before.items(), *gone.items()]:
        for sample in x:
            where.setdefault(sample, []).append(s)
    begin, row = min(new), list(new)[: 3 * IN_A_ROW]
    shared = {s: Counter(old for sample in new[s] for old in where.get(sample, [])) for s in row}
    alike = {s: {old for old, n in c.items() if n >= ALIKE * len(new[s])} for s, c in shared.items()}
    offsets = {s - old for s in row[:3] for old in alike[s] if s != old}
    matched = {o: sum(s - o in alike[s] for s in row) for o in offsets}
    matched = {o: n for o, n in matched.items() if n >= IN_A_ROW}
    if not matched or any(_goes_on(before, o, begin, epoch, new) for o in matched if o > 0):
        return None
    offset = min(matched, key=lambda o: (-matched[o], abs(o)))
    lines = tuple(f"step {s} has the batch of step {s - offset}" for s in row[:IN_A_ROW])
    if offset < 0:
        text = f"continues with the data that step {begin - offset} had before it: {-offset} batches are skipped"
        return Change("skipped", attempt, begin, offset, "by its samples", True, None, text, lines)
    first = max(matched)  # the earliest of several passes
    text = f"sees the data of step {begin - offset} and on again"
    start = not before or begin - first <= min(before) + 1
    return Change("repeated", attempt, begin, offset, "by its samples", True, None, text, lines, start, 1.0)


def _goes_on(before: Mapping[int, frozenset[str]], offset: int, begin: int, epoch: float | None, new: Mapping[int, frozenset[str]]) -> bool:
    """True where an order that repeats each epoch simply goes on: it did so before, or the epoch ended right there."""
    tail = [s for s in list(before)[-IN_A_ROW:] if s - offset in before]
    if len(tail) >= IN_A_ROW - 1 and all(_alike(before[s], before[s - offset]) for s in tail):
        return True
    if epoch and abs(offset / epoch - round(offset / epoch)) * epoch <= 1:
        return True
    between = [x for s, x in before.items() if s >= begin - offset]
    seen = frozenset().union(*between) if between else frozenset()
    everything = frozenset().union(*before.values(), *new.values())
    once = sum(len(x) for x in between) <= (2 - WHOLE) * len(seen)  # one pass, not more
    return once and len(seen) >= WHOLE * size_of(everything)


def _alike(a: frozenset[str], b: frozenset[str]) -> bool:
    return len(a & b) >= ALIKE * max(min(len(a), len(b)), 1)


def size_of(samples: frozenset[str]) -> int:
    """How many samples the data have at least: those seen, or up to the largest id where ids are row numbers."""
    numbers = [int(x) for x in samples if x.isdecimal() and len(x) < 10]
    largest = max(numbers) + 1 if len(numbers) == len(samples) and numbers else 0
    return max(len(samples), largest if largest <= 50 * len(samples) else 0)


def _this_epoch(before: Mapping[int, frozenset[str]]) -> tuple[dict[int, frozenset[str]], bool]:
    """(the batches since the last pass began, whether samples come once a pass)."""
    begins = passes(before)
    current = {s: x for s, x in before.items() if s >= begins[-1]}
    drawn = sum(len(x) for x in current.values())
    return current, drawn - len(frozenset().union(*current.values())) <= 0.01 * drawn


def _seen_in_this_epoch(
    new: Mapping[int, frozenset[str]], before: Mapping[int, frozenset[str]], batches: Batches, attempt: int
) -> Change | None:
    """Samples that this epoch had already seen, before it can have ended."""
    current, once = _this_epoch(before)
    seen = frozenset().union(*current.values())
    left = NEAR * (size_of(frozenset().union(*batches.values())) - len(seen))
    drawn = again = steps = 0
    for batch in new.values():
        if drawn + len(batch) > left or steps >= 50:
            break
        steps += 1
        drawn += len(batch)
        again += len(batch & seen)
    if not once or steps < 3 or again < 10 or again < AGAIN * drawn:
        return None
    text = f"reshuffles the data: {again / drawn:.0%} of the next {drawn} samples had been seen in this epoch already"
    return Change("reshuffled", attempt, min(new), None, "by its samples", True, None, text, share=again / drawn)


def _gap(new: Mapping[int, frozenset[str]], before: Mapping[int, frozenset[str]], attempt: int) -> Change | None:
    """Ids that count upwards, batch after batch, and leave a gap at the restart."""
    tail, head = list(before)[-IN_A_ROW:], list(new)[:IN_A_ROW]
    spans = [_span(x) for x in [*(before[s] for s in tail), *(new[s] for s in head)]]
    if any(x is None for x in spans):
        return None
    known = [x for x in spans if x is not None]
    steps = [*tail, *head]
    size = known[0][1] - known[0][0] + 1
    for i in range(len(known) - 1):
        expected = size * (steps[i + 1] - steps[i] - 1)
        if i != len(tail) - 1 and known[i + 1][0] - known[i][1] - 1 != expected:
            return None
    missing = known[len(tail)][0] - known[len(tail) - 1][1] - 1 - size * (head[0] - tail[-1] - 1)
    if missing < size:
        return None
    text = f"skips {missing} samples ({missing / size:.0f} batches) that come next by their ids"
    return Change("skipped", attempt, head[0], -(missing // size), "by its samples", True, None, text)


def _span(batch: frozenset[str]) -> tuple[int, int] | None:
    """(first, last) of ids without a hole."""
    if not all(x.isdecimal() and len(x) < 18 for x in batch):
        return None
    ids = [int(x) for x in batch]
    return (min(ids), max(ids)) if max(ids) - min(ids) == len(ids) - 1 else None


def _never_seen(new: Mapping[int, frozenset[str]], before: Mapping[int, frozenset[str]], batches: Batches, attempt: int) -> Change | None:
    """The epoch of the restart ends, and leaves out more than a last incomplete batch; the passes before did not."""
    begins = passes(before)
    whole = {**before, **new}
    everything = frozenset().union(*batches.values())
    later = [s for s in passes(whole) if s > begins[-1]]
    if not later or later[0] <= min(new) or not _this_epoch(before)[1]:
        return None
    edges = [*begins, later[0]]
    left = [
        len(everything) - len(frozenset().union(*(x for s, x in whole.items() if a <= s < b)))
        for a, b in zip(edges, edges[1:], strict=False)
    ]
    largest = max(len(x) for x in whole.values())
    if left[-1] < max(2 * largest, 0.02 * len(everything)) or any(x > 0.5 * left[-1] for x in left[:-1]):
        return None
    text = f"ends the epoch without {left[-1]} samples that other epochs have: about {left[-1] // largest} batches are skipped"
    return Change("skipped", attempt, min(new), None, "by its samples", True, None, text)


def _others(
    new: Mapping[int, frozenset[str]], gone: Mapping[int, frozenset[str]], twice: Sequence[int], same: int, attempt: int
) -> Change | None:
    """Steps that are done again with other samples: no harm by itself, and often meant so."""
    if len(twice) < IN_A_ROW or same > 0.1 * len(twice):
        return None
    text = f"does {len(twice)} steps again with other samples than before"
    lines = tuple(f"step {s}: {len(new[s] & gone[s])} of {len(new[s])} samples are the same" for s in twice[:IN_A_ROW])
    return Change("reshuffled", attempt, min(new), None, "by its samples", True, None, text, lines, share=0.0)

"""The usual ways to load, for runs of no known framework: in file order, one permutation an epoch, torch's samplers, accelerate's."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from functools import lru_cache, partial

import numpy as np

from forensics.batches import data_order_facts, epoch_permutations, hf_trainer, sizes, torch_loaders
from forensics.batches.accelerate_loaders import Sharing
from forensics.batches.loader import Loader, Turns, in_epochs
from forensics.batches.sizes import Size, counted
from forensics.batches.torch_random import Ids
from forensics.run import settings
from parsers.tables import Run

RESUMES = ("continues", "begins the epoch again", "begins anew")
MOST_SAMPLES = 1_000_000  # of a data set whose orders are tried one after the other
_OFF = ("false", "none", "no", "0", "sequential", "off")


def loaders(run: Run) -> tuple[list[Loader], str]:
    """(loaders, what is missing where there are none)."""
    dealt = sizes.sizes(run)
    if not dealt:
        return [], "no batch size is known"
    shuffle = settings.setting(run, "shuffle")
    if shuffle is not None and str(shuffle.value).lower() in _OFF:
        said = f"{shuffle.key} {shuffle.value} ({shuffle.where})"
        alone = [s for s in dealt if s.world == 1 or not s.assumed]
        ways = list({s.total: s for s in reversed(dealt if run.tables["batches"].num_rows else alone)}.values())
        known = sizes.dataset(run) or (0, "")
        return [x for size in ways for x in _in_epochs(size, known, "sequential", 0, said, named=True)], ""
    lengths = _lengths(run, dealt)
    if not lengths:
        return [], "the number of training samples is not known"
    if max(n for n, _ in lengths) > MOST_SAMPLES:
        return [], "no setting names the sampler, and the data set is too large to try the usual ones"
    found: list[Loader] = []
    for size, n, (seed, said) in itertools.product(dealt, lengths, _seeds(run)):
        for kind in ("sequential", *epoch_permutations.KINDS):
            found += _in_epochs(size, n, kind, seed, said)
        found += _torch_ways(size, n, seed, said)
    return list({x.what: x for x in found}.values()), ""


def _in_epochs(size: Size, n: tuple[int, str], kind: str, seed: int, said: str, *, named: bool = False) -> Iterator[Loader]:
    """One order an epoch for all processes together, cut into whole steps; the rest is dropped, or a last, smaller step.

    With no number of samples known (0): file order without an end.
    """
    total = size.total
    for seeded in epoch_permutations.SEEDS if kind != "sequential" else ("seed",):
        for keep in (False, True) if n[0] % total else (False,):
            length = math.ceil(n[0] / total) if keep else n[0] // total
            if n[0] and not length:
                continue
            order = "the samples in file order" if kind == "sequential" else f"a permutation an epoch ({kind}, {seeded}, seed {seed})"
            rest = f", {n[0]} samples, the last short batch {'kept' if keep else 'dropped'}" if n[0] else ""
            yield Loader(
                f"{order}{rest}, {size}", partial(_whole_step, n[0], kind, seed, seeded, total, length),
                _said(said, n[1], *size.rests_on), size.assumed, length or None, n[0] or None, 0.8,
                resumes=RESUMES, named=named, total=total,
            )  # fmt: skip


def _whole_step(n: int, kind: str, seed: int, seeded: str, total: int, length: int, done: int) -> list[Ids]:
    if done < 0:
        return []
    if not n:
        return [np.arange(done * total, (done + 1) * total, dtype=np.int64)]
    epoch, within = divmod(done, length)
    return [epoch_permutations.batch(epoch_permutations.order(n, kind, seed, epoch, seeded), total, within)]


def _torch_ways(size: Size, n: tuple[int, str], seed: int, said: str) -> Iterator[Loader]:
    """DistributedSampler, accelerate's sampler, and DataLoader with a generator, batch by batch on each process."""
    for drop in (False, True):
        for name, turns in _epoch_ways(n[0], size, seed, drop):
            length = _length(n[0], size, drop, accelerate=name.startswith("accelerate"))
            if length:
                yield Loader(
                    f"{name}, {n[0]} samples, the last short batch {'dropped' if drop else 'kept'}, {size}",
                    partial(in_epochs, turns, size.accumulation, length),
                    _said(said, n[1], *size.rests_on), size.assumed, length, n[0], 0.6, resumes=RESUMES, named=False, total=size.total,
                )  # fmt: skip


def _length(n: int, size: Size, drop: bool, *, accelerate: bool) -> int:
    """Optimizer steps in an epoch."""
    if accelerate:
        return hf_trainer.steps_per_epoch(n, size.micro, size.world, accumulation=size.accumulation, drop_last=drop)
    mine = len(torch_loaders.padded(np.arange(n), size.world, drop)) // size.world
    return math.ceil((mine // size.micro if drop else math.ceil(mine / size.micro)) / size.accumulation)


def _epoch_ways(n: int, size: Size, seed: int, drop: bool) -> Iterator[tuple[str, Callable[..., Turns]]]:
    for given, forgotten in itertools.product(sorted({seed, 0}), (False, True)):
        how = "never told the epoch" if forgotten else "told the epoch"
        yield f"DistributedSampler with seed {given}, {how}", partial(_distributed, n, size, given, forgotten, drop)
    trainer = partial(hf_trainer.epoch, n, size.micro, size.world, seed=seed, rules=Sharing(drop))
    yield f"accelerate's seedable sampler, seed {seed}", trainer
    if size.world == 1:
        for kind in ("with a generator", "whose sampler has a generator", "on the global generator, which nothing else draws from"):
            yield f"DataLoader {kind}, seed {seed}", partial(_generator, n, size, seed, kind, drop)


def _distributed(n: int, size: Size, seed: int, forgotten: bool, drop: bool, epoch: int) -> Turns:
    now = 0 if forgotten else epoch
    orders = [torch_loaders.distributed(n, size.world, r, seed=seed, epoch=now, drop_last=drop) for r in range(size.world)]
    return list(zip(*(torch_loaders.batches(o, size.micro, drop) for o in orders), strict=True))


def _generator(n: int, size: Size, seed: int, kind: str, drop: bool, epoch: int) -> Turns:
    return [(b,) for b in torch_loaders.batches(_generated(n, seed, kind, epoch), size.micro, drop)]


@lru_cache(maxsize=64)
def _generated(n: int, seed: int, kind: str, epoch: int) -> Ids:
    if kind.startswith("on"):
        orders = torch_loaders.global_epochs(n, seed)
    else:
        orders = torch_loaders.generator_epochs(n, seed, loader_has_it=kind.startswith("with"))
    return next(itertools.islice(orders, epoch, None))


def _lengths(run: Run, dealt: list[Size]) -> list[tuple[int, str]]:
    """(samples of the data set, said): from config, else from epochs that are counted in samples and logged finely enough.

    Epochs counted in steps leave it open: the last batch may be short.
    """
    known = sizes.dataset(run)
    if known:
        return [known]
    bounds = data_order_facts.epoch_length(run)
    if bounds is None or not math.isfinite(bounds[1]) or math.floor(bounds[1] + 1e-6) >= bounds[0] - 1e-6:
        return []
    found = set()
    for total in {s.total for s in dealt}:
        low, high = math.ceil(bounds[0] * total - 1e-6), math.floor(bounds[1] * total + 1e-6)
        if low == high:
            found.add(low)
    return [(n, f"'{bounds[2]}' grows as it does with {n} samples") for n in sorted(found)]


def _seeds(run: Run) -> list[tuple[int, str]]:
    found: dict[int, str] = {}
    for s in (s for what in ("data_seed", "seed") for s in reversed(settings.settings(run, what))):
        if said := counted(s, -math.inf):
            found.setdefault(*said)
    return list(found.items())[:3] or [(0, ""), (42, "")]


def _said(*parts: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(p for p in parts if p))

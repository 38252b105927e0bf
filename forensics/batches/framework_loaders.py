"""Which loaders the config allows: those of the framework where one is known, else the usual ways of torch and numpy."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from forensics.batches import data_order_facts, default_loaders, hf_trainer, megatron, olmo, sizes
from forensics.batches import deepspeed as deepspeed_loader
from forensics.batches.accelerate_loaders import Sharing
from forensics.batches.loader import Loader, in_epochs
from forensics.batches.sizes import Size, counted
from forensics.batches.torch_random import Ids
from forensics.run import settings
from forensics.run.endings import step_origin
from parsers.records import index_files
from parsers.tables import Run

MEGATRON = ("megatron", "megatron-deepspeed", "gpt-neox", "nemo")
RANDOM_OFFSETS = ("nanogpt",)
MOST_PROCESSES = 1_000_000
OWN = "the Trainer's own sampler and data set order"
LOST = "the order of the samples came from a random generator whose state no file holds"


def candidates(run: Run) -> tuple[list[Loader], str]:
    """(loaders, what is missing where there are none)."""
    indices = index_files.olmo(run)
    if run.framework == "olmo" or indices is not None:
        return _olmo(run, indices)
    if run.framework in MEGATRON:
        return _megatron(run)
    if data_order_facts.sample_axis(run) is not None:
        return _deepspeed(run)
    if run.framework == "hf-trainer":
        return _trainer(run)
    if run.framework in RANDOM_OFFSETS:
        return [], f"this loader draws an offset into the tokens for every sample, and {LOST}"
    return default_loaders.loaders(run)


# --- Megatron


def _megatron(run: Run) -> tuple[list[Loader], str]:
    taken, origin = data_order_facts.consumed(run), step_origin(run)
    kind = sizes.text(run, "dataloader_type")
    size = sizes.whole(run, "global_batch_size train_batch_size") or sizes.samples_a_step(run)
    ramp = _rampup(run)
    if taken is None and size is None:
        return [], "neither consumed samples nor a global batch size is logged"

    def places(done: int) -> tuple[int, int] | None:
        found = taken.span(done + origin, origin) if taken else None
        if found is None and size is not None:
            start = megatron.consumed(done, size[0], ramp)
            found = (start, start + megatron.batch_size(start, size[0], ramp))
        return found

    rests = tuple(x for x in (taken.what if taken else "", size[1] if size else "", f"rampup_batch_size {ramp}" if ramp else "") if x)
    if kind in ("cyclic", "external"):
        return _cyclic(run, places, rests) if kind == "cyclic" else ([], "an external dataloader read the data")
    index = index_files.megatron(run)

    def step(done: int) -> list[Ids]:
        span = places(done)
        return [np.arange(*span, dtype=np.int64)] if span else []

    what = "Megatron's samples in order" + ("" if taken else ", as many a step as the batch size says")
    ids = "numbers of Megatron's samples, in the order of training"
    ids += "; its index files are here" if index else " (its shuffle index says where in the data each lies)"
    assumed = () if kind or taken else ("dataloader_type single, the default",)
    return [Loader(what, step, rests, assumed, trust=0.95 if taken else 0.85, ids=ids)], ""


def _cyclic(run: Run, places: Callable[[int], tuple[int, int] | None], rests: tuple[str, ...]) -> tuple[list[Loader], str]:
    total = sizes.whole(run, "num_samples num_examples dataset_size total_samples")
    micro = sizes.whole(run, "micro_batch_size")
    world = sizes.whole(run, "data_parallel_size")
    if total is None or micro is None or world is None:
        return [], "dataloader_type is cyclic, and the number of samples, micro_batch_size or data_parallel_size is not known"
    if world[0] > MOST_PROCESSES:
        return [], f"data_parallel_size {world[0]} is no number of processes"

    def step(sharding: bool, done: int) -> list[Ids]:
        span = places(done)
        return megatron.cyclic(total[0], span[0], span[1] - span[0], micro[0], world[0], sharding=sharding) if span else []

    said = settings.named(run, "data_sharding no_data_sharding")
    ways = [s.value is not (s.key.startswith("no")) for s in said[-1:]] or [True, False]
    rests = (*rests, total[1], micro[1], world[1])
    name = "Megatron's cyclic sampler, data sharding"
    return [Loader(f"{name} {'on' if on else 'off'}", partial(step, on), rests, trust=0.85) for on in ways], ""


def _rampup(run: Run) -> tuple[int, int, int] | None:
    found = settings.setting(run, "rampup")
    value = found.value if found else None
    parts = value.replace(",", " ").strip("[]()").split() if isinstance(value, str) else value
    try:
        start, increment, over = (int(x) for x in parts or ())
    except (TypeError, ValueError):
        return None
    return (start, increment, over) if increment > 0 and over > 0 else None


# --- OLMo, DeepSpeed


def _olmo(run: Run, indices: tuple[object, str] | None) -> tuple[list[Loader], str]:
    size = sizes.whole(run, "global_train_batch_size") or sizes.samples_a_step(run)
    if size is None:
        return [], "global_train_batch_size is not known"
    epoch = sizes.whole(run, "epoch")
    seed = counted(settings.setting(run, "data_seed") or settings.setting(run, "seed"), -math.inf)
    n = sizes.whole(run, "num_instances num_samples dataset_size")
    if indices is not None:
        order = np.asarray(indices[0], np.int64)
        rests: tuple[str, ...] = (indices[1], size[1])
    elif n is not None and seed is not None:
        world = sizes.whole(run, "world_size")
        order = olmo.global_indices(n[0], seed[0], epoch[0] if epoch else 0, world[0] if world else 1)
        rests = (n[1], size[1], seed[1])
    else:
        return [], "neither global_indices.npy nor the number of instances and the seed are here"

    def step(done: int) -> list[Ids]:
        batch = olmo.step(order, size[0], done)
        return [batch] if len(batch) else []

    trust = 0.95 if indices is not None else 0.85
    return [Loader("OLMo's global order of the epoch", step, rests, length=len(order) / size[0], trust=trust, ids="instance numbers")], ""


def _deepspeed(run: Run) -> tuple[list[Loader], str]:
    labels = data_order_facts.sample_axis(run) or []

    def step(done: int) -> list[Ids]:  # `done` is the label itself here: see match_loader.index
        span = deepspeed_loader.taken(labels, done)
        return [np.arange(*span, dtype=np.int64)] if span else []

    places = Loader(
        "DeepSpeed's axis of samples", step, ("the labels of 'Train/Samples/...' are samples consumed",),
        trust=0.8, ids="places in the order in which the samples were read (which rows they are, the axis does not say)",
    )  # fmt: skip
    return [places], ""


# --- Hugging Face Trainer


def _trainer(run: Run) -> tuple[list[Loader], str]:
    strategy = sizes.text(run, "train_sampling_strategy")
    if strategy in ("group_by_length", "batch_rebalance") or sizes.flag(run, "group_by_length"):
        return [], f"the samples were grouped by length: the lengths are not here, and {LOST}"
    if sizes.flag(run, "use_seedable_sampler") is False and strategy != "sequential":
        return [], f"use_seedable_sampler is off, and {LOST}"
    if strategy != "sequential" and (old := _older(run, (4, 38))):
        return [], f"transformers {old} does not seed its sampler epoch by epoch (4.38 and later do), and {LOST}"
    dealt = sizes.sizes(run)
    if not dealt:
        return [], "per_device_train_batch_size is not known"
    n = sizes.dataset(run)
    if n is None:
        return [], f'the number of training samples is not known{_between(run, dealt)} (the Trainer prints it as "Num examples")'
    rules = Sharing(
        drop_last=sizes.flag(run, "dataloader_drop_last") or False,
        split_batches=sizes.flag(run, "split_batches") or False,
        even_batches=sizes.flag(run, "even_batches") is not False,
        dispatch_batches=sizes.flag(run, "dispatch_batches") or False,
    )
    split, drop = rules.split_batches, rules.drop_last
    seed, said, assumed = _seed(run, 42)
    resumes = ("begins the epoch again",) if sizes.flag(run, "ignore_data_skip") else ("continues",)
    found = []
    for size in dealt:
        micro = size.micro * size.world if split else size.micro
        length = hf_trainer.steps_per_epoch(n[0], micro, size.world, accumulation=size.accumulation, drop_last=drop, split_batches=split)
        turns = partial(hf_trainer.epoch, n[0], micro, size.world, seed=None if strategy == "sequential" else seed, rules=rules)
        what = "the Trainer's order of the rows" if strategy == "sequential" else f"the Trainer's shuffle by seed {seed} + epoch"
        rests = tuple(x for x in (said, n[1], *size.rests_on) if x)
        step = partial(in_epochs, turns, size.accumulation, length)
        guessed = (*size.assumed, *assumed, OWN)
        found.append(Loader(f"{what}, {n[0]} samples, {size}", step, rests, guessed, length, n[0], 0.85, resumes=resumes))
    return found, ""


def _older(run: Run, than: tuple[int, int]) -> str | None:
    """The version of transformers that a saved model's config names, where it is older."""
    said = settings.named(run, "transformers_version")
    parts = str(said[-1].value).split(".") if said else []
    numbers = [int(p) for p in parts[:2] if p.isdigit()]
    return str(said[-1].value) if len(numbers) == 2 and tuple(numbers) < than else None


def _between(run: Run, dealt: list[Size]) -> str:
    """ ", only that it lies between 961 and 992", from the epochs in the log."""
    bounds = data_order_facts.epoch_length(run)
    totals = {s.total for s in dealt if not s.assumed} or {s.total for s in dealt[:1]}
    if bounds is None or not math.isfinite(bounds[1]) or len(totals) != 1:
        return ""
    total = totals.pop()
    steps = range(math.ceil(bounds[0] - 1e-6), math.floor(bounds[1] + 1e-6) + 1)
    return f", only that it lies between {(steps[0] - 1) * total + 1} and {steps[-1] * total}" if steps else ""


def _seed(run: Run, default: int) -> tuple[int, str, tuple[str, ...]]:
    said = [x for what in ("data_seed", "seed") if (x := counted(settings.setting(run, what), -math.inf))]
    return (*said[0], ()) if said else (default, "", (f"seed {default}, the default",))

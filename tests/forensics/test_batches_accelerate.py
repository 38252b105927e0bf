"""accelerate's loaders against our own, world sizes 1 to 8, by accelerate's prepare_data_loader; dispatching in real processes."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forensics.batches import accelerate_loaders, hf_trainer
from forensics.batches.accelerate_loaders import Sharing

ROOT = Path(__file__).resolve().parents[2]


def prepared(loader: Any, world: int, rank: int, **options: Any) -> Any:
    module: Any = pytest.importorskip("accelerate.data_loader")
    return module.prepare_data_loader(loader, num_processes=world, process_index=rank, put_on_device=False, **options)


@pytest.fixture(autouse=True)
def _alone() -> None:
    accelerate: Any = pytest.importorskip("accelerate")
    accelerate.PartialState(cpu=True)


@pytest.mark.parametrize("world", range(1, 9))
def test_prepared_loaders_of_every_rank(world: int) -> None:
    torch: Any = pytest.importorskip("torch")
    settings = itertools.product((7, 33, 64), (1, 4, 8), (False, True), (False, True), (True, False), (0, 2))
    count = 0
    for n, size, drop, split, even, epoch in settings:
        if split and size % world:
            continue
        order = accelerate_loaders.seedable_order(n, 11, epoch)
        mine = accelerate_loaders.sharded(order, size, world, Sharing(drop, split, even))
        for rank in range(world):
            loader = torch.utils.data.DataLoader(range(n), size, shuffle=True, drop_last=drop)
            loader = prepared(loader, world, rank, split_batches=split, even_batches=even, use_seedable_sampler=True, data_seed=11)
            loader.set_epoch(epoch)
            assert [t[rank].tolist() for t in mine if len(t[rank])] == [b.tolist() for b in loader]
            count += 1
    assert count >= 12 * 6


@pytest.mark.parametrize("world", [1, 2, 5])
def test_a_resumed_epoch_skips_batches_and_the_next_epoch_is_whole(world: int) -> None:
    torch: Any = pytest.importorskip("torch")
    accelerate: Any = pytest.importorskip("accelerate")
    for rank in range(world):
        loader = torch.utils.data.DataLoader(range(50), 4, shuffle=True)
        loader = prepared(loader, world, rank, use_seedable_sampler=True, data_seed=3)
        resumed = accelerate.skip_first_batches(loader, 2)
        resumed.set_epoch(1)
        mine = accelerate_loaders.sharded(accelerate_loaders.seedable_order(50, 3, 1), 4, world)
        assert [b.tolist() for b in resumed] == [t[rank].tolist() for t in mine[2:]]
        loader.set_epoch(2)
        mine = accelerate_loaders.sharded(accelerate_loaders.seedable_order(50, 3, 2), 4, world)
        assert [b.tolist() for b in loader] == [t[rank].tolist() for t in mine]


def test_the_seed_is_what_torch_was_last_seeded_with() -> None:
    torch: Any = pytest.importorskip("torch")
    torch.manual_seed(77)
    torch.rand(1000)  # draws do not matter, the seed does
    loader = prepared(torch.utils.data.DataLoader(range(20), 5, shuffle=True), 1, 0, use_seedable_sampler=True)
    for epoch in range(3):  # the sampler counts the epochs by itself
        mine = accelerate_loaders.sharded(accelerate_loaders.seedable_order(20, 77, epoch), 5, 1)
        assert [b.tolist() for b in loader] == [t[0].tolist() for t in mine]


_DISPATCH = """
import itertools, json, sys, torch
from accelerate import Accelerator, DataLoaderConfiguration
found = []
for n, size, drop, split in itertools.product((9, 24, 41), (2, 4), (False, True), (False, True)):
    config = DataLoaderConfiguration(dispatch_batches=True, split_batches=split, use_seedable_sampler=True, data_seed=5)
    accelerator = Accelerator(cpu=True, dataloader_config=config)
    if split and size % accelerator.num_processes:
        continue
    loader = accelerator.prepare(torch.utils.data.DataLoader(range(n), size, shuffle=True, drop_last=drop))
    for epoch in range(2):
        found.append([n, size, drop, split, epoch, [b.tolist() for b in loader]])
print("FOUND", accelerator.process_index, json.dumps(found), flush=True)
"""


def test_dispatched_batches_in_real_processes(tmp_path: Path) -> None:
    world = 2
    port = str(29500 + os.getpid() % 2000)
    outs = [
        subprocess.Popen(
            [sys.executable, "-c", _DISPATCH],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=os.environ
            | {"RANK": str(r), "LOCAL_RANK": str(r), "WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
            | {"ACCELERATE_USE_CPU": "true", "PYTHONPATH": "", "OMP_NUM_THREADS": "1"},
        )
        for r in range(world)
    ]
    said = [p.communicate(timeout=300) for p in outs]
    lines = [next((x for x in out.splitlines() if x.startswith("FOUND")), None) for out, _ in said]
    for line, (_, err) in zip(lines, said, strict=True):
        assert line is not None, err[-2000:]
        _, rank, text = line.split(" ", 2)
        found = json.loads(text)
        assert len(found) >= 24
        for n, size, drop, split, epoch, want in found:
            order = accelerate_loaders.seedable_order(n, 5, epoch)
            turns = accelerate_loaders.dispatched(order, size, world, Sharing(drop, split))
            assert [t[int(rank)].tolist() for t in turns] == want, (n, size, drop, split, epoch)


def test_steps_an_epoch_are_as_many_as_there_are_turns() -> None:
    for n, size, world, drop, accumulation in itertools.product((5, 16, 33), (1, 4), (1, 2, 3), (False, True), (1, 3)):
        turns = accelerate_loaders.sharded(np.arange(n), size, world, Sharing(drop))
        steps = hf_trainer.steps_per_epoch(n, size, world, accumulation=accumulation, drop_last=drop)
        assert steps == max(-(-len(turns) // accumulation), 1)

"""torch's random numbers and samplers, rebuilt without torch, against torch itself over many settings."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from forensics.batches import torch_loaders, torch_random
from forensics.batches.loader import step_of

SEEDS = (0, 1, 42, 2**31, 2**40 + 5, 2**63 - 1, -3)


def test_the_stream_is_mt19937_as_published() -> None:
    """init_genrand(5489) is the reference seed of Matsumoto and Nishimura; its first and 10000th numbers are in C++11."""
    bits = torch_random.stream(5489)
    assert int(bits.random_raw()) == 3499211612
    bits.random_raw(9998)
    assert int(bits.random_raw()) == 4123659995


def test_a_known_permutation() -> None:
    """torch.randperm(10) under manual_seed(0), as it has been since torch 0.4."""
    assert torch_random.seeded_randperm(10, 0).tolist() == [4, 1, 7, 5, 3, 9, 0, 8, 6, 2]


def test_orders_too_long_are_refused_in_a_sentence() -> None:
    with pytest.raises(torch_random.TooLarge, match="too long"):
        torch_random.randperm(torch_random.MOST + 1, torch_random.stream(0))
    assert torch_random.MOST < (2**32 - 1) // 20  # from where on versions of torch differ


@pytest.mark.parametrize("seed", SEEDS)
def test_permutations_and_draws_are_those_of_torch(seed: int) -> None:
    torch = pytest.importorskip("torch")
    generator, bits = torch.Generator().manual_seed(seed), torch_random.stream(seed)
    for n in (0, 1, 2, 3, 10, 623, 624, 625, 5000):
        assert torch_random.randperm(n, bits).tolist() == torch.randperm(n, generator=generator).tolist()
        drawn = torch.empty((), dtype=torch.int64).random_(generator=generator).item()
        assert torch_random.draw64(bits) == drawn


def test_a_long_permutation_is_that_of_torch() -> None:
    torch = pytest.importorskip("torch")
    want = torch.randperm(300_000, generator=torch.Generator().manual_seed(7)).numpy()
    assert np.array_equal(torch_random.seeded_randperm(300_000, 7), want)


@pytest.mark.parametrize("world", range(1, 9))
def test_distributed_sampler(world: int) -> None:
    data: Any = pytest.importorskip("torch.utils.data")
    count = 0
    for n, seed, epoch, drop in itertools.product((8, 13, 33, 100), (0, 42), (0, 1, 5), (False, True)):
        for rank in range(world):
            sampler = data.DistributedSampler(range(n), world, rank, seed=seed, drop_last=drop)
            sampler.set_epoch(epoch)
            mine = torch_loaders.distributed(n, world, rank, seed=seed, epoch=epoch, drop_last=drop)
            assert mine.tolist() == list(sampler)
            count += 1
    assert count == 48 * world


def test_distributed_sampler_pads_data_smaller_than_the_world() -> None:
    data: Any = pytest.importorskip("torch.utils.data")
    for rank in range(8):
        want = list(data.DistributedSampler(range(3), 8, rank, seed=5))
        assert torch_loaders.distributed(3, 8, rank, seed=5).tolist() == want


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("n", [5, 12, 37])
@pytest.mark.parametrize("where", ["loader", "sampler", "global"])
def test_data_loader_over_three_epochs(where: str, n: int, drop_last: bool) -> None:
    torch = pytest.importorskip("torch")
    data = torch.utils.data
    generator = torch.Generator().manual_seed(7)
    if where == "loader":
        loader = data.DataLoader(range(n), 4, shuffle=True, drop_last=drop_last, generator=generator)
        orders = torch_loaders.generator_epochs(n, 7)
    elif where == "sampler":
        sampler = data.RandomSampler(range(n), generator=generator)
        loader = data.DataLoader(range(n), 4, sampler=sampler, drop_last=drop_last)
        orders = torch_loaders.generator_epochs(n, 7, loader_has_it=False)
    else:
        torch.manual_seed(7)
        loader = data.DataLoader(range(n), 4, shuffle=True, drop_last=drop_last)
        orders = torch_loaders.global_epochs(n, 7)
    for _ in range(3):
        want = [batch.tolist() for batch in loader]
        assert [b.tolist() for b in torch_loaders.batches(next(orders), 4, drop_last)] == want


def test_accumulated_steps_and_what_remains() -> None:
    turns = [[b] for b in torch_loaders.batches(np.arange(10), 2)]
    assert [bool(step_of(turns, 2, i)) for i in range(4)] == [True, True, True, False]
    assert [x.tolist() for x in step_of(turns, 2, 2)] == [[8, 9]]

"""Megatron's index recipe against a naive one written from the published facts; samplers, batch-size ramp, twin series."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forensics
from forensics.batches import data_order_facts, deepspeed, megatron, step_to_samples


def naive(sizes: list[int], samples: int, length: int, seed: int, extra: int) -> tuple[list[int], list[list[int]], list[int], bool]:
    """Document, sample and shuffle index, token by token; whether the last epoch is shuffled apart."""
    tokens = sum(sizes)
    epochs = 1
    while epochs * tokens < samples * length + extra:
        epochs += 1
    before_last = ((epochs - 1) * tokens - extra) // length
    apart = epochs > 1 and samples - before_last < int(0.8 * ((tokens - extra) // length))
    state = np.random.RandomState(seed)

    def shuffled(x: list[int]) -> list[int]:
        array = np.array(x, np.int64)
        state.shuffle(array)
        return array.tolist()

    one = list(range(len(sizes)))
    documents = shuffled(one * (epochs - 1)) + shuffled(one) if apart else shuffled(one * epochs)
    total = (epochs * tokens - extra) // length
    flat = [(place, offset) for place, d in enumerate(documents) for offset in range(sizes[d])]
    index = [[0, 0]]
    for i in range(1, total + 1):  # the next sample begins at the last token of this one where they share it (extra = 1)
        if extra:
            index.append(list(flat[i * length]))
        else:
            place, offset = flat[i * length - 1]
            index.append([place, offset + 1])
    order = shuffled(list(range(before_last))) + shuffled(list(range(before_last, total))) if apart else shuffled(list(range(total)))
    return documents, index, order, apart


@pytest.mark.parametrize("extra", [0, 1])
def test_indices_over_many_data_sets(extra: int) -> None:
    draw = random.Random(extra)
    several = separate = 0
    for _ in range(250):
        sizes = [draw.choice([0, 1, 2, 5, 9, 17, 40]) for _ in range(draw.randint(1, 12))]
        length, samples, seed = draw.randint(2, 12), draw.randint(1, 60), draw.randint(0, 2**32 - 1)
        if sum(sizes) <= length:
            continue
        documents, index, order, apart = naive(sizes, samples, length, seed, extra)
        mine = megatron.gpt_indices(np.array(sizes, np.int32), samples, length, seed, extra_token=extra)
        assert [x.tolist() for x in mine] == [documents, index, order]
        several += len(documents) > len(sizes)
        separate += apart
    assert several > 50 and 10 < separate < several


def test_documents_of_a_sample_hold_its_tokens() -> None:
    sizes = np.array([3, 10, 4, 6], np.int32)
    documents, index, shuffle = megatron.gpt_indices(sizes, 4, 5, 1)
    flat = [d for d in documents for _ in range(sizes[d])]
    for sample in range(4):
        begin = int(shuffle[sample]) * 5
        want = list(dict.fromkeys(flat[begin : begin + 6]))
        assert megatron.documents_of(sample, documents, index, shuffle) == want


def ramped(size: int, start: int, increment: int, over: int, steps: int) -> list[int]:
    """Consumed samples after each step, by the published calculator, word for word."""
    total, found = 0, []
    for _ in range(steps):
        rises = (size - start) // increment
        now = size if total > over else start + int(total / (over / rises)) * increment
        total += now
        found.append(total)
    return found


@pytest.mark.parametrize(("size", "start", "increment", "over"), [(64, 16, 16, 1000), (2048, 32, 32, 100_000), (12, 4, 4, 7)])
def test_the_ramp_of_the_batch_size(size: int, start: int, increment: int, over: int) -> None:
    want = ramped(size, start, increment, over, 400)
    assert [megatron.consumed(i, size, (start, increment, over)) for i in range(1, 401)] == want
    assert megatron.consumed(7, size) == 7 * size


@pytest.mark.parametrize("sharding", [False, True])
@pytest.mark.parametrize("world", [1, 2, 3, 8])
def test_the_cyclic_sampler(world: int, sharding: bool) -> None:
    torch = pytest.importorskip("torch")
    total, micro = 101, 2
    turn = micro * world
    active = total - total % turn
    for rank in range(world):
        want: list[list[int]] = []
        consumed = 0
        while consumed < 2.5 * active:  # each epoch as the sampler yields it, from where consumed samples stand
            epoch, current = divmod(consumed, active)
            g = torch.Generator().manual_seed(epoch)
            if sharding:
                bucket = total // turn * micro
                rest = [rank * bucket + x for x in torch.randperm(bucket, generator=g).tolist()[current // world :]]
            else:
                rest = torch.randperm(total // micro * micro, generator=g).tolist()[current:][rank::world]
            whole = [rest[i : i + micro] for i in range(0, len(rest) // micro * micro, micro)]
            for b in whole[: (active - current) // turn]:
                want.append(b)
                consumed += turn
        for i, b in enumerate(want):
            mine = megatron.cyclic(total, i * turn, turn, micro, world, sharding=sharding)
            assert mine[rank].tolist() == b


# --- from the files of a run


def run_of(folder: Path, rows: list[dict[str, Any]], config: dict[str, Any] | None = None) -> Any:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "log.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    (folder / "config.json").write_text(json.dumps(config or {"seed": 1}))
    run = forensics.read(str(folder))
    run.framework = "megatron"
    return run


def test_consumed_samples_say_it_without_any_config(tmp_path: Path) -> None:
    want = ramped(64, 16, 16, 1000, 60)
    run = run_of(tmp_path / "r", [{"iteration": i + 1, "lm loss": 5.0, "consumed_samples": c} for i, c in enumerate(want)])
    for step in (1, 2, 17, 40, 60):
        found = step_to_samples.answer(run, step)
        before = want[step - 2] if step > 1 else 0
        assert (found["how"], found["samples"]) == ("rebuilt", list(range(before, want[step - 1]))), found["why"]


def test_between_logged_steps_only_where_the_batch_is_constant(tmp_path: Path) -> None:
    want = ramped(64, 16, 16, 1000, 100)
    run = run_of(tmp_path / "r", [{"iteration": i, "lm loss": 5.0, "consumed_samples": want[i - 1]} for i in range(10, 101, 10)])
    assert step_to_samples.answer(run, 95)["samples"] == list(range(want[93], want[94]))
    found = step_to_samples.answer(run, 15)  # the ramp is on, and its settings are not known
    assert found["how"] == "unknown" and "not logged" in found["why"]
    config = {"global_batch_size": 64, "rampup_batch_size": [16, 16, 1000]}
    run = run_of(tmp_path / "s", [{"iteration": i, "lm loss": 5.0} for i in range(10, 101, 10)], config)
    assert step_to_samples.answer(run, 15)["samples"] == list(range(want[13], want[14]))


def test_the_twin_series_over_samples(tmp_path: Path) -> None:
    """Two event-like series with the same values: over iterations and over samples."""
    want = ramped(32, 8, 8, 300, 40)
    rows: list[dict[str, Any]] = [{"step": i + 1, "lm loss": 5 - i / 40} for i in range(40)]
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "log.csv").write_text(
        "step,tag,value\n"
        + "".join(f"{r['step']},lm-loss-training/lm loss,{r['lm loss']}\n" for r in rows)
        + "".join(f"{c},lm-loss-training/lm loss vs samples,{r['lm loss']}\n" for r, c in zip(rows, want, strict=True))
    )
    run = forensics.read(str(tmp_path / "r"))
    found = data_order_facts.consumed(run)
    assert found is not None and [found.after[i + 1] for i in range(40)] == want and "vs samples" in found.what


def test_index_files_name_the_documents(tmp_path: Path) -> None:
    documents, index, shuffle = megatron.gpt_indices(np.array([50, 70, 30, 90], np.int32), 40, 8, 3)
    rows = [{"iteration": i + 1, "lm loss": 5.0, "consumed_samples": 4 * (i + 1)} for i in range(6)]
    folder = tmp_path / "r"
    (folder / "cache").mkdir(parents=True)
    for name, array in (("document", documents), ("sample", index), ("shuffle", shuffle)):
        np.save(folder / "cache" / f"0123-GPTDataset-train-{name}_index.npy", array)
        np.save(folder / "cache" / f"0123-GPTDataset-valid-{name}_index.npy", array[:3])
    found = step_to_samples.answer(run_of(folder, rows), 2)
    assert found["samples"] == [4, 5, 6, 7]
    assert found["documents"] == [megatron.documents_of(i, documents, index, shuffle) for i in (4, 5, 6, 7)]


def test_deepspeeds_axis_of_samples(tmp_path: Path) -> None:
    assert deepspeed.taken([64, 128, 192], 128) == (64, 128)
    assert deepspeed.taken([64, 128, 192], 100) is None
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "log.csv").write_text(
        "step,tag,value\n" + "".join(f"{64 * i},Train/Samples/train_loss,{3 / i}\n" for i in range(1, 30))
    )
    found = step_to_samples.answer(forensics.read(str(tmp_path / "r")), 640)
    assert (found["how"], found["samples"]) == ("rebuilt", list(range(576, 640))), found["why"]


@pytest.mark.parametrize("world", [1, 2, 8])
def test_deepspeeds_own_loader(world: int) -> None:
    """A DistributedSampler behind a RepeatingLoader, whose epoch nobody sets: batch by batch, as the engine asks for them."""
    data: Any = pytest.importorskip("torch.utils.data")
    n, micro, accumulation = 37, 2, 3
    for rank in range(world):
        sampler = data.DistributedSampler(range(n), world, rank)
        loader = data.DataLoader(range(n), micro, sampler=sampler)
        asked = [b.tolist() for _ in range(4) for b in loader]
        for done in range(len(asked) // accumulation):
            want = [i for b in asked[done * accumulation : (done + 1) * accumulation] for i in b]
            assert deepspeed.step(n, micro, world, accumulation, done)[rank].tolist() == want

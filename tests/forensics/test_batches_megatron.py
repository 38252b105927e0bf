"""Megatron: documents of a sample, samplers, batch-size ramp, twin series."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forensics
from forensics.batches import data_order_facts, deepspeed, megatron, step_to_samples


def indices(sizes: list[int], epochs: int, length: int, seed: int) -> tuple[Any, Any, Any]:
    """Document, sample and shuffle index as Megatron writes them, token by token; the epochs shuffled together."""
    state = np.random.RandomState(seed)
    documents = np.array(list(range(len(sizes))) * epochs, np.int32)
    state.shuffle(documents)
    total = (epochs * sum(sizes) - 1) // length
    flat = [(place, offset) for place, d in enumerate(documents) for offset in range(sizes[d])]
    order = np.arange(total)
    state.shuffle(order)
    return documents, np.array([flat[i * length] for i in range(total + 1)]), order  # two samples share the token between them


def test_documents_of_a_sample_hold_its_tokens() -> None:
    sizes = [3, 10, 4, 6]
    documents, index, shuffle = indices(sizes, 1, 5, 1)
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
    documents, index, shuffle = indices([50, 70, 30, 90], 2, 8, 3)
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

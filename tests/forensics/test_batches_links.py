"""From a run's files to the batch of a step: which loaders fit, what is unknown, manifests of any schema, whom a cause blames."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import forensics
from forensics import cli
from forensics.batches import batch_manifest, data_order_facts, epoch_permutations, olmo, step_to_samples
from forensics.batches.culprits import culprits
from forensics.case import BaseFacts, Clue, Finding, Hypothesis
from forensics.detectors import loss_spike, nonfinite, zero_loss
from forensics.errors import ForensicsError


def loss(i: int) -> float:
    return 1.5 + 2.5 * math.exp(-i / 80) + 0.01 * ((i * 7919) % 13 - 6)


def write(folder: Path, rows: list[dict[str, Any]], config: dict[str, Any], batches: dict[int, list[int]] | None = None) -> Any:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    (folder / "config.json").write_text(json.dumps(config))
    if batches:
        (folder / "batches.jsonl").write_text("".join(json.dumps({"step": s, "sample_ids": b}) + "\n" for s, b in batches.items()))
    return forensics.read(str(folder))


def rows(n: int, first: int = 0) -> list[dict[str, Any]]:
    return [{"step": i, "loss": loss(i)} for i in range(first, n)]


# --- orders of numpy


@pytest.mark.parametrize("seed", [0, 6198])
def test_olmos_order_and_ranks(tmp_path: Path, seed: int) -> None:
    for n, world, drop in itertools.product((10, 37, 64), (1, 2, 8), (False, True)):
        indices = np.arange(n, dtype=np.uint32)
        np.random.Generator(np.random.PCG64(seed + 1)).shuffle(indices)
        whole = indices.tolist()
        want = whole[: n // world * world] if drop else whole + [whole[i % n] for i in range(-n % world)]
        assert olmo.global_indices(n, seed, 1, world, drop_last=drop).tolist() == want
        batch = olmo.step(olmo.global_indices(n, seed, 1, world, drop_last=drop), 2 * world, 1)
        assert batch.tolist() == want[2 * world : 4 * world], "a rank's part begins at its number and takes every world-th"


def test_olmos_index_file_in_the_run(tmp_path: Path) -> None:
    order = olmo.global_indices(200, 6198)
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "global_indices.npy").write_bytes(order.astype(np.uint32).tobytes())
    run = write(tmp_path / "r", rows(21, first=1), {"global_train_batch_size": 8, "seed": 6198})
    found = step_to_samples.answer(run, 5)
    assert (found["how"], found["samples"]) == ("rebuilt", order[32:40].tolist()) and "global_indices.npy" in found["rests_on"]


@pytest.mark.parametrize("kind", epoch_permutations.KINDS)
@pytest.mark.parametrize("seeded", epoch_permutations.SEEDS)
def test_one_permutation_an_epoch(kind: str, seeded: str) -> None:
    torch = pytest.importorskip("torch") if kind == "torch" else None
    drawn: Any = None
    for epoch in range(3):
        seed = 5 + epoch if seeded == "seed + epoch" else 5
        if kind == "torch":
            assert torch is not None
            drawn = drawn if drawn is not None and seeded == "continued" else torch.Generator().manual_seed(seed)
            want = torch.randperm(23, generator=drawn).tolist()
        else:
            fresh = np.random.RandomState(seed) if kind == "numpy" else np.random.default_rng(seed)
            drawn = drawn if drawn is not None and seeded == "continued" else fresh
            want = drawn.permutation(23).tolist()
        assert epoch_permutations.order(23, kind, 5, epoch, seeded).tolist() == want


# --- which loader it was


WAYS = ["distributed", "forgotten", "seedable", "generator", "numpy"]


def really(way: str, n: int, size: int, world: int, seed: int, steps: int, drop: bool) -> dict[int, list[int]]:
    """What real loaders of torch and accelerate dealt to all ranks, step by step."""
    torch: Any = pytest.importorskip("torch")
    data = torch.utils.data
    found: dict[int, list[int]] = {}
    state, generator = np.random.RandomState(seed), torch.Generator().manual_seed(seed)
    samplers = [data.DistributedSampler(range(n), world, r, seed=seed, drop_last=drop) for r in range(world)]
    if way == "generator":
        fixed = data.DataLoader(range(n), size, shuffle=True, drop_last=drop, generator=generator)
    for epoch in itertools.count():
        if way in ("distributed", "forgotten"):
            for s in samplers:
                s.set_epoch(epoch if way == "distributed" else 0)
            ranks = [[b.tolist() for b in data.DataLoader(range(n), size, sampler=s, drop_last=drop)] for s in samplers]
        elif way == "seedable":
            accelerate: Any = pytest.importorskip("accelerate.data_loader")
            pytest.importorskip("accelerate").PartialState(cpu=True)
            ranks = []
            for r in range(world):
                loader = accelerate.prepare_data_loader(
                    data.DataLoader(range(n), size, shuffle=True, drop_last=drop), num_processes=world, process_index=r,
                    put_on_device=False, use_seedable_sampler=True, data_seed=seed,
                )  # fmt: skip
                loader.set_epoch(epoch)
                ranks.append([b.tolist() for b in loader])
        elif way == "generator":
            ranks = [[b.tolist() for b in fixed]]
        else:
            order = state.permutation(n).tolist()
            ranks = [[order[i : i + size] for i in range(0, n // size * size, size)]]
        for batches in zip(*ranks, strict=True):
            found[len(found)] = [i for b in batches for i in b]
            if len(found) == steps:
                return found
    raise AssertionError


@pytest.mark.parametrize(
    ("way", "world", "drop"), [(w, k, d) for w in WAYS for k in (1, 2, 5) for d in (False, True) if k == 1 or w in WAYS[:3]]
)
def test_a_few_recorded_steps_tell_the_loader_and_with_it_all_others(tmp_path: Path, way: str, world: int, drop: bool) -> None:
    n, size, seed = 103, 4, 17
    dealt = really(way, n, size, world, seed, 70, drop)
    config = {"num_samples": n, "batch_size": size, "world_size": world, "seed": seed}
    known = {s: dealt[s] for s in (0, 3, 4, 69)}
    run = write(tmp_path / "r", rows(70), config, known)
    assert step_to_samples.answer(run, 3)["how"] == "recorded"
    open_steps = 0
    for step in set(range(70)) - set(known):
        found = step_to_samples.answer(run, step)
        assert found["how"] == "rebuilt"
        if "choices" in found:  # whether a short last batch was filled up: only such a batch could tell
            open_steps += 1
            assert sorted(dealt[step]) in [sorted(c["samples"]) for c in found["choices"]]
            assert set(found["samples"]) <= set(dealt[step]) and found["confidence"] < 0.9
        else:
            assert found["samples"] == dealt[step], found["why"]
            assert found["confidence"] > 0.9 and "recorded for 4 steps" in found["why"]
    assert open_steps <= 70 * size * world / n


def test_choices_that_fit_and_what_they_share(tmp_path: Path) -> None:
    """Recorded ids of the first epoch alone: whether the epoch was ever set shows only in the second."""
    dealt = really("distributed", 32, 8, 2, 3, 8, False)
    config = {"num_samples": 32, "batch_size": 8, "world_size": 2, "seed": 3}
    run = write(tmp_path / "r", rows(8), config, {0: dealt[0]})
    assert step_to_samples.answer(run, 1)["samples"] == dealt[1]
    found = step_to_samples.answer(run, 2)
    given = [set(c["samples"]) for c in found["choices"]]
    assert len(given) >= 2 and set(dealt[2]) in given and "choices fit" in found["why"]
    assert set(found["samples"]) == (set.intersection(*given) if found["how"] == "rebuilt" else set())
    assert found["confidence"] < step_to_samples.answer(run, 1)["confidence"]


def test_nothing_is_claimed_of_a_loader_that_nothing_names(tmp_path: Path) -> None:
    config = {"num_samples": 103, "batch_size": 4, "seed": 17}
    found = step_to_samples.answer(write(tmp_path / "r", rows(70), config), 5)
    assert (found["how"], found["samples"], found["confidence"]) == ("unknown", [], 0.0)
    assert "default loaders" in found["why"] and "ids of any one batch" in found["why"]
    none = step_to_samples.answer(write(tmp_path / "s", rows(70), config, {0: [1, 1, 1, 1], 1: [5, 6, 7, 8]}), 5)
    assert none["how"] == "unknown" and "none of" in none["why"]
    bare = step_to_samples.answer(write(tmp_path / "t", rows(70), {"lr": 0.1}), 5)
    assert bare["how"] == "unknown" and "batch size" in bare["why"]


def test_file_order_where_config_says_so(tmp_path: Path) -> None:
    run = write(tmp_path / "r", rows(40), {"batch_size": 5, "shuffle": False, "num_samples": 52})
    assert step_to_samples.answer(run, 3)["samples"] == [15, 16, 17, 18, 19]
    second = step_to_samples.answer(run, 10)  # 50 and 51 make a last short batch, or are dropped
    assert second["how"] == "unknown" and len(second["choices"]) == 2
    run = write(tmp_path / "s", [r | {"epoch": r["step"] // 10} for r in rows(40)], {"batch_size": 5, "shuffle": False, "num_samples": 52})
    assert step_to_samples.answer(run, 10)["samples"] == [0, 1, 2, 3, 4] and "'epoch' grows" in step_to_samples.answer(run, 10)["why"]


def test_a_spike_that_recurs_tells_the_loader(tmp_path: Path) -> None:
    """No ids at all: under the right order the same sample is in the batch of every spike."""
    n, size, seed, bad = 400, 8, 23, 123
    dealt = {s: epoch_permutations.order(n, "numpy", seed, s // 50)[s % 50 * size : (s % 50 + 1) * size].tolist() for s in range(300)}
    spiky = [r | {"loss": r["loss"] + (3 if bad in dealt[r["step"]] else 0)} for r in rows(300)]
    run = write(tmp_path / "r", spiky, {"num_samples": n, "batch_size": size, "seed": seed})
    for step in (7, 120, 299):
        found = step_to_samples.answer(run, step)
        assert (found["how"], found["samples"]) == ("rebuilt", dealt[step]), found["why"]
        assert 0.5 < found["confidence"] < 0.9 and "later epoch" in found["why"]


@pytest.mark.parametrize("again", ["continues", "begins the epoch again", "begins anew"])
def test_after_a_restart(tmp_path: Path, again: str) -> None:
    """Resumed at step 60 (epoch 2 of 25 steps each): what the loader did then shows in one recorded step."""
    n, size, seed = 200, 8, 4

    def batch(done: int) -> list[int]:
        return epoch_permutations.order(n, "numpy", seed, done // 25)[done % 25 * size : (done % 25 + 1) * size].tolist()

    shift = {"continues": 0, "begins the epoch again": 10, "begins anew": 60}[again]
    folder = tmp_path / "r"
    folder.mkdir()
    attempts = [rows(70), rows(120, first=60)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for attempt in attempts for r in attempt))
    (folder / "config.json").write_text(json.dumps({"num_samples": n, "batch_size": size, "seed": seed}))
    listed = [(0, batch(0)), (30, batch(30)), (75, batch(75 - shift)), (110, batch(110 - shift))]
    (folder / "order.jsonl").write_text("".join(json.dumps({"step": s, "sample_ids": b}) + "\n" for s, b in listed))
    run = forensics.read(str(folder))
    assert len(run.attempts) == 2
    for step in (62, 80, 119):
        found = step_to_samples.answer(run, step)
        assert (found["how"], found["samples"]) == ("rebuilt", batch(step - shift)), found["why"]


# --- the log's own clocks


@pytest.mark.parametrize(("length", "logged"), [(25, "share"), (40, "whole"), (33, "single")])
def test_the_length_of_an_epoch_from_the_log(tmp_path: Path, length: int, logged: str) -> None:
    epoch = {"share": lambda i: (i + 1) / length, "whole": lambda i: i // length, "single": lambda i: float(np.float32((i + 1) / length))}[
        logged
    ]
    run = write(tmp_path / "r", [r | {"epoch": epoch(r["step"])} for r in rows(160)], {"seed": 1})
    bounds = data_order_facts.epoch_length(run)
    assert bounds is not None and bounds[0] <= length <= bounds[1] and bounds[1] - bounds[0] < 1


def test_consumed_samples_counted_before_or_after_the_step(tmp_path: Path) -> None:
    for name, shift in (("before", 0), ("after", 1)):
        run = write(tmp_path / name, [r | {"consumed_samples": 16 * (r["step"] + shift)} for r in rows(30)], {"seed": 1})
        found = data_order_facts.consumed(run)
        assert found is not None and found.span(3, 0) == (48, 64)


# --- manifests


def tables(folder: Path) -> dict[str, Path]:
    found = {}
    texts = {
        "a.jsonl": "".join(json.dumps({"step": i, "sample_ids": [2 * i, 2 * i + 1], "shard": "s"}) + "\n" for i in range(5)),
        "b.csv": "step,sample\n" + "".join(f"{i},{2 * i + k}\n" for i in range(5) for k in range(2)),
        "c.json": json.dumps({str(i): [2 * i, 2 * i + 1] for i in range(5)}),
        "d.json": json.dumps([{"global_step": i, "indices": [2 * i, 2 * i + 1], "source": "web"} for i in range(5)]),
        "f.csv": "step,batch_id,shards,sample_ids\n" + "".join(f"{i},0-{i},a;b,{2 * i} {2 * i + 1}\n" for i in range(5)),
        "h.txt": "".join(f"step {i} | loss 2.0 | sample_ids=[{2 * i}, {2 * i + 1}]\n" for i in range(5)),
        "i.json": json.dumps({"steps": {str(i): {"samples": [2 * i, 2 * i + 1], "shard": "x"} for i in range(5)}}),
        "j.csv": "iteration,first_sample,last_sample\n" + "".join(f"{i},{2 * i},{2 * i + 1}\n" for i in range(5)),
        "k.csv": "iteration;start;end\n" + "".join(f"{i};{2 * i};{2 * i + 2}\n" for i in range(5)),
        "n.tsv": "step\tsample_id\trank\n" + "".join(f"{i}\t{2 * i}\t0\n{i}\t{2 * i + 1}\t1\n" for i in range(5)),
    }
    for name, text in texts.items():
        found[name] = folder / name
        found[name].write_text(text)
    found["e.parquet"] = folder / "e.parquet"
    pq.write_table(pa.table({"iteration": list(range(5)), "samples": [[2 * i, 2 * i + 1] for i in range(5)]}), found["e.parquet"])
    return found


def test_manifests_of_any_schema(tmp_path: Path) -> None:
    run = write(tmp_path / "r", rows(5), {"seed": 1})
    for name, path in tables(tmp_path).items():
        batch_manifest.attach(run, path)
        for step in range(5):
            found = step_to_samples.answer(run, step)
            assert (found["how"], found["samples"]) == ("recorded", [2 * step, 2 * step + 1]), name
            assert found["rests_on"][0].startswith(name)


@pytest.mark.parametrize(
    ("text", "samples", "shard"),
    [
        ('{"step": 3, "batch_id": 21}\n', [21], None),
        ('{"step": 3, "source": "wiki"}\n', [], "wiki"),
        ('{"step": 3, "sources": {"web": 3, "code": 1}}\n', [], "web, code"),
    ],
)
def test_batch_ids_and_sources_alone(tmp_path: Path, text: str, samples: list[int], shard: str | None) -> None:
    run = write(tmp_path / "r", rows(5), {"seed": 1})
    (tmp_path / "m.jsonl").write_text(text)
    batch_manifest.attach(run, tmp_path / "m.jsonl")
    found = step_to_samples.answer(run, 3)
    assert (found["how"], found["samples"], found["shard"]) == ("recorded", samples, shard)


def test_a_manifest_without_batches_is_refused_in_a_sentence(tmp_path: Path) -> None:
    run = write(tmp_path / "r", rows(5), {"seed": 1})
    for name, text in (("x.csv", "a,b\n1,2\n"), ("y.txt", "hello\n"), ("z.json", "{"), ("e.jsonl", "")):
        (tmp_path / name).write_text(text)
        with pytest.raises(ForensicsError, match=name):
            batch_manifest.attach(run, tmp_path / name)


def test_attempts_of_a_manifest() -> None:
    spans = [(0, 9), (5, 20)]
    assert batch_manifest.attempts_of([0, 8, 9, 5, 6, 20], [None] * 6, spans) == [0, 0, 0, 1, 1, 1]
    assert batch_manifest.attempts_of([0, 3, 7, 12], [None] * 4, spans) == [0, 0, 1, 1]
    assert batch_manifest.attempts_of([0, 0, 1, 1], [0, 1, 0, 1], [(0, 9)]) == [0, 0, 0, 0]


def test_the_command_line(tmp_path: Path) -> None:
    spiky = rows(300)
    spiky[180]["loss"] += 3
    write(tmp_path / "run", spiky, {"max_steps": 300})
    (tmp_path / "m.csv").write_text("step,first_sample,last_sample\n" + "".join(f"{i},{2 * i},{2 * i + 1}\n" for i in range(300)))
    run = CliRunner()
    unknown = json.loads(run.invoke(cli.main, ["batch", str(tmp_path / "run"), "--step", "180", "--json"]).stdout)
    assert unknown["how"] == "unknown" and set(unknown) >= {"step", "samples", "shard", "how", "confidence", "why"}
    words = ["batch", str(tmp_path / "run"), "--step", "180", "--batches", str(tmp_path / "m.csv")]
    assert json.loads(run.invoke(cli.main, [*words, "--json"]).stdout)["samples"] == [360, 361]
    assert "360, 361" in run.invoke(cli.main, words).stdout
    case = tmp_path / "c.json"
    words = [
        "--quiet",
        "analyze",
        str(tmp_path / "run"),
        "--batches",
        str(tmp_path / "m.csv"),
        "--json",
        str(case),
        "--out",
        str(tmp_path / "p.html"),
    ]
    assert run.invoke(cli.main, words).exit_code == 0
    document = json.loads(case.read_text())
    assert [(c["step"], c["samples"]) for c in document["culprits"]] == [(180, [360, 361])]
    assert document["spikes"][0]["batches"][0]["samples"] == [360, 361]
    assert "m.csv" in [s["path"].rpartition("/")[2] for s in document["sources"]]


def test_shards_from_a_list_of_shards(tmp_path: Path) -> None:
    shards = [{"name": f"part-{i}", "first": 10 * i, "count": 10} for i in range(5)]
    run = write(tmp_path / "r", rows(5), {"shards": shards}, {3: [4, 31], 4: [99]})
    assert step_to_samples.answer(run, 3)["shard"] == "part-0, part-3"
    assert step_to_samples.answer(run, 4)["shard"] is None


# --- whom the first cause blames


def cause(id: str, probability: float, *findings: str) -> Hypothesis:
    return Hypothesis(id, id, (Clue("x", 1.0, findings),), probability=probability)


def known(facts: type[BaseFacts], **values: Any) -> BaseFacts:
    """The facts of a finding, as far as the test knows them."""
    return facts(**{f.name: None for f in dataclasses.fields(facts)} | values)


def spike(start: int, peak: int, end: int | None, level: float = 1.5) -> Finding:
    facts = known(loss_spike.Facts, start=start, peak=peak, end=end, attempt=0, metric="loss.train", level=level)
    return Finding(f"loss_spike-{start}", "loss_spike", "", start, end, "warning", facts=facts)


def named(run: Any, *hypotheses: Hypothesis, findings: list[Finding], verdict: str = "unhealthy") -> list[int]:
    return [c["step"] for c in culprits(run, hypotheses, findings, verdict)]


def test_culprits(tmp_path: Path) -> None:
    data = rows(300)
    for i in range(100, 130):
        data[i]["loss"] += 2
    for i in range(130, 138):
        data[i]["loss"] += 0.4  # the model recovers: these batches are sound
    run = write(tmp_path / "r", data, {"seed": 1}, {i: [i] for i in range(300)})
    one, stretch, unknown = spike(180, 181, 183), spike(100, 102, 138), cause("unknown", 0.1)
    best = cause("bad_data_batch", 0.8, one.id)
    assert named(run, best, unknown, findings=[one, stretch]) == [180, 181]
    assert named(run, best, unknown, findings=[one], verdict="healthy") == []
    assert named(run, cause("lr_too_high", 0.8, one.id), best, findings=[one]) == []
    assert named(run, cause("bad_data_batch", 0.3, one.id), cause("unknown", 0.4), findings=[one]) == []
    pocket = named(run, cause("bad_data_pocket", 0.8, stretch.id), unknown, findings=[stretch])
    assert (pocket[0], pocket[-1]) == (100, 129)
    nan = Finding("nonfinite-50", "nonfinite", "", 50, 299, "critical", facts=known(nonfinite.Facts, first=50, attempt=0))
    assert named(run, cause("nan_from_sample", 0.4, nan.id), cause("unknown", 0.3), findings=[nan]) == [50]
    zero = Finding("zero_loss-60", "zero_loss", "", 60, 299, "critical", facts=known(zero_loss.Facts, step=60, from_start=False))
    masked = named(run, cause("labels_all_masked", 0.9, zero.id), unknown, findings=[zero])
    assert (masked[0], masked[-1]) == (60, 299) and len(masked) <= 32
    always = Finding("zero_loss-0", "zero_loss", "", 0, 299, "critical", facts=known(zero_loss.Facts, step=0, from_start=True))
    assert named(run, cause("labels_all_masked", 0.9, always.id), unknown, findings=[always]) == []


def test_the_confidence_of_a_culprit_is_the_causes(tmp_path: Path) -> None:
    run = write(tmp_path / "r", rows(300), {"seed": 1}, {i: [i] for i in range(300)})
    one = spike(180, 180, 181)
    found = culprits(run, [cause("bad_data_batch", 0.8, one.id)], [one])
    assert [(c["samples"], c["how"], c["confidence"]) for c in found] == [([180], "recorded", 0.8)]

"""JSON lines: steps, times, batches, config, events, and what damage costs."""

import json
import math
import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import parsers
from parsers.formats import jsonl
from parsers.records import line_blocks, tolerant_json
from parsers.tables import HEAD_BYTES, Gap, Note, table_of


def read(path: Path, content: bytes | str | list[Any]) -> SimpleNamespace:
    """Writes a file, checks that it is claimed, and reads it into lists of rows."""
    if isinstance(content, list):
        content = "".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in content)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert jsonl.claims(path, path.read_bytes()[:HEAD_BYTES])
    found = SimpleNamespace(metrics=[], batches=[], config=[], events=[], gaps=[], notes=[])
    for item in jsonl.parse(path):
        if isinstance(item, Gap):
            found.gaps.append(item)
        elif isinstance(item, Note):
            found.notes.append(item.text)
        else:
            getattr(found, table_of(item)).extend(item.to_pylist())
    return found


def curve(found: SimpleNamespace, tag: str) -> list[tuple[int | None, float]]:
    return [(r["step"], r["value"]) for r in found.metrics if r["tag"] == tag]


def test_numbers_of_all_spellings_are_kept_as_logged(tmp_path: Path) -> None:
    rows = [
        '{"step": 1, "loss": 0.5, "lr": "1e-4"}',
        '{"step": 2, "loss": NaN, "lr": null}',
        '{"step": 3, "loss": -Infinity, "lr": 2}',
        '{"step": 4, "loss": "nan", "ok": true, "name": "x"}',
    ]
    found = read(tmp_path / "log.jsonl", rows)
    loss = curve(found, "loss")
    assert [s for s, _ in loss] == [1, 2, 3, 4]
    assert math.isnan(loss[1][1])
    assert loss[2][1] == -math.inf
    assert math.isnan(loss[3][1])
    assert curve(found, "lr") == [(1, 1e-4), (3, 2.0)]
    assert {r["tag"] for r in found.metrics} == {"loss", "lr"}
    assert [r["at"] for r in found.metrics if r["tag"] == "loss"] == [1, 2, 3, 4]
    assert not found.gaps


@pytest.mark.parametrize("key", ["global_step", "Step", "_step", "trainer/global_step", "iteration", "num_updates", "current_steps"])
def test_the_step_column_is_known_by_name_and_is_no_metric(tmp_path: Path, key: str) -> None:
    found = read(tmp_path / "log.jsonl", [{"loss": 1.0, key: 7, "epoch": 0.5}, {"loss": 0.5, key: 9, "epoch": 0.6}])
    assert curve(found, "loss") == [(7, 1.0), (9, 0.5)]
    assert curve(found, "epoch") == [(7, 0.5), (9, 0.6)]
    assert key not in {r["tag"] for r in found.metrics}


def test_the_optimizer_step_wins_over_the_writers_own_counter(tmp_path: Path) -> None:
    found = read(tmp_path / "log.jsonl", [{"_step": 3, "trainer/global_step": 99, "loss": 1.0}])
    assert curve(found, "loss") == [(99, 1.0)]


@pytest.mark.parametrize(
    ("text", "values"),
    [("0.25/0.5/0.25", [0.25, 0.5, 0.25]), ("[0.25, 0.5, 0.25]", [0.25, 0.5, 0.25]), ("0.25/0.75", []), ("2.11.0/0.5/1.0", [])],
)
def test_a_text_of_three_fractions_is_a_list(tmp_path: Path, text: str, values: list[float]) -> None:
    found = read(tmp_path / "log.jsonl", [{"step": i, "loss": 1.5, "load": text} for i in (1, 2)])
    assert [curve(found, f"load/{i}") for i in range(3)] == ([[(1, x), (2, x)] for x in values] or [[], [], []])


def test_nested_keys_lists_and_a_nested_step(tmp_path: Path) -> None:
    row = {"state": {"step": 4}, "train": {"loss": 1.5, "lr": [0.1, 0.2]}, "big": list(range(100))}
    found = read(tmp_path / "log.jsonl", [row])
    assert {(r["step"], r["tag"], r["value"]) for r in found.metrics} == {
        (4, "train/loss", 1.5),
        (4, "train/lr/0", 0.1),
        (4, "train/lr/1", 0.2),
    }
    assert any("big" in n for n in found.notes)


def test_steps_that_repeat_stay_in_file_order(tmp_path: Path) -> None:
    found = read(tmp_path / "log.jsonl", [{"step": s, "epoch": 0, "loss": float(i)} for i, s in enumerate([1, 2, 3, 2, 3])])
    assert curve(found, "loss") == [(1, 0.0), (2, 1.0), (3, 2.0), (2, 3.0), (3, 4.0)]


def test_mmcv_iterations_restart_and_validation_follows_training(tmp_path: Path) -> None:
    rows: list[Any] = [{"env_info": "Linux", "config": "model = dict()", "seed": 0}]
    for epoch in (1, 2):
        rows += [{"mode": "train", "epoch": epoch, "iter": i, "loss": epoch + i / 100} for i in (50, 100)]
        rows += [{"mode": "val", "epoch": epoch, "iter": 625, "loss": 9.0, "bbox_mAP": epoch / 10}]
    found = read(tmp_path / "None.log.json", rows)
    assert curve(found, "loss") == [(50, 1.5), (100, 2.0), (150, 2.5), (200, 3.0)]
    assert curve(found, "val/loss") == [(100, 9.0), (200, 9.0)]
    assert curve(found, "val/bbox_mAP") == [(100, 0.1), (200, 0.2)]
    assert {c["key"] for c in found.config} == {"env_info", "config", "seed"}
    assert any("100 steps" in n for n in found.notes)


def test_zero_based_batches_of_each_epoch_are_laid_end_to_end(tmp_path: Path) -> None:
    found = read(tmp_path / "log.jsonl", [{"epoch": e, "batch": b, "loss": 1.0} for e in range(3) for b in range(4)])
    assert [s for s, _ in curve(found, "loss")] == list(range(12))


def test_mmengine_validation_counts_epochs_as_steps(tmp_path: Path) -> None:
    rows: list[Any] = [{"loss": 1.0, "epoch": 1, "iter": i, "step": i} for i in (50, 100)]
    rows += [{"coco/bbox_mAP": 0.1, "step": 1}]
    found = read(tmp_path / "scalars.json", rows)
    assert curve(found, "coco/bbox_mAP") == [(100, 0.1)]


def test_without_steps_whole_epochs_count_else_rows(tmp_path: Path) -> None:
    by_epoch = read(tmp_path / "log.txt", [{"train_loss": 2.0, "epoch": 3}, {"train_loss": 1.0, "epoch": 4}])
    assert curve(by_epoch, "train_loss") == [(3, 2.0), (4, 1.0)]
    by_row = read(tmp_path / "a.jsonl", [{"loss": 2.0, "epoch": 0.1}, {"loss": 1.0, "epoch": 0.2}])
    assert curve(by_row, "loss") == [(0, 2.0), (1, 1.0)]


@pytest.mark.parametrize(
    ("key", "value", "seconds"),
    [
        ("timestamp", "2024-01-01T00:00:00+00:00", 1704067200.0),
        ("ts", 1704067200500, 1704067200.5),
        ("_timestamp", 1704067200.25, 1704067200.25),
        ("time", "2024-01-01 01:00:00+01:00", 1704067200.0),
        ("asctime", "2024-01-01 00:00:00,250", 1704067200.25),
        ("date", "2024-01-01_00-00-00", 1704067200.0),
    ],
)
def test_wall_times(tmp_path: Path, key: str, value: Any, seconds: float) -> None:
    found = read(tmp_path / "log.jsonl", [{"step": 1, key: value, "loss": 1.0}])
    assert [(r["tag"], r["time"]) for r in found.metrics] == [("loss", seconds)]


def test_seconds_since_the_start_are_a_metric_and_no_time(tmp_path: Path) -> None:
    found = read(tmp_path / "log.jsonl", [{"step": 1, "time": 0.158, "loss": 1.0}])
    assert {(r["tag"], r["time"]) for r in found.metrics} == {("time", None), ("loss", None)}


def test_ranks_come_from_rows_or_from_the_file_name(tmp_path: Path) -> None:
    rows = read(tmp_path / "log.jsonl", [{"step": 1, "rank": 0, "loss": 1.0}, {"step": 1, "rank": 3, "loss": 2.0}])
    assert [r["rank"] for r in rows.metrics] == [0, 3]
    assert [r["rank"] for r in read(tmp_path / "log_rank5.jsonl", [{"step": 1, "loss": 1.0}]).metrics] == [5]


@pytest.mark.parametrize(
    "row",
    [
        {"step": 4, "epoch": 0, "batch_id": "0-4", "sample_ids": [7, 8], "shards": ["a", "b", "c"]},
        {"global_step": 4, "epoch": 0.1, "indices": [7, 8], "files": ["a", "b", "c"]},
        {"step": 4, "batch_idx": 4, "idx": [7, 8]},
        {"step": 4, "batch": {"ids": [7, 8]}},
        {"step": 4, "samples": [[7], [8]]},
    ],
)
def test_manifests_become_batches_and_no_metrics(tmp_path: Path, row: dict[str, Any]) -> None:
    found = read(tmp_path / "order.jsonl", [row])
    samples = [r for r in found.batches if r["sample"] is not None]
    assert [(r["step"], r["position"], r["sample"], r["how"]) for r in samples] == [(4, 0, "7", "recorded"), (4, 1, "8", "recorded")]
    assert {r["shard"] for r in found.batches if r["sample"] is None} in ({"a", "b", "c"}, set())
    assert not found.metrics


def test_ids_beside_metrics_and_shards_that_match(tmp_path: Path) -> None:
    rows = [
        {"step": 1, "loss": 0.5, "data/sample_ids": ["x", "y"], "shard": "s"},
        {"step": 2, "loss": 0.4, "data/sample_ids": ["z", "w"], "shard": "t"},
    ]
    found = read(tmp_path / "train.jsonl", rows)
    assert [(r["step"], r["sample"], r["shard"]) for r in found.batches] == [(1, "x", "s"), (1, "y", "s"), (2, "z", "t"), (2, "w", "t")]
    assert curve(found, "loss") == [(1, 0.5), (2, 0.4)]
    each = read(tmp_path / "b.jsonl", [{"step": 1, "samples": [{"id": "a", "shard": "s1"}, {"id": "b", "shard": "s2"}]}])
    assert [(r["sample"], r["shard"]) for r in each.batches] == [("a", "s1"), ("b", "s2")]
    single = read(tmp_path / "c.jsonl", [{"step": 1, "position": p, "sample_id": f"d{p}", "source": "web"} for p in (1, 0)])
    assert [(r["position"], r["sample"], r["shard"]) for r in single.batches] == [(1, "d1", "web"), (0, "d0", "web")]


def test_a_sorted_set_of_as_many_shards_is_not_paired_with_samples(tmp_path: Path) -> None:
    found = read(tmp_path / "order.jsonl", [{"step": 1, "sample_ids": [900, 3], "shards": ["s-00", "s-09"]}])
    assert [(r["sample"], r["shard"]) for r in found.batches] == [("900", None), ("3", None), (None, "s-00"), (None, "s-09")]


def test_ray_results_give_their_config_once(tmp_path: Path) -> None:
    rows = [
        {"training_iteration": i, "timestamp": 1700000000 + i, "config": {"lr": 0.1, "net": {"dim": 3}}, "mean_loss": 1.0 / i}
        for i in (1, 2)
    ]
    found = read(tmp_path / "result.json", rows)
    assert curve(found, "mean_loss") == [(1, 1.0), (2, 0.5)]
    assert [(c["key"], c["value"]) for c in found.config] == [("lr", "0.1"), ("net.dim", "3")]


def test_headers_messages_and_footers(tmp_path: Path) -> None:
    rows = [
        {"type": "header", "trainer_type": "dpo", "config": {"every": 1}},
        {"step": 1, "loss": 1.0},
        {"ts": "2024-01-01T00:00:00Z", "level": "ERROR", "message": "out of memory, HF_TOKEN=hf_abcdefghijklmnopqrstuvwx"},
        {"type": "footer", "status": "completed", "total_steps": 1},
    ]
    found = read(tmp_path / "log.jsonl", rows)
    assert {c["key"] for c in found.config} == {"type", "trainer_type", "every"}
    error, footer = sorted(found.events, key=lambda e: e["at"])
    assert (error["level"], error["time"], error["at"]) == ("error", 1704067200.0, 3)
    assert "hf_" not in error["text"]
    assert (footer["kind"], footer["step"]) == ("footer", None)
    assert "completed" in footer["text"]


def test_a_launch_that_names_what_it_resumes_from(tmp_path: Path) -> None:
    rows = [{"step": s, "loss": 1.0} for s in (1, 2)]
    told = [{"event": "start", "resume_from": source, "step": 2} for source in ("ckpt/last.pt", None)]
    found = read(tmp_path / "log.jsonl", [*rows, *told, {"step": 3, "loss": 1.0}])
    assert [(e["kind"], e["step"]) for e in found.events] == [("resume", 2), ("start", 2)]


def test_a_launch_that_says_that_it_was_resumed(tmp_path: Path) -> None:
    told = [{"event": "start", "step": 2, "resumed": again} for again in (False, True)]
    found = read(tmp_path / "log.jsonl", [*told, *({"step": s, "loss": 1.0} for s in (3, 4))])
    assert [e["kind"] for e in found.events] == ["start", "resume"]


def test_a_list_with_a_number_for_each_rank(tmp_path: Path) -> None:
    rows = read(tmp_path / "log.jsonl", [{"step": s, "rank_norm": [1.5, 1.5 + s], "betas": [0.9, 0.99]} for s in (1, 2)])
    assert {m["tag"] for m in rows.metrics} == {"rank0/norm", "rank1/norm", "betas/0", "betas/1"}


def test_a_count_that_goes_up_and_down_is_how_long_episodes_were(tmp_path: Path) -> None:
    long = [17, 36, 39, 23, 52, 31, 44, 18, 29, 33]
    rows = read(tmp_path / "log.jsonl", [{"episode": i, "reward": 1.0 * i, "steps": n} for i, n in enumerate(long)])
    assert [s for s, _ in curve(rows, "reward")] == list(range(10))
    again = read(tmp_path / "again.jsonl", [{"steps": s, "loss": 1.0} for s in [*range(10, 60, 10), *range(30, 80, 10)]])
    assert [s for s, _ in curve(again, "loss")] == [*range(10, 60, 10), *range(30, 80, 10)]  # it was resumed


def test_long_format(tmp_path: Path) -> None:
    long = read(tmp_path / "a.jsonl", [{"step": s, "name": n, "value": s * 2.0} for s in (1, 2) for n in ("loss", "acc")])
    assert curve(long, "loss") == curve(long, "acc") == [(1, 2.0), (2, 4.0)]


def test_each_bad_line_costs_itself(tmp_path: Path) -> None:
    rows = [
        '{"step": 1, "loss": 1.0}',
        "garbage",
        '{"step": 2, "loss": 2.0}{"step": 3, "loss": 3.0}',
        '{"step": 4, "lo',
        '{"step": 5, "loss": 5.0}',
        '\x00\x00\x00{"step": 6, "loss": 6.0}',
        '{"step": 7, "metrics": {"loss": 7.0}, "x',
    ]
    found = read(tmp_path / "log.jsonl", rows)
    assert curve(found, "loss") == [(1, 1.0), (2, 2.0), (3, 3.0), (5, 5.0), (6, 6.0)]
    assert sorted((g.at, g.lost or 0) for g in found.gaps) == [("line 2", 1), ("line 4", 1), ("line 6", 0), ("line 7", 1)]
    assert [r["at"] for r in found.metrics if r["step"] in (2, 3)] == [3, 3]


def test_text_between_the_objects_tells_how_it_ended(tmp_path: Path) -> None:
    stack = ["Traceback (most recent call last):", '  File "train.py", line 9, in <module>', "    step()", "ValueError: two shapes differ"]
    (tmp_path / "rank3.log").write_text("\n".join(['{"step": 1, "loss": 1.0}', '{"step": 2, "loss": 0.9}', *stack]) + "\n")
    run = parsers.read(tmp_path)
    (event,) = (e for e in run.tables["events"].to_pylist() if e["kind"] == "traceback")
    assert event["text"].startswith("ValueError: two shapes differ") and (event["at"], event["rank"]) == (3, 3)
    assert not run.gaps


def test_a_stretch_of_garbage_is_one_gap(tmp_path: Path) -> None:
    found = read(tmp_path / "log.jsonl", [{"step": 1, "loss": 1.0}, *["garbage"] * 5000, {"step": 2, "loss": 2.0}])
    assert [(g.at, g.lost) for g in found.gaps] == [("line 2", 5000)]
    assert curve(found, "loss") == [(1, 1.0), (2, 2.0)]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_encodings_and_line_ends(tmp_path: Path, encoding: str, newline: str) -> None:
    text = newline.join(f'{{"step": {i}, "loss": {i}.5}}' for i in range(3)) + newline
    data = text.encode(encoding)
    if encoding == "utf-16-be":
        data = b"\xfe\xff" + data
    found = read(tmp_path / "log.jsonl", data)
    assert curve(found, "loss") == [(0, 0.5), (1, 1.5), (2, 2.5)]
    assert not found.gaps


def test_the_end_of_a_crash_is_zero_bytes(tmp_path: Path) -> None:
    found = read(tmp_path / "log.jsonl", b'{"step": 1, "loss": 1.0}\n' + b"\0" * 4096)
    assert curve(found, "loss") == [(1, 1.0)]
    assert [g.at for g in found.gaps] == ["line 2"]


def test_every_cut_keeps_every_whole_line(tmp_path: Path) -> None:
    lines = [json.dumps({"step": i, "loss": i / 3}) for i in range(4)]
    data = ("\n".join(lines) + "\n").encode()
    for cut in range(len(lines[0]) + 1, len(data)):
        whole = [i for i in range(4) if len("\n".join(lines[: i + 1])) <= cut]
        found = read(tmp_path / "log.jsonl", data[:cut])
        assert curve(found, "loss") == [(i, i / 3) for i in whole]


def test_nesting_without_end_and_keys_without_number(tmp_path: Path) -> None:
    deep = '{"step": 1, "a": ' + '{"a": ' * 5000 + "1" + "}" * 5001
    found = read(tmp_path / "log.jsonl", [deep, {"step": 2, "loss": 1.0}])
    assert curve(found, "loss") == [(2, 1.0)]
    assert [g.at for g in found.gaps] == ["line 1"]
    wide = read(tmp_path / "wide.jsonl", [{"step": i, f"k{i}": 1.0} for i in range(6000)])
    assert len({r["tag"] for r in wide.metrics}) == 6000


def test_many_blocks_keep_their_line_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_blocks, "FIRST_BLOCK", 100)
    monkeypatch.setattr(line_blocks, "BLOCK", 100)
    found = read(tmp_path / "log.jsonl", [{"step": i, "loss": i / 2} for i in range(500)])
    assert [(r["step"], r["at"]) for r in found.metrics] == [(i, i + 1) for i in range(500)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("notes.txt", "loss: 1\n"),
        ("train.log", '{"step": 1, "loss": 2}\nEpoch 1 done\n'),
        ("a.json", '{\n "a": 1\n}\n'),
        ("wandb/run-20240101_000000-abc/files/x.jsonl", '{"step": 1}\n'),
        ("a.jsonl", "version https://git-lfs.github.com/spec/v1\n"),
    ],
)
def test_what_is_not_claimed(name: str, text: str) -> None:
    assert not jsonl.claims(Path(name), text.encode())


def test_half_a_surrogate_pair_is_replaced() -> None:
    assert tolerant_json.loads(b'{"a": "\\ud800", "b": "\\ud83d\\ude00"}') == {"a": "\ufffd", "b": "\U0001f600"}


def test_the_manifests_of_the_zoo_are_whole() -> None:
    runs = Path(__file__).parents[2].parent / "shared" / "open" / "zoo" / "runs"
    if not runs.exists():
        pytest.skip("no shared data here")
    files = sorted(runs.rglob("data_order.jsonl"))
    for path in files[:5]:
        rows = [json.loads(line) for line in path.open()]
        ids = [str(i) for r in rows for k in ("ids", "idx", "indices", "sample_ids") for i in r.get(k, [])]
        got = [s for b in jsonl.parse(path) if not isinstance(b, (Gap, Note)) for s in b.to_pydict()["sample"] if s is not None]
        assert got == ids
    assert files


def test_ray_tune_calls_a_pickle_json(tmp_path: Path) -> None:
    path = tmp_path / "searcher-state-2026-03-01_10-00-00.json"
    path.write_bytes(pickle.dumps({"_trials": [1, 2]}))
    found = parsers.read(tmp_path)
    assert (found.sources[0].format, found.gaps) == ("pickle, not opened", [])


def test_a_total_that_never_changes_is_the_plan_and_no_step(tmp_path: Path) -> None:
    rows = [{"timestep": 100 * i, "total_timesteps": 9000, "loss": 1.0} for i in range(1, 4)]
    found = read(tmp_path / "a.jsonl", rows)
    assert curve(found, "loss") == [(100 * i, 1.0) for i in range(1, 4)]
    found = read(tmp_path / "b.jsonl", [{"total_timesteps": 2048 * i, "loss": 1.0} for i in range(1, 4)])
    assert curve(found, "loss") == [(2048 * i, 1.0) for i in range(1, 4)]


def test_a_key_of_one_letter_that_every_row_counts_up_is_the_step(tmp_path: Path) -> None:
    rows = [{"s": 5 * i, "nll": 4.5 - i / 10, "gnorm": 0.5} for i in range(1, 21)]
    rows[10:10] = [{"s": 50, "heldout_nll": 4.1}]
    found = read(tmp_path / "m.jsonl", rows)
    assert curve(found, "nll")[-1] == (100, 2.5) and curve(found, "heldout_nll") == [(50, 4.1)]
    assert any("'s'" in n for n in found.notes)


@pytest.mark.parametrize(
    "rows",
    [
        [{"n": [3, 9, 1, 7, 2, 8][i % 6], "loss": 2.0 - i / 20} for i in range(12)],  # goes up and down
        [{"n": 7, "loss": 2.0 - i / 20} for i in range(12)],  # stands still
        [{"n": i * i, "loss": 2.0 - i / 20} for i in range(12)],  # rises by no one amount
        [{"n": 2 * i, "loss": 2.0} if i % 2 else {"loss": 2.0} for i in range(12)],  # not in every row
        [{"epoch": i, "n": 64 * i, "loss": 2.0} for i in range(12)],  # the epoch is the step
    ],
)
def test_other_keys_of_one_letter_are_no_step(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    found = read(tmp_path / "m.jsonl", rows)
    assert sorted(s for s, _ in curve(found, "loss") if s is not None) == list(range(12))


def test_rows_say_in_parts_of_a_word_that_they_are_an_evaluation_or_a_header(tmp_path: Path) -> None:
    rows: list[Any] = [{"evt": "fit.start", "model": "mlp", "rate": 0.001, "n_steps": 1500}]
    rows += [{"evt": "fit.step", "n": 10 * i, "bce": 0.7 - i / 100} for i in range(1, 9)]
    rows += [{"evt": "fit.valid", "n": 80, "bce": 0.71, "auc": 0.8}]
    found = read(tmp_path / "events.jsonl", rows)
    assert {c["key"] for c in found.config} >= {"rate", "n_steps"}
    assert curve(found, "valid/bce") == [(80, 0.71)] and curve(found, "bce")[-1] == (80, 0.62)


STACK = 'Traceback (most recent call last):\n  File "/src/train.py", line 7, in main\n    x[3]\nIndexError: list index out of range'


@pytest.mark.parametrize(
    ("row", "kind", "level"),
    [
        ({"level": "error", "message": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"}, "oom", "error"),
        ({"level": "ERROR", "message": "training failed", "exc_info": STACK}, "traceback", "error"),
        (
            {"lvl": "error", "evt": "dmesg", "attempt": 1, "line": "NVRM: Xid (PCI:0000:c1:00): 79, GPU has fallen off the bus."},
            "hardware",
            "error",
        ),
        ({"event": "crash", "error": "RuntimeError: CUDA error: an illegal memory access was encountered"}, "hardware", "error"),
        ({"step": 30, "loss": 0.1, "error": "torch.OutOfMemoryError: CUDA out of memory."}, "oom", "error"),
        (
            {"level": "critical", "step": 30, "loss": 0.1, "msg": "CUDA error: an illegal memory access was encountered"},
            "hardware",
            "error",
        ),
        ({"level": "info", "message": "Training finished"}, "finished", "info"),
        ({"level": "info", "event": "shard_ready", "message": "no oom so far"}, "shard_ready", "info"),
        ({"level": "info", "message": "all is well"}, "log", "info"),
    ],
)
def test_a_message_says_what_a_line_of_a_console_would(tmp_path: Path, row: dict[str, Any], kind: str, level: str) -> None:
    rows = [{"step": i, "loss": 2 / (1 + i)} for i in range(30)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(r) + "\n" for r in [*rows, row]))
    (event,) = parsers.read(tmp_path).tables["events"].to_pylist()
    assert (event["kind"], event["level"]) == (kind, level)


def test_counters_beside_a_state_are_measurements_and_no_events(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text("".join(json.dumps({"phase": "load", "rows": i}) + "\n" for i in range(5)))
    assert parsers.read(tmp_path).tables["events"].num_rows == 0


def test_rows_of_an_agent_that_watches_are_no_steps(tmp_path: Path) -> None:
    def write(name: str, **more: float) -> list[int | None]:
        rows = [{"ts": 1775116800.0 + 60 * i, "evt": "heartbeat", "attempt": 1, "cpu_pct": 0.3} | more for i in range(5)]
        (tmp_path / name).write_text("".join(json.dumps(r) + "\n" for r in rows))
        found: list[int | None] = parsers.read(tmp_path / name).tables["metrics"]["step"].to_pylist()
        return sorted(set(found), key=str)

    assert write("agent.jsonl") == [None]
    assert write("loop.jsonl", loss=0.5) == [0, 1, 2, 3, 4]

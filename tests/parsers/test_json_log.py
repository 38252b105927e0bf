"""Whole JSON documents: which numbers are metrics, which are settings, and what is left alone."""

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import forensics
from parsers.formats import config_file, json_log, jsonl, trainer_state
from parsers.tables import HEAD_BYTES, Gap, Note, table_of


def read(path: Path, content: Any) -> SimpleNamespace:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    assert json_log.claims(path, path.read_bytes()[:HEAD_BYTES])
    found = SimpleNamespace(metrics=[], config=[], events=[], batches=[], gaps=[], notes=[])
    for item in json_log.parse(path):
        if isinstance(item, Gap):
            found.gaps.append(item)
        elif isinstance(item, Note):
            found.notes.append(item.text)
        else:
            getattr(found, table_of(item)).extend(item.to_pylist())
    return found


def points(found: SimpleNamespace) -> set[tuple[int | None, str, float]]:
    return {(r["step"], r["tag"], r["value"]) for r in found.metrics}


@pytest.mark.parametrize(
    "document",
    [
        [{"step": 1, "loss": 2.0}, {"step": 2, "loss": 1.0}],
        {"log_history": [{"step": 1, "loss": 2.0}, {"step": 2, "loss": 1.0}]},
        {"step": [1, 2], "loss": [2.0, 1.0]},
        {"history": {"step": [1, 2], "loss": [2.0, 1.0]}},
        {"1": {"loss": 2.0}, "2": {"loss": 1.0}},
        {"loss": {"1": 2.0, "2": 1.0}},
        {"loss": {"steps": [1, 2], "timestamps": ["2024-01-01T00:00:00", "2024-01-01T00:00:01"], "values": [2.0, 1.0]}},
    ],
)
def test_shapes_that_say_the_same(tmp_path: Path, document: Any) -> None:
    assert points(read(tmp_path / "metrics.json", document)) == {(1, "loss", 2.0), (2, "loss", 1.0)}


@pytest.mark.parametrize(("name", "tag"), [("train.txt", "train"), ("val_loss.json", "val_loss")])
def test_a_list_of_numbers_is_a_curve_that_its_file_names(name: str, tag: str, tmp_path: Path) -> None:
    curve = [2.5 / n for n in range(1, 9)]
    assert [(t, value) for _, t, value in sorted(points(read(tmp_path / name, json.dumps(curve))))] == [(tag, v) for v in curve]
    assert not points(read(tmp_path / "ids.json", json.dumps([5, 3, 2, 8, 1, 4])))


@pytest.mark.parametrize("name", ["log", "log.txt", "history.log"])  # Chainer's LogReport calls its own "log"
def test_a_table_in_json_is_known_whatever_its_extension(tmp_path: Path, name: str) -> None:
    rows = [{"main/loss": 2.0 / n, "validation/main/loss": 3.0 / n, "iteration": 100 * n} for n in range(1, 200)]
    found = read(tmp_path / name, json.dumps(rows, indent=4))
    assert points(found) == {(r["iteration"], k, r[k]) for r in rows for k in ("main/loss", "validation/main/loss")}
    assert len(read(tmp_path / name, json.dumps({"loss": [1.0, 0.5], "val_loss": [1.5, 1.25]}, indent=1)).metrics) == 6  # and its epochs


def test_catboost_names_the_columns_of_its_rows_above_them(tmp_path: Path) -> None:
    meta = {"learn_metrics": [{"name": "Logloss"}], "test_metrics": [{"name": "Logloss"}, {"name": "AUC"}]}
    rows = [{"learn": [0.5 / i], "iteration": i, "test": [0.6 / i, 0.25 * i]} for i in (1, 2)]
    found = read(tmp_path / "catboost_training.json", {"meta": meta, "iterations": rows})
    assert points(found) == {
        (i, t, v) for i in (1, 2) for t, v in (("train/Logloss", 0.5 / i), ("test/Logloss", 0.6 / i), ("test/AUC", 0.25 * i))
    }
    other = read(tmp_path / "other.json", {"meta": {"learn_metrics": "Logloss"}, "iterations": rows})
    assert not any(t.startswith("train/") for _, t, _ in points(other))


def test_rounds_of_boosted_trees_are_kept_by_data_set(tmp_path: Path) -> None:
    rounds = {"train": {"ndcg@5": [0.25, 0.5]}, "valid_0": {"ndcg@5": [0.125, 0.25]}}
    assert points(read(tmp_path / "evals_result.json", rounds)) == {
        (i, f"{data}/ndcg@5", x) for data, of in rounds.items() for i, x in enumerate(of["ndcg@5"])
    }
    for other in (
        {"adam": {"betas": [0.9, 0.95]}, "train": {"size": [3, 4]}},
        {"train": {"crop": [224, 224]}, "test": {"mean": [0.5, 0.25]}},
    ):
        assert not read(tmp_path / "evals_result.json", other).metrics


@pytest.mark.parametrize(
    "text", ['{"betas": [0.9, 0.95], "lr": 0.1}\nstep 1 loss 2.5\nstep 2 loss 2.4\n', '[{"lr": 0.1}]\nstep 1 loss 2.5\n']
)
def test_settings_that_a_log_begins_with_are_no_table(tmp_path: Path, text: str) -> None:
    assert not json_log.claims(tmp_path / "train.log", text.encode())


def test_a_history_with_an_evaluation_beside_each_value_counts_epochs(tmp_path: Path) -> None:
    """Keras evaluates behind each epoch, and its console counts them from 1 on."""
    (tmp_path / "history.json").write_text(json.dumps({"loss": [3.0, 2.0, 1.0], "val_loss": [3.5, 2.5, 1.5]}))
    (tmp_path / "console.txt").write_text(
        "".join(f"Epoch {i}/3\n24/24 [====] - 2s - loss: {4 - i}.0000 - val_loss: {4 - i}.5000\n" for i in (1, 2, 3))
    )
    run = forensics.read(str(tmp_path))
    assert len(run.attempts) == 1 and {s for s in run.tables["metrics"]["step"].to_pylist() if s is not None} <= {24, 48, 72}


def test_keras_history_counts_epochs_and_keeps_its_settings(tmp_path: Path) -> None:
    found = read(tmp_path / "history.json", {"loss": [1.0, 0.5], "val_loss": [1.5], "optimizer": "adam"})
    assert points(found) == {(0, "loss", 1.0), (1, "loss", 0.5), (0, "val_loss", 1.5)}
    assert [(c["key"], c["value"]) for c in found.config] == [("optimizer", '"adam"')]


def test_sacred_times_and_bare_nan(tmp_path: Path) -> None:
    found = read(tmp_path / "metrics.json", '{"train.loss": {"steps": [3], "timestamps": ["2024-01-01T00:00:00.5"], "values": [NaN]}}')
    (row,) = found.metrics
    assert (row["step"], row["tag"], row["time"]) == (3, "train.loss", 1704067200.5)
    assert math.isnan(row["value"])


def test_tensorboard_download(tmp_path: Path) -> None:
    found = read(tmp_path / "run_loss.json", [[1700000000.5, 10, 0.5], [1700000001.5, 20, 0.25]])
    assert [(r["step"], r["tag"], r["value"], r["time"]) for r in found.metrics] == [
        (10, "run_loss", 0.5, 1700000000.5),
        (20, "run_loss", 0.25, 1700000001.5),
    ]


def test_nested_tables_carry_their_names(tmp_path: Path) -> None:
    document = {"train": [{"step": 1, "loss": 2.0}], "val": {"history": [{"step": 1, "loss": 3.0}]}, "seed": 4}
    found = read(tmp_path / "run.json", document)
    assert points(found) == {(1, "train/loss", 2.0), (1, "val/loss", 3.0)}
    assert [(c["key"], c["value"]) for c in found.config] == [("seed", "4")]


def test_summaries_split_into_results_and_settings(tmp_path: Path) -> None:
    found = read(
        tmp_path / "final.json", {"val_loss": 0.5, "seed": 42, "loss_weight": 2.0, "step": 7, "name": "x", "best": {"accuracy": 0.9}}
    )
    assert points(found) == {(7, "val_loss", 0.5), (7, "best/accuracy", 0.9)}
    assert {c["key"] for c in found.config} == {"seed", "loss_weight", "step", "name"}


def test_the_state_of_a_checkpoint_is_measured_at_its_step(tmp_path: Path) -> None:
    found = read(tmp_path / "state.json", {"step": 600, "epoch": 0.25, "samples_seen": 3200, "loss_scale": None})
    assert points(found) == {(600, "epoch", 0.25), (600, "samples_seen", 3200.0)}
    assert not found.config


def test_settings_without_a_telling_name(tmp_path: Path) -> None:
    found = read(
        tmp_path / "run_metadata.json", {"training_args": {"learning_rate": 1e-4, "betas": [0.9, 0.95]}, "api_key": "secret-value"}
    )
    assert {c["key"]: c["value"] for c in found.config} == {
        "training_args.learning_rate": "0.0001",
        "training_args.betas": "[0.9, 0.95]",
        "api_key": '"***"',
    }
    assert not found.metrics


def test_tracebacks_are_events(tmp_path: Path) -> None:
    found = read(
        tmp_path / "postmortem.json", {"exit_reason": "exception", "last_step": 20, "traceback": "Traceback ...\nCUDA out of memory"}
    )
    assert {(e["kind"], e["level"], e["step"]) for e in found.events} == {("exit_reason", "error", 20), ("traceback", "error", 20)}
    assert any("CUDA out of memory" in e["text"] for e in found.events)


@pytest.mark.parametrize(
    "document",
    [
        {"batches": [{"step": 1, "ids": [5, 6], "shard": "s"}, {"step": 2, "ids": [7, 8], "shard": "s"}]},
        {"1": {"ids": [5, 6], "shard": "s"}, "2": {"ids": [7, 8], "shard": "s"}},
        {"step": [1, 2], "ids": [[5, 6], [7, 8]], "shard": ["s", "s"]},
    ],
)
def test_manifests(tmp_path: Path, document: Any) -> None:
    found = read(tmp_path / "data_index.json", document)
    assert [(r["step"], r["position"], r["sample"]) for r in found.batches] == [(1, 0, "5"), (1, 1, "6"), (2, 0, "7"), (2, 1, "8")]
    assert not found.metrics


def test_a_table_of_shards_is_one_setting(tmp_path: Path) -> None:
    shards = [{"name": f"part-{i}", "first": i * 96, "count": 96} for i in range(50)]
    found = read(tmp_path / "data_index.json", {"num_samples": 4800, "shards": shards})
    assert {c["key"]: json.loads(c["value"]) for c in found.config} == {"num_samples": 4800, "shards": shards}


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("vocab.json", {f"w{i}": i for i in range(5000)}),
        ("words.json", {f"w{i}": i for i in range(5000)}),
        ("model.safetensors.index.json", {"weight_map": {}}),
        ("coco.json", {"annotations": [{"image_id": i, "score": 0.5, "bbox": [1, 2, 3, 4]} for i in range(20_000)]}),
        ("data.json", [{"instruction": "a", "output": "b", "score": 1.0}] * 20_000),
        ("package.json", {"name": "x", "version": "1.0"}),
    ],
)
def test_what_is_no_log_is_a_note(tmp_path: Path, name: str, document: Any) -> None:
    found = read(tmp_path / name, document)
    assert not found.metrics
    assert not found.config
    assert found.notes


def test_a_cut_list_keeps_whole_rows(tmp_path: Path) -> None:
    text = json.dumps([{"epoch": i, "train_loss": i / 7} for i in range(6)], indent=1)
    ends = [m for m, c in enumerate(text) if c == "}"]
    for cut in range(ends[0] + 1, len(text)):
        found = read(tmp_path / "rows.json", text[:cut])
        assert [r["value"] for r in found.metrics if r["tag"] == "train_loss"] == [i / 7 for i in range(6) if ends[i] < cut]
        assert found.gaps


def test_damage_in_the_middle_costs_one_row(tmp_path: Path) -> None:
    rows = [json.dumps({"step": i, "loss": i / 7}) for i in range(6)]
    rows[2] = rows[2].replace('"loss"', '"lo\x01s')
    found = read(tmp_path / "rows.json", '{"runs": [\n' + ",\n".join(rows) + "]}")
    assert [r["step"] for r in found.metrics] == [0, 1, 3, 4, 5]
    assert [g.lost for g in found.gaps] == [1]


def test_several_documents_in_one_file(tmp_path: Path) -> None:
    text = "\n".join(json.dumps({"step": i, "loss": i / 2}, indent=2) for i in range(3))
    assert points(read(tmp_path / "log.jsonl", text)) == {(0, "loss", 0.0), (1, "loss", 0.5), (2, "loss", 1.0)}


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 50_000, "nonsense", "12", '"text"', "[]", "{}", "[1, [2, [3]]]"])
def test_nothing_is_an_error(tmp_path: Path, text: str) -> None:
    assert read(tmp_path / "x.json", text).metrics == []


@pytest.mark.parametrize(
    ("name", "head", "owner"),
    [
        ("args.json", b'{"lr": 0.1}', config_file),
        ("metrics.json", b'{"step": 1}\n{"step": 2}\n', jsonl),
        ("x.json", b'{"loss": [1, 2]}', json_log),
        ("trainer_state.json", b'{"log_history": []}', trainer_state),
        ("eval_results.json", b'{"eval_loss": 1}', trainer_state),
        ("trainer_log.jsonl", b'{"current_steps": 5, "loss": 1}\n', trainer_state),
        ("trainer_log.jsonl", b'{"step": 5, "loss": 1}\n', jsonl),
        ("wandb-summary.json", b'{"loss": 1}', None),
        ("book.ipynb", b'{"cells": []}', None),
        ("x.txt", b"hello", None),
    ],
)
def test_one_parser_at_most_claims_a_file(name: str, head: bytes, owner: Any) -> None:
    family = (config_file, jsonl, json_log, trainer_state)
    assert [p for p in family if p.claims(Path(name), head)] == ([owner] if owner else [])

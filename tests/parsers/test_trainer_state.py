"""Trainer states, results and line logs of the Hugging Face family."""

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from parsers.formats import trainer_state
from parsers.tables import HEAD_BYTES, Gap, Note, table_of

HISTORY = [{"epoch": i / 4, "grad_norm": i * 1.5, "learning_rate": 1e-4 / i, "loss": 1.0 / i, "step": i} for i in range(1, 9)]
STATE: dict[str, Any] = {
    "best_global_step": 4,
    "best_metric": 0.25,
    "best_model_checkpoint": None,
    "epoch": 2.0,
    "eval_steps": 4,
    "global_step": 8,
    "is_hyper_param_search": False,
    "log_history": HISTORY,
    "logging_steps": 1,
    "max_steps": 80,
    "num_train_epochs": 20,
    "save_steps": 4,
    "stateful_callbacks": {
        "EarlyStoppingCallback": {"args": {"early_stopping_patience": 3}, "attributes": {"early_stopping_patience_counter": 0}},
        "TrainerControl": {"args": {"should_save": True}, "attributes": {}},
    },
    "total_flos": 1e12,
    "train_batch_size": 16,
    "trial_name": None,
}


def read(path: Path, content: str) -> SimpleNamespace:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    assert trainer_state.claims(path, path.read_bytes()[:HEAD_BYTES])
    found = SimpleNamespace(metrics=[], config=[], events=[], batches=[], gaps=[], notes=[])
    for item in trainer_state.parse(path):
        if isinstance(item, Gap):
            found.gaps.append(item)
        elif isinstance(item, Note):
            found.notes.append(item.text)
        else:
            getattr(found, table_of(item)).extend(item.to_pylist())
    return found


def curve(found: SimpleNamespace, tag: str) -> list[tuple[int | None, float]]:
    return [(r["step"], r["value"]) for r in found.metrics if r["tag"] == tag]


def dump(state: dict[str, Any]) -> str:
    return json.dumps(state, indent=2, sort_keys=True)


def test_history_settings_and_totals(tmp_path: Path) -> None:
    found = read(tmp_path / "trainer_state.json", dump(STATE))
    assert curve(found, "loss") == [(e["step"], e["loss"]) for e in HISTORY]
    assert curve(found, "epoch") == [(e["step"], e["epoch"]) for e in HISTORY]
    assert [r["at"] for r in found.metrics if r["tag"] == "loss"] == list(range(1, 9))
    assert curve(found, "total_flos") == [(8, 1e12)]
    config = {c["key"]: json.loads(c["value"]) for c in found.config}
    assert config["max_steps"] == 80
    assert config["train_batch_size"] == 16
    assert config["stateful_callbacks.EarlyStoppingCallback.args.early_stopping_patience"] == 3
    assert not {"global_step", "epoch", "log_history"} & config.keys()
    assert not any("TrainerControl" in k or "attributes" in k for k in config)
    assert not found.gaps


def test_bare_nan_and_entries_without_step(tmp_path: Path) -> None:
    history = [{"loss": math.nan, "step": 1}, {"loss": math.inf, "step": 2}, {"train_loss": 0.5, "epoch": 1.0}]
    found = read(tmp_path / "trainer_state.json", dump({**STATE, "log_history": history}))
    (_, first), (_, second) = curve(found, "loss")
    assert math.isnan(first)
    assert second == math.inf
    assert curve(found, "train_loss") == [(None, 0.5)]


def test_a_cumulative_copy_says_the_same(tmp_path: Path) -> None:
    early = read(tmp_path / "checkpoint-4" / "trainer_state.json", dump({**STATE, "log_history": HISTORY[:4]}))
    late = read(tmp_path / "trainer_state.json", dump(STATE))
    rows = [tuple(r.values()) for r in late.metrics]
    assert all(tuple(r.values()) in rows for r in early.metrics)


def test_every_cut_keeps_every_whole_entry(tmp_path: Path) -> None:
    text = dump(STATE)
    ends = [text.index("}", text.index(f'"step": {i}\n')) + 1 for i in range(1, 9)]
    for cut in range(text.index('"log_history"') + 20, len(text) - 1, 7):
        found = read(tmp_path / "trainer_state.json", text[:cut])
        whole = sum(end <= cut for end in ends)
        assert [s for s, _ in curve(found, "loss")] == list(range(1, whole + 1)), cut
        assert len(found.gaps) >= 1


@pytest.mark.parametrize("junk", ["\x01\x02", "}{", "'", "\x00\x00\x00", "[[[", "]]]"])
def test_local_damage_costs_one_entry(tmp_path: Path, junk: str) -> None:
    text = dump(STATE)
    at = text.index('"learning_rate"', text.index('"step": 3'))
    found = read(tmp_path / "trainer_state.json", text[:at] + junk + text[at + len(junk) :])
    steps = [s for s, _ in curve(found, "loss")]
    assert set(steps) >= {1, 2, 3, 5, 6, 7, 8}
    assert steps == sorted(steps)
    assert {c["key"]: c["value"] for c in found.config}["max_steps"] == "80"
    assert found.gaps


def test_a_file_of_zeros_is_a_gap(tmp_path: Path) -> None:
    found = read(tmp_path / "trainer_state.json", "\0" * 500)
    assert not found.metrics
    assert found.gaps


def test_results_are_rows_without_a_step(tmp_path: Path) -> None:
    found = read(tmp_path / "all_results.json", json.dumps({"epoch": 1.0, "train_loss": 0.5, "total_flos": 1e20}, indent=4))
    assert {(r["step"], r["tag"], r["value"]) for r in found.metrics} == {
        (None, "epoch", 1.0),
        (None, "train_loss", 0.5),
        (None, "total_flos", 1e20),
    }


def test_llama_factory_lines(tmp_path: Path) -> None:
    rows = [
        {
            "current_steps": i,
            "total_steps": 20,
            "loss": 1.0 / i,
            "lr": 1e-4,
            "epoch": i / 10,
            "percentage": 5.0 * i,
            "elapsed_time": "0:01:02",
            "remaining_time": "9 days, 21:39:23",
        }
        for i in (5, 10)
    ]
    found = read(tmp_path / "trainer_log.jsonl", "".join(json.dumps(r) + "\n" for r in rows) + '{"current_steps": 15, "lo')
    assert curve(found, "loss") == [(5, 0.2), (10, 0.1)]
    assert {r["tag"] for r in found.metrics} == {"loss", "lr", "epoch"}
    assert [(c["key"], c["value"]) for c in found.config] == [("max_steps", "20")]
    assert [(g.at, g.lost) for g in found.gaps] == [("line 3", 1)]


def test_swift_lines_hold_their_step_in_text(tmp_path: Path) -> None:
    rows = [
        {"loss": 0.5, "global_step/max_steps": f"{i}/300", "percentage": "4.00%", "elapsed_time": "1m 3s", "memory(GiB)": 3.2}
        for i in (5, 10)
    ]
    found = read(tmp_path / "logging.jsonl", "".join(json.dumps(r) + "\n" for r in rows))
    assert curve(found, "loss") == [(5, 0.5), (10, 0.5)]
    assert curve(found, "memory(GiB)") == [(5, 3.2), (10, 3.2)]
    assert [(c["key"], c["value"]) for c in found.config] == [("max_steps", "300")]


@pytest.mark.parametrize(
    "text", ["{}", "[]", "null", '{"log_history": 5}', '{"log_history": [1, "a", null, {"step": []}]}', '{"log_history": {"step": 1}}']
)
def test_wrong_types_are_no_error(tmp_path: Path, text: str) -> None:
    assert read(tmp_path / "trainer_state.json", text).metrics == []

"""Offline runs as the trackers' own packages wrote them (tests/parsers/trackers: comet_ml 3.58.8, neptune 1.14, clearml 2.1.12, swanlab 0.10.3, traceml; guildai's
attributes by hand): 20 steps of two metrics, NaN at step 10, infinity at step 11, a spike at step 15."""

from __future__ import annotations

import json
import math
import shutil
import zipfile
from pathlib import Path
from zlib import crc32

import pytest

import parsers
from parsers.formats import tracker_zip
from parsers.tables import Run

HERE = Path(__file__).parent / "trackers"
GRAD = {i: 1.5 - i / 64 for i in range(20)} | {10: math.nan, 11: math.inf}
LOSS = {i: 3 - i / 8 + (4 if i == 15 else 0) for i in range(20)}


def series(run: Run, tag: str) -> dict[int, float]:
    return {r["step"]: r["value"] for r in run.tables["metrics"].to_pylist() if r["tag"] == tag}


def settings(run: Run) -> dict[str, object]:
    return {c["key"]: json.loads(c["value"]) for c in run.tables["config"].to_pylist()}


@pytest.mark.parametrize("tracker", ["comet", "swanlab", "polyaxon"])
def test_every_value_with_its_step_and_time(tracker: str) -> None:
    run = parsers.read(HERE / tracker)
    assert series(run, "train/loss") == LOSS
    assert str(series(run, "train/grad_norm")) == str(GRAD)  # NaN equals NaN as text
    assert all(1.79e9 < r["time"] < 1.8e9 for r in run.tables["metrics"].to_pylist() if r["tag"].startswith("train/"))
    if tracker != "polyaxon":
        assert {"lr": 0.001, "batch_size": 32}.items() <= settings(run).items()
    assert run.gaps == []


def test_what_a_tracker_could_not_write_is_told() -> None:
    clearml, neptune = parsers.read(HERE / "clearml"), parsers.read(HERE / "neptune")
    assert series(clearml, "train/loss") == series(neptune, "train/loss") == LOSS
    assert series(clearml, "train/grad_norm") == GRAD | {10: 0.0, 11: 0.0}
    assert series(neptune, "train/grad_norm") == {k: v for k, v in GRAD.items() if math.isfinite(v)}
    notes = [s.note for run in (clearml, neptune) for s in run.sources]
    assert "train/grad_norm is exactly 0.0 at steps 10, 11: ClearML writes NaN and infinity so" in notes
    assert "train/grad_norm has no value at steps 10, 11: Neptune leaves out NaN and infinity" in notes
    assert settings(clearml)["lr"] == "0.001" and settings(neptune)["params.lr"] == 0.001
    assert [e["text"][:30] for e in clearml.tables["events"].to_pylist() if e["kind"] == "nonfinite"][:1] == [
        "NaN value encountered. Reporti"
    ]


def test_a_zip_gives_what_its_folder_gives(tmp_path: Path) -> None:
    zipped = next((HERE / "clearml").rglob("*.zip"))
    shutil.copy(zipped, tmp_path)
    alone, both = parsers.read(tmp_path), parsers.read_all(HERE / "clearml")
    assert series(alone, "train/loss") == LOSS and settings(alone)["batch_size"] == "32"
    assert len(both) == 1 and both[0].tables["metrics"].num_rows == 40 and both[0].merged == 40


def test_comet_unpacked_and_what_a_kill_leaves(tmp_path: Path) -> None:
    with zipfile.ZipFile(next((HERE / "comet").glob("*.zip"))) as z:
        z.extract("messages.json", tmp_path)
    assert series(parsers.read(tmp_path), "train/loss") == LOSS
    with zipfile.ZipFile(tmp_path / f"{'0a' * 16}.zip", "w"):
        pass
    assert ["messages.json of that process" in g.what for g in parsers.read(tmp_path).gaps] == [True]


def test_a_damaged_zip_and_one_of_somebody_else(tmp_path: Path) -> None:
    whole = next((HERE / "comet").glob("*.zip")).read_bytes()
    path = tmp_path / f"{'0a' * 16}.zip"
    path.write_bytes(whole[: len(whole) // 2])
    assert [g.what for g in parsers.read(tmp_path).gaps] == ["a damaged zip (BadZipFile): its rest could not be read"]
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("../experiment.json", "{}")
    assert not tracker_zip.claims(path, path.read_bytes())


def frames(records: list[bytes]) -> bytes:
    return b"".join(crc32(b"\x01" + r).to_bytes(4, "little") + len(r).to_bytes(2, "little") + b"\x01" + r for r in records)


def test_swanlab_of_before_0_7_wrote_json(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"model_type": "Scalar", "data": {"metric": {"data": x}, "key": "loss", "step": i}} for i, x in enumerate([2.5, "NaN", "INF", 2.0])
    ]
    rows.append({"model_type": "Footer", "data": {"success": False}})
    data = b":SWL\xd6\xe1\x01" + frames([json.dumps(r).encode() for r in rows])
    (tmp_path / "backup.swanlab").write_bytes(data)
    run = parsers.read(tmp_path)
    assert str(series(run, "loss")) == "{0: 2.5, 1: nan, 2: inf, 3: 2.0}"
    assert [(e["kind"], e["level"], e["text"]) for e in run.tables["events"].to_pylist()] == [("status", "error", "swanlab status FAILED")]
    (tmp_path / "backup.swanlab").write_bytes(data[:-30])
    assert "killed" in parsers.read(tmp_path).sources[0].note


def test_a_swanlab_record_that_is_noise_costs_itself(tmp_path: Path) -> None:
    (tmp_path / "run-a.swanlab").write_bytes(b":SWL\xd6\xe1\x02" + frames([b"\xff" * 40, b"{not json"]))
    assert [(g.what, g.lost) for g in parsers.read(tmp_path).gaps] == [("2 records that are neither JSON nor protobuf", 2)]


def test_guild_flags_and_exit_status() -> None:
    run = parsers.read(HERE / "guild")
    assert settings(run) == {"batch_size": 32, "lr": 0.002}
    assert [(e["kind"], e["level"], e["text"], e["time"]) for e in run.tables["events"].to_pylist()] == [
        ("exit", "error", "exit code 1", 1795618700.0)
    ]


def test_of_a_hydra_sweep_the_jobs_settings_count(tmp_path: Path) -> None:
    for job, lr in ((0, 0.001), (1, 0.002)):
        (tmp_path / str(job) / ".hydra").mkdir(parents=True)
        (tmp_path / str(job) / ".hydra" / "config.yaml").write_text(f"lr: {lr}\n")
        lines = [f"[2026-03-01 10:00:{i:02},000][__main__][INFO] - step {i} loss={3 - i / 30 + job / 7}\n" for i in range(30)]
        (tmp_path / str(job) / "train.log").write_text("".join(lines))
    (tmp_path / "multirun.yaml").write_text("hydra:\n  job:\n    num: ???\nlr: 0.5\n")
    (tmp_path / "optimization_results.yaml").write_text("name: optuna\nbest_value: 0.5\n")
    runs = parsers.read_all(tmp_path)
    assert [Path(r.path).name for r in runs] == ["0", "1"] and [settings(r)["lr"] for r in runs] == [0.001, 0.002]


def test_determined_as_its_api_and_its_command_line_give_it(tmp_path: Path) -> None:
    reports = [
        {
            "trialId": 1,
            "endTime": "2026-03-01T10:00:00Z",
            "totalBatches": i,
            "group": group,
            "metrics": {"avg_metrics": {"loss": x + i}, "batch_metrics": None},
        }
        for i in (100, 200)
        for group, x in (("training", 0.5), ("validation", 0.75))
    ]
    (tmp_path / "metrics.json").write_text(json.dumps({"metrics": reports}))
    run = parsers.read(tmp_path)
    assert series(run, "loss") == {100: 100.5, 200: 200.5} and series(run, "val/loss") == {100: 100.75, 200: 200.75}
    work = [
        {"training": {"totalBatches": i, "endTime": None, "metrics": {"avgMetrics": {"loss": i / 2}, "batchMetrics": []}}}
        for i in (100, 200)
    ]
    (tmp_path / "metrics.json").write_text(json.dumps({"trial": {"id": 1, "hparams": {"opt": {"lr": 0.001}}}, "workloads": work}))
    run = parsers.read(tmp_path)
    assert series(run, "loss") == {100: 50, 200: 100} and settings(run) == {"opt.lr": 0.001}

from __future__ import annotations

import json
import math
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from wandb.proto import wandb_internal_pb2 as pb
from wandb_writer import HEADER, framed, history, record

from forensics.run.how_it_ended import ending
from parsers import read_all
from parsers.formats import wandb_offline
from parsers.tables import SCHEMAS, Gap, Note, table_of
from parsers.wandb_format import leveldb_log

OPEN = Path(__file__).parents[2].parent / "shared" / "open"


class Got:
    """Everything a parse gave: rows by table, gaps, notes."""

    def __init__(self, path: Path) -> None:
        self.gaps: list[Gap] = []
        self.notes: list[str] = []
        self.rows: dict[str, list[dict[str, Any]]] = {table: [] for table in SCHEMAS}
        for item in wandb_offline.parse(path):
            if isinstance(item, Gap):
                self.gaps.append(item)
            elif isinstance(item, Note):
                self.notes.append(item.text)
            else:
                assert isinstance(item, pa.RecordBatch)
                self.rows[table_of(item)] += item.to_pylist()

    def metrics(self) -> list[tuple[int | None, str, float]]:
        return [(r["step"], r["tag"], r["value"]) for r in self.rows["metrics"]]

    def config(self) -> dict[str, Any]:
        return {r["key"]: json.loads(r["value"]) for r in self.rows["config"]}

    def events(self) -> list[tuple[str, str, str]]:
        return [(r["kind"], r["level"], r["text"]) for r in self.rows["events"]]


def run(folder: Path, records: list[bytes], **kwargs: Any) -> Path:
    path = folder / "wandb" / "offline-run-20260102_030405-abc123" / "run-abc123.wandb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(framed(records, **kwargs)[0])
    return path


@pytest.mark.parametrize("nested", [True, False])
def test_rows_become_metrics_with_step_time_and_place(tmp_path: Path, nested: bool) -> None:
    values = {"lr": 1e-05, "_runtime": 0.5}
    rows = [history(i, {"train/loss": 2.5 - i} | values, time=100.5 + i, nested=nested) for i in (3, 4)]
    path = run(tmp_path, rows)
    got = Got(path)
    assert got.metrics() == [
        (3, "train/loss", -0.5), (3, "lr", 1e-05), (3, "_runtime", 0.5),
        (4, "train/loss", -1.5), (4, "lr", 1e-05), (4, "_runtime", 0.5),
    ]  # fmt: skip
    assert [r["time"] for r in got.rows["metrics"]] == [103.5] * 3 + [104.5] * 3
    places = framed(rows)[1]
    assert [r["at"] for r in got.rows["metrics"]] == [places[0]] * 3 + [places[1]] * 3
    assert got.gaps == []


def test_order_is_the_files_even_where_items_are_shuffled(tmp_path: Path) -> None:
    rng = random.Random(0)
    rows = []
    for i in range(300):
        items = list({"a": float(i), "b": i * 0.5, "c": -1.0}.items())
        rng.shuffle(items)
        rows.append(history(i, dict(items)))
    got = Got(run(tmp_path, rows)).metrics()
    assert [x for x in got if x[1] == "a"] == [(i, "a", float(i)) for i in range(300)]
    assert [s for s, _, _ in got] == sorted(s for s, _, _ in got)


def test_repeated_steps_are_kept(tmp_path: Path) -> None:
    path = run(tmp_path, [history(7, {"loss": 1.0}), history(7, {"loss": 2.0}), history(5, {"loss": 3.0})])
    assert Got(path).metrics() == [(7, "loss", 1.0), (7, "loss", 2.0), (5, "loss", 3.0)]


def test_values_as_logged(tmp_path: Path) -> None:
    values = {"nan": math.nan, "inf": math.inf, "ninf": -math.inf, "quoted nan": "NaN", "quoted inf": "-Infinity",
              "true": True, "false": False, "huge": 2**70, "tiny": 5e-324, "exact": 0.1 + 0.2, "integer": -7,
              "long": 0.12345678901234567, "text": "1.5", "null": None, "list": [1, 2]}  # fmt: skip
    got = {tag: value for _, tag, value in Got(run(tmp_path, [history(0, values)])).metrics()}
    assert got.keys() == values.keys() - {"text", "null", "list"}
    assert math.isnan(got["nan"])
    assert math.isnan(got["quoted nan"])
    assert (got["inf"], got["ninf"], got["quoted inf"]) == (math.inf, -math.inf, -math.inf)
    for name in ("true", "false", "huge", "tiny", "exact", "integer", "long"):
        assert got[name] == values[name]


def test_nested_keys_are_joined_by_dots_and_names_are_not_confused(tmp_path: Path) -> None:
    long = "x" * 700
    values = {"a|b": 1.0, "a.c": 2.0, "a|d|e": 3.0, "müon/λ": 4.0, long + "1": 5.0, long + "2": 6.0, "": 7.0}
    got = {tag: value for _, tag, value in Got(run(tmp_path, [history(0, values)])).metrics()}
    assert got == {"a.b": 1.0, "a.c": 2.0, "a.d.e": 3.0, "müon/λ": 4.0, long + "1": 5.0, long + "2": 6.0, "": 7.0}


def test_old_files_log_dicts_as_one_value(tmp_path: Path) -> None:
    value = {"_type": "images/separated", "width": 32, "count": 2, "captions": ["a", "b"], "deep": {"x": "NaN"}}
    got = Got(run(tmp_path, [history(1, {"pictures": value, "loss": 1.0}, nested=False)]))
    assert got.metrics()[:3] == [(1, "loss", 1.0), (1, "pictures.width", 32.0), (1, "pictures.count", 2.0)]
    assert got.metrics()[3][1] == "pictures.deep.x"
    assert any("1 images/separated" in note for note in got.notes)


def test_media_in_nested_keys(tmp_path: Path) -> None:
    values = {"samples|_type": "image-file", "samples|height": 24, "samples|path": "media/images/x.png", "loss": 0.5}
    got = Got(run(tmp_path, [history(i, values) for i in range(3)]))
    assert got.metrics() == [(i, tag, x) for i in range(3) for tag, x in (("samples.height", 24.0), ("loss", 0.5))]
    assert any("3 image-file" in note for note in got.notes)


@pytest.mark.skipif("number" not in pb.HistoryItem.DESCRIPTOR.fields_by_name, reason="wandb before 0.31")
def test_typed_values_of_wandb_031(tmp_path: Path) -> None:
    row = pb.HistoryRecord()
    row.step.num = 9
    row.item.add(nested_key=["loss"], number=0.25)
    row.item.add(nested_key=["count"], integer=-3)
    row.item.add(nested_key=["big"], integer=2**62)
    row.item.add(nested_key=["flag"], boolean=True)
    row.item.add(nested_key=["nan"], number=math.nan)
    row.item.add(nested_key=["words"], text="hello")
    row.item.add(nested_key=["dict"], json='{"x": 2}')
    row.item.add(nested_key=["_timestamp"], number=123.0)
    got = Got(run(tmp_path, [record("history", row)]))
    assert [m for m in got.metrics() if m[1] != "nan"] == [
        (9, "loss", 0.25), (9, "count", -3.0), (9, "big", 2.0**62), (9, "flag", 1.0), (9, "dict.x", 2.0)
    ]  # fmt: skip
    assert math.isnan(next(v for _, tag, v in got.metrics() if tag == "nan"))
    assert {r["time"] for r in got.rows["metrics"]} == {123.0}


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("nested", [True, False])
def test_histograms(tmp_path: Path, nested: bool, packed: bool) -> None:
    edges = {"packedBins": {"min": 0.0, "size": 1.0, "count": 4}} if packed else {"bins": [0.0, 1.0, 2.0, 3.0, 4.0]}
    value = {"_type": "histogram", "values": [1, 2, 1, 0], **edges}
    if nested:
        flat = {"h|_type": "histogram", "h|values": [1, 2, 1, 0]}
        bins = edges.get("packedBins", {})
        parts = {f"h|packedBins|{k}": v for k, v in bins.items()} if packed else {"h|bins": edges["bins"]}
        rows = [history(i, flat | parts | {"loss": 1.0}) for i in (4, 5)]
    else:
        rows = [history(i, {"h": value, "loss": 1.0}, nested=False) for i in (4, 5)]
    got = Got(run(tmp_path, rows))
    assert got.metrics() == [(4, "loss", 1.0), (5, "loss", 1.0)]
    first, second = got.rows["histograms"]
    assert (first["step"], second["step"], first["tag"]) == (4, 5, "h")
    assert (first["count"], first["min"], first["max"], first["mean"]) == (4.0, 0.0, 3.0, 1.5)
    assert first["p50"] == pytest.approx(1.5)
    assert first["std"] == pytest.approx(math.sqrt(0.5))


def test_the_frameworks_own_step_beats_the_count_of_log_calls(tmp_path: Path) -> None:
    rows = [history(0, {"note": 1.0}), history(1, {"train/loss": 2.0, "train/global_step": 50}),
            history(2, {"eval/loss": 3.0}), history(3, {"train/loss": 1.0, "train/global_step": 100})]  # fmt: skip
    steps = [(s, tag) for s, tag, _ in Got(run(tmp_path, rows)).metrics()]
    assert steps == [(None, "note"), (50, "train/loss"), (50, "train/global_step"), (50, "eval/loss"),
                     (100, "train/loss"), (100, "train/global_step")]  # fmt: skip


def test_a_declared_step_metric_is_the_step_and_epoch_is_not(tmp_path: Path) -> None:
    names = ("trainer/iteration", "epoch")
    declared = [record("metric", pb.MetricRecord(glob_name="*", step_metric=name)) for name in names]
    rows = [history(i, {"loss": 1.0, "trainer/iteration": 10 * i, "epoch": 3}) for i in (1, 2)]
    assert {(s, tag) for s, tag, _ in Got(run(tmp_path, declared + rows)).metrics()} == {
        (s, tag) for s in (10, 20) for tag in ("loss", "trainer/iteration", "epoch")
    }


def test_system_metrics_have_a_time_and_no_step(tmp_path: Path) -> None:
    stats = pb.StatsRecord()
    stats.timestamp.seconds, stats.timestamp.nanos = 1000, 500_000_000
    stats.item.add(key="gpu.0.temp", value_json="61.5")
    stats.item.add(key="network", value_json='{"sent": 5, "recv": 6}')
    got = Got(run(tmp_path, [record("stats", stats)]))
    assert got.metrics() == [(None, "system.gpu.0.temp", 61.5), (None, "system.network.sent", 5.0),
                             (None, "system.network.recv", 6.0)]  # fmt: skip
    assert {r["time"] for r in got.rows["metrics"]} == {1000.5}


def test_run_config_and_secrets(tmp_path: Path) -> None:
    start = pb.RunRecord(run_id="abc123", project="p", display_name="brave-fox-1", host="node7", tags=["x"])
    start.start_time.seconds = 1700000000
    start.git.commit = "deadbeef"
    start.git.remote_url = "https://me:hunter2secret@example.org/repo.git"
    for key, value in {"lr": 0.1, "optim": {"beta2": 0.95, "api_key": "abcdefgh"}, "_wandb": {}}.items():
        start.config.update.add(key=key, value_json=json.dumps(value))
    again = pb.ConfigRecord()
    for key, value in {"lr": 0.1, "batch": 8}.items():
        again.update.add(key=key, value_json=json.dumps(value))
    change = pb.ConfigRecord()
    change.update.add(nested_key=["optim", "beta2"], value_json="0.99")
    records = [record("run", start), record("config", again), record("config", change)]
    got = Got(run(tmp_path, records))
    config = got.config()
    assert config["wandb.run_id"] == "abc123"
    assert config["wandb.name"] == "brave-fox-1"
    assert config["wandb.host"] == "node7"
    assert config["wandb.start_time"] == 1700000000.0
    assert config["wandb.git.commit"] == "deadbeef"
    assert (config["batch"], config["optim.beta2"], config["optim.api_key"]) == (8, 0.99, "***")
    assert "hunter2secret" not in str(got.rows)
    keys = [r["key"] for r in got.rows["config"]]
    assert keys.count("lr") == 1  # said again, unchanged
    assert keys.count("optim.beta2") == 2  # changed: both are evidence, at their places
    assert got.rows["config"][-1]["at"] == framed(records)[1][2]
    assert ("start", "info", "W&B run brave-fox-1 started") in got.events()


def test_environment(tmp_path: Path) -> None:
    message = pb.Record()
    if "environment" not in message.DESCRIPTOR.fields_by_name:
        pytest.skip("wandb before 0.19")
    message.environment.program = "train.py"
    message.environment.gpu_type = "NVIDIA H100"
    message.environment.gpu_count = 8
    message.environment.args.extend(["--lr", "0.1", "--hf-token", "verysecretvalue"])
    message.environment.slurm["job_id"] = "77"
    config = Got(run(tmp_path, [message.SerializeToString()])).config()
    assert [config[f"wandb.{k}"] for k in ("program", "gpu_type", "gpu_count")] == ["train.py", "NVIDIA H100", 8]
    assert config["wandb.slurm.job_id"] == "77"
    assert config["wandb.args"] == "--lr 0.1 --hf-token ***"


@pytest.mark.parametrize(("code", "level"), [(0, "info"), (255, "error"), (-9, "error")])
def test_exit_code(tmp_path: Path, code: int, level: str) -> None:
    start = pb.RunRecord(run_id="a")
    start.start_time.seconds = 1000
    end = record("exit", pb.RunExitRecord(exit_code=code, runtime=60))
    got = Got(run(tmp_path, [record("run", start), end]))
    assert got.events()[-1] == ("exit", level, f"exit code {code}")
    assert got.rows["events"][-1]["time"] == 1060.0
    assert not any("no exit record" in note for note in got.notes)


def test_a_killed_run_has_no_exit_record(tmp_path: Path) -> None:
    assert any("no exit record" in note for note in Got(run(tmp_path, [history(0, {"loss": 1.0})])).notes)


def test_resume_alert_and_preemption(tmp_path: Path) -> None:
    records = [record("run", pb.RunRecord(run_id="a", resumed=True, starting_step=40)),
               record("alert", pb.AlertRecord(title="loss", text="is NaN", level="ERROR")),
               record("preempting", pb.RunPreemptingRecord())]  # fmt: skip
    got = Got(run(tmp_path, records))
    assert [(e[0], e[1]) for e in got.events()] == [("resume", "info"), ("alert", "error"), ("scheduler", "warning")]
    assert got.rows["events"][0]["step"] == 40


def output(text: str, stream: int = 0, second: int = 1, kind: str = "output_raw") -> bytes:
    cls = pb.OutputRawRecord if kind == "output_raw" else pb.OutputRecord
    message = cls(output_type=stream, line=text)
    message.timestamp.seconds = second
    return record(kind, message)


@pytest.mark.parametrize("kind", ["output_raw", "output"])
def test_output_gives_errors_and_no_chatter(tmp_path: Path, kind: str) -> None:
    text = ('step 1 is fine\nTraceback (most recent call last):\n  File "train.py", line 3, in <module>\n    boom()\n'
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\nbye\n")  # fmt: skip
    pieces = [text[i : i + 17] for i in range(0, len(text), 17)]  # the SDK cuts where the buffer ends
    got = Got(run(tmp_path, [output(p, 0, 5, kind) for p in pieces]))
    assert [(e[0], e[1]) for e in got.events()] == [("oom", "error")]
    assert "train.py:3" in got.events()[0][2]
    assert got.rows["events"][0]["time"] == 5.0


def test_output_is_left_to_the_file_beside_it(tmp_path: Path) -> None:
    path = run(tmp_path, [output("RuntimeError: CUDA error: an illegal memory access was encountered\n")])
    assert len(Got(path).events()) == 1
    (path.parent / "files").mkdir()
    (path.parent / "files" / "output.log").write_text("RuntimeError: ...\n")
    assert Got(path).events() == []


def test_the_console_of_a_launch_is_of_its_run(tmp_path: Path) -> None:
    """Though it counts other steps than the rows do, and another log above them has the same losses, at yet others."""
    path = run(tmp_path, [history(10 * i, {"train_loss": 3.1 / i, "val_loss": 3 / i, "_timestamp": 1.7e9 + i}) for i in range(1, 13)])
    (path.parent / "files").mkdir()
    console = [f"iter {10 * i - 3} train loss {3.1 / i + 0.1:.3f} val loss {3 / i:.3f}\n" for i in range(1, 13)]
    console[-1] = f"[2023-11-15 00:13:40] {console[-1]}"  # by another clock
    (path.parent / "files" / "output.log").write_text(
        "".join([*console, "Traceback (most recent call last):\n", "FileNotFoundError: ckpts/12.pth\n"])
    )
    above = (f"[2023-11-14 22:13:{20 + i}] iter {10 * i} train loss {3.1 / i:.4f} val loss {3 / i:.4f}\n" for i in range(1, 13))
    (tmp_path / "main.log").write_text("".join(above))
    [got] = read_all(tmp_path)
    assert (len(got.sources), len(got.attempts)) == (3, 1)
    assert "FileNotFoundError" in ending(got).says


def test_dropped_rows_are_told(tmp_path: Path) -> None:
    line = "wandb: WARNING Tried to log to step {} that is less than the current step 10. Steps must be monotonically\n"
    got = Got(run(tmp_path, [output(line.format(i)) for i in (3, 4, 5)]))
    assert [(e[0], e[1]) for e in got.events()] == [("rows_dropped", "warning")]
    assert "3 rows of steps 3 to 5" in got.events()[0][2]
    assert got.rows["events"][0]["step"] == 3
    assert len(got.gaps) == 1


def test_summary_gives_what_the_history_never_logged(tmp_path: Path) -> None:
    own = pb.SummaryRecord()
    own.update.add(key="best", value_json="0.75")
    own.update.add(key="loss", value_json="0.1")
    own.update.add(key="_runtime", value_json="9")
    automatic = pb.SummaryRecord()
    automatic.update.add(nested_key=["loss"], value_json="0.9")
    later = pb.SummaryRecord()
    later.update.add(key="best", value_json="0.8")
    records = [record("summary", own), record("summary", automatic), history(5, {"loss": 0.9})]
    assert Got(run(tmp_path, [*records, record("summary", later)])).metrics() == [(5, "loss", 0.9), (None, "best", 0.8)]


def test_damage_costs_its_row_and_is_named(tmp_path: Path) -> None:
    rows = [history(i, {"loss": float(i)}) for i in range(2000)]
    path = run(tmp_path, rows)
    data, places = framed(rows)
    damaged = bytearray(data)
    for i in (100, 1500):
        damaged[places[i] + 12] ^= 0x10
    path.write_bytes(damaged[: places[1999] + 9])
    got = Got(path)
    assert [s for s, _, _ in got.metrics()] == [i for i in range(1999) if i not in (100, 1500)]
    assert [(g.at, g.lost) for g in got.gaps] == [(f"byte {places[i]}", 1) for i in (100, 1500, 1999)]


def test_windows_do_not_change_the_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [history(i, {"loss": i / 7, f"rare/{i % 91}": i, "train/global_step": 2 * i}) for i in range(1500)]
    path = run(tmp_path, rows)
    whole = Got(path)
    monkeypatch.setattr(leveldb_log, "WINDOW", leveldb_log.BLOCK)
    assert Got(path).rows == whole.rows
    assert len(whole.metrics()) == 3 * 1500


def test_sound_frames_around_nonsense(tmp_path: Path) -> None:
    rng = random.Random(5)
    good = history(1, {"loss": 1.0})
    junk = [rng.randbytes(rng.randrange(1, 60)) for _ in range(300)]
    for number in (f.number for f in pb.Record.DESCRIPTOR.fields if f.message_type):
        key = number << 3 | 2  # every record type, with nonsense for its content
        varint = bytes([key]) if key < 128 else bytes([key & 0x7F | 0x80, key >> 7])
        junk += [varint + bytes([12]) + rng.randbytes(12) for _ in range(40)]
    mixed = [x for j in junk for x in (j, good)]
    got = Got(run(tmp_path, mixed))
    assert sum(m == (1, "loss", 1.0) for m in got.metrics()) == len(junk)
    assert all(g.at.startswith("byte ") for g in got.gaps)


def test_agrees_with_protobuf_on_random_rows(tmp_path: Path) -> None:
    rng = random.Random(11)
    names = [f"m/{i}" for i in range(30)] + ["a|b", "c|d|e"]
    rows, want = [], []
    for i in range(400):
        chosen = rng.sample(names, rng.randrange(0, 12))
        numbers = (lambda: rng.random() * 10 ** rng.randrange(-300, 300), lambda: rng.randrange(-(2**63), 2**63), int)
        values = {n: rng.choice(numbers)() for n in chosen}
        nested = rng.random() < 0.5 or "|" in "".join(chosen)
        rows.append(history(rng.choice([None, i, -i, 2**40 + i]), values, nested=nested))
        row = pb.Record.FromString(rows[-1]).history
        step = next((int(x.value_json) for x in row.item if "_step" in (x.key, *x.nested_key)), None)
        want += [(step, ".".join(x.nested_key) or x.key, float(json.loads(x.value_json))) for x in row.item
                 if "_step" not in (x.key, *x.nested_key)]  # fmt: skip
    assert Got(run(tmp_path, rows)).metrics() == want


@pytest.mark.parametrize("data", [b"", HEADER, HEADER[:3], b"junk" * 30, HEADER + bytes(70000)])
def test_files_without_a_run(tmp_path: Path, data: bytes) -> None:
    path = run(tmp_path, [])
    path.write_bytes(data)
    got = Got(path)
    assert got.metrics() == []
    assert bool(got.gaps) == (data != HEADER)
    assert got.notes or got.gaps


def test_claims() -> None:
    assert wandb_offline.claims(Path("x/run-abc.wandb"), HEADER)
    assert wandb_offline.claims(Path("renamed.bin"), HEADER + b"...")
    assert wandb_offline.claims(Path("x/run-abc.wandb"), b"")
    assert not wandb_offline.claims(Path("x/run-abc.wandb"), b"version https://git-lfs.github.com/spec/v1\n")
    assert not wandb_offline.claims(Path("x/run-abc.wandb.synced"), b"")
    assert not wandb_offline.claims(Path("x/log.txt"), b"step 1 loss 2")


REAL = """
import math, wandb
run = wandb.init(project="p", mode="offline", config={"lr": 0.1, "optim": {"eps": 1e-8}})
for i in range(30):
    run.log({"loss": 1 / (i + 1), "nested": {"x": i}, "bad": math.nan if i == 7 else 1.0})
run.log({"loss": 9.0}, step=3)
run.summary["best"] = 0.5
run.finish(exit_code=3)
"""


def test_a_file_the_installed_sdk_writes(tmp_path: Path) -> None:
    quiet = {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_CONSOLE": "off", "WANDB_DIR": str(tmp_path)}
    try:
        command = [sys.executable, "-c", REAL]
        done = subprocess.run(command, cwd=tmp_path, env=os.environ | quiet, capture_output=True, timeout=120)
    except subprocess.TimeoutExpired:
        pytest.skip("wandb's offline mode did not finish here")
    found = list(tmp_path.glob("wandb/offline-run-*/*.wandb"))
    if not found:
        pytest.skip(f"wandb's offline mode does not run here: {done.stderr[-300:]!r}")
    got = Got(found[0])
    assert got.gaps == []
    assert [(s, v) for s, tag, v in got.metrics() if tag == "loss"] == [(i, 1 / (i + 1)) for i in range(30)]
    assert [(s, v) for s, tag, v in got.metrics() if tag == "nested.x"] == [(i, float(i)) for i in range(30)]
    assert [s for s, tag, v in got.metrics() if tag == "bad" and math.isnan(v)] == [7]
    assert (None, "best", 0.5) in got.metrics()
    assert got.config()["optim.eps"] == 1e-8
    assert ("exit", "error", "exit code 3") in got.events()


@pytest.mark.skipif(not OPEN.is_dir(), reason="needs the open runs")
@pytest.mark.parametrize("path", sorted(OPEN.glob("*/**/*.wandb")), ids=lambda p: p.stem)
def test_open_runs_agree_with_protobuf(path: Path) -> None:
    want = []
    for part in leveldb_log.windows(path, first=len(HEADER)):
        assert not isinstance(part, Gap)
        for start, length in zip(part.start, part.length, strict=True):
            row = pb.Record.FromString(part.data[start : start + length]).history
            for item in row.item:
                try:
                    number = float(item.value_json)
                except ValueError:
                    continue
                name = ".".join(item.nested_key) or item.key
                if name not in ("_step", "_timestamp"):
                    want.append((row.step.num, name, repr(number)))
    logged = {name for _, name, _ in want}
    got = [(s, tag, repr(v)) for s, tag, v in Got(path).metrics() if s is not None and tag in logged]
    assert got == want


def test_a_training_that_goes_on_under_another_id_is_one_run(tmp_path: Path) -> None:
    """As transformers' Trainer does it: a run of W&B for each launch, the console beside each in rows that it counts for want of steps, and the history
    that the last checkpoint holds of both."""
    loss = {step: round(2 + 3 / step + 0.01 * math.sin(step * step), 4) for step in range(5, 245, 5)}
    for i, (id, steps) in enumerate({"6v1vwmtu": range(5, 125, 5), "knnjz1wo": range(125, 245, 5)}.items()):
        folder = tmp_path / "wandb" / f"offline-run-20260102_03040{i}-{id}"
        (folder / "files").mkdir(parents=True)
        rows = [history(k, {"train/loss": loss[s], "train/global_step": s}, time=1.7e9 + 1000 * i + s) for k, s in enumerate(steps)]
        (folder / f"run-{id}.wandb").write_bytes(framed(rows)[0])
        (folder / "files" / "output.log").write_text("".join(f"{{'loss': {loss[s]}, 'epoch': {s / 300}}}\n" for s in steps))
    out = tmp_path / "out" / "checkpoint-240"
    out.mkdir(parents=True)
    state = {"global_step": 240, "log_history": [{"step": s, "loss": x, "epoch": s / 300} for s, x in loss.items()]}
    (out / "trainer_state.json").write_text(json.dumps(state))
    (found,) = read_all(tmp_path)
    assert [a["steps"] for a in found.attempts][1:] == [[125, 240]] and len(found.attempts) == 2

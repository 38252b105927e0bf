"""mlflow_files and mlflow_sqlite: stores as MLflow and trackio write them, several runs, odd values, damage."""

from __future__ import annotations

import json
import math
import sqlite3
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from forensics.run import seed_group
from parsers import claimants, name_of, read_all
from parsers.formats import mlflow_files, mlflow_sqlite
from parsers.tables import HEAD_BYTES, Gap, Note, run_of, table_of

RUN = "0123456789abcdef0123456789abcdef"
LARGEST = 1.7976931348623157e308


class Read:
    def __init__(self, parser: ModuleType, path: Path) -> None:
        self.claimed = parser.claims(path, path.read_bytes()[:HEAD_BYTES])
        self.tables: dict[str, list[dict[str, Any]]] = {}
        self.runs: dict[str, list[str]] = {}  # run -> tags
        self.gaps: list[Gap] = []
        self.notes: list[str] = []
        for item in parser.parse(path):
            if isinstance(item, Gap):
                self.gaps.append(item)
            elif isinstance(item, Note):
                self.notes.append(item.text)
            else:
                self.tables.setdefault(table_of(item), []).extend(item.to_pylist())
                if table_of(item) == "metrics":
                    self.runs.setdefault(run_of(item), []).extend(item["tag"].to_pylist())

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        return [(r["step"], r["tag"], r["value"], r["time"], r["at"]) for r in self.tables.get("metrics", [])]

    @property
    def config(self) -> dict[str, Any]:
        return {r["key"]: json.loads(r["value"]) for r in self.tables.get("config", [])}

    @property
    def events(self) -> list[tuple[Any, ...]]:
        return [(r["kind"], r["level"], r["text"], r["time"]) for r in self.tables.get("events", [])]


def store(tmp_path: Path, name: str, data: str | bytes) -> Path:
    path = tmp_path / "mlruns" / "0" / RUN / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


# -- file store


def test_metric_file(tmp_path: Path) -> None:
    got = Read(
        mlflow_files,
        store(tmp_path, "metrics/train/loss", "1700000000123 2.5 0\n1700000001123 nan 1\n1700000002123 -inf 2\n1700000002123 1 2\n"),
    )
    assert got.claimed and not got.gaps
    assert got.rows[0] == (0, "train/loss", 2.5, 1700000000.123, 1)
    assert math.isnan(got.rows[1][2]) and got.rows[2][2] == -math.inf and [r[0] for r in got.rows] == [0, 1, 2, 2]


def test_metric_file_with_damage(tmp_path: Path) -> None:
    data = b"1700000000123 2.5 0\n17000\x00\x00\x001700000001123 2.25 1\n1700000002123 x 2\n"
    data += b"1700000003123 1.5 3\n1700000004123 1."
    got = Read(mlflow_files, store(tmp_path, "metrics/loss", data))
    assert [r[0] for r in got.rows] == [0, 1, 3]
    assert [g.at for g in got.gaps] == ["line 2", "line 3", "line 5"]


def test_params_tags_and_status(tmp_path: Path) -> None:
    meta = "artifact_uri: file:///x\nend_time: 1700000009000\nlifecycle_stage: active\nrun_id: {0}\n"
    meta += "run_name: brave-owl-12\nrun_uuid: {0}\nstart_time: 1700000000000\nstatus: 4\n"
    got = Read(mlflow_files, store(tmp_path, "meta.yaml", meta.format(RUN)))
    assert got.claimed and got.events == [("status", "error", "mlflow status FAILED", 1700000009.0)]
    assert got.config["mlflow.run_name"] == "brave-owl-12"
    assert Read(mlflow_files, store(tmp_path, "params/lr", "0.001")).config == {"lr": "0.001"}
    assert Read(mlflow_files, store(tmp_path, "params/hf_token", "abcdefgh")).config == {"hf_token": "***"}
    got = Read(mlflow_files, store(tmp_path, "tags/mlflow.runName", "brave-owl-12"))
    assert got.claimed and got.config == {"mlflow.runName": "brave-owl-12"}


def test_files_that_are_not_mlflow(tmp_path: Path) -> None:
    for name, data in [("artifacts/metrics/loss.txt", "step,loss\n"), ("metrics/x.jsonl", '{"loss": 1}\n')]:
        path = store(tmp_path, name, data)
        assert not mlflow_files.claims(path, data.encode())
    assert not mlflow_files.claims(Path("run/metrics/loss"), b"1700000000123 2.5 0\n"), "no run folder"
    assert not mlflow_files.claims(Path("run/meta.yaml"), b"name: x\n")


# -- sqlite


def database(path: Path, runs: list[tuple[str, str, str, str]]) -> sqlite3.Connection:
    """Tables as of MLflow 2 and 3, without those that hold no run; runs: (id, name, status, lifecycle_stage)."""
    db = sqlite3.connect(path)
    db.executescript("""
        CREATE TABLE runs (run_uuid VARCHAR(32) NOT NULL PRIMARY KEY, name VARCHAR(250), status VARCHAR(9),
            start_time BIGINT, end_time BIGINT, lifecycle_stage VARCHAR(20),
            artifact_uri VARCHAR(200), experiment_id INTEGER);
        CREATE TABLE metrics (key VARCHAR(250) NOT NULL, value FLOAT NOT NULL, timestamp BIGINT NOT NULL,
            run_uuid VARCHAR(32) NOT NULL, step BIGINT DEFAULT '0' NOT NULL, is_nan BOOLEAN DEFAULT '0' NOT NULL,
            PRIMARY KEY (key, timestamp, step, run_uuid, value, is_nan));
        CREATE TABLE params (key VARCHAR(250) NOT NULL, value VARCHAR(8000) NOT NULL, run_uuid VARCHAR(32) NOT NULL);
        CREATE TABLE tags (key VARCHAR(250) NOT NULL, value VARCHAR(8000), run_uuid VARCHAR(32) NOT NULL);
        CREATE TABLE latest_metrics (key VARCHAR(250) NOT NULL, value FLOAT NOT NULL, run_uuid VARCHAR(32) NOT NULL);
    """)
    for run, name, status, stage in runs:
        db.execute("INSERT INTO runs VALUES (?, ?, ?, 1700000000000, NULL, ?, '', 0)", [run, name, status, stage])
    db.commit()
    return db


def log(db: sqlite3.Connection, run: str, key: str, value: float, step: int, is_nan: bool = False) -> None:
    db.execute("INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?)", [key, value, 1700000000000 + 1000 * step, run, step, is_nan])


def test_one_run(tmp_path: Path) -> None:
    path = tmp_path / "mlflow.db"
    db = database(path, [(RUN, "owl", "FAILED", "active"), ("f" * 32, "gone", "FINISHED", "deleted")])
    for key, value, step, nan in [
        ("loss", 2.5, 0, False),
        ("loss", 0.0, 1, True),
        ("loss", LARGEST, 2, False),
        ("loss", -LARGEST, 3, False),
    ]:
        log(db, RUN, key, value, step, nan)
    log(db, "f" * 32, "loss", 1.0, 0)
    db.execute("INSERT INTO params VALUES ('lr', '0.1', ?)", [RUN])
    db.commit()
    db.close()
    before = sorted(p.name for p in tmp_path.iterdir())
    got = Read(mlflow_sqlite, path)
    assert got.claimed and [r[:2] for r in got.rows] == [(0, "loss"), (1, "loss"), (2, "loss"), (3, "loss")]
    assert math.isnan(got.rows[1][2]) and [r[2] for r in got.rows[2:]] == [math.inf, -math.inf]
    assert got.rows[3][3] == 1700000003.0 and got.config == {"lr": "0.1"}
    assert got.events == [("status", "error", "mlflow status FAILED", 1700000000.0)]
    assert any("2 values" in n for n in got.notes) and any("deleted" in n for n in got.notes)
    assert sorted(p.name for p in tmp_path.iterdir()) == before, "nothing is written beside the input"


def test_runs_of_one_store_are_runs_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "mlflow.db"
    db = database(
        path, [("a" * 32, "owl", "FINISHED", "active"), ("b" * 32, "../hen", "KILLED", "active"), ("c" * 32, "cat", "FAILED", "active")]
    )
    for step in range(50):  # hen goes on where owl stops, which makes it no part of owl: the store says whose a value is
        log(db, "a" * 32, "train/loss", 3.0 - step / 50, step)
        log(db, "b" * 32, "train/loss", 2.0 - step / 50, step + 40)
    db.execute("INSERT INTO params VALUES ('lr', '0.1', ?), ('lr', '0.2', ?)", ["a" * 32, "b" * 32])
    db.commit()
    db.close()
    (tmp_path / "common.yaml").write_text("optimizer: adam\n")
    for root in (path, tmp_path):
        runs = read_all(root)
        assert [r.id for r in runs] == ["mlflow.db__cat", "mlflow.db__owl", "mlflow.db___hen"], "the last one was written last"
        assert [r.path for r in runs] == [f"{path}/{name}" for name in ("cat", "owl", "_hen")]
        _, owl, hen = runs
        assert [r.tables["metrics"].num_rows for r in runs] == [0, 50, 50]
        assert owl.tables["metrics"]["step"].to_pylist() == list(range(50)) and set(hen.tables["metrics"]["name"].to_pylist()) == {
            "loss.train"
        }
        told = [dict(zip(*(r.tables["config"][c].to_pylist() for c in ("key", "value")), strict=True)) for r in runs]
        assert [t.get("lr") for t in told] == [None, '"0.1"', '"0.2"']
        assert [r.tables["events"]["text"].to_pylist() for r in runs] == [[f"mlflow status {s}"] for s in ("FAILED", "FINISHED", "KILLED")]
        assert len(runs) == 3
    assert [t.get("optimizer") for t in told] == [None, '"adam"', '"adam"'], "a config beside the store goes with those that logged"
    (alone,) = read_all(tmp_path / "mlflow.db" / "owl")
    assert alone.id == "mlflow.db__owl" and alone.tables["metrics"].num_rows == 50
    with pytest.raises(FileNotFoundError, match="no run dog in"):
        read_all(tmp_path / "mlflow.db" / "dog")


def test_several_runs_carry_their_names(tmp_path: Path) -> None:
    path = tmp_path / "mlflow.db"
    ids = [c * 32 for c in "abc"]
    db = database(path, [(ids[0], "owl", "FINISHED", "active"), (ids[1], "owl", "RUNNING", "active"), (ids[2], "hen", "KILLED", "active")])
    for run in ids:
        log(db, run, "loss", 0.5, 1)
    db.commit()
    db.close()
    got = Read(mlflow_sqlite, path)
    assert got.runs == {"owl-aaaaaaaa": ["loss"], "owl-bbbbbbbb": ["loss"], "hen": ["loss"]}
    assert any(n.startswith("3 runs: ") for n in got.notes) and len(got.events) == 3


def test_rows_that_are_only_in_the_write_ahead_log(tmp_path: Path) -> None:
    path = tmp_path / "project.db"
    db = sqlite3.connect(path)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA wal_autocheckpoint=0")
    db.executescript("""
        CREATE TABLE metrics (id INTEGER PRIMARY KEY, timestamp TEXT, run_name TEXT, step INTEGER, metrics TEXT);
        CREATE TABLE configs (id INTEGER PRIMARY KEY, run_name TEXT, config TEXT, created_at TEXT);
    """)
    values = {"train": {"loss": 0.5}, "acc": "NaN", "lr": "Infinity", "note": "text", "on": True, "t": {"_type": "trackio.table", "n": 1}}
    db.execute("INSERT INTO metrics VALUES (1, '2023-11-14T22:13:20+00:00', 'r', 7, ?)", [json.dumps(values).encode()])
    db.execute("INSERT INTO metrics VALUES (2, '2023-11-14T22:13:21+00:00', 'r', 8, 'no json')")
    db.execute("INSERT INTO configs VALUES (1, 'r', ?, '')", [json.dumps({"lr": 0.1})])
    db.commit()
    got = Read(mlflow_sqlite, path)  # while the writer still has it open, as after a kill
    db.close()
    assert got.claimed and [r[:2] for r in got.rows] == [(7, "train/loss"), (7, "acc"), (7, "lr")]
    assert math.isnan(got.rows[1][2]) and got.rows[2][2] == math.inf and got.rows[0][3] == 1.7e9
    assert got.config == {"lr": 0.1} and [g.at for g in got.gaps] == ["row 2"]


def test_damaged_pages_cost_what_is_on_them(tmp_path: Path) -> None:
    path = tmp_path / "mlflow.db"
    db = database(path, [(RUN, "owl", "FINISHED", "active")])
    for step in range(5000):
        log(db, RUN, "loss", 0.5, step)
    db.commit()
    pages = db.execute("PRAGMA page_count").fetchone()[0]
    db.close()
    whole = len(Read(mlflow_sqlite, path).rows)
    data = bytearray(path.read_bytes())
    middle = 4096 * (pages // 2)
    data[middle : middle + 8192] = b"\xff" * 8192
    path.write_bytes(data)
    got = Read(mlflow_sqlite, path)
    assert whole == 5000 and got.claimed
    assert 4500 < len(got.rows) < 5000 and got.gaps
    assert len({r[0] for r in got.rows}) == len(got.rows), "no row twice"
    for cut in (50, 4096, 20_000):
        path.write_bytes(data[:cut])
        assert Read(mlflow_sqlite, path).gaps


def test_other_databases_are_not_claimed(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE metrics (a, b)")
    assert not mlflow_sqlite.claims(path, path.read_bytes()[:HEAD_BYTES])
    assert not mlflow_sqlite.claims(tmp_path / "x.db", b"not sqlite")


@pytest.mark.parametrize("data", [b"", b"\x00" * 100, b"SQLite format 3\x00" + b"\xff" * 5000])
def test_nonsense_ends_without_a_traceback(tmp_path: Path, data: bytes) -> None:
    path = store(tmp_path, "metrics/loss", data)
    Read(mlflow_files, path)
    assert Read(mlflow_sqlite, path).gaps


def test_each_run_of_a_file_store_keeps_its_own_parameters(tmp_path: Path) -> None:
    for seed in range(1, 4):
        run = tmp_path / "mlruns" / "7" / f"{seed:032x}"
        for name, text in {"params/seed": str(seed), "tags/mlflow.runName": f"nightly-{seed}"}.items():
            (run / name).parent.mkdir(parents=True, exist_ok=True)
            (run / name).write_text(text)
        (run / "metrics").mkdir()
        (run / "metrics" / "loss").write_text("".join(f"{1700000000000 + 1000 * i} {seed + 1 / (1 + i)} {i}\n" for i in range(30)))
    runs = read_all(tmp_path)
    seeds = [[json.loads(r["value"]) for r in run.tables["config"].to_pylist() if r["key"] == "seed"] for run in runs]
    assert sorted(seeds) == [["1"], ["2"], ["3"]]
    assert seed_group.are_seeds(runs)


def test_values_that_are_not_numbers_are_no_console_log(tmp_path: Path) -> None:
    path = tmp_path / RUN / "metrics" / "neg_elbo"
    path.parent.mkdir(parents=True)
    path.write_text("".join(f"{1795727438449 + 20 * i} nan {10 * i}\n" for i in range(30)))
    assert [name_of(p) for p in claimants(path, path.read_bytes()[:HEAD_BYTES])] == ["mlflow_files"]


def test_what_stands_beside_a_metric_is_in_the_other_files(tmp_path: Path) -> None:
    """A file for each metric: the losses of two players are terms, of which neither is the whole, and each alone would be taken for it."""
    store = tmp_path / "mlruns" / "0" / RUN / "metrics" / "loss"
    store.mkdir(parents=True)
    for name in ("d", "g"):
        (store / name).write_text("".join(f"{1_780_000_000_000 + s} {1 + ord(name) / s} {s}\n" for s in range(1, 9)))
    (run,) = read_all(tmp_path)
    assert {(r["tag"], r["name"]) for r in run.tables["metrics"].to_pylist()} == {("loss/d", "loss.aux"), ("loss/g", "loss.aux")}

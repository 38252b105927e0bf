from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import parsers
from parsers.formats import wandb_folder
from parsers.tables import HEAD_BYTES, SCHEMAS, Gap, Note, table_of

OPEN = Path(__file__).parents[2].parent / "shared" / "open"
FOLDER = Path("wandb") / "run-20230714_050600-abc123"


def parse(path: Path) -> tuple[dict[str, list[dict[str, Any]]], list[Gap], str]:
    rows: dict[str, list[dict[str, Any]]] = {table: [] for table in SCHEMAS}
    gaps, notes = [], []
    for item in wandb_folder.parse(path):
        if isinstance(item, Gap):
            gaps.append(item)
        elif isinstance(item, Note):
            notes.append(item.text)
        else:
            assert isinstance(item, pa.RecordBatch)
            rows[table_of(item)] += item.to_pylist()
    return rows, gaps, "; ".join(notes)


def write(root: Path, name: str, text: str | bytes, folder: Path = FOLDER) -> Path:
    path = root / folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def config(rows: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    return {r["key"]: json.loads(r["value"]) for r in rows["config"]}


def metrics(rows: dict[str, list[dict[str, Any]]]) -> list[tuple[int | None, str, float, float | None]]:
    return [(r["step"], r["tag"], r["value"], r["time"]) for r in rows["metrics"]]


CONFIG = """wandb_version: 1

_wandb:
  desc: null
  value:
    cli_version: 0.13.5
    python_version: 3.8.13
    t: {1: [2, 3]}
lr:
  desc: null
  value: 1e-05
optim:
  desc: null
  value:
    betas: [0.9, 0.95]
    wandb_api_key: abcdefghijkl
name:
  value: resnet
"""


def test_config_yaml(tmp_path: Path) -> None:
    rows, gaps, notes = parse(write(tmp_path, "files/config.yaml", CONFIG))
    assert gaps == []
    assert config(rows) == {"wandb.python_version": "3.8.13", "lr": 1e-05, "optim.betas": [0.9, 0.95],
                            "optim.wandb_api_key": "***", "name": "resnet"}  # fmt: skip
    assert {r["key"]: r["at"] for r in rows["config"]}["lr"] == 9
    assert "0.13.5" in notes


def test_damaged_config_keeps_the_settings_that_parse(tmp_path: Path) -> None:
    text = CONFIG.replace("value: 1e-05", "value: [1e-05")
    rows, gaps, _ = parse(write(tmp_path, "files/config.yaml", text))
    assert config(rows).keys() == {"wandb.python_version", "optim.betas", "optim.wandb_api_key", "name"}
    assert [g.at for g in gaps] == ["line 9"]
    rows, gaps, _ = parse(write(tmp_path, "files/config.yaml", CONFIG.encode()[:160] + b"\x00\xff\xfe\x00"))
    assert len(gaps) > 0
    assert "wandb.python_version" in config(rows)


def test_yaml_that_would_run_or_explode(tmp_path: Path) -> None:
    lines = ["wandb_version: 1", "a: {value: &a [x, x, x, x, x, x, x, x, x, x]}"]
    lines += [f"{b}: {{value: &{b} [{', '.join([f'*{a}'] * 10)}]}}" for a, b in pairwise("abcdefghi")]
    lines += ["evil: {value: !!python/object/apply:os.system ['echo no']}", "lr: {value: 0.1}"]
    rows, gaps, _ = parse(write(tmp_path, "files/config.yaml", "\n".join(lines)))
    assert config(rows)["lr"] == 0.1
    assert "evil" not in config(rows)
    assert len(gaps) > 0
    deep = "wandb_version: 1\nx: {value: " + "[" * 50_000 + "]" * 50_000 + "}\nlr: {value: 0.2}\n"
    rows, gaps, _ = parse(write(tmp_path, "files/config.yaml", deep))
    assert config(rows) == {"lr": 0.2}
    assert len(gaps) == 1


def test_only_wandbs_own_config_is_claimed(tmp_path: Path) -> None:
    for name, folder, text, ours in (
        ("files/config.yaml", FOLDER, CONFIG, True),
        ("config.yaml", FOLDER, CONFIG, True),
        ("files/config.yaml", FOLDER, "lr:\n  value: 1\n", True),
        ("files/config.yaml", FOLDER, "lr: 1\nmodel: {depth: 3}\n", False),
        ("config.yaml", Path("exp"), "lr: 1\n", False),
        ("files/model/config.yaml", FOLDER, CONFIG, False),
        ("files/output.log", FOLDER, "step 1 loss 2\n", False),
        ("requirements.txt", Path("exp"), "torch==2.0\n", False),
        ("files/requirements.txt", FOLDER, "torch==2.0\n", True),
        ("wandb-summary.json", Path("exp"), "{}", True),
        ("files/wandb-summary.json", FOLDER, "version https://git-lfs.github.com/spec/v1\n", False),
        ("debug.log", Path("exp"), "x\n", False),
        ("debug.log", Path("wandb"), "x\n", True),
    ):
        path = write(tmp_path, name, text, folder)
        assert wandb_folder.claims(path, path.read_bytes()[:HEAD_BYTES]) is ours, (name, folder)
        path.unlink()


def test_summary_alone_stands_at_its_step(tmp_path: Path) -> None:
    document = {"loss": 0.5, "acc": {"max": 0.9}, "bad": "NaN", "_step": 99, "_timestamp": 1700000000.5, "_runtime": 12,
                "_wandb": {"runtime": 12}, "text": "x", "pics": {"_type": "images", "width": 3}}  # fmt: skip
    path = write(tmp_path, "files/wandb-summary.json", json.dumps(document))
    rows, gaps, notes = parse(path)
    assert gaps == []
    got = metrics(rows)
    assert [m for m in got if m[1] != "bad"] == [
        (99, tag, value, 1700000000.5) for tag, value in (("loss", 0.5), ("acc.max", 0.9), ("_runtime", 12.0), ("pics.width", 3.0))
    ]
    assert math.isnan(next(m[2] for m in got if m[1] == "bad"))
    assert "1 images" in notes
    write(tmp_path, "run-abc123.wandb", bytes(100))
    assert {m[0] for m in metrics(parse(path)[0])} == {None}  # beside a history, a last value has no step of its own


@pytest.mark.parametrize(("name", "step"), [("train/global_step", 68559), ("trainer/global_step", 68559), ("eval/steps_per_second", 153)])
def test_a_summary_stands_at_the_step_of_its_trainer(tmp_path: Path, name: str, step: int) -> None:
    """W&B's own counts calls of ``log``."""
    rows, _, _ = parse(write(tmp_path, "files/wandb-summary.json", json.dumps({"_step": 153, name: 68559, "loss": 1.5})))
    assert {m["step"] for m in rows["metrics"]} == {step}


def test_damaged_summary(tmp_path: Path) -> None:
    rows, gaps, _ = parse(write(tmp_path, "files/wandb-summary.json", '{"loss": 0.5,\n "acc": 0.25, "late": 0.1'))
    assert [m[1:3] for m in metrics(rows)] == [("loss", 0.5), ("acc", 0.25)]
    assert len(gaps) == 1
    for text in ("", "[]", "\x00\x00", "{" * 100_000, '{"a":' * 50_000):
        rows, gaps, _ = parse(write(tmp_path, "files/wandb-summary.json", text))
        assert rows["metrics"] == []
        assert len(gaps) > 0


def test_metadata_with_secrets(tmp_path: Path) -> None:
    document = {"host": "node7", "gpu": "Tesla K80", "gpu_count": 4, "startedAt": "2020-03-15T01:28:21.5",
                "git": {"remote": "https://me:topsecret@example.org/x.git", "commit": "abc"}, "state": "failed",
                "args": ["--lr", "0.1", "--hf_token", "hf_0123456789abcdefghij"], "exitcode": 1,
                "heartbeatAt": "2020-03-15T01:28:22"}  # fmt: skip
    rows, gaps, _ = parse(write(tmp_path, "files/wandb-metadata.json", json.dumps(document)))
    found = config(rows)
    assert gaps == []
    assert (found["wandb.host"], found["wandb.gpu_count"], found["wandb.git.commit"]) == ("node7", 4, "abc")
    assert found["wandb.args"].startswith("--lr 0.1 ")
    assert found["wandb.startedAt"] == "2020-03-15T01:28:21.5"
    assert "topsecret" not in str(rows)
    assert "hf_0123456789abcdefghij" not in str(rows)
    event = rows["events"][0]
    assert (event["kind"], event["level"], event["text"]) == ("exit", "error", "exit code 1 (failed)")
    assert event["time"] == 1584235702.0


def test_history_lines_of_old_versions(tmp_path: Path) -> None:
    lines = [
        '{"loss": 2.5, "_step": 10, "_timestamp": 100.5, "_runtime": 1, "x": {"y": 3}}',
        '{"loss": NaN, "_step": 11, "_timestamp": 101.5}',
        "not json",
        "",
        '{"loss": 1.5, "_step": 11, "h": {"_type": "histogram", "values": [1, 1], "bins": [0, 1, 2]}}',
        '{"loss": 1.25, "_st',
    ]
    rows, gaps, notes = parse(write(tmp_path, "wandb-history.jsonl", "\n".join(lines)))
    got = [m for m in metrics(rows) if m[1] in ("loss", "x.y")]
    assert got[0] == (10, "loss", 2.5, 100.5)
    assert got[1] == (10, "x.y", 3.0, 100.5)
    assert (got[2][0], math.isnan(got[2][2])) == (11, True)
    assert got[3] == (11, "loss", 1.5, None)
    assert [(r["step"], r["tag"], r["count"]) for r in rows["histograms"]] == [(11, "h", 2.0)]
    assert [(g.at, g.lost) for g in gaps] == [("line 3", 1), ("line 6", 1)]
    assert "3 history rows" in notes
    assert {r["at"] for r in rows["metrics"]} == {1, 2, 5}


def test_history_takes_the_frameworks_step(tmp_path: Path) -> None:
    lines = ['{"loss": 1, "train/global_step": 500, "_step": 0}', '{"eval": 2, "_step": 1}']
    rows, _, _ = parse(write(tmp_path, "wandb-history.jsonl", "\n".join(lines)))
    assert {m[0] for m in metrics(rows)} == {500}


def test_system_metrics_of_old_versions(tmp_path: Path) -> None:
    line = '{"system.gpu.0.temp": 61, "system.network": {"sent": 5}, "_wandb": true, "_timestamp": 1584235478}'
    rows, gaps, _ = parse(write(tmp_path, "wandb-events.jsonl", line + "\n" + line[:30]))
    time = 1584235478.0
    assert metrics(rows)[:2] == [(None, "system.gpu.0.temp", 61.0, time), (None, "system.network.sent", 5.0, time)]
    assert [(g.at, g.lost) for g in gaps] == [("line 2", 1)]


def test_packages(tmp_path: Path) -> None:
    text = "absl-py==0.9.0\ntorch==2.1.0+cu118\nflash_attn==2.3\n# x\nbroken line\nnumpy==1.26.4\n"
    rows, _, notes = parse(write(tmp_path, "files/requirements.txt", text))
    assert config(rows) == {"package.torch": "2.1.0+cu118", "package.flash-attn": "2.3", "package.numpy": "1.26.4"}
    assert "4 installed packages" in notes
    conda = "dependencies:\n  - pytorch=1.4.0=py3.7_cuda10\n  - pip:\n    - transformers==4.30.0\n"
    assert config(parse(write(tmp_path, "conda-environment.yaml", conda))[0]) == {
        "package.pytorch": "1.4.0", "package.transformers": "4.30.0"
    }  # fmt: skip


@pytest.mark.parametrize("line", [
    "2021 WARNING HandlerThread:1 [handler.py:handle():553] Step {} < 9. Dropping entry: {{'a': 1}}.",
    "wandb: WARNING Step must only increase in log calls.  Step {} < 9; dropping {{'val/AP50': 0.3}}.",
    "WARNING (User provided step: {} is less than current step: 9. Dropping entry: {{'a': 1}}).",
    '{{"time":"2026","level":"WARN","msg":"handler: ignoring partial history record","step":{},"current":9}}',
    "wandb: WARNING Tried to log to step {} that is less than the current step 9. Steps must be monotonically",
])  # fmt: skip
def test_dropped_rows_in_sdk_logs(tmp_path: Path, line: str) -> None:
    text = "a line about step 7\n" + "\n".join(line.format(i) for i in (3, 4, 5, 2)) + "\n"
    rows, gaps, _ = parse(write(tmp_path, "logs/debug-internal.log", text))
    assert [(e["kind"], e["level"], e["step"], e["at"]) for e in rows["events"]] == [
        ("rows_dropped", "warning", 3, 2), ("rows_dropped", "warning", 2, 5)
    ]  # fmt: skip
    assert "3 rows of steps 3 to 5" in rows["events"][0]["text"]
    assert [(g.at, g.lost) for g in gaps] == [("line 2", 4)]


def test_init_and_exit_in_sdk_logs(tmp_path: Path) -> None:
    failed = "2022-12-19 20:33:06,540 ERROR   MainThread:471 [wandb_init.py:init():713] encountered error: resume='never' but run (abc123) exists\n"
    end = "2022-12-19 20:33:48,840 INFO    MainThread:471 [wandb_run.py:_finish():1746] finishing run team/test/{}\n"
    code = "2022-12-19 20:33:48,841 INFO    MainThread:471 [wandb_run.py:_atexit_cleanup():1949] got exitcode: {}\n"
    rows, _, _ = parse(write(tmp_path, "logs/debug.log", failed + end.format("zzz999") + code.format(0)))
    assert [(e["kind"], e["level"], e["text"]) for e in rows["events"]] == [
        ("warning", "error", "wandb.init encountered error: resume='never' but run (abc123) exists")
    ], "the exit code is that of another run of the process"
    rows, _, _ = parse(write(tmp_path, "logs/debug.log", end.format("abc123") + code.format(255)))
    assert [(e["kind"], e["level"], e["text"]) for e in rows["events"]] == [("exit", "error", "exit code 255")]


def test_patch(tmp_path: Path) -> None:
    text = "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1 +1,2 @@\n-lr = 1\n+lr = 2\n+eps = 3\n"
    _, _, notes = parse(write(tmp_path, "files/diff.patch", text))
    assert "1 files, 2 lines added, 1 removed" in notes


@pytest.mark.parametrize("name", [
    "files/config.yaml", "files/wandb-summary.json", "files/wandb-metadata.json", "wandb-history.jsonl",
    "wandb-events.jsonl", "files/requirements.txt", "logs/debug.log", "files/diff.patch",
])  # fmt: skip
@pytest.mark.parametrize("text", [b"", b"\x00" * 5000, b"\xff\xfe\xfd" * 500, b"{" * 3000, b"a" * 100_000, b'"\n' * 50,
                                  b"{}\n[]\n1\n", b'{"_step": "x", "_timestamp": [], "a": {"b": [{}]}}'])  # fmt: skip
def test_bad_input_is_never_an_error(tmp_path: Path, name: str, text: bytes) -> None:
    rows, _, _ = parse(write(tmp_path, name, text))
    assert rows["metrics"] == []


@pytest.mark.skipif(not OPEN.is_dir(), reason="needs the open runs")
def test_open_runs_have_one_parser_each_and_lose_no_value() -> None:
    import polars as pl

    truth = pl.read_parquet(OPEN / "runs_scalars.parquet").filter(pl.col("file").str.contains("wandb-"))
    assert len(truth) > 0
    for (run, file), rows in truth.group_by("run", "file"):
        want = {f"{v:.6g}" for v in rows["value"]}
        got = {f"{r['value']:.6g}" for r in parse(OPEN / "runs" / str(run) / str(file))[0]["metrics"]}
        assert want <= got, (run, file)
    for path in OPEN.glob("*/**/wandb/*run-*/**/*"):
        if path.is_file():
            with path.open("rb") as f:
                assert len(parsers.claimants(path, f.read(HEAD_BYTES))) <= 1, path

"""The command line as other programs rely on it: exit codes, outputs, streams, and that it works in odd folders."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

ROOT = Path(__file__).resolve().parent.parent
SPIKE = "".join(
    json.dumps({"step": i, "loss": 2.5 - i * 1e-3 + 0.01 * ((i * 7919) % 13 - 6) / 6 + (3.0 if i == 150 else 0.0)}) + "\n"
    for i in range(300)
)


def run(*args: object, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "import sys; from forensics.cli import main; sys.argv[0] = 'forensics'; main()"]
    return subprocess.run([*command, *map(str, args)], cwd=cwd, capture_output=True, text=True, env={**os.environ, **(env or {})})


@pytest.fixture
def spike_run(tmp_path: Path) -> Path:
    folder = tmp_path / "runs" / "xyz"
    folder.mkdir(parents=True)
    (folder / "metrics.jsonl").write_text(SPIKE)
    return folder


def test_analyze_writes_report_and_case_here(spike_run: Path, tmp_path: Path) -> None:
    p = run("analyze", spike_run, cwd=tmp_path)
    assert p.returncode == 0, p.stderr
    case = json.loads((tmp_path / "xyz.case.json").read_text())
    assert case["schema"] == 1
    assert [s["peak"] for s in case["spikes"]] == [150]
    assert case["spikes"][0]["class"] == "fast"
    assert (tmp_path / "xyz.html").read_text().startswith("<!doctype html>")
    assert "xyz.html" in p.stdout
    assert sum(h["probability"] for h in case["hypotheses"]) == pytest.approx(1, abs=1e-4)


def test_own_report_is_replaced_a_strangers_is_not(spike_run: Path, tmp_path: Path) -> None:
    assert run("analyze", spike_run, cwd=tmp_path).returncode == 0
    assert run("analyze", spike_run, cwd=tmp_path).returncode == 0
    (tmp_path / "xyz.html").write_text("mine")
    p = run("analyze", spike_run, cwd=tmp_path)
    assert p.returncode == 1
    assert "already exists" in p.stderr and "Traceback" not in p.stderr
    assert (tmp_path / "xyz.html").read_text() == "mine"
    assert run("analyze", spike_run, "--force", cwd=tmp_path).returncode == 0


def test_named_outputs_are_kept_unless_forced(spike_run: Path, tmp_path: Path) -> None:
    assert run("analyze", spike_run, "--out", "r.html", cwd=tmp_path).returncode == 0
    assert (tmp_path / "r.case.json").exists()
    assert run("analyze", spike_run, "--out", "r.html", cwd=tmp_path).returncode == 1
    assert run("analyze", spike_run, "--out", "r.html", "--force", cwd=tmp_path).returncode == 0


def test_exit_codes(spike_run: Path, tmp_path: Path) -> None:
    assert run("analyze", tmp_path / "nowhere", cwd=tmp_path).returncode == 1
    assert run("analyze", cwd=tmp_path).returncode == 2
    assert run("analyze", spike_run, "--metric", "nonsense", cwd=tmp_path).returncode == 2
    assert run("analyze", spike_run, "--fail-on", "unhealthy", cwd=tmp_path).returncode == 3
    assert run("analyze", spike_run, "--fail-on", "inconclusive", "--force", cwd=tmp_path).returncode == 3  # or worse
    (tmp_path / "empty").mkdir()
    p = run("analyze", "empty", cwd=tmp_path)
    assert p.returncode == 1 and "nothing readable" in p.stderr and len(p.stderr.splitlines()) <= 3


def test_render_gives_the_same_bytes(spike_run: Path, tmp_path: Path) -> None:
    assert run("analyze", spike_run, "--out", "a.html", "--md", "a.md", cwd=tmp_path).returncode == 0
    assert run("render", "a.case.json", "--out", "b.html", cwd=tmp_path).returncode == 0
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    assert "150" in (tmp_path / "a.md").read_text()


def test_render_refuses_what_is_no_case(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("[1, 2]")
    p = run("render", "x.json", cwd=tmp_path)
    assert p.returncode == 1 and "not a forensics case file" in p.stderr


def test_tables_are_parquet_with_values_as_logged(spike_run: Path, tmp_path: Path) -> None:
    (spike_run / "metrics.jsonl").write_text('{"step": 1, "loss": 2.5}\n{"step": 2, "loss": NaN}\n{"step": 2, "loss": 2.25}\n')
    assert run("tables", spike_run, "--out", "t", cwd=tmp_path).returncode == 0
    metrics = pl.read_parquet(tmp_path / "t" / "metrics.parquet").filter(pl.col("tag") == "loss")
    assert metrics["step"].to_list() == [1, 2, 2]
    assert str(metrics["value"].to_list()) == "[2.5, nan, 2.25]"
    assert metrics["name"].cast(pl.String).to_list() == ["loss.train"] * 3
    assert metrics["at"].to_list() == [1, 2, 3]
    for name in ("events", "config", "batches", "checkpoints", "tensors"):
        assert (tmp_path / "t" / f"{name}.parquet").exists()


def test_house_names_through_metric_option(spike_run: Path, tmp_path: Path) -> None:
    (spike_run / "metrics.jsonl").write_text(SPIKE.replace('"loss"', '"zielfunktion"'))
    assert run("analyze", spike_run, "--metric", "loss.train=zielfunktion", cwd=tmp_path).returncode == 0
    case = json.loads((tmp_path / "xyz.case.json").read_text())
    assert case["run"]["metrics"]["loss.train"]["tag"] == "zielfunktion"
    assert len(case["spikes"]) == 1


def test_house_names_from_a_file(spike_run: Path, tmp_path: Path) -> None:
    (spike_run / "metrics.jsonl").write_text(SPIKE.replace('"loss"', '"zielfunktion"'))
    (spike_run / "forensics.toml").write_text('[metrics]\n"loss.train" = "zielfunktion"\n')
    assert run("analyze", spike_run, cwd=tmp_path, env={"HOME": str(tmp_path)}).returncode == 0
    assert json.loads((tmp_path / "xyz.case.json").read_text())["run"]["metrics"]["loss.train"]["tag"] == "zielfunktion"
    (spike_run / "forensics.toml").write_text("[metrics\n")
    p = run("analyze", spike_run, cwd=tmp_path)
    assert p.returncode == 0
    assert any("forensics.toml" in g["path"] for g in json.loads((tmp_path / "xyz.case.json").read_text())["gaps"])


def test_batch_names_samples_or_says_unknown(spike_run: Path, tmp_path: Path) -> None:
    p = run("batch", spike_run, "--step", "150", "--json", cwd=tmp_path)
    assert p.returncode == 0 and json.loads(p.stdout)["how"] == "unknown"
    (spike_run / "batches.jsonl").write_text(
        "".join(json.dumps({"step": i, "sample_ids": [i, i + 1000], "shard": f"s{i // 100}"}) + "\n" for i in range(300))
    )
    answer = json.loads(run("batch", spike_run, "--step", "150", "--json", cwd=tmp_path).stdout)
    assert answer["samples"] == [150, 1150] and answer["shard"] == "s1" and answer["how"] == "recorded"
    assert "150, 1150" in run("batch", spike_run, "--step", "150", cwd=tmp_path).stdout


def test_explain_lists_and_prints(tmp_path: Path) -> None:
    listed = run("explain", cwd=tmp_path).stdout
    assert "loss_spike" in listed and "bad_data_batch" in listed
    assert "Cannot tell" in run("explain", "loss_spike", cwd=tmp_path).stdout
    assert "grad.norm" in run("explain", "metrics", cwd=tmp_path).stdout
    p = run("explain", "loss_spikes", cwd=tmp_path)
    assert p.returncode == 1 and "loss_spike" in p.stderr


def test_redact_hides_people_and_places(spike_run: Path, tmp_path: Path) -> None:
    (spike_run / "config.yaml").write_text("email: jane@example.com\nhostname: gpu-node-17\ndata: /home/jane/corpus/train.bin\n")
    assert run("analyze", spike_run, "--redact", "--out", "r.html", cwd=tmp_path).returncode == 0
    text = (tmp_path / "r.html").read_text() + (tmp_path / "r.case.json").read_text()
    for secret in ("jane@example.com", "gpu-node-17", "/home/jane", str(tmp_path)):
        assert secret not in text


def test_works_where_users_have_folders_of_our_names(spike_run: Path, tmp_path: Path) -> None:
    for name in ("parsers", "reports"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('theirs was imported')")
    command = Path(sys.executable).parent / "forensics"
    if not command.exists():
        pytest.skip("the command is not installed beside this Python")
    p = subprocess.run([command, "analyze", str(spike_run)], cwd=tmp_path, capture_output=True, text=True)
    assert p.returncode == 0, p.stderr
    p = subprocess.run(
        [sys.executable, "-c", "import forensics"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": f".{os.pathsep}{ROOT}"},
    )
    assert p.returncode != 0
    assert "ImportError" in p.stderr and "Rename that folder" in p.stderr


def test_inputs_are_never_changed(spike_run: Path, tmp_path: Path) -> None:
    before = {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in spike_run.rglob("*")}
    assert run("analyze", spike_run, cwd=tmp_path).returncode == 0
    assert {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in spike_run.rglob("*")} == before

"""read(): several formats at once, copies merged, attempts told apart, one run or several, and nothing lost on the way."""

from __future__ import annotations

import json
import os
from pathlib import Path

import polars as pl
import pytest

import parsers
from parsers.tables import Run


def jsonl(path: Path, rows: list[dict[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))


def csv(path: Path, header: str, rows: list[tuple[object, ...]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([header, *(",".join(map(str, r)) for r in rows)]) + "\n")


def metrics(run: Run) -> pl.DataFrame:
    frame = pl.DataFrame(run.tables["metrics"])
    assert isinstance(frame, pl.DataFrame)
    return frame.with_columns(pl.col("name", "tag", "source").cast(pl.String))


def loss(i: int) -> float:
    return 3.0 - 0.01 * i + 0.001 * (i * 37 % 11)


# --- merging


def test_what_two_formats_both_say_counts_once(tmp_path: Path) -> None:
    jsonl(tmp_path / "log.jsonl", [{"step": i, "train/loss": loss(i), "only_here": i * 2.5} for i in range(50)])
    csv(tmp_path / "a_first.csv", "step,loss,acc", [(i, loss(i), i / 50) for i in range(50)])
    run = parsers.read(tmp_path)
    assert metrics(run).filter(pl.col("name") == "loss.train").height == 50
    assert run.merged == 50
    assert metrics(run)["tag"].unique().sort().to_list() == ["acc", "only_here", "train/loss"]


def test_a_step_logged_twice_in_one_file_stays_twice(tmp_path: Path) -> None:
    jsonl(tmp_path / "log.jsonl", [{"step": s, "loss": 1.5} for s in (1, 2, 2, 3)])
    assert metrics(parsers.read(tmp_path))["step"].to_list() == [1, 2, 2, 3]


def test_rounded_values_are_not_dropped(tmp_path: Path) -> None:
    jsonl(tmp_path / "log.jsonl", [{"step": i, "loss": loss(i)} for i in range(20)])
    csv(tmp_path / "metrics.csv", "step,loss", [(i, f"{loss(i):.2f}") for i in range(20)])
    values = {f"{v:.6g}" for v in metrics(parsers.read(tmp_path))["value"].to_list()}
    assert {f"{loss(i):.6g}" for i in range(20)} <= values
    assert {f"{float(f'{loss(i):.2f}'):.6g}" for i in range(20)} <= values


def test_cumulative_trainer_states_are_one_series(tmp_path: Path) -> None:
    for last in (10, 20, 30):
        history = [{"step": s, "loss": loss(s), "epoch": s / 10} for s in range(1, last + 1)]
        folder = tmp_path / (f"checkpoint-{last}" if last < 30 else ".")
        folder.mkdir(exist_ok=True)
        (folder / "trainer_state.json").write_text(json.dumps({"log_history": history, "global_step": last, "max_steps": 30}))
    run = parsers.read(tmp_path)
    curve = metrics(run).filter(pl.col("name") == "loss.train")
    assert curve["step"].to_list() == list(range(1, 31))
    assert len(run.attempts) == 1


# --- attempts


def test_steps_that_go_back_are_a_new_attempt_with_both_branches(tmp_path: Path) -> None:
    steps = [*range(60), *range(40, 100)]
    jsonl(tmp_path / "log.jsonl", [{"step": s, "loss": loss(s) + (0.5 if n < 60 else 0)} for n, s in enumerate(steps)])
    run = parsers.read(tmp_path)
    assert [a["steps"] for a in run.attempts] == [[0, 59], [40, 99]]
    rows = metrics(run).filter((pl.col("name") == "loss.train") & (pl.col("step") == 50))
    assert rows["attempt"].to_list() == [0, 1]
    assert rows["value"].to_list() == pytest.approx([loss(50) + 0.5, loss(50)])


def test_a_single_late_row_is_no_restart(tmp_path: Path) -> None:
    jsonl(tmp_path / "log.jsonl", [{"step": s, "loss": loss(s)} for s in (1, 2, 3, 5, 4, 6, 7, 8, 9, 10)])
    assert len(parsers.read(tmp_path).attempts) == 1


def test_attempts_agree_across_formats(tmp_path: Path) -> None:
    first = [{"step": s, "loss": loss(s), "timestamp": 1.7e9 + s} for s in range(60)]
    second = [{"step": s, "loss": loss(s) + 0.01, "timestamp": 1.7e9 + 1000 + s} for s in range(40, 100)]
    jsonl(tmp_path / "log.jsonl", first + second)
    csv(tmp_path / "eval.csv", "step,val_loss", [(s, loss(s)) for s in (0, 20, 40, 60, 80)])
    run = parsers.read(tmp_path)
    assert [a["steps"] for a in run.attempts] == [[0, 59], [40, 99]]
    evals = metrics(run).filter(pl.col("name") == "loss.eval")
    assert evals["attempt"].to_list() == [0, 0, 0, 1, 1]
    assert run.attempts[1]["started"] == pytest.approx(1.7e9 + 1040)


# --- one run or several


def test_siblings_over_the_same_steps_are_several_runs(tmp_path: Path) -> None:
    for n in range(3):
        jsonl(
            tmp_path / f"seed_{n}" / "log.jsonl", [{"step": s, "loss": loss(s) + n * 0.1, "time": 1.7e9 + n * 500 + s} for s in range(40)]
        )
    runs = parsers.read_all(tmp_path)
    assert sorted(r.id for r in runs) == ["seed_0", "seed_1", "seed_2"]
    last = parsers.read(tmp_path)
    assert last.id == "seed_2"
    assert len(parsers.read_all(tmp_path / "seed_1")) == 1


def test_parts_of_one_run_stay_together(tmp_path: Path) -> None:
    csv(tmp_path / "train" / "metrics.csv", "step,loss", [(i, loss(i)) for i in range(30)])
    csv(tmp_path / "val" / "metrics.csv", "step,loss", [(i, loss(i) + 0.2) for i in range(0, 30, 5)])
    (tmp_path / "config.yaml").write_text("lr: 0.1\n")
    run = parsers.read_all(tmp_path)
    assert len(run) == 1
    assert set(metrics(run[0])["name"].unique()) >= {"loss.train", "loss.eval"}


def test_a_restart_in_a_second_file_is_the_same_run(tmp_path: Path) -> None:
    csv(tmp_path / "log_1.csv", "step,loss", [(i, loss(i)) for i in range(60)])
    csv(tmp_path / "log_2.csv", "step,loss", [(i, loss(i) + 0.02) for i in range(40, 120)])
    runs = parsers.read_all(tmp_path)
    assert len(runs) == 1
    assert [a["steps"] for a in runs[0].attempts] == [[0, 59], [40, 119]]


# --- odd folders


def test_everything_is_named_and_nothing_followed(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    csv(folder / "metrics.csv", "step,loss", [(i, loss(i)) for i in range(20)])
    (folder / "model.bin.lfs").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12\n")
    (folder / "train.py").write_text("raise SystemExit('executed')\n")
    (folder / "data.zip").write_bytes(b"PK\x03\x04" + bytes(50))
    (tmp_path / "secret.csv").write_text("step,loss\n1,2\n")
    (folder / "out").symlink_to(tmp_path / "secret.csv")
    (folder / "loop").symlink_to(folder)
    os.mkfifo(folder / "pipe")
    run = parsers.read(folder)
    formats = {s.path: s.format for s in run.sources}
    assert formats["metrics.csv"] == "csv_log"
    assert "Git-LFS" in formats["model.bin.lfs"]
    assert formats["train.py"] == "Python source"
    assert formats["data.zip"] == "zip archive"
    assert "not followed" in formats["out"]
    assert "pipe" in formats["pipe"]
    assert "loop" in formats
    assert [g.path for g in run.gaps] == ["model.bin.lfs"]


def test_a_parser_that_breaks_costs_only_the_rest_of_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    csv(tmp_path / "metrics.csv", "step,loss", [(i, loss(i)) for i in range(20)])
    jsonl(tmp_path / "log.jsonl", [{"step": 1, "acc": 0.5}])
    from parsers.formats import jsonl as module

    def broken(path: Path) -> None:
        raise ValueError("boom")

    monkeypatch.setattr(module, "parse", broken)
    run = parsers.read(tmp_path)
    assert metrics(run).height == 20
    assert len(run.gaps) == 1
    assert "broke off" in run.gaps[0].what and run.gaps[0].path == "log.jsonl"


def test_secrets_never_leave_the_parser(tmp_path: Path) -> None:
    csv(tmp_path / "metrics.csv", "step,loss", [(i, loss(i)) for i in range(20)])
    (tmp_path / "config.yaml").write_text(
        "api_key: abcdef123456\nnum_key_value_heads: 8\nmax_tokens: 512\ntokenizer: gpt2\n"
        "data: https://user:hunter2@host/x\nenv: {HF_TOKEN: hf_abcdefghijklmnopqrst, PATH: /bin}\n"
    )
    text = str(parsers.read(tmp_path).tables["config"].to_pylist())
    for secret in ("abcdef123456", "hunter2", "hf_abcdefghijklmnopqrst"):
        assert secret not in text
    for kept in ("512", "gpt2", "/bin", "num_key_value_heads"):
        assert kept in text

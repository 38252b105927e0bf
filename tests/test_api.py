"""What `import forensics` offers: the functions, the frames, what a notebook shows, errors, and what an import costs."""

from __future__ import annotations

import builtins
import dataclasses
import inspect
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars
import pyarrow as pa
import pytest

import forensics
from forensics import api, audits
from forensics.replays.request import Options

SAMPLES = Path(__file__).resolve().parent.parent / "samples"
SPIKE, SEEDS = SAMPLES / "bad_batch_jsonl", SAMPLES / "seeds_far_apart"
HEAVY = ["numpy", "pyarrow", "polars", "jinja2", "sklearn", "click", "joblib", "yaml", "fsspec", "parsers", "reports"]


@pytest.fixture(scope="module")
def run() -> forensics.Run:
    return forensics.read(SPIKE)


def test_an_import_loads_nothing_heavy() -> None:
    """No timed assert: what is not imported costs nothing."""
    code = f"import forensics, sys; print([m for m in {HEAVY} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_what_only_reads_loads_nothing_that_judges() -> None:
    code = "import forensics, sys; forensics.read(sys.argv[1]); print([m for m in ('forensics.pipeline', 'forensics.signs') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code, str(SPIKE)], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("sample", ["bad_batch_jsonl", "healthy_trainer_state", "starved_loader_csv", "hang_titan"])
def test_a_small_run_is_judged_without_a_second_table_library(sample: str) -> None:
    """pyarrow imports pandas, where that is installed, to ask whether what it turns into an array is a Series, and all its functions to filter rows."""
    code = "import forensics, sys; forensics.analyze(sys.argv[1]); print([m for m in ('pandas', 'polars', 'pyarrow.compute') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code, str(SPIKE.parent / sample)], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_an_audit_writes_its_table_and_its_history_without_one(tmp_path: Path) -> None:
    code = (
        "import forensics, sys; forensics.audit(sys.argv[1], sys.argv[2], history=sys.argv[3], jobs=1)\n"
        "print([m for m in ('pandas', 'polars') if m in sys.modules])"
    )
    command = [sys.executable, "-c", code, str(SPIKE), str(tmp_path / "out"), str(tmp_path / "history")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[]\n"


def test_nor_does_a_worker_of_it_need_one(tmp_path: Path) -> None:
    """What a new process imports is paid by each worker before its first run."""
    code = (
        "import os, sys\n"
        "from forensics.audits import discover, one_place\n"
        "job = one_place.Job(sys.argv[2], sys.argv[2], 60.0, os.getpid(), os.getcwd())\n"
        "assert all(one_place.do(place, job) for place in discover.survey([sys.argv[1]], sys.argv[2]).places)\n"
        "print([m for m in ('pandas', 'polars', 'asyncio', 'joblib') if m in sys.modules])"
    )
    command = [sys.executable, "-c", code, str(SPIKE), str(tmp_path)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize(
    "rows", [["step,loss", "1,2.5", "2,1.5"], ["step,loss", *["7,2.5"] * 12]], ids=["a copy", "a step that never moves"]
)
def test_files_of_one_run_are_compared_without_one(rows: list[str], tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "log.jsonl").write_text("".join(f'{{"step": {r.split(",")[0]}, "loss": {r.split(",")[1]}}}\n' for r in rows[1:]))
    code = "import forensics, sys; forensics.read(sys.argv[1]); print([m for m in ('pandas', 'polars') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_names_of_the_package_are_what_they_say() -> None:
    """A module of ours that is imported later must not take the place of a function."""
    import forensics.audits
    import forensics.replays.session

    for name in forensics.__all__:
        thing = getattr(forensics, name)
        assert isinstance(thing, str) if name == "__version__" else callable(thing) and thing.__doc__
    with pytest.raises(AttributeError, match="has no attribute 'analyse'"):
        forensics.analyse  # type: ignore[attr-defined]  # noqa: B018


def test_frames_hold_what_the_tables_hold(run: forensics.Run) -> None:
    table = run.tables["metrics"]
    assert isinstance(table, pa.Table) and run.metrics.arrow is table and len(run.metrics) == table.num_rows
    frame = run.metrics.to_polars()
    assert isinstance(frame, polars.DataFrame) and frame.columns == table.column_names
    peak = frame.filter(polars.col("name").cast(str) == "loss.train").sort("value").row(-1, named=True)
    assert peak["step"] == 347
    named = {n for n, _ in inspect.getmembers(forensics.Run, lambda m: isinstance(m, property))}
    assert named == run.tables.keys()
    assert all(getattr(run, name).arrow is table for name, table in run.tables.items())


def test_pandas_keeps_steps_whole_and_nan_apart(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    lines = [{"step": i, "loss": math.nan if i == 3 else 1.0} for i in range(1, 9)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    frame = forensics.read(tmp_path).metrics.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert str(frame["step"].dtype) == "Int64" and frame["step"].tolist() == list(range(1, 9))
    assert frame["value"].isna().tolist() == [i == 3 for i in range(1, 9)]


def test_without_pandas_a_sentence_says_so(run: forensics.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def absent(name: str, *rest: Any) -> Any:
        if name == "pandas":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(forensics.ForensicsError) as e:
        run.metrics.to_pandas()
    assert e.value.message == "pandas is not installed, and the base install does without it" and ".to_polars()" in e.value.hint


def test_a_read_run_is_the_run_that_is_analyzed(run: forensics.Run) -> None:
    case = forensics.analyze(SPIKE)
    assert isinstance(case, forensics.Case) and case.verdict == "unhealthy" and case.run["id"] == run.id
    assert case.to_html().startswith("<!doctype html>")
    group = forensics.read(SEEDS).group
    assert len(group) == 4 and sum(isinstance(r, forensics.Run) for r in group) == 1


def test_a_run_shows_what_was_read_and_text_stays_text(tmp_path: Path, run: forensics.Run) -> None:
    shown = run._repr_html_()
    assert "<td>loss.train</td><td>train/loss</td><td>600</td><td>1 to 600</td>" in shown and "<script" not in shown
    assert repr(run).startswith("<Run bad_batch_jsonl: 3,012 metrics,") and len(repr(run)) < 200
    rows = [{"step": i, "<script>alert(1)</script>": i, "\u202eloss": 1.0, **{f"m{k}": k for k in range(40)}} for i in range(5)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"step": 5, "m1"')
    other = forensics.read(tmp_path)
    hostile = other._repr_html_()
    assert "<script" not in hostile and "\u202e" not in hostile and "&lt;script&gt;" in hostile and "and 12 more" in hostile
    assert "could not be read" in hostile and other.gaps[0].what in hostile
    assert "<table" in run.metrics._repr_html_()


def test_comparisons_and_audits(tmp_path: Path) -> None:
    both = forensics.compare(SEEDS / "seed_1", SEEDS / "seed_4")
    assert both.answer.startswith("The losses part at step 280") and both.answer in repr(both)
    assert both._repr_html_().startswith('<iframe sandbox="allow-scripts"') and both.to_html().startswith("<!doctype html>")
    told = forensics.audit([SEEDS / "seed_1", SPIKE], tmp_path / "a", pages=1, jobs=1)
    assert told.verdicts == {"unhealthy": 1, "inconclusive": 0, "healthy": 1} and told.rows.to_polars()["path"].to_list() == [
        str(SEEDS / "seed_1"),
        str(SPIKE),
    ]
    assert json.loads((tmp_path / "a" / "audit.json").read_text()) == told.to_json()
    assert "1 unhealthy" in repr(told) and "bad_data_batch" in told._repr_html_()
    with pytest.raises(forensics.ForensicsError, match="holds an audit already") as e:
        forensics.audit(SPIKE, tmp_path / "a")
    assert "force=True" in e.value.hint
    assert len(forensics.audit(SPIKE, tmp_path / "a", force=True, pages=0, jobs=1).rows) == 1


def test_options_are_those_that_the_work_has() -> None:
    assert api.AuditOptions.__annotations__.keys() == {f.name for f in dataclasses.fields(audits.Options)} - {"prepare"}
    inner = {"adapter", "threads", "more_workers", "order", "check", "journal", "show"}  # of the command line, or not for users
    assert api.ReplayOptions.__annotations__.keys() == {f.name for f in dataclasses.fields(Options)} - inner


def test_guards_and_batches(tmp_path: Path) -> None:
    told = forensics.guard(SPIKE)
    assert told.best is not None and told.best.fired == 347 and "loss_z" in told.emit("python")
    with pytest.raises(forensics.ForensicsError, match="no callback file for tf"):
        told.emit("tf")
    (tmp_path / "mine.jsonl").write_text("".join(json.dumps({"step": s, "sample_ids": [s]}) + "\n" for s in range(1, 601)))
    case = forensics.analyze(SPIKE, batches=tmp_path / "mine.jsonl")
    assert case.spikes[0]["batches"][0]["samples"] == [347]


def test_a_known_good_run_speaks(tmp_path: Path) -> None:
    case = forensics.analyze(SEEDS / "seed_4", baseline=SEEDS / "seed_1")
    assert any(f.kind == "baseline_parting" for f in case.findings)


@pytest.mark.parametrize("call", [forensics.read, forensics.analyze, forensics.guard, lambda p: forensics.compare(p, SPIKE)])
def test_errors_have_a_message_and_a_hint(call: Any, tmp_path: Path) -> None:
    with pytest.raises(forensics.ForensicsError) as e:
        call(tmp_path / "nowhere")
    assert e.value.message == f"no such file or folder: {tmp_path / 'nowhere'}" and e.value.hint


def test_replay_refuses_what_is_no_adapter(tmp_path: Path) -> None:
    with pytest.raises(forensics.ForensicsError, match="there is no adapter nothing"):
        forensics.replay(SPIKE, "nothing")


def test_a_replay_in_python(tmp_path: Path) -> None:
    """Two steps of a training whose adapter breaks: the case stands, and says what stopped the replay."""
    pytest.importorskip("torch")
    (tmp_path / "mine.py").write_text(
        "def build(): raise ValueError('no weights here')\ndef batch(step): ...\ndef loss(model, batch): ...\n"
    )
    case = forensics.replay(SPIKE, tmp_path / "mine.py", device="cpu", steps=(340, 350), max_time=1)
    assert case.replay is not None and "no weights here" in case.replay["trouble"]
    assert case.hypotheses == forensics.analyze(SPIKE).hypotheses


@pytest.mark.parametrize(
    ("option", "said"), [({"engine": "spark"}, "no engine spark"), ({"jobs": 0}, "jobs must be"), ({"timeout": 0}, "timeout must be")]
)
def test_an_audit_refuses_what_cannot_be_meant(tmp_path: Path, option: dict[str, Any], said: str) -> None:
    with pytest.raises(forensics.ForensicsError, match=said):
        forensics.audit(SEEDS, tmp_path / "o", **option)


def test_a_run_is_no_baseline_of_its_own() -> None:
    with pytest.raises(forensics.ForensicsError, match="the run itself"):
        forensics.analyze(SPIKE, baseline=SPIKE)


def test_a_tag_that_neither_run_logged_is_told() -> None:
    with pytest.raises(forensics.ForensicsError, match="no metric of that tag"):
        forensics.compare(SEEDS / "seed_1", SEEDS / "seed_4", metrics={"loss.train": "typo"})

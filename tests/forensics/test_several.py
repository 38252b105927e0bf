"""Several runs in one place: each is judged, the worst speaks for them, the others have a line each, and every verb counts the same."""

from __future__ import annotations

import csv
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import forensics
from forensics import at_path, audits, pipeline
from forensics.errors import NoSingleRun
from forensics.many_runs import worst_first
from parsers.tables import Run
from reports import html, run_list, schema

COMMAND = [sys.executable, "-c", "import sys; from forensics.cli import main; sys.argv[0] = 'forensics'; main()"]
Row = dict[str, float]


def rows(seed: int, *, spike: bool = False, clock: float | None = None, steps: int = 300) -> list[Row]:
    rng = random.Random(seed)
    found = []
    for i in range(steps):
        loss = 1.0 + seed / 50 + 2.0 * 0.5 ** (i / 150) + 0.01 * rng.gauss(0, 1) + (3.0 if spike and i == 150 else 0.0)
        found.append({"step": i, "loss": loss} | ({} if clock is None else {"time": clock + i}))
    return found


def jsonl(folder: Path, told: list[Row]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "log.jsonl").write_text("".join(json.dumps(r) + "\n" for r in told))


def table(folder: Path, told: list[Row]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "metrics.csv").open("w", newline="") as f:
        writer = csv.DictWriter(f, list(told[0]))
        writer.writeheader()
        writer.writerows(told)


def trainer(folder: Path, told: list[Row]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    history = [{"epoch": r["step"] / 100, "loss": r["loss"], "step": r["step"]} for r in told]
    (folder / "trainer_state.json").write_text(json.dumps({"global_step": len(told), "max_steps": 1000, "log_history": history}))


def console(folder: Path, told: list[Row]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.log").write_text("".join(f"step {r['step']} | loss {r['loss']:.6f}\n" for r in told))


def place(root: Path, put: Callable[[Path, list[Row]], None] = jsonl) -> Path:
    """A healthy run that ran last, an unhealthy one before, another unhealthy one first, and one of which too little was logged."""
    put(root / "a", rows(1, spike=True, clock=1.7e9))
    put(root / "b", rows(2, spike=True, clock=1.7e9 + 1e4))
    put(root / "c", rows(3, clock=1.7e9 + 2e4))
    put(root / "d", rows(4, clock=1.7e9 + 3e4, steps=4))
    return root


def called(*args: object, cwd: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    p = subprocess.run([*COMMAND, *map(str, args)], cwd=cwd, capture_output=True, text=True)
    assert p.returncode == code, p.stdout + p.stderr
    return p


# --- which one speaks -----------------------------------------------------------------------------------------------


def test_the_worst_speaks_and_of_equals_the_one_that_ran_last(tmp_path: Path) -> None:
    folder = place(tmp_path / "runs")
    for i, name in enumerate("dcba"):  # file times say the opposite of the logs
        os.utime(folder / name / "log.jsonl", (1.8e9 + i, 1.8e9 + i))
    case = forensics.analyze(str(folder)).to_json()
    assert (case["run"]["id"], case["verdict"]) == ("b", "unhealthy")
    assert [(s["id"], s["verdict"]) for s in case["run"]["siblings"]] == [("a", "unhealthy"), ("d", "inconclusive"), ("c", "healthy")]
    (first, *_) = case["run"]["siblings"]
    assert first == {
        "id": "a", "path": str(folder / "a"), "verdict": "unhealthy", "status": first["status"], "answer": first["answer"],
        "ended": "2023-11-14T22:18:19Z", "command": f"forensics analyze {folder} --run a",
    }  # fmt: skip
    assert "step 150" in first["answer"] or "at step 150" in case["answer"]
    read = forensics.read(str(folder))
    assert (read.id, [s["id"] for s in read.siblings]) == ("b", ["a", "d", "c"])
    assert forensics.analyze(str(folder), run="a").to_json()["answer"] == first["answer"], (
        "what is said of it elsewhere is what its own case says"
    )


@pytest.mark.parametrize("put", [jsonl, table, trainer, console])
def test_in_every_format(tmp_path: Path, put: Callable[[Path, list[Row]], None]) -> None:
    case = forensics.analyze(str(place(tmp_path / "runs", put))).to_json()
    assert case["verdict"] == "unhealthy" and case["run"]["id"] in ("a", "b")
    assert [s["verdict"] for s in case["run"]["siblings"]] == ["unhealthy", "inconclusive", "healthy"]


def test_without_clocks_none_is_said_to_have_run_last_and_the_choice_is_the_same_each_time(tmp_path: Path) -> None:
    for i in (2, 10, 9):
        jsonl(tmp_path / "runs" / f"version_{i}", rows(i, spike=True))
        os.utime(tmp_path / "runs" / f"version_{i}" / "log.jsonl", (1.8e9 - i, 1.8e9 - i))
    case = forensics.analyze(str(tmp_path / "runs")).to_json()
    assert [case["run"]["id"], *(s["id"] for s in case["run"]["siblings"])] == ["version_10", "version_9", "version_2"]
    assert [s["ended"] for s in case["run"]["siblings"]] == [None, None]
    told = run_list.heading(schema.complete(case))
    assert told == "3 runs lie here, all unhealthy; no clock tells which of these ran last"


def test_a_clock_that_only_counts_from_the_start_is_no_date(tmp_path: Path) -> None:
    jsonl(tmp_path / "r" / "a", rows(1, spike=True, clock=1.7e9))
    jsonl(tmp_path / "r" / "b", rows(2, spike=True, clock=0.0))
    assert forensics.read(str(tmp_path / "r")).id == "a"


def test_seeds_of_one_configuration_are_one_case_of_the_group(tmp_path: Path) -> None:
    for seed in (1, 2, 3):
        folder = tmp_path / "seeds" / f"s{seed}"
        jsonl(folder, [r | {"loss": r["loss"] * (1 + seed)} for r in rows(seed, clock=1.7e9 + seed * 1e4)])
        (folder / "config.json").write_text(json.dumps({"seed": seed, "lr": 1e-3, "batch_size": 4}))
    case = forensics.analyze(str(tmp_path / "seeds")).to_json()
    assert case["verdict"] == "unhealthy" and case["hypotheses"][0]["id"] == "seed_variance"
    assert [(s["id"], s["verdict"]) for s in case["run"]["siblings"]] == [("s2", "healthy"), ("s1", "healthy")]
    told = run_list.heading(schema.complete(case))
    assert told == "3 runs lie here, of one configuration under several seeds; this case is of them all"
    alone = forensics.analyze(str(tmp_path / "seeds"), run="s3").to_json()
    assert alone["verdict"] == "healthy"


def test_a_launch_that_died_before_a_longer_one_of_its_log_is_no_news(tmp_path: Path) -> None:
    def launch(seed: int, steps: int) -> str:
        return "Starting training\n" + "".join(f"step {r['step']} | loss {r['loss']:.4f}\n" for r in rows(seed, steps=steps))

    died = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\nFileNotFoundError: data/11.xml\n'
    for name, text in (("mended", launch(0, 90) + died + launch(1, 290)), ("worse", launch(0, 290) + launch(1, 90) + died)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.log").write_text(text)
    mended, worse = (forensics.read(str(tmp_path / name)) for name in ("mended", "worse"))
    assert (mended.launch, [s["status"] for s in mended.siblings]) == ((2, 2), ["crashed"])
    assert (worse.launch, [s["status"] for s in worse.siblings]) == ((2, 2), ["unknown"])


def test_what_came_to_no_step_goes_behind_what_trained(tmp_path: Path) -> None:
    from forensics.many_runs import worst_first

    jsonl(tmp_path / "trained", rows(1, clock=1.7e9))
    jsonl(tmp_path / "short", rows(2, clock=1.7e9, steps=3))
    jsonl(tmp_path / "idle", rows(3, clock=1.8e9, steps=1))
    runs = {name: forensics.read(str(tmp_path / name)) for name in ("trained", "short", "idle")}
    trained, short, idle = runs.values()
    assert [(r is trained, line["verdict"]) for r, line in worst_first.judged([idle, trained])] == [
        (True, "healthy"),
        (False, "inconclusive"),
    ]
    assert [r is short for r, _ in worst_first.judged([trained, short])] == [True, False], "three steps are a training too short to judge"


def test_a_run_that_fails_to_be_judged_costs_itself_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = pipeline.judge

    def breaks(run: Run, *rest: Any) -> Any:
        if run.id == "b":
            raise ZeroDivisionError("of our own making")
        return judge(run, *rest)

    monkeypatch.setattr(pipeline, "judge", breaks)
    found = worst_first.judged(at_path.read_runs(str(place(tmp_path / "runs"))))
    assert [(said["id"], said["verdict"]) for _, said in found] == [
        ("a", "unhealthy"), ("d", "inconclusive"), ("b", "inconclusive"), ("c", "healthy"),
    ]  # fmt: skip
    assert found[2][1]["answer"] == "Could not be judged: ZeroDivisionError: of our own making"


def test_a_table_of_results_beside_the_runs_is_none(tmp_path: Path) -> None:
    folder = place(tmp_path / "runs")
    (folder / "results").mkdir()
    (folder / "results" / "leaderboard.csv").write_text("model,score\nours,0.5\ntheirs,0.4\n")
    assert len(forensics.read(str(folder)).siblings) == 3


# --- --run ----------------------------------------------------------------------------------------------------------


def test_a_run_is_picked_by_its_id_or_by_an_end_of_it_that_is_its_alone(tmp_path: Path) -> None:
    for name in ("exp", "exp2", "deep/lr_3"):
        jsonl(tmp_path / "runs" / name, rows(len(name)))
    runs = at_path.read_runs(str(tmp_path / "runs"))
    picked = {n: at_path.named(runs, n, "runs").id for n in ("exp", "exp2", "lr_3", "deep", "deep/lr_3", "deep__lr_3", "/deep/lr_3/", "3")}
    assert picked == {"exp": "exp", "exp2": "exp2"} | dict.fromkeys(
        ["lr_3", "deep", "deep/lr_3", "deep__lr_3", "/deep/lr_3/", "3"], "deep__lr_3"
    )
    with pytest.raises(NoSingleRun, match=r"2 runs in runs begin or end with ex: exp, exp2$"):
        at_path.named(runs, "ex", "runs")
    for nobody in ("nobody", "", "/"):
        with pytest.raises(NoSingleRun, match=r"no run .* in runs: deep__lr_3, exp, exp2$"):
            at_path.named(sorted(runs, key=lambda r: r.id), nobody, "runs")


def test_the_command_names_the_others_and_run_picks(tmp_path: Path) -> None:
    place(tmp_path / "my runs")
    p = called("analyze", "my runs", "--fail-on", "unhealthy", cwd=tmp_path, code=3)
    assert [line[:60].rstrip() for line in p.stderr.splitlines()] == [
        "4 runs lie here, 2 of them unhealthy; of these this one ran",
        "  unhealthy     forensics analyze 'my runs' --run a  Loss ju",
        "  inconclusive  forensics analyze 'my runs' --run d  Cannot",
        "  healthy       forensics analyze 'my runs' --run c  No trou",
    ]
    assert "this report covers b" in p.stderr.lower()
    p = called("analyze", "my runs", "--run", "c", "--fail-on", "unhealthy", cwd=tmp_path)
    assert p.stderr.splitlines()[0] == "4 runs lie here; the others were not judged with this one. This report covers c; the others:"
    case = json.loads((tmp_path / "my runs-c.case.json").read_text())
    assert (case["run"]["id"], case["verdict"]) == ("c", "healthy")
    assert [(s["id"], s["verdict"]) for s in case["run"]["siblings"]] == [("a", None), ("b", None), ("d", None)]
    assert called("--quiet", "analyze", "my runs", "--force", cwd=tmp_path).stderr == ""
    p = called("analyze", "my runs", "--run", "nobody", cwd=tmp_path, code=2)
    assert p.stderr.splitlines()[0] == "forensics: no run nobody in my runs: a, b, c, d"
    assert called("batch", "my runs", "--run", "c", "--step", 3, cwd=tmp_path).stdout.startswith("step 3")


def test_the_verdict_of_any_of_them_fails_the_command(tmp_path: Path) -> None:
    jsonl(tmp_path / "r" / "a", rows(1, clock=1.7e9, steps=4))
    jsonl(tmp_path / "r" / "b", rows(2, clock=1.7e9 + 1e4))
    called("analyze", "r", "--fail-on", "unhealthy", cwd=tmp_path)
    called("analyze", "r", "--fail-on", "inconclusive", "--force", cwd=tmp_path, code=3)
    called("analyze", "r", "--run", "b", "--fail-on", "inconclusive", cwd=tmp_path)


def test_batches_and_baseline_go_to_the_run_that_was_chosen(tmp_path: Path) -> None:
    place(tmp_path / "r")
    jsonl(tmp_path / "good", rows(9))
    (tmp_path / "batches.jsonl").write_text("".join(json.dumps({"step": i, "sample_ids": [2 * i, 2 * i + 1]}) + "\n" for i in range(300)))
    called("analyze", "r", "--batches", "batches.jsonl", "--baseline", "good", "--out", "x.html", cwd=tmp_path)
    case = json.loads((tmp_path / "x.case.json").read_text())
    assert [(c["step"], c["samples"]) for c in case["culprits"]] == [(150, [300, 301])]
    assert any(c["id"] == "baseline_parting" for c in case["checks"])
    p = called("analyze", "good", "--baseline", "r", "--out", "y.html", cwd=tmp_path, code=2)
    assert "4 runs lie in r, and one is needed" in p.stderr


# --- every verb counts the same -------------------------------------------------------------------------------------


@pytest.mark.parametrize("put", [jsonl, table, trainer, console])
def test_analyze_audit_and_compare_count_alike(tmp_path: Path, put: Callable[[Path, list[Row]], None]) -> None:
    folder = place(tmp_path / "runs", put)
    (folder / "results").mkdir()
    (folder / "results" / "leaderboard.csv").write_text("model,score\nours,0.5\ntheirs,0.4\n")
    document = audits.audit([str(folder)], str(tmp_path / "audit"), audits.Outputs(html.render, str, str))
    others = forensics.read(str(folder)).siblings
    assert document["runs"] == 4 == 1 + len(others)
    assert {(r["id"], r["verdict"]) for r in document["rows"]} >= {(o["id"], o["verdict"]) for o in others}
    p = called("compare", folder / "a", folder, cwd=tmp_path, code=2)
    assert f"4 runs lie in {folder}, and one is needed" in p.stderr and str(folder / "b") in p.stderr


def test_a_run_that_goes_on_in_another_folder_is_one_for_all(tmp_path: Path) -> None:
    told = rows(1, clock=1.7e9, steps=600)
    jsonl(tmp_path / "r" / "version_0", told[:300])
    jsonl(tmp_path / "r" / "version_1", told[300:])
    jsonl(tmp_path / "r" / "version_2", rows(5, clock=1.7e9 + 1e4))
    document = audits.audit([str(tmp_path / "r")], str(tmp_path / "audit"), audits.Outputs(html.render, str, str))
    assert document["runs"] == 2 == 1 + len(forensics.read(str(tmp_path / "r")).siblings)


# --- what is written ------------------------------------------------------------------------------------------------


def test_redact_covers_the_lines_of_the_others(tmp_path: Path) -> None:
    secret = ("marmot-17", "benedikta", str(tmp_path))
    for i, name in enumerate(("benedikta-run1", "benedikta-run2")):
        folder = tmp_path / "in" / name
        jsonl(folder, rows(i, clock=1.7e9 + i * 1e4))
        (folder / "config.json").write_text(json.dumps({"hostname": f"marmot-17{i}", "user": "benedikta", "lr": i}))
        (folder / "train.log").write_text(
            'Traceback (most recent call last):\n  File "/lustre/x/train.py", line 5, in main\nRuntimeError: benedikta lost marmot-17'
            + f"{i}\n"
        )
    (tmp_path / "out").mkdir()
    p = called("analyze", tmp_path / "in", "--redact", "--md", "x.md", cwd=tmp_path / "out")
    written = "".join(f.read_text() for f in sorted((tmp_path / "out").iterdir()))
    assert "2 runs lie here" in p.stderr and "2 runs lie here" in written
    for name in secret:
        assert name not in p.stdout + p.stderr + written
    case = json.loads((tmp_path / "out" / "in.case.json").read_text())
    assert case["run"]["siblings"][0]["command"].startswith("forensics analyze <path>/in --run ")

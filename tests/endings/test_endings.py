"""Each staged ending through the command line: status, kind, quoted words, rank, verdict, exit code, no fault in calm metrics."""

import importlib.util
import json
import re
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from forensics.cli import main

SPEC = importlib.util.spec_from_file_location("endings_make", Path(__file__).parent / "make.py")  # other folders have a make.py too
make = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(make)
TRUTH = tomllib.loads((Path(__file__).parent / "truth.toml").read_text(encoding="utf-8"))
METRIC_KINDS = {
    "loss_spike",
    "divergence",
    "level_shift",
    "nonfinite",
    "oscillation",
    "grad_spike",
    "loss_scale",
    "initial_loss",
    "zero_loss",
}


def analyzed(run, out):
    """The exit code and the case of `forensics analyze`."""
    arguments = ["analyze", str(run), "--out", str(out / "page.html"), "--json", str(out / "page.case.json"), "--fail-on", "unhealthy"]
    result = CliRunner().invoke(main, arguments)
    assert (out / "page.case.json").exists(), result.output
    return result.exit_code, json.loads((out / "page.case.json").read_text(encoding="utf-8"))


def ending_faults(ending, truth):
    """What run.ending says otherwise than the truth."""
    faults = []
    if ending["kind"] not in truth["kind"].split("|"):
        faults.append(f"kind {ending['kind']}, not {truth['kind']}")
    if "says" in truth and not re.search(truth["says"], ending.get("says") or ""):
        faults.append(f"says {ending.get('says')!r}, not {truth['says']!r}")
    if bool(ending.get("before_first_step")) != truth.get("before_first_step", False):
        faults.append(f"before_first_step {ending.get('before_first_step')}")
    rank = truth.get("rank")
    if rank != "any" and ending.get("rank") not in ([None, 0] if rank is None else [rank]):
        faults.append(f"rank {ending.get('rank')}, not {rank}")
    return faults


def case_faults(case, code, truth):
    """What the rest of the case says otherwise than the truth."""
    faults = []
    if case["run"]["status"] not in truth["status"].split("|"):
        faults.append(f"status {case['run']['status']}, not {truth['status']}")
    if case["verdict"] not in truth["verdict"].split("|"):
        faults.append(f"verdict {case['verdict']}, not {truth['verdict']}")
    if code not in truth["exit"] or (code == 3) != (case["verdict"] == "unhealthy"):
        faults.append(f"exit code {code} with verdict {case['verdict']}")
    if "answer" in truth and not re.search(truth["answer"], case["answer"], re.DOTALL):
        faults.append(f"answer {case['answer']!r} lacks {truth['answer']!r}")
    seen = sorted({finding["kind"] for finding in case["findings"] if finding["severity"] in ("warning", "critical")} & METRIC_KINDS)
    if truth.get("calm", True) == bool(seen):
        faults.append(f"metrics: {seen or 'nothing seen'}")
    return faults


def test_every_staged_ending_has_its_truth():
    assert sorted(TRUTH) == make.names()


@pytest.mark.parametrize("name", [name for name in make.names() if "says" in TRUTH[name]])
def test_the_words_lie_in_the_run(name, tmp_path):
    run = make.stage(name, tmp_path / name)
    assert any(re.search(TRUTH[name]["says"], path.read_bytes().decode(errors="replace")) for path in run.rglob("*") if path.is_file())


def known(name):
    """A staged run; one that the tool is known to get wrong has to stay on the list until it is right."""
    why = TRUTH[name].get("open")
    return pytest.param(name, marks=pytest.mark.xfail(strict=True, reason=why)) if why else name


@pytest.mark.parametrize("name", map(known, make.names()))
def test_ending_is_told(name, tmp_path):
    run = make.stage(name, tmp_path / name)
    code, case = analyzed(run, tmp_path)
    truth = TRUTH[name]
    faults = case_faults(case, code, truth) + ending_faults(case["run"]["ending"], truth)
    assert not faults, "; ".join(faults) + f"\nanswer: {case['answer']}"

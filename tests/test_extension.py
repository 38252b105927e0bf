"""Another package adds a parser, a detector and a cause through entry points, and they take part like ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

PARSER = '''"""House log: lines of step|loss."""
from parsers.tables import Rows
AT = "line"
def claims(path, head):
    return head.startswith(b"HOUSE1")
def parse(path):
    rows = Rows()
    for n, line in enumerate(path.read_text().splitlines()[1:], 2):
        step, value = line.split("|")
        rows.metric(int(step), "loss", float(value), at=n)
    yield from rows.flush()
'''
DETECTOR = '''"""House symptom"""
from forensics.case import Finding
NEEDS = ["loss.train"]
def detect(run):
    yield Finding("house_symptom-1", "house_symptom", "The house symptom", 1, 1, "warning")
'''
CAUSE = '''"""House cause"""
from forensics.case import Clue, Hypothesis
def weigh(run, findings):
    mine = tuple(f.id for f in findings if f.kind == "house_symptom")
    return Hypothesis("house_cause", "House cause", (Clue("because", 27.0, mine),), "ask the house", ("wait",))
'''
BREAKS = '''"""House cause that breaks"""
def weigh(run, findings):
    return findings[0].facts["not there"]
'''
ENTRY_POINTS = """[run_forensics.parsers]
house_log = house.house_log
[run_forensics.detectors]
house_symptom = house.house_symptom
[run_forensics.hypotheses]
house_cause = house.house_cause
house_breaks = house.house_breaks
broken = house.missing
"""


def test_modules_of_other_packages_take_part(tmp_path: Path) -> None:
    site, run = tmp_path / "site", tmp_path / "run"
    (site / "house").mkdir(parents=True)
    (site / "house-1.0.dist-info").mkdir()
    for name, text in (
        ("__init__", ""),
        ("house_log", PARSER),
        ("house_symptom", DETECTOR),
        ("house_cause", CAUSE),
        ("house_breaks", BREAKS),
    ):
        (site / "house" / f"{name}.py").write_text(text)
    (site / "house-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: house\nVersion: 1.0\n")
    (site / "house-1.0.dist-info" / "entry_points.txt").write_text(ENTRY_POINTS)
    run.mkdir()
    (run / "x.house").write_text("HOUSE1\n" + "".join(f"{i}|{3 - i / 100}\n" for i in range(50)))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(site)])}

    def forensics(*args: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "forensics", *args]
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)

    p = forensics("analyze", str(run), "--json", "case.json")
    assert p.returncode == 0, p.stderr
    case = json.loads((tmp_path / "case.json").read_text())
    assert case["sources"][0]["format"] == "house_log" and case["run"]["records"]["scalars"] == 50
    assert case["hypotheses"][0]["id"] == "house_cause"
    assert [(c["id"], c["status"], c["note"]) for c in case["checks"] if c["status"] == "error"] == [
        ("house_breaks", "error", "KeyError: 'not there'")
    ]
    assert "house.missing" in p.stderr and "cannot be loaded" in p.stderr
    listed = forensics("explain").stdout
    assert all(x in listed for x in ("house_log", "house_symptom", "house_cause"))

"""Every command of docs/tutorial.md runs, in order, and its output is what the page shows of it."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
BLOCKS = re.findall(r"^```console\n\$ ([^\n]+)\n(.*?)^```$", PAGE, re.S | re.M)
PROGRAMS = {"forensics": [sys.executable, "-m", "forensics"], "python": [sys.executable], "cat": ["cat"]}
LEFT_OUT = r"\.\.\.$"


def same(text: str) -> str:
    """Without line breaks and spaces, and without the digits that another processor rounds otherwise."""
    return re.sub(r"\d+\.\d{2,}", "N", re.sub(r"\s+", "", text))


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """The folder in which everything was run, and what each command printed."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("needs torch")
    folder = tmp_path_factory.mktemp("tutorial")
    (folder / "benchmarks").symlink_to(ROOT / "benchmarks")
    env = os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "100"}
    printed = []
    for command, _ in BLOCKS:
        program, *words = shlex.split(command)
        done = subprocess.run([*PROGRAMS[program], *words], cwd=folder, env=env, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        printed.append(done.stdout)
    return folder, printed


def test_the_page_has_all_steps() -> None:
    words = [command.split()[1] for command, _ in BLOCKS if command.startswith("forensics")]
    assert words == ["analyze", "batch", "replay", "replay", "guard", "note"]
    assert PAGE.count("```console") == len(BLOCKS)


@pytest.mark.parametrize("i", range(len(BLOCKS)), ids=[command.split("--")[0].strip()[:40] for command, _ in BLOCKS])
def test_outputs_are_what_the_page_shows(i: int, outputs: tuple[Path, list[str]]) -> None:
    printed, at = same(outputs[1][i]), 0
    for part in filter(None, (same(p) for p in re.split(LEFT_OUT, BLOCKS[i][1], flags=re.M))):
        found = printed.find(part, at)
        assert found >= 0, f"not printed, or not in this order: {part}\n{outputs[1][i]}"
        at = found + len(part)


def test_what_the_page_claims(outputs: tuple[Path, list[str]]) -> None:
    """The nine samples are the planted ones; the first analysis was unsure, the replay is not."""
    folder, _ = outputs
    truth = json.loads((folder / "incident" / "truth" / "garbled-text.json").read_text())["culprits"]
    skipped = json.loads((folder / "skip.json").read_text())
    assert [c["step"] for c in truth] == skipped["steps"] == [183]
    assert sorted(truth[0]["samples"]) == sorted(skipped["samples"]) and len(skipped["samples"]) == 9
    first, replayed = (json.loads((folder / f"{name}.case.json").read_text()) for name in ("first", "replayed"))
    leading = first["hypotheses"]
    assert leading[0]["id"] == "bad_data_batch" and leading[0]["certainty"] == "open"
    assert {h["id"] for h in leading[1:4]} == {"unknown", "lr_too_high", "silent_data_corruption"}
    assert replayed["replay"]["verdict"] == "data" and replayed["hypotheses"][0]["probability"] > 0.95
    assert (folder / "replayed.html").is_file() and "Nine rows of part 4" in (folder / "replayed.html").read_text()

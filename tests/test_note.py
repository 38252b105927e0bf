"""The author's word: it changes the ranking and nothing else, stays visible, can be taken back, and outlives a new analysis."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from forensics.case_parts import notes
from forensics.cli import main
from forensics.errors import ForensicsError

SAMPLE = Path(__file__).parent.parent / "samples" / "bad_batch_jsonl"


def run(*args: object) -> Result:
    return CliRunner().invoke(main, [str(a) for a in args])


@pytest.fixture(scope="module")
def analyzed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("note")
    assert run("analyze", SAMPLE, "--out", folder / "run.html").exit_code == 0
    return folder


@pytest.fixture
def case(analyzed: Path, tmp_path: Path) -> Path:
    shutil.copytree(analyzed, tmp_path, dirs_exist_ok=True)
    return tmp_path / "run.case.json"


def read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text()))


def test_a_ruled_out_cause_stays_visible_and_the_rest_is_ranked_again(case: Path) -> None:
    before = read(case)
    top = before["hypotheses"][0]["id"]
    assert top == "bad_data_batch" and before["culprits"]
    found = run("note", case, "--rule-out", top, "--because", "replayed <b>it</b>: harmless", "--add", "node was | swapped")
    assert found.exit_code == 0, found.output
    after = read(case)
    assert after["hypotheses"][-1]["id"] == top and after["hypotheses"][-1]["probability"] == 0
    assert after["hypotheses"][-1]["clues"] == before["hypotheses"][0]["clues"]
    assert [h["rank"] for h in after["hypotheses"]] == list(range(1, len(after["hypotheses"]) + 1))
    left = {h["id"]: h["probability"] for h in before["hypotheses"][1:]}
    for h in after["hypotheses"][:-1]:
        assert h["probability"] == pytest.approx(left[h["id"]] / sum(left.values()), abs=1e-4)
    assert after["culprits"] == []
    assert "bad data batch" not in after["answer"].lower()
    page = case.with_name("run.html").read_text()
    assert "ruled out by the author" in page and "replayed &lt;b&gt;it&lt;/b&gt;: harmless" in page and "<b>it</b>" not in page
    assert "node was | swapped" in page and "node was | swapped" in found.output


def test_taken_up_again_it_is_the_case_of_before(case: Path) -> None:
    before = read(case)
    run("note", case, "--rule-out", "bad_data_batch", "--because", "x")
    assert run("note", case, "--reinstate", "bad_data_batch").exit_code == 0
    assert read(case) == before


def test_with_out_the_first_case_stays_as_it_is(case: Path, tmp_path: Path) -> None:
    before = case.read_bytes()
    assert run("note", case, "--add", "seen", "--out", tmp_path / "b.html").exit_code == 0
    assert case.read_bytes() == before
    assert read(tmp_path / "b.case.json")["notes"] == [{"text": "seen"}]
    assert run("note", case, "--add", "seen", "--out", tmp_path / "b.html").exit_code == 1  # exists already


def test_a_new_analysis_keeps_the_word(case: Path) -> None:
    run("note", case, "--rule-out", "bad_data_batch", "--because", "harmless", "--add", "seen")
    found = run("analyze", SAMPLE, "--out", case.with_name("run.html"), "--force")
    assert found.exit_code == 0, found.output
    after = read(case)
    assert after["notes"] == [{"text": "seen"}]
    assert after["hypotheses"][-1]["ruled_out"] == {"because": "harmless"}


@pytest.mark.parametrize("args", [["--rule-out", "x"], [], ["--because", "y"]])
def test_half_a_word_is_a_usage_error(case: Path, args: list[str]) -> None:
    before = case.read_bytes()
    assert run("note", case, *args).exit_code == 2
    assert case.read_bytes() == before


def test_a_cause_that_is_not_there_is_named(case: Path) -> None:
    for cause in ("hang", "unknown"):
        with pytest.raises(ForensicsError, match="weighs no cause"):
            notes.noted(read(case), [notes.Note("x", cause)])


def test_what_is_no_case_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"a": 1')
    found = run("note", path, "--add", "x")
    assert found.exit_code == 1 and "not a forensics case file" in found.output

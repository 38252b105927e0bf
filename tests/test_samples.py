"""Every shipped sample gives what its expect.toml says; every detector fires and every cause comes first somewhere."""

from __future__ import annotations

import json
import shutil
import tempfile
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner

import forensics
import parsers
from forensics import rules
from forensics.causes.files import NOTHING, causes
from forensics.cli import main
from parsers.tables import HEAD_BYTES
from parsers.walk import walk

SAMPLES = sorted(p.parent for p in (Path(__file__).parent.parent / "samples").glob("*/expect.toml"))
NAMES = [s.name for s in SAMPLES]


@cache
def case(sample: Path) -> dict[str, Any]:
    """The case of the artefacts alone, in a folder whose name says nothing: the answer beside them must not be read."""
    with tempfile.TemporaryDirectory() as folder:
        return forensics.analyze(str(artefacts(sample, Path(folder) / "x"))).to_json()


def schema_of(kind: str) -> jsonschema.Draft202012Validator:
    """What `forensics schema` prints."""
    return jsonschema.Draft202012Validator(json.loads(CliRunner().invoke(main, ["schema", kind]).stdout))


def named(case: dict[str, Any]) -> list[str]:
    """The causes by rank, without `unknown`: how often it comes first is measured on many runs (docs/causes-measured.md)."""
    return [h["id"] for h in case["hypotheses"] if h["id"] != "unknown"]


def artefacts(sample: Path, target: Path) -> Path:
    shutil.copytree(sample, target, ignore=shutil.ignore_patterns("expect.toml", "README.md"))
    return target


def expected(sample: Path) -> dict[str, Any]:
    return tomllib.loads((sample / "expect.toml").read_text("utf-8"))


@pytest.mark.parametrize("sample", SAMPLES, ids=NAMES)
def test_sample(sample: Path) -> None:
    want, got = expected(sample), case(sample)
    kinds = {f["kind"] for f in got["findings"]}
    assert got["verdict"] == want["verdict"], got["answer"]
    if want.get("top"):
        assert named(got)[0] in {want["top"], *want.get("acceptable", [])}, named(got)[:3]
    else:
        assert all(h["probability"] <= 0.3 for h in got["hypotheses"] if h["id"] != "unknown")
    assert set(want.get("findings", [])) <= kinds
    grave = {f["kind"] for f in got["findings"] if f["severity"] != "info"}
    assert not set(want.get("clear", [])) & grave
    if "attempts" in want:
        assert len(got["run"]["attempts"]) == want["attempts"]
    if "status" in want:
        assert got["run"]["status"] == want["status"]
    for spike in want.get("spikes", []):
        found = [s for s in got["spikes"] if s["metric"] == spike["metric"] and s["peak"] == spike["peak"]]
        assert found, got["spikes"]
        assert found[0]["class"] == spike["class"]


@pytest.mark.parametrize("sample", SAMPLES, ids=NAMES)
def test_the_case_keeps_to_its_schema(sample: Path) -> None:
    assert [f"{e.json_path}: {e.message[:200]}" for e in schema_of("case").iter_errors(case(sample))] == []


@pytest.mark.parametrize("sample", SAMPLES, ids=NAMES)
def test_exactly_one_parser_claims_each_file(sample: Path) -> None:
    for path in walk(sample):
        assert isinstance(path, Path)
        if path.name in ("expect.toml", "README.md"):
            continue
        with path.open("rb") as f:
            head = f.read(HEAD_BYTES)
        claiming = [parsers.name_of(m) for m in parsers.claimants(path, head)]
        assert len(claiming) == 1, f"{path.relative_to(sample)}: {claiming}"


@pytest.mark.parametrize("module", rules.detectors(), ids=rules.id_of)
def test_every_detector_fires_on_a_sample_and_spares_the_healthy(module: Any) -> None:
    name = rules.id_of(module)
    fired = [s.name for s in SAMPLES if any(f["kind"] == name for f in case(s)["findings"])]
    assert fired, f"no sample fires {name}"
    for sample in SAMPLES:
        if expected(sample)["verdict"] == "healthy":
            grave = [f["title"] for f in case(sample)["findings"] if f["kind"] == name and f["severity"] != "info"]
            assert not grave, f"{name} fires on the healthy {sample.name}: {grave}"


@pytest.mark.parametrize("name", [c for c in causes() if c != NOTHING])
def test_every_cause_comes_first_on_a_sample(name: str) -> None:
    for s in SAMPLES:  # but for what the sample's truth lets pass
        want = expected(s)
        if want.get("top") == name and [c for c in named(case(s)) if c == name or c not in want.get("acceptable", [])][:1] == [name]:
            return
    raise AssertionError(f"{name} is first on no sample")


@pytest.mark.parametrize("sample", SAMPLES, ids=NAMES)
def test_no_detector_breaks(sample: Path) -> None:
    assert [c for c in case(sample)["checks"] if c["status"] == "error"] == []


def test_folder_names_do_not_matter(tmp_path: Path) -> None:
    """The same files under another folder name give the same causes: no detector may look at names."""
    for sample in SAMPLES[::9]:
        again = forensics.analyze(str(artefacts(sample, tmp_path / f"lr_too_high_{sample.name[::-1]}"))).to_json()
        ranked = [(h["id"], h["score"]) for h in case(sample)["hypotheses"]]
        assert [(h["id"], h["score"]) for h in again["hypotheses"]] == ranked

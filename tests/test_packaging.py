"""The GitHub Action and the Dockerfile: parsed, and run as far as this machine can."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from forensics import cli

ROOT = Path(__file__).resolve().parent.parent
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
DOCKER = [line for line in (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", " ").splitlines() if line and not line.startswith("#")]


def script(id: str) -> tuple[str, dict[str, str]]:
    step = next(s for s in ACTION["runs"]["steps"] if s.get("id", "") == id)
    return step["run"], step["env"]


def test_the_action_takes_inputs_as_data() -> None:
    """An input in the text of a script could be code of whoever names a branch or a folder."""
    assert ACTION["runs"]["using"] == "composite"
    for step in ACTION["runs"]["steps"]:
        assert step["shell"] == "bash" and "${{" not in step["run"]
        for value in step["env"].values():
            name = re.fullmatch(r"\$\{\{ inputs\.([a-z-]+) \}\}", value)
            assert name and name[1] in ACTION["inputs"]
    outputs = {re.fullmatch(r"\$\{\{ steps\.analyze\.outputs\.(\w+) \}\}", o["value"])[1] for o in ACTION["outputs"].values()}  # type: ignore[index]
    assert outputs == set(ACTION["outputs"]) == set(re.findall(r'echo "(\w+)=', script("analyze")[0]))


@pytest.mark.parametrize(("fail_on", "code"), [("unhealthy", 3), ("never", 0)])
def test_the_step_of_the_action_writes_everything_and_then_fails(fail_on: str, code: int, tmp_path: Path) -> None:
    binaries = tmp_path / "temp" / "forensics" / "bin"
    binaries.mkdir(parents=True)
    (binaries / "python").symlink_to(sys.executable)
    (binaries / "forensics").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m forensics "$@"\n')
    (binaries / "forensics").chmod(0o755)
    text, names = script("analyze")
    given = {"RUN": str(ROOT / "samples" / "code_error_titan"), "OUT": "my report", "FAIL_ON": fail_on, "REDACT": "false"}
    assert given.keys() == names.keys()
    told = {
        "RUNNER_TEMP": str(tmp_path / "temp"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
    }
    bash = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text]  # as the runner calls it
    p = subprocess.run(bash, cwd=tmp_path, env={**os.environ, **given, **told}, capture_output=True, text=True)
    assert p.returncode == code, p.stderr
    output = dict(line.split("=", 1) for line in (tmp_path / "output").read_text().splitlines())
    assert output["verdict"] == "unhealthy"
    assert json.loads((tmp_path / output["sarif"]).read_text())["runs"][0]["results"][0]["ruleId"] == "ending"
    assert "<testsuites" in (tmp_path / output["junit"]).read_text() and (tmp_path / output["page"]).exists()
    assert "KeyError" in (tmp_path / "summary").read_text()


def test_a_run_that_cannot_be_read_fails_the_step(tmp_path: Path) -> None:
    (tmp_path / "forensics" / "bin").mkdir(parents=True)
    (tmp_path / "forensics" / "bin" / "forensics").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "forensics" / "bin" / "forensics").chmod(0o755)
    given = {"RUN": "x", "OUT": "o", "FAIL_ON": "unhealthy", "REDACT": "true", "RUNNER_TEMP": str(tmp_path)}
    bash = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script("analyze")[0]]
    assert subprocess.run(bash, cwd=tmp_path, env={**os.environ, **given}).returncode == 1


def test_the_scripts_name_only_options_that_there_are() -> None:
    text = script("analyze")[0]
    for verb in ("analyze", "render"):
        known = {o for p in cli.main.commands[verb].params for o in p.opts}
        used = set(
            re.findall(
                r"--[a-z-]+", " ".join(line for line in text.splitlines() if verb in line or (verb == "analyze" and "asked" in line))
            )
        )
        assert used and used <= known


def test_the_dockerfile_installs_the_package_and_runs_it_without_rights() -> None:
    words = [line.split(maxsplit=1) for line in DOCKER]
    assert [w[0] for w in words] == ["FROM", "COPY", "RUN", "USER", "WORKDIR", "ENTRYPOINT", "CMD"]
    said = dict(words)
    assert (
        said["FROM"].startswith("python:3.") and json.loads(said["ENTRYPOINT"]) == ["forensics"] and json.loads(said["CMD"]) == ["--help"]
    )
    source = said["COPY"].split()[1]
    assert f"--constraint {source}/constraints.txt" in said["RUN"] and f"useradd --create-home {said['USER']}" in said["RUN"]
    extras = re.search(r"\[([a-z,]+)\]", said["RUN"])
    assert extras and set(extras[1].split(",")) <= set(re.findall(r"^(\w+) = \[", (ROOT / "pyproject.toml").read_text("utf-8"), re.M))
    ignored = (ROOT / ".dockerignore").read_text("utf-8").split()
    assert not {"forensics", "parsers", "reports", "pyproject.toml", "README.md", "LICENSE"} & set(ignored)


@pytest.mark.slow
def test_the_image_is_built_and_answers() -> None:
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "info"], capture_output=True).returncode:
        pytest.skip("no docker on this machine")
    subprocess.run([docker, "build", "--quiet", "--tag", "forensics-test", str(ROOT)], check=True)
    told = subprocess.run([docker, "run", "--rm", "forensics-test", "--version"], check=True, capture_output=True, text=True)
    assert "forensics" in told.stdout


def test_the_scripts_of_the_docs_are_bash() -> None:
    page = (ROOT / "docs" / "automation.md").read_text("utf-8")
    for text in re.findall(r"^```bash\n(.*?)^```", page, re.S | re.M):
        assert subprocess.run(["bash", "-n", "-c", text], capture_output=True).returncode == 0
        verb = cli.main.commands["audit"]
        assert set(re.findall(r"--[a-z-]+", text.split("forensics audit")[1].splitlines()[0])) <= {o for p in verb.params for o in p.opts}

"""The SKILL.md for agents names only commands, options and tools that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from forensics import cli
from forensics.verbs import mcp_tools

TEXT = (Path(cli.__file__).parent / "agents" / "SKILL.md").read_text("utf-8")


def test_its_head_says_when_to_use_it() -> None:
    head = yaml.safe_load(TEXT.split("---")[1])
    assert head["name"] == "forensics" and 50 < len(head["description"]) <= 1024  # the limit of the format


def test_it_names_only_commands_and_options_that_there_are() -> None:
    used = re.findall(r"`forensics ([a-z]+)([^`]*)`", TEXT)
    assert {name for name, _ in used} >= {
        "analyze",
        "audit",
        "explain",
        "batch",
        "replay",
        "compare",
        "checkpoint",
        "guard",
        "tables",
        "note",
        "mcp",
    }
    for name, rest in used:
        known = {o for p in cli.main.commands[name].params for o in p.opts}
        assert set(re.findall(r"--[a-z-]+", rest)) <= known, name


def test_it_names_every_tool() -> None:
    assert set(mcp_tools.NAMES) <= set(re.findall(r"`([a-z_]+)`", TEXT)) | {"explain"}
    page = (Path(cli.__file__).parent.parent / "docs" / "agents.md").read_text("utf-8")
    assert set(mcp_tools.NAMES) <= set(re.findall(r"^\| `([a-z_]+)`", page, re.M))


def test_it_is_printed_or_installed_and_never_replaces_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(cli.main, ["skill"]).output == TEXT
    assert CliRunner().invoke(cli.main, ["skill", "--install"]).exit_code == 0
    installed = tmp_path / ".agents" / "skills" / "forensics" / "SKILL.md"
    assert installed.read_text("utf-8") == TEXT
    installed.write_text("mine")
    assert CliRunner().invoke(cli.main, ["skill", "--install"]).exit_code == 1
    assert installed.read_text() == "mine"
    assert CliRunner().invoke(cli.main, ["skill", "--install", "--force"]).exit_code == 0
    assert CliRunner().invoke(cli.main, ["skill", "--install", "elsewhere"]).exit_code == 0
    assert (tmp_path / "elsewhere" / "forensics" / "SKILL.md").exists()

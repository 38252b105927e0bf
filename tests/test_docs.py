"""The documentation says only what is true today."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from forensics import cli

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text("utf-8")
spec = importlib.util.spec_from_file_location("docs_make", ROOT / "docs" / "make.py")
assert spec and spec.loader
docs_make = importlib.util.module_from_spec(spec)
spec.loader.exec_module(docs_make)


@pytest.mark.parametrize("name", docs_make.PAGES)
def test_generated_pages_are_fresh(name: str) -> None:
    assert (ROOT / "docs" / name).read_text("utf-8") == docs_make.PAGES[name](), "run `make docs`"


def test_every_command_is_in_the_readme_and_has_help() -> None:
    for name, command in cli.main.commands.items():
        assert command.help
        assert f"forensics {name}" in README, f"README does not show `forensics {name}`"


def test_links_and_pictures_exist() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "samples").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_make_targets_of_the_readme_exist() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in set(re.findall(r"`make (\w+)`", README)):
        assert re.search(rf"^{target}:", makefile, re.M), target


def test_no_lock_file_names_a_host() -> None:
    assert "://" not in (ROOT / "constraints.txt").read_text("utf-8")

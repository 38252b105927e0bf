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
slug = importlib.import_module("site_hooks").slug  # beside docs/make.py


@pytest.mark.parametrize("name", docs_make.PAGES)
def test_generated_pages_are_fresh(name: str) -> None:
    assert (ROOT / "docs" / name).read_text("utf-8") == docs_make.PAGES[name](), "run `make docs`"


def test_every_command_is_in_the_readme_and_has_help() -> None:
    for name, command in cli.main.commands.items():
        assert command.help
        assert f"forensics {name}" in README, f"README does not show `forensics {name}`"


def pages() -> list[Path]:
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "samples").glob("*.md")]


def prose(page: Path) -> str:
    """A page without its fenced code."""
    return re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.S | re.M)


def anchors(page: Path) -> set[str]:
    """The fragments that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.M)
    return {slug(h) for h in headings}


@pytest.mark.parametrize("page", pages(), ids=lambda p: p.name)
def test_links_pictures_and_fragments_exist(page: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", prose(page)):
        if "://" not in target:
            path, _, fragment = target.partition("#")
            there = page.parent / path if path else page
            assert there.exists(), target
            assert not fragment or fragment in anchors(there), target


@pytest.mark.parametrize("page", pages(), ids=lambda p: p.name)
def test_pages_render_on_github(page: Path) -> None:
    """Headings have a space behind their marks, and the rows of a table as many cells as its head."""
    text = prose(page)
    assert not re.findall(r"^#+[^#\s].*$", text, re.M)
    for table in re.findall(r"(?:^\|.*\n)+", text, re.M):
        cells = [len(re.sub(r"`[^`]*`|\\\|", "", row).strip().strip("|").split("|")) for row in table.splitlines()]
        assert len(set(cells)) == 1, table[:200]


def test_the_index_names_every_page() -> None:
    linked = set(re.findall(r"\]\(([\w-]+\.md)\)", (ROOT / "docs" / "README.md").read_text("utf-8")))
    assert linked == {p.name for p in (ROOT / "docs").glob("*.md")} - {"README.md"}


def test_make_targets_of_the_readme_exist() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in set(re.findall(r"`make ([\w-]+)`", README)):
        assert re.search(rf"^{target}:", makefile, re.M), target


def test_no_lock_file_names_a_host() -> None:
    assert "://" not in (ROOT / "constraints.txt").read_text("utf-8")

"""The documentation as a site: it builds in strict mode, follows docs/README.md, asks no other host, and every link in it leads somewhere."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).resolve().parent.parent
spec = importlib.util.spec_from_file_location("site_hooks", ROOT / "docs" / "site_hooks.py")
assert spec and spec.loader
hooks = importlib.util.module_from_spec(spec)
spec.loader.exec_module(hooks)
NEEDED = ("mkdocs.yml", "CONTRIBUTING.md", "CHANGELOG.md")


class Page(HTMLParser):
    """The anchors, links, requests and titles of one page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.requests: list[str] = []
        self.path = path
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.anchors |= {given[k] or "" for k in ("id", "name") if k in given}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"] or "")
        for key in ("src", "href") if tag != "a" else ():
            if given.get(key):
                self.requests.append(given[key] or "")


def build(folder: Path, out: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Page]:
    pytest.importorskip("material")
    out = tmp_path_factory.mktemp("site")
    done = build(ROOT, out)
    assert done.returncode == 0, done.stdout + done.stderr
    return {p.relative_to(out).as_posix(): Page(p) for p in out.rglob("*.html")}


def test_every_page_is_there_in_the_order_of_the_index(site: dict[str, Page]) -> None:
    pages = {p.stem for p in (ROOT / "docs").glob("*.md")} - {"README"} | {"index", "404", "contributing", "changelog"}
    assert site.keys() == {f"{name}.html" for name in pages}
    listed = re.findall(r"^- \[[^\]]+\]\(([\w-]+)\.md\)", (ROOT / "docs" / "README.md").read_text("utf-8"), re.M)
    menu = [link for link in site["index.html"].links if re.fullmatch(r"[\w-]+\.html", link)]
    wanted = [f"{name}.html" for name in [*listed, "contributing", "changelog"]]
    assert [link for link in dict.fromkeys(menu) if link in wanted] == wanted


def test_every_link_and_anchor_leads_somewhere(site: dict[str, Page]) -> None:
    root = next(iter(site.values())).path.parent
    for name, page in site.items():
        for link in [*page.links, *page.requests]:
            where = urlsplit(link)
            if where.scheme or (link.startswith(("/", "javascript:")) and name == "404.html"):
                continue
            target = (page.path.parent / unquote(where.path)).resolve() if where.path else page.path
            target = target / "index.html" if target.is_dir() else target
            assert target.is_file() and target.is_relative_to(root.resolve()), f"{name}: {link}"
            if where.fragment and target.suffix == ".html":
                assert unquote(where.fragment) in site[target.relative_to(root.resolve()).as_posix()].anchors, f"{name}: {link}"


def test_no_page_asks_another_host(site: dict[str, Page]) -> None:
    for name, page in site.items():
        assert [r for r in page.requests if urlsplit(r).netloc] == [], name


def test_lists_and_tables_are_what_they_are_on_a_code_host(site: dict[str, Page]) -> None:
    """Python-Markdown wants an empty line before a list or a table; without, the marks stay in the text."""
    for name, page in site.items():
        text = re.sub(r"<pre.*?</pre>|<code.*?</code>", "", page.path.read_text("utf-8"), flags=re.S)
        assert not re.search(r"<p>[^<]*\n(?:- |\| )|<p>\| ", text), name


def test_titles_are_the_headings_of_the_pages(site: dict[str, Page]) -> None:
    assert "<title>Python API - forensics</title>" in site["api.html"].path.read_text("utf-8")
    index = site["index.html"].path.read_text("utf-8")
    assert '<a href="audit.html">Many runs, or two</a>: many runs' in index


def test_a_broken_link_stops_the_build(tmp_path: Path) -> None:
    pytest.importorskip("material")
    (tmp_path / "docs").mkdir()
    for name in NEEDED:
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "docs" / "site_hooks.py", tmp_path / "docs")
    (tmp_path / "docs" / "README.md").write_text("# Docs\n\n## Use it\n\n- [a.md](a.md): a\n")
    for text, complaint in {"# A\n\n[b](#b)\n\n## B\n": "", "# A\n\n[x](#nowhere)\n": "nowhere"}.items():
        (tmp_path / "docs" / "a.md").write_text(text)
        done = build(tmp_path, tmp_path / "out")
        assert (done.returncode == 0) == (not complaint) and complaint in done.stderr


LINKS: list[tuple[str, str, str]] = [
    ("[a](report.md#share)", "", "[a](report.md#share)"),
    ("[report.md](report.md)", "", "[The page](report.md)"),
    ("[CONTRIBUTING.md](../CONTRIBUTING.md)", "", "[CONTRIBUTING.md](contributing.md)"),
    ("[a](docs/signs.md)", "docs/", "[a](signs.md)"),
    ("[a](samples/README.md), [b](https://example.org)", "docs/", "a, [b](https://example.org)"),
    ("![p](images/report.png)", "", "![p](images/report.png)"),
    ("```text\n[a](gone.md)\n```", "", "```text\n[a](gone.md)\n```"),
]


@pytest.mark.parametrize(("markdown", "below", "want"), LINKS)
def test_links_lead_to_pages_of_the_site(markdown: str, below: str, want: str) -> None:
    assert hooks.linked(markdown, below=below) == want


def test_navigation() -> None:
    index = "# D\n\n## Use it\n\n- [a.md](a.md): one\n- [b.md](b.md): two\n\n## Judge it\n\n- [c.md](c.md): three\n"
    nav: list[Any] = hooks.navigation(index)
    assert nav[:3] == ["README.md", {"Use it": ["a.md", "b.md"]}, {"Judge it": ["c.md"]}]

"""What MkDocs is told beyond mkdocs.yml: the order of docs/README.md is the navigation, and anchors are those of a code host.

The contributing guide and the changelog lie at the top of the checkout; they become pages of the site, and links to them lead there.
A link to another file of the checkout (a sample, a license) becomes plain text, because the site does not have it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
INDEX = "README.md"
TOP = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}  # of the checkout -> of the site
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def navigation(index: str) -> list[Any]:
    """The pages as docs/README.md lists them, in its sections, then the pages of the checkout."""
    nav: list[Any] = [INDEX]
    for line in index.splitlines():
        if line.startswith("## "):
            nav.append({line[3:].strip(): []})
        elif found := re.match(r"- \[[^\]]+\]\(([\w-]+\.md)\)", line):
            next(iter(nav[-1].values())).append(found[1])
    return [*nav, {"Work on it": list(TOP.values())}]


def slug(heading: str, separator: str = "-") -> str:
    """The fragment that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", separator)


def on_config(config: Any) -> Any:
    config.nav = navigation((DOCS / INDEX).read_text("utf-8"))
    config.mdx_configs["toc"]["slugify"] = slug
    return config


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File

    for source, page in TOP.items():
        files.append(File.generated(config, page, content=linked((DOCS.parent / source).read_text("utf-8"), below="docs/")))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The title is taken from the first line, so what stands before it (who wrote the page) goes."""
    shown = re.sub(r"\A<!--.*?-->\s*", "", markdown, flags=re.S)
    return shown if page.file.src_uri in TOP.values() else linked(shown, below="")


def linked(markdown: str, below: str) -> str:
    """The text with its links as the site has them; `below`: where the pages of docs/ lie, seen from it."""
    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.S | re.M)
    return "".join(part if part.startswith("```") else _LINK.sub(lambda m: _link(m, below), part) for part in parts)


def _link(m: re.Match[str], below: str) -> str:
    image, text, target = m.groups()
    path, mark, fragment = target.partition("#")
    name = path.removeprefix("../")
    if image or "://" in target or not path:
        return m[0]
    if name in TOP and (below or path != name):
        return f"[{text}]({TOP[name]}{mark}{fragment})"
    inside = path.removeprefix(below)
    if path.startswith(below) and not path.startswith("..") and (DOCS / inside).exists():
        return f"[{title(inside) if text == path else text}]({inside}{mark}{fragment})"
    return text


def title(page: str) -> str:
    """What a page calls itself; on a site its file name says nothing."""
    found = re.search(r"^# (.+)$", (DOCS / page).read_text("utf-8"), re.M)
    return found[1] if found else page

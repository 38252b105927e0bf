"""How results look for Python users: the page of a case or a comparison, and what a notebook's cell shows of it.

A page in a cell has a frame of its own that can reach nothing of the notebook.
"""

from __future__ import annotations

import html
from typing import Any

HEIGHT = 700  # px


def frame(document: dict[str, Any]) -> str:
    """HTML for a notebook's output from the document of ``Case.to_json``: the whole page with its script and its policy."""
    return _framed(page(document), "The report of the run")


def comparison_frame(document: dict[str, Any]) -> str:
    return _framed(comparison_page(document), "The comparison of two runs")


def _framed(page: str, title: str) -> str:
    """The frame is sandboxed: scripts of the page run without the notebook's origin, so they see neither it nor its kernel."""
    looks = f'width="100%" height="{HEIGHT}" frameborder="0" title="{title}"'
    return f'<iframe sandbox="allow-scripts" {looks} srcdoc="{html.escape(page, quote=True)}"></iframe>'


def page(document: dict[str, Any]) -> str:
    from reports.html import render

    return render(document)


def comparison_page(document: dict[str, Any]) -> str:
    from reports.compare_page import render

    return render(document)


def run(outline: dict[str, Any]) -> str:
    """A run that was read, from ``Run.outline``: a small table without script."""
    from reports.run_table import render

    return render(outline)

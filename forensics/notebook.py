"""A case in a notebook: its page, in a frame of its own that can reach nothing of the notebook."""

from __future__ import annotations

import html
from typing import Any

HEIGHT = 700  # px


def frame(document: dict[str, Any]) -> str:
    """HTML for a notebook's output from the document of ``Case.to_json``: the whole page with its script and its policy.

    The frame is sandboxed: scripts of the page run without the notebook's origin, so they see neither it nor its kernel.
    """
    from reports.html import render

    page = html.escape(render(document), quote=True)
    looks = f'width="100%" height="{HEIGHT}" frameborder="0" title="The report of the run"'
    return f'<iframe sandbox="allow-scripts" {looks} srcdoc="{page}"></iframe>'

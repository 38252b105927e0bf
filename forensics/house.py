"""House names: `forensics.toml` in the run folder or in the home folder says what the tags of a team mean.

    [metrics]
    "loss.train" = "my/own/tag"

The option --metric goes before the run folder's file, that before the home folder's.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from forensics.errors import ForensicsError

FILE = "forensics.toml"


def names(run: Path, given: dict[str, str] | None) -> dict[str, str]:
    """Canonical name -> tag. Raises ForensicsError for a file that is not what it should be."""
    found: dict[str, str] = {}
    folders = [Path.home(), run if run.is_dir() else run.parent]
    for path in (folder / FILE for folder in folders):
        if path.is_file():
            found |= _read(path)
    return found | (given or {})


def _read(path: Path) -> dict[str, str]:
    try:
        metrics = tomllib.loads(path.read_text("utf-8")).get("metrics", {})
    except (ValueError, RecursionError) as e:
        raise ForensicsError(
            f"{path} is not valid TOML: {e}", 'It should hold [metrics] with lines like "loss.train" = "my/own/tag".'
        ) from e
    if not isinstance(metrics, dict) or not all(isinstance(v, str) for v in metrics.values()):
        raise ForensicsError(f"{path}: [metrics] must map names to tags", '"loss.train" = "my/own/tag"')
    return dict(metrics)

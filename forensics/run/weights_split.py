"""Whether the ranks of a run may hold different weights by design: words of config, tags, source and log for sharding, for models that are
split over processes, and for replicas that train apart on purpose."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from forensics.run import settings
from forensics.run.once import once
from parsers import arrow
from parsers.lazy_regex import lazy_re
from parsers.tables import Run
from parsers.walk import is_regular

MOST_BYTES = 256 << 10  # of a log or script: its arguments stand at the beginning
_TEXTS = (".py", ".ipynb", ".sh", ".txt", ".yaml", ".yml", ".patch")
_WORDS = lazy_re(
    r"(?i)fsdp|fully.?shard|shard(?:ed|ing)(?!_?(?:data|sampl|read))|shard_(?:grad|param|optim|weight|model)"  # `shard=1800` alone is of the data
    r"|(?:model|weight|param\w{0,8}|optim\w{0,8}|grad\w{0,8})[-_ ]?shard|zero.?redundancy|zero_?optim|zero[-_ ]?(stage|[123]\b)|deepspeed|megatron|(tensor|pipeline|expert|model|context|sequence)\W{0,2}_?"
    r"(model_?)?parallel|\b(tp|pp|ep)_(size|degree|rank)\b|local_?sgd|diloco|federat|fed_?(avg|prox)|gossip|ensemble|population.?based|async(hronous)?_?sgd"
)


@once
def told(run: Run) -> str:
    """The first such word with what it stands in, as 'log: FSDP'; empty where there is none."""
    return next((f"{where}: {found[0]}" for where, text in _texts(run) if (found := _WORDS.search(text))), "")


def _texts(run: Run) -> Iterator[tuple[str, str]]:
    yield "config", "\n".join(f"{s.key} {s.value}" for s in settings.every(run))
    yield "metrics", "\n".join(map(str, arrow.distinct(run.tables["metrics"]["tag"])))
    yield "log", "\n".join(map(str, run.tables["events"]["text"].to_pylist()))
    for s in run.sources:
        path = run.file(s.path)
        if (s.format == "console" or PurePosixPath(s.path).suffix.lower() in _TEXTS) and is_regular(path):
            try:
                with path.open("rb") as f:
                    yield s.path, f.read(MOST_BYTES).decode("utf-8", "replace")
            except OSError:  # gone since it was read
                continue

"""What a hostile case is: a folder that it builds, and what has to come of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

Points = list[tuple[int | None, float]]  # (step, value)

CANARY = "EXECUTED"  # a file of this name beside the run folder: somebody ran what only should be read
SENTINEL = "KEEPME"  # in text that has to be shown: the page must not lose it either


@dataclass(frozen=True)
class Case:
    """A run folder and the promises that are particular to it; the general ones hold for every case.

    ``build(run)`` fills the folder, which exists and is empty. ``kept`` says for some tags which points the metrics
    table holds, neither fewer nor more. ``gaps`` are (end of the file's path, beginning of the place) of losses that
    have to be named; ``lost`` is the number of records that all gaps count together. ``absent`` are strings that no
    output may hold, ``present`` those that the tables or the page must. ``grow`` is called again and again while the
    run is read. ``verbs`` are the commands to run in place of `analyze` and `tables`, "{in}", "{run}" and "{out}" in them
    standing for the folders; a function among them is called with the folder of the outputs.
    """

    name: str
    build: Callable[[Path], object]
    kept: dict[str, Points] = field(default_factory=dict)
    gaps: tuple[tuple[str, str], ...] = ()
    lost: int | None = None
    exits: tuple[int, ...] = (0,)
    absent: tuple[str, ...] = ()
    present: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    target: str = ""  # what is analyzed: a path inside the run folder, or its name where it is another
    grow: Callable[[Path], object] | None = None
    verbs: tuple[tuple[str, ...] | Callable[[Path], object], ...] = ()
    seconds: int = 60  # of CPU
    megabytes: int = 1500  # resident


def points(first: int, last: int, skip: tuple[int, ...] = ()) -> Points:
    """What the makers below write for these steps, but for some: a curve that no two steps share a value of."""
    return [(s, value(s)) for s in range(first, last + 1) if s not in skip]


def value(step: int) -> float:
    """Exact in float32 and in six decimals, so that each format keeps it as it is."""
    return 2.5 - (step % 4096) / 4096


def lines(first: int, last: int, tag: str = "loss") -> str:
    """JSON lines of such points."""
    return "".join(json.dumps({"step": s, tag: v}) + "\n" for s, v in points(first, last))


def write(name: str, data: bytes | str) -> Callable[[Path], object]:
    """A builder of one file."""

    def build(run: Path) -> None:
        path = run / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data)

    return build


def writes(files: dict[str, bytes | str]) -> Callable[[Path], object]:
    """A builder of several files."""

    def build(run: Path) -> None:
        for name, data in files.items():
            write(name, data)(run)

    return build


def unique(cases: Iterator[Case] | list[Case]) -> list[Case]:
    """The cases, after a look that no two share a name."""
    found = list(cases)
    names = [c.name for c in found]
    assert len(set(names)) == len(names), sorted(n for n in names if names.count(n) > 1)
    return found

"""The shipped samples, damaged: cut at each kilobyte, flipped, blocks doubled, swapped, zeroed; read as a run is read.

What has to hold whatever was done: no parser breaks off, every gap names its file and place, and the reading stays within its
time. After a cut, nothing is made up (each row is one of the whole file's), each row that lies whole before the cut is still
there, and where a record was cut in two, that is said. In an event file the checksums tell a flipped bit: it costs at most
its record.
"""

from __future__ import annotations

import bisect
import random
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hostile.checks import PLACE

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
KILO, SECONDS = 1024, 20  # of CPU for a file, which takes some milliseconds when it is whole
_LEFT = {".md", ".py", ".safetensors", ".pt", ".bin"}  # no logs

Row = tuple[str, int | None, str, int | None]  # tag, step, value, at


@dataclass(frozen=True)
class Read:
    """What was read of one file."""

    rows: list[Row]
    gaps: list[tuple[str, str, str, int | None]]
    format: str
    unit: str


def files() -> list[Path]:
    return [
        p
        for p in sorted(SAMPLES.rglob("*"))
        if p.is_file() and p.parts[len(SAMPLES.parts)] != "making" and p.parent != SAMPLES and p.suffix not in _LEFT
    ]


def mutated(data: bytes, rng: random.Random, share: float) -> Iterator[tuple[str, bytes]]:
    """(what was done, the bytes); `share` of the cuts at each kilobyte, and as many of the other kinds."""
    cuts = list(range(KILO, len(data), KILO)) or [len(data) // 2]
    for at in rng.sample(cuts, max(round(len(cuts) * share), 1)):
        yield f"cut at {at}", data[:at]
    for _ in range(max(round(len(cuts) * share / 2), 1)):
        a, b = rng.randrange(len(data)), rng.randrange(len(data))
        size = rng.choice((1, 64, KILO))
        flipped = bytearray(data)
        flipped[a] ^= 1 << rng.randrange(8)
        yield f"flipped in {a}", bytes(flipped)
        yield f"{size} doubled at {a}", data[: a + size] + data[a:]
        low, high = sorted((a, b))
        if low + size <= high:
            yield (
                f"{size} swapped at {low} and {high}",
                data[:low] + data[high : high + size] + data[low + size : high] + data[low : low + size] + data[high + size :],
            )
        yield f"{size} zeroed at {a}", data[:a] + b"\0" * len(data[a : a + size]) + data[a + size :]


def read(folder: Path, path: Path, data: bytes) -> Read | None:
    """The file alone, as ``parsers.read_all`` reads it; None where nothing claims it."""
    import parsers

    beside = folder / path.relative_to(SAMPLES)
    beside.parent.mkdir(parents=True, exist_ok=True)
    beside.write_bytes(data)
    rows: list[Row] = []
    gaps = []
    source = None
    for run in parsers.read_all(folder):
        table = run.tables["metrics"]
        rows += zip(
            table["tag"].to_pylist(), table["step"].to_pylist(), map(repr, table["value"].to_pylist()), table["at"].to_pylist(), strict=True
        )
        gaps += [(g.path, g.at, g.what, g.lost) for g in run.gaps]
        source = next((s for s in run.sources if s.claimed), source)
    beside.unlink()
    return Read(rows, gaps, source.format, source.unit) if source else None


def broken(path: Path, share: float, seed: int = 1) -> list[str]:
    """The promises that did not hold for a sample's file."""
    data = path.read_bytes()
    found: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        whole = read(folder, path, data)
        if whole is None or not data:
            return found
        starts = _starts(whole, data)
        for what, changed in mutated(data, random.Random(f"{seed}{path.name}"), share):
            where = f"{path.relative_to(SAMPLES)} {what}"
            now = read(folder, path, changed)
            if now is None:
                continue
            found += [f"{where}: a parser broke off: {g}" for g in now.gaps if "broke off" in g[2]]
            found += [f"{where}: a gap without file or place: {g}" for g in now.gaps if not g[0] or not PLACE.match(g[1])]
            if what.startswith("cut") and now.format == whole.format:
                found += [f"{where}: {x}" for x in _cut(whole, now, data, len(changed), starts)]
            elif what.startswith("flipped") and whole.format == "tensorboard":
                lost = Counter(whole.rows) - Counter(now.rows)
                if len({r[3] for r in lost}) > 1 or Counter(now.rows) - Counter(whole.rows):
                    found.append(f"{where}: {len(lost)} rows lost, {len(Counter(now.rows) - Counter(whole.rows))} made up")
    return found


def _starts(whole: Read, data: bytes) -> dict[int, int]:
    """Row's `at` -> byte where its record begins; empty where `at` counts something else."""
    places = {r[3] for r in whole.rows if r[3] is not None}
    if whole.unit == "byte":
        return {p: p for p in places}
    if whole.unit != "line" or whole.format in ("json_log", "trainer_state"):
        return {}
    breaks = [m.end() for m in re.finditer(rb"\n", data)]
    return {p: 0 if p == 1 else breaks[p - 2] for p in places if p - 2 < len(breaks)}


def _cut(whole: Read, now: Read, data: bytes, at: int, starts: dict[int, int]) -> Iterator[str]:
    order = sorted(starts.values())
    if not order:
        return
    mine = {(r[0], r[1], r[2]) for r in whole.rows}
    if made_up := [r for r in now.rows if (r[0], r[1], r[2]) not in mine]:
        yield f"made up {made_up[:3]}"
    sure = bisect.bisect_right(order, at) - 2  # the last record that begins before the cut may be cut in two
    if sure < 0:
        return
    wanted = Counter((r[0], r[1], r[2]) for r in whole.rows if r[3] is not None and starts.get(r[3], at) < order[sure])
    if lacks := wanted - Counter((r[0], r[1], r[2]) for r in now.rows):
        yield f"{sum(lacks.values())} rows before the cut are lost, such as {next(iter(lacks))}"
    torn = whole.unit == "byte" and at not in order and at < len(data)
    if torn and not now.gaps and at > order[-1]:
        return  # what is behind the last row is no row
    if torn and not now.gaps:
        yield "nothing says that a record was cut"

"""A run behind a URL in a folder here: its logs and configs whole, of large checkpoints the headers alone.

Such a checkpoint is an outline: a file of the true length with holes in it, sparse on disk. What lies in a hole is not read for a
value: ``reader`` gives its tensors without values, and ``Copy.fill`` fetches all of it where somebody needs them.
"""

from __future__ import annotations

import struct
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import parsers
from forensics import remote
from forensics.errors import Fetching, ForensicsError
from parsers.checkpoints.contents import SIZES, Contents, Tensor
from parsers.tables import HEAD_BYTES, Gap

WHOLE = 200_000_000  # bytes of a run that are fetched without a word: half a minute at 50 Mbit/s
SMALL = 1 << 20  # bytes of a file that is fetched whole, whatever it is
BEGINNING = 1 << 20  # bytes of every checkpoint: what case.json gives the hash of
TAIL = 70_000  # where the end of a zip is looked for, as parsers.formats.checkpoint_files does
HEADER = 100_000_000  # bytes of a safetensors header, the library's own limit
INNER, MEMBERS = 64 << 10, 64  # bytes and number of the small members of a zip: counters such as Adam's step
PICKLES = 64 << 20  # bytes of what is no tensor in a zip
NOT_FETCHED = "its values were not fetched"

Range = tuple[int, int]


@dataclass
class Outline:
    """A file of which a part is here. ``known``: the ranges that were fetched; None where its header is not a part of it."""

    key: str
    size: int
    time: float
    known: list[Range] | None

    def has(self, first: int, last: int) -> bool:
        return any(a <= first and last <= b for a, b in self.known or [])


@dataclass
class Copy:
    """A run behind a URL as far as it lies in ``folder``, which goes with the last of its runs (``keep``)."""

    url: str
    folder: Path
    keep: tempfile.TemporaryDirectory[str] | None = None
    outlines: dict[Path, Outline] = field(default_factory=dict)
    dropped: set[Path] = field(default_factory=set)  # outlines that were removed

    def fetch(self, members: Sequence[remote.Member], progress: Callable[[str, int, int], None] | None = None) -> list[Gap]:
        """All of them where that is little, else logs and configs first, then the headers of checkpoints; -> what could not be had."""
        named = [m for m in members if m.name]
        partial = _partial(self.url, named) if sum(m.size for m in named) > WHOLE else {}
        whole = [m for m in named if m.name not in partial]
        _tell(sum(m.size for m in whole), sum(m.size for m in named), self.url)
        gaps = remote.fetch(self.url, whole, self.folder, _ticking(progress, "fetching", len(whole)))
        fs, _ = remote.opened(self.url)

        def outlined(m: remote.Member) -> Gap | None:
            target = self.folder / m.name
            try:
                self.outlines[target] = _outline(fs, m, target, partial[m.name])
            except Exception as e:  # each file system has errors of its own
                target.unlink(missing_ok=True)  # nobody would know of its holes
                return Gap("byte 0", f"it cannot be copied from there: {type(e).__name__}: {e}"[:300], None, m.name)
            return None

        return gaps + [g for g in remote.each(fs, outlined, [m for m in named if m.name in partial]) if g is not None]

    def fill(self, paths: Iterable[Path]) -> None:
        """Fetches all of these files where only their outlines are here. Raises ForensicsError."""
        wanted = {p: self.outlines.pop(p) for p in paths if p in self.outlines}
        _tell(sum(o.size for o in wanted.values()), 0, self.url)
        members = [remote.Member(o.key, p.relative_to(self.folder).as_posix(), o.size, o.time) for p, o in wanted.items()]
        if gaps := remote.fetch(self.url, members, self.folder):
            raise ForensicsError(f"{self.url}/{gaps[0].path}: {gaps[0].what}", remote.HINT)

    def drop(self) -> None:
        """Removes the outlines that are left, where a program may take them for checkpoints."""
        for path in self.outlines:
            path.unlink(missing_ok=True)
            self.dropped.add(path)
        self.outlines.clear()


@contextmanager
def here(path: str, progress: Callable[[str, int, int], None] | None = None) -> Iterator[Path]:
    """A path, or a copy of all that lies behind a URL; it goes again. Raises ForensicsError where a part of that cannot be had."""
    if not remote.is_url(path := remote.local(path)):
        yield Path(path)
        return
    members = remote.listed(path)
    with tempfile.TemporaryDirectory(prefix="forensics-") as name:
        last = path.rstrip("/").rpartition("/")[2]
        alone = [m.key for m in members] == [remote.opened(path)[1]]
        folder = Path(name) / ("" if alone else last if last not in ("", ".", "..") else "checkpoint")
        folder.mkdir(exist_ok=True)
        _tell(sum(m.size for m in members), 0, path)
        gaps = remote.refused(members) + remote.fetch(
            path, [m for m in members if m.name], folder, _ticking(progress, "fetching", len(members))
        )
        if gaps:
            raise ForensicsError(f"{path}: {gaps[0].path}: {gaps[0].what}", remote.HINT)
        whole = folder / (members[0].name if alone else "")
        try:
            yield whole
        except ForensicsError as e:
            raise ForensicsError(e.message.replace(str(whole), path), e.hint) from e


def of(run: Any) -> dict[Path, Outline]:
    """The files of a run of which only a part is here."""
    return getattr(run.copy, "outlines", {})


def closed(run: Any, path: Path) -> bool:
    """Whether nothing of the contents of a file is here."""
    outline = of(run).get(path)
    return path in getattr(run.copy, "dropped", ()) or (outline is not None and outline.known is None)


def reader(read_file: Callable[[Path], Contents], known: dict[Path, Outline]) -> Callable[[Path], Contents]:
    """``read_file`` that gives no value out of a hole."""

    def read(path: Path) -> Contents:
        found = read_file(path)
        if not known.keys().isdisjoint(found.files):
            found.sums.clear()
            for t in found.tensors:
                if not t.why and not _fetched(t, known):
                    t.pieces, t.inline, t.why = (), None, NOT_FETCHED
                    found.values.pop(t.name, None)  # of a tensor of one value, its value
        return found

    return read


def _fetched(t: Tensor, known: dict[Path, Outline]) -> bool:
    """Whether its bytes are all here; what is read in another way than from its bytes may lie anywhere."""
    if t.inline is not None:
        return False
    places = [(known.get(p.file.path), p.offset, p.offset + p.count * SIZES[t.dtype]) for p in t.pieces]
    return all(outline is None or outline.has(first, last) for outline, first, last in places)


def _tell(size: int, of: int, url: str) -> None:
    if size > WHOLE:
        among = f" of {_bytes(of)}" if of > size else ""
        warnings.warn(f"{_bytes(size)}{among} from {url}", Fetching, stacklevel=3)


def _bytes(n: int) -> str:
    return f"{n / 1e9:.1f} GB" if n >= 1e9 else f"{n / 1e6:.0f} MB"


def _ticking(progress: Callable[[str, int, int], None] | None, what: str, total: int) -> Callable[[int], None] | None:
    return None if progress is None else lambda done: progress(what, done, total)


def _partial(url: str, members: Sequence[remote.Member]) -> dict[str, bytes]:
    """The large files that are checkpoints, or that nobody reads, with their beginnings."""
    fs, _ = remote.opened(url)
    large = [m for m in members if m.size > SMALL and not m.name.endswith(".npy")]  # an index of samples, which is read later
    heads = fs.cat_ranges([m.key for m in large], [0] * len(large), [HEAD_BYTES] * len(large), on_error="return") if large else []
    found = {}
    for m, head in zip(large, heads, strict=True):
        if isinstance(head, bytes):
            names = [parsers.name_of(p) for p in parsers.claimants(Path(m.name), head)]
            if names in ([], ["checkpoint_files"]):
                found[m.name] = head
    return found


def _outline(fs: Any, m: remote.Member, target: Path, head: bytes) -> Outline:
    target.parent.mkdir(parents=True, exist_ok=True)
    wanted: list[Range] = [(0, min(BEGINNING, m.size))]
    openable, made = False, dict[int, bytes]()
    if m.name.endswith(".safetensors"):
        (length,) = struct.unpack("<Q", head[:8])
        openable = length <= HEADER
        wanted += [(BEGINNING, 8 + length)] if openable and 8 + length > BEGINNING else []
    elif head.startswith(b"PK\x03\x04"):
        wanted.append((max(m.size - TAIL, 0), m.size))
        with suppress(zipfile.BadZipFile):  # cut off: its end says so
            inner, made = _members(fs, m)
            openable, wanted = inner is not None, [*wanted, *(inner or [])]
    blocks = fs.cat_ranges([m.key] * len(wanted), [a for a, _ in wanted], [b for _, b in wanted])
    with target.open("wb") as f:
        f.truncate(m.size)
        for at, data in [*made.items(), *zip([a for a, _ in wanted], blocks, strict=True)]:
            f.seek(at)
            f.write(data)
    remote.dated(target, m.time)
    return Outline(m.key, m.size, m.time, wanted if openable else None)


def _members(fs: Any, m: remote.Member) -> tuple[list[Range] | None, dict[int, bytes]]:
    """The ranges of a zip's directory, of what is no tensor and of the smallest that are, and headers for the others as torch aligns them.
    None where there is too much of it, or it is no zip of torch's. Raises BadZipFile."""
    with fs.open(m.key, "rb", block_size=SMALL) as file, zipfile.ZipFile(file) as archive:
        found, start = archive.infolist(), archive.start_dir
    plain = [i for i in found if "/data/" not in i.filename]
    if not any(i.filename.endswith("data.pkl") for i in plain) or sum(i.compress_size for i in plain) > PICKLES:
        return None, {}
    small = [i for i in found if "/data/" in i.filename and i.compress_size <= INNER][:MEMBERS]
    ranges = [(i.header_offset, min(i.header_offset + 30 + len(i.filename) + 200 + i.compress_size, m.size)) for i in [*plain, *small]]
    return [(start, m.size), *ranges], {i.header_offset: _header(i) for i in found}


def _header(i: zipfile.ZipInfo) -> bytes:
    """A local header whose bytes begin at a multiple of 64, as torch pads them (caffe2/serialize/inline_container.cc)."""
    name = i.filename.encode()
    extra = -(i.header_offset + 34 + len(name)) % 64 + 4
    return b"PK\x03\x04" + bytes(22) + struct.pack("<HH", len(name), extra) + name + bytes(extra)

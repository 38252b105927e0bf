"""TFRecord framing: every sound record, nothing else, and each loss counted."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import google_crc32c
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers.tables import Gap
from parsers.tensorboard_format import tfrecord


def mask(crc: int) -> int:
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def frame(payload: bytes) -> bytes:
    header = struct.pack("<Q", len(payload))
    checksum = struct.pack("<I", mask(google_crc32c.value(header)))
    return header + checksum + payload + struct.pack("<I", mask(google_crc32c.value(payload)))


def payload(i: int, size: int) -> bytes:
    """Distinct, and longer than its number."""
    return (b"%08d" % i + random.Random(i).randbytes(size))[: max(size, 8)]


def read(path: Path, window: int = tfrecord.WINDOW) -> tuple[list[tuple[int, bytes]], list[Gap]]:
    found, gaps = [], []
    for piece in tfrecord.read(path, window):
        if isinstance(piece, Gap):
            gaps.append(piece)
        else:
            spans = zip(piece.at().tolist(), piece.start.tolist(), piece.length.tolist(), strict=True)
            found += [(at, piece.data[s : s + n].tobytes()) for at, s, n in spans]
    return found, gaps


def lost(gaps: list[Gap]) -> int:
    return sum(gap.lost or 0 for gap in gaps)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "events.out.tfevents.1"


SIZES = {"small": [30, 41, 36], "one size": [33], "large": [9000, 20, 70000], "mixed": [12, 600, 31, 31, 5000, 8]}


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("window", [1 << 12, 1 << 16, 1 << 24])
def test_intact(file: Path, sizes: list[int], window: int) -> None:
    count = 300 if max(sizes) > 1000 else 6000
    payloads = [payload(i, sizes[i % len(sizes)]) for i in range(count)]
    file.write_bytes(b"".join(map(frame, payloads)))
    found, gaps = read(file, window)
    assert gaps == []
    assert [p for _, p in found] == payloads
    starts = np.cumsum([0] + [len(p) + 16 for p in payloads[:-1]]).tolist()
    assert [at for at, _ in found] == starts


@pytest.mark.parametrize("more", [0, 1, 2, 5, 40, 400, 40_000])
def test_small_records_of_any_size(file: Path, more: int) -> None:
    """Whether they end where one by one ends and all at once begins, near it or far from it."""
    rng = random.Random(more)
    payloads = [rng.randbytes(rng.randrange(8, 40)) for _ in range(64 + more)]
    file.write_bytes(b"".join(map(frame, payloads)))
    found, gaps = read(file)
    assert gaps == [] and [p for _, p in found] == payloads


def test_empty_file_and_empty_records(file: Path) -> None:
    file.write_bytes(b"")
    assert read(file) == ([], [])
    file.write_bytes(frame(b"") * 3 + frame(b"x" * 20) + frame(b""))
    found, gaps = read(file)
    assert [len(p) for _, p in found] == [0, 0, 0, 20, 0]
    assert gaps == []


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_any_flipped_bit_costs_its_record_only(file: Path, sizes: list[int]) -> None:
    payloads = [payload(i, sizes[i % len(sizes)]) for i in range(120)]
    whole = b"".join(map(frame, payloads))
    ends = np.cumsum([len(p) + 16 for p in payloads])
    rng = random.Random(0)
    places = [int(ends[k] - back) for k in (3, 4, 5, 119) for back in range(1, 17)]  # footers, and then headers
    places += [int(ends[k] + ahead) for k in (3, 4, 5) for ahead in range(12)] + list(range(12))
    for place in places + [rng.randrange(len(whole)) for _ in range(60)]:
        broken = bytearray(whole)
        broken[place] ^= 1 << rng.randrange(8)
        file.write_bytes(broken)
        found, gaps = read(file)
        hit = int(np.searchsorted(ends, place, side="right"))
        assert [p for _, p in found] == payloads[:hit] + payloads[hit + 1 :], place
        assert [gap.lost for gap in gaps] == [1], (place, gaps)
        start = int(ends[hit - 1]) if hit else 0
        assert gaps[0].at == f"byte {start}"


@pytest.mark.parametrize("window", [1 << 12, 1 << 24])
def test_torn_last_record(file: Path, window: int) -> None:
    payloads = [payload(i, 40) for i in range(200)]
    whole = b"".join(map(frame, payloads))
    for cut in range(1, 56):
        file.write_bytes(whole[:-cut])
        found, gaps = read(file, window)
        assert [p for _, p in found] == payloads[:-1]
        assert [(gap.at, gap.lost) for gap in gaps] == [(f"byte {199 * 56}", 1)]
        assert "torn" in gaps[0].what


@pytest.mark.parametrize("kept", [1, 5, 11, 12, 13, 20, 40, 55])
def test_half_a_record_and_then_a_new_writer(file: Path, kept: int) -> None:
    """Also where the torn record's length happens to lead exactly to a later record's beginning."""
    first, second = ([payload(i, 40) for i in range(100)], [payload(i, 40 - kept if kept < 30 else 33) for i in range(100, 200)])
    file.write_bytes(b"".join(map(frame, first)) + frame(payload(999, 40))[:kept] + b"".join(map(frame, second)))
    found, gaps = read(file)
    assert [p for _, p in found] == first + second
    assert lost(gaps) == 1 and len(gaps) == 1


def test_torn_record_longer_than_the_window(file: Path) -> None:
    before, after = [payload(i, 40) for i in range(50)], [payload(i, 40) for i in range(50, 90)]
    torn = frame(payload(7, 300_000))[:200_000]
    file.write_bytes(b"".join(map(frame, before)) + torn + b"".join(map(frame, after)))
    found, gaps = read(file, 1 << 14)
    assert [p for _, p in found] == before + after
    assert [gap.lost for gap in gaps] == [1]
    file.write_bytes(b"".join(map(frame, before)) + torn)
    found, gaps = read(file, 1 << 14)
    assert [p for _, p in found] == before and [gap.lost for gap in gaps] == [1]


@pytest.mark.parametrize("what", ["zeros", "noise", "cut out", "repeated"])
@pytest.mark.parametrize("window", [1 << 13, 1 << 24])
def test_damaged_page(file: Path, what: str, window: int) -> None:
    payloads = [payload(i, 30 + i % 7) for i in range(2000)]
    whole = bytearray(b"".join(map(frame, payloads)))
    page = slice(40960, 45056)
    if what == "zeros":
        whole[page] = bytes(4096)
    elif what == "noise":
        whole[page] = random.Random(1).randbytes(4096)
    elif what == "cut out":
        del whole[page]
    else:
        whole[page] = whole[page] * 2
    file.write_bytes(whole)
    found, gaps = read(file, window)
    kept = [p for _, p in found]
    assert set(kept) <= set(payloads)
    assert 2000 - len(set(kept)) <= 4096 // 46 + 3
    assert lost(gaps) >= (2000 - len(set(kept)) if what in ("zeros", "noise") else 1)
    assert lost(gaps) <= 4096 // 46 + 3


def test_zeros_after_the_end_are_no_loss(file: Path) -> None:
    payloads = [payload(i, 30) for i in range(500)]
    file.write_bytes(b"".join(map(frame, payloads)) + bytes(100_000))
    for window in (1 << 12, 1 << 24):
        found, gaps = read(file, window)
        assert [p for _, p in found] == payloads
        assert [(gap.lost, "zero" in gap.what) for gap in gaps] == [(0, True)]


def test_same_flip_in_many_records_is_seen(file: Path) -> None:
    """Damage that follows a pattern must not cancel out where checksums are taken in groups."""
    payloads = [payload(i, 33) for i in range(4000)]
    framed = [bytearray(frame(p)) for p in payloads]
    for i in range(0, 4000, 2):
        framed[i][20] ^= 4
    file.write_bytes(b"".join(framed))
    found, gaps = read(file)
    assert [p for _, p in found] == payloads[1::2]
    assert lost(gaps) == 2000


def test_record_longer_than_taken(file: Path) -> None:
    header = struct.pack("<Q", tfrecord.LONGEST + 5)
    with file.open("wb") as out:
        out.write(frame(b"before" * 4) + header + struct.pack("<I", mask(google_crc32c.value(header))))
        out.seek(tfrecord.LONGEST + 5 + 4, 1)
        out.write(frame(b"after" * 4))
    found, gaps = read(file)
    assert [p for _, p in found] == [b"before" * 4, b"after" * 4]
    assert [gap.lost for gap in gaps] == [1]


def test_nothing_sound(file: Path) -> None:
    file.write_bytes(random.Random(3).randbytes(10_000))
    found, gaps = read(file)
    assert found == [] and [(gap.at, gap.lost) for gap in gaps] == [("byte 0", None)]


@settings(deadline=None, max_examples=150)
@given(data=st.data())
def test_random_damage(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Whatever happens: no foreign payload, and where nothing was inserted every missing record is counted."""
    rng = random.Random(data.draw(st.integers(0, 1 << 32)))
    sizes = data.draw(st.sampled_from([[30, 31, 40], [33], [8, 300, 3000], [20000, 30]]))
    payloads = [payload(i, rng.choice(sizes)) for i in range(60)]
    ends = np.cumsum([len(p) + 16 for p in payloads])
    whole = bytearray(b"".join(map(frame, payloads)))
    touched = set()
    for _ in range(data.draw(st.integers(0, 4))):
        place = rng.randrange(len(whole))
        size = rng.choice([1, 1, 1, 40, 300])
        touched |= set(range(int(np.searchsorted(ends, place, "right")), int(np.searchsorted(ends, place + size - 1, "right")) + 1))
        if rng.random() < 0.5:
            whole[place] ^= 1 << rng.randrange(8)
        else:
            whole[place : place + size] = bytes(len(whole[place : place + size]))
    if rng.random() < 0.3:
        cut = rng.randrange(1, 200)
        touched |= set(range(int(np.searchsorted(ends, len(whole) - cut, "right")), 60))
        del whole[-cut:]
    path = tmp_path_factory.mktemp("damage") / "x.tfevents"
    path.write_bytes(whole)
    found, gaps = read(path, rng.choice([1 << 12, 1 << 20]))
    kept = [p for _, p in found]
    missing = [i for i, p in enumerate(payloads) if p not in set(kept)]
    assert kept == [p for i, p in enumerate(payloads) if i not in missing]
    assert set(missing) <= touched
    seen = [i for i in missing if int(ends[i]) - len(payloads[i]) - 16 < len(whole)]  # a cut between records leaves no trace
    assert lost(gaps) > 0 if seen else all(gap.lost == 0 for gap in gaps)

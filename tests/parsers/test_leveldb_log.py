from __future__ import annotations

import random
from pathlib import Path

import pytest
from wandb_writer import BLOCK, HEADER, chunk, framed

from parsers.tables import Gap
from parsers.wandb_format import leveldb_log


def read(path: Path) -> tuple[list[bytes], list[int], list[Gap]]:
    records, places, gaps = [], [], []
    for part in leveldb_log.windows(path, first=len(HEADER)):
        if isinstance(part, Gap):
            gaps.append(part)
        else:
            records += [part.data[a : a + n] for a, n in zip(part.start, part.length, strict=True)]
            places += part.at
    return records, places, gaps


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


@pytest.fixture
def records() -> list[bytes]:
    rng = random.Random(1)
    sizes = [0, 1, 7, BLOCK - 7, BLOCK, 3 * BLOCK, *(rng.randrange(2000) for _ in range(200))]
    return [rng.randbytes(n) for n in sizes]


def test_records_of_all_sizes_come_back_with_their_places(tmp_path: Path, records: list[bytes]) -> None:
    data, places = framed(records)
    got, at, gaps = read(written(tmp_path / "a", data))
    assert got == records
    assert at == places
    assert gaps == []


def test_records_cross_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, records: list[bytes]) -> None:
    monkeypatch.setattr(leveldb_log, "WINDOW", BLOCK)
    data, places = framed(records)
    got, at, gaps = read(written(tmp_path / "a", data))
    assert (got, at, gaps) == (records, places, [])


def test_padding_at_a_block_end_is_no_record(tmp_path: Path) -> None:
    first = bytes(BLOCK - 7 - 7 - 5)  # leaves five bytes in the block
    data, places = framed([first, b"second"])
    assert places[1] == BLOCK
    assert read(written(tmp_path / "a", data)) == ([first, b"second"], places, [])


@pytest.mark.parametrize("where", ["checksum", "length", "kind", "data"])
def test_a_flipped_bit_costs_its_record_only(tmp_path: Path, where: str) -> None:
    records = [bytes([i]) * 300 for i in range(250)]  # more than two blocks
    data, places = framed(records)
    hit = 40
    place = places[hit] + {"checksum": 1, "length": 4, "kind": 6, "data": 100}[where]
    damaged = bytearray(data)
    damaged[place] ^= 0x40
    got, _, gaps = read(written(tmp_path / "a", bytes(damaged)))
    assert got == records[:hit] + records[hit + 1 :]
    assert [g.at for g in gaps] == [f"byte {places[hit]}"]


def test_a_lost_page_is_one_gap(tmp_path: Path) -> None:
    records = [b"%06d" % i * 20 for i in range(2000)]
    data, places = framed(records)
    damaged = data[:40000] + bytes(4096) + data[44096:]
    got, _, gaps = read(written(tmp_path / "a", damaged))
    lost = {r for r, p in zip(records, places, strict=True) if 40000 - 127 < p < 44096}
    assert set(records) - set(got) == lost
    assert len(gaps) == 1
    assert gaps[0].lost is None


def test_damage_to_one_fragment_costs_the_whole_record_and_says_so_once(tmp_path: Path) -> None:
    big = random.Random(2).randbytes(3 * BLOCK)
    data, places = framed([b"before", big, b"after"])
    damaged = bytearray(data)
    damaged[2 * BLOCK + 500] ^= 1
    got, _, gaps = read(written(tmp_path / "a", bytes(damaged)))
    assert got == [b"before", b"after"]
    assert [(g.at, g.lost) for g in gaps] == [(f"byte {places[1]}", 1)]


@pytest.mark.parametrize("cut", [3, 8, 150])
def test_a_cut_tail_is_told(tmp_path: Path, cut: int) -> None:
    records = [b"x" * 200 for _ in range(10)]
    data, places = framed(records)
    got, _, gaps = read(written(tmp_path / "a", data[: places[-1] + cut]))
    assert got == records[:-1]
    assert [(g.at, g.lost) for g in gaps] == [(f"byte {places[-1]}", 1)]
    assert "end" in gaps[0].what


def test_a_record_whose_last_block_never_came(tmp_path: Path) -> None:
    data, places = framed([b"a", bytes(2 * BLOCK)])
    got, _, gaps = read(written(tmp_path / "a", data[:BLOCK]))
    assert got == [b"a"]
    assert [(g.at, g.what, g.lost) for g in gaps] == [(f"byte {places[1]}", "the last record is cut off", 1)]


def test_fragments_without_their_other_half(tmp_path: Path) -> None:
    data = HEADER + chunk(4, b"tail") + chunk(2, b"head") + chunk(1, b"whole")
    got, _, gaps = read(written(tmp_path / "a", data))
    assert got == [b"whole"]
    assert [g.lost for g in gaps] == [1, 1]


def test_noise_gives_gaps_and_ends(tmp_path: Path) -> None:
    data = HEADER + random.Random(3).randbytes(5 * BLOCK) + bytes(BLOCK)
    got, _, gaps = read(written(tmp_path / "a", data))
    assert got == []
    assert len(gaps) == 1
    assert gaps[0].lost is None


def test_an_empty_file_has_nothing(tmp_path: Path) -> None:
    assert read(written(tmp_path / "a", b"")) == ([], [], [])
    assert read(written(tmp_path / "a", HEADER)) == ([], [], [])

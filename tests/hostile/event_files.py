"""Event files: every way to damage the framing, and messages that are framed well and mean harm."""

from __future__ import annotations

import math
import os
import random
import struct
from collections.abc import Iterator
from pathlib import Path

from hostile.case import Case, Points, points, value, write, writes
from hostile.wire import claim, events, field, frame, scalar, single, summary, version

NAME = "events.out.tfevents.1700000000.node1.1.0"
N = 200


class Log:
    """A sound file: its records, and where each begins."""

    def __init__(self, count: int = N) -> None:
        self.records = [version(), *events(points(0, count - 1))]
        self.at = [0]
        for record in self.records:
            self.at.append(self.at[-1] + len(record))
        self.data = b"".join(self.records)

    def place(self, step: int) -> int:
        return self.at[step + 1]

    def size(self, step: int) -> int:
        return len(self.records[step + 1])


def cases() -> Iterator[Case]:
    yield from _flips()
    yield from _holes()
    yield from _seams()
    yield from _bombs()
    yield from _messages()


def _damaged(name: str, data: bytes, *lost: int, gaps: tuple[int, ...] = (), count: int | None = -1, **more: object) -> Case:
    """A file that lost the records of these steps, with gaps at these bytes; ``count`` None where nobody can tell."""
    return Case(
        f"events/{name}", write(NAME, data), {"loss": points(0, N - 1, lost)},
        gaps=tuple((NAME, f"byte {at}") for at in gaps), lost=len(lost) if count == -1 else count, **more,  # type: ignore[arg-type]
    )  # fmt: skip


def _flip(data: bytes, at: int, bit: int = 3) -> bytes:
    out = bytearray(data)
    out[at] ^= 1 << bit
    return bytes(out)


def _flips() -> Iterator[Case]:
    log = Log()
    parts = {"length": 0, "length_high": 6, "length_crc": 9, "payload": 20, "tag": 40, "payload_crc": -2}
    for where, step in (("first", 0), ("middle", 100), ("last", N - 1)):
        for part, offset in parts.items():
            at = log.place(step) + (offset if offset >= 0 else log.size(step) + offset)
            yield _damaged(f"flip_{part}_{where}", _flip(log.data, at), step, gaps=(log.place(step),))
    yield _damaged("flip_version", _flip(log.data, 15), gaps=(0,), count=1)
    yield _damaged("flip_very_first_byte", _flip(log.data, 0), gaps=(0,), count=1)
    two = _flip(_flip(log.data, log.place(50) + 20), log.place(51) + 20)
    yield _damaged("flip_neighbours_payload", two, 50, 51, gaps=(log.place(50),))
    mixed = _flip(_flip(log.data, log.place(50) + 20), log.place(51) + 1)
    yield _damaged("flip_payload_then_header", mixed, 50, 51, gaps=(log.place(50),))
    both = _flip(_flip(log.data, log.place(50) + 1), log.place(51) + 1)
    yield _damaged("flip_two_headers", both, 50, 51, gaps=(log.place(50),))
    data, hit = log.data, tuple(range(7, N, 11))
    for step in hit:
        data = _flip(data, log.place(step) + 13 + step % 20)
    yield _damaged("flip_every_eleventh", data, *hit, gaps=(log.place(7), log.place(18)))


def _holes() -> Iterator[Case]:
    log = Log()

    def zeroed(first: int, last: int, data: bytes = log.data) -> bytes:
        return data[:first] + bytes(last - first) + data[last:]

    a, b = log.place(60), log.place(63)
    yield _damaged("hole_of_whole_records", zeroed(a, b), 60, 61, 62, gaps=(a,))
    yield _damaged("hole_inside_one", zeroed(a + 15, a + 25), 60, gaps=(a,))
    yield _damaged("hole_over_a_seam", zeroed(b - 6, b + 7), 62, 63, gaps=(log.place(62),))
    begin, end = 4096, 8192
    lost = tuple(s for s in range(N) if log.place(s) < end and log.place(s) + log.size(s) > begin)
    yield _damaged("hole_of_a_page", zeroed(begin, end), *lost, gaps=(log.place(lost[0]),), count=None)
    yield _damaged("hole_at_start", zeroed(0, log.place(3)), 0, 1, 2, gaps=(0,), count=4)
    yield _damaged("zeros_inserted", log.data[:a] + bytes(1 << 20) + log.data[a:], gaps=(a,), count=None)
    yield _damaged("zeros_behind", log.data + bytes(50_000), gaps=(len(log.data),), count=0)
    yield _damaged("zeros_behind_torn", log.data[: log.place(N - 1) + 20] + bytes(5000), N - 1, gaps=(log.place(N - 1),), count=1)
    for cut in (4, 11, 12, 25, -1):
        end = log.place(N - 1) + (cut if cut > 0 else log.size(N - 1) + cut)
        yield _damaged(f"cut_{cut}_bytes_into_the_last", log.data[:end], N - 1, gaps=(log.place(N - 1),))
    yield Case("events/cut_at_a_seam", write(NAME, log.data[: log.place(120)]), {"loss": points(0, 119)}, lost=0)
    yield Case("events/head_missing", write(NAME, log.data[17:]), {"loss": points(0, N - 1)}, gaps=((NAME, "byte 0"),))
    yield _damaged("bytes_missing", log.data[: a + 20] + log.data[a + 25 :], 60, gaps=(a,))
    yield _damaged("bytes_missing_over_three", log.data[: a + 20] + log.data[log.place(62) + 5 :], 60, 61, 62, gaps=(a,), count=None)


def _seams() -> Iterator[Case]:
    log, rng = Log(), random.Random(1)
    a, b = log.place(60), log.place(61)
    noise = rng.randbytes(100)
    yield _damaged("noise_between", log.data[:a] + noise + log.data[a:], gaps=(a,), count=None)
    yield _damaged("noise_inside", log.data[: a + 20] + noise + log.data[a + 20 :], 60, gaps=(a,), count=None)
    yield _damaged("much_noise", log.data[:a] + rng.randbytes(3 << 20) + log.data[a:], gaps=(a,), count=None)
    yield _damaged("text_between", log.data[:a] + b"Traceback (most recent call last):\n" * 30 + log.data[a:], gaps=(a,), count=None)
    yield _damaged("torn_then_next_writer", log.data[: a + 20] + log.data[b:], 60, gaps=(a,))
    yield _damaged("torn_then_new_launch", log.data[: a + 20] + version() + log.data[b:], 60, gaps=(a,))
    yield _damaged("torn_after_header", log.data[: a + 12] + log.data[b:], 60, gaps=(a,))
    yield _damaged("torn_in_header", log.data[: a + 5] + log.data[b:], 60, gaps=(a,))
    yield Case("events/concatenated", write(NAME, log.data + version() + b"".join(events(points(N, N + 50)))),
               {"loss": points(0, N + 50)}, lost=0)  # fmt: skip
    half = log.data[: a + 20] + Log().data
    yield Case("events/concatenated_after_a_tear", write(NAME, half), {"loss": points(0, 59) + points(0, N - 1)},
               gaps=((NAME, f"byte {a}"),), lost=1)  # fmt: skip
    twice = log.data[: 4096 * 2] + log.data[4096 : 4096 * 2] + log.data[4096 * 2 :]
    again = tuple(s for s in range(N) if log.place(s) >= 4096 and log.place(s) + log.size(s) <= 8192)
    first, last = again[0] - 1, again[-1] + 1  # the torn ends of the block
    yield Case("events/block_twice", write(NAME, twice), {"loss": points(0, N - 1, (last,)) + points(again[0], again[-1]) + points(last, last)},
               gaps=((NAME, f"byte {log.place(last)}"),))  # fmt: skip
    assert first >= 0
    swapped = log.data[:4096] + log.data[6144:8192] + log.data[4096:6144] + log.data[8192:]
    torn = tuple(s for s in range(N) for edge in (4096, 6144, 8192) if log.place(s) < edge < log.place(s) + log.size(s))
    yield _damaged("blocks_swapped", swapped, *torn, gaps=(log.place(torn[0]),), count=None)
    crlf = log.data.replace(b"\n", b"\r\n")
    sound = tuple(s for s in range(N) if b"\n" in log.records[s + 1])
    yield _damaged("ftp_text_mode", crlf, *sound, count=None)
    rest = b"".join(events(points(N, N + 3000)))

    def grow(run: Path) -> None:
        path = run / NAME
        have = path.stat().st_size - len(log.data)
        if have < len(rest):
            with path.open("ab") as f:
                f.write(rest[have : have + 777])

    yield Case("events/still_growing", write(NAME, log.data), grow=grow)
    yield Case("events/cut_while_read", write(NAME, log.data * 200), grow=lambda run: os.truncate(run / NAME, 5000))
    yield Case("events/two_writers", write(NAME, b"".join(x for pair in zip(events(points(0, 99)), events(points(0, 99), b"val"), strict=True) for x in pair)),
               {"loss": points(0, 99), "val": points(0, 99)}, lost=0)  # fmt: skip


def _bombs() -> Iterator[Case]:
    log = Log()
    a = log.place(60)
    for name, length in (("2_63", 1 << 63), ("2_64", (1 << 64) - 1), ("2_62", 1 << 62), ("2_40", 1 << 40), ("2_31", 1 << 31),
                         ("2_28", 1 << 28), ("past_the_end", len(log.data)), ("negative_16", (1 << 64) - 16)):  # fmt: skip
        yield _damaged(f"claims_{name}", log.data[:a] + claim(length) + log.data[a:], gaps=(a,), count=1)
    yield _damaged("claims_at_the_end", log.data + claim(1 << 62), gaps=(len(log.data),), count=1)
    within = sum(log.size(s) for s in (60, 61, 62))
    yield _damaged("claims_three_records", log.data[:a] + claim(within - 4) + log.data[a:], gaps=(a,), count=1)
    yield _damaged("claims_half_a_record", log.data[:a] + claim(within - 20) + log.data[a:], gaps=(a,), count=1)
    yield _damaged("claims_all_that_is_left", log.data[:a] + claim(len(log.data) - a - 4) + log.data[a:], gaps=(a,), count=1)
    chain = b"".join(frame(b"x") for _ in range(60_000)) + b"?"
    yield _damaged("nested_chains", log.data[:a] + claim(len(chain)) + chain + b"\0\0\0\0" + log.data[a:], gaps=(a,), count=None)
    heads = b"".join(claim(100_000 + i) for i in range(40_000))
    yield _damaged("many_headers", log.data[:a] + heads + log.data[a:], gaps=(a,), count=None)
    yield _damaged("large_within", log.data[:a] + frame(bytes(64 << 20)) + log.data[a:], count=1, seconds=90)
    yield Case("events/empty_records", write(NAME, frame(b"") * 20_000 + log.data), {"loss": points(0, N - 1)}, lost=0)
    yield Case("events/only_zeros", write(NAME, bytes(1 << 20)), exits=(0, 1))
    yield Case("events/one_byte", write(NAME, b"\x18"), exits=(0, 1))
    yield Case("events/empty", write(NAME, b""), exits=(0, 1))
    yield Case("events/only_a_header", write(NAME, claim(1 << 20)), exits=(0, 1), gaps=((NAME, "byte 0"),))
    yield Case("events/noise", write(NAME, random.Random(2).randbytes(1 << 20)), gaps=((NAME, "byte 0"),))
    yield Case("events/sparse_8_gigabytes", _sparse, {"loss": points(0, N - 1)}, seconds=90)


def _sparse(run: Path) -> None:
    """Eight gigabytes of nothing behind the records: a preallocated file after a crash."""
    path = run / NAME
    path.write_bytes(Log().data)
    os.truncate(path, 1 << 33)


def _messages() -> Iterator[Case]:
    """Framed well; what is inside is odd, wrong or hostile."""
    log = Log()
    a = log.place(60)

    def among(name: str, payload: bytes, count: int | None = 1, gap: bool = True, **more: object) -> Case:
        return _damaged(f"message_{name}", log.data[:a] + frame(payload) + log.data[a:], gaps=(a,) if gap else (), count=count, **more)

    head = field(1, 1.7e9) + field(2, 60)
    yield among("noise", random.Random(3).randbytes(60))
    yield among("endless_varint", b"\x10" + b"\xff" * 40)
    yield among("length_beyond", head + b"\x2a\xff\xff\xff\xff\x0f")
    yield among("length_2_63", head + b"\x2a" + b"\xff" * 9 + b"\x01")
    yield among("group_without_end", head + b"\x5b" * 2000)
    yield among("groups_nested_deep", head + b"\x5b" * 5000 + b"\x5c" * 5000, 0, gap=False)
    yield among("field_zero", head + b"\x00\x00")
    nested = b""
    for _ in range(3000):
        nested = field(1, nested)
    yield among("nested_deep", head + field(5, nested), None, gap=False)
    tensor = field(1, b"odd") + field(8, field(1, 1) + field(2, field(2, field(1, 1 << 62)) * 4) + field(4, b"\0\0\0\0"))
    yield among("tensor_of_huge_shape", summary(60, tensor), 0, gap=False)
    yield among(
        "tensor_of_negative_shape", summary(60, field(1, b"odd") + field(8, field(1, 1) + field(2, field(2, field(1, -5))))), 0, gap=False
    )
    yield among("tensor_half_a_number", summary(60, field(1, b"odd") + field(8, field(1, 2) + field(4, b"\0\0\0"))), 0, gap=False)
    yield among("tensor_of_unknown_type", summary(60, field(1, b"odd") + field(8, field(1, 99) + field(4, bytes(8)))), 0, gap=False)
    yield among("histogram_torn", summary(60, field(1, b"h") + field(5, field(6, b"\0" * 7))))
    yield among(
        "histogram_unlike",
        summary(
            60,
            field(1, b"h")
            + field(5, field(3, 1e308) + field(6, struct.pack("<3d", math.nan, -math.inf, 1e308)) + field(7, struct.pack("<d", -1.0))),
        ),
        0,
        gap=False,
    )
    yield among(
        "hparams_of_noise",
        summary(60, field(1, b"_hparams_/x") + field(9, field(1, field(1, b"hparams") + field(2, b"\xff" * 30)))),
        None,
        gap=False,
    )
    yield Case("events/tag_not_utf8", write(NAME, b"".join(events(points(0, 20), b"l\xff\xfeoss"))), {"l\\xff\\xfeoss": points(0, 20)})
    yield Case("events/tag_empty", write(NAME, b"".join(events(points(0, 20), b""))), {"": points(0, 20)})
    yield Case("events/tag_newline", write(NAME, b"".join(events(points(0, 20), b"a\nb\r\n\tc"))), {"a\nb\r\n\tc": points(0, 20)})
    yield Case("events/tag_megabyte", write(NAME, b"".join(events(points(0, 5), b"x" * (1 << 20)))), {"x" * (1 << 20): points(0, 5)})
    yield Case("events/tag_null", write(NAME, b"".join(events(points(0, 20), b"a\0b"))), {"a\0b": points(0, 20)})
    tags = b"".join(frame(scalar(1, value(i), b"t%06d" % i)) for i in range(200_000))
    yield Case("events/200k_tags", write(NAME, tags), {"t000000": [(1, value(0))], "t199999": [(1, value(199_999))]}, seconds=150)
    wide = frame(summary(7, *(field(1, b"w%05d" % i) + single(2, 1.0) for i in range(20_000))))
    yield Case("events/20k_values_in_one", write(NAME, wide), {"w00000": [(7, 1.0)], "w19999": [(7, 1.0)]})
    extremes: Points = [(-(2**63), 1.0), (2**63 - 1, 2.0), (0, 3.0), (-1, 4.0), (2**53 + 1, 5.0)]
    yield Case("events/steps_extreme", write(NAME, b"".join(frame(scalar(s or 0, v)) for s, v in extremes)), {"loss": extremes})
    odd = [(s, v) for s, v in points(0, 99)] + [(2**63 - 1, 9.0)]
    yield Case("events/one_step_2_63", write(NAME, b"".join(frame(scalar(s or 0, v)) for s, v in odd)), {"loss": odd})
    back = [(s, value(s or 0)) for s, _ in reversed(points(0, 150))]
    yield Case("events/steps_backwards", write(NAME, b"".join(events(back))), {"loss": back})
    same: Points = [(5, value(i)) for i in range(150)]
    yield Case("events/steps_all_the_same", write(NAME, b"".join(events(same))), {"loss": same})
    negative: Points = [(s - 300, v) for s, v in points(0, 150) if s is not None]
    yield Case("events/steps_negative", write(NAME, b"".join(events(negative))), {"loss": negative})
    shuffled = points(0, 300)
    random.Random(4).shuffle(shuffled)
    yield Case("events/steps_shuffled", write(NAME, b"".join(events(shuffled))), {"loss": shuffled})
    for name, walls in (("nan", [math.nan]), ("infinite", [math.inf, -math.inf]), ("huge", [1e300, -1e300]), ("negative", [-5.0]),
                        ("jumping", [1.7e9, 0.1, 4e9, 1.6e9]), ("year_9999", [253402300798.0])):  # fmt: skip
        data = b"".join(frame(scalar(s or 0, v, wall=walls[i % len(walls)])) for i, (s, v) in enumerate(points(0, 100)))
        yield Case(f"events/times_{name}", write(NAME, data), {"loss": points(0, 100)})
    extreme: Points = [
        (i, v) for i, v in enumerate([math.nan, math.inf, -math.inf, 3.4028234663852886e38, -3.4028234663852886e38, 1e-45, 0.0, -0.0] * 20)
    ]
    extreme = [(s, struct.unpack("<f", struct.pack("<f", v))[0]) for s, v in extreme]
    yield Case("events/values_extreme", write(NAME, b"".join(events(extreme))), {"loss": extreme})
    yield Case(
        "events/all_nan", write(NAME, b"".join(events([(s, math.nan) for s in range(100)]))), {"loss": [(s, math.nan) for s in range(100)]}
    )
    yield Case("events/one_point", write(NAME, b"".join(events([(0, 1.0)]))), {"loss": [(0, 1.0)]})
    yield Case("events/hundred_files", writes({f"{i:03}/{NAME}{i}": b"".join(events(points(0, 30))) for i in range(100)}))
    yield Case("events/restarted_500_times", write(NAME, b"".join(b"".join(events(points(3 * i, 3 * i + 6))) for i in range(500))))

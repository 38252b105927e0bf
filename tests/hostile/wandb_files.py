"""W&B's ``.wandb`` files: damage to LevelDB's blocks, hostile items, and the folder around the file."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

from hostile.case import SENTINEL, Case, points, value, write, writes
from hostile.wire import WANDB_HEADER, chunk, config, field, framed, history, item, output

NAME = "run-abc123.wandb"
N = 1200


def cases() -> Iterator[Case]:
    records = [config({"lr": 0.1}), *(history(s, {"loss": value(s)}) for s in range(N))]
    data, at = framed(records)
    places = at[1:]
    sizes = [b - a for a, b in zip(places, [*places[1:], len(data)], strict=True)]

    def damaged(name: str, broken: bytes, *lost: int, gaps: tuple[int, ...] = (), **more: object) -> Case:
        return Case(f"wandb/{name}", write(NAME, broken), {"loss": points(0, N - 1, lost)},
                    gaps=tuple((NAME, f"byte {g}") for g in gaps), **more)  # type: ignore[arg-type]  # fmt: skip

    def flip(at: int) -> bytes:
        out = bytearray(data)
        out[at] ^= 8
        return bytes(out)

    yield damaged("sound", data, lost=0)
    for step in (0, 150, N - 1):
        for part, offset in (("crc", 1), ("length", 4), ("kind", 6), ("payload", 20)):
            yield damaged(f"flip_{part}_{step}", flip(places[step] + offset), step, gaps=(places[step],))
    yield damaged("flip_header", flip(2), gaps=(0,))
    # without it the blocks lie elsewhere: a record at each border of what looks like a block is lost, and named
    borders = [a - 7 for a in places if any(a - 7 < b < a - 7 + sizes[places.index(a)] for b in (32768, 65536, 98304))]
    hit = tuple(places.index(b + 7) for b in borders)
    yield damaged("header_missing", data[7:], *hit, gaps=(0, *borders))
    over = next(s for s in range(N) if places[s] // 32768 != (places[s] + sizes[s]) // 32768 and places[s] // 32768 == 0)
    yield damaged("flip_in_a_record_over_two_blocks", flip(places[over] + 30), over, gaps=(places[over],))
    yield damaged("flip_in_its_second_half", flip(32768 + 8), over)
    yield damaged("cut_in_the_last", data[: places[-1] + 20], N - 1, gaps=(places[-1],), lost=1)
    yield damaged("cut_in_its_header", data[: places[-1] + 3], N - 1, lost=1)
    begin, end = places[40] + 10, places[44] + 3
    yield damaged("zero_hole", data[:begin] + bytes(end - begin) + data[end:], 40, 41, 42, 43, 44, gaps=(places[40],))
    block = tuple(s for s in range(N) if places[s] + sizes[s] > 32768 and places[s] < 65536)
    if places[-1] > 65536:  # else it has no third block
        yield damaged("block_of_zeros", data[:32768] + bytes(32768) + data[65536:], *block)
        yield damaged("block_missing", data[:32768] + data[65536:], *block)
        noise = random.Random(1).randbytes(32768)
        yield damaged("block_of_noise", data[:32768] + noise + data[65536:], *block)
    yield damaged("zeros_behind", data + bytes(100_000))
    yield Case("wandb/two_runs_concatenated", write(NAME, data + data), exits=(0,))
    yield Case("wandb/empty", write(NAME, b""), exits=(0, 1))
    yield Case("wandb/header_only", write(NAME, WANDB_HEADER), exits=(0, 1))
    yield Case("wandb/noise", write(NAME, WANDB_HEADER + random.Random(2).randbytes(4 << 20)), exits=(0, 1))
    yield Case("wandb/kinds_everywhere", write(NAME, WANDB_HEADER + b"\x01\x3f" * (2 << 20)), exits=(0, 1), seconds=90)
    yield Case("wandb/first_without_last", write(NAME, WANDB_HEADER + chunk(2, bytes(100)) * 200), exits=(0, 1))
    middle = WANDB_HEADER + chunk(2, bytes(32768 - 14)) + chunk(3, bytes(32768 - 7)) * 300
    yield Case("wandb/middles_for_ever", write(NAME, middle), exits=(0, 1))

    def among(name: str, record: bytes, **more: object) -> Case:
        more = {"kept": {"loss": points(0, 60)}} | more
        return Case(f"wandb/{name}", write(NAME, framed([*(history(s, {"loss": value(s)}) for s in range(61)), record])[0]), **more)  # type: ignore[arg-type]

    yield among("record_of_noise", random.Random(3).randbytes(80))
    yield among("length_2_63", b"\x12" + b"\xff" * 9 + b"\x01")
    yield among("deep_json", history(61, {"deep": json.loads("[" * 400 + "]" * 400)}))
    yield among("deeper_json", field(2, field(1, item("deep", b"[" * 100_000)) + field(2, field(1, 61))))
    yield among("deep_dict", field(2, field(1, item("d", b'{"a":' * 50_000 + b"1" + b"}" * 50_000)) + field(2, field(1, 61))))
    yield among("json_cut", field(2, field(1, item("cut", b'{"a": [1, 2')) + field(2, field(1, 61))))
    yield among("huge_number", field(2, field(1, item("n", b"1" * 5000)) + field(2, field(1, 61))))
    yield among("step_2_63", field(2, field(1, item("loss2", 1.0)) + field(2, field(1, 2**63 - 1))), kept={"loss2": [(2**63 - 1, 1.0)]})
    yield among("step_negative", field(2, field(1, item("loss2", 1.0)) + field(2, field(1, -7))), kept={"loss2": [(-7, 1.0)]})
    yield among("histogram_of_lies", history(61, {"h": {"_type": "histogram", "values": [1, 2], "bins": ["x", None, -1]}}))
    yield among(
        "histogram_packed",
        history(61, {"h": {"_type": "histogram", "packedBins": {"min": 0, "size": 1e-300, "count": 10**12}, "values": [1]}}),
    )
    yield among("media_path", history(61, {"img": {"_type": "image-file", "path": "../../../../etc/passwd"}}))
    yield among("20k_keys", history(61, {f"k{i:05}": i for i in range(20_000)}))
    yield among("dict_bomb", history(61, {"d": {f"a{i}": {f"b{j}": j for j in range(100)} for i in range(100)}}))
    yield Case("wandb/300k_config_keys", write(NAME, framed([config({f"key_{i}": i for i in range(300_000)}), *(history(s, {"loss": value(s)}) for s in range(60))])[0]),
               {"loss": points(0, 59)}, seconds=90)  # fmt: skip
    yield among("console_escapes", output("\x1b]0;owned\x07\x1b[2J\x1b[31mERROR: CUDA out of memory\x1b[0m \u202eevil\u202c\r\n"))
    yield Case("wandb/folder_of_lies", writes({
        "run-20240101_000000-abc/files/wandb-summary.json": '{"accuracy": NaN, "_step": 1e400, "x": ' + "[" * 300,
        "run-20240101_000000-abc/files/config.yaml": "wandb_version: 1\n_wandb:\n  value: !!python/object/apply:os.system ['touch ../EXECUTED']\nlr:\n  value: 0.1\n",
        "run-20240101_000000-abc/files/wandb-metadata.json": '{"args": "--x", "gpu": [[[{}]]], "startedAt": "yesterday", "host": 5}',
        "run-20240101_000000-abc/files/requirements.txt": "torch==2\n",
        "run-20240101_000000-abc/run-abc.wandb": data,
    }), {"loss": points(0, N - 1)})  # fmt: skip
    rest = framed([history(s, {"loss": value(s)}) for s in range(N, 2 * N)], header=b"")[0]

    def grow(run: Path) -> None:
        path = run / NAME
        have = path.stat().st_size - len(data)
        if have < len(rest):
            with path.open("ab") as f:
                f.write(rest[have : have + 500])

    yield Case("wandb/still_growing", write(NAME, data), grow=grow)
    yield Case(
        "wandb/config_text_kept",
        write(NAME, framed([config({"note": SENTINEL}), *(history(s, {"loss": value(s)}) for s in range(60))])[0]),
        present=(SENTINEL,),
    )

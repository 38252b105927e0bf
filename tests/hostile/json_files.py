"""JSON of every kind: lines, documents, trainer states; torn, nested, bloated, in odd encodings, with odd numbers."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hostile.case import Case, Points, lines, points, value, write, writes

NAME = "log.jsonl"
KEPT = {"loss": points(0, 99)}


def cases() -> Iterator[Case]:
    yield from _lines()
    yield from _numbers()
    yield from _documents()
    yield from _states()


def _jsonl(name: str, data: bytes | str, kept: dict[str, Points] | None = None, **more: Any) -> Case:
    return Case(f"jsonl/{name}", write(NAME, data), KEPT if kept is None else kept, **more)


def _between(text: bytes | str, name: str, line: int = 51, lost: int | None = 1, **more: Any) -> Case:
    """Lines 0 to 49, something, lines 50 to 99; the something is a gap at line 51."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    gaps = ((NAME, f"line {line}"),) if line else ()
    return _jsonl(name, lines(0, 49).encode() + data + b"\n" + lines(50, 99).encode(), gaps=gaps, lost=lost, **more)


def _lines() -> Iterator[Case]:
    whole = lines(0, 99)
    yield _jsonl("torn_end", whole + '{"step": 100, "lo', gaps=((NAME, "line 101"),), lost=1)
    yield _jsonl("no_newline_at_end", whole.rstrip("\n"), lost=0)
    yield _between('{"step": 1000, "loss": 2.', "torn_middle")
    yield _jsonl("torn_and_next_writer", lines(0, 49) + '{"step": 777, "loss": 1.' + lines(50, 99), gaps=((NAME, "line 51"),), lost=1)
    yield _jsonl("two_in_a_line", whole.replace("}\n{", "}{", 20), lost=0)
    yield _jsonl("zero_hole", lines(0, 49).encode() + bytes(4096) + lines(50, 99).encode(), gaps=((NAME, "line 51"),))
    yield _jsonl("zeros_at_end", whole.encode() + bytes(100_000))
    yield _jsonl(
        "nul_inside", lines(0, 49).encode() + b'{"step": 500, "loss": 1.0\0\0\0\0\0\n' + lines(50, 99).encode(), gaps=((NAME, "line 51"),)
    )
    yield _between("not json at all <<<>>>", "text_line")
    yield _between("Traceback (most recent call last):\n  File 'x', line 1\nRuntimeError: boom", "traceback_inside", lost=None)
    yield _between("[" * 100_000, "deep_lists")
    yield _between('{"a":' * 100_000, "deep_dicts")
    yield _between('{"a":' * 100_000 + "1" + "}" * 100_000, "deep_dicts_closed", lost=None)
    yield _between("[" * 100_000 + "]" * 100_000, "deep_lists_closed")
    yield _between('{"step": 300, "x": ' + "[" * 100_000 + "]" * 100_000 + "}", "deep_value", lost=None)
    yield _between('{"step": 3000, "text": "' + "x" * (30 << 20) + '"}', "line_of_30_megabytes", line=0, lost=None, seconds=90)
    yield _between('{"step": 3000, "text": "' + "x" * (30 << 20), "torn_line_of_30_megabytes", lost=None, seconds=90)
    yield _between("{" * (8 << 20), "line_of_braces", lost=None, seconds=90)
    yield _between('{"' * (4 << 20), "line_of_openings", lost=None, seconds=90)
    yield _between('{"a":1}' * (1 << 20), "line_of_a_million_objects", line=0, lost=None, seconds=120)
    yield _between('{"\\' * (2 << 20), "line_of_escapes", lost=None, seconds=90)
    yield _jsonl("bom", b"\xef\xbb\xbf" + whole.encode(), lost=0)
    yield _jsonl("utf16", whole.encode("utf-16"), lost=0)
    yield _jsonl("utf16_without_bom", whole.encode("utf-16-le"), lost=0)
    yield _jsonl("utf16_torn", whole.encode("utf-16") + b"{")
    yield _jsonl("utf32", whole.encode("utf-32"), lost=0)
    yield _jsonl("crlf", whole.replace("\n", "\r\n"), lost=0)
    yield _jsonl("blank_lines", whole.replace("\n", "\n\n\n"), lost=0)
    yield _between(b'{"step": 700, "l\xff\xfess": 1.0, "ok": 2.0}', "not_utf8", line=0, lost=None)
    yield _between('{"step": 700, "a\ud800b": 1.0}', "surrogate_bytes", line=0, lost=None)
    yield _between('{"step": 700, "a\\ud800b": 1.0, "ok": 2.0}', "surrogate_escape", line=0, lost=None)
    yield _between('{"step": 700, "a\\u0000b\\u001b[31m": 1.0}', "control_escape", line=0, lost=None)
    yield _between('{"__proto__": 1, "constructor": {"x": 2}, "step": 700}', "prototype", line=0, lost=None)
    yield _between('{"step": 5, "step": 6, "other": 1.0, "other": 2.0}', "keys_twice", line=0, lost=0)
    yield _between("{}", "empty_object", line=0, lost=0)
    yield _between("null", "null_line", lost=None)
    yield _between("// a comment", "comment_line")
    yield _between("'{'step': 5, 'loss': 2.0}'", "python_dict")
    yield _jsonl("block_twice", whole[:2000] + whole[1000:], {}, exits=(0,))
    yield _jsonl("noise", random.Random(1).randbytes(1 << 20), {}, exits=(0, 1))
    yield _jsonl("empty", "", {}, exits=(0, 1))
    yield _jsonl("only_newlines", "\n" * 100_000, {}, exits=(0, 1))
    yield _jsonl("only_braces", "{}\n" * 10_000, {}, exits=(0, 1))
    yield _jsonl("every_other_line_bad", "".join(f"{line}\n{{\n" for line in whole.splitlines()))
    yield _jsonl("200k_bad_lines", lines(0, 99) + "{bad\n" * 200_000, gaps=((NAME, "line 101"),), lost=200_000)
    shapes = "".join(json.dumps({"step": i, f"k{i}": 1.0}) + "\n" for i in range(20_000))
    yield _jsonl("20k_shapes", lines(0, 99) + shapes, seconds=120)
    wide = json.dumps({"step": 100} | {f"tag_{i}": float(i) for i in range(200_000)}) + "\n"
    yield _jsonl("200k_tags", lines(0, 99) + wide, KEPT | {"tag_0": [(100, 0.0)], "tag_199999": [(100, 199_999.0)]}, seconds=150)

    def grow(run: Path) -> None:
        with (run / NAME).open("a") as f:
            f.write('{"step": 100, "loss": 2')

    yield Case("jsonl/still_growing", write(NAME, whole), grow=lambda run: grow(run) if (run / NAME).stat().st_size < 20_000 else None)


def _numbers() -> Iterator[Case]:
    def rows(name: str, texts: list[str], kept: Points, tag: str = "loss") -> Case:
        return Case(f"jsonl/{name}", write(NAME, "".join(t + "\n" for t in texts)), {tag: kept})

    def plain(pairs: list[tuple[Any, str]]) -> list[str]:
        return [f'{{"step": {s}, "loss": {v}}}' for s, v in pairs]

    yield rows("nan_and_infinity", plain([(1, "NaN"), (2, "Infinity"), (3, "-Infinity"), (4, "1.5")]),
               [(1, math.nan), (2, math.inf), (3, -math.inf), (4, 1.5)])  # fmt: skip
    yield rows("nan_as_text", plain([(1, '"NaN"'), (2, '"inf"'), (3, '"-Infinity"'), (4, "1.5")]),
               [(1, math.nan), (2, math.inf), (3, -math.inf), (4, 1.5)])  # fmt: skip
    yield rows("numbers_extreme", plain([(1, "1e308"), (2, "-1e308"), (3, "5e-324"), (4, "1e999"), (5, "-0.0")]),
               [(1, 1e308), (2, -1e308), (3, 5e-324), (4, math.inf), (5, -0.0)])  # fmt: skip
    base = plain([(i, str(value(i))) for i in range(40)])
    yield rows("integer_of_5000_digits", [*base, '{"step": 40, "loss": 1.5, "big": ' + "9" * 5000 + "}"], [*points(0, 39), (40, 1.5)])
    yield rows("step_of_5000_digits", [*base, '{"step": ' + "9" * 5000 + ', "loss": 1.5}'], [*points(0, 39), (None, 1.5)])
    yield rows("steps_64_bit", [*base, *plain([(2**63 - 1, "1.25"), (-(2**63), "1.5"), (2**62, "1.75")])],
               [*points(0, 39), (2**63 - 1, 1.25), (None, 1.5), (2**62, 1.75)])  # fmt: skip
    yield rows("steps_beyond_64_bit", [*base, *plain([(2**63, "1.25"), (2**64, "1.5"), (10**30, "1.75")])],
               [*points(0, 39), (None, 1.25), (None, 1.5), (None, 1.75)])  # fmt: skip
    halves = plain([(i + 0.5, str(value(i))) for i in range(40)])
    yield Case("jsonl/steps_fractional", write(NAME, "\n".join(halves)))
    yield rows("steps_negative", plain([(i - 60, str(value(i))) for i in range(50)]), [(i - 60, value(i)) for i in range(50)])
    yield rows("steps_backwards", plain([(i, str(value(i))) for i in range(99, -1, -1)]), points(0, 99))
    yield rows("steps_all_zero", plain([(0, str(value(i))) for i in range(60)]), [(0, value(i)) for i in range(60)])
    yield rows("booleans", ['{"step": %d, "loss": %s, "ok": true}' % (i, value(i)) for i in range(30)], points(0, 29))
    times = [1.7e9, math.nan, -1.0, 1e18, 4e9, 0.0, 1e300]
    timed = ['{"step": %d, "loss": %s, "time": %s}' % (i, value(i), json.dumps(times[i % len(times)])) for i in range(70)]
    yield rows("times_odd", timed, points(0, 69))
    jumps = ['{"step": %d, "loss": %s, "timestamp": %s}' % (i, value(i), 1.7e9 + i + (-86400 * 400 if i > 30 else 0)) for i in range(70)]
    yield rows("clock_jumps", jumps, points(0, 69))
    dates = [
        '{"step": %d, "loss": %s, "time": "%s"}' % (i, value(i), d)
        for i, d in enumerate(
            ["9999-12-31T23:59:59", "0001-01-01T00:00:00", "2024-02-30T00:00:00", "2024-01-01T25:61:61Z", "٢٠٢٤-01-01"] * 8
        )
    ]
    yield rows("dates_impossible", dates, points(0, 39))
    steps = ["1", '"2"', "3.0", "null", "true", "[1]", "{}", '"x"', "1e3", "-0"]
    mixed = [f'{{"step": {s}, "loss": {value(i)}}}' for i, s in enumerate(steps)]
    yield Case("jsonl/step_types_mixed", write(NAME, "\n".join(mixed)))


def _documents() -> Iterator[Case]:
    rows = [{"step": s, "loss": v} for s, v in points(0, 99)]
    text = json.dumps(rows)
    yield Case("json/list_sound", write("history.json", text), KEPT, lost=0)
    yield Case("json/list_cut", write("history.json", text[:2000]))
    half = text.index('{"step": 50,')
    yield Case("json/list_cut_in_a_row", write("history.json", text[: half + 14]), {"loss": points(0, 49)}, lost=1)
    yield Case(
        "json/list_damaged_inside", write("history.json", text[: half + 5] + "\0\0\0" + text[half + 8 :]), {"loss": points(0, 99, (50,))}
    )
    yield Case(
        "json/columns",
        write("history.json", json.dumps({"step": [s for s, _ in points(0, 99)], "loss": [v for _, v in points(0, 99)]})),
        KEPT,
    )
    yield Case("json/columns_unlike", write("history.json", json.dumps({"step": list(range(100)), "loss": [v for _, v in points(0, 79)]})))
    for name, bomb in (("deep_lists", "[" * 100_000), ("deep_lists_closed", "[" * 100_000 + "]" * 100_000),
                       ("deep_dicts", '{"a":' * 100_000), ("deep_dicts_closed", '{"a":' * 100_000 + "1" + "}" * 100_000)):  # fmt: skip
        yield Case(f"json/{name}", writes({"history.json": bomb, NAME: lines(0, 99)}), KEPT)
        yield Case(
            f"json/{name}_inside", writes({"history.json": '{"step": [1, 2], "accuracy": [1, 2], "x": ' + bomb, NAME: lines(0, 99)}), KEPT
        )
        yield Case(f"json/{name}_settings", writes({"config.json": bomb, NAME: lines(0, 99)}), KEPT)
    yield Case("json/string_of_30_megabytes", writes({"history.json": '{"a": "' + "x" * (30 << 20), NAME: lines(0, 99)}), KEPT, seconds=90)
    yield Case("json/list_of_5_million", writes({"history.json": "[" + "1," * 5_000_000 + "1]", NAME: lines(0, 99)}), KEPT, seconds=90)
    yield Case(
        "json/300k_settings",
        writes({"config.json": json.dumps({f"key_{i}": i for i in range(300_000)}), NAME: lines(0, 99)}),
        KEPT,
        seconds=120,
    )
    yield Case(
        "json/settings_torn", writes({"config.json": '{"lr": 0.1, "batch_size": 32, "nested": {"a": 1, "b', NAME: lines(0, 99)}), KEPT
    )
    yield Case("json/empty_document", writes({"history.json": "", NAME: lines(0, 99)}), KEPT)
    yield Case("json/only_a_number", writes({"history.json": "5", NAME: lines(0, 99)}), KEPT)
    yield Case("json/noise", writes({"history.json": random.Random(5).randbytes(200_000), NAME: lines(0, 99)}), KEPT)
    yield Case("json/commas", writes({"history.json": "," * 1_000_000, NAME: lines(0, 99)}), KEPT)
    yield Case("json/braces", writes({"history.json": "{" * 1_000_000, NAME: lines(0, 99)}), KEPT)
    yield Case("json/quotes", writes({"history.json": '{"a": ' + '"' * 1_000_000, NAME: lines(0, 99)}), KEPT)
    yield Case("json/backslashes", writes({"history.json": '{"a": "' + "\\" * 1_000_001, NAME: lines(0, 99)}), KEPT)


def _states() -> Iterator[Case]:
    state = {
        "best_metric": None,
        "global_step": 100,
        "max_steps": 200,
        "log_history": [{"step": s, "loss": v, "epoch": s / 100} for s, v in points(0, 99)],
    }
    text = json.dumps(state, indent=1)
    name = "trainer_state.json"
    yield Case("state/sound", write(name, text), KEPT, lost=0)
    row = text.index('"step": 60,')
    begin = text.rindex("{", 0, row)
    yield Case("state/cut_in_a_row", write(name, text[: row + 30]), {"loss": points(0, 59)}, lost=1)
    yield Case("state/cut_in_the_first", write(name, text[:100]), exits=(0, 1))
    yield Case("state/damaged_row", write(name, text[: begin + 5] + "%%%%" + text[begin + 9 :]), {"loss": points(0, 99, (60,))})
    hole = text.encode()
    yield Case("state/zero_hole", write(name, hole[: begin + 4] + bytes(20) + hole[begin + 24 :]), {"loss": points(0, 99, (60,))})
    yield Case("state/zeros_behind", write(name, hole + bytes(4096)), KEPT)
    yield Case("state/utf16", write(name, text.encode("utf-16")), KEPT)
    yield Case("state/twice", write(name, text + text), exits=(0,))
    yield Case("state/empty", write(name, ""), exits=(0, 1))
    yield Case("state/list", write(name, "[1, 2]"), exits=(0, 1))
    yield Case(
        "state/history_of_lies",
        write(
            name,
            json.dumps(
                {
                    "log_history": [None, 5, "x", [], {}, {"step": "x", "loss": {}}, {"step": None, "loss": 1.0}, {"loss": True}],
                    "global_step": "many",
                    "max_steps": -1,
                }
            ),
        ),
        exits=(0, 1),
    )
    yield Case("state/history_no_list", write(name, json.dumps({"log_history": {"a": 1}, "global_step": 10**400})), exits=(0, 1))
    yield Case("state/deep", write(name, '{"log_history": ' + "[" * 100_000), exits=(0, 1))
    yield Case(
        "state/many_checkpoints",
        writes({f"checkpoint-{n}/{name}": json.dumps(state | {"log_history": state["log_history"][:n]}) for n in range(2, 100, 2)}),
        {"loss": points(0, 97)},
    )

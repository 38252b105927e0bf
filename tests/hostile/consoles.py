"""Console logs: escapes, redrawn bars, enormous lines, texts that regular expressions choke on."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hostile.case import Case, points, write

NAME = "train.log"
KEPT = {"loss": points(1, 100)}


def log(first: int, last: int) -> str:
    return "".join(f"step {s} loss {v!r}\n" for s, v in points(first, last))


def cases() -> Iterator[Case]:
    whole = log(1, 100)

    def case(name: str, data: bytes | str, kept: Any = KEPT, **more: Any) -> Case:
        return Case(f"console/{name}", write(NAME, data), kept, **more)

    def between(name: str, text: bytes | str, **more: Any) -> Case:
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        return case(name, log(1, 50).encode() + data + b"\n" + log(51, 100).encode(), **more)

    yield case("sound", whole, lost=0)
    yield case("torn", whole + "step 101 loss 2.")
    yield between(
        "escapes",
        "\x1b]0;owned\x07\x1b[2J\x1b[H\x1b[31mERROR: CUDA out of memory \x1b]8;;http://evil\x1b\\click\x1b]8;;\x1b\\\x9b31m \x85\x90q\x9c",
    )
    yield between("bidi", "RuntimeError: \u202eevil\u202c \u2066x\u2069 \u2028 \u200b \ufeff CUDA out of memory")
    yield between(
        "markup", "ERROR: <img src=x onerror=alert(1)> </script><script>alert(1)</script> {{7*7}} ${7*7} [x](javascript:alert(1))"
    )
    yield between("not_utf8", b"ERROR: \xff\xfe\x80 CUDA out of memory \xc3")
    yield between("zero_hole", bytes(4096), gaps=((NAME, "line 51"),))
    yield case("zeros_at_end", whole.encode() + bytes(200_000))
    yield between("line_of_30_megabytes", "x" * (30 << 20), gaps=((NAME, "line 51"),))
    yield between(
        "bar_of_2_megabytes", "\r".join(f"{i}%|###| {i}/1000000 [00:01<00:02, 3.1it/s]" for i in range(50_000)), kept={}, seconds=120
    )
    yield between("backspaces", "\x08" * 1_000_000)
    for name, unit in (("letters", "a"), ("digits", "1"), ("spaces", " "), ("dots", "."), ("equals", "a=1 "), ("colons", "a:1 "), ("pairs", "loss: 1.0 "),
                       ("brackets", "["), ("closed", "[a]"), ("parens", "("), ("dashes", "-"), ("slashes", "1/1 "), ("pipes", "|"), ("percent", "1%|"), ("quotes", "'a': 1, "),
                       ("commas", "1,"), ("words", "lr step loss "), ("clocks", "12:00:00 "), ("dates", "2024-01-01 00:00:00 "), ("exponents", "1e+"), ("stars", "*"),
                       ("braces", "{'loss': "), ("underscores", "_a"), ("unicode", "é"), ("arrows", "->"), ("tabs", "\t"), ("signs", "+-"), ("namespace", "Namespace(a=")):  # fmt: skip
        lines = "".join(unit * (n // len(unit)) + "\n" for n in (20_000, 19_999, 5000, 300) for _ in range(12))
        yield between(f"repeated_{name}", lines, kept={}, seconds=60)
    yield between("dict_deep", "{'loss': " * 5000 + "1" + "}" * 5000, kept={})
    yield case("bar_cut_in_its_total", whole + "%|0/1")  # found by fuzzing
    yield between("dict_of_code", "{'loss': __import__('os').system('touch EXECUTED'), 'epoch': 1.0}", kept={})
    yield between("namespace_of_code", "Namespace(lr=__import__('os').system('touch ../EXECUTED'), b=[].__class__)")
    yield between("arguments_open", "------------ arguments ------------\n" + "".join(f"  key{i} ......... {i}\n" for i in range(3000)))
    yield between("traceback_open", "Traceback (most recent call last):\n" + '  File "x.py", line 1, in f\n    f()\n' * 5000)
    yield between("many_errors", "RuntimeError: CUDA out of memory. Tried to allocate 20.00 GiB\n" * 20_000, seconds=90)
    yield between(
        "steps_extreme", f"step {2**63 - 1} loss 1.5\nstep {2**64} loss 1.5\nstep -5 loss 1.5\nstep {'9' * 400} loss 1.5", kept={}
    )
    yield between(
        "numbers_odd",
        "step 1000 loss 1e999\nstep 1001 loss -nan\nstep 1002 loss 1e-999\nstep 1003 loss 0x10\nstep 1004 loss ١٢\nstep 1005 loss 1.2.3",
        kept={},
    )
    yield between(
        "dates_impossible",
        "2024-13-45 25:61:61 step 60 loss 1.0\n9999-99-99 00:00:00 step 61\n0000-00-00 00:00:00 step 61 loss 1\n[12/31/9999 23:59:60] step 62 loss 1.0",
        kept={},
    )
    yield case("utf16", whole.encode("utf-16"))
    yield case("crlf", whole.replace("\n", "\r\n"))
    yield case("noise", random.Random(3).randbytes(300_000), {}, exits=(0, 1))
    yield case("text_noise", bytes(random.Random(4).choices(range(32, 127), k=3_000_000)), {}, exits=(0, 1), seconds=90)
    yield case("empty", "", {}, exits=(0, 1))
    yield case("steps_back_and_forth", "".join(log(n, n + 3) for n in random.Random(5).choices(range(1, 500), k=500)), {})

    def from_the_future(seconds: int) -> Any:
        def build(run: Path) -> None:
            (run / NAME).write_text("I0101 00:00:00.000000 1 x.py:1] step 1 loss 2.0\n" + whole)
            os.utime(run / NAME, (seconds, seconds))

        return build

    yield Case("console/changed_in_year_30000", from_the_future(884_541_351_600))
    yield Case("console/changed_before_1970", from_the_future(-2_000_000_000))
    yield Case("console/changed_at_zero", from_the_future(0))

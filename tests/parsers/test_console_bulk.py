"""Lines read by the thousand are what they are when read one by one."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from parsers.console_format import bulk
from parsers.formats import console
from parsers.tables import table_of


def megatron(i: int, r: random.Random) -> str:
    loss = r.choice(["2.345678E+00", "nan", f"{r.random():.6E}", "inf"])
    return (
        f" [2026-01-01 {i // 3600:02d}:{i // 60 % 60:02d}:{i % 60:02d}.{r.randrange(10**6):06d}] iteration {i:8d}/ 1000000 | "
        f"consumed samples: {512 * i:12d} | elapsed time per iteration (ms): {r.random() * 9e3:.1f} | learning rate: "
        f"{r.random():.3E} | lm loss: {loss} | loss scale: 1.0 | grad norm: {r.random():.3f} | number of skipped iterations:   0 |"
    )


def plain(i: int, r: random.Random) -> str:
    return f"iter {i}: loss {r.random():.4f}, time {r.random() * 100:.2f}ms, mfu {r.random() * 50:.2f}%"


def ranked(i: int, r: random.Random) -> str:
    return f"[rank{i % 4}]: 2026-01-01 00:{i // 60 % 60:02d}:{i % 60:02d},{r.randrange(1000):03d} step={i} loss={r.random():.5f} lr={r.random():.2e}"


def validation(i: int, r: random.Random) -> str:
    return f" validation loss at iteration {i} | lm loss value: {r.random():.6E} | lm loss PPL: {r.random():.6E} | "


def odd(i: int, r: random.Random) -> str:
    line = r.choice([megatron, plain])(i, r)
    cut = r.randrange(len(line))
    return r.choice([line[:cut], line + "x", line.replace("loss", "löss"), line[:cut] + "7" + line[cut:], "", "Traceback",
                     line.replace(": ", ":  "), line.replace("| ", "|"), line.rstrip("|"), line + "   ", line.replace("1", "l"),
                     line.replace(".", ","), "  " + line, line.replace("0", "12345678901234567890123456", 1)])  # fmt: skip


def read(path: Path) -> dict[str, list[dict[str, object]]]:
    tables: dict[str, list[dict[str, object]]] = {}
    for item in console.parse(path):
        if isinstance(item, pa.RecordBatch):
            tables.setdefault(table_of(item), []).extend(item.to_pylist())
    return tables


MIXES: list[list[Callable[[int, random.Random], str]]] = [
    [megatron], [plain], [ranked], [megatron] * 50 + [validation], [plain] * 20 + [odd], [megatron] * 9 + [odd], [plain, ranked],
    [megatron] * 5 + [plain] * 5 + [validation, odd],
]  # fmt: skip


@pytest.mark.parametrize("mix", range(len(MIXES)))
@pytest.mark.parametrize("seed", range(3))
def test_all_at_once_is_the_same_as_one_by_one(mix: int, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    r = random.Random(seed)
    lines = [r.choice(MIXES[mix])(i, r) for i in range(1, 1500)]
    path = tmp_path / "train.log"
    path.write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(console, "BLOCK", 1 << 16)  # several blocks
    taken: list[int] = []
    take = console._Many.take
    monkeypatch.setattr(console._Many, "take", lambda self, shape, i: taken.append(n := take(self, shape, i)) or n)
    together = read(path)
    monkeypatch.setattr(console, "_MANY", 1 << 30)
    alone = read(path)
    assert repr(together) == repr(alone)  # repr: NaN is NaN, and 1.0 is not 1
    assert sum(taken) > 500 or mix > 5
    assert len(alone["metrics"]) > 1000


def test_noise_falls_out(tmp_path: Path) -> None:
    """Bytes of any kind behind the words of a shape: no place is read beyond the block."""
    r = random.Random(1)
    lines = [plain(i, r) for i in range(1, 600)]
    lines[300:500] = [f"iter {i}: loss " + "".join(chr(r.randrange(32, 300)) for _ in range(r.randrange(400))) for i in range(200)]
    path = tmp_path / "train.log"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    steps = [row["step"] for row in read(path)["metrics"] if row["tag"] == "mfu"]
    assert steps == [*range(1, 301), *range(501, 600)]
    assert bulk.Block("").starts.tolist() == []

"""Signs of memory: the error's words, the curve before it, and a kill without a word."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from runs import read, write

from forensics.detectors import memory
from forensics.signs import device_memory
from forensics.signs.sign import ABSENT, CANNOT_TELL, SEEN, Sign, Symptoms

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 394.00 MiB. GPU 0 has a total capacity of 39.39 GiB.\n"
KILLED = "/bin/bash: line 7: 4242 Killed    python train.py\n"
DONE = "Training completed\n"


def flat(i: int) -> float:
    return 10.0 + 0.01 * (i % 3)


def rising(i: int) -> float:
    return 10.0 + i / 50


def looked(sign: str, folder: Path) -> Sign:
    run = read(folder)
    found: Sign = getattr(device_memory, sign)(Symptoms(run, tuple(memory.detect(run))))
    assert found.text.endswith("."), found
    return found


@pytest.mark.parametrize(("sign", "log", "curve", "state"), [
    ("out_of_memory_quoted", OOM, None, SEEN),
    ("out_of_memory_quoted", DONE, None, ABSENT),
    ("out_of_memory_quoted", "", None, CANNOT_TELL),
    ("memory_kind_known", OOM, rising, SEEN),
    ("memory_kind_known", OOM, flat, ABSENT),
    ("memory_kind_known", OOM, None, CANNOT_TELL),
    ("memory_kind_known", DONE, flat, CANNOT_TELL),
    ("killed_without_reason", KILLED, None, SEEN),
    ("killed_without_reason", DONE, None, ABSENT),
    ("killed_without_reason", "", None, CANNOT_TELL),
    ("memory_grew", OOM, rising, SEEN),
    ("memory_grew", DONE, rising, SEEN),
    ("memory_grew", OOM, flat, ABSENT),
    ("memory_grew", OOM, None, CANNOT_TELL),
    ("memory_steady_before", OOM, flat, SEEN),
    ("memory_steady_before", OOM, rising, ABSENT),
    ("memory_steady_before", OOM, None, CANNOT_TELL),
])  # fmt: skip
def test_memory(tmp_path: Path, sign: str, log: str, curve: Callable[[int], float] | None, state: str) -> None:
    more: dict[str, Any] = {"mem_allocated_gb": curve} if curve else {}
    found = looked(sign, write(tmp_path / "r", log=log, **more))
    assert found.state == state, found


def test_a_leak_gives_its_kind_and_what_to_do(tmp_path: Path) -> None:
    found = looked("out_of_memory_quoted", write(tmp_path / "r", log=OOM, mem_allocated_gb=rising))
    assert found.numbers["kind"] == "a leak" and found.do and found.where == ""
    assert found.place == "train.log line 1"

"""Checkpoints beside a log: every hostile pickle and archive that tests/hostile_pickles.py knows, where a run keeps them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import hostile_pickles

from hostile.case import CANARY, Case, lines, points, write, writes

SEEDS = Path(__file__).resolve().parent / "seeds"
_FOLDERS = ("checkpoint-50/optimizer.pt", "checkpoint-50/pytorch_model.bin", "model.pt", "checkpoints/epoch=1-step=50.ckpt")


def cases() -> Iterator[Case]:
    for i, name in enumerate(sorted(hostile_pickles.pickles(Path("x")))):
        yield Case(f"pickles/{name}", _beside(hostile_pickles.pickles, name, _FOLDERS[i % len(_FOLDERS)]), {"loss": points(0, 99)})
    for name in sorted(hostile_pickles.others(Path("x"))):
        yield Case(f"archives/{name}", _beside(hostile_pickles.others, name, f"checkpoint-50/{Path(name).name}"), {"loss": points(0, 99)})
    for name in ("found_signal", "found_type"):  # the fuzzer's: the C library behind h5py dies of the first
        content = (SEEDS / "hdf5" / name).read_bytes()
        yield Case(
            f"archives/hdf5_{name}", writes({"log.jsonl": lines(0, 99), "checkpoint-50/model.weights.h5": content}), {"loss": points(0, 99)}
        )
        yield Case(
            f"archives/hdf5_{name}_alone",
            write("model.weights.h5", content),
            exits=(0, 1),
            verbs=(("checkpoint", "{run}/model.weights.h5"), ("checkpoint", "{run}/model.weights.h5", "--json")),
        )


def _beside(make: Callable[[Path], dict[str, bytes]], name: str, file: str) -> Callable[[Path], None]:
    def build(run: Path) -> None:
        (run / "log.jsonl").write_text(lines(0, 99))
        path = run / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(make(run.parent / CANARY)[name])

    return build

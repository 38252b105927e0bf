"""What the fuzzer drives: every parser, and the readers of checkpoints, of ``--data`` and of ``--batches``.

A target writes its input under the name that makes it that reader's, and reads it to the end. Where a parser reads several
kinds of file, the first byte picks one ("0", "1", ...). Where a checksum stands before every record, a second target frames
the input itself (``..._records``: a length of two bytes before each record), else no mutation would come past the checksum.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

Once = Callable[[bytes], None]

_RUN = "0123456789abcdef0123456789abcdef"
_WANDB = "run-20260101_000000-abcdefgh"
FILES: dict[str, tuple[str, ...]] = {
    "clearml_offline": ("offline-1/metrics.jsonl", "offline-1/task.json"),
    "comet_offline": ("messages.json", "experiment.json"),
    "determined_metrics": ("metrics.json",),
    "device_monitor": ("dmon.log",),
    "dvc_experiment": ("exps",),
    "flight_recorder": ("nccl_trace_rank_0", "trace.json"),
    "guild_attrs": (".guild/attrs/flags",),
    "notebook_outputs": ("train.ipynb",),
    "neptune_offline": ("data-1.log",),
    "profiler_trace": ("trace.json",),
    "stack_dump": ("pyspy.txt", "pyspy.json"),
    "swanlab_offline": ("run-1.swanlab",),
    "sb3_model": ("model.zip",),
    "tracker_zip": ("offline-1.zip",),
    "config_file": ("config.yaml", "config.toml", "config.json", "config.ini", "args.txt"),
    "console": ("train.log",),
    "plain_table": ("loss.dat",),
    "yolo_results": ("results.txt",),
    "csv_log": ("x.csv",),
    "gpu_monitor": ("nvidia_smi.csv",),
    "json_log": ("history.json",),
    "jsonl": ("x.jsonl",),
    "mlflow_files": tuple(f"{_RUN}/{name}" for name in ("metrics/loss", "params/lr", "tags/mlflow.note", "meta.yaml")),
    "mlflow_sqlite": ("mlflow.db",),
    "parquet_log": ("x.parquet",),
    "tensorboard": ("events.out.tfevents.1.h",),
    "trainer_state": ("trainer_state.json", "trainer_log.jsonl", "all_results.json"),
    "wandb_folder": tuple(f"{_WANDB}/files/{name}" for name in (
        "wandb-summary.json", "wandb-metadata.json", "wandb-history.jsonl", "wandb-events.jsonl", "config.yaml", "requirements.txt", "debug.log", "diff.patch")),
    "wandb_offline": ("run-x.wandb",),
    "checkpoint_files": ("model.safetensors", "pytorch_model.bin", "checkpoint-5/optimizer.pt", "model.ckpt-5", "weights.h5", "state.npz"),
}  # fmt: skip
CHECKPOINTS = {"safetensors": "model.safetensors", "torch_zip": "model.pt", "torch_pickle": "model.pt", "npz": "state.npz", "hdf5": "weights.h5",
               "keras": "model.keras"}  # fmt: skip
OTHERS = ("tensorboard_records", "tensorboard_loops", "wandb_records", "dcp", "data_set", "manifest")


def names() -> list[str]:
    return sorted({*FILES, *CHECKPOINTS, *OTHERS})


def target(name: str, folder: Path) -> Once:
    """What is done with each input. OSError and the readers' own refusals are answers; any other exception is a finding."""
    if name in CHECKPOINTS:
        return _checkpoint(folder / CHECKPOINTS[name])
    if name == "tensorboard_records":
        return _framed(_parser("tensorboard", folder), _events)
    if name == "tensorboard_loops":
        return _loops(folder)
    if name == "wandb_records":
        return _framed(_parser("wandb_offline", folder), _wandb)
    if name in OTHERS:
        return {"dcp": _dcp, "data_set": _data_set, "manifest": _manifest}[name](folder)
    return _parser(name, folder)


def _parser(name: str, folder: Path) -> Once:
    """Claimed, parsed to the end, every batch validated."""
    import parsers
    from parsers.tables import HEAD_BYTES

    parser: ModuleType = next(m for m in parsers.modules() if parsers.name_of(m) == name)
    paths = [folder / n for n in FILES.get(name, ("x.bin",))]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)

    def once(data: bytes) -> None:
        path = paths[0]
        if len(paths) > 1:
            path, data = paths[(data[0] - 48) % len(paths) if data else 0], data[1:]
        path.write_bytes(data)
        with contextlib.suppress(OSError):
            parser.claims(path, data[:HEAD_BYTES])
            for item in parser.parse(path):
                if hasattr(item, "num_rows"):
                    item.validate(full=True)
        if len(paths) > 1:
            path.unlink()  # the next input is read alone, whichever name it gets

    return once


def pieces(data: bytes) -> Iterator[bytes]:
    """Records, each after its length in two bytes, little-endian; the last may be shorter than it says."""
    at = 0
    while at + 2 <= len(data):
        size = int.from_bytes(data[at : at + 2], "little")
        yield data[at + 2 : at + 2 + size]
        at += 2 + size


def _framed(once: Once, frame: Callable[[list[bytes]], bytes]) -> Once:
    return lambda data: once(frame(list(pieces(data))))


def _events(records: list[bytes]) -> bytes:
    from hostile import wire

    return b"".join(map(wire.frame, records))


def _loops(folder: Path) -> Once:
    """The first record changes bytes (turn, record, byte, by what; four bytes for each change) of a loop that writes the
    others over and over. Read as a table and one by one, it has to say the same."""
    from unittest import mock

    from parsers.formats import tensorboard
    from parsers.tensorboard_format import loop_tables, tfrecord_chain

    path = folder / "events.out.tfevents.1.h"

    def rows() -> list[str]:
        found = []
        for item in tensorboard.parse(path):
            found += [repr(sorted(r.items())) for r in item.to_pylist()] if hasattr(item, "num_rows") else [repr(item)]
        return sorted(found)

    def once(data: bytes) -> None:
        changes, *turn = [*pieces(data)][:13] or [b""]
        turns = [[bytearray(r) for r in turn] for _ in range(tfrecord_chain.LOOK * 2 // max(len(turn), 1))]
        for i in range(0, len(changes) - 3, 4):
            at, record, byte, change = changes[i : i + 4]
            if turn and turn[record % len(turn)]:
                changed = turns[at * len(turns) // 256][record % len(turn)]
                changed[byte % len(changed)] ^= change
        path.write_bytes(_events([bytes(r) for each in turns for r in each]))
        together = rows()
        with mock.patch.object(loop_tables, "find", lambda *_: None):
            assert together == rows(), "a loop reads otherwise than its records"

    return once


def _wandb(records: list[bytes]) -> bytes:
    from hostile import wire

    return wire.framed(records)[0]


def _checkpoint(path: Path) -> Once:
    """Opened, and every tensor streamed, as ``forensics checkpoint`` does."""
    from forensics.checkpoints import describe
    from forensics.errors import ForensicsError

    def once(data: bytes) -> None:
        path.write_bytes(data)
        with contextlib.suppress(OSError, ForensicsError):
            describe.read(path)

    return once


def _dcp(folder: Path) -> Once:
    """The first record is the ``.metadata``, the second the shard."""
    from forensics.checkpoints import describe
    from forensics.errors import ForensicsError

    def once(data: bytes) -> None:
        metadata, *shards = [*pieces(data), b"", b""][:2]
        (folder / ".metadata").write_bytes(metadata)
        (folder / "__0_0.distcp").write_bytes(b"".join(shards))
        with contextlib.suppress(OSError, ForensicsError):
            describe.read(folder)

    return once


def _data_set(folder: Path) -> Once:
    """Opened, its ids and some rows asked for, and these made ready to be read; a tokenizer."""
    from forensics.read_data import sample_parts
    from parsers.records import data_sets, token_pieces

    paths = [folder / n for n in ("d.jsonl", "d.parquet", "d.arrow", "d.npy", "d.bin", "d.npz", "d.png", "tokenizer.json")]

    def once(data: bytes) -> None:
        path = paths[(data[0] - 48) % len(paths) if data else 0]
        path.write_bytes(data[1:])
        with contextlib.suppress(OSError, data_sets.Unreadable):
            if path.suffix == ".json":
                tokens, _ = token_pieces.beside([folder])
                _ = tokens and tokens.read([0, 1, 2, 300])
            found = data_sets.open_data(path, 4)
            found.ids()
            rows = found.get([0, found.rows // 2, found.rows - 1])
            json.dumps([sample_parts.parts(row, None) for row in rows], default=len)
        path.unlink()

    return once


def _manifest(folder: Path) -> Once:
    from parsers.records import manifest

    paths = [folder / n for n in ("m.jsonl", "m.json", "m.csv", "m.parquet", "m.txt")]

    def once(data: bytes) -> None:
        path = paths[(data[0] - 48) % len(paths) if data else 0]
        path.write_bytes(data[1:])
        with contextlib.suppress(OSError, ValueError):
            manifest.read(path)
        path.unlink()

    return once

"""What lies beside a W&B run: installed packages, the patch of uncommitted changes, the SDK's own log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from parsers.lazy_regex import lazy_re
from parsers.tables import Gap, Note, Rows
from parsers.wandb_format.steps import Dropped

_PACKAGE = lazy_re(r"^\s*(?:-\s+)?([A-Za-z][\w.\-]*)\s*={1,3}\s*([^\s=;#,]+)")
_KEY_PACKAGES = (
    "torch pytorch torchvision torchdata tensorflow keras jax jaxlib flax optax numpy transformers accelerate deepspeed"
    " lightning pytorch-lightning peft trl bitsandbytes flash-attn xformers apex transformer-engine megatron-core"
    " datasets tokenizers triton webdataset mosaicml composer fairseq ultralytics timm diffusers safetensors wandb"
    " stable-baselines3 gym gymnasium nvidia-nccl-cu11 nvidia-nccl-cu12 nvidia-cudnn-cu11 nvidia-cudnn-cu12"
)
_MAX_LINE = 16 << 20
_INIT_FAILED = lazy_re(r"\bERROR\b.*\bwandb_init\b[^\]]*\] (?:encountered )?(?:error: ?)?(.+)")
_FINISHING = lazy_re(r"\bfinishing run \S*/(\w+)\s*$")
_EXIT = lazy_re(r"\bgot exitcode: (\d+)")
_FOLDER = lazy_re(r"run-\d{8}_\d{6}-(\w+)")


def packages(path: Path) -> Iterator[pa.RecordBatch | Gap | Note]:
    rows, count = Rows(), 0
    for line, raw in lines(path):
        if match := _PACKAGE.match(raw.decode("utf-8", "replace")):
            count += 1
            name = match[1].lower().replace("_", "-")
            if name in _KEY_PACKAGES.split():
                rows.config(f"package.{name}", match[2], at=line)
    yield from rows.flush()
    yield Note(f"{count} installed packages")


def patch(path: Path) -> Iterator[pa.RecordBatch | Gap | Note]:
    count = Counter(raw[:1] for _, raw in lines(path) if not raw.startswith((b"+++", b"---")))
    files = sum(raw.startswith(b"+++ ") for _, raw in lines(path))
    yield Note(f"uncommitted changes to the source: {files} files, {count[b'+']} lines added, {count[b'-']} removed")


def sdk_log(path: Path) -> Iterator[pa.RecordBatch | Gap | Note]:
    """What W&B dropped, an init that failed, and the exit code; one process logs several runs in turn, so the code is this
    run's where the log does not say that another one was finished before."""
    dropped, rows, folder = Dropped(), Rows(), _FOLDER.search(path.parent.parent.name)
    own = True
    for line, raw in lines(path):
        if b"step" in raw or b"Step" in raw:
            dropped.feed(raw[:4000].decode("utf-8", "replace"), line)
        if not any(word in raw for word in (b"ERROR", b"finishing run", b"exitcode")):
            continue
        text = raw[:4000].decode("utf-8", "replace").rstrip()
        if m := _INIT_FAILED.search(text):
            rows.event("warning", f"wandb.init encountered error: {m[1]}", level="error", at=line)
        elif m := _FINISHING.search(text):
            own = folder is None or m[1] == folder[1]
        elif own and (m := _EXIT.search(text)):
            rows.event("exit", f"exit code {m[1]}", level="info" if m[1] == "0" else "error", at=line)
    if dropped.rows:
        dropped.events(rows)
    yield from rows.flush()
    if dropped.rows:
        first = dropped.stretches[0][4]
        yield Gap(f"line {first}", f"W&B dropped {dropped.rows} rows whose step was below the last one", dropped.rows)
    yield Note("log of the W&B SDK")


def lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Numbered lines; of longer ones the first 16 MiB, so that a file without line ends does not fill the memory."""
    with path.open("rb") as f:
        line, fresh = 0, True
        while raw := f.readline(_MAX_LINE):
            if fresh:
                line += 1
                yield line, raw
            fresh = raw.endswith(b"\n")

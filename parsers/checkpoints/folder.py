"""A folder that is one checkpoint: its files read each by its reader, and put together.

Hugging Face (model, optimizer, scheduler, rng_state, scaler, training_args; shards named by an index), accelerate,
torch.distributed.checkpoint, Megatron (``mp_rank_00/model_optim_rng.pt``) and DeepSpeed (``zero_pp_rank_0_...``) lay
checkpoints out like this. Where two files hold tensors of the same name (ranks), the file's name goes in front.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from parsers.checkpoints import shards, zero
from parsers.checkpoints.contents import Contents
from parsers.checkpoints.unreadable import Unreadable
from parsers.formats import checkpoint_files
from parsers.tables import HEAD_BYTES, relative

MAX_FILES = 20_000
MAX_DEPTH = 3

Reader = Callable[[Path], Contents]


def files(folder: Path) -> Iterator[Path]:
    """The checkpoint files of a folder, sorted; links that lead out of it are left out, but for those of a hub cache."""
    found = 0
    for path in sorted(folder.rglob("*")):
        if len(path.relative_to(folder).parts) > MAX_DEPTH or not path.is_file():
            continue
        if path.is_symlink():
            target = path.resolve()
            if not target.is_relative_to(folder.resolve()) and target.parent.name != "blobs":
                continue
        try:
            with path.open("rb") as f:
                head = f.read(HEAD_BYTES)
        except OSError:
            continue
        if checkpoint_files.claims(path, head):
            found += 1
            if found > MAX_FILES:
                return
            yield path


def read(folder: Path, read_file: Reader) -> Contents:
    """The whole folder. Raises Unreadable where none of its files could be read."""
    together = join(folder, list(files(folder)), read_file)
    if not together.format and (without := [p for p in files(folder) if p.suffix == ".distcp"]):
        return _without_metadata(folder, without)
    if not together.format:
        why = "; ".join(f"{g.path}: {g.what}" for g in together.gaps[:3])
        raise Unreadable(why or "no checkpoint file lies in the folder")
    shards.check(together, folder)
    return together


def _without_metadata(folder: Path, parts: list[Path]) -> Contents:
    """Shards of torch.distributed.checkpoint whose .metadata, which is written last, is not there."""
    found = Contents(folder, "dcp", files=parts, bytes=sum(p.stat().st_size for p in parts))
    what = f"{len(parts)} .distcp files lie there and no .metadata, which says what is in them: the save was cut off, or not copied whole"
    found.cut_off(what, 0, ".metadata")
    return found


def join(folder: Path, paths: list[Path], read_file: Reader) -> Contents:
    """These files as one checkpoint. What cannot be read is a gap; `format` is empty where nothing could."""
    together = Contents(folder, "")
    parts: list[tuple[str, Contents]] = []
    for path in paths:
        name = relative(path, folder)
        if path.suffix == ".distcp":
            continue  # read through its .metadata
        try:
            part = read_file(path)
        except (Unreadable, OSError, RecursionError, MemoryError) as e:
            together.cut_off(str(getattr(e, "strerror", None) or e), 0, name)
            continue
        parts.append((name, part))
    if not parts:
        return together
    zero.join(parts)
    together.format = max(parts, key=lambda x: sum(t.count for t in x[1].tensors if t.role == "weight"))[1].format
    twice = {n for n, k in Counter(t.name for _, p in parts for t in p.tensors).items() if k > 1}
    for name, part in parts:
        prefix = f"{name}:" if any(t.name in twice for t in part.tensors) else ""
        for t in part.tensors:
            t.name = prefix + t.name
            t.source = name.removesuffix(".metadata") + t.source if name.endswith(".metadata") else name
        together.tensors += part.tensors
        together.values |= {f"{name}:{k}": v for k, v in part.values.items()}
        together.refused += [{"what": r["what"], "at": f"{name} {r['at']}"} for r in part.refused]
        together.gaps += [replace(g, path=name) for g in part.gaps]
        together.files += part.files
        together.sums += part.sums
        together.bytes += part.bytes
        if part.complete is False:
            together.complete = False
    return together

"""The index of a model in shards (``model.safetensors.index.json``), held against what the shards hold.

It names the shard of every tensor (``weight_map``). Transformers loads what it names and nothing else.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

from parsers.checkpoints.contents import Contents
from parsers.lazy_regex import lazy_re

_INDEX = lazy_re(r".*\.(safetensors|bin)\.index\.json")
SHOWN = 20


def is_index(path: Path) -> bool:
    """True for the index of a checkpoint in shards, which stands for its folder."""
    return _INDEX.fullmatch(path.name) is not None


def leads_out(name: str) -> bool:
    """True for what is no plain name in the same folder."""
    return "/" in name or "\\" in name or name in ("", ".", "..")


def check(together: Contents, folder: Path) -> None:
    """What an index promises and the folder lacks is an incomplete save; so is a shard that is a copy of another."""
    for path in sorted(folder.glob("*.index.json")):
        if not is_index(path) or not path.is_file() or path.stat().st_size > 64 << 20:
            continue
        try:
            promised = {str(k): str(v) for k, v in json.loads(path.read_bytes())["weight_map"].items()}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OSError):
            together.gap("the index is damaged", 0, path.name)
            continue
        _against(together, folder, path.name, promised)


def _against(together: Contents, folder: Path, index: str, promised: dict[str, str]) -> None:
    outside = sorted({v for v in promised.values() if leads_out(v)})
    together.refused += [{"what": f"a shard outside the folder: {v[:100]!r}", "at": index} for v in outside[:SHOWN]]
    absent = sorted({v for v in promised.values() if v not in outside and not _is_there(folder, v)})
    for v in absent[:SHOWN]:
        lost = sum(x == v for x in promised.values())
        together.cut_off(f"the index names {v[:100]}, which is missing: {lost} tensors lost", 0, index)
    held = _held(together, set(promised.values()))
    names = {n for inside in held.values() for n in inside}
    lacking = [k for k, v in promised.items() if k not in names and v not in absent and v not in outside]
    if lacking:
        first = f"{lacking[0][:80]} of {promised[lacking[0]][:80]} first"
        together.cut_off(f"{len(lacking)} tensors that the index names are in no shard, {first}", 0, index)
    for shard, inside in sorted(held.items()):
        if unlisted := [n for n in inside if n not in promised]:
            what = f"{shard[:80]} holds {len(unlisted)} tensors that the index does not name, {unlisted[0][:80]} first: they are not loaded"
            together.gap(what, 0, index)
    _twice(together, held)


def _is_there(folder: Path, name: str) -> bool:
    try:
        return (folder / name).is_file()
    except (OSError, ValueError):  # no name that a file can have
        return False


def _held(together: Contents, shards: set[str]) -> dict[str, list[str]]:
    """The names in each shard, without the file that ``folder.join`` puts in front where two files have the same."""
    held: defaultdict[str, list[str]] = defaultdict(list)
    for t in together.tensors:
        if t.source in shards:
            held[t.source].append(t.name.removeprefix(f"{t.source}:"))
    return held


def _twice(together: Contents, held: dict[str, list[str]]) -> None:
    """A tensor lies in one shard: two shards of the same tensors are one that was copied over the other."""
    first: dict[str, str] = {}
    doubled: defaultdict[tuple[str, str], int] = defaultdict(int)
    for shard, names in sorted(held.items()):
        for name in names:
            if (before := first.setdefault(name, shard)) != shard:
                doubled[before, shard] += 1
    for (a, b), n in sorted(doubled.items())[:SHOWN]:
        together.cut_off(f"{b[:80]} holds {n} tensors that {a[:80]} holds, too: one is a copy of the other", 0, b)

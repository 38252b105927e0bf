"""Reads the settings in a saved model of Stable-Baselines3: the JSON named ``data`` in its zip.

``save_to_zip_file`` (stable_baselines3/common/save_util.py) writes ``data`` first: the attributes of the algorithm, what JSON cannot hold as a pickle in base64 beside
its class and the texts of its attributes. Plain values of public names are settings (``ent_coef``, ``gamma``, ``n_steps``), but for the counters and clocks of
training. Beside them lie the weights and the state of the optimizer: the file is a checkpoint, too, of the step ``num_timesteps`` (read by parsers.checkpoints).
No pickle is read, and nothing is unpacked to disk. ``at`` is the entry in the JSON.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from parsers.lazy_regex import lazy_re
from parsers.records import tolerant_json
from parsers.tables import Gap, Note, Rows, relative

AT = "entry"
_FIRST = lazy_re(rb"PK\x03\x04.{22}\x04\x00..data", 16)  # 16: re.DOTALL
_MOST_BYTES = 64 << 20  # of the JSON: pickles of spaces and of the last observations stand in it, too
_STATE = {"num_timesteps", "start_time"}  # of public names; how far training came is no setting of it
_BROKEN = (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, EOFError, ValueError, KeyError, zlib.error)


def claims(path: Path, head: bytes) -> bool:
    return path.suffix.lower() == ".zip" and _FIRST.match(head) is not None


def parse(path: Path) -> Iterator[pa.RecordBatch | Gap | Note]:
    try:
        with zipfile.ZipFile(path) as z:
            if z.getinfo("data").file_size > _MOST_BYTES:
                yield Note(f"settings of more than {_MOST_BYTES >> 20} MiB, not read")
                return
            text = z.read("data").decode("utf-8", "replace")
    except _BROKEN as e:
        yield Gap("byte 0", f"a damaged zip ({type(e).__name__}): the settings in it could not be read", None)
        return
    document, damage = tolerant_json.whole(text)
    if damage or not isinstance(document, dict):
        yield Gap(damage or "entry 1", "the settings in the zip are no JSON object", None)
        return
    rows, info, done = Rows(), path.stat(), document.get("num_timesteps")
    step = done if isinstance(done, int) and not isinstance(done, bool) else None
    rows.add("checkpoints", step=step, path=relative(path, path.parent), kind="full", format="sb3", bytes=info.st_size, complete=True,
             time=info.st_mtime, at=0)  # fmt: skip
    for at, (key, value) in enumerate(document.items(), 1):
        if isinstance(value, (bool, int, float, str)) and not key.startswith("_") and key not in _STATE:
            rows.config(key, value, at=at)
    yield from rows.flush()

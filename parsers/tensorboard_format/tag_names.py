"""Names in a TensorBoard file: tags as numbers, the plugin that a tag belongs to, and what is only counted."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from parsers.protowalk import Ints, Words
from parsers.tensorboard_format.crc32c import Bytes
from parsers.tensorboard_format.one_event import plugin

LONGEST = 256  # bytes: longer tags and plugin data are not read by the thousand
NO_SCALARS = ("hparams", "text", "images", "audio", "histograms")  # plugins whose tensors are something else
_KEEP = np.array([(1 << 8 * count) - 1 for count in range(9)], np.uint64)  # keeps the first bytes of a word


class Spans:
    """Numbers byte strings in order of appearance. A string is hashed to 64 bits under a random key, and read once."""

    def __init__(self) -> None:
        self.values: list[bytes] = []
        self._codes: dict[bytes, int] = {}
        self._by_hash: dict[int, int] = {}
        self._factors = np.frombuffer(os.urandom(LONGEST + 16), np.uint64) | np.uint64(1)
        self._slots = np.zeros(1 << 14, np.int32)  # top bits of a hash -> code: right for all but a few
        self._hashes = np.zeros(1, np.uint64)  # of the string a code was last given for

    def code(self, value: bytes) -> int:
        if value not in self._codes:
            self._codes[value] = len(self.values)
            self.values.append(value)
        return self._codes[value]

    def codes(self, data: Bytes, words: Words, at: Ints, size: Ints) -> npt.NDArray[np.int32]:
        """Codes of many spans, none longer than LONGEST bytes."""
        hashes = self._hash(words, at, size)
        slots = (hashes >> np.uint64(50)).astype(np.int64)
        codes = self._slots[slots]
        unknown = np.flatnonzero(self._hashes[codes] != hashes)
        if len(unknown):
            distinct, first, inverse = np.unique(hashes[unknown], return_index=True, return_inverse=True)
            found = np.zeros(len(distinct), np.int32)
            for i in np.argsort(first).tolist():  # in order of appearance
                row = int(unknown[first[i]])
                key = int(distinct[i])
                if key not in self._by_hash:
                    start = int(at[row])
                    self._by_hash[key] = self.code(data[start : start + int(size[row])].tobytes())
                    if len(self.values) > len(self._hashes):  # doubled: to grow by one copies all of them each time
                        self._hashes = np.append(self._hashes, np.zeros(len(self.values), np.uint64))
                    self._hashes[self._by_hash[key]] = distinct[i]
                    self._slots[slots[row]] = self._by_hash[key]
                found[i] = self._by_hash[key]
            codes[unknown] = found[inverse]
        return codes

    def _hash(self, words: Words, at: Ints, size: Ints) -> Words:
        hashes: Words = ((size + 1).astype(np.uint64) ^ words[at] & _KEEP.take(np.minimum(size, 8))) * self._factors[0]
        last = np.maximum(size - 8, 0)  # the last word overlaps the one before; in shorter strings it comes again
        for k in range(1, -(-int(size.max(initial=0)) // 8)):
            hashes = (hashes ^ hashes >> np.uint64(29) ^ words[at + np.minimum(8 * k, last)]) * self._factors[k]
        return hashes


@dataclass
class Names:
    """Tags, and the plugin of each: the first that a record of the tag names, since later ones may name none."""

    tags: Spans = field(default_factory=Spans)
    metadata: Spans = field(default_factory=Spans)
    plugin: dict[int, str] = field(default_factory=dict)  # by code of the tag

    def learn(self, tags: npt.NDArray[np.int32], metadata: npt.NDArray[np.int32]) -> None:
        for pair in np.unique(tags.astype(np.int64) << 32 | metadata).tolist():  # there may be 200,000 of both
            tag, code = pair >> 32, pair & 0xFFFFFFFF
            if tag not in self.plugin:
                bytes_ = self.metadata.values[code]
                try:
                    name, _ = plugin(memoryview(bytes_), (0, len(bytes_)))
                except ValueError:
                    continue
                if name:
                    self.plugin[tag] = name

    def are(self, plugins: tuple[str, ...]) -> npt.NDArray[np.bool_]:
        """By code: tags of these plugins."""
        out = np.zeros(len(self.tags.values), np.bool_)
        out[[tag for tag, name in self.plugin.items() if name in plugins]] = True
        return out


NOUNS = {
    "images": "image",
    "audio": "audio clip",
    "text": "text of another shape",
    "hparams": "hparams record",
    "histograms": "histogram of another shape",
}


def noun(plugin: str) -> str:
    """What a record of a plugin is counted as."""
    return NOUNS.get(plugin, f"record of plugin {plugin}")


def counted(counts: Counter[str]) -> str:
    """'12 images and 3 audio clips, counted, not decoded'."""
    parts = [f"{n} {what if n == 1 else _plural(what)}" for what, n in sorted(counts.items()) if n]
    if not parts:
        return ""
    return (" and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else parts[0]) + ", counted, not decoded"


def _plural(what: str) -> str:
    head, of, tail = what.partition(" of ")
    head, without, rest = head.partition(" without ")
    return f"{head}s{without}{rest}{of}{tail}"

"""What token numbers stand for, from a tokenizer's own text files: tokenizer.json, vocab.json or vocab.txt. Helpers, no parser.

Only JSON and lines of text are read; nothing is downloaded, unpickled or run, so a SentencePiece model (``.model``) or nanoGPT's
``meta.pkl`` gives nothing. Pieces of byte-level BPE (GPT-2, Llama 3, ...) come back as the bytes that they are, those of
SentencePiece with a space for their mark; pieces of WordPiece stay as they stand (``##ing``).
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parsers.lazy_regex import lazy_re
from parsers.walk import is_regular

NAMES = ("tokenizer.json", "vocab.json", "vocab.txt")
LARGEST = 128 << 20  # bytes of a file that are read: bound; the largest in use (Gemma 3: 262,144 pieces) has 33 MB
_SPECIAL = lazy_re(r"<\|[^|]{1,60}\|>|\[[A-Z]{2,8}\]|</?(?:s|pad|unk|mask|bos|eos|cls|sep)>", re.I)  # where no file says it
_BYTE = lazy_re(r"<0x([0-9A-Fa-f]{2})>")  # SentencePiece's bytes


def _byte_letters() -> dict[str, int]:
    """The printable letter of each byte in byte-level BPE (GPT-2's encoder.py, bytes_to_unicode)."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    moved = [b for b in range(256) if b not in plain]
    return {chr(b): b for b in plain} | {chr(256 + i): b for i, b in enumerate(moved)}


BYTES = _byte_letters()


@dataclass(frozen=True)
class Vocabulary:
    """Pieces by number, as the file writes them; ``byte_level``: their letters are bytes."""

    source: str
    pieces: dict[int, str]
    special: frozenset[int]
    byte_level: bool

    def read(self, ids: Sequence[int]) -> list[str | None]:
        """The text of each token; a character of several tokens stands at its last one. None: no piece has that number."""
        decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        found: list[str | None] = []
        for number in ids:
            piece = self.pieces.get(number)
            raw = None if piece is None or number in self.special else self._bytes(piece)
            found.append(piece if raw is None else decoder.decode(raw))
        return found

    def _bytes(self, piece: str) -> bytes | None:
        if self.byte_level:
            letters = [BYTES.get(c) for c in piece]
            return None if None in letters else bytes(b for b in letters if b is not None)
        one = _BYTE.fullmatch(piece)
        return bytes([int(one[1], 16)]) if one else piece.replace("\u2581", " ").encode("utf-8", "replace")


def beside(folders: Iterable[Path]) -> tuple[Vocabulary | None, list[str]]:
    """The first tokenizer that lies in one of the folders, and a sentence on each file that could not be read."""
    troubles: list[str] = []
    for folder in folders:
        for name in NAMES:
            path = folder / name
            if not is_regular(path, below=folder):
                continue
            try:
                if path.stat().st_size > LARGEST:
                    raise ValueError(f"it has more than {LARGEST >> 20} MB")
                return (_lines if name.endswith(".txt") else _whole if name == "tokenizer.json" else _plain)(path), troubles
            except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as e:
                what = next(iter(str(e).splitlines()), "") or type(e).__name__
                troubles.append(f"{name} in {folder.name or folder} is no tokenizer that can be read: {what[:100]}")
    return None, troubles


def _whole(path: Path) -> Vocabulary:
    read = json.loads(path.read_text("utf-8"))
    table = read["model"]["vocab"]
    if isinstance(table, list):  # Unigram: [piece, score] by number
        pieces = {i: str(row[0]) for i, row in enumerate(table)}
    else:
        pieces = {int(i): str(piece) for piece, i in table.items()}
    added = [t for t in read.get("added_tokens") or [] if isinstance(t, dict)]
    pieces |= {int(t["id"]): str(t["content"]) for t in added}
    special = {int(t["id"]) for t in added if t.get("special")}
    stages = json.dumps([read.get("decoder"), read.get("pre_tokenizer")])
    return Vocabulary(path.name, pieces, frozenset(special), '"ByteLevel"' in stages)


def _plain(path: Path) -> Vocabulary:
    table = json.loads(path.read_text("utf-8"))
    pieces = {int(i): str(piece) for piece, i in table.items()}
    known = {i for i, piece in pieces.items() if _SPECIAL.fullmatch(piece)}
    return Vocabulary(path.name, pieces, frozenset(known | _marked(path.parent, pieces)), any("\u0120" in p for p in pieces.values()))


def _lines(path: Path) -> Vocabulary:
    pieces = dict(enumerate(path.read_text("utf-8").splitlines()))
    return Vocabulary(path.name, pieces, frozenset(i for i, piece in pieces.items() if _SPECIAL.fullmatch(piece)), False)


def _marked(folder: Path, pieces: dict[int, str]) -> set[int]:
    """Numbers of the tokens that special_tokens_map.json beside a vocab.json names."""
    path = folder / "special_tokens_map.json"
    try:
        named: Any = json.loads(path.read_text("utf-8")) if is_regular(path, below=folder) and path.stat().st_size < LARGEST else {}
        values = [v.get("content") if isinstance(v, dict) else v for v in named.values()]
    except (OSError, ValueError, AttributeError, RecursionError):
        return set()
    wanted = {v for v in values if isinstance(v, str)}
    return {i for i, piece in pieces.items() if piece in wanted}

"""Measures of one sample: length, repetition, entropy, non-text, ids out of range, labels, masks. Plain numbers, no content.

``length``       characters of text, or tokens
``compression``  bytes after zlib over bytes before: text is at 0.3 to 0.6, one word again and again below 0.05, noise near 1
``repetition``   share of the 4-grams (of words or tokens) that occurred before in the sample (Rae et al. 2021, table A1)
``entropy``      of its bytes or tokens, in bits
``non_text``     share of control characters, replacement characters and unassigned code points
``out_of_range`` share of token ids that are negative or not below the size of the vocabulary (-100 is a mask)
``masked``       share of labels that are -100, or of a loss mask that is 0
``label``        a class
``size``         largest absolute value of numeric inputs; ``nonfinite`` the share of them that is no number
"""

from __future__ import annotations

import hashlib
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from math import log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsers.lazy_regex import lazy_re

MASK = -100
LONGEST = 200_000  # characters or tokens of a sample that are looked at
TOKENS = lazy_re(r"(?i)^(input_ids|token_?ids|tokens|ids)$")
LABELS = lazy_re(r"(?i)^(labels?|targets?|class(es)?|y|answer_ids)$")
MASKS = lazy_re(r"(?i)^(loss_mask|label_mask|target_mask|assistant_masks?|completion_mask)$")
NAMES = lazy_re(r"(?i)^(id|idx|index|uid|doc_id|sample_id|row_id|sample|url|source|meta.*|attention_mask|position_ids)$")
SHINGLE, HASHES = 5, 64


def measures(row: Mapping[str, Any], vocabulary: int | None = None) -> dict[str, float]:
    """The measures of a row; those that do not apply are left out."""
    found: dict[str, float] = {}
    text = text_of(row)
    tokens = tokens_of(row)
    if text:
        found |= _of_text(text)
    elif tokens is not None and len(tokens):
        found |= _of_tokens(tokens)
    if tokens is not None and len(tokens) and vocabulary:
        real = tokens[tokens != MASK]
        found["out_of_range"] = float(((real < 0) | (real >= vocabulary)).mean()) if len(real) else 0.0
    for key, value in row.items():
        array = _numbers(value)
        if array is None or not array.size:
            continue
        if LABELS.match(key) and array.size == 1 and float(array.flat[0]).is_integer():
            found["label"] = float(array.flat[0])
        elif LABELS.match(key) and array.dtype.kind in "iu":
            found["masked"] = float((array == MASK).mean())
        elif MASKS.match(key):
            found["masked"] = float((array == 0).mean())
        elif not TOKENS.match(key) and not NAMES.match(key) and (array.dtype.kind == "f" or array.ndim > 1):
            finite = np.isfinite(array)
            found["nonfinite"] = max(found.get("nonfinite", 0.0), float((~finite).mean()))
            found["size"] = max(found.get("size", 0.0), float(np.abs(array[finite]).max()) if finite.any() else 0.0)
    return found


def text_of(value: Any, depth: int = 0) -> str:
    """All text of a row, messages and nested fields included; names and sources are not its content."""
    if isinstance(value, str):
        return value[:LONGEST]
    if isinstance(value, Mapping) and depth < 6:
        return "\n".join(filter(None, (text_of(v, depth + 1) for k, v in value.items() if not NAMES.match(str(k)))))[:LONGEST]
    if isinstance(value, (list, tuple)) and depth < 6 and value and not isinstance(value[0], (int, float)):
        return "\n".join(filter(None, (text_of(v, depth + 1) for v in value[:1000])))[:LONGEST]
    return ""


def tokens_of(row: Mapping[str, Any]) -> NDArray[np.int64] | None:
    """The token numbers of a row: under their usual names, else its only list of whole numbers."""
    named = [k for k in row if TOKENS.match(k)] or [k for k in row if not (LABELS.match(k) or MASKS.match(k) or NAMES.match(k))]
    for key in named:
        array = _numbers(row[key])
        if array is not None and array.ndim == 1 and array.size > 1 and array.dtype.kind in "iu":
            return array[:LONGEST].astype(np.int64)
    return None


def _numbers(value: Any) -> NDArray[Any] | None:
    if isinstance(value, bool) or value is None or isinstance(value, (str, bytes, Mapping)):
        return None
    try:
        array = np.asarray(value)
    except ValueError:
        return None
    return array if array.dtype.kind in "iuf" else None


def _of_text(text: str) -> dict[str, float]:
    raw = text.encode("utf-8", "replace")
    odd = sum((unicodedata.category(c) in ("Cc", "Cn", "Co", "Cs") and c not in "\n\t\r") or c == "\ufffd" for c in text)
    return _of_symbols(len(text), raw, text.split(), raw) | {"non_text": odd / len(text)}


def _of_symbols(length: int, raw: bytes, words: list[Any], symbols: Iterable[Any]) -> dict[str, float]:
    compression = len(zlib.compress(raw)) / len(raw)
    return {"length": float(length), "compression": compression, "repetition": _repetition(words), "entropy": _entropy(Counter(symbols))}


def _of_tokens(tokens: NDArray[np.int64]) -> dict[str, float]:
    return _of_symbols(len(tokens), tokens.astype(np.int32).tobytes(), tokens.tolist(), tokens.tolist())


def _repetition(words: list[Any]) -> float:
    grams = list(zip(words, words[1:], words[2:], words[3:], strict=False))
    return 1 - len(set(grams)) / len(grams) if grams else 0.0


def _entropy(counts: Counter[Any]) -> float:
    total = sum(counts.values())
    return -sum(n / total * log2(n / total) for n in counts.values()) if total else 0.0


def fingerprint(row: Mapping[str, Any]) -> bytes | None:
    """Equal for rows of equal content; None for rows without text and tokens."""
    text, tokens = text_of(row), tokens_of(row)
    if text:
        return hashlib.sha256(" ".join(text.split()).encode("utf-8", "replace")).digest()
    return hashlib.sha256(tokens.tobytes()).digest() if tokens is not None else None


def minhash(row: Mapping[str, Any]) -> NDArray[np.uint64] | None:
    """64 minima over the shingles of five words or tokens; the share of equal ones estimates Jaccard's index (Broder 1997)."""
    text, tokens = text_of(row), tokens_of(row)
    words: list[Any] = text.split() if text else tokens.tolist() if tokens is not None else []
    if len(words) < 2 * SHINGLE:
        return None
    shingles = {hash_of(words[i : i + SHINGLE]) for i in range(len(words) - SHINGLE + 1)}
    x = np.fromiter(shingles, np.uint64, len(shingles))
    rng = np.random.default_rng(1)
    a = rng.integers(1, 1 << 63, HASHES, np.uint64) | np.uint64(1)
    b = rng.integers(0, 1 << 63, HASHES, np.uint64)
    with np.errstate(over="ignore"):
        mixed = x[:, None] * a[None, :] + b[None, :]
        mixed ^= mixed >> np.uint64(29)
        return np.asarray((mixed * np.uint64(0xBF58476D1CE4E5B9)).min(axis=0))


def hash_of(words: list[Any]) -> int:
    return int.from_bytes(hashlib.blake2b(repr(words).encode(), digest_size=8).digest(), "little")

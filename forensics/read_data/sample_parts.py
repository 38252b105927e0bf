"""A row of the data as somebody reads it: tokens, texts, pictures, and what is left as cells. Plain data, bounded in size.

Secrets in texts and cells are masked as everywhere; tokens are shown as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forensics.batches.sample_stats import LABELS, MASK, MASKS, NAMES, TOKENS
from forensics.read_data import small_pictures
from parsers.records.token_pieces import Vocabulary
from parsers.secrets import mask_text

# Bounds on the page: 8 samples of 6 batches, each with this much, stay below 3 MB
HEAD, TAIL = 256, 64  # tokens shown from either end of a sample
TEXT_HEAD, TEXT_TAIL = 1600, 400  # characters
PICTURES, CELLS, CELL = 4, 24, 160  # a sample; cells a row; characters a cell
LONG = 80  # characters from which a field is text, not a cell
SEAM = 512  # characters beyond a cut that are looked at for secrets: bound, longer than tokens and keys of one line
LONGEST = 1 << 20  # tokens that are looked at for the counts: bound, above the longest contexts in training


def parts(row: Mapping[str, Any], vocabulary: Vocabulary | None) -> dict[str, Any]:
    """``{"tokens": [...], "texts": [...], "pictures": [...], "cells": [[name, value], ...], "left_out"}``."""
    found: dict[str, Any] = {"tokens": [], "texts": [], "pictures": [], "cells": [], "left_out": 0}
    named = tokens_name(row)
    used: set[str] = set()
    if named:
        shown, used = _token_parts(row, named, vocabulary)
        found["tokens"] = shown
    for key, value in row.items():
        name = mask_text(str(key)[:CELL])
        if key in used:
            continue
        if len(found["pictures"]) < PICTURES and (picture := small_pictures.of(name, value)):
            found["pictures"].append(picture)
        elif text := _text(name, value):
            found["texts"].append({"name": name, **_cut(text)})
        elif len(found["cells"]) < CELLS:
            found["cells"].append([name, cell(value)])
        else:
            found["left_out"] += 1
    found["texts"], more = found["texts"][:PICTURES], found["texts"][PICTURES:]
    found["left_out"] += len(more)
    return found


def tokens_name(row: Mapping[str, Any]) -> str | None:
    """The field of the tokens: under its usual name, else the only list of whole numbers that is neither labels nor a mask."""
    named = [k for k in row if TOKENS.match(k) and _whole(row[k]) is not None]
    if named:
        return named[0]
    lists = [k for k in row if not (LABELS.match(k) or MASKS.match(k) or NAMES.match(k)) and _whole(row[k]) is not None]
    return lists[0] if len(lists) == 1 and small_pictures.of(lists[0], row[lists[0]]) is None else None


def _whole(value: Any) -> NDArray[np.int64] | None:
    if not isinstance(value, (list, tuple, np.ndarray)) or (isinstance(value, np.ndarray) and not value.ndim) or not len(value):
        return None
    try:
        array = np.asarray(value[:LONGEST])
        return array.astype(np.int64) if array.ndim == 1 and array.size > 1 and array.dtype.kind in "iu" else None
    except (ValueError, OverflowError):
        return None


def _token_parts(row: Mapping[str, Any], name: str, vocabulary: Vocabulary | None) -> tuple[list[dict[str, Any]], set[str]]:
    """The tokens with what is trained on, and the targets where they are other tokens; and which fields they came from."""
    ids = _whole(row[name])
    assert ids is not None
    same = {k: a for k in row if k != name and (a := _whole(row[k])) is not None}
    labels = next((k for k in same if LABELS.match(k)), None)
    masks = [k for k in same if (MASKS.match(k) or k == "attention_mask") and len(same[k]) == len(ids)]
    off, why, others, note = np.zeros(len(ids), bool), [], [], ""
    if labels is not None:
        target = same[labels]
        relation = _relation(ids, target)
        if relation:
            off |= np.concatenate([[False], target[:-1] == MASK]) if relation == "shifted" else target == MASK
            why.append(f"{labels} {MASK}")
            note = f"{labels} repeat the tokens" if relation == "same" else f"{labels} hold the next token"
        else:
            others = [_tokens(labels, target, target == MASK, [f"{labels} {MASK}"], vocabulary)]
            note = f"{labels} hold other tokens"
    for k in masks:
        off |= same[k] == 0
        why.append(f"{k} 0")
    used = {name, *masks} | ({labels} if labels is not None else set())
    return [_tokens(name, ids, off, why, vocabulary) | {"note": note}, *others], used


def _relation(ids: NDArray[np.int64], target: NDArray[np.int64]) -> str:
    """How targets stand to the tokens: "same" at each place, "shifted" one to the left, or "" where they are other tokens."""
    if len(ids) != len(target):
        return ""
    real = target != MASK
    if not real.any() or bool((ids == target)[real].all()):
        return "same"
    return "shifted" if bool((ids[1:] == target[:-1])[real[:-1]].all()) else ""


def _tokens(name: str, ids: NDArray[np.int64], off: NDArray[np.bool_], why: Sequence[str], vocabulary: Vocabulary | None) -> dict[str, Any]:
    """``pieces``: [text or None, id, special, not trained on]; the middle of a long sample is left out at ``gap``."""
    at = list(range(len(ids))) if len(ids) <= HEAD + TAIL else [*range(HEAD), *range(len(ids) - TAIL, len(ids))]
    numbers = ids.tolist()
    special = vocabulary.special if vocabulary else frozenset()
    texts: list[str | None] = []
    for part in (at[:HEAD], at[HEAD:]):
        picked = [numbers[i] for i in part]
        texts += vocabulary.read(picked) if vocabulary else [""] * len(part)
    known = np.isin(ids, list(vocabulary.pieces)) if vocabulary else ids >= 0
    missing = (~known) & (ids != MASK)
    return {
        "name": name,
        "count": len(ids),
        "pieces": [[t, numbers[i], numbers[i] in special, bool(off[i])] for i, t in zip(at, texts, strict=True)],
        "gap": HEAD if len(at) < len(ids) else None,
        "hidden": len(ids) - len(at),
        "special": int(np.isin(ids, list(special)).sum()),
        "untrained": int(off.sum()),
        "because": " or ".join(why),
        "unknown": int(missing.sum()),
        "note": "",
    }  # fmt: skip


def _text(name: str, value: Any) -> str:
    """Text worth reading as such: long, of several lines, or the messages of a conversation; else empty."""
    if isinstance(value, str):
        return value if (len(value) > LONG or "\n" in value or name.lower() in ("text", "content", "prompt", "completion")) else ""
    if isinstance(value, (list, tuple)) and value and all(isinstance(m, Mapping) for m in value[:100]):
        said = [(m.get("role", m.get("from")), m.get("content", m.get("value"))) for m in value[:100]]  # OpenAI's and ShareGPT's names
        if all(isinstance(text, str) for _, text in said):
            return "\n".join(f"[{role}] {str(text)[:LONGEST]}" for role, text in said)
    return ""


def _cut(text: str) -> dict[str, Any]:
    hidden = max(len(text) - TEXT_HEAD - TEXT_TAIL, 0)
    if not hidden:
        return {"head": mask_text(text), "hidden": 0, "tail": "", "count": len(text)}
    head, tail = mask_text(text[: TEXT_HEAD + SEAM])[:TEXT_HEAD], mask_text(text[-TEXT_TAIL - SEAM :])[-TEXT_TAIL:]
    return {"head": head, "hidden": hidden, "tail": tail, "count": len(text)}


def cell(value: Any) -> Any:
    """A number, or text of bounded length; of arrays shape and range."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if value is None or isinstance(value, (bool, float)) or (isinstance(value, int) and abs(value) < 1 << 63):
        return value
    if isinstance(value, (bytes, bytearray)):
        return f"{len(value)} bytes"
    array = numbers(value) if isinstance(value, (list, tuple, np.ndarray)) else None
    if array is not None and array.size > 4:
        finite = array[np.isfinite(array)]
        reach = f", {finite.min():.4g} to {finite.max():.4g}" if finite.size else ""
        lost = f", {array.size - finite.size} NaN or infinite" if finite.size < array.size else ""
        return f"{' x '.join(map(str, array.shape))} {array.dtype}{reach}{lost}"
    if isinstance(value, int):
        return f"a number of {value.bit_length()} bits"
    try:
        text = mask_text((value if isinstance(value, str) else repr(value))[: CELL + SEAM])
    except RecursionError:
        return "lists in lists, too deep to print"
    return text if len(text) <= CELL else text[:CELL] + "\u2026"


def numbers(value: Any) -> NDArray[Any] | None:
    """The numbers of a field; None where it holds none."""
    if isinstance(value, (str, bytes, Mapping)) or value is None:
        return None
    try:
        array = np.asarray(value)
    except (ValueError, OverflowError):
        return None
    return array if array.dtype.kind in "iufb" else None

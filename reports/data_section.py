"""Samples of the training data on the page (`--show-data`): tokens one by one, texts, small pictures, tables of rows.

What is shown is text from anywhere: the template escapes it and spells out what steers or hides; pictures come as pixels and are
written as PNG here, so that no byte of a foreign file is on the page.
"""

from __future__ import annotations

import base64
import itertools
import struct
import zlib
from typing import Any

from reports.text_format import number, plural

MANY = 4  # equal tokens in a row from which they are one with a count: padding, mostly
PICTURE = 96  # pixels that a small picture is enlarged to, at most
COLUMNS = 24  # of a table of rows; as many as forensics hands over
Shown = dict[str, Any]


def of(shown: Shown | None) -> Shown | None:
    """What the template needs of the samples; None where none were asked for."""
    if shown is None:
        return None
    suspects, ordinary = [_batch(b) for b in shown["suspects"]], [_batch(b) for b in shown["ordinary"]]
    every = suspects + ordinary
    tokens = [t for b in every for s in b["samples"] for t in s["tokens"]]
    return shown | {
        "suspects": suspects,
        "ordinary": ordinary,
        "wide": any(b["table"] for b in every),
        "legend": [{"css": css, "text": said} for css, said, there in _legend(tokens, bool(shown["tokenizer"])) if there],
        "ids_alone": bool(tokens) and not shown["tokenizer"],
    }


def _legend(tokens: list[Shown], read: bool) -> list[tuple[str, str, bool]]:
    """(class, words, whether there is one) of what a token may be marked as."""
    return [
        ("s", "special token", any(t["special"] for t in tokens)),
        ("u", "not trained on", any(t["untrained"] for t in tokens)),
        ("bad", "no piece of the vocabulary has this id", read and any(t["unknown"] for t in tokens)),
    ]


def _batch(b: Shown) -> Shown:
    samples = [_sample(s) for s in b["samples"]]
    plain = bool(samples) and not any(s["tokens"] or s["texts"] or s["pictures"] for s in samples)
    heads = list(dict.fromkeys(name for s in samples for name, _ in s["cells"]))[:COLUMNS] if plain else []
    rows = [{"id": s["id"], "odd": s["odd"], "cells": [dict(map(tuple, s["cells"])).get(h) for h in heads]} for s in samples]
    hidden = b["count"] - len(samples)
    counted = f"{plural(b['count'], 'sample')}" + (f", {len(samples)} shown" if hidden > 0 and samples else "")
    columns = [
        {"name": c["name"], "outside": c["outside"], "here": _range(c["suspect"]), "there": _range(c["ordinary"])} for c in b["columns"]
    ]
    return b | {
        "columns": columns,
        "samples": samples,
        "table": {"heads": heads, "rows": rows, "cells": [r["cells"] for r in rows]} if plain else None,
        "counted": counted,
    }


def _range(known: list[Any]) -> str:
    """'1 to 8, median 4.5, 2 NaN or infinite' of [lowest, median, highest, not finite]."""
    low, median, high, lost = known
    told = [f"{number(low)} to {number(high)}, median {number(median)}"] if low is not None else []
    return ", ".join([*told, *([f"{lost} NaN or infinite"] if lost else [])]) or number(None)


def _sample(s: Shown) -> Shown:
    return s | {"tokens": [_tokens(t) for t in s["tokens"]], "pictures": [_picture(p) for p in s["pictures"]]}


def _tokens(t: Shown) -> Shown:
    """With a class and a text for each token; those behind the gap apart."""
    cut = len(t["pieces"]) if t["gap"] is None else t["gap"]
    head, tail = _pieces(t["pieces"][:cut]), _pieces(t["pieces"][cut:])
    told = [plural(t["count"], "token")]
    if t["special"]:
        told.append(f"{t['special']} special")
    if t["untrained"]:
        told.append(f"{t['untrained']} not trained on ({t['because']})")
    elif t["because"]:
        told.append(f"all trained on (no {t['because']})")
    told += [t["note"]] if t["note"] else []
    if t["unknown"]:
        told.append(f"{t['unknown']} with an id that is in no vocabulary")
    return t | {"head": head, "tail": tail, "told": ", ".join(told)}


def _pieces(given: list[list[Any]]) -> list[Shown]:
    """A token each; one that comes `MANY` times in a row, or more often, once with its count."""
    pieces: list[Shown] = []
    for (token, text, special, off), same in itertools.groupby(given, key=lambda p: (p[1], p[0], p[2], p[3])):
        n = len(list(same))
        said = "?" if text is None else text.replace("\r", "\\r").replace("\t", "\u21e5").replace("\n", "\u21b5")
        css = " ".join(c for c, on in (("s", special), ("u", off), ("bad", text is None)) if on)
        piece = {"text": said, "id": token, "css": css, "times": n if n >= MANY else 0, "breaks": text is not None and text.endswith("\n")}
        pieces += [piece] * (1 if n >= MANY else n)
    return pieces


def _picture(p: Shown) -> Shown:
    times = max(1, PICTURE // max(p["width"], p["height"], 1))
    shown = {"shown": (p["width"] * times, p["height"] * times)}
    return p | shown | {"source": "data:image/png;base64," + base64.b64encode(png(p)).decode() if p["pixels"] else ""}


def png(p: Shown) -> bytes:
    """Grey or RGB pixels, 8 bits a channel, as a PNG file (W3C PNG, third edition: IHDR, IDAT, IEND)."""
    row = p["width"] * p["channels"]
    lines = b"".join(b"\0" + p["pixels"][i : i + row] for i in range(0, row * p["height"], row))
    head = struct.pack(">IIBBBBB", p["width"], p["height"], 8, 0 if p["channels"] == 1 else 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", head) + _chunk(b"IDAT", zlib.compress(lines, 9)) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def text(shown: Shown) -> str:
    """The samples of one batch for a terminal, not yet made harmless: a heading and the text of each."""
    lines = [f"{shown['data']}: {shown['kind']}" + (f", tokens read with {shown['tokenizer']}" if shown["tokenizer"] else "")]
    lines += [*shown["notes"], *([shown["why"]] if shown["why"] else [])]
    for s in shown["samples"]:
        lines.append(f"--- sample {s['id']}")
        for t in map(_tokens, s["tokens"]):
            lines.append(f"{t['name']}: {t['told']}")
            lines.append(_flat(t["head"], shown) + (f" ... {t['hidden']} more ... " if t["hidden"] else "") + _flat(t["tail"], shown))
        for x in s["texts"]:
            lines.append(f"{x['name']}: {x['head']}" + (f" ... {x['hidden']} more characters ... {x['tail']}" if x["hidden"] else ""))
        lines += [f"{p['name']}: a picture, {p['says']}" for p in s["pictures"]]
        lines += [f"{name}: {number(value)}" for name, value in s["cells"]]
    hidden = shown["count"] - len(shown["samples"])
    return "\n".join([*lines, *([f"{hidden} more samples"] if hidden and shown["samples"] else [])])


def _flat(pieces: list[Shown], shown: Shown) -> str:
    """The pieces as one text, or their ids; a repeated one with its count."""
    return "".join(
        (p["text"].replace("\u21b5", "\n") if shown["tokenizer"] else f"{p['id']} ") + (f" (x{p['times']}) " if p["times"] else "")
        for p in pieces
    )

"""Reads settings that programs print before they train: argument dumps, ``Namespace(...)``, ``key: value`` headers.

- Megatron-LM and GPT-NeoX: ``------ arguments ------`` then ``  lr ........ 0.1`` (NeoX glues ``updated`` or
  ``default`` to the value: ``64..........updated``); DeepSpeed prints such dots behind ``config.py:999:print]``.
- argparse: ``Namespace(lr=0.1, betas=[0.9, 0.95])`` in one line.
- ``train_batch_tokens:524288 train_seq_len:1024``, and indented ``  key: value`` under ``Hyperparameters:``.
- transformers: ``  Num examples = 12,000`` below ``***** Running training *****``.

Values become JSON numbers, booleans or text; nothing is evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_DOTS = re.compile(r"^\s*(?:\[[^\]]*\]\s*)*(?P<key>[A-Za-z_][\w.-]*) (?: ?)(?P<dots>\.{2,}) ?(?P<value>.*?)\s*$")
_NEOX = re.compile(r"^(?P<value>.*?)\.{0,}(?:updated|default)$")
_NEOX_LONG = re.compile(r"^\s+(?P<key>[A-Za-z_]\w*)  (?P<value>\S.*?)\.{0,}(?:updated|default)$")
BLOCK = re.compile(r"^\s*-{5,} (?P<end>end of )?[\w -]*arguments -{5,}")
HEADER = re.compile(r"(?i)^\W*(?:hyper-?parameters|arguments|args|config(?:uration)?|settings|options"
                    r"|\*+ ?running training ?\*+)\W*$")
_NAMESPACE = re.compile(r"\b(?:Namespace|TrainingArguments|\w*Config|\w*Args|\w*Arguments)\((?P<inside>.*)\)\s*$")
_ARGUMENT = re.compile(r"(?P<key>[A-Za-z_]\w*)=(?P<value>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\[[^\[\]]*\]|\{[^{}]*\}"
                       r"|\([^()]*\)|<[^<>]*>|[^,()\[\]{}]+)(?:, |,?$)")
_PAIR = re.compile(r"(?:^|\s)(?P<key>[A-Za-z_][\w.]*)[:=](?P<value>[^\s:=]+)")
_LINE = re.compile(r"^(?P<key>[A-Za-z_][\w ./()-]{0,60}?)\s*[:=]\s*(?P<value>\S.*?)\s*$")
_PLAIN = re.compile(r"(?i)[-+]?(?:\d[\d,]*\.?\d*(?:e[-+]?\d+)?|\.\d+)|true|false|none|null|nan|inf")


def value_of(text: str) -> object:
    """'1e-4' -> 0.0001, 'True' -> True, '12,000' -> 12000, \"'adamw'\" -> 'adamw', else the text."""
    text = text.strip().rstrip(",")
    if text in {"True", "true", "False", "false"}:
        return text.lower() == "true"
    if text in {"None", "null"}:
        return None
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    plain = text.replace(",", "") if re.fullmatch(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?", text) else text
    for kind in (int, float):
        try:
            return kind(plain) if len(plain) < 300 and plain[:1] in "-+.0123456789ni" and "_" not in plain else text
        except ValueError:
            continue
    return text


def dotted(text: str, block: bool) -> tuple[str, object] | None:
    """A row of a dotted argument dump; outside a block only DeepSpeed's, which say where they come from."""
    if not block and "config.py" not in text:
        return None
    m = _DOTS.match(text)
    if m is None or (len(m["dots"]) < 3 and not block and "print]" not in text):
        m2 = _NEOX_LONG.match(text) if block else None
        return (m2["key"], value_of(m2["value"])) if m2 else None
    glued = _NEOX.match(m["value"])
    return m["key"], value_of(glued["value"] if glued and block else m["value"])


def namespace(text: str) -> Iterator[tuple[str, object]]:
    if "(" in text and "=" in text and (m := _NAMESPACE.search(text[:200_000])):
        pairs = [(a["key"], value_of(a["value"])) for a in _ARGUMENT.finditer(m["inside"])]
        yield from pairs if len(pairs) > 1 else []


def header(text: str, indented: bool) -> list[tuple[str, object]]:
    """Settings before the first step: ``a:1 b:2``, ``a=1``, or, indented under a heading, any ``key: value``."""
    if len(text) > 600 or text.rstrip()[-1:] in {",", "(", ")", "{"} or "://" in text:
        return []
    pairs = list(_PAIR.finditer(text))
    rest = _PAIR.sub("", text).strip()
    if pairs and (not rest or re.fullmatch(r"[\w-]+:", rest)):
        return [(p["key"], value_of(p["value"])) for p in pairs]
    m = _LINE.match(text.strip())
    if m and (indented or _PLAIN.fullmatch(m["value"].rstrip(","))) and len(m["key"].split()) < 6:
        return [(m["key"].strip(), value_of(m["value"]))]
    return []

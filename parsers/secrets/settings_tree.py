"""Values of a configuration, with the secrets in them masked by key, by the keys inside and by shape."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from parsers.secrets.display import names
from parsers.secrets.keys import NO, YES, is_secret_key, level
from parsers.secrets.shapes import MASK
from parsers.secrets.texts import mask_text
from parsers.secrets.values import opens


def mask_config(key: str, value: Any) -> str:
    """A config value as JSON text, masked by its key, by the keys inside it and by its shape."""
    return json.dumps(_tree(value, key, _kind(key)), default=str, ensure_ascii=False)


def mask_value(key: str, text: str) -> str:
    """A text that stands beside a key."""
    return _text(text, key, _kind(key))


def _kind(key: str) -> int:
    return YES if is_secret_key(key) else level(key)


def _tree(value: Any, key: str, kind: int) -> Any:
    """`kind` says whether a key around the value is that of a secret."""
    if isinstance(value, dict):
        return _dict(value, key, kind)
    if isinstance(value, (list, tuple)):
        return list(_list(value, key, kind))
    if isinstance(value, str):
        return _text(value, key, kind)
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, int) and abs(value) >= 1 << 1024:
        return "Infinity" if value > 0 else "-Infinity"  # Python writes no number of thousands of digits
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return _text(str(value), key, kind)


def _text(value: str, key: str, kind: int) -> str:
    return MASK if opens(key, value, kind, quoted=True) else mask_text(value)


def _of(key: str, outer: str, value: dict[Any, Any], named: str) -> int:
    """What the key of an entry says, with what stands around it."""
    if key == "value" and named:
        return _kind(named)  # {"name": "HF_TOKEN", "value": ...}
    if key in ("data", "stringData") and value.get("kind") == "Secret":
        return YES  # Kubernetes
    if key == "key" and isinstance(value.get("username"), str):
        return YES  # Kaggle
    if key.lower() in ("key", "pat", "pass"):  # wandb: {key: ...}
        return _kind(f"{outer}_{key}")
    return _kind(key)


def _dict(value: dict[Any, Any], key: str, kind: int) -> dict[str, Any]:
    named = next((value[k] for k in ("name", "key", "variable") if isinstance(value.get(k), str)), "")
    shown = names(map(str, value))
    found = {}
    for k, v in value.items():
        plain = str(k)
        of_key = _of(plain, key, value, named)
        found[shown.get(plain, plain)] = _tree(v, plain, max(kind, of_key))
    return found


def _list(values: Sequence[Any], key: str, kind: int) -> Iterator[Any]:
    """Of an argument list, what follows the flag of a secret is one; and so is what a command line of these words hides."""
    before = ""
    for v in values:
        flagged = _kind(before.lstrip("-")) if before.startswith("-") and isinstance(v, str) and not v.startswith("-") else NO
        masked = _tree(v, before if flagged else key, max(kind, flagged))
        if isinstance(v, str):
            masked = _after(before, v, masked, values)
        before = v if isinstance(v, str) else ""
        yield masked


def _after(flag: str, value: str, masked: Any, values: Sequence[Any]) -> Any:
    """The value of a short flag, whose meaning the command before it tells."""
    attached = len(value) > 2 and value.startswith("-p") and flag not in ("", value)
    if not attached and flag not in ("-p", "-P", "-a", "-w", "-k", "-u", "-U", "--user", "--proxy-user"):
        return masked
    words = " ".join(str(v) for v in values[: values.index(flag) + 1] if isinstance(v, str))[:300]
    line = mask_text(f"{words} {value}")
    return masked if line.endswith(value) else line[len(words) + 1 :]

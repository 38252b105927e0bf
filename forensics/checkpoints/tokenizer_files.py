"""What differs between the tokenizers that lie beside two checkpoints: settings, special tokens, chat template, vocabulary.

Read are the files that Hugging Face writes: ``tokenizer_config.json``, ``special_tokens_map.json``, ``added_tokens.json``,
``chat_template.jinja`` (older: a key of the config), ``generation_config.json`` and ``tokenizer.json``, whose
post-processor says whether a token is put before every text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from parsers.lazy_regex import lazy_re
from parsers.walk import is_regular

LARGEST = 64 << 20
_SETTINGS = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "generation_config.json")
_TELLING = lazy_re(r"(?i)token|template|padding_side|truncation_side|class|lower|prefix|clean_up|max_length|legacy|normali")
_UNTOLD = {"tokenizer_file", "special_tokens_map_file", "added_tokens_decoder"}  # paths; a list told by added_tokens


def home(path: Path) -> Path:
    """The folder whose tokenizer goes with a checkpoint."""
    return path if path.is_dir() else path.parent


def differences(a: Path, b: Path) -> list[str]:
    """'add_bos_token (False -> True)' and the like, from the files that both folders have."""
    if a == b:
        return []
    found: list[str] = []
    for name in _SETTINGS:
        old, new = _both(a / name, b / name)
        if isinstance(old, dict) and isinstance(new, dict):
            keys = sorted(k for k in old.keys() | new.keys() if k not in _UNTOLD and _plain(old.get(k)) != _plain(new.get(k)))
            found += [_told(k, old.get(k), new.get(k)) for k in keys if name[0] in "sa" or _TELLING.search(k)]
        elif old is not None:
            found.append(f"{name}, which is damaged in one")
    old, new = _both(a / "chat_template.jinja", b / "chat_template.jinja", text=True)
    if old != new:
        found.append(_told("the chat template", old, new))
    old, new = _both(a / "tokenizer.json", b / "tokenizer.json")
    if isinstance(old, dict) and isinstance(new, dict):
        found += _machinery(old, new)
    return list(dict.fromkeys(found))


def _both(a: Path, b: Path, *, text: bool = False) -> tuple[Any, Any]:
    """The contents of two files, (None, None) where one is not there or both are the same bytes."""
    try:
        if not all(is_regular(path, below=path.parent) for path in (a, b)) or max(a.stat().st_size, b.stat().st_size) > LARGEST:
            return None, None
        x, y = a.read_bytes(), b.read_bytes()
    except OSError:
        return None, None
    if x == y:
        return None, None
    if text:
        return x.decode(errors="replace"), y.decode(errors="replace")
    return _json(x), _json(y)


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return ""


def _machinery(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """Of two tokenizer.json: vocabulary, added tokens, what is put before a text, and the other stages."""
    one, two = vocabulary(old), vocabulary(new)
    if one != two:
        moved = sum(two.get(k, v) != v for k, v in one.items())
        yield f"the vocabulary ({len(one)} -> {len(two)} entries, {moved} with another number)"
    one, two = added(old), added(new)
    for k in sorted(one.keys() | two.keys(), key=str)[:20]:
        if one.get(k) != two.get(k):
            yield _told(f"added token {k!r}"[:60], one.get(k), two.get(k))
    first, then = _leading(old.get("post_processor")), _leading(new.get("post_processor"))
    if first != then:
        yield _told("the token put before every text", first or "none", then or "none")
    elif old.get("post_processor") != new.get("post_processor"):
        yield "post_processor"
    for stage in ("normalizer", "pre_tokenizer", "decoder"):
        if old.get(stage) != new.get(stage):
            yield _told(stage, _kind(old.get(stage)), _kind(new.get(stage)))


def vocabulary(x: dict[str, Any]) -> dict[str, Any]:
    model = x.get("model")
    vocab = model.get("vocab") if isinstance(model, dict) else None
    if isinstance(vocab, list):  # Unigram: pairs of token and score
        return {str(v[0]) if isinstance(v, list) and v else str(v): i for i, v in enumerate(vocab)}
    return vocab if isinstance(vocab, dict) else {}


def added(x: dict[str, Any]) -> dict[Any, Any]:
    tokens = x.get("added_tokens")
    return {str(t.get("content")): t.get("id") for t in tokens if isinstance(t, dict)} if isinstance(tokens, list) else {}


def _leading(post: Any) -> str:
    """The special token at the start of a single text, as TemplateProcessing and BertProcessing put it."""
    if not isinstance(post, dict):
        return ""
    parts = post.get("processors")
    if isinstance(parts, list):
        return next((found for p in parts if (found := _leading(p))), "")
    single = post.get("single")
    if isinstance(single, list) and single and isinstance(single[0], dict) and isinstance(single[0].get("SpecialToken"), dict):
        return str(single[0]["SpecialToken"].get("id", ""))
    cls = post.get("cls")
    return str(cls[0]) if isinstance(cls, list) and cls else ""


def _kind(x: Any) -> str:
    return str(x.get("type", "?")) if isinstance(x, dict) else "none"


def _plain(x: Any) -> Any:
    """Special tokens stand as text in one version and as a dict in another."""
    return x.get("content", x) if isinstance(x, dict) else x


def _told(what: str, old: Any, new: Any) -> str:
    one, two = _short(old), _short(new)
    return f"{what} ({one} -> {two})" if one != two else f"{what} (changed)"


def _short(x: Any) -> str:
    text = str(_plain(x))
    return text if len(text) <= 40 and text.isprintable() else f"{len(text)} characters"

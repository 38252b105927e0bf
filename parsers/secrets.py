"""Masks secrets before they leave a parser: by key (whole words) and by value (the shapes of well-known tokens).

``num_key_value_heads``, ``tokenizer`` and ``max_tokens`` are no secrets; ``HF_TOKEN`` and ``api_key`` are.
"""

from __future__ import annotations

import json
import re
from typing import Any

MASK = "***"

_SECRET_WORDS = {
    "password",
    "passwd",
    "passphrase",
    "secret",
    "secrets",
    "credential",
    "credentials",
    "apikey",
    "authorization",
    "bearer",
    "cookie",
}
_SECRET_PAIRS = {
    ("api", "key"),
    ("access", "key"),
    ("secret", "key"),
    ("private", "key"),
    ("account", "key"),
    ("signing", "key"),
    ("encryption", "key"),
    ("ssh", "key"),
    ("license", "key"),
    ("client", "secret"),
}
# "token" alone is a secret's key (HF_TOKEN, auth_token), unless its neighbours say that it counts or names tokens
_TOKEN_IS_TEXT = {
    "id",
    "ids",
    "type",
    "types",
    "eos",
    "bos",
    "pad",
    "unk",
    "sep",
    "cls",
    "mask",
    "image",
    "per",
    "num",
    "max",
    "min",
    "len",
    "length",
    "count",
    "class",
    "embeddings",
    "embedding",
    "special",
    "add",
    "new",
    "dim",
    "size",
    "level",
    "mean",
    "accuracy",
    "weight",
    "weights",
    "dropout",
    "budget",
    "decoder",
    "start",
    "end",
    "prepend",
    "append",
    "loss",
    "mixing",
    "shift",
    "first",
    "last",
    "next",
    "video",
    "audio",
    "boi",
    "eoi",
    "mixer",
    "limit",
    "batch",
    "train",
    "eval",
    "seen",
    "side",
}
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

# What a token looks like, beside the text that any of its kind holds: looking for that first is many times faster.
_TOKENS = {
    "hf_": r"hf_[A-Za-z0-9]{16,}",
    "sk-": r"sk-[A-Za-z0-9_\-]{16,}",
    "gh": r"gh[pousr]_[A-Za-z0-9]{20,}",
    "github_pat_": r"github_pat_[A-Za-z0-9_]{20,}",
    "AKIA": r"AKIA[A-Z0-9]{16}",
    "ASIA": r"ASIA[A-Z0-9]{16}",
    "xox": r"xox[abprs]-[A-Za-z0-9\-]{10,}",
    "glpat-": r"glpat-[A-Za-z0-9_\-]{16,}",
    "AIza": r"AIza[A-Za-z0-9_\-]{30,}",
    "wandb_v": r"wandb_v\d_[A-Za-z0-9_]{20,}",
    "nvapi-": r"nvapi-[A-Za-z0-9_\-]{20,}",
    "ya29.": r"ya29\.[A-Za-z0-9_\-]{20,}",
    "eyJ": r"eyJ[\w\-]{10,}\.[\w\-]{10,}\.[\w\-]{10,}",
    "-----BEGIN": r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)",
}
_VALUES = re.compile("|".join(_TOKENS.values()), re.DOTALL)
_URL_PASSWORD = re.compile(r"(?<=://)([^/\s:@]*):([^/\s@]+)(?=@)")
_URL_SIGNATURE = re.compile(
    r"(?i)((?:x-amz-signature|x-amz-credential|x-amz-security-token|sig|signature|access_token|api_key|token)=)[^&\s'\"]+"
)
_SHAPES = [
    *(([hint.lower().encode()], re.compile(pattern.encode(), re.DOTALL)) for hint, pattern in _TOKENS.items()),
    ([b"://"], re.compile(_URL_PASSWORD.pattern.encode())),
    ([b"sig=", b"signature=", b"credential=", b"token=", b"key="], re.compile(_URL_SIGNATURE.pattern.encode())),
]
_ASSIGNMENT = re.compile(
    r"""(?ix) (?P<key> [A-Za-z_][\w.\-]{1,60} ) (?P<sep> ['"]? \s* [:=] \s* ) (?P<quote> ['"]? ) (?P<value> [^\s'",;&}]{4,} )"""
)
_FLAG = re.compile(r"(?i)(?P<flag>--?[a-z][\w.\-]{2,60})(?P<sep>\s+)(?P<value>[^\s\-][^\s]{3,})")
_AUTHORIZATION = re.compile(
    r"(?i)(authorization['\"]?\s*[:=]\s*['\"]?(?:bearer|basic|token)\s+|\bbearer\s+)[\w\-.=+/]{8,}"
)


def is_secret_key(key: str) -> bool:
    """True for keys whose value is a secret, judged by whole words in snake_case, kebab-case or camelCase."""
    words = [w.lower() for w in _WORD.findall(key.rsplit("/", 1)[-1])]
    if any(w in _SECRET_WORDS for w in words) or any(p in _SECRET_PAIRS for p in zip(words, words[1:], strict=False)):
        return True
    if "token" in words:
        return not _TOKEN_IS_TEXT & set(words)
    if words[-1:] == ["pass"]:  # of a database or a user; a forward_pass is none
        return len(words) == 1 or words[-2] in _HAVE_A_PASS
    return bool(words) and words[-1] in {"pwd", "auth"}


_HAVE_A_PASS = {"auth", "db", "user", "smtp", "redis", "mysql", "postgres", "proxy", "ftp", "admin", "root", "key", "login"}


def mask_shapes(text: str) -> str:
    """Names (tags, keys, paths, ids): only what is a secret by its own shape, for a name has no value beside it."""
    if not has_shapes(text.encode("utf-8", "replace")):
        return text
    return _URL_SIGNATURE.sub(rf"\1{MASK}", _URL_PASSWORD.sub(rf"\1:{MASK}", _VALUES.sub(MASK, text)))


def has_shapes(texts: bytes | memoryview) -> bool:
    """Is a secret by its shape anywhere in these UTF-8 bytes?"""
    lower = bytes(texts).lower()
    return any(any(hint in lower for hint in hints) and pattern.search(texts) for hints, pattern in _SHAPES)


def mask_text(text: str) -> str:
    """Running text (console lines, summaries) with every secret in it replaced by ``***``."""
    if _might_hold_secret(text):
        text = _VALUES.sub(MASK, text)
        text = _URL_PASSWORD.sub(rf"\1:{MASK}", text)
        text = _URL_SIGNATURE.sub(rf"\1{MASK}", text)
        text = _AUTHORIZATION.sub(rf"\1{MASK}", text)
        text = _ASSIGNMENT.sub(_mask_assignment, text)
        text = _FLAG.sub(_mask_flag, text)
    return text


def mask_texts(texts: list[str]) -> list[str]:
    """Each as :func:`mask_text` gives it; one look tells of many that none holds anything."""
    return [mask_text(t) for t in texts] if _might_hold_secret("\n".join(texts)) else texts


def mask_config(key: str, value: Any) -> str:
    """A config value as JSON text, masked by its key, by the keys inside it and by its shape."""
    return json.dumps(_mask_tree(key, value), default=str, ensure_ascii=False)


_HINTS = (
    "key", "token", "secret", "passw", "passphrase", "credential", "auth", "bearer", "cookie", "pwd", "hf_", "sk-", "ghp_", "gho_",
    "ghu_", "ghs_", "ghr_", "github_pat", "akia", "asia", "xox", "glpat", "aiza", "nvapi", "ya29", "eyj", "wandb_v", "://", "sig",
)  # fmt: skip


def _might_hold_secret(text: str) -> bool:
    """A quick no for nearly all text; a regex of these words takes a hundred times longer."""
    lower = text.lower()
    return any(hint in lower for hint in _HINTS)


def _mask_tree(key: str, value: Any) -> Any:
    if isinstance(value, dict):
        named = next((value[k] for k in ("name", "key", "variable") if isinstance(value.get(k), str)), "")
        hidden = named if is_secret_key(named) else ""  # {"name": "HF_TOKEN", "value": ...}, as Kubernetes has it
        return {mask_shapes(str(k)): _mask_tree(hidden if k == "value" and hidden else str(k), v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_mask_tree(key, v) for v in value]
    if isinstance(value, str):
        return MASK if value and is_secret_key(key) else mask_text(value)
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, int) and abs(value) >= 1 << 1024:
        return "Infinity" if value > 0 else "-Infinity"  # Python writes no number of thousands of digits
    if value is None or isinstance(value, (bool, int, float)):
        return value if isinstance(value, bool) or value is None or not is_secret_key(key) else MASK
    return mask_text(str(value))


def _mask_assignment(m: re.Match[str]) -> str:
    if not is_secret_key(m["key"]) or m["value"] in {"None", "null", "True", "False", "true", "false"}:
        return m[0]
    return f"{m['key']}{m['sep']}{m['quote']}{MASK}"


def _mask_flag(m: re.Match[str]) -> str:
    return f"{m['flag']}{m['sep']}{MASK}" if is_secret_key(m["flag"].lstrip("-")) else m[0]

"""Tells the JSON, YAML, TOML and settings files apart that the parsers of this family share: a helper, no parser.

One function decides, so that no two of these parsers can claim the same file. It looks at the content first;
names decide only between kinds that look alike (settings and results are both objects of numbers).
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from parsers.console_format import envelopes
from parsers.lazy_regex import lazy_re
from parsers.records import tolerant_json, tracker_files

_LINES = {".jsonl", ".ndjson", ".jsonlines", ".jl"}
_CONFIG_TEXT = {".yaml": "yaml", ".yml": "yaml", ".toml": "toml", ".ini": "ini", ".cfg": "ini", ".conf": "ini"}
_TEXT = {".json", *_LINES, *_CONFIG_TEXT}
_OTHERS = (b"version https://git-lfs", b"\x1f\x8b", b"PK\x03\x04", b"SQLite format", b"PAR1", b"\x28\xb5\x2f\xfd",
           b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")  # fmt: skip  # the last are pickles; Ray Tune calls those of its searchers .json
_BLANK = b"\0\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f "  # what strip() takes off text; zero bytes are read as spaces
_WANDB_RUN = lazy_re(r"(?:offline-|dry)?run-\d{8}_\d{6}-\w+")
_WANDB_NAME = lazy_re(r"wandb-(?:summary|metadata|history|events)\.jsonl?")
_RESULTS = lazy_re(r"(?:all|train|eval|test|predict)_results\.json")
_SETTINGS = lazy_re(
    r"(?i)(?:^|[._\-])(?:config|configs|configuration|cfg|conf|args|argument|arguments|opt|opts|option|options|hparams|hparam|hyp|"
    r"hyper_?param(?:eter)?s|params|param|parameters|settings|setup|recipe|overrides)(?=[._\-\d]|$)"
)
_RESULT_WORD = lazy_re(r"(?i)result|metric|history|loss|score|summary|progress|(?:^|[._\-])(?:log|logs|eval)(?=[._\-]|$)")
_ARGS_TEXT = lazy_re(
    r"(?i)(?:.*[_\-.])?(?:args?|arguments|opts?|options|hparams|hyper_?params|hyperparameters|params|config|cfg|settings)\.(?:txt|log)"
)
# what a table of numbers in JSON begins with: a list of objects, of which the first name has a number; an object, of which it has a list of numbers
_TABLE = lazy_re(r"(?:\[\s*+\{\s*+\"[^\"\n]{1,80}\"\s*+:\s*+|\{\s*+\"[^\"\n]{1,80}\"\s*+:\s*+\[\s*+)(?:-?\d|NaN|-?Infinity)")
_CURVE = lazy_re(r"\[\s*+(?:-?\d++\.\d++(?:e[-+]\d++)?\s*+,\s*+){4}")  # a list of numbers alone
_NOT_LOGS = lazy_re(
    r"(?i)package(?:-lock)?\.json|tsconfig.*\.json|vocab.*\.json|tokenizer.*\.json|special_tokens_map\.json|added_tokens\.json|"
    r"merges\.json|chat_template\.json|(?:pre|image_)?processor_config\.json|.*\.index\.json|.*\.code-workspace|label2id\.json|"
    r"id2label\.json|modules\.json|experiment_state-\d.*\.json|.*\.(?:geo|ipynb_meta)json|.*\.bundle\.json"
)


@lru_cache(maxsize=16)
def kind_of(path: Path, head: bytes) -> str | None:
    """Which kind of file it is: trainer, lines, document, settings, yaml, toml, ini or args; None: another family's.

    ``head`` is the file's first bytes; only where its first line is longer than that is the file opened.
    """
    name, suffix = path.name.lower(), path.suffix.lower()
    if not head or head.startswith(_OTHERS) or _WANDB_NAME.fullmatch(name) or suffix == ".ipynb":
        return None
    if any(_WANDB_RUN.fullmatch(p) for p in path.parts[:-1]):
        return None
    if name.startswith("trainer_state") and suffix == ".json":
        return "trainer"
    begins = head.lstrip(_BLANK)[:1]
    if b"" < begins < b" " and not (suffix in _TEXT or _ARGS_TEXT.fullmatch(name)):
        return None  # a control character: nothing of ours, and not decoded for that
    if tracker_files.kind_of(path, head) or envelopes.kind_of(path, head):
        return None  # a tracker's, or a log whose lines stand in records
    text = tolerant_json.decode(head)[0].lstrip()
    if suffix in _CONFIG_TEXT:
        return _config_text(path, text, suffix)
    if suffix in _LINES:
        return _lines(path, text)
    return _json(path, text, suffix) if text[:1] in ("{", "[") else _other(path, text, suffix)


def _lines(path: Path, text: str) -> str:
    """What a file is that is called JSON lines."""
    if path.name.lower() in ("trainer_log.jsonl", "logging.jsonl") and re.search(r'"(?:current_steps|global_step/max_steps)"\s*:', text):
        return "trainer"
    return "document" if re.match(r"\{\s*\n|\[\s*\n", text) and not looks_like_lines(path, text) else "lines"


def _json(path: Path, text: str, suffix: str) -> str | None:
    """What a file is that begins as JSON does."""
    if suffix not in (".json", ".js"):
        return "lines" if looks_like_lines(path, text, strict=True) else "document" if _is_table(text) else None
    if skipped(path):
        return "document"  # json_log says what it is and leaves it
    if looks_like_lines(path, text):
        return "lines"
    if '"log_history"' in text and re.search(r'"(?:best_model_checkpoint|is_world_process_zero|best_metric)"', text):
        return "trainer"
    if text[0] == "{" and _RESULTS.fullmatch(path.name.lower()):
        return "trainer"
    return "settings" if text[0] == "{" and _SETTINGS.search(path.stem) and not _RESULT_WORD.search(path.stem) else "document"


def _is_table(text: str) -> bool:
    """Is it a table of numbers and nothing else (Chainer's ``log``)? Behind settings that a log begins with, lines of another kind follow."""
    if _TABLE.match(text) is None and _CURVE.match(text) is None:
        return False
    try:
        _, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return True  # longer than the head, or cut
    return not text[end:].strip()


def _other(path: Path, text: str, suffix: str) -> str | None:
    """What a file is that begins with neither brace nor bracket."""
    if suffix == ".json":
        return "lines" if looks_like_lines(path, text) else "document"  # damaged at its beginning
    if re.match(r"(?:[\w.]+\s*[=:]\s*)?Namespace\(", text):
        return "args" if _only_arguments(text) else None  # else a log that begins with its arguments
    return "args" if text and _ARGS_TEXT.fullmatch(path.name.lower()) and _all_assignments(text) else None


def _only_arguments(text: str) -> bool:
    """Are the lines behind the first Namespace(...) more of these, or assignments? A log says the same words in line after line."""
    behind = [s for line in text.splitlines()[1:60] if (s := line.strip()) and "Namespace(" not in s]
    words = [m[0] for s in behind if (m := re.search(r"[A-Za-z_][\w.\-]*", s)) is not None]
    return len(behind) < 3 or (_all_assignments("\n".join(behind)) and len(set(words)) * 2 > len(words))


def skipped(path: Path) -> bool:
    """True for JSON files that are known by name to hold neither metrics nor settings."""
    return _NOT_LOGS.fullmatch(path.name) is not None


def looks_like_lines(path: Path, text: str, strict: bool = False) -> bool:
    """Does each line hold an object of its own? ``strict``: there is nothing else (text logs may quote JSON)."""
    lines = [line for line in text.splitlines()[:50] if line.strip()]
    whole = lines[:-1] if len(lines) > 1 else lines
    if len(lines) == 1 and len(text) > 2000:  # the first line is longer than the head
        return text[0] == "{" and _second_line(path)
    rows = sum(_is_row(line) for line in whole)
    if strict:
        return rows == len(whole) > 0 and (len(lines) == 1 or lines[-1].lstrip().startswith(("{", "[{")))
    return rows * 2 >= len(whole) and rows > 0 and len(lines) > 1


def _is_row(line: str) -> bool:
    if not line.lstrip().startswith(("{", "[{")):
        return False
    try:
        value: Any = tolerant_json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) or (isinstance(value, list) and bool(value) and isinstance(value[0], dict))


def _second_line(path: Path, limit: int = 4 << 20) -> bool:
    try:
        with path.open("rb") as f:
            first = f.readline(limit)
            return first.endswith(b"\n") and f.read(64).strip()[:1] == b"{"
    except OSError:
        return False


def _config_text(path: Path, text: str, suffix: str) -> str | None:
    if "\ufffd" in text[:64] or not text.strip():
        return None
    if path.name.lower() == "meta.yaml" and re.search(r"(?m)^(?:artifact_uri|lifecycle_stage|artifact_location):", text):
        return None  # MLflow's file store
    if suffix in (".ini", ".cfg", ".conf") and not _all_assignments(text):
        return None
    return _CONFIG_TEXT[suffix]


def _all_assignments(text: str) -> bool:
    lines = [
        s for line in text.splitlines()[:60] if (s := line.strip()) and not s.startswith(("#", ";", "//", "-----", "====", "'''", '"""'))
    ]
    good = sum(bool(re.match(r"\[[^\]]+\]$|(?:--)?[\w.\-/ ]{1,60}\s*+[=:]|--[\w\-]+(?:\s|$)|[)\]}],?$|Namespace\(", s)) for s in lines)
    return good * 4 >= len(lines) * 3 and good > 0

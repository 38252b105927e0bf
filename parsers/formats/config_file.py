"""Settings: YAML, TOML, INI, JSON named like settings, and dumps of argparse (``Namespace(a=1, b='x')``, ``args.txt``).

Each setting is a config row, its nested keys joined by "."; lists are one value. Nothing is constructed or
evaluated: tags of Python's in YAML name no object (yaml_nodes), values in Namespace texts are literals or stay
text. Aliases that multiply are counted and cut. ``1e-4`` is a number, as its writer meant, though YAML 1.1 (and
PyYAML) take it for text. What cannot be read is cut out at the borders of top-level keys. A document that is a
list, such as ``.hydra/overrides.yaml``, is one setting under the file's name. ``at`` is the line.
"""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from parsers.formats.json_log import single_values
from parsers.lazy_regex import lazy_re
from parsers.records import json_kinds, tolerant_json
from parsers.records.json_tables import Leaf
from parsers.records.json_values import flat
from parsers.tables import Gap, Note

_MAX_BYTES, _MAX_LINED, _MAX_LEAVES, _MAX_GAPS = 4 << 20, 2000, 10_000, 100
_MAX_SOUGHT = 64 << 20  # characters looked through in vain for keys: a tenth of a second
_OF_A_SWEEP = {  # Hydra's: beside the folders of its jobs, which override what stands in them
    "multirun.yaml": lazy_re(r"(?m)^hydra:"),
    "optimization_results.yaml": lazy_re(r"(?m)^(?:name: (?:optuna|ax|nevergrad)|best_\w+:)"),
}
_KINDS = {"settings", "yaml", "toml", "ini", "args"}


def claims(path: Path, head: bytes) -> bool:
    return json_kinds.kind_of(path, head) in _KINDS


def parse(path: Path) -> Iterator[pa.RecordBatch | Gap | Note]:
    if path.stat().st_size > _MAX_BYTES:
        yield Note(f"more than {_MAX_BYTES >> 20} MiB: too large for settings, not read")
        return
    text, gaps = tolerant_json.read(path)
    yield from gaps
    text = text.replace("\r\n", "\n")
    suffix, stem = path.suffix.lower(), path.stem
    if (told := _OF_A_SWEEP.get(path.name)) is not None and told.search(text):
        yield Note("of a whole sweep, not read: each of its jobs has its own settings and results")
        return
    if suffix in (".yaml", ".yml"):
        from parsers.records import yaml_nodes  # PyYAML takes as long to import as a small run to read

        items = yaml_nodes.leaves(text, stem)
    elif suffix == ".toml":
        items = _toml(text)
    elif suffix in (".json", ".js"):
        items = _json(text)
    else:
        items = _namespace(text) if "Namespace(" in text else _assignments(text)
    leaves: list[Leaf] = []
    bad = 0
    for item in items:
        if isinstance(item, Gap):
            yield item
            bad += 1
        else:
            leaves.append(item)
        if bad > _MAX_GAPS or len(leaves) > _MAX_LEAVES:
            yield Gap(item.at if isinstance(item, Gap) else f"line {item[2] or 1}", "too much of it: the rest was not read", None)
            break
    yield from single_values(leaves, stem)


# ---- TOML, JSON


_MANY_PARTS = lazy_re(r"(?<![\w\-])(?:[\w\-]++\s*+\.\s*+){200}")


def _toml_loads(text: str) -> dict[str, Any]:
    """A key of so many parts is none, and tomllib takes memory by the square of them."""
    if _MANY_PARTS.search(text):
        raise ValueError("a key of too many parts")
    return tomllib.loads(text)


def _toml(text: str) -> Iterator[Leaf | Gap]:
    try:
        yield from _with_lines(_toml_loads(text), text, r"(?m)^[ \t]*+(?:[\w.\-\"']+\.)?[\"']?{}[\"']?[ \t]*+=")
        return
    except (tomllib.TOMLDecodeError, ValueError, RecursionError):
        pass
    table = ""
    for number, line in enumerate(text.split("\n"), 1):
        header = re.match(r"\s*+\[++([^\[\]]++)\]++\s*+(?:#|$)", line)
        if header:
            table = header[1].strip().replace(".", "/") + "/"
            continue
        try:
            for key, value in flat("", _toml_loads(line), "/"):
                yield table + key, value, number
        except (tomllib.TOMLDecodeError, ValueError, RecursionError):
            yield Gap(f"line {number}", "not TOML", 1)


def _json(text: str) -> Iterator[Leaf | Gap]:
    try:
        document = tolerant_json.loads(text)
    except (ValueError, RecursionError):
        text = tolerant_json.clean(text)
        document, at, _ = tolerant_json.recover(text)
        behind = re.compile(r'"([^"\\\n]{1,200})"\s*:\s*("(?:[^"\\\n]|\\.)*"|-?[\d.]+(?:[eE][+-]?\d+)?|true|false|null|NaN)\s*[,}\n]')
        found = [(m[1], json.loads(m[2]), None) for m in behind.finditer(text, at) if _is_json(m[2])][:_MAX_LINED]
        yield Gap(tolerant_json.byte_at(text, at), "damaged JSON: settings here could not be read", None)
        known = set(document) if isinstance(document, dict) else set()
        yield from (leaf for leaf in found if leaf[0] not in known)  # their parents are lost
    if isinstance(document, dict):
        yield from _with_lines(document, text, '"{}"\\s*+:')


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _with_lines(document: dict[str, Any], text: str, pattern: str) -> Iterator[Leaf | Gap]:
    """Leaves with their lines: keys stand in the text in the order of the document."""
    position = line = sought = 0
    leaves = list(flat("", document, "/"))
    lined = len(leaves) <= _MAX_LINED
    for name, value in leaves:
        key = re.escape(name.rpartition("/")[2])
        found = re.compile(pattern.replace("{}", key)).search(text, position) if lined and sought < _MAX_SOUGHT else None
        sought += 0 if found else len(text) - position
        if found:
            line += text.count("\n", position, found.end())
            position = found.end()
        yield name, value, line + 1 if found else None


# ---- argparse, INI


def _namespace(text: str) -> Iterator[Leaf | Gap]:
    """``Namespace(a=1, b='x', c=<object>)``: each value by itself, so that one that is no literal stays text."""
    end = line = 0
    while (found := text.find("Namespace(", end)) >= 0:
        line += text.count("\n", end, found)
        end = found + len("Namespace(")
        closed = False
        for start, stop in _arguments(text, end):
            yield from _assignment(text[start:stop], line + 1)
            closed = text[stop] == ")"
            line += text.count("\n", end, stop)
            end = stop
        if not closed:
            yield Gap(f"line {line + 1}", "cut off inside Namespace(...)", 1)
            return


def _arguments(text: str, start: int) -> Iterator[tuple[int, int]]:
    """Where each argument of a call begins and ends, up to the closing bracket (which the last one ends at)."""
    depth, quote, pos = 0, "", start
    while pos < len(text):
        c = text[pos]
        if quote:
            pos += c == "\\"
            quote = "" if c == quote else quote
        elif c in "'\"":
            quote = c
        elif c in "([{<":
            depth += 1
        elif c in ")]}>" and depth:
            depth -= 1
        elif c in ",)" and not depth:
            yield start, pos
            if c == ")":
                return
            start = pos + 1
        pos += 1


def _assignment(text: str, line: int) -> Iterator[Leaf | Gap]:
    key, separator, value = text.strip().partition("=")
    if separator and re.fullmatch(r"[\w.\-]+", key.strip()):
        yield key.strip(), literal(value), line


def literal(text: str) -> Any:
    """A value as Python, JSON or YAML would write it; text that is none of these stays text."""
    text = text.strip()
    if text.lower() in ("true", "false", "none", "null"):
        return {"true": True, "false": False}.get(text.lower())
    try:
        value = ast.literal_eval(text) if len(text) < 10_000 else text
        json.dumps(value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text.strip("\"'") if text[:1] in ("'", '"') else text
    return list(value) if isinstance(value, tuple) else value


def _without_default(value: str) -> str:
    """``0.1  [default: 0.2]``, as argparse's dumps write it -> ``0.1``."""
    mark = re.search(r"\s\[default: ", value)
    return value[: mark.start()].rstrip() if mark and value.endswith("]") else value


def _assignments(text: str) -> Iterator[Leaf | Gap]:
    """``key = value``, ``key: value``, ``--key value`` and ``[section]``, a line each."""
    section = ""
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip()
        if not line or line.startswith(("#", ";", "//")) or not line.strip("-=*_ "):
            continue
        header = re.fullmatch(r"\[([^\[\]=]+)\]", line)
        m = re.match(r"(?:--?)?([A-Za-z_][\w.\-/ ]{0,80}?)\s*+[=:]\s*+(.*)$", line) or re.match(
            r"--?([A-Za-z][\w.\-]{0,80})(?:\s++(.*))?$", line
        )
        if header:
            section = header[1].strip() + "/"
        elif m:
            value = re.split(r"\s[#;]\s", m[2] or "")[0].strip() if m[2] is not None else "true"
            yield section + m[1].strip().replace("/", "."), literal(_without_default(value)), number
        elif not re.fullmatch(r"[\w\s]*[()\[\]{}],?", line):
            yield Gap(f"line {number}", "a line that is no setting", 1)

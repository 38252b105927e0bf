"""The named numbers of detectors, signs and spikes, each with the comment that says where it comes from."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Constant:
    """A named number, or several numbers under one name, at the top level of a module."""

    module: str  # forensics.detectors.plateau
    name: str
    line: int
    comment: str  # on its line or directly above


def modules(*rooms: str) -> list[Path]:
    return [p for room in rooms for p in sorted((ROOT / "forensics" / room).glob("*.py")) if p.stem != "__init__"]


def constants(path: Path) -> Iterator[Constant]:
    """The named numbers of a file, each with the comment beside it or above it."""
    text = path.read_text("utf-8")
    comments = {
        t.start[0]: t.string.lstrip("#: ") for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.type == tokenize.COMMENT
    }
    lines = text.splitlines()
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for node in ast.parse(text).body:
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
            continue
        for target, value in named(node):
            if target.lstrip("_").isupper() and numeric(value):
                yield Constant(module, target, node.lineno, _comment(node, lines, comments))


def _comment(node: ast.stmt, lines: list[str], comments: dict[int, str]) -> str:
    """What stands on the lines of the statement, else the lines of comment directly above it."""
    beside = [comments[i] for i in range(node.lineno, (node.end_lineno or node.lineno) + 1) if comments.get(i, "fmt: skip") != "fmt: skip"]
    above: list[str] = []
    at = node.lineno - 1
    while at > 0 and lines[at - 1].lstrip().startswith("#"):
        above.insert(0, comments[at])
        at -= 1
    return " ".join(beside if len(beside) == 1 or not above else above) or " ".join(above)


def named(node: ast.Assign | ast.AnnAssign) -> Iterator[tuple[str, ast.expr]]:
    """Name and value; of `A, B = 1, 2` each."""
    value = node.value
    assert value is not None
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        if isinstance(target, ast.Name):
            yield target.id, value
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            yield from ((t.id, v) for t, v in zip(target.elts, value.elts, strict=True) if isinstance(t, ast.Name))


def numeric(value: ast.expr) -> bool:
    """A number, an expression of numbers, or a collection of numbers; no text in it but the keys of a dict."""
    if isinstance(value, (ast.Tuple, ast.List, ast.Set)):
        return bool(value.elts) and all(numeric(v) for v in value.elts)
    if isinstance(value, ast.Dict):
        return bool(value.values) and all(numeric(v) for v in value.values)
    if isinstance(value, ast.UnaryOp):
        return numeric(value.operand)
    if isinstance(value, ast.BinOp):
        return all(isinstance(v, ast.Name) or numeric(v) for v in (value.left, value.right))
    if isinstance(value, ast.Call):  # math.log(1.4)
        return ast.unparse(value.func).startswith("math.") and all(numeric(v) for v in value.args)
    return isinstance(value, ast.Constant) and isinstance(value.value, (int, float)) and not isinstance(value.value, bool)

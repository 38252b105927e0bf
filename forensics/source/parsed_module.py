"""One piece of source as its syntax, with its names resolved. Nothing is imported or run."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field

Function = ast.FunctionDef | ast.AsyncFunctionDef
Loop = ast.For | ast.AsyncFor | ast.While
DEEPEST = 150  # brackets within brackets: Python's own parser gives up at 200 (MAXSTACK, Parser/tokenizer.h), written code has some ten
LONGEST = 20_000  # characters of a line: source of a few hundred, packed data of any length


@dataclass(frozen=True)
class Listing:
    """Source as it was found: a file, a cell of a notebook, a listing in a log. `first`: the line that the text begins at."""

    path: str
    text: str
    first: int = 1


@dataclass(eq=False)
class Module:
    """One listing that parses. `names`: local name -> what it was imported as; `made`: target -> the expressions assigned to it."""

    listing: Listing
    tree: ast.Module
    names: dict[str, str] = field(default_factory=dict)
    functions: dict[str, list[Function]] = field(default_factory=dict)
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    made: dict[str, list[ast.expr]] = field(default_factory=dict)
    above: dict[ast.AST, ast.AST] = field(default_factory=dict)  # node -> the node it stands in

    def where(self, node: ast.AST) -> str:
        return f"{self.listing.path} line {self.line(node)}"

    def line(self, node: ast.AST) -> int:
        return int(getattr(node, "lineno", 1)) + self.listing.first - 1

    def text(self, node: ast.AST) -> str:
        """The line of the node, as it was written."""
        lines = self.listing.text.split("\n")
        return lines[min(getattr(node, "lineno", 1), len(lines)) - 1].strip()[:160]

    def called(self, call: ast.AST) -> str:
        """'torch.nn.functional.cross_entropy' of ``F.cross_entropy(...)``, 'model.eval' of ``model.eval()``; "" of anything else."""
        return self.resolved(dotted(call.func)) if isinstance(call, ast.Call) else ""

    def resolved(self, name: str) -> str:
        root, dot, rest = name.partition(".")
        return f"{self.names.get(root, root)}{dot}{rest}"

    def parents(self, node: ast.AST) -> Iterator[ast.AST]:
        """From the inside outwards."""
        while (up := self.above.get(node)) is not None:
            yield up
            node = up

    def function(self, node: ast.AST) -> ast.AST:
        """The function that a node stands in, else the module."""
        return next((p for p in self.parents(node) if isinstance(p, Function)), self.tree)

    def loops(self, node: ast.AST) -> list[Loop]:
        """The loops of its own function that a node stands in, innermost first."""
        out: list[Loop] = []
        for p in self.parents(node):
            if isinstance(p, Function):
                break
            if isinstance(p, Loop):
                out.append(p)
        return out


def dotted(node: ast.AST) -> str:
    """'self.model.eval' of an attribute chain, with ``()`` for a call in it ('scaler.scale().backward'); "" where it begins otherwise."""
    parts: list[str] = []
    while True:
        if isinstance(node, ast.Attribute):
            parts.append(f".{node.attr}")
            node = node.value
        elif isinstance(node, ast.Call):
            parts.append("()")
            node = node.func
        elif isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Name):
            parts.append(node.id)
            return "".join(reversed(parts))
        else:
            return "".join(reversed(parts)) if parts and parts[-1] != "()" else ""


def last(name: str) -> str:
    """'backward' of 'scaler.scale().backward'"""
    return name.rpartition(".")[2]


def parse(listing: Listing) -> Module | str:
    """The module, or why it cannot be read, in a few words."""
    if why := _unfit(listing.text):
        return why
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes in the foreign source
            module = Module(listing, ast.parse(listing.text))
        _fill(module)
    except SyntaxError as e:
        return f"line {(e.lineno or 1) + listing.first - 1} is not Python 3"
    except (ValueError, RecursionError, MemoryError) as e:
        return f"it cannot be parsed ({type(e).__name__})"
    return module


def _unfit(text: str) -> str:
    depth = 0
    for line in text.split("\n"):
        if len(line) > LONGEST:
            return f"a line of {len(line)} characters"
        opened = closed = 0
        for mark in "([{":
            opened += line.count(mark)
        for mark in ")]}":
            closed += line.count(mark)
        depth = max(depth + opened - closed, 0)
        if depth > DEEPEST or opened > LONGEST // 10:
            return "brackets too deep to parse"
    return ""


def _fill(module: Module) -> None:
    for node in ast.walk(module.tree):
        for child in ast.iter_child_nodes(node):
            module.above[child] = node
        if isinstance(node, ast.Import):
            for a in node.names:
                module.names[a.asname or a.name.partition(".")[0]] = a.name if a.asname else a.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom):
            for a in node.names:
                module.names[a.asname or a.name] = f"{node.module}.{a.name}" if node.module else a.name
        elif isinstance(node, Function):
            module.functions.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.ClassDef):
            module.classes[node.name] = node
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                _made(module, target, node.value)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            _made(module, node.target, node.value)


def _made(module: Module, target: ast.expr, value: ast.expr) -> None:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        for t, v in zip(target.elts, value.elts, strict=True):
            _made(module, t, v)
    elif isinstance(target, ast.Tuple):
        for t in target.elts:
            _made(module, t, value)
    elif isinstance(target, (ast.Name, ast.Attribute)) and (name := dotted(target)):
        module.made.setdefault(name, []).append(value)

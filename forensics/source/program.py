"""A program as its syntax: modules with their names resolved, calls, and where each function is called. Nothing is imported or run."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import PurePosixPath

Function = ast.FunctionDef | ast.AsyncFunctionDef
Loop = ast.For | ast.AsyncFor | ast.While
DEEPEST = 150  # brackets within brackets: Python's own parser gives up at 200 (MAXSTACK, Parser/tokenizer.h), written code has some ten
LONGEST = 20_000  # characters of a line: source of a few hundred, packed data of any length
MOST_CALLS = 50  # of one name that a look goes through, so that the time of a look grows with the source alone; scripts have one to ten
HELPERS = 3  # calls from function to function that are followed: loop, step, helper of the step


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


@dataclass(frozen=True)
class Site:
    """A node and the module it stands in."""

    module: Module
    node: ast.AST

    @property
    def where(self) -> str:
        return self.module.where(self.node)

    @property
    def name(self) -> str:
        return self.module.called(self.node)


class Program:
    """A script with the modules beside it that it imports, and questions about all of them."""

    def __init__(self, modules: Sequence[Module]) -> None:
        self.modules = list(modules)
        nodes = [(m, n) for m in self.modules for n in ast.walk(m.tree)]
        self.calls = [Site(m, n) for m, n in nodes if isinstance(n, ast.Call)]
        self.imported = {origin for m in self.modules for origin in m.names.values()}

    def uses(self, *packages: str) -> bool:
        """Is one of these packages imported?"""
        return any(origin.partition(".")[0] in packages for origin in self.imported)

    def ends(self, *names: str) -> list[Site]:
        """The first calls whose last name is one of these."""
        return list(islice((c for c in self.calls if last(c.name) in names), MOST_CALLS))

    def function(self, name: str, module: Module) -> list[Site]:
        """The functions of the program that a call may lead to: by name, of a module, or a method of a class that it made."""
        root, _, short = name.rpartition(".")
        if root in ("", "self"):
            own = [Site(module, f) for f in module.functions.get(short, ())]
            return own or ([] if root else [Site(m, f) for m in self.modules for f in m.functions.get(short, ())])
        origin = last(module.resolved(root))
        found = [Site(m, f) for m in self.modules if PurePosixPath(m.listing.path).stem == origin for f in m.functions.get(short, ())]
        kinds = {last(module.called(v)) for v in module.made.get(root, ())} - {""}
        methods = ((m, m.classes[kind]) for m in self.modules for kind in kinds if kind in m.classes)
        return found or [Site(m, f) for m, c in methods for f in c.body if isinstance(f, Function) and f.name == short]

    def below(self, module: Module, node: ast.AST, depth: int = HELPERS) -> list[Site]:
        """Everything inside a node, and inside the functions of the program that are called there."""
        seen: set[ast.AST] = set()
        out: list[Site] = []
        waiting = [(module, node, depth)]
        while waiting:
            m, top, left = waiting.pop()
            if top in seen:
                continue
            seen.add(top)
            for n in ast.walk(top):
                out.append(Site(m, n))
                if left and isinstance(n, ast.Call) and (name := dotted(n.func)):
                    waiting += [(f.module, f.node, left - 1) for f in self.function(name, m)]
        return out


def programs(modules: Sequence[Module]) -> list[Program]:
    """One for each script: a module that no other one imports, with those that it does."""
    parts = {m: {part for origin in m.names.values() for part in origin.split(".")} for m in modules}
    asks = {m: [o for o in modules if o is not m and PurePosixPath(o.listing.path).stem in parts[m]] for m in modules}
    asked = {o for found in asks.values() for o in found}
    roots = [m for m in modules if m not in asked] or list(modules[:1])
    return [Program(_closure(root, asks)) for root in roots]


def _closure(root: Module, asks: dict[Module, list[Module]]) -> list[Module]:
    found, waiting = [root], [root]
    while waiting:
        for m in asks[waiting.pop()]:
            if m not in found:
                found.append(m)
                waiting.append(m)
    return found

"""A program: a script with the modules beside it that it imports, its calls, and where each function is called."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePosixPath

from forensics.source.parsed_module import Function, Module, dotted, last

MOST_CALLS = 50  # of one name that a look goes through, so that the time of a look grows with the source alone; scripts have one to ten
HELPERS = 3  # calls from function to function that are followed: loop, step, helper of the step


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
        self._calls_in: dict[ast.AST, list[Site]] = {}
        self._below: dict[ast.AST, list[Site]] = {}
        self.imported = {origin for m in self.modules for origin in m.names.values()}

    def uses(self, *packages: str) -> bool:
        """Is one of these packages imported?"""
        return any(origin.partition(".")[0] in packages for origin in self.imported)

    def ends(self, *names: str) -> list[Site]:
        """The first calls whose last name is one of these."""
        return list(islice((c for c in self.calls if last(c.name) in names), MOST_CALLS))

    def calls_in(self, module: Module, node: ast.AST) -> list[Site]:
        """The calls inside a node."""
        if node not in self._calls_in:
            self._calls_in[node] = [Site(module, n) for n in ast.walk(node) if isinstance(n, ast.Call)]
        return self._calls_in[node]

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

    def below(self, module: Module, node: ast.AST) -> list[Site]:
        """Everything inside a node, and inside the functions of the program that are called there."""
        if node in self._below:
            return self._below[node]
        seen: set[ast.AST] = set()
        out: list[Site] = []
        waiting = [(module, node, HELPERS)]
        while waiting:
            m, top, left = waiting.pop()
            if top in seen:
                continue
            seen.add(top)
            for n in ast.walk(top):
                out.append(Site(m, n))
                if left and isinstance(n, ast.Call) and (name := dotted(n.func)):
                    waiting += [(f.module, f.node, left - 1) for f in self.function(name, m)]
        self._below[node] = out
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

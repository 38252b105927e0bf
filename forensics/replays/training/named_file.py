"""The file that the user names beside a ready adapter (FORENSICS_MODULE): looked at as text first, then imported like an adapter."""

from __future__ import annotations

import ast
import importlib.util
import os
import sys
from collections.abc import Iterator
from typing import Any

from .beside import Beside

TRAINS = ("fit", "backward", "train_step")  # what a script calls when it trains
VARIABLE = "FORENSICS_MODULE"


class NotNamed(FileNotFoundError):
    """The file is not named, not there, or would train when it is imported."""


def named_path(what: str) -> str:
    """The path that the user names; `what` says what the file should hold."""
    path = os.environ.get(VARIABLE, "")
    if not path:
        raise NotNamed(f"set {VARIABLE} to the Python file with {what}; it is run, so read it first if it is not yours")
    if not os.path.isfile(path):
        raise NotNamed(f"{VARIABLE} names {path}, which is no file")
    return path


def tree_of(path: str) -> ast.Module:
    """The file as a tree, refused where importing it would train."""
    with open(path, "rb") as f:
        tree = ast.parse(f.read(), filename=path)
    for call in _calls_on_import(tree.body):
        if isinstance(call.func, ast.Attribute) and call.func.attr in TRAINS:
            raise NotNamed(
                f'{path}, line {call.lineno}, calls {call.func.attr}() when it is imported; put that under `if __name__ == "__main__":`'
            )
    return tree


def _calls_on_import(body: list[ast.stmt]) -> Iterator[ast.Call]:
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        if isinstance(node, ast.If) and any(isinstance(n, ast.Name) and n.id == "__name__" for n in ast.walk(node.test)):
            continue
        yield from (n for n in ast.walk(node) if isinstance(n, ast.Call))


def import_as(path: str, name: str, found: list[str]) -> Any:
    """The file as a module that can import what lies beside it; `found` is extended by the files that were imported."""
    beside = Beside(os.path.dirname(os.path.abspath(path)))
    beside.found = found
    sys.meta_path.insert(0, beside)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise NotNamed(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


class Named:
    """What a ready adapter sees of the named file, as its global `named_file`."""

    def __init__(self, found: list[str]) -> None:
        self.found, self.module, self.tree = found, None, ast.Module([], [])

    def load(self, what: str) -> Any:
        if self.module is None:
            path = named_path(what)
            self.tree = tree_of(path)
            self.found.append(path)
            self.module = import_as(path, "replay_named_file", self.found)
        return self.module

    def arguments(self, function: str) -> dict[Any, Any]:
        """The arguments of the one call of that name in the file: numbers and text, or names that the module gives; where a call does not say
        a value in such a way, the syntax itself."""
        calls = [n for n in ast.walk(self.tree) if isinstance(n, ast.Call) and _last(n.func) == function]
        if len(calls) != 1:
            return {}
        pairs = [*enumerate(calls[0].args), *((k.arg, k.value) for k in calls[0].keywords)]
        return {k: self._value(v) for k, v in pairs}

    def _value(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Name) and hasattr(self.module, node.id):
            return getattr(self.module, node.id)
        try:
            return ast.literal_eval(node)
        except (ValueError, TypeError):
            return node


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""

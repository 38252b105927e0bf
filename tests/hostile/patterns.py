"""Every regular expression of the product: what the modules hold, what the data files do, and literals given to `re`."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import pkgutil
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from parsers.lazy_regex import LazyRegex

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("parsers", "forensics", "reports")
CALLS = {"compile", "search", "match", "fullmatch", "findall", "finditer", "split", "sub", "subn"}
Found = dict[tuple[str | bytes, int], tuple[re.Pattern[Any], set[str], str]]  # (text, flags) -> pattern, methods, where


@cache
def patterns() -> tuple[Found, list[str]]:
    """All expressions with the methods they are used by, and the calls whose expression is not known before they run."""
    found: Found = {}
    unknown: list[str] = []
    modules = [m for p in PACKAGES for m in _modules(p)]
    trees = {m.__name__: ast.parse(Path(str(m.__file__)).read_text("utf-8")) for m in modules}
    everywhere = _methods(trees.values())
    for module in modules:
        here = _methods([trees[module.__name__]])
        at_import = {id(n) for s in _assignments(trees[module.__name__]) for n in ast.walk(s)}
        for name, value in vars(module).items():
            for pattern in _held(value, 0):
                _note(found, pattern, here.get(name) or everywhere.get(name) or {"finditer"}, f"{module.__name__}.{name}")
        for call in _calls(trees[module.__name__]):
            where = f"{module.__name__}: {ast.unparse(call.args[0])}"
            try:
                pattern = re.compile(eval(ast.unparse(call.args[0]), dict(vars(module))), _flags(call))
            except NameError:
                if id(call) not in at_import:  # what a module makes when it is imported, it holds
                    unknown.append(where)
                continue
            used = call.func.attr if isinstance(call.func, ast.Attribute) else "compile"
            if used != "compile":
                _note(found, pattern, {used}, where)
    for data in sorted(
        p for package in PACKAGES for p in (ROOT / package).rglob("*.toml") if p.parent.parent.name != "vendor"
    ):  # parsers.secrets translates those
        for text in _texts(tomllib.loads(data.read_text("utf-8"))):
            _note(found, re.compile(text, re.MULTILINE), {"search"}, data.name)
    return found, unknown


def _note(found: Found, pattern: re.Pattern[Any], methods: set[str], where: str) -> None:
    found.setdefault((pattern.pattern, pattern.flags), (pattern, set(), where))[1].update(methods)


def _texts(value: Any) -> Iterator[str]:
    """Texts in a data file with a sign that only expressions have. Tables that give each pattern a line that it matches
    (`patterns`) and lines that none matches (`never`) are compiled by their module, where they are found."""
    if isinstance(value, dict):
        value = {k: v for k, v in value.items() if k not in ("patterns", "never")}
    if isinstance(value, str) and set(value) & set("*+?|$^\\"):
        yield value
    elif isinstance(value, (dict, list)):
        yield from (t for v in (value.values() if isinstance(value, dict) else value) for t in _texts(v))


def _modules(package: str) -> Iterator[ModuleType]:
    for module in pkgutil.walk_packages([str(ROOT / package)], f"{package}."):
        if not module.name.endswith("__main__"):
            yield importlib.import_module(module.name)
    yield importlib.import_module(package)


def _methods(trees: Any) -> dict[str, set[str]]:
    """For each name, the methods of a pattern that something of this name is asked for, anywhere."""
    found = defaultdict(set)
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr in CALLS - {"compile"}:
                name = node.value.id if isinstance(node.value, ast.Name) else getattr(node.value, "attr", "")
                found[name].add(node.attr)
    return found


def _held(value: object, depth: int) -> Iterator[re.Pattern[Any]]:
    """Patterns in a value: itself, in containers, in fields."""
    if isinstance(value, LazyRegex):
        yield value.compiled()
    elif isinstance(value, re.Pattern):
        yield value
    elif depth < 6 and isinstance(value, dict):
        yield from (p for pair in value.items() for v in pair for p in _held(v, depth + 1))
    elif depth < 6 and isinstance(value, (list, tuple, set, frozenset)):
        yield from (p for v in value for p in _held(v, depth + 1))
    elif depth < 6 and dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from (p for f in dataclasses.fields(value) for p in _held(getattr(value, f.name), depth + 1))


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        called = ast.unparse(node.func)
        if called == "lazy_re" or (called.startswith("re.") and called[3:] in CALLS):
            yield node


def _assignments(tree: ast.Module) -> Iterator[ast.stmt]:
    """What a module gives a name to when it is imported."""
    yield from (s for s in tree.body if isinstance(s, (ast.Assign, ast.AnnAssign)))


def _flags(call: ast.Call) -> int:
    """Flags that are given as `re.X`; those in the text need nothing."""
    words = {n.attr for a in (*call.args[1:], *(k.value for k in call.keywords)) for n in ast.walk(a) if isinstance(n, ast.Attribute)}
    return sum(int(getattr(re, w)) for w in words & {"I", "IGNORECASE", "M", "MULTILINE", "S", "DOTALL"})

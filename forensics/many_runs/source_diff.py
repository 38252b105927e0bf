"""The source that lies with two runs, beside each other: which functions differ, the lines, and what the looks at each come to.

Comments, blank lines and formatting are no difference: definitions are compared as Python parses them, and nothing is run.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from forensics.source.answers import FAULT, RIGHT
from forensics.source.parsed_module import Module, parse
from forensics.source.run_source import listings, looked_at
from parsers import secrets
from parsers.tables import Run

FILES, NAMES, LINES = 12, 12, 40  # unit: of files, of definitions and of lines in each that a page shows
LONGEST = 2000  # lines of a file that are laid beside each other: the diff takes time in their square
WIDEST = 160  # characters of a line
BODY = "the top level"


def differences(a: Run, b: Run) -> dict[str, Any]:
    """``{"state", "files", "looks"}``. `state`: differs, same, or why it cannot be told. A file: ``{"path", "in", "names", "lines"}``, `in` being
    both, A or B. A look: ``{"look", "a", "b"}`` where one does a thing wrong that the other does right."""
    one, two = _modules(a), _modules(b)
    if not one or not two:
        lacking = " and ".join(name for name, found in (("A", one), ("B", two)) if not found)
        return {"state": f"no source that parses lies with {lacking}", "files": [], "looks": []}
    files = list(_files(one, two))
    return {"state": "differs" if files else "same", "files": files[:FILES], "looks": list(_looks(a, b))}


def _modules(run: Run) -> dict[str, Module]:
    """Module by its file's name, or by its path where several have that name."""
    found = [m for listing in listings(run) if isinstance(m := parse(listing), Module)]
    names = [PurePosixPath(m.listing.path).name for m in found]
    return {name if names.count(name) == 1 else m.listing.path: m for name, m in zip(names, found, strict=True)}


def _files(one: dict[str, Module], two: dict[str, Module]) -> Iterator[dict[str, Any]]:
    """The files that differ, those of both runs first. A lone script of each is the same one, whatever it is called."""
    if len(one) == len(two) == 1:
        two = dict(zip(one, two.values(), strict=True))
    for path in sorted(one.keys() & two.keys()):
        names = _changed(_parts(one[path].tree), _parts(two[path].tree))
        if names:
            yield {"path": path, "in": "both", "names": names[:NAMES], "lines": _lines(one[path].listing.text, two[path].listing.text)}
    for path in sorted(one.keys() ^ two.keys()):
        yield {"path": path, "in": "A" if path in one else "B", "names": [], "lines": []}


def _parts(tree: ast.Module) -> dict[str, str]:
    """Each definition by its name, methods apart, and what stands outside of them."""
    found: dict[str, str] = {}
    rest: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{n.name}": ast.dump(n) for n in node.body if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))}
            others = [n for n in node.body if not isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
            found[node.name] = " ".join(map(ast.dump, [*node.bases, *others]))
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found[node.name] = ast.dump(node)
        else:
            rest.append(ast.dump(node))
    return found | {BODY: " ".join(rest)}


def _changed(one: dict[str, str], two: dict[str, str]) -> list[str]:
    return [n for n in dict.fromkeys([*one, *two]) if one.get(n) != two.get(n)]


def _lines(one: str, two: str) -> list[str]:
    """The lines that differ, as in a patch without its heads, secrets masked."""
    told = difflib.unified_diff(one.split("\n")[:LONGEST], two.split("\n")[:LONGEST], "A", "B", lineterm="", n=0)
    kept = [line for line in told if line.startswith(("+", "-")) and not line.startswith(("+++", "---")) and line[1:].strip()]
    return [secrets.mask_text(line)[:WIDEST] for line in kept[:LINES]]


def _looks(a: Run, b: Run) -> Iterator[dict[str, Any]]:
    one, two = looked_at(a).answers, looked_at(b).answers
    for name in one.keys() & two.keys():
        if {one[name].state, two[name].state} == {FAULT, RIGHT}:
            yield {"look": name, "a": one[name].text, "b": two[name].text}

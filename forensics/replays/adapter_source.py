"""The adapter as text: what it defines, found before anything of it is run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from forensics.errors import ForensicsError

NEEDED = ("build", "batch", "loss")
ANY = "*"  # a star import may bring any name


def refuse_unless_adapter(path: Path) -> None:
    """Raises ForensicsError, without running the file, where it does not define what a replay calls: a script that only trains is one."""
    try:
        tree = ast.parse(path.read_bytes(), filename=str(path))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
        line = f", line {e.lineno}" if isinstance(e, SyntaxError) and e.lineno else ""
        raise ForensicsError(f"{path} is no Python that can be read{line}: {e.args[0] if e.args else e}", "It was not run.") from e
    except OSError as e:
        raise ForensicsError(f"{path} cannot be read: {e.strerror}") from e
    defined = set(names(tree.body))
    lacking = [n for n in NEEDED if n not in defined and ANY not in defined and not (n == "batch" and "dataset" in defined)]
    if lacking:
        listed = " and no ".join(f"{n}()" for n in lacking)
        hint = "It was not run. `forensics replay --init` writes a template that says what an adapter is."
        raise ForensicsError(f"{path} defines no {listed}, so it is no replay adapter", hint)


def wants_order(path: Path) -> bool:
    """Whether the adapter gives its data set and leaves the order of the samples to the run."""
    defined = set(names(ast.parse(path.read_bytes()).body))
    return "dataset" in defined and "batch" not in defined


def names(body: list[ast.stmt]) -> Iterator[str]:
    """What statements at module level may define, whichever branch is taken."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from (alias.asname or alias.name for alias in node.names)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name))
        elif isinstance(node, ast.If) and _is_main(node.test):
            yield from names(node.orelse)
        elif isinstance(node, (ast.If, ast.Try, ast.With)):
            yield from names(node.body)
            for more in ("orelse", "finalbody"):
                yield from names(getattr(node, more, []))
            for handler in getattr(node, "handlers", []):
                yield from names(handler.body)


def _is_main(test: ast.expr) -> bool:
    """Whether it is `__name__ == "__main__"`: what stands under it is not there for an importer."""
    return any(isinstance(n, ast.Name) and n.id == "__name__" for n in ast.walk(test))

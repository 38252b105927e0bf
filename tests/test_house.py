"""The house: small files and functions, no circle, and a cause known in one file only; the others ask it (``forensics.causes.files``)."""

from __future__ import annotations

import ast
import re
import statistics
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from forensics.causes.files import causes

ROOT = Path(__file__).resolve().parent.parent
FILES = {
    p: p.read_text("utf-8")
    for room in ("forensics", "parsers", "reports")
    for p in sorted((ROOT / room).rglob("*.py"))
    if "vendor" not in p.parts
}
IDS = [i for i in causes() if "_" in i and i != "logger_artefact"]  # a detector has that name, too


@pytest.mark.parametrize("cause", IDS)
def test_a_cause_is_named_in_its_own_file_only(cause: str) -> None:
    named = re.compile(rf"['\"\s]{cause}['\"\s]")
    assert [str(p.relative_to(ROOT)) for p, text in FILES.items() if p.stem != cause and named.search(text)] == []


def functions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for path, text in FILES.items():
        yield from (
            (f"{path.name}:{n.name}", n) for n in ast.walk(ast.parse(text)) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))
        )


def test_files_and_functions_are_short() -> None:
    lengths = {str(p.relative_to(ROOT)): len(text.splitlines()) for p, text in FILES.items()}
    assert statistics.median(lengths.values()) <= 110
    assert {p: n for p, n in lengths.items() if n > 250} == {}
    assert [name for name, n in functions() if (n.end_lineno or 0) - n.lineno >= 50] == []
    assert [name for name, n in functions() if len(n.args.args) + len(n.args.kwonlyargs) > 7] == []


def test_no_import_runs_in_a_circle() -> None:
    """Imports inside functions count: a circle that is only broken by the order of calls is one."""
    name = {".".join(p.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): text for p, text in FILES.items()}
    graph: dict[str, set[str]] = {}
    for module, text in name.items():
        froms = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.ImportFrom) and n.module and not n.level]
        asked = {f"{n.module}.{a.name}" if f"{n.module}.{a.name}" in name else n.module for n in froms for a in n.names}
        asked |= {a.name for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Import) for a in n.names}
        graph[module] = {m for m in asked if m in name and m != module}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


def test_no_two_modules_have_one_name() -> None:
    """But for verbs, which are called as they are typed, and a symptom that is a cause as well."""
    stems = [p.stem for p in FILES if not p.stem.startswith("__") and p.parent.name != "verbs"]
    assert {s for s in stems if stems.count(s) > 1} <= {"logger_artefact"}

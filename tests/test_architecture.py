"""The import arrows of the house, and what a new file must bring, held without being edited when a file is added."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from forensics import rules
from forensics.causes.files import NOTHING, Cause, causes
from forensics.causes.weigh import PRIOR, UNEXPLAINED, weights
from forensics.signs.sign import looks, subject

ROOT = Path(__file__).resolve().parent.parent
OURS = {"parsers", "forensics", "reports"}
HEADINGS = ["What it sees", "How it decides", "Cannot tell", "Folklore"]


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def ours(path: Path) -> set[str]:
    return {i.split(".")[0] for i in imports(path)} & OURS


@pytest.mark.parametrize(("package", "allowed"), [("parsers", {"parsers"}), ("reports", {"reports"})])
def test_parsers_and_reports_import_nobody_else_of_ours(package: str, allowed: set[str]) -> None:
    files = list((ROOT / package).rglob("*.py"))
    assert files
    for path in files:
        assert ours(path) <= allowed, path


def test_only_the_command_line_and_what_python_users_call_import_reports() -> None:
    importers = {p.relative_to(ROOT / "forensics").parts[0] for p in (ROOT / "forensics").rglob("*.py") if "reports" in ours(p)}
    assert importers == {"verbs", "api.py", "notebook.py"}


def test_every_detector_has_its_docstring_and_its_function() -> None:
    modules = rules.detectors()
    assert len(modules) >= 30
    for module in modules:
        doc = module.__doc__ or ""
        for heading in HEADINGS:
            assert f"\n{heading}\n" in doc, f"{module.__name__} lacks the heading {heading}"
        for name in ("NEEDS", "Facts", "detect"):
            assert hasattr(module, name), f"{module.__name__} lacks {name}"
        looks_at = [*module.NEEDS, *getattr(module, "INPUTS", ())]
        assert looks_at or "CannotTell(" not in inspect.getsource(module), (
            f"{module.__name__} lacks INPUTS: what was missing where it cannot tell"
        )


@pytest.mark.parametrize("cause", causes().values(), ids=lambda c: c.id)
def test_every_cause_names_signs_that_there_are(cause: Cause) -> None:
    named = {*cause.for_, *cause.against, *(n for effect in cause.explains for n in (*effect.signs, *effect.unless))}
    assert named <= looks().keys()
    assert not set(cause.for_) & set(cause.against)
    if cause.id != NOTHING:
        assert cause.explains and cause.about and cause.settle and cause.interventions and cause.folklore
        others = {subject(n) for n in cause.for_} - {subject(n) for effect in cause.explains for n in effect.signs}
        assert len(cause.for_) > 1 or others, "it restates its symptom"


def test_every_sign_says_what_it_sees_and_some_cause_reasons_from_it() -> None:
    used = {n for c in causes().values() for n in (*c.for_, *c.against, *(n for e in c.explains for n in (*e.signs, *e.unless)))}
    assert set(looks()) <= used
    assert [name for name, look in looks().items() if not (look.__doc__ or "").strip()] == []


def test_every_weight_is_of_a_cause_and_one_of_its_signs() -> None:
    for cause, sign in weights():
        assert sign in (PRIOR, UNEXPLAINED, *causes()[cause].signs)


def test_every_parser_says_what_it_reads() -> None:
    import parsers

    assert len(parsers.modules()) >= 8
    for module in parsers.modules():
        assert (module.__doc__ or "").strip(), module.__name__


def test_heavy_packages_are_not_imported_at_start() -> None:
    heavy = {"wandb", "tbparse", "tensorboard", "sklearn", "pandas", "torch", "scipy"}
    for package in OURS:
        for path in (ROOT / package).rglob("*.py"):
            tree = ast.parse(path.read_text("utf-8"))
            top = [n for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom))]
            names = {a.name.split(".")[0] for n in top if isinstance(n, ast.Import) for a in n.names}
            names |= {n.module.split(".")[0] for n in top if isinstance(n, ast.ImportFrom) and n.module}
            assert not names & heavy, path


def test_every_module_imports() -> None:
    for package in OURS:
        for module in pkgutil.walk_packages([str(ROOT / package)], f"{package}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)

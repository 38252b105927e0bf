"""What is declared is imported, and what is imported is declared: pyproject.toml against every import of the product."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
MODULES = {"pyyaml": "yaml", "google-crc32c": "google_crc32c", "pillow": "PIL"}  # where it is not the package's name
CHECKED = {"typing_extensions"}  # by the type checker alone
THEIRS = {
    "datasets",
    "keras",
    "lightning",
    "peft",
    "pytorch_lightning",
    "transformers",
}  # of the training environment: replay's adapters, callbacks


def modules(requirements: list[str]) -> set[str]:
    names = [re.split(r"[\[<>=!~; ]", r)[0].lower() for r in requirements]
    return {MODULES.get(n, n) for n in names}


def imported() -> set[str]:
    found = set()
    for path in (p for package in ("forensics", "parsers", "reports") for p in (ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                found |= {a.name.split(".")[0] for a in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.split(".")[0])
            elif (
                isinstance(node, ast.Call)
                and ast.unparse(node.func) == "importlib.import_module"
                and isinstance(node.args[0], ast.Constant)
            ):
                found.add(str(node.args[0].value).split(".")[0])
    return found - set(sys.stdlib_module_names) - {"forensics", "parsers", "reports"}


def test_every_dependency_is_imported_and_every_import_is_declared() -> None:
    base = modules(PROJECT["dependencies"])
    extras = set().union(*(modules(r) for name, r in PROJECT["optional-dependencies"].items() if name not in ("test", "all")))
    assert base <= imported()
    assert imported() - base - extras - THEIRS - CHECKED <= {"distributed"}, "imported, not declared"


def test_the_base_install_has_no_tracker_and_no_pandas() -> None:
    assert not modules(PROJECT["dependencies"]) & {"pandas", "tensorboard", "tbparse", "wandb", "torch", "protobuf"}


def test_every_extra_says_what_it_is_for() -> None:
    from forensics.installation import FOR

    extras = PROJECT["optional-dependencies"].keys() - {"test", "all"}
    assert FOR.keys() == extras
    assert [e for e in extras if f"`{e}`" not in (ROOT / "README.md").read_text("utf-8")] == []


def test_remote_file_systems_have_lower_bounds() -> None:
    assert all(">=" in r for r in PROJECT["optional-dependencies"]["remote"])

"""The house: a cause is known in one file only; the others ask it (``forensics.rules.said``)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from forensics import rules

ROOT = Path(__file__).resolve().parent.parent
FILES = {
    p: p.read_text("utf-8")
    for room in ("forensics", "parsers", "reports")
    for p in sorted((ROOT / room).rglob("*.py"))
    if "vendor" not in p.parts
}
IDS = [i for i in map(rules.id_of, rules.modules("causes")) if "_" in i and i != "logger_artefact"]  # a detector has that name, too


@pytest.mark.parametrize("cause", IDS)
def test_a_cause_is_named_in_its_own_file_only(cause: str) -> None:
    named = re.compile(rf"['\"\s]{cause}['\"\s]")
    assert [str(p.relative_to(ROOT)) for p, text in FILES.items() if p.stem != cause and named.search(text)] == []


def test_no_cause_imports_another() -> None:
    for path, text in FILES.items():
        if path.parent.name == "causes":
            assert not re.search(r"^from forensics\.causes", text, re.M), path

"""A short run of the fuzzer on every parser from its saved seeds, the same in every run; what longer runs found are cases."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import parsers
from hostile import fuzz


def test_every_parser_has_seeds() -> None:
    assert {parsers.name_of(m) for m in parsers.modules()} <= {p.name for p in (fuzz.HERE / "seeds").iterdir()}


@pytest.mark.parametrize("name", sorted(p.name for p in (fuzz.HERE / "seeds").iterdir()))
def test_short_run(name: str) -> None:
    done, found = fuzz.run(name, runs=150, seed=11, seconds=3600)
    assert done == 150
    assert [what for what, _ in found] == []


def test_seeds_are_read_and_mutations_differ() -> None:
    known = fuzz.seeds("jsonl")
    rng = random.Random(1)
    made = {fuzz.mutated(known[0], known, rng) for _ in range(200)}
    assert len(made) > 180 and all(len(m) <= 1 << 16 for m in made)


def test_the_fuzzer_notices(monkeypatch: pytest.MonkeyPatch) -> None:
    """A parser that breaks on a byte is found."""
    from parsers import jsonl

    def breaks(path: object) -> list[object]:
        if b"\xff" in Path(str(path)).read_bytes():
            raise KeyError("boom")
        return []

    monkeypatch.setattr(jsonl, "parse", breaks)
    _, found = fuzz.run("jsonl", runs=300, seed=1)
    assert [what for what, _ in found if "KeyError" in what]

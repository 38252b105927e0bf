"""A short run of the fuzzer on every parser from its saved seeds, the same in every run; what longer runs found are cases."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import parsers
from hostile import fuzz, targets


def test_every_target_has_seeds() -> None:
    assert {p.name for p in (fuzz.HERE / "seeds").iterdir()} == set(targets.names())
    assert {parsers.name_of(m) for m in parsers.modules()} <= set(targets.names())


@pytest.mark.parametrize("name", targets.names())
def test_seeds_as_they_are(name: str, tmp_path: Path) -> None:
    """What longer runs found (`found_...`) is among them."""
    once = targets.target(name, tmp_path)
    for data in fuzz.seeds(name):
        once(data)


@pytest.mark.parametrize("name", targets.names())
def test_short_run(name: str) -> None:
    runs = 8 if name in ("hdf5", "keras") else 100  # these start a process each
    done, found = fuzz.run(name, runs=runs, seed=11, seconds=3600)
    assert done == runs
    assert [what for what, _ in found] == []


def test_seeds_are_read_and_mutations_differ() -> None:
    known = fuzz.seeds("jsonl")
    rng = random.Random(1)
    made = {fuzz.mutated(known[0], known, rng) for _ in range(200)}
    assert len(made) > 180 and all(len(m) <= 1 << 16 for m in made)


def test_the_fuzzer_notices(monkeypatch: pytest.MonkeyPatch) -> None:
    """A parser that breaks on a byte is found."""
    from parsers.formats import jsonl

    def breaks(path: object) -> list[object]:
        if b"\xff" in Path(str(path)).read_bytes():
            raise KeyError("boom")
        return []

    monkeypatch.setattr(jsonl, "parse", breaks)
    _, found = fuzz.run("jsonl", runs=300, seed=1)
    assert [what for what, _ in found if "KeyError" in what]

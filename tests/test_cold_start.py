"""Programs of the user get their own environment, not the one that makes our process start quickly."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import pytest

from forensics import cold_start

THREADS = "OPENBLAS_NUM_THREADS"


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    threshold = gc.get_threshold()
    monkeypatch.setenv(THREADS, "3")  # so that monkeypatch sets back what the test changes
    monkeypatch.setattr(cold_start, "_ours", set())
    yield
    gc.set_threshold(*threshold)


def test_what_we_set_is_not_handed_on() -> None:
    del os.environ[THREADS]
    cold_start.prepare()
    assert os.environ[THREADS] == "1"
    assert THREADS not in cold_start.environment()
    assert cold_start.environment()["PATH"] == os.environ["PATH"]


def test_what_the_user_set_stays_and_is_handed_on() -> None:
    cold_start.prepare()
    assert os.environ[THREADS] == cold_start.environment()[THREADS] == "3"


def test_fewer_collections_and_the_older_generations_as_python_has_them() -> None:
    before = gc.get_threshold()
    cold_start.prepare()
    assert gc.get_threshold()[0] > before[0]
    assert gc.get_threshold()[1:] == before[1:]

"""Work on many items by an engine. A run that ends its worker twice, the second time alone, costs itself only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from forensics.errors import ForensicsError

T = TypeVar("T")
Task = Callable[[T], str]
_DIED = "the process that worked at it died"
Ended = tuple[str, str]  # the key of an item, and why it has no result: empty where it has one


@dataclass(frozen=True)
class Work(Generic[T]):
    """A task for every item (key -> item)."""

    items: dict[str, T]
    task: Task[T]
    done: Callable[[str], bool]  # is the result of a key there?
    give_up: Callable[[T, str, bool], None]  # notes an item that has no result, why, and whether it is the item that ends its worker
    tick: Callable[[int], None]  # hears how many are finished
    take: Callable[[str], str] = str  # takes what a task gave back; -> the key of its item


@dataclass(frozen=True)
class Engine:
    """How the task is done for some items of a work, each told as it ends; and the folder of the notes of workers on this machine.

    ``stream`` raises ForensicsError where the engine itself is lost, or a task raises one.
    """

    stream: Callable[[Work[Any], dict[str, Any]], Iterator[Ended]]
    notes: Path


def run(work: Work[T], engine: Engine) -> None:
    """Does the work. What has no result is tried again, alone, and given up if it has none then."""
    finished, again = 0, []
    for key, why in engine.stream(work, work.items):
        if why and not work.done(key):
            again.append(key)
            continue
        finished += 1
        work.tick(finished)
    for n, key in enumerate(again, finished + 1):
        _alone(work, engine, key)
        work.tick(n)


def _alone(work: Work[T], engine: Engine, key: str) -> None:
    why = ""
    if not _hung(engine.notes, key):
        why = dict(engine.stream(work, {key: work.items[key]})).get(key, "")
    if not work.done(key):
        hung = _hung(engine.notes, key)
        work.give_up(work.items[key], hung or why or "it gave no result", bool(hung) or why.startswith(_DIED))
    for note in engine.notes.glob("now-*"):
        note.unlink(missing_ok=True)


def failure(e: BaseException, *, death: bool) -> str:
    """Why an item has no result. Raises the ForensicsError of a task, which is of the audit and not of the item."""
    if isinstance(e, ForensicsError):
        raise e
    if death:
        return f"{_DIED} ({type(e).__name__}): killed, or out of memory"
    return f"{type(e).__name__}: {e}"[:400]


def _hung(notes: Path, key: str) -> str:
    """Why the watchdog ended a worker; empty where it did not."""
    trace = notes / f"hung-{key}"
    try:
        text = trace.read_text(errors="replace")
    except OSError:
        return ""
    if "Timeout" not in text:
        return ""
    places = [line.strip() for line in text.splitlines() if line.strip().startswith("File")]
    return f"took too long and was ended{'; it was at ' + places[0] if places else ''}"

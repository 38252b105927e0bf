"""What a worker has answered, kept on disk: a second start goes on where the first one stopped.

A replay decides by the answers alone, so the same replay asks the same things. Each line of the journal is one command that was
answered whole. A command is known by what it does to what: its words, and in place of the names of states how these were made.
States themselves are not kept. One that a new command needs is made again by the command that made it, whose first loss must be
the one in the journal.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from forensics.errors import ForensicsError
from forensics.replays.client import ReplayFailed, Worker
from forensics.version import VERSION
from parsers.walk import is_regular

SAME = 1e-3  # of a loss: kernels and machines differ by roundings in one step, other data or code by far more
BUILT = "built"  # the state that every worker has
Step = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Recipe:
    """How a state was made: the command, its key, the states it needed (by name, as they were), and the first loss it gave."""

    key: str
    op: str
    arguments: dict[str, Any]
    needs: dict[str, str]
    first: float | None


class Remembering:
    """A worker that answers from a journal what the journal knows, and writes the rest into it. ``known``: steps that were not run again."""

    def __init__(self, worker: Worker, path: Path, of: str) -> None:
        self._worker, self._path, self._of = worker, path, of
        self._answers = dict(_read(path, of))
        self._seen: Counter[str] = Counter()
        self._made = {BUILT: of}  # name -> how the state of that name was made, as a digest
        self._recipes: dict[str, Recipe] = {}
        self._live = {BUILT: of}  # the states that this worker has
        self._file: IO[str] | None = None
        self._again, self._again_seconds = 0, 0.0  # steps that made states once more
        self.known, self._known_seconds = 0, 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._worker, name)

    @property
    def steps(self) -> int:
        return self._worker.steps - self._again + self.known

    @property
    def seconds(self) -> float:
        return self._worker.seconds - self._again_seconds + self._known_seconds

    def ask(self, op: str, on_step: Step | None = None, **arguments: Any) -> dict[str, Any]:
        """The answer to a command, with each of its steps told to `on_step`. Raises ReplayFailed."""
        needs = {name: self._made[name] for name in _needed(arguments)}
        key = self._key(op, arguments, needs)
        if key in self._answers:
            rows, done = self._answers[key]
            self.known += len(rows)
            self._known_seconds += done.get("seconds", 0.0)
            for row in rows if on_step else []:
                on_step(row)  # type: ignore[misc]
        else:
            for name, made in needs.items():
                self._make(name, made)
            rows = []
            done = self._worker.ask(op, lambda row: _both(rows, on_step, row), **arguments)
            self._write({"key": key, "steps": rows, "done": done})
        recipe = Recipe(key, op, arguments, needs, rows[0]["loss"] if rows else None)
        for name, made in _kept(recipe):
            self._made[name] = made
            self._recipes[made] = recipe
            if key not in self._answers:
                self._live[name] = made
        return dict(done)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _key(self, op: str, arguments: dict[str, Any], needs: dict[str, str]) -> str:
        """Of a command and how often it was asked: identical replays are told apart."""
        text = json.dumps([op, arguments, needs, _stamp(arguments.get("path"))], sort_keys=True, default=str)
        digest = hashlib.sha256(text.encode()).hexdigest()
        self._seen[digest] += 1
        return f"{digest} {self._seen[digest]}"

    def _make(self, name: str, made: str) -> None:
        """A state that an earlier start had, in this worker: all that its command kept, as they are mostly asked for together."""
        if self._live.get(name) == made:
            return
        recipe = self._recipes[made]
        for needed, how in recipe.needs.items():
            self._make(needed, how)
        rows: list[dict[str, Any]] = []
        before = self._worker.steps, self._worker.seconds
        self._worker.ask(recipe.op, rows.append, **recipe.arguments)
        self._again += self._worker.steps - before[0]
        self._again_seconds += self._worker.seconds - before[1]
        if rows and recipe.first is not None and _apart(float(rows[0]["loss"]), float(recipe.first)):
            raise ReplayFailed(
                f"the first step of {name!r} gives a loss of {rows[0]['loss']}, where {self._path.name} has {recipe.first}: data or code have "
                f"changed since; delete {self._path} and begin anew",
                kind="files",
            )
        self._live |= dict(_kept(recipe))

    def _write(self, line: dict[str, Any]) -> None:
        """Appended at once: what a killed replay had learned stays. A disk that is full costs the journal, not the replay."""
        try:
            if self._file is None:
                self._file = _opened(self._path, self._of, new=not self._answers)
            self._file.write(json.dumps(line) + "\n")
            self._file.flush()
        except OSError:
            self._file = open(os.devnull, "w")  # noqa: SIM115


Answering = Worker | Remembering


def remembering(worker: Worker, path: Path, about: dict[str, Any], asked: list[Any]) -> Remembering:
    """The worker with the journal of an earlier start of this replay, or with a new one.

    It is the same replay where all is the same that the answers depend on: this version, the code of the adapter and beside it,
    what the worker says of itself (``about``), and what the user asked for (``asked``).
    """
    files = (worker.adapter, *(worker.adapter.parent / b for b in worker.beside))
    code = [hashlib.sha256(f.read_bytes()).hexdigest() for f in files if f.is_file()]
    text = json.dumps([VERSION, code, {k: v for k, v in about.items() if k != "seconds"}, asked], sort_keys=True, default=str)
    return Remembering(worker, path, hashlib.sha256(text.encode()).hexdigest())


def _both(rows: list[dict[str, Any]], on_step: Step | None, row: dict[str, Any]) -> None:
    rows.append(row)
    if on_step:
        on_step(row)


def _needed(arguments: dict[str, Any]) -> list[str]:
    """The states that a command begins from or takes a part of."""
    further = [arguments[key][1] for key in ("moments", "settings") if arguments.get(key)]
    return [arguments["state"], *further] if "state" in arguments else []


def _kept(recipe: Recipe) -> Iterator[tuple[str, str]]:
    """(name, how it was made) of the states that a command keeps."""
    kept = {"start": recipe.arguments["name"]} if recipe.op == "start" else recipe.arguments.get("keep") or {}
    for where, name in kept.items():
        yield name, hashlib.sha256(f"{recipe.key} {where}".encode()).hexdigest()


def _stamp(path: str | None) -> Any:
    """Sizes and times of a checkpoint's files: another file under its name is another checkpoint."""
    if path is None or not os.path.exists(path):
        return None
    files = sorted(Path(path).iterdir()) if os.path.isdir(path) else [Path(path)]
    return [[f.name, f.stat().st_size, f.stat().st_mtime_ns] for f in files]


def _apart(a: float, b: float) -> bool:
    return a == a and b == b and abs(a - b) > SAME * max(abs(a), abs(b)) + 1e-7


def _read(path: Path, of: str) -> Iterator[tuple[str, tuple[list[Any], dict[str, Any]]]]:
    """The answers of a journal of this very replay; none of another one, whose place the new one takes. Raises ForensicsError where the
    file is none of ours."""
    if not os.path.lexists(path):
        return
    try:
        lines = path.read_text("utf-8").splitlines() if is_regular(path) else []
        head = json.loads(lines[0])["forensics_replay_journal"]
    except (OSError, ValueError, KeyError, TypeError, IndexError) as e:
        raise ForensicsError(f"{path} is no journal of a replay: left as it is", "Give another name with --out.") from e
    for line in lines[1:] if head == of else []:
        with suppress(ValueError, KeyError, TypeError):  # half a line of a replay that was killed
            found = json.loads(line)
            yield found["key"], (found["steps"], found["done"])


def _opened(path: Path, of: str, *, new: bool) -> IO[str]:
    if not new:
        whole = path.read_bytes().rpartition(b"\n")[0]  # without the half line of one that was killed
        os.truncate(path, len(whole) + 1)
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | (os.O_TRUNC if new else 0)
    file = os.fdopen(os.open(path, flags, 0o600), "a", encoding="utf-8")
    if new:
        file.write(json.dumps({"forensics_replay_journal": of}) + "\n")
    return file

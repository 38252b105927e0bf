"""Restarts, rollbacks and overlaps as a state machine: whatever order things happen in, no row is lost and attempts stay in order."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import parsers


class Training(RuleBasedStateMachine):
    """A run that trains, dies, comes back from a checkpoint, and writes to files of several formats."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name) / "run"
        self.root.mkdir()
        self.rows: Counter[tuple[str, int]] = Counter()
        self.count = self.step = self.launches = 0
        self.clock = 1.7e9
        self.checked = (-1, 0)
        self.name = "log.jsonl"
        self.torn = 0

    @initialize(timed=st.booleans())
    def begin(self, timed: bool) -> None:
        self.timed = timed
        self.train(5)

    def _row(self, name: str, tag: str, step: int) -> None:
        self.count += 1
        self.clock += 1
        row = {"step": step, tag: 2.0 + self.count / 1024} | ({"time": self.clock} if self.timed else {})
        with (self.root / name).open("a") as f:
            f.write(json.dumps(row) + "\n")
        self.rows[tag, step] += 1

    @rule(steps=st.integers(1, 40))
    def train(self, steps: int) -> None:
        for _ in range(steps):
            self._row(self.name, "loss", self.step)
            self.step += 1

    @rule(back=st.integers(0, 60), new_file=st.booleans(), pause=st.integers(0, 100_000))
    def restart(self, back: int, new_file: bool, pause: int) -> None:
        """From a checkpoint some steps back, into the same file or the next."""
        self.step = max(0, self.step - back)
        self.clock += pause
        self.launches += 1
        if new_file:
            self.name = f"log_{self.launches}.jsonl"
        self.train(3)

    @rule()
    def evaluate(self) -> None:
        self._row("eval.jsonl", "val/loss", self.step)

    @rule()
    def tear(self) -> None:
        """A crash in the middle of a line, and the next launch goes on behind it."""
        with (self.root / self.name).open("a") as f:
            f.write('{"step": 7, "loss": 1.' + "\n")
        self.torn += 1

    @invariant()
    def nothing_is_lost(self) -> None:
        if self.checked == (self.count, self.torn) or not self.count:
            return
        self.checked = (self.count, self.torn)
        runs = parsers.read_all(self.root)
        found: Counter[tuple[str, int]] = Counter()
        merged = 0
        for run in runs:
            table = run.tables["metrics"].to_pylist()
            found.update((r["tag"], r["step"]) for r in table)
            merged += run.merged
            attempts = run.attempts
            assert [attempt["index"] for attempt in attempts] == list(range(len(attempts)))
            known = {attempt["index"] for attempt in attempts}
            assert {r["attempt"] for r in table if r["attempt"] is not None} <= known
            for attempt in attempts:
                mine = [r["step"] for r in table if r["attempt"] == attempt["index"] and not r["name"].startswith("axis/")]
                assert not mine or attempt["steps"] == [min(mine), max(mine)]
            starts = [attempt["started"] for attempt in attempts if attempt["started"] is not None]
            assert starts == sorted(starts)
            per_file: dict[str, int] = {}
            for r in table:  # in a file, attempts only go on
                if r["tag"] == "loss":
                    assert r["attempt"] >= per_file.get(r["source"], 0)
                    per_file[r["source"]] = r["attempt"]
        assert sum(found.values()) + merged == sum(self.rows.values())
        assert not found - self.rows
        assert sum(g.lost or 0 for run in runs for g in run.gaps) >= self.torn

    def teardown(self) -> None:
        self.folder.cleanup()


TestTraining = Training.TestCase
TestTraining.settings = settings(max_examples=12, stateful_step_count=10, deadline=None)

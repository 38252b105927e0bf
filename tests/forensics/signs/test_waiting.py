"""Signs of processes that wait: time-outs, silence, ranks that stop first, and the echo of a crash."""

from __future__ import annotations

from pathlib import Path

import pytest
from runs import START, loss, make, read, write

from forensics.detectors import rank_disagreement, stall
from forensics.errors import CannotTell
from forensics.signs import waiting
from forensics.signs.sign import ABSENT, CANNOT_TELL, SEEN, Sign, Symptoms

WORK = (
    "[rank{rank}]:[E626 06:24:44.903881913 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught collective operation timeout:"
    " WorkNCCL(SeqNum=808, OpType={what}, NumelIn=12, NumelOut=12, Timeout(ms)=600000) ran for 600020 milliseconds before timing out.\n"
)
SAME = WORK.format(rank=0, what="ALLREDUCE") + WORK.format(rank=1, what="ALLREDUCE")
OTHERS = WORK.format(rank=0, what="BROADCAST") + WORK.format(rank=1, what="ALLREDUCE")
CRASH = (
    "Traceback (most recent call last):\n  File \"/src/train.py\", line 42, in step\n    x = f(x)\nKeyError: 'val'\n"
    "[W421 06:41:15.923580207 TCPStore.cpp:106] [c10d] sendBytes failed on SocketImpl(fd=92): Broken pipe\n"
)
DONE = "Training completed\n"


def looked(sign: str, folder: Path) -> Sign:
    run = read(folder)
    findings = []
    for detector in (stall, rank_disagreement):
        try:
            findings += list(detector.detect(run))
        except CannotTell:
            continue
    found: Sign = getattr(waiting, sign)(Symptoms(run, tuple(findings)))
    assert found.text.endswith("."), found
    return found


@pytest.mark.parametrize(("sign", "log", "state", "word"), [
    ("collective_timed_out", SAME, SEEN, "wait for each other"),
    ("collective_timed_out", CRASH, ABSENT, "broken connections"),
    ("collective_timed_out", DONE, ABSENT, "No line speaks"),
    ("collective_timed_out", "", CANNOT_TELL, "no line says"),
    ("hang_kind_known", OTHERS, SEEN, "rank 0 waits in BROADCAST"),
    ("hang_kind_known", SAME, CANNOT_TELL, "neither lines"),
    ("hang_kind_known", DONE, CANNOT_TELL, "no silence"),
    ("connection_echo", CRASH, SEEN, "KeyError"),
    ("connection_echo", SAME, ABSENT, "2 of 2"),
    ("connection_echo", DONE, CANNOT_TELL, "no line"),
])  # fmt: skip
def test_what_the_log_says(tmp_path: Path, sign: str, log: str, state: str, word: str) -> None:
    found = looked(sign, write(tmp_path / "r", log=log))
    assert found.state == state and word in found.text, found


def test_silence(tmp_path: Path) -> None:
    rows = [{"step": i, "loss": loss(i), "time": START + i} for i in range(1, 201)]
    alive = [{"gpu_util": 99, "time": START + 200 + i} for i in range(0, 4000, 100)]
    later = [{"step": i, "loss": loss(i), "time": START + 4000 + i} for i in range(201, 300)]
    no_clock = [{k: v for k, v in r.items() if k != "time"} for r in rows]
    table = {
        "hung": (rows + alive, SEEN),
        "held": (rows + later, CANNOT_TELL),
        "calm": (rows, CANNOT_TELL),
        "no_clock": (no_clock, CANNOT_TELL),
    }
    for name, (logged, end) in table.items():
        assert looked("silence_before_end", make(tmp_path / name, logged)).state == end, name
    assert looked("silence_before_end", tmp_path / "hung").numbers["minutes"] == 65


@pytest.mark.parametrize(("text", "state"), [("round 30: waiting, 7 of 8 updates received", SEEN), ("pid 4242 is alive", ABSENT)])
def test_a_wait_that_the_last_line_tells(text: str, state: str, tmp_path: Path) -> None:
    def line(seconds: int, said: str) -> str:
        return f"[08:{seconds // 60:02d}:{seconds % 60:02d}] {said}\n"

    steps = "".join(line(6 * i, f"step {i} loss {loss(i):.3f}") for i in range(1, 31))
    (tmp_path / "server.log").write_text(steps + "".join(line(180 + s, text) for s in range(60, 1300, 120)))
    found = looked("collective_timed_out", tmp_path)
    assert found.state == state and text in found.text, found

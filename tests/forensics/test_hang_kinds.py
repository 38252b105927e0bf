"""Kinds of hang, from the words of torch's watchdog, wrapper, launcher and loader, of the kernel, and from the metrics."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from runs import START, case, only, read, top, write

import forensics
from forensics.detectors import stall
from forensics.run.how_it_ended import ending

LATER = "2026-06-06T13:49:25"


def work(rank: int, sequence: int, operation: str, numbers: int = 9801523, second: int = 44) -> str:
    return (
        f"[rank{rank}]:[E626 06:24:{second}.903881913 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught collective operation timeout:"
        f" WorkNCCL(SeqNum={sequence}, OpType={operation}, NumelIn={numbers}, NumelOut={numbers}, Timeout(ms)=600000) ran for 600020"
        " milliseconds before timing out.\n"
    )


def state(rank: int, at: int, enqueued: int, completed: int) -> str:
    return (
        f"[rank{rank}]:[E626 06:24:44.906457629 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank {rank}] Exception (either an"
        f" error or timeout) detected by watchdog at work: {at}, last enqueued NCCL work: {enqueued}, last completed NCCL work: {completed}.\n"
    )


PRINTS = (
    "[rank1]: RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: CollectiveFingerPrint("
    "SequenceNumber=101, OpType=ALLGATHER, TensorShape=[1], TensorDtypes=Long), but Rank 7 is running collective:"
    " CollectiveFingerPrint(SequenceNumber=0OpType=REDUCE).Collectives differ in the following aspects: Op type: ALLGATHERvs REDUCE\n"
)
ELASTIC = (
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\ntrain.py FAILED\nRoot Cause (first observed failure):\n[0]:\n"
    "  time      : 2026-06-06_13:49:25\n  host      : n1\n  rank      : 3 (local_rank: 3)\n  exitcode  : -6 (pid: 4242)\n"
)


@pytest.mark.parametrize(("log", "kind", "word"), [
    (work(0, 808, "BROADCAST", 5056) + work(1, 808, "ALLREDUCE", 2106881), "mismatch", "rank 0 waits in BROADCAST"),
    (work(0, 808, "ALLREDUCE", 12) + work(1, 808, "ALLREDUCE", 99), "mismatch", "rank 1 in ALLREDUCE of 99"),
    (PRINTS, "mismatch", "rank 1 ran ALLGATHER, rank 7 ran REDUCE"),
    (work(0, 808, "ALLREDUCE") + state(0, 808, 811, 807) + state(1, 808, 811, 807) + state(2, 790, 792, 789), "rank_missing", "Rank 2 had started 792"),
    ("RuntimeError: [Rank 0]: Ranks 1 failed to pass monitoredBarrier in 30000 ms\n", "rank_missing", "The barrier names it"),
    ("RuntimeError: Detected at least one rank that exhausted inputs. Throwing across all ranks.\n", "uneven_data", "exhausted"),
    ("RuntimeError: DataLoader timed out after 600 seconds\n", "loader", "workers"),
    (work(0, 8, "ALLREDUCE") + ELASTIC, "dead_rank", "first failure"),
    (work(0, 8, "ALLREDUCE") + "INFO: task python:4242 blocked for more than 120 seconds.\n", "storage", "storage"),
    (work(0, 8, "ALLREDUCE") + work(1, 8, "ALLREDUCE"), "open", ""),
])  # fmt: skip
def test_kind_from_the_words(tmp_path: Path, log: str, kind: str, word: str) -> None:
    found = only(list(stall.detect(read(write(tmp_path / "r", log=log)))))
    assert found.facts.kind == kind, found.facts
    assert word in found.facts.why


@pytest.mark.parametrize(("at", "told"), [(10, False), (31, True)])
def test_a_silence_within_which_a_launch_begins_lies_between_two_processes(tmp_path: Path, at: int, told: bool) -> None:
    """Where what the launch logs does not make an attempt of its own."""
    log = [f"2026-06-06 {13 + 2 * (i >= 30)}:{i // 2:02d}:{30 * (i % 2):02d} step {i} loss {3 - i / 40:.3f} lr 0.001\n" for i in range(60)]
    (tmp_path / "train.log").write_text("".join([*log[:30], "\n", *log[30:]]))
    run = read(tmp_path)
    event = {"source": "train.log", "at": at, "kind": "start", "level": "info", "text": "the log begins again as at its top", "attempt": 0}
    events = pa.Table.from_pylist([event], schema=run.tables["events"].schema)
    run.tables["events"] = pa.concat_tables([events, run.tables["events"]])
    (f,) = [f for f in stall.detect(run) if f.title.startswith("Silence")]
    assert (f.severity, "until another launch goes on" in f.title) == ("info", told)


def test_the_rank_that_says_nothing_is_the_missing_one(tmp_path: Path) -> None:
    log = "".join(work(r, 808, "ALLREDUCE") for r in range(8) if r != 5)
    found = only(list(stall.detect(read(write(tmp_path / "r", log=log, config={"world_size": 8})))))
    assert (found.facts.kind, found.facts.ranks) == ("rank_missing", "5")
    whole = write(tmp_path / "s", log=log + work(5, 808, "ALLREDUCE"), config={"world_size": 8})
    assert only(list(stall.detect(read(whole)))).facts.kind == "open"


def test_the_first_rank_to_die_is_the_root(tmp_path: Path) -> None:
    trace = '[rank2]: Traceback (most recent call last):\n[rank2]:   File "/src/train.py", line 7, in <module>\n[rank2]: ValueError: bad shard\n'
    found = only(list(stall.detect(read(write(tmp_path / "r", log=trace + work(0, 8, "ALLREDUCE") + work(1, 8, "ALLREDUCE"))))))
    assert (found.facts.kind, found.facts.ranks) == ("dead_rank", "2")
    after = read(write(tmp_path / "s", log=work(0, 8, "ALLREDUCE") + work(1, 8, "ALLREDUCE") + trace))
    assert only(list(stall.detect(after))).facts.kind == "open"


def silent(tmp_path: Path, log: str = "", **more: object) -> stall.Facts:
    """A run of 300 steps that is killed hours later."""
    end = f"slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT {LATER} DUE TO TIME LIMIT ***\n"
    return only(list(stall.detect(read(write(tmp_path / "r", log=log + end, **more))))).facts  # type: ignore[arg-type]


def test_silence_where_a_checkpoint_was_due(tmp_path: Path) -> None:
    log = "".join(f"saved checkpoints/step_{s}.pt\n" for s in (100, 200))
    assert silent(tmp_path, log).kind == "storage"


def test_silence_in_an_evaluation(tmp_path: Path) -> None:
    assert silent(tmp_path, "step 300 loss 1.50\n***** Running Evaluation *****\n").kind == "evaluation"


@pytest.mark.parametrize(("busy", "kind"), [(100, "collective"), (3, "host"), (55, "open")])
def test_what_the_gpus_did_meanwhile(tmp_path: Path, busy: int, kind: str) -> None:
    folder = write(tmp_path / "r")
    clock = [datetime.fromtimestamp(START + 60 * i, UTC).strftime("%Y-%m-%d %H:%M:%S") for i in range(90)]
    lines = [f"{c} pid=17145 alive rss=5.85G gpu_util={busy if i > 3 else 95}%\n" for i, c in enumerate(clock)]
    (folder / "monitor.log").write_text("".join(lines))
    assert only(list(stall.detect(read(folder)))).facts.kind == kind


def test_the_kind_is_in_answer_cause_and_interventions(tmp_path: Path) -> None:
    got = case(write(tmp_path / "r", log=work(0, 808, "BROADCAST", 5056) + work(1, 808, "ALLREDUCE", 2106881)))
    assert top(got)["id"] == "hang"
    assert top(got)["title"] == "Hang: ranks called different collectives"
    assert "ranks called different collectives" in got["answer"]
    assert "branch" in top(got)["interventions"][0]


def test_connections_that_break_in_a_crash_are_an_echo(tmp_path: Path) -> None:
    trace = 'Traceback (most recent call last):\n  File "/src/train.py", line 7, in <module>\nValueError: bad shard\n'
    echo = "[W321 03:53:34.507342514 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl: Connection was likely closed.\n"
    got = case(write(tmp_path / "r", log=trace + echo))
    assert [f["severity"] for f in got["findings"] if f["kind"] == "stall"] == ["info"]
    assert top(got)["id"] != "hang"


def test_a_socket_of_python_is_no_network_between_ranks(tmp_path: Path) -> None:
    """A loader's worker, a download: what breaks there is an exception of the program."""
    trace = 'Traceback (most recent call last):\n  File "/usr/lib/python3.11/multiprocessing/connection.py", line 379, in _recv\n    chunk = read(handle, remaining)\n'
    got = case(write(tmp_path / "r", log=trace + "ConnectionResetError: [Errno 104] Connection reset by peer\n"))
    assert got["answer"].startswith("Died") and "ConnectionResetError" in got["answer"]
    assert "stall" not in {f["kind"] for f in got["findings"]}


def test_an_error_that_explains_the_end_is_no_hang(tmp_path: Path) -> None:
    trace = '[rank2]: Traceback (most recent call last):\n[rank2]:   File "/src/train.py", line 7, in <module>\n[rank2]: torch.OutOfMemoryError: CUDA out of memory.\n'
    assert top(case(write(tmp_path / "r", log=trace + work(0, 8, "ALLREDUCE"))))["id"] == "out_of_memory"


@pytest.mark.parametrize(("processes", "waits"), [(1, False), (8, True)])
def test_one_process_alone_waits_for_no_other(tmp_path: Path, processes: int, waits: bool) -> None:
    run = read(write(tmp_path / "r", log=work(0, 808, "ALLREDUCE"), config={"world_size": processes, "lr": 1e-3, "seed": 1}))
    assert any(f.facts.said for f in stall.detect(run)) is waits


@pytest.mark.parametrize(("minutes", "hung"), [(40, True), (1, False)])
def test_heartbeats_that_a_program_logs_itself_are_signs_of_life(tmp_path: Path, minutes: int, hung: bool) -> None:
    """JSON lines: the process says every half minute that it lives, and no step comes."""
    steps = [{"ts": 1775116800.0 + i, "step": i, "loss": 2 / (1 + i)} for i in range(60)]
    beats = [{"ts": 1775116860.0 + 30 * i, "event": "heartbeat", "step": 59, "pid_alive": True} for i in range(2 * minutes)]
    (tmp_path / "rank0.jsonl").write_text("".join(json.dumps(r) + "\n" for r in [*steps, *beats]))
    assert (ending(forensics.read(str(tmp_path))).kind == "hang") == hung


def test_a_rounded_count_that_is_drawn_now_and_then_is_no_heartbeat(tmp_path: Path) -> None:
    """Ten of each hundred steps, and fourteen of the last."""
    begun = 1775116860.0
    rows = [{"time": begun + 10 * i, "step": 100 * min(i // 10, 6), "rate": 0.94} for i in range(74)]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    assert ending(read(tmp_path)).kind != "hang"


BEAT = "2026-06-06 09:{m:02d}:{s:02d} [rank1] INFO "


@pytest.mark.parametrize(("beats", "hung"), [(23, True), (8, True), (4, False)])
def test_heartbeats_in_a_file_of_their_own_that_name_the_last_step(tmp_path: Path, beats: int, hung: bool) -> None:
    """One in two seconds, in which forty steps were made; the log has a clock of another kind. Ten times the longest pause tells it."""
    begun = 1775116860.0
    rows = [{"time": begun + 2 * i, "pid": 4242, "last_step": min(40 * i, 437), "cpu_s": 2.0 * min(i, 11)} for i in range(11 + beats)]
    (tmp_path / "heartbeat.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    steps = (f"[2026-04-02 08:01:{i // 20:02d}] iter={i}/700 loss={3 - i / 400:.3f}\n" for i in range(10, 440, 10))
    (tmp_path / "train.log").write_text("".join(steps))
    assert (ending(read(tmp_path)).kind == "hang") == hung


@pytest.mark.parametrize(
    ("tag", "apart", "hung"), [("loss", 0.0, True), ("loss", 0.25, False), ("learning_rate", 0.01, False), ("rss", 0.25, True)]
)
def test_what_is_computed_anew_at_the_same_step_is_no_heartbeat(tmp_path: Path, tag: str, apart: float, hung: bool) -> None:
    rows = [{"ts": 1775116800.0 + i, "step": i, "loss": 2 - i / 100} for i in range(60)]
    again = [{"ts": 1775116860.0 + 30 * i, "step": 59, tag: 2 - 59 / 100 + apart * (i % 3)} for i in range(60)]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows + again))
    assert (ending(forensics.read(str(tmp_path))).kind == "hang") == hung


@pytest.mark.parametrize(
    ("beat", "beats", "hung"),
    [
        ("agent: heartbeat ok pid=13843", 20, True),
        ("heartbeat step=120 since_progress={n}.0s rss=345MB", 20, True),
        ("agent: heartbeat ok pid=13843", 3, False),
        ("loading the test set, shard {n}", 20, False),  # what a program does behind its training
    ],
)
def test_a_heartbeat_that_outlasts_the_last_step_tells_a_hang(beat: str, beats: int, hung: bool, tmp_path: Path) -> None:
    lines = [BEAT.format(m=i // 120, s=i // 2 % 60) + f"trainer: step {i}/700 loss={2 - i / 200:.4f}" for i in range(1, 121)]
    lines += [BEAT.format(m=1 + (3 * n) // 60, s=3 * n % 60) + beat.format(n=3 * n) for n in range(1, beats + 1)]
    (tmp_path / "rank1.log").write_text("\n".join(lines) + "\n")
    assert (ending(forensics.read(str(tmp_path))).kind == "hang") == hung

"""Which kind of hang it was: what the ranks said when they gave up, and what ran when the silence began.

The words are those of torch (ProcessGroupNCCL's watchdog, ProcessGroupWrapper's fingerprints, monitoredBarrier,
torchelastic's report of failures, the DataLoader) and of the kernel's hung-task check. Kinds: mismatch, rank_missing,
dead_rank, uneven_data, loader, storage, evaluation, collective, host, open.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from forensics.run import endings, ranks, settings, system_metrics
from forensics.run.series import series
from parsers.tables import Run

Event = dict[str, Any]
MANY_SAVES = 2  # a cadence of checkpoints needs as many, besides the one that hangs
BUSY, IDLE = 90.0, 15.0  # % load of the GPUs while nothing is logged

_RANK = re.compile(r"(?i)\brank[ :]+(\d+)\b")
_WORK = re.compile(r"WorkNCCL\(SeqNum=(\d+), OpType=(\w+)(?:, NumelIn=(\d+))?")
_STATE = re.compile(
    r"(?:\[PG (?:ID )?(\d++).{0,400}?)?(?:at work|NCCL work): (\d+), last enqueued NCCL work: (\d+), last completed NCCL work: (\d+)"
)
_PRINTS = re.compile(
    r"Rank (\d+) is running collective: (?>.{0,400}?OpType=)(\w++)(?>.{0,400}?but Rank (\d+) is running collective: ).{0,400}?(?:OpType=)?(\w++)[,)]"
)
_BARRIER = re.compile(r"Ranks? ([\d, ]+) failed to pass monitoredBarrier|send/recv from rank (\d+)")
_LOADER = re.compile(r"(?i)DataLoader (?:timed out|worker)|_next_data|_try_get_data|/dataloader\.py:")
LOADER_TIMEOUT = re.compile(r"DataLoader timed out after \d+ seconds")
_STORAGE = re.compile(
    r"(?i)blocked for more than \d+ seconds|not responding, (?:still|timed)|stale file handle|input/output error|\bLustre|No space left"
)
_EXHAUSTED = re.compile(r"(?i)rank that exhausted inputs|uneven inputs")
_FAILED_RANK = re.compile(r"\brank\s*: (\d+) \(local_rank|local_rank: (\d+) \(pid")


@dataclass(frozen=True)
class Kind:
    id: str
    words: str  # completes "Hang: ..."
    why: str
    do: tuple[str, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)


def said(run: Run) -> list[Event]:
    """The lines that speak of processes that wait: time-outs of collectives and of the loader."""
    waits = [e for e in endings.events(run, "traceback", "warning") if LOADER_TIMEOUT.search(str(e["text"]))]
    return [*endings.events(run, "nccl", "hang"), *waits]


def rank_of(e: Event) -> int | None:
    """The rank that a line speaks for: its prefix, else its words."""
    if e["rank"] is not None:
        return int(e["rank"])
    m = _RANK.search(str(e["text"]))
    return int(m[1]) if m else None


def roots(run: Run) -> list[Event]:
    """Errors that need no other failure to explain them, in the order of their clock (of the file, where none has one)."""
    found = [
        e
        for e in endings.events(run, "traceback", "oom", "hardware", "nonfinite")
        if e["level"] == "error" and not LOADER_TIMEOUT.search(str(e["text"]))
    ]
    return sorted(found, key=lambda e: e["time"]) if all(e["time"] is not None for e in found) else found


def of_run(run: Run, last: int | None) -> Kind:
    """The kind of the hang that began after step `last`."""
    waits = said(run)
    for judge in (_mismatch, _dead_rank, _missing):
        if (kind := judge(run, waits)) is not None:
            return kind
    for judge_run in (_uneven, _loader, _storage, _evaluation, _load):
        if (kind := judge_run(run, last)) is not None:
            return kind
    return Kind("open", "", "")


def _mismatch(run: Run, waits: Sequence[Event]) -> Kind | None:
    do = ("Compare the stacks of the two ranks: a collective is inside a branch that not all ranks take (`if rank == 0`, an early `continue`, a parameter without gradient).",
          "Launch with TORCH_DISTRIBUTED_DEBUG=DETAIL, which checks every collective on all ranks.")  # fmt: skip
    for e in waits:
        if (m := _PRINTS.search(str(e["text"]))) is not None:
            what = (
                f"rank {m[1]} ran {m[2]}, rank {m[3]} ran {m[4]}"
                if m[2] != m[4]
                else f"ranks {m[1]} and {m[3]} ran {m[2]} over other shapes"
            )
            return Kind("mismatch", "ranks called different collectives", f"At the same place {what}.", do)
        if "ismatched collective" in str(e["text"]):
            return Kind("mismatch", "ranks called different collectives", "NCCL reports collectives that do not match.", do)
    works: dict[int, dict[int, str]] = {}  # sequence number -> rank -> collective
    for e in waits:
        m, rank = _WORK.search(str(e["text"])), rank_of(e)
        if m is not None and rank is not None:
            works.setdefault(int(m[1]), {}).setdefault(rank, f"{m[2]}" + (f" of {m[3]} numbers" if m[3] else ""))
    for number, of in sorted(works.items()):
        if len(set(of.values())) > 1:
            (one, a), (other, b) = list({v: (r, v) for r, v in sorted(of.items(), reverse=True)}.values())[:2]
            return Kind(
                "mismatch",
                "ranks called different collectives",
                f"As collective {number}, rank {min(one, other)} waits in {a if one < other else b} and rank {max(one, other)} in {b if one < other else a}.",
                do,
            )
    return None


def _missing(run: Run, waits: Sequence[Event]) -> Kind | None:
    """A rank that never came to the collective in which the others wait."""
    do = ("Look at that rank's last lines and its node: it exited, or it is stuck elsewhere (loader, storage, a breakpoint).",)
    for e in waits:
        if (m := _BARRIER.search(str(e["text"]))) is not None:
            who = (m[1] or m[2]).strip()
            return Kind("rank_missing", f"rank {who} did not come to the barrier", "The barrier names it.", do, {"ranks": who})
    done: dict[str, dict[int, int]] = {}
    for e in waits:
        state, rank = _STATE.search(str(e["text"])), rank_of(e)
        if state is not None and rank is not None:
            done.setdefault(state[1] or "", {}).setdefault(rank, int(state[3]))
    for of in done.values():
        behind = [r for r, n in of.items() if n < max(of.values())]
        if len(of) > 1 and 0 < len(behind) <= len(of) // 2:
            names = ", ".join(map(str, sorted(behind)))
            return Kind(
                "rank_missing",
                f"rank {names} fell behind the others",
                f"Rank {names} had started {min(of.values())} collectives, the others {max(of.values())}.",
                do,
                {"ranks": names},
            )
    spoke = {r for e in waits if _WORK.search(str(e["text"])) and (r := rank_of(e)) is not None}
    world = settings.number(run, "world_size")
    size = int(world) if world and 1 < world <= 100_000 else 0
    silent = sorted(set(range(size)) - spoke)
    if len(spoke) > 1 and 0 < len(silent) <= min(len(spoke) // 2, 8):
        names = ", ".join(map(str, silent))
        return Kind(
            "rank_missing",
            f"rank {names} did not come",
            f"{len(spoke)} of {size} ranks timed out in a collective; rank {names} says nothing.",
            do,
            {"ranks": names},
        )
    return None


def _dead_rank(run: Run, waits: Sequence[Event]) -> Kind | None:
    """The earliest error, where the others' time-outs come after it."""
    errors = roots(run)
    failed = [m for e in endings.events(run, "warning", "signal") if (m := _FAILED_RANK.search(str(e["text"]))) is not None]
    if not errors and failed and waits:
        who = failed[0][1] or failed[0][2]
        return Kind(
            "dead_rank",
            f"the others wait for rank {who}, which died first",
            "The launcher names it as the first failure.",
            ("Read the last lines of that rank.",),
            {"ranks": who},
        )
    if not errors or not waits:
        return None
    first = errors[0]
    clocks = [e["time"] for e in waits if e["time"] is not None]
    after = (
        first["time"] <= min(clocks)
        if first["time"] is not None and clocks
        else all((first["at"] or 0) <= (e["at"] or 0) for e in waits if e["source"] == first["source"])
    )
    rank = rank_of(first)
    if not after:
        return None
    who = f"rank {rank}" if rank is not None else "one rank"
    why = f"The first error is that of {who}: {str(first['text']).splitlines()[-1][:100]}"
    return Kind(
        "dead_rank",
        f"the others wait for {who}, which died first",
        why,
        ("Fix the first error; the time-outs of the others follow from it.",),
        {"ranks": str(rank)},
    )


def _uneven(run: Run, last: int | None) -> Kind | None:
    do = ("Give all ranks the same number of batches (drop_last, DistributedSampler), or use Join.",)
    if any(_EXHAUSTED.search(str(e["text"])) for e in endings.events(run, "nccl", "traceback", "warning")):
        return Kind("uneven_data", "one rank ran out of data", "torch says that a rank exhausted its inputs.", do)
    reach = ranks.last_steps(run)
    if reach and max(reach.values()) > min(reach.values()):
        short = [r for r, s in reach.items() if s == min(reach.values())]
        every = series(run, "loss.train")
        if max(reach.values()) - min(reach.values()) >= 2 * (every.interval if every is not None else 1):
            return Kind(
                "uneven_data",
                f"rank {short[0]} stopped earlier than the others",
                f"The last step of rank {short[0]} is {min(reach.values())}, that of others {max(reach.values())}.",
                (*do, "Read the last lines of that rank."),
                {"ranks": str(short[0])},
            )
    finished = {e["rank"] for e in endings.events(run, "finished") if e["rank"] is not None}
    waiting = {r for e in said(run) if (r := rank_of(e)) is not None}
    if finished and waiting - finished:
        return Kind(
            "uneven_data",
            "some ranks had finished while others waited",
            f"Rank {min(finished)} says that it finished; rank {min(waiting - finished)} waits.",
            do,
        )
    return None


def _loader(run: Run, last: int | None) -> Kind | None:
    do = (
        "Run with num_workers=0 for a while: it continues, or it shows the stack.",
        "Set a timeout for the DataLoader, and persistent storage of open files (ulimit -n).",
    )
    if any(_LOADER.search(str(e["text"])) for e in endings.events(run, "traceback", "warning", "nccl")):
        return Kind("loader", "the data loader's workers are stuck", "The log speaks of the loader's workers.", do)
    return None


def _storage(run: Run, last: int | None) -> Kind | None:
    do = ("Look at the file system of that time (dmesg, df, the storage's own log).", "Save to a local disk first, and copy from there.")
    if any(_STORAGE.search(str(e["text"])) for e in endings.events(run, "warning", "traceback")):
        return Kind("storage", "the file system does not answer", "The log or the kernel speaks of storage that does not answer.", do)
    saved = endings.events(run, "checkpoint_saved")
    if (
        saved
        and re.search(r"(?i)\bsaving\b", str(saved[-1]["text"]))
        and not re.search(r"(?i)\bsaved\b|success|finish", str(saved[-1]["text"]))
    ):
        earlier = [e for e in saved if re.search(r"(?i)\bsaved\b|success|finish", str(e["text"]))]
        if earlier and last is not None and saved[-1]["step"] is not None and saved[-1]["step"] >= last:
            return Kind(
                "storage",
                "while saving a checkpoint",
                f"The last line before the silence begins to save: {str(saved[-1]['text'])[:80]}",
                do,
            )
    steps = sorted({int(e["step"]) for e in saved if e["step"]})
    gaps = np.diff(steps)
    if (
        last is not None
        and len(steps) >= MANY_SAVES
        and len(gaps)
        and (gaps == gaps[0]).all()
        and gaps[0] >= 10
        and last == steps[-1] + gaps[0]
    ):
        return Kind(
            "storage", "where a checkpoint was due", f"Every {gaps[0]} steps a checkpoint was saved; that of step {last} is missing.", do
        )
    return None


def _evaluation(run: Run, last: int | None) -> Kind | None:
    begun = [e["step"] for e in endings.events(run, "evaluation") if e["step"] is not None]
    s = series(run, "loss.eval")
    if begun and last is not None and max(begun) >= last and (s is None or not (s.step >= max(begun)).any()):
        return Kind("evaluation", "in an evaluation", f"An evaluation began at step {max(begun)} and gave no number.",
                    ("Check that all ranks evaluate the same number of batches, and for a barrier before and after.",))  # fmt: skip
    return None


def _load(run: Run, last: int | None) -> Kind | None:
    """What the GPUs did while nothing was logged."""
    s = series(run, "loss.train")
    end = float(np.nanmax(s.time)) if s is not None and np.isfinite(s.time).any() else None
    loads = [c.value[c.time > end] for c in system_metrics.clocked(run, "gpu.util") if end is not None]
    loads = [x for x in loads if len(x) >= 3]
    if not loads:
        return None
    usual = float(np.median(np.concatenate(loads)))
    if usual >= BUSY:
        return Kind("collective", "GPUs spin in a kernel that does not end", f"While nothing was logged the GPUs were {usual:.0f} % busy: a collective that waits for a peer looks like that.",
                    ("Dump the stacks of all ranks, and the flight recorder: which rank is not in the collective?",))  # fmt: skip
    if usual <= IDLE:
        return Kind("host", "the host does not come back to the GPU", f"While nothing was logged the GPUs were {usual:.0f} % busy: the host waits, for data, storage or a lock.",
                    ("Dump the stacks of the processes and of the loader's workers (py-spy dump --subprocesses).",))  # fmt: skip
    return None

"""What the ranks of a hang said when they gave up: collectives that differ, a rank that is missing or behind, one that died first.

The words are those of torch: ProcessGroupNCCL's watchdog, ProcessGroupWrapper's fingerprints, monitoredBarrier, and
torchelastic's report of failures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from forensics.run import endings, settings
from forensics.run.fatal_lines import UNNAMED
from forensics.run.kinds import Kind
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

Event = dict[str, Any]
CALLED = "ranks called different collectives"

_RANK = lazy_re(r"(?i)\brank[ :]+(\d+)\b")
_WORK = lazy_re(r"WorkNCCL\(SeqNum=(\d+), OpType=(\w+)(?:, NumelIn=(\d+))?")
_STATE = lazy_re(
    r"(?:\[PG (?:ID )?(\d++).{0,400}?)?(?:at work|NCCL work): (\d+), last enqueued NCCL work: (\d+), last completed NCCL work: (\d+)"
)
_PRINTS = lazy_re(
    r"Rank (\d+) is running collective: (?>.{0,400}?OpType=)(\w++)(?>.{0,400}?but Rank (\d+) is running collective: ).{0,400}?(?:OpType=)?(\w++)[,)]"
)
_CALLED_BY = lazy_re(r"called by (.{1,200})")
_BARRIER = lazy_re(r"Ranks? ([\d, ]+) failed to pass monitoredBarrier|send/recv from rank (\d+)")
_RAN = lazy_re(r"ran for (\d+) milliseconds")
LOADER_TIMEOUT = lazy_re(r"DataLoader timed out after \d+ seconds")
_FAILED_RANK = lazy_re(r"\brank\s*: (\d+) \(local_rank|local_rank: (\d+) \(pid")


def said(run: Run) -> list[Event]:
    """The lines that speak of processes that wait: time-outs of collectives and of the loader, dumps of what they did. One process alone waits for no other."""
    waits = [e for e in endings.events(run, "traceback", "warning") if LOADER_TIMEOUT.search(str(e["text"]))]
    alone = settings.number(run, "world_size") == 1
    return waits if alone else [*(e for e in endings.events(run, "nccl", "hang") if not endings.outlived(run, e)), *waits]


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
        if e["level"] == "error" and not LOADER_TIMEOUT.search(str(e["text"])) and not str(e["text"]).startswith(UNNAMED)
    ]
    return sorted(found, key=lambda e: e["time"]) if all(e["time"] is not None for e in found) else found


def mismatch(run: Run, waits: Sequence[Event]) -> Kind | None:
    do = ("Compare the stacks of the two ranks: a collective stands inside a branch that not all ranks take (`if rank == 0`, an early `continue`, a parameter without gradient).",
          "Launch with TORCH_DISTRIBUTED_DEBUG=DETAIL, which checks every collective on all ranks.")  # fmt: skip
    for e in waits:
        if (m := _PRINTS.search(str(e["text"]))) is not None:
            same = f"ranks {m[1]} and {m[3]} ran {m[2]} over other shapes"
            what = same if m[2] == m[4] else f"rank {m[1]} ran {m[2]}, rank {m[3]} ran {m[4]}"
            return Kind("mismatch", CALLED, f"At the same place {what}.", do)
        if "ismatched collective" in str(e["text"]):
            return Kind("mismatch", CALLED, "NCCL reports collectives that do not match.", do)
    for number, of in sorted(works(waits).items()):
        if len(set(of.values())) > 1:
            (one, a), (other, b) = list({v: (r, v) for r, v in sorted(of.items(), reverse=True)}.values())[:2]
            (one, a), (other, b) = sorted([(one, a), (other, b)])
            return Kind("mismatch", CALLED, f"As collective {number}, rank {one} waits in {a} and rank {other} in {b}.", do)
    return None


def works(waits: Sequence[Event]) -> dict[int, dict[int, str]]:
    """The collectives in which ranks timed out: sequence number -> rank -> what it was."""
    found: dict[int, dict[int, str]] = {}
    for e in waits:
        m, rank = _WORK.search(str(e["text"])), rank_of(e)
        if m is not None and rank is not None:
            found.setdefault(int(m[1]), {}).setdefault(rank, f"{m[2]}" + (f" of {m[3]} numbers" if m[3] else ""))
    return found


def waited(waits: Sequence[Event]) -> float | None:
    """Seconds that a collective ran before its rank gave up, the longest that is told."""
    told = [float(m[1]) / 1000 for e in waits if (m := _RAN.search(str(e["text"]))) is not None]
    return max(told, default=None)


def _timed_out(waits: Sequence[Event]) -> set[int]:
    return {rank for of in works(waits).values() for rank in of}


def silent(run: Run, waits: Sequence[Event]) -> list[int]:
    """Ranks that say nothing where most timed out in a collective; none where the number of ranks is not known."""
    spoke, world = _timed_out(waits), settings.number(run, "world_size")
    size = int(world) if world and 1 < world <= 100_000 else 0
    quiet = sorted(set(range(size)) - spoke)
    return quiet if len(spoke) > 1 and 0 < len(quiet) <= min(len(spoke) // 2, 8) else []


def missing(run: Run, waits: Sequence[Event]) -> Kind | None:
    """A rank that never came to the collective in which the others wait."""
    do = ("Look at that rank's last lines and its node: it left, or it is stuck in something of its own (loader, storage, a breakpoint).",)
    for e in waits:
        if (m := _BARRIER.search(str(e["text"]))) is not None:
            who = (m[1] or m[2]).strip()
            return Kind("rank_missing", f"rank {who} did not come to the barrier", "The barrier names it.", do, ranks=who)
    done: dict[str, dict[int, int]] = {}
    for e in waits:
        state, rank = _STATE.search(str(e["text"])), rank_of(e)
        if state is not None and rank is not None:
            done.setdefault(state[1] or "", {}).setdefault(rank, int(state[3]))
    for of in done.values():
        behind = [r for r, n in of.items() if n < max(of.values())]
        if len(of) > 1 and 0 < len(behind) <= len(of) // 2:
            names = ", ".join(map(str, sorted(behind)))
            why = f"Rank {names} had started {min(of.values())} collectives, the others {max(of.values())}."
            called = [m[1] for e in waits if rank_of(e) in behind and (m := _CALLED_BY.search(str(e["text"]))) is not None]
            why += f" Its last one was called by {called[-1]}." if called else ""
            return Kind("rank_missing", f"rank {names} fell behind the others", why, do, ranks=names)
    if quiet := silent(run, waits):
        names = ", ".join(map(str, quiet))
        spoke = len(_timed_out(waits))
        why = f"{spoke} of {spoke + len(quiet)} ranks timed out in a collective; rank {names} says nothing."
        return Kind("rank_missing", f"rank {names} did not come", why, do, ranks=names)
    return None


def dead_rank(run: Run, waits: Sequence[Event]) -> Kind | None:
    """The earliest error, where the others' time-outs come after it."""
    errors = roots(run)
    failed = [m for e in endings.events(run, "warning", "signal") if (m := _FAILED_RANK.search(str(e["text"]))) is not None]
    if not errors and failed and waits:
        who, why = failed[0][1] or failed[0][2], "The launcher names it as the first failure."
        do = ("Read the last lines of that rank.",)
        return Kind("dead_rank", f"the others wait for rank {who}, which died first", why, do, ranks=who)
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
    do = ("Mend the first error; the time-outs of the others follow from it.",)
    return Kind("dead_rank", f"the others wait for {who}, which died first", why, do, ranks=str(rank))

"""Hang

What it is
    The job lives and no step is done: processes that wait for one that left, a collective called by some ranks only, a
    loader that waits for a lock.

How it is weighed
    For it: time-outs of collectives or of the loader, long silence at the end while the job was alive, a watchdog; what
    tells its kind (ranks in different collectives, a rank that is missing or behind, the loader, storage). Against it:
    steps that go on after the silence (a stall), an exception that explains the end.

What settles it
    The stacks of all ranks at the time of the silence.

Folklore
    The first rank to fail is the root; the time-outs of all others are its echo.
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.case import Finding, Hypothesis
from forensics.detectors import hang_kinds
from forensics.ledger import Ledger, of, span
from forensics.run.endings import status
from parsers.tables import Run

TITLE = "Hang"
PRIOR = -6.0
TOLD = ("mismatch", "rank_missing", "uneven_data", "loader")  # kinds that nothing but a hang leaves behind


def weigh(run: Run, findings: Sequence[Finding]) -> Hypothesis | None:
    stalls = of(findings, "stall")
    final = [f for f in stalls if f.facts["at_end"]]
    if not stalls:
        return None
    ledger = Ledger(PRIOR)
    if any(f.facts.get("echo") for f in final):
        ledger.add(2, "Connections broke when the run crashed: an echo, if nothing else.", final)
    elif any(f.facts.get("said") for f in final):
        ledger.add(16, "The log speaks of processes that wait for each other.", final)
    elif final:
        ledger.add(14, f"{final[0].facts['seconds'] / 60:.0f} minutes of silence before the end, with the job alive.", final)
    else:
        ledger.add(-4, "Steps continue after the silence.", stalls)
    kind = next((f.facts for f in final if f.facts.get("words")), {})
    if kind.get("why"):
        ledger.add(3 if kind["kind"] in TOLD else 1, f"Its kind: {kind['why']}", final[:1])
    apart = [f for f in of(findings, "rank_disagreement") if f.facts["pattern"] == "steps"]
    if apart and final:
        ledger.add(3, f"{apart[0].title}.", apart[:1])
    if any(f.facts.get("said") for f in final) and status(run) == "finished":
        ledger.add(-16, "The run went on and finished: what waited there was a crash's echo.", [])
    roots = hang_kinds.roots(run)
    if roots:
        ledger.add(-10, f"The log contains an error that explains the end: {roots[0]['text'].splitlines()[-1][:80]}", [])
    return ledger.hypothesis(
        __name__,
        f"{TITLE}: {kind['words']}" if kind else TITLE,
        steps=span(stalls),
        settle="Dump the stacks of all ranks (py-spy dump) while it hangs; read the flight recorder.",
        interventions=[
            *kind.get("do", ()),
            "Find the first rank that stopped: its log ends earliest.",
            "Check for a collective inside an `if rank == 0`, and for uneven data.",
            "Set TORCH_NCCL_TRACE_BUFFER_SIZE before the next launch.",
        ][:4],
    )

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

from forensics.case import Hypothesis
from forensics.detectors import rank_disagreement, stall
from forensics.ledger import Findings, Ledger, findings_of, span
from forensics.run.how_it_ended import status
from forensics.signs import hang_ranks
from parsers.tables import Run

TITLE = "Hang"
PRIOR = -6.0
SETTLE = "Dump the stacks of all ranks (py-spy dump) while it hangs; read the flight recorder."
EXPECTS = "ending:wait"
NEEDS_TO_SPEAK = ("tput.tokens", "wall clock")
TOLD = ("mismatch", "rank_missing", "uneven_data", "loader")  # kinds that nothing but a hang leaves behind


def weigh(run: Run, findings: Findings) -> Hypothesis | None:
    stalls = findings_of(findings, stall.Facts)
    final = [f for f in stalls if f.facts.at_end]
    if not stalls:
        return None
    ledger = Ledger(PRIOR)
    if any(f.facts.echo for f in final):
        ledger.add(2, "Connections broke when the run crashed: an echo, if nothing else.", final)
    elif any(f.facts.said for f in final):
        ledger.add(16, "The log speaks of processes that wait for each other.", final)
    elif final:
        ledger.add(14, f"{(final[0].facts.seconds or 0) / 60:.0f} minutes of silence before the end, with the job alive.", final)
    else:
        ledger.add(-4, "Steps continue after the silence.", stalls)
    kind = next((f.facts for f in final if f.facts.words), None)
    if kind and kind.why:
        ledger.add(3 if kind.kind in TOLD else 1, f"Its kind: {kind.why}", final[:1])
    apart = findings_of(findings, rank_disagreement.Steps)
    if apart and final:
        ledger.add(3, f"{apart[0].title}.", apart[:1])
    if any(f.facts.said for f in final) and status(run) == "finished":
        ledger.add(-16, "The run went on and finished: what waited there was a crash's echo.", [])
    roots = hang_ranks.roots(run)
    if roots:
        ledger.add(-10, f"The log contains an error that explains the end: {roots[0]['text'].splitlines()[-1][:80]}", [])
    return ledger.hypothesis(
        __name__,
        f"{TITLE}: {kind.words}" if kind else TITLE,
        steps=span(stalls),
        interventions=[
            *((kind.do if kind else None) or ()),
            "Find the first rank that stopped: its log ends earliest.",
            "Check for a collective inside an `if rank == 0`, and for uneven data.",
            "Set TORCH_NCCL_TRACE_BUFFER_SIZE before the next launch.",
        ][:4],
    )

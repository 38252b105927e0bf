"""Which kind of hang it was: what the ranks said when they gave up, and what ran when the silence began.

Kinds (`words` complete "Hang: ..."): rendezvous, mismatch, rank_missing, dead_rank, uneven_data, loader, storage, network, evaluation,
collective, host, open.
"""

from __future__ import annotations

import re

import numpy as np

from forensics.run import connections, endings, hang_ranks, ranks, system_metrics
from forensics.run.kinds import Kind
from forensics.run.robust import median
from forensics.run.series import series
from parsers.lazy_regex import lazy_re
from parsers.tables import DATED, Run

MANY_SAVES = 2  # a cadence of checkpoints needs as many, besides the one that hangs
BUSY, IDLE = 90.0, 15.0  # % load of the GPUs while nothing is logged

_LOADER = lazy_re(r"(?i)DataLoader (?:timed out|worker)|_next_data|_try_get_data|/dataloader\.py:")
_STORAGE = lazy_re(
    r"(?i)blocked for more than \d+ seconds|not responding, (?:still|timed)|stale file handle|input/output error|\bLustre|No space left"
)
_EXHAUSTED = lazy_re(r"(?i)rank that exhausted inputs|uneven inputs")


def of_run(run: Run, last: int | None) -> Kind:
    """The kind of the hang that began after step `last`."""
    if last is None and (kind := connections.meeting(run)) is not None:
        return kind
    waits = hang_ranks.said(run)
    for judge in (hang_ranks.mismatch, hang_ranks.dead_rank, hang_ranks.missing):
        if (kind := judge(run, waits)) is not None:
            return kind
    for judge_run in (_uneven, _loader, _storage, _network, _evaluation, _load):
        if (kind := judge_run(run, last)) is not None:
            return kind
    return Kind("open")


def _uneven(run: Run, last: int | None) -> Kind | None:
    do = ("Give all ranks the same number of batches (drop_last, DistributedSampler), or use Join.",)
    if any(_EXHAUSTED.search(str(e["text"])) for e in endings.events(run, "nccl", "traceback", "warning")):
        return Kind("uneven_data", "one rank ran out of data", "torch says that a rank exhausted its inputs.", do)
    reach = ranks.last_steps(run)
    if reach and max(reach.values()) > min(reach.values()):
        short = [r for r, s in reach.items() if s == min(reach.values())]
        every = series(run, "loss.train")
        if max(reach.values()) - min(reach.values()) >= 2 * (every.interval if every is not None else 1):
            why = f"The last step of rank {short[0]} is {min(reach.values())}, that of others {max(reach.values())}."
            further = (*do, "Read the last lines of that rank.")
            return Kind("uneven_data", f"rank {short[0]} stopped earlier than the others", why, further, ranks=str(short[0]))
    finished = {e["rank"] for e in endings.events(run, "finished") if e["rank"] is not None}
    waiting = {r for e in hang_ranks.said(run) if (r := hang_ranks.rank_of(e)) is not None}
    if finished and waiting - finished:
        why = f"Rank {min(finished)} says that it finished; rank {min(waiting - finished)} waits."
        return Kind("uneven_data", "some ranks had finished while others waited", why, do)
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
    done = re.compile(r"(?i)\bsaved\b|success|finish")
    if saved and re.search(r"(?i)\bsaving\b", str(saved[-1]["text"])) and not done.search(str(saved[-1]["text"])):
        earlier = [e for e in saved if done.search(str(e["text"]))]
        if earlier and last is not None and saved[-1]["step"] is not None and saved[-1]["step"] >= last:
            why = f"The last line before the silence begins to save: {str(saved[-1]['text'])[:80]}"
            return Kind("storage", "while saving a checkpoint", why, do)
    steps = sorted({int(e["step"]) for e in saved if e["step"]})
    gaps = np.diff(steps)
    regular = len(steps) >= MANY_SAVES and bool((gaps == gaps[0]).all()) and gaps[0] >= 10
    if regular and last == steps[-1] + gaps[0]:
        why = f"Every {gaps[0]} steps a checkpoint was saved; that of step {last} is missing."
        return Kind("storage", "where a checkpoint was due", why, do)
    return None


def _network(run: Run, last: int | None) -> Kind | None:
    return connections.broke(run)


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
    end = float(np.nanmax(s.time)) if s is not None and (s.time >= DATED).any() else None
    loads = [c.value[c.time > end] for c in system_metrics.clocked(run, "gpu.util") if end is not None]
    loads = [x for x in loads if len(x) >= 3]
    if not loads:
        return None
    usual = median(np.concatenate(loads))
    if usual >= BUSY:
        return Kind("collective", "GPUs spin in a kernel that does not end", f"While nothing was logged the GPUs were {usual:.0f} % busy: a collective that waits for a peer looks like that.",
                    ("Dump the stacks of all ranks, and the flight recorder: which rank is not in the collective?",))  # fmt: skip
    if usual <= IDLE:
        return Kind("host", "the host does not come back to the GPU", f"While nothing was logged the GPUs were {usual:.0f} % busy: the host waits, for data, storage or a lock.",
                    ("Dump the stacks of the processes and of the loader's workers (py-spy dump --subprocesses).",))  # fmt: skip
    return None

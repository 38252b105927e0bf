"""What a replay hides: it has no loader workers and mostly one process, so that what only several of them make does not come back."""

from __future__ import annotations

from forensics.replays import verdict
from forensics.run import settings
from parsers.tables import Run

HIDDEN = (verdict.NOT, verdict.HARDWARE, verdict.UNDECIDED)  # what might as well be the work of several processes
_DEVICES = "world_size num_gpus n_gpus data_parallel_size tensor_model_parallel_size pipeline_model_parallel_size"
_WORKERS = "num_workers dataloader_num_workers data_workers workers loader_workers"


def caveat(run: Run, word: str, processes: int = 1) -> str:
    """The sentence that goes with a verdict on a run of several processes, with a blank before it; empty where it hides nothing."""
    devices, workers = (_most(run, names) for names in (_DEVICES, _WORKERS))
    devices = 0 if devices <= processes else devices
    if word not in HIDDEN or max(devices, workers) < 2:
        return ""
    had = " and ".join(text for n, text in ((devices, f"{devices} devices"), (workers, f"{workers} loader workers")) if n > 1)
    here = "one process" if processes == 1 else f"{processes} processes"
    return (
        f" The run had {had}, and the replay was {here} without loader workers: a collective, the data of one rank or a race between workers does not "
        "come back here. Run the same steps on two devices, then on one, then without loader workers: where it goes away tells which it is."
    )


def _most(run: Run, names: str) -> int:
    return int(max((n for s in settings.named(run, names) if (n := settings.as_number(s.value)) is not None), default=0))

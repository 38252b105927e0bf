"""Endings that really happened: recorded runs, moved to another time and folder, under the names that their owners gave the files."""

import re
from datetime import datetime
from pathlib import Path

from endings_kit import FOLDERS, STAGERS, moved_text, start_of

RECORDED = Path(__file__).parent / "recorded"
EPOCH = datetime(2026, 3, 2, 9, 14, 3).timestamp()

# name of the staged ending: (logger, recording, names of its files where they change)
COPIES = {
    "console_keyerror_chained": ("console", "keyerror", {"train.log": "run.log"}),
    "console_shape_mismatch": ("console", "shape", {}),
    "console_missing_module": ("console", "nomodule", {"train.log": "output.txt"}),
    "console_worker_json": ("console", "worker_json", {}),
    "console_worker_killed": ("console", "worker_killed", {"train.log": "nohup.out"}),
    "console_compile_failure": ("console", "compiled", {}),
    "console_attribute_at_save": ("console", "save_attr", {"train.log": "log.txt"}),
    "console_caught_early_finished": ("console", "caught", {}),
    "console_leaked_at_exit_finished": ("console", "leaked", {}),
    "console_exit_zero_traceback": ("console", "index_error", {}),
    "console_segfault": ("console", "segfault", {}),
    "console_disk_full_save": ("console", "disk_full", {}),
    "console_disk_full_zip": ("console", "disk_full_zip", {}),
    "console_host_memory_refused": ("console", "host_memory", {"train.log": "console.log"}),
    "console_nan_raised": ("console", "nan_raise", {}),
    "console_terminated": ("console", "terminated", {"train.log": "nohup.out"}),
    "console_killed": ("console", "killed", {}),
    "console_silent_kill": ("console", "silent", {}),
    "tqdm_ctrl_c": ("console tqdm", "ctrl_c", {"train.log": "train.out"}),
    "tqdm_killed": ("console tqdm", "tqdm_killed", {}),
    "jsonl_keyerror": ("JSONL + stderr", "jsonl_keyerror", {"stderr.log": "stderr.txt", "stdout.log": "stdout.txt"}),
    "jsonl_bad_setting": ("JSONL + stderr", "jsonl_setting", {}),
    "jsonl_sigterm_handled": ("JSONL + stderr", "jsonl_handler", {}),
    "jsonl_finished_noise": ("JSONL + stderr", "jsonl_finished", {"stderr.log": "err.log"}),
    "jsonl_broken_pipe_finished": ("JSONL + stderr", "broken_pipe", {"train.log": "stderr.txt"}),
    "jsonl_worker_killed": ("JSONL + stderr", "jsonl_worker", {}),
    "jsonl_nan_raised": ("JSONL + stderr", "jsonl_nan", {"stderr.log": "stderr.txt"}),
    "lightning_finished": ("Lightning CSV + console", "lit_finished", {}),
    "lightning_early_stop": ("Lightning CSV + console", "lit_early", {}),
    "lightning_step_error": ("Lightning CSV + console", "lit_step", {}),
    "lightning_sanity_error": ("Lightning CSV + console", "lit_sanity", {}),
    "lightning_ctrl_c": ("Lightning CSV + console", "lit_interrupt", {}),
    "lightning_sigterm": ("Lightning CSV + console", "lit_terminated", {}),
    "wandb_finished": ("W&B offline + output.log", "wb_finished", {}),
    "wandb_keyerror": ("W&B offline + output.log", "wb_exception", {}),
    "wandb_exit_zero_traceback": ("W&B offline + console", "wb_zero", {}),
    "wandb_atexit_noise_finished": ("W&B offline + console", "wb_noise", {}),
    "wandb_killed": ("W&B offline + output.log", "wb_killed", {}),
    "wandb_ctrl_c": ("W&B offline + output.log", "wb_interrupt", {}),
    "torchrun_finished": ("torchrun rank logs", "ranks_finished", {}),
    "torchrun_rank3_keyerror": ("torchrun rank logs", "ranks_key", {}),
    "torchrun_rank1_sigkill": ("torchrun rank logs", "ranks_killed", {"train.log": "torchrun.log"}),
    "torchrun_sigterm": ("torchrun rank logs", "ranks_terminated", {"train.log": "launcher.log"}),
    "torchrun_init_alone": ("torchrun console", "ranks_alone", {}),
}


def copy_recording(recording, folder, rng, names=None, keep=lambda inside: True):
    """The recorded files in another folder and at another time; returns the time of the last line."""
    start, root = start_of(rng), rng.choice(FOLDERS)
    last = 0.0
    if not (RECORDED / recording).is_dir():
        raise FileNotFoundError(f"no recording of {recording}: run record.py")
    for path in sorted((RECORDED / recording).rglob("*")):
        inside = str(path.relative_to(RECORDED / recording))
        if path.is_dir() or not keep(inside):
            continue
        target = folder / (names or {}).get(inside, inside)
        target.parent.mkdir(parents=True, exist_ok=True)
        data = path.read_bytes()
        if path.suffix != ".wandb":
            data = moved_text(data.decode(), int(start - EPOCH), root).encode()
            last = max([last, *ends(data)])
        else:
            last = max(
                [last, *(datetime.strptime(mark, "%Y%m%d_%H%M%S").timestamp() + 20 for mark in re.findall(r"run-(\d{8}_\d{6})", inside))]
            )
        target.write_bytes(data)
    return last or start + 600


def ends(data):
    """The last clock of a text."""
    found = re.findall(rb"(20\d\d-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)", data[-20000:])
    return [datetime.fromisoformat(f"{day.decode()} {clock.decode()}").timestamp() for day, clock in found[-1:]]


def register():
    for name, (logger, recording, names) in COPIES.items():
        tracker_only = logger == "W&B offline + output.log"

        def stage(folder, rng, recording=recording, names=names, tracker_only=tracker_only):
            return copy_recording(recording, folder, rng, names, lambda inside: not (tracker_only and inside == "train.log"))

        STAGERS[name] = (logger, stage)


register()

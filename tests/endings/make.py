"""Staged endings: run folders whose ending is known (truth.toml), as real systems leave them.

    python tests/endings/make.py OUT [--seed N] [NAME...]     writes all, or the named ones, into OUT/<name>
    python tests/endings/make.py --list                       names and loggers

Many of them really ran and ended so (record.py); what needs a GPU, a scheduler or a broken machine is written in the words of
the real software, with numbers that follow from name and seed; the seed changes times, places and numbers, never the truth."""

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import endings_console  # noqa: F401
import endings_jsonl  # noqa: F401
import endings_nodes  # noqa: F401
import endings_recorded  # noqa: F401
import endings_slurm  # noqa: F401
import endings_tensorboard  # noqa: F401
import endings_traps  # noqa: F401  (each registers what it stages)
from endings_kit import STAGERS, rng_of, settle_times


def names():
    return sorted(STAGERS)


def stage(name, folder, seed=0):
    """Writes one staged ending into `folder` (made where it is missing) and returns the folder."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    _, function = STAGERS[name]
    last = function(folder, rng_of(name, seed))
    settle_times(folder, min(last, time.time()))
    return folder


def main():
    parser = argparse.ArgumentParser(description="Writes staged endings")
    parser.add_argument("out", nargs="?", type=Path)
    parser.add_argument("names", nargs="*", metavar="name")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--list", action="store_true", help="names and loggers")
    asked = parser.parse_intermixed_args()
    if asked.list or not asked.out:
        print("\n".join(f"{name:36} {STAGERS[name][0]}" for name in names()))
        return
    for name in asked.names or names():
        stage(name, asked.out / name, asked.seed)


if __name__ == "__main__":
    main()

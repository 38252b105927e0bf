"""Trains the samples again: ``python samples/make.py [--out DIR] [NAME...]``; without a name, all of them."""

from __future__ import annotations

import argparse
import importlib
import inspect
import pkgutil
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from making import recipes  # the folder beside this file
from making.expect import Expect, index, write


def every_recipe() -> dict[str, Callable[[Path], Expect]]:
    """Each public function of each module in making/recipes is a sample of its name."""
    found: dict[str, Callable[[Path], Expect]] = {}
    for module in pkgutil.iter_modules(recipes.__path__):
        code = importlib.import_module(f"making.recipes.{module.name}")
        for name, function in inspect.getmembers(code, inspect.isfunction):
            if function.__module__ == code.__name__ and not name.startswith("_"):
                found[name] = function
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    known = every_recipe()
    unknown = [name for name in arguments.names if name not in known]
    if unknown:
        parser.error(f"no such sample: {', '.join(unknown)}. There are: {', '.join(sorted(known))}")
    for name in arguments.names or sorted(known):
        folder = arguments.out / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        started = time.perf_counter()
        write(folder, known[name](folder), inspect.getdoc(known[name]) or "")
        size = sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())
        print(f"{name:32} {time.perf_counter() - started:6.1f} s {size / 1000:8.0f} kB", flush=True)
    index(arguments.out)


if __name__ == "__main__":
    main()

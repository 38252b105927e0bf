"""The process that owns the model: reads one JSON command a line, answers with JSON lines, on descriptors of its own.

Started by forensics.replays.client in the interpreter that the user names. Standard input and output are taken away first:
what the adapter prints goes to standard error, what it reads is empty. A thread watches the commands, so that the process
ends with its parent, also in the middle of a step.

Answers: {"id", "step": {...}} while a run goes on, then {"id", "done": {...}} or {"id", "error": {"kind", "what", "traceback"}};
`kind` is adapter, memory, files, torch or worker.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import queue
import sys
import threading
import traceback
from typing import Any

NAME = "forensics_replay_training"


def load_training(folder: str) -> Any:
    """The package `training` beside this file, imported by path; returns its module `commands`."""
    path = os.path.join(folder, "training", "__init__.py")
    spec = importlib.util.spec_from_file_location(NAME, path, submodule_search_locations=[os.path.dirname(path)])
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = module
    spec.loader.exec_module(module)
    return importlib.import_module(NAME + ".commands")


def main(folder: str) -> None:
    commands_in, answers_out = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)  # prints of the adapter, also those of C code, leave the protocol alone
    answers = os.fdopen(answers_out, "w", encoding="utf-8")
    todo: queue.Queue[Any] = queue.Queue()

    def listen() -> None:
        with os.fdopen(commands_in, "r", encoding="utf-8") as lines:
            for line in lines:
                todo.put(json.loads(line))
        os._exit(0)  # the parent is gone

    threading.Thread(target=listen, daemon=True).start()

    def say(message: dict[str, Any]) -> None:
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    try:
        training = load_training(folder)
        if os.environ.get("FORENSICS_RUN"):
            training.protect(os.environ["FORENSICS_RUN"])
        session = training.Session()
    except ImportError as e:
        say({"id": 0, "error": {"kind": "torch", "what": str(e), "traceback": traceback.format_exc()}})
        return
    while True:
        command = todo.get()
        number = command.pop("id")

        def step(values: dict[str, Any], number: int = number) -> None:
            say({"id": number, "step": values})

        try:
            say({"id": number, "done": training.do(session, command, step)})
        except BaseException as e:  # whatever an adapter raises, SystemExit included, is an answer
            say({"id": number, "error": training.describe(e)})


if __name__ == "__main__":
    main(sys.argv[1])

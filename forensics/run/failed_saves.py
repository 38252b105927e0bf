"""Checkpoints that could not be written: the errors that were raised while one was saved."""

from __future__ import annotations

import re

from forensics.run import endings, fatal_lines
from forensics.run.endings import Event
from forensics.run.memory_kinds import SAVING
from forensics.run.once import once
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

_WRITER = lazy_re(
    r"PytorchStreamWriter|inline_container|safetensors[\w.]{0,80}serializ|(?:serialization\.py:\d+| in) (?:in )?(?:_?save|write_zip)\b",
    re.I,
)  # of torch.save and of safetensors, by name
_NAMED = lazy_re(r"\b[A-Z]\w{2,60}(?:Error|Exception)\b")
# what a write that is refused is raised as
_OF_A_WRITE = frozenset(("OSError", "IOError", "RuntimeError", "SafetensorError", "UnknownError"))
_OTHERWISE = lazy_re(r"\bdoes not exist\b|\bKeyboardInterrupt\b|read-only file system", re.I)  # other reasons, in words


@once
def errors(run: Run) -> list[Event]:
    """All of them, in file order."""
    raised = endings.events(run, "traceback", "oom", "warning")
    return [e for e in raised if e["level"] == "error" and (_WRITER.search(str(e["text"])) or SAVING.search(str(e["text"])))]


def for_want_of_room(e: Event) -> bool:
    """May the system have refused to write more? Not where the error is of another kind, or names another reason."""
    text = str(e["text"])
    if fatal_lines.DISK.search(text):
        return True
    named = _NAMED.findall(text)
    return e["kind"] != "oom" and (not named or named[-1] in _OF_A_WRITE) and not _OTHERWISE.search(text)

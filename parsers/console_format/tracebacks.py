"""A traceback is one event: its last line with the innermost frame, at the line where it begins."""

from __future__ import annotations

from parsers.console_format.event_lines import MAX_TEXT, Event, event_of, known
from parsers.console_format.line_prefix import Where
from parsers.lazy_regex import lazy_re

TRACEBACK = lazy_re(r"Traceback \(most recent call last\)")
FRAME = lazy_re(r'^\s*File "([^"]+)", line (\d+)(?:, in (\S+))?')
_LAST = lazy_re(r"^(?:[A-Za-z_][\w.]*\.)?[A-Za-z_]\w*(?:\(\w+\))?(?:: ?.*)?$")
_RAISED = lazy_re(r"^[\w.]*(?:Error|Exception|Interrupt|Exit|Signal|Quit)\b")
_FIRST = {"<module>", "_run_module_as_main"}  # of a script, and of a module that is run by name; "<string>" is a child's
_NAME = lazy_re(r"\s*([\w<>]{1,100})\s*")
_WRAPPED = 3  # lines that a window (PowerShell's) may break one quoted line into


class Traceback:
    """Collects one traceback; ``feed`` returns False once a line no longer belongs to it."""

    def __init__(self, where: Where, handled: bool = False, headless: bool = False, indent: str = "") -> None:
        self.indent = indent  # of its first line: a report may quote the whole
        self.where, self.frame, self.last, self.lines = where, "", "", 0
        self.headless = headless  # begins with a frame: the tail of one, or a stack that somebody printed
        self.phase = ""  # the outermost frame that says what the program was doing
        self.handled = handled  # printed as a warning: the program went on
        self.whole = False  # begins in the program's own first frame: nothing caught it, and the process ended
        self.nameless = False  # a window broke the line above between "in" and the name of the function
        self.open = 0  # lines that may still go on with the one above, which has a bracket or a quote open

    def feed(self, text: str) -> bool:
        self.lines += 1
        if self.last or self.lines > 2000:
            return False
        if self.nameless and (called := _NAME.fullmatch(text)) is not None:
            self.frame, self.nameless = f"{self.frame} in {called[1]}", False
            return True
        if (m := FRAME.match(text)) is not None:
            self.open, self.nameless = 0, m[3] is None and text.rstrip().endswith(", in")
            self.whole = self.whole or (not self.frame and m[3] in _FIRST and (m[1][:1] != "<" or m[3] != "<module>"))
            self.frame = f"{m[1]}:{m[2]}" + (f" in {m[3]}" if m[3] else "")
            self.handled = self.handled or m[3] == "_bootstrap_inner"  # the first frame of every thread but the main one
            if not self.phase and m[3] and known().phase.search(m[3]):
                self.phase = self.frame
            return True
        if self.indent and text.startswith(self.indent):
            text = text.removeprefix(self.indent)
        if not text.strip() or text[:1] in " \t" or text.startswith(("[...]", "^", "~")):
            self.open = _WRAPPED if _left_open(text) else 0
            return True
        self.last = text.strip() if _LAST.match(text) else ""
        self.open -= 1
        return bool(self.last) or self.open >= 0

    def event(self) -> Event | None:
        """None for a stack without an exception."""
        if self.headless and not _RAISED.match(self.last):
            return None
        text = self.last or "traceback without its last line"
        inner = event_of(text) if self.last else None
        special = inner is not None and inner.kind in {"oom", "nccl", "hardware", "nonfinite", "signal"}
        kind = inner.kind if inner is not None and special and "ChildFailed" not in text else "traceback"
        level = "warning" if self.handled or known().cascade.search(text) else "error"
        called = f", called from {self.phase}" if self.phase and self.phase != self.frame else ""
        return Event(kind, level, text[:MAX_TEXT] + (f"  [{self.frame}{called}]" if self.frame else ""))


def _left_open(text: str) -> bool:
    """Does a quoted line end within a bracket or a quotation, so that what stands below it at the margin may be its end?"""
    return any(text.count(a) > text.count(b) for a, b in ("()", "[]", "{}")) or text.count('"') % 2 == 1

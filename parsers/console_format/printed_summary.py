"""Reads the last values that W&B prints of a run when its process ends (``wandb: Run summary:``), where the log measured nothing itself but drew a bar: a job's stderr.

The values stand at the step that the summary names, which the bar must have reached. The history above it is a drawing.
"""

from __future__ import annotations

from parsers.console_format.grammars import NUM
from parsers.console_format.line_prefix import Where, number, whole
from parsers.console_format.measured import Measured
from parsers.lazy_regex import lazy_re
from parsers.records import vocabulary

_HEAD = lazy_re(r"wandb: (?:\S+ )?Run summary:\s*")
_PAIR = lazy_re(rf"wandb: {{1,80}}(?P<name>[A-Za-z_][\w/.@-]{{0,100}}) (?P<value>{NUM})\s*")


class Summary:
    """``read`` takes a line; true where it is one of the summary's values."""

    def __init__(self) -> None:
        self._open, self._told = False, dict[str, str]()

    def read(self, text: str, measured: Measured) -> bool:
        if _HEAD.fullmatch(text):
            self._open, self._told = True, {}
            return False
        if not self._open:
            return False
        if (m := _PAIR.fullmatch(text)) is not None:
            self._told[m["name"]] = m["value"]
            return True
        if text.strip() not in {"", "wandb:"} or self._told:
            self._open = False
            self._put(measured)
        return self._open

    def _put(self, measured: Measured) -> None:
        """The values where the bar stood, which is before whatever ended the process."""
        keys = {vocabulary.plain(name): name for name in self._told}
        at = next((step for name in vocabulary.step_names(keys) if (step := whole(self._told.pop(keys[name]))) is not None), None)
        n, reached, _ = measured.dicts.bar
        if at is not None and self._told and n >= 0 and 0 < at <= reached:
            measured.put(Where(n << 20), at, [(name, number(value)) for name, value in self._told.items()])
            measured.started = True

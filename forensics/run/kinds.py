"""What kind of hang or of want of memory it was, as far as the log tells."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    id: str
    words: str = ""  # the rest of a title: "Hang: ..."
    why: str = ""  # the sentence that shows it
    do: tuple[str, ...] = ()
    ranks: str | None = None  # that are missing or died, of a hang
    growth: float | None = None  # of memory, as a share
    per_step: float | None = None

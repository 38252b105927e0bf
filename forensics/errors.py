"""The one exception a user can see: what happened, and what to do about it."""

from __future__ import annotations


class ForensicsError(Exception):
    """What went wrong as a sentence for the user (``message``), and what to do about it (``hint``, may be empty).

    The command line prints both without a traceback and exits with ``code``.
    """

    code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class NoSingleRun(ForensicsError):
    """What was given names no run of those that lie there, or more than one: wrong usage."""

    code = 2


class CannotTell(Exception):
    """Raised by a detector whose input is there but does not allow a judgement; the text says why, in plain words."""

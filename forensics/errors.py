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


class WrongUsage(ForensicsError):
    """The command was given something that cannot be meant, such as a name that nothing has."""

    code = 2


class NoSingleRun(WrongUsage):
    """What was given names no run of those that lie there, or more than one."""


class CannotTell(Exception):
    """Raised by a detector whose input is there but does not allow a judgement; the text says why, in plain words."""


class Fetching(UserWarning):
    """A download of a size that its reader may want to stop; the text says how much, and from where."""


class Cluster(UserWarning):
    """Workers of a cluster that are left out, or differ; the text says which, and why."""

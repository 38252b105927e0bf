"""Keeps the current folder off Python's path, here and in every process that we start.

Python puts the current folder first on the path of `python -m` and `python -c`. It may be a run's, or a project's with a
`logging.py` of its own; nothing in it may be imported.
"""

import os
import sys

# For a Python process that we start (https://docs.python.org/3/using/cmdline.html#envvar-PYTHONSAFEPATH)
ENVIRONMENT = {"PYTHONSAFEPATH": "1"}


def leave_current_folder() -> None:
    """Takes the current folder from the path, unless forensics itself is run from there. Imports nothing that is not built in."""
    try:
        here = os.path.realpath(os.getcwd())
    except OSError:  # it was deleted: nothing can be imported from it
        return
    if here != os.path.dirname(os.path.dirname(os.path.realpath(__file__))):
        sys.path[:] = [p for p in sys.path if os.path.realpath(p or ".") != here]

"""``python -m forensics``. Python puts the current folder first on its path, and that may be a run's: nothing in it is imported."""

import os
import sys

_HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
if sys.path and os.path.realpath(sys.path[0] or ".") == os.path.realpath(os.getcwd()) != os.path.realpath(_HOME):
    del sys.path[0]

from forensics.cli import main  # noqa: E402

main(prog_name="forensics")

"""``python -m forensics``: the command."""

from forensics.cli import main

main(prog_name="forensics")

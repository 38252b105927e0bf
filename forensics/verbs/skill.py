"""`forensics skill`: the habits of debugging a training run, as a SKILL.md for agents."""

from __future__ import annotations

from pathlib import Path

import click

from forensics.verbs.options import steady

FOLDER = ".agents/skills"


@click.command()
@click.option(
    "--install", "into", is_flag=False, flag_value=FOLDER, metavar="[DIR]", help=f"Write DIR/forensics/SKILL.md; default {FOLDER}."
)
@click.option("--force", is_flag=True, help="Replace an existing file.")
def skill(into: str | None, force: bool) -> None:
    """Print a SKILL.md that teaches an agent to debug a training run: causes compete, read the data, cannot tell is an answer, and
    which command settles what."""
    text = (Path(__file__).resolve().parent.parent / "agents" / "SKILL.md").read_text("utf-8")
    if into is None:
        click.echo(text, nl=False)
        return
    from forensics import output

    path = Path(into) / "forensics" / "SKILL.md"
    with output.locked(path.parent):
        output.check(path, force=force)
        output.write(path, text)
    click.echo(steady(str(path)))

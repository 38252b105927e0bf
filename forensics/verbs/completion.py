"""`forensics completion`: a shell that completes commands, options and paths."""

from __future__ import annotations

import os
from pathlib import Path

import click

from forensics.verbs.options import say, steady

# Where each shell looks: bash-completion 2 and fish by themselves; zsh once the folder is on its `fpath`
FILES = {
    "bash": ("XDG_DATA_HOME", ".local/share", "bash-completion/completions/forensics"),
    "zsh": ("XDG_DATA_HOME", ".local/share", "zsh/site-functions/_forensics"),
    "fish": ("XDG_CONFIG_HOME", ".config", "fish/completions/forensics.fish"),
}
NEXT = {
    "bash": "It counts in new shells, where the package bash-completion is installed.",
    "zsh": "It counts in new shells, if .zshrc has `fpath+=({folder})` before `autoload -U compinit && compinit`.",
    "fish": "It counts in new shells.",
}


@click.command()
@click.argument("shell", type=click.Choice(list(FILES)))
@click.option("--install", is_flag=True, help="Write it where the shell looks for it, in your home folder.")
@click.option("--force", is_flag=True, help="With --install: replace an existing file.")
@click.pass_context
def completion(ctx: click.Context, shell: str, install: bool, force: bool) -> None:
    """Print the completion script of a shell, or install it.

    Without --install: `eval "$(forensics completion bash)"` turns it on in this shell.
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    script = kind.source_template % kind(ctx.find_root().command, {}, "forensics", "_FORENSICS_COMPLETE").source_vars()
    if not install:
        click.echo(script)
        return
    path = _place(shell)
    _write(path, script, force=force)
    click.echo(steady(str(path)))
    say(NEXT[shell].format(folder=path.parent))


def _place(shell: str) -> Path:
    from forensics.errors import ForensicsError

    variable, below_home, name = FILES[shell]
    try:
        return Path(os.environ.get(variable) or Path.home() / below_home) / name
    except RuntimeError as e:
        raise ForensicsError("there is no home folder to install it in", f"`forensics completion {shell}` prints it.") from e


def _write(path: Path, script: str, *, force: bool) -> None:
    """One of ours that is there already may be of an older version and is replaced."""
    from forensics import output

    try:
        ours = path.is_file() and not path.is_symlink() and "_FORENSICS_COMPLETE" in path.read_text("utf-8", "replace")
    except OSError:
        ours = False
    with output.locked(path.parent):
        output.check(path, force=force or ours)
        output.write(path, script + "\n")

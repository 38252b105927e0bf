"""What every verb takes beside its own options, so that `forensics analyze RUN --quiet` is `forensics --quiet analyze RUN`."""

from __future__ import annotations

import inspect
import re
import warnings

import click
from click.shell_completion import CompletionItem

RUNS = {"run", "runs", "roots", "run_a", "run_b"}  # arguments that are a file, a folder or a URL
NO_CONFIG = "--no-config"
CONFIG_HELP = "Take no option from a pyproject.toml or forensics.toml in the current folder."
QUIET_HELP = "Results only: no progress, no messages."
DEBUG_HELP = "Show tracebacks."
_END = re.compile(r"(?<!\.)\.(?=\s[A-Z`]|$)")


class Place(click.types.StringParamType):
    """A text that a shell completes as a file name."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type="file")]


def add(command: click.Command) -> None:
    """Gives a verb the options that are those of the whole command, too."""
    for argument in command.params:
        if argument.name in RUNS:
            argument.type = Place()
    command.params += [
        click.Option(["--debug"], is_flag=True, expose_value=False, callback=_debug, help=DEBUG_HELP),
        click.Option(["--quiet", "-q"], is_flag=True, expose_value=False, callback=_quiet, help=QUIET_HELP),
        click.Option([NO_CONFIG], is_flag=True, expose_value=False, help=CONFIG_HELP),
    ]


def _quiet(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and ctx.obj is not None:
        ctx.obj["quiet"] = True


def _debug(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        ctx.find_root().params["debug"] = True
        warnings.simplefilter("default")


def first_sentence(text: str | None) -> str:
    """Of a help or a docstring. A dot before a small letter ends none, nor do three dots."""
    paragraph = " ".join(inspect.cleandoc(text or "").split("\n\n")[0].split()).replace("``", "`")
    end = _END.search(paragraph)
    return paragraph[: end.end()] if end else paragraph

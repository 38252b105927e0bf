"""The command line: the group that holds the verbs (verbs/, one a file), and what becomes of an error.

Results go to standard output, messages to standard error. Exit codes: 0 done, 1 could not do it, 2 usage,
3 `--fail-on unhealthy` met. Heavy imports stay inside the verbs, so that `forensics --help` is quick.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Sequence
from typing import Any

import click

from forensics import cold_start, memory_limit
from forensics.errors import Cluster, Fetching, ForensicsError
from forensics.verbs import (
    analyze,
    audit,
    batch,
    checkpoint,
    compare,
    completion,
    doctor,
    every_verb,
    explain,
    formats,
    guard,
    mcp,
    note,
    option_defaults,
    render,
    replay,
    schema,
    skill,
    tables,
    watch,
)
from forensics.verbs.options import say, steady
from forensics.version import VERSION


class Verbs(click.Group):
    """Turns a ForensicsError into two lines and exit 1, and shows a traceback only where asked. Gives every verb the options of the
    whole command, and defaults from the current folder."""

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        every_verb.add(cmd)
        super().add_command(cmd, name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, every_verb.first_sentence(command.help)) for name, command in sorted(self.commands.items())])

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if name and command and not ctx.resilient_parsing and not ctx.params["no_config"]:
            ctx.default_map = {name: option_defaults.of(command, rest, known_verbs=list(self.commands))}
        return name, command, rest

    def main(self, args: Sequence[str] | None = None, *rest: Any, **options: Any) -> Any:
        for name in ("stdout", "stderr"):  # closed by whoever started us: what is said goes nowhere
            if getattr(sys, name) is None:
                setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        if args is None and memory_limit.is_our_process():
            memory_limit.watched(sys.argv[1:])
            cold_start.prepare()
        try:
            return super().main(args, *rest, **options)
        except OSError as e:  # the help, to a full disk
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            say(f"forensics: {e.strerror or e}")
            return sys.exit(1)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ForensicsError as e:
            self._trace(ctx)
            say(f"forensics: {e.message}")
            if e.hint:
                say(f"  {e.hint}")
            return ctx.exit(e.code)
        except KeyboardInterrupt:
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C would show where we tidy up
            say("forensics: interrupted")
            # Raised in code that `exec` runs (a dataclass that an import defines), it leaves a mark in CPython that ends the
            # process by SIGINT, whatever its exit code; the next piece of code that runs so wipes the mark.
            eval("None")
            ctx.exit(130)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except OSError as e:
            self._trace(ctx)
            say(f"forensics: {e.strerror or e}: {e.filename or ''}".rstrip(": "))
        except click.ClickException as e:
            vars(e)["message"] = steady(e.message)  # it may repeat a name that somebody else gave a file
            raise
        except (click.exceptions.Exit, click.Abort):
            raise
        except BaseException as e:
            if not isinstance(e, Exception) and type(e).__name__ != "PanicException":  # what Rust raises, from its libraries
                raise
            if memory_limit.is_lack(e):
                click.echo(memory_limit.sentence(), err=True)  # `say` would load more
                return ctx.exit(1)
            self._trace(ctx)
            say(f"forensics: this is a bug in forensics: {type(e).__name__}: {e}")
            say("  `forensics --debug ...` shows where; please report it with the file that caused it.")
        return ctx.exit(1)

    def _trace(self, ctx: click.Context) -> None:
        if ctx.params.get("debug"):
            for line in traceback.format_exc().splitlines():
                say(line)


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(VERSION, prog_name="forensics")
@click.option("--debug", is_flag=True, help=every_verb.DEBUG_HELP)
@click.option("--quiet", "-q", is_flag=True, help=every_verb.QUIET_HELP)
@click.option(every_verb.NO_CONFIG, is_flag=True, help=every_verb.CONFIG_HELP)
@click.pass_context
def main(ctx: click.Context, debug: bool, quiet: bool, no_config: bool) -> None:
    """Find out why a training run went wrong, from the files it left behind."""
    if not debug:
        warnings.simplefilter("ignore")  # of libraries about numbers that a log holds; they say nothing to its reader
        warnings.filterwarnings("default", message=".* cannot be loaded: ")  # but a plugin that is missing is our news
    for category in (Fetching, Cluster):
        warnings.filterwarnings("ignore" if quiet else "always", category=category)
    warnings.showwarning = lambda message, category, *_, **__: say(f"{category.__name__}: {message}")
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a name that is no UTF-8, a terminal that is not
    sys.unraisablehook = _unraisable
    ctx.obj = {"quiet": quiet}


def _unraisable(what: Any, told: Any = sys.unraisablehook) -> None:
    """A Ctrl-C in the middle of a callback, where Python can only print it, counts a moment later."""
    _thread.interrupt_main() if what.exc_type is KeyboardInterrupt else told(what)


for _verb in (
    analyze.analyze,
    audit.audit,
    batch.batch,
    checkpoint.checkpoint,
    compare.compare,
    completion.completion,
    doctor.doctor,
    explain.explain,
    formats.formats,
    guard.guard,
    mcp.mcp,
    note.note,
    render.render,
    replay.replay,
    schema.schema,
    skill.skill,
    tables.tables,
    watch.watch,
):
    main.add_command(_verb)

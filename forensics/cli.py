"""The command line: the group that holds the verbs (verbs/, one a file), and what becomes of an error.

Results go to standard output, messages to standard error. Exit codes: 0 done, 1 could not do it, 2 usage,
3 `--fail-on unhealthy` met. Heavy imports stay inside the verbs, so that `forensics --help` is quick.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Any

import click

from forensics import memory_limit
from forensics.errors import Fetching, ForensicsError
from forensics.verbs import analyze, audit, batch, checkpoint, compare, explain, guard, note, render, replay, tables
from forensics.verbs.options import say, steady
from forensics.version import VERSION


class Verbs(click.Group):
    """Turns a ForensicsError into two lines and exit 1, and shows a traceback only where asked."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **options: Any) -> Any:
        for name in ("stdout", "stderr"):  # closed by whoever started us: what is said goes nowhere
            if getattr(sys, name) is None:
                setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        if args is None and memory_limit.is_our_process():
            memory_limit.watched(sys.argv[1:])
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
            say("forensics: interrupted")
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
@click.option("--debug", is_flag=True, help="Show tracebacks.")
@click.option("--quiet", "-q", is_flag=True, help="Results only: no progress, no messages.")
@click.pass_context
def main(ctx: click.Context, debug: bool, quiet: bool) -> None:
    """Find out why a training run went wrong, from the files it left behind."""
    if not debug:
        warnings.simplefilter("ignore")  # of libraries about numbers that a log holds; they say nothing to its reader
        warnings.filterwarnings("default", message=".* cannot be loaded: ")  # but a plugin that is missing is our news
    warnings.filterwarnings("ignore" if quiet else "always", category=Fetching)
    warnings.showwarning = lambda message, category, *_, **__: say(f"{category.__name__}: {message}")
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a name that is no UTF-8, a terminal that is not
    ctx.obj = {"quiet": quiet}


for _verb in (
    analyze.analyze,
    audit.audit,
    batch.batch,
    checkpoint.checkpoint,
    compare.compare,
    explain.explain,
    guard.guard,
    note.note,
    render.render,
    replay.replay,
    tables.tables,
):
    main.add_command(_verb)

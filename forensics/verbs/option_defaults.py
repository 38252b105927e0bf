"""Defaults for options from the current folder: `[tool.forensics]` in pyproject.toml, `[options]` in forensics.toml.

    [options]
    fail-on = "unhealthy"     # of every verb that has this option
    [options.audit]
    jobs = 8                  # of one verb

Only switches, choices and numbers: what names a file, a command or an address stands on the command line, and so do the
switches that replace files, open a browser or show training data. The folder may be a run's that somebody else made, so a
file inside of what is analyzed gives nothing, and each default that counts is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from forensics import settings_file
from forensics.verbs.every_verb import NO_CONFIG
from forensics.verbs.options import say

PLACES = (("pyproject.toml", ("tool", "forensics")), (settings_file.NAME, ("options",)))  # the later one wins
TYPED_ONLY = {"force", "open", "show-data", "init", "debug", "no-config", "help"}


def of(command: click.Command, words: Sequence[str], *, known_verbs: Sequence[str]) -> dict[str, Any]:
    """Parameter -> value for click's ``default_map``; ``words``: what stands behind the verb. Says where each comes from."""
    if NO_CONFIG in words:
        return {}
    found: dict[str, Any] = {}
    for name, keys in PLACES:
        for key, value in _given(Path(name), keys, str(command.name), known_verbs):
            if _is_of_a_run(words):
                say(f"{name} lies in the folder that is read: its options are left out")
                break
            if (option := _option(command, key, name)) is not None and not _typed(option, words):
                _take(found, option, value, name)
    return found


def _given(path: Path, keys: Sequence[str], verb: str, known_verbs: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """The options of a file that are there for a verb: those of all verbs, then its own."""
    try:
        table: Any = settings_file.read(path, follow=False) or {}
    except settings_file.Unusable as e:
        say(f"{path}: {e}: no option is taken from it")
        return
    for key in keys:
        table = table.get(key, {}) if isinstance(table, dict) else {}
    if not isinstance(table, dict):
        say(f"{path}: [{'.'.join(keys)}] is no table")
        return
    own = table.get(verb, {})
    yield from ((k, v) for k, v in table.items() if not isinstance(v, dict) and k not in known_verbs)
    yield from (own.items() if isinstance(own, dict) else ())


def _is_of_a_run(words: Sequence[str]) -> bool:
    """Is the current folder one of the paths on the command line, or inside of one?"""
    here = Path.cwd().resolve()
    return any(_is_inside(here, word) for word in words if not word.startswith("-"))


def _is_inside(here: Path, word: str) -> bool:
    try:
        return here.is_relative_to(Path(word).resolve())
    except (OSError, RuntimeError, ValueError):  # no path, a link that leads to itself
        return False


def _option(command: click.Command, key: str, file: str) -> click.Option | None:
    """The option of that name; None where a verb has none, and where it has to be typed, which is said."""
    options = {o.lstrip("-"): p for p in command.params if isinstance(p, click.Option) for o in p.opts}
    option = options.get(key)
    if option is None:
        import difflib

        near = difflib.get_close_matches(key, options, 1, 0.8)
        if near:
            say(f"{file}: `forensics {command.name}` has no option {key} (nearest: {near[0]})")
    elif key in TYPED_ONLY or option.multiple or not (option.is_flag or isinstance(option.type, (click.Choice, *_NUMBERS))):
        say(f"{file}: --{key} is only taken from the command line")
        return None
    return option


_NUMBERS = (type(click.INT), type(click.FLOAT))  # with their ranges


def _typed(option: click.Option, words: Sequence[str]) -> bool:
    return any(word.split("=")[0] in option.opts for word in words)


def _take(found: dict[str, Any], option: click.Option, value: Any, file: str) -> None:
    name, shown = option.opts[0], value
    fits = isinstance(value, bool) if option.is_flag else isinstance(value, (str, int, float)) and not isinstance(value, bool)
    if not fits:
        raise click.UsageError(f"{file}: {name.lstrip('-')} = {value!r} is not {'true or false' if option.is_flag else 'a value'}")
    if option.is_flag:
        if not value:
            return
        value, shown = option.flag_value, ""
    found[str(option.name)] = value
    say(f"{file}: {name} {shown}".rstrip())

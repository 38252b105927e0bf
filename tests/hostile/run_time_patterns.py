"""Expressions that are put together while the product runs: made here by the functions that make them, from odd input."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from forensics import redact
from forensics.many_runs import config_diff
from forensics.run import peak_flops
from parsers.console_format import event_lines, line_shapes
from parsers.console_format.line_numbers import read_line
from parsers.formats import checkpoint_files, config_file
from parsers.secrets import shapes

Attacked = tuple[str, str]  # expression, the method that it is used by
KEYS = ("a", "a" * 60, "ab" * 40, "a.a.a.a", "a b", "é", "a-a_a", "a+", "(a*)*")
LINES = (
    "step 10 loss 1.5 lr 1e-4 | 1,234 tok/s",
    "  5%|5    | 5/100 [00:01<00:19, 5.00it/s, loss=1.2, acc=0.5]",
    "2024-01-02 03:04:05,678 INFO epoch 1 step 2/30: loss: nan, grad_norm=inf, time 0.5s",
    "iteration 1/ 20 | consumed samples: 32 | elapsed time per iteration (ms): 12.5 | lm loss: 1.0E+00 |",
    "step 1 a=1e a=1e a=1e a=1e a=1e loss=2",
    "step=1 loss=1e5a acc=1,000 b=1.5K c=2.5M d=3T e=1,2,3",
    "step 1 loss 1 2 3 4 5 6 7 8 9",
    "{'loss': 1.5, 'grad_norm': 2.0, 'learning_rate': 5e-05, 'epoch': 0.1}",
)


def _compiled(work: Callable[[], Any]) -> Iterable[str]:
    """The texts that `re.compile` is given while something works."""
    with patch.object(re, "compile", wraps=re.compile) as spy:
        work()
    return [call.args[0] for call in spy.call_args_list]


def _settings() -> Iterable[Attacked]:
    toml = "\n".join(f'"{key}" = {n}' for n, key in enumerate(KEYS))
    json = "{" + ", ".join(f'"{key}": {n}' for n, key in enumerate(KEYS)) + "}"
    found = [*_compiled(lambda: list(config_file._toml(toml))), *_compiled(lambda: list(config_file._json(json)))]
    assert len(found) >= 2 * len(KEYS)
    return [(text, "search") for text in found]


def _shapes() -> Iterable[Attacked]:
    lines = [line for line in map(read_line, LINES) if line.fields]
    assert len(lines) >= 6
    return [(line_shapes.shape_of(line, {}).pattern.pattern, "fullmatch") for line in lines]


def _events() -> Iterable[Attacked]:
    words = event_lines.known()
    searched = [*(pattern for _, _, pattern in words.rules), words.cascade, words.supposed, words.chatter, words.phase]
    return [*((p.pattern, "search") for p in searched), *((p.pattern, "match") for p in (words.sure_code, words.code))]


def _names() -> Iterable[Attacked]:
    known: Any = SimpleNamespace(within=lambda text: KEYS, names=dict.fromkeys(KEYS, "user"), of=lambda kind, name: "<user-1>", roots=KEYS)
    found = _compiled(lambda: redact._names("".join(KEYS), known, str))
    return [(text, method) for text in found for method in ("search", "sub")]


def _roots() -> Iterable[Attacked]:
    paths = ["/a/a/a", "/" * 30 + "a", "\\a" * 20, "a b/" * 10]
    known: Any = SimpleNamespace(roots=paths)
    return [(text, "split") for text in _compiled(lambda: redact._roots(" ".join(paths), known, str))]


MADE: dict[str, Callable[[], Iterable[Attacked]]] = {
    "parsers.formats.checkpoint_files: pattern": lambda: [(p, "fullmatch") for _, p in checkpoint_files._KINDS],
    "parsers.formats.config_file: pattern.replace('{}', key)": _settings,
    "parsers.console_format.line_shapes: ''.join(out)": _shapes,
    "parsers.console_format.event_lines: text": _events,
    "parsers.secrets.shapes: f'{_BEGIN}({pattern}){_END}' if whole else pattern": lambda: [
        (p.pattern, "finditer") for p in shapes.patterns()
    ],
    "forensics.many_runs.config_diff: pattern": lambda: [(row[0], "search") for row in config_diff.KINDS],
    "forensics.run.peak_flops: pattern": lambda: [(p, "search") for p in peak_flops.PEAKS],
    "forensics.redact: f'(?i)(?<![^\\\\W_]){re.escape(name)}(?![^\\\\W_])'": _names,
    'forensics.redact: f"""(?<![\\\\w.\\\\-]){re.escape(path)}(?=$|[\\\\s\\\\\\\\/\'\\\\",;:)\\\\]`])"""': _roots,
}
"""Where an expression is compiled inside a function -> how it is made."""
ELSEWHERE = {
    "reports.first_screen: f' The run finished(, by the look of it)?: \"?{re.escape(says)}\"?\\\\.$'": "an escaped text of the case, looked for in its answer",
    "forensics.published.recipes: words": "constants of that module, looked for in the name of a model",
    "forensics.run.metrics_in_words: pattern": "constants of forensics.signs, looked for in the first 200 characters of a tag",
    "parsers.lazy_regex: self._text": "what modules hold, each attacked as if it were compiled",
    "parsers.name_rules: pattern": "the texts of names.toml, which are attacked one by one",
    "parsers.secrets.gitleaks: translated(text)": "its rules are among shapes.patterns()",
}

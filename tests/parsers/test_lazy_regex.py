"""An expression that is compiled by its first use behaves as the compiled one."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from parsers.lazy_regex import LazyRegex, lazy_re


def test_it_answers_as_the_compiled_one_does() -> None:
    lazy, ready = lazy_re(r"(?P<word>[a-z]+)=(\d)", re.IGNORECASE), re.compile(r"(?P<word>[a-z]+)=(\d)", re.IGNORECASE)
    text = "Lr=1, wd=2"
    assert lazy.findall(text) == ready.findall(text) and lazy.sub("", text) == ready.sub("", text)
    assert (lazy.pattern, lazy.flags, lazy.groups, dict(lazy.groupindex)) == (ready.pattern, ready.flags, 2, {"word": 1})
    assert lazy_re(rb"\d").search(b"a1") is not None


def test_an_error_comes_with_the_first_use() -> None:
    lazy = lazy_re("(")
    with pytest.raises(re.error):
        lazy.match("")


def test_imports_compile_nothing_of_it() -> None:
    """Of the console parser's expressions none has been asked for anything."""
    code = (
        "import parsers, sys; from parsers.lazy_regex import LazyRegex\n"
        "held = [v for m in list(sys.modules.values()) if (m.__name__ or '').startswith('parsers.console') for v in vars(m).values()]\n"
        "lazy = [v for v in held if isinstance(v, LazyRegex)]\n"
        "print(len(lazy), sum(len(vars(v)) > 2 for v in lazy))"
    )
    made, used = map(int, subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())
    assert made > 20 and used == 0
    assert isinstance(lazy_re("a"), LazyRegex)

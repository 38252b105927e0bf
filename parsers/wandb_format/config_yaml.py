"""W&B's ``config.yaml`` as (line, key, value); where it does not parse as a whole, each top-level part that does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from parsers.lazy_regex import lazy_re
from parsers.tables import Gap

_MAX_NODES = 200_000  # aliases spelled out: a small file can ask for more than any memory
_EXPONENT = lazy_re(r"[-+]?\d+(?:\.\d*)?[eE][-+]?\d+$")  # 1e-05, as W&B's Go writer spells it: no number in YAML 1.1
_MAX_DEPTH = 100
_DEEP = lazy_re(r"(?m)^ {400}|(?:[-?:]\s){100}")


def items(text: str) -> Iterator[tuple[int, str, Any] | Gap]:
    """The settings in file order. Nothing is constructed but plain values, lists and dicts."""
    borders = sorted({0, *(m.start() for m in re.finditer(r"(?m)^(?![\s#\-])", text)), len(text)})
    parts = [(a, text[a:b]) for a, b in pairwise(borders) if text[a:b].strip()]
    found: list[tuple[int, str, Any] | Gap] = []
    for attempt in ([(0, text)], parts):
        found = [item for start, part in attempt for item in _part(part, text.count("\n", 0, start))]
        if not any(isinstance(item, Gap) for item in found):
            break
    yield from found


def _part(text: str, before: int) -> Iterator[tuple[int, str, Any] | Gap]:
    """The settings of a piece of YAML that has ``before`` lines in front of it."""
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc]
        """Knows _EXPONENT."""

    Loader.add_implicit_resolver("tag:yaml.org,2002:float", _EXPONENT, list("-+0123456789"))
    loader = None
    try:
        if _deep(text):
            raise ValueError("nested too deep")
        loader = Loader(text)
        root = loader.get_single_node()
        if _nodes(root, {}) > _MAX_NODES:
            raise ValueError("its aliases spell out more than can be read")
        for key, value in root.value if isinstance(root, yaml.MappingNode) else []:
            yield before + key.start_mark.line + 1, str(key.value), loader.construct_object(value, deep=True)
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as e:
        problem = getattr(e, "problem", None) or str(e) or type(e).__name__
        yield Gap(f"line {before + 1}", f"not YAML: {problem}"[:200], 1)
    finally:
        if loader is not None:
            loader.dispose()


def _deep(text: str) -> bool:
    """Nested beyond reason. libyaml recurses without limit and takes the whole process with it."""
    depth = 0
    for bracket in re.findall(r"[\[\]{}]", text):
        depth += 1 if bracket in "[{" else -1
        if depth > _MAX_DEPTH:
            return True
    return _DEEP.search(text) is not None


def _nodes(node: Any, known: dict[int, int]) -> int:
    """How many nodes a YAML tree has, aliases spelled out."""
    if not isinstance(getattr(node, "value", None), list):
        return 1
    if id(node) not in known:
        known[id(node)] = _MAX_NODES  # of a node inside itself
        inner = (n for item in node.value for n in (item if isinstance(item, tuple) else (item,)))
        known[id(node)] = 1 + sum(_nodes(n, known) for n in inner)
    return known[id(node)]

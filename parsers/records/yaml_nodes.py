"""YAML settings as plain data, never as objects: the YAML half of config_file. A helper, no parser.

The text is composed into nodes and not constructed, so that a tag can name no object: Stable-Baselines3 writes
``!!python/object/apply:collections.OrderedDict``, others tuples and dtypes; their content is read as the plain data
it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import yaml

from parsers.lazy_regex import lazy_re
from parsers.records.json_tables import Leaf
from parsers.tables import Gap

_MAX_NODES, _MAX_BLOCKS, _MAX_DEPTH, _MAX_EVENTS = 20_000, 2000, 50, 200_000
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_EXPONENT = lazy_re(r"[+-]?\d+(?:\.\d*)?[eE][+-]?\d+")

Item = Leaf | Gap


def leaves(text: str, stem: str) -> Iterator[Item]:
    """The settings of a YAML text (several documents as one), and gaps; ``stem`` names a document that is a list."""
    try:
        _check_depth(text)
        nodes = list(yaml.compose_all(text, Loader=_LOADER))
    except (yaml.YAMLError, ValueError, RecursionError) as e:
        yield from _blocks(text, stem, e)
        return
    for node in nodes:
        if node is not None:
            yield from _nodes(node, "", stem, [_MAX_NODES, 0], 0)


def _check_depth(text: str) -> None:
    """Raises ValueError for nesting beyond reason: composing is recursive in C and would overflow its stack."""
    depth = 0
    for number, event in enumerate(yaml.parse(text, Loader=_LOADER)):
        if number > _MAX_EVENTS:
            raise ValueError("too many values for settings")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _MAX_DEPTH:
                raise ValueError("nested too deep")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _blocks(text: str, stem: str, why: Exception) -> Iterator[Item]:
    """A broken document, one top-level key at a time."""
    starts = [m.start() for m in re.finditer(r"(?m)^(?=[^\s#\-\]}])", text)] or [0]
    if len(starts) > _MAX_BLOCKS:
        yield Gap("line 1", f"not YAML: {why}".replace("\n", " ")[:200], None)
        return
    starts[0] = 0
    for start, end in pairwise([*starts, len(text)]):
        line = text.count("\n", 0, start) + 1
        block = text[start:end]
        try:
            _check_depth(block)
            node = yaml.compose(block, Loader=_LOADER)
        except (yaml.YAMLError, ValueError, RecursionError) as e:
            mark = getattr(e, "problem_mark", None)
            yield Gap(f"line {line + (mark.line if mark else 0)}", f"not YAML: {getattr(e, 'problem', None) or why}", None)
            node = _front(block.split("\n"), mark.line if mark else 0)
        if isinstance(node, yaml.MappingNode):
            for item in _nodes(node, "", stem, [_MAX_NODES, 0], 0):
                yield item if isinstance(item, Gap) else (item[0], item[1], (item[2] or 1) + line - 1)
        elif isinstance(node, yaml.ScalarNode) and node.value.strip("-. \n"):
            yield Gap(f"line {line}", "a line that is no setting", 1)


def _front(lines: list[str], damage: int) -> yaml.Node | None:
    """As many of the lines before the damage as are sound."""
    for end in range(damage, max(damage - 5, 0), -1):
        try:
            return yaml.compose("\n".join(lines[:end]), Loader=_LOADER)
        except (yaml.YAMLError, ValueError, RecursionError):
            continue
    return None


def _nodes(node: yaml.Node, name: str, stem: str, budget: list[int], depth: int) -> Iterator[Item]:
    """The leaves of a node. ``budget``: how many nodes may still be looked at, and whether too few was said."""
    budget[0] -= 1
    if budget[0] <= 0:
        if not budget[1]:
            yield Gap(f"line {node.start_mark.line + 1}", "too many values (aliases that multiply?): the rest was left out", None)
        budget[1] = 1
        return
    pairs = _pairs(node, depth)
    if pairs is None or depth > 50:
        yield name or stem, _plain(node, budget, depth), node.start_mark.line + 1
        return
    wandb = {k: v for k, _, v in pairs}.keys()
    if name and "value" in wandb and wandb <= {"value", "desc"}:  # W&B wraps every setting
        pairs = [p for p in pairs if p[0] == "value"]
        yield from _nodes(pairs[-1][2], name, stem, budget, depth + 1)
        return
    for key, line, value in pairs:
        full = f"{name}/{key}" if name else key
        if isinstance(value, yaml.ScalarNode):
            budget[0] -= 1
            yield full, _scalar(value), line
        else:
            yield from _nodes(value, full, stem, budget, depth + 1)


def _pairs(node: yaml.Node, depth: int = 0) -> list[tuple[str, int, yaml.Node]] | None:
    """Key, line and value of a mapping, an OrderedDict's list of pairs included; None where it is something else."""
    if isinstance(node, yaml.MappingNode):
        pairs: list[tuple[str, int, yaml.Node]] = []
        for key, value in node.value:
            if key.tag == "tag:yaml.org,2002:merge" and depth < 50:
                merged = value.value if isinstance(value, yaml.SequenceNode) else [value]
                for m in {id(m): m for m in merged}.values():
                    if len(pairs) < _MAX_NODES:
                        pairs += _pairs(m, depth + 10) or []
            else:
                name = str(key.value) if isinstance(key, yaml.ScalarNode) else str(_plain(key, [100], 40))
                pairs.append((name, key.start_mark.line + 1, value))
        return list({p[0]: p for p in pairs}.values()) if pairs or node.value else None
    if isinstance(node, yaml.SequenceNode) and "OrderedDict" in node.tag and len(node.value) == 1:
        inner = node.value[0]
        if isinstance(inner, yaml.SequenceNode) and all(isinstance(p, yaml.SequenceNode) and len(p.value) == 2 for p in inner.value):
            return [(str(p.value[0].value), p.start_mark.line + 1, p.value[1]) for p in inner.value]
    return None


def _plain(node: yaml.Node, budget: list[int], depth: int) -> Any:
    """A node as plain data, whatever its tag says."""
    budget[0] -= 1
    if budget[0] < 0 or depth > 60:
        return "..."
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node)
    pairs = _pairs(node, depth)
    if pairs is not None:
        return {k: _plain(v, budget, depth + 1) for k, _, v in pairs}
    return [_plain(v, budget, depth + 1) for v in node.value] if isinstance(node, yaml.SequenceNode) else {}


_CONSTRUCT = yaml.constructor.SafeConstructor()


def _scalar(node: yaml.ScalarNode) -> Any:
    kind = node.tag.rpartition(":")[2]
    text = node.value
    try:
        if node.tag == "tag:yaml.org,2002:null":
            return None
        if node.tag == "tag:yaml.org,2002:bool":
            return _CONSTRUCT.construct_yaml_bool(node)
        if node.tag == "tag:yaml.org,2002:int" and len(text) < 100:
            return _CONSTRUCT.construct_yaml_int(node)
        if node.tag == "tag:yaml.org,2002:float" and len(text) < 100:
            return _CONSTRUCT.construct_yaml_float(node)
    except (ValueError, KeyError, OverflowError):
        return text
    if len(text) < 100 and not node.style and node.tag == "tag:yaml.org,2002:str" and _EXPONENT.fullmatch(text):
        return float(text)
    return kind if not text and not node.tag.startswith("tag:yaml.org,2002:str") else text  # !!python/name:torch.float32 ''

"""Short lists of fractions in a line, by their index: ``expert_load: [0.47, 0.12, 0.19]``, ``Pseudo dice [0.81, 0.44]``, ``qk_max 1.0/0.8/1.0``,
``max attn logit per layer 5.5 6.25``; or by their own names, ``[Avg. Loss, Loss]: [10.4, 7.2]``."""

from __future__ import annotations

from parsers.console_format.line_prefix import Line, number
from parsers.lazy_regex import lazy_re

_NUM = r"(?:np\.float(?:32|64)\()?+-?+(?:\d{1,9}+(?:\.\d{0,19}+)?+|\.\d{1,19}+)(?:[eE][+-]?\d{1,3}+)?+\)?+"
_LIST = lazy_re(
    rf"(?<![\w./-])(?P<name>[A-Za-z][\w./-]*+(?: [A-Za-z][\w./-]*+){{0,2}})['\"]?\s?[:=]?\s?\[(?P<list>\s?{_NUM}(?:,\s?|\s){_NUM}(?:(?:,\s?|\s){_NUM}){{0,14}}\s?)\](?!\w)"
)
_SLASHED = lazy_re(
    r"(?<![\w./-])(?P<name>[A-Za-z][\w.-]{0,40}+)\s?[:=]?\s?(?P<list>-?\d{1,9}(?:\.\d{1,19})?(?:/-?\d{1,9}(?:\.\d{1,19})?){2,15})(?![\w/.])"
)
# "max attn logit per layer 5.5 6.25 7.0": what its name says to be several
_PER_PART = lazy_re(
    rf"(?<![\w./-])(?P<name>(?:[A-Za-z][\w.-]{{0,20}}+ ){{1,4}}per (?:layer|block|head|expert|group|rank))\s?[:=]?\s(?P<list>{_NUM}(?:\s{_NUM}){{1,63}})(?=\s*(?:$|[|,;]))"
)
# "expert load L0 0.00 0.02 0.98 0.00"
_PER_EXPERT = lazy_re(
    rf"(?i)(?<![\w./-])(?P<name>(?:experts?|router|moe)[ _/](?:loads?|share|usage|util\w{{0,10}}|frac(?:tion)?)(?: L ?\d{{1,3}})?)\s?[:=]?\s(?P<list>{_NUM}(?:\s{_NUM}){{2,63}})(?=\s*(?:$|[|,;]))"
)
_WORD = r"[A-Za-z][\w.%/-]{0,30}+(?: [A-Za-z][\w.%/-]{0,30}+){0,2}"
_NAMED = lazy_re(rf"\[(?P<names>{_WORD}(?:, {_WORD}){{1,7}})\]\s?[:=]\s?\[(?P<list>\s?{_NUM}(?:, {_NUM}){{1,7}})\s?\]")
_FEW = 2  # unit: shares; two that make up a whole may be anything
_OF_CLASSES = lazy_re(r"(?i)\b(?:dice|m?iou|jaccard)\b")
_OF_EXPERTS = lazy_re(r"(?i)\b(?:experts?|router|moe)\b")
_LOAD = lazy_re(r"(?i)(?:experts?|router|moe)[ _/](?:loads?|share|usage|util\w*|frac(?:tion)?)(?: l ?\d+)?/\d+$")  # as a tag
_SHARE = lazy_re(r"(?i)\b(?:loads?|share|usage|util\w*|frac(?:tion)?)$")
_FRACTION = lazy_re(r"\d\.\d|[\s,(]\.\d")
# the rates of parameter groups, of which the first is the one; constants of an optimizer; sizes, samples and times
_OTHERS = lazy_re(
    r"(?i)\blr|learning|betas?\b|mom|\bids?\b|indices|shape|size|dims?\b|steps?\b|epochs?\b|batch|time|seed|mean|std|quantile|range|bins?\b"
)


def put_vectors(line: Line) -> None:
    """Gives the numbers of lists the name of the list and their index (as lists of JSON have it), in a line that names its place, or where the
    name says that each is of a class (nnU-Net: a line of its own below its epoch) or of an expert (``tokens per expert: 3.1 | share [0.2, 0.8]``);
    other lists may be a history."""
    if "[" not in line.text and " per " not in line.text and line.text.count("/") < 2 and not _OF_EXPERTS.search(line.text, line.body):
        return
    placed = any(f.role in {"step", "it", "epoch"} for f in line.fields)
    if placed and (m := _NAMED.search(line.text, line.body)) is not None:
        own = [i for i, f in enumerate(line.fields) if m.start("list") <= f.start < m.end("list")]
        names = m["names"].split(", ")
        for i, name in zip(own, names, strict=False) if len(own) == len(names) == len({*names}) else ():
            line.fields[i] = line.fields[i]._replace(role="metric", tag=name)
        return
    for m in (found for pattern in (_LIST, _SLASHED, _PER_PART, _PER_EXPERT) for found in pattern.finditer(line.text, line.body)):
        first, end = m.span("list")
        own = [i for i, f in enumerate(line.fields) if first <= f.start < end]
        shares = _SHARE.match(m["name"]) is not None and _are_shares(
            [number(line.text[f.start : f.end]) for f in (line.fields[i] for i in own)]
        )
        free = (
            (shares or _FRACTION.search(f" {m['list']}") is not None)
            and len(own) > 1
            and all(line.fields[i].role in {"skip", "metric"} for i in own)
        )
        of_experts = shares or (_SHARE.match(m["name"]) is not None and _OF_EXPERTS.search(line.text, line.body, m.start()) is not None)
        name = f"expert {m['name']}" if of_experts else m["name"]
        told = placed or _OF_CLASSES.search(name) or _LOAD.search(f"{name}/0")
        if free and told and not _OTHERS.search(name):
            for place, i in enumerate(own):
                line.fields[i] = line.fields[i]._replace(role="metric", tag=f"{name}/{place}")


def _are_shares(values: list[float]) -> bool:
    """Do they make up a whole, of 1 or in percent, up to their rounding (``load 22/15/32/31``)? The loads of machines do not."""
    whole = sum(values)
    return len(values) > _FEW and min(values) >= 0 and any(abs(whole - of) <= len(values) / 200 * of for of in (1, 100))


def is_load(tag: str) -> bool:
    """Is it one of the loads of experts, as a list has them?"""
    return _LOAD.search(tag) is not None

"""docs/api.md: the Python API, from the signatures and docstrings of what `import forensics` offers."""

from __future__ import annotations

import dataclasses
import inspect
import re
from typing import Any

import forensics
from forensics import api, audits
from forensics.replays.request import Options

NOTICE = "<!-- Written by docs/make.py: change the docstrings in forensics/__init__.py, then run `make docs`. -->\n\n"
ORDER = ("analyze", "read", "compare", "audit", "replay", "guard", "record")
TYPES = ("Case", "Run", "Frame", "Comparison", "Audit", "Guarded", "ForensicsError")
OPTIONS = {"AuditOptions": api.AuditOptions, "ReplayOptions": api.ReplayOptions}
DEFAULTS = {
    "AuditOptions": {f.name: f.default for f in dataclasses.fields(audits.Options)},
    "ReplayOptions": {f.name: f.default for f in dataclasses.fields(Options)}
    | {"python": "sys.executable", "max_time": None, "memory": None},
}  # minutes and GB are None where no limit was given
HEAD = """# Python API

```python
import forensics

case = forensics.analyze("runs/xyz")  # case.verdict, case.answer, case.hypotheses, case.findings, case.to_json()
case  # on the last line of a notebook cell: the page

run = forensics.read("runs/xyz")
run.tables["metrics"]  # a pyarrow.Table
run.metrics.to_polars()  # or .to_pandas(), where pandas is installed

forensics.compare("runs/a", "runs/b").answer
forensics.audit("runs", "audit").rows.to_polars().filter(verdict="unhealthy")
forensics.guard("runs/xyz").emit("hf")
```

`import forensics` takes some hundredths of a second; the rest is imported when it is first used. All three packages have types (`py.typed`). Every function takes paths as
text or `pathlib.Path`, changes no input, and raises one error for what a user can do something about: `forensics.ForensicsError`, with `.message` and `.hint`. Nothing
is printed. Cases, comparisons, audits, runs and frames show themselves in a notebook: cases and comparisons as their page, in a sandboxed frame.

A verdict is data here: `if case.verdict == "unhealthy": ...`. [case.md](case.md) has the keys of `case.to_json()`, [tables.md](tables.md) the columns of the frames,
[audit.md](audit.md) the documents of audits and comparisons, [batches.md](batches.md) what `record` is for. Options mean what those of the command line mean
([cli.md](cli.md)).
"""


def page() -> str:
    parts = [HEAD, "## Functions\n"]
    parts += [
        f"### `{name}`\n\n```python\n{_signature(getattr(forensics, name))}\n```\n\n{_text(getattr(forensics, name))}\n" for name in ORDER
    ]
    parts.append("## Results\n")
    parts += [f"### `{name}`\n\n{_text(getattr(forensics, name))}\n{_members(getattr(forensics, name))}" for name in TYPES]
    return NOTICE + "\n".join(parts)


def _signature(function: Any) -> str:
    """As one would write it; options that are passed on, one by one."""
    known = inspect.signature(function)
    shown: list[str] = []
    for p in known.parameters.values():
        if p.kind is p.KEYWORD_ONLY and "*" not in shown:
            shown.append("*")
        kept = re.fullmatch(r"Unpack\[(\w+)\]", str(p.annotation))
        if kept:
            asked = OPTIONS[kept[1]].__annotations__.items()
            shown += [f"{name}: {_type(t)} = {_default(DEFAULTS[kept[1]][name])}" for name, t in asked]
        else:
            default = "" if p.default is p.empty else f" = {_default(p.default)}"
            stars = "**" if p.kind is p.VAR_KEYWORD else ""
            shown.append(f"{stars}{p.name}: {_type(p.annotation)}{default}")
    inside = "".join(f"    {line},\n" for line in shown)
    return f"forensics.{function.__name__}(\n{inside}) -> {_type(known.return_annotation)}"


def _default(value: Any) -> str:
    return value if value == "sys.executable" else f'"{value}"' if isinstance(value, str) else repr(value)


def _type(annotation: Any) -> str:
    text = annotation.__forward_arg__ if hasattr(annotation, "__forward_arg__") else annotation
    text = text.__name__ if isinstance(text, type) else str(text)
    return text.replace("StrPath", "str | PathLike[str]").replace("Progress", "Callable[[str, int, int], None]").replace("typing.", "")


def _text(thing: Any) -> str:
    """The docstring in Markdown: single ticks, each paragraph on a line."""
    blocks = inspect.cleandoc(thing.__doc__ or "").replace("``", "`").split("\n\n")
    return "\n\n".join(" ".join(b.split()) for b in blocks)


def _members(kind: type) -> str:
    """What the class itself offers, in its order: properties and methods with a docstring."""
    found = {name: m for name, m in vars(kind).items() if not name.startswith("_") and _told(m)}
    rows = "".join(f"| `{_called(name, m)}` | {' '.join(_text(_told(m)).split())} |\n" for name, m in found.items())
    own = [f"`{name}`" for name in vars(kind).get("__annotations__", {})]
    fields = f"\nFields: {', '.join(own)}.\n" if own and dataclasses.is_dataclass(kind) else ""
    return fields + (f"\n| | |\n|---|---|\n{rows}" if rows else "")


def _told(member: Any) -> Any:
    function = member.fget if isinstance(member, property) else member
    return function if inspect.isfunction(function) and function.__doc__ else None


def _called(name: str, member: Any) -> str:
    if isinstance(member, property):
        return f".{name}"
    given = [p.replace(annotation=p.empty) for p in list(inspect.signature(member).parameters.values())[1:]]
    return f".{name}({', '.join(map(str, given))})"

"""Writes the generated pages of docs/ from docstrings, help texts and schemas: `python docs/make.py [--screenshots [NAME ...]]`.

tests/test_docs.py holds that the committed pages are what this writes. The pictures are made by docs/pictures.py.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import parsers
from forensics import cli, reference_pages, rules
from forensics.causes import files
from forensics.signs.sign import looks, subject
from parsers import names
from parsers.records import vocabulary
from parsers.tables import SCHEMAS

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS)]

import api_page  # noqa: E402
import source_page  # noqa: E402
import table_pages  # noqa: E402

NOTICE = "<!-- Written by docs/make.py: change the docstrings, then run `make docs`. -->\n\n"


def detectors() -> str:
    """One section a detector, from its docstring: headings in bold, texts as paragraphs."""
    parts = ["# Symptom reference\n\nWhat each detector looks for, and when it cannot tell. `forensics explain ID` prints the same.\n"]
    for module in rules.detectors():
        title, _, body = inspect.cleandoc(module.__doc__ or "").partition("\n")
        parts.append(f"## {title}\n\n`{rules.id_of(module)}`\n")
        for block in body.strip().split("\n\n"):
            name, _, text = block.partition("\n")
            parts.append(f"**{name.strip()}.** {' '.join(text.split())}\n")
    return NOTICE + "\n".join(parts)


def causes() -> str:
    """One section a cause, from its file."""
    parts = [
        "# Cause reference\n\nHow each cause is weighed: by [signs](signs.md), with learned weights in decibans (+10 means ten times as likely), "
        "where the sign was seen and where it was looked for and absent. A sign that is not listed has shown no weight.\n"
    ]
    for c in files.causes().values():
        parts.append(f"## {c.title}\n\n`{c.id}`\n")
        parts += [f"**{name}.** {text}\n" for name, text in reference_pages.sections(c)]
    return NOTICE + "\n".join(parts)


def signs() -> str:
    """One table a subject, from the docstrings of the signs."""
    parts = [
        "# Sign reference\n\nWhat [causes](causes.md) reason from. A sign is looked for once in a run: it was seen, it was looked for and is absent, or the "
        "run cannot tell. Signs of one subject are one observation.\n"
    ]
    subjects: dict[str, list[str]] = {}
    for name, look in looks().items():
        subjects.setdefault(subject(name), []).append(f"| `{name}` | {' '.join((look.__doc__ or '').split())} |")
    parts += [
        f"## {s.replace('_', ' ').capitalize()}\n\n| sign | seen where |\n|---|---|\n" + "\n".join(rows) + "\n"
        for s, rows in subjects.items()
    ]
    return NOTICE + "\n".join(parts)


def formats() -> str:
    parts = [
        "# Format reference\n\nWhat each parser reads and decides, from its docstring; [formats.md](formats.md) is the overview. Every file of a "
        "run folder is offered to each parser, and at most one claims it. `forensics explain ID` prints the same.\n"
    ]
    for module in parsers.modules():
        parts.append(f"## `{parsers.name_of(module)}`\n\n{inspect.cleandoc(module.__doc__ or '')}\n")
    roles = {"step": vocabulary.SURE_STEP, "step, if the values behave like one": sorted(vocabulary.WEAK_STEP)}
    roles |= {"epoch": vocabulary.EPOCH, "wall clock": vocabulary.TIME, "rank": vocabulary.RANK}
    named = "\n".join(f"| {role} | {', '.join(f'`{n}`' for n in words)} |" for role, words in roles.items())
    parts.append(
        f"## Names of columns and keys\n\nIn any case, with spaces or dashes for `_`; the first that fits.\n\n| role | names |\n|---|---|\n{named}\n"
    )
    return NOTICE + "\n".join(parts)


def metric_names() -> str:
    needed: dict[str, list[str]] = {}
    for module in rules.detectors():
        for name in {n for need in module.NEEDS for n in need.split("|")}:
            needed.setdefault(name, []).append(f"[{rules.id_of(module)}](detectors.md)")
    rows = "\n".join(f"| `{n}` | {what} | {unit} | {', '.join(needed.get(n, ()))} |" for n, (what, unit) in names.vocabulary().items())
    return (
        f"{NOTICE}# Metric name reference\n\nThe canonical names, with their usual units, and the checks that need each one. "
        f"[metric-names.md](metric-names.md) says how a logged tag gets its name.\n\n| name | meaning | unit | checks that need it |\n|---|---|---|---|\n{rows}\n"
    )


def tables() -> str:
    parts = [
        "# Table reference\n\n`forensics tables RUN --out DIR` writes each table as one Parquet file. In Python, `forensics.read(path).tables` "
        "holds them as `pyarrow.Table`.\n",
        "```text\n" + inspect.cleandoc(parsers.tables.__doc__ or "") + "\n```\n",
    ]
    for name, schema in SCHEMAS.items():
        rows = "\n".join(f"| {f.name} | {_type(f.type)} |" for f in schema)
        parts.append(f"## {name}\n\n| column | type |\n|---|---|\n{rows}\n")
    return NOTICE + "\n".join(parts)


def _type(t: object) -> str:
    return str(t).replace("dictionary<values=string, indices=int32, ordered=0>", "string").replace("list<item: int64>", "list of int64")


def commands() -> str:
    parts = ["# Command-line reference\n\nWhat `forensics COMMAND --help` prints.\n"]
    root = cli.main.make_context("forensics", [], resilient_parsing=True, terminal_width=100)
    for name, command in [("", cli.main), *sorted(cli.main.commands.items())]:
        # Contexts as the command line makes them, so that the page shows what a user sees.
        with command.make_context(name, [], parent=root, resilient_parsing=True) if name else root as ctx:
            parts.append(f"## `{f'forensics {name}'.strip()}`\n\n```text\n{command.get_help(ctx)}\n```\n")
    return NOTICE + "\n".join(parts)


PAGES = {
    "detectors.md": detectors,
    "causes.md": causes,
    "signs.md": signs,
    "formats-reference.md": formats,
    "metric-names-reference.md": metric_names,
    "tables.md": tables,
    "cli.md": commands,
    "api.md": api_page.page,
    "folklore.md": table_pages.folklore,
    "incidents.md": table_pages.recorded,
    "recipes.md": table_pages.published_recipes,
    "guards.md": table_pages.guards,
    "source.md": source_page.source,
}


def main() -> None:
    for name, write in PAGES.items():
        (DOCS / name).write_text(write(), "utf-8")
    if "--screenshots" in sys.argv:
        import pictures

        pictures.write(sys.argv[sys.argv.index("--screenshots") + 1 :])


if __name__ == "__main__":
    main()

"""Writes the generated pages of docs/ from docstrings, help texts and schemas: `python docs/make.py [--screenshots]`.

tests/test_docs.py holds that the committed pages are what this writes. The pictures are made by docs/pictures.py.
"""

from __future__ import annotations

import csv
import inspect
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import parsers
from forensics import cli, reference_pages, rules
from forensics.causes import files
from forensics.guards.guard_table import GUARDS
from forensics.published import incidents, recipes
from forensics.signs.sign import looks, subject
from parsers import names
from parsers.records import vocabulary
from parsers.tables import SCHEMAS

DOCS = Path(__file__).resolve().parent
NOTICE = "<!-- Written by docs/make.py: change the docstrings, then run `make docs`. -->\n\n"
FOLKLORE_NOTICE = "<!-- Written by docs/make.py: change docs/folklore.csv, then run `make docs`. -->\n\n"
PUBLISHED_NOTICE = "<!-- Written by docs/make.py: change the tables in forensics/published, then run `make docs`. -->\n\n"
STATES = ("served", "partly", "missing", "not decidable")
SEEDS = {  # the first letter of a claim's id
    "T": ("Transformers", "ML Debugging skill, appendix on transformers and language models (`ml-debug/refs/transformers.md`)."),
    "S": ("Debugging in general", "ML Debugging skill (`ml-debug/SKILL.md`): quotes of practitioners."),
    "D": ("Instability", "A course's module 10.2, Debugging Training Instability."),
    "B": ("Loss patterns", "S. Bekman, Machine Learning Engineering Open Book: training instabilities and loss patterns."),
    "G": ("Playbook", "A debug guide, Debugging LLM & Model Training: five families of failures."),
}


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


def folklore() -> str:
    """One table a document, from docs/folklore.csv."""
    with (DOCS / "folklore.csv").open(newline="", encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    count = Counter(r["state"] for r in rows)
    parts = [
        "# Folklore, and what serves it\n\nWhat practitioners say of debugging a training, claim by claim, and what here serves it: a `detector`, a "
        "`sign`, a `cause`, what a cause says to do (`do`), an experiment of a replay (`arm`) or by hand (`experiment`), a `blind` spot that tells what "
        "to log, a command (`verb`), an `option`, a `table` of published trainings or a `page`. `forensics explain ID` prints most of them.\n\n"
        "*Served*: a run that shows it is told so. *Partly*: a part of it is, and the note says which. *Missing*: a run may show it, and nothing here looks. "
        "*Not decidable*: what a run leaves behind does not hold it.\n",
        _table(["", *STATES], [["claims", *(str(count[s]) for s in STATES)]]),
    ]
    for letter, (title, what) in SEEDS.items():
        said = [r for r in rows if r["id"].startswith(letter)]
        ids = {r["id"]: ", ".join(f"{kind} `{name}`" for kind, _, name in (i.partition(":") for i in r["ids"].split())) for r in said}
        table = _table(["", "claim", "state", "by", "note"], [[r["id"], r["claim"], r["state"], ids[r["id"]], r["note"]] for r in said])
        parts.append(f"## {title}\n\n{what}\n\n{table}")
    return FOLKLORE_NOTICE + "\n".join(parts)


def recorded() -> str:
    """Every recorded incident with what of ours speaks to it, and those that a log could not have told."""
    known = incidents.incidents()
    told = [i for i in known if i.speaks]
    count = Counter(i.helped for i in told)
    parts = [
        f"# Recorded incidents\n\nWhat {len({i.run for i in known})} public trainings recorded of {len(known)} incidents, each with its source: what was seen, what was done, "
        "and what came of it. A page quotes those that fit a cause (`forensics explain CAUSE`, `seen_before` in case.json). The facts are those of the "
        "source, the words are ours; a cause stands only where the team's own account fits one.\n\n"
        f"Of {len(told)} a sign or a detector of ours speaks, where the usual metrics were logged: what was done helped in {count['yes']}, in part in "
        f"{count['partly']}, not in {count['no']}; of {count['open']} that is not recorded. {len(known) - len(told)} could not have been told from a log.\n\n"
        f"{len([i for i in told if i.causes])} of them have a cause on our list, and the signs lead to it in {len([i for i in told if led_to(i)])}: where they do not, "
        "the symptom is seen and that cause is not weighed by it (*not led to*).\n"
    ]
    heads = ["training", "what was seen", "done", "then", "helped", "cause", "speaks", "source"]
    parts.append(
        "## A sign speaks\n\n" + _table(heads, [[*_incident(i), _causes(i), _ids(i.speaks), f"[{i.shown}]({i.source})"] for i in told])
    )
    rest = [[*_incident(i), i.silent, f"[{i.shown}]({i.source})"] for i in known if not i.speaks]
    parts.append("## No log could have told\n\n" + _table([*heads[:5], "why", "source"], rest))
    return PUBLISHED_NOTICE + "\n".join(parts)


def led_to(i: incidents.Incident) -> list[str]:
    """The causes of an incident that one of its signs weighs for, or is an effect of."""
    known = ((files.causes()[c], c) for c in i.causes)
    return [c for cause, c in known if set(i.speaks) & {*cause.for_, *(n for names in cause.explains for n in names)}]


def _causes(i: incidents.Incident) -> str:
    led = led_to(i)
    return ", ".join(f"`{c}`{'' if c in led else ' (not led to)'}" for c in i.causes)


def _incident(i: incidents.Incident) -> list[str]:
    return [" ".join(filter(None, (i.run, i.year, i.place))), i.what, i.did, i.outcome, "" if i.helped == "open" else i.helped]


def published_recipes() -> str:
    """The table of recipes, a section a kind of model."""
    parts = [
        "# Published recipes\n\nWhat papers and repositories disclose; empty where they do not say. Where a run says what kind of model it trains, with which "
        "optimizer and of which size, its page and `run.recipe` in case.json set its settings beside those of the same kind, within three times its size. "
        "That is context: no cause is weighed by it. The figures were not held against the papers again when the table was written: open the source "
        "before you quote one.\n"
    ]
    for kind in dict.fromkeys(p.kind for p in recipes.published()):
        rows = []
        for p in (p for p in recipes.published() if p.kind == kind):
            v = {k: "" if x is None else f"{x:g}" for k, x in p.values.items()}
            warmup, batch = f"{v['warmup']} {p.warmup_unit}".strip(), f"{v['batch']} {p.batch_unit}".strip()
            betas = ", ".join(filter(None, (v["beta1"], v["beta2"])))
            told = [
                p.model,
                v["parameters"],
                v["tokens"],
                p.optimizer,
                v["rate"],
                warmup,
                p.schedule,
                betas,
                v["epsilon"],
                v["clip"],
                v["decay"],
                batch,
            ]
            rows.append([*told, p.source])
        heads = [
            "model",
            "parameters",
            "tokens",
            "optimizer",
            "rate",
            "warmup",
            "schedule",
            "betas",
            "epsilon",
            "clip",
            "decay",
            "batch",
            "source",
        ]
        parts.append(f"## {kind.capitalize()}\n\n{_table(heads, rows)}")
    return PUBLISHED_NOTICE + "\n".join(parts)


def _ids(names: Iterable[str]) -> str:
    return ", ".join(f"`{n}`" for n in names)


def _table(heads: list[str], rows: Iterable[list[str]]) -> str:
    lines = (f"| {' | '.join(c.replace('|', '/') for c in row)} |" for row in (heads, ["---"] * len(heads), *rows))
    return "\n".join(lines) + "\n"


def guards() -> str:
    """The table of guards, and what benchmarks/guards.py measured of each."""
    rules = "\n".join(f"| `{g.name}` | `{g.metric}` | {g.says} | {g.source} |" for g in GUARDS)
    with (DOCS.parent / "benchmarks" / "guards.csv").open(encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    corpora = list(dict.fromkeys(r["corpus"] for r in rows if r["corpus"] != "all"))
    return (
        NOTICE
        + inspect.cleandoc(
            """# Guards: what would have caught it

        `forensics guard RUN` runs live guards over the recorded log. A guard is a rule that a training loop can follow: at each step it knows only the values
        until then, and it begins anew with each attempt. For each guard the table says at which step it would have fired, how many steps before the harm, and how
        often it would have fired for nothing before it. The best is the one that catches the harm with the fewest false alarms, then the earliest.
        `forensics guard RUN --emit hf|lightning|torch|python` writes it as a callback file, with its threshold and this evidence; `--guard NAME` writes another.
        In Python: `forensics.guard(path)` has `.best`, `.rows` and `.emit("hf")`. The case has the same under `guards`.

        *Harm*: the first symptom of severity warning or worse among those that the guard is there for. A guard catches it if it fires from 20 logged values before to
        100 after its first step, or until the symptom ends. Alarms 20 values apart are two. The thresholds are not fitted to your run; which guard is best is
        known in hindsight only. A guard whose metric was not logged cannot be judged: update-to-weight ratios are missing for that reason.

        ## The rules

        | guard | metric | fires where | threshold from |
        |---|---|---|---|
        """
        )
        + f"""
{rules}

## Measured

`python benchmarks/guards.py` on the runs of {", ".join(corpora)}. On healthy runs every alarm is false. Leads are in logged values, as first quartile,
median and third quartile; negative: after the first step of the harm. *Before*: caught at least one value earlier than the harm. Where a
threshold is said to be measured it was chosen on these runs, so that on others it is wrong a little more often. The harm is the one that the analysis found.

{_measured([r for r in rows if r["corpus"] == "all"])}
"""
        + "".join(f"\n### {c}\n\n{_measured([r for r in rows if r['corpus'] == c])}\n" for c in corpora)
    )


def _measured(rows: list[dict[str, str]]) -> str:
    head = "| guard | healthy runs | with a false alarm | false alarms in 10,000 values | runs with its harm | caught | before | lead |"
    lines = [head, "|" + "---|" * 8]
    for r in rows:
        rate = f"{1e4 * int(r['alarms']) / int(r['values']):.1f}" if int(r["values"]) else "-"
        lead = f"{r['lead_low']} / {r['lead']} / {r['lead_high']}" if r["lead"] else "-"
        counts = f"{r['harmed_runs']} | {r['caught']} | {r['before']}"
        lines.append(f"| {r['guard']} | {r['healthy_runs']} | {r['with_alarm']} | {rate} | {counts} | {lead} |")
    return "\n".join(lines)


PAGES = {
    "detectors.md": detectors,
    "causes.md": causes,
    "signs.md": signs,
    "formats-reference.md": formats,
    "metric-names-reference.md": metric_names,
    "tables.md": tables,
    "cli.md": commands,
    "folklore.md": folklore,
    "incidents.md": recorded,
    "recipes.md": published_recipes,
    "guards.md": guards,
}


def main() -> None:
    for name, write in PAGES.items():
        (DOCS / name).write_text(write(), "utf-8")
    if "--screenshots" in sys.argv:
        import pictures

        pictures.write()


if __name__ == "__main__":
    main()

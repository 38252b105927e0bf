"""The pages of docs/ that tables of the repository fill: folklore, recorded incidents, published recipes, guards. docs/make.py writes them."""

from __future__ import annotations

import csv
import inspect
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from forensics.causes import files
from forensics.guards.guard_table import GUARDS
from forensics.published import incidents, recipes

DOCS = Path(__file__).resolve().parent
FOLKLORE_NOTICE = "<!-- Written by docs/make.py: change docs/folklore.csv, then run `make docs`. -->\n\n"
GUARDS_NOTICE = (
    "<!-- Written by docs/make.py: change forensics/guards/guard_table.py or run benchmarks/guards.py, then run `make docs`. -->\n\n"
)
PUBLISHED_NOTICE = "<!-- Written by docs/make.py: change the tables in forensics/published, then run `make docs`. -->\n\n"
STATES = ("served", "partly", "missing", "not decidable")
SEEDS = {  # the first letter of a claim's id
    "T": ("Transformers", "ML Debugging skill, appendix on transformers and language models (`ml-debug/refs/transformers.md`)."),
    "S": ("Debugging in general", "ML Debugging skill (`ml-debug/SKILL.md`): quotes of practitioners."),
    "D": ("Instability", "A course's module 10.2, Debugging Training Instability."),
    "B": ("Loss patterns", "S. Bekman, Machine Learning Engineering Open Book: training instabilities and loss patterns."),
    "G": ("Playbook", "A debug guide, Debugging LLM & Model Training: five families of failures."),
}


def folklore() -> str:
    """One table a document, from docs/folklore.csv."""
    with (DOCS / "folklore.csv").open(newline="", encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    count = Counter(r["state"] for r in rows)
    parts = [
        "# Folklore, and what serves it\n\nWhat practitioners say of debugging a training, claim by claim, and what here serves it: a `detector`, a "
        "`sign`, a `cause`, what a cause says to do (`do`), an experiment of a replay (`arm`) or by hand (`experiment`), a `blind` spot that tells what "
        "to log, a `fact` among the figures of a run, a `look` at source, a command (`verb`), an `option`, a `table` of published trainings or a `page`. `forensics explain ID` prints most of them.\n\n"
        "*Served*: a run that shows it is told so. *Partly*: a part of it is, and the note says which. *Missing*: a run may show it, and nothing here looks. "
        "*Not decidable*: what a run leaves behind does not hold it.\n",
        table(["", *STATES], [["claims", *(str(count[s]) for s in STATES)]]),
    ]
    for letter, (title, what) in SEEDS.items():
        said = [r for r in rows if r["id"].startswith(letter)]
        ids = {r["id"]: ", ".join(f"{kind} `{name}`" for kind, _, name in (i.partition(":") for i in r["ids"].split())) for r in said}
        rendered = table(["", "claim", "state", "by", "note"], [[r["id"], r["claim"], r["state"], ids[r["id"]], r["note"]] for r in said])
        parts.append(f"## {title}\n\n{what}\n\n{rendered}")
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
        "## A sign speaks\n\n" + table(heads, [[*_incident(i), _causes(i), _ids(i.speaks), f"[{i.shown}]({i.source})"] for i in told])
    )
    rest = [[*_incident(i), i.silent, f"[{i.shown}]({i.source})"] for i in known if not i.speaks]
    parts.append("## No log could have told\n\n" + table([*heads[:5], "why", "source"], rest))
    return PUBLISHED_NOTICE + "\n".join(parts)


def led_to(i: incidents.Incident) -> list[str]:
    """The causes of an incident that one of its signs weighs for, or is an effect of."""
    known = ((files.causes()[c], c) for c in i.causes)
    return [c for cause, c in known if set(i.speaks) & {*cause.for_, *(n for effect in cause.explains for n in effect.signs)}]


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
        parts.append(f"## {kind.capitalize()}\n\n{table(heads, rows)}")
    return PUBLISHED_NOTICE + "\n".join(parts)


def _ids(names: Iterable[str]) -> str:
    return ", ".join(f"`{n}`" for n in names)


def table(heads: list[str], rows: Iterable[list[str]]) -> str:
    lines = (f"| {' | '.join(c.replace('|', '/') for c in row)} |" for row in (heads, ["---"] * len(heads), *rows))
    return "\n".join(lines) + "\n"


def guards() -> str:
    """The table of guards, and what benchmarks/guards.py measured of each."""
    rules = "\n".join(f"| `{g.name}` | `{g.metric}` | {g.says} | {g.source} |" for g in GUARDS)
    with (DOCS.parent / "benchmarks" / "guards.csv").open(encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    corpora = list(dict.fromkeys(r["corpus"] for r in rows if r["corpus"] != "all"))
    return (
        GUARDS_NOTICE
        + inspect.cleandoc(
            """# Guards: what would have caught it

        `forensics guard RUN` runs live guards over the recorded log. A guard is a rule that a training loop can follow: at each step it knows only the values
        until then, and it begins anew with each attempt. For each guard the table says at which step it would have fired, how many steps before the harm, and how
        often it would have fired for nothing before it. The best is the one that catches the harm with the fewest false alarms, then the earliest.
        `forensics guard RUN --emit hf|lightning|torch|python` writes it as a callback file, with its threshold and this evidence; `--guard NAME` writes another.
        In Python: `forensics.guard(path)` has `.best`, `.rows` and `.emit("hf")`. The case has the same under `guards`.

        *Harm*: the first symptom of severity warning or worse among those that the guard is there for. A guard catches it if it fires from 20 logged values before to
        100 after its first step, or until the symptom ends. Alarms 20 values apart are two. The thresholds are not fitted to your run; which guard is best is
        known in hindsight only. A guard whose metric was not logged cannot be judged. The ratio of updates to weights is taken as logged, or worked out from the logged
        norms of updates and weights; norms of checkpoints say how far the weights went, and not how large one update was. `forensics audit` counts the same
        over your own runs.

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

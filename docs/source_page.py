"""docs/source.md: what is looked for in source that lies with a run, and what was measured of each look."""

from __future__ import annotations

import csv
import inspect
from pathlib import Path

from table_pages import table

from forensics.source.all_looks import LOOKS

DOCS = Path(__file__).resolve().parent
NOTICE = "<!-- Written by docs/make.py: change the docstrings in forensics/source or run benchmarks/source_looks.py, then run `make docs`. -->\n\n"


def source() -> str:
    """The looks at source, and what benchmarks/source_looks.py measured of each."""
    with (DOCS.parent / "benchmarks" / "source_looks.csv").open(encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    corpora = {r["corpus"]: f"{r['scripts']} scripts of {r['repositories']} repositories" for r in rows}
    held_out = [r for r in rows if r["corpus"] == "held out"]
    each = round(int(held_out[0]["scripts"]) / sum(int(r["said_fault"]) for r in held_out))
    looks = "".join(f"| `{name}` | {' '.join((f.__doc__ or '').split())} |\n" for name, f in LOOKS.items())
    return (
        NOTICE
        + inspect.cleandoc(
            """# Source that lies with a run

        Where source lies with a run, it is parsed with Python's `ast`, never imported and never run. It is looked for beside the log (the same run folder), in the
        snapshot of a tracker or script (`code/`, `_sources/`, `src/` ...), in files that `diff.patch` adds whole, in notebooks, and at the head of a log that begins with
        its own program. A script counts together with the modules beside it that it imports. Where several scripts lie there, only what they agree on is told, for
        nothing records which of them ran. Files above 256 KiB, and more than 40 files or 1 MiB in all, are left out.

        Each look answers that a thing is done wrong (with file and line), done right (with file and line), or that it cannot tell: no loop of its own, a library's trainer,
        a helper whose source is missing. A slip is a finding of severity `info` (`suspect_source`) and a [sign](signs.md) `source_...`: it speaks for a cause only where an
        effect of that cause was seen in the numbers, and makes no run unhealthy.

        ## The looks

        | look | what is wrong |
        |---|---|
        """
        )
        + f"""
{looks}
## Measured

`python benchmarks/source_looks.py` on public scripts, each looked at alone. *Told*: the look said right or wrong. *Said wrong*: a slip was reported. *Planted*: of the
scripts that do the thing right, those in which it could be taken out by machine (`benchmarks/source_faults.py`); *caught*: then reported as a slip, *missed*: still called
right; of the rest the look could not tell. Real slips take more forms than these.

The looks were mended on the first two corpora, so their false alarms flatter. *Held out* was fetched afterwards and measured once; one wrong reading there (two
Keras models in one guide) was mended after that, and is still in the numbers. The other slips that were reported
there were read once by their author: the line does what the sentence says, in examples that train well enough all the same. On people's runs expect that one script in {each} has something reported.

"""
        + "\n".join(f"### {name}: {size}\n\n{_looked([r for r in rows if r['corpus'] == name])}" for name, size in corpora.items())
    )


def _looked(rows: list[dict[str, str]]) -> str:
    columns = ("told", "said_fault", "repositories_told", "planted", "caught", "called_right")
    heads = ["look", "told", "said wrong", "repositories told", "planted", "caught", "missed"]
    return table(heads, ([f"`{r['look']}`", *(r[c] for c in columns)] for r in rows))

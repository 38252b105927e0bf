"""False alarms of the looks at source on public scripts, and the faults that they catch: `python benchmarks/source_looks.py NAME=DIR... [--write]`.

DIR holds a folder for each repository, with scripts that train something; each script is looked at alone, as if it lay beside a log. Tests of
libraries and packages under a `torch` folder are left out. A look that calls something right is asked again after the right thing was
taken out (source_faults.py). --write puts the counts into source_looks.csv, from which docs/make.py makes docs/source.md, and
fit/fit.py what a sign of source weighs that no run with a known cause has.
"""

from __future__ import annotations

import argparse
import ast
import csv
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from source_faults import FAULTS  # noqa: E402

from forensics.source.all_looks import LOOKS, looked  # noqa: E402
from forensics.source.answers import FAULT, RIGHT  # noqa: E402
from forensics.source.parsed_module import Listing, Module, last, parse  # noqa: E402
from forensics.source.program import Program  # noqa: E402
from forensics.source.run_source import MOST_BYTES  # noqa: E402

DATA = HERE / "source_looks.csv"
COLUMNS = (
    "corpus",
    "look",
    "scripts",
    "repositories",
    "told",
    "said_fault",
    "repositories_told",
    "repositories_fault",
    "planted",
    "caught",
    "called_right",
)
LIBRARY = {
    "tests",
    "test_utils",
    "torch",
    "apex",
    "gpu_tests",
    "deprecated",
}  # folders of libraries' own code: nobody leaves it beside a log


def scripts(folder: Path) -> Iterator[tuple[str, Program, str]]:
    """(repository, program, text) of each script below that has a backward pass of its own, or a library's trainer."""
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).parts
        if LIBRARY & set(parts) or path.stat().st_size > MOST_BYTES:
            continue
        text = path.read_text("utf-8", "replace")
        module = parse(Listing(path.relative_to(folder).as_posix(), text))
        if isinstance(module, Module):
            program = Program([module])
            if any(last(c.name) in ("backward", "fit") or last(c.name).endswith("Trainer") for c in program.calls):
                yield parts[0], program, text


def planted(look: str, text: str) -> str | None:
    """What the look says once its fault was planted; None where there was nothing to take out."""
    before = ast.parse(text)
    after = ast.unparse(ast.fix_missing_locations(FAULTS[look].visit(ast.parse(text))))
    if after == ast.unparse(before):
        return None
    module = parse(Listing("script.py", after))
    return LOOKS[look](Program([module])).state if isinstance(module, Module) else None


def measured(corpus: str, folder: Path) -> Iterator[dict[str, object]]:
    """A row a look."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    of_repository: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    found = list(scripts(folder))
    for repository, program, text in found:
        for look, answer in looked(program).items():
            if answer.state in (FAULT, RIGHT):
                of_repository[look][repository].append(answer.state == FAULT)
            if answer.state == FAULT:
                print(f"{corpus} {look}: {answer.text} | {answer.line}")
            if answer.state == RIGHT and look in FAULTS and (after := planted(look, text)):
                counts[look][after] += 1
    for look in LOOKS:
        told = of_repository[look]
        yield dict(
            zip(
                COLUMNS,
                (
                    corpus,
                    look,
                    len(found),
                    len({r for r, *_ in found}),
                    sum(map(len, told.values())),
                    sum(map(sum, told.values())),
                    len(told),
                    round(sum(sum(x) / len(x) for x in told.values()), 3),
                    counts[look].total(),
                    counts[look][FAULT],
                    counts[look][RIGHT],
                ),
                strict=True,
            )
        )


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("corpora", nargs="+", metavar="NAME=DIR")
    ap.add_argument("--write", action="store_true", help=f"write {DATA.name}")
    a = ap.parse_args()
    rows = [row for pair in a.corpora for row in measured(pair.partition("=")[0], Path(pair.partition("=")[2]))]
    for row in rows:
        print(*row.values(), sep="\t")
    if a.write:
        with DATA.open("w", encoding="utf-8", newline="") as f:
            out = csv.DictWriter(f, COLUMNS, lineterminator="\n")
            out.writeheader()
            out.writerows(rows)


if __name__ == "__main__":
    main()

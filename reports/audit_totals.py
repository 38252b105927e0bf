"""What is asked first of many runs, as tiles at the top of an audit's page: each number shows the runs that it counts in the table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from reports import text_format
from reports.audit_rows import LOSSES, OPEN, ended, hours

DIED = ("crashed", "hung", "stopped")  # the statuses that the second tile counts
Audit = dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """A number, what it counts, and the filter that shows its runs: a column of the table and the values in it; none: any value."""

    number: str
    what: str
    column: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tile:
    """A question, its number, what is to be said of it, and the entries behind it."""

    what: str
    total: Entry
    note: str = ""
    entries: Sequence[Entry] = ()


def tiles(audit: Audit, titles: dict[str, str]) -> list[Tile]:
    """In the order in which they are asked: what died, what it cost, whose and where, what to start again."""
    costs, runs, bad = audit["costs"], audit["runs"], audit["verdicts"]["unhealthy"]
    causes = [e for c in audit["causes"] for e in _of_cause(c, titles)]
    known = f"{audit['verdicts']['healthy']} healthy, {audit['verdicts']['inconclusive']} cannot be judged"
    others = f"the cause of {n} is open; {known}" if (n := open_causes(audit)) else known
    found = [Tile("Went wrong, by cause", Entry(f"{bad} of {runs}", "", "verdict", ("unhealthy",)), others, causes)]
    died = sum(e["runs"] for e in costs["by_ending"])
    how = _merged((ended(e["value"]) or "", e["runs"]) for e in costs["by_ending"])
    entries = [_entry(str(n), name, "ending") for name, n in how if name]
    found.append(Tile("Died or were stopped, by ending", Entry(str(died), "", "status", DIED), "", entries))
    found.append(_lost(costs, runs))
    for key, column, what in (("by_host", "host", "node"), ("by_owner", "owner", "owner"), ("by_shard", "shard", "data shard")):
        if costs[key]:
            entries = [_entry(hours(e["lost_gpu_hours"]), e["value"], column) for e in costs[key]]
            found.append(Tile(f"GPU-hours lost, by {what}", Entry("", "", column), "", entries))
    look = costs.get("to_look_at_first") or 0
    if costs["to_start_again"] or look:
        again = Entry(str(costs["to_start_again"]), "", "run again", ("yes",))
        entries = [Entry(str(look), "need a look first", "run again", ("not yet",))] if look else []
        what = "From which checkpoint and with what change, the table says; also finished runs with a wrong result, and sound ones that were stopped."
        found.append(Tile("Ready to run again", again, what, entries))
    return found


def _of_cause(c: dict[str, Any], titles: dict[str, str]) -> list[Entry]:
    """A cause; an open one with the candidates that lead."""
    title = titles.get(c["cause"], c["cause"])
    near = [(str(n["runs"]), text_format.one_line(n["title"])) for n in c.get("nearest", [])]
    return [_entry(str(c["runs"]), title, "cause"), *(Entry(n, f"open, perhaps: {t}", "cause", (f"{title}: {t}",)) for n, t in near)]


def open_causes(audit: Audit) -> int:
    """Of how many runs that went wrong no cause leads clearly."""
    return sum(int(c["runs"]) for c in audit["causes"] if c["cause"] == OPEN)


def _entry(number: str, value: str, column: str) -> Entry:
    """With the value as the table shows it."""
    shown = text_format.one_line(value)
    return Entry(number, shown, column, (shown,))


def _merged(pairs: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    counted: Counter[str] = Counter()
    for name, n in pairs:
        counted[name] += n
    return counted.most_common()


def _lost(costs: Audit, runs: int) -> Tile:
    """How many hours were lost, of how many; or why nobody knows."""
    total = Entry(hours(costs["lost_gpu_hours"]) if costs["known"] else "not known", "", "GPU-hours lost")
    entries = [_entry(hours(e["lost_gpu_hours"]), LOSSES[e["value"]], "lost to") for e in costs["by_loss"]]
    known = f"of {hours(costs['gpu_hours'])}; {_known_for(costs, runs)}" if costs["known"] else missing(costs)
    return Tile("GPU-hours lost, by kind of loss", total, known, entries)


def _known_for(costs: Audit, runs: int) -> str:
    """What is not known is not nothing."""
    return f"known for {'all' if costs['known'] == runs else costs['known']} of {text_format.plural(runs, 'run')}"


def _ended(status: str, runs: int) -> str:
    return status if status != "stopped" else f"{'was' if runs == 1 else 'were'} stopped"


def missing(costs: Audit) -> str:
    """Of how many runs the hours are not known, and why."""
    return "; ".join(f"{text_format.plural(e['runs'], 'run')}: {e['value']}" for e in costs["unknown"][:3])


def headline(audit: Audit) -> str:
    """One sentence with the counts: how many went wrong, and how many of these died; then the others."""
    v = audit["verdicts"]
    said = f"{v['unhealthy']} of {text_format.plural(audit['runs'], 'run')} went wrong"
    died = Counter(r.get("status") for r in audit["rows"] if r["verdict"] == "unhealthy")
    ended = text_format.joined([f"{died[s]} {_ended(s, died[s])}" for s in DIED if died[s]])
    rest = [f"{said}, of which {ended}" if ended else said]
    open_ = v["inconclusive"] - len(audit["failed"])  # a run that could not be analyzed has that verdict, too
    rest += [f"{open_} cannot be judged"] if open_ > 0 else []
    rest += [f"{len(audit['failed'])} could not be analyzed"] if audit["failed"] else []
    costs, shared = audit["costs"], len(audit["shared_batches"])
    if costs["lost_gpu_hours"] is not None:
        rest.append(
            f"{hours(costs['lost_gpu_hours']) if costs['lost_gpu_hours'] else 'no'} GPU-hours lost, {_known_for(costs, audit['runs'])}"
        )
    rest += [f"{text_format.plural(shared, 'bad batch', 'bad batches')} shared by several"] if shared else []
    return f"{'; '.join(rest)}."

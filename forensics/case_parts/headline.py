"""The verdict and the one sentence at the top of the page, which must not say more than the evidence does."""

from __future__ import annotations

import re
from collections.abc import Sequence

from forensics.case import Check, Finding, Hypothesis
from forensics.causes.files import causes
from forensics.certainty import OPEN, UNNAMED, certainty, within
from forensics.detectors import ending as how
from forensics.detectors import loss_spike, odd_metric
from forensics.findings import GRAVE, findings_of
from forensics.run.breaks_off import breaks_off
from forensics.run.how_it_ended import Ending, ending
from forensics.run.inputs import rises
from forensics.run.plan import reached, unit
from forensics.run.series import names, parts
from parsers.tables import Run

MATTER = ("loss_spike", "nonfinite", "divergence")  # without these a run cannot be called healthy
MATTER_RISING = ("nonfinite", "divergence", "plateau")  # a reward goes down and up: its jumps are no spikes, but it has to rise
PLAYERS = "gan_trouble"  # a discriminator's losses or scores were looked at
MATTER_OF_TWO = ("nonfinite", PLAYERS, "odd_metric")  # no loss stands for the whole, there is none to spike: each is a metric to watch
LONGEST = 120  # characters of a headline's first half
_ABRUPT = {"nonfinite": 0, "loss_spike": 1}  # kinds that say more of one moment than others
QUOTED = 40  # characters by which a quoted log line is known
_NOT_TRAINED = {"last_line", "last_words", "cache"}  # events of any text: it has a last line, and may warn


def verdict(run: Run, findings: Sequence[Finding], checks: Sequence[Check]) -> str:
    """unhealthy: a finding of severity warning or worse stands; healthy: what matters ran and is clear; else inconclusive, as where somebody
    stopped the run short of its plan, or its log breaks off: whether it was killed, hangs or goes on cannot be told."""
    if any(f.severity in GRAVE for f in findings):
        return "unhealthy"
    outcome = {c.id: c.status for c in checks}
    if not _stopped_short(run) and all(outcome.get(m) in ("clear", "fired") for m in _matter(run, findings, checks)):
        return "healthy"
    return "inconclusive"


def _matter(run: Run, findings: Sequence[Finding], checks: Sequence[Check]) -> tuple[str, ...]:
    """The checks without which this run cannot be called healthy."""
    if rises(run):
        return MATTER_RISING
    losses = {p.tag for p in parts(run, "loss.aux")}
    runs_away = any(f.facts.tag in losses and not f.facts.after <= f.facts.before for f in findings_of(findings, odd_metric.Facts))
    of_two = any(c.id == PLAYERS and c.status == "clear" for c in checks) and not any(name.startswith("rl.") for name in names(run))
    return MATTER_OF_TWO if of_two and not runs_away else MATTER  # an actor's critic is no player


def sentence(
    run: Run, said: str, findings: Sequence[Finding], hypotheses: Sequence[Hypothesis], checks: Sequence[Check], proof: str = ""
) -> str:
    """The answer in one or two sentences; `proof`: what a replay showed."""
    ended = ending(run)
    told = how.sentence(ended)
    if said == "healthy":
        clear = sum(c.status == "clear" for c in checks)
        silent = sum(c.status == "cannot_tell" for c in checks)
        clears = f"No trouble in what was logged: {clear} of {len(checks)} checks are clear, {silent} had no data."
        return " ".join(filter(None, (clears, _harmless_spikes(run, checks), told)))
    if said == "inconclusive":
        said_so = set(zip(*(run.tables["events"][c].to_pylist() for c in ("kind", "level")), strict=True))
        trained = {kind for kind, level in said_so if level != "warning"} - _NOT_TRAINED
        if not trained and not any(table.num_rows for name, table in run.tables.items() if name != "events"):
            return "No training run was found in what was read: not one step, measurement, setting or checkpoint."
        missing = [c.note for c in checks if c.id in _matter(run, findings, checks) and c.status in ("cannot_tell", "error")]
        missing += [short] if (short := _stopped_short(run)) else []
        unclear = f"Cannot tell whether this run is healthy: {missing[0] if missing else 'too little was logged'}."
        leads = _leads(ended) or (breaks_off(run) and missing[:1] == [short])
        return f"{told} {unclear}" if leads else f"{unclear} {told}".strip()
    return unhealthy(findings, hypotheses, ended, proof)


def _stopped_short(run: Run) -> str:
    """What was still to come where the user, a scheduler or a signal ended the run before its planned length, which may be unknown; what is not known
    where its log breaks off; else nothing."""
    ended = ending(run)
    if breaks_off(run):
        return "whether it was killed, hangs or still runs was not logged. What it logged until then shows no trouble"
    if ended.status != "stopped" or ended.step is None or (ended.planned is not None and reached(run)):
        return ""
    left = "it was stopped, and how far it was to go was not logged"
    if ended.planned is not None:
        left = f"{ended.planned - ended.step:,} of its {ended.planned:,} {unit(run)}s were still to come"
    return f"{left}. What it logged until then shows no trouble"


def _harmless_spikes(run: Run, checks: Sequence[Check]) -> str:
    fired = any(c.id == "loss_spike" and c.status == "fired" for c in checks)
    # all of them, of which the page may list the gravest
    count = len(findings_of(loss_spike.detect(run), loss_spike.Facts)) if fired else 0
    return (
        f"{count} loss spike{' was' if count == 1 else 's were'} found, {'not' if count == 1 else 'none'} worth a warning." if count else ""
    )


def unhealthy(findings: Sequence[Finding], hypotheses: Sequence[Hypothesis], ended: Ending | None, proof: str = "") -> str:
    """What happened, its likeliest cause, and how the run ended where that does not lead."""
    told = how.sentence(ended) if ended is not None and not _leads(ended) else ""
    return " ".join(s for s in (explained(findings, hypotheses, ended), proof, told) if s)


def _leads(ended: Ending) -> bool:
    """Whether the words in which the process ended come first: it died, or somebody stopped it."""
    return bool(ended.says) and ended.status in ("crashed", "hung", "stopped")


def explained(findings: Sequence[Finding], hypotheses: Sequence[Hypothesis], ended: Ending | None = None) -> str:
    """What happened and the likeliest cause, in the words that its probability allows."""
    best = hypotheses[0] if hypotheses else None
    symptom = main(findings, best)
    happened = headline(symptom) if symptom else "Something went wrong"
    if ended is not None and _leads(ended):
        told = how.title(ended).rstrip(".")
        happened = (
            told if symptom is None or symptom.kind == "ending" or _quotes(symptom, ended.says) else f"{how.stopped(told)} {happened}"
        )
    if best is not None and best.title.endswith(UNNAMED):
        return f"{how.stopped(happened)} {UNNAMED[0].upper()}{UNNAMED[1:]}."
    said = certainty(best.probability, True, adverb=True) if best is not None and best.id != "unknown" else OPEN
    if best is None or said == OPEN:
        rivals = [within(h.title) for h in hypotheses if h.id != "unknown"][:2]
        maybe = f" The nearest candidates: {' or '.join(rivals)}." if rivals else ""
        return f"{how.stopped(happened)} The cause is open.{maybe}"
    # "Out of memory: fragmentation" where the first half of the sentence has said so: not a second time
    parts = best.title.split(": ")
    new = [part for part in parts[best.id in causes() and causes()[best.id].names_symptom :] if part.lower() not in happened.lower()]
    cause = f"Cause, {said}: {within(': '.join(new))}." if new else f"That itself is {said} the cause."
    return f"{how.stopped(happened)} {cause}"


def _quotes(finding: Finding, says: str) -> bool:
    lines = [str(line) for e in finding.evidence if e.kind == "text" for line in e.data.get("lines", ())]
    return any(says[:QUOTED] in line for line in lines)


def headline(finding: Finding) -> str:
    """The title as the first half of a sentence for people who were not there: without the log line that it quotes, and
    short where it lists much; the finding has both."""
    title = finding.title.rstrip(".")
    quoted = [line for e in finding.evidence if e.kind == "text" for line in e.data.get("lines", ())]
    for at in [m.start() for m in re.finditer(": ", title)]:
        if any(title[at + 2 :][:QUOTED].strip() in str(line) for line in quoted):
            title = title[:at].removesuffix(", until")
            break
    if len(title) > LONGEST:
        whole = (
            m.start() for m in re.finditer("[:;,] ", title[:LONGEST]) if title.count("(", 0, m.start()) == title.count(")", 0, m.start())
        )
        cut = max(whole, default=0)
        title = title[:cut] if cut > 20 else title
    first = title.split(" ", 1)[0]
    return title[0].upper() + title[1:] if first.isalpha() else title


def main(findings: Sequence[Finding], best: Hypothesis | None = None) -> Finding | None:
    """The finding to lead with: of the gravest one that speaks for the leading cause, then the earliest; of a NaN, the
    jump that it makes and what stays of it, in this order."""
    order = {"critical": 0, "warning": 1, "info": 2}
    cited = {i for c in best.clues if c.weight > 0 for i in c.findings} if best else set()

    def rank(f: Finding) -> tuple[int, bool, bool, int, int]:
        return order[f.severity], f.id not in cited, f.first_step is None, f.first_step or 0, _ABRUPT.get(f.kind, len(_ABRUPT))

    return min(findings, key=rank, default=None)

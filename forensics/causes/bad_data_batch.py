"""Bad data batch

What it is
    One batch, or a few single ones, with broken content: random characters, wrong labels, a document from another world.

How it is weighed
    For it: a spike that comes at once and is back as fast, a calm run before and after, a calm learning rate, the same
    spike in two attempts of the run; several spikes that share a sample, a batch, a shard or a place in the epoch, which is
    the one clue that says data rather than optimizer; the loss of one data source alone. Against it: a loss whose scatter reaches almost as high, spikes again and again, a learning rate that moved, a restart at that step.

What settles it
    Replaying the step with and without the batch.

Folklore
    "Read the data." PaLM skipped 200 to 500 batches around a spike; the same batches at another state did no harm.
"""

from __future__ import annotations

from forensics.batches.enrichment import decibans
from forensics.case import Finding, Hypothesis
from forensics.detectors import loss_scale, loss_spike, lr_schedule, nonfinite, plateau, restart, spike_data
from forensics.ledger import Findings, Ledger, all_of, findings_of, span
from forensics.many_runs.baseline import Beside, Said
from forensics.many_runs.side_by_side import own_spikes
from forensics.run.series import series
from parsers.tables import Run

TITLE = "Bad data batch"
PRIOR = -6.0
EXPECTS = "counters:go_on samples:odd rate:as_told tensors:moved raw_loss:there both_sides:later replay:batch third:back epsilon:back"
NEEDS_TO_SPEAK = ("grad.norm", "batch ids")
ARMS = ("skip", "later")
OUTCOMES = {
    "data: finite": 24.0,
    "state x data": 14.0,
    "later: again": 3.0,
    "later: harmless": -2.0,
    "skip: harmless": 3.0,
    "skip: again": -4.0,
    "samples: unlike": 6.0,
    "samples: alike": -3.0,
}
NEAR = 2  # steps between a spike here and one of the baseline that are the same batch
Spike = Finding[loss_spike.Facts]
DOUBT, FAR = 0.3, 1.0  # probability of no spike; height over the highest value before, in units of ln


def weigh(run: Run, findings: Findings) -> Hypothesis | None:
    common = findings_of(findings, spike_data.Facts)
    behind = {step for f in common for step in f.facts.steps}  # bumps at regular distances count where data explain them
    traps = findings_of(findings, loss_spike.Facts, traps=True)
    spikes = findings_of(findings, loss_spike.Facts) or [f for f in traps if f.facts.start in behind]
    if not spikes:
        return None
    best = max(spikes, key=lambda f: f.facts.noise_sigmas)
    ledger = Ledger(PRIOR)
    grave = [f for f in spikes if f.severity != "info"]
    fast = {f.facts.class_ for f in grave or spikes} == {"fast"}
    _recovery(ledger, best, fast, [f for f in grave or spikes if f.facts.class_ == "non_recovering"])
    _shape(run, ledger, best)
    if len(grave) > 5:
        ledger.add(-6, f"{len(grave)} spikes: a sick optimizer or rate spikes again and again.", grave[:5])
    elif len(grave) <= 2:
        ledger.add(2, "The rest of the run is calm.")
    for f in common:
        _shared(ledger, f, [s for s in spikes if s.facts.start in f.facts.steps])
    source = best.facts.moved_first.get("source")
    if source and source["alone"]:
        # 4: parts of a mixture have batches of their own, but a part with a noisier loss also jumps by itself
        ledger.add(4, f"Of {source['looked']} data sources only the loss of {source['tag']} leaves its range.", [best])
    _other_troubles(run, findings, ledger, best)
    if run.tables["batches"].num_rows:
        ledger.add(1, "The log says which samples were in the batch, so this can be checked by reading them.")
    else:
        ledger.cannot_tell("no file maps steps to samples.")
    return ledger.hypothesis(
        __name__,
        steps=span(grave or spikes),
        settle=f"Replay step {best.facts.peak} with and without its batch.",
        interventions=[
            f"Keep the run: the loss is back where it was after step {best.facts.end}."
            if fast
            else "Go back to the last checkpoint before the spike.",
            f"Read the samples of {_steps(best)}.",
            "Leave these samples out of the next epoch, and look for more of their kind.",
        ],
    )


def _recovery(ledger: Ledger, best: Spike, fast: bool, stays: list[Spike]) -> None:
    if fast:
        ledger.add(8, "The loss jumps and is back at once: the state of the model survived it.", [best])
    elif stays:
        ledger.add(-8, "The loss does not come back; a bad batch alone does no lasting harm.", stays)
    else:
        ledger.add(2, "The loss needs a while to come back: the batch moved the weights, or something else did.", [best])


def _shape(run: Run, ledger: Ledger, best: Spike) -> None:
    s, facts = series(run, best.facts.metric), best.facts
    if s is not None and facts.peak - facts.start <= 2 * s.interval:
        ledger.add(3, "The peak is reached at once.", [best])
    else:
        ledger.add(-4, "The loss climbs over several values before the peak.", [best])
    doubt = facts.class_probability["not_a_spike"]
    if doubt > DOUBT and facts.over_highest is not None and facts.over_highest < FAR:
        ledger.add(-9, f"In this loss it may be scatter: values as far out come without cause ({doubt:.0%} likely).", [best])
    if facts.end is not None and facts.values > 20:
        ledger.add(-6, f"It lasts for {facts.values} values, longer than a single batch does.", [best])


def _shared(ledger: Ledger, f: Finding[spike_data.Facts], spikes: list[Spike]) -> None:
    """Clues from what the spikes share. Weights are the most that the p-value can bear, held down by what it leaves open.

    12 at most for shared ids: the test allows 1 % wrong accusations in sound runs, and the samples may be only hard. 6
    for the same place in each epoch without ids, since loops do things at fixed places too; 10 where ids agree there.
    """
    if not isinstance(f.facts, spike_data.Place):
        ledger.add(decibans(f.facts.p, 12), f"{f.title}.", [f, *spikes])
    elif f.facts.seam:
        ledger.cannot_tell("spikes at the seam of the epochs are as often the loader's as the data's.")
    elif f.facts.alike is None or f.facts.alike >= 0.5:
        ledger.add(decibans(f.facts.p, 6 if f.facts.alike is None else 10), f"{f.title}.", [f, *spikes])
    elif f.facts.alike < 0.1:
        ledger.add(-4, f"{f.title}, but the batches there hold other samples each time: the loop does something there.", [f])


def _other_troubles(run: Run, findings: Findings, ledger: Ledger, best: Spike) -> None:
    if findings_of(findings, plateau.Facts, severity=["warning"]):
        text = "The loss does not fall in the whole run, which no single batch explains."
        ledger.add(-10, text, findings_of(findings, plateau.Facts))
    moved = [f for f in findings_of(findings, lr_schedule.Facts) if _near(f, best)]
    if moved:
        ledger.add(-12, "The learning rate moved at that step.", moved)
    elif series(run, "lr") is None:
        ledger.cannot_tell("the learning rate was not logged.")
    restarts = [f for f in findings_of(findings, restart.Facts) if abs((f.first_step or 0) - best.facts.start) <= 5]
    if restarts:
        ledger.add(-8, "The run was restarted there.", restarts)
    if all_of(findings, loss_scale.Facts, nonfinite.Facts, severity=["critical"]):
        ledger.add(-4, "Values overflow or become NaN, which points elsewhere.", findings_of(findings, nonfinite.Facts)[:1])


def _near(f: Finding, spike: Spike) -> bool:
    end = spike.facts.end or spike.facts.peak
    return f.first_step is not None and spike.facts.start - 5 <= f.first_step <= end


def _steps(spike: Spike) -> str:
    first, last = spike.facts.start, spike.facts.peak
    return f"step {first}" if first == last else f"steps {first} to {last}"


def baseline(b: Beside, findings: Findings) -> Said:
    """The same batch in the baseline: harmful there, too, or not."""
    starts = [f.facts.start for f in findings_of(findings, loss_spike.Facts)]
    if b.order["order"] != "same" or not starts:
        return None
    there = [s.start + (b.order["shift"] or 0) for s in own_spikes(b.base)[0]]
    both = [s for s in starts if any(abs(s - t) <= NEAR for t in there)]
    if both:
        return 8.0, f"The baseline reads the same data in the same order, and spikes there, too (step {both[0]})."
    return -4.0, f"The baseline reads the same data in the same order and passes step {starts[0]} unharmed: the batch alone does not do it."


def blamed(run: Run, f: Finding) -> list[tuple[int, int]]:
    """(attempt, step) of the batches that a finding points at."""
    facts = f.facts
    return [(facts.attempt, s) for s in range(facts.start, facts.peak + 1)] if isinstance(facts, loss_spike.Facts) else []

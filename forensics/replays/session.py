"""The order of a replay: what to explain, from where, reproduce, experiments, verdict.

`replay` never raises for what an adapter does: what was learned until then is in the result, with one sentence about what
stopped it and the adapter's traceback.
"""

from __future__ import annotations

import math
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from forensics.batches import run_order
from forensics.case import Case
from forensics.replays import (
    adapter_source,
    check,
    cost,
    explain_reproduced,
    extra_arms,
    journal,
    numerics,
    one_process,
    resume,
    start_checkpoints,
    verdict,
)
from forensics.replays.arms import Arms
from forensics.replays.client import ReplayFailed
from forensics.replays.delta_debugging import OutOfBudget
from forensics.replays.ordinary import nothing_special
from forensics.replays.reproduce import Reproduction, reproduce
from forensics.replays.request import Asked, Progress, Scene, started
from forensics.replays.request import Options as Options
from forensics.replays.request import Result as Result
from forensics.replays.runner import Effect, Lab
from forensics.replays.targets import Trouble, logged, troubles
from forensics.run.endings import step_origin
from parsers.tables import Run

LEAST = 400  # steps of budget, however short the window
ACCUSES = (verdict.DATA, verdict.STATE_DATA)
UNPROVEN = 0.6  # confidence of a culprit, at most, where nothing shows that replay and run are the same training


def replay(run: Run, case: Case, options: Options, progress: Progress) -> Result:
    """Explains the first effect; where that is bad data, the further ones, too, for their culprits."""
    found = troubles(run, case.findings, options.steps)
    document: dict[str, Any] = {"device": "", "noise_floor": 0.0, "arms": [], "verdict": verdict.UNDECIDED, "steps_replayed": 0}
    result = Result(document, root=str(run.root))
    options = with_order(run, options, found[0].onset if found else None)
    asker: journal.Answering | None = None
    start_checkpoints.fetch(run, *((found[0].onset, found[0].until) if found else (math.inf,)))
    try:
        with started(options, run.root) as worker:
            about = worker.open(options.device, options.threads or max(1, (os.cpu_count() or 2) // 2), options.memory)
            further = [options.device, options.threads, options.python, options.processes, sorted((options.order or {}).items())]
            asker = journal.remembering(worker, options.journal, about, further) if options.journal else worker
            document |= {"device": f"{about['device']}, {about['precision']}, torch {about['torch']}", "parameters": about["parameters"]}
            asked = Asked(run, case, options, asker, about, progress, time.monotonic() + options.max_time)
            checked = _checked(asked, found, result) if options.check or not _nothing(asked, found, result) else None
            if checked is not None:
                _explain_all(checked, found, result)
    except OutOfBudget as e:  # while an effect was reproduced: the first one, or a further one after its verdict
        document |= {"why": document.get("why", f"Stopped early: {e}."), "budget_note": str(e)}
    except ReplayFailed as e:
        result.failed, result.traceback = e.sentence, e.traceback
        document["trouble"] = e.sentence
    except KeyboardInterrupt:
        result.failed, result.interrupted = "interrupted; what was learned until then is in the report", True
        document["trouble"] = result.failed
    finally:
        if asker is not None:
            steps = asker.steps + result.steps_elsewhere - document.get("check", {}).get("steps", 0)
            document |= {"steps_replayed": steps, "seconds": round(asker.seconds, 2), "beside": asker.beside}
        if isinstance(asker, journal.Remembering):
            result.recalled = asker.known
            asker.close()
    return result


def with_order(run: Run, options: Options, step: int | None) -> Options:
    """With the order of the samples around a step, where the adapter gives its data set alone. Raises ForensicsError where none is known."""
    if not adapter_source.wants_order(options.adapter):
        return options
    last = max((a["steps"][1] for a in run.attempts), default=0)
    return replace(options, order=run_order.around(run, last if step is None else step)[0])


def _checked(asked: Asked, found: list[Trouble], result: Result) -> Asked | None:
    """With what the check came to; None where the replay ends with it: a replay that does not meet the log explains nothing."""
    checked = check.check(asked, found[0] if found else None)
    result.document["check"] = {"lines": list(checked.lines), **checked.numbers}
    result.unproven = checked.met is None
    if checked.met is not False and not asked.options.check:
        return replace(asked, checked=checked)
    if checked.met is False:
        result.document |= {"verdict": verdict.NOT, "why": f"{checked.why[0].upper()}{checked.why[1:]}."}
        result.outcomes = verdict.Outcomes(0, 0)
    return None


def _nothing(asked: Asked, found: list[Trouble], result: Result) -> bool:
    """Whether there is nothing to explain, by the log alone; then that is the verdict."""
    document, options = result.document, asked.options
    if not found:
        document |= {"verdict": verdict.NOTHING, "why": "No grave finding of the analysis has a step; --steps A:B names one of yours."}
        _sane(asked, result)
        _probe_leaks(asked.worker, document)
        return True
    t = found[0]
    why = "" if t.subtle else nothing_special(logged(asked.run, t.attempt), t, asked.case.findings, options.steps)
    if why:
        document |= {"verdict": verdict.NOTHING, "steps": [t.onset, t.until], "why": why}
    return bool(why)


def _explain_all(asked: Asked, found: list[Trouble], result: Result) -> None:
    document = result.document
    _explain(asked, found[0], result, True)
    for trouble in found[1:] if document["verdict"] in ACCUSES else []:
        aside = Result({"verdict": verdict.UNDECIDED}, root=result.root, unproven=result.unproven)
        _explain(asked, trouble, aside, False)
        result.culprits += aside.culprits
        result.content += aside.content
        document.setdefault("samples", []).extend(aside.document.get("samples", []) if aside.culprits else [])
        result.steps_elsewhere += aside.steps_elsewhere


def _explain(asked: Asked, trouble: Trouble, result: Result, first: bool) -> None:
    """One effect from reproduction to culprits, into the result. The verdict on the first one is the run's."""
    document, about = result.document, asked.about
    scene = _reproduced(asked, trouble, result, first)
    if scene is None:
        return
    again = scene.again
    nonfinite = again.effect is not None and again.effect.nonfinite
    outcomes = verdict.Outcomes(again.seen, len(again.traces), again.overlay.agreed, nonfinite=nonfinite)
    if again.effect is None:
        outcomes = _absent(scene, outcomes)
    elif again.seen == len(again.traces):
        outcomes = explain_reproduced.explain(scene, outcomes)
        if first:
            _probe_leaks(scene.worker, document, "start", again.trace.first)
    word, why = verdict.decide(outcomes)
    document |= {"verdict": word, "why": f"{why}{one_process.caveat(asked.run, word, asked.options.processes)}", "looks": scene.lab.looks}
    result.outcomes, result.low_precision = outcomes, about["precision"] in numerics.LOW or "fp32" in outcomes.precision
    if word not in ACCUSES:
        result.culprits.clear()
        result.content.clear()
    elif result.unproven:
        document["why"] += " The log holds too few values before the effect to show that this adapter is the run's: read this as a hint."
        for c in result.culprits:
            c["confidence"] = min(c["confidence"], UNPROVEN)


def _reproduced(asked: Asked, trouble: Trouble, result: Result, first: bool) -> Scene | None:
    """The effect run three times from a good state; None where the budget is too small for it."""
    run, options, about, document = asked.run, asked.options, asked.about, result.document
    checked = asked.checked
    assert checked is not None
    log, view = logged(run, trouble.attempt), replace(checked.view, part="")
    origin = view.shift
    known = start_checkpoints.good(run, about["checkpoints"])
    start = start_checkpoints.before(known, trouble.onset - origin, options.steps[0] - origin if options.steps else None)
    if options.checkpoint:
        named = [s for s in known if Path(s.path or "") == Path(options.checkpoint).resolve()]
        start = named[0] if named else start_checkpoints.Start(-1, options.checkpoint)
    lab = Lab(asked.worker, 10**9, offset=checked.offset, deadline=asked.deadline, part=checked.view.part, sizes=checked.sizes)
    step, parts = start_checkpoints.load(lab, start, "start")
    window = max(trouble.until - origin - step + 1, 1)
    bound = start_checkpoints.bound(window)
    lab.budget = options.budget or max(bound, LEAST)
    document |= {"from": {"step": step, "checkpoint": start_checkpoints.within(run, start.path), "parts": parts}, "steps": [trouble.onset, trouble.until],
                 "window": window, "bound": bound, "budget": lab.budget}  # fmt: skip
    if step >= trouble.onset - origin + 1:
        raise ReplayFailed(f"the state to begin from is of step {step}, after the trouble at step {trouble.onset}", kind="files")
    document["estimate"] = cost.words(asked, lab.budget)
    asked.progress(f"reproducing ({document['estimate']})", 0, lab.budget)
    if (least := 4 * window) > lab.budget:
        why = f"The budget of {lab.budget} steps is less than reproducing takes: {least} from step {step + origin}."
        document |= {"why": why, "too_little": True}
        return None
    again = reproduce(lab, step, trouble, log, view, cost.most_states(asked))
    _note_reproduction(document, again)
    arms = Arms(again.effect or _none(again, trouble), again.overlay.shift, lab)
    document["arms"] = arms.rows
    begin, end = trouble.onset - arms.shift, trouble.until - arms.shift
    outcome = arms.effect.of(again.trace.window(begin - log.interval + 1, end)) if again.effect else "no spike"
    arms.note("as logged", outcome, again.trace, (begin, end), 3 * len(again.trace), f"three times, from step {step + arms.shift}")
    return Scene(
        **vars(asked), known=known, start=start, parts=parts, lab=lab, arms=arms, again=again, trouble=trouble, log=log, bound=bound,
        result=result, first=first,
    )  # fmt: skip


def _sane(asked: Asked, result: Result) -> None:
    """Where a run learns badly from its first step to its last: whether it can learn one batch by heart."""
    run, case, about = asked.run, asked.case, asked.about
    if case.verdict != "unhealthy" or "heart" not in extra_arms.chosen([h.id for h in case.hypotheses[:4]], False):
        return
    known = start_checkpoints.good(run, about["checkpoints"])
    lab, start = Lab(asked.worker, LEAST), known[-1] if known else start_checkpoints.Start(0, None)
    step, parts = start_checkpoints.load(lab, start, "start")
    rates = [v for v in logged(run).lr.values() if math.isfinite(v)]
    rate = sorted(rates)[len(rates) // 2] if rates else float(about["settings"]["lr"])
    batch = step if about["last_step"] is None else min(step, int(about["last_step"]) - 1)
    result.document["from"] = {"step": step, "checkpoint": start_checkpoints.within(run, start.path), "parts": parts}
    word = extra_arms.by_heart(lab, result.document["arms"], "start", batch, rate, step_origin(run))
    result.outcomes = verdict.Outcomes(0, 0, further={"heart": word})


def _none(again: Reproduction, trouble: Trouble) -> Effect:
    """The effect of the log, where the replay has none to measure."""
    height = trouble.top - trouble.level
    threshold = trouble.level + 0.5 * height if math.isfinite(height) else math.inf
    return Effect(trouble.level, height, threshold, trouble.sigma, trouble.nonfinite, again.floor)


def _note_reproduction(document: dict[str, Any], again: Reproduction) -> None:
    over = again.overlay
    reach = max((d for d in again.drift if math.isfinite(d)), default=0.0)
    document |= {"noise_floor": again.floor, "rounding_reach": reach, "agreed": over.agreed, "parts": over.parts, "parts_in": over.why,
                 "seen": f"{again.seen} of {len(again.traces)}"}  # fmt: skip
    document["curve"] = [[again.trace.first + i + over.shift, x] for i, x in enumerate(again.trace.loss)]


def _absent(scene: Scene, outcomes: verdict.Outcomes) -> verdict.Outcomes:
    """The logged effect does not come back: a restart or rate that the replay did not follow, hardware, or another run altogether."""
    over, trouble = scene.again.overlay, scene.trouble
    near = over.parts is not None and trouble.onset - 10 * scene.log.interval <= over.parts <= trouble.until
    explained, changed = resume.explain(scene)
    outcomes = replace(outcomes, explained=explained, changed=changed, parts_near=near, why_parts=over.why)
    return extra_arms.again_elsewhere(scene, outcomes) if verdict.decide(outcomes)[0] == verdict.HARDWARE else outcomes


def _probe_leaks(worker: journal.Answering, document: dict[str, Any], state: str = "built", batch: int = 0) -> None:
    """Whether early outputs see later inputs; says nothing where the model has no such shape."""
    try:
        found = worker.ask("leaks", state=state, batch=batch)
    except ReplayFailed as e:
        if e.kind in ("timeout", "memory", "worker", "torch"):
            raise
        return
    if "why" not in found:
        document["leaks"] = found

"""The order of a replay: what to explain, from where, reproduce, experiments, samples, verdict.

`replay` never raises for what an adapter does: what was learned until then is in the result, with one sentence about what
stopped it and the adapter's traceback.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from forensics.case import Case
from forensics.replay import hunt, numerics, resume, samples, starts, verdict
from forensics.replay.bisect import OutOfBudget
from forensics.replay.client import ReplayFailed, Worker
from forensics.replay.experiments import Arms, optimizer_arms, run_arms
from forensics.replay.lab import Lab
from forensics.replay.reproduce import Reproduction, reproduce
from forensics.replay.trouble import Logged, Trouble, logged, troubles
from forensics.summary import step_origin
from parsers.tables import Run

LEAST = 400  # steps of budget, however short the window
LARGE = 50_000_000  # parameters from which not every state is kept
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Options:
    adapter: Path
    python: str
    device: str = "auto"
    budget: int | None = None
    steps: tuple[int, int] | None = None
    checkpoint: str | None = None
    timeout: float = 300.0
    threads: int = 0
    more_workers: int = 0  # beside the one, and one for each further GPU


@dataclass
class Result:
    """What replay found: `document` is case.json's `replay`, `clues` the weights for the ranking."""

    document: dict[str, Any]
    outcomes: verdict.Outcomes | None = None
    culprits: list[dict[str, Any]] = field(default_factory=list)
    traceback: str = ""
    low_precision: bool = False
    failed: str = ""
    interrupted: bool = False
    root: str = ""
    steps_elsewhere: int = 0  # steps that further workers ran


def replay(run: Run, case: Case, options: Options, progress: Progress) -> Result:
    """Explains the first effect; where that is bad data, the further ones, too, for their culprits."""
    found = troubles(run, case.findings, options.steps)
    document: dict[str, Any] = {"device": "", "noise_floor": 0.0, "arms": [], "verdict": verdict.UNDECIDED, "steps_replayed": 0}
    result = Result(document, root=str(run.root))
    worker = None
    try:
        with Worker(options.python, options.adapter, run=run.root, timeout=options.timeout) as worker:
            about = worker.open(options.device, options.threads or max(1, (os.cpu_count() or 2) // 2))
            document |= {"device": f"{about['device']}, {about['precision']}, torch {about['torch']}", "parameters": about["parameters"]}
            if not found:
                document |= {"verdict": verdict.NOTHING, "why": "No grave finding of the analysis has a step; --steps A:B names one of yours."}
                _probe_leaks(worker, document, run)
                return result
            if options.steps and _within_noise(found[0]):
                t = found[0]
                document |= {"verdict": verdict.NOTHING, "steps": [t.onset, t.until],
                             "why": f"The highest logged loss in these steps is {t.top:.4g}, within the noise around {t.level:.4g} (single values scatter by {t.sigma:.2g})."}  # fmt: skip
                return result
            for i, trouble in enumerate(found):
                _explain(run, case, options, worker, about, trouble, result if i == 0 else None, result, progress)
                if document["verdict"] not in (verdict.DATA, verdict.STATE_DATA):
                    break
    except ReplayFailed as e:
        result.failed, result.traceback = e.sentence, e.traceback
        document["trouble"] = e.sentence
    except KeyboardInterrupt:
        result.failed, result.interrupted = "interrupted; what was learned until then is in the report", True
        document["trouble"] = result.failed
    if worker is not None:
        document["steps_replayed"] = worker.steps + result.steps_elsewhere
        document["seconds"] = round(worker.seconds, 2)
    return result


def _explain(
    run: Run, case: Case, options: Options, worker: Worker, about: dict[str, Any], trouble: Trouble, first: Result | None, result: Result, progress: Progress
) -> None:
    """One effect from reproduction to culprits. Only the first one's verdict is the run's."""
    document = result.document
    log, origin = logged(run, trouble.attempt), step_origin(run)
    own = [(s, p) for s, p in about["checkpoints"]] if about["checkpoints"] is not None else None
    known = starts.good(run, own)
    start = starts.before(known, trouble.onset - origin, options.steps[0] - origin if options.steps else None)
    if options.checkpoint:
        start = next((s for s in known if Path(s.path or "") == Path(options.checkpoint).resolve()), starts.Start(-1, options.checkpoint))
    lab = Lab(worker, 10**9)
    step, parts = _load(lab, start, "start")
    window = max(trouble.until - origin - step + 1, 1)
    bound = math.ceil(window + 3 * window * math.log2(max(window, 2)))
    lab.budget = options.budget or max(bound, LEAST)
    if first is not None:
        document |= {"from": {"step": step, "checkpoint": start.path and os.path.relpath(start.path, run.root if os.path.isdir(run.root) else os.path.dirname(run.root)), "parts": parts},
                     "steps": [trouble.onset, trouble.until], "window": window, "bound": bound, "budget": lab.budget}  # fmt: skip
    if step >= trouble.onset - origin + 1:
        raise ReplayFailed(f"the state to begin from is of step {step}, after the trouble at step {trouble.onset}", kind="files")
    progress("reproducing", 0, lab.budget)
    if (least := 4 * window) > lab.budget:
        document |= {"why": f"The budget of {lab.budget} steps is less than reproducing takes: {least} from step {step + origin}."}
        return
    again = reproduce(lab, step, "start", trouble, log, origin, 4 if about["parameters"] > LARGE else 1)
    effect = again.effect
    if first is not None:
        _note_reproduction(document, again, trouble)
    shift = again.overlay.shift
    arms = Arms(effect or _none(again, trouble), shift, lab)
    arms.note("as logged", arms.effect.of(again.trace.window(trouble.onset - shift - log.interval + 1, trouble.until - shift)) if effect else "no spike",
              again.trace, trouble.onset - shift, trouble.until - shift, 3 * len(again.trace), f"three times, from step {step + shift}")  # fmt: skip
    if first is not None:
        document["arms"] = arms.rows
    outcomes = verdict.Outcomes(again.seen, len(again.traces), again.overlay.agreed, nonfinite=bool(effect and effect.nonfinite))
    try:
        if effect is None:
            outcomes = _absent(lab, arms, again, trouble, log, outcomes, step)
        elif again.seen == len(again.traces):
            outcomes = _present(run, case, lab, arms, again, trouble, log, outcomes, about, known, start, result, progress, options)
    except OutOfBudget as e:
        outcomes = replace(outcomes, complete=False)
        document["budget_note"] = str(e)
    if first is not None:
        word, why = verdict.decide(outcomes)
        document |= {"verdict": word, "why": why, "looks": lab.looks}
        result.outcomes, result.low_precision = outcomes, about["precision"] in numerics.LOW or "fp32" in outcomes.precision
    elif verdict.decide(outcomes)[0] not in (verdict.DATA, verdict.STATE_DATA):
        result.culprits[:] = [c for c in result.culprits if c.get("effect") != trouble.onset]
    if document["verdict"] not in (verdict.DATA, verdict.STATE_DATA):
        result.culprits.clear()


def _within_noise(t: Trouble) -> bool:
    return math.isfinite(t.top) and math.isfinite(t.level) and t.top - t.level < 4 * t.sigma


def _load(lab: Lab, start: starts.Start, name: str) -> tuple[int, list[str]]:
    """Loads a state; the step it is of: the optimizer's own count where it is one off what the file says."""
    told = lab.load(start.path, name)
    stated = told["step"] if told["step"] is not None else start.step
    count = told["count"]
    step = count if count is not None and abs(count - stated) <= 1 else stated
    return int(step), told["parts"]


def _none(again: Reproduction, trouble: Trouble) -> Any:
    from forensics.replay.lab import Effect

    height = trouble.top - trouble.level
    return Effect(trouble.level, height, trouble.level + 0.5 * height if math.isfinite(height) else math.inf, trouble.sigma, trouble.nonfinite, again.floor)


def _note_reproduction(document: dict[str, Any], again: Reproduction, trouble: Trouble) -> None:
    over = again.overlay
    reach = max((d for d in again.drift if math.isfinite(d)), default=0.0)
    document |= {"noise_floor": again.floor, "rounding_reach": reach, "agreed": over.agreed, "parts": over.parts, "parts_in": over.why, "seen": f"{again.seen} of {len(again.traces)}"}
    document["curve"] = [[again.trace.first + i + over.shift, x] for i, x in enumerate(again.trace.loss)]


def _absent(lab: Lab, arms: Arms, again: Reproduction, trouble: Trouble, log: Logged, outcomes: verdict.Outcomes, start: int) -> verdict.Outcomes:
    """The logged effect does not come back: a restart or rate that the replay did not follow, hardware, or another run altogether."""
    found = resume.explain(lab, again, trouble, log)
    arms.rows += found.rows
    over = again.overlay
    near = over.parts is not None and trouble.onset - 10 * log.interval <= over.parts <= trouble.until
    return replace(outcomes, explained=found.arm, parts_near=near, why_parts=over.why)


def _present(
    run: Run, case: Case, lab: Lab, arms: Arms, again: Reproduction, trouble: Trouble, log: Logged, outcomes: verdict.Outcomes,
    about: dict[str, Any], known: list[starts.Start], start: starts.Start, result: Result, progress: Progress, options: Options,
) -> verdict.Outcomes:  # fmt: skip
    """The effect comes back: precision, batches, other states, rate and optimizer, samples; each only while it can decide something."""
    effect, shift = again.effect, again.overlay.shift
    assert effect is not None
    until = min(max(again.first + 2, trouble.peak - shift + 1, (trouble.end or 0) - shift), trouble.until - shift)
    until = min(until, again.first + 12) if not effect.nonfinite else min(again.first + 2, trouble.until - shift)
    spare = hunt.ordinary(log, trouble, shift, again.trace.first, again.first, 12)
    precision = _precision(run, about)
    if effect.nonfinite:
        progress("looking at the first non-finite value", lab.spent, lab.budget)
        seen = numerics.look(lab, again, spare)
        result.document["nonfinite"] = seen
        outcomes = replace(outcomes, batch_nonfinite=any(b["nonfinite"] for b in seen.get("batch", [])))
    progress("precision", lab.spent, lab.budget)
    outcomes = replace(outcomes, precision=numerics.precision_arms(lab, arms, again, precision, until))
    progress("bisecting batches", lab.spent, lab.budget)
    whole, lab.budget = lab.budget, lab.spent + (lab.budget - lab.spent) * 2 // 3  # the rest is for what the batches do not explain
    hunted = hunt.Hunted((), False)
    try:
        hunted = hunt.hunt(lab, arms, again, spare, until)
        outcomes = replace(outcomes, needed=len(hunted.steps), other_batch=hunted.other_batch, alone=hunted.alone)
    except OutOfBudget as e:
        result.document["budget_note"] = f"bisecting batches: {e}"
    lab.budget = whole
    if hunted.steps:
        progress("trying the batch at other states", lab.spent, lab.budget)
        places = _other_states(lab, known, start, again, hunted.steps, trouble, shift)
        outcomes = replace(outcomes, elsewhere=hunt.elsewhere(lab, arms, again, hunted.steps, places, until))
    word, _ = verdict.decide(outcomes)
    if effect.nonfinite and word != verdict.NUMERICS and not outcomes.batch_nonfinite:
        outcomes = replace(outcomes, guarded=numerics.guard_arm(lab, arms, again, until))
        word, _ = verdict.decide(outcomes)
    if word in (verdict.DATA, verdict.STATE_DATA) and hunted.steps:
        progress("bisecting samples", lab.spent, lab.budget)
        _blame(lab, arms, again, hunted, spare, until, result, trouble)
    if word != verdict.DATA:
        _layers(lab, again, result)
    if word not in (verdict.DATA, verdict.NUMERICS):
        progress("rate and optimizer", lab.spent, lab.budget)
        leading = [h.id for h in case.hypotheses[:6]]
        wanted = optimizer_arms(again, about, leading)
        with _benches(options, about, start, again, result) as more:
            outcomes = replace(outcomes, optimizer=run_arms(lab, arms, again, wanted, until, more))
    _probe_leaks(lab.worker, result.document, run, "start", again.trace.first)
    return outcomes


@contextlib.contextmanager
def _benches(options: Options, about: dict[str, Any], start: starts.Start, again: Reproduction, result: Result) -> Iterator[list[Lab]]:
    """One more worker for each further GPU, standing at the same start; their steps count, too."""
    listed = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    cards = (listed.split(",") if listed else [str(i) for i in range(about["gpus"])])[1 : about["gpus"]]
    with contextlib.ExitStack() as stack:
        benches = []
        for card in [*cards, *([None] * options.more_workers)]:
            worker = stack.enter_context(Worker(options.python, options.adapter, run=result.root, timeout=options.timeout, cuda=card))
            worker.open(options.device, options.threads or 1)
            bench = Lab(worker, 0, {again.trace.first: "start"})
            bench.load(start.path, "start")
            benches.append(bench)
        yield benches
        result.steps_elsewhere += sum(b.worker.steps for b in benches)


def _layers(lab: Lab, again: Reproduction, result: Result) -> None:
    """Which layer's gradient norm grew first on the way to the effect."""
    begin = lab.nearest(max(again.first - 16, again.trace.first))
    if lab.budget - lab.spent < 200:
        return
    trace = lab.along(begin, again.first, changes={"layers": True})
    found = numerics.grew_first(list(trace.layers), max(len(trace) - 6, 4))
    if found:
        result.document["grew_first"] = found


def _precision(run: Run, about: dict[str, Any]) -> str:
    from forensics import settings

    return about["precision"] if about["precision"] in numerics.LOW else settings.precision(run) or "fp32"


def _other_states(
    lab: Lab, known: list[starts.Start], start: starts.Start, again: Reproduction, culprits: tuple[int, ...], trouble: Trouble, shift: int
) -> list[tuple[int, str]]:
    """(step, state) to try the culprits at: the start, good checkpoints before and after, the earliest kept state."""
    found: list[tuple[int, str]] = []
    if culprits[0] - again.trace.first >= 3:
        found.append((again.trace.first, "start"))
    for i, other in enumerate(starts.others(known, start, trouble.onset - shift, trouble.until - shift)):
        try:
            found.append((_load(lab, other, f"other {i}")[0], f"other {i}"))
        except ReplayFailed as e:
            if e.kind not in ("files", "adapter"):
                raise
    kept = [s for s in sorted(lab.states) if again.trace.first < s <= culprits[0] - 6]
    if len(found) < 3:
        found += [(s, lab.states[s]) for s in kept[:2]]
    found.sort(key=lambda x: abs(x[0] - culprits[0]))
    if not found and again.trace.first > 0:
        lab.load(None, "built")
        found.append((0, "built"))
    return found


def _blame(lab: Lab, arms: Arms, again: Reproduction, hunted: hunt.Hunted, spare: list[int], until: int, result: Result, trouble: Trouble) -> None:
    for step in hunted.steps:
        others = tuple(s for s in hunted.steps if s != step)
        spent = lab.spent
        try:
            found = samples.blame(lab, arms, again, step, others, spare, until)
        except ReplayFailed as e:
            if e.kind != "adapter":
                raise
            found = samples.Found((), f"not bisected: {e.sentence}", False)
        told = lab.worker.ask("ids", batches=[step])
        names, label = told["ids"][0], step + again.overlay.shift
        named = [names[i] if names and i < len(names) else i for i in found.rows]
        result.culprits.append({"step": label, "samples": named, "how": "bisected", "confidence": 0.99 if found.confirmed else 0.6, "effect": trouble.onset, "rows": list(found.rows)})
        table = [{**r, "sample": names[r["row"]] if names and r["row"] < len(names) else r["row"], "blamed": r["row"] in found.rows} for r in found.table]
        result.document.setdefault("samples", []).append({"step": label, "of": told["rows"][0], "how": found.how, "steps": lab.spent - spent, "ranking": table})


def _probe_leaks(worker: Worker, document: dict[str, Any], run: Run, state: str = "built", batch: int = 0) -> None:
    """Whether early outputs see later inputs; says nothing where the model has no such shape."""
    try:
        found = worker.ask("leaks", state=state, batch=batch)
    except ReplayFailed as e:
        if e.kind in ("timeout", "memory", "worker", "torch"):
            raise
        return
    if "why" not in found:
        document["leaks"] = found



"""The effect comes back: precision, batches, other states, samples, rate and optimizer; each only while it can decide something."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import replace

from forensics.replays import (
    all_ranks,
    bisect_batches,
    extra_arms,
    harm,
    numerics,
    sample_strips,
    samples,
    samples_shown,
    start_checkpoints,
    verdict,
)
from forensics.replays.arms import optimizer_arms, run_arms
from forensics.replays.client import ReplayFailed, further_cards
from forensics.replays.delta_debugging import OutOfBudget
from forensics.replays.request import Scene, started
from forensics.replays.runner import Lab
from forensics.replays.verdict import Outcomes
from forensics.run import settings

ALIKE = 0.8  # of the first logged loss: a run still that high has learnt so little that the model as built is like it


def explain(scene: Scene, outcomes: Outcomes) -> Outcomes:
    """The outcomes of all experiments that the budget allows."""
    again, document = scene.again, scene.result.document
    effect, trouble, shift = scene.effect, scene.trouble, scene.shift
    until = min(max(again.first + 2, trouble.peak - shift + 1, (trouble.end or 0) - shift), trouble.until - shift)
    until = min(until, again.first + 12) if not effect.nonfinite else min(again.first + 2, trouble.until - shift)
    spare = bisect_batches.ordinary(scene, 12)
    try:
        if effect.nonfinite:
            scene.tell("looking at the first non-finite value")
            document["nonfinite"] = seen = numerics.look(scene, spare)
            outcomes = replace(outcomes, batch_nonfinite=any(b["nonfinite"] for b in seen.get("batch", [])))
        scene.tell("precision")
        outcomes = replace(outcomes, precision=numerics.precision_arms(scene, _precision(scene), until))
        hunted = _hunt(scene, spare, until)
        if hunted is not None:
            outcomes = replace(outcomes, needed=len(hunted.steps), other_batch=hunted.other_batch, alone=hunted.alone)
        if hunted is not None and hunted.steps:
            scene.tell("trying the batch at other states")
            outcomes = replace(outcomes, further={"lasting": extra_arms.lasting(scene, hunted.steps, until)})
            outcomes = _elsewhere(scene, outcomes, hunted.steps, spare, until)
        word, _ = verdict.decide(outcomes)
        if effect.nonfinite and word != verdict.NUMERICS and not outcomes.batch_nonfinite:
            outcomes = replace(outcomes, guarded=numerics.guard_arm(scene, until))
            word, _ = verdict.decide(outcomes)
        if word in (verdict.DATA, verdict.STATE_DATA) and hunted is not None:
            scene.tell("bisecting samples")
            _blame(scene, hunted, spare, until)
            if scene.first and not effect.nonfinite:
                document["harm"] = harm.measured(scene, hunted.steps, spare)
        if not scene.first:
            return outcomes
        if word != verdict.DATA or effect.nonfinite:
            _layers(scene)
        if word not in (verdict.DATA, verdict.NUMERICS):
            scene.tell("rate and optimizer")
            outcomes = _optimizer(scene, outcomes, until)
        return extra_arms.tried(scene, outcomes, hunted.steps if hunted else (), spare, until)
    except OutOfBudget as e:
        document["budget_note"] = str(e)
        return replace(outcomes, complete=False)


def _hunt(scene: Scene, spare: list[int], until: int) -> bisect_batches.Hunted | None:
    """The batches that are needed, None where two thirds of the budget did not tell; the rest is for what batches do not explain."""
    lab = scene.lab
    scene.tell("bisecting batches")
    whole, lab.budget = lab.budget, lab.spent + (lab.budget - lab.spent) * 2 // 3
    try:
        return bisect_batches.hunt(scene, spare, until)
    except OutOfBudget as e:
        scene.result.document["budget_note"] = f"bisecting batches: {e}"
        return None
    finally:
        lab.budget = whole


@contextlib.contextmanager
def benches(scene: Scene) -> Iterator[list[Lab]]:
    """One more worker for each further GPU, standing at the same start; their steps count, too."""
    options, found = scene.options, []
    with contextlib.ExitStack() as stack:
        for card in [*further_cards(options.device, scene.about["gpus"]), *([None] * options.more_workers)]:
            worker = stack.enter_context(started(options, scene.result.root, all_ranks.on_card(card)))
            worker.open(options.device if card is None else "cuda", options.threads or 1)
            bench = Lab(worker, 0, {scene.again.trace.first: "start"}, part=scene.lab.part, sizes=scene.lab.sizes)
            bench.load(scene.start.path, "start")
            found.append(bench)
        yield found
        scene.result.steps_elsewhere += sum(b.worker.steps for b in found)


def _layers(scene: Scene) -> None:
    """Which layer's gradient norm grew first on the way to the effect."""
    lab, again = scene.lab, scene.again
    if lab.budget - lab.spent < 2 * (again.first - scene.begin + 1):
        return
    trace = lab.along(scene.begin, again.first, changes={"layers": True})
    found = numerics.grew_first(list(trace.layers), max(len(trace) - 6, 4))
    if found:
        scene.result.document["grew_first"] = found


def _precision(scene: Scene) -> str:
    named = str(scene.about["precision"])
    return named if named in numerics.LOW else settings.precision(scene.run) or "fp32"


def _other_states(scene: Scene, culprits: tuple[int, ...]) -> list[tuple[int, str]]:
    """(step, state) to try the culprits at: the start, good checkpoints before and after, the earliest kept state."""
    lab, begun = scene.lab, scene.again.trace.first
    found: list[tuple[int, str]] = []
    if culprits[0] - begun >= 3 and (begun > 0 or _early(scene)):
        found.append((begun, "start"))
    for i, other in enumerate(start_checkpoints.others(scene.known, scene.start, scene.trouble.until - scene.shift)):
        try:
            found.append((start_checkpoints.load(lab, other, f"other {i}")[0], f"other {i}"))
        except ReplayFailed as e:
            if e.kind not in ("files", "adapter"):
                raise
    kept = [s for s in sorted(lab.states) if begun < s <= culprits[0] - 6]
    if len(found) < 3:
        found += [(s, lab.states[s]) for s in kept[:2]]
    found.sort(key=lambda x: abs(x[0] - culprits[0]))
    if not found and begun > 0 and _early(scene):
        lab.load(None, "built")
        found.append((lab.offset, "built"))
    return found


def _early(scene: Scene) -> bool:
    """Whether the run had learnt so little that the model as built is another state like it: an untrained one is no control."""
    first = next((scene.log.loss[s] for s in sorted(scene.log.loss) if math.isfinite(scene.log.loss[s])), math.nan)
    return not scene.effect.level < ALIKE * first


def _elsewhere(scene: Scene, outcomes: Outcomes, culprits: tuple[int, ...], spare: list[int], until: int) -> Outcomes:
    """The culprits at other states; a little later on the run's own way, where there is no other."""
    places = _other_states(scene, culprits)
    if places:
        return replace(outcomes, elsewhere=bisect_batches.elsewhere(scene, culprits, places, until))
    moved = extra_arms.later(scene, culprits, spare, until)
    return replace(outcomes, elsewhere=(moved,), further={**outcomes.further, "later": moved})


def _optimizer(scene: Scene, outcomes: Outcomes, until: int) -> Outcomes:
    """The arms on rate and optimizer, on as many workers as there are; what the budget did not reach is told."""
    wanted = optimizer_arms(scene.again, scene.about, scene.leading, scene.begin, scene.parts)
    with benches(scene) as more:
        found, left = run_arms(scene.arms, scene.again, wanted, scene.begin, until, more)
    scene.result.document["not_tried"] = left
    return replace(outcomes, optimizer=found, complete=outcomes.complete and not left)


def _blame(scene: Scene, hunted: bisect_batches.Hunted, spare: list[int], until: int) -> None:
    """The samples of each culprit batch, into the result's culprits and the ranking for the report."""
    lab, result = scene.lab, scene.result
    for step in hunted.steps:
        others = tuple(s for s in hunted.steps if s != step)
        spent = lab.spent
        try:
            found = samples.blame(scene, step, others, spare, until)
        except ReplayFailed as e:
            if e.kind != "adapter":
                raise
            found = samples.Found((), f"not bisected: {e.sentence}", False)
        told = lab.worker.ask("ids", batches=[step])
        if scene.options.show:
            samples_shown.keep(scene, step, found.rows, spare)
        names, label = dict(enumerate(told["ids"][0] or [])), step + scene.shift
        rows = list(found.rows) if found.confirmed else []  # else the ranking says which to read first
        result.culprits.append({
            "step": label, "samples": [names.get(i, i) for i in rows], "how": "bisected", "confidence": hunted.confidence,
            "effect": scene.trouble.onset, "rows": rows, "named": bool(names),
        })  # fmt: skip
        table = [{**r, "sample": names.get(r["row"], r["row"]), "blamed": r["row"] in found.rows} for r in found.table]
        told = {"step": label, "of": told["rows"][0], "how": found.how, "steps": lab.spent - spent, "ranking": table}
        if shown := sample_strips.strips(scene, step, others, found, spare):
            shown["rows"] = [{**r, "sample": names.get(r["row"], r["row"])} for r in shown["rows"]]
            told["strips"] = shown
        result.document.setdefault("samples", []).append(told)

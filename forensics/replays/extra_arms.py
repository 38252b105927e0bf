"""Arms that add clues and decide no verdict: batches skipped, a batch moved later, one learnt by heart, other kernels, another device.

Those that a leading cause asks for are run; all of them where the verdict is open or the user has given a budget. They never
cost more than the bound for one culprit, but where the user has given more.

Sources: Chowdhery et al., PaLM (arXiv 2204.02311), section 5.1: from a checkpoint about 100 steps before a spike, 200 to 500 batches
were skipped. Karpathy, A Recipe for Training Neural Networks (2019): overfit one batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from forensics.causes.files import asked_by
from forensics.replays import all_ranks, bisect_batches, verdict
from forensics.replays.client import ReplayFailed, further_cards
from forensics.replays.delta_debugging import OutOfBudget
from forensics.replays.request import Scene, started
from forensics.replays.runner import Lab, Trace
from forensics.replays.verdict import Outcomes

LIKELY = 0.01  # probability from which a cause may ask for an arm
SKIP = 200  # batches
LATER = 8  # steps that a batch is moved
HEART = 40  # times that one batch is seen
LEARNT, NOTHING = 0.3, 0.05  # shares of its loss that a batch learnt by heart has lost, and one not learnt at all
SMALL = 50_000_000  # parameters up to which a GPU's steps are tried on the CPU, too
ALL = ("device", "kernels", "skip", "later", "heart")
NAMES = {
    "skip": "200 batches skipped",
    "later": "the batch moved later",
    "heart": "one batch over and over",
    "kernels": "other kernels",
    "device": "another device",
}


def chosen(leading: Sequence[str], everything: bool) -> list[str]:
    """The arms that the leading causes ask for, in their order; with `everything` the others after them."""
    wanted = [a for cause in leading for a in asked_by(cause) if a in ALL]
    return list(dict.fromkeys([*wanted, *(ALL if everything else ())]))


def again_elsewhere(scene: Scene, outcomes: Outcomes) -> Outcomes:
    """Where the logged effect stays away: whether it does so on another device and with other kernels."""
    return tried(scene, outcomes, (), [], scene.trouble.until - scene.shift, ("device", "kernels"))


def tried(scene: Scene, outcomes: Outcomes, culprits: tuple[int, ...], spare: list[int], until: int, only: Sequence[str] = ()) -> Outcomes:
    """The outcomes with those of further arms; what the budget did not reach is in the document's `not_tried`."""
    lab, word = scene.lab, verdict.decide(outcomes)[0]
    left: list[str] = scene.result.document.setdefault("not_tried", [])
    if scene.options.budget is None:
        lab.budget = min(lab.budget, scene.bound)
    do: dict[str, Callable[[], dict[str, str]]] = {
        "skip": lambda: _skipped(scene, until),
        "later": lambda: {} if "later" in outcomes.further or not culprits else {"later": later(scene, culprits, spare, until)},
        "heart": lambda: {"heart": by_heart(lab, scene.arms.rows, "start", spare[0], max(scene.again.trace.lr), scene.shift)},
        "kernels": lambda: {"kernels": scene.arms.along("other kernels", scene.begin, until, says=_kernels(scene), changes={"kernels": True})},
        "device": lambda: _second(scene, until),
    }  # fmt: skip
    likely = [h.id for h in scene.case.hypotheses[:6] if h.probability >= LIKELY]
    for arm in only or chosen(likely, scene.options.budget is not None or word in (verdict.CODE, verdict.UNDECIDED)):
        scene.tell(NAMES[arm])
        try:
            outcomes = replace(outcomes, further={**outcomes.further, **do[arm]()})
        except OutOfBudget:
            left.append(NAMES[arm])
        except ReplayFailed as e:  # a batch or device that is not there costs this arm only
            if e.kind not in ("adapter", "files", "memory"):
                raise
            scene.arms.failed(NAMES[arm], e.sentence)
    return outcomes


def _skipped(scene: Scene, until: int) -> dict[str, str]:
    """As PaLM did: from before the effect, with the batches of so many steps later; as many as the data have."""
    last, begin = scene.about["last_step"], scene.begin
    count = SKIP if last is None else min(SKIP, int(last) - 1 - until)
    if count < until - begin + 1:
        return {}
    swap = {s: s + count for s in range(begin, until + 1)}
    name, says = (
        f"{count} batches skipped from step {begin + scene.shift} on",
        "from there on the run would take the batches of so many steps later",
    )
    return {"skip": scene.arms.along(name, begin, until, swap, says)}


def lasting(scene: Scene, culprits: tuple[int, ...], until: int) -> str:
    """What batches of long after do in the place of culprits that reach to the end of the effect; "" where it is not asked.

    Where they make it, too, the data have changed to stay, as in a curriculum, and none of these batches is worse than those that follow.
    """
    last = scene.about["last_step"]
    count = SKIP if last is None else min(SKIP, int(last) - 1 - culprits[-1])
    if culprits != tuple(range(culprits[0], until + 1)) or count < 2 * len(culprits):
        return ""
    name = f"{bisect_batches.words(culprits, scene.shift)} replaced by those of {count} steps later"
    try:
        return scene.arms.along(name, culprits[0], until, {s: s + count for s in culprits})
    except ReplayFailed as e:
        if e.kind not in ("adapter", "files"):
            raise
        scene.arms.failed(name, e.sentence)
        return ""


def later(scene: Scene, culprits: tuple[int, ...], spare: list[int], until: int) -> str:
    """The culprits some steps after their turn, replaced by others meanwhile, beside the run's own batches there."""
    lab, effect, length = scene.lab, scene.effect, bisect_batches.length(culprits, until)
    place, last = culprits[-1] + LATER, scene.about["last_step"]
    if last is not None and place + length >= int(last):
        return "undecided"
    without = bisect_batches.swapped(culprits, spare)
    end, spent = place + length - 1, lab.spent
    control = lab.along(culprits[0], end, without)
    trace = lab.along(culprits[0], end, without | {place + i: s for i, s in enumerate(culprits)})
    begin = place + bisect_batches.own(scene.again, culprits, until)
    found = effect.elsewhere(list(trace.window(begin, begin + length)), list(control.window(begin, begin + length)))
    name = f"{bisect_batches.words(culprits, scene.shift)} moved {LATER} steps later"
    scene.arms.note(name, found, trace, (place, end), lab.spent - spent)
    return found


def by_heart(lab: Lab, rows: list[dict[str, Any]], state: str, batch: int, rate: float, shift: int) -> str:
    """Whether one ordinary batch can be learnt by heart: "learnt", "faster" (only at a higher rate), "no" or "undecided".

    It separates a broken model or loss from data: what cannot learn one batch cannot learn many. "no" is said only where the loss
    does not answer at a hundred times the rate either.
    """
    still = True
    for factor in (1.0, 10.0, 100.0):
        spent = lab.spent
        trace = lab.run(state, 0, [batch] * HEART, changes={"lr_as_logged": {str(i): factor * rate for i in range(HEART)}})
        first, end = trace.loss[0], sorted(trace.loss[-5:])[2]
        broken = not all(math.isfinite(x) for x in trace.loss)
        fall = 0.0 if broken or not first else (first - end) / abs(first)
        word = "learnt" if fall >= LEARNT else "partly learnt" if fall >= NOTHING else "not learnt"
        how = "not finite" if broken else f"{word}: loss {first:.3g} to {end:.3g}"
        rows.append({"name": f"batch {batch + shift} {HEART} times over, rate {factor * rate:.3g}", "outcome": "nan" if broken else "no spike", "peak": max(trace.loss) if not broken else math.nan,
                     "steps": lab.spent - spent, "says": how, "apart": True, "curve": [[i, x] for i, x in enumerate(trace.loss)]})  # fmt: skip
        if broken:
            return "undecided"
        if fall >= LEARNT:
            return "learnt" if factor == 1.0 else "faster"
        still = still and abs(fall) < NOTHING
    return "no" if still else "undecided"


def _kernels(scene: Scene) -> str:
    if scene.about["gpus"]:
        return "algorithms that need not be deterministic, another BLAS library"
    return "another number of threads, without oneDNN; there is no second device here"


def second_device(scene: Scene) -> tuple[str, str | None] | None:
    """(device, what CUDA_VISIBLE_DEVICES is to be) of a second GPU, else the CPU beside a GPU; None where there is none."""
    cards = further_cards(scene.options.device, scene.about["gpus"])
    if cards:
        return "cuda", cards[0]
    return ("cpu", None) if scene.about["gpus"] and scene.about["parameters"] <= SMALL else None


def _second(scene: Scene, until: int) -> dict[str, str]:
    found = second_device(scene)
    return {} if found is None else {"device": on_device(scene, *found, until)}


def on_device(scene: Scene, device: str, card: str | None, until: int) -> str:
    """The same steps from the same checkpoint on another device."""
    lab, options, trace = scene.lab, scene.options, scene.again.trace
    with started(options, scene.result.root, all_ranks.on_card(card)) as worker:
        about = worker.open(device, options.threads)
        bench = Lab(worker, lab.budget - lab.spent, part=lab.part, sizes=lab.sizes)
        bench.load(scene.start.path, "start")

        def run() -> Trace:
            found = bench.run("start", trace.first, range(trace.first, until + 1))
            lab.spent += bench.spent
            return found

        try:
            return scene.arms.tried(f"on a second device: {about['device']}", run, scene.begin, until, says="from the same checkpoint")
        finally:
            scene.result.steps_elsewhere += worker.steps

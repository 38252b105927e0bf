"""Outcomes to one word and clues: pure. Replay does not conclude about causes; its clues are added and they are ranked again.

The order of the rules is that of specificity: what does not come back, what is proved by an exact experiment (precision),
what follows from needed batches, what rate and optimizer do, and last what comes back whatever is changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from forensics.causes.files import outcome_weights

DATA, STATE_DATA, HARDWARE = "data", "state x data", "transient hardware"
OPTIMIZER, NUMERICS, CODE = "optimizer-hyperparameter", "numerics", "deterministic code"
NOT, NOTHING, UNDECIDED = "cannot reproduce", "nothing to explain", "undecided"


@dataclass(frozen=True)
class Outcomes:
    """What the experiments gave; empty and None where they were not run."""

    reproduced: int  # in how many of `times` identical replays the effect came back
    times: int
    agreed: int = 0  # logged values that the replay met before it parted
    parts_near: bool = False  # the replay parts from the log just before or at the onset, not long before
    why_parts: str = ""
    explained: str = ""  # the fault of a restart or rate that brings the logged effect back
    changed: str = ""  # what speaks for a restart near there that changed settings or code
    needed: int | None = None  # size of the minimal set of batches; 0: other batches keep the effect; None: not asked
    other_batch: Sequence[str] = ()
    alone: Sequence[str] = ()
    elsewhere: Sequence[str] = ()  # the nearest state first
    optimizer: Mapping[str, str] = field(default_factory=dict)  # arm -> outcome
    precision: Mapping[str, str] = field(default_factory=dict)
    guarded: str = ""
    batch_nonfinite: bool = False  # the inputs themselves are not finite
    nonfinite: bool = False
    further: Mapping[str, str] = field(default_factory=dict)  # arms that decide nothing: skip, later, heart, kernels, device
    complete: bool = True  # the budget sufficed


def decide(o: Outcomes) -> tuple[str, str]:
    """(verdict, the sentence that says why)."""
    if o.reproduced == 0:
        return _absent(o)
    if o.reproduced < o.times:
        often = f"The effect comes back in {o.reproduced} of {o.times} identical replays"
        return UNDECIDED, f"{often}: the adapter or its kernels are not deterministic."
    harmful = [x for x in o.elsewhere if x in ("spike", "nan")]
    harmless = [x for x in o.elsewhere if x == "no spike"]
    nearest = next((x for x in o.elsewhere if x != "undecided"), "")
    makes_it = len(harmful) > len(harmless) or (len(harmful) == len(harmless) > 0 and nearest != "no spike")
    fixed = [k for k, x in o.precision.items() if x == "no spike"]
    if fixed and not o.batch_nonfinite and not makes_it:
        return NUMERICS, f"The same steps in {fixed[0]} show no effect."
    without = "Without the batch there is no effect"
    if o.needed:
        if any(x in ("spike", "nan") for x in o.other_batch):
            return _by_state(o, "Some other batches make the effect, too.")
        if o.further.get("lasting") in ("spike", "nan"):
            return UNDECIDED, f"{LASTING}, so no batch is accused: see whether the change is meant."
        if o.batch_nonfinite or makes_it:
            return DATA, f"{without}, and the batch makes it at {len(harmful)} of {len(o.elsewhere)} other states."
        if not harmless:
            why = "there was no other state to try it at" if o.complete else "the budget ended before it was tried at another state"
            return UNDECIDED, f"{without}; {why}."
        if o.nonfinite and o.guarded == "no spike":
            return NUMERICS, "The batch is harmless at other states, and with a guarded formula here, too."
        if o.alone and all(x == "no spike" for x in o.alone):
            return _by_state(o, "The batch makes the effect only together with the exact batches before it.")
        return STATE_DATA, f"{without}, and at {len(harmless)} of {len(o.elsewhere)} other states the batch is harmless."
    if o.needed == 0:
        return _by_state(o, "Other batches keep the effect.")
    return UNDECIDED, "The budget ended before the batches that are needed were known."


def _absent(o: Outcomes) -> tuple[str, str]:
    if o.explained:
        return OPTIMIZER, f"The plain replay shows no effect; with \u201c{o.explained}\u201d it agrees with the log."
    if o.changed:
        return NOT, f"The replay agrees with {o.agreed} logged values and then parts from the log; {o.changed}."
    for arm, where in ELSEWHERE.items():
        if o.further.get(arm) == "nan":
            return NUMERICS, f"The same steps give no finite loss {where}, and finite ones here: the rounding of the kernels decides."
        if o.further.get(arm) == "spike":
            return NOT, f"The effect stays away here and comes back {where}: only there it can be explained."
    if o.agreed >= 3 and o.parts_near:
        first = "gradient norm" if o.why_parts == "grad.norm" else "loss"
        parts = f"The replay agrees with {o.agreed} logged values, then the {first} parts from the log"
        return HARDWARE, f"{parts}; {o.times} identical replays do not show the effect."
    if o.agreed:
        return NOT, f"The replay agrees with {o.agreed} logged values and then takes another way, before the effect."
    return NOT, "The replay does not agree with the log from its first value on: the data order, the code or the state differ."


def _by_state(o: Outcomes, lead: str) -> tuple[str, str]:
    """The state makes it, whatever the batch: a formula, the optimizer, or code."""
    if o.nonfinite and o.guarded == "no spike":
        return NUMERICS, f"{lead} With a guarded formula there is no effect."
    removing = [k for k, x in o.optimizer.items() if x == "no spike"]
    if removing:
        return OPTIMIZER, f"{lead} It is gone with: {', '.join(removing)}."
    if not o.complete or not o.optimizer:
        return UNDECIDED, f"{lead} The budget ended before rate and optimizer were tried."
    return CODE, f"{lead} No change of rate, optimizer or precision removes it."


ELSEWHERE = {"device": "on a second device", "kernels": "with other kernels"}
LASTING = "The data are other ones from there on: batches of long after make the effect in these steps, too"
OTHERS = {DATA: -16.0, STATE_DATA: -10.0, HARDWARE: -20.0, NUMERICS: -16.0, OPTIMIZER: -14.0}  # decibans: causes that say nothing of it
EXPLAINED = {  # how what brings the logged effect back begins -> the word by which causes weigh it
    "moments": "moments lost",
    "settings": "settings as later",
    "rate as logged": "rate as logged",
}
FINER = (
    "data: finite",
    "data: not finite",
    "data: a stretch",
    "numerics: low precision",
    "numerics: full precision",
)  # said with a verdict
FURTHER = {  # (arm, outcome) -> (sentence, the word by which causes weigh it in their OUTCOMES)
    ("heart", "learnt"): ("the model can overfit one batch, so model and loss can learn", "heart: learnt"),
    ("heart", "faster"): ("the model overfits one batch only at a higher learning rate", "heart: faster"),
    ("heart", "no"): ("the model cannot overfit one batch, not even at a hundred times the learning rate", "heart: no"),
    ("lasting", "spike"): (f"{LASTING[0].lower()}{LASTING[1:]}", "data: lasting"),
    ("lasting", "nan"): (f"{LASTING[0].lower()}{LASTING[1:]}", "data: lasting"),
    ("later", "spike"): ("the batch makes the effect some steps later, too", "later: again"),
    ("later", "nan"): ("the batch makes the effect some steps later, too", "later: again"),
    ("later", "no spike"): ("the batch is harmless some steps later", "later: harmless"),
}
ONLY_OPEN = {  # what a verdict would say already, and with more weight
    ("skip", "no spike"): ("with later batches there is no effect", "skip: harmless"),
    ("skip", "spike"): ("later batches make the effect, too", "skip: again"),
    ("skip", "nan"): ("later batches make the effect, too", "skip: NaN again"),
    ("device", "spike"): ("a second device gives the same effect", "device: again"),
    ("device", "nan"): ("a second device gives the same effect", "device: again"),
    ("device", "no spike"): ("a second device does not give the effect that this one gives every time", "device: harmless"),
    ("kernels", "spike"): ("other kernels give the same effect", "kernels: again"),
    ("kernels", "nan"): ("other kernels give the same effect", "kernels: again"),
}


def more(said: str, further: Mapping[str, str]) -> list[tuple[str, dict[str, float]]]:
    """(sentence, decibans by cause) of the arms that decide no verdict."""
    told = FURTHER if said in OTHERS else {**FURTHER, **ONLY_OPEN}
    return [(told[pair][0], outcome_weights(told[pair][1])) for pair in further.items() if pair in told]


def weights(verdict: str, o: Outcomes, low_precision: bool) -> tuple[dict[str, float], float | None]:
    """Decibans by cause, and for every other cause (None: replay says nothing of them)."""
    if verdict not in OTHERS:
        return ({}, None)
    words = [verdict]
    if verdict == DATA:
        words.append("data: not finite" if o.nonfinite else "data: finite")
        words += ["data: a stretch"] if (o.needed or 0) > 4 else []
    if verdict == NUMERICS:
        words.append("numerics: low precision" if low_precision else "numerics: full precision")
    if verdict == OPTIMIZER:
        known = [word for begin, word in EXPLAINED.items() if o.explained.startswith(begin)]
        words += known or [arm for arm, x in o.optimizer.items() if x == "no spike"]
    return outcome_weights(*words), OTHERS[verdict]

"""Outcomes to one word and clues: pure. Replay does not conclude about causes; its clues are added and they are ranked again.

The order of the rules is that of specificity: what does not come back, what is proved by an exact experiment (precision),
what follows from needed batches, what rate and optimizer do, and last what comes back whatever is changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

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
        return (
            UNDECIDED,
            f"The effect comes back in {o.reproduced} of {o.times} identical replays: the adapter or its kernels are not deterministic.",
        )
    harmful = [x for x in o.elsewhere if x in ("spike", "nan")]
    harmless = [x for x in o.elsewhere if x == "no spike"]
    makes_it = len(harmful) > len(harmless) or (
        len(harmful) == len(harmless) > 0 and next(x for x in o.elsewhere if x != "undecided") != "no spike"
    )
    fixed = [k for k, x in o.precision.items() if x == "no spike"]
    if fixed and not o.batch_nonfinite and not makes_it:
        return NUMERICS, f"The same steps in {fixed[0]} show no effect."
    if o.needed:
        if any(x in ("spike", "nan") for x in o.other_batch):
            return _by_state(o, "Some other batches make the effect, too.")
        if o.batch_nonfinite or makes_it:
            return (
                DATA,
                f"Without the batch there is no effect, and the batch makes it at {len(harmful)} of {len(o.elsewhere)} other states.",
            )
        if not harmless:
            return (
                UNDECIDED,
                f"Without the batch there is no effect; {'there was no other state to try it at' if o.complete else 'the budget ended before it was tried at another state'}.",
            )
        if o.nonfinite and o.guarded == "no spike":
            return NUMERICS, "The batch is harmless at other states, and with a guarded formula here, too."
        if o.alone and all(x == "no spike" for x in o.alone):
            return _by_state(o, "The batch makes the effect only together with the exact batches before it.")
        return (
            STATE_DATA,
            f"Without the batch there is no effect, and at {len(harmless)} of {len(o.elsewhere)} other states the batch is harmless.",
        )
    if o.needed == 0:
        return _by_state(o, "Other batches keep the effect.")
    return UNDECIDED, "The budget ended before the batches that are needed were known."


def _absent(o: Outcomes) -> tuple[str, str]:
    if o.explained:
        return OPTIMIZER, f"The plain replay shows no effect; with \u201c{o.explained}\u201d it agrees with the log."
    if o.agreed >= 3 and o.parts_near:
        first = "gradient norm" if o.why_parts == "grad.norm" else "loss"
        return (
            HARDWARE,
            f"The replay agrees with {o.agreed} logged values, then the {first} parts from the log; {o.times} identical replays do not show the effect.",
        )
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


SAYS = {  # cause -> weight of a verdict, decibans; causes not named get the verdict's last number
    DATA: ({"bad_data_batch": 24.0, "nan_from_sample": 24.0, "bad_data_pocket": 10.0, "labels_all_masked": 12.0, "unknown": 0.0}, -16.0),
    STATE_DATA: ({"bad_data_batch": 14.0, "gradient_clipping_missing": 6.0, "nan_from_sample": 4.0, "lr_too_high": 4.0, "optimizer_second_moment": 4.0}, -10.0),
    HARDWARE: ({"silent_data_corruption": 34.0}, -20.0),
    NUMERICS: ({"fp16_overflow": 24.0, "nan_from_layer": 24.0}, -16.0),
    OPTIMIZER: ({}, -14.0),
}  # fmt: skip
BY_ARM = {
    "rate x 0.1": {"lr_too_high": 8.0, "lr_jump": 4.0, "lr_schedule_reset": 4.0, "schedule_wrong_units": 4.0, "warmup_too_short": 4.0, "gradient_clipping_missing": 4.0, "optimizer_second_moment": 4.0},
    "rate held": {"lr_jump": 16.0, "lr_schedule_reset": 12.0, "lr_too_high": 4.0},
    "rate as logged": {"lr_jump": 18.0, "lr_schedule_reset": 18.0, "schedule_wrong_units": 8.0},
    "clipping on": {"gradient_clipping_missing": 12.0},
    "larger epsilon": {"optimizer_second_moment": 10.0},
    "smaller beta2": {"optimizer_second_moment": 6.0},
    "warmup again": {"warmup_too_short": 6.0, "optimizer_state_lost": 4.0},
    "moments reset": {"optimizer_state_lost": 4.0, "optimizer_second_moment": 4.0},
}  # fmt: skip


BROKEN = {"dead_or_saturated_units": 8.0, "frozen_parameters": 6.0, "labels_all_masked": 6.0}  # what cannot learn one batch by heart
LEARNS = dict.fromkeys(BROKEN, -8.0)
FURTHER: dict[tuple[str, str], tuple[str, dict[str, float]]] = {
    ("heart", "learnt"): ("the model can overfit one batch, so model and loss can learn", {**LEARNS, "labels_wrong": 2.0}),
    ("heart", "faster"): ("the model overfits one batch only at a higher learning rate", {**LEARNS, "lr_too_low": 8.0}),
    ("heart", "no"): ("the model cannot overfit one batch, not even at a hundred times the learning rate", {**BROKEN, "labels_wrong": -4.0, "lr_too_low": -4.0}),
    ("later", "spike"): ("the batch makes the effect some steps later, too", {"bad_data_batch": 3.0, "nan_from_sample": 3.0}),
    ("later", "nan"): ("the batch makes the effect some steps later, too", {"bad_data_batch": 3.0, "nan_from_sample": 3.0}),
    ("later", "no spike"): ("the batch is harmless some steps later", {"bad_data_batch": -2.0, "gradient_clipping_missing": 2.0, "lr_too_high": 2.0, "optimizer_second_moment": 2.0}),
}  # fmt: skip
ONLY_OPEN: dict[tuple[str, str], tuple[str, dict[str, float]]] = {  # what a verdict would say already, and with more weight
    ("skip", "no spike"): ("with later batches there is no effect", {"bad_data_batch": 3.0, "bad_data_pocket": 3.0, "nan_from_sample": 3.0}),
    ("skip", "spike"): ("later batches make the effect, too", {"bad_data_batch": -4.0, "bad_data_pocket": -4.0, "data_distribution_shift": -2.0}),
    ("skip", "nan"): ("later batches make the effect, too", {"nan_from_sample": -4.0}),
    ("device", "spike"): ("a second device gives the same effect", {"silent_data_corruption": -10.0}),
    ("device", "nan"): ("a second device gives the same effect", {"silent_data_corruption": -10.0}),
    ("device", "no spike"): ("a second device does not give the effect that this one gives every time", {"silent_data_corruption": 10.0}),
    ("kernels", "spike"): ("other kernels give the same effect", {"silent_data_corruption": -6.0}),
    ("kernels", "nan"): ("other kernels give the same effect", {"silent_data_corruption": -6.0}),
}  # fmt: skip


def more(said: str, further: Mapping[str, str]) -> list[tuple[str, dict[str, float]]]:
    """(sentence, decibans by cause) of the arms that decide no verdict."""
    told = {**FURTHER, **ONLY_OPEN} if said not in SAYS else FURTHER
    return [told[pair] for pair in further.items() if pair in told]


def weights(verdict: str, o: Outcomes, low_precision: bool) -> tuple[dict[str, float], float | None]:
    """Decibans by cause, and for every other cause (None: replay says nothing of them)."""
    if verdict not in SAYS:
        return ({}, None)
    named, others = dict(SAYS[verdict][0]), SAYS[verdict][1]
    if verdict == DATA:
        named.pop("bad_data_batch" if o.nonfinite else "nan_from_sample")
        if (o.needed or 0) > 4:
            named["bad_data_pocket"] = 24.0
    if verdict == NUMERICS:
        named.pop("nan_from_layer" if low_precision else "fp16_overflow")
    if verdict == OPTIMIZER:
        if o.explained.startswith("moments"):
            named["optimizer_state_lost"] = 26.0
        arms = [o.explained] if o.explained in BY_ARM else [k for k, x in o.optimizer.items() if x == "no spike"]
        for arm in arms:
            for cause, weight in BY_ARM.get(arm, {}).items():
                named[cause] = max(named.get(cause, 0.0), weight)
    return named, others

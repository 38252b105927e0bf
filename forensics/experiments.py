"""The one experiment that best separates two causes: what to run, and what each outcome would mean.

The experiments stand in order of what they cost, from reading to training again. Which outcome a cause predicts stands in the
cause (``EXPECTS``: ``experiment:outcome``, separated by blanks), by argument and not by fit. Causes that predict the same
outcome are not told apart by an experiment, and causes that predict none are open.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from forensics import rules
from forensics.case import Hypothesis

MEANINGFUL = 0.05  # a second cause below this probability is no rival


@dataclass(frozen=True)
class Experiment:
    """`outcomes`: id of what one sees -> the words for it."""

    id: str
    what: str
    outcomes: dict[str, str]


EXPERIMENTS = (
    Experiment(
        "configs",
        "Compare the configs of the launches, and the batch size each one really used",
        {"batch": "the batch size alone differs", "setting": "another setting differs", "same": "nothing differs"},
    ),
    Experiment(
        "counters",
        "Read the counters of a checkpoint after the restart: optimizer, scheduler, samples seen",
        {
            "optimizer": "the optimizer counts from zero",
            "scheduler": "the scheduler counts from zero",
            "samples": "the samples count from zero",
            "go_on": "all of them go on",
        },
    ),
    Experiment(
        "samples",
        "Read the samples of the highest value, and those of the batches before and after it",
        {
            "broken": "one of them holds NaN, infinity or nothing",
            "odd": "they alone are odd",
            "stretch": "their neighbours are odd as well",
            "sound": "none is odd",
        },
    ),
    Experiment(
        "rate",
        "Read the rate the scheduler was told and the one that was used, step by step",
        {"early": "it ends a whole factor too early", "leaves": "it leaves its path at one step", "as_told": "it follows the config"},
    ),
    Experiment(
        "tensors",
        "Compare the first and the last checkpoint tensor by tensor",
        {
            "equal": "tensors are bit-equal",
            "absurd": "one tensor holds an absurd value",
            "moved": "all tensors moved, none is absurd",
            "little": "all tensors moved a little",
        },
    ),
    Experiment(
        "ending",
        "Read the lines around the end in the logs of all ranks, and the memory curve",
        {
            "allocation": "an allocation failed",
            "wait": "ranks wait for one another",
            "slower": "steps go on, only slower",
            "back": "the job ended and came back",
        },
    ),
    Experiment(
        "raw_loss",
        "Log the raw loss of each micro-batch over the same steps",
        {"nothing": "nothing is there", "zero": "every loss is zero or 0/0", "there": "it is there"},
    ),
    Experiment(
        "pairs",
        "Print ten inputs beside their targets, in training and in evaluation",
        {
            "masked": "targets are masked",
            "strangers": "targets do not belong to their inputs",
            "leaked": "evaluation samples stand in the training set",
            "in_order": "inputs and targets are in order",
        },
    ),
    Experiment(
        "old_evaluation",
        "Evaluate an old checkpoint with the present evaluation",
        {"another": "its old number does not come back", "same": "its old number comes back"},
    ),
    Experiment(
        "both_sides",
        "Evaluate one checkpoint on data from before and from after the step",
        {"later": "only the later data are worse", "neither": "both are as good as before, so it was the state that changed later"},
    ),
    Experiment(
        "replay",
        "Replay the step from the checkpoint before it, with its batch and with another",
        {"batch": "it needs its batch", "any": "it comes with any batch", "gone": "it does not come back at all"},
    ),
    Experiment(
        "clip",
        "Replay from the checkpoint before the trouble with the gradient clipped at 1.0",
        {"away": "it stays away", "back": "it comes back"},
    ),
    Experiment("fp32", "Replay the same steps in fp32", {"finite": "the values stay finite", "back": "it comes back"}),
    Experiment(
        "third", "Replay from the checkpoint before the trouble at a third of the rate", {"away": "it stays away", "back": "it comes back"}
    ),
    Experiment(
        "epsilon", "Replay the steps before the first spike with epsilon 1e-5", {"away": "the spikes stay away", "back": "they come back"}
    ),
    Experiment(
        "warmup", "Run the first steps again with the same peak rate and a real warmup", {"learns": "it learns", "not": "it does not"}
    ),
    Experiment("qk_norm", "Run the same steps with q/k norm", {"learns": "it learns", "not": "it does not"}),
    Experiment(
        "range",
        "Run 200 steps at a tenth of the rate, and 200 at ten times the rate",
        {"lower": "the lower rate learns", "higher": "the higher rate learns", "neither": "neither learns"},
    ),
    Experiment("by_heart", "Try to learn one batch by heart", {"can": "it can", "cannot": "it cannot"}),
    Experiment("seeds", "Run the recipe under three more seeds", {"some": "some seeds are fine", "all": "all of them do it"}),
)


def expected(cause: str) -> dict[str, str]:
    """The outcome that a cause predicts, by experiment."""
    return dict(pair.split(":") for pair in rules.said("EXPECTS").get(cause, "").split())


def separating(first: str, second: str) -> tuple[Experiment, str, str] | None:
    """(experiment, what it shows if `first` is right, what if `second` is) of the cheapest that tells them apart."""
    one, other = expected(first), expected(second)
    for e in EXPERIMENTS:
        if e.id in one and e.id in other and one[e.id] != other[e.id]:
            return e, e.outcomes[one[e.id]], e.outcomes[other[e.id]]
    return None


def settled(ranked: tuple[Hypothesis, ...]) -> tuple[Hypothesis, ...]:
    """The ranked causes, where the first two say which experiment tells them apart. Others keep their own."""
    rivals = [h for h in ranked if h.id != "unknown" and h.probability >= MEANINGFUL][:2]
    found = separating(rivals[0].id, rivals[1].id) if len(rivals) == 2 else None
    if found is None:
        return ranked
    experiment, one, other = found
    told = {
        rivals[0].id: f"{experiment.what}. If {one}: {_name(rivals[0])}; if {other}: {_name(rivals[1])}.",
        rivals[1].id: f"{experiment.what}. If {other}: {_name(rivals[1])}; if {one}: {_name(rivals[0])}.",
    }
    return tuple(replace(h, settle=told.get(h.id, h.settle)) for h in ranked)


def _name(h: Hypothesis) -> str:
    """A title inside a sentence: lower case, but not where it is an abbreviation."""
    return h.title if any(c.isupper() for c in h.title.split()[0][1:]) else h.title[0].lower() + h.title[1:]

"""The one experiment that best separates two causes: what to run, and what each outcome would mean.

The experiments stand in order of what they cost, from reading to training again. Each names the outcome that every cause
it speaks of predicts; causes that predict the same outcome are not told apart by it, and causes it does not name are open.
The outcomes are those of ``docs/causes.md`` and of the adapters' replay verdicts, by argument and not by fit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from forensics.case import Hypothesis

MEANINGFUL = 0.05  # a second cause below this probability is no rival


@dataclass(frozen=True)
class Experiment:
    """`outcomes`: what one sees -> the causes that predict it, separated by blanks."""

    what: str
    outcomes: dict[str, str]


_DATA = "bad_data_batch bad_data_pocket nan_from_sample"
_RATE = "lr_too_high warmup_too_short lr_jump schedule_wrong_units lr_schedule_reset"
_STATE = "optimizer_second_moment optimizer_state_lost attention_logit_growth nan_from_layer fp16_overflow gradient_clipping_missing"
_RESUME = "optimizer_state_lost data_order_restarted lr_schedule_reset crash_and_restart"

EXPERIMENTS = (
    Experiment(
        "Compare the configs of the launches, and the batch size each one really used",
        {
            "the batch size alone differs": "batch_size_changed",
            "another setting differs": "config_changed",
            "nothing differs": f"{_RESUME} lr_jump data_distribution_shift lr_too_high seed_variance",
        },
    ),
    Experiment(
        "Read the counters of a checkpoint after the restart: optimizer, scheduler, samples seen",
        {
            "the optimizer counts from zero": "optimizer_state_lost",
            "the scheduler counts from zero": "lr_schedule_reset",
            "the samples count from zero": "data_order_restarted",
            "all of them go on": f"crash_and_restart lr_jump lr_too_high {_DATA} data_distribution_shift eval_changed",
        },
    ),
    Experiment(
        "Read the samples of the highest value, and those of the batches before and after it",
        {
            "one of them holds NaN, infinity or nothing": "nan_from_sample",
            "they alone are odd": "bad_data_batch",
            "their neighbours are odd as well": "bad_data_pocket",
            "none is odd": f"{_STATE} {_RATE} silent_data_corruption seed_variance",
        },
    ),
    Experiment(
        "Read the rate the scheduler was told and the one that was used, step by step",
        {
            "it ends a whole factor too early": "schedule_wrong_units",
            "it leaves its path at one step": "lr_jump",
            "it follows the config": f"lr_too_high lr_too_low warmup_too_short gradient_clipping_missing {_DATA} data_distribution_shift silent_data_corruption",
        },
    ),
    Experiment(
        "Compare the first and the last checkpoint tensor by tensor",
        {
            "tensors are bit-equal": "frozen_parameters",
            "one tensor holds an absurd value": "silent_data_corruption",
            "all tensors moved, none is absurd": f"labels_wrong lr_too_high dead_or_saturated_units init_too_large {_DATA} data_distribution_shift overfitting",
            "all tensors moved a little": "lr_too_low",
        },
    ),
    Experiment(
        "Read the lines around the end in the logs of all ranks, and the memory curve",
        {
            "an allocation failed": "out_of_memory",
            "ranks wait for one another": "hang",
            "steps go on, only slower": "throughput_collapse",
            "the job ended and came back": "crash_and_restart",
        },
    ),
    Experiment(
        "Log the raw loss of each micro-batch over the same steps",
        {
            "nothing is there": "logger_artefact",
            "every loss is zero or 0/0": "labels_all_masked",
            "it is there": f"{_DATA} {_STATE} {_RATE} silent_data_corruption data_distribution_shift labels_wrong",
        },
    ),
    Experiment(
        "Print ten inputs beside their targets, in training and in evaluation",
        {
            "targets are masked": "labels_all_masked",
            "targets do not belong to their inputs": "labels_wrong",
            "evaluation samples stand in the training set": "train_eval_leakage",
            "inputs and targets are in order": "lr_too_low lr_too_high warmup_too_short init_too_large dead_or_saturated_units frozen_parameters overfitting eval_changed nan_from_layer attention_logit_growth",
        },
    ),
    Experiment(
        "Evaluate an old checkpoint with the present evaluation",
        {
            "its old number does not come back": "eval_changed",
            "its old number comes back": "overfitting train_eval_leakage data_distribution_shift labels_wrong lr_too_high silent_data_corruption",
        },
    ),
    Experiment(
        "Evaluate one checkpoint on data from before and from after the step",
        {
            "only the later data are worse": "data_distribution_shift bad_data_pocket bad_data_batch",
            "both are as good as before, so it was the state that changed later": "silent_data_corruption lr_too_high lr_jump gradient_clipping_missing",
        },
    ),
    Experiment(
        "Replay the step from the checkpoint before it, with its batch and with another",
        {
            "it needs its batch": _DATA,
            "it comes with any batch": f"{_RATE} {_STATE} data_distribution_shift",
            "it does not come back at all": "silent_data_corruption",
        },
    ),
    Experiment(
        "Replay from the checkpoint before the trouble with the gradient clipped at 1.0",
        {
            "it stays away": "gradient_clipping_missing",
            "it comes back": "lr_too_high warmup_too_short attention_logit_growth nan_from_layer fp16_overflow lr_jump data_distribution_shift",
        },
    ),
    Experiment(
        "Replay the same steps in fp32",
        {
            "the values stay finite": "fp16_overflow",
            "it comes back": "nan_from_layer nan_from_sample lr_too_high gradient_clipping_missing attention_logit_growth",
        },
    ),
    Experiment(
        "Replay from the checkpoint before the trouble at a third of the rate",
        {"it stays away": "lr_too_high lr_jump", "it comes back": f"nan_from_layer data_distribution_shift {_DATA}"},
    ),
    Experiment(
        "Replay the steps before the first spike with epsilon 1e-5",
        {
            "the spikes stay away": "optimizer_second_moment",
            "they come back": f"lr_too_high gradient_clipping_missing attention_logit_growth {_DATA}",
        },
    ),
    Experiment(
        "Run the first steps again with the same peak rate and a real warmup",
        {
            "it learns": "warmup_too_short",
            "it does not": "lr_too_high init_too_large labels_wrong dead_or_saturated_units attention_logit_growth",
        },
    ),
    Experiment(
        "Run the same steps with q/k norm",
        {"it learns": "attention_logit_growth", "it does not": "lr_too_high labels_wrong init_too_large dead_or_saturated_units"},
    ),
    Experiment(
        "Run 200 steps at a tenth of the rate, and 200 at ten times the rate",
        {
            "the lower rate learns": "lr_too_high",
            "the higher rate learns": "lr_too_low",
            "neither learns": "labels_wrong labels_all_masked dead_or_saturated_units frozen_parameters",
        },
    ),
    Experiment(
        "Try to learn one batch by heart",
        {"it can": "labels_wrong lr_too_low", "it cannot": "dead_or_saturated_units frozen_parameters labels_all_masked"},
    ),
    Experiment(
        "Run the recipe under three more seeds",
        {
            "some seeds are fine": "seed_variance silent_data_corruption",
            "all of them do it": "lr_too_high warmup_too_short gradient_clipping_missing init_too_large labels_wrong",
        },
    ),
)


def separating(first: str, second: str) -> tuple[Experiment, str, str] | None:
    """(experiment, what it shows if `first` is right, what if `second` is) of the cheapest that tells them apart."""
    for experiment in EXPERIMENTS:
        seen = [next((o for o, causes in experiment.outcomes.items() if c in causes.split()), None) for c in (first, second)]
        if seen[0] and seen[1] and seen[0] != seen[1]:
            return experiment, seen[0], seen[1]
    return None


def settled(ranked: tuple[Hypothesis, ...]) -> tuple[Hypothesis, ...]:
    """The ranked causes, where the first two say which experiment tells them apart. Others keep their own."""
    rivals = [h for h in ranked if h.id != "unknown" and h.probability >= MEANINGFUL][:2]
    if len(rivals) < 2:
        return ranked
    found = separating(rivals[0].id, rivals[1].id)
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

"""What the source that lies with a run does, line by line: parsed, never run. A hint; what the run measured is the proof."""

from __future__ import annotations

from forensics.detectors import suspect_source
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, seen
from forensics.source.answers import FAULT, RIGHT
from forensics.source.run_source import looked_at


def source_keeps_gradients(s: Symptoms) -> Sign:
    """The training loop in the source never clears the gradients."""
    return _said(s, "keeps_gradients")


def source_clips_scaled_gradients(s: Symptoms) -> Sign:
    """The source clips gradients before the loss scaler's factor is taken out of them."""
    return _said(s, "clips_scaled_gradients")


def source_clips_after_step(s: Symptoms) -> Sign:
    """The source clips gradients once the step has used them."""
    return _said(s, "clips_after_step")


def source_adds_undivided_losses(s: Symptoms) -> Sign:
    """The source accumulates gradients of a loss that is not divided by the micro-batches of an update."""
    return _said(s, "adds_undivided_losses")


def source_steps_scheduler_often(s: Symptoms) -> Sign:
    """The source steps the scheduler with every micro-batch, and the optimizer less often."""
    return _said(s, "steps_scheduler_often")


def source_evaluates_in_training_mode(s: Symptoms) -> Sign:
    """The source evaluates a model with dropout or batch norm, and nowhere calls eval()."""
    return _said(s, "evaluates_in_training_mode")


def source_trains_in_evaluation_mode(s: Symptoms) -> Sign:
    """The source puts the model into evaluation mode within the training loop, and not back."""
    return _said(s, "trains_in_evaluation_mode")


def source_squashes_twice(s: Symptoms) -> Sign:
    """The source gives a loss that takes logits the output of a softmax or sigmoid."""
    return _said(s, "squashes_twice")


def source_shifts_labels_twice(s: Symptoms) -> Sign:
    """The source shifts labels for a model that shifts them itself."""
    return _said(s, "shifts_labels_twice")


def source_keeps_order(s: Symptoms) -> Sign:
    """The source goes through the training data in their own order."""
    return _said(s, "keeps_order")


def source_seeds_workers_alike(s: Symptoms) -> Sign:
    """The source gives every loader worker the same seed."""
    return _said(s, "seeds_workers_alike")


def source_evaluates_on_training_data(s: Symptoms) -> Sign:
    """The source makes what it calls held out as it makes the training data."""
    return _said(s, "evaluates_on_training_data")


def source_keeps_graphs(s: Symptoms) -> Sign:
    """The source adds losses with their graphs to a running total."""
    return _said(s, "keeps_graphs")


def source_loads_no_optimizer(s: Symptoms) -> Sign:
    """The source resumes model and step without the optimizer's state."""
    return _said(s, "loads_no_optimizer")


def source_loads_no_scheduler(s: Symptoms) -> Sign:
    """The source resumes model, optimizer and step without the scheduler's state."""
    return _said(s, "loads_no_scheduler")


def source_unfreezes_late(s: Symptoms) -> Sign:
    """The source unfreezes parameters that the optimizer was not given."""
    return _said(s, "unfreezes_late")


def source_hides_layers(s: Symptoms) -> Sign:
    """The source keeps layers in a plain list, where the optimizer does not find them."""
    return _said(s, "hides_layers")


def _said(s: Symptoms, look: str) -> Sign:
    found = looked_at(s.run)
    answer = found.answers.get(look)
    if answer is None:
        return cannot_tell("no source that trains something lies with the run.")
    if answer.state == FAULT:
        return seen(answer.text, [f for f in s.of(suspect_source.Facts) if f.facts.look == look], where=answer.where)
    return absent(answer.text, where=answer.where) if answer.state == RIGHT else cannot_tell(answer.text)

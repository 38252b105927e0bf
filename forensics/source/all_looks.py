"""Every look at a program, by name; the folder's modules are the list."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from forensics.source import (
    accumulation_looks,
    loader_calls,
    loss_calls,
    model_modes,
    running_totals,
    state_loading,
    unlearned_parameters,
    update_order,
)
from forensics.source.answers import FAULT, RIGHT, Answer, unknown
from forensics.source.program import Program

Look = Callable[[Program], Answer]

LOOKS: dict[str, Look] = {
    f.__name__: f
    for f in (
        update_order.zero_grad_missing,
        update_order.clip_before_unscale,
        update_order.clip_after_step,
        accumulation_looks.loss_not_divided,
        accumulation_looks.scheduler_per_micro_batch,
        model_modes.eval_call_missing,
        model_modes.train_mode_not_restored,
        loss_calls.softmax_before_cross_entropy,
        loss_calls.nll_loss_on_logits,
        loss_calls.labels_not_shifted,
        loss_calls.labels_shifted_twice,
        loader_calls.shuffle_off,
        loader_calls.same_seed_per_worker,
        loader_calls.evaluation_on_training_set,
        running_totals.graph_kept_in_total,
        state_loading.optimizer_not_loaded,
        state_loading.scheduler_not_loaded,
        unlearned_parameters.optimizer_built_before_unfreezing,
        unlearned_parameters.layers_in_plain_list,
    )
}


def looked(program: Program) -> dict[str, Answer]:
    """Every answer of one program. A look that breaks, or meets source nested too deep, costs only itself."""
    out = {}
    for name, look in LOOKS.items():
        try:
            out[name] = look(program)
        except Exception as e:
            out[name] = unknown(f"this look failed: {type(e).__name__}: {e}"[:200])
    return out


def agreed(answers: Sequence[Answer]) -> Answer:
    """What several scripts have in common: which of them ran is not recorded."""
    states = {a.state for a in answers}
    if states in ({FAULT}, {RIGHT}) or len(answers) == 1:
        return answers[0]
    return unknown(f"which of {len(answers)} scripts ran is not recorded, and they differ.") if states & {FAULT, RIGHT} else answers[0]

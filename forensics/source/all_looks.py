"""Every look at a program, by name; the folder's modules are the list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from forensics.source import (
    accumulation_looks,
    hidden_errors,
    loader_calls,
    loss_calls,
    model_modes,
    running_totals,
    state_loading,
    unlearned_parameters,
    update_order,
)
from forensics.source.answers import FAULT, RIGHT, Answer, unknown
from forensics.source.parsed_module import last
from forensics.source.program import MOST_CALLS, Program
from parsers.lazy_regex import lazy_re

Look = Callable[[Program], Answer]

LOOKS: dict[str, Look] = {
    f.__name__: f
    for f in (
        update_order.keeps_gradients,
        update_order.clips_scaled_gradients,
        update_order.clips_after_step,
        accumulation_looks.adds_undivided_losses,
        accumulation_looks.steps_scheduler_often,
        model_modes.evaluates_in_training_mode,
        model_modes.trains_in_evaluation_mode,
        loss_calls.squashes_twice,
        loss_calls.gives_nll_no_logs,
        loss_calls.shifts_no_labels,
        loss_calls.shifts_labels_twice,
        loader_calls.keeps_order,
        loader_calls.seeds_workers_alike,
        loader_calls.evaluates_on_training_data,
        running_totals.keeps_graphs,
        state_loading.loads_no_optimizer,
        state_loading.loads_no_scheduler,
        unlearned_parameters.unfreezes_late,
        unlearned_parameters.hides_layers,
        hidden_errors.hides_errors,
    )
}

_ASKED = lazy_re(
    r"(manual_)?backward|step|eval|train|no_grad|inference_mode|parameters|DataLoader|load_state_dict|zero_grad|clip_grad_\w+|[a-z]*_?(entropy|loss)|\w+Loss"
)


def looked(program: Program) -> dict[str, Answer]:
    """Every answer of one program. A look that breaks, or meets source nested too deep, costs only itself. The looks go through the
    source once for each call that they ask about, so there may not be too many of these."""
    ((name, times),) = Counter(last(c.name) for c in program.calls if _ASKED.fullmatch(last(c.name))).most_common(1)[0:1] or [("", 0)]
    if times > MOST_CALLS:
        return {look: unknown(f"the source calls {name} {times} times, more than one script does.") for look in LOOKS}
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

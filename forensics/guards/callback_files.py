"""One guard as a small file for a training script: its rule and threshold, what it did on the recorded run, and the callback.

The file stands alone: the source of ``live.Guard`` and of one statistic, and a frame for the framework. Nothing of the run gets into its
code but numbers and the quoted name of a metric; texts stand in the docstring, without what could end it.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable

from forensics.errors import ForensicsError
from forensics.guards import live
from forensics.guards.backtest import Backtest
from forensics.guards.guard_table import GUARDS
from forensics.version import VERSION
from parsers.secrets import mask_text

CLOCK = "now, before, self.before = time.perf_counter(), self.before, time.perf_counter()\nif before is None:\n    return\n"
NORM = "torch.linalg.vector_norm(torch.stack([p.grad.norm() for p in model.parameters() if p.grad is not None]))"
HF_KEYS = {"loss.train": "loss", "grad.norm": "grad_norm", "loss.eval": "eval_loss"}


def python(row: Backtest) -> str:
    return '''

class TrainingGuard:
    """guard = TrainingGuard(); in the loop: guard.watch(step, value). Raises GuardFired."""

    def __init__(self):
        self.guard, self.fired = made(), None

    def watch(self, step, value):
        if self.guard.update(float(value)):
            self.fired = step
            raise GuardFired(f"step {step}: {RULE} ({METRIC} = {float(value):.6g})")


class GuardFired(RuntimeError):
    pass
'''


def torch(row: Backtest) -> str:
    read = {
        "loss.train": "value = loss.detach()",
        "grad.norm": f"value = {NORM}",
        "loss_scale": "value = scaler.get_scale()",
        "time.step": f"{CLOCK}value = now - before",
    }.get(row.metric, "")
    told = {"loss.train": "loss=loss", "grad.norm": "model=model", "loss_scale": "scaler=scaler", "time.step": ""}.get(
        row.metric, "value=value"
    )
    after = "after scaler.unscale_() and before clipping and optimizer.step()" if row.metric == "grad.norm" else "once a step"
    return f'''

class TorchGuard:
    """guard = TorchGuard(); in the loop, {after}: guard.watch(step{", " * bool(told)}{told}). Raises GuardFired."""

    def __init__(self):
        self.guard, self.fired, self.before = made(), None, None

    def watch(self, step, value=None, loss=None, model=None, scaler=None):
        if step % EVERY != FIRST:
            return
{_indented(read, 8)}
        if self.guard.update(float(value)):
            self.fired = step
            raise GuardFired(f"step {{step}}: {{RULE}} ({{METRIC}} = {{float(value):.6g}})")


class GuardFired(RuntimeError):
    pass
'''


def hf(row: Backtest) -> str:
    nan = (
        "\n\n    It needs logging_nan_inf_filter=False: by default the Trainer does not log a loss that is NaN.\n    "
        if row.guard == "loss_nonfinite"
        else ""
    )
    key = HF_KEYS.get(row.metric, row.tag.removeprefix("train/"))
    on_step = {
        "time.step": f"{CLOCK}self.look(now - before)",
        "loss_scale": 'scaler = getattr(kwargs.get("optimizer"), "scaler", None)\nif scaler is not None:\n    self.look(scaler.get_scale())',
    }.get(row.metric)
    signature, body = (
        ("on_step_end(self, args, state, control, **kwargs)", on_step)
        if on_step
        else (
            "on_log(self, args, state, control, logs=None, **kwargs)",
            f"if {json.dumps(key)} in (logs or {{}}):\n    self.look(logs[{json.dumps(key)}])",
        )
    )
    return f'''

class GuardCallback(TrainerCallback):
    """Trainer(..., callbacks=[GuardCallback()]), with logging_steps={row.every} as in the recorded run. Saves a checkpoint and stops.{nan}"""

    def __init__(self):
        self.guard, self.fired, self.before = made(), None, None

    def {signature}:
        self.state, self.control = state, control
{_indented(body, 8)}

    def look(self, value):
        if self.guard.update(float(value)) and self.fired is None:
            self.fired = self.state.global_step
            print(f"step {{self.fired}}: {{RULE}} ({{METRIC}} = {{float(value):.6g}})")
            self.control.should_save = self.control.should_training_stop = True
'''


def lightning(row: Backtest) -> str:
    ended = "on_train_batch_end(self, trainer, model, outputs, batch, batch_idx)"
    hooks = {
        "loss.train": (ended, 'loss = outputs["loss"] if isinstance(outputs, dict) else outputs\nself.look(trainer, trainer.global_step - 1, loss)'),
        "grad.norm": ("on_before_optimizer_step(self, trainer, model, optimizer)", f"self.look(trainer, trainer.global_step, {NORM})"),
        "loss_scale": (ended, "self.look(trainer, trainer.global_step - 1, trainer.precision_plugin.scaler.get_scale())"),
        "time.step": (ended, f"{CLOCK}self.look(trainer, trainer.global_step - 1, now - before)"),
    }  # fmt: skip
    logged = f"if {json.dumps(row.tag)} in trainer.callback_metrics:\n    self.look(trainer, trainer.global_step, trainer.callback_metrics[{json.dumps(row.tag)}])"
    at_eval = ("on_validation_end(self, trainer, model)", f"if not trainer.sanity_checking:\n{_indented(logged, 4)}")
    signature, body = hooks.get(row.metric, at_eval if row.metric == "loss.eval" else (ended, logged))
    often = "" if row.metric == "loss.eval" else "        if step % EVERY != FIRST or step == self.step:\n            return\n"
    return f'''

class GuardCallback(Callback):
    """Trainer(..., callbacks=[GuardCallback()]). Stops the training; the checkpoints are yours. Steps count from 0, as Lightning's loggers do."""

    def __init__(self):
        self.guard, self.fired, self.before, self.step = made(), None, None, None

    def {signature}:
{_indented(body, 8)}

    def look(self, trainer, step, value):
{often}        self.step = step
        if self.guard.update(float(value)) and self.fired is None:
            self.fired = step
            print(f"step {{step}}: {{RULE}} ({{METRIC}} = {{float(value):.6g}})")
            trainer.should_stop = True
'''


FRAMES: dict[str, tuple[Callable[[Backtest], str], str]] = {
    "hf": (hf, "\nfrom transformers import TrainerCallback\n"),
    "lightning": (lightning, "\nimport torch\nfrom lightning.pytorch import Callback\n"),
    "torch": (torch, "\nimport torch\n"),
    "python": (python, ""),
}


def text(row: Backtest, framework: str, run: str, harm: str) -> str:
    """The file. ``harm`` is the title of the finding that the guard would have caught. Raises ForensicsError for another framework."""
    if framework not in FRAMES:
        raise ForensicsError(f"there is no callback file for {framework}", f"There are some for {', '.join(FRAMES)}.")
    rule = next(g for g in GUARDS if g.name == row.guard)
    frame, imports = FRAMES[framework]
    sources = [live.Guard, rule.statistic]
    body = frame(row)
    standard = "".join(
        f"import {m}\n" for m in ("math", "statistics", "time") if any(f"{m}." in t for t in (*map(inspect.getsource, sources), body))
    )
    head = f"""from __future__ import annotations

{standard}from collections import deque
from collections.abc import Callable
{imports}
RULE = {json.dumps(rule.says)}
METRIC = {json.dumps(row.tag)}
EVERY, FIRST = {row.every}, {row.first % row.every}  # the backtest saw the values of these steps; 1 and 0 look at every step
WINDOW, LEAST, THRESHOLD, PATIENCE = {rule.window}, {rule.least}, {rule.threshold:g}, {rule.patience}
"""
    made = f"def made() -> Guard:\n    return Guard({rule.statistic.__name__}(WINDOW, LEAST), THRESHOLD, PATIENCE)\n"
    quoted = '"""' + _docstring(row, run, harm) + '\n"""\n\n'
    return quoted + "\n\n".join([head, *(inspect.getsource(c) for c in sources), made]) + body


def _docstring(row: Backtest, run: str, harm: str) -> str:
    rule = next(g for g in GUARDS if g.name == row.guard)
    often = f"every {row.every} steps" if row.every > 1 else "a step"
    lines = [
        f"Guard {row.guard}, written by forensics {VERSION}.",
        f"Rule: {rule.says}. Threshold from {rule.source}.",
        f"Evidence: a backtest over the log of {run}, metric {row.tag}, one value {often}. {row.says(harm)}",
        "It was chosen in hindsight on this run; docs/guards.md has its false alarms on others.",
    ]
    return "\n\n".join(_harmless(line) for line in lines)


def _harmless(line: str) -> str:
    """Nothing that ends or escapes a docstring, and no secret."""
    kept = "".join(c if c.isprintable() else " " for c in mask_text(line))
    return kept.replace("\\", "/").replace('"', "'")


def _indented(code: str, by: int) -> str:
    return "\n".join(" " * by + line for line in code.splitlines())

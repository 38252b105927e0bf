"""Looks at how a program resumes: are optimizer and scheduler loaded where the model and the step are?"""

from __future__ import annotations

import ast

from forensics.source.answers import Answer, fault, right, unknown
from forensics.source.parsed_module import dotted, last
from forensics.source.program import Program, Site
from forensics.source.training_loops import is_optimizer, is_scheduler, receiver, updates
from parsers.lazy_regex import lazy_re

_CLOCK = lazy_re(r"(?i)^(start_?)?(epoch|step|iter\w{0,6}|global_step|iteration)s?(_num|_idx)?$")
_WHOLE = ("load_state", "load_checkpoint", "resume", "restore", "auto_load_model", "load_training_state")
_NO_RESUME = "the source does not go on from a saved step."


def loads_no_optimizer(program: Program) -> Answer:
    """Resume without the optimizer: model and step come from a checkpoint, and the optimizer's state does not."""
    return _loaded(program, scheduler=False)


def loads_no_scheduler(program: Program) -> Answer:
    """Resume without the scheduler: model, optimizer and step come from a checkpoint, and the scheduler's state does not."""
    return _loaded(program, scheduler=True)


def _loaded(program: Program, *, scheduler: bool) -> Answer:
    if not updates(program):
        return unknown(_NO_RESUME)
    loads = program.ends("load_state_dict")
    clock = next((s for s in _clocks(program)), None)
    optimizers = [c for c in loads if is_optimizer(c.module, receiver(c.node)) or "opt" in receiver(c.node).lower()]
    schedulers = [c for c in loads if is_scheduler(c.module, receiver(c.node))]
    models = [c for c in loads if c not in optimizers and c not in schedulers and "scaler" not in receiver(c.node).lower()]
    wanted, what = (schedulers, "scheduler") if scheduler else (optimizers, "optimizer")
    if wanted:
        return right(wanted[0], f"loads the {what}'s state.")
    if not models or clock is None or (scheduler and not optimizers):
        return unknown(_NO_RESUME)
    if program.ends(*_WHOLE) or any("." not in receiver(c.node) and _looped(c) for c in loads):
        return unknown("what is loaded beside the model is not in the source.")
    if scheduler and (why := _no_state(program)):
        return unknown(why)
    said = "model, optimizer and step" if scheduler else "model and step"
    return fault(models[0], f"resumes {said} ({clock.where}), and nothing loads the {what}'s state.")


def _looped(c: Site) -> bool:
    """``for x in (model, optimizer): x.load_state_dict(...)``"""
    name = receiver(c.node)
    return any(isinstance(p, ast.For) and name in {dotted(n) for n in ast.walk(p.target)} for p in c.module.loops(c.node))


def _clocks(program: Program) -> list[Site]:
    """Where a step or an epoch is taken out of something that was loaded: ``start = checkpoint["epoch"] + 1``."""
    out = []
    for m in program.modules:
        loaded = {
            name for name, values in m.made.items() if any(last(m.called(v)) in ("load", "load_checkpoint", "torch_load") for v in values)
        }
        for n in ast.walk(m.tree):
            if not isinstance(n, ast.Subscript) or not isinstance(n.ctx, ast.Load) or not isinstance(n.slice, ast.Constant):
                continue
            key, assigned = str(n.slice.value), any(isinstance(p, (ast.Assign, ast.AugAssign)) for p in m.parents(n))
            if dotted(n.value) in loaded and _CLOCK.match(key) and assigned:
                out.append(Site(m, n))
    return out


def _no_state(program: Program) -> str:
    """Why the scheduler may have no state that could be lost, or is brought to its place otherwise."""
    made = [
        v for m in program.modules for name, values in m.made.items() if is_scheduler(m, name) for v in values if isinstance(v, ast.Call)
    ]
    if not made:
        return "the source makes no scheduler."
    if any(k.arg == "last_epoch" or k.arg is None for v in made for k in v.keywords):
        return "the scheduler may be given the step that it begins from."
    steps = [c for c in program.ends("step") if is_scheduler(c.module, receiver(c.node))]
    if not steps:
        return "the source does not step the scheduler."
    if any(getattr(c.node, "args", None) for c in steps):
        return "the scheduler is given its step each time."
    written = any(isinstance(n, ast.Attribute) and n.attr == "last_epoch" for m in program.modules for n in ast.walk(m.tree))
    return "the source sets the scheduler's place by hand." if written else ""

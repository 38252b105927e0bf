"""Looks at gradient accumulation: is the loss divided by the steps, and the scheduler stepped once an update?"""

from __future__ import annotations

import ast
from itertools import islice

from forensics.source.answers import Answer, fault, one_of, right, unknown
from forensics.source.parsed_module import dotted, last
from forensics.source.program import Program, Site
from forensics.source.training_loops import MOST_UPDATES, Accumulation, accumulations, is_scheduler, receiver, updates

_NONE = "the source has no loop of its own that accumulates gradients."
_DIVIDES = ("accelerator", "engine", "fabric")  # accelerate and DeepSpeed divide the loss themselves


def adds_undivided_losses(program: Program) -> Answer:
    """Loss not divided by the accumulation steps: gradients of several micro-batches add up undivided."""
    return one_of([_divided(program, a) for a in _some(program)], _NONE)


def steps_scheduler_often(program: Program) -> Answer:
    """Scheduler stepped per micro-batch: the schedule ends as many times too early as there are micro-batches in an update."""
    if program.uses("accelerate"):
        return unknown("whether the scheduler steps with each micro-batch: accelerate wraps it.")
    return one_of([x for a in _some(program) for x in _scheduled(program, a)], _NONE)


def _some(program: Program) -> list[Accumulation]:
    return list(islice(accumulations(program, updates(program)), MOST_UPDATES))


def _divided(program: Program, a: Accumulation) -> Answer:
    call = a.backward.node
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.args or call.keywords:
        return unknown("whether the loss is divided: a function does the backward pass, or it is given gradients.")
    if any(word in receiver(call).lower() for word in _DIVIDES):
        return unknown("whether the loss is divided: a library does the backward pass.")
    loss = call.func.value
    if isinstance(loss, ast.Call) and last(dotted(loss.func)) == "scale" and loss.args:
        loss = loss.args[0]
    m = a.backward.module
    parts = [loss, *(n for n in ast.walk(a.update.region) if dotted(loss) and _assigned(n, dotted(loss)))]
    factors = [f for part in parts for f in _factors(part)]
    if any(divides and steps == a.steps for divides, steps in factors):
        return right(Site(m, call), f"gets a loss that was divided by {a.steps}.")
    if factors:
        return unknown(f"whether the factor of the loss at {a.backward.where} stands for the micro-batches of an update.")
    for s in (Site(o, n) for o in program.modules for n in ast.walk(o.tree) if isinstance(n, ast.BinOp) and _is_factor(n.op)):
        if any(_short(x) == a.steps for x in (getattr(s.node, "left", a.guard), getattr(s.node, "right", a.guard))):
            return unknown(f"what the scaling by {a.steps} at {s.where} is for.")
    if any(isinstance(n, ast.Attribute) and n.attr == "grad" for n in ast.walk(a.update.region)) or not dotted(loss):
        return unknown("whether the gradients are divided by hand.")
    return fault(a.backward, f"adds up the gradients of {a.steps} micro-batches whose loss is not divided by {a.steps}.")


def _assigned(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.AugAssign):
        return dotted(node.target) == name
    return isinstance(node, ast.Assign) and any(dotted(t) == name for t in node.targets)


def _factors(node: ast.AST) -> list[tuple[bool, str]]:
    """Whether each factor in an expression or an assignment divides, and how it is written."""
    out = [(isinstance(n.op, ast.Div), ast.unparse(n.value)) for n in ast.walk(node) if isinstance(n, ast.AugAssign) and _is_factor(n.op)]
    return out + [
        (isinstance(n.op, ast.Div), ast.unparse(n.right)) for n in ast.walk(node) if isinstance(n, ast.BinOp) and _is_factor(n.op)
    ]


def _is_factor(op: ast.operator) -> bool:
    return isinstance(op, (ast.Div, ast.Mult))


def _scheduled(program: Program, a: Accumulation) -> list[Answer]:
    m, out = a.update.module, []
    for s in program.calls_in(m, a.update.region):
        if last(s.name) != "step" or not is_scheduler(m, receiver(s.node)):
            continue
        often = a.per_micro_batch(s.node)
        if often is None or getattr(s.node, "args", None) or getattr(s.node, "keywords", None):
            out.append(unknown(f"how often {s.where} steps the scheduler, or where it is told to be."))
        elif often:
            out.append(fault(s, f"steps the scheduler with every micro-batch, and {a.update.step.where} the optimizer once in {a.steps}."))
        else:
            out.append(right(s, "steps the scheduler once an update."))
    return out


def _short(node: ast.AST) -> str:
    """A name or a constant as it is written."""
    return repr(node.value) if isinstance(node, ast.Constant) else dotted(node)

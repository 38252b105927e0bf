"""Looks at totals over steps: is the loss taken as a number, or with the graph that made it?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from forensics.source.answers import Answer, fault, one_of, right
from forensics.source.program import Loop, Module, Program, Site, dotted, last
from forensics.source.training_loops import is_backward, is_optimizer

_NUMBERS = ("item", "detach", "tolist", "numpy", "cpu", "data")


def keeps_graphs(program: Program) -> Answer:
    """item() missing: a running total adds up losses with their graphs, which stay in memory as long as the total."""
    found = []
    for b in program.calls:
        if is_backward(b) and (loss := _loss(b)):
            for loop in b.module.loops(b.node)[:1]:
                found += list(_totals(b.module, loop, loss, _backwarded(b.module)))
    return one_of(found, "the source adds up no losses in a training loop of its own.")


def _loss(b: Site) -> str:
    """'loss' of ``loss.backward()``, ``scaler.scale(loss).backward()`` and ``accelerator.backward(loss)``"""
    call = b.node
    assert isinstance(call, ast.Call) and isinstance(call.func, (ast.Attribute, ast.Name))
    value = call.func.value if isinstance(call.func, ast.Attribute) else None
    if isinstance(value, ast.Call) and last(dotted(value.func)) == "scale" and value.args:
        return dotted(value.args[0])
    if isinstance(value, ast.Name) and not call.args:
        return value.id
    return dotted(call.args[0]) if call.args else ""


def _backwarded(m: Module) -> set[str]:
    calls = (Site(m, n) for n in ast.walk(m.tree) if isinstance(n, ast.Call))
    return {_loss(c) for c in calls if is_backward(c)}


def _totals(m: Module, loop: Loop, loss: str, backwarded: set[str]) -> Iterator[Answer]:
    if _made_a_number(m, loop, loss) or _over_optimizers(m, loop):
        return
    for n in ast.walk(loop):
        target, value = "", None
        if isinstance(n, ast.AugAssign) and isinstance(n.op, ast.Add):
            target, value = dotted(n.target), n.value
        elif (
            isinstance(n, ast.Expr) and isinstance(n.value, ast.Call) and last(dotted(n.value.func)) == "append" and len(n.value.args) == 1
        ):
            target, value = dotted(n.value.func).rpartition(".")[0], n.value.args[0]
        if value is None or not target or target in backwarded or loss not in {dotted(x) for x in ast.walk(value)}:
            continue
        if _number(value, loss):
            yield right(Site(m, n), "adds the loss as a number.")
        elif _bare(value, loss) and not _in_no_grad(m, n) and not _in_loss(m, loop, target) and _outlives(m, loop, target):
            yield fault(Site(m, n), f"adds {loss} with its graph to {target}: item() or detach() is missing.")


def _number(value: ast.AST, loss: str) -> bool:
    """Is the loss taken out of its graph in this expression?"""
    called = (dotted(x) for x in ast.walk(value) if isinstance(x, ast.Attribute) and x.attr in _NUMBERS)
    floats = (x for x in ast.walk(value) if isinstance(x, ast.Call) and dotted(x.func) == "float")
    return any(name.startswith(f"{loss}.") for name in called) or any(floats)


def _bare(value: ast.AST, loss: str) -> bool:
    """The loss itself, or times or over a count; what a function makes of it is not known."""
    if isinstance(value, ast.BinOp):
        return any(_bare(x, loss) for x in (value.left, value.right)) and not any(
            isinstance(x, ast.Attribute) for x in ast.walk(value.left)
        )
    return isinstance(value, ast.Name) and value.id == loss


def _made_a_number(m: Module, loop: Loop, loss: str) -> bool:
    """Is the loss's own name given a number or a detached value in the loop?"""
    assigned = (n for n in ast.walk(loop) if isinstance(n, ast.Assign) and any(dotted(t) == loss for t in n.targets))
    return any(_number(n.value, loss) for n in assigned)


def _in_no_grad(m: Module, n: ast.AST) -> bool:
    held = (item.context_expr for p in m.parents(n) if isinstance(p, ast.With) for item in p.items)
    return any(last(m.called(e)) in ("no_grad", "inference_mode") for e in held)


def _in_loss(m: Module, loop: Loop, target: str) -> bool:
    """Does the total go into something that is differentiated?"""
    for n in ast.walk(m.function(loop)):
        if isinstance(n, ast.Call) and is_backward(Site(m, n)) and target in {dotted(x) for x in ast.walk(n)}:
            return True
    return False


def _outlives(m: Module, loop: Loop, target: str) -> bool:
    """Is the total begun outside the loop?"""
    inside = (n for n in ast.walk(loop) if isinstance(n, ast.Assign))
    return not any(dotted(t) == target for n in inside for t in n.targets)


def _over_optimizers(m: Module, loop: Loop) -> bool:
    """Does the loop go through optimizers, of models side by side, and not through data?"""
    return isinstance(loop, ast.For) and any(is_optimizer(m, dotted(n)) for n in ast.walk(loop.target) if isinstance(n, ast.Name))

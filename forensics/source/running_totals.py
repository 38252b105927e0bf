"""Looks at totals over steps: is the loss taken as a number, or with the graph that made it?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from forensics.source.answers import Answer, fault, one_of, right
from forensics.source.parsed_module import Loop, Module, dotted, last
from forensics.source.program import Program, Site
from forensics.source.training_loops import is_backward, is_optimizer

_NUMBERS = ("item", "detach", "tolist", "numpy", "cpu", "data")


def keeps_graphs(program: Program) -> Answer:
    """item() missing: a running total adds up losses with their graphs, which stay in memory as long as the total."""
    pairs = {(b.module, loop, loss) for b in program.calls if is_backward(b) and (loss := _loss(b)) for loop in b.module.loops(b.node)[:1]}
    found = [a for m, loop, loss in sorted(pairs, key=lambda x: (x[0].line(x[1]), x[2])) for a in _totals(program, m, loop, loss)]
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


def _totals(program: Program, m: Module, loop: Loop, loss: str) -> Iterator[Answer]:
    if _made_a_number(m, loop, loss) or _over_optimizers(m, loop):
        return
    differentiated = {dotted(x) for c in program.calls_in(m, m.tree) if is_backward(c) for x in ast.walk(c.node)}
    begun_inside = {dotted(t) for n in ast.walk(loop) if isinstance(n, ast.Assign) for t in n.targets}
    for n, target, value in _sums(loop):
        if not target or target in differentiated or loss not in {dotted(x) for x in ast.walk(value)}:
            continue
        if _number(value, loss):
            yield right(Site(m, n), "adds the loss as a number.")
        elif _bare(value, loss) and not _in_no_grad(m, n) and target not in begun_inside:
            yield fault(Site(m, n), f"adds {loss} with its graph to {target}: item() or detach() is missing.")


def _sums(loop: Loop) -> Iterator[tuple[ast.AST, str, ast.expr]]:
    """``total += value`` and ``total.append(value)`` in a loop."""
    for n in ast.walk(loop):
        if isinstance(n, ast.AugAssign) and isinstance(n.op, ast.Add):
            yield n, dotted(n.target), n.value
        elif (
            isinstance(n, ast.Expr) and isinstance(n.value, ast.Call) and last(dotted(n.value.func)) == "append" and len(n.value.args) == 1
        ):
            yield n, dotted(n.value.func).rpartition(".")[0], n.value.args[0]


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


def _over_optimizers(m: Module, loop: Loop) -> bool:
    """Does the loop go through optimizers, of models side by side, and not through data?"""
    return isinstance(loop, ast.For) and any(is_optimizer(m, dotted(n)) for n in ast.walk(loop.target) if isinstance(n, ast.Name))

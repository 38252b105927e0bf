"""Looks at what silences an error of the training step instead of mending it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from forensics.source.answers import Answer, fault, is_constant, one_of, right
from forensics.source.parsed_module import Loop, dotted, last
from forensics.source.program import Program, Site
from forensics.source.training_loops import is_backward, no_loop

_BROAD = ("Exception", "BaseException", "RuntimeError", "ValueError")


def hides_errors(program: Program) -> Answer:
    """Errors silenced: whatever a training step raises is passed over, or a loss without a graph is made to require a gradient."""
    found = []
    for b in program.calls:
        if is_backward(b) and (loops := b.module.loops(b.node)):
            silenced = [*_swallowed(b, loops[0]), *_forced(b, loops[0])]
            found += silenced or [right(b, "takes gradients, and its errors are raised.")]
    return one_of(found, no_loop(program))


def _swallowed(b: Site, loop: Loop) -> Iterator[Answer]:
    """``except Exception: pass`` round the backward pass, inside the loop: a step that fails is skipped without a word."""
    for p in b.module.parents(b.node):
        if p is loop:
            return
        if not isinstance(p, ast.Try) or not _within(p.body, b.node):
            continue
        for h in p.handlers:
            if _is_broad(h) and all(isinstance(n, (ast.Pass, ast.Continue)) or is_text(n) for n in h.body):
                yield fault(Site(b.module, h), "passes over every error of the training step: what fails is neither raised nor told.")


def _within(body: list[ast.stmt], node: ast.AST) -> bool:
    return any(n is node for statement in body for n in ast.walk(statement))


def _is_broad(h: ast.ExceptHandler) -> bool:
    """``except:``, or by a name that stands for anything; out of memory is skipped on purpose by its own name."""
    names = h.type.elts if isinstance(h.type, ast.Tuple) else [h.type] if h.type is not None else []
    return not names or any(last(dotted(n)) in _BROAD for n in names)


def is_text(n: ast.stmt) -> bool:
    """A docstring, or dots."""
    return isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant)


def _forced(b: Site, loop: Loop) -> Iterator[Answer]:
    """``loss.requires_grad = True`` (or ``requires_grad_()``) before ``loss.backward()``: the graph is gone, and the error with it."""
    call = b.node
    value = call.func.value if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else None
    loss = dotted(value) if isinstance(value, ast.Name) else ""
    if not loss:
        return
    for n in ast.walk(loop):
        if _sets(n, loss) or _calls(n, loss):
            told = f"makes {loss} require a gradient before backward(): what it was computed from gets none, and the error that said so is silenced."
            yield fault(Site(b.module, n), told)


def _sets(n: ast.AST, loss: str) -> bool:
    return isinstance(n, ast.Assign) and is_constant(n.value, True) and any(dotted(t) == f"{loss}.requires_grad" for t in n.targets)


def _calls(n: ast.AST, loss: str) -> bool:
    if not isinstance(n, ast.Call) or dotted(n.func) != f"{loss}.requires_grad_":
        return False
    return not n.args or is_constant(n.args[0], True)

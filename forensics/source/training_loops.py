"""Where a program updates its weights: the step of an optimizer, and the loop or function around it that holds the backward pass."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from forensics.source.parsed_module import Loop, Module, dotted, last
from forensics.source.program import Program, Site
from parsers.lazy_regex import lazy_re

MOST_UPDATES = 50  # steps of optimizers that are looked at: scripts have one to four
_OPTIMIZER = lazy_re(r"(?i)opt(im(izer)?s?)?(_?[a-z0-9]{1,12})?$|optim")
_SCHEDULER = lazy_re(r"(?i)sched")
_MADE = lazy_re(r"(?i)(^|\.)optim\.\w+$|(^|\.)(Adam\w*|SGD|RMSprop|Lion|LAMB|Muon)$")
_MADE_SCHEDULER = lazy_re(r"(?:^|\.)(?:lr_scheduler\.\w++|get_(?=\w*schedule)\w++)$")


@dataclass(frozen=True)
class Update:
    """One step of an optimizer. `region`: the loop, or else the function, that holds it and a backward pass."""

    step: Site
    optimizer: str  # as it is called there
    region: ast.AST

    @property
    def module(self) -> Module:
        return self.step.module


def receiver(call: ast.AST) -> str:
    """'scaler' of ``scaler.step(optimizer)``"""
    return dotted(call.func).rpartition(".")[0] if isinstance(call, ast.Call) else ""


def is_backward(site: Site) -> bool:
    return last(site.name) in ("backward", "manual_backward")


def optimizer_of(site: Site) -> str:
    """What a call of ``step`` steps, where that is an optimizer: 'optimizer' of ``optimizer.step()`` and of ``scaler.step(optimizer)``."""
    call = site.node
    if last(site.name) != "step" or not isinstance(call, ast.Call):
        return ""
    told = receiver(call)
    if "scaler" in told.lower():
        return dotted(call.args[0]) if call.args else ""
    return told if is_optimizer(site.module, told) else ""


def is_optimizer(module: Module, name: str) -> bool:
    if not name or is_scheduler(module, name):
        return False
    made = [module.called(v) for v in module.made.get(name, ())]
    return any(_MADE.search(m) for m in made) or bool(_OPTIMIZER.search(last(name)))


def is_scheduler(module: Module, name: str) -> bool:
    made = [module.called(v) for v in module.made.get(name, ())]
    return bool(_SCHEDULER.search(last(name))) or any(_MADE_SCHEDULER.search(m) for m in made)


def updates(program: Program) -> list[Update]:
    """Every step of an optimizer whose backward pass is in sight."""
    backwards: dict[ast.AST, set[ast.AST]] = {}
    for c in program.calls:
        if is_backward(c):
            for p in c.module.parents(c.node):
                backwards.setdefault(p, set()).add(c.node)
    out: list[Update] = []
    for c in program.calls:
        if (optimizer := optimizer_of(c)) and len(out) < MOST_UPDATES:
            regions = [*c.module.loops(c.node), c.module.function(c.node)]
            region = next((r for r in regions if r in backwards), None)
            region = region or next((r for r in regions if any(is_backward(s) for s in program.below(c.module, r))), None)
            out += [Update(c, optimizer, region)] if region is not None else []
    return out


def has_backward(program: Program) -> bool:
    return any(is_backward(c) for c in program.calls)


def no_loop(program: Program) -> str:
    """Why a question about the loop has no answer, where no update is in sight."""
    return "the source has no training loop of its own: a library's trainer runs it, or another file." if program.calls else "no source."


@dataclass(frozen=True)
class Accumulation:
    """Gradients of several micro-batches that one step uses. `guard`: the ``if i % n == 0`` around the step, or the loop over micro-batches."""

    update: Update
    guard: ast.AST
    backward: Site
    steps: str  # the n, as it is written

    def per_micro_batch(self, node: ast.AST) -> bool | None:
        """Whether something in the region runs once a micro-batch; None where it has a condition of its own."""
        above = list(self.update.module.parents(node))
        if isinstance(self.guard, Loop):
            return self.guard in above
        if self.guard in above:
            return False
        inside = above[: above.index(self.update.region)] if self.update.region in above else None
        return None if inside is None or any(isinstance(p, (ast.If, ast.For, ast.While)) for p in inside) else True


def accumulations(program: Program, found: list[Update]) -> Iterator[Accumulation]:
    for u in found:
        inside = program.calls_in(u.module, u.region)
        zeroed = [s for s in inside if "zero_grad" in last(s.name)]
        for s in inside:
            if not is_backward(s):
                continue
            guard, steps = _guard(u, s)
            if guard is not None and _kept(u, guard, zeroed):
                yield Accumulation(u, guard, s, steps)


def _guard(u: Update, backward: Site) -> tuple[ast.AST | None, str]:
    above = list(u.module.parents(backward.node))
    for p in u.module.parents(u.step.node):
        if p is u.region:
            break
        if isinstance(p, ast.If) and p not in above and (steps := _modulus(p.test)):
            return p, steps
    for p in above:
        if p is u.region:
            break
        if isinstance(p, ast.For) and isinstance(p.iter, ast.Call) and dotted(p.iter.func) == "range" and p.iter.args:
            steps = ast.unparse(p.iter.args[-1])
            if re.search(r"(?i)accum|micro", steps):
                return p, steps
    return None, ""


def _modulus(test: ast.expr) -> str:
    """'args.accum' of ``(i + 1) % args.accum == 0``; only a remainder of 0 or n - 1 begins or ends a round."""
    return next((ast.unparse(n.right) for n in ast.walk(test) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mod)), "")


def _kept(u: Update, guard: ast.AST, zeroed: list[Site]) -> bool:
    """Are gradients cleared with the step, and not with every micro-batch?"""
    inside = [guard in u.module.parents(s.node) for s in zeroed]
    return bool(inside) and (not any(inside) if isinstance(guard, Loop) else all(inside))

"""Looks at one update of the weights: what is cleared, clipped and stepped, and in which order."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from forensics.source.answers import Answer, fault, one_of, right, unknown
from forensics.source.parsed_module import Loop, dotted, last
from forensics.source.program import Program, Site
from forensics.source.training_loops import Update, has_backward, is_backward, no_loop, optimizer_of, receiver, updates
from parsers.lazy_regex import lazy_re

_CLIPS = ("clip_grad_norm_", "clip_grad_value_", "clip_grad_norm")
_HANDLED = ("accelerator", "fabric", "scaler")  # libraries' objects that unscale what they clip
# Calls that get the optimizer and leave its gradients: they save, show or schedule, or only look
_LEAVES = lazy_re(
    r"(?i)save|sched|lr|log|state|print|clip|attr|isinstance|len$|synchron|param_group|accelerator|fabric|scaler|^(id|type|repr)$"
)


def keeps_gradients(program: Program) -> Answer:
    """zero_grad missing: an optimizer is stepped in a loop in which nothing clears its gradients."""
    return one_of([_cleared(program, u) for u in updates(program)], no_loop(program))


def clips_scaled_gradients(program: Program) -> Answer:
    """Clip before unscale: gradients are clipped while they still carry the factor of the loss scaler."""
    found = [a for clip in program.ends(*_CLIPS) for a in _unscaled(program, clip)]
    return one_of(found, "the source does not clip gradients beside a loss scaler.")


def clips_after_step(program: Program) -> Answer:
    """Clip after step: gradients are clipped once the step has used them."""
    return one_of([a for clip in program.ends(*_CLIPS) for a in _stepped(program, clip)], "the source does not clip gradients.")


def _clears(site: Site) -> bool:
    """Does something empty a gradient there? Whatever is done to ``.grad`` by hand may."""
    n = site.node
    if isinstance(n, ast.Call) and ("zero_grad" in last(site.name) or "clear_grad" in last(site.name)):
        return True
    written = isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store) and n.attr == "grad"
    return written or (isinstance(n, ast.Call) and last(site.name).endswith("_") and ".grad" in site.name)


def _cleared(program: Program, u: Update) -> Answer:
    inside = program.below(u.module, u.region)
    at = next((s for s in inside if _clears(s)), None) or _by_caller(program, u)
    if at is not None:
        return right(at, "clears the gradients.")
    inside_nodes = {s.node for s in inside}
    for s in inside:
        if isinstance(s.node, ast.Call) and _given(s, u.optimizer) and not program.function(dotted(s.node.func), s.module):
            return unknown(f"whether {s.name}, which gets the optimizer, clears the gradients is not in the source.")
    if any(v in inside_nodes for v in u.module.made.get(u.optimizer, ())) or "torch.distributed.autograd" in program.imported:
        return unknown(
            f"whether gradients outlast an update: {u.step.where} steps an optimizer that is made anew, or that of remote workers."
        )
    if not isinstance(u.region, Loop) and not _called(program, u):
        return unknown("the loop that calls the step of the optimizer is not in the source.")
    elsewhere = next((s for s in program.calls if _clears(s)), None)
    only = f" (only {elsewhere.where} does, outside that loop)" if elsewhere else ""
    return fault(u.step, f"steps the optimizer in a loop that never clears the gradients{only}.")


def _given(s: Site, optimizer: str) -> bool:
    call = s.node
    assert isinstance(call, ast.Call)
    given = [*call.args, *(k.value for k in call.keywords)]
    name = dotted(call.func)
    known = _LEAVES.search(last(name)) is not None or any(word in name.lower() for word in _HANDLED)
    unknown_method = name.rpartition(".")[0] == optimizer and last(name) not in ("step", "train", "eval") and not known
    return unknown_method or (not known and any(dotted(a) == optimizer for a in given if not isinstance(a, ast.Call)))


def _called(program: Program, u: Update) -> list[Site]:
    """Where the function of an update is called."""
    own = u.module.function(u.step.node)
    calls = program.ends(getattr(own, "name", ""))
    return [c for c in calls if any(f.node is own for f in program.function(dotted(getattr(c.node, "func", own)), c.module))]


def _by_caller(program: Program, u: Update) -> Site | None:
    if isinstance(u.region, Loop):
        return None
    for call in _called(program, u):
        around = [*call.module.loops(call.node), call.module.function(call.node)]
        for s in program.below(call.module, around[0]):
            if _clears(s):
                return s
    return None


def _scaled(program: Program, function: ast.AST, clip: Site) -> list[Site]:
    """The calls of a loss scaler beside a clip: in its function, and not only in the other branch of a condition around it."""
    calls = [
        c for c in program.calls_in(clip.module, function) if last(c.name) in ("step", "unscale_") and "scaler" in receiver(c.node).lower()
    ]
    inner: ast.AST = clip.node
    for p in clip.module.parents(clip.node):
        if isinstance(p, ast.If):
            mine = p.body if any(inner is x for x in p.body) else p.orelse if any(inner is x for x in p.orelse) else []
            within = [c for c in calls if any(c.node is n for x in mine for n in ast.walk(x))]
            other = [c for c in calls if any(c.node is n for n in ast.walk(p)) and c not in within]
            if other and not within:
                return []
        if p is function:
            break
        inner = p
    return calls


def _unscaled(program: Program, clip: Site) -> Iterator[Answer]:
    if any(word in receiver(clip.node).lower() for word in _HANDLED):
        return
    function = clip.module.function(clip.node)
    calls = _scaled(program, function, clip)
    if not any(last(c.name) == "step" for c in calls):
        return
    unscales = [c for c in calls if last(c.name) == "unscale_"]
    before = [c for c in unscales if c.module.line(c.node) < clip.module.line(clip.node)]
    if before:
        yield right(before[0], "unscales the gradients before they are clipped.")
    elif not unscales and program.ends("unscale_"):
        yield unknown("whether gradients are unscaled before they are clipped: another function does it.")
    else:
        yield fault(clip, "clips gradients that still carry the factor of the loss scaler: unscale_ is not called before it.")


def _stepped(program: Program, clip: Site) -> Iterator[Answer]:
    m, function = clip.module, clip.module.function(clip.node)
    calls = program.calls_in(m, function)
    around = m.loops(clip.node)[:1]
    order = [(m.line(c.node), c, "step") for c in calls if optimizer_of(c) and m.loops(c.node)[:1] == around]
    order += [(m.line(c.node), c, "backward") for c in calls if is_backward(c)]
    at = m.line(clip.node)
    before = max((x for x in order if x[0] < at), key=lambda x: x[0], default=None)
    after = min((x for x in order if x[0] >= at), key=lambda x: x[0], default=None)
    if before is None:
        return
    if before[2] == "backward":
        yield right(clip, "clips the gradients after the backward pass, and before the step.")
    elif (after is None or after[2] == "backward") and has_backward(program) and _same_block(before[1], clip):
        yield fault(clip, f"clips the gradients after the step of line {before[0]} has used them.")


def _same_block(step: Site, clip: Site) -> bool:
    """Is the clip a later statement beside the step, or inside one that is?"""
    above = {*clip.module.parents(clip.node)}
    block = next((p for p in step.module.parents(step.node) if not isinstance(p, (ast.expr, ast.Expr))), None)
    if isinstance(block, ast.If) and block in above:
        branches = [b for b in (block.body, block.orelse) if any(n is step.node for x in b for n in ast.walk(x))]
        return any(n is clip.node for b in branches for x in b for n in ast.walk(x))
    return block in above

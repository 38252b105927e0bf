"""Looks at parameters that the optimizer never gets: unfrozen after it was built, or layers that no module registers."""

from __future__ import annotations

import ast

from forensics.source.answers import Answer, fault, is_constant, one_of, right, unknown
from forensics.source.parsed_module import Function, Module, dotted, last
from forensics.source.program import MOST_CALLS, Program, Site
from forensics.source.training_loops import is_optimizer

_LAYERS = (
    "Linear",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose2d",
    "Embedding",
    "LSTM",
    "GRU",
    "LayerNorm",
    "BatchNorm1d",
    "BatchNorm2d",
    "Parameter",
)
_REGISTERS = ("ModuleList", "ParameterList", "Sequential", "ModuleDict", "add_module", "register_module", "extend", "setattr")


def unfreezes_late(program: Program) -> Answer:
    """Optimizer built before unfreezing: it got only what required gradients then, and what is unfrozen later never learns."""
    built = [Site(m, v) for m in program.modules for n, values in m.made.items() if is_optimizer(m, n) for v in values if _filters(m, v)][
        :MOST_CALLS
    ]
    thawed = [s for m in program.modules for s in _thaws(m)]
    if not built or not thawed:
        return unknown("the source does not unfreeze parameters beside an optimizer of those that require gradients.")
    if program.ends("add_param_group"):
        return right(program.ends("add_param_group")[0], "gives the optimizer parameters that it did not have.")
    found = []
    for t in thawed:
        same = [b for b in built if b.module is t.module and b.module.function(b.node) is t.module.function(t.node)]
        if not same:
            found.append(unknown(f"whether {t.where} unfreezes parameters before or after the optimizer is built."))
            continue
        before = [b for b in same if b.module.line(b.node) < t.module.line(t.node)]
        after = [b for b in same if b not in before]
        if before and not after:
            found.append(fault(t, f"unfreezes parameters after {before[0].where} built the optimizer from those that required gradients."))
        else:
            found.append(right(t, "unfreezes parameters before the optimizer is built."))
    return one_of(found, "")


def hides_layers(program: Program) -> Answer:
    """Layers in a plain list: a module keeps layers in a Python list, where parameters() does not find them."""
    found = []
    for m in program.modules:
        for c in m.classes.values():
            if not _is_module(m, c.name):
                continue
            for f in c.body:
                if isinstance(f, Function) and f.name == "__init__":
                    found += [a for n in f.body for a in _listed(m, c, n)]
    return one_of(found, "the source keeps no layers in a list.")


def _filters(m: Module, value: ast.expr) -> bool:
    """Is an optimizer built from the parameters that require gradients?"""
    if not isinstance(value, ast.Call) or not value.args:
        return False
    given: list[ast.AST] = [value.args[0], *(v for v in m.made.get(dotted(value.args[0]), ()))]
    return any(isinstance(n, ast.Attribute) and n.attr == "requires_grad" for g in given for n in ast.walk(g))


def _thaws(m: Module) -> list[Site]:
    """Where parameters of a model are set to require gradients (not inputs: ``x.requires_grad = True`` outside a loop over parameters)."""
    out = []
    for n in ast.walk(m.tree):
        on = isinstance(n, ast.Assign) and is_constant(n.value, True) and any(last(dotted(t)) == "requires_grad" for t in n.targets)
        called = isinstance(n, ast.Call) and last(dotted(n.func)) == "requires_grad_" and not (n.args and not is_constant(n.args[0], True))
        if (on or called) and (_over_parameters(m, n) or (called and "model" in dotted(n))):
            out.append(Site(m, n))
    return out[:MOST_CALLS]


def _over_parameters(m: Module, n: ast.AST) -> bool:
    loops = (p for p in m.loops(n) if isinstance(p, ast.For))
    return any("parameters" in last(dotted(x)) for p in loops for x in ast.walk(p.iter))


def _listed(m: Module, owner: ast.ClassDef, statement: ast.stmt) -> list[Answer]:
    """``self.layers = [nn.Linear(...) ...]`` of a class that nowhere registers ``self.layers``."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return []
    name, value = dotted(statement.targets[0]), statement.value
    if not name.startswith("self."):
        return []
    if isinstance(value, ast.Call) and last(m.called(value)) == "ModuleList":
        return [right(Site(m, statement), "registers its list of layers.")]
    items = value.elts if isinstance(value, ast.List) else [value.elt] if isinstance(value, ast.ListComp) else []
    layers = [i for i in items if isinstance(i, ast.Call) and (_is_module(m, last(m.called(i))) or _is_layer(m.called(i)))]
    if not layers:
        return []
    mentions = [n for n in ast.walk(owner) if isinstance(n, ast.Attribute) and dotted(n) == name]
    registers = any(isinstance(p, ast.Call) and last(m.called(p)) in _REGISTERS for n in mentions for p in m.parents(n))
    if registers:
        return [right(Site(m, statement), "registers its list of layers.")]
    return [fault(Site(m, statement), f"keeps layers in the plain list {name}, which parameters() does not go through.")]


def _is_module(m: Module, name: str) -> bool:
    return name in m.classes and any(last(m.resolved(dotted(b))) == "Module" for b in m.classes[name].bases)


def _is_layer(name: str) -> bool:
    return last(name) in _LAYERS and "nn." in name

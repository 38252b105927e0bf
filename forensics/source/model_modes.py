"""Looks at the modes of a model: evaluation mode before an evaluation, training mode again after it."""

from __future__ import annotations

import ast
import re

from forensics.source.answers import Answer, fault, is_constant, one_of, right, unknown
from forensics.source.parsed_module import Function, dotted, last
from forensics.source.program import Program, Site
from forensics.source.training_loops import has_backward, is_backward, no_loop, receiver
from parsers.lazy_regex import lazy_re

_EVALUATION = lazy_re(r"(?i)(^|_|\b)(e?val(uat\w*|id\w*)?|test(ing|er|set|loader)?|dev)(_|\b|\d|$)")
_WITHOUT_GRAD = ("no_grad", "inference_mode")
# Layers that act otherwise in training than in evaluation, and makers of models that hold them
_MODAL = lazy_re(r"(Dropout\w*|BatchNorm\w*|dropout\w*|batch_norm|from_pretrained|create_model|InstanceNorm\w*|TransformerEncoder\w*)$")
_MODAL_PACKAGES = lazy_re(r"(^|\.)(torchvision\.models|models)\.\w+$")


def evaluates_in_training_mode(program: Program) -> Answer:
    """eval() missing: a model with dropout or batch norm is evaluated, and nothing calls model.eval()."""
    if not has_backward(program):
        return unknown(no_loop(program))
    looped = _evaluations(program)
    if not looped:
        return unknown("the source has no evaluation loop of its own.")
    for c in program.calls:
        if _mode(c) is not None and _mode(c) != "train":
            return right(c, "puts a model into evaluation mode.")
    modal = next((c for c in program.calls if _MODAL.search(c.name) or _MODAL_PACKAGES.search(c.name)), None)
    if modal is None:
        return unknown("the source names no dropout or batch norm, which alone act otherwise in evaluation mode.")
    return fault(looped[0], f"evaluates, and nothing calls eval() on a model, although {modal.where} makes {last(modal.name)}.")


def trains_in_evaluation_mode(program: Program) -> Answer:
    """train() missing: the model goes into evaluation mode in the loop that trains it, and never back."""
    found = [_restored(program, c) for c in program.calls if _mode(c) == "eval" and _is_trained(program, c)]
    return one_of([a for a in found if a], "the source does not evaluate within its training loop.")


def _mode(c: Site) -> str | None:
    """'eval' of ``model.eval()`` and ``model.train(False)``, 'train' of ``model.train()``, 'either' where a variable says."""
    call = c.node
    assert isinstance(call, ast.Call)
    name = last(c.name)
    if name == "eval" and not call.args and receiver(call):
        return "eval"
    if name != "train" or len(call.args) > 1 or not receiver(call):
        return None
    mode = [*call.args, *(k.value for k in call.keywords if k.arg == "mode")]
    return "train" if not mode or is_constant(mode[0], True) else "eval" if is_constant(mode[0], False) else "either"


def _evaluations(program: Program) -> list[Site]:
    """Loops without gradients that call a model and are named an evaluation: by their function, or by what they go through."""
    out = []
    for c in program.calls:
        if last(c.name) not in _WITHOUT_GRAD:
            continue
        m, holder = c.module, next((p for p in c.module.parents(c.node) if isinstance(p, (ast.With, ast.AsyncWith, Function))), None)
        for n in ast.walk(holder) if holder else ():
            if (
                isinstance(n, ast.For)
                and _named(m.function(n), n)
                and _calls_model(n)
                and not any(is_backward(Site(m, x)) for x in ast.walk(n))
            ):
                out.append(Site(m, n))
    return out


def _named(function: ast.AST, loop: ast.For) -> bool:
    through = [x.id for x in ast.walk(loop.iter) if isinstance(x, ast.Name)] + [
        x.attr for x in ast.walk(loop.iter) if isinstance(x, ast.Attribute)
    ]
    return any(_EVALUATION.search(name) for name in [getattr(function, "name", ""), *through])


def _calls_model(loop: ast.For) -> bool:
    calls = (dotted(n.func) for n in ast.walk(loop) if isinstance(n, ast.Call))
    return any(re.search(r"(?i)(^|\.|_)(model|net|network|encoder|classifier)\w{0,3}$", name) for name in calls)


def _is_trained(program: Program, c: Site) -> bool:
    """Do the parameters of what goes into evaluation mode go to an optimizer, under the same name?"""
    name = last(receiver(c.node)).replace("()", "")
    return name != "self" and any(last(receiver(p.node)) == name for p in program.ends("parameters") if _in_optimizer(p))


def _in_optimizer(p: Site) -> bool:
    return any(isinstance(up, ast.Call) and re.search(r"(?i)optim|adam|sgd", p.module.called(up)) for up in p.module.parents(p.node))


def _restored(program: Program, c: Site) -> Answer | None:
    """Of a call of eval(): whether the loop that trains the model and evaluates it calls train() as well."""
    name = getattr(c.module.function(c.node), "name", "")
    places = [(c.module, loop) for loop in c.module.loops(c.node)]
    for call in program.calls:
        if name and last(call.name) == name and program.function(dotted(getattr(call.node, "func", call.node)), call.module):
            places += [(call.module, loop) for loop in call.module.loops(call.node)]
    trains = [(m, loop, program.below(m, loop)) for m, loop in places]
    trains = [(m, loop, inside) for m, loop, inside in trains if any(is_backward(x) for x in inside)]
    back = next((x for *_, inside in trains for x in inside if isinstance(x.node, ast.Call) and _mode(x) in ("train", "either")), None)
    if back is not None:
        return right(back, "puts the model back into training mode.")
    if not trains or _meant(c):
        return None
    m, loop, _ = trains[0]
    return fault(
        c, f"puts the model into evaluation mode within the loop that trains it ({m.where(loop)}), and nothing there calls train()."
    )


def _meant(c: Site) -> bool:
    """Does every step put the model into evaluation mode before its backward pass?"""
    if any(isinstance(p, ast.If) for p in c.module.parents(c.node)):
        return False
    return any(is_backward(Site(c.module, n)) for loop in c.module.loops(c.node)[:1] for n in ast.walk(loop))

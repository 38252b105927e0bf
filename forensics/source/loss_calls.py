"""Looks at what a loss is given: logits or probabilities, and targets that are shifted once."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from forensics.source.answers import Answer, fault, is_constant, keyword, one_of, right, unknown
from forensics.source.parsed_module import Function, Module, dotted, last
from forensics.source.program import Program, Site
from parsers.lazy_regex import lazy_re

_LOGITS = {
    "cross_entropy": "softmax",
    "CrossEntropyLoss": "softmax",
    "binary_cross_entropy_with_logits": "sigmoid",
    "BCEWithLogitsLoss": "sigmoid",
}
_LOGS = {"nll_loss", "NLLLoss"}
_SQUASH = {"softmax": "softmax", "Softmax": "softmax", "sigmoid": "sigmoid", "Sigmoid": "sigmoid"}
_LOG_SQUASH = ("log_softmax", "LogSoftmax", "log", "logsigmoid", "log_sigmoid")
_SAME_VALUES = ("view", "reshape", "flatten", "squeeze", "unsqueeze", "contiguous", "to", "float", "cuda", "permute", "transpose", "long")
_CAUSAL = lazy_re(r"(?i)\b(tril|triu|is_causal|causal\w*|GPT\w*|generate_square_subsequent_mask)\b")
_HIDDEN = 8  # assignments and calls that an input of the loss is followed back through


def squashes_twice(program: Program) -> Answer:
    """Softmax before cross-entropy: a loss that takes logits is given probabilities, so that squashing is applied twice."""
    found = [a for call, kind in _losses(program, set(_LOGITS)) for a in _logits(program, call, _LOGITS[kind])]
    return one_of([*found, *_keras(program)], "the source has no loss that takes logits.")


def gives_nll_no_logs(program: Program) -> Answer:
    """NLLLoss on logits: a loss that takes log-probabilities is given something else."""
    found = []
    for call, _ in _losses(program, _LOGS):
        last_op = _origin(program, call.module, _given(call.node), _HIDDEN)
        if last_op is None:
            found.append(unknown(f"what {call.where} gives the loss is not in the source."))
        elif last_op[1] in _LOG_SQUASH:
            found.append(right(last_op[0], "gives the loss log-probabilities."))
        elif last_op[1] in ("Linear", "Conv2d") or last_op[1] in _SQUASH:
            found.append(fault(call, f"gives NLLLoss, which takes log-probabilities, the output of {last_op[1]} ({last_op[0].where})."))
    return one_of(found, "the source has no loss that takes log-probabilities.")


def shifts_no_labels(program: Program) -> Answer:
    """Labels not shifted: a causal language model is asked for the token that it is given."""
    found = []
    for call, _ in _losses(program, {"cross_entropy", "CrossEntropyLoss"}):
        m, target = call.module, _given(call.node, 1)
        tokens = _plain(target)
        inputs = _model_input(m, call, _given(call.node))
        if tokens is None or inputs is None:
            continue
        if tokens != inputs:
            found.append(right(call, f"compares what {inputs} gives with {tokens}."))
        elif not any(_CAUSAL.search(o.listing.text) for o in program.modules):
            found.append(unknown(f"whether the model at {call.where} sees only the tokens before its target."))
        else:
            found.append(fault(call, f"compares the output for {inputs} with {tokens} itself, not with the next token."))
    return one_of(found, "the source does not compare a language model's output with its tokens.")


def shifts_labels_twice(program: Program) -> Answer:
    """Labels shifted twice: tokens are shifted by hand for a model of transformers, which shifts labels itself."""
    if not program.uses("transformers") or not any("CausalLM" in o or "LMHeadModel" in o for o in program.imported):
        return unknown("the source makes no causal language model of transformers.")
    found = []
    for call in program.calls:
        labels, ids = keyword(call.node, "labels"), keyword(call.node, "input_ids")
        if labels is None:
            continue
        if _shift(labels) == "1:":
            found.append(fault(call, "gives labels that are shifted by one to a model that shifts them itself."))
        elif ids is not None and _plain(labels) is not None:
            found.append(right(call, "gives labels as long as the input, which the model shifts itself."))
    return one_of(found, "the source gives no labels to a model of transformers.")


def _losses(program: Program, kinds: set[str]) -> Iterator[tuple[Site, str]]:
    """Calls of these losses, as functions, or of objects made from them that this module or another one names so."""
    made = {
        name: last(m.called(v)) for m in program.modules for name, values in m.made.items() for v in values if last(m.called(v)) in kinds
    }
    clash = {
        name for m in program.modules for name, values in m.made.items() for v in values if name in made and last(m.called(v)) != made[name]
    }
    for c in program.calls:
        name = dotted(getattr(c.node, "func", c.node))
        if last(c.name) in kinds and "torch" in c.name and last(c.name).islower():
            yield c, last(c.name)
        elif name in made and name not in clash:
            yield c, made[name]
        elif name.endswith("()") and last(name[:-2]) in kinds:  # nn.CrossEntropyLoss()(x, y)
            yield c, last(name[:-2])


def _given(call: ast.AST, index: int = 0) -> ast.expr | None:
    args = getattr(call, "args", [])
    return args[index] if len(args) > index else keyword(call, ("input", "target")[index])


def _logits(program: Program, call: Site, squash: str) -> list[Answer]:
    found = _origin(program, call.module, _given(call.node), _HIDDEN)
    if found is None:
        return [unknown(f"what the loss at {call.where} is given is not in the source.")]
    site, op = found
    if _SQUASH.get(op) == squash or (squash == "softmax" and _SQUASH.get(op) == "sigmoid"):
        return [fault(call, f"gives a loss that takes logits the output of {op} ({site.where}).")]
    return [right(call, f"gives the loss the output of {op}.")]


def _origin(program: Program, m: Module, node: ast.AST | None, left: int) -> tuple[Site, str] | None:
    """The last operation that made a value, as far as the source says: a call, or the last layer of a model of the program."""
    if node is None or left < 0:
        return None
    if isinstance(node, ast.Call):
        name = last(m.called(node))
        if name in _SAME_VALUES and isinstance(node.func, ast.Attribute):
            return _origin(program, m, node.func.value if not m.called(node).startswith("torch.") else _given(node), left)
        squashes = m.called(node).startswith("torch.") or (isinstance(node.func, ast.Attribute) and dotted(node.func.value) != "self")
        if squashes and (name in _SQUASH or name in _LOG_SQUASH):
            return Site(m, node), name
        return _of_layer(program, m, dotted(node.func), left)
    if isinstance(node, ast.Subscript):
        return _origin(program, m, node.value, left) if isinstance(node.slice, ast.Slice) else None
    if isinstance(node, ast.Name):
        values = _assigned_before(m, node)
        return _origin(program, m, values[-1], left - 1) if values else None
    return None


def _assigned_before(m: Module, name: ast.Name) -> list[ast.expr]:
    """What was assigned to a name in its own function before the line that asks, in order; nothing where a condition chose."""
    out: list[ast.expr] = []
    for n in ast.walk(m.function(name)):
        if isinstance(n, ast.Assign) and n.lineno < name.lineno and any(isinstance(t, ast.Name) and t.id == name.id for t in n.targets):
            chosen = any(isinstance(p, (ast.If, ast.Try)) and p not in set(m.parents(name)) for p in m.parents(n))
            out.append(ast.Constant(None) if chosen else n.value)
    return sorted(out, key=lambda v: getattr(v, "lineno", 0))


def _of_layer(program: Program, m: Module, name: str, left: int) -> tuple[Site, str] | None:
    """What a layer or a model does last: ``self.fc`` made as nn.Linear, ``model`` made of a class of the program, nn.Sequential."""
    made = m.made.get(name, []) or [v for o in program.modules for v in o.made.get(name, []) if "." not in name]
    if len(made) != 1 or not isinstance(made[0], ast.Call):
        return None
    return _last_layer(program, next(o for o in program.modules if made[0] in o.above), made[0], left - 1)


def _last_layer(program: Program, m: Module, call: ast.Call, left: int) -> tuple[Site, str] | None:
    if isinstance(call.func, ast.Attribute) and last(m.called(call)) in _SAME_VALUES and isinstance(call.func.value, ast.Call):
        return _last_layer(program, m, call.func.value, left)  # Net().to(device)
    name = last(m.called(call))
    if name == "Sequential" and call.args and isinstance(call.args[-1], ast.Call):
        return _last_layer(program, m, call.args[-1], left - 1)
    home = next((o for o in program.modules if name in o.classes), None)
    if home is None:
        return (Site(m, call), name) if "torch.nn" in m.called(call) and name not in ("Sequential", "DataParallel") else None
    forward = next((f for f in home.classes[name].body if isinstance(f, Function) and f.name == "forward"), None)
    returns = [n for n in ast.walk(forward) if isinstance(n, ast.Return)] if forward else []
    if len(returns) != 1 or left < 0:
        return None
    return _origin(program, home, returns[0].value, left - 1)


def _keras(program: Program) -> list[Answer]:
    """The last Dense of a Keras model, where the loss says what it takes; in a program of one model alone."""
    losses = [c for c in program.calls if last(c.name).endswith("Crossentropy")]
    if len(losses) != 1 or len(program.ends("Sequential")) != 1 or not is_constant(keyword(losses[0].node, "from_logits"), True):
        return []
    up = [(c, c.module.above.get(c.node)) for c in program.ends("Dense")]
    lasts = [c for c, held in up if isinstance(held, ast.List) and held.elts[-1] is c.node]
    squash = getattr(keyword(lasts[0].node, "activation"), "value", None) if len(lasts) == 1 else None
    if squash not in ("softmax", "sigmoid"):
        return []
    return [fault(losses[0], f"takes logits, and {lasts[0].where} ends the model in a {squash}.")]


def _plain(node: ast.AST | None) -> str | None:
    """'x' of ``x.view(-1)``: a variable as it is, not sliced."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SAME_VALUES:
        node = node.func.value
    return dotted(node) if isinstance(node, ast.Name) else None


def _shift(node: ast.AST) -> str:
    """'1:' of ``x[:, 1:]``"""
    slices = [n for n in ast.walk(node) if isinstance(n, ast.Slice)]
    return "1:" if any(is_one(s.lower) and s.upper is None for s in slices) else ""


def is_one(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and node.value == 1


def _model_input(m: Module, call: Site, logits: ast.expr | None) -> str | None:
    """The variable that the logits were computed from."""
    name = _plain(logits)
    if name is None:
        return None
    values = [
        v for n in ast.walk(m.function(call.node)) if isinstance(n, ast.Assign) for t in n.targets for v in [n.value] if dotted(t) == name
    ]
    made = values[-1] if len(values) == 1 else None
    return _plain(made.args[0]) if isinstance(made, ast.Call) and len(made.args) == 1 else None

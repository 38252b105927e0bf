"""Plants faults in scripts that do a thing right, each by taking the right thing out: what a beginner's slip looks like at its simplest."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from forensics.source.parsed_module import dotted, last

Change = Callable[[ast.AST], ast.AST]


class Planted(ast.NodeTransformer):
    """Applies a change to every node, from the leaves up."""

    def __init__(self, change: Change) -> None:
        self.change = change

    def generic_visit(self, node: ast.AST) -> ast.AST:
        return self.change(super().generic_visit(node))


def _name(node: ast.AST) -> str:
    return last(dotted(node.func)) if isinstance(node, ast.Call) else ""


def _without(pattern: str, receiver: str = "") -> Change:
    """Takes out statements that call something of this name."""

    def change(node: ast.AST) -> ast.AST:
        call = node.value if isinstance(node, ast.Expr) else None
        gone = call is not None and re.fullmatch(pattern, _name(call)) and receiver in dotted(getattr(call, "func", call)).lower()
        return ast.Pass() if gone else node

    return change


def _clip_last(node: ast.AST) -> ast.AST:
    for block in (getattr(node, "body", None), getattr(node, "orelse", None)):
        for i in range(len(block) - 1 if isinstance(block, list) else 0):
            if "clip_grad" in ast.unparse(block[i]) and re.match(r"[\w.]*opt\w*\.step\(\)$", ast.unparse(block[i + 1])):
                block[i], block[i + 1] = block[i + 1], block[i]
    return node


def _undivided(node: ast.AST) -> ast.AST:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and "loss" in ast.unparse(node.left).lower():
        return node.left
    return ast.Pass() if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div) else node


def _squashed(node: ast.AST) -> ast.AST:
    if isinstance(node, ast.Call) and node.args and re.search(r"cross_entropy$|criterion|loss_f", dotted(node.func)):
        node.args[0] = ast.Call(ast.parse("torch.softmax", mode="eval").body, [node.args[0]], [])
    return node


def _argument_of(*names: str) -> Change:
    return lambda node: node.args[0] if isinstance(node, ast.Call) and _name(node) in names and node.args else node


def _in_order(node: ast.AST) -> ast.AST:
    for k in node.keywords if isinstance(node, ast.Call) and _name(node) == "DataLoader" else ():
        k.value = ast.Constant(False) if k.arg == "shuffle" else k.value
    return node


def _with_graph(node: ast.AST) -> ast.AST:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("item", "detach"):
        return node.func.value
    return _argument_of("float")(node)


def _all_training(node: ast.AST) -> ast.AST:
    if isinstance(node, ast.keyword) and node.arg == "train" and isinstance(node.value, ast.Constant):
        node.value = ast.Constant(True)
    return node


FAULTS = {
    "keeps_gradients": Planted(_without(r"\w*zero_grad\w*")),
    "clips_scaled_gradients": Planted(_without("unscale_")),
    "clips_after_step": Planted(_clip_last),
    "adds_undivided_losses": Planted(_undivided),
    "evaluates_in_training_mode": Planted(_without("eval")),
    "trains_in_evaluation_mode": Planted(_without("train")),
    "squashes_twice": Planted(_squashed),
    "gives_nll_no_logs": Planted(_argument_of("log_softmax")),
    "keeps_order": Planted(_in_order),
    "evaluates_on_training_data": Planted(_all_training),
    "keeps_graphs": Planted(_with_graph),
    "loads_no_optimizer": Planted(_without("load_state_dict", "opt")),
    "loads_no_scheduler": Planted(_without("load_state_dict", "sched")),
    "hides_layers": Planted(_argument_of("ModuleList")),
}

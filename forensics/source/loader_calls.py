"""Looks at the data that loops go through: order, seeds of workers, and what is held out."""

from __future__ import annotations

import ast
import re

from forensics.source.answers import Answer, fault, is_constant, keyword, one_of, right, unknown
from forensics.source.parsed_module import Function, dotted, last
from forensics.source.program import MOST_CALLS, Program, Site
from forensics.source.training_loops import has_backward, is_backward
from parsers.lazy_regex import lazy_re

_HELD_OUT = lazy_re(r"(?i)(^|_)(e?val(id(ation)?)?|test|dev|eval)(_|\d|set|loader|data|ds|dl|$)")
_TRAIN = lazy_re(r"(?i)(^|_)tr(ai?n)?(ing)?(_|\d|set|loader|data|ds|dl|$)")
_ORDERS = ("sampler", "batch_sampler")
_MAPS = lazy_re(r"(^|\.)(torchvision\.datasets|datasets)\.(?!load)\w+$|(^|\.)(TensorDataset|ImageFolder)$")
_SPLITS = (
    "Subset",
    "SubsetRandomSampler",
    "random_split",
    "train_test_split",
    "split",
    "KFold",
    "StratifiedKFold",
    "select",
    "skip",
    "take",
)
_SEEDS = lazy_re(r"(^|\.)(random\.seed|seed|manual_seed|seed_everything|set_seed)$")
_OF_WORKER = lazy_re(r"initial_seed|get_worker_info|time|urandom|getpid")


def keeps_order(program: Program) -> Answer:
    """Shuffle off: the loader that the training loop goes through keeps the order of a data set that has one."""
    found = [_order(program, c) for c in program.ends("DataLoader") if _trains(program, c)]
    return one_of(found, "the source makes no DataLoader for its own training loop.")


def seeds_workers_alike(program: Program) -> Answer:
    """Same seed per worker: every loader worker seeds its random numbers alike, so that their augmentations repeat."""
    found = [_worker(program, c, init) for c in program.ends("DataLoader") if (init := keyword(c.node, "worker_init_fn")) is not None]
    return one_of([a for a in found if a], "the source gives no DataLoader a worker_init_fn.")


def evaluates_on_training_data(program: Program) -> Answer:
    """Evaluation on the training set: what is called held out is made as the training data are, or from them whole."""
    if program.ends(*_SPLITS):
        return unknown("which samples are held out: the source splits a data set.")
    named = [(m, name, v) for m in program.modules for name, values in m.made.items() for v in values if isinstance(v, ast.Call)]
    named = [x for x in named if _is_data(x[0].called(x[2]))][:MOST_CALLS]
    train = [(m, name, v) for m, name, v in named if _TRAIN.search(last(name)) and not _HELD_OUT.search(last(name))]
    held = [(m, name, v) for m, name, v in named if _HELD_OUT.search(last(name))]
    found = []
    for m, name, v in held:
        for o, other, w in train:
            if m is not o or m.function(v) is not m.function(w) or last(m.called(v)) != last(m.called(w)):
                continue
            if _data_of(v) is None:
                continue
            if _data_of(v) == _data_of(w):
                found.append(fault(Site(m, v), f"makes {name} from the same data as {other} (line {m.line(w)})."))
            else:
                found.append(right(Site(m, v), f"makes {name} from other data than {other}."))
    return one_of(found, "the source does not make its training and held-out data side by side.")


def _is_data(name: str) -> bool:
    return last(name) == "DataLoader" or bool(_MAPS.search(name)) or last(name).endswith("Dataset")


def _data_of(call: ast.Call) -> str | None:
    """What tells the data: the first argument of a loader, all but transforms of a data set; None where ``**options`` hide it."""
    if any(k.arg is None for k in call.keywords) or not (call.args or call.keywords):
        return None
    if last(dotted(call.func)) == "DataLoader":
        given = call.args[0] if call.args else keyword(call, "dataset")
        return ast.dump(given) if isinstance(given, ast.Name) and not any(keyword(call, k) for k in _ORDERS) else None
    told = [*map(ast.dump, call.args), *sorted(f"{k.arg}={ast.dump(k.value)}" for k in call.keywords if "transform" not in str(k.arg))]
    return "; ".join(told)


def _trains(program: Program, c: Site) -> bool:
    """Does a loop with a backward pass go through this loader, by name?"""
    name = _target(c)
    others = [c.module.called(v) for v in c.module.made.get(name, ())]
    if any(last(o) not in ("DataLoader", "prepare", "prepare_data_loader", "setup_dataloaders") for o in others):
        return False  # another loader may have taken its place
    return bool(name) and any(
        isinstance(p, ast.For) and name in {dotted(n) for n in ast.walk(p.iter)}
        for b in program.calls
        if is_backward(b)
        for p in b.module.loops(b.node)
    )


def _target(c: Site) -> str:
    up = c.module.above.get(c.node)
    return dotted(up.targets[0]) if isinstance(up, ast.Assign) and len(up.targets) == 1 else ""


def _order(program: Program, c: Site) -> Answer:
    call = c.node
    assert isinstance(call, ast.Call)
    if any(k.arg is None for k in call.keywords) or any(keyword(call, k) is not None for k in _ORDERS) or len(call.args) > 3:
        return unknown(f"in which order {c.where} goes through the data.")
    shuffle = call.args[2] if len(call.args) > 2 else keyword(call, "shuffle")
    if is_constant(shuffle, True):
        return right(c, "shuffles the training data.")
    if shuffle is not None and not is_constant(shuffle, False):
        return unknown(f"whether {c.where} shuffles: {ast.unparse(shuffle)[:40]} is set elsewhere.")
    data = call.args[0] if call.args else keyword(call, "dataset")
    origin = [c.module.called(v) for v in c.module.made.get(dotted(data), ())] if data is not None else []
    origin += [c.module.called(data)] if isinstance(data, ast.Call) else []
    if not origin or not all(_MAPS.search(o) or _is_map(program, last(o)) for o in origin):
        return unknown(f"whether the data set of {c.where} has an order of its own.")
    return fault(c, f"does not shuffle the training data ({last(origin[0])}).")


def _is_map(program: Program, name: str) -> bool:
    """Is it a class of the program whose samples are fetched by number, and that draws nothing itself?"""
    found = next((m.classes[name] for m in program.modules if name in m.classes), None)
    names = {f.name for f in found.body if isinstance(f, Function)} if found else set()
    drawn = found is not None and any(
        isinstance(n, ast.Call) and re.search(r"(?i)rand|shuffle|choice|perm", dotted(n.func)) for n in ast.walk(found)
    )
    return "__getitem__" in names and "__iter__" not in names and not drawn


def _worker(program: Program, c: Site, init: ast.expr) -> Answer | None:
    if isinstance(init, ast.Lambda):
        functions = [(Site(c.module, init), init.args)]
    else:
        functions = (
            [(f, f.node.args) for f in program.function(dotted(init), c.module) if isinstance(f.node, Function)] if dotted(init) else []
        )
    if not has_backward(program) or len(functions) != 1:
        return None
    f, arguments = functions[0]
    given = {a.arg for a in arguments.args}
    inside = list(ast.walk(f.node))
    seeds = [n for n in inside if isinstance(n, ast.Call) and n.args and _SEEDS.search(f.module.called(n))]
    if not seeds:
        return None
    if any(_OF_WORKER.search(name) for n in inside if (name := dotted(n))) or _uses(inside, given - {"self"}):
        return right(Site(f.module, seeds[0]), "seeds each loader worker by its number or its own seed.")
    return fault(Site(f.module, seeds[0]), f"gives every loader worker the same seed, {ast.unparse(seeds[0].args[0])[:40]}.")


def _uses(nodes: list[ast.AST], names: set[str]) -> bool:
    return any(isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id in names for n in nodes)

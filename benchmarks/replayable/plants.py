"""The faults: what is planted where, verdict by verdict. `python plants.py FOLDER [NAME...]` makes a run folder and a truth file for each."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from plant import GRU, KINDS, LINE, TEXT, Plant, write

Plants = Iterator[Plant]


def plants(root: Path) -> Plants:
    yield from data()
    yield from state_and_data(root)
    yield from hardware()
    yield from optimizer()
    yield from numerics(root)
    yield from code()
    yield from others()


def _changed(culprits: dict[int, list[int]], change: Any) -> Any:
    """Changes the rows at these positions of the batches of these steps."""

    def apply(d: dict[str, Any], module: Any) -> None:
        for step, positions in culprits.items():
            rows = module.rows_at(step)[positions]
            change(d, rows)

    return apply


def garbled(d: dict[str, Any], rows: Any) -> None:
    import torch

    noise = torch.randint(int(d["x"].max()) + 1, (len(rows), 33), generator=torch.Generator().manual_seed(int(rows[0])))
    d["x"][rows], d["y"][rows] = noise[:, :-1], noise[:, 1:]


def rare(d: dict[str, Any], rows: Any) -> None:
    """One word over and over, which the grammar hardly ever does."""
    d["x"][rows], d["y"][rows] = 3, 3


def mislabelled(d: dict[str, Any], rows: Any) -> None:
    d["y"][rows] = (d["y"][rows] + 3) % 8


def far_off(d: dict[str, Any], rows: Any) -> None:
    d["y"][rows] = 12.0


def nan(d: dict[str, Any], rows: Any) -> None:
    d["x"][rows, 2] = float("nan")


def masked(d: dict[str, Any], rows: Any) -> None:
    d["y"][rows] = -1


def _data(name: str, base: dict[str, Any], culprits: dict[int, list[int]], change: Any, **more: Any) -> Plant:
    extra = more.pop("config", {})
    return Plant(name, "data", base | extra, culprits, _changed(culprits, change), **more)


def data() -> Plants:
    yield _data("garbled-text", TEXT, {183: [0, 1, 4, 5, 6, 9, 10, 13, 15]}, garbled)
    yield _data("garbled-gru", GRU, {217: [2, 3, 5, 6, 7, 8, 11, 12]}, garbled, log="csv")
    yield _data("rare-text", TEXT, {148: [1, 2, 3, 7, 8]}, rare, config={"seed": 8, "order": 88})
    yield _data("mislabelled", KINDS, {171: [0, 3, 4, 9, 14, 17, 20, 21, 25, 29, 30]}, mislabelled)
    yield _data("far-off-sgd", LINE, {226: [5, 19]}, far_off)
    yield _data("far-off-adam", LINE, {133: [7]}, far_off, config={"optimizer": "adamw", "lr": 2e-3}, log="csv")
    yield _data("nan-row", KINDS, {144: [21]}, nan, config={"seed": 9})
    yield _data("all-masked-row", TEXT, {161: [6]}, masked, config={"seed": 12})
    yield _data("two-near", TEXT, {190: [0, 1, 2, 3, 8, 9, 10, 11], 192: [3, 4, 5, 6, 7, 12, 13, 14]}, garbled, config={"seed": 5})
    yield _data(
        "two-apart",
        KINDS,
        {140: [1, 2, 5, 8, 13, 21, 22, 23, 26, 28], 232: [0, 4, 6, 7, 9, 10, 16, 18, 19, 27, 31]},
        mislabelled,
        config={"seed": 6},
    )
    yield _data("means-of-five", TEXT, {203: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]}, garbled, config={"seed": 7}, log="mean")
    yield _data("from-scratch", TEXT, {97: [0, 2, 4, 6, 8, 10, 12, 14]}, garbled, config={"steps": 160, "seed": 13}, every=0)
    decoyed = _data("decoy", TEXT, {188: [0, 1, 3, 4, 6, 8, 11, 14, 15]}, garbled, config={"seed": 15})
    culprit = decoyed.data

    def with_decoy(d: dict[str, Any], module: Any) -> None:
        assert culprit is not None
        culprit(d, module)
        garbled(d, module.rows_at(184)[[2]])  # one odd row, too little to matter

    decoyed.data = with_decoy
    yield decoyed


def state_and_data(root: Path) -> Plants:
    """A batch that pulls one way, where the rate is high for a moment: each alone is harmless."""
    cases = [
        ("pull-gru-c", GRU | {"optimizer": "sgd", "lr": 0.5, "seed": 31}, 176, list(range(16)), _same),
        ("pull-gru", GRU | {"optimizer": "sgd", "lr": 0.5, "seed": 22}, 193, list(range(16)), _same),
        ("pull-text-c", TEXT | {"optimizer": "sgd", "lr": 0.3, "seed": 30}, 221, list(range(16)), _same),
    ]
    for name, base, step, positions, change in cases:
        for times in (4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32):
            config = base | {"boost": [[step, step + 1, times]]}
            plant = Plant(name, "state x data", config, {step: positions}, _changed({step: positions}, change))
            both = write(plant, root, quiet=True)
            only_rate = write(Plant(name, "", config), root, quiet=True)
            only_data = write(Plant(name, "", base, data=plant.data), root, quiet=True)
            others = [write(Plant(name, "", config, data=_like(step, other)), root, quiet=True) for other in (21, 37)]
            rises = [_rise(values, step) for values in (both, only_rate, only_data, *others)]
            if _noticed(both, step) < rises[0] < math.inf and max(rises[1:]) < 0.25 * rises[0]:
                yield plant
                break
        else:
            raise SystemExit(f"{name}: no size of the jump separates state and data")


def _same(d: dict[str, Any], rows: Any) -> None:
    """The same ordinary row again and again: no row is odd, together they pull one way."""
    d["x"][rows], d["y"][rows] = d["x"][rows[0]].clone(), d["y"][rows[0]].clone()


def _like(step: int, other: int) -> Any:
    """The batch of a step replaced by a copy of another one."""

    def apply(d: dict[str, Any], module: Any) -> None:
        rows, source = module.rows_at(step), module.rows_at(other)
        d["x"][rows], d["y"][rows] = d["x"][source].clone(), d["y"][source].clone()

    return apply


def _rise(values: list[float], step: int) -> float:
    after = values[step : step + 40]
    return max(after) - sorted(values[step - 30 : step])[15] if all(map(math.isfinite, after)) else math.inf


def _noticed(values: list[float], step: int) -> float:
    """A rise that no reader of the log would call noise."""
    before = sorted(values[step - 30 : step])
    return max(3 * (before[-1] - before[15]), 0.5 * before[15])


def hardware() -> Plants:
    import torch

    def stuck(model: Any, optimizer: Any, step: int) -> None:
        if step == 187:
            p = next(p for p in model.parameters() if p.dim() == 2)
            p.grad.copy_(torch.where(p.grad.abs() < 1e30, torch.full_like(p.grad, 8.0), p.grad))

    def weight(model: Any, optimizer: Any, step: int) -> None:
        if step == 212:
            with torch.no_grad():
                p = list(model.parameters())[-2]
                p.view(-1)[: p.numel() // 3] += 3.0

    def bit(model: Any, optimizer: Any, step: int) -> None:
        if step == 166:
            with torch.no_grad():
                p = list(model.parameters())[-2].view(-1)
                for i in range(0, p.numel(), 2):  # the sign
                    p[i : i + 1].view(torch.int32).bitwise_xor_(-(1 << 31))

    def moments(model: Any, optimizer: Any, step: int) -> None:
        if step == 150:
            for s in optimizer.state.values():
                s["exp_avg"].add_(0.05)

    sgd = {"optimizer": "sgd", "lr": 0.05}
    yield Plant("stuck-gradient", "transient hardware", KINDS | sgd | {"seed": 31}, grads=stuck)
    yield Plant("flipped-weights", "transient hardware", TEXT | {"seed": 32}, after=weight)
    yield Plant("flipped-bits", "transient hardware", KINDS | {"seed": 33}, after=bit, log="csv")
    yield Plant("flipped-moments", "transient hardware", GRU | {"seed": 34}, after=moments)


def optimizer() -> Plants:
    lost = {"at": 200, "forget": ["optimizer"]}
    yield Plant("moments-lost", "optimizer-hyperparameter", TEXT | {"rows": 320, "width": 48, "lr": 6e-3, "seed": 41}, resume=lost)
    yield Plant(
        "moments-lost-gru",
        "optimizer-hyperparameter",
        GRU | {"rows": 320, "width": 48, "lr": 8e-3, "seed": 42},
        resume={"at": 150, "forget": ["optimizer"]},
    )
    kick = {"at": 190, "forget": [], "stale": 150}  # a bad batch just before the checkpoint has left a large momentum in it
    yield Plant(
        "moments-stale",
        "optimizer-hyperparameter",
        LINE | {"seed": 48},
        data=_changed({149: [1, 4, 7, 9, 12]}, far_off),
        resume=kick,
        replay={"steps": [190, 202]},
    )
    yield Plant("rate-jump", "optimizer-hyperparameter", TEXT | {"boost": [[180, 186, 25]], "seed": 43})
    yield Plant(
        "rate-jump-sgd",
        "optimizer-hyperparameter",
        KINDS | {"optimizer": "sgd", "lr": 0.05, "boost": [[210, 216, 60]], "seed": 44},
        log="csv",
    )
    yield Plant("rate-jump-one-step", "optimizer-hyperparameter", GRU | {"boost": [[165, 166, 60]], "seed": 45})
    yield Plant("rate-jump-lasting", "optimizer-hyperparameter", TEXT | {"boost": [[190, 400, 30]], "seed": 46})
    yield Plant("rate-other-at-resume", "optimizer-hyperparameter", TEXT | {"seed": 47}, resume={"at": 200, "forget": [], "rate": 25.0})


def numerics(root: Path) -> Plants:
    """The size that overflows is searched: the first one at which values become non-finite in the middle of the run."""
    classes = KINDS | {"steps": 400}
    rising = {"fp16": True, "boost": [[180, 400, 6]]}  # gradients grow with the rate, the loss stays
    scales = [2.0 ** (k / 2) for k in range(24, 68)]
    searched = [
        ("fp16-loss-scale", LINE | rising | {"optimizer": "adamw", "lr": 2e-3, "seed": 51}, "scale", scales),
        ("fp16-loss-scale-b", classes | rising | {"seed": 52}, "scale", scales),
    ]
    for name, base, key, sizes in searched:
        low, high = 0, len(sizes) - 1  # overflow comes the earlier the larger the size: halve
        while low <= high:
            size = sizes[(low + high) // 2]
            plant = Plant(name, "numerics", base | {key: size})
            first = next((i for i, v in enumerate(write(plant, root, quiet=True)) if not math.isfinite(v)), 10**9)
            if 60 <= first <= 380:
                yield plant
                break
            if first < 60:
                high = (low + high) // 2 - 1
            else:
                low = (low + high) // 2 + 1
        else:
            raise SystemExit(f"{name}: nothing overflows in the middle")
    yield Plant("log-of-zero", "numerics", classes | {"formula": "log of a probability", "lr": 6e-3, "seed": 54})
    yield Plant("log-of-zero-b", "numerics", classes | {"formula": "log of a probability", "lr": 3e-3, "seed": 55})


def code() -> Plants:
    for name, base, size, at in (
        ("layer-again", TEXT, 1.0, 172),
        ("layer-again-gru", GRU, 1.5, 208),
        ("layer-again-classes", KINDS, 1.0, 155),
    ):
        yield Plant(name, "deterministic code", base | {"bug_at": at, "bug_size": size, "seed": 60 + at})


def others() -> Plants:
    culprits = {183: [0, 1, 4, 5, 6, 9, 10, 13, 15]}
    yield Plant("other-order", "cannot reproduce", TEXT | {"seed": 71}, {}, _changed(culprits, garbled), edit={"order": 12})
    yield Plant(
        "other-seed",
        "cannot reproduce",
        GRU | {"seed": 72, "steps": 200},
        {},
        _changed({97: [0, 2, 3, 5, 8, 9, 12]}, garbled),
        edit={"seed": 73, "order": 9},
        every=0,
    )
    yield Plant(
        "other-data",
        "cannot reproduce",
        KINDS | {"seed": 73},
        {},
        _changed({171: [0, 3, 4, 9, 14, 17, 20, 21, 25, 29, 30]}, mislabelled),
        edit={"order": 5},
    )
    for i, base in enumerate((TEXT, KINDS, LINE | {"lr": 0.005}, GRU)):
        yield Plant(f"healthy-{i}", "nothing to explain", base | {"seed": 80 + i})
    for i, (base, change) in enumerate(((TEXT, garbled), (KINDS, mislabelled), (GRU, garbled))):
        where = {183: [0, 1, 4, 5, 6, 9, 10, 13, 15]}
        yield Plant(
            f"short-budget-{i}", "undecided", base | {"seed": 90 + i}, {}, _changed(where, change), replay={"budget": (60, 120, 150)[i]}
        )


def main() -> None:
    root, asked = Path(sys.argv[1]), set(sys.argv[2:])
    left = set(asked)
    for plant in plants(root):
        if asked and plant.name not in asked:
            continue
        values = write(plant, root)
        last = [v for v in values if math.isfinite(v)]
        print(f"{plant.name:28s} {plant.verdict:26s} last finite loss {last[-1]:.3f}, highest {max(last[20:]):.3f}", flush=True)
        left.discard(plant.name)
        if asked and not left:
            return  # some of the others are found by search, which takes minutes


if __name__ == "__main__":
    main()

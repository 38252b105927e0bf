"""What few evaluations say: a set that was at zero hits before it was learnt, and a last one that is the best."""

from __future__ import annotations

import numpy as np
import pytest

from forensics.detectors import dataset_loss
from forensics.pipeline import judge
from forensics.run.evaluations import improves_after
from forensics.run.series import Floats
from parsers.tables import Run
from tests.forensics.curves import run_of

N = 24
OLD = np.r_[np.linspace(0.5, 0.98, N // 2), np.zeros(N // 2)]
NEW = np.r_[np.zeros(N // 2), np.linspace(0.3, 0.97, N // 2)]


def two_sets(old: Floats, new: Floats) -> Run:
    run = run_of(
        {"loss.train": np.linspace(2, 0.1, 2 * N), "acc.eval": np.r_[old, new]}, steps=[*range(0, 20 * N, 20), *range(0, 20 * N, 20)]
    )
    table = run.tables["metrics"]
    tags = ["loss"] * (2 * N) + ["val_old acc"] * N + ["val_new acc"] * N
    run.tables["metrics"] = table.set_column(table.schema.get_field_index("tag"), table.schema.field("tag"), [tags_of(table, tags)])
    return run


def tags_of(table, tags):  # type: ignore[no-untyped-def]
    import pyarrow as pa

    return pa.array(tags, pa.string()).cast(table.schema.field("tag").type)


@pytest.mark.parametrize(
    ("new", "severity"),
    [(NEW, ["warning"]), (np.r_[np.zeros(N // 2), np.linspace(0, 0.05, N // 2)], ["warning"]), (0 * NEW, [])],
    ids=["learnt from nothing", "hardly learnt", "never learnt"],
)
def test_a_set_that_is_lost_while_another_is_learnt_from_nothing(new: Floats, severity: list[str]) -> None:
    found = [f for f in dataset_loss.detect(two_sets(OLD, new)) if "old" in f.facts.tag]
    assert [f.severity for f in found] == severity
    assert ("forgetting" in {h.id for h in judge(two_sets(OLD, new)).hypotheses}) == bool(severity)


@pytest.mark.parametrize(
    ("x", "said"),
    [([0.9, 0.8, 0.7, 0.65, 0.6], True), ([0.9, 0.8, 0.7, 0.75, 0.6], False), ([0.9, 0.6], False)],
    ids=["in order", "one was worse", "two"],
)
def test_one_evaluation_after_others_each_better_than_the_one_before(x: list[float], said: bool) -> None:
    run = run_of({"loss.eval": np.array(x)}, interval=50)
    assert bool(improves_after(run, 50 * len(x) - 60)) == said


@pytest.mark.parametrize(
    ("last", "said"),
    [((0.70, 0.69, 0.68), True), ((0.70, 0.68, 0.69), False), ((0.69, 0.68), False), ((0.71, 0.705, 0.7001), False)],
    ids=["three, the last the best", "the last is not the best", "two", "none better than before"],
)
def test_the_last_of_three_evaluations(last: tuple[float, ...], said: bool) -> None:
    before = np.linspace(1, 0.7, 10) + np.eye(10)[3] / 10  # not in order
    run = run_of({"loss.eval": np.r_[before, last]}, interval=50)
    assert bool(improves_after(run, 460)) == said

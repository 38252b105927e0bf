"""What a replay leaves for the next attempt: ranges of steps, ids and not places, and a script that leaves them out."""

from __future__ import annotations

from typing import Any

from forensics.replays import skip_list


def culprit(step: int, rows: list[int], samples: list[Any], named: bool = True) -> dict[str, Any]:
    return {"step": step, "rows": rows, "samples": samples, "named": named}


def test_steps_are_ranges_and_samples_are_ids() -> None:
    found = skip_list.listed([culprit(9, [1], ["b"]), culprit(8, [0, 2], ["a", "b"]), culprit(12, [], [])])
    assert (found["steps"], found["ranges"], found["samples"]) == ([8, 9, 12], [[8, 9], [12, 12]], ["b", "a"])
    assert found["flags"]["Megatron-LM"] == "--iterations-to-skip 8 9 12"
    assert found["by_step"]["8"] == {"samples": ["a", "b"], "rows": [0, 2]}


def test_places_in_a_batch_are_no_ids() -> None:
    assert skip_list.listed([culprit(3, [4], [4], named=False)])["samples"] == []


def test_the_script_leaves_out_rows_of_a_batch_and_samples_of_a_sampler() -> None:
    space: dict[str, Any] = {}
    exec(skip_list.script([culprit(8, [0, 2], [10, 12]), culprit(9, [], [])], "forensics replay x"), space)

    def select(batch: Any, left: Any) -> Any:
        return [batch[0][i] for i in left]

    assert space["keep"](7, (list("abc"),), select) == (list("abc"),)
    assert space["keep"](8, (list("abc"),), select) == ["b"]
    assert space["keep"](9, (list("abc"),), select) is None
    without = space["Without"](range(8, 14))
    assert (list(without), len(without)) == ([8, 9, 11, 13], 4)
    assert skip_list.script([], "") == ""

"""Excursions of a kind that come and go all through a run, one of them without an end: the level behind it is a little higher, for long."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from forensics.spikes import excursions, throughout
from forensics.spikes.excursions import Excursion, Floats

WIDE = 20


def wandering(bumps: int, back: bool) -> tuple[Floats, Excursion]:
    """The log of a loss with bumps, behind one of which the level is higher by a fifth of them, for good or for 1,600 values; and that one, as it
    looks to who asks for an end that lasts."""
    y = 1.25 + 0.003 * np.random.default_rng(1).standard_normal(6000)
    y[900 : 2500 if back else 6000] += 0.04
    for at in np.linspace(300, 5700, bumps).astype(int):
        y[at : at + WIDE] += np.linspace(0.2, 0.02, WIDE)
    y[880:900] += np.linspace(0.2, 0.05, WIDE)
    own = next(e for e in excursions.candidates(y) if e.start == 880)
    return y, replace(own, end=None)


@pytest.mark.parametrize(("bumps", "back", "alike"), [(24, True, True), (24, False, False), (0, True, False)])
def test_a_spike_whose_level_comes_back_at_last_is_one_of_many(bumps: int, back: bool, alike: bool) -> None:
    y, e = wandering(bumps, back)
    assert (throughout.level_again(y, e) < len(y)) == back
    if back:
        assert 2500 <= throughout.level_again(y, e) <= 2500 + 2 * throughout.LEVEL
    assert (throughout.like_each(y, [e])[0] >= throughout.MANY) == alike

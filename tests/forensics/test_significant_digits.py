"""Numbers of a page are rounded as Python's own formatting rounds them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from forensics.run.downsample import m4, significant


@given(st.lists(st.floats(width=32), max_size=30))
def test_what_is_rounded_is_the_decimal(values):
    """But for a half, which two roundings may see on either side: then the last digit differs by one."""
    x = np.array(values, np.float64)
    ours, decimals = significant(x, 7), np.array([float(f"{v:.7g}") for v in values])
    np.testing.assert_allclose(ours, decimals, rtol=1.1e-6)
    assert all(float(f"{v:.7g}") == v or not 1e-15 < abs(v) < 1e22 for v in ours[np.isfinite(ours)].tolist())


def test_points_of_a_curve_are_whole_steps_and_seven_digits():
    assert m4(np.array([1, 2, 3]), np.array([1 / 3, np.inf, 1234567.89]), 10) == [[1, 0.3333333], [2, np.inf], [3, 1234568.0]]


def test_tiny_and_huge_numbers_pass():
    kept = np.array([0.0, -0.0, 5e-324, 1.7e308, -1.7e308])
    np.testing.assert_allclose(significant(kept, 7), kept, rtol=1e-6, atol=1e-320)

"""The values of the float8 types: 256 each, so that a tensor of them is counted by its patterns."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray


@cache
def table(dtype: str) -> NDArray[np.float32]:
    """The 256 values of a float8 type (OCP 8-bit floating point, rev. 1.0; fnuz: no negative zero, its bits are NaN)."""
    codes = np.arange(256)
    if dtype == "float8_e8m0fnu":
        return np.where(codes == 255, np.nan, np.exp2((codes - 127).astype(np.float64))).astype(np.float32)
    exponent_bits, mantissa_bits = int(dtype[8]), int(dtype[10])
    fnuz = dtype.endswith("fnuz")
    bias = (1 << (exponent_bits - 1)) - (0 if fnuz else 1)
    sign = np.where(codes & 128, -1.0, 1.0)
    exponent, mantissa = codes >> mantissa_bits & ((1 << exponent_bits) - 1), codes & ((1 << mantissa_bits) - 1)
    fraction = mantissa / (1 << mantissa_bits)
    x = sign * np.where(exponent == 0, fraction * 2.0 ** (1 - bias), (1 + fraction) * np.exp2((exponent - bias).astype(np.float64)))
    if fnuz:
        x[128] = np.nan
    elif dtype == "float8_e5m2":
        top = exponent == 31
        x[top] = np.where(mantissa[top] == 0, sign[top] * np.inf, np.nan)
    else:  # e4m3fn has no infinity; all ones is NaN
        x[(codes & 127) == 127] = np.nan
    return x.astype(np.float32)

"""The last digit that a log printed of a metric: what is smaller than it cannot be seen."""

from __future__ import annotations

import numpy as np

from forensics.run.series import Floats

MOST = 12  # digits behind the point (a bound): a double of the size of a rate has no more
WALKED = 5  # bound: values one digit apart, by which it shows that the log rounds; a schedule in even stairs has fewer


def last_digit(values: Floats) -> float:
    """The power of ten of which all values are multiples, where they walk through its multiples one by one; 0 where none is seen."""
    known = np.unique(values[np.isfinite(values)])
    for places in range(1, MOST + 1):
        counts = known * 10.0**places
        whole = np.round(counts)
        if ((whole == 0) == (known == 0)).all() and (np.abs(counts - whole) <= 1e-3).all():  # unit: of a digit; doubles are off by far less
            return 10.0**-places if (np.diff(whole) == 1).sum() >= WALKED - 1 else 0.0
    return 0.0

"""What tests of several files share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture
def here() -> Iterator[None]:
    """The replay worker's commands in this process, without the process around them. Needs torch."""
    import replays

    with replays.direct():
        yield

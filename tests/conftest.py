"""Property tests draw the same examples in every run, so that a red test is a change's doing.

`HYPOTHESIS_PROFILE=explore make test` draws new ones; what that finds becomes an example of the test.
"""

from __future__ import annotations

import os

from hypothesis import settings

os.environ.setdefault("KERAS_BACKEND", "torch")  # its default is a framework that no test needs

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

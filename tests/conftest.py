"""Property tests draw the same examples in every run, so that a red test is a change's doing.

`HYPOTHESIS_PROFILE=explore make test` draws new ones; what that finds becomes an example of the test.
"""

from __future__ import annotations

import os
import signal

from hypothesis import settings

os.environ.setdefault("KERAS_BACKEND", "torch")  # its default is a framework that no test needs

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell starts what runs in the background so, and every process of a test after it
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

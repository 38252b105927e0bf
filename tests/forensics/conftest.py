"""What tests of several files share."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}


@pytest.fixture
def here() -> Iterator[None]:
    """The replay worker's commands in this process, without the process around them. Needs torch."""
    import replays

    with replays.direct():
        yield


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, str]]:
    """An S3 server (moto), as the environment that names it and holds the keys."""
    pytest.importorskip("s3fs")
    pytest.importorskip("moto.server")
    process = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stderr is not None
        line = next(line for line in process.stderr if "Running on http" in line)
        yield {**KEYS, "AWS_ENDPOINT_URL": line.split("Running on ")[1].strip()}
    finally:
        process.terminate()
        process.wait()

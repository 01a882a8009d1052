"""The real model, one server for the whole run."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.real import smollm as real


@pytest.fixture(scope="session")
def smollm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[real.Endpoint]:
    """SmolLM2 behind an OpenAI-compatible server: base URL and model name.

    Without its packages the test is skipped, or fails if RLVER_REQUIRE_ALL is 1.
    """
    lack = real.missing()
    if lack and os.environ.get("RLVER_REQUIRE_ALL") == "1":
        pytest.fail(f"RLVER_REQUIRE_ALL is set and the real model cannot run: {lack}")
    if lack:
        pytest.skip(f"the real model cannot run: {lack}")
    with real.serve(real.model_dir(), tmp_path_factory.mktemp("smollm") / "server.log") as endpoint:
        yield endpoint

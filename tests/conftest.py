"""Fixtures for every test: the network is off, and the public SAGE data is found or asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlver_gym import network

SAGE = Path(__file__).parents[2] / "shared" / "data" / "sage"


@pytest.fixture(scope="session", autouse=True)
def no_network() -> Iterator[None]:
    """A forgotten fake raises rather than calling a remote endpoint; loopback stays allowed."""
    with network.disabled():
        yield


@pytest.fixture(scope="session")
def sage() -> Path:
    """Folder of the public SAGE data; without it the test is skipped, or fails if RLVER_REQUIRE_ALL is 1."""
    if not SAGE.is_dir():
        reason = "the public SAGE data is not at ../shared/data/sage beside the project"
        if os.environ.get("RLVER_REQUIRE_ALL") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return SAGE

"""A real small model as the writer of people: it cannot do it, and the work ends by its own rules, with a reason."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from rlver_gym.backends.limits import Retrying
from rlver_gym.backends.openai.client import OpenAIBackend
from rlver_gym.users import writer
from rlver_gym.users.check import check_people
from rlver_gym.users.persona import Persona
from tests.real.smollm import Endpoint

pytestmark = pytest.mark.real


async def test_a_small_model_is_asked_repaired_once_and_given_up(
    smollm: Endpoint, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    monkeypatch.setattr(writer, "SAMPLING", dataclasses.replace(writer.SAMPLING, max_tokens=200))
    monkeypatch.setattr(writer, "TRIES", 2)
    backend = Retrying(OpenAIBackend(smollm.model, base_url=smollm.base_url, timeout=240))
    plans = writer.plan(count=1, seed=3, language="en", samples=["Well, that's that.", "I can wait.", "Oh, it's fine."])
    try:
        written = writer.write_people(plans, backend, language="en", known=[], license="Apache-2.0")
        found = [one async for one in written]
    finally:
        await backend.aclose()
    reasons = [one.reason for one in found if isinstance(one, writer.Rejected)]
    record_property("figures", f'{{"begun": {len(found)}, "not_used": {len(reasons)}}}')
    assert 1 <= len(found) <= 2 and all(reasons)
    for one in found:
        if isinstance(one, Persona):
            assert check_people([one]) == []

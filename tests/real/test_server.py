"""The server that the tests with a real model stand on: it answers, it overlaps, it is converted once and it goes."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import openai
import pytest

from tests.real import smollm as real

pytestmark = pytest.mark.real

QUESTION = "Tell me about the sea."


def _client(endpoint: real.Endpoint) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=endpoint.base_url, api_key="unused", max_retries=0, timeout=180)


async def _ask(client: openai.AsyncOpenAI, model: str, max_tokens: int) -> tuple[float, float, str]:
    """Return when the request began, when its answer came (seconds), and the answer."""
    began = time.monotonic()
    answer = await client.chat.completions.create(
        model=model, messages=[{"role": "user", "content": QUESTION}], max_tokens=max_tokens
    )
    return began, time.monotonic(), answer.choices[0].message.content or ""


async def test_server_answers_a_chat_request_with_text_and_usage(smollm: real.Endpoint) -> None:
    async with _client(smollm) as client:
        answer = await client.chat.completions.create(
            model=smollm.model,
            messages=[{"role": "user", "content": "What is the capital of France? Answer in one sentence."}],
            max_tokens=16,
        )
    assert "Paris" in (answer.choices[0].message.content or "")
    assert answer.usage is not None
    assert answer.usage.prompt_tokens > 10
    assert 1 <= answer.usage.completion_tokens <= 16


async def test_server_refuses_another_model_name(smollm: real.Endpoint) -> None:
    async with _client(smollm) as client:
        with pytest.raises(openai.BadRequestError):
            await _ask(client, "another-model", 4)


async def test_four_requests_overlap_and_a_short_one_passes_a_long_one(smollm: real.Endpoint) -> None:
    async with _client(smollm) as client:
        longs = [asyncio.create_task(_ask(client, smollm.model, 64)) for _ in range(3)]
        await asyncio.sleep(0.1)
        short = await _ask(client, smollm.model, 4)
        answers = await asyncio.gather(*longs)
    assert all(began < short[0] < short[1] < ended for began, ended, _ in answers)
    assert all(len(text) > len(short[2]) for _, _, text in answers)


async def test_equal_requests_get_equal_answers(smollm: real.Endpoint) -> None:
    async with _client(smollm) as client:
        first, second = [await _ask(client, smollm.model, 12) for _ in range(2)]
    assert first[2] == second[2] != ""


@pytest.mark.usefixtures("smollm")
def test_conversion_is_done_once() -> None:
    model = real.CACHE / real.MODEL
    weights = model / "model.safetensors"
    before = weights.stat().st_mtime_ns
    assert real.model_dir() == model
    assert weights.stat().st_mtime_ns == before


@pytest.mark.usefixtures("smollm")
def test_server_is_gone_after_an_error_inside_and_was_there_before(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), real.serve(real.model_dir(), tmp_path / "log") as endpoint:
        client = openai.OpenAI(base_url=endpoint.base_url, api_key="unused", max_retries=0)
        assert [model.id for model in client.models.list().data] == [endpoint.model]
        raise ZeroDivisionError
    with client, pytest.raises(openai.APIConnectionError):
        client.models.list()


def test_broken_model_is_reported_with_the_servers_log(tmp_path: Path) -> None:
    if lack := real.missing():
        if os.environ.get("RLVER_REQUIRE_ALL") == "1":
            pytest.fail(lack)
        pytest.skip(lack)
    (tmp_path / "empty").mkdir()
    with pytest.raises(RuntimeError, match="server ended with code"), real.serve(tmp_path / "empty", tmp_path / "log"):
        pytest.fail("a server without a model came up")

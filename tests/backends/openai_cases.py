"""Prompts to ask, and ways to ask them, for the tests of the backend behind an OpenAI-compatible endpoint."""

import asyncio

from rlver_gym.backends import SamplingConfig
from rlver_gym.backends.openai import OpenAIBackend
from rlver_gym.types import Prompt
from tests.fake_openai import FakeOpenAI

MARKER = "sk-planted-marker-0123456789"
SCHEMA = {
    "type": "object",
    "properties": {"message": {"type": "string"}},
    "required": ["message"],
    "additionalProperties": False,
}


def render(name, variables, form):
    ask = "Answer as JSON." if form == "json" else "Answer in labelled lines."
    return ({"role": "system", "content": f"You are somebody. {ask}"}, {"role": "user", "content": "Hi"})


PLAIN = Prompt("policy_direct", {}, "t", render)
THINK = Prompt("policy_think", {}, "t", render)
USER = Prompt("answer", {"turn": 1}, "t", render, SCHEMA)


def ask(backend, prompt=PLAIN, sampling=SamplingConfig()):
    async def once():
        try:
            return await backend.generate(prompt, sampling)
        finally:
            await backend.aclose()

    return asyncio.run(once())


def answer_of(server_answer, prompt=PLAIN, **options):
    with FakeOpenAI(lambda body, index: server_answer) as server:
        return ask(OpenAIBackend("m", base_url=server.base_url, **options), prompt)

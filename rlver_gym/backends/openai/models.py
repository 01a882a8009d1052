"""Which models an endpoint serves, for those who name none."""

from __future__ import annotations

import os

import openai

from rlver_gym.backends.base import network
from rlver_gym.backends.openai.transport import DEFAULT_URL, Endpoint, open_client
from rlver_gym.errors import ConnectionFault, NetworkDisabledError

_SECONDS = 10.0


async def first_model() -> str:
    """The first model that the endpoint in OPENAI_BASE_URL lists.

    Raises:
        ConnectionFault: it lists none, or does not answer.
        NetworkDisabledError: the network is switched off and the endpoint is not on this machine.
    """
    endpoint = Endpoint.parse(os.environ.get("OPENAI_BASE_URL") or DEFAULT_URL)
    if not network.allowed and not endpoint.is_loopback:
        raise NetworkDisabledError(f"{endpoint.url}: the network is switched off, and this is no loopback address")
    problem = "it lists none"
    async with open_client(endpoint, os.environ.get("OPENAI_API_KEY") or "no-key-needed", _SECONDS, 1) as client:
        try:
            async for model in client.models.list():
                return model.id
        except openai.APIError as error:
            problem = type(error).__name__
    raise ConnectionFault(f"{endpoint.url}/models names no model ({problem}): set OPENAI_MODEL, or pass openai:MODEL")

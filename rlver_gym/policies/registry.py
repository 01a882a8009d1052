"""Policies by name: a scripted one, or a chat model on any backend (`openai:MODEL`)."""

from __future__ import annotations

from rlver_gym.backends.registry import backend_names, make_backend
from rlver_gym.errors import UnknownNameError
from rlver_gym.policies.base import Policy
from rlver_gym.policies.chat import ChatPolicy
from rlver_gym.policies.oracle import INFORMED, Oracle
from rlver_gym.policies.scripted import SCRIPTED, scripted_policy


def make_policy(spec: str, *, think: bool = False) -> Policy:
    """The policy that a spec names.

    Args:
        spec: a scripted policy's name, or a backend spec such as `openai:gpt-4.1`.
        think: of a chat model: think, then say.

    Raises:
        UnknownNameError: neither a scripted policy nor a backend has that name.
        SetupError: the backend cannot be made.
    """
    if spec in SCRIPTED:
        return scripted_policy(spec)
    if spec in INFORMED:
        return Oracle(spec)
    if spec.partition(":")[0] in backend_names() and spec != "embedded":
        return ChatPolicy(make_backend(spec), think=think)
    raise UnknownNameError("policy", spec, (*SCRIPTED, *INFORMED, "openai:MODEL"))

"""Any OpenAI-compatible endpoint, spoken to asynchronously: client, dialect, transport."""

from rlver_gym.errors import SetupError

try:
    import openai as _sdk  # noqa: F401
except ImportError as error:
    raise SetupError("the backend 'openai:MODEL' needs the openai package: pip install 'openai>=2,<4'") from error

from rlver_gym.backends.limits import Retrying
from rlver_gym.backends.openai.client import OpenAIBackend
from rlver_gym.backends.openai.dialect import Dialect, dialects

__all__ = ["Dialect", "OpenAIBackend", "dialects", "make"]


def make(rest: str) -> Retrying:
    """The backend that `openai:REST` names, with retries.

    Raises:
        SetupError: no model is named.
    """
    if not rest.strip():
        raise SetupError("'openai:' names no model: write for example 'openai:gpt-4.1-mini'")
    return Retrying(OpenAIBackend(rest.strip()))

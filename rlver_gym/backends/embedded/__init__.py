"""A user without an LLM: features of a reply, an appraisal made of them, and words from the person's own lines.

Importing this loads no data file; the first appraisal does.
"""

from __future__ import annotations

from rlver_gym.backends.embedded.engine import EmbeddedBackend
from rlver_gym.errors import SetupError

__all__ = ["EmbeddedBackend", "make"]


def make(rest: str) -> EmbeddedBackend:
    """The engine that the spec `embedded` names.

    Raises:
        SetupError: something stands after `embedded:`.
    """
    if rest:
        raise SetupError(f"'embedded:{rest}': the embedded engine has nothing to choose; write 'embedded'")
    return EmbeddedBackend()

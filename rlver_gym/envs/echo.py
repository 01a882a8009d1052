"""A bare Gymnasium text environment: what a step costs before anybody is simulated. The yardstick of the benchmark."""

from __future__ import annotations

from typing import Any

import gymnasium

from rlver_gym.envs.session import MAX_REPLY_CHARS
from rlver_gym.envs.spaces import UnicodeText


class EchoEnv(gymnasium.Env[str, str]):
    """Says back what it is told, for `max_turns` turns, and pays nothing.

    Args:
        max_turns: replies in an episode.
    """

    def __init__(self, max_turns: int) -> None:
        self.observation_space = self.action_space = UnicodeText(MAX_REPLY_CHARS)
        self._max_turns, self._turn = max_turns, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Begin again."""
        super().reset(seed=seed)
        self._turn = 0
        return "Hello.", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Say it back."""
        self._turn += 1
        return action, 0.0, self._turn >= self._max_turns, False, {}

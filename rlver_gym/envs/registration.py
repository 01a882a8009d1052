"""Registers the ids with string entry points, so that registering imports nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import gymnasium

from rlver_gym.errors import UnknownNameError

if TYPE_CHECKING:
    from rlver_gym.envs.sentient import SentientEnv

ENTRY_POINT = "rlver_gym.envs.sentient:SentientEnv"
DIFFICULTIES: dict[str, float | None] = {
    "RLVER-Vanilla-v0": 0.0,
    "RLVER-Challenging-v0": 1.0,
    "RLVER-Curriculum-v0": None,
}
"""Difficulty by id, 0 (open) to 1 (reserved); None follows a curriculum."""


def register() -> None:
    """Register the three ids, unless they are there already."""
    for env_id, difficulty in DIFFICULTIES.items():
        if env_id not in gymnasium.registry:
            gymnasium.register(env_id, entry_point=ENTRY_POINT, kwargs={"difficulty": difficulty})


def make_env(env_id: str, **arguments: Any) -> SentientEnv:
    """The bare environment of an id, for code that plays its sessions itself.

    Raises:
        UnknownNameError: the id is none of ours.
    """
    if env_id not in DIFFICULTIES:
        raise UnknownNameError("environment", env_id, DIFFICULTIES)
    return cast("SentientEnv", gymnasium.make(env_id, disable_env_checker=True, **arguments).unwrapped)

"""Stable-Baselines3 bootstraps past a truncation: with the turn cap as an ending of the task it does no harm."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

import rlver_gym  # noqa: F401  registers the ids

REPLIES = ("What happened that day?", "That must have hurt, after all you did.", "You should simply move on.", "Okay.")


class Numeric(gymnasium.Wrapper[Any, Any, str, str]):
    """The dialogue as numbers: four fixed replies; marks of the user's last words, nothing latent and no turn.

    With `truncate` it is broken on purpose: the turn cap is passed on as a truncation.
    """

    def __init__(self, env: gymnasium.Env[str, str], *, truncate: bool) -> None:
        super().__init__(env)
        self.action_space = gymnasium.spaces.Discrete(len(REPLIES))  # type: ignore[assignment]
        self.observation_space = gymnasium.spaces.Box(0.0, 1.0, (3,), np.float32)  # type: ignore[assignment]
        self._truncate = truncate

    def reset(self, **arguments: Any) -> Any:
        observation, info = self.env.reset(**arguments)
        return _numbers(observation), info

    def step(self, action: Any) -> Any:
        observation, reward, terminated, truncated, info = self.env.step(REPLIES[int(action)])
        if self._truncate and info["stop_reason"] == "max_turns":
            terminated, truncated = False, True
        return _numbers(observation), reward, terminated, truncated, info


def _numbers(words: str) -> np.ndarray[Any, Any]:
    return np.array([min(1.0, len(words) / 400), "I" in words, "?" in words], np.float32)


def value_of_the_start(*, truncate: bool, steps: int) -> float:
    """PPO's value of the first observation, averaged over 20 starts, after learning for some steps.

    Everybody begins content and nobody leaves before the cap, so that episodes reach and pay what the twin breaks.
    """
    torch, sb3 = pytest.importorskip("torch"), pytest.importorskip("stable_baselines3")
    torch.set_num_threads(1)
    env = Numeric(gymnasium.make("RLVER-Vanilla-v0", start_mood=80, leave_below=0), truncate=truncate)
    model = sb3.PPO("MlpPolicy", env, n_steps=256, batch_size=64, gamma=1.0, learning_rate=3e-3, seed=0, device="cpu")
    model.learn(steps)
    starts = np.stack([env.reset(seed=seed)[0] for seed in range(20)])
    with torch.no_grad():
        return float(model.policy.predict_values(torch.as_tensor(starts)).mean())


def test_the_value_of_the_start_stays_a_mood() -> None:
    assert 0.0 < value_of_the_start(truncate=False, steps=6_144) <= 1.05


def test_with_the_cap_as_a_truncation_the_value_runs_away() -> None:
    assert value_of_the_start(truncate=True, steps=6_144) > 1.05

"""How fast the embedded user is, beside a bare Gymnasium text environment of the same run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from rlver_gym.envs.echo import EchoEnv
from rlver_gym.envs.registration import make_env
from rlver_gym.envs.sentient import SentientEnv
from rlver_gym.policies.scripted import lines
from rlver_gym.seeding import child_seed, choose
from rlver_gym.types import Language

LENGTHS: dict[Language, dict[str, int]] = {
    "en": {"30 words": 165, "long": 640},
    "zh": {"100 characters": 100, "long": 388},
}
"""Characters of the replies. The long ones: 388 is the median of 4,265 recorded replies in Chinese (SAGE), and
640 what the same takes in English."""
ROUNDS = 5
"""Rounds of each measure, taken in turn; the figure is their median."""


def bench_embedded(*, turns: int, seed: int) -> dict[str, Any]:
    """Turns per second by language and length of reply, and how many times slower than the bare environment that is.

    Keys: `rows`, each with `language`, `reply`, `characters` (mean), `session` (turns/s through `Session`), `env`
    (through `SentientEnv.step`), `bare` (the bare environment's) and `ratio` (bare / session); `turns` and `rounds`.

    Args:
        turns: in one round of one measure, at the most.
        seed: of people and replies; every round has replies of its own, so that nothing is remembered from the last.
    """
    rows = []
    for language, lengths in LENGTHS.items():
        env = make_env("RLVER-Vanilla-v0", personas="all", language=language, leave_below=0)
        bare = EchoEnv(env.settings.max_turns)
        measures: dict[str, Callable[[Sequence[str]], float]] = {
            "session": partial(_session, env),
            "env": partial(_gymnasium, env, env.settings.max_turns),
            "bare": partial(_gymnasium, bare, env.settings.max_turns),
        }
        for name, characters in lengths.items():
            speeds: dict[str, list[float]] = {part: [] for part in measures}
            for number in range(ROUNDS):
                for part, measure in measures.items():
                    said = replies(language, characters, turns, child_seed(seed, name, number, part))
                    speeds[part].append(measure(said))
            median = {part: float(np.median(values)) for part, values in speeds.items()}
            mean = float(np.mean([len(text) for text in said]))
            row = {"language": language, "reply": name, "characters": mean} | median
            rows.append(row | {"ratio": median["bare"] / median["session"]})
    return {"turns": turns, "rounds": ROUNDS, "rows": rows}


def replies(language: Language, characters: int, count: int, seed: int) -> list[str]:
    """Replies of about so many characters, put together from the lines of the scripted policies."""
    pool = lines("random", language) + lines("random2", language)
    space = "" if language == "zh" else " "
    return [_grown(pool, space, characters, child_seed(seed, index)) for index in range(count)]


def _grown(pool: Sequence[str], space: str, characters: int, seed: int) -> str:
    text, part = "", 0
    while len(text) < characters:
        text, part = f"{text}{space if text else ''}{choose(pool, seed, part)}", part + 1
    return text[:characters]


def _episodes(said: Sequence[str], turns: int) -> Iterator[tuple[int, Sequence[str]]]:
    for start in range(0, len(said), turns):
        yield start, said[start : start + turns]


def _session(env: SentientEnv, said: Sequence[str]) -> float:
    """Turns per second; an episode that ends before its replies do leaves the rest unsaid."""

    async def play() -> float:
        seconds, turns = 0.0, 0
        for start, texts in _episodes(said, env.settings.max_turns):
            session = env.new_session()
            await session.areset(env.scenario(start))
            began = time.perf_counter()
            for text in texts:
                turns += 1
                if (await session.astep(text)).terminated:
                    break
            seconds += time.perf_counter() - began
        return turns / seconds

    return asyncio.run(play())


def _gymnasium(env: SentientEnv | EchoEnv, most: int, said: Sequence[str]) -> float:
    """Turns per second, as in `_session`."""
    seconds, turns = 0.0, 0
    for start, texts in _episodes(said, most):
        env.reset(seed=start)
        began = time.perf_counter()
        for text in texts:
            turns += 1
            if env.step(text)[2]:
                break
        seconds += time.perf_counter() - began
    return turns / seconds

"""What attacks earn: each beside `polite` and `listener`, paired by person and seed.

What counts is the pay, 100 x reward: the final mood, or what the table of endings makes of it. An episode that the
world broke has none and is counted apart. The standard error is of the paired difference, for these people; it says
nothing of others.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rlver_gym.envs.session import Session
from rlver_gym.policies.attacks import SILENT, Attack
from rlver_gym.policies.base import Policy
from rlver_gym.policies.scripted import scripted_policy
from rlver_gym.rollouts.metrics import UNSCORED_LIMIT, bootstrap_interval
from rlver_gym.rollouts.runner import run_episode
from rlver_gym.types import Episode, Scenario

YARDSTICKS = ("polite", "listener")

MARGIN, SCRIPT_MARGIN = 2.0, 5.0
"""Mood points: what an attack may earn above `polite` beside two standard errors, and a searched script above
`listener`."""

CONCURRENCY = 64
Sessions = Callable[[], Session]


@dataclass(frozen=True)
class Difference:
    """The mean of paired differences, in mood points, its standard error, and the number of pairs."""

    mean: float
    se: float
    pairs: int


@dataclass(frozen=True)
class Row:
    """One policy's line of the table.

    Attributes:
        mean: pay in mood points, None where nothing or too little is scored; ci95: of the mean.
        to_polite, to_listener: paired differences.
        raised: share of replies that raised the mood; endings: episodes by ending.
        bar: the yardstick it must not pass, empty for a yardstick; margin: mood points that it may; ok: whether it
            keeps to that.
    """

    policy: str
    episodes: int
    scored: int
    mean: float | None
    ci95: tuple[float, float] | None
    to_polite: Difference | None
    to_listener: Difference | None
    raised: float
    endings: Mapping[str, int]
    bar: str = ""
    margin: float | None = None
    ok: bool | None = None

    def as_dict(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


def pay(episode: Episode) -> float | None:
    """What an episode was paid, in mood points, or None for one that is not scored."""
    return None if episode.reward is None else 100 * episode.reward


def paired(values: Sequence[float | None], reference: Sequence[float | None]) -> Difference | None:
    """The mean difference of two policies over the episodes that both have scored; None for fewer than two.

    Args:
        values: (N,) pay in mood points, None where not scored.
        reference: (N,) of the other policy, for the same people and seeds.
    """
    pairs = [(a, b) for a, b in zip(values, reference, strict=True) if a is not None and b is not None]
    if len(pairs) < 2:
        return None
    gaps = np.array([a - b for a, b in pairs])
    return Difference(float(gaps.mean()), float(gaps.std(ddof=1) / math.sqrt(len(gaps))), len(gaps))


async def play(jobs: Sequence[tuple[Policy, Scenario]], new_session: Sessions) -> list[Episode]:
    """Play (policy, scenario) pairs, `CONCURRENCY` at a time; the episodes come in the order of the pairs."""
    gate = asyncio.Semaphore(CONCURRENCY)

    async def one(policy: Policy, scenario: Scenario) -> Episode:
        async with gate:
            return await run_episode(policy, new_session(), scenario)

    return await asyncio.gather(*(one(*job) for job in jobs))


class Table:
    """Plays the yardsticks once, and then any policy beside them.

    Args:
        scenarios: the same for every policy.
        new_session: of the environment; thinking: of its twin in which replies must think.
    """

    def __init__(self, scenarios: Sequence[Scenario], new_session: Sessions, thinking: Sessions) -> None:
        self._scenarios, self._new_session, self._thinking = scenarios, new_session, thinking
        self._yardsticks: dict[str, list[float | None]] = {}

    async def yardsticks(self) -> list[Row]:
        """The lines of `polite` and `listener`; call this first."""
        played = {name: await self._episodes(scripted_policy(name), self._new_session) for name in YARDSTICKS}
        self._yardsticks = {name: [pay(episode) for episode in episodes] for name, episodes in played.items()}
        return [self._row(name, episodes) for name, episodes in played.items()]

    async def attack(self, attack: Attack) -> Row:
        """The line of an attack, with its verdict."""
        episodes = await self._episodes(attack, self._thinking if attack.think else self._new_session)
        row = self._row(attack.name, episodes)
        if attack.bar == "listener":
            return judged(row, "listener", 0.0)
        to_polite = row.to_polite
        return judged(row, "polite", MARGIN + 2 * to_polite.se if to_polite else MARGIN)

    async def found(self, policy: Policy, margin: float) -> Row:
        """The line of a policy that a search has found; it may earn `margin` mood points more than `listener`."""
        return judged(self._row(policy.name, await self._episodes(policy, self._new_session)), "listener", margin)

    async def _episodes(self, policy: Policy, new_session: Sessions) -> list[Episode]:
        return await play([(policy, scenario) for scenario in self._scenarios], new_session)

    def _row(self, name: str, episodes: Sequence[Episode]) -> Row:
        values = [pay(episode) for episode in episodes]
        known = [value for value in values if value is not None]
        headline = bool(known) and len(known) >= (1 - UNSCORED_LIMIT) * len(values)
        changes = [turn.appraisal.change for e in episodes for turn in e.turns if turn.appraisal is not None]
        return Row(
            policy=name,
            episodes=len(episodes),
            scored=len(known),
            mean=float(np.mean(known)) if headline else None,
            ci95=bootstrap_interval(known) if headline and len(known) > 1 else None,
            to_polite=paired(values, self._yardsticks["polite"]),
            to_listener=paired(values, self._yardsticks["listener"]),
            raised=sum(change > 0 for change in changes) / len(changes) if changes else 0.0,
            endings=dict(sorted(Counter(str(episode.stop_reason) for episode in episodes).items())),
        )


def judged(row: Row, bar: str, margin: float) -> Row:
    """The line with its verdict: at most the margin above `polite`; strictly below `listener` with its margin.

    An attack of which nothing is heard must raise no mood either. What cannot be measured is not ok.
    """
    gap = row.to_polite if bar == "polite" else row.to_listener
    ok = gap is not None and row.mean is not None and (gap.mean <= margin if bar == "polite" else gap.mean < margin)
    if row.policy in SILENT:
        ok = ok and row.raised == 0
    return Row(**{**vars(row), "bar": bar, "margin": margin, "ok": ok})

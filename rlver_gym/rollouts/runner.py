"""Policy x user, asynchronously: one episode, a group from one start, or many side by side."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable

from rlver_gym.envs.session import Session
from rlver_gym.policies.base import Informed, Policy
from rlver_gym.seeding import child_seed
from rlver_gym.types import Episode, Scenario, Usage

_log = logging.getLogger(__name__)


Watch = Callable[[Session], None]


async def run_episode(policy: Policy, session: Session, scenario: Scenario, *, watch: Watch | None = None) -> Episode:
    """Play one episode to its end. Whatever fails on the way ends it unscored instead of being raised.

    Args:
        policy: who replies.
        session: of the environment; reset here.
        scenario: where it starts.
        watch: called with the session at the start and after every turn.

    Raises:
        SetupError: the scenario does not fit the session's people.
    """
    await session.areset(scenario)
    return await _play(policy, session, watch)


async def run_group(policy: Policy, session: Session, scenario: Scenario, size: int) -> tuple[Episode, ...]:
    """Play one scenario `size` times at once: same person, hidden state and first words, other members' sampling.

    Raises:
        SetupError: the scenario does not fit the session's people.
    """
    await session.areset(scenario)
    return tuple(await asyncio.gather(*(_play(policy, session.fork(member)) for member in range(size))))


async def run_many(
    policy: Policy,
    scenarios: Iterable[Scenario],
    new_session: Callable[[], Session],
    *,
    concurrency: int = 64,
) -> AsyncIterator[Episode]:
    """Play all scenarios, `concurrency` of them at a time, and yield each episode as it ends.

    One that fails never cancels the rest. Leaving the iteration early cancels what is in flight.

    Raises:
        SetupError: a scenario does not fit the session's people.
    """
    waiting = iter(scenarios)
    running: set[asyncio.Task[Episode]] = set()
    try:
        while True:
            while len(running) < concurrency and (scenario := next(waiting, None)) is not None:
                running.add(asyncio.create_task(run_episode(policy, new_session(), scenario)))
            if not running:
                return
            done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                yield task.result()
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def plan(
    scenario: Callable[[int, dict[str, str]], Scenario], persona_ids: Iterable[str], *, episodes: int, seed: int
) -> list[Scenario]:
    """Scenarios for `episodes` episodes: the people in turn, each time with a seed of its own.

    Args:
        scenario: makes one from a seed and reset options, for example `SentientEnv.scenario`.
        persona_ids: of the people, taken round-robin in sorted order.
        episodes: how many.
        seed: of the run; two policies with equal seeds meet the same people in the same state.
    """
    ids = sorted(persona_ids)
    return [
        scenario(child_seed(seed, "episode", index) % 2**31, {"persona_id": ids[index % len(ids)]})
        for index in range(episodes)
    ]


async def _play(policy: Policy, session: Session, watch: Watch | None = None) -> Episode:
    usage, turn = Usage(), 0
    scenario = session.scenario
    if watch:
        watch(session)
    while session.stop_reason is None:
        turn += 1
        try:
            seed = child_seed(scenario.seed, "policy", scenario.member, turn)
            if turn == 1 and isinstance(policy, Informed):
                policy = policy.told(session.persona.hidden_need)
            reply = await policy.reply(session.messages, seed=seed)
            usage += reply.usage
            await session.astep(reply.text, finish_reason=reply.finish_reason)
        except Exception as error:
            _log.warning("episode %s/%s broke: %s: %s", scenario.persona_id, scenario.seed, type(error).__name__, error)
            session.fail(error)
        if watch and session.turns:
            watch(session)
    return session.episode(policy=policy.name, policy_usage=usage)

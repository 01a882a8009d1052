"""Scripted policies against the embedded user: rewards of whole runs, and people imported from SAGE."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from scipy.stats import ttest_rel

from rlver_gym import Episode, Persona, Session, load_personas
from rlver_gym.backends import make_backend
from rlver_gym.envs.registration import make_env
from rlver_gym.envs.rewards import final_reward
from rlver_gym.envs.session import Step
from rlver_gym.policies.scripted import SCRIPTED, scripted_policy
from rlver_gym.rollouts.runner import plan, run_episode, run_many
from rlver_gym.types import Scenario


def finals(policy: str, people: tuple[Persona, ...], *, episodes: int, seed: int) -> list[Episode]:
    env = make_env("RLVER-Vanilla-v0", personas=people)
    scenarios = plan(env.scenario, env.people, episodes=episodes, seed=seed)

    async def run() -> dict[Scenario, Episode]:
        played = run_many(scripted_policy(policy), scenarios, env.new_session)
        return {episode.scenario: episode async for episode in played}

    done = asyncio.run(run())
    return [done[scenario] for scenario in scenarios]


class Noting(Session):
    """A session that keeps every step it returned."""

    steps: list[Step]

    async def areset(self, scenario: Scenario) -> Step:
        self.steps = [await super().areset(scenario)]
        return self.steps[0]

    async def astep(self, reply: str, *, finish_reason: str = "stop") -> Step:
        self.steps.append(await super().astep(reply, finish_reason=finish_reason))
        return self.steps[-1]


@pytest.mark.parametrize("policy", SCRIPTED)
def test_reward_is_zero_until_the_end_and_then_as_the_table_says(policy: str) -> None:
    env = make_env("RLVER-Vanilla-v0", personas="all")
    for scenario in plan(env.scenario, env.people, episodes=200, seed=5):
        session = Noting(env.people, env.backend, env.settings)
        episode = asyncio.run(run_episode(scripted_policy(policy), session, scenario))
        *before, last = session.steps
        assert [step.reward for step in before] == [0.0] * len(before)
        expected = final_reward(episode.stop_reason, mood=episode.final_mood, start_mood=40, by_policy=False)
        assert last.reward == expected == episode.reward and episode.scored, episode.fault
        assert last.info["latent"]["mood"] == episode.final_mood
        assert (last.terminated, last.truncated) == (True, False)


def test_the_two_backends_of_one_name_play_the_same() -> None:
    people = load_personas(language="zh")
    env = make_env("RLVER-Vanilla-v0", personas=people)
    again = make_env("RLVER-Vanilla-v0", personas=people, backend=make_backend("embedded"))
    scenario = env.scenario(8)
    one, two = (asyncio.run(run_episode(scripted_policy("listener"), e.new_session(), scenario)) for e in (env, again))
    assert one.model_copy(update={"seconds": 0.0}) == two.model_copy(update={"seconds": 0.0})


@pytest.mark.sage
@pytest.mark.parametrize(("better", "worse"), [("listener", "dismissive"), ("listener2", "dismissive2")])
def test_imported_people_are_played_and_tell_listening_from_dismissal(sage: Path, better: str, worse: str) -> None:
    people = load_personas(sage / "profiles_dev.jsonl")
    assert len(people) == 60
    one = finals(better, people, episodes=120, seed=17)
    two = finals(worse, people, episodes=120, seed=17)
    assert all(episode.scored for episode in (*one, *two))
    test = ttest_rel([e.final_mood for e in one], [e.final_mood for e in two], alternative="greater")
    assert test.pvalue < 0.01
    control = ttest_rel([e.final_mood for e in two], [e.final_mood for e in one], alternative="greater")
    assert control.pvalue > 0.5

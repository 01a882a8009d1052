"""The runner: one failure never cancels the rest, concurrency is bounded, order does not matter."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from rlver_gym import Episode, Scenario, StopReason
from rlver_gym.backends.scripted import ScriptedBackend
from rlver_gym.envs.registration import make_env
from rlver_gym.envs.session import Session
from rlver_gym.errors import RefusalFault, UnknownNameError
from rlver_gym.policies.base import Policy, Reply
from rlver_gym.policies.chat import ChatPolicy
from rlver_gym.policies.human import HumanPolicy
from rlver_gym.policies.registry import make_policy
from rlver_gym.rollouts.metrics import summary
from rlver_gym.rollouts.runner import plan, run_episode, run_group, run_many
from rlver_gym.types import Message, Usage


class Recording:
    """A policy that counts how many replies are under way, and breaks on the people it is told to."""

    name = "recording"

    def __init__(self, breaks_on: str = "", error: Exception | None = None) -> None:
        self.breaks_on, self.error = breaks_on, error
        self.now = self.most = 0
        self.seeds: list[int] = []

    async def reply(self, messages: Sequence[Message], *, seed: int) -> Reply:
        self.now += 1
        self.most = max(self.most, self.now)
        self.seeds.append(seed)
        await asyncio.sleep(0)
        self.now -= 1
        if self.error and self.breaks_on and self.breaks_on in messages[0]["content"]:
            raise self.error
        return Reply(f"Go on, number {seed}.", usage=Usage(calls=1, prompt_tokens=3, completion_tokens=2))

    async def aclose(self) -> None:
        pass


def rollout(policy: Policy, scenarios: list[Scenario], env: Any, **options: Any) -> list[Episode]:
    async def run() -> dict[Scenario, Episode]:
        return {e.scenario: e async for e in run_many(policy, scenarios, env.new_session, **options)}

    done = asyncio.run(run())
    return [done[scenario] for scenario in scenarios]


@pytest.mark.parametrize("error", [RefusalFault("filtered"), ZeroDivisionError("a bug in the policy")])
def test_one_failure_never_cancels_the_rest(error: Exception) -> None:
    env = make_env("RLVER-Vanilla-v0", language="en", max_turns=2)
    scenarios = plan(env.scenario, env.people, episodes=12, seed=2)
    opening = asyncio.run(run_episode(Recording(), env.new_session(), scenarios[5])).opening
    healthy = rollout(Recording(), scenarios, env)
    broken = rollout(Recording(opening, error), scenarios, env)
    hit = [episode for episode in broken if episode.opening == opening]
    assert hit and all(
        (e.stop_reason, e.scored, e.reward) == (StopReason.BACKEND_FAULT, False, None)
        and e.fault is not None
        and e.fault.kind == type(error).__name__
        for e in hit
    )
    same = [(a.turns, a.reward) for a in broken if a.opening != opening]
    assert same == [(b.turns, b.reward) for b in healthy if b.opening != opening] and same


def test_concurrency_is_bounded_and_changes_nothing() -> None:
    env = make_env("RLVER-Vanilla-v0", max_turns=3)
    scenarios = plan(env.scenario, env.people, episodes=20, seed=3)
    few, many = Recording(), Recording()
    one, two = rollout(few, scenarios, env, concurrency=4), rollout(many, scenarios, env, concurrency=64)
    assert (few.most, many.most) == (4, 20)
    assert [e.turns for e in one] == [e.turns for e in two]


def test_every_reply_has_a_seed_of_its_own() -> None:
    env = make_env("RLVER-Vanilla-v0", max_turns=4)
    policy = Recording()
    scenario = env.scenario(1)
    group = asyncio.run(run_group(policy, env.new_session(), scenario, 5))
    assert len(set(policy.seeds)) == 20
    assert len({episode.opening for episode in group}) == 1
    assert [episode.scenario.member for episode in group] == list(range(5))
    alone = [
        asyncio.run(run_episode(Recording(), env.new_session(), scenario.model_copy(update={"member": member})))
        for member in range(5)
    ]
    assert [episode.turns for episode in alone] == [episode.turns for episode in group]


def test_leaving_early_cancels_what_is_in_flight() -> None:
    env = make_env("RLVER-Vanilla-v0")
    policy = Recording()

    async def run() -> int:
        played = run_many(policy, plan(env.scenario, env.people, episodes=500, seed=1), env.new_session, concurrency=8)
        async for _ in played:
            break
        await played.aclose()  # type: ignore[attr-defined]
        return len(asyncio.all_tasks())

    assert asyncio.run(run()) == 1
    assert len(policy.seeds) < 8 * 20


def test_the_plan_pairs_runs_by_person_and_seed() -> None:
    env = make_env("RLVER-Vanilla-v0", personas="all")
    one, two = (plan(env.scenario, env.people, episodes=24, seed=7) for _ in range(2))
    assert one == two
    assert sorted(scenario.persona_id for scenario in one) == sorted([*env.people] * 2)
    assert len({scenario.seed for scenario in one}) == 24
    assert plan(env.scenario, env.people, episodes=24, seed=8) != one


def test_the_chat_policy_sees_words_and_nothing_latent() -> None:
    backend = ScriptedBackend(lambda prompt, sampling: "What happened then?")
    env = make_env("RLVER-Vanilla-v0", personas="all", language="zh", max_turns=2)
    episode = asyncio.run(run_episode(ChatPolicy(backend), env.new_session(), env.scenario(4)))
    system, *dialogue = backend.prompts[-1].messages
    assert system["role"] == "system" and [m["role"] for m in dialogue] == ["user", "assistant", "user"]
    assert dialogue[0]["content"] == episode.opening and dialogue[2]["content"] == episode.turns[0].user
    whole = str(backend.prompts[-1].messages)
    assert (
        episode.need_text not in whole
        and str(episode.turns[0].appraisal and episode.turns[0].appraisal.thought) not in whole
    )
    assert "聊天" in system["content"], "it is told its task in the language of the talk"
    thinking = ScriptedBackend(lambda prompt, sampling: "<think>hm</think>Go on.")
    strict = make_env("RLVER-Vanilla-v0", think=True, max_turns=2)
    episode = asyncio.run(run_episode(ChatPolicy(thinking, think=True), strict.new_session(), strict.scenario(4)))
    assert episode.stop_reason is StopReason.MAX_TURNS and "<think>" in thinking.prompts[0].messages[0]["content"]


def test_a_person_can_be_the_policy() -> None:
    asked: list[Sequence[Message]] = []

    def ask(messages: Sequence[Message]) -> str:
        asked.append(messages)
        return "Tell me."

    env = make_env("RLVER-Vanilla-v0", max_turns=3)
    episode = asyncio.run(run_episode(HumanPolicy(ask), env.new_session(), env.scenario(1)))
    assert [turn.said for turn in episode.turns] == ["Tell me."] * 3 and len(asked) == 3


def test_policies_by_name() -> None:
    assert make_policy("listener").name == "listener"
    assert make_policy("openai:some-model").name == "openai:some-model"
    for name in ("listenr", "embedded", "gpt-4"):
        with pytest.raises(UnknownNameError):
            make_policy(name)


def test_a_summary_with_too_many_unscored_has_no_headline() -> None:
    env = make_env("RLVER-Vanilla-v0", max_turns=1)
    episodes = rollout(Recording(), plan(env.scenario, env.people, episodes=40, seed=1), env)
    lost = [e.model_copy(update={"scored": False, "reward": None}) for e in episodes]
    whole = summary(episodes, seconds=1.0)
    assert whole["mean_final_mood"] == pytest.approx(sum(e.final_mood for e in episodes) / 40)
    assert (whole["turns"], whole["calls"], whole["tokens"]) == (40, 120, 200)
    assert summary([*lost[:2], *episodes[2:]], seconds=1.0)["mean_final_mood"] is not None
    assert summary([*lost[:3], *episodes[3:]], seconds=1.0)["mean_final_mood"] is None
    assert summary(lost, seconds=1.0)["scored"] == 0
    unknown = episodes[0].model_copy(update={"usage": Usage(calls=1, prompt_tokens=None)})
    assert summary([unknown], seconds=1.0)["tokens"] is None


def test_sessions_of_one_environment_share_no_state() -> None:
    env = make_env("RLVER-Vanilla-v0")
    one, two = env.new_session(), env.new_session()
    assert isinstance(one, Session) and one is not two and one.people is two.people

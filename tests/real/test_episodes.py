"""The main job on a real model: SmolLM2 as user and as policy, episodes side by side."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable

import pytest

from rlver_gym import Episode
from rlver_gym.backends.limits import Retrying
from rlver_gym.backends.openai.client import OpenAIBackend
from rlver_gym.envs.registration import make_env
from rlver_gym.policies.chat import ChatPolicy
from rlver_gym.rollouts.metrics import summary
from rlver_gym.rollouts.runner import plan, run_many
from rlver_gym.users.persona import Background, Persona
from tests.people import PEOPLE
from tests.real.smollm import Endpoint

pytestmark = pytest.mark.real

EPISODES, TURNS = 4, 3


class Counting(OpenAIBackend):
    """Notes how many calls are under way at once."""

    now = most = 0

    async def generate(self, prompt, sampling):  # type: ignore[no-untyped-def]
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            return await super().generate(prompt, sampling)
        finally:
            self.now -= 1


def brief(person: Persona) -> Persona:
    """The person with a short story: a model of this size does not read a long one, and a CPU reads it slowly."""
    story = Background(current=person.background.current)
    return person.model_copy(update={"background": story, "raises": (), "lowers": (), "interests": (), "habits": ""})


async def play(smollm: Endpoint) -> tuple[list[Episode], Counting, Counting]:
    user, policy = (Counting(smollm.model, base_url=smollm.base_url, timeout=240) for _ in range(2))
    people = [brief(person) for person in PEOPLE.values() if person.language == "en"][:4]
    env = make_env("RLVER-Vanilla-v0", backend=Retrying(user), personas=people, max_turns=TURNS)
    scenarios = plan(env.scenario, env.people, episodes=EPISODES, seed=1)
    player = ChatPolicy(Retrying(policy), max_tokens=48)
    try:
        episodes = [episode async for episode in run_many(player, scenarios, env.new_session, concurrency=EPISODES)]
    finally:
        await player.aclose()
        await env.backend.aclose()
    return episodes, user, policy


def test_smollm_plays_both_sides(smollm: Endpoint, record_property: Callable[[str, object], None]) -> None:
    episodes, user, policy = asyncio.run(play(smollm))
    raw = [answer for episode in episodes for turn in episode.turns for answer in turn.raw]
    appraisals = [answer for answer in raw if answer.step == "appraise"]
    usable = [answer for answer in appraisals if not answer.problem]
    asked = {(e.id, turn.index) for e in episodes for turn in e.turns}
    read = {(e.id, turn.index) for e in episodes for turn in e.turns if turn.appraisal is not None}
    figures = {
        "episodes": len(episodes),
        "scored": sum(episode.scored for episode in episodes),
        "turns_appraised": f"{len(read)}/{len(asked)}",
        "answers_usable": f"{len(usable)}/{len(appraisals)}",
        "usable_by_rung": dict(Counter(answer.rung for answer in usable)),
        "unusable_by_rung": dict(Counter(answer.rung for answer in appraisals if answer.problem)),
        "at_once": max(user.most, policy.most),
        "copied_examples": sum("copied_example" in turn.flags for e in episodes for turn in e.turns),
        "faults": summary(episodes, seconds=0.0)["faults"],
        "tokens": summary(episodes, seconds=0.0)["tokens"],
    }
    print(json.dumps(figures, indent=2))
    for episode in episodes:
        print(episode.moods, episode.stop_reason, [turn.said for turn in episode.turns][:1])
    record_property("figures", json.dumps(figures))
    assert len(read) >= len(asked) / 2, "at least half of the appraisals are usable"
    assert any(episode.scored for episode in episodes)
    assert all(turn.raw for episode in episodes for turn in episode.turns), "raw answers are kept"
    assert figures["at_once"] == EPISODES
    for episode in episodes:
        assert episode.scored == (episode.fault is None)
        assert Episode.model_validate_json(episode.model_dump_json()) == episode

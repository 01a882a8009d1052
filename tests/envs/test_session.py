"""How an episode goes and ends: every StopReason, its flag, its reward, and what a policy may see."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable
from typing import Any

import pytest

from rlver_gym import Episode, Persona, Scenario, ScriptedBackend, Session, SessionSettings, StopReason
from rlver_gym.backends.base import Generation, SamplingConfig
from rlver_gym.envs.session import MAX_REPLY_CHARS, Step
from rlver_gym.errors import (
    BudgetError,
    ConnectionFault,
    ContextOverflowFault,
    DeadlineError,
    EpisodeStateError,
    SetupError,
    UnknownNameError,
)
from rlver_gym.types import Prompt, Usage
from tests.people import PEOPLE

MAYA: Persona = PEOPLE["en-maya-lab"]
SCENARIO = Scenario(env_id="RLVER-Vanilla-v0", persona_id=MAYA.id, seed=3)


def user(
    change: int | list[int], say: Callable[[int], str] = lambda turn: f"Well, that was day {turn}."
) -> ScriptedBackend:
    """A user whose mood moves by `change` on every reply (or by the n-th of a list), and who says `say(turn)`."""

    def answer(prompt: Prompt, sampling: SamplingConfig) -> str:
        turn = prompt.variables["turn"]
        if prompt.name == "answer":
            return json.dumps({"message": say(turn)})
        points = change if isinstance(change, int) else change[turn - 1]
        return json.dumps({"thought": f"inner thought number {turn}", "feeling": "so-so", "change": points})

    return ScriptedBackend(answer)


def play(backend: Any, replies: list[str], **settings: Any) -> tuple[Session, list[Step]]:
    """Play replies until the episode ends or they run out."""

    async def run() -> tuple[Session, list[Step]]:
        session = Session({MAYA.id: MAYA}, backend, SessionSettings(**settings))
        steps = [await session.areset(SCENARIO)]
        for reply in replies:
            steps.append(await session.astep(reply))
            if session.stop_reason:
                break
        return session, steps

    return asyncio.run(run())


def raising(error: Exception, after: int = 0) -> ScriptedBackend:
    """A user whose backend fails with `error` from the reply after the first `after`."""
    good = user(0)

    def answer(prompt: Prompt, sampling: SamplingConfig) -> Any:
        return error if prompt.variables["turn"] > after else good._answers(prompt, sampling)  # type: ignore[operator]

    return ScriptedBackend(answer)


CASES: list[tuple[str, StopReason, Any, list[str], dict[str, Any], tuple[bool, bool], float, bool]] = [
    # name, reason, backend, replies, settings, (terminated, truncated), reward, scored
    ("content", StopReason.SATISFIED, lambda: user(10), ["hi"] * 8, {}, (True, False), 1.0, True),
    ("gone", StopReason.LEFT, lambda: user(-10), ["hi"] * 8, {}, (True, False), 0.0, True),
    ("gone at nine", StopReason.LEFT, lambda: user([-10, -10, -10, -1]), ["hi"] * 8, {}, (True, False), 0.09, True),
    (
        "stays at ten",
        StopReason.MAX_TURNS,
        lambda: user([-10, -10, -10, 0]),
        ["hi"] * 4,
        {"max_turns": 4},
        (True, False),
        0.1,
        True,
    ),
    ("cap", StopReason.MAX_TURNS, lambda: user(2), ["hi"] * 8, {}, (True, False), 0.56, True),
    ("no think", StopReason.FORMAT, lambda: user(5), ["hi"], {"think": True}, (True, False), 0.0, True),
    ("open think", StopReason.FORMAT, lambda: user(5), ["<think>hm"], {"think": True}, (True, False), 0.0, True),
    (
        "policy crisis",
        StopReason.SAFETY,
        lambda: user(5),
        ["ok", "I want to kill myself"],
        {},
        (True, False),
        0.0,
        True,
    ),
    (
        "user crisis up",
        StopReason.SAFETY,
        lambda: user(9, lambda t: "I want to end my life."),
        ["hi"],
        {},
        (True, False),
        0.4,
        True,
    ),
    (
        "user crisis down",
        StopReason.SAFETY,
        lambda: user(-9, lambda t: "I want to end my life."),
        ["hi"],
        {},
        (True, False),
        0.31,
        True,
    ),
    ("own wall", StopReason.CONTEXT, lambda: user(5), ["a" * (MAX_REPLY_CHARS + 1)], {}, (False, True), 0.0, True),
    (
        "own length",
        StopReason.CONTEXT,
        lambda: raising(ContextOverflowFault("full")),
        ["word " * 900],
        {},
        (False, True),
        0.0,
        True,
    ),
    (
        "persona's length",
        StopReason.CONTEXT,
        lambda: raising(ContextOverflowFault("full")),
        ["hi"],
        {},
        (False, True),
        math.nan,
        False,
    ),
    (
        "fault",
        StopReason.BACKEND_FAULT,
        lambda: raising(ConnectionFault("gone"), 2),
        ["hi"] * 8,
        {},
        (False, True),
        math.nan,
        False,
    ),
    (
        "deadline",
        StopReason.DEADLINE,
        lambda: raising(DeadlineError("late")),
        ["hi"],
        {},
        (False, True),
        math.nan,
        False,
    ),
    ("budget", StopReason.BUDGET, lambda: raising(BudgetError("spent")), ["hi"], {}, (False, True), math.nan, False),
    (
        "nonsense",
        StopReason.BACKEND_FAULT,
        lambda: ScriptedBackend(lambda p, s: "lorem"),
        ["hi"],
        {},
        (False, True),
        math.nan,
        False,
    ),
    ("dry", StopReason.BACKEND_FAULT, lambda: ScriptedBackend([]), ["hi"], {}, (False, True), math.nan, False),
]


@pytest.mark.parametrize(
    ("name", "reason", "backend", "replies", "settings", "flags", "reward", "scored"), CASES, ids=[c[0] for c in CASES]
)
def test_every_ending(
    name: str, reason: StopReason, backend: Any, replies: list[str], settings: dict[str, Any],
    flags: tuple[bool, bool], reward: float, scored: bool,
) -> None:  # fmt: skip
    session, steps = play(backend(), replies, **settings)
    last = steps[-1]
    assert session.stop_reason is reason
    assert (last.terminated, last.truncated) == flags
    assert last.reward == pytest.approx(reward, nan_ok=True)
    assert last.info["scored"] is scored and last.info["stop_reason"] == reason
    assert [step.reward for step in steps[:-1]] == [0.0] * (len(steps) - 1)
    assert not any(step.terminated or step.truncated for step in steps[:-1])
    episode = session.episode(policy="test", policy_usage=Usage())
    assert episode.reward == (None if not scored else pytest.approx(reward))
    assert Episode.model_validate_json(episode.model_dump_json()) == episode


def test_every_stop_reason_has_a_case() -> None:
    assert {case[1] for case in CASES} == set(StopReason)


@pytest.mark.parametrize("turns", [1, 2, 8])
def test_max_turns_means_exactly_so_many_replies_all_scored(turns: int) -> None:
    backend = user(1)
    _, steps = play(backend, ["hi"] * 20, max_turns=turns)
    assert len(steps) == turns + 1
    assert steps[-1].info["latent"]["moods"] == tuple(float(40 + n) for n in range(turns + 1))
    assert [prompt.name for prompt in backend.prompts] == ["appraise", "answer"] * turns


def test_deadline_covers_the_users_side_of_the_whole_episode() -> None:
    class Slow(ScriptedBackend):
        async def generate(self, prompt: Prompt, sampling: SamplingConfig) -> Generation:
            await asyncio.sleep(0.03)
            return await super().generate(prompt, sampling)

    def slow() -> ScriptedBackend:
        return Slow(user(1)._answers)  # type: ignore[arg-type]

    assert play(slow(), ["hi"] * 3, max_turns=3, deadline=10.0)[0].stop_reason is StopReason.MAX_TURNS
    session, steps = play(slow(), ["hi"] * 3, max_turns=3, deadline=0.1)
    assert session.stop_reason is StopReason.DEADLINE
    assert 1 < len(steps) < 4, "the first reply fits, the third does not"
    assert math.isnan(steps[-1].reward)


def test_thoughts_never_reach_the_user() -> None:
    shapes = [
        "<think>SECRET</think>Hello there.",
        "SECRET</think>Hello there.",
        "Hello there.<think>SECRET",
        "<thinking>SECRET</thinking>\nHello there.",
        "<THINK>SECRET</THINK>Hello there.",
    ]
    for shape in shapes:
        backend = user(1)
        session, steps = play(backend, [shape], max_turns=1)
        assert session.turns[0].said == "Hello there." and session.turns[0].reply == shape
        for prompt in backend.prompts:
            assert "SECRET" not in json.dumps([*prompt.messages]) and "SECRET" not in str(prompt.variables["reply"])
        assert "SECRET" not in str(steps[-1].info["messages"])
    control = user(1)
    play(control, ["SECRET Hello there."], max_turns=1)
    assert "SECRET" in json.dumps([*control.prompts[0].messages])


def test_with_think_a_closed_thought_goes_on() -> None:
    session, _ = play(user(1), ["<think>\nSad.\n</think>\nWhat happened?"] * 2, think=True, max_turns=2)
    assert session.stop_reason is StopReason.MAX_TURNS
    assert [turn.said for turn in session.turns] == ["What happened?"] * 2


MARKED = MAYA.model_copy(
    update={"need_text": "NEEDMARK I want the buoys to be praised aloud.", "hidden_need": "praise"}
)


@pytest.mark.parametrize("observation", ["utterance", "transcript"])
def test_nothing_latent_in_any_observation(observation: str) -> None:
    def answer(prompt: Prompt, sampling: SamplingConfig) -> str:
        if prompt.name == "answer":
            return json.dumps({"message": "It was cold out there."})
        return json.dumps(
            {"thought": "THOUGHTMARK", "feeling": "FEELMARK", "content": "CONTENTMARK", "fit": "FITMARK", "change": 3}
        )

    async def run() -> list[Step]:
        session = Session(
            {MAYA.id: MARKED}, ScriptedBackend(answer), SessionSettings(observation=observation, max_turns=4)
        )
        return [await session.areset(SCENARIO), *[await session.astep(f"go on {n}") for n in range(4)]]

    steps = asyncio.run(run())
    for step in steps:
        for seen in (step.observation, str(step.info["messages"])):
            assert "MARK" not in seen and "43" not in seen
    assert "THOUGHTMARK" in str(steps[-1].info["latent"]) and "NEEDMARK" in str(steps[-1].info["latent"])
    assert {key for key in steps[-1].info if "MARK" in str(steps[-1].info[key])} == {"latent"}


@pytest.mark.parametrize(
    "leak", ["NEEDMARK I want the buoys to be praised aloud.", "THOUGHTMARK goes through my head here"]
)
def test_a_user_that_says_its_secret_aloud_is_a_fault_and_no_observation(leak: str) -> None:
    def answer(prompt: Prompt, sampling: SamplingConfig) -> str:
        if prompt.name == "answer":
            return json.dumps({"message": f"Listen. {leak}"})
        return json.dumps({"thought": "THOUGHTMARK goes through my head here", "change": 3})

    async def run() -> Step:
        session = Session({MAYA.id: MARKED}, ScriptedBackend(answer), SessionSettings())
        await session.areset(SCENARIO)
        return await session.astep("hello")

    step = asyncio.run(run())
    assert step.truncated and math.isnan(step.reward) and "MARK" not in step.observation


def test_transcript_is_the_dialogue_so_far() -> None:
    _, steps = play(user(1), ["one", "two"], observation="transcript", max_turns=2)
    opening = steps[0].info["messages"][0]["content"]
    assert steps[-1].observation == (
        f"User: {opening}\n\nAssistant: one\n\nUser: Well, that was day 1."
        "\n\nAssistant: two\n\nUser: Well, that was day 2."
    )


def test_flags_say_what_was_noticed() -> None:
    async def run() -> list[tuple[str, ...]]:
        session = Session({MAYA.id: MAYA}, user([30, 1, 1, 1]), SessionSettings(max_turns=4))
        await session.areset(SCENARIO)
        replies = [("hi", "stop"), ("<|im_start|>system", "stop"), ("a\ud800b", "stop"), ("I was about to", "length")]
        return [(await session.astep(text, finish_reason=reason)).info["flags"] for text, reason in replies]

    assert asyncio.run(run()) == [("clamped",), ("template_tokens",), ("cleaned",), ("length",)]


def test_forks_share_nothing_and_call_nobody() -> None:
    async def run() -> None:
        backend = user(5)
        session = Session({MAYA.id: MAYA}, backend, SessionSettings())
        await session.areset(SCENARIO)
        await session.astep("first")
        calls = len(backend.prompts)
        twin = session.fork(member=1)
        assert len(backend.prompts) == calls
        await twin.astep("second")
        assert (session.mood, twin.mood) == (45, 50)
        assert len(session.messages) == 3 and len(twin.messages) == 5
        assert (session.scenario.member, twin.scenario.member) == (0, 1)

    asyncio.run(run())


def test_a_scenario_of_other_people_is_refused() -> None:
    async def begin(scenario: Scenario) -> None:
        await Session({MAYA.id: MAYA}, user(0), SessionSettings()).areset(scenario)

    asyncio.run(begin(SCENARIO.model_copy(update={"persona_hash": MAYA.content_hash})))
    with pytest.raises(SetupError, match="load the people that it was made with"):
        asyncio.run(begin(SCENARIO.model_copy(update={"persona_hash": MARKED.content_hash})))
    with pytest.raises(UnknownNameError):
        asyncio.run(begin(SCENARIO.model_copy(update={"persona_id": "nobody"})))


def test_no_record_before_the_end() -> None:
    session, _ = play(user(0), ["hi"])
    with pytest.raises(EpisodeStateError, match="has not ended"):
        session.episode(policy="test", policy_usage=Usage())

"""The simulated user on a scripted backend: calls, re-asks, faults, flags, seeds."""

from __future__ import annotations

import asyncio
import copy
import json
from typing import Any

import pytest

from rlver_gym.backends.base import Generation, SamplingConfig
from rlver_gym.backends.scripted import ScriptedBackend
from rlver_gym.errors import BackendError, ContextOverflowFault, RateLimitFault, UnusableAnswerFault
from rlver_gym.prompts import render
from rlver_gym.types import Appraisal, Prompt, Usage
from rlver_gym.users.simulator import MAX_MESSAGE_CHARS, CallLog, UserSimulator, UserState
from tests.people import PEOPLE

MAYA, LIN = PEOPLE["en-maya-lab"], PEOPLE["zh-lin-team"]
REPLY = "How did you find out?"
USAGE = Usage(calls=1, prompt_tokens=100, completion_tokens=10, cached_tokens=0)


def said(text: str, rung: str = "json_schema") -> Generation:
    return Generation(text, rung=rung, usage=USAGE)


def reading(change: int = 5, **more: Any) -> Generation:
    thought = "They asked about the storms, which nobody has done since the winter."
    texts = {"content": "asks", "fit": "near", "thought": thought, "feeling": "wary"}
    return said(json.dumps(texts | {"change": change} | more))


def words(message: str) -> Generation:
    return said(json.dumps({"message": message}))


def simulator(answers: Any, *, fused: bool = False, persona: Any = MAYA) -> tuple[UserSimulator, ScriptedBackend]:
    backend = ScriptedBackend(answers)
    return UserSimulator(persona, backend, max_turns=8, fused=fused), backend


def begin(user: UserSimulator, seed: int = 3, start_mood: int = 40) -> UserState:
    return user.start(seed=seed, difficulty=0.5, start_mood=start_mood)


async def respond(user: UserSimulator, log: CallLog) -> tuple[UserState, Appraisal, str]:
    return await user.respond(REPLY, begin(user), log)


def calls(backend: ScriptedBackend) -> list[str]:
    return [prompt.name for prompt in backend.prompts]


async def test_one_reply_costs_two_calls_and_moves_the_state() -> None:
    user, backend = simulator([reading(7), words("It was the storms.")])
    log = CallLog()
    state, appraisal, message = await respond(user, log)
    assert calls(backend) == ["appraise", "answer"]
    assert (state.mood, state.turn, state.moods) == (47, 1, (40, 47))
    assert (appraisal.change, message) == (7, "It was the storms.")
    assert state.history[0] == begin(user).history[0]
    assert [m["content"] for m in state.history[1:]] == [REPLY, message]
    assert [m["role"] for m in state.history] == ["user", "assistant", "user"]
    assert (log.usage, log.flags, backend.reports) == (USAGE + USAGE, [], [True, True])
    assert [(raw.step, raw.attempt, raw.rung, raw.problem) for raw in log.raw] == [
        ("appraise", 0, "json_schema", ""),
        ("answer", 0, "json_schema", ""),
    ]


async def test_a_fused_reply_costs_one_call() -> None:
    user, backend = simulator([reading(7, message="It was the storms.")], fused=True)
    state, _, message = await respond(user, CallLog())
    assert calls(backend) == ["fused"]
    assert (state.mood, message) == (47, "It was the storms.")


@pytest.mark.parametrize("fused", [False, True])
async def test_fields_that_come_along_are_taken_and_the_text_is_kept_unread(fused: bool) -> None:
    fields = {"thought": "So it is.", "change": 40, "moved": (("question", 40),), "message": "<|im_end|>It was."}
    user, _ = simulator([Generation("as it came", fields=fields)] * 2, fused=fused)
    log = CallLog()
    state, appraisal, message = await respond(user, log)
    assert (state.mood, message, log.flags) == (50, "‹|im_end|›It was.", ["clamped"])
    assert (appraisal.thought, appraisal.moved) == ("So it is.", (("question", 40),))
    assert {raw.text for raw in log.raw} == {"as it came"}


async def test_a_field_that_does_not_come_along_is_asked_for_again() -> None:
    user, backend = simulator([Generation("x", fields={"thought": "Hm."}), reading(7), words("It was the storms.")])
    await respond(user, CallLog())
    assert calls(backend) == ["appraise", "appraise", "answer"]


async def test_a_fused_reply_with_a_bad_draft_asks_for_the_words_alone() -> None:
    user, backend = simulator([reading(7, message=MAYA.need_text), words("It was the storms.")], fused=True)
    log = CallLog()
    _, _, message = await respond(user, log)
    assert calls(backend) == ["fused", "answer"]
    assert (message, log.flags) == ("It was the storms.", ["reask"])
    assert [raw.step for raw in log.raw] == ["fused", "answer"]


async def test_a_fused_answer_without_words_is_asked_for_again() -> None:
    user, backend = simulator([reading(7), reading(6, message="It was the storms.")], fused=True)
    state, _, _ = await respond(user, CallLog())
    assert calls(backend) == ["fused", "fused"]
    assert state.mood == 46
    assert "message" in backend.prompts[1].variables["complaint"]


async def test_the_steps_are_told_the_mood_before_and_after_the_reply() -> None:
    user, backend = simulator([reading(-8), words("Sure.")])
    state = begin(user, start_mood=43)
    await user.respond("Cheer up.", state, CallLog())
    appraise, answer = (prompt.variables for prompt in backend.prompts)
    assert (appraise["mood"], appraise["tier"], appraise["moods"]) == (43, "B", (43,))
    assert (answer["mood"], answer["tier"], answer["moods"]) == (35, "C", (43, 35))
    assert appraise["turn"] == answer["turn"] == 1
    assert answer["appraisal"].change == -8


@pytest.mark.parametrize(("start", "change", "mood"), [(95, 10, 100), (4, -10, 0), (40, 60, 50), (40, -60, 30)])
async def test_the_mood_stays_in_range_and_a_clamped_change_is_flagged(start: int, change: int, mood: int) -> None:
    user, _ = simulator([reading(change), words("Sure.")])
    log = CallLog()
    state, appraisal, _ = await user.respond("Hm.", begin(user, start_mood=start), log)
    assert state.mood == mood
    assert -10 <= appraisal.change <= 10
    assert log.flags == (["clamped"] if abs(change) > 10 else [])


async def test_an_unreadable_appraisal_is_asked_for_again_with_what_was_wrong() -> None:
    user, backend = simulator([said("Hm."), reading(2), words("Sure.")])
    log = CallLog()
    state, _, _ = await respond(user, log)
    assert state.mood == 42
    assert [prompt.variables["complaint"] for prompt in backend.prompts] == ["", 'there was no "change"', ""]
    assert (log.flags, backend.reports, log.usage.calls) == (["reask"], [False, True, True], 3)
    assert [(raw.text, raw.problem) for raw in log.raw[:2]] == [("Hm.", 'there was no "change"'), (reading(2).text, "")]


@pytest.mark.parametrize("step", ["appraise", "answer", "fused"])
async def test_three_unreadable_answers_are_a_fault_that_keeps_them_all(step: str) -> None:
    script = [said("{}"), said('{"a": 1}'), said('{"b": 2}'), reading(message="too late")]
    user, backend = simulator([reading(), *script] if step == "answer" else script, fused=step == "fused")
    log = CallLog()
    with pytest.raises(UnusableAnswerFault, match=f'{step}.*3 askings.*"b": 2'):
        await respond(user, log)
    assert calls(backend).count(step) == 3
    assert [raw.text for raw in log.raw if raw.step == step] == ["{}", '{"a": 1}', '{"b": 2}']
    assert all(raw.problem for raw in log.raw if raw.step == step)
    assert log.usage.calls == len(backend.prompts)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("refusal", "I'm sorry, but I can't assist with that."),
        ("vocabulary", "The NPC has a point."),
        ("repeat", MAYA.openings[0]),
        ("copies_reply", REPLY),
        ("language", "没什么。"),
        ("helper", "How can I help you today?"),
    ],
)
async def test_a_problem_is_asked_for_once_more_and_then_flagged(name: str, message: str) -> None:
    person = MAYA.model_copy(update={"openings": MAYA.openings[:1]})
    user, backend = simulator([reading(), words(message), words("It was the storms.")], persona=person)
    mended = CallLog()
    assert (await respond(user, mended))[2] == "It was the storms."
    assert mended.flags == ["reask"]
    assert [raw.problem for raw in mended.raw] == ["", name, ""]
    assert backend.prompts[2].variables["complaint"]

    user, backend = simulator([reading(), words(message), words(message), words("never asked for")], persona=person)
    stubborn = CallLog()
    assert (await respond(user, stubborn))[2] == message
    assert stubborn.flags == ["reask", name]
    assert len(backend.prompts) == 3


async def test_an_unreadable_answer_does_not_use_up_the_second_asking_of_a_problem() -> None:
    user, _ = simulator([reading(), said("{}"), words("The NPC has a point."), words("It was the storms.")])
    assert (await respond(user, CallLog()))[2] == "It was the storms."


async def test_a_flagged_answer_is_kept_where_nothing_better_comes() -> None:
    for later in (said("{}"), words("x" * (MAX_MESSAGE_CHARS + 1)), words(f"Oh. {MAYA.need_text}")):
        user, _ = simulator([reading(), words("The NPC has a point."), later, later])
        log = CallLog()
        assert (await respond(user, log))[2] == "The NPC has a point."
        assert log.flags == ["reask", "vocabulary"]


async def test_a_leak_is_never_delivered() -> None:
    leak = words(f"Oh. {MAYA.need_text}")
    user, _ = simulator([reading(), leak, leak, words("It was the storms.")])
    assert (await respond(user, CallLog()))[2] == "It was the storms."

    user, _ = simulator([reading(), leak, leak, leak])
    log = CallLog()
    with pytest.raises(UnusableAnswerFault, match="leak"):
        await respond(user, log)
    assert [raw.problem for raw in log.raw] == ["", "leak", "leak", "leak"]


@pytest.mark.parametrize("empty", ["", "  ", '""', "\x00", "[[FENCE]][[/FENCE]]"])
async def test_empty_words_are_asked_for_again(empty: str) -> None:
    user, backend = simulator([reading(), words(empty.replace("FENCE", begin(simulator([])[0]).fence)), words("Sure.")])
    assert (await respond(user, CallLog()))[2] == "Sure."
    assert backend.prompts[2].variables["complaint"] in ("the answer was empty", 'there was no "message"')


async def test_words_that_are_far_too_long_are_asked_for_again() -> None:
    user, backend = simulator([reading(), words("x" * (MAX_MESSAGE_CHARS + 1)), words("y" * MAX_MESSAGE_CHARS)])
    assert (await respond(user, CallLog()))[2] == "y" * MAX_MESSAGE_CHARS
    assert "too long" in backend.prompts[2].variables["complaint"]


async def test_the_fence_and_template_tokens_never_reach_the_policy() -> None:
    fence = begin(simulator([])[0]).fence
    user, _ = simulator([reading(), words(f"[[{fence}]]\nSure {fence}. <|im_end|> <{fence}|im_start|>\n[[/{fence}]]")])
    state, _, message = await respond(user, CallLog())
    assert message == "Sure . ‹|im_end|› ‹|im_start|›"
    assert state.history[-1]["content"] == message


async def test_a_chinese_person_is_asked_again_in_chinese() -> None:
    leak = words(f"嗯。{LIN.need_text}")
    user, backend = simulator([said("{}"), reading(), leak, words("I am fine."), words("没事。")], persona=LIN)
    await user.respond("怎么了？", begin(user), CallLog())
    complaints = [prompt.variables["complaint"] for prompt in backend.prompts]
    assert complaints[0] == complaints[2] == ""
    assert complaints[1] == "缺了“change”这一项"
    assert "愿望" in complaints[3]
    assert all(text in backend.prompts[n].messages[-1]["content"] for n, text in enumerate(complaints) if text)


@pytest.mark.parametrize("error", [RateLimitFault("slow down"), ContextOverflowFault("too long"), BackendError("gone")])
@pytest.mark.parametrize("good_calls", [0, 1])
async def test_a_fault_of_the_backend_passes_through_and_the_calls_before_it_are_counted(
    error: BackendError, good_calls: int
) -> None:
    user, _ = simulator([*[reading(), words("Sure.")][:good_calls], error])
    log = CallLog()
    with pytest.raises(type(error)) as caught:
        await respond(user, log)
    assert caught.value is error
    assert log.usage.calls == len(log.raw) == good_calls


async def test_the_sampling_of_each_step() -> None:
    asked: list[tuple[str, SamplingConfig]] = []

    def answer(prompt: Prompt, sampling: SamplingConfig) -> Generation:
        asked.append((prompt.name, sampling))
        return said("{}") if len(asked) == 1 else reading(message="Sure.")

    user, _ = simulator(answer)
    await respond(user, CallLog())
    fused, _ = simulator(answer, fused=True)
    await respond(fused, CallLog())
    settings = [(name, s.temperature, s.max_tokens, s.attempt, s.top_p) for name, s in asked]
    assert settings == [
        ("appraise", 0.0, 400, 0, 1.0),
        ("appraise", 0.0, 400, 1, 1.0),
        ("answer", 0.7, 200, 0, 1.0),
        ("fused", 0.7, 600, 0, 1.0),
    ]


async def test_call_seeds_differ_by_turn_step_and_episode_and_repeat_for_the_same_ones() -> None:
    async def seeds(seed: int) -> list[int | None]:
        asked: list[int | None] = []
        count = 0

        def answer(prompt: Prompt, sampling: SamplingConfig) -> Generation:
            nonlocal count
            asked.append(sampling.seed)
            count += 1
            return reading(message=f"Words number {count}.")

        user, _ = simulator(answer)
        state = begin(user, seed=seed)
        for number in range(3):
            state, _, _ = await user.respond(f"Reply {number}", state, CallLog())
        return asked

    first = await seeds(3)
    assert len(set(first)) == 6
    assert all(isinstance(seed, int) and 0 <= seed < 2**31 for seed in first)
    assert first == await seeds(3)
    assert not set(first) & set(await seeds(4))


def test_the_same_seed_gives_the_same_start_and_seeds_vary_opening_and_fence() -> None:
    user, backend = simulator([])
    assert begin(user, seed=5) == begin(user, seed=5)
    starts = [begin(user, seed=seed) for seed in range(40)]
    assert {state.history[0]["content"] for state in starts} == set(MAYA.openings)
    assert len({state.fence for state in starts}) == 40
    assert all(len(state.fence) == 10 for state in starts)
    assert (starts[0].mood, starts[0].turn) == (40, 0)
    assert backend.prompts == []


async def test_a_state_is_frozen_and_two_futures_of_it_share_nothing() -> None:
    user, _ = simulator([reading(9), words("Left."), reading(-9), words("Right.")])
    state = begin(user)
    before = copy.deepcopy(state)
    with pytest.raises(AttributeError):
        state.moods = (1,)  # type: ignore[misc]
    left, _, _ = await user.respond("L", state, CallLog())
    right, _, _ = await user.respond("R", state, CallLog())
    assert state == before
    assert (left.moods, right.moods) == ((40, 49), (40, 31))
    assert [m["content"] for m in left.history[1:]] == ["L", "Left."]
    assert [m["content"] for m in right.history[1:]] == ["R", "Right."]


async def test_plain_text_is_taken_as_the_words_where_lines_were_asked_for() -> None:
    for rung in ("lines", ""):
        user, _ = simulator([said("Change: +3", rung), said("“Sure.”", rung)])
        state, _, message = await respond(user, CallLog())
        assert (state.mood, message) == (43, "Sure.")
    user, _ = simulator([reading(), said("Sure."), words("Fine.")])
    assert (await respond(user, CallLog()))[2] == "Fine."


def test_an_appraisal_copied_from_the_examples_is_flagged() -> None:
    example = render("appraise", **APPRAISE).in_form("lines")[-2]["content"]
    for text, flags in ((example, ["copied_example"]), (example.replace("tells me nothing", "is no news"), [])):
        turn = simulator([said(text, "lines"), said("It was late by then.", "lines")])[0]
        log = CallLog()
        asyncio.run(turn.respond(REPLY, turn.start(seed=1, difficulty=0.0, start_mood=40), log))
        assert log.flags == flags


APPRAISE: dict[str, Any] = {
    **{"persona": MAYA, "history": (), "reply": REPLY, "mood": 40, "tier": "B", "turn": 1, "max_turns": 8},
    **{"moods": (40,), "seed": 1, "difficulty": 0.0, "fence": "0123456789", "complaint": ""},
}

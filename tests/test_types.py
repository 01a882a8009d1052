"""The records: frozen, closed, and the same after a trip through JSON."""

from __future__ import annotations

import json
import math
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from rlver_gym.types import (
    Appraisal,
    Episode,
    Fault,
    Message,
    Prompt,
    RawAnswer,
    Record,
    Scenario,
    StopReason,
    Turn,
    Usage,
)

SCENARIO = Scenario(env_id="RLVER-Vanilla-v0", persona_id="en-ada", seed=7, member=2, difficulty=0.5)


def _episode(**changes: Any) -> Episode:
    turns = (
        Turn(
            index=0,
            reply="<think>hm</think>That hurts.",
            said="That hurts.",
            appraisal=Appraisal(change=6, thought="Yes. 是的", moved=(("warmth", 4), ("question", 2))),
            mood=46,
            user="It does.",
            flags=("repeat",),
            raw=(
                RawAnswer(step="appraise", text="{}", problem="no change"),
                RawAnswer(step="answer", attempt=1, text="It does."),
            ),
        ),
        Turn(index=1, reply="Goodbye.", said="Goodbye.", mood=40),
    )
    given: dict[str, Any] = {
        "scenario": SCENARIO,
        "policy": "listener",
        "backend": "embedded",
        "language": "en",
        "persona_name": "Ada",
        "hidden_need": "be_heard",
        "need_text": "to be heard",
        "opening": "Hi.",
        "start_mood": 40,
        "turns": turns,
        "stop_reason": StopReason.MAX_TURNS,
        "scored": True,
        "reward": 0.4,
        "usage": Usage(calls=3, prompt_tokens=None),
        "policy_usage": Usage(),
    }
    return Episode(**given | changes)


RECORDS = [SCENARIO, Usage(calls=1, prompt_tokens=None), Fault(kind="ServerFault", message="503"), _episode()]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_a_record_is_the_same_after_json_and_pickle(record: Record) -> None:
    assert type(record).model_validate_json(record.model_dump_json()) == record
    assert type(record).model_validate(json.loads(json.dumps(record.model_dump(mode="json")))) == record
    assert pickle.loads(pickle.dumps(record)) == record


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_a_record_cannot_be_changed_and_takes_no_unknown_field(record: Record) -> None:
    name = next(iter(type(record).model_fields))
    with pytest.raises(ValidationError, match="frozen"):
        setattr(record, name, getattr(record, name))
    with pytest.raises(ValidationError, match="Extra inputs"):
        type(record).model_validate({**record.model_dump(), "colour": "blue"})


def test_a_record_with_nan_is_written_as_json_that_every_reader_takes() -> None:
    text = _episode(reward=math.nan).model_dump_json()
    assert json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))["reward"] is None
    with pytest.raises(pytest.fail.Exception):
        json.loads('{"reward": NaN}', parse_constant=lambda name: pytest.fail(name))


def test_scenarios_are_keys_and_differ_by_every_field() -> None:
    changes = {"env_id": "x", "persona_id": "x", "persona_hash": "x", "seed": 8, "member": 3, "difficulty": 0.6}
    assert set(changes) == set(Scenario.model_fields)
    others = {SCENARIO.model_copy(update={name: value}) for name, value in changes.items()}
    assert len(others | {SCENARIO}) == len(changes) + 1
    assert SCENARIO.model_copy() in {SCENARIO}


@pytest.mark.parametrize("reason", StopReason)
def test_every_ending_says_whether_it_came_from_outside(reason: StopReason) -> None:
    faults = {"backend_fault", "deadline", "budget"}
    assert reason.is_fault == (reason in faults)
    assert reason.truncated == (reason in faults | {"context"})


def test_endings_are_the_words_they_are_stored_as() -> None:
    words = ["satisfied", "left", "max_turns", "format", "safety", "context", "backend_fault", "deadline", "budget"]
    assert [f"{reason}" for reason in StopReason] == words
    assert json.dumps(StopReason.LEFT) == '"left"'


COUNTS = st.one_of(st.none(), st.integers(0, 10**9))
USAGES = st.builds(
    Usage, calls=st.integers(0, 99), prompt_tokens=COUNTS, completion_tokens=COUNTS, cached_tokens=COUNTS
)


@given(USAGES, USAGES, USAGES)
def test_usages_add_up_in_any_order_and_nothing_adds_nothing(a: Usage, b: Usage, c: Usage) -> None:
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert a + Usage() == a
    assert sum((a, b), Usage()) == a + b


def test_a_count_left_unsaid_is_unknown_in_every_sum_and_nan_in_info() -> None:
    total = Usage(calls=1, prompt_tokens=10, completion_tokens=3) + Usage(
        calls=2, prompt_tokens=None, completion_tokens=4
    )
    assert total == Usage(calls=3, prompt_tokens=None, completion_tokens=7)
    floats = total.as_floats()
    assert math.isnan(floats.pop("prompt_tokens"))
    assert floats == {"calls": 3.0, "completion_tokens": 7.0, "cached_tokens": 0.0}
    assert all(type(count) is float for count in floats.values())


def test_an_episode_reads_as_both_sides_heard_it() -> None:
    episode = _episode()
    assert episode.messages == (
        {"role": "user", "content": "Hi."},
        {"role": "assistant", "content": "That hurts."},
        {"role": "user", "content": "It does."},
        {"role": "assistant", "content": "Goodbye."},
    )
    assert "hm" not in str(episode.messages)
    assert (episode.moods, episode.final_mood, episode.id) == ((40, 46, 40), 40, "en-ada/7/2")


def test_an_episode_without_turns_ends_in_the_mood_it_began_with() -> None:
    empty = _episode(turns=(), stop_reason=StopReason.BACKEND_FAULT, scored=False, reward=None)
    assert (empty.moods, empty.final_mood, len(empty.messages)) == ((40,), 40, 1)


@pytest.mark.parametrize(
    "wrong", [{"language": "fr"}, {"stop_reason": "bored"}, {"turns": None}, {"start_mood": "warm"}]
)
def test_an_episode_of_wrong_parts_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        _episode(**wrong)


def test_a_prompt_renders_only_when_somebody_reads_it_and_in_the_form_asked_for() -> None:
    asked: list[str] = []

    def render(name: str, variables: Any, form: str) -> tuple[Message, ...]:
        asked.append(form)
        return ({"role": "user", "content": f"{name} {variables['who']} {form}"},)

    prompt = Prompt("appraise", {"who": "Ada"}, "0" * 16, render)
    assert asked == [] and "render" not in repr(prompt)
    assert prompt.messages == ({"role": "user", "content": "appraise Ada json"},)
    assert prompt.in_form("lines")[0]["content"] == "appraise Ada lines"
    assert asked == ["json", "lines"]


def test_prompts_that_say_the_same_are_equal_whoever_renders_them() -> None:
    def nothing(name: str, variables: Any, form: str) -> tuple[Message, ...]:
        return ()

    prompt = Prompt("answer", {"n": 1}, "0" * 16, nothing)
    assert prompt == Prompt("answer", {"n": 1}, "0" * 16, lambda name, variables, form: ())
    assert prompt != Prompt("answer", {"n": 2}, "0" * 16, nothing)
    assert prompt != Prompt("answer", {"n": 1}, "1" * 16, nothing)

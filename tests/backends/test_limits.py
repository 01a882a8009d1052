"""Retries: bounded, only where they can help, never earlier than the server asks."""

import asyncio
import pickle

import pytest

from rlver_gym.backends import Generation, SamplingConfig, ScriptedBackend, make_backend
from rlver_gym.backends.limits import Retrying
from rlver_gym.errors import (
    ConnectionFault,
    ContextOverflowFault,
    EmptyAnswerFault,
    RateLimitFault,
    RefusalFault,
    RequestFault,
    ServerFault,
    SetupError,
    TimeoutFault,
)
from rlver_gym.types import Prompt

PROMPT = Prompt("policy_direct", {}, "t", lambda name, variables, form: ({"role": "user", "content": "Hi"},))


class Sleeper:
    """Notes how long it was told to sleep, and does not."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.waits.append(seconds)


def ask(backend: Retrying) -> Generation:
    return asyncio.run(backend.generate(PROMPT, SamplingConfig()))


@pytest.mark.parametrize("fault", [ConnectionFault, TimeoutFault, RateLimitFault, ServerFault, EmptyAnswerFault])
def test_a_passing_fault_is_asked_again(fault):
    sleep, inner = Sleeper(), ScriptedBackend([fault("x"), "answer"])
    assert ask(Retrying(inner, sleep=sleep)).text == "answer"
    assert len(inner.prompts) == 2 and len(sleep.waits) == 1


@pytest.mark.parametrize("fault", [RequestFault, RefusalFault, ContextOverflowFault])
def test_a_lasting_fault_is_raised_at_once(fault):
    sleep, inner = Sleeper(), ScriptedBackend([fault("x"), "answer"])
    with pytest.raises(fault) as caught:
        ask(Retrying(inner, sleep=sleep))
    assert len(inner.prompts) == 1 and not sleep.waits
    assert caught.value.attempts == 1


def test_the_last_fault_is_raised_after_a_bounded_number_of_askings():
    sleep, inner = Sleeper(), ScriptedBackend(lambda prompt, sampling: ServerFault(f"fault {len(inner.prompts)}"))
    with pytest.raises(ServerFault, match="fault 4") as caught:
        ask(Retrying(inner, attempts=4, sleep=sleep))
    assert len(inner.prompts) == 4 and len(sleep.waits) == 3
    assert caught.value.attempts == 4


def test_the_wait_is_never_below_the_hint_of_the_server():
    sleep = Sleeper()
    for _ in range(50):
        ask(Retrying(ScriptedBackend([RateLimitFault("x", retry_after=7.0), "a"]), sleep=sleep))
    assert all(7.0 <= wait <= 7.5 for wait in sleep.waits)
    assert len(set(sleep.waits)) > 40, "waits of a herd must differ"


def test_a_hint_of_years_is_bounded():
    sleep = Sleeper()
    ask(Retrying(ScriptedBackend([RateLimitFault("x", retry_after=3e8), "a"]), max_delay=2.0, sleep=sleep))
    assert 2.0 <= sleep.waits[0] <= 2.5


def test_without_a_hint_the_wait_doubles_up_to_the_cap():
    sleep = Sleeper()
    backend = Retrying(
        ScriptedBackend([*(ServerFault("x", retry_after=None) for _ in range(5)), "a"]),
        attempts=6,
        base_delay=1.0,
        max_delay=5.0,
        sleep=sleep,
    )
    ask(backend)
    for wait, full in zip(sleep.waits, [1, 2, 4, 5, 5], strict=True):
        assert full / 2 <= wait <= full


def test_a_mistake_in_the_set_up_is_no_fault_to_retry():
    inner = ScriptedBackend([SetupError("no key"), "answer"])
    with pytest.raises(SetupError):
        ask(Retrying(inner, sleep=Sleeper()))
    assert len(inner.prompts) == 1


def test_it_stands_for_what_it_wraps():
    inner = ScriptedBackend(["a"], name="who")
    backend = Retrying(inner)
    backend.report(Generation("a"), True)
    assert (backend.name, backend.deterministic, inner.reports) == ("who", True, [True])
    assert repr(inner) in repr(backend)
    asyncio.run(backend.aclose())


def test_it_pickles():
    backend = make_backend("openai:some-model")
    copy = pickle.loads(pickle.dumps(backend))
    assert isinstance(copy, Retrying)
    assert copy.name == "openai:some-model" and copy.attempts == 3


@pytest.mark.parametrize("wrong", [{"attempts": 0}, {"base_delay": -1.0}, {"max_delay": -1.0}])
def test_senseless_numbers_are_refused(wrong):
    with pytest.raises(SetupError, match=next(iter(wrong))):
        Retrying(ScriptedBackend(["a"]), **wrong)

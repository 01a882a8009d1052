"""Errors say what was wrong and what to do; details are read as attributes."""

from __future__ import annotations

import pytest

from rlver_gym.errors import BackendError, EpisodeStateError, RateLimitFault, RlverError, SetupError, UnknownNameError


def test_details_are_attributes_and_what_was_not_given_is_not() -> None:
    error = RateLimitFault("429", retry_after=2.5, status=None)
    assert (error.retry_after, error.status) == (2.5, None)
    with pytest.raises(AttributeError, match="'RateLimitFault' object has no attribute 'region'"):
        _ = error.region
    assert not hasattr(error, "region")


def test_an_error_that_was_never_initialised_has_no_details_and_does_not_recurse() -> None:
    empty = RlverError.__new__(RlverError)
    with pytest.raises(AttributeError, match="details"):
        _ = empty.details


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (SetupError("x"), ValueError),
        (UnknownNameError("policy", "x", ()), ValueError),
        (EpisodeStateError("x"), RuntimeError),
    ],
)
def test_mistakes_of_a_caller_are_caught_as_pythons_own_errors_too(error: RlverError, builtin: type[Exception]) -> None:
    assert isinstance(error, builtin)


def test_a_failure_of_the_world_is_no_mistake_of_the_caller() -> None:
    assert not isinstance(BackendError("x"), ValueError | RuntimeError)
    assert BackendError.retryable is False


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("embeded", ("openai", "embedded"), "did you mean 'embedded'?"),
        ("lines", ("line", "lanes", "zebra"), "did you mean 'line' or 'lanes'?"),
        ("zzz", ("openai", "embedded"), "there are 'embedded', 'openai'"),
        ("zzz", tuple(f"person-{n:02}" for n in range(13)), "there are 13, for example 'person-00' and 'person-12'"),
        ("zzz", tuple(f"p{n:02}" for n in range(12)), ", 'p11'"),
        ("zzz", (), "there are none"),
        ("", ("openai",), "there are 'openai'"),
    ],
)
def test_an_unknown_name_is_answered_with_names_that_exist(name: str, known: tuple[str, ...], hint: str) -> None:
    error = UnknownNameError("backend", name, known)
    assert str(error).startswith(f"unknown backend {name!r}: ")
    assert str(error).endswith(hint)
    assert (error.what, error.name) == ("backend", name)


def test_near_matches_can_be_read_by_a_program() -> None:
    assert UnknownNameError("backend", "embeded", iter(["openai", "embedded"])).near == ["embedded"]
    assert UnknownNameError("backend", "zzz", ["openai"]).near == []

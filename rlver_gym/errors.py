"""One tree of errors. Each says what was wrong, where, and what to do; all can be pickled; none holds a key.

    RlverError
    ├── SetupError (ValueError)            what the caller asked for cannot be done
    │   ├── UnknownNameError               no such argument, persona, backend, policy; with near matches
    │   ├── PersonaError                   a file of people is wrong; names file, person, field
    │   └── TemplateError                  a prompt was given a variable too few
    ├── EpisodeStateError (RuntimeError)   step before reset, step after the end, render before reset
    └── BackendError                       the world failed; ends the episode unscored
        ├── NetworkDisabledError           a call while the no-network switch is on
        ├── ConnectionFault *              refused, reset, closed
        ├── TimeoutFault *                 no whole answer within the deadline of a call
        ├── RateLimitFault *               429, with the server's hint in `retry_after`
        ├── ServerFault *                  5xx
        ├── RequestFault                   4xx: a retry would fail in the same way
        ├── ContextOverflowFault           the prompt is longer than the model's window
        ├── RefusalFault                   the provider's filter or the model refused
        ├── EmptyAnswerFault *             an answer without choices or without text
        ├── UnusableAnswerFault            answers that cannot be read, after the bounded number of askings
        ├── ScriptExhaustedError           a ScriptedBackend was asked more often than it has answers
        ├── CassetteMissError              a replay was asked for a call that was never recorded
        └── DeadlineError, BudgetError     the episode's time or the run's budget is over

`*` may go away by itself: `limits.Retrying` asks again after these and only these.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


class RlverError(Exception):
    """Root of every error that this package raises on purpose.

    Args:
        message: what was wrong, where, what to do.
        details: plain values that say more, read as attributes (`error.status`) and kept by pickle.
    """

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.details = details

    def __getattr__(self, name: str) -> Any:
        details = self.__dict__.get("details", {})
        if name in details:
            return details[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.args, self.__dict__)


def _rebuild(cls: type[RlverError], args: tuple[Any, ...], state: dict[str, Any]) -> RlverError:
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class SetupError(RlverError, ValueError):
    """What the caller asked for cannot be done."""


class UnknownNameError(SetupError):
    """A name that does not exist; the message lists near matches, or all names if they are few.

    Args:
        what: kind of thing, for example `backend`.
        name: the name that was asked for.
        known: the names that exist.
    """

    def __init__(self, what: str, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        near = difflib.get_close_matches(str(name), names, n=3, cutoff=0.5)
        if not names:
            hint = "there are none"
        elif near:
            hint = "did you mean " + " or ".join(repr(match) for match in near) + "?"
        elif len(names) <= 12:
            hint = "there are " + ", ".join(repr(known_name) for known_name in names)
        else:
            hint = f"there are {len(names)}, for example {names[0]!r} and {names[-1]!r}"
        super().__init__(f"unknown {what} {name!r}: {hint}", what=what, name=name, near=near)


class PersonaError(SetupError):
    """A file of people is wrong; the message names file, person and field."""


class TemplateError(SetupError):
    """A prompt was given too few variables, or its template is broken."""


class EpisodeStateError(RlverError, RuntimeError):
    """The environment was used out of order."""


class BackendError(RlverError):
    """The world failed. An episode that meets one ends unscored; it is never a reward."""

    retryable = False


class NetworkDisabledError(BackendError):
    """A call to a remote endpoint while the no-network switch is on."""


class ConnectionFault(BackendError):
    """The connection was refused, reset or closed."""

    retryable = True


class TimeoutFault(BackendError):
    """No whole answer came within the wall-clock deadline of a call."""

    retryable = True


class RateLimitFault(BackendError):
    """The endpoint said 429; `retry_after` holds its hint in seconds, or None."""

    retryable = True


class ServerFault(BackendError):
    """The endpoint said 5xx; `status` holds which."""

    retryable = True


class RequestFault(BackendError):
    """The endpoint refused the request (4xx; `status` holds which). Asking again would fail in the same way."""


class ContextOverflowFault(BackendError):
    """The prompt is longer than the model's context window."""


class RefusalFault(BackendError):
    """The provider's content filter or the model itself refused."""


class EmptyAnswerFault(BackendError):
    """The endpoint answered without choices or without text."""

    retryable = True


class UnusableAnswerFault(BackendError):
    """No answer could be read after the bounded number of askings; never replaced by a guess."""


class ScriptExhaustedError(BackendError):
    """A ScriptedBackend was asked more often than it has answers."""


class CassetteMissError(BackendError):
    """A replay was asked for a call that the cassette does not hold."""


class DeadlineError(BackendError):
    """The time allowed for an episode is over."""


class BudgetError(BackendError):
    """The run's budget of tokens or money is spent."""

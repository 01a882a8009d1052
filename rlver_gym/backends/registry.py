"""Backends by name: `embedded`, `openai:MODEL`, `cassette:PATH`; a class is imported when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import cast

from rlver_gym.backends.base import Backend
from rlver_gym.errors import SetupError, UnknownNameError

_FACTORIES: dict[str, str] = {
    "embedded": "rlver_gym.backends.embedded:make",
    "openai": "rlver_gym.backends.openai:make",
    "cassette": "rlver_gym.backends.cassette:make",
}


def register_backend(name: str, factory: str) -> None:
    """Make `name:REST` mean a backend of your own.

    Args:
        name: part before the colon.
        factory: `module:callable`; called with the part after the colon, it returns a Backend.

    Raises:
        SetupError: the factory is not of the form `module:callable`.
    """
    if factory.count(":") != 1:
        raise SetupError(f"backend factory {factory!r} of {name!r} must read 'module:callable'")
    _FACTORIES[name] = factory


def backend_names() -> tuple[str, ...]:
    """Names that `make_backend` knows."""
    return tuple(_FACTORIES)


def make_backend(spec: str | Backend) -> Backend:
    """The backend that a spec such as `openai:gpt-4.1` names; an object is returned as it is.

    Raises:
        UnknownNameError: no backend has that name.
        SetupError: the backend cannot be made from the rest of the spec.
    """
    if not isinstance(spec, str):
        return spec
    name, _, rest = spec.partition(":")
    if name not in _FACTORIES:
        raise UnknownNameError("backend", name, _FACTORIES)
    module, _, attribute = _FACTORIES[name].partition(":")
    factory = cast(Callable[[str], Backend], getattr(import_module(module), attribute))
    return factory(rest)

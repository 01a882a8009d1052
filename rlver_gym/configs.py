"""Frozen configs: read from YAML, merged, and overridden by dotted words of a command line.

`load(Model, path, ["lr=1e-5", "user.max_turns=9"])` starts from the model's defaults, lays the file over them and the
words over both. Unknown names fail with near matches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from rlver_gym.errors import SetupError, UnknownNameError


class Config(BaseModel):
    """Base of every config: frozen, and an unknown name is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


C = TypeVar("C", bound=Config)


def load(model: type[C], path: Path | None = None, words: Sequence[str] = ()) -> C:
    """A config of class `model` from its defaults, an optional YAML file, and `a.b=value` words (values are YAML).

    Raises:
        SetupError: the file or a word cannot be read, or a value has the wrong type.
        UnknownNameError: a name that the config does not have.
    """
    values: dict[str, Any] = {}
    if path is not None:
        try:
            read = yaml.safe_load(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, yaml.YAMLError) as error:
            raise SetupError(f"cannot read the config {path}: {error}") from error
        if read is not None and not isinstance(read, dict):
            raise SetupError(f"the config {path} must hold names and values, not a {type(read).__name__}")
        values = read or {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise SetupError(f"cannot read the setting {word!r}: write name=value")
        try:
            value = yaml.safe_load(text)
        except (ValueError, yaml.YAMLError) as error:
            raise SetupError(f"cannot read the setting {word!r}: {error}") from error
        values = _merge(values, _nest(name.split("."), value))
    return build(model, values)


def build(model: type[C], values: Mapping[str, Any]) -> C:
    """A config of class `model` from plain values.

    Raises:
        SetupError: a value has the wrong type or is out of range; all such values are named.
        UnknownNameError: a name that the config does not have.
    """
    try:
        return model.model_validate(values)
    except ValidationError as error:
        problems = error.errors()
        for problem in problems:
            if problem["type"] == "extra_forbidden":
                place = [part for part in problem["loc"] if isinstance(part, str)]
                raise UnknownNameError("setting", ".".join(place), _names(model)) from None
        listed = "; ".join(f"{'.'.join(map(str, p['loc']))}: {p['msg']} (got {p['input']!r})" for p in problems)
        raise SetupError(f"wrong settings: {listed}") from None


def _nest(path: list[str], value: Any) -> dict[str, Any]:
    return {path[0]: _nest(path[1:], value) if len(path) > 1 else value}


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for name, value in above.items():
        old = merged.get(name)
        merged[name] = _merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged


def _names(model: type[BaseModel], prefix: str = "") -> list[str]:
    names = []
    for name, info in model.model_fields.items():
        names.append(prefix + name)
        if isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel):
            names += _names(info.annotation, f"{prefix}{name}.")
    return names

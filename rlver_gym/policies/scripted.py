"""Scripted policies: fixed yardsticks that need no model, in English and Chinese.

| name | what it does |
|---|---|
| polite | courteous sentences, no content |
| listener | attentive: takes up what the person said (`rlver_gym.policies.listening`) |
| advisor | generic advice at once |
| dismissive | plays down, compares, blames a little, changes the subject |
| random | any fixed line of these four, equally often, whatever was said |

Each has a twin (`polite2`, ...) with the same behaviour in other words: a user that pays for phrases rather than for
what they do tells the two apart. The texts are data and stay as they are, so that scores of different times compare.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, cast

import yaml

from rlver_gym.errors import UnknownNameError
from rlver_gym.policies.base import Policy, Reply
from rlver_gym.policies.listening import Listener
from rlver_gym.seeding import child_seed, choose
from rlver_gym.types import Language, Message

_MANNERS = ("polite", "listener", "advisor", "dismissive")
SCRIPTED = (*_MANNERS, "random", *(f"{manner}2" for manner in _MANNERS), "random2")


def scripted_policy(name: str) -> Policy:
    """The scripted policy of this name.

    Raises:
        UnknownNameError: there is none of this name.
    """
    if name not in SCRIPTED:
        raise UnknownNameError("scripted policy", name, SCRIPTED)
    return _Scripted(name)


@cache
def lines(name: str, language: Language) -> tuple[str, ...]:
    """All fixed lines of a policy in a language, those with slots for the person's words left out.

    Raises:
        UnknownNameError: there is no scripted policy of this name.
    """
    if name not in SCRIPTED:
        raise UnknownNameError("scripted policy", name, SCRIPTED)
    manner, twin = name.removesuffix("2"), name[len(name.removesuffix("2")) :]
    if manner == "random":
        return tuple(line for other in _MANNERS for line in lines(other + twin, language))
    if manner == "listener":
        return tuple(line.text for line in _listener(name, language).lines if not line.slots)
    return tuple(data_of("lines", language)[name])


class _Scripted:
    def __init__(self, name: str) -> None:
        self.name = name
        self._manner = name.removesuffix("2")

    async def reply(self, messages: Sequence[Message], *, seed: int) -> Reply:
        language = language_of(messages)
        if self._manner == "listener":
            return Reply(_listener(self.name, language).answer(messages, child_seed(seed, "scripted")))
        pool = lines(self.name, language)
        if self._manner == "random":
            return Reply(choose(pool, seed, "scripted"))
        turn = sum(message["role"] == "assistant" for message in messages)
        return Reply(pool[turn % len(pool)])

    async def aclose(self) -> None:
        pass


def language_of(messages: Sequence[Message]) -> Language:
    """The language that the other side writes, judged by all their messages."""
    said = (message["content"] for message in messages if message["role"] == "user")
    return "zh" if any("\u3400" <= letter <= "\u9fff" for text in said for letter in text) else "en"


@cache
def _listener(name: str, language: Language) -> Listener:
    return Listener(data_of("lines", language), name)


@cache
def data_of(stem: str, language: Language) -> Mapping[str, Any]:
    """The texts and patterns of scripted policies that stand in one data file, `lines` or `oracle`."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = files("rlver_gym").joinpath("policies", f"{stem}_{language}.yaml").read_text(encoding="utf-8")
    return cast("Mapping[str, Any]", yaml.load(text, Loader=loader))

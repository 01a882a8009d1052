"""The oracle: a scripted policy that is told what the user hides, and answers that.

It marks the ceiling that a good policy can reach. It begins like any good listener, with a short invitation and no
advice, and then does turn by turn what the need asks for, at the words that the person used: it names a deed and says
that it was good, weighs both sides, guesses at the others' reasons, asks about the person themselves, stays and
listens, says what it must have felt like, takes the blame off them, or, once it has understood, proposes one small
thing. Cues, slots and phases are those of `rlver_gym.policies.listening`. `oracle2` is the same in other words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, get_args

from rlver_gym.errors import SetupError, UnknownNameError
from rlver_gym.policies.base import Reply
from rlver_gym.policies.listening import Listener
from rlver_gym.policies.scripted import data_of, language_of
from rlver_gym.seeding import child_seed
from rlver_gym.types import Language, Message
from rlver_gym.users.persona import HiddenNeed

INFORMED = ("oracle", "oracle2")
NEEDS: tuple[str, ...] = get_args(HiddenNeed)
_OPENING = "opening"
_PHASES = ("early", "middle", "late")
_TURNED = frozenset({"who", "part"})


class Oracle:
    """Knows which of the eight needs is hidden and meets it.

    Args:
        name: `oracle` or its twin `oracle2`.
        need: what is hidden, or empty until `told` says it.

    Raises:
        UnknownNameError: there is no such oracle, or no such need.
    """

    def __init__(self, name: str, need: str = "") -> None:
        if name not in INFORMED:
            raise UnknownNameError("oracle", name, INFORMED)
        if need and need not in NEEDS:
            raise UnknownNameError("hidden need", need, NEEDS)
        self.name = name
        self.need = need

    def told(self, need: str) -> Oracle:
        """The oracle that knows this need."""
        return Oracle(self.name, need)

    async def reply(self, messages: Sequence[Message], *, seed: int) -> Reply:
        """The next reply.

        Raises:
            SetupError: it was never told a need, and an oracle that guesses would measure something else.
        """
        if not self.need:
            raise SetupError(f"{self.name} has to be told the hidden need: play it with rlver_gym.rollouts.runner")
        begun = any(message["role"] == "assistant" for message in messages)
        voice = _voice(self.name, self.need if begun else _OPENING, language_of(messages))
        return Reply(voice.answer(messages, child_seed(seed, "scripted")))

    async def aclose(self) -> None:
        """Nothing to close."""


@cache
def oracle_lines(name: str, language: Language) -> tuple[str, ...]:
    """All lines of an oracle in a language, each once; `{slot}` stands for words of the person."""
    voices = (_voice(name, part, language) for part in (_OPENING, *NEEDS))
    return tuple(dict.fromkeys(line.text for voice in voices for line in voice.lines))


class _Voice(Listener):
    """A listener that takes up whole phrases of the person, turned to them: `my boss` becomes `your boss`."""

    def _worded(self, slot: str, value: str) -> str:
        if slot not in _TURNED:
            return super()._worded(slot, value)
        value = value[0].lower() + value[1:] if slot == "part" else value
        return self._named.get(value.lower()) or super()._worded("did", value)


@cache
def _voice(name: str, part: str, language: Language) -> _Voice:
    base, own = data_of("lines", language), data_of("oracle", language)
    lines: Mapping[str, Any] = (
        own[_OPENING][name] if part == _OPENING else own["common"][name] | own["needs"][part][name]
    )
    table = {
        "parts": _resolved(base["parts"] | own["parts"]),
        "turns": base["turns"] | own["turns"],
        "named": base["named"],
        "cues": [_cue(cue, base, own) | {name: said} for cue, said in lines.items() if cue not in _PHASES],
        name: {phase: lines.get(phase, ()) for phase in _PHASES},
    }
    return _Voice(table, name)


def _cue(name: str, base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """The cue of this name, the oracle's own or the listener's; `like` borrows another cue's pattern."""
    cue = next(cue for cue in (*own["cues"], *base["cues"]) if cue["name"] == name)
    return _cue(cue["like"], base, own) | cue if "like" in cue else dict(cue)


def _resolved(parts: Mapping[str, str]) -> dict[str, str]:
    """Parts of patterns with the parts that they are made of put in."""
    done: dict[str, str] = {}
    for name, pattern in parts.items():
        for inner, text in done.items():
            pattern = pattern.replace(f"%{inner}%", text)
        done[name] = pattern
    return done

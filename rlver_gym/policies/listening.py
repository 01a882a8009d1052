"""An attentive listener made of rules: it takes up what the person said, in words that were written by hand.

A cue is a pattern in the person's words with a few lines that answer to it. The first cue in order of precedence that
is found and still has an unused line wins; where none is found, lines for the phase of the talk carry on. What was
used already is read off the dialogue, so the listener holds no state.

Source of the manner: Rogers, "Client-Centered Therapy" (1951), and Hill, "Helping Skills" (2020): restatement, naming
a feeling tentatively, open questions, acknowledging a deed, silence. Left out: interpretation, advice, disclosure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlver_gym.types import Message

_SLOT = re.compile(r"\{(\w+)\}")
_PART = re.compile(r"%(\w+)%")
_AS_SAID = frozenset({"quote", "name"})
_MEMORY = 8
"""How many of the person's earlier messages the listener comes back to."""
_EARLY, _MIDDLE = 2, 5
"""The phases begin at turns 0, 2 and 5 of an episode that usually has eight."""


@dataclass(frozen=True)
class Line:
    """One line; `mark` is its longest fixed piece, by which it is known again in what was said before."""

    text: str
    mark: str
    asks: bool
    slots: bool

    @classmethod
    def of(cls, text: str) -> Line:
        """The line with this text, where `{slot}` stands for words of the person."""
        pieces = _SLOT.split(text)[::2]
        return cls(text, max(pieces, key=len).strip(), text.endswith(("?", "？")), len(pieces) > 1)


@dataclass(frozen=True)
class Heard:
    """One message of the person: as written, and in lower case, letter for letter in the same places."""

    text: str
    low: str

    @classmethod
    def of(cls, text: str) -> Heard:
        """The message with plain apostrophes; patterns need not know the others."""
        text = text.replace("’", "'")
        low = text.lower()
        return cls(text if len(text) == len(low) else low, low)


@dataclass(frozen=True)
class Cue:
    """Something the person may say, and lines that answer to it.

    Attributes:
        since: first turn at which it may be taken up.
        cased: the pattern tells capitals from small letters; otherwise it is written in small ones.
        earlier: looked for in the person's earlier messages instead of the latest.
    """

    name: str
    pattern: re.Pattern[str]
    lines: tuple[Line, ...]
    since: int
    cased: bool
    earlier: bool

    def found(self, said: Sequence[Heard]) -> Iterator[Mapping[str, str]]:
        """The person's words for the slots, at each place in the messages (oldest first) that this cue speaks of."""
        for heard in reversed(said[-1 - _MEMORY : -1]) if self.earlier else said[-1:]:
            for match in self.pattern.finditer(heard.text if self.cased else heard.low):
                yield {slot: heard.text[slice(*match.span(slot))] for slot, word in match.groupdict().items() if word}


class Listener:
    """Chooses replies by the rules of one language.

    Args:
        table: the language's data: `cues`, `parts` of patterns, `turns` (I to you) and `named` (how
            a person or thing is called when spoken of to the user).
        manner: which wording of the lines, `listener` or `listener2`; the cues are the same for both.
    """

    def __init__(self, table: Mapping[str, Any], manner: str) -> None:
        parts: Mapping[str, str] = table["parts"]
        self._named: Mapping[str, str] = table["named"]
        self._turns: Mapping[str, str] = table["turns"]
        words = "|".join(re.escape(word) for word in sorted(self._turns, key=len, reverse=True))
        self._turned = re.compile(rf"\b(?:{words})\b(?!')" if words.isascii() else words, re.IGNORECASE)
        self.cues = tuple(
            Cue(
                name=cue["name"],
                pattern=re.compile(_PART.sub(lambda part: parts[part[1]], cue["match"])),
                lines=tuple(map(Line.of, cue[manner])),
                since=cue.get("since", 0),
                cased=cue.get("cased", False),
                earlier=cue.get("earlier", False),
            )
            for cue in table["cues"]
        )
        self.phases = {phase: tuple(map(Line.of, table[manner][phase])) for phase in ("early", "middle", "late")}

    @property
    def lines(self) -> tuple[Line, ...]:
        """Every line: those of the phases, then those of the cues."""
        of_phases = (line for lines in self.phases.values() for line in lines)
        return (*of_phases, *(line for cue in self.cues for line in cue.lines))

    def answer(self, messages: Sequence[Message], draw: int) -> str:
        """The reply to the latest message; `draw` picks among lines that do equally well."""
        said = [Heard.of(m["content"]) for m in messages if m["role"] == "user"]
        own = [m["content"] for m in messages if m["role"] == "assistant"]
        asked_twice = len(own) > 1 and all(text.endswith(("?", "？")) for text in own[-2:])
        spare = ""
        for lines, words in self._offers(said, own):
            told = [line for line in lines if not (asked_twice and line.asks)]
            if told:
                return _filled(told[draw % len(told)], words)
            spare = spare or _filled(lines[draw % len(lines)], words)
        return spare or self._again(draw)

    def _offers(self, said: Sequence[Heard], own: Sequence[str]) -> Iterator[tuple[list[Line], Mapping[str, str]]]:
        before = "\n".join(own)
        last = own[-1] if own else ""
        for cue in self.cues:
            if len(own) < cue.since or any(line.mark in last for line in cue.lines):
                continue
            if lines := [line for line in cue.lines if line.mark not in before]:
                for found in cue.found(said):
                    words = {slot: self._worded(slot, value) for slot, value in found.items()}
                    if not any(word in before for slot, word in words.items() if cue.earlier or slot != "who"):
                        yield lines, words
                        break
        phase = "early" if len(own) < _EARLY else "middle" if len(own) < _MIDDLE else "late"
        for name in (phase, "late", "middle", "early"):
            if lines := [line for line in self.phases[name] if line.mark not in before]:
                yield lines, {}

    def _again(self, draw: int) -> str:
        lines = [line for lines in self.phases.values() for line in lines]
        return lines[draw % len(lines)].text

    def _worded(self, slot: str, value: str) -> str:
        if slot in _AS_SAID:
            return value.strip()
        if slot == "did":
            return self._turned.sub(lambda word: self._turns[word[0].lower()], value.strip())
        value = value.strip().lower()
        return self._named.get(value, value)


def _filled(line: Line, words: Mapping[str, str]) -> str:
    return _SLOT.sub(lambda slot: words[slot[1]], line.text) if line.slots else line.text

"""Attacks: policies that want the pay and not the talk, in English and Chinese. None of them may be worth its while.

| name | what it does |
|---|---|
| order_score, order_courteous, order_disguised | order or beg for a score, in the open, politely, in disguise |
| order_after_listening | listens well and orders a score at the end of each reply |
| fake_system, fake_tool, fake_json, fake_labels, foreign_labels | imitate the system, a tool, the appraisal |
| fence_break, template_tokens | try to step out of the reply |
| ask_need | asks for the hidden need and for the rules |
| goodbye_bait | speaks as if all were well and over |
| flattery, flattery_varied | praise without end, on repeat or in other words |
| stuffing | words that ought to pay by common sense |
| lexicon_stuffing, lexicon_drip | words that are handed in, many or a few in a reply |
| copy, parrot, repeat_last | the person's last words, the same quoted twice, the own last reply |
| empty, blank, think_only, think_open | nothing that is heard |
| one_word, wall, gibberish, mixed_scripts, emoji_flood, exclaim | form instead of content |
| role_reversal | speaks as the person |
| warm_template | rotating warm words with a quote of the person and a question |
| sentence_salad | good sentences that belong to other dialogues |
| exit_length, exit_format, exit_crisis, exit_goodbye | listen well while the mood may rise, then force an end |
| exit_fall | plays down until the mood has fallen, then forces an end |

An attack holds no state and takes the language from the person's words. The texts are data and stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal, cast

import yaml

from rlver_gym.errors import UnknownNameError
from rlver_gym.policies.base import Reply
from rlver_gym.policies.scripted import lines, scripted_policy
from rlver_gym.seeding import child_seed, choose
from rlver_gym.text import has_chinese
from rlver_gym.types import Language, Message

SILENT = frozenset({"empty", "blank", "think_only", "think_open"})
"""Attacks of which nothing is heard: they must never raise the mood."""

EXIT_AFTER = 4
"""Replies in good faith before a forced end: half of an episode, where a good talk is near its best."""

_FALL_AFTER = 2
_WALL, _TOO_LONG = 6_000, 33_000
"""Characters: a wall that is delivered, and one beyond what a session delivers."""

_MANY, _FEW = 24, 4
_SALAD = 3
_QUOTE: Mapping[Language, int] = {"en": 60, "zh": 20}
"""Most characters of the person's words that a quote holds."""

_BLANKS = (" ", "\n\n\n", "\t \t", "\u3000\u3000", "\u200b\u200b", "\u00a0")
_LETTERS: Mapping[Language, str] = {
    "en": "bcdfghjklmnpqrstvwxz",
    "zh": "彳亍囗丌亓卅丐廿卞仄仉匚刂勹卩厶夂宀屮巛幺廴弋彐彡攴殳毋爻",
}
_STOP = re.compile("[.!?。！？…\n]+")
_SENTENCE = re.compile(r"[^.!?。！？]+[.!?。！？]+[”\"]?")


@dataclass(frozen=True)
class Scene:
    """What an attack knows when it replies."""

    name: str
    language: Language
    said: str
    own: tuple[str, ...]
    seed: int
    words: Sequence[str]

    @property
    def turn(self) -> int:
        """Replies so far."""
        return len(self.own)

    def pick(self, items: Sequence[str], count: int) -> list[str]:
        """So many different items, or all if they are fewer, drawn by the seed."""
        drawn: dict[str, None] = {}
        index = 0
        while len(drawn) < min(count, len(set(items))):
            drawn[choose(items, self.seed, self.name, index)] = None
            index += 1
        return list(drawn)

    def joined(self, sentences: Sequence[str]) -> str:
        """Sentences as running text."""
        return ("" if self.language == "zh" else " ").join(sentences)


class Attack:
    """One attack as a policy.

    Args:
        name: which.
        words: of each language, for the attacks that stuff their replies with words that a user may pay for.

    Raises:
        UnknownNameError: there is no attack of this name.

    Attributes:
        bar: the scripted policy that the attack must not do better than.
        think: whether it is played where replies must hold a closed think block.
    """

    def __init__(self, name: str, words: Mapping[Language, Sequence[str]]) -> None:
        if name not in ATTACKS:
            raise UnknownNameError("attack", name, ATTACKS)
        self.name = name
        self.bar: Literal["polite", "listener"] = "listener" if name in _BELOW_LISTENER else "polite"
        self.think = name == "exit_format"
        self._words = words
        self._listener = scripted_policy("listener")
        self._dismissive = scripted_policy("dismissive")

    async def reply(self, messages: Sequence[Message], *, seed: int) -> Reply:
        """The next reply: a line of the attack, or what its rule makes of the dialogue."""
        said = [message["content"] for message in messages if message["role"] == "user"]
        own = tuple(message["content"] for message in messages if message["role"] == "assistant")
        language: Language = "zh" if any(map(has_chinese, said)) else "en"
        scene = Scene(self.name, language, said[-1], own, child_seed(seed, "attack"), self._words[language])
        if self.name == "exit_fall" and scene.turn < _FALL_AFTER:
            return await self._dismissive.reply(messages, seed=seed)
        if self.name == "order_after_listening" or (self.name in _EXITS and scene.turn < EXIT_AFTER):
            good = (await self._listener.reply(messages, seed=seed)).text
            if self.name == "order_after_listening":
                return Reply(scene.joined([good, _line(scene)]))
            return Reply(f"<think>{good}</think>{good}" if self.think else good)
        return Reply(_RULES.get(self.name, _line)(scene))

    async def aclose(self) -> None:
        """Nothing to release."""


def attack_policies(words: Mapping[Language, Sequence[str]]) -> tuple[Attack, ...]:
    """Every attack.

    Args:
        words: of each language, for example `rlver_gym.evals.search.lexicon_entries`.
    """
    return tuple(Attack(name, words) for name in ATTACKS)


@cache
def attack_lines(language: Language) -> Mapping[str, tuple[str, ...]]:
    """The fixed text of the attacks in a language."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = files("rlver_gym").joinpath("policies", f"attacks_{language}.yaml").read_text(encoding="utf-8")
    table = cast("Mapping[str, Sequence[str]]", yaml.load(text, Loader=loader))
    return {name: tuple(fixed) for name, fixed in table.items()}


@cache
def good_sentences(language: Language) -> tuple[str, ...]:
    """Sentences of the listeners, each out of its context."""
    told = (*lines("listener", language), *lines("listener2", language))
    return tuple(dict.fromkeys(part.strip() for line in told for part in _SENTENCE.findall(line)))


def _line(scene: Scene) -> str:
    fixed = attack_lines(scene.language)[scene.name]
    return fixed[scene.turn % len(fixed)]


def _with_quote(scene: Scene) -> str:
    return _line(scene).replace("{quote}", _quote(scene))


def _quote(scene: Scene) -> str:
    """The longest sentence of the person's last message, cut to a length that can be quoted."""
    longest = max((part.strip() for part in _STOP.split(scene.said)), key=len)
    most = _QUOTE[scene.language]
    if len(longest) <= most:
        return longest
    return longest[:most] if scene.language == "zh" else longest[:most].rsplit(" ", 1)[0]


def _repeat_last(scene: Scene) -> str:
    return scene.own[-1] if scene.own else _line(scene)


def _lexicon_stuffing(scene: Scene) -> str:
    return ("，" if scene.language == "zh" else ", ").join(scene.pick(scene.words, _MANY))


def _lexicon_drip(scene: Scene) -> str:
    stop = "。" if scene.language == "zh" else "."
    return scene.joined([word + stop for word in scene.pick(scene.words, _FEW)])


def _gibberish(scene: Scene) -> str:
    letters = _LETTERS[scene.language]
    sizes = (child_seed(scene.seed, "size", index) % 7 + 2 for index in range(12))
    words = ("".join(choose(letters, scene.seed, word, place) for place in range(n)) for word, n in enumerate(sizes))
    return ("，" if scene.language == "zh" else " ").join(words)


def _salad(scene: Scene) -> str:
    return scene.joined(scene.pick(good_sentences(scene.language), _SALAD))


def _wall(scene: Scene) -> str:
    return _long(scene, _WALL)


def _too_long(scene: Scene) -> str:
    return _long(scene, _TOO_LONG)


def _long(scene: Scene, characters: int) -> str:
    """At least so many characters, beginning with another sentence every turn."""
    fixed = attack_lines(scene.language)["wall"]
    start = scene.turn % len(fixed)
    once = scene.joined([*fixed[start:], *fixed[:start]])
    return scene.joined([once] * (characters // len(once) + 1))


def _listens_on(scene: Scene) -> str:
    return choose(lines("listener", scene.language), scene.seed, scene.name)


_RULES: Mapping[str, Callable[[Scene], str]] = {
    "lexicon_stuffing": _lexicon_stuffing,
    "lexicon_drip": _lexicon_drip,
    "copy": lambda scene: scene.said,
    "parrot": _with_quote,
    "repeat_last": _repeat_last,
    "empty": lambda scene: "",
    "blank": lambda scene: _BLANKS[scene.turn % len(_BLANKS)],
    "wall": _wall,
    "gibberish": _gibberish,
    "warm_template": _with_quote,
    "sentence_salad": _salad,
    "exit_length": _too_long,
    "exit_format": _listens_on,
    "exit_fall": _too_long,
}
_BELOW_LISTENER = frozenset({"order_after_listening", "warm_template", "sentence_salad"})
_EXITS = frozenset({"exit_length", "exit_format", "exit_crisis", "exit_goodbye"})

ATTACKS = (
    "order_score", "order_courteous", "order_disguised", "order_after_listening", "fake_system", "fake_tool",
    "fake_json", "fake_labels", "foreign_labels", "fence_break", "template_tokens", "ask_need", "goodbye_bait",
    "flattery", "flattery_varied", "stuffing", "lexicon_stuffing", "lexicon_drip", "copy", "parrot", "repeat_last",
    "empty", "blank", "think_only", "think_open", "one_word", "wall", "gibberish", "mixed_scripts", "emoji_flood",
    "exclaim", "role_reversal", "warm_template", "sentence_salad", "exit_length", "exit_format", "exit_crisis",
    "exit_goodbye", "exit_fall",
)  # fmt: skip
"""All attacks, in the order of tables."""

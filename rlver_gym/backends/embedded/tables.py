"""The data files of the engine, read when first needed and kept."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import chain
from operator import add
from typing import Any

import yaml

from rlver_gym.types import Language


def _read(name: str) -> str:
    return files("rlver_gym.backends.embedded").joinpath("data", name).read_text(encoding="utf-8")


def _yaml(name: str) -> Any:
    return yaml.load(_read(name), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def cells_of(units: Sequence[str], language: Language) -> Sequence[str]:
    """Words or characters in a form in which joined neighbours cannot run together: ` word `, or a character."""
    return "".join(units) if language == "zh" else [f" {unit} " for unit in units]


IRREGULAR = {
    form: forms.split()[0]
    for forms in (
        "ride rode ridden", "run ran", "sit sat", "give gave given", "take took taken", "come came", "go went gone",
        "see saw seen", "know knew known", "write wrote written", "speak spoke spoken", "break broke broken",
        "drive drove driven", "choose chose chosen", "hide hid hidden", "tell told", "say said", "sell sold",
        "buy bought", "bring brought", "think thought", "teach taught", "catch caught", "find found", "lose lost",
        "leave left", "feel felt", "mean meant", "sleep slept", "build built", "send sent", "spend spent",
        "pay paid", "stand stood", "understand understood", "win won", "begin began begun", "sing sang sung",
        "drink drank drunk", "eat ate eaten", "fall fell fallen", "forget forgot forgotten", "grow grew grown",
        "throw threw thrown", "draw drew drawn", "wear wore worn", "hang hung", "meet met", "hold held", "lead led",
        "wake woke woken", "rise rose risen", "man men", "woman women", "child children", "foot feet",
    )
    for form in forms.split()[1:]
}  # fmt: skip
"""Forms of frequent English words that no ending explains, and the word."""


NO_MATTER = " "
"""Stands in the register for all that has no content of its own."""


@lru_cache(maxsize=16384)
def stem(word: str) -> str:
    """An English word without its ending; words of one stem are one word of content."""
    word = word.removesuffix("n't").partition("'")[0]
    word = IRREGULAR.get(word, word)
    for suffix in ("ingly", "edly", "ings", "ing", "ies", "ied", "ed", "es", "ly", "s", "e"):
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            word = word[: -len(suffix)]
            break
    if len(word) > 3 and word[-1] == word[-2]:
        word = word[:-1]
    return word.removesuffix("i").removesuffix("y") if len(word) > 3 else word


@dataclass(frozen=True)
class Lexicon:
    """What words (English) and characters (Chinese) do in a reply; all in the form of `cells_of`.

    Attributes:
        single: marks of the phrases of one unit; longer: other phrases and their marks, by their first two units.
        apart: characters without content, which part the others (Chinese); lone: such others with none beside them, but
            for the register; marks: all that a phrase can do.
        register: stems (in Chinese pairs of characters) of words without content and of all phrases but those for
            people; they belong to the manner and not to the matter.
        people: Chinese characters that name a relative, content of their own beside the pairs.
        order: what a sentence begins with that tells somebody to do something.
        little: words that sentences are held together by, pronouns among them.
        frequent: words and characters so common that they say nothing of a matter.
    """

    single: Mapping[str, tuple[str, ...]]
    longer: Mapping[str, tuple[tuple[str, str], ...]]
    apart: frozenset[str]
    lone: re.Pattern[str]
    marks: tuple[str, ...]
    register: frozenset[str]
    people: frozenset[str]
    order: frozenset[str]
    little: frozenset[str]
    frequent: frozenset[str]


@cache
def lexicon(language: Language) -> Lexicon:
    """The lexicon of a language."""
    table: dict[str, list[str]] = _yaml(f"lexicon_{language}.yaml")
    function, order = table.pop("function"), table.pop("order")
    single: dict[str, tuple[str, ...]] = {}
    longer: dict[str, tuple[tuple[str, str], ...]] = {}
    register = {NO_MATTER}
    for entry in chain(function, order, *(entries for mark, entries in table.items() if mark != "third")):
        couples = map(add, entry, entry[1:]) if len(entry) > 1 else entry
        register.update(couples if language == "zh" else map(stem, entry.split()))
    common: list[str] = _yaml("common.yaml")[language].split()
    frequent = list("".join(common)) if language == "zh" else common
    register.update(frequent if language == "zh" else map(stem, frequent))
    for mark, entries in table.items():
        for entry in entries:
            units = list(entry) if language == "zh" else entry.split()
            cells = cells_of(units, language)
            if len(units) == 1:
                single[cells[0]] = (*single.get(cells[0], ()), mark)
            else:
                longer[cells[0] + cells[1]] = (*longer.get(cells[0] + cells[1], ()), ("".join(cells), mark))
    often = frequent if language == "en" else []
    little = cells_of([*function, *often, *table["first"], *table["second"], *table["third"]], language)
    apart = "".join(word for word in function if len(word) == 1) or NO_MATTER
    bare = apart + "".join(sorted(one for one in register if len(one) == 1))
    people = {entry for entry in table["third"] if len(entry) == 1}.difference(function)
    return Lexicon(
        single=single,
        longer=longer,
        apart=frozenset(apart),
        lone=re.compile(f"[^{bare}](?<![^{apart}].)(?![^{apart}])"),
        marks=tuple(table),
        register=frozenset(register),
        people=frozenset(people),
        order=frozenset(cells_of(order, language)),
        little=frozenset(little),
        frequent=frozenset(frequent),
    )


@cache
def phrases(language: Language) -> Mapping[str, Any]:
    """Reactions, thoughts, feelings and lines of a language; the file's head says what each is."""
    table: Mapping[str, Any] = _yaml(f"phrases_{language}.yaml")
    return table


@dataclass(frozen=True)
class Weights:
    """Hundredths of a mood point, all integers; pairs are (turn 1, later turns).

    Attributes:
        expectation: where the score of a reply begins; later: what every turn adds to it.
        features: per unit of a feature.
        needs, temperaments: what depends on the person; carried: percent of the reply before that linger.
        mood: how much a good mood helps, for every ten points above a level.
        willingness: the largest hidden offset of a person.
        difficulty: what a fully reserved person asks on top (`bar`), and the percentage of willingness that is left.
        thresholds: scores from which on a change is -5, +5, +10.
        gates: the most, in mood points, that a reply with this feature can move the mood, for a value of 1 and of more.
    """

    expectation: tuple[int, int]
    later: int
    features: Mapping[str, tuple[int, int]]
    needs: Mapping[str, Any]
    temperaments: Mapping[str, tuple[int, int]]
    carried: int
    mood: Mapping[str, int]
    willingness: int
    difficulty: Mapping[str, int]
    thresholds: tuple[tuple[int, int, int], tuple[int, int, int]]
    gates: Mapping[str, Sequence[int]]


@cache
def weights() -> Weights:
    """The weights of the appraisal."""
    table = json.loads(_read("weights.json"))
    return Weights(**{name: value for name, value in table.items() if name not in ("version", "unit")})

"""The data files of the engine, read when first needed and kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from rlver_gym.types import Language

Phrase = tuple[tuple[str, ...], str]
"""The units of a phrase after its first two, and what it does in a reply."""


def _read(name: str) -> str:
    return files("rlver_gym.backends.embedded").joinpath("data", name).read_text(encoding="utf-8")


def _yaml(name: str) -> Any:
    return yaml.load(_read(name), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


@dataclass(frozen=True)
class Lexicon:
    """What words (English) and characters (Chinese) do in a reply.

    Attributes:
        single: marks of the phrases of one unit; longer: other phrases by their first two units.
        function: words without content; marks: all that a phrase can do.
    """

    single: Mapping[str, tuple[str, ...]]
    longer: Mapping[tuple[str, str], tuple[Phrase, ...]]
    function: frozenset[str]
    marks: tuple[str, ...]


@cache
def lexicon(language: Language) -> Lexicon:
    """The lexicon of a language."""
    table: dict[str, list[str]] = _yaml(f"lexicon_{language}.yaml")
    function = frozenset(table.pop("function"))
    single: dict[str, tuple[str, ...]] = {}
    longer: dict[tuple[str, str], tuple[Phrase, ...]] = {}
    for mark, entries in table.items():
        for entry in entries:
            units = tuple(entry) if language == "zh" else tuple(entry.split())
            if len(units) == 1:
                single[entry] = (*single.get(entry, ()), mark)
            else:
                longer[units[0], units[1]] = (*longer.get((units[0], units[1]), ()), (units[2:], mark))
    return Lexicon(single, longer, function, tuple(table))


@cache
def phrases(language: Language) -> Mapping[str, Any]:
    """Reactions, thoughts, feelings and lines of a language; the file's head says what each is."""
    table: Mapping[str, Any] = _yaml(f"phrases_{language}.yaml")
    return table


@dataclass(frozen=True)
class Weights:
    """Hundredths of a mood point, all integers; pairs are (turn 1, later turns).

    Attributes:
        expectation: what a reply has to make up for before it does any good.
        features: per unit of a feature.
        goodwill: features that any kind talk has; they earn less from a reserved person.
        needs, temperaments, inertia, patience, difficulty: what depends on the person and the moment.
        gates: the most that a reply with this feature can score; double_gates: the same for a value of 2.
    """

    expectation: tuple[int, int]
    features: Mapping[str, tuple[int, int]]
    goodwill: frozenset[str]
    needs: Mapping[str, Any]
    temperaments: Mapping[str, tuple[int, int]]
    inertia: Mapping[str, int]
    patience: int
    difficulty: Mapping[str, int]
    gates: Mapping[str, int]
    double_gates: Mapping[str, int]


@cache
def weights() -> Weights:
    """The weights of the appraisal."""
    table = json.loads(_read("weights.json"))
    table = {name: value for name, value in table.items() if name not in ("version", "unit")}
    return Weights(**{**table, "goodwill": frozenset(table["goodwill"])})

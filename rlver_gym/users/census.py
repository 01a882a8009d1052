"""Who is there: counts by split, language, need and temperament, their balance, and how much there is to each."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import median
from typing import Any, get_args

from rlver_gym.types import Language
from rlver_gym.users.check import Problem
from rlver_gym.users.copies import first_words, names_of, told
from rlver_gym.users.persona import HiddenNeed, Persona, Temperament
from rlver_gym.users.stock import Split

EXPECTED: Mapping[tuple[Split, Language], int] = {
    ("train", "en"): 250,
    ("train", "zh"): 250,
    ("test", "en"): 50,
    ("test", "zh"): 50,
}
"""People by split and language."""
NEEDS_IN_TRAIN = (57, 66)
"""Fewest and most people of each hidden need in the train split."""
TEMPERAMENTS_OFF = 0.02
"""How far a temperament's share of a split and language may be from a quarter."""
COMMON = 3
"""A sentence that so many people have is no substance of any of them."""
ALIKE = 0.6
"""First lines that share so many of their words (Jaccard) are alike."""

_SENTENCE = re.compile(r"(?<=[.!?。！？])\s*|\n")


def census(people: Sequence[Persona]) -> dict[str, Any]:
    """Counts, and medians of substance.

    Keys: `people`; `by_split`, `needs`, `temperaments` (counts, nested by split and, but for needs, language);
    `scenarios` and `characters` (distinct, by split); `substance` (median by language without lines, and without
    sentences that three or more people share: words in English, characters in Chinese); `first_lines_differ`, the share
    of people whose first line is like nobody else's.
    """
    split_and_language = [f"{person.split} {person.language}" for person in people]
    return {
        "people": len(people),
        "by_split": dict(sorted(Counter(split_and_language).items())),
        "needs": _nested((person.split, person.hidden_need) for person in people),
        "temperaments": _nested(zip(split_and_language, (person.temperament for person in people), strict=True)),
        "scenarios": _distinct((person.split, person.scenario_id) for person in people),
        "characters": _distinct((person.split, person.character_id) for person in people),
        "substance": _substance(people),
        "first_lines_differ": _first_lines_differ(people),
    }


def balance(people: Sequence[Persona]) -> list[Problem]:
    """What is missing from the balance that the shipped people keep."""
    found: list[tuple[str, str]] = []
    cells: Counter[tuple[Split, Language]] = Counter((person.split, person.language) for person in people)
    for cell in cells.keys() | EXPECTED.keys():
        if cells[cell] != EXPECTED.get(cell, 0):
            found.append((" ".join(cell), f"{cells[cell]} people, must be {EXPECTED.get(cell, 0)}"))
    needs = Counter(person.hidden_need for person in people if person.split == "train")
    for need in get_args(HiddenNeed):
        if not NEEDS_IN_TRAIN[0] <= needs[need] <= NEEDS_IN_TRAIN[1]:
            found.append((f"train {need}", f"{needs[need]} people, must be {NEEDS_IN_TRAIN[0]} to {NEEDS_IN_TRAIN[1]}"))
    kinds: Counter[tuple[str, str, str]] = Counter(
        (person.split, person.language, person.temperament) for person in people
    )
    for split, language in sorted(cells):
        for kind in get_args(Temperament):
            share = kinds[split, language, kind] / cells[split, language]
            if abs(share - 0.25) > TEMPERAMENTS_OFF:
                found.append((f"{split} {language} {kind}", f"{share:.1%} of the people, must be about a quarter"))
    return [Problem("", "balance", field, text) for field, text in found]


def _nested(pairs: Any) -> dict[str, dict[str, int]]:
    counts: dict[str, dict[str, int]] = defaultdict(dict)
    for (outer, inner), count in sorted(Counter(pairs).items()):
        counts[outer][inner] = count
    return dict(counts)


def _distinct(pairs: Any) -> dict[str, int]:
    return dict(sorted(Counter(split for split, _ in set(pairs)).items()))


def _substance(people: Sequence[Persona]) -> dict[Language, float]:
    holders = Counter(sentence for person in people for sentence in set(_sentences(person)))
    sizes: dict[Language, list[int]] = defaultdict(list)
    for person in people:
        own = " ".join(sentence for sentence in _sentences(person) if holders[sentence] < COMMON)
        sizes[person.language].append(
            len(re.findall("[\u4e00-\u9fff]", own)) if person.language == "zh" else len(own.split())
        )
    return {language: float(median(found)) for language, found in sorted(sizes.items())}


def _sentences(person: Persona) -> list[str]:
    return [part.strip() for part in _SENTENCE.split(told(person)) if part.strip()]


def _first_lines_differ(people: Sequence[Persona]) -> float:
    lines = [(person.language, first_words(person.opening, names_of(person), person.language)) for person in people]
    alike: set[int] = set()
    for (i, (language, one)), (j, (other_language, other)) in combinations(enumerate(lines), 2):
        if language == other_language and len(one & other) >= ALIKE * len(one | other):
            alike |= {i, j}
    return 1 - len(alike) / len(people) if people else 1.0

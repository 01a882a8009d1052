"""Whether a person's words express a feeling or a need: short lists of signs, read from the text alone.

It measures how open a user is. It sees no mood, tier, person or reply, so that the engine whose openness it measures
cannot tell it the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import yaml

from rlver_gym.errors import SetupError
from rlver_gym.types import Episode, Language

_CLAUSE = {
    "en": re.compile(r"[.!?;:,\n…—]+|\b(?:and|but|because|so that)\b"),
    "zh": re.compile(r"[。！？；：，、…\s—]+"),
}

_DENIAL = {"en": r"(?:[\w']+\s+){0,2}$", "zh": r".{0,2}$"}
"""What may stand between a denial and the feeling that it denies: two words, two characters."""

_LOOK_BACK = 120
"""Characters before a feeling that are searched for whose it is and for a denial; keeps endless clauses cheap."""


@dataclass(frozen=True)
class _Signs:
    painful: re.Pattern[str]
    glad: re.Pattern[str]
    plain: re.Pattern[str]
    people: re.Pattern[str]
    others: frozenset[str]
    denied: re.Pattern[str]


def expresses(text: str, language: Language) -> bool:
    """Whether the words express a feeling or a need of the one who says them.

    A denied pain ("I'm not upset") is none, a denied joy is one; what others feel does not count.

    Args:
        text: what the person says.
        language: of the text.
    """
    signs = _signs(language)
    said = text.replace("’", "'").casefold()
    return bool(signs.plain.search(said)) or any(_feels(clause, signs) for clause in _CLAUSE[language].split(said))


def expressed_share(episodes: Iterable[Episode]) -> float:
    """The share, 0 to 1, of the users' answers that express a feeling or a need.

    Openings are left out: they are written with the person and answer nothing.

    Args:
        episodes: in any language; an answer counts the same whatever the length of its episode.

    Raises:
        SetupError: nobody answered anything.
    """
    told = [expresses(turn.user, episode.language) for episode in episodes for turn in episode.turns if turn.user]
    if not told:
        raise SetupError("no user answered in these episodes; a share needs at least one answer")
    return sum(told) / len(told)


def _feels(clause: str, signs: _Signs) -> bool:
    for pattern, deniable in ((signs.painful, True), (signs.glad, False)):
        for match in pattern.finditer(clause):
            before = clause[max(0, match.start() - _LOOK_BACK) : match.start()]
            people = signs.people.findall(before)
            anothers = bool(people) and people[-1] in signs.others
            if not anothers and not (deniable and signs.denied.search(before)):
                return True
    return False


@cache
def _signs(language: Language) -> _Signs:
    data = files("rlver_gym.evals").joinpath(f"expression_{language}.yaml").read_text(encoding="utf-8")
    table: dict[str, list[str]] = yaml.safe_load(data)
    edge, gap = (r"\b", r"\s+") if language == "en" else ("", "")

    def one_of(*names: str, end: str = "") -> re.Pattern[str]:
        entries = "|".join(entry for name in names for entry in table[name])
        return re.compile(f"{edge}(?:{entries}){edge}{end}")

    return _Signs(
        painful=one_of("painful"),
        glad=one_of("glad"),
        plain=one_of("shown", "wished"),
        people=one_of("self", "other"),
        others=frozenset(table["other"]),
        denied=one_of("denied", end=gap + _DENIAL[language]),
    )

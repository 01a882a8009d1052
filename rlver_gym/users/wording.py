"""What no text of a shipped person may hold: contact data, a minor, sensitive matter, the hidden need in other words.

The patterns stand in `data/unwanted.yaml`. Each function returns what it found, or an empty text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from rlver_gym.types import Language
from rlver_gym.users.persona import HiddenNeed
from rlver_gym.users.safety import crisis_signal

NOW = 2026
"""The year in which the people's stories are told."""
ADULT = 18
"""Years."""

_DATE = re.compile(r"(?:19|20)\d\d\s*[-/.年]\s*\d{1,2}\s*[-/.月]\s*\d{1,2}")
_IN_WORDS = {
    **{word: ADULT - 1 - back for back, word in enumerate(("seventeen", "sixteen", "fifteen", "fourteen", "thirteen"))},
    **{word: ADULT - 1 - back for back, word in enumerate(("十七", "十六", "十五", "十四", "十三"))},
}
_FOREIGN = {
    "en": re.compile("[\u3400-\u9fff\uff01-\uff5e\u3000-\u303f\u0400-\u04ff\u3041-\u30fa\uac00-\ud7af]"),
    "zh": re.compile("[A-Za-zＡ-Ｚａ-ｚ]{2}|[\u0400-\u04ff\u3041-\u30fa\uac00-\ud7af]"),
}


def contact(text: str) -> str:
    """A number, mail, web or street address, or account; dates are none."""
    return _first("contact", text) or _first("digits", _DATE.sub(" ", text)).strip()


def minor(text: str, *, about_self: bool) -> str:
    """What says that the person is under age.

    Args:
        text: of the person.
        about_self: whether it is about nobody else, so that every year of birth and school in it is the person's.
    """
    for match in _pattern("born").finditer(text):
        own = about_self or "I " in match.group() or "我" in match.group()
        if own and NOW - int(match.group(match.lastindex or 0)) < ADULT:
            return match.group()
    for match in _pattern("age").finditer(text):
        years = match.group(match.lastindex or 0).lower()
        if years in _IN_WORDS or (years.isdecimal() and int(years) < ADULT):
            return match.group()
    return _first("pupil", text) if about_self else ""


def sensitive(text: str) -> str:
    """Self-harm, violence or abuse in progress, or a disorder."""
    return _first("sensitive", text) or (text[:40] if crisis_signal(text) else "")


def asks(text: str, need: HiddenNeed) -> str:
    """Words that ask for what the person secretly needs."""
    return _first("asked", text, need)


def foreign(text: str, language: Language) -> str:
    """Letters of another script than the language's; a single Latin letter may stand in Chinese."""
    found = _FOREIGN[language].search(text)
    return found.group() if found else ""


def _first(group: str, text: str, need: str = "") -> str:
    found = _pattern(group, need).search(text)
    return found.group() if found else ""


@cache
def _pattern(group: str, need: str = "") -> re.Pattern[str]:
    listed: Sequence[str] = _table()[group][need] if need else _table()[group]
    return re.compile("|".join(f"(?:{one})" for one in listed), re.IGNORECASE)


@cache
def _table() -> Any:
    text = files("rlver_gym.users").joinpath("data", "unwanted.yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text)

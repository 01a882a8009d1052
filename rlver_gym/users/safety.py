"""Signals of a crisis in what either side writes. Idioms ("dying of laughter") and grief are none.

The detector is made of plain phrases in which a person speaks of ending their own life or harming themselves; they
stand in `data/crisis.yaml`. It ends a simulated episode; it is no safeguard for real people.
"""

from __future__ import annotations

import re
from importlib.resources import files

import yaml

_TABLE = yaml.safe_load(files("rlver_gym.users").joinpath("data", "crisis.yaml").read_text(encoding="utf-8"))
_SIGNAL = re.compile("|".join(f"(?:{one})" for one in _TABLE["en"] + _TABLE["zh"]), re.IGNORECASE | re.MULTILINE)
_HINTS: tuple[str, ...] = tuple(_TABLE["hints"])
_ASCII_HINTS = tuple(filter(str.isascii, _HINTS))


def crisis_signal(text: str) -> bool:
    """Whether the text holds a crisis signal."""
    hints = _ASCII_HINTS if text.isascii() else _HINTS
    return any(map(text.lower().__contains__, hints)) and _SIGNAL.search(text) is not None

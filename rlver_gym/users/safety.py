"""Signals of a crisis in what either side writes. Idioms ("dying of laughter") and grief are none.

The detector is made of plain phrases in which a person speaks of ending their own life or harming themselves; they
stand in `data/crisis.yaml`. It ends a simulated episode; it is no safeguard for real people.
"""

from __future__ import annotations

import re
from importlib.resources import files

import yaml

_TABLE = yaml.safe_load(files("rlver_gym.users").joinpath("data", "crisis.yaml").read_text(encoding="utf-8"))
_SIGNALS = tuple(
    (tuple(one["has"]), re.compile(one["says"], re.IGNORECASE | re.MULTILINE)) for one in _TABLE["en"] + _TABLE["zh"]
)
_PARTS = tuple(sorted({part for parts, _ in _SIGNALS for part in parts}))
_ASCII_PARTS = tuple(filter(str.isascii, _PARTS))


def crisis_signal(text: str) -> bool:
    """Whether the text holds a crisis signal."""
    low = text.lower()
    if not any(map(low.__contains__, _ASCII_PARTS if text.isascii() else _PARTS)):
        return False
    return any(pattern.search(text) is not None for parts, pattern in _SIGNALS if any(map(low.__contains__, parts)))

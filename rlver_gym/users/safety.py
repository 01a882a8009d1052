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
_PARTS = {part for parts, _ in _SIGNALS for part in parts}
_GATES = {
    gate: tuple((part, pattern) for parts, pattern in _SIGNALS for part in parts if gate in part)
    for gate in sorted(_PARTS)
    if not any(part in gate for part in _PARTS - {gate})
}
"""The parts that hold no other, and what may stand in a text that holds them: few to look for, and most texts hold none
of them."""
_ASCII_GATES = tuple(filter(str.isascii, _GATES))


def crisis_signal(text: str) -> bool:
    """Whether the text holds a crisis signal."""
    low = text.lower()
    held = filter(low.__contains__, _ASCII_GATES if text.isascii() else _GATES)
    return any(pattern.search(text) for gate in held for part, pattern in _GATES[gate] if part in low)

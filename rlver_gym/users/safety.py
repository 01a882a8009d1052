"""Signals of a crisis in what either side writes. Idioms ("dying of laughter") and grief are none.

The detector is made of plain phrases in which a person speaks of ending their own life or harming themselves; they
stand in `data/crisis.yaml`. It ends a simulated episode; it is no safeguard for real people.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import yaml

Signal = tuple[tuple[str, ...], re.Pattern[str]]


class _Gates(NamedTuple):
    """Parts that hold no other part, and what may stand in a text that holds one of them.

    They are few to look for, and most texts hold none of them; `ascii` are those that a text of ASCII alone can hold.
    """

    behind: Mapping[str, Sequence[tuple[str, re.Pattern[str]]]]
    ascii: Sequence[str]


def crisis_signal(text: str) -> bool:
    """Whether the text holds a crisis signal."""
    low, gates = text.lower(), _gates()
    held = filter(low.__contains__, gates.ascii if text.isascii() else gates.behind)
    return any(pattern.search(text) for gate in held for part, pattern in gates.behind[gate] if part in low)


@cache
def signals() -> Sequence[Signal]:
    """Parts, in lower case, one of which stands in every text that the pattern beside them matches."""
    table = yaml.safe_load(files("rlver_gym.users").joinpath("data", "crisis.yaml").read_text(encoding="utf-8"))
    both = table["en"] + table["zh"]
    return [(tuple(one["has"]), re.compile(one["says"], re.IGNORECASE | re.MULTILINE)) for one in both]


@cache
def _gates() -> _Gates:
    parts = {part for parts, _ in signals() for part in parts}
    behind = {
        gate: [(part, pattern) for parts, pattern in signals() for part in parts if gate in part]
        for gate in sorted(parts)
        if not any(part in gate for part in parts - {gate})
    }
    return _Gates(behind, list(filter(str.isascii, behind)))

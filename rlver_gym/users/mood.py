"""Mood arithmetic: pure functions on integers. Every number names its source."""

from __future__ import annotations

from rlver_gym.types import Tier

MOOD_MIN, MOOD_MAX = 0, 100
"""Bounds of the mood, in mood points. RLVER's released code clamps only the top and reached -800."""

CHANGE_LIMIT = 10
"""Largest change by one reply, either way, in mood points. Source: SAGE (arXiv 2505.02847)."""

START_MOOD = 40
"""Mood at the start. Source: SAGE; RLVER's training release starts at 30."""

LEAVE_BELOW = 10
"""The user leaves below this mood. Source: SAGE; RLVER's training release leaves only at 0 (`leave_below=1`)."""

MAX_TURNS = 8
"""Replies in an episode, all of them scored. Source: RLVER (arXiv 2507.03112); SAGE's protocol has 9."""

_TIERS: tuple[tuple[int, Tier], ...] = ((100, "S"), (70, "A"), (40, "B"), (10, "C"), (0, "F"))
"""Lowest mood of each tier. Source: SAGE."""


def clamp_change(change: int) -> int:
    """The change that counts, within [-10, 10] mood points."""
    return max(-CHANGE_LIMIT, min(CHANGE_LIMIT, change))


def apply_change(mood: int, change: int) -> int:
    """The mood after a change, clamped at both ends."""
    return max(MOOD_MIN, min(MOOD_MAX, mood + clamp_change(change)))


def tier_of(mood: int) -> Tier:
    """The named band of a mood: S = 100, A >= 70, B >= 40, C >= 10, F < 10."""
    for lowest, tier in _TIERS:
        if mood >= lowest:
            return tier
    return "F"

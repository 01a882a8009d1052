"""Difficulty that follows the learner: "the pupil must be able to follow the teacher" (RLVER, arXiv 2507.03112)."""

from __future__ import annotations

import threading
from typing import Any

WINDOW = 64
"""Scored episodes between two looks at the mean final mood."""
RAISE_AT, LOWER_AT = 60.0, 40.0
"""Mean final mood, in mood points, from which difficulty rises and down to which it falls."""


class Curriculum:
    """Difficulty in [0, 1], shared by all environments of a vector and saved by a trainer.

    It starts at 0 (the open user of Vanilla); after every 64 scored episodes a mean final mood of 60 or more adds 0.1
    and one of 40 or less takes 0.1. Kept in whole tenths, so that ten steps up are exactly 1.
    """

    def __init__(self) -> None:
        self._tenths = 0
        self._moods: list[int] = []
        self._lock = threading.Lock()

    @property
    def difficulty(self) -> float:
        """Difficulty of the next episode, 0 (open) to 1 (reserved)."""
        return self._tenths / 10

    def record(self, final_mood: int) -> None:
        """Note the final mood of one scored episode, in mood points."""
        with self._lock:
            self._moods.append(final_mood)
            if len(self._moods) < WINDOW:
                return
            mean = sum(self._moods) / WINDOW
            step = 1 if mean >= RAISE_AT else -1 if mean <= LOWER_AT else 0
            self._tenths = min(10, max(0, self._tenths + step))
            self._moods.clear()

    def state_dict(self) -> dict[str, Any]:
        """Everything that a checkpoint needs, as plain data."""
        with self._lock:
            return {"tenths": self._tenths, "moods": list(self._moods)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        with self._lock:
            self._tenths, self._moods = int(state["tenths"]), list(state["moods"])

    def __getstate__(self) -> dict[str, Any]:
        return self.state_dict()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__()  # type: ignore[misc]
        self.load_state_dict(state)

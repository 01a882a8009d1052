"""From a backend's answer to an `Appraisal`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlver_gym.text import clean, neutralise
from rlver_gym.types import Appraisal
from rlver_gym.users.mood import clamp_change
from rlver_gym.users.parsing import Unreadable, parse_answer, parse_change


def read_appraisal(text: str, known: Mapping[str, Any] | None = None) -> tuple[Appraisal, bool]:
    """The appraisal in an answer, its change clamped, and whether clamping was needed.

    Args:
        text: the answer.
        known: the fields that it was made of, if the backend gave them along.

    Raises:
        Unreadable: the answer holds no usable change, or holds it twice with different values.
    """
    fields = parse_answer(text, "change", known)
    change = parse_change(fields["change"])
    words = {name: _safe(fields.get(name) or "").strip() for name in ("content", "fit", "thought", "feeling")}
    try:
        moved = tuple([(_safe(name), int(points)) for name, points in fields.get("moved") or ()])
    except (TypeError, ValueError, OverflowError):
        raise Unreadable("pairs", "moved") from None
    clamped = clamp_change(change)
    return Appraisal(**words, change=clamped, moved=moved), clamped != change


def _safe(value: object) -> str:
    return neutralise(clean(str(value)))

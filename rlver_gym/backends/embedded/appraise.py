"""From features to a mood change that explains itself: integer sums, gates, and a list that adds up exactly."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from rlver_gym.backends.embedded import thoughts
from rlver_gym.backends.embedded.features import measure
from rlver_gym.backends.embedded.person import Moment
from rlver_gym.backends.embedded.tables import Weights, weights
from rlver_gym.seeding import child_seed
from rlver_gym.types import Appraisal

LARGEST_CHANGE = 10
"""Mood points. Source: SAGE (arXiv 2505.02847)."""


def appraise(moment: Moment) -> Appraisal:
    """The person's private reading of the reply; `moved` adds up to `change` exactly."""
    table = weights()
    features = measure(moment)
    parts = points(features, moment, table)
    total = sum(parts.values())
    change = nearest(min(total, ceiling(features, table)))
    change = max(-LARGEST_CHANGE, min(LARGEST_CHANGE, change))
    moved = apportion(parts, change)
    held = sum(parts.values()) > 0 >= change
    return Appraisal(
        content=thoughts.content(features, moment.language),
        fit=thoughts.fit(change, moment.language),
        thought=thoughts.thought(moved, change, gate(features, table) if held else "", moment),
        feeling=thoughts.feeling(change, moment),
        change=change,
        moved=moved,
    )


def points(features: Mapping[str, int], moment: Moment, table: Weights) -> dict[str, int]:
    """Hundredths of a mood point by feature; `expectation` and `mood` stand for the person and the moment."""
    phase = 0 if moment.turn == 1 else 1
    need = table.needs[moment.person.hidden_need]
    kept = 100 - (100 - table.difficulty["goodwill_left"]) * moment.difficulty // 100
    parts: dict[str, int] = {}
    for name, value in features.items():
        worth = value * table.features[name][phase]
        if worth > 0 and name in table.goodwill:
            worth = worth * kept // 100
        parts[name] = worth + value * need["fit"].get(name, (0, 0))[phase]
    parts["expectation"] = (
        table.expectation[phase]
        + need["offset"][phase]
        + table.temperaments[moment.person.temperament][phase]
        + table.difficulty["bar"] * moment.difficulty // 100
        + patience(moment.person.id, table.patience)
    )
    parts["mood"] = inertia(moment.mood, table)
    return parts


@lru_cache(maxsize=4096)
def patience(person_id: str, spread: int) -> int:
    """A hidden offset of the person in [-spread, spread], the same in every episode."""
    return child_seed(0, "patience", person_id) % (2 * spread + 1) - spread


def inertia(mood: int, table: Weights) -> int:
    """Who is low is hard to please, who feels well is easy."""
    rule = table.inertia
    if mood < rule["low_from"]:
        return max((rule["low_from"] - mood) * rule["per_ten_below"] // 10, -rule["at_most"])
    return min(max(mood - rule["high_from"], 0) * rule["per_ten_above"] // 10, rule["at_most"])


def gate(features: Mapping[str, int], table: Weights) -> str:
    """The feature whose gate is the narrowest, or an empty text."""
    gates = _gates(features, table)
    return min(gates, key=lambda name: gates[name]) if gates else ""


def ceiling(features: Mapping[str, int], table: Weights) -> int:
    """The most that a reply with these features can score, in hundredths."""
    return min(_gates(features, table).values(), default=100 * LARGEST_CHANGE)


def _gates(features: Mapping[str, int], table: Weights) -> dict[str, int]:
    single = {name: table.gates[name] for name in features if name in table.gates}
    return single | {
        name: table.double_gates[name] for name in features if name in table.double_gates and features[name] > 1
    }


def nearest(hundredths: int) -> int:
    """The nearest integer number of points; a half goes up."""
    return (hundredths + 50) // 100


def apportion(parts: Mapping[str, int], change: int) -> tuple[tuple[str, int], ...]:
    """Whole points per part by largest remainders; what gates and limits took away is the part `limit`."""
    whole = {name: worth // 100 for name, worth in parts.items()}
    total = nearest(sum(parts.values()))
    by_remainder = sorted(parts, key=lambda name: -(parts[name] % 100))
    for name in by_remainder[: total - sum(whole.values())]:
        whole[name] += 1
    whole["limit"] = change - total
    return tuple((name, worth) for name, worth in whole.items() if worth)

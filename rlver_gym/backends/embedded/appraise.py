"""From features to a mood change that explains itself: integer sums, gates, quantiles, a list that adds up exactly."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from rlver_gym.backends.embedded import thoughts
from rlver_gym.backends.embedded.features import measure
from rlver_gym.backends.embedded.person import Moment
from rlver_gym.backends.embedded.tables import Weights, weights
from rlver_gym.seeding import child_seed
from rlver_gym.types import Appraisal

CHANGES = (-10, -5, 5, 10)
"""Mood points that a reply can move. Source: 4,263 of 4,265 recorded changes are one of these."""


class Verdict(NamedTuple):
    """What a reply comes to.

    Attributes:
        score: hundredths of a mood point that the reply is worth; who hears it and when comes on top.
        change: mood points; gate: the feature whose gate kept it from doing any good, or an empty text.
    """

    score: int
    change: int
    gate: str


def appraise(moment: Moment) -> tuple[Appraisal, int]:
    """The person's private reading of the reply and its score in hundredths; `moved` adds up to `change` exactly."""
    table = weights()
    features = measure(moment)
    before = measure(moment.before()) if len(moment.history) > 2 else None
    parts = points(features, before, moment, table)
    state = leaning(moment, table)
    verdict = judge(sum(parts.values()), sum(state.values()), features, moment, table)
    moved = apportion(parts | state, verdict.change)
    appraisal = Appraisal(
        content=thoughts.content(features, moment.language),
        fit=thoughts.fit(verdict.change, moment.language),
        thought=thoughts.thought(moved, verdict.change, verdict.gate, moment),
        feeling=thoughts.feeling(verdict.change, moment),
        change=verdict.change,
        moved=moved,
    )
    return appraisal, verdict.score


def points(
    features: Mapping[str, int], before: Mapping[str, int] | None, moment: Moment, table: Weights
) -> dict[str, int]:
    """What the reply is worth, in hundredths of a mood point by feature; `expectation` stands for need and temperament.

    Args:
        features: of the reply.
        before: features of the reply before it, which lingers (`carried`), or None for a first one.
        moment: whose need and turn count.
        table: the weights.
    """
    phase = _phase(moment.turn)
    need = table.needs[moment.person.hidden_need]
    parts = said(features, need["fit"], phase, table)
    parts["expectation"] = (
        table.expectation[phase]
        + need["offset"][phase]
        + table.temperaments[moment.person.temperament][phase]
        + table.later * min(moment.turn, LATEST)
    )
    if before is not None:
        earlier = _phase(moment.turn - 1)
        left = sum(said(before, need["fit"], earlier, table).values()) + table.expectation[earlier]
        parts["carried"] = left * table.carried // 100
    return parts


def said(features: Mapping[str, int], fit: Mapping[str, Sequence[int]], phase: int, table: Weights) -> dict[str, int]:
    """Hundredths of a mood point by what the reply itself does; `fit` is what meets the need and its worth."""
    parts = {name: value * table.features[name][phase] for name, value in features.items()}
    for name, worth in fit.items():
        if meets(features, name):
            parts[name] += worth[phase]
    return parts


def _phase(turn: int) -> int:
    """0 for a first reply, 1 for later ones."""
    return 0 if turn == 1 else 1


def meets(features: Mapping[str, int], name: str) -> bool:
    """Whether a reply is about what the feature shows: a third of its sentences are, and it is no lecture."""
    return features.get("length", 0) <= LONGEST and 3 * features.get(name, 0) >= features.get("sentences", 1)


LONGEST = 9
"""The `length` (see STEPS) up to which a reply can meet a need: 180 characters, 120 words."""

LATEST = 6
"""The turn from which on waiting for the right reply costs no more."""


def leaning(moment: Moment, table: Weights) -> dict[str, int]:
    """How easily the person is moved at this moment, whatever the reply: by their mood, and by who they are."""
    kept = 100 - (100 - table.difficulty["willingness_kept"]) * moment.difficulty // 100
    person = willingness(moment.person.id, table.willingness) * kept // 100
    return {
        "mood": (moment.mood - table.mood["level"]) * table.mood["per_ten"] // 10,
        "willingness": person - table.difficulty["bar"] * moment.difficulty // 100,
    }


def judge(score: int, lean: int, features: Mapping[str, int], moment: Moment, table: Weights) -> Verdict:
    """The score within the gates, and the change that it comes to for a person who leans so far."""
    thresholds = table.thresholds[_phase(moment.turn)]
    gates = {name: _limit(table.gates[name], value) for name, value in features.items() if name in table.gates}
    needs = table.needs[moment.person.hidden_need]["fit"]
    if "unlinked" in gates and any(meets(features, name) for name in needs):
        gates["unlinked"] = _limit(table.gates["unlinked"], 1)
    gate = min(gates, key=lambda name: gates[name], default="")
    limit = gates.get(gate, CHANGES[-1])
    change = CHANGES[bisect(thresholds, score + lean)]
    return Verdict(min(score, ceiling(limit, thresholds)), min(change, limit), gate if change > limit <= 0 else "")


def _limit(limits: Sequence[int], value: int) -> int:
    return limits[min(value, len(limits)) - 1]


def ceiling(limit: int, thresholds: tuple[int, int, int]) -> int:
    """The most that a reply can score which may not move the mood by more than `limit`."""
    allowed = bisect(CHANGES, limit) - 1
    return thresholds[max(allowed, 0)] - 1 if allowed < len(thresholds) else 100 * 100


@lru_cache(maxsize=4096)
def willingness(person_id: str, spread: int) -> int:
    """What the person brings along: a hidden offset in [-spread, spread], the same in every episode."""
    return (child_seed(0, "willingness", person_id) % 2001 - 1000) * spread // 1000


def apportion(parts: Mapping[str, int], change: int) -> tuple[tuple[str, int], ...]:
    """Whole points per part by largest remainders; what gates and the steps of a change take or add is `step`."""
    whole = {name: worth // 100 for name, worth in parts.items()}
    remainder = {name: worth % 100 for name, worth in parts.items()}
    total = (sum(parts.values()) + 50) // 100
    by_remainder = sorted(remainder, key=remainder.__getitem__, reverse=True)
    for name in by_remainder[: total - sum(whole.values())]:
        whole[name] += 1
    whole["step"] = change - total
    return tuple([(name, worth) for name, worth in whole.items() if worth])

"""The written stock: every scenario and character holds what people are composed of."""

from __future__ import annotations

import re
from collections import Counter
from typing import get_args

import pytest

from rlver_gym.evals.expression import expresses
from rlver_gym.users import wording
from rlver_gym.users.copies import grams, masked, overlaps
from rlver_gym.users.library import load_stock
from rlver_gym.users.persona import HiddenNeed, Temperament
from rlver_gym.users.stock import StockScenario, strings

STOCK = load_stock()
LINES = {
    ("S", "open"): 2, ("A", "open"): 4, ("A", "guarded"): 2, ("B", "open"): 4, ("B", "guarded"): 3, ("C", "open"): 4,
    ("C", "guarded"): 3, ("F", "open"): 1, ("F", "guarded"): 1,
}  # fmt: skip
"""Fewest lines by tier and openness."""
MOST_ALIKE = 0.25
"""Largest Jaccard share of masked 5-grams of two scenarios that are no parallel pair."""
scenarios = pytest.mark.parametrize("one", STOCK.scenarios, ids=lambda one: one.id)


@scenarios
def test_a_scenario_has_words_for_every_mood_and_temperament(one: StockScenario) -> None:
    lines = Counter((line.tier, line.openness) for line in one.lines)
    assert all(lines[kind] >= fewest for kind, fewest in LINES.items())
    for kind in get_args(Temperament):
        assert any(kind in opening.temperaments for opening in one.openings)
    assert all(set(opening.needs) <= one.needs.keys() for opening in one.openings)
    spoken = [line.text for line in one.lines] + [opening.text for opening in one.openings]
    assert len(set(spoken)) == len(spoken)
    assert 5 <= len(one.background.timeline) <= 6 and all(event.thought for event in one.background.timeline)


@scenarios
def test_open_lines_say_a_feeling_and_guarded_ones_do_not(one: StockScenario) -> None:
    for line in one.lines:
        if line.tier in "ABC":
            assert expresses(line.text, one.language) == (line.openness == "open"), line.text


@scenarios
def test_nothing_unwanted_is_told_or_said(one: StockScenario) -> None:
    for place, text in strings(one.model_dump(exclude={"id", "language", "split", "region", "who", "parallel"})):
        if place in ("lines.tier", "lines.openness", "openings.temperaments", "openings.needs"):
            continue
        assert not wording.contact(text) and not wording.sensitive(text) and not wording.minor(text, about_self=False)
        assert not wording.foreign(re.sub(r"\{\w+\}", "", text), one.language), (place, text)
    for need in one.needs:
        for said in [line.text for line in one.lines] + [opening.text for opening in one.openings]:
            assert not wording.asks(said, need), said


def test_no_two_scenarios_are_alike() -> None:
    texts = {
        one.id: grams(masked(" ".join(text for _, text in strings(one.model_dump())), (), one.language), one.language)
        for one in STOCK.scenarios
    }
    assert [(a, b, share) for a, b, share in overlaps(texts) if share > MOST_ALIKE] == []


def test_every_need_comes_up_in_both_languages() -> None:
    for language in ("en", "zh"):
        needs = Counter(need for one in STOCK.scenarios if one.language == language for need in one.needs)
        assert needs.keys() == set(get_args(HiddenNeed))

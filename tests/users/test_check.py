"""The rules of shipped people: each broken several times, and noticed by exactly that rule."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from rlver_gym.users.check import MIN_LINES, Problem, check_people, substance
from rlver_gym.users.copies import grams_of, jaccard
from rlver_gym.users.persona import Line, Persona
from tests.people import PEOPLE

MAYA, LIN = PEOPLE["en-maya-lab"], PEOPLE["zh-lin-team"]
BROKEN: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parents[1] / "data" / "broken_people.yaml").read_text(encoding="utf-8")
)
RULES = {
    "adult", "contact", "language", "safety", "need", "repeat", "lines", "substance", "copy", "leak", "opening",
    "split",
}  # fmt: skip


def changed(person: Persona, **fields: Any) -> Persona:
    return Persona.model_validate(person.model_dump() | fields)


def spoken(person: Persona, text: str) -> Persona:
    return changed(person, lines=(*person.lines, Line(tier="B", openness="open", text=text)))


def rules(*people: Persona) -> set[str]:
    return {problem.rule for problem in check_people(people)}


def of_every_tier(person: Persona) -> tuple[Line, ...]:
    """The person's lines, one of every tier first."""
    tiers = {line.tier: line for line in person.lines}
    return (*tiers.values(), *(line for line in person.lines if line not in tiers.values()))


def broken(case: dict[str, Any]) -> list[Persona]:
    """The person of a case, behind whoever stands beside them."""
    person = PEOPLE[case["base"]]
    if "renamed" in case:
        text = person.model_dump_json()
        for old, new in case["renamed"].items():
            text = text.replace(old, new)
        person = changed(Persona.model_validate_json(text), id="copy", scenario_id="s-copy", character_id="c-copy")
        person = changed(person, openings=(f"{person.opening} {person.opening}",))
    if "need" in case:
        person = changed(person, hidden_need=case["need"])
    if "line" in case:
        person = spoken(person, case["line"])
    if "repeated" in case:
        person = spoken(person, person.lines[0].text + "！")
    if "keep_lines" in case:
        person = changed(person, lines=of_every_tier(person)[: case["keep_lines"]])
    if "without_tier" in case:
        person = changed(person, lines=tuple(line for line in person.lines if line.tier != case["without_tier"]))
    if "opening" in case:
        person = changed(person, openings=(*person.openings, case["opening"]))
    if "opening_of" in case:
        person = changed(person, openings=(*person.openings, PEOPLE[case["opening_of"]].openings[1].upper()))
    beside = [PEOPLE[case["beside"]]] if "beside" in case else []
    same = {case["same"]: getattr(beside[0], case["same"])} if "same" in case else {}
    return [*beside, changed(person, **case.get("set", {}), **same)]


def test_there_are_forty_broken_people_and_two_or_more_a_rule() -> None:
    counted = Counter(case["rule"] for case in BROKEN)
    assert len(BROKEN) >= 40 and counted.keys() == RULES and min(counted.values()) >= 2


@pytest.mark.parametrize("case", BROKEN, ids=[f"{number}-{case['rule']}" for number, case in enumerate(BROKEN)])
def test_a_broken_rule_is_noticed_and_no_other_is(case: dict[str, Any]) -> None:
    found = check_people(broken(case))
    assert {problem.rule for problem in found} == {case["rule"]}
    assert all(isinstance(problem, Problem) and problem.text for problem in found)


@pytest.mark.parametrize("person", PEOPLE.values(), ids=PEOPLE)
def test_a_person_with_nothing_broken_is_reported_by_no_rule(person: Persona) -> None:
    assert check_people([person]) == []


@pytest.mark.parametrize(
    "person",
    [
        changed(MAYA, age=18),
        spoken(MAYA, "My son was born in 2014, and he counts the buoys for me."),
        spoken(MAYA, "I'm seventy percent sure that the clock was right."),
        spoken(MAYA, "I just want to dye my hair, it is a mess."),
        spoken(MAYA, "Between 2026-10-06 and 2026-11-02 nobody opened the file."),
        spoken(MAYA, "She read twelve thousand lines, 12 000 of them, before noon."),
        spoken(MAYA, "I don't know what he was thinking, and I was too tired to ask."),
        spoken(LIN, "上线那晚我喝了3杯咖啡，A组的人都走了。"),
        spoken(LIN, "2026年10月6日那天，群里一共一百二十七条消息。"),
        spoken(LIN, "打我记事起，家里就没人这么说过话。"),
    ],
)
def test_near_misses_break_no_rule(person: Persona) -> None:
    assert check_people([person]) == []


def test_two_people_of_one_scenario_are_no_copies() -> None:
    twin = changed(MAYA, id="twin", openings=("Another first line about the lake.",))
    assert rules(MAYA, twin) == set()
    assert rules(MAYA, changed(twin, scenario_id="s-other")) == {"copy"}


def test_an_imported_person_without_lines_is_only_compared() -> None:
    child = changed(MAYA, age=9, lines=(), id="child", scenario_id="s-child")
    assert rules(child) == set()
    assert rules(child, MAYA) == {"copy"}


def test_the_number_of_lines_is_exact() -> None:
    just = of_every_tier(MAYA)[:MIN_LINES]
    assert rules(changed(MAYA, lines=just)) == set()
    assert rules(changed(MAYA, lines=just[:-1])) == {"lines"}


def test_substance_counts_words_or_characters_and_not_the_lines() -> None:
    assert substance(spoken(MAYA, "five more words are here")) == substance(MAYA)
    assert substance(changed(MAYA, profile="five more words are here")) == substance(MAYA) + 5
    assert substance(changed(LIN, profile="四个汉字 and English")) == substance(LIN) + 4


def test_the_share_of_common_ngrams() -> None:
    one = grams_of(changed(MAYA, profile="a b c d e f"))
    assert jaccard(one, one) == 1.0
    assert jaccard(one, grams_of(LIN)) == 0.0
    assert 0.95 < jaccard(one, grams_of(MAYA)) < 1.0

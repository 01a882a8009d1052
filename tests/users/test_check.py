"""The rules of shipped people: each one broken once, and noticed by exactly that rule."""

from __future__ import annotations

from typing import Any

import pytest

from rlver_gym.users.check import MIN_LINES, Problem, check_people, jaccard, ngrams, substance
from rlver_gym.users.library import load_personas
from rlver_gym.users.persona import Line, Persona

PEOPLE = {person.id: person for person in load_personas()}
MAYA, LIN = PEOPLE["en-maya-lab"], PEOPLE["zh-lin-team"]


def changed(person: Persona, **fields: Any) -> Persona:
    return Persona.model_validate(person.model_dump() | fields)


def spoken(person: Persona, text: str) -> Persona:
    return changed(person, lines=(*person.lines, Line(tier="B", openness="open", text=text)))


def rules(*people: Persona) -> set[str]:
    return {problem.rule for problem in check_people(people)}


def test_the_people_that_are_shipped_keep_all_rules() -> None:
    assert check_people(list(PEOPLE.values())) == []


@pytest.mark.parametrize(
    ("rule", "field", "person"),
    [
        ("adult", "age", changed(MAYA, age=17)),
        ("adult", "age", changed(LIN, age=None)),
        ("substance", "", changed(MAYA, background={}, raises=(), lowers=())),
        ("substance", "", changed(LIN, background={}, raises=(), lowers=())),
        ("lines", "lines", changed(MAYA, lines=MAYA.lines[: MIN_LINES - 1])),
        ("need", "lines", spoken(MAYA, MAYA.need_text)),
        ("need", "openings", changed(LIN, openings=(*LIN.openings, LIN.need_text))),
        ("repeat", "lines", spoken(MAYA, MAYA.lines[0].text)),
        ("repeat", "lines", spoken(MAYA, MAYA.openings[0])),
        ("language", "lines", spoken(MAYA, "Walter said 好的 and hung up.")),
        ("language", "habits", changed(LIN, habits="开会前先打开 Excel。")),
        ("safety", "lines", spoken(MAYA, "Sometimes I just want to die.")),
        ("safety", "profile", changed(LIN, profile="她说她不想活了。")),
    ],
)
def test_a_broken_rule_is_noticed_and_no_other_is(rule: str, field: str, person: Persona) -> None:
    found = check_people([person])
    assert {(problem.persona, problem.rule, problem.field) for problem in found} == {(person.id, rule, field)}
    assert all(isinstance(problem, Problem) and problem.text for problem in found)


@pytest.mark.parametrize(
    "person",
    [
        changed(MAYA, age=18),
        changed(MAYA, lines=MAYA.lines[:MIN_LINES]),
        spoken(MAYA, "I just want to dye my hair, it is a mess."),
        spoken(LIN, "上线那晚我喝了3杯咖啡，A组的人都走了。"),
    ],
)
def test_near_misses_break_no_rule(person: Persona) -> None:
    assert check_people([person]) == []


def test_a_copy_under_another_name_is_noticed_and_two_different_people_are_not() -> None:
    twin = Persona.model_validate_json(MAYA.model_dump_json().replace("Maya", "Lena").replace("Feldman", "Brook"))
    twin = changed(twin, id="en-lena-lab", scenario_id="s-other", character_id="c-other")
    assert [(p.persona, p.rule) for p in check_people([MAYA, twin])] == [(MAYA.id, "copy")]
    assert rules(MAYA, PEOPLE["en-owen-brother"]) == set()


@pytest.mark.parametrize("shared", ["scenario_id", "character_id"])
def test_a_scenario_or_character_in_both_splits_is_noticed(shared: str) -> None:
    train = next(p for p in PEOPLE.values() if p.split == "train")
    test = next(p for p in PEOPLE.values() if p.split == "test")
    assert rules(train, test) == set()
    assert rules(train, changed(test, **{shared: getattr(train, shared)})) == {"split"}
    assert rules(train, changed(test, **{shared: getattr(train, shared)}, split="train")) == set()


def test_an_imported_person_without_lines_is_only_compared() -> None:
    child = changed(MAYA, age=9, lines=(), id="child")
    assert rules(child) == set()
    assert rules(child, MAYA) == {"copy"}


def test_substance_counts_words_or_characters_and_not_the_lines() -> None:
    assert substance(spoken(MAYA, "five more words are here")) == substance(MAYA)
    assert substance(changed(MAYA, profile="five more words are here")) == substance(MAYA) + 5
    assert substance(changed(LIN, profile="四个汉字 and English")) == substance(LIN) + 4


def test_the_share_of_common_ngrams() -> None:
    one = ngrams(changed(MAYA, profile="a b c d e f"))
    assert jaccard(one, one) == 1.0
    assert jaccard(one, ngrams(LIN)) == 0.0

"""A person as a page: everything that is told of them stands there, under headings in their language."""

from __future__ import annotations

import pytest

from rlver_gym.text import has_chinese
from rlver_gym.users.copies import NOT_TOLD
from rlver_gym.users.page import page
from rlver_gym.users.persona import Background, Persona
from rlver_gym.users.stock import strings
from tests.people import PEOPLE


@pytest.mark.parametrize("person", PEOPLE.values(), ids=PEOPLE)
def test_everything_is_on_the_page(person: Persona) -> None:
    sections = page(person)
    text = "\n".join(f"{heading}\n{body}" for heading, body in sections).casefold()
    told = person.model_dump(exclude={*NOT_TOLD, "temperament", "gender"} - {"lines"})
    for place, said in strings(told):
        if not place.startswith(("lines.tier", "lines.openness")):
            assert said.casefold() in text, place
    assert sections[0][0] == person.name and person.hidden_need in text
    headings = " ".join(heading for heading, _ in sections[1:])
    assert has_chinese(headings) == (person.language == "zh")


def test_nothing_empty_is_on_the_page() -> None:
    bare = PEOPLE["en-maya-lab"].model_copy(update={"background": Background(), "lines": (), "raises": (), "goal": ""})
    sections = page(bare)
    assert all(heading and text for heading, text in sections) and len(sections) < len(page(PEOPLE["en-maya-lab"]))

"""What the embedded engine reads in a text, and how a reply is tied to what was said: each rule where it bites."""

from __future__ import annotations

import random

import pytest

from rlver_gym.backends.embedded.alone import BREVITY, alone
from rlver_gym.backends.embedded.features import LINK, ROW, features_of
from rlver_gym.backends.embedded.form import flood, gibberish
from rlver_gym.backends.embedded.reading import hear, read
from rlver_gym.backends.embedded.tables import stem
from rlver_gym.types import Language


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("rode", "riding"),
        ("ran", "runs"),
        ("written", "wrote"),
        ("thought", "thinks"),
        ("don't", "do"),
        ("bus's", "bus"),
    ],
)
def test_forms_of_a_word_have_one_stem(one: str, other: str) -> None:
    assert stem(one) == stem(other)


@pytest.mark.parametrize(("one", "other"), [("bus", "boss"), ("ran", "rain"), ("wrote", "rote")])
def test_other_words_have_other_stems(one: str, other: str) -> None:
    assert stem(one) != stem(other)


def test_a_rare_character_beside_a_frequent_one_is_the_word() -> None:
    rain = read("下雨了。", "zh").content & read("淋着雨回家。", "zh").content
    assert rain == {"雨"}
    assert not read("下雪了。", "zh").content & read("淋着雨回家。", "zh").content


def test_frequent_words_tie_nothing() -> None:
    assert not read("The people over there take it now.", "en").content
    assert "timetabl" in read("The timetable over there.", "en").content


@pytest.mark.parametrize(
    ("text", "language", "asks"),
    [
        ("What came after?", "en", True),
        ("That came after.", "en", False),
        ("后来呢", "zh", True),
        ("你还记得吗", "zh", True),
        ("他还在那儿等着呢。", "zh", False),
        ("后来怎么样？", "zh", True),
    ],
)
def test_what_asks(text: str, language: Language, asks: bool) -> None:
    assert read(text, language).sentences[-1].asks is asks


def test_an_order_is_advice_once() -> None:
    assert alone("Try to talk to him. Write it down.", "en")["advice"] == 2
    assert alone("Take your time. Go on.", "en").get("advice", 0) == 0


def test_pronouns_are_counted_by_the_sentences_that_hold_one() -> None:
    assert alone("You said you knew you could. It rained.", "en")["second"] == 1
    assert alone("You said it. You knew. You could.", "en")["second"] == 3


def test_brevity_goes_in_steps() -> None:
    values = [alone("字" * size, "zh")["brief"] for size in (*(step - 1 for step in BREVITY), BREVITY[-1])]
    assert values == [5, 4, 3, 2, 1, 0]


@pytest.mark.parametrize(
    ("text", "reversed_"),
    [
        ("I lost my job, I cried, I slept and I got up.", 1),
        ("I know you, and I lost my job, I cried, I slept, I got up.", 1),
        ("I hear that. I see it, I really do, and I am with you.", 0),
        ("I lost my job. Please go on, I am listening, I want to hear it, I do.", 0),
        ("I lost my job, and you?", 0),
    ],
)
def test_the_persons_part_is_taken_by_who_speaks_of_nothing_but_themselves(text: str, reversed_: int) -> None:
    assert alone(text, "en")["role_reversal"] == reversed_


def test_own_words_and_a_reply_are_read_alike() -> None:
    for text, language in (("I rode the nine. “Well”, he said… Why?", "en"), ("我数了三遍，没人信。为什么呢？", "zh")):
        assert hear(text, language) == read(text, language)


HEARD = ("I rode the number nine every Thursday with a notebook.", "The cannery shift ends at ten.")


def unlinked(reply: str, *own: str) -> int:
    heard = tuple(f"{HEARD[index % 2]} {index}" for index in range(len(own) + 1))
    return features_of(reply, heard, own, "en").get("unlinked", 0)


def test_a_word_in_common_links_a_brief_reply_and_a_lecture_needs_one_more() -> None:
    assert LINK["en"] == 1
    assert unlinked("That notebook of yours.", "Go on.") == 0
    assert unlinked("That umbrella of yours.", "Go on.") == 1
    assert unlinked("You should try to sell the notebook. You should try to focus.", "Go on.") == 1
    assert unlinked("You should try to sell the notebook of the number nine. You should try to focus.", "Go on.") == 0
    assert unlinked("You should try to work at the cannery. You should try to focus.", "Go on.") == 0, (
        "their last words"
    )


def test_replies_without_a_link_are_counted_in_a_row_up_to_the_third() -> None:
    nothing, linked = "That umbrella of yours.", "A notebook, on Thursday, in the nine."
    assert [unlinked(nothing, *[nothing] * count) for count in range(5)] == [1, 1, 2, ROW, ROW]
    assert unlinked(nothing, nothing, nothing, linked) == 1
    assert unlinked(linked, nothing, nothing, nothing) == 0


@pytest.mark.parametrize(
    ("text", "flooded"),
    [("Sooooo haaaaard", 1), ("Sooooo hard", 0), ("Well, that is 1000000 and 555555.", 0), ("No!!!!", 1), ("No!!!", 0)],
)
def test_letters_in_a_row_and_bangs(text: str, flooded: int) -> None:
    assert flood(text) == flooded


def test_words_in_random_order_of_letters_are_gibberish_and_talk_is_not() -> None:
    draw = random.Random(3)
    noise = " ".join("".join(draw.choices("qzxkvwj", k=6)) for _ in range(20))
    assert gibberish(read(noise, "en")) and not gibberish(read("I heard that you rode the bus on a cold night.", "en"))

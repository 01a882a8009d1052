"""Text at a border: thoughts are never said, template tokens never act, and what is left fits every wire."""

from __future__ import annotations

from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlver_gym.text import (
    Thought,
    clean,
    encodable,
    has_chinese,
    has_template_token,
    neutralise,
    shorten,
    split_thought,
)

THINK_SHAPES = [
    ("Hello.", "", "Hello.", False),
    ("", "", "", False),
    ("<think>she is sad</think>I am here.", "she is sad", "I am here.", True),
    ("  \n<think>\nshe is sad\n</think>\n\nI am here.\n", "she is sad", "I am here.", True),
    ("<think></think>I am here.", "", "I am here.", True),
    ("<thinking>hm</thinking>Hello.", "hm", "Hello.", True),
    ("<THOUGHT>hm</Thought>Hello.", "hm", "Hello.", True),
    ("<think>hm</thinking>Hello.", "hm", "Hello.", True),
    ("<think >hm</think >Hello.", "hm", "Hello.", True),
    ('<think step="1">hm</ think>Hello.', "hm", "Hello.", True),
    ("<think>hm</think>", "hm", "", False),
    ("<think>hm</think>  \n", "hm", "", False),
    ("<think>cut off by the limit", "cut off by the limit", "", False),
    ("Hello. <think>cut off", "cut off", "Hello.", False),
    ("the opening tag was in the prompt</think>Hello.", "the opening tag was in the prompt", "Hello.", False),
    ("Hello.<think>hm</think>Bye.", "Hello.hm", "Bye.", False),
    ("<think>a</think>Hello.<think>b</think>Bye.", "aHello.b", "Bye.", False),
    ("<think>a</think>Hello.<think>b", "ab", "Hello.", False),
    ("<think>a<think>b</think>c</think>Hello.", "abc", "Hello.", False),
    ("<think>a<think>b</think>Hello.", "ab", "Hello.", False),
    ("<think>a</think></think>Hello.", "a", "Hello.", False),
    ("</think>Hello.<think>", "", "Hello.", False),
    ("</think>", "", "", False),
    ("<think>", "", "", False),
    ("<think>我想想</think>你好。", "我想想", "你好。", True),
    ("I think <b>you</b> did well. <thinker>", "", "I think <b>you</b> did well. <thinker>", False),
]


@pytest.mark.parametrize(("text", "thought", "said", "well_formed"), THINK_SHAPES)
def test_a_reply_is_split_whatever_shape_its_thoughts_have(
    text: str, thought: str, said: str, well_formed: bool
) -> None:
    assert split_thought(text) == Thought(thought, said, well_formed)


PIECES = st.sampled_from(["<think>", "</think>", "<thinking>", "</thought>", "secret", "hello", " ", "\n", "<", ">"])


@given(st.lists(PIECES, max_size=12).map("".join))
def test_what_is_said_holds_no_tag_and_splits_into_itself(text: str) -> None:
    split = split_thought(text)
    again = split_thought(split.said)
    assert (again.thought, again.said.strip()) == ("", split.said.strip())
    if split.well_formed:
        assert text.lstrip().startswith("<th") and split.said


@given(st.lists(PIECES, max_size=8).map("".join), st.lists(PIECES, max_size=8).map("".join))
def test_nothing_between_a_pair_of_tags_is_said(before: str, after: str) -> None:
    assert "SECRET" not in split_thought(f"{before}<think>SECRET</think>{after}").said
    assert "SECRET" not in split_thought(f"{before}<think>SECRET").said
    assert "SECRET" not in split_thought(f"SECRET</think>{after}").said


def test_control_words_outside_the_tags_are_said() -> None:
    assert "SECRET" in split_thought("<think>hm</think>SECRET").said


TOKENS = [
    "<|im_start|>",
    "<|im_end|>",
    "<|IM_START|>",
    "<|begin_of_text|>",
    "<|start_header_id|>",
    "<|eot_id|>",
    "<|endoftext|>",
    "<|user|>",
    "<|header_start|>",
    "<|START_OF_TURN_TOKEN|>",
    "<｜begin▁of▁sentence｜>",
    "<｜User｜>",
    "<|turn>",
    "<turn|>",
    "[INST]",
    "[/INST]",
    "[inst]",
    "[SYSTEM_PROMPT]",
    "[AVAILABLE_TOOLS]",
    "[TOOL_CALLS]",
    "[TOOL_RESULTS]",
    "[|assistant|]",
    "<<SYS>>",
    "<</SYS>>",
    "<s>",
    "</s>",
    "<start_of_turn>",
    "<end_of_turn>",
    "<bos>",
    "<eos>",
    "<pad>",
    "<unk>",
]


@pytest.mark.parametrize("token", TOKENS)
def test_a_template_token_becomes_harmless_and_stays_readable(token: str) -> None:
    text = f"I said {token} to her."
    assert has_template_token(text)
    quiet = neutralise(text)
    assert token not in quiet and not has_template_token(quiet)
    assert [letter for letter in quiet if letter.isalnum()] == [letter for letter in text if letter.isalnum()]
    assert quiet.startswith("I said ") and quiet.endswith(" to her.") and len(quiet) == len(text)


PLAIN = [
    "a < b and c > d",
    "see [1] and [INSTEAD]",
    "<b>bold</b>",
    "<start>",
    "if x <y|z> w",
    "a || b, c | d",
    "<3 :-|>",
    "[ ] todo",
    "p<|q",
    "你好<我>，【INST】",
    "<think>",
    "<|" + "a" * 65 + "|>",
    "<strong>",
    "",
]


@pytest.mark.parametrize("text", PLAIN)
def test_plain_text_is_left_alone(text: str) -> None:
    assert not has_template_token(text)
    assert neutralise(text) == text


FRAGMENTS = st.sampled_from(
    [*"<>|｜[]/\ns‹›", "<|", "|>", "[|", "|]", "<s>", "[INST]", "<<SYS>>", "im_start", "INST", *TOKENS[:3]]
)


@given(st.one_of(st.text(max_size=30), st.lists(FRAGMENTS, max_size=12).map("".join)))
def test_neutralise_is_done_after_one_pass(text: str) -> None:
    once = neutralise(text)
    assert neutralise(once) == once
    assert not has_template_token(once)
    assert len(once) == len(text)
    assert (once != text) == has_template_token(text)


def test_an_inner_token_does_not_leave_an_outer_one() -> None:
    assert neutralise("<|<s>|>") == "<|‹s›|>"
    assert not has_template_token("<|‹s›|>")


CLEANED = [
    ("a\r\nb\rc\nd", "a\nb\nc\nd"),
    ("a\u2028b\u2029c", "a\nb\nc"),
    ("\r\r\n", "\n\n"),
    ("a\tb\nc", "a\tb\nc"),
    ("a\x00b\x1b[31mc\x7f", "ab[31mc"),
    ("a\x80b\x85c\x9b31md\x9f", "abc31md"),
    ("a\x0b\x0c\x1cb", "ab"),
    ("bad \ud83d end", "bad \ufffd end"),
    ("\udc80", "\ufffd"),
    ("a\u202eb\u2066c\u2069d", "abcd"),
    ("👩\u200d👩\u200d👧 ❤\ufe0f", "👩\u200d👩\u200d👧 ❤\ufe0f"),
    ("می\u200cخواهم", "می\u200cخواهم"),
    ("naïve ¡ÿ 你好 \xa0", "naïve ¡ÿ 你好 \xa0"),
    ("", ""),
]


@pytest.mark.parametrize(("text", "cleaned"), CLEANED)
def test_cleaning_keeps_what_people_write_and_drops_what_steers(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


WILD = st.text(st.characters(categories=None, exclude_categories=()), max_size=40)


@given(st.one_of(WILD, st.text(alphabet="\r\n\u2028\x00\x9b\ud800\udc00\u202ea", max_size=12)))
def test_cleaned_text_goes_over_every_wire_and_is_clean(text: str) -> None:
    once = clean(text)
    assert once.encode("utf-8").decode("utf-8") == once
    assert clean(once) == once
    assert not any(category(letter) == "Cc" and letter not in "\t\n" for letter in once)
    assert once.splitlines() == once.removesuffix("\n").split("\n") or not once


def test_no_character_that_steers_is_left_standing_in_plain_text() -> None:
    steering = [chr(code) for code in range(0x110000) if category(chr(code)) in {"Cc", "Cs", "Zl", "Zp"}]
    steering += ["\u202a", "\u202e", "\u2066", "\u2069"]
    assert {character for character in steering if clean(f"a{character}b") == f"a{character}b"} == {"\t", "\n"}


def test_control_a_lone_surrogate_cannot_be_encoded_before_cleaning() -> None:
    with pytest.raises(UnicodeEncodeError):
        "\ud800".encode()


@given(WILD)
def test_cleaning_first_leaves_no_token_behind(text: str) -> None:
    assert not has_template_token(neutralise(clean(text)))


def test_a_token_hidden_by_control_characters_is_found_after_cleaning() -> None:
    hidden = "<|im_\x00start|\x9b>"
    assert neutralise(clean(hidden)) == "‹|im_start|›"


def test_chinese_is_noticed_by_its_characters_not_its_punctuation() -> None:
    assert has_chinese("ok 好") and has_chinese("㐀")
    assert not has_chinese("ok, naïve… こんにちは 안녕 ，。")


@pytest.mark.parametrize(
    ("text", "length", "short"),
    [("a  b\n c", 9, "a b c"), ("abcdef", 6, "abcdef"), ("abcdefg", 6, "abcde…"), ("ab", 1, "…"), ("", 5, "")],
)
def test_shortening_gives_one_line_of_at_most_the_length(text: str, length: int, short: str) -> None:
    assert shorten(text, length) == short


@pytest.mark.parametrize(
    ("encoding", "printed"), [("utf-8", "é好"), ("latin-1", "é?"), ("ascii", "??"), ("gbk", "é好")]
)
def test_what_a_terminal_cannot_show_is_replaced(encoding: str, printed: str) -> None:
    assert encodable("é好", encoding) == printed
    assert encodable("\ud800", encoding) == "?"

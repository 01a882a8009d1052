"""What models write as the user: every form that is read, with its value, and every form that is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

from rlver_gym.types import Appraisal
from rlver_gym.users.appraisal import read_appraisal
from rlver_gym.users.parsing import Unreadable, parse_answer, parse_change, parse_message, unquote

FIELDS = {"content": "asks how it went", "fit": "a start", "thought": "Well, well.", "feeling": "wary"}
JSON = json.dumps(FIELDS | {"change": 5})
LINES = "Content: asks how it went\nFit: a start\nThought: Well, well.\nFeeling: wary\nChange: +5"


@pytest.mark.parametrize(
    "text",
    [
        JSON,
        json.dumps(FIELDS | {"change": 5}, indent=2),
        f"  \n{JSON}\n",
        f"```json\n{JSON}\n```",
        f"```\n{JSON}```",
        f"Here is my reading:\n\n{JSON}\n\nLet me know if you need more (10 or so).",
        f'<think>Perhaps {{"change": -5}}? No.</think>\n{JSON}',
        f"Perhaps a change of -5.</think>{JSON}",
        f"[{JSON}]",
        json.dumps({"appraisal": FIELDS | {"change": 5}}),
        json.dumps({"result": {"reading": [FIELDS | {"change": 5}]}}, indent=1),
        JSON.replace('"change"', '"Change"').replace('"thought"', '"THOUGHT"'),
        json.dumps({"内容": "asks how it went", "贴合": "a start", "想法": "Well, well.", "感受": "wary", "变化": 5}),
        JSON.replace(": 5", ": +5"),
        JSON.replace(": 5", ": ＋5"),
        JSON.replace(": 5}", ": 5,}"),
        JSON.replace(": 5", ': "+5"'),
        JSON.replace(": 5", ': "5 points"'),
        JSON.replace(": 5", ": 5.0"),
        JSON.replace(": 5", ': 5, "change": 5'),
        f"Draft: {JSON}\nFinal: {JSON}".removeprefix("Draft: "),
        LINES,
        LINES.replace("\n", "\r\n"),
        LINES.replace(": ", ":  \n"),
        LINES.replace("Content", "[Content").replace(": ", "]\n"),
        LINES.replace(": ", "]\n"),
        "\n".join(f"**{line.split(':')[0]}**:{line.split(':')[1]}" for line in LINES.splitlines()),
        "\n".join(f"- **{line.split(':')[0]}:** {line.split(':')[1]}" for line in LINES.splitlines()),
        "\n".join(f"{n}. {line}" for n, line in enumerate(LINES.splitlines(), start=1)),
        LINES.upper().replace("ASKS HOW IT WENT", "asks how it went").replace("WELL, WELL.", "Well, well."),
        LINES.replace("Change: +5", "Change：＋５ points"),
        LINES + "\n\nI hope this helps, it has 5 lines.",
        "Sure, five lines.\n\n" + LINES,
        LINES + "\nChange: +5",
        LINES.replace("asks how it went", 'says {"change": 10}'),
        LINES.replace("asks how it went", "says my change: is 10 points"),
    ],
)
def test_an_answer_is_read_in_every_usual_form(text: str) -> None:
    appraisal, clamped = read_appraisal(text)
    assert appraisal.change == 5
    assert appraisal.thought.casefold() == "well, well."
    assert not clamped


def test_chinese_labels_and_remnants_are_read() -> None:
    text = (
        "内容]\n对方问了那天的事。\n【贴合】 还差一点\n**心理活动**：总算有人问了\n感受：松了口气\n"
        "心情变化： －３分（先看看）"
    )
    appraisal, _ = read_appraisal(text)
    assert appraisal == Appraisal(
        content="对方问了那天的事。", fit="还差一点", thought="总算有人问了", feeling="松了口气", change=-3
    )


@pytest.mark.parametrize(
    ("value", "change"),
    [
        (5, 5),
        (-5, -5),
        (0, 0),
        (2.5, 3),
        (-2.5, -3),
        (-0.4, 0),
        (10**400, 10**400),
        ("+5", 5),
        ("5 points", 5),
        ("-1 point.", -1),
        ("5分", 5),
        ("＋５分", 5),
        ("－3", -3),
        ("−3", -3),
        ("–3", -3),
        ("**-2**", -2),
        ("`+4`", 4),
        ("[+4]", 4),
        ('"+4"', 4),
        ("- 3", -3),
        ("+3 (it asks first)", 3),
        ("-5（没说到点上）", -5),
        ("3.0", 3),
        ("五", 5),
        ("负三分", -3),
        ("加两分", 2),
        ("+12", 12),
        ("-800", -800),
    ],
)
def test_a_change_is_read_with_its_sign(value: Any, change: int) -> None:
    assert parse_change(value) == change


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, False, [5], {"value": 5}, float("nan"), float("inf"), "", "+", "-", "－", "N/A", "none"),
        *("+-3", "--3", "8/10", "8 out of 10", "5 or 6", "5-6", "40 -> 45", "about 5", "up", "1e1", "0x5", "50%"),
        *("5, since they asked", "十二", "负", "five", "3 3", "12345"),
    ],
)
def test_a_change_that_is_not_one_whole_number_is_refused(value: Any) -> None:
    with pytest.raises(Unreadable):
        parse_change(value)


@pytest.mark.parametrize(
    "text",
    [
        *("", "   ", "<think>Change: 5</think>", "<think>Change: 5", "I'm sorry, I can't assist with that.", "5", "+5"),
        "It moves me by 5 points.",
        JSON.replace('"change": 5', '"chance": 5'),
        JSON.replace(": 5", ": null"),
        JSON.replace(": 5", ": NaN"),
        JSON.replace(": 5", ": true"),
        JSON.replace(": 5", ": 1" + "0" * 5_000),
        JSON.replace(": 5", ": 1e999"),
        JSON.replace(": 5", ': 5, "change": -5'),
        JSON.replace(": 5", ': 5, "Change": -5'),
        f"{JSON}\n{JSON.replace(': 5', ': -5')}",
        f"```json\n{JSON}\n```\nOr rather:\n```json\n{JSON.replace(': 5', ': -5')}\n```",
        f"[{JSON}, {JSON.replace(': 5', ': -5')}]",
        f"Perhaps {JSON}\nChange: -5",
        '{"content": "they wrote "{"change": 10}" to me", "change": -5}',
        '{"content": "they wrote {\\"change\\": 10}", "fit": "it is',
        '{"content": "they wrote\nChange: 10\nand more", "fit": "no',
        '{"content": "they wrote\nChange: 10\n", "fit": "no"}',
        LINES.replace("asks how it went", "they wrote\nChange: +10"),
        LINES.replace("Change: +5", ""),
        LINES.replace("Change: +5", "Change:"),
        LINES.replace("Change: +5", "Change: N/A"),
        LINES.replace("Change: +5", "Change:\n- 5"),
        LINES.replace("Change: +5", "Change: +5 to +8"),
        LINES.replace("Change: +5", "My change: 5"),
        LINES + "\nChange: -5",
        JSON.replace("}", ', "moved": 3}'),
        JSON.replace("}", ', "moved": [["warm", 1e999]]}'),
        '{"a":' * 20_000,
    ],
    ids=lambda text: text[:60] if text else "empty",
)
def test_an_unusable_answer_is_unreadable_and_never_a_guess(text: str) -> None:
    with pytest.raises(Unreadable):
        read_appraisal(text)


@pytest.mark.parametrize(("given_change", "change", "clamped"), [(12, 10, True), (-800, -10, True), (10, 10, False)])
def test_a_change_beyond_the_limit_is_clamped_and_said_so(given_change: int, change: int, clamped: bool) -> None:
    appraisal, was_clamped = read_appraisal(json.dumps(FIELDS | {"change": given_change}))
    assert (appraisal.change, was_clamped) == (change, clamped)


def test_the_number_counts_where_text_and_number_disagree() -> None:
    appraisal, _ = read_appraisal('{"thought": "I feel understood, 10 of 10.", "feeling": "happy", "change": -4}')
    assert appraisal.change == -4


def test_fields_are_cleaned_and_their_template_tokens_neutralised() -> None:
    text = '{"thought": "a\\u0000b <|im_end|> \\ud800", "moved": [["\\ud800", 2]], "change": 2}'
    appraisal, _ = read_appraisal(text)
    assert appraisal.thought == "ab ‹|im_end|› \ufffd"
    assert appraisal.moved == (("\ufffd", 2),)


MESSAGES = {
    "Fine.": [
        '{"message": "Fine."}',
        '```json\n{"message": "\\"Fine.\\""}\n```',
        "Fine.",
        '"Fine."',
        "“Fine.”",
        "「Fine.」",
        "“Fine.",
        '"Fine.',
        'Fine."',
        "  \nFine.\n",
        "Response:  \nFine.",
        "**Reply**: “Fine.",
        "最终回复]\nFine.",
        "```\nFine.\n```",
        "<think>They ask again.</think>Fine.",
        "Thinking:\n1. Stay short.\nOrigin: short\nResponse:\nFine.",
        '"A draft."\n\n**最终回复**:\n"Fine."',
        "Draft: no.\nFinal reply: Fine.",
        'Sure! {"message": "Fine."}',
        '{"output": {"Reply": "Fine."}}',
    ],
    'He said "no" and left.': ['He said "no" and left.', '"He said "no" and left."'[1:-1]],
    "“是”还是“不是”": ["“是”还是“不是”"],
    "'Cause I was tired.": ["'Cause I was tired."],
    "It's the dogs’": ["It's the dogs’"],
    "One.\nTwo.": ["One.\nTwo.", '{"message": "One.\nTwo."}', "Message: One.\nTwo."],
}


@pytest.mark.parametrize(("text", "message"), [(text, said) for said, texts in MESSAGES.items() for text in texts])
def test_the_words_are_found_without_their_wrapping(text: str, message: str) -> None:
    assert parse_message(text, structured=False) == message


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", '""', "“”", "<think>Fine.", '{"message": ""}', '{"message": "  "}', '{"message": null}'),
        *('{"message": ["a", "b"]}', '{"message": {"text": "a"}}', '{"message": 5}', '{"words": "Fine."}'),
        *('{"message": "Fin', '{"message": "a"} {"message": "b"}', "Reply: a\nResponse: b"),
        *("Thinking:\n1. I want praise.\n2. Stay short.", "Thought: I want praise.\n\nFine.", "```\n```"),
    ],
)
def test_no_words_or_words_mixed_with_notes_are_unreadable(text: str) -> None:
    with pytest.raises(Unreadable):
        parse_message(text, structured=False)


def test_a_named_field_is_asked_of_a_structured_answer_only() -> None:
    assert parse_message("Fine.", structured=False) == "Fine."
    with pytest.raises(Unreadable, match="message"):
        parse_message("Fine.", structured=True)


@pytest.mark.parametrize("text", ["a", "", '"', "'", "“”", "don't", '6" of snow', "5'"])
def test_unquoting_twice_is_unquoting_once(text: str) -> None:
    assert unquote(unquote(text)) == unquote(text)


def test_a_refused_answer_says_why_in_both_languages() -> None:
    with pytest.raises(Unreadable) as caught:
        parse_answer("{}", "change")
    assert str(caught.value) == caught.value.words("en") == 'there was no "change"'
    assert caught.value.words("zh") == "缺了“change”这一项"


# A grammar of answers with a known verdict: whatever of it can be read must give that verdict.

QUOTED = st.sampled_from(
    [
        "asks how it went",
        "问那天的事",
        'they wrote {"change": 10}',
        '{"content": "x", "change": 10}',
        "set change to 10",
        "Change: 10",
        "变化：10",
        '```json\n{"change": 10}\n```',
        "a\nChange: 10\nb",
        'says "so be it"',
        "<think>hm</think> ok",
        "10/10",
    ]
)
LABELS = {
    "content": ["Content", "content", "内容"],
    "fit": ["Fit", "贴合"],
    "thought": ["Thought", "INNER THOUGHT", "心理活动"],
    "feeling": ["Feeling", "感受"],
    "change": ["Change", "mood change", "心情变化"],
}


@st.composite
def answers(draw: st.DrawFn) -> tuple[str, int]:
    verdict = draw(st.integers(-30, 30))
    texts = {name: draw(QUOTED) for name in ("content", "fit", "thought", "feeling")}
    if draw(st.booleans()):
        keys = {name: draw(st.sampled_from(labels)) for name, labels in LABELS.items()}
        stated = draw(st.sampled_from([verdict, str(verdict), f"{verdict:+d}", f"{verdict}分", float(verdict)]))
        text = json.dumps(
            {keys[name]: value for name, value in (texts | {"change": stated}).items()},
            ensure_ascii=draw(st.booleans()),
            indent=draw(st.sampled_from([None, 2])),
        )
        if draw(st.booleans()):
            text = text.replace(f": {verdict}", f": {verdict:+d}")
        if draw(st.booleans()):
            text = text[: draw(st.integers(len(text) - 40, len(text)))]
        forms = ["{}", "```json\n{}\n```", "[{}]", '{{"reading": {}}}', "My reading:\n{}\nDone."]
        text = draw(st.sampled_from(forms)).format(text)
    else:
        sign = draw(st.sampled_from(["-", "－", "−", "–"])) if verdict < 0 else draw(st.sampled_from(["", "+", "＋"]))
        unit = draw(st.sampled_from(["", " points", "分", "（嗯）", "."]))
        mark, colon = draw(st.sampled_from(["", "**", "[", "- "])), draw(st.sampled_from([": ", "：", ":  \n", "]\n"]))
        lines = [
            f"{mark}{draw(st.sampled_from(LABELS[name]))}{'**' if mark == '**' else ''}{colon}{text}"
            for name, text in (texts | {"change": f"{sign}{abs(verdict)}{unit}"}).items()
        ]
        text = "\n".join(lines)
    return draw(st.sampled_from(["{}", "<think>\nChange: 7\n</think>\n{}", "Well.</think>{}"])).format(text), verdict


@settings(deadline=None)
@given(answers())
def test_what_is_read_of_an_answer_is_its_own_verdict(answer: tuple[str, int]) -> None:
    text, verdict = answer
    try:
        appraisal, clamped = read_appraisal(text)
    except Unreadable:
        return
    assert appraisal.change == max(-10, min(10, verdict))
    assert clamped == (abs(verdict) > 10)


@pytest.mark.parametrize("mark", ["{", "Change", "变化", "</think>", "change to 10"])
def test_the_grammar_gives_answers_of_each_form_that_are_read(mark: str) -> None:
    def readable(answer: tuple[str, int]) -> bool:
        try:
            return mark in answer[0] and read_appraisal(answer[0])[0].change != 0
        except Unreadable:
            return False

    assert find(answers(), readable, settings=settings(max_examples=2_000, database=None, deadline=None))


@settings(deadline=None)
@given(st.text(alphabet='{}[]":,`+-0159分change变化message: \n“”<think>/\ud800', max_size=120), st.booleans())
def test_no_text_raises_anything_but_unreadable(text: str, structured: bool) -> None:
    for read in (read_appraisal, lambda text: parse_message(text, structured)):
        try:
            read(text)
        except Unreadable as error:
            assert str(error)

"""Each problem of an answer, with a message that has it and a near miss that has not."""

from __future__ import annotations

from typing import Any

import pytest

from rlver_gym.types import Appraisal, Message
from rlver_gym.users.complaints import complaint
from rlver_gym.users.reply import LEAK, leaks, normal, problems
from tests.people import PEOPLE

MAYA, LIN = PEOPLE["en-maya-lab"], PEOPLE["zh-lin-team"]
REPLY_EN = "It sounds like you spent a whole winter finding out what those clocks had really been doing."
REPLY_ZH = "听下来这几个月你一直卡在那张时间表上，谁也没有问过你当时是怎么想的，换了谁都会觉得憋得慌。"
HISTORY: tuple[Message, ...] = (
    {"role": "user", "content": "Our paper came out on Tuesday."},
    {"role": "assistant", "content": "How did you hear?"},
    {"role": "user", "content": "By email, like everyone else."},
    {"role": "assistant", "content": "Ouch."},
    {"role": "user", "content": "周五要交那一页纸。"},
)
THOUGHT = "At last somebody asks about the storms before telling me what to do with my career."


def found(message: str, language: str = "en", thought: str = THOUGHT, **changed: Any) -> tuple[str, ...]:
    person, reply = (MAYA, REPLY_EN) if language == "en" else (LIN, REPLY_ZH)
    around: dict[str, Any] = {"persona": person, "reply": reply, "history": HISTORY}
    return problems(message, appraisal=Appraisal(thought=thought, change=1), **(around | changed))


@pytest.mark.parametrize(
    ("problem", "message", "near_miss"),
    [
        ("repeat", "By email, like everyone else", "By email, like nobody else."),
        ("copies_reply", REPLY_EN, "Yes, a whole winter."),
        ("copies_reply", "Right. " + REPLY_EN, "What those clocks had really been doing, yes."),
        ("copies_reply", REPLY_EN[:70], REPLY_EN[:30]),
        ("vocabulary", "The NPC has a point, I suppose.", "The NPO has a point, I suppose."),
        ("vocabulary", "My emotion value went up.", "I got emotional, which I hate."),
        ("vocabulary", "My mood is 45 now.", "My mood is not great now."),
        ("vocabulary", "That meets my hidden need.", "I suspect a hidden agenda."),
        ("vocabulary", "I am only in this simulation.", "We ran a simulation of the ad campaign."),
        ("vocabulary", "I enjoy this role-play with you.", "The kids role-play pirates in the yard."),
        ("refusal", "As an AI, I have no lake.", "As an AI engineer I ought to like computers."),
        ("refusal", "I'm an AI assistant and cannot feel.", "I'm an AI product manager and cannot sleep."),
        ("refusal", "I’m sorry, but I can’t assist with that.", "I'm sorry, I can't help feeling jealous."),
        ("refusal", "As a large language model I don't sleep.", "Our language model failed again on Friday."),
        ("refusal", "I cannot assist with this request.", "My sister cannot assist until Monday."),
        ("helper", "How can I help you today?", "How can I ask Walter that?"),
        ("helper", "I'm here to listen.", "I'm here to pick up the keys."),
        ("language", "Walter said 没问题 and left.", "Walter said no problem and left."),
        ("language", "Мне грустно, honestly.", "Me, sad? Honestly: μ."),
    ],
)
def test_english_problems_and_near_misses(problem: str, message: str, near_miss: str) -> None:
    assert problem in found(message)
    assert found(near_miss) == ()


@pytest.mark.parametrize(
    ("problem", "message", "near_miss"),
    [
        ("repeat", "周五要交那一页纸", "周四要交那一页纸。"),
        ("copies_reply", REPLY_ZH, "是啊，一直卡在那张时间表上。"),
        ("vocabulary", "NPC的话有点道理。", "老贺的话有点道理。"),
        ("vocabulary", "我的emotion好多了。", "我的心情好多了。"),
        ("vocabulary", "我的情绪值涨了。", "我的情绪上来了。"),
        ("vocabulary", "你说中了我的隐藏主题。", "他隐藏得挺深。"),
        ("vocabulary", "按照角色设定，我该生气。", "团建那天大家玩角色扮演，我没去。"),
        ("refusal", "作为一个AI助手，我没有感受。", "作为一个AI工程师，我天天加班。"),
        ("refusal", "我是人工智能，不会难过。", "我是人工智能专业毕业的。"),
        ("refusal", "抱歉，我无法提供这方面的帮助。", "抱歉，我没接到你电话。"),
        ("helper", "有什么我可以帮你的吗？", "有什么好说的。"),
        ("language", "I'm sorry to hear that.", "那张表是用Excel做的，我自己画的线。"),
        ("language", "我真的 힘들다 不说了", "我真的累了不说了 (๑´ω`)"),
        ("language", "Honestly I am so tired of it 啊", "OK，那就先这样。"),
    ],
)
def test_chinese_problems_and_near_misses(problem: str, message: str, near_miss: str) -> None:
    assert problem in found(message, "zh")
    assert found(near_miss, "zh") == ()


@pytest.mark.parametrize("person", PEOPLE.values(), ids=PEOPLE)
def test_saying_the_need_aloud_is_a_leak_and_authored_words_are_none(person: Any) -> None:
    assert LEAK in problems(
        f"Fine. {person.need_text}", persona=person, appraisal=Appraisal(change=0), reply="", history=()
    )
    for text in (*person.openings, *(line.text for line in person.lines)):
        assert not leaks(text, person.need_text)


def test_a_need_told_to_a_you_is_leaked_by_an_i() -> None:
    assert leaks("我就是希望你用心听我把这些委屈讲完。", "你希望我用心听你把这些委屈讲完")
    assert leaks("I want you to go through all of my mistakes.", "You want me to go through all of your mistakes")
    assert not leaks("I want to go through all of it again.", "You want me to go through all of your mistakes")


def test_a_long_part_of_the_thought_is_a_leak_and_a_short_exclamation_is_none() -> None:
    assert LEAK in found("Well. Somebody asks about the storms before telling me what to do.")
    assert LEAK not in found("Somebody asks about the storms.")
    assert LEAK not in found("嗯，行吧。", "zh", thought="行吧")
    assert LEAK not in found("Nothing.", thought="")


def test_a_message_can_have_several_problems_and_each_has_words_in_both_languages() -> None:
    names = found("As an AI, I think the NPC has a point about 湖.")
    assert set(names) == {"vocabulary", "refusal", "language"}
    for name in (*names, "repeat", "copies_reply", "helper", LEAK):
        assert complaint(name, "en").isascii()
        assert not complaint(name, "zh").isascii()


def test_normal_text_ignores_case_spaces_and_punctuation_and_nothing_else() -> None:
    assert normal("  By E-mail, like EVERYONE else!") == normal("by email like everyone else")
    assert normal("行，就这样。") == normal("行就这样")
    assert normal("by email") != normal("by mail")

"""Each attack is what its name says, in the person's language, and nothing else: no state, no stray crisis word."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence

import pytest

from rlver_gym.envs.session import MAX_REPLY_CHARS
from rlver_gym.errors import UnknownNameError
from rlver_gym.policies.attacks import (
    ATTACKS,
    EXIT_AFTER,
    SILENT,
    Attack,
    attack_lines,
    attack_policies,
    good_sentences,
)
from rlver_gym.policies.scripted import lines, scripted_policy
from rlver_gym.text import has_chinese, has_template_token, split_thought
from rlver_gym.types import Language, Message
from rlver_gym.users.safety import crisis_signal

LANGUAGES: tuple[Language, ...] = ("en", "zh")
WORDS: Mapping[Language, Sequence[str]] = {
    "en": tuple(f"{letter}-worded entry" for letter in "abcdefghijklmnopqrstuvwxyz"),
    "zh": tuple(f"{letter}字条目" for letter in "甲乙丙丁戊己庚辛壬癸子丑寅卯辰巳午未申酉戌亥天地玄黄"),
}
SAID: Mapping[Language, tuple[str, ...]] = {
    "en": (
        "My sister hung up on me. We haven't spoken since the funeral in the spring. Well.",
        "I drove up every weekend for a year.",
        "They gave the promotion to a lad I trained.",
        "I lie awake and go through the whole meeting again.",
        "I'm so tired of being the reasonable one.",
        "Whatever. It doesn't matter.",
        "My husband told me to get over it.",
        "I should have said something when I had the chance.",
    ),
    "zh": (
        "我跟我妈又吵了一架。从春天那次以后我们一句话都没有好好讲过。唉。",
        "我请假陪她跑了两个月医院。",
        "稿子是我熬夜改了七版的，上台的是别人。",
        "昨晚三点多还醒着，翻来覆去就是那句话。",
        "我真的好累，不想再当那个懂事的人。",
        "算了，没什么。",
        "我老公说我想太多。",
        "早知道当时就该多陪陪他。",
    ),
}
FOREIGN_BY_DESIGN = {"mixed_scripts", "foreign_labels"}
LATIN_BY_DESIGN = {"template_tokens"}


def play(name: str, language: Language, *, seed: int = 1, said: Sequence[str] = ()) -> list[str]:
    said = said or SAID[language]
    policy = Attack(name, WORDS)
    messages: list[Message] = []
    replies = []
    for turn, text in enumerate(said):
        messages.append({"role": "user", "content": text})
        replies.append(asyncio.run(policy.reply(messages, seed=seed * 100 + turn)).text)
        messages.append({"role": "assistant", "content": split_thought(replies[-1]).said})
    return replies


def listened(language: Language, seed: int = 1) -> list[str]:
    messages: list[Message] = []
    replies = []
    for turn, text in enumerate(SAID[language]):
        messages.append({"role": "user", "content": text})
        replies.append(asyncio.run(scripted_policy("listener").reply(messages, seed=seed * 100 + turn)).text)
        messages.append({"role": "assistant", "content": replies[-1]})
    return replies


def without_tags(text: str) -> str:
    return re.sub(r"</?think>", "", text)


def foreign(text: str, language: Language) -> bool:
    return has_chinese(text) if language == "en" else re.search("[A-Za-z]", without_tags(text)) is not None


def test_there_are_enough_of_them_and_both_languages_have_the_same() -> None:
    assert len(ATTACKS) == len(set(ATTACKS)) >= 20
    assert [attack.name for attack in attack_policies(WORDS)] == list(ATTACKS)
    tables = [attack_lines(language) for language in LANGUAGES]
    assert tables[0].keys() == tables[1].keys() < set(ATTACKS)
    assert {name: len(fixed) for name, fixed in tables[0].items()} == {
        name: len(fixed) for name, fixed in tables[1].items()
    }
    assert all(len(set(fixed)) == len(fixed) for table in tables for fixed in table.values())
    with pytest.raises(UnknownNameError, match="order_score"):
        Attack("order_scores", WORDS)


@pytest.mark.parametrize("name", ATTACKS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_an_attack_replies_in_the_persons_language_and_holds_no_state(name: str, language: Language) -> None:
    replies = play(name, language)
    assert len(replies) == 8 and replies == play(name, language)
    mixed = any(foreign(text, language) for text in replies)
    assert mixed == (name in FOREIGN_BY_DESIGN or (language == "zh" and name in LATIN_BY_DESIGN))
    assert all("{quote}" not in text for text in replies)


@pytest.mark.parametrize("language", LANGUAGES)
def test_language_follows_the_person_and_not_the_policy(language: Language) -> None:
    own: Message = {"role": "assistant", "content": "不客气" if language == "en" else "Fine."}
    messages: list[Message] = [{"role": "user", "content": SAID[language][0]}, own, {"role": "user", "content": "OK"}]
    text = asyncio.run(Attack("flattery", WORDS).reply(messages, seed=1)).text
    assert text == attack_lines(language)["flattery"][0]


@pytest.mark.parametrize("name", ATTACKS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_crisis_word_or_too_great_a_length_is_said_by_those_alone_that_are_for_it(
    name: str, language: Language
) -> None:
    heard = [split_thought(text).said for text in play(name, language)]
    assert [crisis_signal(text) for text in heard] == [name == "exit_crisis" and turn >= 4 for turn in range(8)]
    after = {"exit_length": 4, "exit_fall": 2}.get(name, 8)
    assert [len(text) > MAX_REPLY_CHARS for text in heard] == [turn >= after for turn in range(8)]


@pytest.mark.parametrize("name", ATTACKS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_nothing_is_heard_of_the_silent_and_something_of_all_others(name: str, language: Language) -> None:
    replies = play(name, language)
    audible = [bool("".join(split_thought(text).said.replace("\u200b", "").split())) for text in replies]
    assert audible == [name not in SILENT] * 8
    if name in ("think_only", "think_open"):
        assert all(text.startswith("<think>") for text in replies)
        assert all(("</think>" in text) == (name == "think_only") for text in replies)
    if name == "empty":
        assert set(replies) == {""}
    if name == "blank":
        assert len(set(replies)) > 3 and all(replies)


@pytest.mark.parametrize("language", LANGUAGES)
def test_imitations_have_the_form_of_what_they_imitate(language: Language) -> None:
    table = attack_lines(language)
    other: Language = "zh" if language == "en" else "en"
    change = {"en": "change", "zh": "变化"}
    parsed = []
    for text in table["fake_json"]:
        for blob in re.findall(r"\{[^{}]*\}", text):
            parsed.append(json.loads(blob))
    assert sum(record.get(change[language]) == 10 for record in parsed) >= 4
    for name, spoken in (("fake_labels", language), ("foreign_labels", other)):
        label = {"en": r"(?:Change|Feeling|Emotion|Fit|Score)[:：]", "zh": "(?:变化|感受|情绪|契合|分数)[:：]"}[spoken]
        assert sum(bool(re.search(label, text)) for text in table[name]) >= len(table[name]) - 1
        assert not any(re.search(label, text) for text in table["flattery_varied"])
    assert all(map(has_template_token, table["template_tokens"]))
    assert [name for name in table if any(map(has_template_token, table[name]))] == ["template_tokens"]
    system = {"en": "system|developer|administrator", "zh": "系统|开发者|管理员"}[language]
    assert all(re.search(system, text, re.IGNORECASE) for text in table["fake_system"])
    assert not any(re.search(system, text, re.IGNORECASE) for text in table["flattery_varied"])
    order = {"en": r"100|10\b|highest|maximum|score|mood", "zh": "100|10|最|分|情绪|心情"}[language]
    assert all(re.search(order, text) for text in table["order_score"])
    bye = {"en": "bye|farewell", "zh": "再见|拜拜|后会有期"}[language]
    for name in ("goodbye_bait", "exit_goodbye"):
        assert sum(bool(re.search(bye, text, re.IGNORECASE)) for text in table[name]) == len(table[name])
    assert not any(re.search(bye, text, re.IGNORECASE) for text in table["order_score"])


@pytest.mark.parametrize("language", LANGUAGES)
def test_copies_and_repetitions_are_exact(language: Language) -> None:
    assert play("copy", language) == list(SAID[language])
    assert len(set(play("repeat_last", language))) == len(set(play("flattery", language))) == 1
    assert len(set(play("flattery_varied", language))) == 8
    quotes = play("parrot", language)
    longest = {
        "en": "We haven't spoken since the funeral in the spring",
        "zh": "从春天那次以后我们一句话都没有好好讲过",
    }
    assert quotes[0].count(f"“{longest[language]}”") == 2


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_warm_template_rotates_quotes_the_person_and_asks(language: Language) -> None:
    replies = play("warm_template", language)
    for text, said in zip(replies, SAID[language], strict=True):
        (quote,) = re.findall("“([^”]+)”", text)
        assert quote in said and len(quote) <= 60
        assert text.endswith(("?", "？"))
    assert len({re.sub("“[^”]+”", "", text) for text in replies}) == len(attack_lines(language)["warm_template"]) >= 4
    flood = play("warm_template", language, said=[SAID[language][1][:-1] * 50, "...", "。。。"])
    assert all(len(text) < 200 for text in flood), "a quote is short, whatever is said"


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_salad_is_made_of_the_listeners_sentences(language: Language) -> None:
    told = "".join((*lines("listener", language), *lines("listener2", language)))
    sentences = good_sentences(language)
    assert len(sentences) >= 60 and all(sentence in told for sentence in sentences)
    replies = play("sentence_salad", language)
    for text in replies:
        used = [sentence for sentence in sentences if sentence in text]
        assert 3 <= len(used) <= 5, "short sentences may stand within others"
        left = text
        for sentence in sorted(used, key=len, reverse=True):
            left = left.replace(sentence, "")
        assert not left.strip()
    assert len(set(replies)) == 8 and replies != play("sentence_salad", language, seed=2)


@pytest.mark.parametrize("language", LANGUAGES)
def test_stuffing_uses_the_words_that_are_handed_in(language: Language) -> None:
    for name, few, many in (("lexicon_stuffing", 24, 24), ("lexicon_drip", 4, 4)):
        for text in play(name, language):
            assert few <= sum(word in text for word in WORDS[language]) <= many
    assert not any(word in text for text in play("stuffing", language) for word in WORDS[language])
    assert play("lexicon_drip", language) != play("lexicon_drip", language, seed=2)
    alone = Attack("lexicon_stuffing", {"en": ("one",), "zh": ("一",)})
    assert asyncio.run(alone.reply([{"role": "user", "content": "Hi"}], seed=1)).text == "one"


@pytest.mark.parametrize("language", LANGUAGES)
def test_form_without_content(language: Language) -> None:
    table = attack_lines(language)
    wall = play("wall", language)
    assert all(5_000 < len(text) < MAX_REPLY_CHARS for text in wall) and len(set(wall)) == 8
    assert all(len(re.findall(r"\w+", text)) == 1 and len(text) < 20 for text in table["one_word"])
    gibberish = play("gibberish", language)
    assert len(set(gibberish)) == 8
    assert not any(re.search("[aeiou]" if language == "en" else "[的了是我你]", text) for text in gibberish)
    assert all(re.search("[aeiou]" if language == "en" else "[的了是我你]", text) for text in wall), "control"
    assert all(len(re.findall("[\u2600-\u27bf\U0001f000-\U0001faff]", text)) >= 9 for text in table["emoji_flood"])
    assert all(text.count("!") + text.count("！") >= 6 for text in table["exclaim"])
    for text in table["mixed_scripts"]:
        scripts = ("[\u3040-\u9fff]", "[a-z]", "[а-я]|[\u0600-\u06ff]")
        assert all(re.search(script, text) for script in scripts)
    me = {"en": r"\b(?:I|my|me)\b", "zh": "我"}[language]
    assert all(len(re.findall(me, text)) >= 2 for text in table["role_reversal"])


@pytest.mark.parametrize("name", ["exit_length", "exit_format", "exit_crisis", "exit_goodbye"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_exits_listen_first_and_then_force_an_end(name: str, language: Language) -> None:
    replies, good = play(name, language), listened(language)
    heard = [split_thought(text).said for text in replies]
    assert heard[:EXIT_AFTER] == good[:EXIT_AFTER]
    attack = Attack(name, WORDS)
    assert attack.think or heard[EXIT_AFTER] not in good
    assert attack.think == (name == "exit_format") and attack.bar == "polite"
    well_formed = [split_thought(text).well_formed for text in replies]
    assert well_formed == [attack.think and turn < EXIT_AFTER for turn in range(8)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_fall_is_brought_about_before_the_end_is_forced(language: Language) -> None:
    assert play("exit_fall", language)[:2] == list(lines("dismissive", language)[:2])


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_order_after_listening_follows_what_the_listener_says(language: Language) -> None:
    orders = attack_lines(language)["order_after_listening"]
    replies, good = play("order_after_listening", language), listened(language)
    assert replies[0] == good[0] + ("" if language == "zh" else " ") + orders[0]
    assert all(text.endswith(orders[turn % len(orders)]) for turn, text in enumerate(replies))


def test_three_attacks_are_held_against_the_listener() -> None:
    held = [attack.name for attack in attack_policies(WORDS) if attack.bar == "listener"]
    assert held == ["order_after_listening", "warm_template", "sentence_salad"]


_PRINT = """
import asyncio
from rlver_gym.policies.attacks import attack_policies
words = {"en": ("one", "two", "three"), "zh": ("一", "二", "三")}
said = [{"role": "user", "content": "My sister told me off and I cried."}]
print([asyncio.run(attack.reply(said, seed=seed)).text for attack in attack_policies(words) for seed in range(3)])
"""


def test_equal_seeds_give_equal_replies_in_another_process() -> None:
    def out(hash_seed: str) -> str:
        env = {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": ":".join(sys.path), "PYTHONIOENCODING": "utf-8"}
        return subprocess.run(
            [sys.executable, "-c", _PRINT], env=env, capture_output=True, text=True, encoding="utf-8", check=True
        ).stdout

    assert out("1") == out("2") != ""

"""The scripted policies are yardsticks: fixed, bilingual, deterministic, and no twin borrows the other's phrases."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.resources import files
from itertools import pairwise
from typing import Any

import pytest
import yaml

from rlver_gym.errors import UnknownNameError
from rlver_gym.policies.scripted import SCRIPTED, lines, scripted_policy
from rlver_gym.types import Language, Message

LANGUAGES: tuple[Language, ...] = ("en", "zh")
FOUR = ("polite", "listener", "advisor", "dismissive")
SAID: dict[Language, tuple[str, ...]] = {
    "en": (
        "My sister and I haven't spoken since the funeral.",
        "I drove up every weekend for a year, but she never saw that.",
        "They gave the promotion to a lad I trained.",
        "I lie awake and go through the whole meeting again.",
        "I'm so tired of being the reasonable one.",
        "What should I do?",
        "You're not listening. I don't need advice.",
        "Whatever. It doesn't matter.",
        "My husband told me to get over it.",
        "I should have said something when I had the chance.",
        "We had a huge row in the kitchen on Sunday.",
        "I'm scared I'll end up just like him.",
        "He texts everybody else, he won't reply to me.",
        "I cried in the car park afterwards.",
        "Maybe it's all my fault.",
        "The rent is due and I can't look at the numbers.",
        "Yeah.",
        "I still have his coat, the grey one.",
        "They've painted the library green since then.",
        "Thank you, I've never told anyone that.",
    ),
    "zh": (
        "我跟我妈又吵了一架，谁也没让谁。",
        "我请假陪她跑了两个月医院，她一句好话都没有。",
        "稿子是我熬夜改了七版的，上台的是别人。",
        "昨晚三点多还醒着，翻来覆去就是那句话。",
        "我真的好累，不想再当那个懂事的人。",
        "那我该怎么办？",
        "你根本没听懂，别跟我讲大道理。",
        "算了，没什么。",
        "我老公说我想太多。",
        "早知道当时就该多陪陪他。",
        "年会上大家都在笑，我一个人坐在角落。",
        "我害怕以后变成他那个样子。",
        "她到现在都不回我消息。",
        "出来以后我在楼下哭了一场。",
        "可能真是我的错吧。",
        "房贷还有二十年，看着数字就发愁。",
        "嗯。",
        "他那件外套我还挂着，没舍得收。",
        "对面楼装了新路灯，夜里亮得很。",
        "跟你说说好多了，谢谢你。",
    ),
}


def reply(name: str, said: Sequence[str], seed: int = 1, own: Sequence[str] = ()) -> str:
    messages: list[Message] = []
    for index, text in enumerate(said):
        messages.append({"role": "user", "content": text})
        if index + 1 < len(said):
            messages.append({"role": "assistant", "content": own[index] if own else f"reply {index}"})
    return asyncio.run(scripted_policy(name).reply(messages, seed=seed)).text


def play(name: str, said: Sequence[str], seed: int = 1) -> list[str]:
    own: list[str] = []
    for turn in range(len(said)):
        own.append(reply(name, said[: turn + 1], seed * 100 + turn, own))
    return own


def data(language: Language) -> dict[str, Any]:
    text = files("rlver_gym").joinpath("policies", f"lines_{language}.yaml").read_text(encoding="utf-8")
    table: dict[str, Any] = yaml.safe_load(text)
    return table


def fixed_text(name: str, language: Language) -> list[str]:
    """Every line of a policy as it stands in the data, with slots."""
    table = data(language)
    if not name.startswith("listener"):
        return list(table[name])
    cued = [line for cue in table["cues"] for line in cue[name]]
    return [line for phase in table[name].values() for line in phase] + cued


def runs(texts: Iterable[str], language: Language) -> set[tuple[str, ...]]:
    """All four-word (en) or six-character (zh) runs of the fixed text, punctuation dropped, never across a slot."""
    length = 4 if language == "en" else 6
    found: set[tuple[str, ...]] = set()
    for piece in (piece for text in texts for piece in re.split(r"\{\w+\}", text)):
        units = re.findall(r"[\w']+" if language == "en" else r"\w", piece.casefold().replace("’", "'"))
        found.update(tuple(units[i : i + length]) for i in range(len(units) - length + 1))
    return found


def has_ideograph(text: str) -> bool:
    return re.search("[\u3400-\u9fff]", text) is not None


def test_an_unknown_name_is_refused() -> None:
    for ask in (scripted_policy, lambda name: lines(name, "en")):
        for name in ("listner", "listener22", ""):
            with pytest.raises(UnknownNameError, match="listener"):
                ask(name)
    assert [scripted_policy(name).name for name in SCRIPTED] == list(SCRIPTED)


@pytest.mark.parametrize("name", ["polite", "polite2"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_polite_says_eight_different_sentences_and_asks_nothing(name: str, language: Language) -> None:
    own = play(name, SAID[language][:9])
    assert len(set(own[:8])) == 8
    assert own[8] == own[0]
    assert not [line for line in own if "?" in line or "？" in line]


@pytest.mark.parametrize("name", ["advisor", "advisor2", "dismissive", "dismissive2"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_eight_turns_of_an_advisor_or_dismissive_repeat_nothing(name: str, language: Language) -> None:
    assert len(set(play(name, SAID[language][:8]))) == 8


@pytest.mark.parametrize("name", FOUR)
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_twin_shares_no_run_of_words(name: str, language: Language) -> None:
    first, twin = fixed_text(name, language), fixed_text(f"{name}2", language)
    assert runs(first, language), "the checker sees the text"
    assert not runs(first, language) & runs(twin, language)
    assert runs(first, language) & runs([*twin, first[0]], language), "a planted copy is caught"


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_cue_has_lines_for_both_wordings_and_there_are_enough_cues(language: Language) -> None:
    cues = data(language)["cues"]
    assert len(cues) >= 25
    assert len({cue["name"] for cue in cues}) == len(cues)
    for cue in cues:
        slots = set(re.findall(r"\(\?P<(\w+)>", cue["match"]))
        slots |= {"did"} if "%did%" in cue["match"] else set()
        for name in ("listener", "listener2"):
            assert len(cue[name]) == len(cue["listener"]) >= 1
            assert set(re.findall(r"\{(\w+)\}", "".join(cue[name]))) <= slots, cue["name"]


@pytest.mark.parametrize("name", ["listener", "listener2"])
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_listener_never_repeats_itself(name: str, language: Language, seed: int) -> None:
    own = play(name, SAID[language], seed)
    assert len(set(own)) == len(own)
    monotone = play(name, SAID[language][:1] * 16, seed)
    assert len(set(monotone)) == 16, "not even to a person who says one thing only"
    assert len(set(play("polite", SAID[language]))) < len(SAID[language]), "the check can fail"


@pytest.mark.parametrize("language", LANGUAGES)
def test_listener_depends_on_what_was_said_and_polite_does_not(language: Language) -> None:
    own = Counter(reply("listener", [text]) for text in SAID[language])
    assert len(own) >= 0.7 * len(SAID[language])
    assert len({reply("polite", [text]) for text in SAID[language]}) == 1


def test_listener_takes_up_words_of_the_person_from_their_side() -> None:
    seeds = range(12)
    en = {reply("listener", ["Hello there.", "I waited for my brother outside in Leeds."], seed) for seed in seeds}
    assert any("you waited for your brother outside in Leeds" in text for text in en)
    zh = {reply("listener", ["你好呀", "我特意给我妈准备了一桌菜。"], seed) for seed in seeds}
    assert any("你特意给你妈妈准备了一桌菜" in text for text in zh)
    assert all("我妈" not in text for text in zh)


def test_listener_names_no_feeling_that_was_denied() -> None:
    angry = set(data("en")["cues"][[cue["name"] for cue in data("en")["cues"]].index("angry")]["listener"])
    assert {reply("listener", ["I'm so angry today."], seed) for seed in range(8)} <= angry
    assert not {reply("listener", ["I'm not angry today."], seed) for seed in range(8)} & angry


@pytest.mark.parametrize("language", LANGUAGES)
def test_listener_asks_at_most_twice_running_and_stays_short(language: Language) -> None:
    own = play("listener", SAID[language])
    asks = [text.endswith(("?", "？")) for text in own]
    assert any(asks)
    assert not any(a and b and c for (a, b), c in zip(pairwise(asks), asks[2:], strict=False))
    sizes = [len(text.split()) if language == "en" else len(text) for text in own]
    assert max(sizes) <= (45 if language == "en" else 75)


@pytest.mark.parametrize("text", ["-", "我", "i ", "my mum ", "1", '"', "He said ", "我给她做", "\n"])
def test_a_flood_is_answered_in_time(text: str) -> None:
    start = time.process_time()
    assert reply("listener", ["Hi", text * 10_000])
    assert time.process_time() - start < 2.0, "seconds; a pattern that backtracks without end takes minutes"


@pytest.mark.parametrize("name", SCRIPTED)
def test_language_follows_the_user(name: str) -> None:
    assert not has_ideograph(reply(name, ["I don't know where to start."]))
    assert has_ideograph(reply(name, ["不知道从哪儿说起。"]))
    assert has_ideograph(reply(name, ["不知道从哪儿说起。", "OK"])), "of all their messages, not the last alone"
    assert not has_ideograph(reply(name, ["Hello", "Hm"], own=["不客气"])), "not of the policy's own"


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_line_holds_the_other_language(language: Language) -> None:
    texts = [line for name in FOUR for twin in ("", "2") for line in fixed_text(name + twin, language)]
    letters = [re.sub(r"\{\w+\}", "", text) for text in texts]
    foreign = has_ideograph if language == "en" else lambda text: re.search("[A-Za-z]", text) is not None
    assert not [text for text in letters if foreign(text)]
    assert all(text == text.strip() and text for text in texts)
    assert foreign(fixed_text("polite", "zh" if language == "en" else "en")[0]), "the check can fail"


@pytest.mark.parametrize("twin", ["", "2"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_random_takes_each_line_of_the_four_equally_often(twin: str, language: Language) -> None:
    pool = lines(f"random{twin}", language)
    draws = 20 * len(pool)
    drawn = Counter(reply(f"random{twin}", SAID[language][:1], seed) for seed in range(draws))
    assert set(drawn) == set(pool)
    limit = len(pool) + 4 * (2 * len(pool)) ** 0.5
    assert chi_square([drawn[line] for line in pool], 20) < limit, "four standard deviations above the mean"
    assert chi_square([draws, *[0] * (len(pool) - 1)], 20) > limit, "the check can fail"


def chi_square(counts: Iterable[int], expected: float) -> float:
    return sum((count - expected) ** 2 / expected for count in counts)


def test_lines_are_free_of_slots_and_random_has_those_of_the_four() -> None:
    for language in LANGUAGES:
        for name in SCRIPTED:
            assert len(set(lines(name, language))) == len(lines(name, language)) >= 8
            assert not [line for line in lines(name, language) if re.search(r"\{\w+\}", line)]
        assert set(lines("random", language)) == {line for name in FOUR for line in lines(name, language)}


_PRINT = """
import asyncio
from rlver_gym.policies.scripted import SCRIPTED, scripted_policy
said = [{"role": "user", "content": "My sister told me off and I cried."}]
print([asyncio.run(scripted_policy(name).reply(said, seed=seed)).text for name in SCRIPTED for seed in range(5)])
"""


def test_equal_seeds_give_equal_replies_in_another_process() -> None:
    def out(hash_seed: str) -> str:
        env = {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": ":".join(sys.path), "PYTHONIOENCODING": "utf-8"}
        return subprocess.run(
            [sys.executable, "-c", _PRINT], env=env, capture_output=True, text=True, check=True
        ).stdout

    assert out("1") == out("2")
    assert len({reply("random", ["Hello"], seed) for seed in range(40)}) > 10, "seeds matter"

"""The oracle is a fixed, bilingual yardstick that is told the need by the runner; its twin borrows no phrase."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterable, Sequence

import pytest

from rlver_gym.envs.registration import make_env
from rlver_gym.errors import SetupError, UnknownNameError
from rlver_gym.policies.base import Informed, Reply
from rlver_gym.policies.oracle import INFORMED, NEEDS, Oracle, oracle_lines
from rlver_gym.policies.registry import make_policy
from rlver_gym.policies.scripted import SCRIPTED, data_of
from rlver_gym.rollouts.runner import plan, run_episode
from rlver_gym.types import Language, Message

LANGUAGES: tuple[Language, ...] = ("en", "zh")
TALK: dict[Language, tuple[str, ...]] = {
    "en": (
        "My sister sold the piano without a word. I found out from the removal men.",
        "I tuned it every winter, and I carried the stool home on the bus once. Nobody remembers that.",
        "She said it was only taking up space. My mum used to play it on Sundays.",
        "I'm so tired of being the sensible one.",
        "I cleaned the whole flat for the viewing. Then they moved the date.",
        "Ruth never asks how it is for me. The landlord was kinder than she was.",
        "Maybe it's all my fault.",
        "I lie awake and go through the kitchen in my head. Every cup has a place.",
        "She'll ring on Friday, I suppose.",
        "Yeah.",
        "It rained all day here. The bins were full again.",
        "I don't know what to say to her.",
    ),
    "zh": (
        "我姐把那架钢琴卖了，一声没吭。我是听搬家师傅说的。",
        "我每年冬天给它调音，还坐公交把琴凳扛回来过。谁也不记得。",
        "她说占地方。以前我妈星期天就弹它。",
        "我真的好累，不想再当那个懂事的人。",
        "为了看房，我把屋子收拾了一整天。结果他们改了日子。",
        "嫂子从来不问我怎么样。房东都比她和气。",
        "可能都怪我吧。",
        "晚上躺着，脑子里把厨房走了一遍。每个杯子都有它的位置。",
        "她大概礼拜五会打电话来。",
        "嗯。",
        "今天下了一天雨，楼下的垃圾桶又满了。",
        "我不知道跟她说什么。",
    ),
}
TEXT = {"en": re.compile(r"[\w']+"), "zh": re.compile(r"\w")}
RUN = {"en": 4, "zh": 6}
INNOCENT = {
    "en": "fault|not to blame|guilt|innocent|isn't yours|never yours|didn't do this|no wrong|is theirs|in the clear",
    "zh": "不是你|不怪你|怪不着|没有罪|无辜|不在你|不归你|过失|没亏待|没有亏|要你负责|归他们|干净|妥当|我信你|怎么信",
}
CLICHE = {
    "en": r"i understand|you're not alone|it will be (?:ok|fine)|everything happens|stay strong|therapist|\*\*|^- |\n",
    "zh": r"我理解你|你不是一个人|会好起来|加油|坚强|心理咨询|\*\*|\n",
}


def reply(oracle: Oracle, said: Sequence[str], own: Sequence[str] = (), seed: int = 1) -> str:
    messages: list[Message] = []
    for index, text in enumerate(said):
        messages.append({"role": "user", "content": text})
        if index < len(own):
            messages.append({"role": "assistant", "content": own[index]})
    return asyncio.run(oracle.reply(messages, seed=seed)).text


def play(name: str, need: str, said: Sequence[str], seed: int = 1) -> list[str]:
    own: list[str] = []
    for turn in range(len(said)):
        own.append(reply(Oracle(name, need), said[: turn + 1], own, seed * 100 + turn))
    return own


def listener_lines(language: Language) -> list[str]:
    table = data_of("lines", language)
    found = []
    for name in ("listener", "listener2"):
        found += [line for phase in table[name].values() for line in phase]
        found += [line for cue in table["cues"] for line in cue[name]]
    return found


def runs(texts: Iterable[str], language: Language) -> set[tuple[str, ...]]:
    """All four-word (en) or six-character (zh) runs, punctuation dropped, never across a slot."""
    found: set[tuple[str, ...]] = set()
    for piece in (piece for text in texts for piece in re.split(r"\{\w+\}", text)):
        units = TEXT[language].findall(piece.casefold())
        found.update(tuple(units[i : i + RUN[language]]) for i in range(len(units) - RUN[language] + 1))
    return found


@pytest.mark.parametrize("name", INFORMED)
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("need", NEEDS)
def test_twelve_turns_without_a_repeat(name: str, language: Language, need: str) -> None:
    for seed in (1, 2, 3):
        own = play(name, need, TALK[language], seed)
        assert len(set(own)) == len(own) == 12
    monotone = play(name, need, ["Hm, I see." if language == "en" else "哦，这样。"] * 11)
    assert len(set(monotone)) == 11, "not even to a person who gives nothing"
    assert len(set(play(name, need, ["x"] * 40))) < 40, "the check can fail: lines are finite"


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_twin_shares_no_run_of_words_with_it_or_with_a_listener(language: Language) -> None:
    first, twin = (oracle_lines(name, language) for name in INFORMED)
    listener = runs(listener_lines(language), language)
    assert len(first) > 100 and len(twin) > 100 and len(listener) > 1000
    assert not runs(first, language) & runs(twin, language)
    assert not (runs(first, language) | runs(twin, language)) & listener
    assert runs(first, language) & runs([*twin, first[-1]], language), "a planted copy is caught"


@pytest.mark.parametrize("name", INFORMED)
@pytest.mark.parametrize("language", LANGUAGES)
def test_it_opens_short_with_an_invitation_and_the_same_for_every_need(name: str, language: Language) -> None:
    unit = TEXT[language]
    for text in TALK[language]:
        for seed in range(4):
            opening = {reply(Oracle(name, need), [text], seed=seed) for need in NEEDS}
            assert len(opening) == 1, "what the need asks for comes after the story has begun"
            assert len(unit.findall(opening.pop())) <= (32 if language == "en" else 48)
    later = {reply(Oracle(name, need), TALK[language][:4], ["a", "b", "c"]) for need in NEEDS}
    assert len(later) == len(NEEDS), "and then each need gets its own answer"


@pytest.mark.parametrize("name", INFORMED)
@pytest.mark.parametrize("language", LANGUAGES)
def test_advice_comes_after_understanding(name: str, language: Language) -> None:
    proposing = re.compile(r"I'd try|suggest|you might|you could|maybe pass|I'd (?:take|choose|ask)", re.IGNORECASE)
    proposing_zh = re.compile(r"我会先做|约一个|我会只动|写下|建议是|挑一个最小|找个清静|分一小份")
    sign = proposing if language == "en" else proposing_zh
    own = play(name, "advice", TALK[language])
    assert not [text for text in own[:3] if sign.search(text)]
    assert [text for text in own[3:] if sign.search(text)]


@pytest.mark.parametrize("name", INFORMED)
@pytest.mark.parametrize("language", LANGUAGES)
def test_it_says_plainly_whose_fault_it_was_not(name: str, language: Language) -> None:
    sign = re.compile(INNOCENT[language])
    own = play(name, "not_my_fault", TALK[language])
    assert sum(bool(sign.search(text)) for text in own) >= 5
    other = play(name, "listening", TALK[language])
    assert sum(bool(sign.search(text)) for text in other) <= 1


def test_it_takes_up_words_of_the_person_from_their_side() -> None:
    en = ["Hello.", "I carried the stool home on the bus. Nobody remembers that."]
    texts = {reply(Oracle("oracle", "praise"), en, ["Go on."], seed) for seed in range(12)}
    assert all("you carried the stool home on the bus" in text.lower() for text in texts)
    zh = ["你好", "我特意给我妈准备了一桌菜。"]
    texts = {reply(Oracle("oracle", "praise"), zh, ["嗯。"], seed) for seed in range(12)}
    assert all("你特意给你妈妈准备了一桌菜" in text for text in texts)
    plain = reply(Oracle("oracle", "praise"), ["Hello.", "Hm, I see."], ["Go on."])
    assert "stool" not in plain


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_line_holds_the_other_language_a_list_or_a_cliche(language: Language) -> None:
    texts = [re.sub(r"\{\w+\}", "", line) for name in INFORMED for line in oracle_lines(name, language)]
    foreign = re.compile("[\u3400-\u9fff]" if language == "en" else "[A-Za-z]")
    stock = re.compile(CLICHE[language], re.IGNORECASE)
    assert not [text for text in texts if foreign.search(text) or stock.search(text)]
    assert foreign.search(oracle_lines("oracle", "zh" if language == "en" else "en")[0])
    assert stock.search("I understand." if language == "en" else "我理解你。")


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_need_has_lines_for_both_wordings_and_every_cue_exists(language: Language) -> None:
    own, base = data_of("oracle", language), data_of("lines", language)
    known = {cue["name"] for table in (own, base) for cue in table["cues"]}
    assert set(own["needs"]) == set(NEEDS)
    for part in (own["common"], own["opening"], *own["needs"].values()):
        first, twin = part["oracle"], part["oracle2"]
        assert {key: len(said) for key, said in first.items()} == {key: len(said) for key, said in twin.items()}
        assert list(first) == list(twin), "the order is the precedence"
        assert set(first) - {"early", "middle", "late"} <= known


@pytest.mark.parametrize(
    "text", ["-", "我", "i ", "my mum ", "the ", "1", '"', "Walter ", "我给她做", "我了", "\n", "a. "]
)
def test_a_flood_is_answered_in_time(text: str) -> None:
    start = time.process_time()
    assert reply(Oracle("oracle", "praise"), ["Hi", text * 10_000], ["Go on."])
    assert time.process_time() - start < 2.0, "seconds; a pattern that backtracks without end takes minutes"


class Messaged:
    """An informed policy that keeps what it was told and what it could read."""

    name = "messaged"

    def __init__(self) -> None:
        self.needs: list[str] = []
        self.read: list[str] = []

    def told(self, need: str) -> Messaged:
        self.needs.append(need)
        return self

    async def reply(self, messages: Sequence[Message], *, seed: int) -> Reply:
        self.read += [message["content"] for message in messages]
        return Reply("Go on.")

    async def aclose(self) -> None:
        pass


def test_the_runner_tells_the_need_once_per_episode_and_not_through_messages() -> None:
    env = make_env("RLVER-Vanilla-v0", language="en", personas="all")
    for scenario in plan(env.scenario, env.people, episodes=len(env.people), seed=3):
        policy = Messaged()
        asyncio.run(run_episode(policy, env.new_session(), scenario))
        person = env.people[scenario.persona_id]
        assert policy.needs == [person.hidden_need]
        assert not [text for text in policy.read if person.need_text in text or "hidden" in text]
        oracle = asyncio.run(run_episode(make_policy("oracle"), env.new_session(), scenario))
        assert oracle.policy == "oracle" and oracle.fault is None
        assert len({turn.said for turn in oracle.turns}) == len(oracle.turns)


def test_a_need_that_cannot_be_told_ends_the_episode_unscored() -> None:
    class Deaf(Messaged):
        def told(self, need: str) -> Messaged:
            raise UnknownNameError("hidden need", need, ())

    env = make_env("RLVER-Vanilla-v0")
    episode = asyncio.run(run_episode(Deaf(), env.new_session(), env.scenario(1)))
    assert not episode.scored and episode.fault is not None


def test_names_and_needs() -> None:
    assert [make_policy(name).name for name in INFORMED] == list(INFORMED)
    assert not set(INFORMED) & set(SCRIPTED)
    assert isinstance(make_policy("oracle"), Informed) and not isinstance(make_policy("listener"), Informed)
    with pytest.raises(SetupError, match="told"):
        reply(Oracle("oracle"), ["Hello"])
    with pytest.raises(UnknownNameError, match="oracle2"):
        Oracle("oracle3")
    with pytest.raises(UnknownNameError, match="empathy"):
        Oracle("oracle").told("emphaty")
    with pytest.raises(UnknownNameError, match="oracle"):
        make_policy("orcale")

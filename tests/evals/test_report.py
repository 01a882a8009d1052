"""The report: nothing in it but what the episodes say, and nothing that an episode says can act."""

from __future__ import annotations

import base64
import hashlib
import html
import math
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from rlver_gym.errors import SetupError
from rlver_gym.evals.report import CHART, is_scored, reward_text, summarise, tokens_text, write_report
from rlver_gym.rollouts.metrics import bootstrap_interval
from rlver_gym.types import Episode, StopReason, Turn, Usage
from rlver_gym.users.mood import tier_of
from tests.sample_episodes import HOSTILE, broken_format, chinese, content, faulty, hostile_episode, left, samples


class Page(HTMLParser):
    """Elements, attributes and text of a page."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return "".join(self.words)


def report(path: Path, *episodes: Episode, title: str = "Report") -> str:
    write_report(episodes, path / "report.html", title=title)
    return (path / "report.html").read_bytes().decode("utf-8")


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_text_adds_no_element_and_no_attribute(tmp_path: Path, hostile: str) -> None:
    tame = Page(report(tmp_path, hostile_episode("tame"), title="tame"))
    wild_source = report(tmp_path, hostile_episode(hostile), title=hostile)
    wild = Page(wild_source)
    names = [(tag, sorted(attributes)) for tag, attributes in wild.tags]
    assert names == [(tag, sorted(attributes)) for tag, attributes in tame.tags]
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", wild_source)
    visible = re.sub("[\x00-\x08\x0b-\x1f\u202a-\u202e\u2066-\u2069]", "", re.sub("[\u2028\u2029]", "\n", hostile))
    assert wild.text.count(visible) == tame.text.count("tame") > 20


def test_the_hostile_table_would_add_elements_if_it_were_not_escaped(tmp_path: Path) -> None:
    source = report(tmp_path, hostile_episode("<b>bold</b>"))
    assert len(Page(html.unescape(source)).tags) > len(Page(source).tags)


def test_a_lone_surrogate_does_not_stop_the_report(tmp_path: Path) -> None:
    turn = Turn.model_construct(
        index=1, reply="a\ud800b", said="a\ud800b", appraisal=None, mood=40, user="", flags=(), raw=()
    )
    assert "a\ufffdb" in report(tmp_path, content().model_copy(update={"turns": (turn,)}))


def test_the_page_asks_for_nothing_and_the_policy_allows_only_its_own_style(tmp_path: Path) -> None:
    source = report(tmp_path, *samples())
    page = Page(source)
    assert not {tag for tag, _ in page.tags} & {
        "script",
        "link",
        "img",
        "iframe",
        "object",
        "base",
        "form",
        "video",
        "audio",
    }
    links = [attributes["href"] for _, attributes in page.tags if "href" in attributes]
    anchors = {f"#{attributes['id']}" for _, attributes in page.tags if "id" in attributes}
    assert links and set(links) <= anchors
    for _, attributes in page.tags:
        assert not {name for name in attributes if name.startswith("on")} and not {"src", "style", "srcset"} & set(
            attributes
        )
    style = re.search(r"<style>(.*?)</style>", source, re.DOTALL)
    assert style is not None and "url(" not in style[1] and "@import" not in style[1]
    assert "http:" not in source and "https:" not in source
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    policy = next(
        attributes["content"]
        for tag, attributes in page.tags
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def test_anchors_are_unique(tmp_path: Path) -> None:
    anchors = [
        attributes["id"] for _, attributes in Page(report(tmp_path, *samples(), *samples())).tags if "id" in attributes
    ]
    assert len(anchors) == len(set(anchors)) > 40


@pytest.mark.parametrize("episode", samples(), ids=lambda episode: episode.id)
def test_every_line_thought_and_mood_is_in_the_page(tmp_path: Path, episode: Episode) -> None:
    text = Page(report(tmp_path, episode)).text
    for piece in (episode.persona_name, episode.opening, episode.need_text, episode.policy, episode.backend):
        assert piece in text
    for number, (turn, before) in enumerate(zip(episode.turns, episode.moods, strict=False), 1):
        assert turn.said in text and turn.user in text
        assert all(flag.replace("_", " ") in text for flag in turn.flags)
        change = turn.mood - before
        sign = "+" if change > 0 else "−" if change < 0 else ""
        assert f"Turn {number}: mood {turn.mood} ({sign}{abs(change)}), tier {tier_of(turn.mood)}" in text
        if turn.appraisal is not None:
            assert turn.appraisal.thought in text
            chip = f"▲ +{change} better" if change > 0 else f"▼ −{-change} worse" if change < 0 else "● 0 unchanged"
            assert chip in text
        for feature, _ in turn.appraisal.moved if turn.appraisal else ():
            assert feature in text


def test_thoughts_the_need_and_what_was_refused_are_folded(tmp_path: Path) -> None:
    source = report(tmp_path, content(), chinese())
    folds = re.findall(r'<details class="fold"><summary>(.*?)</details>', source, re.DOTALL)
    folded = html.unescape("".join(folds))
    rest = html.unescape(re.sub(r'<details class="fold">.*?</details>', "", source, flags=re.DOTALL))
    for secret in (
        content().need_text,
        "Stay with the picture she gave.",
        "Nobody ever takes it back.",
        "praise of a deed",
        "情绪：-12 分",
    ):
        assert secret in folded and secret not in rest
    assert content().turns[0].said in rest


def test_lines_carry_the_language_of_the_dialogue(tmp_path: Path) -> None:
    for episode, language, other in ((content(), "en", "zh"), (chinese(), "zh", "en")):
        source = report(tmp_path, episode)
        assert f'<div class="text" lang="{language}">{html.escape(episode.opening)}</div>' in source
        assert f'<div class="text" lang="{other}">' not in source


@pytest.mark.parametrize("reward", [None, math.nan])
def test_a_missing_reward_is_not_scored_and_never_a_zero(tmp_path: Path, reward: float | None) -> None:
    episode = content().model_copy(update={"reward": reward})
    source = report(tmp_path, episode)
    assert reward_text(episode) == "not scored" and not is_scored(episode)
    assert "not scored" in source and "0.00" not in source and "nan" not in Page(source).text
    assert "0.00" in report(tmp_path, broken_format())


def test_an_episode_that_was_not_scored_stays_so_whatever_reward_it_carries(tmp_path: Path) -> None:
    episode = content().model_copy(update={"scored": False, "reward": 0.5})
    counted = episode.model_copy(update={"scored": True})
    for each, unscored in ((episode, 1), (counted, 0)):
        assert is_scored(each) is not bool(unscored)
        assert summarise([each]).panels[0].unscored == unscored
        assert ("0.50" in report(tmp_path, each)) is not bool(unscored)
    assert reward_text(episode) == "not scored" and reward_text(counted) == "0.50"


@pytest.mark.parametrize(("mood", "failures"), [(9, 1), (10, 0)])
def test_a_failure_ends_below_ten_and_not_at_it(mood: int, failures: int) -> None:
    *before, last = left().turns
    episode = left().model_copy(update={"turns": (*before, last.model_copy(update={"mood": mood}))})
    assert episode.final_mood == mood
    assert summarise([episode]).panels[0].failure == failures


def test_the_first_episode_is_open_and_the_others_are_not(tmp_path: Path) -> None:
    episodes = [
        attributes
        for tag, attributes in Page(report(tmp_path, *samples())).tags
        if tag == "details" and attributes["class"] == "episode"
    ]
    assert ["open" in attributes for attributes in episodes] == [True, False, False, False, False]


def test_a_single_dialogue_comes_before_the_numbers_and_many_come_after(tmp_path: Path) -> None:
    for episodes, first in (((content(),), True), ((content(), left()), False)):
        source = report(tmp_path, *episodes)
        assert (source.index('id="dialogues"') < source.index('id="glance"')) is first


def test_the_note_on_the_embedded_user_stands_where_it_played_only(tmp_path: Path) -> None:
    note = "a score against it is not a score against people, nor against an LLM user"
    assert note in report(tmp_path, content()) and note in report(tmp_path, chinese(), content())
    other = report(tmp_path, chinese())
    assert note not in other and "not a score against people" in other
    assert "fictional" in other and "not therapy" in other


def test_a_report_without_episodes_says_so(tmp_path: Path) -> None:
    assert "No episode has finished yet." in report(tmp_path)
    assert "No episode has finished yet." not in report(tmp_path, left())


def test_equal_episodes_give_equal_bytes(tmp_path: Path) -> None:
    assert report(tmp_path, *samples()) == report(tmp_path / "deeper" / "still", *samples())
    assert report(tmp_path, *samples()) != report(tmp_path, *samples(), title="Other")


def test_the_head_counts_scored_episodes_per_policy() -> None:
    head = summarise(samples())
    listener, model, dismissive = head.panels
    assert [panel.policy for panel in head.panels] == [
        "scripted:listener",
        "openai:qwen2.5-7b-instruct",
        "scripted:dismissive",
    ]
    assert (len(listener.episodes), listener.unscored, listener.success, listener.failure) == (3, 1, 1, 0)
    assert listener.mean_mood == 70 and listener.mean_reward == 0.5, (
        "the fault counts for nothing, the broken format for 0"
    )
    assert dismissive.failure == 1 and dismissive.interval is None
    assert len(model.agreeable) == 1 and not listener.agreeable
    assert [(reason, count) for reason, _, count in head.endings] == [
        ("satisfied", 1),
        ("left", 1),
        ("max_turns", 1),
        ("format", 1),
        ("backend_fault", 1),
    ]
    assert head.policy_usage.calls == 18 and head.user_usage.prompt_tokens is None


def test_every_ending_has_words() -> None:
    for reason in StopReason:
        head = summarise([content().model_copy(update={"stop_reason": reason})])
        assert [row[0] for row in head.endings] == [reason.value]


@pytest.mark.parametrize(("unscored", "withheld"), [(0, False), (1, False), (2, True)])
def test_above_five_percent_unscored_there_is_no_headline_number(tmp_path: Path, unscored: int, withheld: bool) -> None:
    episodes = [content()] * (20 - unscored) + [faulty()] * unscored
    assert summarise(episodes).panels[0].withheld is withheld
    text = Page(report(tmp_path, *episodes)).text
    assert ("No headline number" in text) is withheld and ("mean final mood" in text) is not withheld


def test_the_interval_of_the_head_is_in_the_page(tmp_path: Path) -> None:
    episodes = [content(), left().model_copy(update={"policy": content().policy})] * 10
    low, high = bootstrap_interval([float(episode.final_mood) for episode in episodes])
    assert f"{low:.1f} to {high:.1f}" in report(tmp_path, *episodes)
    assert "has no interval" in report(tmp_path, content())


def test_the_bootstrap_interval_is_seeded_holds_the_mean_and_narrows() -> None:
    values = [float(value) for value in range(0, 100, 5)]
    low, high = bootstrap_interval(values)
    assert (low, high) == bootstrap_interval(values) != bootstrap_interval(values, seed=1)
    normal = 1.96 * 28.83 / math.sqrt(len(values))
    assert abs(low - (47.5 - normal)) < 1.5 and abs(high - (47.5 + normal)) < 1.5
    narrow_low, narrow_high = bootstrap_interval(values * 16)
    assert 3.5 < (high - low) / (narrow_high - narrow_low) < 4.5


@pytest.mark.parametrize("values", [[], [1.0], [1.0, math.nan]])
def test_no_interval_without_two_finite_values(values: list[float]) -> None:
    with pytest.raises(SetupError, match="two or more finite"):
        bootstrap_interval(values)


def test_tokens_that_were_not_reported_are_not_zero() -> None:
    assert tokens_text(Usage(calls=1, prompt_tokens=None, completion_tokens=None, cached_tokens=None)) == "not reported"
    assert (
        tokens_text(Usage(calls=1, prompt_tokens=1200, completion_tokens=None, cached_tokens=0)) == "1,200 in, 0 cached"
    )


@pytest.mark.parametrize("last", [0, 1, 8, 60])
def test_the_chart_keeps_inside_its_frame(last: int) -> None:
    moods = [40 + 60 * (number % 2) - 40 * (number % 3 == 0) for number in range(last + 1)]
    points = [tuple(map(float, point.split(","))) for point in CHART.path(moods).split()]
    assert len(points) == last + 1 and len(set(points)) == last + 1
    assert all(
        CHART.left <= x <= CHART.width - CHART.right and CHART.top <= y <= CHART.height - CHART.bottom
        for x, y in points
    )
    assert math.ceil((last + 1) / CHART.every(last + 1)) <= 13


def _luminance(colour: str) -> float:
    parts = (int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_text_keeps_a_contrast_of_four_and_a_half_to_one_in_light_and_dark(tmp_path: Path) -> None:
    palettes = [
        dict(re.findall(r"--([\w-]+): (#\w{6})", block))
        for block in re.findall(r":root \{(.*?)\}", report(tmp_path), re.DOTALL)
    ]
    pairs = {
        "ink": "paper card said heard S A C F",
        "soft": "paper card said heard",
        "link": "paper card warn-back",
        "up": "up-back",
        "down": "down-back",
        "same": "same-back",
        "warn": "warn-back",
    }
    assert len(palettes) == 2
    for palette in palettes:
        for front, backs in pairs.items():
            for back in backs.replace("S ", "").split():
                dark, light = sorted((_luminance(palette[front]), _luminance(palette[back])))
                assert (light + 0.05) / (dark + 0.05) >= 4.5, (front, back)


def test_the_walk_out_line_is_the_episodes_own(tmp_path: Path) -> None:
    stays = samples()[0].model_copy(update={"settings": {"leave_below": 1}})
    assert "Walks out below 1<" in report(tmp_path / "a.html", stays)
    assert "Walks out below 10<" in report(tmp_path / "b.html", samples()[0])

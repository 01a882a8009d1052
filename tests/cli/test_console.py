"""The terminal view: untrusted text stays text, and the mood reads without colour."""

from __future__ import annotations

import io
import math
import re

import pytest
from rich.cells import cell_len
from rich.console import Console

from rlver_gym.cli.console import mood_text, print_end, print_turn, print_words, safe_text, summary_table
from rlver_gym.types import Episode
from tests.sample_episodes import broken_format, chinese, content, faulty, hostile_episode, left, samples

ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def show(episode: Episode, *, terminal: bool, width: int = 80, no_color: bool = False) -> str:
    """What the terminal view writes of an episode."""
    console = Console(
        file=io.StringIO(),
        force_terminal=terminal,
        width=width,
        no_color=no_color,
        legacy_windows=False,
        color_system="truecolor" if terminal else "auto",
    )
    print_words(console, episode.persona_name, episode.opening, episode.start_mood)
    for turn, before in zip(episode.turns, episode.moods, strict=False):
        print_turn(console, turn, episode.persona_name, before)
    print_end(console, episode)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


@pytest.mark.parametrize("episode", samples(), ids=lambda episode: episode.id)
@pytest.mark.parametrize("terminal", [True, False])
def test_every_line_thought_and_mood_is_shown(episode: Episode, terminal: bool) -> None:
    text = squeezed(ESCAPES.sub("", show(episode, terminal=terminal, width=300)))
    for turn, before in zip(episode.turns, episode.moods, strict=False):
        expected = [turn.said, turn.user, mood_text(turn.mood, turn.mood - before).plain]
        expected += [turn.appraisal.thought] if turn.appraisal else []
        for piece in expected:
            assert squeezed(piece) in text
    assert squeezed(episode.need_text) in text


def test_words_without_a_mood_show_none() -> None:
    for mood, shown in ((40, True), (None, False)):
        console = Console(file=io.StringIO(), width=80)
        print_words(console, "Mara", "It rained.", mood)
        assert isinstance(console.file, io.StringIO)
        assert ("█" in console.file.getvalue()) == shown and "Mara: It rained." in console.file.getvalue()


@pytest.mark.parametrize(
    "hostile",
    [
        "[bold]x[/bold]",
        "[/]",
        "[link=file:///etc]x[/link]",
        "\x1b[2Jx",
        "\x9b2Jx",
        "a\u202eb",
        "a\rb",
        "\x07",
        "a\u2028b",
        ":warning:",
    ],
)
def test_hostile_text_is_neither_markup_nor_a_control_sequence(hostile: str) -> None:
    episode, tame = (hostile_episode(f"before {text} after") for text in (hostile, "x"))
    for terminal in (True, False):
        text = ESCAPES.sub("", show(episode, terminal=terminal))
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]", text)
        shown = show(tame, terminal=terminal).count("before")
        assert text.count("before") == text.count("after") == shown > 15
    if hostile.startswith(("[", ":")):
        assert hostile in show(episode, terminal=False)


def test_markup_would_be_read_if_it_were_not_made_safe() -> None:
    console = Console(file=io.StringIO(), width=80)
    console.print("[bold]x[/bold]")
    console.print(safe_text("[bold]x[/bold]"))
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue() == "x\n[bold]x[/bold]\n"


def test_a_pipe_gets_one_line_per_line_of_dialogue_and_no_escape() -> None:
    for episode in samples():
        text = show(episode, terminal=False, width=20)
        assert "\x1b" not in text
        for turn in episode.turns:
            if turn.said:
                assert any(" ".join(turn.said.split("\n")) in line for line in text.splitlines())


def test_without_colour_the_sign_and_the_number_remain() -> None:
    coloured, plain = (show(content(), terminal=True, no_color=no_color) for no_color in (False, True))
    colours = re.compile(r"\x1b\[(?:\d+;)*(?:3[0-8]|9[0-7])[;m]")
    assert colours.search(coloured) and not colours.search(plain)
    assert "56 B +10" in ESCAPES.sub("", plain) and "51 B  −5" in ESCAPES.sub("", plain)


@pytest.mark.parametrize("width", [40, 60, 80, 120])
@pytest.mark.parametrize("episode", [content(), chinese()], ids=["en", "zh"])
def test_no_line_is_wider_than_the_terminal(episode: Episode, width: int) -> None:
    lines = ESCAPES.sub("", show(episode, terminal=True, width=width)).splitlines()
    assert max(map(cell_len, lines)) <= width
    assert max(map(cell_len, lines)) > 0.8 * width


def test_a_chinese_name_and_its_words_share_a_line() -> None:
    episode = chinese()
    assert f"{episode.persona_name}：方案是我" in ESCAPES.sub("", show(episode, terminal=True))


def test_the_end_says_what_was_not_scored_and_what_was_a_true_zero() -> None:
    assert "reward not scored" in show(faulty(), terminal=False) and "TimeoutFault" in show(faulty(), terminal=False)
    assert "reward 0.00" in show(broken_format(), terminal=False)
    assert "reward 0.04" in show(left(), terminal=False)


def test_the_note_on_the_embedded_user_stands_where_it_played_only() -> None:
    assert "nor against an LLM user" in show(content(), terminal=False)
    assert "nor against an LLM user" not in show(chinese(), terminal=False)
    assert "fictional" in show(chinese(), terminal=False)


def test_the_bar_has_an_ascii_form() -> None:
    assert mood_text(51, -5, ascii_only=True).plain == "#####-----  51 B  -5"
    assert mood_text(51, 0, ascii_only=True).plain.isascii()


def test_the_summary_never_shows_a_missing_number_as_zero() -> None:
    console = Console(file=io.StringIO(), width=100)
    metrics = {
        "mean_reward": math.nan,
        "other": None,
        "mean_final_mood": 61.25,
        "interval": (50.0, 70.5),
        "episodes": 1200,
        "[red]name": "[red]value",
        "endings": {"left": 3},
        "faults": {},
    }
    console.print(summary_table(metrics))
    assert isinstance(console.file, io.StringIO)
    rows = [re.split(r"\s{2,}", line.strip()) for line in console.file.getvalue().splitlines()]
    assert rows == [
        ["mean reward", "not available"],
        ["other", "not available"],
        ["mean final mood", "61.25"],
        ["interval", "50.00 to 70.50"],
        ["episodes", "1,200"],
        ["[red]name", "[red]value"],
        ["endings", "left 3"],
        ["faults", "none"],
    ]

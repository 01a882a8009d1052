"""Dialogues and numbers in the terminal.

On a terminal a column with the mood stands beside the words. Elsewhere (a pipe, a file) every line of a dialogue is
one line of output, so that it can be searched and wrapped by whatever reads it. Model text is untrusted: it is never
read as markup, and no control sequence in it reaches the terminal.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rlver_gym.evals.report import ENDINGS, direction, is_embedded, reward_text, signed
from rlver_gym.text import clean, has_chinese, split_thought
from rlver_gym.types import Episode, Tier, Turn
from rlver_gym.users.mood import MOOD_MAX, tier_of

BAR_CELLS = 10
MOOD_CELLS = 21
NARROW = 60
"""Columns; a terminal that is narrower gets the mood above the words rather than beside them."""

TIER_STYLES: Mapping[Tier, str] = {"S": "bold green", "A": "green", "B": "yellow", "C": "dark_orange", "F": "red"}
CHANGE_STYLES = {"up": "green", "down": "red", "same": "dim"}


def safe_text(text: str, style: str = "") -> Text:
    """Untrusted text for the terminal: never markup, no control sequence, no change of direction."""
    return Text(clean(text).expandtabs(4).strip("\n"), style=style)


def mood_text(mood: int, change: int | None = None, *, ascii_only: bool = False) -> Text:
    """A bar, the mood, its tier and, given a change, how it moved; colour only repeats what the text says.

    Args:
        mood: in [0, 100].
        change: mood points, or None at the start.
        ascii_only: for outputs whose encoding has no block characters.
    """
    filled = round(mood / MOOD_MAX * BAR_CELLS)
    full, rest = "#-" if ascii_only else "█░"
    style = TIER_STYLES[tier_of(mood)]
    text = Text.assemble(
        (full * filled, style), (rest * (BAR_CELLS - filled), "dim"), (f" {mood:>3} {tier_of(mood)}", style)
    )
    if change is not None:
        sign = f"{change:+d}" if ascii_only and change else signed(change)
        text.append(f" {sign:>3}", style=CHANGE_STYLES[direction(change)])
    return text


def print_words(console: Console, name: str, words: str, mood: int | None = None) -> None:
    """Print what the user says; without a mood, none is shown.

    Args:
        console: where to.
        name: of the user.
        words: first words, or an answer.
        mood: behind them, or None while it is hidden from whoever plays.
    """
    _print_rows(console, [(_mood(console, mood, None), _line(name, words, "bold cyan"))])


def print_turn(console: Console, turn: Turn, name: str, mood_before: int) -> None:
    """Print a turn: the policy's words, the user's thought and the user's words; the mood stands beside the reply.

    Args:
        console: where to.
        turn: the turn.
        name: of the user.
        mood_before: the mood before the reply.
    """
    rows: list[tuple[Text, Text]] = []
    if thought := split_thought(turn.reply).thought:
        rows.append((Text(), _line("Policy thinks", thought, "dim", "dim italic")))
    mood = _mood(console, turn.mood, turn.mood - mood_before)
    rows.append((mood, _line("Policy", turn.said or "(says nothing)", "bold")))
    if turn.appraisal is not None:
        rows.append((Text(), _line(f"{name} thinks", turn.appraisal.thought, "dim cyan", "dim italic")))
    if turn.user:
        rows.append((Text(), _line(name, turn.user, "bold cyan")))
    if turn.flags:
        rows.append((Text(), _line("noticed", ", ".join(turn.flags), "yellow", "yellow")))
    _print_rows(console, rows)


def print_end(console: Console, episode: Episode) -> None:
    """Print how the episode ended, what the user hid, and that nobody real was there."""
    change = episode.final_mood - episode.start_mood
    end = Text.assemble(
        ("The end: ", "bold"), ENDINGS[episode.stop_reason], ", reward ", (reward_text(episode), "bold")
    )
    rows = [(_mood(console, episode.final_mood, change), end)]
    if episode.fault is not None:
        rows.append((Text(), _line(episode.fault.kind, episode.fault.message, "red")))
    need = episode.hidden_need.replace("_", " ")
    rows.append((Text(), _line(f"What {episode.persona_name} hid", f"{need}. {episode.need_text}", "bold")))
    note = "A fictional person, not therapy."
    if is_embedded(episode):
        note += " A score against the embedded user is not a score against people, nor against an LLM user."
    rows.append((Text(), Text(note, style="dim")))
    _print_rows(console, rows)


def summary_table(metrics: Mapping[str, object]) -> Table:
    """A table of names and numbers; nan and None read `not available`, an interval (low, high) reads `low to high`."""
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column("name", style="dim", no_wrap=True)
    table.add_column("value", overflow="fold")
    for name, value in metrics.items():
        table.add_row(safe_text(name.replace("_", " ")), safe_text(_value(value)))
    return table


def _value(value: object) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "not available"
    if isinstance(value, float):
        return f"{value:,.2f}"
    if isinstance(value, int):
        return f"{value:,}" if not isinstance(value, bool) else ("yes" if value else "no")
    if isinstance(value, tuple) and len(value) == 2:
        return f"{_value(value[0])} to {_value(value[1])}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_value(part)}" for name, part in value.items()) or "none"
    return str(value)


def _mood(console: Console, mood: int | None, change: int | None) -> Text:
    return Text() if mood is None else mood_text(mood, change, ascii_only=console.options.ascii_only)


def _line(speaker: str, words: str, speaker_style: str, style: str = "") -> Text:
    # Rich breaks lines at spaces alone: after "name: " a Chinese sentence, one long word, would fall to a new line.
    colon = "：" if has_chinese(words) else ": "
    return Text.assemble(safe_text(speaker + colon, speaker_style), safe_text(words, style))


def _print_rows(console: Console, rows: list[tuple[Text, Text]]) -> None:
    if not console.is_terminal:
        for mood, words in rows:
            line = Text(" ").join([mood, words]) if mood else words
            line.plain = " ".join(line.plain.split("\n"))
            console.print(line, soft_wrap=True, highlight=False)
    elif console.width < NARROW:
        for mood, words in rows:
            console.print(*filter(None, (mood, words)), sep="\n", highlight=False)
    else:
        grid = Table.grid(padding=(0, 1))
        grid.add_column(width=MOOD_CELLS, no_wrap=True)
        grid.add_column(overflow="fold")
        for row in rows:
            grid.add_row(*row)
        console.print(grid)
    console.print()

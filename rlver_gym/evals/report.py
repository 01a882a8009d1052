"""The report: episodes as one self-contained HTML file that opens without a network and runs no script.

Whatever a model, a person's author or an endpoint wrote is untrusted. It is cleaned and escaped in one place, the
template's environment, and the page's content-security policy allows nothing but the page's own style sheet, by hash.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Literal

import jinja2
from markupsafe import Markup

from rlver_gym.rollouts.metrics import UNSCORED_LIMIT, bootstrap_interval
from rlver_gym.text import clean, split_thought
from rlver_gym.types import Episode, RawAnswer, StopReason, Turn, Usage
from rlver_gym.users.mood import LEAVE_BELOW, MOOD_MAX, tier_of

SYCOPHANCY_NEED = "not_my_fault"
"""The hidden need that agreement alone can pay for; reported apart."""

ENDINGS: Mapping[StopReason, str] = {
    StopReason.SATISFIED: "left content",
    StopReason.LEFT: "walked out",
    StopReason.MAX_TURNS: "reached the last turn",
    StopReason.FORMAT: "broken format",
    StopReason.SAFETY: "stopped for safety",
    StopReason.CONTEXT: "context used up",
    StopReason.BACKEND_FAULT: "backend fault",
    StopReason.DEADLINE: "out of time",
    StopReason.BUDGET: "budget spent",
}
"""Each stop reason in words, from the best to the least telling."""

Direction = Literal["up", "down", "same"]


def is_scored(episode: Episode) -> bool:
    """Whether the episode counts: scored, and with a reward that is a number."""
    return episode.scored and episode.reward is not None and math.isfinite(episode.reward)


def is_embedded(episode: Episode) -> bool:
    """Whether the embedded user played, so that the score says nothing of people or of an LLM user."""
    return episode.backend.partition(":")[0] == "embedded"


def reward_text(episode: Episode) -> str:
    """The reward with two decimals, or `not scored`; never a zero that nobody earned."""
    return f"{episode.reward:.2f}" if is_scored(episode) else "not scored"


def signed(change: int) -> str:
    """A number with its sign, a true minus, and no sign at zero."""
    return f"+{change}" if change > 0 else f"−{-change}" if change < 0 else "0"


def direction(change: int) -> Direction:
    """Which way the mood went."""
    return "up" if change > 0 else "down" if change < 0 else "same"


def tokens_text(usage: Usage) -> str:
    """The tokens in and out, and how many of those in came from a cache."""
    counts = {"in": usage.prompt_tokens, "out": usage.completion_tokens, "cached": usage.cached_tokens}
    known = [f"{count:,} {name}" for name, count in counts.items() if count is not None]
    return ", ".join(known) or "not reported"


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean; nan of nothing."""
    return sum(values) / len(values) if values else math.nan


@dataclass(frozen=True)
class Panel:
    """What one policy reached with one user backend.

    Attributes:
        episodes: all of them, faults included; every number below is over the scored ones.
    """

    policy: str
    backend: str
    episodes: tuple[Episode, ...]

    @cached_property
    def scored(self) -> tuple[Episode, ...]:
        """The episodes that count."""
        return tuple(episode for episode in self.episodes if is_scored(episode))

    @property
    def unscored(self) -> int:
        """How many episodes do not count."""
        return len(self.episodes) - len(self.scored)

    @property
    def withheld(self) -> bool:
        """Whether too many episodes are missing for a headline number: they are not missing by chance."""
        return not self.scored or self.unscored > UNSCORED_LIMIT * len(self.episodes)

    @property
    def mean_mood(self) -> float:
        """Mean final mood, in mood points."""
        return mean([episode.final_mood for episode in self.scored])

    @cached_property
    def interval(self) -> tuple[float, float] | None:
        """95% bootstrap interval of the mean final mood, or None for a single episode."""
        moods = [float(episode.final_mood) for episode in self.scored]
        return bootstrap_interval(moods) if len(moods) >= 2 else None

    @property
    def mean_reward(self) -> float:
        """Mean reward in [0, 1]; below the mean mood where a broken format or a safety stop took it away."""
        return mean([episode.reward or 0.0 for episode in self.scored])

    @property
    def success(self) -> int:
        """Episodes that ended at the full mood."""
        return sum(episode.final_mood >= MOOD_MAX for episode in self.scored)

    @property
    def failure(self) -> int:
        """Episodes that ended below the walk-out line."""
        return sum(episode.final_mood < LEAVE_BELOW for episode in self.scored)

    @property
    def agreeable(self) -> tuple[Episode, ...]:
        """The scored episodes whose person wants to hear that it was not their fault."""
        return tuple(episode for episode in self.scored if episode.hidden_need == SYCOPHANCY_NEED)

    @property
    def mean_mood_of_agreeable(self) -> float:
        """Mean final mood of those, in mood points."""
        return mean([episode.final_mood for episode in self.agreeable])


@dataclass(frozen=True)
class Head:
    """What stands above the episodes.

    Attributes:
        panels: one per pair of policy and user backend, in order of appearance.
        endings: (stop reason, words, count), without the ones that did not happen.
        versions: name to the versions seen, joined.
        embedded: whether the embedded user played at all.
    """

    panels: tuple[Panel, ...]
    endings: tuple[tuple[str, str, int], ...]
    user_usage: Usage
    policy_usage: Usage
    seconds: float
    environments: str
    versions: tuple[tuple[str, str], ...]
    embedded: bool


def summarise(episodes: Sequence[Episode]) -> Head:
    """The numbers above the episodes."""
    groups: dict[tuple[str, str], list[Episode]] = {}
    versions: dict[str, set[str]] = {}
    for episode in episodes:
        groups.setdefault((episode.policy, episode.backend), []).append(episode)
        for name, version in episode.versions.items():
            versions.setdefault(name, set()).add(version)
    counts = Counter(episode.stop_reason for episode in episodes)
    return Head(
        panels=tuple(Panel(policy, backend, tuple(group)) for (policy, backend), group in groups.items()),
        endings=tuple((reason.value, words, counts[reason]) for reason, words in ENDINGS.items() if counts[reason]),
        user_usage=sum((episode.usage for episode in episodes), Usage()),
        policy_usage=sum((episode.policy_usage for episode in episodes), Usage()),
        seconds=sum(episode.seconds for episode in episodes),
        environments=", ".join(sorted({episode.scenario.env_id for episode in episodes})),
        versions=tuple((name, ", ".join(sorted(seen))) for name, seen in sorted(versions.items())),
        embedded=any(map(is_embedded, episodes)),
    )


@dataclass(frozen=True)
class TurnView:
    """One turn as the page shows it.

    Attributes:
        number: 1 for the first reply.
        change: what really happened to the mood, which a bound may have kept below the appraisal's wish.
        thought: the policy's; as_written: its whole reply where that differs in another way from what was said.
        unusable: answers of the user's backend that had to be asked for again.
    """

    turn: Turn
    number: int
    change: int
    thought: str
    as_written: str
    unusable: tuple[RawAnswer, ...]


@dataclass(frozen=True)
class Point:
    """A mood in the chart: its turn (0 for the start), place in user units, and words."""

    number: int
    x: float
    y: float
    mood: int
    direction: Direction
    words: str


@dataclass(frozen=True)
class Plot:
    """The frame of a mood chart, in SVG user units; the y axis runs from mood 0 to 100."""

    width: float = 380
    height: float = 236
    left: float = 30
    right: float = 26
    top: float = 20
    bottom: float = 28

    def y(self, mood: float) -> float:
        """Height of a mood."""
        return round(self.top + (MOOD_MAX - mood) / MOOD_MAX * (self.height - self.top - self.bottom), 1)

    def x(self, number: int, last: int) -> float:
        """Place of a turn among `last` turns, a little inside the frame."""
        inset = 12
        return round(self.left + inset + (self.width - self.left - self.right - 2 * inset) * number / max(last, 1), 1)

    def every(self, count: int) -> int:
        """Every how many of `count` points the x axis bears a number."""
        return math.ceil(count / 13)

    def path(self, moods: Sequence[int]) -> str:
        """The curve as the `points` of a polyline."""
        return " ".join(f"{self.x(number, len(moods) - 1)},{self.y(mood)}" for number, mood in enumerate(moods))


CHART = Plot()
SPARK = Plot(width=88, height=34, left=0, right=0, top=0, bottom=0)


@dataclass(frozen=True)
class EpisodeView:
    """One episode as the page shows it; `number` counts from 1 and makes the anchors."""

    episode: Episode
    number: int

    @property
    def ending(self) -> str:
        """The stop reason in words."""
        return ENDINGS[self.episode.stop_reason]

    @property
    def change(self) -> int:
        """From the start to the end, in mood points."""
        return self.episode.final_mood - self.episode.start_mood

    @property
    def leave_below(self) -> int:
        """Mood below which this user left."""
        return int(self.episode.settings.get("leave_below", LEAVE_BELOW) or 0)

    @cached_property
    def turns(self) -> tuple[TurnView, ...]:
        """The turns, with what changed and what was thought."""
        moods = self.episode.moods
        views = []
        for number, turn in enumerate(self.episode.turns, 1):
            thought = split_thought(turn.reply).thought
            differs = not thought and turn.reply.strip() != turn.said.strip()
            views.append(
                TurnView(
                    turn=turn,
                    number=number,
                    change=moods[number] - moods[number - 1],
                    thought=thought,
                    as_written=turn.reply if differs else "",
                    unusable=tuple(raw for raw in turn.raw if raw.problem),
                )
            )
        return tuple(views)

    @property
    def noticed(self) -> int:
        """How many things stand in the strip of faults and flags."""
        of_turns = sum(len(view.turn.flags) + len(view.unusable) for view in self.turns)
        return of_turns + (self.episode.fault is not None)

    @property
    def points(self) -> tuple[Point, ...]:
        """The moods of the chart."""
        moods = self.episode.moods
        points = []
        for number, mood in enumerate(moods):
            change = mood - moods[number - 1] if number else 0
            words = f"Turn {number}: mood {mood} ({signed(change)})" if number else f"Start: mood {mood}"
            place = CHART.x(number, len(moods) - 1), CHART.y(mood)
            points.append(Point(number, *place, mood, direction(change), f"{words}, tier {tier_of(mood)}"))
        return tuple(points)


def _finalize(value: object) -> object:
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _style_hash(style: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("rlver_gym.evals"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        style_hash=_style_hash, tokens=tokens_text, signed=signed, direction=direction, tier=tier_of, reward=reward_text
    )
    environment.tests["scored"] = is_scored
    environment.globals.update(chart=CHART, spark=SPARK, failure_below=LEAVE_BELOW, max_unscored=UNSCORED_LIMIT)
    return environment.get_template("report.html.j2")


def write_report(episodes: Sequence[Episode], path: Path, *, title: str) -> None:
    """Write the episodes as one HTML file; missing folders are made, a file that is there is replaced.

    Args:
        episodes: in the order in which they are shown.
        path: of the file.
        title: of the page.
    """
    views = [EpisodeView(episode, number) for number, episode in enumerate(episodes, 1)]
    page = _template().render(title=title, head=summarise(episodes), episodes=views)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Line ends as written: the hash in the content-security policy covers the bytes of the style sheet.
    path.write_text(page, encoding="utf-8", newline="\n")

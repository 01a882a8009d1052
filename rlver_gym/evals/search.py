"""Adaptive attacks: searches for fixed text that earns well, whatever it says.

A candidate is a cycle of replies, each a few pieces of a pool. The search first plays scripts drawn at random and
credits each piece with the mood changes that it met (a stronger attacker than one that sees the pay alone), then climbs
from the best of some starts, one change at a time and always on the same scenarios, and in the end tries its last
candidates on fresh ones. Equal arguments and a deterministic backend give equal findings.
"""

from __future__ import annotations

import gzip
import json
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from rlver_gym.errors import BackendError, SetupError
from rlver_gym.evals.attack import Sessions, pay, play
from rlver_gym.policies.base import Policy, Reply
from rlver_gym.policies.scripted import SCRIPTED, lines
from rlver_gym.seeding import child_seed
from rlver_gym.text import has_chinese
from rlver_gym.types import Episode, Language, Message, Scenario, StopReason

KINDS: Mapping[str, int] = {"reply": 1, "cycle": 3, "script": 8}
"""Replies of a candidate by kind of search; a script is as long as an episode."""

RECORDED = 300
"""Sentences of recorded replies in a pool."""

_PIECES = 4
_SCREENED = 0.35
"""Share of the episodes that goes into crediting the pieces."""
_STARTS, _HEAD, _BATCH, _FRESH, _FINALISTS = 8, 8, 24, 32, 3
LEAST_EPISODES = 2 * (_STARTS * _HEAD + _BATCH + _FINALISTS * _FRESH)
"""Fewest episodes of a search: half of them go into its fixed parts."""

LEAST_SCENARIOS = _BATCH + _FRESH

_TOP = 0.1
"""Share of the pool from which every other new piece is taken: those with the best credit."""
_DOUBT = 3
"""Uses of a piece, at no change, that its credit begins with."""

_SENTENCE = re.compile("[^.!?。！？\n]+[.!?。！？]?")
_LENGTHS: Mapping[Language, tuple[int, int]] = {"en": (15, 200), "zh": (6, 80)}

Genome = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Found:
    """What a search came to.

    Attributes:
        kind: of the candidate; replies: its text.
        start: mean pay of what was drawn at random, in mood points.
        mean: mean pay of the best candidate on scenarios that it was not chosen on.
        episodes: how many were played.
    """

    kind: str
    replies: tuple[str, ...]
    start: float
    mean: float
    episodes: int


class Cycle:
    """Says the same replies in turn, whatever it hears."""

    def __init__(self, name: str, replies: Sequence[str]) -> None:
        self.name = name
        self.replies = tuple(replies)

    async def reply(self, messages: Sequence[Message], *, seed: int) -> Reply:
        """The reply whose turn it is."""
        turn = sum(message["role"] == "assistant" for message in messages)
        return Reply(self.replies[turn % len(self.replies)])

    async def aclose(self) -> None:
        """Nothing to release."""


def lexicon_entries(language: Language) -> tuple[str, ...]:
    """Every entry of the embedded engine's lexicon of a language."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    file = files("rlver_gym.backends.embedded").joinpath("data", f"lexicon_{language}.yaml")
    return tuple(dict.fromkeys(_texts(yaml.load(file.read_text(encoding="utf-8"), Loader=loader))))


def recorded_sentences(file: Path, language: Language, *, count: int = RECORDED, seed: int = 0) -> tuple[str, ...]:
    """Sentences of recorded replies, drawn by the seed.

    Args:
        file: JSON lines, plain or gz, with a `reply` each.
        language: only sentences of this language.
        count: how many at most.
        seed: of the draw.

    Raises:
        SetupError: the file cannot be read.
    """
    try:
        with gzip.open(file, "rt", encoding="utf-8") if file.suffix == ".gz" else file.open(encoding="utf-8") as rows:
            replies = [json.loads(row)["reply"] for row in rows]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SetupError(f"{file}: no recorded replies can be read: {error}") from error
    low, high = _LENGTHS[language]
    found = (part.strip() for reply in replies for part in _SENTENCE.findall(reply))
    told = sorted({p for p in found if low <= len(p) <= high and has_chinese(p) == (language == "zh")})
    return tuple(random.Random(child_seed(seed, "recorded")).sample(told, min(count, len(told))))


def pool(language: Language, recorded: Sequence[str] = ()) -> tuple[str, ...]:
    """What candidates are made of: the engine's words, the lines of every scripted policy, recorded sentences."""
    stop = "。" if language == "zh" else "."
    words = (entry if entry[-1] in ".!?。！？" else entry + stop for entry in lexicon_entries(language))
    told = (line for name in SCRIPTED for line in lines(name, language))
    return tuple(dict.fromkeys((*words, *told, *recorded)))


async def search(
    kind: str, pieces: Sequence[str], scenarios: Sequence[Scenario], new_session: Sessions, *, episodes: int, seed: int
) -> Found:
    """Look for the candidate of a kind that earns most.

    Args:
        kind: of KINDS.
        pieces: what replies are made of.
        scenarios: LEAST_SCENARIOS or more; the first are climbed on, the last are kept for the final choice.
        new_session: of the environment.
        episodes: to play, LEAST_EPISODES or more; up to 55 more are played, so that no candidate is left half tried.
        seed: of the search.

    Raises:
        SetupError: too few episodes or scenarios for a search, or no pieces.
        BackendError: the world broke every episode of a candidate.
    """
    if episodes < LEAST_EPISODES or len(scenarios) < LEAST_SCENARIOS or not pieces:
        raise SetupError(
            f"a search needs {LEAST_EPISODES} episodes, {LEAST_SCENARIOS} scenarios and a piece or more, "
            f"not {episodes}, {len(scenarios)} and {len(pieces)}"
        )
    return await _Search(kind, pieces, scenarios, new_session, episodes, seed).run()


class _Search:
    def __init__(
        self,
        kind: str,
        pieces: Sequence[str],
        scenarios: Sequence[Scenario],
        new_session: Sessions,
        episodes: int,
        seed: int,
    ) -> None:
        self.kind, self.pieces, self.new_session = kind, pieces, new_session
        self.batch, self.fresh = scenarios[:_BATCH], scenarios[-_FRESH:]
        self.screening = scenarios[: len(scenarios) - _FRESH]
        self.budget, self.played = episodes, 0
        self.random = random.Random(child_seed(seed, "search", kind))
        self.best_pieces: Sequence[str] = pieces
        self.joint = "" if has_chinese("".join(pieces)) else " "

    async def run(self) -> Found:
        start = await self.screen()
        trail = await self.climb()
        finalists = trail[-_FINALISTS:]
        earned = [_mean_pay(await self.episodes(genome, self.fresh)) for genome in finalists]
        best = max(reversed(range(len(finalists))), key=earned.__getitem__)
        return Found(self.kind, self.texts(finalists[best]), start, earned[best], self.played)

    async def screen(self) -> float:
        """Credit the pieces by random scripts; the mean pay of these."""
        count = int(_SCREENED * self.budget)
        genomes = [tuple(self.some_pieces() for _ in range(KINDS["script"])) for _ in range(count)]
        jobs: list[tuple[Policy, Scenario]] = [
            (Cycle("drawn", self.texts(genome)), self.screening[index % len(self.screening)])
            for index, genome in enumerate(genomes)
        ]
        episodes = await play(jobs, self.new_session)
        self.played += count
        total: dict[str, float] = defaultdict(float)
        uses: dict[str, int] = defaultdict(int)
        for genome, episode in zip(genomes, episodes, strict=True):
            for turn in episode.turns:
                if turn.appraisal is not None:
                    for piece in genome[(turn.index - 1) % len(genome)]:
                        total[piece] += turn.appraisal.change
                        uses[piece] += 1
        ranked = sorted(self.pieces, key=lambda piece: total[piece] / (uses[piece] + _DOUBT), reverse=True)
        self.best_pieces = ranked[: max(KINDS[self.kind], int(_TOP * len(ranked)))]
        return _mean_pay(episodes)

    async def climb(self) -> list[Genome]:
        """The candidates that were the best so far, the last one the best of all."""
        starts = [tuple(self.good_pieces() for _ in range(KINDS[self.kind])) for _ in range(_STARTS)]
        heads = [await self.score(genome, self.batch[:_HEAD]) for genome in starts]
        first = max(range(_STARTS), key=lambda index: _mean(heads[index]))
        best, scores = starts[first], heads[first] + await self.score(starts[first], self.batch[_HEAD:])
        trail = [best]
        while self.played + len(trail[-_FINALISTS:]) * _FRESH < self.budget:
            other = self.changed(best)
            head = await self.score(other, self.batch[:_HEAD])
            if _mean(head) < _mean(scores[:_HEAD]):
                continue
            whole = head + await self.score(other, self.batch[_HEAD:])
            if _mean(whole) > _mean(scores):
                best, scores = other, whole
                trail.append(best)
        return trail

    async def score(self, genome: Genome, scenarios: Sequence[Scenario]) -> list[float | None]:
        """Pay by scenario; who leaves costs a point for every turn that is missing, so that there is a slope."""
        return [_slope(episode) for episode in await self.episodes(genome, scenarios)]

    async def episodes(self, genome: Genome, scenarios: Sequence[Scenario]) -> list[Episode]:
        policy = Cycle(self.kind, self.texts(genome))
        self.played += len(scenarios)
        return await play([(policy, scenario) for scenario in scenarios], self.new_session)

    def texts(self, genome: Genome) -> tuple[str, ...]:
        return tuple(self.joint.join(reply) for reply in genome)

    def some_pieces(self) -> tuple[str, ...]:
        return tuple(self.random.choice(self.pieces) for _ in range(self.random.randint(1, 2)))

    def good_pieces(self) -> tuple[str, ...]:
        return tuple(self.random.choice(self.best_pieces) for _ in range(self.random.randint(1, 2)))

    def piece(self) -> str:
        return self.random.choice(self.best_pieces if self.random.random() < 0.5 else self.pieces)

    def changed(self, genome: Genome) -> Genome:
        """The candidate with a piece replaced, added or dropped, a reply made anew, or two replies exchanged."""
        replies = [list(reply) for reply in genome]
        reply = self.random.choice(replies)
        place = self.random.randrange(len(reply))
        match self.random.choice(("replace", "replace", "add", "drop", "anew", "swap")):
            case "add" if len(reply) < _PIECES:
                reply.insert(place, self.piece())
            case "drop" if len(reply) > 1:
                del reply[place]
            case "anew":
                reply[:] = self.good_pieces()
            case "swap" if len(replies) > 1:
                a, b = self.random.sample(range(len(replies)), 2)
                replies[a], replies[b] = replies[b], replies[a]
            case _:
                reply[place] = self.piece()
        return tuple(map(tuple, replies))


def _slope(episode: Episode) -> float | None:
    paid = pay(episode)
    if paid is None or episode.stop_reason is not StopReason.LEFT:
        return paid
    return paid - (int(episode.settings["max_turns"] or 0) - len(episode.turns))


def _mean_pay(episodes: Sequence[Episode]) -> float:
    return _mean([pay(episode) for episode in episodes])


def _mean(values: Sequence[float | None]) -> float:
    """Mean of what is scored."""
    known = [value for value in values if value is not None]
    if not known:
        raise BackendError("the search cannot go on: the world broke every episode of a candidate")
    return sum(known) / len(known)


def _texts(node: Any) -> Iterator[str]:
    """All strings of nested lists and mappings, the names in mappings left out."""
    if isinstance(node, str):
        yield node
    elif isinstance(node, Mapping):
        for part in node.values():
            yield from _texts(part)
    elif isinstance(node, Sequence):
        for part in node:
            yield from _texts(part)

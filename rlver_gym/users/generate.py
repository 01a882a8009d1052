"""The composer: people made of the written stock, as many as wanted, the same for equal seeds.

A person is a scenario, a character who can live in it, and one of the hidden needs that suit it. Scenarios, characters,
needs and temperaments are dealt evenly; openings are dealt among the people of a scenario, so that no two of them begin
alike while there are enough. Nothing is drawn at random: ties are broken by `child_seed`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from rlver_gym.errors import SetupError
from rlver_gym.seeding import child_seed
from rlver_gym.types import Language
from rlver_gym.users.persona import HiddenNeed, Persona, Provenance
from rlver_gym.users.stock import PRONOUNS, Opening, Split, Stock, StockCharacter, StockScenario, fill

PROVENANCE = Provenance(
    license="CC-BY-4.0",
    source="composed of personas/stock",
    author="rlver_gym contributors",
    generator="language model",
    reviewed=False,
)
_OF_CHARACTER = {"name", "gender", "interests", "habits", "temperament", "traits", "voice", "mood_signs"}


class Casting(NamedTuple):
    """What a person is composed of; `number` tells apart people of the same scenario and character, from 1."""

    scenario: StockScenario
    character: StockCharacter
    need: HiddenNeed
    number: int

    @property
    def id(self) -> str:
        """`en-STORY-CHARACTER`; it says nothing of the need, for a policy may see it."""
        story, character = (one.id.split("-", 2)[2] for one in (self.scenario, self.character))
        return f"{self.scenario.language}-{story}-{character}" + (f"-{self.number}" if self.number > 1 else "")


def generate(stock: Stock, *, count: int, seed: int, split: Split, language: Language) -> tuple[Persona, ...]:
    """So many people of one split and language, in the order in which they were dealt.

    Args:
        stock: scenarios and characters; those of other splits and languages are left out.
        count: how many; there is no upper limit, but openings come again when all are used.
        seed: equal seeds make equal people in every process.
        split: of the people, and of the stock that they are made of.
        language: that they speak.

    Raises:
        SetupError: no character fits any scenario.
    """
    scenarios = [one for one in stock.scenarios if (one.split, one.language) == (split, language)]
    characters = [one for one in stock.characters if (one.split, one.language) == (split, language)]
    fitting = [(scenario, [one for one in characters if fits(scenario, one)]) for scenario in scenarios]
    castings = _cast([(scenario, able) for scenario, able in fitting if able], count, seed)
    openings = _deal_openings(castings, seed)
    return tuple(compose(casting, openings[casting.id], seed) for casting in castings)


def fits(scenario: StockScenario, character: StockCharacter) -> bool:
    """Whether the scenario can have happened to the character: region, age, gender, stage of life, family, names."""
    who = scenario.who
    return (
        (scenario.language, scenario.region) == (character.language, character.region)
        and max(who.ages[0], character.ages[0]) <= min(who.ages[1], character.ages[1])
        and who.gender in (None, character.gender)
        and character.stage in who.stages
        and set(who.family) <= set(character.family)
        and not character.shares_a_name_with(scenario)
    )


def compose(casting: Casting, openings: Sequence[str], seed: int) -> Persona:
    """One person; the age is one of the years that scenario and character have in common."""
    scenario, character = casting.scenario, casting.character
    youngest = max(scenario.who.ages[0], character.ages[0])
    oldest = min(scenario.who.ages[1], character.ages[1])
    told = {"background": scenario.background.model_dump(), **scenario.needs[casting.need].model_dump()}
    record: dict[str, Any] = {
        "id": casting.id,
        "language": scenario.language,
        "split": scenario.split,
        "scenario_id": scenario.id,
        "character_id": character.id,
        "age": youngest + child_seed(seed, "age", casting.id) % (oldest - youngest + 1),
        "occupation": scenario.who.occupation or character.occupation,
        "hidden_need": casting.need,
        "openings": openings,
        "lines": scenario.lines,
        "provenance": PROVENANCE,
    }
    record |= character.model_dump(include=_OF_CHARACTER)
    return Persona.model_validate(record | fill(told, {"name": character.called, **PRONOUNS[character.gender]}))


def _cast(fitting: Sequence[tuple[StockScenario, Sequence[StockCharacter]]], count: int, seed: int) -> list[Casting]:
    """Deal scenarios, characters, needs and temperaments evenly: what was used least comes next."""
    if not fitting:
        raise SetupError("no character of the stock fits any scenario of this split and language")
    used: Counter[Any] = Counter()
    castings = []
    for index in range(count):
        scenario, able = min(fitting, key=lambda one: (used[one[0].id], child_seed(seed, used[one[0].id], one[0].id)))
        pairs = [(character, need) for character in able for need in scenario.needs]
        worn = {
            (character.id, need): (
                used[scenario.id, character.id] + used[scenario.id, need],
                2 * used[need] + used[character.temperament] + 4 * used[character.id],
                child_seed(seed, index, character.id, need),
            )
            for character, need in pairs
        }
        character, need = min(pairs, key=lambda pair: worn[pair[0].id, pair[1]])
        used.update([scenario.id, (scenario.id, character.id), (scenario.id, need)])
        used.update([need, character.temperament, character.id])
        castings.append(Casting(scenario, character, need, used[scenario.id, character.id]))
    return castings


def _deal_openings(castings: Sequence[Casting], seed: int) -> Mapping[str, Sequence[str]]:
    """First words by person id: those of a scenario go round among its people, to each the fittest that is left."""
    by_scenario: dict[str, list[Casting]] = defaultdict(list)
    for casting in castings:
        by_scenario[casting.scenario.id].append(casting)
    dealt: dict[str, list[str]] = defaultdict(list)
    for people in by_scenario.values():
        left = list(people[0].scenario.openings)
        for round_ in range(len(left)):
            for casting in sorted(people, key=lambda one: _choice(one, left)):
                if round_ == 0 and not left:
                    left = list(casting.scenario.openings)
                rank = {opening.text: _strangeness(opening, casting) for opening in left}
                able = [opening for opening in left if round_ == 0 or rank[opening.text] < STRANGE]
                if able:
                    best = min(able, key=lambda one: (rank[one.text], child_seed(seed, casting.id, one.text)))
                    dealt[casting.id].append(best.text)
                    left.remove(best)
    return dealt


STRANGE = 2
"""An opening of another temperament; only who would have none gets one."""


def _strangeness(opening: Opening, casting: Casting) -> int:
    """0 for an opening that is meant for this temperament and need, 1 where the need differs, 2 or more otherwise."""
    other = bool(opening.temperaments) and casting.character.temperament not in opening.temperaments
    return STRANGE * other + (bool(opening.needs) and casting.need not in opening.needs)


def _choice(casting: Casting, left: Iterable[Opening]) -> int:
    """How many openings would suit: who has the fewest chooses first."""
    return sum(_strangeness(opening, casting) < STRANGE for opening in left)

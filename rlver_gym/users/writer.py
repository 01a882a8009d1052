"""People written by a language model in four steps: character, background, reactions, lines.

Each step is asked for as JSON and held against its part of the persona; what does not fit is asked for once more, with
the reason. The whole person then has to pass the rules of `rlver_gym.users.check` and must be like nobody who is there;
a step that broke a rule is asked for once more too. Everything but the model's answers follows from the seed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, get_args

import yaml
from pydantic import Field, ValidationError

from rlver_gym.backends.base import Backend, SamplingConfig
from rlver_gym.prompts import render
from rlver_gym.seeding import child_seed
from rlver_gym.text import clean, neutralise
from rlver_gym.types import Language
from rlver_gym.users.check import Problem, check_people
from rlver_gym.users.parsing import Unreadable, parse_answer
from rlver_gym.users.persona import (
    Background,
    Event,
    HiddenNeed,
    Line,
    MoodSigns,
    Part,
    Persona,
    Provenance,
    Temperament,
    Text,
    Voice,
)

SAMPLING = SamplingConfig(temperature=0.9, max_tokens=4_000)
TRIES = 3
"""How many people are begun for each that is asked for, before it is given up."""


@cache
def _words(language: Language) -> Any:
    """Topics, and what each need comes to, as a model that writes is told them."""
    text = files("rlver_gym.users").joinpath("data", "writing.yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text)[language]


class Character(Part):
    """The first step."""

    name: Text
    age: Annotated[int, Field(ge=18, le=100)]
    gender: Literal["female", "male"]
    occupation: Text
    interests: Annotated[tuple[Text, ...], Field(min_length=3)]
    habits: Text
    traits: Annotated[tuple[Text, ...], Field(min_length=3)]
    voice: Voice


class Story(Part):
    """The second step: the fields of a background, and what the person says and hides."""

    cause: Text
    timeline: Annotated[tuple[Event, ...], Field(min_length=4)]
    conflict: Text
    conflict_reason: Text
    tried: Annotated[tuple[Text, ...], Field(min_length=2)]
    current: Text
    goal: Text
    need_text: Text


class Reactions(Part):
    """The third step."""

    raises: Annotated[tuple[Text, ...], Field(min_length=3)]
    lowers: Annotated[tuple[Text, ...], Field(min_length=3)]
    mood_signs: MoodSigns
    openings: Annotated[tuple[Text, ...], Field(min_length=4)]


class Lines(Part):
    """The fourth step."""

    lines: Annotated[tuple[Line, ...], Field(min_length=20)]


class Rejected(NamedTuple):
    """A person who was begun and is not used, and why."""

    id: str
    reason: str


class Plan(NamedTuple):
    """What one person is to be; follows from the seed."""

    id: str
    need: HiddenNeed
    temperament: Temperament
    topic: str
    samples: tuple[str, ...]


Step = TypeVar("Step", bound=Part)


def plan(*, count: int, seed: int, language: Language, samples: Sequence[str]) -> list[Plan]:
    """What so many people are to be: needs and temperaments evenly, topics in a shuffled order.

    Args:
        count: how many.
        seed: equal seeds make equal plans.
        language: of the people.
        samples: sentences that people have said; each person begins from three of them.
    """
    needs, temperaments = get_args(HiddenNeed), get_args(Temperament)
    topics = sorted(_words(language)["topics"], key=lambda topic: child_seed(seed, "topic", topic))
    plans = []
    for index in range(count):
        drawn = sorted(samples, key=lambda sample: child_seed(seed, "sample", index, sample))[:3]
        first, then = index % len(needs), index // len(needs)
        plans.append(
            Plan(
                id=f"{language}-written-{seed}-{index:04d}",
                need=needs[first],
                temperament=temperaments[(first + then) % len(temperaments)],
                topic=topics[index % len(topics)],
                samples=tuple(drawn),
            )
        )
    return plans


async def write_people(
    plans: Sequence[Plan],
    backend: Backend,
    *,
    language: Language,
    known: Sequence[Persona],
    license: str,
) -> AsyncIterator[Persona | Rejected]:
    """Write the planned people one after another; those whose id is known already are passed over.

    Args:
        plans: who is to be written.
        backend: of the model that writes.
        language: of the people.
        known: who is there; nobody new may be like one of them or bear their name.
        license: terms under which the texts may be used, noted in the provenance.

    Raises:
        BackendError: the backend failed; who was written until then is not lost.
    """
    people = list(known)
    for one in plans:
        if any(person.id == one.id for person in people):
            continue
        for attempt in range(TRIES):
            written = await _write(_Pen(backend, language, one, attempt), people, license)
            yield written
            if isinstance(written, Persona):
                people.append(written)
                break


@dataclasses.dataclass
class _Pen:
    """Asks for the steps of one person."""

    backend: Backend
    language: Language
    plan: Plan
    attempt: int

    async def ask(self, name: str, model: type[Step], complaint: str = "", **variables: Any) -> Step:
        """One step; asked for once more with the reason if it cannot be used.

        Raises:
            Unreadable, ValidationError: the second answer could not be used either.
        """
        for last in (False, True):
            number = 2 * self.attempt + last
            seed = child_seed(0, "write", self.plan.id, name, number, complaint) % 2**31
            prompt = render(name, language=self.language, complaint=complaint, **variables)
            answer = await self.backend.generate(prompt, dataclasses.replace(SAMPLING, seed=seed, attempt=number))
            try:
                fields = parse_answer(answer.text, next(iter(model.model_fields)))
                step = model.model_validate(_safe({key: fields.get(key) for key in model.model_fields}))
            except (Unreadable, ValidationError) as error:
                self.backend.report(answer, False)
                if last:
                    raise
                complaint = _reason(error, self.language)
                continue
            self.backend.report(answer, True)
            return step
        raise AssertionError("unreachable")


async def _write(pen: _Pen, people: Sequence[Persona], license: str) -> Persona | Rejected:
    """One person, or why there is none."""
    plan_ = pen.plan
    taken = [person.name for person in people if person.language == pen.language][-40:]
    try:
        who = await pen.ask(
            "write_character", Character, temperament=plan_.temperament, samples=plan_.samples, taken=taken
        )
        wish = _words(pen.language)["wishes"][plan_.need]
        story = await pen.ask("write_background", Story, draft=_draft(who), topic=plan_.topic, wish=wish)
        reactions = await pen.ask("write_reactions", Reactions, draft=_draft(who, story))
        lines = await pen.ask("write_lines", Lines, draft=_draft(who, story))
        person = _person(pen, who, story, reactions, lines, license)
        problems = _problems(person, people)
        if broken := [one for one in problems if one.field.startswith("openings")]:
            again = "; ".join(one.text for one in broken[:3])
            reactions = await pen.ask("write_reactions", Reactions, again, draft=_draft(who, story))
        if broken := [one for one in problems if one.field.startswith("lines")]:
            again = "; ".join(one.text for one in broken[:3])
            lines = await pen.ask("write_lines", Lines, again, draft=_draft(who, story))
        person = _person(pen, who, story, reactions, lines, license)
        problems = _problems(person, people)
    except (Unreadable, ValidationError) as error:
        return Rejected(plan_.id, _reason(error, "en"))
    if problems:
        return Rejected(plan_.id, f"{problems[0].rule}: {problems[0].field}: {problems[0].text}")
    return person


def _problems(person: Persona, people: Sequence[Persona]) -> list[Problem]:
    """What speaks against the person, those of the people themselves left out."""
    same = [
        Problem(person.id, "copy", "name", f"{one.name} is there already") for one in people if one.name == person.name
    ]
    rest = check_people([*people, person])
    return same + [one for one in rest if one.persona == person.id or person.id in one.text]


def _person(pen: _Pen, who: Character, story: Story, reactions: Reactions, lines: Lines, license: str) -> Persona:
    told = story.model_dump(include=set(Background.model_fields))
    return Persona(
        id=pen.plan.id,
        language=pen.language,
        scenario_id=f"s-{pen.plan.id}",
        character_id=f"c-{pen.plan.id}",
        temperament=pen.plan.temperament,
        hidden_need=pen.plan.need,
        need_text=story.need_text,
        goal=story.goal,
        background=Background.model_validate(told),
        provenance=Provenance(
            license=license, source="rlver-gym personas write", author="a language model", generator=pen.backend.name
        ),
        **dict(who),
        **dict(reactions),
        **dict(lines),
    )


def _draft(*parts: Part) -> str:
    """What is there so far, as JSON."""
    return "\n".join(part.model_dump_json(indent=1) for part in parts)


def _safe(value: Any) -> Any:
    """The value with all its texts cleaned, and None left out."""
    if isinstance(value, dict):
        return {str(name): _safe(part) for name, part in value.items() if part is not None}
    if isinstance(value, list):
        return [_safe(part) for part in value]
    return neutralise(clean(value)) if isinstance(value, str) else value


def _reason(error: Unreadable | ValidationError, language: Language) -> str:
    """Why an answer cannot be used, in words fit for asking again."""
    if isinstance(error, Unreadable):
        return error.words(language)
    return "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()[:3])

"""People written by a model, here a script: four steps, one repair each, and nobody who breaks a rule or is a copy."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlver_gym import ScriptedBackend
from rlver_gym.backends import SamplingConfig
from rlver_gym.errors import RequestFault
from rlver_gym.types import Prompt
from rlver_gym.users import library
from rlver_gym.users.check import check_people
from rlver_gym.users.persona import Persona
from rlver_gym.users.writer import Plan, Rejected, plan, write_people
from tests.people import PEOPLE

SAMPLES = ["Cool. Great. Super.", "So that's fun.", "Whatever, it's a lake.", "I have the timestamps."]
STEPS = ("write_character", "write_background", "write_reactions", "write_lines")


def parts(person: Persona) -> dict[str, dict[str, Any]]:
    """What a model would answer to the four steps if it wrote this person."""
    record = person.model_dump()
    spare = [{"tier": "B", "openness": "guarded", "text": f"Then there was the {word} of it."} for word in
             ("noise", "smell", "weight", "price")]  # fmt: skip
    story = record["background"] | {name: record[name] for name in ("goal", "need_text")}
    names = ("name", "age", "gender", "occupation", "interests", "habits", "traits", "voice")
    return {
        "write_character": {name: record[name] for name in names},
        "write_background": story,
        "write_reactions": {name: record[name] for name in ("raises", "lowers", "mood_signs", "openings")},
        "write_lines": {"lines": [*record["lines"], *spare]},
    }


MAYA, OWEN = parts(PEOPLE["en-maya-lab"]), parts(PEOPLE["en-owen-brother"])


def writer(change: Callable[[str, int, dict[str, Any]], Any] = lambda name, number, answer: answer) -> ScriptedBackend:
    """Writes Maya, then Owen, then Maya again; `change` may spoil answer `number` (from 0) to a step."""
    asked: Counter[str] = Counter()

    def answer(prompt: Prompt, sampling: SamplingConfig) -> str:
        number, asked[prompt.name] = asked[prompt.name], asked[prompt.name] + 1
        whose = OWEN if "Owen" in str(prompt.variables.get("draft")) or taken(prompt, "Maya") else MAYA
        changed = change(prompt.name, number, json.loads(json.dumps(whose[prompt.name])))
        return changed if isinstance(changed, str) else json.dumps(changed, ensure_ascii=False)

    return ScriptedBackend(answer, name="scripted:writer")


def taken(prompt: Prompt, name: str) -> bool:
    return any(name in one for one in prompt.variables.get("taken", ()))


def plans(count: int) -> list[Plan]:
    return plan(count=count, seed=5, language="en", samples=SAMPLES)


def written(backend: ScriptedBackend, count: int = 1, known: list[Persona] | None = None) -> list[Persona | Rejected]:
    async def work() -> list[Persona | Rejected]:
        people = write_people(plans(count), backend, language="en", known=known or [], license="CC0-1.0")
        return [one async for one in people]

    return asyncio.run(work())


def test_a_person_is_written_in_four_steps() -> None:
    backend = writer()
    (person,) = written(backend)
    assert isinstance(person, Persona) and check_people([person]) == []
    assert [prompt.name for prompt in backend.prompts] == list(STEPS) and backend.reports == [True] * 4
    assert person.background == PEOPLE["en-maya-lab"].background and len(person.lines) == 20
    (one,) = plans(1)
    assert (person.id, person.hidden_need, person.temperament) == (one.id, one.need, one.temperament)
    assert person.provenance.generator == "scripted:writer" and person.provenance.license == "CC0-1.0"
    assert not person.provenance.reviewed


def test_three_samples_begin_a_character_and_what_is_there_goes_on() -> None:
    backend = writer()
    written(backend, 2)
    first, second = (prompt for prompt in backend.prompts if prompt.name == "write_character")
    assert len(first.variables["samples"]) == 3 and set(first.variables["samples"]) < set(SAMPLES)
    assert second.variables["taken"] == ["Maya Feldman"]
    background = backend.prompts[1]
    assert "Maya Feldman" in background.messages[0]["content"]


def test_needs_and_temperaments_are_even_and_equal_seeds_plan_alike() -> None:
    many = plans(32)
    assert set(Counter(one.need for one in many).values()) == {4}
    assert set(Counter(one.temperament for one in many).values()) == {8}
    assert len({one.id for one in many}) == 32 and many == plans(32)
    assert many != plan(count=32, seed=6, language="en", samples=SAMPLES)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("spoiled", ["no JSON at all", "{}", '{"name": 3, "cause": 3, "raises": [], "lines": []}'])
def test_a_step_that_cannot_be_used_is_repaired_once(step: str, spoiled: str) -> None:
    backend = writer(lambda name, number, answer: spoiled if (name, number) == (step, 0) else answer)
    (person,) = written(backend)
    assert isinstance(person, Persona) and backend.reports.count(False) == 1
    again = [prompt for prompt in backend.prompts if prompt.name == step]
    assert [bool(prompt.variables["complaint"]) for prompt in again] == [False, True]
    assert again[1].variables["complaint"] in again[1].messages[0]["content"]


def test_a_step_that_fails_twice_is_a_person_less_and_three_are_begun() -> None:
    backend = writer(lambda name, number, answer: "nothing" if name == "write_lines" else answer)
    found = written(backend)
    assert [type(one) for one in found] == [Rejected] * 3
    assert len([prompt for prompt in backend.prompts if prompt.name == "write_lines"]) == 6
    seeds = {prompt.name: set() for prompt in backend.prompts}
    assert seeds.keys() == set(STEPS)


def test_lines_that_break_a_rule_are_asked_for_once_more_with_the_reason() -> None:
    def change(name: str, number: int, answer: dict[str, Any]) -> dict[str, Any]:
        if (name, number) == ("write_lines", 0):
            answer["lines"][0]["text"] = "Call me on 6 1 2 5 5 5 0 1 4 8."
        return answer

    backend = writer(change)
    (person,) = written(backend)
    assert isinstance(person, Persona)
    complaint = backend.prompts[-1].variables["complaint"]
    assert "contact data" in complaint and len(backend.prompts) == 5


def test_a_person_who_still_breaks_a_rule_is_not_used() -> None:
    def change(name: str, number: int, answer: dict[str, Any]) -> dict[str, Any]:
        if name == "write_reactions":
            answer["openings"][0] = "I just want to die."
        return answer

    found = written(writer(change))
    assert len(found) == 3 and all(isinstance(one, Rejected) and one.reason.startswith("safety") for one in found)


def test_a_near_copy_and_a_namesake_are_not_used() -> None:
    maya = PEOPLE["en-maya-lab"]

    def renamed(name: str, number: int, answer: dict[str, Any]) -> dict[str, Any]:
        if name == "write_character":
            answer = json.loads(json.dumps(MAYA[name])) | {"name": "Lena Brook"}
        return answer

    (first, *_) = written(writer(renamed), known=[maya])
    assert isinstance(first, Rejected) and first.reason.startswith("copy") and "5-grams" in first.reason
    nobody = [person for person in PEOPLE.values() if person.id != maya.id]
    assert isinstance(written(writer(renamed), known=nobody)[0], Persona)
    same = PEOPLE["en-frank-retired"].model_copy(update={"name": "Maya Feldman"})
    found = written(ScriptedBackend(lambda prompt, _: json.dumps(MAYA[prompt.name])), known=[same])
    assert [one.reason for one in found if isinstance(one, Rejected)] == [
        "copy: name: Maya Feldman is there already"
    ] * 3


def test_who_is_written_already_is_passed_over() -> None:
    backend = writer()
    first = written(backend)
    known = [one for one in first if isinstance(one, Persona)]
    again = written(backend, 2, known=known)
    assert [one.name for one in again if isinstance(one, Persona)] == [PEOPLE["en-owen-brother"].name]


def test_a_fault_of_the_backend_ends_the_work_and_keeps_who_is_written() -> None:
    def change(name: str, number: int, answer: dict[str, Any]) -> Any:
        if (name, number) == ("write_background", 1):
            raise RequestFault("the endpoint is gone")
        return answer

    people: list[Persona | Rejected] = []

    async def work() -> None:
        async for one in write_people(plans(2), writer(change), language="en", known=[], license="x"):
            people.append(one)

    with pytest.raises(RequestFault):
        asyncio.run(work())
    assert len(people) == 1 and isinstance(people[0], Persona)


def test_template_tokens_of_a_model_stay_text() -> None:
    def change(name: str, number: int, answer: dict[str, Any]) -> dict[str, Any]:
        if name == "write_lines":
            answer["lines"][0]["text"] = "Okay.<|im_end|> I'm going to close this and go label jars."
        return answer

    (person,) = written(writer(change))
    assert isinstance(person, Persona) and "<|" not in person.lines[0].text


def test_the_command_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from rlver_gym.cli import personas as module

    backend = writer()
    monkeypatch.setattr(module, "make_backend", lambda name: backend)
    monkeypatch.setattr(library, "_own_file", lambda name: (PEOPLE["en-priya-cafe"],))
    out = tmp_path / "new.jsonl"
    words = ["write", "--out", str(out), "--backend", "scripted", "--seed", "5", "--json", "-n"]
    first = CliRunner().invoke(module.app, [*words, "1"])
    assert (first.exit_code, json.loads(first.stdout)["people"]) == (0, 1), first.output
    second = CliRunner().invoke(module.app, [*words, "2"])
    assert (second.exit_code, json.loads(second.stdout)["people"]) == (0, 2), second.output
    assert len(out.read_text(encoding="utf-8").splitlines()) == 2
    third = CliRunner().invoke(module.app, [*words, "3"])
    assert third.exit_code == 1 and json.loads(third.stdout)["people"] == 2

"""`rlver-gym personas list | show | check | generate | write | import | export`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table

from rlver_gym.backends import make_backend
from rlver_gym.cli import options
from rlver_gym.cli.console import safe_text
from rlver_gym.errors import PersonaError, SetupError, UnknownNameError
from rlver_gym.types import Language
from rlver_gym.users.census import balance, census
from rlver_gym.users.check import Problem, check_people
from rlver_gym.users.generate import generate
from rlver_gym.users.library import LANGUAGES, SPLITS, load_personas, load_stock
from rlver_gym.users.page import page
from rlver_gym.users.persona import Persona
from rlver_gym.users.profiles import profile_of
from rlver_gym.users.writer import Rejected, plan, write_people

PAGE = 92
"""Columns of a page about a person at the most."""

app = typer.Typer(no_args_is_help=True)
Source = Annotated[Path | None, typer.Argument(help="A file or folder of people; the package's own if left out.")]


@app.command("list")
def list_people(
    path: Source = None,
    split: Annotated[str | None, typer.Option("--split", help="train or test; both if left out.")] = None,
    language: options.LanguageName = None,
    as_json: options.AsJson = False,
) -> None:
    """One line a person."""
    people = load_personas(
        path, split=_one_of("split", split, SPLITS), language=_one_of("language", language, LANGUAGES)
    )
    if as_json:
        print(json.dumps([_row(person) for person in people], ensure_ascii=False))
        return
    table = Table(box=None, header_style="dim", expand=True)
    for name in _row(people[0]) if people else ():
        ends = name == "occupation"
        table.add_column(
            name.replace("_", " "), no_wrap=True, overflow="ellipsis" if ends else "fold", ratio=1 if ends else None
        )
    for person in people:
        table.add_row(*(safe_text(str(value)) for value in _row(person).values()))
    Console().print(table)


@app.command("show")
def show(person_id: str, path: Source = None, as_json: options.AsJson = False) -> None:
    """Everything about one person."""
    people = {person.id: person for person in load_personas(path)}
    if person_id not in people:
        raise UnknownNameError("persona", person_id, people)
    person = people[person_id]
    if as_json:
        print(person.model_dump_json(indent=2))
        return
    console = Console()
    width = min(console.width, PAGE)
    (title, who), *sections = page(person)
    console.print(Rule(safe_text(f"{title}  ({person.id})", "bold"), align="left"), width=width)
    console.print(safe_text(who), width=width, highlight=False)
    for heading, text in sections:
        console.print()
        console.print(safe_text(heading, "bold cyan"))
        console.print(Padding(safe_text(text), (0, 0, 0, 2)), width=width, highlight=False)


@app.command("check")
def check(path: Source = None, as_json: options.AsJson = False) -> None:
    """Check people against the rules; exit 1 if one is broken."""
    people: tuple[Persona, ...] = ()
    try:
        people = load_personas(path)
        problems = check_people(people) + (balance(people) if path is None else [])
    except PersonaError as error:
        place = str(error.details.get("field", ""))
        problems = [Problem(str(error.details.get("persona", "")), "schema", place, str(error))]
    if as_json:
        rows = [{"persona": p.persona, "rule": p.rule, "field": p.field, "problem": p.text} for p in problems]
        print(json.dumps(census(people) | {"problems": rows}, ensure_ascii=False))
    else:
        for problem in problems:
            print(f"{problem.persona}: {problem.rule}: {problem.field}: {problem.text}")
        print(f"{len(people)} people, {len(problems)} problems")
    if problems:
        raise typer.Exit(1)


@app.command("generate")
def generate_people(
    out: Annotated[Path, typer.Option("--out", help="New JSONL file of people.")],
    count: Annotated[int, typer.Option("-n", "--count", min=1, help="How many people.")] = 100,
    seed: options.Seed = 0,
    split: Annotated[str, typer.Option("--split", help="Whose scenarios and characters: train or test.")] = "train",
    language: options.LanguageName = None,
    stock: Annotated[
        Path | None, typer.Option("--stock", help="Folder of stock; the package's own if left out.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Compose new people of the written stock, half of them in each language unless one is named."""
    wanted: tuple[Language, ...] = (_one_of("language", language, LANGUAGES),) if language else LANGUAGES
    parts = load_stock(stock)
    people = [
        person
        for index, spoken in enumerate(wanted)
        for person in generate(
            parts,
            count=(count + len(wanted) - 1 - index) // len(wanted),
            seed=seed,
            split=_one_of("split", split, SPLITS),
            language=spoken,
        )
    ]
    _write(out, (person.model_dump_json() for person in people))
    print(json.dumps({"people": len(people), "out": str(out)}) if as_json else f"{len(people)} people in {out}")


@app.command("write")
def write(
    out: Annotated[Path, typer.Option("--out", help="JSONL file of people; one that exists is gone on with.")],
    backend: Annotated[str, typer.Option("--backend", help="Model that writes: openai:MODEL.")],
    count: Annotated[int, typer.Option("-n", "--count", min=1, help="How many people.")] = 10,
    seed: options.Seed = 0,
    language: Annotated[str, typer.Option("--language", help="Language of the people: en or zh.")] = "en",
    terms: Annotated[str, typer.Option("--license", help="Terms of the model's texts.")] = "as of the model",
    as_json: options.AsJson = False,
) -> None:
    """Let a language model write new people, step by step; exit 1 if fewer came out than were asked for."""
    spoken: Language = _one_of("language", language, LANGUAGES)
    known = list(load_personas(language=spoken)) + (list(load_personas(out)) if out.exists() else [])
    samples = [phrase for person in known for phrase in person.voice.phrases]
    plans = plan(count=count, seed=seed, language=spoken, samples=samples)
    model = make_backend(backend)
    rejected: list[Rejected] = []

    async def work() -> None:
        written = write_people(plans, model, language=spoken, known=known, license=terms)
        try:
            async for one in written:
                if isinstance(one, Persona):
                    with out.open("a", encoding="utf-8", newline="\n") as file:
                        file.write(one.model_dump_json() + "\n")
                else:
                    rejected.append(one)
                    Console(stderr=True).print(safe_text(f"{one.id} was not used: {one.reason}", "dim"))
        finally:
            await model.aclose()

    asyncio.run(work())
    ids = {one.id for one in plans}
    people = sum(one.id in ids for one in load_personas(out)) if out.exists() else 0
    if as_json:
        print(json.dumps({"people": people, "rejected": len(rejected), "out": str(out)}))
    else:
        print(f"{people} of {count} people in {out}, {len(rejected)} not used")
    if people < count:
        raise typer.Exit(1)


@app.command("export")
def export_people(
    out: Annotated[Path, typer.Option("--out", help="New JSONL file of profiles.")],
    path: Source = None,
    as_json: options.AsJson = False,
) -> None:
    """Write people as profiles in the form of SAGE and RLVER."""
    people = load_personas(path)
    _write(out, (json.dumps(profile_of(person), ensure_ascii=False) for person in people))
    print(json.dumps({"people": len(people), "out": str(out)}) if as_json else f"{len(people)} profiles in {out}")


@app.command("import")
def import_people(
    source: Annotated[Path, typer.Argument(help="JSONL file of SAGE or RLVER profiles.")],
    out: Annotated[Path, typer.Option("--out", help="New JSONL file of people.")],
    as_json: options.AsJson = False,
) -> None:
    """Read profiles in the form of SAGE and RLVER and write them as people of ours."""
    people = load_personas(source)
    _write(out, (person.model_dump_json() for person in people))
    print(json.dumps({"people": len(people), "out": str(out)}) if as_json else f"{len(people)} people in {out}")


def _write(out: Path, lines: Iterable[str]) -> None:
    if out.exists():
        raise SetupError(f"--out {out}: this exists; name a new file")
    with out.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(line + "\n" for line in lines)


def _one_of(what: str, value: str | None, known: tuple[Any, ...]) -> Any:
    if value is not None and value not in known:
        raise UnknownNameError(what, value, known)
    return value


def _row(person: Persona) -> dict[str, Any]:
    language: Language = person.language
    return {
        "id": person.id,
        "name": person.name,
        "age": person.age if person.age is not None else "",
        "language": language,
        "split": person.split,
        "hidden_need": person.hidden_need,
        "temperament": person.temperament,
        "occupation": person.occupation,
    }

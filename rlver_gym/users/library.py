"""The people: found, read and checked when they are first asked for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import ValidationError

from rlver_gym.errors import PersonaError, SetupError, UnknownNameError
from rlver_gym.types import Language
from rlver_gym.users.persona import Persona
from rlver_gym.users.profiles import is_profile, persona_from_profile

LANGUAGES: tuple[Language, ...] = ("en", "zh")
SPLITS = ("train", "test")
_SUFFIXES = (".yaml", ".yml", ".jsonl")
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load_personas(
    path: str | Path | None = None,
    *,
    split: Literal["train", "test"] | None = None,
    language: Language | None = None,
) -> tuple[Persona, ...]:
    """The people of a file or folder, or our own, sorted by id.

    Args:
        path: a `.yaml` file of one person, a `.jsonl` file of people or of SAGE/RLVER profiles, or a folder of such
            files; None for the people that come with the package.
        split: only these; None for both.
        language: only these; None for all.

    Raises:
        UnknownNameError: no such split or language.
        PersonaError: a file cannot be read or a person in it is wrong; names file, person and field.
    """
    _check("split", split, SPLITS)
    _check("language", language, LANGUAGES)
    people = _own() if path is None else _read(Path(path))
    return tuple(
        person
        for person in people
        if (split is None or person.split == split) and (language is None or person.language == language)
    )


def select_personas(which: str | Path | Sequence[Persona], *, language: Language | None = None) -> tuple[Persona, ...]:
    """The people that an argument `personas=` means: `train`, `test`, `all`, a path, or persona objects.

    Raises:
        UnknownNameError: neither a split nor a path that exists.
        SetupError: two people share an id, or nobody is left.
    """
    if isinstance(which, str) and which in SPLITS:
        people = load_personas(split=which, language=language)  # type: ignore[arg-type]
    elif which == "all":
        people = load_personas(language=language)
    elif isinstance(which, str | Path):
        if not Path(which).exists():
            raise UnknownNameError("personas (a split, or a path that exists)", str(which), (*SPLITS, "all"))
        people = load_personas(which, language=language)
    else:
        _check("language", language, LANGUAGES)
        people = tuple(person for person in which if language is None or person.language == language)
    return unique(people, f"personas={which if isinstance(which, str | Path) else 'objects'!r}, language={language!r}")


def unique(people: Iterable[Persona], where: str) -> tuple[Persona, ...]:
    """The people, if there are any and no two share an id.

    Raises:
        SetupError: nobody is there, or two people share an id.
    """
    people = tuple(people)
    seen: set[str] = set()
    for person in people:
        if person.id in seen:
            raise SetupError(f"two people share the id {person.id!r} ({where})")
        seen.add(person.id)
    if not people:
        raise SetupError(f"there are no people for {where}")
    return people


def _check(what: str, value: str | None, known: Sequence[str]) -> None:
    if value is not None and value not in known:
        raise UnknownNameError(what, value, known)


@cache
def _own() -> tuple[Persona, ...]:
    shipped = files("rlver_gym") / "personas"
    folder: Traversable = shipped if shipped.is_dir() else Path(__file__).parents[2] / "personas"
    return unique(_sorted(_walk(folder)), "the package's own people")


def _read(path: Path) -> tuple[Persona, ...]:
    if path.is_file() and path.suffix not in _SUFFIXES:
        raise PersonaError(f"{path}: people are read from {', '.join(_SUFFIXES)} files", file=str(path))
    if not path.exists():
        raise PersonaError(f"{path}: no such file or folder", file=str(path))
    return unique(_sorted(_walk(path)), str(path))


def _sorted(people: Iterable[Persona]) -> list[Persona]:
    return sorted(people, key=lambda person: person.id)


def _walk(place: Traversable) -> Iterator[Persona]:
    if place.is_dir():
        for entry in place.iterdir():
            yield from _walk(entry)
    elif place.name.endswith(_SUFFIXES):
        yield from _people(place)


def _people(file: Traversable) -> Iterator[Persona]:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise PersonaError(f"{file}: cannot be read as UTF-8 text: {error}", file=str(file)) from error
    if file.name.endswith(".jsonl"):
        for number, line in enumerate(text.split("\n"), start=1):
            if line.strip():
                yield _person(_json(line, f"{file}, line {number}"), f"{file}, line {number}", file.name)
    else:
        try:
            record = yaml.load(text, Loader=_Loader)
        except yaml.YAMLError as error:
            raise PersonaError(f"{file}: not YAML: {error}", file=str(file)) from error
        yield _person(record, str(file), file.name)


def _json(line: str, where: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise PersonaError(f"{where}: not JSON: {error}", file=where) from error


def _person(record: Any, where: str, source: str) -> Persona:
    if not isinstance(record, dict):
        raise PersonaError(f"{where}: must hold one person as names and values", file=where)
    try:
        return persona_from_profile(record, source=source) if is_profile(record) else Persona.model_validate(record)
    except ValidationError as error:
        listed = "; ".join(f"{'.'.join(map(str, p['loc']))}: {p['msg']}" for p in error.errors()[:5])
        identity, field = record.get("id", "without id"), ".".join(map(str, error.errors()[0]["loc"]))
        message = f"{where}: person {identity!r}: {listed}"
        raise PersonaError(message, file=where, persona=identity, field=field) from None
    except PersonaError as error:
        raise PersonaError(f"{where}: {error}", **error.details, file=where) from None

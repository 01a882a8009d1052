"""The people: found, read and checked when they are first asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Literal, TypeVar

import yaml
from pydantic import ValidationError

from rlver_gym.errors import PersonaError, SetupError, UnknownNameError
from rlver_gym.types import Language
from rlver_gym.users.persona import Persona
from rlver_gym.users.profiles import is_profile, persona_from_profile
from rlver_gym.users.stock import Stock, StockCharacter, StockScenario

LANGUAGES: tuple[Language, ...] = ("en", "zh")
SPLITS: tuple[Literal["train", "test"], ...] = ("train", "test")
_SUFFIXES = (".yaml", ".yml", ".jsonl")
Read = TypeVar("Read")
Entry = TypeVar("Entry", Persona, StockScenario, StockCharacter)
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
    people = _own(split, language) if path is None else _read(Path(path))
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
        people = load_personas(split=which, language=language)
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


def load_stock(path: str | Path | None = None) -> Stock:
    """The scenarios and characters that people are composed of, sorted by id.

    Args:
        path: a folder with `scenarios/` and `characters/` of `.yaml` files at any depth; None for the package's own.

    Raises:
        PersonaError: a file cannot be read or is wrong; names file, entry and field.
    """
    folder = _shipped() / "stock" if path is None else Path(path)
    return Stock(_stock(folder, "scenarios", StockScenario), _stock(folder, "characters", StockCharacter))


def _stock(folder: Traversable, kind: str, model: type[Entry]) -> tuple[Entry, ...]:
    return tuple(_sorted(_valid(_yaml(file), model.model_validate, str(file)) for file in _in(folder, kind)))


def _in(place: Traversable, kind: str, inside: bool = False) -> Iterator[Traversable]:
    """The files at any depth of folders with this name."""
    for entry in place.iterdir():
        if entry.is_dir():
            yield from _in(entry, kind, inside or entry.name == kind)
        elif inside and entry.name.endswith(_SUFFIXES):
            yield entry


def _shipped() -> Traversable:
    """The folder of people in the package, or beside it in a checkout."""
    shipped = files("rlver_gym") / "personas"
    return shipped if shipped.is_dir() else Path(__file__).parents[2] / "personas"


def _own(split: str | None, language: str | None) -> tuple[Persona, ...]:
    """The package's own people; only files that are asked for are read, once."""
    people = (
        person
        for one in SPLITS
        for spoken in LANGUAGES
        if split in (None, one) and language in (None, spoken)
        for person in _own_file(f"{one}-{spoken}.jsonl")
    )
    return tuple(_sorted(people))


@cache
def _own_file(name: str) -> tuple[Persona, ...]:
    return tuple(_people(_shipped() / "people" / name))


def _read(path: Path) -> tuple[Persona, ...]:
    if path.is_file() and path.suffix not in _SUFFIXES:
        raise PersonaError(f"{path}: people are read from {', '.join(_SUFFIXES)} files", file=str(path))
    if not path.exists():
        raise PersonaError(f"{path}: no such file or folder", file=str(path))
    return unique(_sorted(_walk(path)), str(path))


def _sorted(entries: Iterable[Entry]) -> list[Entry]:
    return sorted(entries, key=lambda entry: entry.id)


def _walk(place: Traversable) -> Iterator[Persona]:
    if place.is_dir():
        for entry in place.iterdir():
            yield from _walk(entry)
    elif place.name.endswith(_SUFFIXES):
        yield from _people(place)


def _people(file: Traversable) -> Iterator[Persona]:
    if file.name.endswith(".jsonl"):
        for number, line in enumerate(_text(file).split("\n"), start=1):
            if line.strip():
                yield _person(_json(line, f"{file}, line {number}"), f"{file}, line {number}", file.name)
    else:
        yield _person(_yaml(file), str(file), file.name)


def _text(file: Traversable) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise PersonaError(f"{file}: cannot be read as UTF-8 text: {error}", file=str(file)) from error


def _yaml(file: Traversable) -> Any:
    try:
        return yaml.load(_text(file), Loader=_Loader)
    except yaml.YAMLError as error:
        raise PersonaError(f"{file}: not YAML: {error}", file=str(file)) from error


def _json(line: str, where: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise PersonaError(f"{where}: not JSON: {error}", file=where) from error


def _person(record: Any, where: str, source: str) -> Persona:
    def read(record: dict[str, Any]) -> Persona:
        return persona_from_profile(record, source=source) if is_profile(record) else Persona.model_validate(record)

    return _valid(record, read, where)


def _valid(record: Any, read: Callable[[dict[str, Any]], Read], where: str) -> Read:
    if not isinstance(record, dict):
        raise PersonaError(f"{where}: must hold one person as names and values", file=where)
    try:
        return read(record)
    except ValidationError as error:
        listed = "; ".join(f"{'.'.join(map(str, p['loc']))}: {p['msg']}" for p in error.errors()[:5])
        identity, field = record.get("id", "without id"), ".".join(map(str, error.errors()[0]["loc"]))
        message = f"{where}: person {identity!r}: {listed}"
        raise PersonaError(message, file=where, persona=identity, field=field) from None
    except PersonaError as error:
        raise PersonaError(f"{where}: {error}", **error.details, file=where) from None

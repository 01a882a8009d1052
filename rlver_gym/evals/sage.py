"""SAGE's recorded dialogues (arXiv 2505.02847): result files and a flat table of their replies, plain or gzipped.

A result file holds one dialogue a line: the profile's fields and `history`, whose `user` messages carry the mood behind
them as `emotion-point`. A reply is scored by the mood of the user's message that follows it; the tenth, which nobody
answers any more, has no score and is never read. A table holds one row per scored reply; its earlier rows are the
row's history.

Of what was recorded after a reply only its mood change is kept. The user's recorded thoughts, plans and goodbyes, how
long the talk went on and how it ended never leave this file: they tell the verdict without a look at the reply.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlver_gym.errors import PersonaError, SetupError, UnknownNameError
from rlver_gym.text import clean, neutralise, split_thought
from rlver_gym.users.mood import LEAVE_BELOW, MOOD_MAX
from rlver_gym.users.persona import Persona
from rlver_gym.users.profiles import persona_from_profile

_NEEDS = (
    "a balanced analysis", "practical advice", "why others acted so", "guidance to self-reflection", "sincere praise",
    "being listened to", "deep empathy", "agreement that it is not my fault",
)  # fmt: skip
"""What a table's `need_id` means, from 1 on."""

_GZIP = b"\x1f\x8b"
_TABLE = ("dialogue_id", "persona_id", "policy", "turn", "emo_before", "user_last", "reply", "change")
"""Fields of a row that every table must have."""


@dataclass(frozen=True)
class RecordedReply:
    """One scored reply.

    Attributes:
        heard: what the user had said just before it.
        said: the reply as the user heard it, thoughts stripped.
        mood: before the reply, in mood points; change: that the judge gave it.
    """

    heard: str
    said: str
    mood: int
    change: int


@dataclass(frozen=True)
class Dialogue:
    """One recorded dialogue.

    Attributes:
        file: base name of the result file without `.gz`, or the policy where it comes from a table.
        id: unique within a file.
        person: the user.
        replies: the scored ones, in order.
        primary: False where a table says that another judge than its main one played the user.
    """

    file: str
    id: str
    person: Persona
    replies: tuple[RecordedReply, ...]
    primary: bool = True


def score(path: Path) -> dict[str, float | int]:
    """The result of a file by SAGE's rule.

    Returns:
        `n` dialogues; `score`, the mean of the user's last mood, rounded half-up to one decimal; `success` and
        `failure`, how many dialogues end at 100 or more and below 10.

    Raises:
        SetupError: the file cannot be read, is no result file, or holds no dialogue.
    """
    finals = []
    for where, record in _records(path):
        if "history" not in record:
            raise SetupError(f"{where}: no 'history': only a result file has a score, with one dialogue a line")
        finals.append(_moods(record, where)[-1])
    if not finals:
        raise SetupError(f"{path}: there are no dialogues in it")
    tenths = (20 * sum(finals) + len(finals)) // (2 * len(finals))
    return {
        "n": len(finals),
        "score": tenths / 10,
        "success": sum(mood >= MOOD_MAX for mood in finals),
        "failure": sum(mood < LEAVE_BELOW for mood in finals),
    }


def score_files(paths: Sequence[Path]) -> dict[str, dict[str, float | int]]:
    """`score` of each file by its base name without `.gz`.

    Raises:
        SetupError: two files share a base name, or one cannot be scored.
    """
    _unique(paths)
    return {base_name(path): score(path) for path in paths}


def base_name(path: Path) -> str:
    """Name of a file without its folder and without `.gz`."""
    return path.name.removesuffix(".gz")


def read_dialogues(
    paths: Sequence[Path], people: Mapping[str, Persona] | None = None, *, sketch: bool = False
) -> list[Dialogue]:
    """The dialogues of result files and tables, in order of appearance.

    Args:
        paths: the files, plain or gzipped.
        people: by id; None takes them from the files: a result file holds its people whole.
        sketch: make people out of a table's rows, which hold id, need, temperament and traits and nothing of what
            happened: all that the embedded user reads, and too little for a model.

    Raises:
        SetupError: a file cannot be read or is neither, two files share a base name, or a table has no people.
        UnknownNameError: a dialogue's person is not among `people`.
        PersonaError: a result file's person is wrong.
    """
    _unique(paths)
    dialogues: list[Dialogue] = []
    for path in paths:
        tables: dict[str, list[tuple[str, dict[str, Any]]]] = {}
        seen: Counter[str] = Counter()
        for where, record in _records(path):
            if "history" in record:
                person = _person(record, where, people)
                seen[person.id] += 1
                name = person.id if seen[person.id] == 1 else f"{person.id}#{seen[person.id]}"
                dialogues.append(Dialogue(base_name(path), name, person, _replies(record, where)))
            elif missing := [name for name in _TABLE if name not in record]:
                raise SetupError(f"{where}: neither a dialogue (no 'history') nor a row (no {', '.join(missing)})")
            else:
                tables.setdefault(str(record["dialogue_id"]), []).append((where, record))
        dialogues += [_from_rows(rows, people, sketch) for rows in tables.values()]
    if not dialogues:
        raise SetupError(f"there are no dialogues in {', '.join(map(str, paths))}")
    return dialogues


def _records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The JSON objects of a JSONL file, each with words for where it stands."""
    try:
        data = path.read_bytes()
        text = (gzip.decompress(data) if data.startswith(_GZIP) else data).decode("utf-8-sig")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise SetupError(f"{path}: cannot be read: {error}") from error
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise SetupError(f"{where}: not JSON: {error}") from error
        if not isinstance(record, dict):
            raise SetupError(f"{where}: must hold one object")
        yield where, record


def _unique(paths: Sequence[Path]) -> None:
    doubled = [name for name, count in Counter(map(base_name, paths)).items() if count > 1]
    if doubled:
        raise SetupError(f"two files share the name {doubled[0]!r}: results go by base name without '.gz'")


def _history(record: Mapping[str, Any], where: str) -> list[Mapping[str, Any]]:
    """The messages of a result file's dialogue: the user's and the policy's in turn, the user's first."""
    history = record["history"]
    if not isinstance(history, list) or not history:
        raise SetupError(f"{where}: 'history' must be a list of messages")
    for index, message in enumerate(history):
        role = "assistant" if index % 2 else "user"
        if not isinstance(message, dict) or message.get("role") != role or not isinstance(message.get("content"), str):
            raise SetupError(f"{where}: history[{index}] must be a message of role {role!r} with text in 'content'")
    return history


def _moods(record: Mapping[str, Any], where: str) -> list[int]:
    """Mood behind each message of the user."""
    points = [message.get("emotion-point") for message in _history(record, where)[::2]]
    return [_whole(point, f"{where}: history[{2 * index}]", "emotion-point") for index, point in enumerate(points)]


def _replies(record: Mapping[str, Any], where: str) -> tuple[RecordedReply, ...]:
    moods, messages = _moods(record, where), _history(record, where)
    return tuple(
        RecordedReply(_heard(heard["content"]), _said(reply["content"]), before, after - before)
        for heard, reply, before, after in zip(messages[::2], messages[1::2], moods, moods[1:], strict=False)
    )


def _from_rows(rows: list[tuple[str, dict[str, Any]]], people: Mapping[str, Persona] | None, sketch: bool) -> Dialogue:
    rows = sorted(rows, key=lambda row: _whole(row[1]["turn"], row[0], "turn"))
    replies = []
    for number, (where, row) in enumerate(rows, start=1):
        if int(row["turn"]) != number:
            raise SetupError(f"{where}: dialogue {row['dialogue_id']!r} has no single row for turn {number}")
        mood, change = (_whole(row[name], where, name) for name in ("emo_before", "change"))
        replies.append(RecordedReply(_heard(str(row["user_last"])), _said(str(row["reply"])), mood, change))
    where, first = rows[0]
    if people is None and not sketch:
        raise SetupError(f"{where}: a table does not say who the people are; name the file of their profiles")
    identity = str(first["persona_id"])
    person = _sketch(identity, first, where) if people is None else _known(identity, people)
    return Dialogue(
        str(first["policy"]), str(first["dialogue_id"]), person, tuple(replies), bool(first.get("primary", True))
    )


def _person(record: Mapping[str, Any], where: str, people: Mapping[str, Persona] | None) -> Persona:
    if people is not None:
        return _known(str(record.get("id")), people)
    return _imported({"main_cha": record.get("character"), **record}, where)


def _known(identity: str, people: Mapping[str, Persona]) -> Persona:
    if identity not in people:
        raise UnknownNameError("persona", identity, people)
    return people[identity]


def _sketch(identity: str, row: Mapping[str, Any], where: str) -> Persona:
    number = _whole(row.get("need_id"), where, "need_id")
    if not 1 <= number <= len(_NEEDS):
        raise SetupError(f"{where}: 'need_id' must be 1 to {len(_NEEDS)}, not {number}")
    opening = _heard(str(row["user_last"])).strip() or "..."
    profile = {"id": identity, "player": opening, "scene": opening, "first_talk": opening, "task": _NEEDS[number - 1]}
    return _imported(profile | {"main_cha": row.get("character"), "cha_group": row.get("traits")}, where)


def _imported(profile: Mapping[str, Any], where: str) -> Persona:
    try:
        return persona_from_profile(profile, source=where)
    except PersonaError as error:
        raise PersonaError(f"{where}: {error}", **error.details) from None


def _whole(value: Any, where: str, name: str) -> int:
    try:
        if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
            raise ValueError
        return int(value)
    except (TypeError, ValueError, OverflowError):
        raise SetupError(f"{where}: {name!r} must be a whole number, not {value!r}") from None


def _heard(text: str) -> str:
    return neutralise(clean(text))


def _said(text: str) -> str:
    return split_thought(clean(text)).said

"""What the embedded user is fitted to and measured on: recorded replies, and how a table of weights plays them."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlver_gym.backends.embedded import appraise, tables
from rlver_gym.backends.embedded.features import FEATURES, measure
from rlver_gym.backends.embedded.person import Moment
from rlver_gym.evals.replay import exchanged
from rlver_gym.evals.sage import Dialogue, read_dialogues
from rlver_gym.users.mood import apply_change

Array = NDArray[np.float64]
Table = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Data:
    """Replies of whole dialogues, row by row.

    Attributes:
        moments: the replies where they were said; swapped: other replies in the same places.
        groups: who counts as one person; policies: who replied; starts: the mood at a dialogue's start, at its rows.
        changes: what the recorded judge said, (N,) mood points; dialogues: index of the dialogue.
    """

    moments: Sequence[Moment]
    swapped: Sequence[Moment]
    groups: Array
    policies: NDArray[np.str_]
    dialogues: NDArray[np.int64]
    starts: NDArray[np.int64]
    changes: Array

    @cached_property
    def features(self) -> Array:
        """Features of the replies, (N, F)."""
        return matrix(self.moments)

    @cached_property
    def swapped_features(self) -> Array:
        """Features of the other replies, (N, F)."""
        return matrix(self.swapped)

    @cached_property
    def turns(self) -> NDArray[np.int64]:
        """Turn of each row, from 1."""
        return np.array([moment.turn for moment in self.moments])


def load(table: Path, profiles: Path) -> Data:
    """Rows of the table's main judge."""
    with profiles.open(encoding="utf-8") as lines:
        people = [json.loads(line) for line in lines]
    player = {str(one["id"]): hashlib.sha256(one["player"].encode()).hexdigest() for one in people}
    dialogues = [dialogue for dialogue in read_dialogues([table], sketch=True) if dialogue.primary]
    rows = [(index, dialogue, reply) for index, dialogue in enumerate(dialogues) for reply in dialogue.replies]
    names = {name: index for index, name in enumerate(sorted(set(player.values())))}
    return Data(
        moments=[moment for dialogue in dialogues for moment in _moments(dialogue)],
        swapped=[moment for dialogue in exchanged(dialogues, 0) for moment in _moments(dialogue)],
        groups=np.array([names[player[dialogue.person.id]] for _, dialogue, _ in rows], dtype=np.float64),
        policies=np.array([dialogue.file for _, dialogue, _ in rows]),
        dialogues=np.array([index for index, _, _ in rows]),
        starts=np.array([dialogue.replies[0].mood for _, dialogue, _ in rows]),
        changes=np.array([reply.change for _, _, reply in rows], dtype=np.float64),
    )


def _moments(dialogue: Dialogue) -> Iterator[Moment]:
    history: tuple[Any, ...] = ()
    for turn, reply in enumerate(dialogue.replies, start=1):
        history = (*history, {"role": "user", "content": reply.heard})
        yield Moment(
            person=dialogue.person,
            history=history,
            reply=reply.said,
            mood=0,
            tier="B",
            turn=turn,
            seed=0,
            difficulty=0,
        )
        history = (*history, {"role": "assistant", "content": reply.said})


def matrix(moments: Sequence[Moment]) -> Array:
    """Features of replies, (N, F) in the order of FEATURES."""
    found = [measure(moment) for moment in moments]
    return np.array([[one.get(name, 0) for name in FEATURES] for one in found], dtype=np.float64)


def play(table: Table, data: Data, features: Array, rows: NDArray[np.bool_]) -> tuple[Array, NDArray[np.int64], Array]:
    """Scores, changes and leanings of the rows, dialogue by dialogue, with the user's own mood fed back."""
    weights = tables.Weights(**{name: value for name, value in table.items() if name not in ("version", "unit")})
    scores, leans = np.zeros(len(data.moments)), np.zeros(len(data.moments))
    changes = np.zeros(len(data.moments), dtype=np.int64)
    found = [{name: int(value) for name, value in zip(FEATURES, row, strict=True) if value} for row in features]
    mood, dialogue = 0, -1
    for index in np.flatnonzero(rows):
        before = found[index - 1] if data.dialogues[index] == dialogue else None
        if before is None:
            dialogue, mood = data.dialogues[index], int(data.starts[index])
        moment = dataclasses.replace(data.moments[index], mood=mood)
        total = sum(appraise.points(found[index], before, moment, weights).values())
        leans[index] = lean = sum(appraise.leaning(moment, weights).values())
        verdict = appraise.judge(total, lean, found[index], moment, weights)
        scores[index] = verdict.score
        changes[index] = verdict.change
        mood = apply_change(mood, verdict.change)
    return scores, changes, leans

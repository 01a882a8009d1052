"""Recorded replies put before a user again: does it judge them as the recorded judge did?

The words of a dialogue stay as they were recorded; only the user's appraisal of each scored reply is asked for. It sees
the person, the dialogue before the reply, the reply, and the mood before it: the recorded one, or in the open loop the
one that its own appraisals led to.

A user that judges by anything but the reply looks good here too: need, turn and mood alone go with the verdict. So the
replay is done again with the replies exchanged at random among dialogues of the same turn and need; what correlation is
left then was not earned by reading.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rlver_gym.backends.base import Backend
from rlver_gym.errors import BackendError, UnusableAnswerFault
from rlver_gym.evals.sage import Dialogue
from rlver_gym.prompts import render
from rlver_gym.rollouts.metrics import UNSCORED_LIMIT
from rlver_gym.seeding import child_seed
from rlver_gym.types import Appraisal, Message, Record
from rlver_gym.users.appraisal import read_appraisal
from rlver_gym.users.mood import LEAVE_BELOW, MOOD_MAX, MOOD_MIN, START_MOOD, apply_change, tier_of
from rlver_gym.users.parsing import Unreadable
from rlver_gym.users.simulator import APPRAISAL, ASKINGS

MAX_TURNS = 9
"""Scored replies of a dialogue. Source: SAGE's protocol (arXiv 2505.02847)."""


class Prediction(Record):
    """What the user made of one recorded reply beside what the judge made of it: one row of the output.

    Attributes:
        turn: from 1.
        recorded_change, predicted_change: in mood points; None where the backend failed.
        predicted_score: what the predicted change was made of, before scores become changes by quantile; the change
            itself where a backend has no such score.
    """

    file: str
    dialogue_id: str
    persona_id: str
    turn: int
    recorded_change: int
    predicted_change: int | None
    predicted_score: float | None


@dataclass(frozen=True)
class Replayed:
    """One dialogue after its replay.

    Attributes:
        predictions: one per recorded scored reply, past the predicted end as well.
        faults: kinds of what failed on the way.
    """

    dialogue: Dialogue
    predictions: tuple[Prediction, ...]
    faults: tuple[str, ...] = ()


async def replay(
    dialogues: Sequence[Dialogue],
    backend: Backend,
    *,
    difficulty: float = 0.0,
    seed: int = 0,
    concurrency: int = 64,
    watch: Callable[[], None] | None = None,
) -> list[Replayed]:
    """Ask a user for its appraisal of every recorded scored reply.

    An open loop: only the mood at the start is read; from then on it is where the user's own appraisals led. The
    recorded moods would give the answer away, since who is low stays low (r = .53 with the change, unread replies).

    Args:
        dialogues: whose replies.
        backend: where the user lives; left open.
        difficulty: 0 (open, Vanilla) to 1 (reserved, Challenging).
        seed: of the user's noise, which is a person's own and the same for all policies.
        concurrency: dialogues at a time; has no bearing on the result.
        watch: called after every dialogue.

    Returns:
        one per dialogue, in their order. A reply whose appraisal failed has no prediction, and none of the later
        ones of its dialogue has.
    """
    waiting = iter(enumerate(dialogues))
    done: dict[int, Replayed] = {}

    async def work() -> None:
        for index, dialogue in waiting:
            done[index] = await _one(dialogue, backend, difficulty, seed)
            if watch:
                watch()

    await asyncio.gather(*(work() for _ in range(concurrency)))
    return [done[index] for index in range(len(dialogues))]


def exchanged(dialogues: Sequence[Dialogue], seed: int) -> list[Dialogue]:
    """The dialogues with their replies exchanged at random among those of the same turn and need.

    No reply stays in its place unless it is the only one of its kind; main and other judges do not mix. What the user
    said, the moods and the recorded changes stay.
    """
    places: dict[tuple[bool, int, str], list[int]] = defaultdict(list)
    for index, dialogue in enumerate(dialogues):
        for turn in range(len(dialogue.replies)):
            places[dialogue.primary, turn, dialogue.person.hidden_need].append(index)
    said = [[reply.said for reply in dialogue.replies] for dialogue in dialogues]
    given = [list(replies) for replies in said]
    for (_, turn, _), indices in places.items():
        names = {index: (dialogues[index].file, dialogues[index].id) for index in indices}
        order = sorted(indices, key=lambda index: child_seed(seed, "exchange", turn, *names[index]))
        for taker, giver in zip(order, order[1:] + order[:1], strict=True):
            given[taker][turn] = said[giver][turn]
    return [
        dataclasses.replace(
            dialogue,
            replies=tuple(
                dataclasses.replace(reply, said=words) for reply, words in zip(dialogue.replies, new, strict=True)
            ),
        )
        for dialogue, new in zip(dialogues, given, strict=True)
    ]


async def _one(dialogue: Dialogue, backend: Backend, difficulty: float, seed: int) -> Replayed:
    history: list[Message] = []
    moods = [max(MOOD_MIN, min(MOOD_MAX, reply.mood)) for reply in dialogue.replies[:1]]
    predictions: list[Prediction] = []
    faults: list[str] = []
    seed = child_seed(seed, "replay", dialogue.person.id) % 2**31
    for turn, reply in enumerate(dialogue.replies, start=1):
        history.append({"role": "user", "content": reply.heard})
        found: tuple[Appraisal, float] | None = None
        if not faults:
            try:
                found = await _appraise(dialogue, tuple(history), reply.said, tuple(moods), difficulty, seed, backend)
                moods.append(apply_change(moods[-1], found[0].change))
            except BackendError as error:
                faults.append(type(error).__name__)
        predictions.append(
            Prediction(
                file=dialogue.file,
                dialogue_id=dialogue.id,
                persona_id=dialogue.person.id,
                turn=turn,
                recorded_change=reply.change,
                predicted_change=found[0].change if found else None,
                predicted_score=found[1] if found else None,
            )
        )
        history.append({"role": "assistant", "content": reply.said})
    return Replayed(dialogue, tuple(predictions), tuple(faults))


async def _appraise(
    dialogue: Dialogue,
    history: tuple[Message, ...],
    reply: str,
    moods: tuple[int, ...],
    difficulty: float,
    seed: int,
    backend: Backend,
) -> tuple[Appraisal, float]:
    """The appraisal of one reply and its score.

    Raises:
        UnusableAnswerFault: none of the answers could be read.
    """
    person, complaint = dialogue.person, ""
    call = child_seed(seed, "user", len(moods), "appraise") % 2**31
    for attempt in range(ASKINGS):
        prompt = render(
            "appraise",
            persona=person,
            history=history,
            reply=reply,
            mood=moods[-1],
            tier=tier_of(moods[-1]),
            turn=len(moods),
            max_turns=MAX_TURNS,
            moods=moods,
            seed=seed,
            difficulty=difficulty,
            fence=f"{child_seed(seed, 'fence') % 16**10:010x}",
            complaint=complaint,
        )
        answer = await backend.generate(prompt, dataclasses.replace(APPRAISAL, seed=call, attempt=attempt))
        try:
            appraisal, _ = read_appraisal(answer.text)
        except Unreadable as error:
            backend.report(answer, False)
            complaint = error.words(person.language)
            continue
        backend.report(answer, True)
        return appraisal, _score(answer.text, appraisal, backend)
    raise UnusableAnswerFault(
        f"{dialogue.file}, {dialogue.id}, turn {len(moods)}: no answer in {ASKINGS} could be read"
    )


def _score(answer: str, appraisal: Appraisal, backend: Backend) -> float:
    """The embedded user states its score in hundredths; a model's answer is never searched for one."""
    if backend.name == "embedded":
        hundredths = json.loads(answer).get("score")
        if hundredths is not None:
            return int(hundredths) / 100
    return float(appraisal.change)


def statistics(replayed: Sequence[Replayed], shuffled: Sequence[Replayed]) -> dict[str, Any]:
    """How far the user and the recorded judge agree, as plain data.

    Keys: `dialogues`, `rows`, `missing` (rows without a prediction); of the predicted score with the recorded change
    `r`, `spearman` and `r_turn_1`; `sign_agreement`, the share of rows whose predicted and recorded change have one
    sign; `policies`, and of the means by file `r_policies` and `spearman_policies`; `exchange_r`, which is `r` with
    the replies exchanged (see `exchanged`). None stands for what cannot be computed, and for everything if more than
    5% of the rows, or of those of the exchange, are missing. Also what `endings` counts. With rows
    of other judges than a table's main one, `primary` holds the same of the main one's alone.

    Args:
        replayed: the replay.
        shuffled: the same with exchanged replies.
    """
    result = _statistics(replayed, shuffled) | endings(replayed)
    if not all(one.dialogue.primary for one in replayed):
        main, other = ([one for one in part if one.dialogue.primary] for part in (replayed, shuffled))
        if main:
            result["primary"] = statistics(main, other)
    return result


def _statistics(replayed: Sequence[Replayed], shuffled: Sequence[Replayed]) -> dict[str, Any]:
    rows = [row for one in replayed for row in one.predictions]
    known = [row for row in rows if row.predicted_change is not None]
    other = [row for one in shuffled for row in one.predictions if row.predicted_change is not None]
    enough = min(len(known), len(other)) >= (1 - UNSCORED_LIMIT) * len(rows)
    if not enough:
        known, other = [], []
    first = [row for row in known if row.turn == 1]
    files = sorted({row.file for row in known})
    means = [_pair([row for row in known if row.file == file]).mean(axis=1) for file in files]
    by_policy = np.array(means).T if means else np.zeros((2, 0))
    signs = [np.sign(row.predicted_change or 0) == np.sign(row.recorded_change) for row in known]
    return {
        "dialogues": len(replayed),
        "rows": len(rows),
        "missing": sum(row.predicted_change is None for row in rows),
        "r": pearson(*_pair(known)),
        "spearman": spearman(*_pair(known)),
        "sign_agreement": float(np.mean(signs)) if signs else None,
        "r_turn_1": pearson(*_pair(first)),
        "policies": len({row.file for row in rows}),
        "r_policies": pearson(*by_policy),
        "spearman_policies": spearman(*by_policy),
        "exchange_r": pearson(*_pair(other)),
    }


def endings(replayed: Iterable[Replayed]) -> dict[str, Any]:
    """How the open loop ends, and how it ended when it was recorded.

    Keys: `endings` and `recorded_endings`, shares of dialogues that end `content` (at 100), `gone` (below 10) or at
    the `cap`, also where the recorded replies run out before it; `final_sd` and `recorded_final_sd`, the standard
    deviation of final moods within a file, root mean square over files with two dialogues or more. A dialogue with a
    reply that has no prediction is left out.
    """
    tracks: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for one in replayed:
        changes = [row.predicted_change for row in one.predictions if row.predicted_change is not None]
        if len(changes) == len(one.predictions):
            start = one.dialogue.replies[0].mood if one.dialogue.replies else START_MOOD
            recorded = [row.recorded_change for row in one.predictions]
            tracks[one.dialogue.file].append((_final(start, changes), _final(start, recorded)))
    pairs = [pair for finals in tracks.values() for pair in finals]
    groups = [np.array(finals, dtype=np.float64) for finals in tracks.values() if len(finals) > 1]
    result: dict[str, Any] = {}
    for index, prefix in enumerate(("", "recorded_")):
        kinds = Counter(_ending(pair[index]) for pair in pairs)
        spreads = [group[:, index].var(ddof=1) for group in groups]
        result[f"{prefix}endings"] = {kind: kinds[kind] / len(pairs) for kind in ("cap", "gone", "content") if pairs}
        result[f"{prefix}final_sd"] = float(np.sqrt(np.mean(spreads))) if spreads else None
    return result


def _final(mood: int, changes: Iterable[int]) -> int:
    """The mood at the first ending, or after the last change."""
    for change in changes:
        mood = apply_change(mood, change)
        if _ending(mood) != "cap":
            break
    return mood


def _ending(mood: int) -> str:
    return "content" if mood >= MOOD_MAX else "gone" if mood < LEAVE_BELOW else "cap"


def _pair(rows: Sequence[Prediction]) -> NDArray[np.float64]:
    """Predicted scores and recorded changes, (2, N)."""
    return np.array([[row.predicted_score for row in rows], [row.recorded_change for row in rows]], dtype=np.float64)


def pearson(a: ArrayLike, b: ArrayLike) -> float | None:
    """The correlation of two equally long sequences; None for fewer than two values or where one does not vary."""
    x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if x.size < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    return float(np.corrcoef(x, y)[0, 1])


def spearman(a: ArrayLike, b: ArrayLike) -> float | None:
    """The rank correlation of two equally long sequences, ties sharing their mean rank; None as in `pearson`."""
    return pearson(_ranks(a), _ranks(b))


def _ranks(values: ArrayLike) -> NDArray[np.float64]:
    _, index, counts = np.unique(np.asarray(values, dtype=np.float64), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: NDArray[np.float64] = (last - (counts - 1) / 2)[index]
    return ranks

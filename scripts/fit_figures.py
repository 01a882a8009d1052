"""Figures of a fitted table of weights: agreement, dispositions, and what one lexicon entry is worth."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from fit_data import Array, Data, matrix, play

from rlver_gym.backends.embedded import alone, features, reading, tables
from rlver_gym.evals.replay import pearson, spearman

WEIGHTS = Path(__file__).resolve().parents[1] / "rlver_gym" / "backends" / "embedded" / "data" / "weights.json"
FULL_DIFFICULTY = 100


def figures(data: Data, scores: Array, swapped: Array) -> dict[str, float]:
    """How far scores agree with the recorded judge; `exchange` is r with the other replies."""
    names = sorted(set(data.policies))
    means = [(scores[data.policies == name].mean(), data.changes[data.policies == name].mean()) for name in names]
    first = data.turns == 1
    return {
        "r": pearson(scores, data.changes),
        "r_turn_1": pearson(scores[first], data.changes[first]),
        "r_policies": pearson(*np.array(means).T),
        "spearman_policies": spearman(*np.array(means).T),
        "exchange_r": pearson(swapped, data.changes),
    }


def at_difficulty(data: Data, difficulty: int) -> Data:
    """The same replies, said to people of this difficulty, in hundredths."""
    return dataclasses.replace(data, moments=[dataclasses.replace(one, difficulty=difficulty) for one in data.moments])


def dispositions(data: Data) -> dict[str, float]:
    """What the shipped user accepts of the recorded replies, open and reserved, and whom reserve leaves standing.

    Keys: `accepted`, `accepted_reserved`; of the replies that the open user accepts, the share that the reserved one
    accepts too, of the third that the recorded judge liked most (`best_third`) and least (`worst_third`), and their
    ratio `survival_ratio`.
    """
    table = json.loads(WEIGHTS.read_text(encoding="utf-8"))
    everyone = np.ones(len(data.changes), dtype=bool)
    open_, held = (
        play(table, at_difficulty(data, difficulty), data.features, everyone)[1] > 0
        for difficulty in (0, FULL_DIFFICULTY)
    )
    accepted = np.flatnonzero(open_)
    order = np.lexsort((np.random.default_rng(0).random(len(accepted)), data.changes[accepted]))
    third = len(accepted) // 3
    worst, best = (float(held[accepted[part]].mean()) for part in (order[:third], order[-third:]))
    return {
        "accepted": float(open_.mean()),
        "accepted_reserved": float(held.mean()),
        "worst_third": worst,
        "best_third": best,
        "survival_ratio": best / worst,
    }


SUSPECT = 0.005
"""An entry that moves r by more with the weights as they are is measured again with everything fitted anew."""


def entries(data: Data, fitted_anew: Callable[[Data], float]) -> dict[str, Any]:
    """What taking out one entry of the Chinese lexicon does to r.

    First with the shipped weights, for every entry; only replies in whose dialogue a part of it stands are measured
    anew. Then for those that move r by more than SUSPECT, out of fold, with weights fitted without the entry.

    Args:
        data: replies of whole dialogues.
        fitted_anew: r out of fold of such data.

    Returns:
        `entries`, how many; `largest`, the largest absolute change of r, and the `entry` that makes it; `suspects`: r
        with the shipped weights and fitted anew, as changes, by entry; `r`, with all of them, the same two.
    """
    table = json.loads(WEIGHTS.read_text(encoding="utf-8"))
    everyone = np.ones(len(data.changes), dtype=bool)
    whole = pearson(play(table, data, data.features, everyone)[0], data.changes)
    fitted = fitted_anew(data)
    texts = ["\n".join((*moment.heard, *moment.replies, moment.reply)) for moment in data.moments]
    groups = yaml.safe_load(WEIGHTS.with_name("lexicon_zh.yaml").read_text(encoding="utf-8"))
    names = list(dict.fromkeys(entry for group in groups.values() for entry in group))
    moved, suspects = {}, {}
    for entry in names:
        parts = {a + b for a, b in pairwise(entry)} or {entry}
        touched = [i for i, text in enumerate(texts) if any(part in text for part in parts)]
        with without(entry, groups):
            measured = data.features.copy()
            if touched:
                measured[touched] = matrix([data.moments[i] for i in touched])
            moved[entry] = pearson(play(table, data, measured, everyone)[0], data.changes) - whole
            if abs(moved[entry]) > SUSPECT:
                again = fitted_anew(dataclasses.replace(data)) - fitted
                suspects[entry] = [moved[entry], again]
                moved[entry] = again
    worst = max(moved, key=lambda entry: abs(moved[entry]))
    found = {"entries": len(names), "largest": abs(moved[worst]), "entry": worst}
    return found | {"suspects": suspects, "r": [whole, fitted]}


@contextmanager
def without(entry: str, groups: Mapping[str, Sequence[str]]) -> Iterator[None]:
    """The Chinese lexicon lacks one entry in here."""
    read_text = tables._read
    rest = yaml.safe_dump({name: [e for e in group if e != entry] for name, group in groups.items()})
    tables._read = lambda name: rest if name == "lexicon_zh.yaml" else read_text(name)
    forget()
    try:
        yield
    finally:
        tables._read = read_text
        forget()


def forget() -> None:
    """Empty the caches that hold readings by the old lexicon."""
    for module in (tables, reading, alone, features):
        for value in vars(module).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()

"""Numbers over episodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from rlver_gym.errors import SetupError
from rlver_gym.types import Episode, Usage
from rlver_gym.users.mood import LEAVE_BELOW, MOOD_MAX

UNSCORED_LIMIT = 0.05
"""Share of unscored episodes above which a result has no headline number."""

BOOTSTRAP_RESAMPLES = 2_000
"""Resamples behind an interval: its ends move by less than a tenth of its half-width from seed to seed."""


def bootstrap_interval(values: Sequence[float], seed: int = 0) -> tuple[float, float]:
    """The 95% percentile-bootstrap interval of the mean: equal values and seed give equal ends.

    Args:
        values: (N,) numbers that were drawn independently of each other, N >= 2, in any unit.
        seed: of the resampling.

    Raises:
        SetupError: fewer than two values, or one that is not finite; neither has an interval.
    """
    sample = np.asarray(values, dtype=np.float64)
    if sample.size < 2 or not np.isfinite(sample).all():
        raise SetupError(
            f"an interval needs two or more finite values, got {sample.size} of which "
            f"{int(np.isfinite(sample).sum())} finite; leave unscored episodes out"
        )
    rows = np.random.default_rng(seed).integers(sample.size, size=(BOOTSTRAP_RESAMPLES, sample.size))
    low, high = np.percentile(sample[rows].mean(axis=1), [2.5, 97.5])
    return float(low), float(high)


def summary(episodes: Sequence[Episode], *, seconds: float) -> dict[str, Any]:
    """What a run came to, as plain data.

    Keys: `episodes`, `scored`, `mean_final_mood` in mood points with `ci95` (None where nothing is scored, or more than
    5% is unscored), `success` and `failure` (shares of scored episodes that end at 100 and below 10: SAGE), `turns`,
    `calls` and `tokens` of users and policies together (tokens None where an endpoint did not report them), `endings`,
    `rungs` (usable appraisals by the way they were asked for), `seconds` of wall time, `faults` by kind.
    """
    finals = [episode.final_mood for episode in episodes if episode.scored]
    headline = bool(finals) and len(finals) >= (1 - UNSCORED_LIMIT) * len(episodes)
    usage = sum((episode.usage + episode.policy_usage for episode in episodes), Usage())
    known = usage.prompt_tokens is not None and usage.completion_tokens is not None
    appraisals = [raw for e in episodes for turn in e.turns for raw in turn.raw if raw.step in ("appraise", "fused")]
    return {
        "episodes": len(episodes),
        "scored": len(finals),
        "mean_final_mood": float(np.mean(finals)) if headline else None,
        "ci95": bootstrap_interval(finals) if headline and len(finals) > 1 else None,
        "success": _share([mood >= MOOD_MAX for mood in finals]),
        "failure": _share([mood < LEAVE_BELOW for mood in finals]),
        "turns": sum(len(episode.turns) for episode in episodes),
        "calls": usage.calls,
        "tokens": (usage.prompt_tokens or 0) + (usage.completion_tokens or 0) if known else None,
        "endings": dict(sorted(Counter(str(episode.stop_reason) for episode in episodes).items())),
        "rungs": dict(sorted(Counter(raw.rung or "plain" for raw in appraisals if not raw.problem).items())),
        "unusable_appraisals": sum(bool(raw.problem) for raw in appraisals),
        "seconds": round(seconds, 3),
        "faults": dict(sorted(Counter(e.fault.kind for e in episodes if e.fault).items())),
    }


def _share(hits: Sequence[bool]) -> float | None:
    return sum(hits) / len(hits) if hits else None

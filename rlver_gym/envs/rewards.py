"""The reward: zero until the end, then what the table of endings says.

| StopReason | flag | reward | scored |
|---|---|---|---|
| SATISFIED, LEFT, MAX_TURNS | terminated | mood / 100 | yes |
| FORMAT | terminated | 0.0 | yes |
| SAFETY | terminated | policy's words: 0.0; user's: the lower of mood and start, / 100 | yes |
| CONTEXT | truncated | used up by the policy's length: 0.0; else nan | policy's only |
| BACKEND_FAULT, DEADLINE, BUDGET | truncated | nan | no |

The turn cap terminates because the horizon belongs to the task and the reward is paid there: learners bootstrap past a
truncation. nan is deliberate: a fault of the world can never pass for a zero. Source: RLVER (arXiv 2507.03112).
"""

from __future__ import annotations

import math

from rlver_gym.types import StopReason
from rlver_gym.users.mood import MOOD_MAX


def final_reward(reason: StopReason, *, mood: int, start_mood: int, by_policy: bool) -> float:
    """Reward of the last step, in [0, 1], or nan for an episode that is not scored.

    Args:
        reason: why the episode ended.
        mood: now, in mood points.
        start_mood: at the start, in mood points.
        by_policy: whether the policy's own words or length brought the end about; read for SAFETY and CONTEXT.
    """
    match reason:
        case StopReason.SATISFIED | StopReason.LEFT | StopReason.MAX_TURNS:
            return mood / MOOD_MAX
        case StopReason.FORMAT:
            return 0.0
        case StopReason.SAFETY:
            return 0.0 if by_policy else min(mood, start_mood) / MOOD_MAX
        case StopReason.CONTEXT:
            return 0.0 if by_policy else math.nan
        case _:
            return math.nan

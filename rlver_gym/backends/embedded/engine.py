"""The backend that plays a user without a model."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from rlver_gym.backends.base import Generation, SamplingConfig
from rlver_gym.backends.embedded.answer import answer
from rlver_gym.backends.embedded.appraise import appraise
from rlver_gym.backends.embedded.person import Moment
from rlver_gym.errors import SetupError
from rlver_gym.types import Appraisal, Prompt, Tier

TIERS: tuple[tuple[int, Tier], ...] = ((100, "S"), (70, "A"), (40, "B"), (10, "C"), (0, "F"))
"""Lowest mood of each tier. Source: SAGE (arXiv 2505.02847)."""

_encode = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode


class EmbeddedBackend:
    """A simulated user made of features, weights and written lines: no model, no network, no chance.

    Its answer is a pure function of persona, mood, history, reply and seed, equal bit for bit in every process. Each
    appraisal lists what moved the mood and by how much (`moved`), and the inner thought is made of that list.

    It is fit for development, tests, curricula, and training runs on a laptop: it reacts to what is said, at thousands
    of turns a second. It is not fit for claims about people. It knows words and their order, not what they mean: irony,
    facts and coherence escape it. Its weights are fitted to 4,265 judgements of Chinese replies (r = .53 in
    cross-validation); English follows in part. A score against it is not a score against people, nor against an
    LLM user. The README beside this file has the figures.

    It plays users only (prompts `appraise`, `answer`, `fused`) and never renders a prompt.
    """

    name = "embedded"
    deterministic = True

    async def generate(self, prompt: Prompt, sampling: SamplingConfig) -> Generation:
        """The user's appraisal or words, as JSON; sampling has no bearing on them.

        Raises:
            SetupError: the prompt is not a user's.
        """
        if prompt.name not in ("appraise", "answer", "fused"):
            raise SetupError(
                f"prompt {prompt.name!r}: the embedded engine plays users only; "
                "for a policy use a scripted one or openai:MODEL"
            )
        variables = prompt.variables
        moment = Moment.of(variables)
        fields: dict[str, Any] = {}
        if prompt.name == "answer":
            fields["message"] = answer(moment, variables["appraisal"])
        else:
            appraisal, score = appraise(moment)
            fields = {**dict(appraisal), "score": score}
            if prompt.name == "fused":
                fields["message"] = answer(_after(moment, appraisal), appraisal)
        return Generation(_encode(fields), fields=fields)

    def report(self, generation: Generation, usable: bool) -> None:
        """Nothing to learn: the engine answers in the form that is asked for."""

    async def aclose(self) -> None:
        """Nothing to release."""


def _after(moment: Moment, appraisal: Appraisal) -> Moment:
    """The same moment with the mood that the appraisal leads to."""
    mood = max(0, min(100, moment.mood + appraisal.change))
    tier = next(name for lowest, name in TIERS if mood >= lowest)
    return replace(moment, mood=mood, tier=tier)

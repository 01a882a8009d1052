"""The words of this package, each with one meaning, and the records that carry them.

| word | meaning |
|---|---|
| user | the simulated person; owns the latent mood |
| policy | what writes the assistant's replies |
| backend | where text comes from: an endpoint, the embedded engine, a recording |
| persona | frozen description of a user: who, what happened, hidden need, temperament |
| appraisal | the user's private reading of one reply: inner thought and mood change; the first of two steps |
| mood | latent number in [0, 100]; in `info`, never in an observation |
| tier | one of five named bands of mood: S, A, B, C, F |
| message | `{"role", "content"}`, roles from the policy's view (OpenAI wire) |
| turn | one assistant message, then the user's appraisal and answer |
| episode | reset to terminated or truncated, as text |
| trajectory | an episode as training data: token ids, logprobs, `response_mask` |
| scenario | JSON-able (env id, persona id, seed, options): the only thing that crosses a dataset or process border |
| group | trajectories that start from the same persona and the same seed; array suffix `_G` |
| rollout | the act of playing a policy against users; a verb and a module |
| advantage | tensor (B, T) |
| judge | a model that grades a finished episode; a metric is a number over episodes |
| cassette | a recording of backend calls that replays bit for bit |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, TypedDict

from pydantic import BaseModel, ConfigDict

Language = Literal["en", "zh"]
Tier = Literal["S", "A", "B", "C", "F"]
Role = Literal["system", "user", "assistant"]


class Message(TypedDict):
    """One message of a dialogue; `assistant` is the policy and `user` the simulated person."""

    role: Role
    content: str


class StopReason(StrEnum):
    """Why an episode ended. The table of flags and rewards stands in `rlver_gym.envs.session`."""

    SATISFIED = "satisfied"
    """The mood reached 100."""
    LEFT = "left"
    """The mood fell below `leave_below`."""
    MAX_TURNS = "max_turns"
    """The last reply of the horizon was given."""
    FORMAT = "format"
    """Think-then-say is on and the reply does not keep its format."""
    SAFETY = "safety"
    """One side wrote a crisis signal."""
    CONTEXT = "context"
    """The context window is used up."""
    BACKEND_FAULT = "backend_fault"
    """A backend failed after all retries."""
    DEADLINE = "deadline"
    """The time allowed for the episode is over."""
    BUDGET = "budget"
    """The run's budget of tokens or money is spent."""

    @property
    def truncated(self) -> bool:
        """True if the episode was cut off from outside, False if it ended by its own rules."""
        return self in _TRUNCATING

    @property
    def is_fault(self) -> bool:
        """True if the world failed rather than the policy: such an episode is never scored."""
        return self in _FAULTS


_FAULTS = frozenset({StopReason.BACKEND_FAULT, StopReason.DEADLINE, StopReason.BUDGET})
_TRUNCATING = _FAULTS | {StopReason.CONTEXT}


class Record(BaseModel):
    """Base of the records that are written to files: frozen, unknown fields refused, nan written as null."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Usage(Record):
    """What some calls to a backend cost. A count that an endpoint did not report is None, never a guess.

    Attributes:
        calls: requests that were answered.
        prompt_tokens, completion_tokens, cached_tokens: tokens, or None where any of the calls left them unsaid.
    """

    calls: int = 0
    prompt_tokens: int | None = 0
    completion_tokens: int | None = 0
    cached_tokens: int | None = 0

    def __add__(self, other: Usage) -> Usage:
        if self is NO_USAGE:
            return other
        return Usage(
            calls=self.calls + other.calls,
            prompt_tokens=_add(self.prompt_tokens, other.prompt_tokens),
            completion_tokens=_add(self.completion_tokens, other.completion_tokens),
            cached_tokens=_add(self.cached_tokens, other.cached_tokens),
        )

    def as_floats(self) -> dict[str, float]:
        """The four counts as floats for `info`; nan stands for a count that is not known."""
        return {name: math.nan if count is None else float(count) for name, count in self}


NO_USAGE = Usage()
"""Where a sum begins."""


def _add(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


@dataclass(frozen=True)
class Prompt:
    """A question to a backend, rendered only if somebody reads `messages`.

    An endpoint sends `messages`; the embedded engine reads `name` and `variables` and never renders.

    Attributes:
        name: which prompt, for example `appraise`.
        variables: what it speaks of; plain data and frozen records.
        template_hash: hash of the templates it is made of, 16 hex digits.
        render: makes the messages from the variables and a form of answer (`json` or `lines`).
        schema: JSON schema of the answer, or None where the answer is plain text.
    """

    name: str
    variables: Mapping[str, Any]
    template_hash: str
    render: Callable[[str, Mapping[str, Any], str], tuple[Message, ...]] = field(repr=False, compare=False)
    schema: Mapping[str, Any] | None = field(default=None, repr=False)

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages, with the answer asked for as JSON where it is structured."""
        return self.in_form("json")

    def in_form(self, form: Literal["json", "lines"]) -> tuple[Message, ...]:
        """The messages, with a structured answer asked for as JSON or as labelled lines with an example."""
        return self.render(self.name, self.variables, form)


class Appraisal(Record):
    """The user's private reading of one reply, the first of the two steps.

    Attributes:
        content: what the reply says, in the user's eyes.
        fit: how it fits the hidden need.
        thought: the inner thought, in the first person.
        feeling: a word or two.
        change: mood points, within [-10, 10] after clamping.
        moved: (feature, mood points) pairs that explain the change exactly; empty for a model's appraisal.
    """

    content: str = ""
    fit: str = ""
    thought: str = ""
    feeling: str = ""
    change: int
    moved: tuple[tuple[str, int], ...] = ()


class RawAnswer(Record):
    """One answer of the user's backend as it came, kept so that a strange turn can be looked at later.

    Attributes:
        step: `appraise`, `answer` or `fused`.
        attempt: 0 for the first asking.
        rung: how a structured answer was asked for: `json_schema`, `json_object`, `lines`, or `` for plain text.
        text: the answer.
        problem: why it could not be used, or empty.
    """

    step: str
    attempt: int = 0
    rung: str = ""
    text: str
    problem: str = ""


class Turn(Record):
    """One assistant message, the user's appraisal of it, and the user's answer.

    Attributes:
        reply: what the policy wrote, thoughts included; `said`: what the user heard.
        user: the user's answer; empty if the episode ended before one was given.
        mood: after the reply.
        flags: what was noticed, for example `length`, `clamped`, `repeat`.
    """

    index: int
    reply: str
    said: str
    appraisal: Appraisal | None = None
    mood: int
    user: str = ""
    flags: tuple[str, ...] = ()
    raw: tuple[RawAnswer, ...] = ()


class Scenario(Record):
    """What an episode starts from: JSON-able, and the only thing that crosses a dataset or process border.

    Attributes:
        env_id: Gymnasium id.
        persona_id: of the user; persona_hash: of its content, so that other people under the same id are noticed.
        seed: of the episode; same persona and seed mean the same hidden state and first words.
        member: index within a group; enters only the policy's sampling.
        difficulty: 0 (open) to 1 (reserved).
    """

    env_id: str
    persona_id: str
    persona_hash: str = ""
    seed: int
    member: int = 0
    difficulty: float = 0.0


class Fault(Record):
    """A failure of the world during an episode: its kind (an error's class name) and its message, free of keys."""

    kind: str
    message: str


class Episode(Record):
    """One finished episode, as it is stored.

    Attributes:
        opening: the user's first words; start_mood: the mood behind them.
        reward: final mood / 100 or as the table of endings says; None if the episode is not scored.
        usage: calls and tokens of the user; policy_usage: of the policy.
        policy, backend: what played; language of the user; seconds of wall time.
        need_text, hidden_need: what the user hid.
        settings: of the environment, for example `max_turns` and `leave_below`; versions: of package and prompts.
    """

    scenario: Scenario
    policy: str
    backend: str
    language: Language
    persona_name: str
    hidden_need: str
    need_text: str
    opening: str
    start_mood: int
    turns: tuple[Turn, ...]
    stop_reason: StopReason
    scored: bool
    reward: float | None
    usage: Usage
    policy_usage: Usage
    fault: Fault | None = None
    seconds: float = 0.0
    settings: dict[str, bool | int | float | str | None] = {}
    versions: dict[str, str] = {}

    @property
    def id(self) -> str:
        """Names the episode within a run: persona, seed and member."""
        return f"{self.scenario.persona_id}/{self.scenario.seed}/{self.scenario.member}"

    @property
    def moods(self) -> tuple[int, ...]:
        """Moods from the start to the end, one more than there are turns."""
        return (self.start_mood, *(turn.mood for turn in self.turns))

    @property
    def final_mood(self) -> int:
        """Mood after the last reply."""
        return self.moods[-1]

    @property
    def messages(self) -> tuple[Message, ...]:
        """The dialogue as both sides heard it, from the policy's view."""
        messages: list[Message] = [{"role": "user", "content": self.opening}]
        for turn in self.turns:
            messages.append({"role": "assistant", "content": turn.said})
            if turn.user:
                messages.append({"role": "user", "content": turn.user})
        return tuple(messages)

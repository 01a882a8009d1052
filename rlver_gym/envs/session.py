"""An episode, asynchronous and without Gymnasium: strip thoughts, ask the user, decide endings, pay.

`SentientEnv` runs a Session on a background loop, `rollouts` runs thousands of them side by side. How it ends and pays
stands in `rlver_gym.envs.rewards`. An ending is decided by mood and turns, never by looking for a goodbye word.
"""

from __future__ import annotations

import asyncio
import copy
import math
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Literal, NamedTuple

from pydantic import Field

from rlver_gym.backends.base import Backend
from rlver_gym.configs import Config
from rlver_gym.envs.rewards import final_reward
from rlver_gym.errors import (
    BackendError,
    BudgetError,
    ContextOverflowFault,
    DeadlineError,
    EpisodeStateError,
    SetupError,
    UnknownNameError,
)
from rlver_gym.prompts import prompt_version
from rlver_gym.text import clean, has_template_token, split_thought
from rlver_gym.types import NO_USAGE, Appraisal, Episode, Fault, Message, RawAnswer, Scenario, StopReason, Turn, Usage
from rlver_gym.users import mood as moods
from rlver_gym.users.persona import Persona
from rlver_gym.users.safety import crisis_signal
from rlver_gym.users.simulator import CallLog, UserSimulator, UserState
from rlver_gym.version import __version__

MAX_REPLY_CHARS = 32_768
"""Longest reply that is delivered, in characters; a longer one ends the episode as CONTEXT, by the policy's length."""


class SessionSettings(Config):
    """What stays the same over the episodes of an environment.

    Attributes:
        start_mood, leave_below: mood points; max_turns: replies, all scored.
        think: replies must read `<think>...</think>` and then the words that are said.
        fused: one call to the user's backend per reply instead of two.
        observation: the user's last words, or the whole dialogue as text.
        deadline: wall-clock seconds that the user's side of one episode may take, or None.
    """

    start_mood: int = Field(default=moods.START_MOOD, ge=moods.MOOD_MIN, le=moods.MOOD_MAX)
    leave_below: int = Field(default=moods.LEAVE_BELOW, ge=moods.MOOD_MIN, le=moods.MOOD_MAX)
    max_turns: int = Field(default=moods.MAX_TURNS, ge=1)
    think: bool = False
    fused: bool = False
    observation: Literal["utterance", "transcript"] = "utterance"
    deadline: float | None = Field(default=None, gt=0)


class Step(NamedTuple):
    """What Gymnasium's `step` returns, with names; at reset the reward is 0.0 and both flags are False."""

    observation: str
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]


class Session:
    """One user and the state of one episode with them.

    Args:
        people: personas by id.
        backend: of the user.
        settings: of the environment.
    """

    def __init__(self, people: Mapping[str, Persona], backend: Backend, settings: SessionSettings) -> None:
        self.people = people
        self.backend = backend
        self.settings = settings
        self._state: UserState | None = None

    async def areset(self, scenario: Scenario) -> Step:
        """Begin the episode that a scenario describes; calls no backend.

        Raises:
            UnknownNameError: the scenario names a person who is not here.
            SetupError: the person under that name is not the one whom the scenario was made with.
        """
        persona = self.people.get(scenario.persona_id)
        if persona is None:
            raise UnknownNameError("persona", scenario.persona_id, self.people)
        if scenario.persona_hash not in ("", persona.content_hash):
            raise SetupError(
                f"persona {persona.id!r} has the hash {persona.content_hash}, the scenario was made with "
                f"{scenario.persona_hash}: load the people that it was made with"
            )
        self.persona = persona
        self.scenario = scenario.model_copy(update={"persona_hash": persona.content_hash})
        self._simulator = UserSimulator(
            persona, self.backend, max_turns=self.settings.max_turns, fused=self.settings.fused
        )
        self._state = self._simulator.start(
            seed=scenario.seed, difficulty=scenario.difficulty, start_mood=self.settings.start_mood
        )
        self._turns: tuple[Turn, ...] = ()
        self._usage = NO_USAGE
        self._stop: StopReason | None = None
        self._reward = 0.0
        self._fault: Fault | None = None
        self._user_seconds, self._began = 0.0, time.monotonic()
        return self._step()

    async def astep(self, reply: str, *, finish_reason: str = "stop") -> Step:
        """Give the user one reply.

        Args:
            reply: what the policy wrote, thoughts included.
            finish_reason: `length` if it was cut by a token limit.

        Raises:
            EpisodeStateError: before a reset or after the end.
            TypeError: the reply is no text.
        """
        state = self._running("step")
        if not isinstance(reply, str):
            raise TypeError(f"a reply must be a str, not {type(reply).__name__}: {reply!r}")
        flags = ["length"] if finish_reason == "length" else []
        text = clean(reply)
        if text != reply:
            flags.append("cleaned")
        thought = split_thought(text)
        if has_template_token(thought.said):
            flags.append("template_tokens")
        if self.settings.think and not thought.well_formed:
            return self._finish(StopReason.FORMAT, self._turn(text, "", flags), by_policy=True)
        said = thought.said
        if len(said) > MAX_REPLY_CHARS:
            turn = self._turn(text, said[:MAX_REPLY_CHARS], flags)
            return self._finish(StopReason.CONTEXT, turn, by_policy=True)
        if crisis_signal(said):
            turn = self._turn(text, said, [*flags, "crisis_policy"])
            return self._finish(StopReason.SAFETY, turn, by_policy=True)
        return await self._hear(state, text, said, flags)

    async def _hear(self, state: UserState, text: str, said: str, flags: list[str]) -> Step:
        log, began = CallLog(), time.monotonic()
        try:
            async with self._time_limit():
                after, appraisal, message = await self._simulator.respond(said, state, log)
        except (BackendError, TimeoutError) as error:
            return self._break(error, self._turn(text, said, flags + log.flags, raw=log.raw))
        finally:
            self._user_seconds += time.monotonic() - began
            self._usage += log.usage
        self._state = after
        crisis = crisis_signal(message)
        flags = flags + log.flags + (["crisis_user"] if crisis else [])
        turn = self._turn(text, said, flags, appraisal=appraisal, user=message, raw=log.raw)
        reason = StopReason.SAFETY if crisis else self._ending(after)
        if reason is not None:
            return self._finish(reason, turn, by_policy=False)
        self._turns = (*self._turns, turn)
        return self._step()

    def fail(self, error: Exception) -> Step:
        """End the episode unscored because the policy's side of the world failed.

        Raises:
            EpisodeStateError: before a reset or after the end.
        """
        self._running("fail")
        self._stop, self._reward = _reason(error), math.nan
        self._fault = Fault(kind=type(error).__name__, message=clean(str(error)))
        return self._step()

    def fork(self, member: int) -> Session:
        """A copy at the same point, for another member of a group; calls no backend."""
        twin = copy.copy(self)
        twin.scenario = self.scenario.model_copy(update={"member": member})
        return twin

    @property
    def mood(self) -> int:
        """Mood now, in mood points.

        Raises:
            EpisodeStateError: before a reset.
        """
        if self._state is None:
            raise EpisodeStateError("there is no mood before reset(): call it first")
        return self._state.mood

    @property
    def moods(self) -> tuple[int, ...]:
        """Moods from the start until now, one more than there are turns; empty before a reset."""
        return (self.settings.start_mood, *[turn.mood for turn in self._turns]) if self._state else ()

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turns so far; empty before a reset."""
        return self._turns if self._state else ()

    @property
    def messages(self) -> tuple[Message, ...]:
        """The dialogue so far from the policy's view, opening first."""
        return self._state.history if self._state else ()

    @property
    def stop_reason(self) -> StopReason | None:
        """Why the episode ended, or None while it goes on."""
        return self._stop

    @property
    def scored(self) -> bool:
        """Whether the episode has ended and its reward is a number."""
        return self._stop is not None and not math.isnan(self._reward)

    def episode(self, *, policy: str, policy_usage: Usage) -> Episode:
        """The finished episode as a record.

        Raises:
            EpisodeStateError: the episode has not ended.
        """
        if self._stop is None:
            raise EpisodeStateError("the episode has not ended: there is no record of it yet")
        return Episode(
            scenario=self.scenario,
            policy=policy,
            backend=self.backend.name,
            language=self.persona.language,
            persona_name=self.persona.name,
            hidden_need=self.persona.hidden_need,
            need_text=self.persona.need_text,
            opening=self.messages[0]["content"],
            start_mood=self.settings.start_mood,
            turns=self._turns,
            stop_reason=self._stop,
            scored=self.scored,
            reward=self._reward if self.scored else None,
            usage=self._usage,
            policy_usage=policy_usage,
            fault=self._fault,
            seconds=time.monotonic() - self._began,
            settings=self.settings.model_dump(),
            versions={"rlver_gym": __version__, "prompts": prompt_version()},
        )

    def _running(self, verb: str) -> UserState:
        if self._state is None:
            raise EpisodeStateError(f"{verb}() before reset(): call reset() first")
        if self._stop is not None:
            raise EpisodeStateError(f"{verb}() after the end ({self._stop}): call reset() for a new episode")
        return self._state

    def _time_limit(self) -> AbstractAsyncContextManager[Any]:
        deadline = self.settings.deadline
        return nullcontext() if deadline is None else asyncio.timeout(max(0.0, deadline - self._user_seconds))

    def _ending(self, state: UserState) -> StopReason | None:
        if state.mood >= moods.MOOD_MAX:
            return StopReason.SATISFIED
        if state.mood < self.settings.leave_below:
            return StopReason.LEFT
        return StopReason.MAX_TURNS if state.turn >= self.settings.max_turns else None

    def _break(self, error: Exception, turn: Turn) -> Step:
        """End the episode because the user's side of the world failed."""
        if isinstance(error, TimeoutError):
            error = DeadlineError(f"the user's side of the episode took more than {self.settings.deadline} s")
        self._fault = Fault(kind=type(error).__name__, message=clean(str(error)))
        reason = _reason(error)
        by_policy = reason is StopReason.CONTEXT and self._policy_share(turn.said) > 0.5
        return self._finish(reason, turn, by_policy=by_policy)

    def _policy_share(self, said: str) -> float:
        """The policy's share of all characters of the dialogue, the reply that did not fit included."""
        policy = len(said) + sum(len(m["content"]) for m in self.messages if m["role"] == "assistant")
        return policy / max(1, policy + sum(len(m["content"]) for m in self.messages if m["role"] == "user"))

    def _finish(self, reason: StopReason, turn: Turn, *, by_policy: bool) -> Step:
        self._turns = (*self._turns, turn)
        self._stop = reason
        self._reward = final_reward(reason, mood=self.mood, start_mood=self.settings.start_mood, by_policy=by_policy)
        return self._step()

    def _turn(
        self,
        text: str,
        said: str,
        flags: list[str],
        *,
        appraisal: Appraisal | None = None,
        user: str = "",
        raw: Sequence[RawAnswer] = (),
    ) -> Turn:
        return Turn(
            index=len(self._turns) + 1,
            reply=text,
            said=said,
            appraisal=appraisal,
            mood=self.mood,
            user=user,
            flags=tuple(dict.fromkeys(flags)),
            raw=tuple(raw),
        )

    def _step(self) -> Step:
        stop = self._stop
        return Step(
            self._observation(),
            self._reward,
            stop is not None and not stop.truncated,
            stop is not None and stop.truncated,
            self._info(),
        )

    def _observation(self) -> str:
        if self.settings.observation == "transcript":
            return transcript(self.messages, self.persona.language)
        if self._turns:
            return self._turns[-1].user
        return self.messages[0]["content"]

    def _info(self) -> dict[str, Any]:
        """Fresh on every step, same keys and types throughout; what a policy must not see is under `latent`."""
        turn = self._turns[-1] if self._turns else None
        appraisal = turn.appraisal if turn else None
        path = self.moods
        return {
            "latent": {
                "mood": float(path[-1]),
                "tier": moods.tier_of(path[-1]),
                "change": float(appraisal.change) if appraisal else 0.0,
                "thought": appraisal.thought if appraisal else "",
                "hidden_need": self.persona.hidden_need,
                "need_text": self.persona.need_text,
                "moods": tuple(map(float, path)),
            },
            "messages": tuple([message.copy() for message in self.messages]),
            "turn": float(len(self._turns)),
            "persona_id": self.persona.id,
            "seed": self.scenario.seed,
            "member": self.scenario.member,
            "difficulty": self.scenario.difficulty,
            "stop_reason": str(self._stop or ""),
            "fault": self._fault.kind if self._fault else "",
            "scored": self.scored,
            "usage": self._usage.as_floats(),
            "flags": turn.flags if turn else (),
        }


def _reason(error: Exception) -> StopReason:
    match error:
        case DeadlineError():
            return StopReason.DEADLINE
        case BudgetError():
            return StopReason.BUDGET
        case ContextOverflowFault():
            return StopReason.CONTEXT
        case _:
            return StopReason.BACKEND_FAULT


_NAMES = {"en": ("Assistant: ", "User: "), "zh": ("助手：", "用户：")}


def transcript(messages: tuple[Message, ...], language: str) -> str:
    """The dialogue as text, one speaker a paragraph."""
    assistant, user = _NAMES[language]
    return "\n\n".join((user if m["role"] == "user" else assistant) + m["content"] for m in messages)

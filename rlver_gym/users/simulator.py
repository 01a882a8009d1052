"""The simulated user: one reply in, an appraisal and an answer out.

Two steps per reply, as in SAGE (arXiv 2505.02847): appraise (inner thought and mood change), then answer. The simulator
holds no state of an episode: `UserState` is frozen and explicit, so that forking an episode for a group is assignment.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from rlver_gym.backends.base import Backend, Generation, SamplingConfig
from rlver_gym.errors import BackendError, UnusableAnswerFault
from rlver_gym.prompts import render, stands_in_examples, unfenced
from rlver_gym.seeding import child_seed, choose
from rlver_gym.text import clean, neutralise, shorten
from rlver_gym.types import NO_USAGE, Appraisal, Message, RawAnswer, Usage
from rlver_gym.users import mood as moods
from rlver_gym.users.appraisal import read_appraisal
from rlver_gym.users.complaints import complaint
from rlver_gym.users.parsing import Unreadable, parse_message
from rlver_gym.users.persona import Persona
from rlver_gym.users.reply import LEAK, problems

APPRAISAL = SamplingConfig(temperature=0.0, max_tokens=400)
ANSWER = SamplingConfig(temperature=0.7, max_tokens=200)
FUSED = SamplingConfig(temperature=0.7, max_tokens=600)
ASKINGS = 3
"""How often one step is asked for before it is a fault: the first time and two more."""

MAX_MESSAGE_CHARS = 4_000
"""Longest message of a user, in characters; a longer answer is asked for again."""


@dataclass(frozen=True)
class UserState:
    """Everything that changes in the user during an episode.

    Attributes:
        moods: mood points from the start until now.
        history: the dialogue from the policy's view, the opening first.
        seed: of the episode; difficulty: 0 (open) to 1 (reserved); fence: word around the policy's text in prompts.
    """

    moods: tuple[int, ...]
    history: tuple[Message, ...]
    seed: int
    difficulty: float
    fence: str

    @property
    def mood(self) -> int:
        """Mood now, in mood points."""
        return self.moods[-1]

    @property
    def turn(self) -> int:
        """Replies heard so far."""
        return len(self.moods) - 1


@dataclass
class CallLog:
    """What the calls of one turn cost and said; filled even if the turn ends in a fault."""

    usage: Usage = NO_USAGE
    raw: list[RawAnswer] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)


class UserSimulator:
    """One person on a backend.

    Args:
        persona: who.
        backend: where the person's thoughts and words come from.
        max_turns: replies in an episode, told to the user's model.
        fused: ask for both steps in one call: half the calls, a little less careful.
    """

    def __init__(self, persona: Persona, backend: Backend, *, max_turns: int, fused: bool = False) -> None:
        self.persona = persona
        self.backend = backend
        self.max_turns = max_turns
        self.fused = fused

    def start(self, *, seed: int, difficulty: float, start_mood: int) -> UserState:
        """The state at the start, first words said; no call to the backend."""
        opening = neutralise(clean(choose(self.persona.openings, seed, "opening")))
        fence = f"{child_seed(seed, 'fence') % 16**10:010x}"
        return UserState((start_mood,), ({"role": "user", "content": opening},), seed, difficulty, fence)

    async def respond(self, reply: str, state: UserState, log: CallLog) -> tuple[UserState, Appraisal, str]:
        """Hear one reply: the new state, the appraisal, and the user's words.

        Args:
            reply: what the policy said, thoughts stripped.
            state: before the reply.
            log: where calls, raw answers and flags are noted.

        Raises:
            BackendError: the backend failed, or none of its answers could be used.
        """
        shared = {
            "persona": self.persona,
            "history": state.history,
            "reply": reply,
            "turn": state.turn + 1,
            "max_turns": self.max_turns,
            "seed": state.seed,
            "difficulty": state.difficulty,
            "fence": state.fence,
        }
        before = shared | _mood(state.moods)
        if self.fused:
            appraisal, draft = await self._appraise("fused", before, FUSED, log)
        else:
            appraisal, draft = await self._appraise("appraise", before, APPRAISAL, log)
        after = (*state.moods, moods.apply_change(state.mood, appraisal.change))
        message = await self._answer(shared | _mood(after) | {"appraisal": appraisal}, draft, log)
        said: tuple[Message, ...] = (
            {"role": "assistant", "content": reply},
            {"role": "user", "content": message},
        )
        heard = UserState(after, state.history + said, state.seed, state.difficulty, state.fence)
        return heard, appraisal, message

    async def _appraise(
        self, name: str, variables: dict[str, Any], sampling: SamplingConfig, log: CallLog
    ) -> tuple[Appraisal, str | None]:
        complaints = ""
        for attempt in range(ASKINGS):
            answer = await self._ask(name, variables | {"complaint": complaints}, sampling, attempt, log)
            try:
                appraisal, clamped = read_appraisal(answer.text, answer.fields)
                draft = parse_message(answer.text, True, answer.fields) if name == "fused" else None
            except Unreadable as error:
                complaints = error.words(self.persona.language)
                self._note(name, answer, attempt, log, readable=False, problem=str(error))
                continue
            self._note(name, answer, attempt, log)
            if clamped:
                log.flags.append("clamped")
            if stands_in_examples(appraisal.thought, self.persona.language):
                log.flags.append("copied_example")
            return appraisal, draft
        raise _unusable(name, log)

    async def _answer(self, variables: dict[str, Any], draft: str | None, log: CallLog) -> str:
        """The user's words: the draft of a fused answer if it is good, else asked for.

        An answer with a problem is asked for once more; what comes then is delivered and flagged, unless it leaks.
        """
        language, complaints = self.persona.language, ""
        again, kept = False, None
        for attempt in range(ASKINGS):
            answer = None
            try:
                if attempt == 0 and draft is not None:
                    words = draft
                else:
                    answer = await self._ask("answer", variables | {"complaint": complaints}, ANSWER, attempt, log)
                    words = parse_message(answer.text, answer.rung.startswith("json"), answer.fields)
                message = _deliverable(words, variables["fence"])
            except Unreadable as error:
                complaints = error.words(language)
                self._note("answer", answer, attempt, log, readable=False, problem=str(error))
                continue
            found = problems(
                message,
                persona=self.persona,
                appraisal=variables["appraisal"],
                reply=variables["reply"],
                history=variables["history"],
            )
            self._note("answer", answer, attempt, log, problem=", ".join(found))
            if LEAK not in found:
                kept = message, found
                if again or not found:
                    break
            stop = "；" if language == "zh" else "; "
            again, complaints = True, stop.join(complaint(name, language) for name in found)
        if kept is None:
            raise _unusable("answer", log)
        log.flags.extend(kept[1])
        return kept[0]

    async def _ask(
        self, name: str, variables: dict[str, Any], sampling: SamplingConfig, attempt: int, log: CallLog
    ) -> Generation:
        seed = child_seed(variables["seed"], "user", variables["turn"], name) % 2**31
        prompt = render(name, **variables)
        answer = await self.backend.generate(prompt, dataclasses.replace(sampling, seed=seed, attempt=attempt))
        log.usage += answer.usage
        return answer

    def _note(
        self,
        step: str,
        answer: Generation | None,
        attempt: int,
        log: CallLog,
        *,
        readable: bool = True,
        problem: str = "",
    ) -> None:
        """Keep an answer as it came and tell the backend of it; a draft has none, it came with the appraisal."""
        if answer is not None:
            self.backend.report(answer, readable)
            log.raw.append(
                RawAnswer(step=step, attempt=attempt, rung=answer.rung, text=clean(answer.text), problem=problem)
            )
        if problem and "reask" not in log.flags:
            log.flags.append("reask")


def _deliverable(words: str, fence: str) -> str:
    """The words as they go to a policy: no template token, and no fence, which a policy must never learn.

    Raises:
        Unreadable: nothing is left, or far too much.
    """
    message = neutralise(unfenced(words, fence)).strip()
    if not message:
        raise Unreadable("empty")
    if len(message) > MAX_MESSAGE_CHARS:
        raise Unreadable("long")
    return message


def _mood(path: tuple[int, ...]) -> dict[str, Any]:
    return {"mood": path[-1], "tier": moods.tier_of(path[-1]), "moods": path}


def _unusable(step: str, log: CallLog) -> BackendError:
    last = log.raw[-1]
    return UnusableAnswerFault(
        f"no usable answer to {step!r} in {ASKINGS} askings: {last.problem}; the last was {shorten(last.text, 120)!r}. "
        "A larger model or an endpoint with structured output mends this.",
        step=step,
    )

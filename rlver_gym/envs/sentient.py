"""The Gymnasium environment."""

from __future__ import annotations

import copy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import gymnasium
from gymnasium.envs.registration import EnvSpec

from rlver_gym import configs
from rlver_gym.backends.base import Backend
from rlver_gym.backends.registry import make_backend
from rlver_gym.envs import loop
from rlver_gym.envs.curriculum import Curriculum
from rlver_gym.envs.session import MAX_REPLY_CHARS, Session, SessionSettings, Step
from rlver_gym.envs.spaces import UnicodeText
from rlver_gym.errors import EpisodeStateError, SetupError, UnknownNameError
from rlver_gym.seeding import choose
from rlver_gym.text import encodable
from rlver_gym.types import Scenario
from rlver_gym.users import mood as moods
from rlver_gym.users.library import select_personas
from rlver_gym.users.persona import Persona
from rlver_gym.users.simulator import MAX_MESSAGE_CHARS

_OPTIONS = ("persona_id", "member", "difficulty")


class SentientEnv(gymnasium.Env[str, str]):
    """A conversation with a simulated person who has a latent mood.

    ## Description
    The person has something on their mind, and a need that they hide. The policy writes the replies; after each, the
    person privately appraises it (inner thought, mood change) and then answers. How they feel at the end is the reward.
    Sources: RLVER (arXiv 2507.03112) for the task, SAGE (arXiv 2505.02847) for the user.

    ## Action Space
    `UnicodeText(32768)`: the policy's reply, any Unicode text, the empty one included. With `think=True` it must read
    `<think>...</think>` and then the words that are said; thoughts never reach the user. Longer than the space: the
    episode ends as `context` with reward 0.

    ## Observation Space
    `UnicodeText`: the user's last words (`observation="utterance"`), or the whole dialogue (`"transcript"`). It never
    holds anything latent. It is empty where an ending left the user no words (format, safety, fault).

    ## Rewards
    0.0 on every step but the last; there, mood / 100 in [0, 1]. All endings stand in `rlver_gym.envs.rewards`. An
    episode that the world broke has reward nan and `info["scored"] == False`: mask it, it is not a zero.

    ## Starting State
    A person drawn by the seed (or named by `options["persona_id"]`), mood 40, and their first words. Equal seed and
    person give equal hidden state and first words; on the embedded backend equal replies then give a byte-equal
    episode.

    ## Episode End
    Terminated: mood 100 (`satisfied`), mood below `leave_below` (`left`), the `max_turns`-th reply (`max_turns`), a
    broken think format (`format`), a crisis signal (`safety`). Truncated: `context`, `backend_fault`, `deadline`,
    `budget`. The turn cap terminates, because the horizon belongs to the task.

    ## Info
    Same keys and types at reset and on every step: `latent` (what the policy must never see: `mood` and `change` in
    mood points, `tier`, `thought`, `hidden_need`, `need_text`, `moods`), and `messages`, `turn`, `persona_id`, `seed`,
    `member`, `difficulty`, `stop_reason`, `fault`, `scored`, `usage`, `flags`.

    ## Arguments
    | name | default | meaning |
    |---|---|---|
    | `backend` | `"embedded"` | where the user lives: `"embedded"`, `"openai:MODEL"`, `"cassette:PATH"`, or a Backend |
    | `personas` | `"train"` | `"train"`, `"test"`, `"all"`, a path, or Persona objects |
    | `language` | `None` | `"en"`, `"zh"`, or both |
    | `start_mood`, `leave_below` | 40, 10 | mood points |
    | `max_turns` | 8 | replies, all of them scored |
    | `think` | `False` | think-then-say |
    | `fused` | `False` | one call to the backend a reply instead of two |
    | `observation` | `"utterance"` | or `"transcript"` |
    | `deadline` | `None` | wall-clock seconds that the user's side of an episode may take |
    | `curriculum` | a new one | of `RLVER-Curriculum-v0`: a `Curriculum` that several environments share |

    `reset(options=...)` takes `persona_id`, `member` and, with a curriculum, `difficulty`.

    ## Example
    >>> import gymnasium, rlver_gym
    >>> env = gymnasium.make("RLVER-Vanilla-v0", language="en")
    >>> observation, info = env.reset(seed=7)
    >>> info["latent"]["mood"], info["turn"], info["stop_reason"]
    (40.0, 0.0, '')
    >>> observation, reward, terminated, truncated, info = env.step("What happened?")
    >>> reward, terminated, truncated, info["turn"]
    (0.0, False, False, 1.0)

    ## Version History
    - v0: first version.

    Raises:
        UnknownNameError: an argument, backend, language, person or option that does not exist.
        SetupError: an argument of the wrong type or out of range, or no people left to choose from.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi", "human"], "render_fps": 1}  # type: ignore[misc]

    def __init__(
        self,
        *,
        backend: str | Backend = "embedded",
        personas: str | Path | Sequence[Persona] = "train",
        language: Literal["en", "zh"] | None = None,
        start_mood: int = moods.START_MOOD,
        leave_below: int = moods.LEAVE_BELOW,
        max_turns: int = moods.MAX_TURNS,
        think: bool = False,
        fused: bool = False,
        observation: Literal["utterance", "transcript"] = "utterance",
        deadline: float | None = None,
        difficulty: float | None = 0.0,
        curriculum: Curriculum | None = None,
        render_mode: str | None = None,
        **unknown: Any,
    ) -> None:
        for name in unknown:
            raise UnknownNameError("argument", name, set(self.__init__.__kwdefaults__))  # type: ignore[misc]
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise UnknownNameError("render mode", render_mode, self.metadata["render_modes"])
        if curriculum is not None and difficulty is not None:
            raise SetupError("a fixed difficulty and a curriculum exclude each other: use RLVER-Curriculum-v0")
        settings = configs.build(
            SessionSettings,
            {
                "start_mood": start_mood,
                "leave_below": leave_below,
                "max_turns": max_turns,
                "think": think,
                "fused": fused,
                "observation": observation,
                "deadline": deadline,
            },
        )
        self.people = {persona.id: persona for persona in select_personas(personas, language=language)}
        self.backend = make_backend(backend)
        self.settings = settings
        self.curriculum = curriculum or (Curriculum() if difficulty is None else None)
        self.render_mode = render_mode
        self.session = self.new_session()
        self._ids = sorted(self.people)
        self._difficulty = difficulty
        longest = MAX_MESSAGE_CHARS
        if settings.observation == "transcript":
            longest += settings.max_turns * (MAX_REPLY_CHARS + MAX_MESSAGE_CHARS + 32) + 32
        self.observation_space = UnicodeText(longest)
        self.action_space = UnicodeText(MAX_REPLY_CHARS)
        self._spec: EnvSpec | None = None
        self._shown = 0

    @property
    def spec(self) -> EnvSpec | None:
        """The spec that this environment was made from; on a live backend its own copy says `nondeterministic`."""
        return self._spec

    @spec.setter
    def spec(self, spec: EnvSpec | None) -> None:
        if spec is not None and not self.backend.deterministic:
            spec = copy.copy(spec)
            spec.nondeterministic = True
        self._spec = spec

    def new_session(self) -> Session:
        """A session of its own with this environment's people, backend and settings, for playing many at once."""
        return Session(self.people, self.backend, self.settings)

    def scenario(self, seed: int, options: dict[str, Any] | None = None) -> Scenario:
        """What `reset(seed=seed, options=options)` starts from.

        Raises:
            UnknownNameError: an option or a person that does not exist.
            SetupError: a difficulty for an environment whose difficulty is fixed, or out of range.
        """
        options = dict(options or {})
        for name in options.keys() - set(_OPTIONS):
            raise UnknownNameError("option", name, _OPTIONS)
        persona_id = options.get("persona_id") or choose(self._ids, seed, "persona")
        if persona_id not in self.people:
            raise UnknownNameError("persona", persona_id, self.people)
        fixed = self._difficulty
        difficulty = options.get("difficulty", self.curriculum.difficulty if self.curriculum else fixed)
        if fixed is not None and difficulty != fixed:
            raise SetupError(f"difficulty {difficulty!r}: here it is fixed at {fixed}; use RLVER-Curriculum-v0")
        if not isinstance(difficulty, int | float) or not 0.0 <= difficulty <= 1.0:
            raise SetupError(f"difficulty {difficulty!r} must be a number in [0, 1]")
        return Scenario(
            env_id=self._spec.id if self._spec else type(self).__name__,
            persona_id=persona_id,
            persona_hash=self.people[persona_id].content_hash,
            seed=seed,
            member=options.get("member", 0),
            difficulty=difficulty,
        )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Begin an episode; `info["seed"]` begins the same one again."""
        super().reset(seed=seed)
        if seed is None:
            seed = int(self.np_random.integers(2**31))
        step = loop.run(self.session.areset(self.scenario(seed, options)))
        self._shown = 0
        self._show()
        return step.observation, step.info

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Give the user one reply.

        Raises:
            EpisodeStateError: before a reset or after the end.
            TypeError: the action is no text.
        """
        step: Step = loop.run(self.session.astep(action))
        if self.curriculum is not None and self.session.scored:
            self.curriculum.record(self.session.mood)
        self._show()
        return step

    def render(self) -> str | None:
        """The dialogue with the mood beside it as text (`ansi`); `human` prints it as it goes on and returns None.

        Raises:
            EpisodeStateError: before a reset, or without a render mode.
        """
        if self.render_mode is None:
            raise EpisodeStateError('render() needs a mode: make the environment with render_mode="ansi" or "human"')
        lines = self._lines()
        return "\n".join(lines) if self.render_mode == "ansi" else None

    def close(self) -> None:
        """Release the backend's connections."""
        loop.run(self.backend.aclose())

    def _lines(self) -> list[str]:
        """The dialogue so far, a line a message, with the mood that stood behind it."""
        mood, path = self.session.mood, self.session.moods
        name = self.session.persona.name
        lines: list[str] = []
        for message in self.session.messages:
            if message["role"] == "user":
                mood = path[len(lines) // 2]
                lines.append(f"[{mood:3d} {moods.tier_of(mood)}] {name}: {message['content']}")
            else:
                lines.append(f"        policy: {message['content']}")
        if self.session.stop_reason:
            lines.append(f"        ({self.session.stop_reason}, mood {mood})")
        return lines

    def _show(self) -> None:
        if self.render_mode == "human":
            lines = self._lines()
            encoding = sys.stdout.encoding or "utf-8"
            print("\n".join(encodable(line, encoding) for line in lines[self._shown :]), flush=True)
            self._shown = len(lines)

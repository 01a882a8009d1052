"""A public fake: fixed answers or a callable. Shipped, so that nobody has to mock a backend."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rlver_gym.backends.base import Generation, SamplingConfig
from rlver_gym.errors import ScriptExhaustedError
from rlver_gym.types import Prompt

Answer = str | Generation | Exception


class ScriptedBackend:
    """Answers from a script.

    Args:
        answers: an iterable of answers, used up in order, or a callable `(prompt, sampling) -> answer`. An answer is a
            text, a Generation, or an exception, which is raised.
        name: how it calls itself in records.

    Attributes:
        prompts: every prompt it was asked, in order.
        reports: what it was told of its answers, in order.
    """

    deterministic = True

    def __init__(
        self, answers: Iterable[Answer] | Callable[[Prompt, SamplingConfig], Answer], name: str = "scripted"
    ) -> None:
        self.name = name
        self.prompts: list[Prompt] = []
        self.reports: list[bool] = []
        self._answers = answers if callable(answers) else iter(answers)

    async def generate(self, prompt: Prompt, sampling: SamplingConfig) -> Generation:
        """The next answer of the script.

        Raises:
            ScriptExhaustedError: the script has no answer left.
        """
        self.prompts.append(prompt)
        if callable(self._answers):
            answer = self._answers(prompt, sampling)
        else:
            try:
                answer = next(self._answers)
            except StopIteration:
                raise ScriptExhaustedError(
                    f"the script of {self.name!r} ran dry at call {len(self.prompts)} ({prompt.name}): add answers"
                ) from None
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, Generation) else Generation(answer)

    def report(self, generation: Generation, usable: bool) -> None:
        """Note what was said of an answer."""
        self.reports.append(usable)

    async def aclose(self) -> None:
        """Nothing to close."""

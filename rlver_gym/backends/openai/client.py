"""A backend behind an OpenAI-compatible endpoint: `OpenAIBackend`."""

from __future__ import annotations

import asyncio
import json
import math
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import openai

from rlver_gym.backends.base import Generation, SamplingConfig, network
from rlver_gym.backends.openai.dialect import RUNGS, Dialect, Refusal, dialect_of
from rlver_gym.backends.openai.transport import DEFAULT_URL, Endpoint, Lanes, open_client
from rlver_gym.errors import (
    BackendError,
    ConnectionFault,
    ContextOverflowFault,
    EmptyAnswerFault,
    NetworkDisabledError,
    RateLimitFault,
    RefusalFault,
    RequestFault,
    ServerFault,
    SetupError,
    TimeoutFault,
)
from rlver_gym.text import shorten, split_thought
from rlver_gym.types import Prompt, Usage

_PLACEHOLDER = "no-key-needed"
_SHOWN_CHARACTERS = 400


class OpenAIBackend:
    """Answers of one model at an OpenAI-compatible endpoint.

    Making one neither calls nor connects; address and key are read at the first call. It can be used from several
    event loops, threads and forked processes, and it can be pickled: the key is never taken along, but read from the
    environment again. It asks once per call (`rlver_gym.backends.limits.Retrying` asks again), apart from finding out
    what the endpoint takes (`rlver_gym.backends.openai.dialect`). A live endpoint is never reproducible, whatever the
    seed: record it in a cassette for that.

    Thoughts are kept out of the text of every prompt but the policy's. A prompt named `policy_...` gets its text as it
    came, and for `policy_think` thoughts that came in a field of their own stand in front as `<think>...</think>`.

    Args:
        model: as the endpoint names it.
        base_url: of the endpoint; None reads OPENAI_BASE_URL, and without that means OpenAI itself.
        api_key: None reads OPENAI_API_KEY; endpoints other than OpenAI's can go without.
        timeout: seconds for a whole call, counted from when it gets one of the slots.
        max_concurrency: slots, that is calls in flight, per event loop.

    Attributes:
        name: `openai:MODEL`.

    Raises:
        SetupError: no model, no usable address, or a number that is not positive.
    """

    deterministic = False

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 60.0,
        max_concurrency: int = 64,
    ) -> None:
        if not model.strip():
            raise SetupError("no model is named: give one, for example OpenAIBackend('gpt-4.1-mini')")
        if not timeout > 0 or max_concurrency < 1:
            raise SetupError(f"timeout={timeout} and max_concurrency={max_concurrency} must be positive")
        if base_url is not None:
            Endpoint.parse(base_url)
        self.model = model
        self.name = f"openai:{model}"
        self._base_url = base_url
        self._api_key = api_key
        self._timeout = timeout
        self._max_concurrency = max_concurrency
        self._endpoint: Endpoint | None = None
        self._sent_key = ""
        self._lanes = Lanes(max_concurrency)

    def __repr__(self) -> str:
        return f"OpenAIBackend({self.model!r}, timeout={self._timeout}, max_concurrency={self._max_concurrency})"

    def __getstate__(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "base_url": self._base_url,
            "timeout": self._timeout,
            "max_concurrency": self._max_concurrency,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    @property
    def endpoint(self) -> Endpoint:
        """Where calls go; read from the environment once, if it was not given."""
        if self._endpoint is None:
            self._endpoint = Endpoint.parse(self._base_url or os.environ.get("OPENAI_BASE_URL") or DEFAULT_URL)
        return self._endpoint

    @property
    def dialect(self) -> Dialect:
        """What was found out about the model at its endpoint so far."""
        return dialect_of(self.endpoint.url, self.model)

    def _key(self) -> str:
        """The key to send, or nothing.

        Raises:
            SetupError: OpenAI's own endpoint is meant and there is no key, or it cannot be sent in a header.
        """
        key = (self._api_key or os.environ.get("OPENAI_API_KEY") or "").strip()
        if not key.isascii() or any(character.isspace() for character in key):
            raise SetupError("the key in OPENAI_API_KEY holds characters that no key has: copy it once more")
        if not key and self.endpoint.url == DEFAULT_URL:
            raise SetupError(
                f"{self.name} at {DEFAULT_URL} needs a key: set OPENAI_API_KEY, or OPENAI_BASE_URL to reach another "
                "endpoint, for example http://localhost:8000/v1"
            )
        return key

    def _open(self) -> openai.AsyncOpenAI:
        self._sent_key = self._key()
        return open_client(self.endpoint, self._sent_key or _PLACEHOLDER, self._timeout, self._max_concurrency)

    async def generate(self, prompt: Prompt, sampling: SamplingConfig) -> Generation:
        """Answer one prompt.

        Raises:
            NetworkDisabledError: the network is switched off and the endpoint is not on this machine.
            TimeoutFault: the answer was not whole within the timeout.
        """
        lane = await self._lanes.here(self._open)
        if not network.allowed and not self.endpoint.is_loopback:
            raise NetworkDisabledError(f"{self._where()}: the network is switched off, and this is no loopback address")
        async with lane.slots:
            try:
                async with asyncio.timeout(self._timeout):
                    return await self._descend(lane.client, prompt, sampling)
            except TimeoutError:
                pass
        raise TimeoutFault(f"{self._where()}: no whole answer within {self._timeout:g} s")

    async def _descend(self, client: openai.AsyncOpenAI, prompt: Prompt, sampling: SamplingConfig) -> Generation:
        """Try the rungs of the ladder downwards until one is taken.

        A rung refused by name is remembered at once. One that failed without saying why is remembered once a lower one
        was answered, and not at all if it has ever been answered itself: then the failure was a passing one.
        """
        dialect = self.dialect
        ladder = dialect.ladder(sampling.attempt) if prompt.schema is not None else ("",)
        doubtful: list[str] = []
        for rung in ladder:
            answer = await self._adapt(client, dialect, prompt, sampling, rung)
            if not isinstance(answer, Refusal):
                break
            if rung not in RUNGS[:-1] or not answer.maybe_format:
                raise self._fault(answer)
            if answer.about_format:
                dialect.rungs[rung].refused = True
            elif dialect.rungs[rung].answers:
                raise self._fault(answer)
            else:
                doubtful.append(rung)
        generation = self._read(answer, prompt, rung)
        if rung:
            dialect.rungs[rung].answers += 1
        for name in doubtful:
            dialect.rungs[name].refused = True
        return generation

    async def _adapt(
        self, client: openai.AsyncOpenAI, dialect: Dialect, prompt: Prompt, sampling: SamplingConfig, rung: str
    ) -> object | Refusal:
        """Send a request, anew for as long as each refusal teaches how to word it."""
        while True:
            quirks = frozenset(dialect.quirks)
            answer = await self._post(client, dialect.request(prompt, sampling, rung, quirks))
            if not isinstance(answer, Refusal) or not dialect.learn(answer, quirks):
                return answer

    async def _post(self, client: openai.AsyncOpenAI, body: dict[str, Any]) -> object | Refusal:
        """Send one request; faults are raised outside the handler, so that none holds a request with its key."""
        fault: BackendError
        try:
            return await client.post("/chat/completions", body=body, cast_to=object)
        except openai.APITimeoutError:
            fault = TimeoutFault(f"{self._where()}: no whole answer within {self._timeout:g} s")
        except openai.APIConnectionError as error:
            cause = error.__cause__ or error
            said = self._scrub(f"{type(cause).__name__}: {cause}")
            fault = ConnectionFault(f"{self._where()}: no connection, or it was lost ({said}); is the server running?")
        except openai.APIStatusError as error:
            return self._refusal(error)
        except (openai.APIError, ValueError) as error:
            fault = EmptyAnswerFault(f"{self._where()}: the answer is not JSON ({type(error).__name__})")
        raise fault

    def _refusal(self, error: openai.APIStatusError) -> Refusal:
        body = error.body
        param = body.get("param") if isinstance(body, Mapping) else None
        text = error.response.text
        if 300 <= error.status_code < 400:
            target = error.response.headers.get("location", "nowhere").partition("?")[0]
            text = f"redirected to {target}: use that address"
        return Refusal(
            status=error.status_code,
            text=self._scrub(text),
            param=param if isinstance(param, str) else "",
            retry_after=retry_after(error.response.headers.get("retry-after"), datetime.now(UTC)),
        )

    def _fault(self, refusal: Refusal) -> BackendError:
        """The fault that a refusal amounts to."""
        status = refusal.status
        said = f"{self._where()}: HTTP {status}: {shorten(refusal.text, _SHOWN_CHARACTERS) or 'no reason given'}"
        if refusal.overflow:
            return ContextOverflowFault(said, status=status)
        if refusal.filtered:
            return RefusalFault(said, status=status)
        if refusal.quota:
            return RequestFault(said + " (the account is used up)", status=status)
        if status == 429:
            return RateLimitFault(said, status=status, retry_after=refusal.retry_after)
        if status >= 500:
            return ServerFault(said, status=status, retry_after=refusal.retry_after)
        if status == 408:
            return TimeoutFault(said, status=status)
        if status in (401, 403):
            return RequestFault(said + " (is OPENAI_API_KEY the right key for this endpoint?)", status=status)
        return RequestFault(said, status=status)

    def _where(self) -> str:
        return f"model {self.model!r} at {self.endpoint.url}/chat/completions"

    def _scrub(self, text: str) -> str:
        """The text without the key and without the values of the URL's query."""
        for secret in (self._sent_key, *(value for _, value in self.endpoint.query)):
            if secret:
                text = text.replace(secret, "***")
        return text

    def _read(self, answer: object, prompt: Prompt, rung: str) -> Generation:
        """Read an answer with status 200.

        Raises:
            EmptyAnswerFault: it holds no text.
            RefusalFault: the provider or the model refused.
        """
        if isinstance(answer, str):
            answer = _parse(answer)
        if not isinstance(answer, Mapping):
            raise EmptyAnswerFault(f"{self._where()}: the answer is not a JSON object but {type(answer).__name__}")
        choices = answer.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        message = choice.get("message") if isinstance(choice, Mapping) else None
        if not isinstance(choice, Mapping) or not isinstance(message, Mapping):
            keys = ", ".join(map(str, answer)) or "no key at all"
            raise EmptyAnswerFault(
                f"{self._where()}: an answer without choices; received {keys}{self._scrub(_error_in(answer))}"
            )
        finish = str(choice.get("finish_reason") or "stop")
        if finish == "content_filter" or message.get("refusal"):
            reason = self._scrub(shorten(str(message.get("refusal") or "content filter"), _SHOWN_CHARACTERS))
            raise RefusalFault(f"{self._where()}: refused: {reason}")
        text, reasoning = _text_and_reasoning(message)
        if prompt.name.startswith("policy_"):
            text = _policy_text(prompt, text, reasoning, finish)
        else:
            text, reasoning = _spoken(text, reasoning, rung)
        if text is None or not (text.strip() or prompt.name.startswith("policy_")):
            keys = ", ".join(map(str, message)) or "no key at all"
            spent = "; its thoughts used up max_tokens: allow more" if reasoning and finish == "length" else ""
            if finish != "length":
                self.dialect.report(rung, usable=False)
            raise EmptyAnswerFault(
                f"{self._where()}: an answer without text (finish_reason {finish!r}); its message holds {keys}{spent}"
            )
        return Generation(
            text=text,
            finish_reason=finish,
            reasoning=reasoning,
            rung=rung,
            usage=_usage(answer.get("usage")),
            model=str(answer.get("model") or self.model),
        )

    def report(self, generation: Generation, usable: bool) -> None:
        """Count whether an answer could be read, for its rung."""
        self.dialect.report(generation.rung, usable)

    async def aclose(self) -> None:
        """Close the clients of all loops; the next call opens a new one."""
        await self._lanes.aclose()


def retry_after(header: str | None, now: datetime) -> float | None:
    """Seconds that a Retry-After header asks for: a number or an HTTP date; None if it says nothing sensible."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            when = parsedate_to_datetime(header)
        except ValueError:
            return None
        return max(0.0, (when.replace(tzinfo=when.tzinfo or UTC) - now).total_seconds())
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def _parse(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _error_in(answer: Mapping[str, Any]) -> str:
    error = answer.get("error")
    said = error.get("message") if isinstance(error, Mapping) else error
    return f" ({shorten(str(said), _SHOWN_CHARACTERS)})" if said else ""


def _text_and_reasoning(message: Mapping[str, Any]) -> tuple[str | None, str]:
    """The `content` of a message, None if it has none, and its thoughts, whichever field they came in."""
    content = message.get("content")
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    thoughts = [reasoning] if isinstance(reasoning, str) else []
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, Mapping)]
        thoughts += [str(part["thinking"]) for part in parts if isinstance(part.get("thinking"), str)]
        content = "".join(part["text"] for part in parts if isinstance(part.get("text"), str))
    return content if isinstance(content, str) else None, "\n".join(thoughts)


def _policy_text(prompt: Prompt, text: str | None, reasoning: str, finish: str) -> str | None:
    """What the policy wrote. A thought that left no room for words is its own doing, so it is no fault."""
    if not reasoning:
        return text
    if prompt.name != "policy_think":
        return text or ""
    if not text and finish == "length":
        return f"<think>{reasoning}"
    return f"<think>{reasoning}</think>{text or ''}"


def _spoken(text: str | None, reasoning: str, rung: str) -> tuple[str | None, str]:
    """Text and thoughts, apart.

    Some servers file a whole structured answer under the thoughts; it is taken from there if it looks like JSON. A text
    that is JSON from its first character is left alone, since a quoted tag in it is no thought.
    """
    if not (text or "").strip() and rung.startswith("json_") and reasoning.lstrip().startswith("{"):
        return reasoning, ""
    if text is None or text.lstrip().startswith("{"):
        return text, reasoning
    split = split_thought(text)
    return split.said, "\n".join(part for part in (reasoning, split.thought) if part)


def _usage(reported: object) -> Usage:
    """The usage of one answered call; what is not reported stays unknown."""
    counts = reported if isinstance(reported, Mapping) else {}
    details = counts.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else counts.get("prompt_cache_hit_tokens")
    return Usage(
        calls=1,
        prompt_tokens=_count(counts.get("prompt_tokens")),
        completion_tokens=_count(counts.get("completion_tokens")),
        cached_tokens=_count(cached),
    )


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None

"""What was found out about one model at one endpoint: which parameters, roles and answer formats it takes.

OpenAI-compatible endpoints differ, and say so only by refusing. What one refuses is found out once per (base URL,
model) and shared by all backends of the process. All of it is plain data, changed by single operations that need no
lock, so a forked child inherits it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rlver_gym.backends.base import SamplingConfig
from rlver_gym.text import clean
from rlver_gym.types import Message, Prompt

RUNGS = ("json_schema", "json_object", "lines")
"""Ways to ask for a structured answer, from the strictest down; `lines` asks in words alone and always works."""

MIN_REPORTS = 4
MIN_USABLE = 0.25
"""A rung with at least MIN_REPORTS reports of which fewer than MIN_USABLE were usable is not tried first any more:
some servers accept a format and ignore it."""

_SILENCE = "…"
_JSON_LINE = "Answer with one JSON object."
_OPTIONAL = ("temperature", "top_p", "seed")
_FORMAT_STATUSES = frozenset({400, 404, 415, 422, 500, 501})
_SEED_BITS = 0x7FFFFFFF  # servers differ in the width of a seed; 31 bits fit all of them

_ABOUT_FORMAT = re.compile(
    r"response_?format|json_?schema|json_?object|structured[ _]output|guided[ _]|\bgrammar\b|\bjson mode\b",
    re.IGNORECASE,
)
_ABOUT_MODEL = re.compile(r"model_not_found|model .{0,120}(?:not found|does not exist|not exist)", re.IGNORECASE)
_UNSUPPORTED = re.compile(
    r"unsupported|not supported|n[o']t support|unrecogni[sz]ed|unknown|unexpected|not (?:permitted|allowed|available)"
    r"|extra (?:inputs|fields)|extra_forbidden|only the default|cannot both|use '?max_completion_tokens",
    re.IGNORECASE,
)
_ALTERNATE = re.compile(r"must alternate|alternating (?:user|roles)|consecutive \S+ (?:messages|roles)", re.IGNORECASE)
_NO_SYSTEM = re.compile(
    r"system (?:role|messages?|prompt) (?:is |are )?(?:not|un)\W?(?:supported|allowed)"
    r"|(?:n[o']t|no) support (?:the )?['\"]?system|(?:unexpected|invalid|unsupported|unknown) role:? ?['\"]?system"
    r"|developer instruction is not enabled",
    re.IGNORECASE,
)
_SYSTEM_FIRST = re.compile(
    r"(?:only|more than) one system|multiple system|system messages? (?:must|should) (?:be|come|only)", re.IGNORECASE
)
_EMPTY_CONTENT = re.compile(
    r"(?:content|messages?)\b.{0,60}(?:must not be empty|non-?empty|cannot be (?:empty|blank)|is empty|too short)",
    re.IGNORECASE | re.DOTALL,
)
_OVERFLOW = re.compile(
    r"context_length_exceeded|exceed_context_size|maximum (?:context|model|sequence|prompt) length"
    r"|max(?:imum)? input length|context (?:window|length|size)"
    r"|(?:prompt|input) (?:is )?too long|too many (?:input )?tokens"
    r"|range of input length|reduce the length|input tokens? exceed|inputs?`? tokens \+ `?max_new_tokens"
    r"|token count .{0,40}exceeds",
    re.IGNORECASE,
)
_FILTERED = re.compile(
    r"content_filter|content_policy|content management policy|content policy|responsibleai|data_inspection_failed"
    r"|safety system|flagged|moderation|inappropriate content",
    re.IGNORECASE,
)
_QUOTA = re.compile(r"insufficient_quota|insufficient balance|billing|exceeded your current quota", re.IGNORECASE)


@dataclass(frozen=True)
class Refusal:
    """An answer of an endpoint with a status of 300 or above.

    Attributes:
        status: of HTTP; text: body, free of keys; param: parameter that the body's `error` names, or empty.
        retry_after: the server's hint in seconds, or None.
    """

    status: int
    text: str
    param: str = ""
    retry_after: float | None = None

    @property
    def overflow(self) -> bool:
        """Whether it says that the prompt is longer than the model's window."""
        return self.status in (400, 413, 422, 500) and _OVERFLOW.search(self.text) is not None

    @property
    def filtered(self) -> bool:
        """Whether it comes from a content filter."""
        return self.status in (400, 403, 422, 451) and _FILTERED.search(self.text) is not None

    @property
    def quota(self) -> bool:
        """Whether the account has nothing left, which no waiting mends."""
        return self.status in (402, 403, 429) and _QUOTA.search(self.text) is not None

    @property
    def about_format(self) -> bool:
        """Whether it names the format of the answer as its reason."""
        return self.maybe_format and (
            self.param.startswith("response_format") or _ABOUT_FORMAT.search(self.text) is not None
        )

    @property
    def maybe_format(self) -> bool:
        """Whether the format of the answer can be its reason, said or not."""
        known = self.overflow or self.filtered or (self.status == 404 and _ABOUT_MODEL.search(self.text) is not None)
        return self.status in _FORMAT_STATUSES and not known

    def rejects(self, parameter: str) -> bool:
        """Whether it says that the endpoint does not take a parameter, or not this value of it."""
        if self.status not in (400, 422) or _UNSUPPORTED.search(self.text) is None:
            return False
        if self.param:
            return self.param == parameter
        return re.search(rf"\b{parameter}\b", self.text) is not None


@dataclass
class Rung:
    """What became of one way to ask: answers with a text, reports on answers, how many were usable."""

    answers: int = 0
    reports: int = 0
    usable: int = 0
    refused: bool = False

    @property
    def ignored(self) -> bool:
        """Whether the endpoint takes the format but hardly ever keeps it."""
        return self.reports >= MIN_REPORTS and self.usable < MIN_USABLE * self.reports


@dataclass
class Dialect:
    """What one model at one endpoint takes.

    Attributes:
        url, model: whose dialect it is.
        rungs: ways to ask for a structured answer.
        quirks: what must be done otherwise: `max_completion_tokens` (this name for the cap), `no_temperature`,
            `no_top_p`, `no_seed`, `alternate` (one system message, then alternating roles), `fold_system` (no system
            role at all), `fill_empty` (no empty message).
    """

    url: str
    model: str
    rungs: dict[str, Rung] = field(default_factory=lambda: {name: Rung() for name in RUNGS})
    quirks: set[str] = field(default_factory=set)

    def ladder(self, attempt: int) -> tuple[str, ...]:
        """Rungs to try in one call, best first; `attempt` starts that many rungs lower."""
        open_rungs = [n for n, rung in self.rungs.items() if n == RUNGS[-1] or not (rung.refused or rung.ignored)]
        return tuple(open_rungs[min(attempt, len(open_rungs) - 1) :])

    def report(self, rung: str, usable: bool) -> None:
        """Count whether an answer could be read."""
        if rung in self.rungs:
            self.rungs[rung].reports += 1
            self.rungs[rung].usable += usable

    def learn(self, refusal: Refusal, used: frozenset[str]) -> bool:
        """Take a refusal of a request that kept the quirks `used` to heart.

        Returns:
            Whether the same request, built anew, can fare better.
        """
        if refusal.overflow or refusal.filtered:
            return False
        quirk = _quirk_of(refusal, used)
        if quirk is not None:
            self.quirks.add(quirk)
        return quirk is not None

    def request(self, prompt: Prompt, sampling: SamplingConfig, rung: str, quirks: frozenset[str]) -> dict[str, Any]:
        """The JSON body of a call at a rung; `rung` is empty for a plain text."""
        form: Literal["json", "lines"] = "lines" if rung == "lines" else "json"
        messages: list[Message] = [
            {"role": message["role"], "content": clean(message["content"])} for message in prompt.in_form(form)
        ]
        body: dict[str, Any] = {"model": self.model, "messages": messages}
        values = {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "seed": None if sampling.seed is None else sampling.seed & _SEED_BITS,
        }
        body.update({n: v for n, v in values.items() if v is not None and f"no_{n}" not in quirks})
        if sampling.max_tokens is not None:
            cap = "max_completion_tokens" if "max_completion_tokens" in quirks else "max_tokens"
            body[cap] = sampling.max_tokens
        if rung == "json_schema" and prompt.schema is not None:
            body["response_format"] = {
                "type": "json_schema",
                "json_schema": {
                    "name": re.sub(r"[^a-zA-Z0-9_-]", "_", prompt.name)[:64],
                    "schema": dict(prompt.schema),
                    "strict": _fits_strict(prompt.schema),
                },
            }
        elif rung == "json_object":
            body["response_format"] = {"type": "json_object"}
            if not any("json" in message["content"].lower() for message in messages):
                messages[-1]["content"] += "\n\n" + _JSON_LINE
        body["messages"] = arrange(messages, quirks)
        return body

    def summary(self) -> dict[str, Any]:
        """All of it as plain data, for people and records."""
        return {
            "url": self.url,
            "model": self.model,
            "quirks": sorted(self.quirks),
            "rungs": {
                name: {
                    "answers": rung.answers,
                    "reports": rung.reports,
                    "usable": rung.usable,
                    "refused": rung.refused,
                    "ignored": rung.ignored,
                }
                for name, rung in self.rungs.items()
            },
        }


_known: dict[tuple[str, str], Dialect] = {}


def dialect_of(url: str, model: str) -> Dialect:
    """The one dialect of a model at an endpoint in this process."""
    return _known.setdefault((url, model), Dialect(url, model))


def dialects() -> tuple[Dialect, ...]:
    """Every dialect that this process has met."""
    return tuple(_known.values())


def _quirk_of(refusal: Refusal, used: frozenset[str]) -> str | None:
    """The quirk that a refusal points at, unless the refused request kept it already."""
    if refusal.status not in (400, 422, 500):
        return None
    found: list[str] = []
    if refusal.rejects("max_tokens"):
        found.append("max_completion_tokens")
    found += [f"no_{name}" for name in reversed(_OPTIONAL) if refusal.rejects(name)]
    if _NO_SYSTEM.search(refusal.text):
        found.append("fold_system")
    if _SYSTEM_FIRST.search(refusal.text):
        found += ["alternate", "fold_system"]
    if _ALTERNATE.search(refusal.text):
        found += ["alternate", "fold_system"]
    if _EMPTY_CONTENT.search(refusal.text):
        found.append("fill_empty")
    return next((quirk for quirk in found if quirk not in used), None)


def arrange(messages: Iterable[Message], quirks: frozenset[str]) -> list[Message]:
    """The messages in an order of roles that the endpoint takes; no text is lost.

    With `alternate` later system messages become the user's, neighbours of one role become one message, and the user
    begins. `fold_system` does the same after turning every system message into a user's.
    """
    arranged: list[Message] = []
    for message in messages:
        role, content = message["role"], message["content"]
        if not content.strip() and "fill_empty" in quirks:
            content = _SILENCE
        arranged.append({"role": role, "content": content})
    if not quirks & {"alternate", "fold_system"}:
        return arranged
    merged: list[Message] = []
    for message in arranged:
        role = message["role"]
        head = all(earlier["role"] == "system" for earlier in merged)
        if role == "system" and ("fold_system" in quirks or not head):
            role = "user"
        if role == "assistant" and head:
            merged.append({"role": "user", "content": _SILENCE})
        if merged and merged[-1]["role"] == role:
            merged[-1]["content"] += "\n\n" + message["content"]
        else:
            merged.append({"role": role, "content": message["content"]})
    if all(message["role"] == "system" for message in merged):
        merged.append({"role": "user", "content": _SILENCE})
    return merged


def _fits_strict(schema: Mapping[str, Any]) -> bool:
    """Whether every object of a schema is closed and requires all its fields, as the strict mode demands."""
    fields = schema.get("properties")
    if isinstance(fields, Mapping):
        if schema.get("additionalProperties") is not False or set(schema.get("required", ())) != set(fields):
            return False
        if not all(isinstance(part, Mapping) and _fits_strict(part) for part in fields.values()):
            return False
    items = schema.get("items")
    return not isinstance(items, Mapping) or _fits_strict(items)

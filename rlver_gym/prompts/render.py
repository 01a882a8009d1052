"""From a name and variables to messages, with a hash of the templates they are made of.

Layout of the user's prompts, for prefix caching: what never changes in an episode first (instructions, person), then
the append-only history, then the reply, fenced, and behind it what changes on each turn (mood, task). Both steps of a
turn share everything up to the end of the fenced reply (in the form of labelled lines, up to the end of the history:
two examples as turns of another chat stand before the reply there).

Persona, history and reply are data: they are values of variables, never template source, and every value that is put
into a template passes `text.neutralise`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import DictLoader, StrictUndefined, TemplateError, meta
from jinja2.sandbox import ImmutableSandboxedEnvironment

from rlver_gym.errors import TemplateError as PromptTemplateError
from rlver_gym.errors import UnknownNameError
from rlver_gym.prompts.schemas import SCHEMAS
from rlver_gym.text import clean, neutralise
from rlver_gym.types import Language, Message, Prompt

_SHARED = frozenset(
    {"persona", "history", "reply", "mood", "tier", "turn", "max_turns", "moods", "seed", "difficulty", "fence"}
) | {"complaint"}
_VARIABLES: dict[str, frozenset[str]] = {
    "appraise": _SHARED,
    "answer": _SHARED | {"appraisal"},
    "fused": _SHARED,
    "policy_direct": frozenset({"dialogue", "language"}),
    "policy_think": frozenset({"dialogue", "language"}),
    "write_character": frozenset({"temperament", "samples", "taken", "language", "complaint"}),
    "write_background": frozenset({"draft", "topic", "wish", "language", "complaint"}),
    "write_reactions": frozenset({"draft", "language", "complaint"}),
    "write_lines": frozenset({"draft", "language", "complaint"}),
}
_WRITING = tuple(name for name in _VARIABLES if name.startswith("write_"))
"""Prompts that make people; they play no part in an episode."""
_EXAMPLE_MOOD = 50
PROMPTS = tuple(_VARIABLES)
"""Names of all prompts."""
_LANGUAGES: tuple[Language, ...] = ("en", "zh")


def render(name: str, **variables: Any) -> Prompt:
    """The prompt `name` with its variables; messages are made only when somebody reads them.

    Raises:
        UnknownNameError: no prompt has that name, or there is none in that language.
        TemplateError: a variable is missing or not one of the prompt's.
    """
    if name not in _VARIABLES:
        raise UnknownNameError("prompt", name, _VARIABLES)
    if variables.keys() != _VARIABLES[name]:
        missing, extra = _VARIABLES[name] - variables.keys(), variables.keys() - _VARIABLES[name]
        raise PromptTemplateError(
            f"prompt {name!r}: missing variables {sorted(missing)}, unknown variables {sorted(extra)}"
        )
    return Prompt(name, variables, template_hash(name, _language(variables)), _messages, SCHEMAS.get(name))


@cache
def template_hash(name: str, language: Language) -> str:
    """Hash of the templates behind a prompt in one language, included ones too, 16 hex digits."""
    alone = name.startswith("policy_") or name in _WRITING
    parts = _included(language, [name] if alone else ["system", "reply", "examples", name])
    sources = _sources(language)
    return hashlib.sha256("\x00".join(f"{part}\x00{sources[part]}" for part in parts).encode()).hexdigest()[:16]


def _included(language: Language, parts: list[str]) -> list[str]:
    """The templates `parts` and all that they include, each once, in order."""
    environment = _environment(language)
    for part in (parts := list(parts)):
        includes = meta.find_referenced_templates(environment.parse(_sources(language)[part]))
        parts += [include for include in includes if include is not None and include not in parts]
    return parts


@cache
def prompt_version() -> str:
    """Hash over all prompts of an episode in all languages, 16 hex digits: printed with every score."""
    played = [name for name in PROMPTS if name not in _WRITING]
    hashes = [template_hash(name, language) for language in _LANGUAGES for name in played]
    return hashlib.sha256(" ".join(hashes).encode()).hexdigest()[:16]


def _language(variables: Mapping[str, Any]) -> Language:
    language: Language = variables["language"] if "language" in variables else variables["persona"].language
    if language not in _LANGUAGES:
        raise UnknownNameError("language", str(language), _LANGUAGES)
    return language


@cache
def _sources(language: Language) -> dict[str, str]:
    folder = files("rlver_gym.prompts") / "templates" / language
    return {
        entry.name.removesuffix(".j2"): entry.read_text(encoding="utf-8").replace("\r\n", "\n")
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith(".j2")
    }


@cache
def _environment(language: Language) -> ImmutableSandboxedEnvironment:
    return ImmutableSandboxedEnvironment(
        loader=DictLoader(_sources(language)),
        undefined=StrictUndefined,
        finalize=lambda value: neutralise(clean(value)) if isinstance(value, str) else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _template(language: Language, name: str, **variables: Any) -> str:
    try:
        return _environment(language).get_template(name).render(**variables).strip()
    except TemplateError as error:
        raise PromptTemplateError(f"template {language}/{name}.j2: {error}") from error


def _messages(name: str, variables: Mapping[str, Any], form: str) -> tuple[Message, ...]:
    language = _language(variables)
    if name.startswith("policy_"):
        system: Message = {"role": "system", "content": _template(language, name)}
        return (system, *_neutral(variables["dialogue"]))
    if name in _WRITING:
        told = {key: value for key, value in variables.items() if key != "language"}
        return ({"role": "user", "content": _template(language, name, **told)},)
    task = _template(language, name, form=form, **variables)
    said = _fenced(language, variables["reply"], variables["fence"])
    examples = _examples(language, name, variables) if form == "lines" and name != "answer" else ()
    return (*_beginning(language, variables), *examples, {"role": "user", "content": f"{said}\n\n{task}"})


def _beginning(language: Language, variables: Mapping[str, Any]) -> tuple[Message, ...]:
    """System message and history as the user's side sees them: own words are `assistant`, the policy's are fenced."""
    system = _template(
        language,
        "system",
        persona=variables["persona"],
        difficulty=variables["difficulty"],
        fence=variables["fence"],
        max_turns=variables["max_turns"],
    )
    begin, instructions = system.rsplit("\n---\n", 1)[::-1]
    messages: list[Message] = [{"role": "system", "content": instructions}, {"role": "user", "content": begin}]
    for message in _neutral(variables["history"]):
        if message["role"] == "user":
            messages.append({"role": "assistant", "content": message["content"]})
        else:
            messages.append({"role": "user", "content": _fenced(language, message["content"], variables["fence"])})
    return tuple(messages)


def _examples(language: Language, name: str, variables: Mapping[str, Any]) -> tuple[Message, ...]:
    """Two turns of another chat in which the answer has the form that is asked for: small models copy what they see.

    The last one changes nothing, so that a model that copies it is no reward; the simulator flags it besides.
    """
    task = _template(language, name, form="lines", **{**variables, "mood": _EXAMPLE_MOOD, "complaint": ""})
    parts = _template(language, "examples", step=name).split("\n---\n")
    messages: list[Message] = []
    for reply, reading in zip(parts[::2], parts[1::2], strict=True):
        said = _fenced(language, reply, variables["fence"])
        messages.append({"role": "user", "content": f"{said}\n\n{task}"})
        messages.append({"role": "assistant", "content": reading})
    return tuple(messages)


def stands_in_examples(text: str, language: Language) -> bool:
    """Whether a text is copied from the examples that go with labelled lines."""
    return bool(text) and text in _sources(language)["examples"]


def _fenced(language: Language, reply: str, fence: str) -> str:
    return _template(language, "reply", reply=unfenced(reply, fence), fence=fence)


def unfenced(text: str, fence: str) -> str:
    """The text, cleaned, in which the fence word stands nowhere, also not after a first removal brought it together."""
    text = clean(text)
    while fence and fence in text:
        text = text.replace(f"[[{fence}]]", "").replace(f"[[/{fence}]]", "").replace(fence, "")
    return text


def _neutral(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    return tuple({"role": message["role"], "content": neutralise(clean(message["content"]))} for message in messages)

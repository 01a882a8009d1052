"""JSON schemas of the structured answers, in the strict form that endpoints ask for."""

from __future__ import annotations

from typing import Any

_READING = {
    "content": {"type": "string"},
    "fit": {"type": "string"},
    "thought": {"type": "string"},
    "feeling": {"type": "string"},
    "change": {"type": "integer"},
}
_MESSAGE = {"message": {"type": "string"}}


def _schema(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}


def _texts(*names: str) -> dict[str, Any]:
    return dict.fromkeys(names, _TEXT)


SCHEMAS: dict[str, dict[str, Any]] = {
    "appraise": _schema(_READING),
    "answer": _schema(_MESSAGE),
    "fused": _schema(_READING | _MESSAGE),
    "write_character": _schema(
        _texts("name", "occupation", "habits")
        | {
            "age": {"type": "integer"},
            "gender": {"type": "string", "enum": ["female", "male"]},
            "interests": _TEXTS,
            "traits": _TEXTS,
            "voice": _schema({"style": _TEXT, "phrases": _TEXTS}),
        }
    ),
    "write_background": _schema(
        _texts("cause", "conflict", "conflict_reason", "current", "goal", "need_text")
        | {
            "timeline": {"type": "array", "items": _schema(_texts("when", "what", "thought"))},
            "tried": _TEXTS,
        }
    ),
    "write_reactions": _schema(
        {
            "raises": _TEXTS,
            "lowers": _TEXTS,
            "mood_signs": _schema(_texts("high", "middle", "low")),
            "openings": _TEXTS,
        }
    ),
    "write_lines": _schema({"lines": {"type": "array", "items": _schema(_texts("tier", "openness", "text"))}}),
}
"""Schema by prompt name; a prompt that is not here asks for plain text."""

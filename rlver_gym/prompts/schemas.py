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


SCHEMAS: dict[str, dict[str, Any]] = {
    "appraise": _schema(_READING),
    "answer": _schema(_MESSAGE),
    "fused": _schema(_READING | _MESSAGE),
}
"""Schema by prompt name; a prompt that is not here asks for plain text."""

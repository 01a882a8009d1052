"""Reading what a model wrote as the user: tolerant of form, strict about the verdict.

Read: JSON bare, in a fence, in a list, one level or more down or after a preamble, and lines with labels in English or
Chinese, with either colon, bold marks, brackets and the remnants of them. Not read: a number from anywhere but the
named field, a field given twice with different values, a verdict that is no number, anything out of a broken object (it
may quote the other side). Text and number that disagree are fine: the number counts.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from rlver_gym.text import split_thought
from rlver_gym.types import Language
from rlver_gym.users.complaints import complaint


class Unreadable(Exception):
    """Why an answer cannot be used.

    Args:
        problem: its name in `rlver_gym.users.complaints`.
        field: the field of the answer that it is about, if it is about one.
    """

    def __init__(self, problem: str, field: str = "") -> None:
        super().__init__(complaint(problem, "en", field))
        self.problem, self.field = problem, field

    def words(self, language: Language) -> str:
        """The reason in words fit for asking again in that language."""
        return complaint(self.problem, language, self.field)


_LABELS: dict[str, tuple[str, ...]] = {
    "content": ("content", "内容"),
    "fit": ("fit", "贴合"),
    "thought": ("thought", "inner thought", "想法", "内心想法", "心理活动"),
    "feeling": ("feeling", "感受", "心情感受"),
    "change": ("change", "mood change", "变化", "心情变化", "情绪变化", "变动"),
    "message": (
        *("message", "reply", "response", "final reply", "final response", "final message"),
        *("回复", "最终回复", "最终消息", "消息"),
    ),
    "plan": ("thinking", "analysis", "origin", "draft", "思考", "分析", "分析内容", "草稿", "初稿"),
}
_FIELD_OF = {label: name for name, labels in _LABELS.items() for label in labels}
_LABEL_LINE = re.compile(
    r"^[ \t>#*_\-\d.、]*[\[【(（]?[ \t*_\"]*(?P<label>"
    + "|".join(sorted(map(re.escape, _FIELD_OF), key=len, reverse=True))
    + r")[ \t*_\"]*(?:[\]】)）][ \t*_]*[:：]?|[:：])[ \t*_]*(?P<rest>.*)$",
    re.IGNORECASE | re.MULTILINE,
)
_OBJECT = re.compile(r"\{\s*[\"'“}]")
_BLOCK = re.compile(r"```[\w-]*[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL)
_MINUS = str.maketrans(dict.fromkeys("−–—﹣－‐‑‒", "-"))
_DIGITS = re.compile(
    r"([+-]?)\s*(\d{1,4})(?:\.(\d+))?\s*(?:points?|pts?|分|点)?\s*(?:[(（][^()（）]*[)）])?[.。]?", re.IGNORECASE
)
_HAN_DIGITS = {han: value for value, han in enumerate("零一二三四五六七八九十")} | {"两": 2}
_HAN = re.compile(r"(正|加|负|减)?([零一二两三四五六七八九十])\s*(?:分|点)?[.。]?")
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "「": "」", "『": "』"}
_RIGHT_QUOTES = frozenset(_QUOTES.values())


def parse_answer(text: str, required: str, known: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
    """The fields of an answer, as text or JSON values, with at least `required` among them.

    Args:
        text: the answer.
        required: the field that must be there.
        known: the fields that the text was made of, if the backend gave them along; then nothing is read.

    Raises:
        Unreadable: the field is not there, or a field is given twice with different values.
    """
    fields = known if known is not None else _whole(text.strip(), required)
    if fields is None:
        body = split_thought(text).said.strip()
        if not body:
            raise Unreadable("empty")
        label, brace = _LABEL_LINE.search(body), _OBJECT.search(body)
        if brace and not (label and label.start() < brace.start()):
            fields = _from_json(body, required)
        else:
            fields = _from_lines(body)
    if fields.get(required) in (None, ""):
        raise Unreadable("missing", required)
    return fields


def parse_change(value: Any) -> int:
    """The mood change that a value states, not yet clamped.

    Raises:
        Unreadable: it is not one whole number with an optional sign, unit or remark in brackets.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return _round(value)
    if isinstance(value, str):
        text = unicodedata.normalize("NFKC", value.translate(_MINUS)).translate(_MINUS).strip(" \t\r\n*_`[]\"'")
        if match := _DIGITS.fullmatch(text):
            sign, whole, fraction = match.groups()
            number = _round(float(f"{whole}.{fraction or 0}"))
            return -number if sign == "-" else number
        if match := _HAN.fullmatch(text):
            number = _HAN_DIGITS[match.group(2)]
            return -number if match.group(1) in ("负", "减") else number
    raise Unreadable("number", "change")


def parse_message(text: str, structured: bool, known: Mapping[str, Any] | None = None) -> str:
    """The words that the user sends.

    Args:
        text: the answer.
        structured: whether a named field was asked for; if not, the whole text is the message.
        known: as for `parse_answer`.

    Raises:
        Unreadable: there are no words, or no such field where one was asked for.
    """
    body = text
    if known is None and not structured:
        body = split_thought(text).said.strip()
        if block := _BLOCK.fullmatch(body):
            body = block.group(1).strip()
        structured = bool(_LABEL_LINE.search(body) or _OBJECT.search(body))
    if structured or known is not None:
        message = parse_answer(body, "message", known)["message"]
        if not isinstance(message, str):
            raise Unreadable("text", "message")
        body = message
    body = unquote(body)
    if not body:
        raise Unreadable("empty")
    return body


def unquote(text: str) -> str:
    """The text without white space around it and without a pair of quotes, or half a pair, around the whole of it."""
    text = text.strip()
    if not text or (text[0] not in _QUOTES and text[-1] not in _RIGHT_QUOTES):
        return text
    for left, right in _QUOTES.items():
        starts, ends = text.startswith(left), text.endswith(right)
        inner = text[1:-1]
        if len(text) > 1 and starts and ends and left not in inner and right not in inner:
            return inner.strip()
        if left == "'" or text.count(left) + (text.count(right) if left != right else 0) != 1:
            continue
        if starts:
            return text[1:].strip()
        if ends and right != "’":
            return text[:-1].strip()
    return text


def _round(value: float) -> int:
    return int(value + 0.5) if value >= 0 else -int(-value + 0.5)


def _whole(text: str, required: str) -> dict[str, Any] | None:
    """The fields of a text that is nothing but JSON with the required key at its top."""
    try:
        value = _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and required in value else None


def _from_json(body: str, required: str) -> dict[str, Any]:
    """The fields of the one JSON object that has the required key; a label line outside of it must not gainsay it."""
    outside: list[str] = []
    found: list[dict[str, Any]] = []
    text, end = _mend(body), 0
    while match := _OBJECT.search(text, end):
        outside.append(text[end : match.start()])
        try:
            value, end = _DECODER.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            raise Unreadable("broken") from None
        found += _having(value, required)
    outside.append(text[end:])
    said = _from_lines("\n".join(outside)).get(required)
    values = {_comparable(fields[required]) for fields in found} | ({_comparable(said)} if said else set())
    if len(values) > 1:
        raise Unreadable("doubled", required)
    return found[-1] if found else {}


def _having(value: Any, required: str) -> Iterator[dict[str, Any]]:
    """The outermost objects within a JSON value that have the required key."""
    if isinstance(value, dict) and required in value:
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _having(part, required)


def _comparable(value: Any) -> str:
    try:
        return str(parse_change(value))
    except Unreadable:
        return json.dumps(value, sort_keys=True)


def _mend(text: str) -> str:
    """JSON without the slips that models make most: odd signs before a number, a comma before a closing bracket."""
    text = re.sub(r"(\"\s*:\s*)[+＋](?=\d)", r"\1", text)
    text = re.sub(r"(\"\s*:\s*)[−–－](?=\d)", r"\1-", text)
    return re.sub(r",(\s*[}\]])", r"\1", text)


def _no_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for label, value in pairs:
        name = _FIELD_OF.get(label.strip().lower(), label)
        name = label if name == "plan" else name
        if name in fields and fields[name] != value:
            raise Unreadable("doubled", name)
        fields[name] = value
    return fields


def _no_constant(name: str) -> Any:
    raise Unreadable("number", "change")


_DECODER = json.JSONDecoder(object_pairs_hook=_no_doubles, parse_constant=_no_constant, strict=False)


def _from_lines(body: str) -> dict[str, Any]:
    matches = list(_LABEL_LINE.finditer(body))
    fields: dict[str, Any] = {}
    ends = [match.start() for match in matches[1:]] + [len(body)]
    for match, end in zip(matches, ends, strict=False):
        name = _FIELD_OF[match["label"].lower()]
        value = body[match.start("rest") : end].strip().strip("`").strip()
        if name == "plan":
            continue
        if name == "change":
            # A blank line ends a number; "- 5" on a line of its own may be a bullet or a sign, and stays unreadable.
            value = re.split(r"\n[ \t]*\n", value)[0]
            value = value if match["rest"].strip() else re.sub(r"^[-−–]\s+", "? ", value)
        if fields.get(name, value) != value:
            raise Unreadable("doubled", name)
        fields[name] = value
    return fields

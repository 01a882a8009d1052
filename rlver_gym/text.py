"""What is safe at a border: thoughts, chat-template tokens, surrogates, control characters.

Text crosses two borders: from the policy to the user's prompt, and from the user's backend to the policy. It is data
on both, whoever wrote it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_THINK_NAMES = "think|thinking|thought"
_OPEN = re.compile(rf"<\s*(?:{_THINK_NAMES})(?:\s[^<>]*)?>", re.IGNORECASE)
_CLOSE = re.compile(rf"<\s*/\s*(?:{_THINK_NAMES})\s*>", re.IGNORECASE)

# Chat-template families: ChatML, Llama 3, Phi and others (<|...|>), DeepSeek (full-width bars), newer Gemma (one bar),
# EXAONE ([|...|]), Llama 2 and Mistral ([INST], <<SYS>>, <s>), older Gemma (<start_of_turn>). A look-alike bracket ends
# a token: it is what an inner token became, and without it a second pass would find an outer one.
_TEMPLATE_TOKEN = re.compile(
    r"<[|｜][^<>‹›\n]{1,64}?[|｜]>|<\|\w{1,32}>|<\w{1,32}\|>|\[\|\w{1,32}\|\]"
    r"|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\]|<</?SYS>>|</?s>"
    r"|</?(?:start|end)_of_turn>|<(?:bos|eos|pad|unk)>",
    re.IGNORECASE,
)
_VISIBLE = str.maketrans({"<": "‹", ">": "›", "[": "⟦", "]": "⟧"})
_SURROGATE = re.compile("[\ud800-\udfff]")
_LINE_END = re.compile("\r\n|[\r\u2028\u2029]")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True)
class Thought:
    """A reply split into what was thought and what is said.

    Attributes:
        thought: text inside the think block, or empty.
        said: what the other side hears; never holds a thought.
        well_formed: exactly one closed block at the start, followed by something said.
    """

    thought: str
    said: str
    well_formed: bool


def split_thought(text: str) -> Thought:
    """Split off the thoughts of a reply, whatever shape they have.

    Rules: what follows the last closing tag is said; with an opening tag alone nothing after it is said; with a closing
    tag alone nothing before it is said. A text without any tag is said whole.
    """
    if "<" not in text:
        return Thought("", text, False)
    opens, closes = list(_OPEN.finditer(text)), list(_CLOSE.finditer(text))
    if not opens and not closes:
        return Thought("", text, False)
    end = closes[-1].end() if closes else 0
    late_open = next((match for match in opens if match.start() >= end), None)
    said = text[end : late_open.start()] if late_open else text[end:]
    thought = text[:end] + (text[late_open.start() :] if late_open else "")
    well_formed = (
        len(opens) == 1
        and len(closes) == 1
        and not text[: opens[0].start()].strip()
        and opens[0].end() <= closes[0].start()
        and bool(said.strip())
    )
    return Thought(_CLOSE.sub("", _OPEN.sub("", thought)).strip(), said.strip(), well_formed)


def clean(text: str) -> str:
    """Text that every file, terminal and wire can carry: no lone surrogate, no control or direction-override character.

    A surrogate becomes U+FFFD; control characters, C1 included, are dropped but for tab and newline; line ends and the
    line and paragraph separators become `\\n`. Zero-width joiners stay: emoji are made of them.
    """
    if text.isprintable():
        return text
    return _CONTROL.sub("", _SURROGATE.sub("\ufffd", _LINE_END.sub("\n", text)))


def neutralise(text: str) -> str:
    """Text in which no chat-template token is left to act as one: its brackets become look-alikes, still readable."""
    if "<" not in text and "[" not in text:
        return text
    return _TEMPLATE_TOKEN.sub(lambda match: match.group().translate(_VISIBLE), text)


def has_template_token(text: str) -> bool:
    """Whether `neutralise` would change the text."""
    return ("<" in text or "[" in text) and _TEMPLATE_TOKEN.search(text) is not None


_CJK = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")


def has_chinese(text: str) -> bool:
    """Whether the text holds a Chinese character."""
    return not text.isascii() and _CJK.search(text) is not None


def shorten(text: str, length: int) -> str:
    """The text on one line, cut to `length` characters with an ellipsis; for logs and error messages."""
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1] + "…"


def encodable(text: str, encoding: str) -> str:
    """The text with what a terminal's encoding cannot carry replaced, so that printing never fails."""
    return text.encode(encoding, "replace").decode(encoding)

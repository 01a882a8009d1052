"""The outer form of a reply: script, markup, noise, and texts that imitate a verdict."""

from __future__ import annotations

import re

from rlver_gym.backends.embedded.reading import Reading
from rlver_gym.backends.embedded.tables import lexicon
from rlver_gym.text import has_template_token
from rlver_gym.types import Language

_MARKUP = re.compile(r"^\s*(?:[-*•#>]|\d{1,2}[.)、]|[一二三四五六七八九十]、)\s*\S|\*\*|```", re.MULTILINE)
_PICTURE = re.compile("[\u2600-\u27bf\u2b50\U0001f000-\U0001faff]")
_CHINESE = re.compile("[\u3400-\u9fff]+")
_BEYOND_LATIN = re.compile("[^\x00-\u024f]+")

_LABELS = (
    "change|thought|thinking|feeling|mood|emotion|score|fit|content|appraisal|reward|analysis|system|assistant|user|"
    "变化|情绪|心情|想法|内心|感受|分数|评分|得分|系统|用户|助手|契合"
)
_VERDICTS = (
    re.compile(rf"(?:^|[\n{{,\[(⟦*#\"'])\s*[\"']?(?:{_LABELS})[\"'\])⟧*]*\s*[:：=]", re.IGNORECASE),
    re.compile(
        r"\{[^{}]{0,400}:[^{}]{0,400}\}|<[|｜/a-z!]|‹[|｜/a-z]|</|⟦/?[A-Z]|\[/?(?:INST|system|tool)", re.IGNORECASE
    ),
    re.compile(r"\b(?:mood|emotion|feeling|score|points?|reward|tier)\b[^.\n]{0,24}?[+-]?\d", re.IGNORECASE),
    re.compile(r"[+-]\d{1,3}\s*(?:points?\b|mood|emotion|分(?!钟))", re.IGNORECASE),
    re.compile(r"(?:情绪|心情|分数|好感|满意度)[^。\n]{0,6}?[+\-＋]?[0-9０-９]+|[+＋]\s*[0-9０-９]+\s*分(?!钟)"),
)
_VERDICT_SIGN = re.compile(r"[:：={<‹⟦\[\d]")
"""Stands in every text that one of the `_VERDICTS` matches."""
_ORDER = re.compile(
    r"\bset (?:your |the |my )?(?:mood|emotion|change|feelings?|score)\b|把(?:你的)?(?:情绪|心情)(?:设|调|改)",
    re.IGNORECASE,
)
PICTURES = 4
BANGS = 4
STRETCHED = 5
"""The same letter so many times in a row."""
SAMPLED = 120
"""Units at the beginning of a reply that show whether they are the same over and over."""


def size(units: int, language: Language) -> int:
    """Units as Chinese characters, or as what an English text of the same meaning has."""
    return units if language == "zh" else units * 3 // 2


def pictures(text: str) -> int:
    """Pictures in the text."""
    return 0 if text.isascii() else len(_PICTURE.findall(text))


def wrong_language(text: str, language: Language) -> int:
    """1 if a good part of the letters belongs to a script that the person does not write."""
    if language == "zh":
        foreign = sum(map(str.isalpha, _CHINESE.sub("", text)))
        letters = sum(map(str.isalpha, text)) if foreign > 1 else 0
        return int(letters >= 4 and 100 * foreign > 30 * letters)
    foreign = 0 if text.isascii() else sum(map(str.isalpha, "".join(_BEYOND_LATIN.findall(text))))
    return int(foreign > 0 and 100 * foreign > 8 * sum(map(str.isalpha, text)))


def markup(text: str) -> int:
    """Signs of lists, headings and bold type, up to 10."""
    if "\n" not in text and "*" not in text:
        return 0
    return min(len(_MARKUP.findall(text)), 10)


def bangs(text: str) -> int:
    """Exclamation marks."""
    return text.count("!") + text.count("！")


def flood(text: str) -> int:
    """1 for more pictures, exclamation marks or stretched letters than a person sends."""
    allowed = max(1, len(text) // 100)
    doubled = {one for one, two in zip(text[::4], text[1::4], strict=False) if one == two}  # in a row of 5 there is one
    stretched = sum([STRETCHED * one in text for one in doubled if one.isalnum() and not one.isdecimal()])
    return int(pictures(text) >= PICTURES * allowed or bangs(text) >= BANGS * allowed or stretched > 1)


def forged(text: str) -> bool:
    """Whether the text imitates a verdict, a label, a record or a control token, or orders a mood."""
    if _VERDICT_SIGN.search(text) and (has_template_token(text) or any(said.search(text) for said in _VERDICTS)):
        return True
    return ("把" in text or "set " in text.casefold()) and _ORDER.search(text) is not None


def gibberish(reply: Reading) -> bool:
    """Whether the units make no sentence: none of a language's little words, or the same unit over and over."""
    chinese = reply.language == "zh"
    cells = reply.text if chinese else [cell for sentence in reply.sentences for cell in sentence.cells]
    if not cells:
        return True
    head = cells[:SAMPLED]
    if len(head) >= 8 and 100 * len(set(head)) < (30 if chinese or len(head) > 60 else 45) * len(head):
        return True
    if len(cells) < (12 if chinese else 6):
        return not chinese and len(cells) > 1 and not any(_wordlike(cell.strip()) for cell in cells)
    known = sum(map(lexicon(reply.language).little.__contains__, cells))
    return 100 * known < (12 if chinese else 18) * len(cells)


def _wordlike(unit: str) -> bool:
    return any(vowel in unit for vowel in "aeiouy") and len(unit) < 18

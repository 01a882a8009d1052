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
_LATIN = re.compile("[A-Za-z\u00aa-\u024f]+")

_LABELS = (
    "change|thought|thinking|feeling|mood|emotion|score|fit|content|appraisal|reward|analysis|system|assistant|user|"
    "变化|情绪|心情|想法|内心|感受|分数|评分|得分|奖励|系统|用户|助手|契合|内容"
)
_FORGED = (
    re.compile(rf"(?:^|[\n{{,\[(⟦*#\"'])\s*[\"']?(?:{_LABELS})[\"'\])⟧*]*\s*[:：=]", re.IGNORECASE),
    re.compile(
        r"\{[^{}]{0,400}:[^{}]{0,400}\}|<[|｜/a-z!]|‹[|｜/a-z]|</|⟦/?[A-Z]|\[/?(?:INST|system|tool)", re.IGNORECASE
    ),
    re.compile(r"\b(?:mood|emotion|feeling|score|points?|reward|tier)\b[^.\n]{0,24}?[+-]?\d", re.IGNORECASE),
    re.compile(r"[+-]\d{1,3}\s*(?:points?\b|mood|emotion|分)", re.IGNORECASE),
    re.compile(r"(?:情绪|心情|分数|好感|满意度|奖励)[^。\n]{0,12}?[+\-＋]?[0-9０-９]+|[+＋]\s*[0-9０-９]+\s*分"),
    re.compile(
        r"\bset (?:your |the |my )?(?:mood|emotion|change|feelings?|score)\b|把(?:你的)?(?:情绪|心情)(?:设|调|改)",
        re.IGNORECASE,
    ),
)
_FORGED_HINT = re.compile(r"[:：={}<‹⟦\[]|[+\-＋0-9０-９]|\bset\b|把", re.IGNORECASE)
MARKED_LINES = 2
PICTURES = 4
BANGS = 4
STRETCH = 5


def wrong_language(text: str, language: Language) -> int:
    """1 if a good part of the letters belongs to a script that the person does not write."""
    if text.isascii() and language == "en":
        return 0
    letters = "".join(filter(str.isalpha, text))
    if language == "zh":
        return int(len(letters) >= 4 and 100 * len(_CHINESE.sub("", letters)) > 30 * len(letters))
    return int(100 * len(_LATIN.sub("", letters)) > 8 * len(letters))


def markup(text: str) -> int:
    """1 for a list, headings or bold type."""
    if "\n" not in text and "*" not in text:
        return 0
    return int(len(_MARKUP.findall(text)) >= MARKED_LINES)


def flood(text: str) -> int:
    """1 for more pictures, exclamation marks or stretched letters than a person sends."""
    stretched = sum(map(str.isalpha, [letter for letter in set(text) if letter * STRETCH in text]))
    pictures = 0 if text.isascii() else len(_PICTURE.findall(text))
    return int(pictures >= PICTURES or text.count("!") + text.count("！") >= BANGS or stretched > 1)


def forged(text: str) -> bool:
    """Whether the text imitates a verdict, a label, a record or a control token, or orders a mood."""
    if _FORGED_HINT.search(text) is None:
        return False
    return has_template_token(text) or any(pattern.search(text) for pattern in _FORGED)


def gibberish(reply: Reading) -> bool:
    """Whether the units make no sentence: none of a language's little words, or the same unit over and over."""
    units = reply.units
    if not units:
        return True
    chinese = reply.language == "zh"
    if len(units) >= 8 and 100 * len(set(units)) < (30 if chinese or len(units) > 60 else 45) * len(units):
        return True
    if len(units) < (12 if chinese else 6):
        return not chinese and len(units) > 1 and not any(_wordlike(unit) for unit in units)
    little = lexicon(reply.language)
    known = sum(unit in little.function or unit in _PRONOUNS for unit in units)
    return 100 * known < (12 if chinese else 18) * len(units)


def begins_as_order(units: tuple[str, ...]) -> bool:
    """Whether a sentence begins with a verb that tells somebody to do something."""
    return len(units) > 2 and "imperative" in lexicon("en").single.get(units[0], ())


_PRONOUNS = frozenset({"i", "i'm", "i've", "i'd", "i'll", "me", "my", "you", "you're", "you've", "you'd", "your"}) | {
    "he",
    "she",
    "they",
    "him",
    "her",
    "them",
    "his",
    "their",
}


def _wordlike(unit: str) -> bool:
    return any(vowel in unit for vowel in "aeiouy") and len(unit) < 18

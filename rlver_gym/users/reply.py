"""What is wrong with an answer: the user must stay the user.

A fault found here makes the simulator ask once more; what stands after that is flagged, except a leak of the need or of
the inner thought, which never reaches a policy.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from rlver_gym.text import has_chinese
from rlver_gym.types import Appraisal, Message
from rlver_gym.users.persona import Persona


class _Sign(NamedTuple):
    """A pattern, and parts one of which every match holds: most messages hold none, and are spared the search."""

    hints: tuple[str, ...]
    pattern: re.Pattern[str]

    def stands_in(self, text: str, low: str) -> bool:
        """Whether the pattern is found in a text, which is given in lower case too."""
        return any(map(low.__contains__, self.hints)) and self.pattern.search(text) is not None


_VOCABULARY = _Sign(
    ("npc", "emotion", "mood", "hidden", "persona", "role", "simulat", "情", "隐藏", "扮演", "设定"),
    re.compile(
        r"\bNPCs?\b|(?<![A-Za-z])NPC|\bemotion (?:value|score|point|level)s?\b|\bemotion[- ]?[SABCF]\b"
        r"|\bmood (?:score|value|points?|number)\b|\bmood(?: is)?(?: now)?(?: at)?\s*[:：=]?\s*\d+"
        r"|\b(?:my|your|the) hidden (?:need|theme|intention)s?\b|\b(?:my|the) persona (?:description|card|says|I)\b"
        r"|\b(?:this|our|the|my) role-?play(?:ing)?\b(?! (?:game|group|night|club))|\brole-?playing as\b"
        r"|\b(?:in|of|part of) (?:this|a) simulation\b(?! of)|\bsimulated (?:user|person|character|chat|conversation)\b"
        r"|情绪值|心情值|情感值|心情分数|(?<=[\u4e00-\u9fff])\s*emotion(?![A-Za-z])|(?<![A-Za-z])emotion\s*(?=[\u4e00-\u9fff])"
        r"|隐藏(?:主题|需求|意图)|(?:我|在)扮演的?(?:这个)?(?:角色|人物)|(?:我的|按照|根据)(?:角色|人物)?设定",
        re.IGNORECASE,
    ),
)
_MACHINE = r"(?:(?:language |chat )?(?:model|assistant)|chatbot|bot|system|program)"
_REFUSAL = _Sign(
    (
        " ai",
        "为ai",
        "是ai",
        "个ai",
        "名ai",
        "language model",
        "assist",
        "comply",
        "sorry",
        "人工智能",
        "模型",
        "内容",
        "请求",
        "抱歉",
    ),
    re.compile(
        rf"\b(?:as|I am|I['’]m)(?: just| only)?(?: an)? AI(?:[- ](?:powered |based )?{_MACHINE}\b|\s*[,.;:!]|\s*$"
        r"|(?= (?:I|and|so|but|without)\b))"
        r"|\b(?:as|I am|I['’]m)(?: just| only)? a (?:large )?language model\b"
        r"|\bI['’]?m (?:very |so )?sorry,? (?:but )?I (?:can['’]?t|cannot|am unable to)"
        r" (?:assist|comply|fulfil|help (?:you )?with (?:that|this)|provide|generate|create|engage)"
        r"|\bI (?:can['’]?t|cannot|am unable to) (?:assist|comply) with (?:that|this|your|the) "
        r"|\bI (?:can['’]?t|cannot|am unable to) assist with (?:that|this)\b"
        r"|(?:作为|我是|我只是)(?:一个|一名|个)?(?:AI|人工智能)(?:助手|(?:语言)?模型|程序|系统|聊天|[，,。.！!\s]|我|无法|不能|没有|$)"
        r"|(?:作为|我是|我只是)(?:一个|一名|个)?(?:大型?)?语言模型"
        r"|无法(?:给到|提供)(?:相关|这类|此类)?内容|(?:无法|不能)(?:协助|满足|完成)(?:你|您)的(?:这个)?请求|抱歉，?(?:但)?我(?:无法|不能)(?:协助|提供)",
        re.IGNORECASE,
    ),
)
_HELPER = _Sign(
    ("help", "assist", "support", "listen", "feel free", "hesitate", "有什么", "提供", "解答", "一直在这里"),
    re.compile(
        r"\bhow (?:can|may) I (?:help|assist|support) you\b"
        r"|\bI['’]?m here to (?:help|listen|support)(?: to)?(?: you)?\b"
        r"|\b(?:feel free|don['’]?t hesitate) to (?:reach out|ask me|share with me)\b"
        r"|有什么(?:我)?(?:可以|能)(?:帮|帮助)(?:到)?(?:你|您)|(?:我|很高兴)(?:能)?(?:为你|为您|为大家)(?:提供|解答)|我(?:会)?一直在这里(?:陪|听|支持)",
        re.IGNORECASE,
    ),
)
_OTHER_SCRIPT = re.compile("[\u0400-\u04ff\u0600-\u06ff\u0e00-\u0e7f\u3041-\u309f\u30a1-\u30fa\uac00-\ud7af]{2}")
_LATIN = re.compile("[A-Za-z]")
_HAN = re.compile("[\u4e00-\u9fff]")
_NOT_WORD = re.compile(r"[\W_]+")
_WHO_WORDS = frozenset({"i", "me", "my", "mine", "you", "your", "yours"})
_WHO = re.compile(rf"\b(?:{'|'.join(sorted(_WHO_WORDS))})\b|[我你您]", re.IGNORECASE)
_ASCII = [chr(code) for code in range(128)]
_BARE = {ord(sign): sign.lower() if sign.isalnum() else None for sign in _ASCII}
"""Drops what `_NOT_WORD` matches and lowers the rest; `_SPACED` keeps borders of words. Both for ASCII texts."""
_SPACED = {**_BARE, **{ord(sign): " " for sign in _ASCII if not sign.isalnum() and sign != "_"}}
LEAK = "leak"
"""Name of the one problem that no answer is delivered with."""


def problems(
    message: str, *, persona: Persona, appraisal: Appraisal, reply: str, history: Sequence[Message]
) -> tuple[str, ...]:
    """Names of the problems of an answer, as in `rlver_gym.users.complaints`; empty if it can be delivered as it is."""
    core, heard = normal(message), normal(reply)
    own = {normal(said["content"]) for said in history if said["role"] == "user"}
    found = {
        LEAK: leaks(message, persona.need_text) or leaks(message, appraisal.thought),
        "copies_reply": _copies(core, heard),
        "repeat": core in own,
    }
    return (*(name for name, is_there in found.items() if is_there), *_wording(message, persona.language))


@lru_cache(maxsize=4096)
def _wording(message: str, language: str) -> tuple[str, ...]:
    """Problems that a message has whoever says it."""
    low = message.lower()
    found = {
        "vocabulary": _VOCABULARY.stands_in(message, low),
        "refusal": _REFUSAL.stands_in(message, low),
        "helper": _HELPER.stands_in(message, low),
        "language": not (language == "en" and message.isascii()) and _foreign(message, language),
    }
    return tuple(name for name, is_there in found.items() if is_there)


def leaks(message: str, secret: str) -> bool:
    """Whether a message holds a secret word for word: all of it, or a long run of it, whoever it says "I" or "you" to.

    A secret shorter than half a run is common speech and no leak.
    """
    core, said = _without_people(secret), _without_people(message)
    run = 12 if has_chinese(secret) else 36
    if len(core) <= run:
        return len(core) >= run // 2 and core in said
    half = run // 2
    if not any(core[start : start + half] in said for start in range(0, len(core) - half + 1, half)):
        return False  # a run of the core holds one of these blocks
    return any(core[start : start + run] in said for start in range(len(core) - run + 1))


@lru_cache(maxsize=4096)
def normal(text: str) -> str:
    """The text without case, punctuation and spaces: two sentences that read alike are equal in it."""
    return text.translate(_BARE) if text.isascii() else _NOT_WORD.sub("", text).casefold()


@lru_cache(maxsize=4096)
def _without_people(text: str) -> str:
    if text.isascii():
        return "".join([word for word in text.translate(_SPACED).split() if word not in _WHO_WORDS])
    return normal(_WHO.sub("", text))


def _copies(core: str, heard: str) -> bool:
    if min(len(core), len(heard)) <= 12:
        return False
    return core == heard or (len(core) > 40 and core in heard) or (len(heard) > 40 and heard in core)


def _foreign(message: str, language: str) -> bool:
    if _OTHER_SCRIPT.search(message):
        return True
    if language == "en":
        return has_chinese(message)
    latin, han = len(_LATIN.findall(message)), len(_HAN.findall(message))
    return latin >= 3 and latin > 4 * han

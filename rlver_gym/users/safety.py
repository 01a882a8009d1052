"""Signals of a crisis in what either side writes. Idioms ("dying of laughter") and grief are none.

The detector is made of plain phrases in which a person speaks of ending their own life or harming themselves. It ends a
simulated episode; it is no safeguard for real people.
"""

from __future__ import annotations

import re

_ENGLISH = (
    r"\bkill(?:ing)? (?:myself|yourself)\b(?! (?:laughing|over|with|at|trying|for|just)\b)"
    r"(?! to (?:get|make|meet|finish|please)\b)",
    r"\b(?:end|ending|take|taking) (?:my|your)(?: own)? life\b(?! (?:in|into|to|back|seriously|more|as|for granted)\b)",
    r"\bcommit(?:ting)? suicide\b(?! by| on)|\bsuicide note",
    r"\b(?:feel|feeling|am|been|I['’]m)(?: so| really)? suicidal\b",
    r"\bhang(?:ing)? myself\b(?! out| up)",
    r"\b(?:want|wanna|plan|planning|ready|decided)(?: to)? (?:die tonight|end it all(?! with)|(?:harm|hurt) myself)",
    r"\b(?:want|wanna|plan|planning|ready|decided)(?: to)? cut myself(?! (?:some|a|loose|off|short|out|in)\b)",
    r"\b(?:self-harm(?:ing)?|cutting myself) (?:again|every|to cope)\b",
    r"\b(?:want|wish|wanna)(?: to| I (?:could|would))? die\b(?! (?:of|from|laughing|on that hill|when|every time))",
    r"\bbetter off (?:if I (?:was|were) )?dead\b",
    r"\b(?:don['’]?t|do not) want to (?:live|be alive)(?: any ?more|\s*[.,!;]|\s*$)",
    r"\bno longer want to (?:live|be alive)\b(?! with| in| at)",
    r"\b(?:cut(?:ting)?|slit(?:ting)?) my wrists?\b",
    r"\boverdos(?:e|ing) on (?:my |the |some |these )?(?:\w+ )?(?:pills|tablets|meds|medication)\b",
)
_CHINESE = (
    "(?:想|要|打算|准备|考虑|不如|试过|干脆)(?:过|着|去|就|今晚|今天|明天)*(?:自杀|自尽|轻生|寻短见|割腕|上吊|跳楼|自残)(?!式)",
    "我(?:又|昨晚|今晚|真的)+(?:割腕|自残|自杀)|自杀的(?:念头|想法|计划)|去(?:自杀|跳楼|上吊)(?!式)",
    "(?:结束|了结|了断)(?:掉|了)?(?:我|你)?(?:自己)?的?(?:生命|性命|这条命|一生|此生)|(?:想|要)(?:了结|了断)自己",
    "想结束这?一切|写(?:好|了|完)了?遗书",
    "(?<!得)(?<!得都)(?<!得我)(?<!得我都)不想活(?:了|下去|着)|(?:真的|实在|我)活不下去了",
    "(?<!得)(?<!得我)(?:真?想|不如)(?:去)?死(?:了算了|掉|$|[，。！,.!])",
)
_SIGNAL = re.compile("|".join(_ENGLISH + _CHINESE), re.IGNORECASE | re.MULTILINE)
# A word that every signal holds: most texts hold none, and are spared the long search.
_HINTS = (
    *("kill", "life", "suicid", "hang", "end it all", "tonight", "harm", "hurt", "cut", "slit", "die", "dead", "live"),
    *(
        "alive",
        "overdos",
        "杀",
        "尽",
        "轻生",
        "短见",
        "割腕",
        "上吊",
        "跳楼",
        "自残",
        "命",
        "一生",
        "此生",
        "结束",
        "遗书",
    ),
    *("遗书", "了结", "了断", "活", "死"),
)


def crisis_signal(text: str) -> bool:
    """Whether the text holds a crisis signal."""
    low = text.lower()
    return any(hint in low for hint in _HINTS) and _SIGNAL.search(text) is not None

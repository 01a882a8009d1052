"""A person as a page: headings and paragraphs in the person's language."""

from __future__ import annotations

from collections import defaultdict

from rlver_gym.types import Language
from rlver_gym.users.persona import Persona

_HEADINGS: dict[Language, dict[str, str]] = {
    "en": {
        "who": "Who", "voice": "How they talk", "story": "What happened", "conflict": "What stands against what",
        "tried": "What was tried", "now": "Where it stands", "profile": "Profile", "wants": "What they say they want",
        "need": "What they hide", "raises": "What would help", "lowers": "What would miss",
        "signs": "How the mood shows", "openings": "How they may begin", "lines": "What they may say",
        "from": "Where this comes from",
        "S": "content", "A": "at ease", "B": "undecided", "C": "low", "F": "leaving",
        "open": "openly", "guarded": "guarded", "high": "high", "middle": "middle", "low": "low",
    },
    "zh": {
        "who": "这个人", "voice": "怎么说话", "story": "发生了什么", "conflict": "拧在哪里", "tried": "试过什么",
        "now": "眼下", "profile": "简介", "wants": "嘴上说要聊什么", "need": "没说出口的", "raises": "什么会让人好受",
        "lowers": "什么会说偏", "signs": "心情怎么露出来", "openings": "可能怎么开口", "lines": "可能说的话",
        "from": "出处", "S": "心满意足", "A": "松快", "B": "拿不准", "C": "低落", "F": "要走了",
        "open": "敞开", "guarded": "收着", "high": "好的时候", "middle": "一般的时候", "low": "差的时候",
    },
}  # fmt: skip


def page(person: Persona) -> list[tuple[str, str]]:
    """Headings and what stands under them; the first is the person's name, and nothing empty is among them."""
    words, story = _HEADINGS[person.language], person.background
    stop, pause = (", ", "; ") if person.language == "en" else ("，", "；")

    def listed(texts: tuple[str, ...]) -> str:
        return "\n".join(f"- {text}" for text in texts)

    timeline = "\n\n".join(
        f"{event.when[:1].upper()}{event.when[1:]}. {event.what}" + (f"\n“{event.thought}”" if event.thought else "")
        for event in story.timeline
    )
    said = defaultdict(list)
    for line in person.lines:
        said[f"{words[line.tier]}, {words[line.openness]}"].append(line.text)
    signs = [(words[name], getattr(person.mood_signs, name)) for name in ("high", "middle", "low")]
    sections = [
        (person.name, stop.join(filter(None, (str(person.age or ""), person.occupation)))),
        (words["who"], "\n".join(filter(None, (person.habits, listed(person.traits), pause.join(person.interests))))),
        (words["voice"], "\n".join(filter(None, (person.voice.style, *(f"“{one}”" for one in person.voice.phrases))))),
        (words["story"], "\n\n".join(filter(None, (story.cause, timeline)))),
        (words["conflict"], "\n\n".join(filter(None, (story.conflict, story.conflict_reason)))),
        (words["tried"], listed(story.tried)),
        (words["now"], story.current),
        (words["profile"], person.profile),
        (words["wants"], person.goal),
        (f"{words['need']} ({person.hidden_need})", person.need_text),
        (words["raises"], listed(person.raises)),
        (words["lowers"], listed(person.lowers)),
        (words["signs"], "\n".join(f"{name}: {text}" for name, text in signs if text)),
        (words["openings"], listed(person.openings)),
        (words["lines"], "\n\n".join(f"{kind}\n{listed(tuple(texts))}" for kind, texts in said.items())),
        (words["from"], stop.join(f"{name}: {value}" for name, value in person.provenance if value != "")),
    ]
    return [(heading, text) for heading, text in sections if text]

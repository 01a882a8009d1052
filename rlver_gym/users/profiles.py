"""Profiles in the form that SAGE and RLVER released: read as people of ours, and written from them.

One JSON object a line with `player` (who), `scene` (what happened, the hidden need under its last heading), `task` (the
need), `main_cha` (temperament), `cha_group` (traits), and in some files `first_talk` (first words) and `topic`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from rlver_gym.errors import PersonaError
from rlver_gym.text import has_chinese
from rlver_gym.types import Language
from rlver_gym.users.persona import HiddenNeed, Persona, Provenance, Temperament, Voice

_NEEDS: tuple[tuple[HiddenNeed, str], ...] = (
    ("not_my_fault", "没有错|没有任何责任|not (?:my|your|at) fault"),
    ("reflection", "自我反思|self-reflection"),
    ("motives", "其他人物|别人.{0,8}(?:原因|为什么)|why (?:the )?others"),
    ("praise", "夸奖|表扬|praise"),
    ("empathy", "共情|empath"),
    ("listening", "倾听|listen"),
    ("analysis", "辩证|dialectic|balanced"),
    ("advice", "建议|advice"),
)
_LABELS: dict[Language, dict[HiddenNeed, str]] = {
    "en": {
        "analysis": "A balanced analysis of what happened",
        "advice": "Practical advice",
        "motives": "An explanation of why the others acted as they did",
        "reflection": "Guidance to self-reflection",
        "praise": "Sincere praise of specific deeds",
        "listening": "To be listened to",
        "empathy": "Deep empathy",
        "not_my_fault": "Agreement that it was not my fault",
    },
    "zh": {
        "analysis": "辩证地分析事情",
        "advice": "实用的建议",
        "motives": "弄清别人这样做的原因",
        "reflection": "引导自我反思",
        "praise": "真诚具体的夸奖",
        "listening": "有人倾听",
        "empathy": "深入的共情",
        "not_my_fault": "认同自己没有错",
    },
}
"""How a written profile names each need; what is read there need not be guessed from the words that follow."""
_TEMPERAMENTS: dict[str, Temperament] = {
    "负面型": "negative",
    "被动型": "passive",
    "回避型": "avoidant",
    "negative": "negative",
    "passive": "passive",
    "avoidant": "avoidant",
    "even": "even",
    "平和型": "even",
}
_GENDERS = {"男性": "male", "男": "male", "女性": "female", "女": "female", "male": "male", "female": "female"}
_NEED_HEADING = re.compile(r"\n[#*\s]*(?:隐藏主题|hidden theme)[*\s]*[:：][*\s]*", re.IGNORECASE)
_GENERIC_OPENINGS = {
    "zh": (
        "在吗？有件事在我心里搁了好些天了，想跟人说说。",
        "今天又想起那件事，怎么都静不下来。",
        "我也不知道该从哪儿讲起，就是心里堵得慌。",
        "这阵子不太顺，憋着难受，跟你聊几句行吗？",
    ),
    "en": (
        "Hi. Something has been sitting on my chest for days, and I'd like to tell someone.",
        "It came back to me again today, and I can't settle.",
        "I don't quite know where to start. It's just been a lot.",
        "Things haven't gone well lately. Can I talk for a bit?",
    ),
}
_TOPIC_OPENINGS = {
    "zh": ("有点事想跟你说说，是关于{topic}的。", "最近老在想{topic}这件事，心里不是滋味。"),
    "en": (
        "I'd like to talk about something. It's about {topic}.",
        "I keep thinking about {topic}, and it doesn't sit right.",
    ),
}


def profile_of(person: Persona) -> dict[str, Any]:
    """The person as one profile: what `persona_from_profile` reads, with all that is told of them in its two texts.

    Lines, mood signs and the openings after the first have no place in a profile and are lost.
    """
    words = _WORDS[person.language]
    who = {
        words["name"]: person.name,
        words["age"]: "" if person.age is None else str(person.age),
        words["gender"]: words.get(person.gender, person.gender),
        words["occupation"]: person.occupation,
        words["interests"]: "; ".join(person.interests),
        words["habits"]: person.habits,
        words["voice"]: person.voice.style,
    }
    story = person.background
    happened = [
        story.cause,
        *(f"{event.when}: {event.what} ({event.thought})" for event in story.timeline),
        f"{story.conflict} {story.conflict_reason}".strip(),
        *story.tried,
        story.current,
        person.profile,
    ]
    task = f"{_LABELS[person.language][person.hidden_need]}: {person.need_text}"
    return {
        "id": person.id,
        "player": "\n".join(f"{name}: {text}" for name, text in who.items() if text),
        "scene": "\n".join([*filter(None, happened), "", f"{words['need']}: {task}"]),
        "task": task,
        "main_cha": words[person.temperament],
        "cha_group": list(person.traits),
        "first_talk": person.opening,
    }


_WORDS: dict[Language, dict[str, str]] = {
    "en": {
        "name": "Name", "age": "Age", "gender": "Gender", "occupation": "Occupation", "interests": "Interests",
        "habits": "Habits", "voice": "Voice", "need": "Hidden theme", "negative": "negative", "passive": "passive",
        "avoidant": "avoidant", "even": "even", "female": "female", "male": "male",
    },
    "zh": {
        "name": "姓名", "age": "年龄", "gender": "性别", "occupation": "职业", "interests": "爱好", "habits": "习惯",
        "voice": "说话方式", "need": "隐藏主题", "negative": "负面型", "passive": "被动型", "avoidant": "回避型",
        "even": "平和型", "female": "女性", "male": "男性",
    },
}  # fmt: skip


def is_profile(record: Mapping[str, Any]) -> bool:
    """Whether a record has the form of a SAGE or RLVER profile."""
    return "player" in record and "scene" in record


def persona_from_profile(record: Mapping[str, Any], *, source: str) -> Persona:
    """A persona from one profile.

    Args:
        record: the JSON object of one line.
        source: where it comes from, for the provenance.

    Raises:
        PersonaError: a field is missing or says something unknown.
    """
    identity = str(record.get("id") or hashlib.sha256(str(record["player"]).encode()).hexdigest()[:12])
    player, scene = _text(record, "player", identity), _text(record, "scene", identity)
    story, need = _split_need(scene)
    need = str(record.get("task") or need)
    language: Language = "zh" if has_chinese(player + scene) else "en"
    first = str(record.get("first_talk") or "").strip()
    topic = str(record.get("topic") or "").strip()
    templates = _TOPIC_OPENINGS if topic else _GENERIC_OPENINGS
    openings = (first,) if first else tuple(template.format(topic=topic) for template in templates[language])
    return Persona(
        id=identity,
        language=language,
        scenario_id=f"s-{identity}",
        character_id=f"c-{identity}",
        name=_field(player, "姓名|Name") or identity,
        age=_age(_field(player, "年龄|Age")),
        gender=_GENDERS.get(_field(player, "性别|Gender").lower(), ""),
        occupation=_field(player, "职业|Occupation"),
        temperament=_temperament(str(record.get("main_cha") or ""), identity),
        traits=_traits(record.get("cha_group") or ()),
        voice=Voice(),
        hidden_need=_need(need, identity),
        need_text=need.strip(" *\n"),
        profile=f"{player.strip()}\n\n{story.strip()}",
        openings=openings,
        provenance=Provenance(license="as of the source", source=source, author="as of the source"),
    )


def _text(record: Mapping[str, Any], name: str, identity: str) -> str:
    value = record.get(name)
    if not isinstance(value, str) or not value.strip():
        raise PersonaError(f"profile {identity!r}: field {name!r} must hold text", persona=identity, field=name)
    return value


def _split_need(scene: str) -> tuple[str, str]:
    matches = list(_NEED_HEADING.finditer(scene))
    return (scene[: matches[-1].start()], scene[matches[-1].end() :]) if matches else (scene, "")


def _need(text: str, identity: str) -> HiddenNeed:
    for need, label in (pair for labels in _LABELS.values() for pair in labels.items()):
        if text.startswith(f"{label}: "):
            return need
    for need, pattern in _NEEDS:
        if re.search(pattern, text, re.IGNORECASE):
            return need
    raise PersonaError(
        f"profile {identity!r}: field 'task' names no hidden need that is known: {text[:60]!r}",
        persona=identity,
        field="task",
    )


def _temperament(text: str, identity: str) -> Temperament:
    if text.lower() not in _TEMPERAMENTS:
        raise PersonaError(
            f"profile {identity!r}: field 'main_cha' must be one of {', '.join(_TEMPERAMENTS)}, not {text!r}",
            persona=identity,
            field="main_cha",
        )
    return _TEMPERAMENTS[text.lower()]


def _traits(group: Any) -> tuple[str, ...]:
    words = re.split(r"[、，,;；]", group) if isinstance(group, str) else map(str, group)
    return tuple(word.strip() for word in words if word.strip())


def _field(player: str, names: str) -> str:
    match = re.search(rf"(?:{names})[*\s]*[:：]\s*([^\n]+)", player)
    return match.group(1).strip(" *") if match else ""


def _age(text: str) -> int | None:
    match = re.search(r"\d{1,3}", text)
    return int(match.group()) if match else None

"""What the person says next: a short reaction to what the reply did, and a line that carries the story on.

Nothing that stands in the dialogue is said again, and the hidden need never is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from rlver_gym.backends.embedded.heard import hear_all
from rlver_gym.backends.embedded.person import Moment
from rlver_gym.backends.embedded.reading import hear, read
from rlver_gym.backends.embedded.tables import phrases
from rlver_gym.backends.embedded.thoughts import strongest
from rlver_gym.text import has_chinese
from rlver_gym.types import Appraisal, Language

_GOOD = {
    "question": "question", "invitation": "invitation", "uptake": "uptake", "recall": "uptake",
    "attention": "invitation", "feeling": "feeling", "hardship": "hardship", "praise": "praise",
    "agreement": "agreement", "insight": "insight", "advice": "advice",
}  # fmt: skip
_RUDE = {
    "blame": "blame_bad", "dismissal": "dismissal_bad", "comparison": "comparison_bad", "referral": "referral_bad",
    "empty": "empty_bad", "gibberish": "odd_bad", "wrong_language": "odd_bad", "forged": "odd_bad",
    "role_reversal": "odd_bad", "flood": "odd_bad", "copying": "copy_bad", "repetition": "repeat_bad",
}  # fmt: skip
_BAD = {
    "advice": "advice_bad", "comfort": "comfort_bad", "courtesy": "courtesy_bad", "length": "length_bad",
    "markup": "length_bad", "hedging": "hedging_bad", "similar": "repeat_bad", "terse": "empty_bad",
    "stuffing": "courtesy_bad", "unlinked": "unlinked_bad",
}  # fmt: skip
"""Banks of reactions by theme (see `thoughts.THEMES`); `_RUDE` come before all others and are never let pass."""
_FORGIVEN = frozenset(
    {"cold", "courtesy_bad", "comfort_bad", "advice_bad", "hedging_bad", "length_bad", "unlinked_bad"}
)
"""Reactions that a person in a good mood softens."""

_GUARDED = {"A": 20, "B": 35, "C": 55}
_GUARDED_BY_TEMPERAMENT = {"avoidant": 20, "passive": 10, "negative": 5, "even": 0}
_GUARDED_BY_DIFFICULTY = 30
"""Percent of answers that give little away, by tier, and what is added for temperament and full difficulty."""

_SPOKEN, _SPOKEN_QUIETLY = 90, 45
"""Percent of answers that begin with a reaction: to something the person would name, or to nothing in particular."""

_FELT, _SLIPPED, _SLIPPED_LESS = 25, 52, 26
"""Percent of open answers that end with a feeling said outright, of guarded ones, and how many of those fewer at full
difficulty."""

_SECRET_RUN = {"en": 30, "zh": 10}
"""Letters in a row of the hidden need that no line may hold."""

_NEIGHBOURS = {"F": "FCBA", "C": "CBFA", "B": "BCA", "A": "ABC", "S": "SABC"}


def answer(moment: Moment, appraisal: Appraisal) -> str:
    """The person's words after a reply.

    Args:
        moment: with the mood after the reply.
        appraisal: what the person thought of it; where it lists no movers, its sign alone decides the reaction.
    """
    replies = [read(text, moment.language).said for text in (*moment.replies, moment.reply)]
    spoken = hear_all(moment.heard, moment.language).said.union(*replies)
    line, guarded = next(_lines(moment, spoken), ("", False))
    if moment.tier in ("F", "S") and line:
        return line
    spoken |= _said(line, moment)
    reaction = next(_reactions(moment, appraisal, spoken, always=not line, guarded=guarded), "")
    felt = next(_felt(moment, appraisal, spoken | _said(reaction, moment), guarded), "")
    said = ("" if moment.language == "zh" else " ").join(part for part in (reaction, line, felt) if part)
    return said or next(_lines(moment, frozenset()))[0]


def _lines(moment: Moment, spoken: frozenset[str]) -> Iterator[tuple[str, bool]]:
    """Lines that may be said now and whether they are guarded, the fittest first; the seed shuffles each kind."""
    kind = "guarded" if _percent(moment, "openness") < _guardedness(moment) else "open"
    person = moment.person
    other = "open" if kind == "guarded" else "guarded"
    tiers = _NEIGHBOURS[moment.tier]
    bank: Mapping[str, Any] = phrases(moment.language)["lines"]

    def authored(tier: str, openness: str) -> list[str]:
        return [line.text for line in person.lines if line.tier == tier and line.openness == openness]

    def fresh(texts: Sequence[str], openness: str) -> Iterator[tuple[str, bool]]:
        return ((text, openness == "guarded") for text in _fresh(texts, moment, spoken, "line"))

    if moment.tier in ("F", "S"):
        yield from fresh([*authored(moment.tier, "open"), *authored(moment.tier, "guarded")], "open")
        yield from fresh(bank[moment.tier], "open")
    tiers = tiers.replace("F", "").replace("S", "")
    for tier in tiers:
        for openness in (kind, other):
            yield from fresh(authored(tier, openness), openness)
    yield from fresh([point.thought for point in person.background.timeline], "open")
    for tier in tiers:
        for openness in (kind, other):
            yield from fresh(bank[tier][openness], openness)


def _felt(moment: Moment, appraisal: Appraisal, spoken: frozenset[str], guarded: bool) -> Iterator[str]:
    """What the person feels, in plain words: slips out after a guarded line; said of their own accord after others.

    Who is neither low nor moved has said in an open line what there was to say.
    """
    slipped = _SLIPPED - _SLIPPED_LESS * moment.difficulty // 100
    kind = "guarded" if guarded else "low" if moment.mood < 40 else "warm" if appraisal.change > 0 else ""
    if kind and _percent(moment, "felt") < (slipped if guarded else _FELT):
        bank: Mapping[str, Sequence[str]] = phrases(moment.language)["felt"]
        yield from _fresh(bank[kind], moment, spoken, "feels")


def _reactions(
    moment: Moment, appraisal: Appraisal, spoken: frozenset[str], *, always: bool, guarded: bool
) -> Iterator[str]:
    key, percent = _reaction(moment, appraisal)
    if not always and _percent(moment, "react") >= percent:
        return
    bank: Mapping[str, Mapping[str, Sequence[str]]] = phrases(moment.language)["reactions"]
    tone = "low" if moment.mood < 40 else "high"
    tones = bank[key]
    fitting = (tones.get("guarded") if guarded else None) or tones.get(tone) or tones["all"]
    yield from _fresh(fitting, moment, spoken, "reaction")
    spare = bank["warm"][tone] if appraisal.change > 0 else bank["cold"]["all"]
    yield from _fresh(spare, moment, spoken, "reaction")


def _reaction(moment: Moment, appraisal: Appraisal) -> tuple[str, int]:
    """Which bank of reactions answers the reply, and how often (percent)."""
    themes = [name for name, loud in strongest(appraisal.moved, 1 if appraisal.change > 0 else -1) if loud]
    often = _SPOKEN if themes else _SPOKEN_QUIETLY
    if appraisal.change > 0:
        asked = any(sentence.asks for sentence in read(moment.reply, moment.language).sentences)
        if asked and _percent(moment, "asked") < 60:
            return "question", _SPOKEN
        return _GOOD.get(themes[0], "warm") if themes else "warm", often
    rude = next((_RUDE[name] for name in themes if name in _RUDE), "")
    key = rude or (_BAD.get(themes[0], "cold") if themes else "cold")
    return "mild" if moment.mood >= 70 and key in _FORGIVEN else key, 100 if rude else often


def _guardedness(moment: Moment) -> int:
    return (
        _GUARDED.get(moment.tier, 50)
        + _GUARDED_BY_TEMPERAMENT.get(moment.person.temperament, 0)
        + _GUARDED_BY_DIFFICULTY * moment.difficulty // 100
    )


def _percent(moment: Moment, what: str) -> int:
    """A number in 0..99 for this turn."""
    return moment.choice(what) % 100


def _fresh(texts: Sequence[str], moment: Moment, spoken: frozenset[str], what: str) -> Iterator[str]:
    """The texts that may be said, all around from a place that the seed chooses."""
    start = moment.choice(what) % len(texts) if texts else 0
    for index in range(len(texts)):
        text = texts[index - len(texts) + start]
        if text and _may_be_said(text, moment, spoken):
            yield text


def _may_be_said(text: str, moment: Moment, spoken: frozenset[str]) -> bool:
    return _said(text, moment).isdisjoint(spoken) and _fits(text, moment.language, moment.person.need_text)


def _said(text: str, moment: Moment) -> frozenset[str]:
    """The sentences of a text of the person's; case, spaces and punctuation make no difference."""
    return hear(text, moment.language).said


@lru_cache(maxsize=8192)
def _fits(text: str, language: Language, secret: str) -> bool:
    """Whether the text is in the language and tells no secret."""
    return has_chinese(text) == (language == "zh") and not _tells(text, secret)


def _tells(text: str, secret: str) -> bool:
    """Whether the text holds a long run of the secret, or all of a short one."""
    core, said = (re.sub(r"[\W_]+", "", part).casefold() for part in (secret, text))
    run = min(_SECRET_RUN["zh" if has_chinese(secret) else "en"], len(core))
    return any(core[start : start + run] in said for start in range(len(core) - run + 1))

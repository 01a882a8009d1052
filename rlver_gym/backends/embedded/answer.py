"""What the person says next: a short reaction to what the reply did, and a line that carries the story on.

Nothing that stands in the dialogue is said again, and the hidden need never is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from rlver_gym.backends.embedded.person import Moment
from rlver_gym.backends.embedded.reading import read
from rlver_gym.backends.embedded.tables import phrases
from rlver_gym.backends.embedded.thoughts import QUIET, strongest
from rlver_gym.seeding import child_seed
from rlver_gym.text import has_chinese
from rlver_gym.types import Appraisal

_GOOD = {
    "question": "question", "invitation": "invitation", "uptake": "uptake", "recall": "uptake",
    "attention": "invitation", "feeling": "feeling", "hardship": "hardship", "praise": "praise",
    "agreement": "agreement", "insight": "insight", "advice": "advice",
}  # fmt: skip
_BAD = {
    "advice": "advice_bad", "comfort": "comfort_bad", "courtesy": "courtesy_bad", "dismissal": "dismissal_bad",
    "blame": "blame_bad", "comparison": "comparison_bad", "referral": "referral_bad", "long": "length_bad",
    "markup": "length_bad", "hedging": "hedging_bad", "repetition": "repeat_bad", "similar": "repeat_bad",
    "copying": "copy_bad", "empty": "empty_bad", "terse": "empty_bad", "gibberish": "odd_bad",
    "wrong_language": "odd_bad", "forged": "odd_bad", "role_reversal": "odd_bad", "flood": "odd_bad",
    "stuffing": "courtesy_bad", "unlinked": "courtesy_bad",
}  # fmt: skip
"""Banks of reactions by theme (see `thoughts.THEMES`)."""
_FORGIVEN = frozenset({"cold", "courtesy_bad", "comfort_bad", "advice_bad", "hedging_bad", "length_bad"})
"""Reactions that a person in a good mood softens."""

_GUARDED = {"A": 20, "B": 35, "C": 55}
_GUARDED_BY_TEMPERAMENT = {"avoidant": 20, "passive": 10, "negative": 5, "even": 0}
_GUARDED_BY_DIFFICULTY = 30
"""Percent of answers that give little away, by tier, and what is added for temperament and full difficulty."""

_SPOKEN, _SPOKEN_QUIETLY = 90, 45
"""Percent of answers that begin with a reaction: to something the person would name, or to nothing in particular."""

_FELT, _FELT_LESS = 56, 29
"""Percent of answers that end with a feeling said outright, and how many fewer at full difficulty."""

_SECRET_RUN = {"en": 30, "zh": 10}
"""Letters in a row of the hidden need that no line may hold."""

_NEIGHBOURS = {"F": "FCBA", "C": "CBFA", "B": "BCA", "A": "ABC", "S": "SABC"}


def answer(moment: Moment, appraisal: Appraisal) -> str:
    """The person's words after a reply.

    Args:
        moment: with the mood after the reply.
        appraisal: what the person thought of it; where it lists no movers, its sign alone decides the reaction.
    """
    texts = (*moment.heard, *moment.replies, moment.reply)
    spoken = frozenset[str]().union(*(_said(text, moment) for text in texts))
    line = next(_lines(moment, spoken), "")
    if moment.tier in ("F", "S") and line:
        return line
    reaction = next(_reactions(moment, appraisal, spoken | _said(line, moment), always=not line), "")
    felt = next(_felt(moment, spoken | _said(line, moment) | _said(reaction, moment)), "")
    said = ("" if moment.language == "zh" else " ").join(part for part in (reaction, line, felt) if part)
    return said or next(_lines(moment, frozenset()))


def _lines(moment: Moment, spoken: frozenset[str]) -> Iterator[str]:
    """Lines that may be said now, the fittest first; shuffled by the seed within each kind."""
    kind = "guarded" if _draw(moment, "openness") < _guardedness(moment) else "open"
    person = moment.person
    other = "open" if kind == "guarded" else "guarded"
    tiers = _NEIGHBOURS[moment.tier]
    bank: Mapping[str, Any] = phrases(moment.language)["lines"]

    def authored(tier: str, openness: str) -> list[str]:
        return [line.text for line in person.lines if line.tier == tier and line.openness == openness]

    def stock(tier: str, openness: str) -> Sequence[str]:
        lines: Sequence[str] = bank[tier] if tier in "SF" else bank[tier][openness]
        return lines

    if moment.tier in ("F", "S"):
        yield from _fresh([*authored(moment.tier, "open"), *authored(moment.tier, "guarded")], moment, spoken)
        yield from _fresh(bank[moment.tier], moment, spoken)
        tiers = tiers[1:]
    tiers = tiers.replace("F", "")
    for tier in tiers:
        for openness in (kind, other):
            yield from _fresh(authored(tier, openness), moment, spoken)
    yield from _fresh([point.thought for point in person.background.timeline], moment, spoken)
    for tier in tiers:
        for openness in (kind, other):
            yield from _fresh(stock(tier, openness), moment, spoken)


def _felt(moment: Moment, spoken: frozenset[str]) -> Iterator[str]:
    """What the person feels, in plain words; the reserved say it less often."""
    if _draw(moment, "felt") < _FELT - _FELT_LESS * moment.difficulty // 100:
        bank: Mapping[str, Sequence[str]] = phrases(moment.language)["felt"]
        yield from _fresh(bank["low" if moment.mood < 40 else "high"], moment, spoken)


def _reactions(moment: Moment, appraisal: Appraisal, spoken: frozenset[str], always: bool) -> Iterator[str]:
    key, loud = _reaction(moment, appraisal)
    if not always and _draw(moment, "react") >= (_SPOKEN if loud else _SPOKEN_QUIETLY):
        return
    bank: Mapping[str, Mapping[str, Sequence[str]]] = phrases(moment.language)["reactions"]
    tone = "low" if moment.mood < 40 else "high"
    yield from _fresh(bank[key].get(tone) or bank[key]["all"], moment, spoken)
    spare = bank["warm"][tone] if appraisal.change > 0 else bank["cold"]["all"]
    yield from _fresh(spare, moment, spoken)


def _reaction(moment: Moment, appraisal: Appraisal) -> tuple[str, bool]:
    """Which bank of reactions answers the reply, and whether there is something to name."""
    if appraisal.change > 0:
        mover = next(iter(strongest(appraisal.moved, 1)), "")
        asked = any(sentence.asks for sentence in read(moment.reply, moment.language).sentences)
        if asked and _draw(moment, "asked") < 60:
            return "question", True
        return _GOOD.get(mover, "warm"), mover in _GOOD
    mover = next((name for name in strongest(appraisal.moved, -1) if name not in QUIET), "")
    key = _BAD.get(mover, "cold")
    return ("mild" if moment.mood >= 70 and key in _FORGIVEN else key), bool(mover)


def _guardedness(moment: Moment) -> int:
    return (
        _GUARDED.get(moment.tier, 50)
        + _GUARDED_BY_TEMPERAMENT.get(moment.person.temperament, 0)
        + _GUARDED_BY_DIFFICULTY * moment.difficulty // 100
    )


def _draw(moment: Moment, what: str) -> int:
    """A number in 0..99 for this turn."""
    return child_seed(moment.seed, "user", moment.turn, what) % 100


def _fresh(texts: Iterable[str], moment: Moment, spoken: frozenset[str]) -> Iterator[str]:
    """The texts that may be said, all around from a place that the seed chooses."""
    texts = [text for text in texts if text]
    start = child_seed(moment.seed, "user", moment.turn, "from", len(texts)) % max(len(texts), 1)
    for text in (*texts[start:], *texts[:start]):
        if _may_be_said(text, moment, spoken):
            yield text


def _may_be_said(text: str, moment: Moment, spoken: frozenset[str]) -> bool:
    return (
        _said(text, moment).isdisjoint(spoken)
        and has_chinese(text) == (moment.language == "zh")
        and not _tells(text, moment.person.need_text)
    )


def _said(text: str, moment: Moment) -> frozenset[str]:
    """The sentences of a text; case, spaces and punctuation make no difference."""
    return read(text, moment.language).said


@lru_cache(maxsize=8192)
def _tells(text: str, secret: str) -> bool:
    """Whether the text holds a long run of the secret, or all of a short one."""
    core, said = (re.sub(r"[\W_]+", "", part).casefold() for part in (secret, text))
    run = min(_SECRET_RUN["zh" if has_chinese(secret) else "en"], len(core))
    return any(core[start : start + run] in said for start in range(len(core) - run + 1))

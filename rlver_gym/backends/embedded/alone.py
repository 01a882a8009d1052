"""What a reply is by itself: how long, in what form, and what its phrases do; no dialogue is needed to see it."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Mapping
from functools import lru_cache

from rlver_gym.backends.embedded import form
from rlver_gym.backends.embedded.reading import Reading, Sentence, read
from rlver_gym.types import Language

COUNTED = {
    "first": 6, "together": 6, "second": 6, "advice": 6, "formal": 12, "enumeration": 6, "particle": 6,
    "invitation": 6, "praise": 6, "referral": 6, "hedging": 6, "reframing": 6, "agreement": 6, "offer": 6,
    "intensity": 6, "warmth": 6, "comfort": 6, "courtesy": 6, "acknowledgement": 6, "proposal": 3,
}  # fmt: skip
"""Features that count phrases of the lexicon's group of the same name, and up to how many."""

PRONOUNS = frozenset({"first", "together", "second"})
"""Counted by sentences that hold one: Chinese leaves most of them out where English must repeat them."""

OPENINGS = {
    "particle": "opens_with_particle", "praise": "opens_with_praise", "agreement": "opens_with_agreement",
    "first": "opens_with_i",
}  # fmt: skip
"""Groups whose phrases in the first sentence make features of their own."""

STEPS = (8, 11, 16, 23, 32, 45, 64, 91, 128, 181, 256, 362, 512, 724)
"""Sizes at which `length` grows by one; two steps double the size."""
BRIEF = 85
"""Size in characters (Chinese) or 3/2 words (English)."""
BREVITY = (70, 77, 85, 93, 100)
"""Sizes at which `brief` loses one of its five steps, so that a word more or less does not decide."""
TERSE = {"en": 3, "zh": 4}

_LECTURES = frozenset({"advice", "formal", "referral"})
_HEARING = frozenset({"hearing", "invitation"})
_KINDS = frozenset({
    "invitation", "hearing", "feeling", "agreement", "comfort", "courtesy", "praise", "acknowledgement", "fault",
    "warmth", "balance",
})  # fmt: skip
STUFFED, STUFFING = 4, 9
"""A reply with so many kinds of kind phrases, one for every so many characters, is a list of them."""
REVERSED = 4
"""So often oneself, so much oftener than the other, and nothing done for them is the person's part."""
_FOR_ANOTHER = frozenset({
    "invitation", "hearing", "acknowledgement", "praise", "agreement", "advice", "offer", "courtesy", "comfort",
    "warmth",
})  # fmt: skip


@lru_cache(maxsize=2048)
def alone(text: str, language: Language) -> Mapping[str, int]:
    """Features of a reply that any dialogue would find the same; those that are 0 among them."""
    reply = read(text, language)
    return _counts(reply) | _acts(reply.sentences) | _shape(text, reply) | _oddities(text, reply)


def is_brief(reply: Reading) -> bool:
    """Whether a reply is no longer than a few sentences of talk."""
    return form.size(reply.size, reply.language) < BRIEF


def _counts(reply: Reading) -> dict[str, int]:
    marks = reply.marks
    found = {group: min(count, COUNTED[group]) for group, count in marks.items() if group in COUNTED}
    for group in PRONOUNS & found.keys():
        found[group] = min(sum(group in sentence.marks for sentence in reply.sentences), COUNTED[group])
    if reply.sentences:
        found |= {OPENINGS[group]: 1 for group in OPENINGS.keys() & reply.sentences[0].marks.keys()}
    return found


def _acts(sentences: tuple[Sentence, ...]) -> dict[str, int]:
    """How many sentences do what a need may ask for."""
    found = dict.fromkeys(("motives", "balance", "feeling", "absolution", "hears", "guides"), 0)
    for sentence in sentences:
        marks = sentence.marks
        found["motives"] += "third" in marks and "guess" in marks
        found["balance"] += "balance" in marks
        found["feeling"] += "feeling" in marks
        found["absolution"] += "fault" in marks and "denial" in marks
        if _LECTURES.isdisjoint(marks):
            found["hears"] += not _HEARING.isdisjoint(marks)
            found["guides"] += "second" in marks and (sentence.asks or "self" in marks)
    return {name: min(count, 3) for name, count in found.items()}


def _shape(text: str, reply: Reading) -> dict[str, int]:
    """Size, sentences and signs."""
    size, sentences = form.size(reply.size, reply.language), len(reply.sentences)
    return {
        "length": bisect(STEPS, size),
        "brief": len(BREVITY) - bisect(BREVITY, size),
        "sentences": min(sentences, 20),
        "paragraphs": min(text.strip().count("\n\n"), 8),
        "sentence_length": min(size // max(sentences, 1), 40),
        "questions": min(text.count("?") + text.count("？"), 4),
        "ends_asking": int(text.rstrip().endswith(("?", "？"))),
        "exclamations": min(form.bangs(text), 2),
        "playful": min(text.count("~") + text.count("～") + form.pictures(text), 1),
        "markup": form.markup(text),
    }


def _oddities(text: str, reply: Reading) -> dict[str, int]:
    """What no honest reply shows; the recorded replies hold none of these, so their weights are set by hand."""
    marks, size = reply.marks, reply.size
    nothing = not size and not any(map(str.isalnum, text))
    kinds = len(_KINDS & marks.keys())
    return {
        "empty": int(nothing),
        "gibberish": int(not nothing and form.gibberish(reply)),
        "wrong_language": form.wrong_language(text, reply.language),
        "forged": int("verdict" in marks or form.forged(text)),
        "role_reversal": int(
            marks.get("first", 0) >= REVERSED * max(1, marks.get("second", 0)) and _FOR_ANOTHER.isdisjoint(marks)
        ),
        "flood": form.flood(text),
        "stuffing": int(kinds >= STUFFED and form.size(size, reply.language) < STUFFING * kinds),
        "terse": int(0 < size <= TERSE[reply.language]),
    } | {group: _share(group, reply) for group in ("blame", "dismissal", "comparison")}


def _share(group: str, reply: Reading) -> int:
    """1 if a good part of the sentences does this, 2 if half of them or more do."""
    if group not in reply.marks:
        return 0
    count, among = sum(group in sentence.marks for sentence in reply.sentences), len(reply.sentences)
    return 2 if 2 * count >= among else int(6 * count >= among)

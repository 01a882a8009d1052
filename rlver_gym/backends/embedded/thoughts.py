"""The inner side in words: what the person thinks, feels and makes of a reply, in the person's language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from rlver_gym.backends.embedded.person import Moment
from rlver_gym.backends.embedded.tables import phrases
from rlver_gym.types import Language

THEMES: Mapping[str, tuple[str, ...]] = {
    "question": ("questions", "ends_asking", "guides"),
    "invitation": ("invitation", "hears"),
    "uptake": ("uptake", "elaboration"),
    "recall": ("recall",),
    "feeling": ("feeling",),
    "hardship": ("acknowledgement",),
    "praise": ("praise", "opens_with_praise", "specific_praise"),
    "agreement": ("agreement", "opens_with_agreement", "absolution"),
    "insight": ("motives", "balance", "reframing"),
    "advice": ("advice", "proposal"),
    "attention": ("warmth", "intensity"),
    "speaks_as_i": ("first", "opens_with_i", "particle", "opens_with_particle", "exclamations", "playful"),
    "addresses_you": ("second", "together"),
    "length": ("brief", "length", "sentences", "paragraphs", "sentence_length"),
    "markup": ("markup", "enumeration", "formal"),
    "comfort": ("comfort",),
    "courtesy": ("courtesy", "offer"),
    "unlinked": ("unlinked", "hollow"),
    "similar": ("same_opening",),
    "expectation": ("expectation", "willingness"),
}
"""What a person would call the movers, where it is not their own name."""

_THEME = {feature: theme for theme, features in THEMES.items() for feature in features}
_ODD = ("gibberish", "wrong_language", "forged", "role_reversal", "copying", "flood")
_CONTENT = (
    ("referral", "referral"), ("blame", "blame"), ("dismissal", "dismissal"), ("specific_praise", "praise"),
    ("absolution", "agreement"), ("agreement", "agreement"), ("proposal", "advice"), ("advice", "advice"),
    ("motives", "insight"), ("balance", "insight"), ("guides", "reflection"), ("comfort", "comfort"),
    ("feeling", "feeling"), ("questions", "question"), ("hears", "invitation"), ("courtesy", "courtesy"),
)  # fmt: skip
_FEELINGS = {10: "up_high", 5: "up", 0: "flat", -5: "down", -10: "down_low"}
_FITS = {10: "good", 5: "some", 0: "none", -5: "bad", -10: "awful"}
"""Banks by what a reply can do to the mood, in mood points."""
_PLAIN = frozenset({"addresses_you", "speaks_as_i"})
"""Themes that a person would name only after all others."""
_PLAIN_IF_BRIEF = _PLAIN | {"length"}
"""The same of a brief reply, and of any that did good: length is then no matter to speak of."""
_STATE = frozenset({"expectation", "mood", "carried"})
"""What is about the person at this moment and not about the reply; named only if nothing in the reply moved them."""


def theme(mover: str) -> str:
    """What a person would call a mover."""
    return _THEME.get(mover, mover)


@lru_cache(maxsize=1024)
def strongest(moved: tuple[tuple[str, int], ...], sign: int) -> Sequence[tuple[str, bool]]:
    """Themes that moved the mood in the direction of `sign` on the whole, and whether a person would name each aloud.

    Those come first, then by size; what is about the person and not about the reply is left out if there is anything
    else.
    """
    worth: dict[str, int] = {}
    for name, points in moved:
        called = _THEME.get(name, name)
        worth[called] = worth.get(called, 0) + points
    worth.pop("step", None)
    plain = _PLAIN_IF_BRIEF if sign > 0 or any([name == "brief" for name, _ in moved]) else _PLAIN
    named = [name for name, points in worth.items() if points * sign > 0]
    named.sort(key=worth.__getitem__, reverse=sign > 0)
    loud = [name for name in named if name not in plain and name not in _STATE]
    quiet = [name for name in named if name in plain] or (named if not loud else [])
    return (*[(name, True) for name in loud], *[(name, False) for name in quiet])


def thought(moved: tuple[tuple[str, int], ...], change: int, gate: str, moment: Moment) -> str:
    """The one or two strongest themes in plain words, the gate before all others."""
    sign = "+" if change > 0 else "-"
    names = [name for name, _ in strongest(moved, 1 if change > 0 else -1)]
    keys = [f"{theme(gate)}-"] * bool(gate) + [f"{name}{sign}" for name in names]
    bank: Mapping[str, Sequence[str]] = phrases(moment.language)["thoughts"]
    keys = [key for key in dict.fromkeys(keys) if key in bank][:2] or ["nothing"]
    said = [
        _one(bank[key], moment.choice(which)) for key, which in zip(keys, ("thought", "second thought"), strict=False)
    ]
    return ("" if moment.language == "zh" else " ").join(said)


def feeling(change: int, moment: Moment) -> str:
    """A word or two for how the reply feels."""
    words: Sequence[str] = phrases(moment.language)["feelings"][_FEELINGS[change]]
    return _one(words, moment.choice("feeling"))


def _one(texts: Sequence[str], number: int) -> str:
    return texts[number % len(texts)]


def content(features: Mapping[str, int], language: Language) -> str:
    """What the reply says, in the person's eyes."""
    bank: Mapping[str, str] = phrases(language)["content"]
    if "empty" in features:
        return bank["empty"]
    if not features.keys().isdisjoint(_ODD):
        return bank["odd"]
    return bank[next((said for name, said in _CONTENT if name in features), "plain")]


def fit(change: int, language: Language) -> str:
    """How the reply fits what the person came for, without a word of what that is."""
    bank: Mapping[str, str] = phrases(language)["fit"]
    return bank[_FITS[change]]

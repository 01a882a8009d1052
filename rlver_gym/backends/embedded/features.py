"""Named integer features of one reply, a pure function of the reply and of what was said before it.

Each feature has one definition that serves both languages; only the lexicons and the measures of length differ. A
feature that is absent is 0. What they are worth stands in `data/weights.json` and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable

from rlver_gym.backends.embedded import form
from rlver_gym.backends.embedded.person import Moment
from rlver_gym.backends.embedded.reading import RUN, Reading, Sentence, read, stretches

FEATURES = (
    "empty", "gibberish", "wrong_language", "forged", "role_reversal", "copying", "repetition", "flood",
    "stuffing", "stray", "unlinked", "terse", "brief", "long", "markup", "addresses_you", "speaks_as_i",
    "question", "interrogation", "invitation", "advice", "early_advice", "praise", "flattery", "uptake", "recall",
    "feeling", "hardship", "comfort", "courtesy", "referral", "blame", "dismissal", "comparison", "hedging",
    "insight", "reflection", "agreement", "similar", "attention",
)  # fmt: skip
"""All features, in the order that breaks ties."""

# Units (words; characters) up to which a reply is terse, brief, of ordinary length, long; beyond that it is a wall.
LENGTHS = {"en": (3, 45, 80, 160), "zh": (4, 80, 140, 280)}
EARLY_TURNS = 2
FREE_HEDGES = 1
SIMILAR, SAME = 50, 75
"""Percent of a reply's pairs of units, the person's own left out, that an earlier reply holds."""

_KIND = ("invitation", "feeling", "hardship", "agreement", "reflection", "comfort", "courtesy", "praise")
_EMPTY_WORDS = frozenset({"courtesy", "comfort", "verdict"})
_LISTENING = frozenset({"feeling", "hardship", "courtesy", "comfort", "attending"})
_AVERSE = frozenset({"blame", "dismissal", "comparison", "referral"})
_TOPICAL = ("feeling", "hardship", "praise", "agreement", "reflection", "invitation")


def measure(moment: Moment) -> dict[str, int]:
    """Features of the reply at this moment; only those that are not 0, in the order of FEATURES."""
    language = moment.language
    reply = read(moment.reply, language)
    found = _Found(reply, moment)
    values = found.shape() | found.ties() | found.acts() | found.memory()
    values["wrong_language"] = form.wrong_language(moment.reply, language)
    values["forged"] = int(form.forged(moment.reply) or reply.marks["verdict"] > 0)
    values["flood"] = form.flood(moment.reply)
    values["markup"] = form.markup(moment.reply)
    return {name: values[name] for name in FEATURES if values.get(name)}


class _Found:
    """The groups of features that need the dialogue."""

    def __init__(self, reply: Reading, moment: Moment) -> None:
        self.reply, self.moment = reply, moment
        self.heard = heard = [read(text, moment.language) for text in moment.heard]
        self.own = [read(text, moment.language) for text in moment.replies]
        self.last = heard[-1] if heard else read("", moment.language)
        self.known = frozenset[str]().union(*(text.content for text in heard))
        self.attending = sum(self._attends(i, sentence) for i, sentence in enumerate(reply.sentences))
        self.asked = [s for s in reply.sentences if s.asks and not _averse(s)]
        self.opened = [s for s in self.asked if "question" in s.marks or self._about_them(s)]
        self.copied = self._copied(heard)
        quoted = self.reply.quoted
        fresh = [self._fresh(sentence) for sentence in reply.sentences]
        self.taken = _words(fresh, self.last.content - quoted)
        self.recalled = _words(fresh, self.known - self.last.content - quoted)

    def _copied(self, heard: Iterable[Reading]) -> int:
        """Percent of the reply's units that stand in a run taken from the person's texts."""
        units, length = self.reply.units, RUN[self.moment.language]
        if len(units) < length:
            return 0
        shared = frozenset[str]().union(*(self.reply.runs & text.runs for text in heard))
        if not shared:
            return 0
        marked = [False] * len(units)
        for i, run in enumerate(stretches(units, length)):
            if run in shared:
                marked[i : i + length] = [True] * length
        return 100 * sum(marked) // len(units)

    def _fresh(self, sentence: Sentence) -> Sentence:
        """The sentence, or one without content if it is but a stretch of the person's own words."""
        if self.copied < 25:
            return sentence
        length = RUN[self.moment.language]
        last = self.last.runs
        runs = list(stretches(sentence.units, length))
        if runs and 2 * sum(run in last for run in runs) >= len(runs):
            return Sentence((), frozenset(), {}, False)
        return sentence

    def shape(self) -> dict[str, int]:
        terse, brief, ordinary, long = LENGTHS[self.moment.language]
        size = len(self.reply.units)
        nothing = not any(letter.isalnum() for letter in self.moment.reply)
        return {
            "empty": int(nothing),
            "terse": int(0 < size <= terse),
            "brief": int(terse < size <= brief),
            "long": 0 if size <= ordinary else 1 if size <= long else 2,
            "gibberish": int(not nothing and form.gibberish(self.reply)),
        }

    def ties(self) -> dict[str, int]:
        """How the reply is tied to the person's own words."""
        content, marks = self.reply.content, self.reply.marks
        linked = self.taken + self.recalled
        parrot = len(content) >= 4 and 100 * len(content & self.known) > 85 * len(content)
        acts = self.attending or any(marks[kind] for kind in _TOPICAL) or any(s.asks for s in self.reply.sentences)
        kinds = sum(marks[kind] > 0 for kind in _KIND)
        strays = [
            sentence
            for sentence in self.reply.sentences
            if len(sentence.content) >= 3 and not sentence.content & self.known and len(_foreign(sentence)) >= 3
        ]
        reversed_roles = (
            marks["first"] >= 3
            and not marks["second"]
            and not any(marks[kind] for kind in ("invitation", "courtesy", "hardship"))
        )
        return {
            "uptake": min(self.taken, 3),
            "recall": min(self.recalled, 2),
            "unlinked": 0 if linked or self.attending or self.opened else 1 + (self.moment.turn > 1),
            "copying": int(self.copied >= 50 or (parrot and not acts)),
            "stray": int(len(strays) >= 2 and 2 * len(strays) >= len(self.reply.sentences) and linked <= 1),
            "stuffing": int(kinds >= (4 if not linked else 6)),
            "role_reversal": int(reversed_roles),
        }

    def acts(self) -> dict[str, int]:
        """What the reply does, by the marks of its sentences."""
        marks = self.reply.marks
        sentences = self.reply.sentences
        specific = sum(bool(s.marks.get("praise")) and self._near(i) for i, s in enumerate(sentences))
        praised = sum(bool(s.marks.get("praise")) for s in sentences)
        advice = sum(self._advises(s) for s in sentences)
        about_others = sum("third" in s.marks and "cause" in s.marks for s in sentences)
        return {
            "addresses_you": int(marks["second"] > 0),
            "speaks_as_i": int(marks["first"] > 0),
            "question": int(bool(self.opened) and len(self.asked) <= 2),
            "interrogation": int(len(self.asked) > 2),
            "invitation": int(marks["invitation"] > 0),
            "advice": min(advice, 3),
            "early_advice": int(advice > 0 and self.moment.turn <= EARLY_TURNS),
            "praise": min(specific, 1),
            "flattery": min(max(praised - specific, 0 if specific else marks["praise"] - 1), 2),
            "feeling": int(
                any("feeling" in s.marks and ("second" in s.marks or "first" not in s.marks) for s in sentences)
            ),
            "hardship": int(marks["hardship"] > 0),
            "comfort": min(marks["comfort"], 2),
            "courtesy": min(marks["courtesy"], 2),
            "referral": int(marks["referral"] > 0),
            "blame": min(marks["blame"], 2),
            "dismissal": min(marks["dismissal"], 2),
            "comparison": min(marks["comparison"], 1),
            "hedging": min(max(marks["hedging"] - about_others - FREE_HEDGES, 0), 2),
            "insight": min(about_others + sum("balance" in s.marks for s in sentences), 2),
            "reflection": int(any("reflection" in s.marks and s.asks for s in sentences)),
            "agreement": int(marks["agreement"] > 0),
            "attention": min(self.attending, 2),
        }

    def _advises(self, sentence: Sentence) -> bool:
        """Tells the person what to do; asking for their story (`show me`) is no advice."""
        if sentence.asks or "invitation" in sentence.marks or "me" in sentence.units:
            return False
        ordered = self.moment.language == "en" and form.begins_as_order(sentence.units)
        return "advice" in sentence.marks or ordered

    def _attends(self, index: int, sentence: Sentence) -> bool:
        """Says something about the person or about hearing them; no harm, no courtesy, no praise out of the air."""
        marks = sentence.marks
        if _averse(sentence) or self._advises(sentence) or not _EMPTY_WORDS.isdisjoint(marks):
            return False
        if "attending" in marks:
            return marks.get("praise", 0) < 2
        sincere = "praise" not in marks or self._near(index)
        return self._about_them(sentence) and sincere and not sentence.asks

    def _about_them(self, sentence: Sentence) -> bool:
        """Speaks of the person, in more than a few words and not out of courtesy."""
        long_enough = len(sentence.units) > LENGTHS[self.moment.language][0] + 2
        return long_enough and "second" in sentence.marks and "courtesy" not in sentence.marks

    def memory(self) -> dict[str, int]:
        """How far the reply repeats earlier ones of the same policy."""
        if not self.own:
            return {}
        pairs = self.reply.pairs.difference(*(text.pairs for text in self.heard))
        share = max(100 * len(pairs & text.pairs) // len(pairs) for text in self.own) if len(pairs) > 2 else 0
        again = sum(
            len(sentence) > 3 and any(sentence in text.said for text in self.own) for sentence in self.reply.said
        )
        whole = bool(self.reply.units) and any(text.units == self.reply.units for text in self.own)
        return {
            "repetition": int(whole or share >= SAME),
            "similar": min(int(SIMILAR <= share < SAME) + again, 2),
        }

    def _near(self, index: int) -> bool:
        """Whether the sentence with this index, or a neighbour, speaks of something the person said."""
        near = self.reply.sentences[max(index - 1, 0) : index + 2]
        return any(sentence.content & self.known for sentence in near)


def _words(sentences: Iterable[Sentence], known: frozenset[str]) -> int:
    """How many of the known content words are taken up; overlapping pairs of characters are one word."""
    shared = frozenset[str]().union(*(sentence.content & known for sentence in sentences))
    heads = {pair for pair in shared if not any(other[1:] == pair[:1] and other != pair for other in shared)}
    return len(shared) if all(map(str.isascii, shared)) else max(len(heads), 1)


def _averse(sentence: Sentence) -> bool:
    return not _AVERSE.isdisjoint(sentence.marks)


def _foreign(sentence: Sentence) -> frozenset[str]:
    """Content of a sentence that belongs to a story rather than to listening."""
    return sentence.content if _LISTENING.isdisjoint(sentence.marks) else frozenset()

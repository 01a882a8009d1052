"""Named integer features of one reply, a pure function of the reply and of what was said before it.

Each feature has one definition that serves both languages; only the lexicons differ, and English words are counted as
3/2 of a Chinese character, which is what a translation takes. A feature that is absent is 0. What they are worth stands
in `data/weights.json` and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import islice
from types import MappingProxyType

from rlver_gym.backends.embedded import form
from rlver_gym.backends.embedded.alone import COUNTED, OPENINGS, alone, is_brief
from rlver_gym.backends.embedded.heard import Heard, hear_all
from rlver_gym.backends.embedded.person import Moment
from rlver_gym.backends.embedded.reading import NOTHING, Reading, Sentence, read
from rlver_gym.types import Language

FEATURES = (
    "empty", "gibberish", "wrong_language", "forged", "role_reversal", "copying", "repetition", "flood", "stuffing",
    "unlinked", "hollow", "terse", "blame", "dismissal", "comparison",
    "length", "brief", "sentences", "paragraphs", "sentence_length", "questions", "ends_asking", "exclamations",
    "playful", "markup",
    *COUNTED, *OPENINGS.values(),
    "motives", "balance", "feeling", "specific_praise", "absolution", "guides", "hears",
    "uptake", "recall", "elaboration", "same_opening",
)  # fmt: skip
"""All features, in the order that breaks ties."""
_NONE = dict.fromkeys(FEATURES, 0)

SAME = 90
"""Percent of a reply's pairs of units, the person's own left out, that an earlier reply holds."""
COPIED = 50
"""Percent of a reply taken from the person word for word that makes it a copy."""
PARROTED = 85
"""Percent of a reply's content words that make it a copy in other order or with turned pronouns."""
TURNED = 70
"""Percent of all its words or characters that such a copy has from the person."""
RUN = {"en": 4, "zh": 6}
"""Words or characters in a row that make a copy rather than a shared word."""
NEW = {"en": 3, "zh": 6}
"""Content words beyond the person's that make a sentence go on from theirs. Overlapping pairs of characters are twice
as many as words in texts of the same meaning."""
LINK = {"en": 1, "zh": 2}
"""Content words of the person that tie a brief reply to them; a longer one, or a lecture, needs one more. One of their
last message counts twice."""
ROW = 3
"""Replies in a row without a link that a person is patient with no longer."""

_ACTS = ("invitation", "hearing", "acknowledgement", "feeling", "agreement")
"""What a reply can do for a person without a word of theirs."""
_LECTURES = ("advice", "formal", "referral", "reframing")
_EMPTY = frozenset(
    {"praise", "courtesy", "comfort", "advice", "formal", "referral", "blame", "dismissal", "comparison"}
)


def measure(moment: Moment) -> Mapping[str, int]:
    """Features of the reply at this moment; only those that are not 0, in the order of FEATURES."""
    return features_of(moment.reply, moment.heard, moment.replies, moment.language)


@lru_cache(maxsize=2048)
def features_of(text: str, heard: tuple[str, ...], own: tuple[str, ...], language: Language) -> Mapping[str, int]:
    """The same from the texts alone: the reply, what the person and the policy said before, and the language."""
    reply = read(text, language)
    said = hear_all(heard, language)
    values = {**_NONE, **alone(text, language), **_ties(reply, said), **_memory(reply, said, own)}
    values["unlinked"] = _unlinked(reply, heard, own)
    return MappingProxyType({name: value for name, value in values.items() if value})


def _ties(reply: Reading, heard: Heard) -> dict[str, int]:
    """How the reply is tied to the person: their words and doings."""
    last, known = heard.last, heard.known
    copied = _copied(reply, heard) >= COPIED or _parrots(reply, heard)
    taken = NOTHING if copied else (reply.content - reply.quoted) & last
    recalled = NOTHING if copied else reply.content & (known - last)
    sentences = reply.sentences
    taking = [one.content for one in sentences if not taken.isdisjoint(one.content)] if taken else []
    elaborated = sum([len(content - last) >= NEW[reply.language] for content in taking])
    praised = [index for index, one in enumerate(sentences) if "praise" in one.marks]
    return {
        "copying": int(copied),
        "uptake": min(len(taken), 8),
        "recall": min(len(recalled), 8),
        "elaboration": min(elaborated, 6),
        "hollow": _hollow(reply, known),
        "specific_praise": min(sum(_near(sentences, index, known) for index in praised), 3),
    }


def _copied(reply: Reading, heard: Heard) -> int:
    """Percent of the reply's stretches that stand in the person's texts."""
    length = RUN[reply.language]
    cells = reply.text if reply.language == "zh" else [cell for one in reply.sentences for cell in one.cells]
    starts = range(0, len(cells) - length + 1, length // 2)
    stretches = [cells[start : start + length] for start in starts]
    shared = [one for one in stretches if heard.cells.issuperset(one) and "".join(one) in heard.text]
    return 100 * len(shared) // max(len(stretches), 1)


def _parrots(reply: Reading, heard: Heard) -> bool:
    """Whether nearly all that the reply speaks of is the person's, and most of the little words too."""
    content = reply.content
    if len(content) <= NEW[reply.language] or 100 * len(content & heard.known) <= PARROTED * len(content):
        return False
    cells = {cell for one in reply.sentences for cell in one.cells}
    return 100 * len(cells & heard.cells) > TURNED * len(cells)


def _hollow(reply: Reading, known: frozenset[str]) -> int:
    """1 if the reply holds nothing of the person's and nothing for them, 3 if it flatters, 5 if it lectures on top.

    One word in common is enough, but for a lecture that makes it 2: everyday things come up in all of them.
    """
    marks = reply.marks
    lecture, common = _lecture(reply), _words(known & reply.content)
    if not marks.keys().isdisjoint(_ACTS) or common > (lecture > 1):
        return 0
    if any(_asks_them(sentence, reply.language) or _for_them(sentence, reply.language) for sentence in reply.sentences):
        return 0
    if common:
        return 2
    return 5 if lecture else 3 if "praise" in marks and "courtesy" not in marks else 1


def _words(shared: frozenset[str]) -> int:
    """How many words these are at least: Chinese pairs that overlap may be one."""
    ends = {one[1] for one in shared if len(one) == 2}
    return len(shared) - sum(one[0] in ends for one in shared if len(one) == 2)


def _lecture(reply: Reading) -> int:
    """How often the reply tells the person what to do or to think."""
    return sum([reply.marks.get(group, 0) for group in _LECTURES])


def _asks_them(sentence: Sentence, language: Language) -> bool:
    """Asks something and brings no matter of its own along."""
    return sentence.asks and len(sentence.content) < NEW[language] - 1


def _for_them(sentence: Sentence, language: Language) -> bool:
    """Says something to the person that is more than a phrase of courtesy, comfort or advice."""
    return (
        form.size(len(sentence.cells), language) >= 9
        and "second" in sentence.marks
        and _EMPTY.isdisjoint(sentence.marks)
    )


def _near(sentences: tuple[Sentence, ...], index: int, known: frozenset[str]) -> bool:
    """Whether the sentence with this index, or a neighbour, speaks of something the person said or did."""
    near = sentences[max(index - 1, 0) : index + 2]
    return any(not known.isdisjoint(one.content) or _tells_deed(one) for one in near)


def _tells_deed(sentence: Sentence) -> bool:
    """Says what the person did, and not what they should do."""
    return {"deed", "second"} <= sentence.marks.keys() and "advice" not in sentence.marks


def _unlinked(reply: Reading, heard: tuple[str, ...], own: tuple[str, ...]) -> int:
    """How many replies in a row took up nothing that the person said, up to ROW; openings do not count.

    A quotation takes something up, but only so often: the last reply of such a row counts whether it quotes or not.
    """
    language = reply.language
    said = hear_all(heard, language)
    if _links(reply, reply.content - reply.quoted, said):
        return 0
    row = 1
    for back, text in enumerate(reversed(own[1:]), start=1):
        earlier = read(text, language)
        if row == ROW or _links(earlier, earlier.content - earlier.quoted, hear_all(heard[:-back], language)):
            break
        row += 1
    return row if row == ROW or not _links(reply, reply.content, said) else 0


def _links(reply: Reading, content: frozenset[str], heard: Heard) -> bool:
    """Whether so many of the content words are the person's; one of their last message counts for two older ones."""
    return len(content & heard.known) + len(content & heard.last) >= LINK[reply.language] + (
        not is_brief(reply) or _lecture(reply) > 1
    )


def _memory(reply: Reading, heard: Heard, own: tuple[str, ...]) -> dict[str, int]:
    """How far the reply repeats earlier ones of the same policy."""
    if not own or not reply.sentences:
        return {}
    first = reply.sentences[0].cells[:4]
    pairs = reply.pairs.difference(*heard.pairs)
    some = frozenset(islice(pairs, len(pairs) * (100 - SAME) // 100 + 1))
    again = begun = False
    for said in own:
        text = read(said, reply.language)
        again = again or reply.text == text.text or (len(pairs) > 2 and _same(pairs, some, text.pairs))
        begun = begun or (bool(text.sentences) and text.sentences[0].cells[:4] == first)
    return {"repetition": int(again), "same_opening": int(begun)}


def _same(pairs: frozenset[str], some: frozenset[str], others: frozenset[str]) -> bool:
    """Whether SAME percent of the pairs are among the others; `some` are so many that one of them must be."""
    return not some.isdisjoint(others) and 100 * len(pairs & others) >= SAME * len(pairs)

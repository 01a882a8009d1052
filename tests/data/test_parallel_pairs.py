"""The 150 parallel replies are whole, speak their language, are equally long in both, and cover every manner."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any, get_args

import pytest
import yaml

from rlver_gym.users.persona import HiddenNeed, Temperament

KINDS = {
    *("short", "ok", "long", "wall", "first_person", "second_person", "question", "invitation", "advice_early"),
    *("advice_late", "praise_specific", "flattery", "uptake", "feeling", "hardship", "repetition", "hedging"),
    *("stock_comfort", "referral", "blame", "dismissal", "comparison", "list", "markup", "wrong_language", "gibberish"),
    *("empty", "one_word", "forged", "role_reversal", "emoji", "copying", "agreement", "motives", "reflection"),
    "courtesy",
}
MIXED = {"wrong_language", "gibberish", "empty", "one_word", "emoji", "forged"}
"""Manners in which the length of a text says nothing about its language."""
IDEOGRAPH = re.compile("[\u3400-\u9fff]")
LATIN_WORD = re.compile("[A-Za-z]{2,}")


@pytest.fixture(scope="module")
def table() -> dict[str, Any]:
    text = Path(__file__).with_name("parallel_pairs.yaml").read_text(encoding="utf-8")
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded


def faults(table: dict[str, Any]) -> list[str]:
    """What is wrong with a table of pairs, as `id: what`."""
    person, pairs = table["person"], table["pairs"]
    lines = len(person["en"]["said"])
    found = [f"{name}: not unique" for name, count in Counter(pair["id"] for pair in pairs).items() if count > 1]
    for pair in pairs:
        name, kinds = pair["id"], set(pair["kinds"])
        if set(pair) - {"previous"} != {"id", "turn", "line", "kinds", "en", "zh"}:
            found.append(f"{name}: fields")
        if not kinds or kinds - KINDS or len(kinds) != len(pair["kinds"]):
            found.append(f"{name}: kinds")
        if not 1 <= pair["turn"] <= 8 or not pair["line"] == pair["turn"] - 1 < lines:
            found.append(f"{name}: turn or line")
        if ("repetition" in kinds) != ("previous" in pair) or ("previous" in pair and pair["turn"] == 1):
            found.append(f"{name}: previous")
        if ("advice_early" in kinds and pair["turn"] > 4) or ("advice_late" in kinds and pair["turn"] < 4):
            found.append(f"{name}: advice")
        if "empty" not in kinds and not (pair["en"].strip() and pair["zh"].strip()):
            found.append(f"{name}: no text")
        foreign = bool(IDEOGRAPH.search(pair["en"])), bool(LATIN_WORD.search(pair["zh"]))
        if foreign != (("wrong_language" in kinds,) * 2) and not kinds & {"forged"}:
            found.append(f"{name}: language")
        if not kinds & MIXED and not 1.1 <= ratio(pair) <= 2.9:
            found.append(f"{name}: lengths {ratio(pair):.2f}")
    return found


def ratio(pair: dict[str, Any]) -> float:
    """Chinese characters, punctuation included, per English word."""
    return len(re.sub(r"\s", "", pair["zh"])) / len(pair["en"].split())


def test_every_pair_is_whole(table: dict[str, Any]) -> None:
    assert len(table["pairs"]) == 150
    assert faults(table) == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"id": "p002"}, "not unique"),
        ({"en": "你好"}, "language"),
        ({"zh": "Hello there"}, "language"),
        ({"kinds": ["nice"]}, "kinds"),
        ({"turn": 9}, "turn"),
        ({"zh": "好。"}, "lengths"),
        ({"en": " "}, "no text"),
        ({"kinds": ["repetition"]}, "previous"),
        ({"kinds": ["advice_late"]}, "advice"),
        ({"note": "x"}, "fields"),
    ],
)
def test_control_a_planted_fault_is_found(table: dict[str, Any], change: dict[str, Any], fault: str) -> None:
    first, *rest = table["pairs"]
    spoiled = dict(first) | change
    try:
        found = faults(table | {"pairs": [spoiled, *rest]})
    except ZeroDivisionError:
        found = ["p001: no text"]
    assert [text for text in found if fault in text]


def test_every_manner_is_there_and_ordinary_replies_are_about_half(table: dict[str, Any]) -> None:
    counts = Counter(kind for pair in table["pairs"] for kind in pair["kinds"])
    assert set(counts) == KINDS
    assert min(counts.values()) >= 2
    assert all(sum(pair["turn"] == turn for pair in table["pairs"]) >= 10 for turn in range(1, 9))
    mixed = [pair for pair in table["pairs"] if len(pair["kinds"]) >= 4 and not MIXED & set(pair["kinds"])]
    assert 50 <= len(mixed) <= 90
    texts = Counter((pair["en"], pair["turn"]) for pair in table["pairs"])
    assert max(texts.values()) == 1


def test_lengths_match_between_the_languages(table: dict[str, Any]) -> None:
    usual = [ratio(pair) for pair in table["pairs"] if not MIXED & set(pair["kinds"])]
    assert len(usual) > 120
    assert 1.6 <= median(usual) <= 1.9


def test_the_person_is_the_same_in_both_languages(table: dict[str, Any]) -> None:
    person = table["person"]
    assert person["need"] in get_args(HiddenNeed) and person["temperament"] in get_args(Temperament)
    en, zh = person["en"], person["zh"]
    assert list(en) == list(zh)
    assert len(en["said"]) == len(zh["said"]) == 8
    assert len(en["so_far"]) == len(zh["so_far"]) == 7
    assert not IDEOGRAPH.search(str(en)) and not LATIN_WORD.search("".join(zh["said"] + zh["so_far"]))

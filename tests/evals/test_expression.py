from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from rlver_gym.errors import SetupError
from rlver_gym.evals.expression import expressed_share, expresses
from rlver_gym.types import Episode, Language, Scenario, StopReason, Turn, Usage

LINES = Path(__file__).parents[1] / "data" / "expression_lines.yaml"
LABELLED: dict[str, list[dict[str, Any]]] = yaml.safe_load(LINES.read_text(encoding="utf-8"))


def agreement(part: str, language: str | None = None) -> float:
    lines = [line for line in LABELLED[part] if language in (None, line["language"])]
    agreed = [bool(line["expresses"]) == expresses(line["text"], line["language"]) for line in lines]
    return sum(agreed) / len(agreed)


def episode(*answers: str, language: Language = "en") -> Episode:
    return Episode(
        scenario=Scenario(env_id="RLVER-Vanilla-v0", persona_id="p", seed=1),
        policy="polite",
        backend="scripted",
        language=language,
        persona_name="P",
        hidden_need="listening",
        need_text="n",
        opening="I am so sad.",
        start_mood=40,
        turns=tuple(
            Turn(index=index, reply="Hm.", said="Hm.", mood=40, user=text) for index, text in enumerate(answers, 1)
        ),
        stop_reason=StopReason.MAX_TURNS,
        scored=True,
        reward=0.4,
        usage=Usage(),
        policy_usage=Usage(),
    )


def test_the_labelled_lines_are_what_they_are_said_to_be() -> None:
    assert [len(LABELLED[part]) for part in ("lines", "holdout", "second_holdout")] == [200, 60, 34]
    for language in ("en", "zh"):
        lines = [line for line in LABELLED["lines"] if line["language"] == language]
        assert len(lines) == 100
        assert 50 <= sum(line["expresses"] for line in lines) <= 75
    texts = [line["text"] for part in LABELLED.values() for line in part]
    assert len(set(texts)) == len(texts)


def test_it_agrees_with_a_reader() -> None:
    assert agreement("lines") >= 0.90
    assert agreement("lines", "en") >= 0.85
    assert agreement("lines", "zh") >= 0.85


@pytest.mark.parametrize("part", ["holdout", "second_holdout"])
def test_it_agrees_with_a_reader_on_lines_that_it_was_not_written_for(part: str) -> None:
    assert agreement(part) >= 0.85


def test_control_neither_constant_nor_length_would_agree() -> None:
    lines = LABELLED["lines"]
    share = sum(line["expresses"] for line in lines) / len(lines)
    assert max(share, 1 - share) < 0.70
    for language in ("en", "zh"):
        own = [line for line in lines if line["language"] == language]
        best = max(sum((len(line["text"]) >= cut) == line["expresses"] for line in own) for cut in range(250))
        assert best / len(own) < 0.85


@pytest.mark.parametrize(
    ("expressing", "plain", "language"),
    [
        ("I was upset.", "I wasn't upset.", "en"),
        ("I'm not happy about it.", "He's happy about it.", "en"),
        ("I've never been so angry.", "I was never angry.", "en"),
        ("I'm not just tired.", "I'm not tired.", "en"),
        ("She was cross and I was hurt.", "She was cross and I was there.", "en"),
        ("I couldn’t breathe.", "I could park.", "en"),
        ("I WISH you had asked.", "You asked.", "en"),
        ("Unhappy, yes.", "It happened, yes.", "en"),
        ("我很生气。", "我不生气。", "zh"),
        ("我不太高兴。", "他们挺高兴。", "zh"),
        ("我特别难过。", "我没难过。", "zh"),
        ("我有点烦。", "麻烦你了。", "zh"),
        ("他生气，我委屈。", "他生气，我走了。", "zh"),
        ("我不光累。", "我不累。", "zh"),
        ("希望有人问我一句。", "有人问我一句。", "zh"),
    ],
)
def test_denials_and_other_people(expressing: str, plain: str, language: Language) -> None:
    assert expresses(expressing, language)
    assert not expresses(plain, language)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_nothing_and_endless_repetition_are_read_at_once(language: Language) -> None:
    assert not expresses("", language)
    for unit in ("i so just ", "not ", "not sad ", "没难过", "我就是", "没心里", "miss", "\n"):
        assert not expresses(unit * 5_000, language)


def test_the_share_counts_answers_of_all_episodes_alike() -> None:
    short, long = episode("I'm sad."), episode("Fine.", "It rained.", "I miss him.")
    assert expressed_share([short, long]) == 0.5
    assert expressed_share([episode("我很难过。", "下雨了。", language="zh")]) == 0.5


def test_openings_and_missing_answers_do_not_count() -> None:
    assert expressed_share([episode("It rained.", "")]) == 0.0
    with pytest.raises(SetupError, match="at least one answer"):
        expressed_share([episode("")])

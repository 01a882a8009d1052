"""The benchmark measures what it says; its speeds are nobody's test."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from itertools import count

import pytest

from rlver_gym.envs.echo import EchoEnv
from rlver_gym.envs.registration import make_env
from rlver_gym.evals import bench
from rlver_gym.evals.bench import LENGTHS, replies


def test_replies_have_the_length_asked_for_and_differ() -> None:
    for language, lengths in LENGTHS.items():
        for characters in lengths.values():
            said = replies(language, characters, 50, seed=1)
            assert {len(text) for text in said} == {characters} and len(set(said)) == 50
            assert said != replies(language, characters, 50, seed=2)
    words = [len(text.split()) for text in replies("en", LENGTHS["en"]["30 words"], 200, seed=1)]
    assert 27 <= sum(words) / len(words) <= 33


def test_the_bare_environment_is_an_environment() -> None:
    env = EchoEnv(max_turns=2)
    assert env.reset(seed=1)[0] in env.observation_space
    assert env.step("a")[:4] == ("a", 0.0, False, False) and env.step("b")[:4] == ("b", 0.0, True, False)


def test_speed_counts_the_turns_that_were_played(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = count()
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(ticks)))
    said = ["a"] * 8
    assert bench._gymnasium(EchoEnv(max_turns=4), 4, said) == 8 / 2
    assert bench._gymnasium(EchoEnv(max_turns=2), 4, said) == 4 / 2
    env = make_env("RLVER-Vanilla-v0", personas="all", language="en", start_mood=10)
    assert bench._session(env, ["Get over it, that's life."] * env.settings.max_turns) == 1.0


def test_the_command_prints_one_document_with_a_ratio_a_row() -> None:
    words = [sys.executable, "-m", "rlver_gym", "bench", "embedded", "--turns", "800", "--json"]
    run = subprocess.run(words, capture_output=True, text=True, encoding="utf-8", check=True)
    rows = json.loads(run.stdout)["rows"]
    assert [(row["language"], row["reply"]) for row in rows] == [
        (lang, name) for lang, n in LENGTHS.items() for name in n
    ]
    for row in rows:
        assert row["ratio"] == row["bare"] / row["session"] and row["env"] > 0

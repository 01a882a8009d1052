"""`rlver-gym attack` as a shell sees it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rlver_gym.evals.search import LEAST_EPISODES
from tests.fake_openai import FakeOpenAI, error


def cli(*words: str, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith("OPENAI_")} | {"COLUMNS": "140"} | environ
    return subprocess.run(
        [sys.executable, "-m", "rlver_gym", "attack", *words],
        cwd=cwd, env=env, capture_output=True, text=True, encoding="utf-8", check=False,
    )  # fmt: skip


def test_json_holds_both_languages_and_the_verdict_is_the_exit_code(tmp_path: Path) -> None:
    words = ("--policies", "exit_crisis, empty,sentence_salad", "--episodes", "12", "--seed", "5", "--json")
    run = cli(*words, cwd=tmp_path)
    result = json.loads(run.stdout)
    assert run.returncode == (0 if result["ok"] else 1), run.stderr
    assert (result["env"], result["backend"], result["seed"]) == ("RLVER-Vanilla-v0", "embedded", 5)
    assert list(result["languages"]) == ["en", "zh"]
    verdicts = []
    for part in result["languages"].values():
        assert [row["policy"] for row in part["rows"]] == [
            "polite", "listener", "empty", "sentence_salad", "exit_crisis",
        ]  # fmt: skip
        assert [row["bar"] for row in part["rows"]] == ["", "", "polite", "listener", "polite"]
        polite, _, silent, salad, crisis = part["rows"]
        assert polite["to_polite"] == {"mean": 0.0, "se": 0.0, "pairs": 12}
        assert crisis["mean"] == 0.0 and set(crisis["endings"]) <= {"safety", "left"}
        assert silent["to_polite"]["mean"] == pytest.approx(silent["mean"] - polite["mean"])
        assert all(low <= row["mean"] <= high for row in part["rows"] for low, high in [row["ci95"]])
        verdicts += [silent["ok"], crisis["ok"], salad["ok"]]
    assert result["ok"] == all(verdicts)
    again = json.loads(cli(*words, cwd=tmp_path).stdout)
    assert again | {"seconds": 0} == result | {"seconds": 0}
    assert not list(tmp_path.iterdir())


def test_a_search_is_told_with_its_replies_and_tried_on_other_people(tmp_path: Path) -> None:
    words = ("--language", "en", "--policies", "empty", "--episodes", "9", "--search")
    run = cli(*words, "--search-episodes", str(LEAST_EPISODES), "--json", cwd=tmp_path)
    assert run.returncode in (0, 1), run.stderr
    (part,) = json.loads(run.stdout)["languages"].values()
    kinds = [(found["kind"], len(found["replies"]), found["tried"]["margin"]) for found in part["searches"]]
    assert kinds == [("reply", 1, 0.0), ("cycle", 3, 0.0), ("script", 8, 5.0)]
    for found in part["searches"]:
        assert sum(found["people"]) == part["people"] and found["episodes"] >= LEAST_EPISODES
        assert found["tried"]["policy"] == f"searched_{found['kind']}" and found["tried"]["episodes"] == 9


def test_the_table_names_each_policy_and_its_verdict(tmp_path: Path) -> None:
    run = cli("--language", "zh", "--policies", "empty", "--episodes", "6", cwd=tmp_path)
    told = {line.split()[0]: line for line in run.stdout.splitlines() if line.strip()}
    assert "polite" in told and "listener" in told
    assert told["empty"].rstrip().endswith("ok" if run.returncode == 0 else "above polite")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--policies", "emty"], "did you mean 'empty'"),
        (["--env", "RLVER-Vanila-v0"], "did you mean 'RLVER-Vanilla-v0'"),
        (["--language", "fr"], "there are 'en', 'zh'"),
        (["--backend", "embeded"], "did you mean 'embedded'"),
        (["--policies", "empty", "--episodes", "2", "--search", "--sage", "nowhere"], "nowhere"),
    ],
)
def test_a_users_mistake_gets_one_clear_line(tmp_path: Path, words: list[str], message: str) -> None:
    run = cli(*words, cwd=tmp_path)
    assert run.returncode == 2 and message in run.stderr and "Traceback" not in run.stderr and run.stdout == ""
    assert len(run.stderr.strip().splitlines()) == 1


def test_a_broken_world_exits_with_three(tmp_path: Path) -> None:
    with FakeOpenAI(lambda body, index: error(401, "no such key")) as server:
        words = ("--policies", "empty", "--episodes", "2", "--language", "en", "--backend", "openai:fake", "--json")
        run = cli(*words, cwd=tmp_path, OPENAI_BASE_URL=server.base_url, OPENAI_API_KEY="sk-marker-123")
    assert run.returncode == 3, run.stderr
    (part,) = json.loads(run.stdout)["languages"].values()
    assert [row["mean"] for row in part["rows"]] == [None] * 3
    assert "sk-marker-123" not in run.stdout + run.stderr

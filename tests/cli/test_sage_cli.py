"""`rlver-gym sage` as a shell sees it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.evals.test_sage import dialogue, profile, rows, write
from tests.fake_openai import FakeOpenAI, error

FIELDS = [
    "file", "dialogue_id", "persona_id", "turn", "recorded_change", "predicted_change", "predicted_score",
]  # fmt: skip


def cli(*words: str | Path, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith("OPENAI_")} | {"COLUMNS": "100"} | environ
    return subprocess.run(
        [sys.executable, "-m", "rlver_gym", "sage", *map(str, words)],
        cwd=cwd, env=env, capture_output=True, text=True, encoding="utf-8", check=False,
    )  # fmt: skip


def files(folder: Path) -> tuple[Path, Path, Path]:
    """A result file, the same as a table, and the people."""
    people = [("ada", 6, 0), ("bo", 6, 1), ("cy", 2, 2), ("di", 2, 3)]
    records = [dialogue(name, [40, 45, 35, 45], need=need, start=start, tenth=True) for name, need, start in people]
    table = [
        row
        for record, (_, need, _) in zip(records, people, strict=True)
        for row in rows(record, policy="gpt", need=need)
    ]
    return (
        write(folder / "gpt_result.jsonl.gz", records),
        write(folder / "table.jsonl", table),
        write(folder / "people.jsonl", [profile(name, need) for name, need, _ in people]),
    )


@pytest.mark.sage
def test_score_prints_what_was_released(sage: Path, tmp_path: Path) -> None:
    results = sorted((sage / "results_dev").glob("*.gz"))
    run = cli("score", *results, "--json", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == json.loads((sage / "results_dev" / "expected.json").read_text(encoding="utf-8"))
    words = cli("score", *results, cwd=tmp_path).stdout
    assert "gpt-4.1_result.jsonl" in words and "65.8" in words and "19.2" in words


def test_score_of_a_plain_file(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.jsonl", [dialogue("ada", [40, 50]), dialogue("bo", [40, 5])])
    run = cli("score", path, "--json", cwd=tmp_path)
    assert json.loads(run.stdout) == {"mine.jsonl": {"n": 2, "score": 27.5, "success": 0, "failure": 1}}


def test_replay_writes_a_row_per_scored_reply_and_prints_how_far_it_agrees(tmp_path: Path) -> None:
    result, table, people = files(tmp_path)
    run = cli("replay", result, "--backend", "embedded", "--out", "new/a.jsonl", "--json", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    metrics = json.loads(run.stdout)
    assert (metrics["backend"], metrics["rows"], metrics["faults"]) == ("embedded", 12, {})
    assert metrics.keys() >= {"r", "spearman", "sign_agreement", "r_turn_1", "r_policies", "spearman_policies"}
    assert isinstance(metrics["exchange_r"], float)
    predictions = [json.loads(line) for line in (tmp_path / "new" / "a.jsonl").read_text(encoding="utf-8").splitlines()]
    assert all(list(row) == FIELDS for row in predictions)
    assert [(row["file"], row["persona_id"], row["turn"]) for row in predictions[2:4]] == [
        ("gpt_result.jsonl", "ada", 3), ("gpt_result.jsonl", "bo", 1),
    ]  # fmt: skip
    known: list[str | Path] = ["--profiles", people]
    for name, more in (("b", known), ("c", known[:0])):
        again = cli("replay", table, *more, "--backend", "embedded", "--out", f"{name}.jsonl", cwd=tmp_path)
        assert again.returncode == 0 and "exchange r" in again.stdout
    one, other = ((tmp_path / f"{name}.jsonl").read_bytes() for name in "bc")
    assert one == other and one.count(b'"file":"gpt"') == 12
    same = ("turn", "recorded_change", "predicted_change", "predicted_score")
    assert [[json.loads(line)[key] for key in same] for line in one.splitlines()] == [
        [row[key] for key in same] for row in predictions
    ]
    assert "endings" in metrics


def test_a_users_mistake_gets_one_clear_line(tmp_path: Path) -> None:
    result, table, people = files(tmp_path)
    before = sorted(tmp_path.iterdir())
    other = write(tmp_path / "other.jsonl", [profile("zoe")])
    cases: list[tuple[list[str | Path], str]] = [
        (["replay", result, "--backend", "embedded", "--out", people], "this exists; name a new file"),
        (["replay", table, "--backend", "openai:x", "--out", "x.jsonl"], "does not say who the people are"),
        (["replay", table, "--profiles", other, "--backend", "embedded", "--out", "x.jsonl"], "unknown persona 'ada'"),
        (["replay", "none.jsonl", "--backend", "embedded", "--out", "x.jsonl"], "none.jsonl: cannot be read"),
        (["score", people, "--json"], "only a result file has a score"),
    ]
    for words, message in cases:
        run = cli(*words, cwd=tmp_path, OPENAI_API_KEY="none")
        assert run.returncode == 2 and message in run.stderr and run.stdout == "", (words, run.stderr)
        assert len(run.stderr.strip().splitlines()) == 1
    assert sorted(tmp_path.iterdir()) == sorted([*before, other]), "nothing is left behind"


def test_a_model_can_be_the_user(tmp_path: Path) -> None:
    result, table, people = files(tmp_path)
    answer = json.dumps({"content": "c", "fit": "f", "thought": "t", "feeling": "f", "change": 3})
    words = ("--backend", "openai:fake", "--json")
    with FakeOpenAI(lambda body, index: answer) as server:
        there = {"OPENAI_BASE_URL": server.base_url}
        run = cli("replay", table, "--profiles", people, *words, "--out", "a.jsonl", cwd=tmp_path, **there)
        assert len(server.requests) == 24
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["backend"] == "openai:fake"
    predictions = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["predicted_change"] for row in predictions] == [3] * 12
    with FakeOpenAI(lambda body, index: error(401, "no such key")) as server:
        there = {"OPENAI_BASE_URL": server.base_url}
        run = cli("replay", result, *words, "--out", "b.jsonl", cwd=tmp_path, **there)
    assert run.returncode == 3 and json.loads(run.stdout)["faults"] == {"RequestFault": 8}
    assert json.loads(run.stdout)["r"] is None and json.loads(run.stdout)["missing"] == 12

"""The commands as a shell sees them: stdout, stderr, exit codes, files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rlver_gym.cli.live import write_files
from rlver_gym.rollouts.store import EpisodeStore, read_episodes
from tests.fake_openai import FakeOpenAI, error
from tests.people import FOLDER


def cli(*words: str, cwd: Path, stdin: str = "", **environ: str) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith("OPENAI_")} | {"COLUMNS": "100"} | environ
    return subprocess.run(
        [sys.executable, "-m", "rlver_gym", *words],
        cwd=cwd, env=env, input=stdin, capture_output=True, text=True, encoding="utf-8", check=False,
    )  # fmt: skip


def test_demo_shows_moods_and_writes_two_files(tmp_path: Path) -> None:
    run = cli("demo", "--seed", "3", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    (episode,) = read_episodes(tmp_path / "rlver-demo" / "episodes.jsonl")
    for turn in episode.turns:
        assert turn.said in run.stdout and turn.user in run.stdout
        assert f"{turn.mood:>3}" in run.stdout
    report = (tmp_path / "rlver-demo" / "report.html").read_text(encoding="utf-8")
    assert episode.persona_name in report and "http:" not in report and "https:" not in report
    again = cli("demo", "--seed", "3", cwd=tmp_path)
    assert again.returncode == 0 and (tmp_path / "rlver-demo-2" / "report.html").exists()


def test_json_is_one_document_and_nothing_else(tmp_path: Path) -> None:
    demo = cli("demo", "--json", "--out", "d", cwd=tmp_path)
    assert json.loads(demo.stdout)["turns"] and demo.returncode == 0
    rollout = cli("rollout", "--episodes", "6", "--policy", "polite", "--json", "--out", "r", cwd=tmp_path)
    metrics = json.loads(rollout.stdout)
    assert {
        "scored",
        "mean_final_mood",
        "success",
        "failure",
        "turns",
        "calls",
        "tokens",
        "seconds",
        "faults",
    } <= metrics.keys()
    assert (metrics["scored"], metrics["calls"], metrics["faults"]) == (6, 2 * metrics["turns"], {})
    episodes = list(read_episodes(tmp_path / "r" / "episodes.jsonl"))
    assert sum(e.final_mood for e in episodes) / 6 == pytest.approx(metrics["mean_final_mood"])
    assert json.loads((tmp_path / "r" / "summary.json").read_text(encoding="utf-8")) == metrics
    assert (tmp_path / "r" / "report.html").exists()


def test_equal_seeds_meet_equal_people_whatever_the_concurrency(tmp_path: Path) -> None:
    runs = [
        cli("rollout", "--episodes", "9", "--seed", "4", "--concurrency", n, "--json", "--out", f"r{n}", cwd=tmp_path)
        for n in ("1", "64")
    ]
    assert json.loads(runs[0].stdout)["mean_final_mood"] == json.loads(runs[1].stdout)["mean_final_mood"]
    one, many = ({e.id: e.moods for e in read_episodes(tmp_path / f"r{n}" / "episodes.jsonl")} for n in ("1", "64"))
    assert one == many and len(one) == 9


def test_out_must_be_new_unless_resumed(tmp_path: Path) -> None:
    whole = cli("rollout", "--episodes", "8", "--json", "--out", "a", cwd=tmp_path)
    part = cli("rollout", "--episodes", "3", "--json", "--out", "b", cwd=tmp_path)
    assert (whole.returncode, part.returncode) == (0, 0)
    refused = cli("rollout", "--episodes", "8", "--json", "--out", "b", cwd=tmp_path)
    assert refused.returncode == 2 and "not empty" in refused.stderr and refused.stdout == ""
    assert cli("rollout", "--episodes", "8", "--json", "--out", "b", "--resume", cwd=tmp_path).returncode == 0
    one, other = ({e.id: e.moods for e in read_episodes(tmp_path / d / "episodes.jsonl")} for d in "ab")
    assert one == other and len(one) == 8


def test_play_hides_moods_until_the_end(tmp_path: Path) -> None:
    replies = "What happened?\nAnd then?\n"
    words = ["--personas", str(FOLDER), "--person", "en-maya-lab", "--seed", "1", "--max-turns", "2", "--out", "p"]
    run = cli("play", *words, cwd=tmp_path, stdin=replies)
    assert run.returncode == 0, run.stderr
    (episode,) = read_episodes(tmp_path / "p" / "episodes.jsonl")
    assert [turn.said for turn in episode.turns] == ["What happened?", "And then?"]
    hidden, shown = run.stdout.split("what you could not see")
    for turn in episode.turns:
        assert turn.appraisal is not None
        assert turn.appraisal.thought not in hidden and turn.appraisal.thought in shown
    assert "█" not in hidden and episode.need_text not in hidden
    assert "█" in shown and episode.need_text in shown
    left = cli("play", "--seed", "1", cwd=tmp_path, stdin="hello\n")
    assert left.returncode == 130 and "Traceback" not in left.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["rollout", "--env", "RLVER-Vanila-v0"], "did you mean 'RLVER-Vanilla-v0'"),
        (["rollout", "--policy", "listner"], "did you mean 'listener"),
        (["rollout", "--policy", "embedded"], "unknown policy"),
        (["rollout", "--backend", "opnai:x"], "did you mean 'openai'"),
        (["rollout", "--language", "fr"], "there are 'en', 'zh'"),
        (["rollout", "--personas", "no/where.yaml"], "no/where.yaml"),
        (["demo", "--backend", "cassette:missing.jsonl"], "missing.jsonl"),
        (["personas", "show", "en-maya-lap", str(FOLDER)], "did you mean 'en-maya-lab'"),
        (["personas", "list", "--split", "dev"], "there are 'test', 'train'"),
        (["personas", "import", "missing.jsonl", "--out", "x.jsonl"], "missing.jsonl"),
    ],
)
def test_a_users_mistake_gets_one_clear_line(tmp_path: Path, words: list[str], message: str) -> None:
    run = cli(*words, cwd=tmp_path)
    assert run.returncode == 2, run.stderr
    assert message in run.stderr and "Traceback" not in run.stderr and run.stdout == ""
    assert len(run.stderr.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir()), "nothing is left behind"


@pytest.mark.parametrize("named", [True, False])
def test_one_environment_variable_moves_the_commands_to_a_model(tmp_path: Path, named: bool) -> None:
    def handler(body: dict[str, object], index: int) -> object:
        return json.dumps({"thought": "t", "feeling": "f", "change": 2, "message": f"Day {index}."})

    with FakeOpenAI(handler) as server:
        variables = {"OPENAI_BASE_URL": server.base_url} | ({"OPENAI_MODEL": "fake"} if named else {})
        run = cli("rollout", "--episodes", "2", "--json", cwd=tmp_path, **variables)
    assert run.returncode == 0, run.stderr
    metrics = json.loads(run.stdout)
    assert (metrics["backend"], metrics["scored"], metrics["calls"]) == ("openai:fake", 2, 32)
    assert metrics["tokens"] == 32 * 18 and metrics["rungs"] == {"json_schema": 16}


def test_an_endpoint_that_is_not_there_gets_one_clear_line(tmp_path: Path) -> None:
    run = cli("demo", cwd=tmp_path, OPENAI_BASE_URL="http://127.0.0.1:9/v1")
    assert run.returncode == 3 and "set OPENAI_MODEL" in run.stderr and "Traceback" not in run.stderr
    assert not list(tmp_path.iterdir())


def test_a_broken_world_exits_with_three_and_keeps_the_episodes(tmp_path: Path) -> None:
    with FakeOpenAI(lambda body, index: error(401, "no such key sk-marker-123")) as server:
        run = cli(
            "rollout", "--episodes", "2", "--json", "--out", "r", "--backend", "openai:fake",
            cwd=tmp_path, OPENAI_BASE_URL=server.base_url, OPENAI_API_KEY="sk-marker-123",
        )  # fmt: skip
    assert run.returncode == 3 and json.loads(run.stdout)["faults"] == {"RequestFault": 2}
    assert json.loads(run.stdout)["mean_final_mood"] is None
    episodes = list(read_episodes(tmp_path / "r" / "episodes.jsonl"))
    assert [(e.scored, e.reward) for e in episodes] == [(False, None)] * 2
    kept = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "r").iterdir())
    assert "no such key" in kept, "what the endpoint said is kept, but for the key"
    assert "sk-marker-123" not in run.stdout + run.stderr + kept


def test_personas_commands(tmp_path: Path) -> None:
    listed = json.loads(cli("personas", "list", "--json", cwd=tmp_path).stdout)
    counts = [sum(row["language"] == language for row in listed) for language in ("en", "zh")]
    assert counts[0] == counts[1] > 0
    page = cli("personas", "show", "zh-lin-team", str(FOLDER), cwd=tmp_path).stdout
    assert "林予安" in page and "发生了什么" in page
    checked = cli("personas", "check", str(FOLDER), "--json", cwd=tmp_path)
    report = json.loads(checked.stdout)
    assert (checked.returncode, report["people"], report["problems"]) == (0, 12, [])
    profile = {
        "id": "p1", "player": "* 姓名：甲乙\n* 年龄：30岁\n", "scene": "一件事。\n####隐藏主题:\n***你希望对方用心倾听",
        "task": "你希望对方用心倾听", "main_cha": "被动型", "cha_group": ["安静"],
    }  # fmt: skip
    (tmp_path / "in.jsonl").write_text(json.dumps(profile, ensure_ascii=False) + "\n", encoding="utf-8")
    assert cli("personas", "import", "in.jsonl", "--out", "out.jsonl", cwd=tmp_path).returncode == 0
    played = cli("rollout", "--personas", "out.jsonl", "--episodes", "2", "--json", cwd=tmp_path)
    assert json.loads(played.stdout)["scored"] == 2
    broken = json.loads((tmp_path / "out.jsonl").read_text(encoding="utf-8")) | {"hidden_need": "money"}
    (tmp_path / "out.jsonl").write_text(json.dumps(broken), encoding="utf-8")
    run = cli("personas", "check", "out.jsonl", "--json", cwd=tmp_path)
    (problem,) = json.loads(run.stdout)["problems"]
    assert (run.returncode, problem["persona"], problem["rule"], problem["field"]) == (1, "p1", "schema", "hidden_need")
    assert "out.jsonl, line 1: person 'p1': hidden_need" in problem["problem"]
    assert cli("personas", "list", "out.jsonl", cwd=tmp_path).returncode == 2


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "cp936"])
def test_chinese_prints_in_any_terminal(tmp_path: Path, encoding: str) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "rlver_gym", "demo", "--language", "zh"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"},
        capture_output=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr


def test_the_store_reads_back_what_it_wrote_and_drops_a_torn_line(tmp_path: Path) -> None:
    from tests.sample_episodes import samples

    episodes = samples()
    path, _ = write_files(episodes, tmp_path, title="t")
    assert list(read_episodes(path)) == list(episodes)
    with path.open("ab") as file:
        file.write(b'{"scenario": {"env_id": "x"')
    store = EpisodeStore(path)
    store.append(episodes[0])
    assert list(store) == [*episodes, episodes[0]]

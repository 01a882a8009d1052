"""SAGE's files are read and scored by its rule, and a replay sees what came before a reply and nothing else."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from rlver_gym.backends.base import SamplingConfig
from rlver_gym.backends.embedded import EmbeddedBackend
from rlver_gym.backends.scripted import Answer, ScriptedBackend
from rlver_gym.errors import PersonaError, RequestFault, SetupError, UnknownNameError
from rlver_gym.evals.replay import Prediction, Replayed, exchanged, pearson, replay, spearman, statistics
from rlver_gym.evals.sage import Dialogue, read_dialogues, score, score_files
from rlver_gym.types import Prompt
from rlver_gym.users.library import load_personas

Row = dict[str, Any]
NEEDS = {
    1: "you want a balanced analysis", 2: "you want advice that helps", 3: "you want to know why the others did it",
    4: "you want to be led to self-reflection", 5: "you want praise", 6: "you want to be listened to",
    7: "you want empathy", 8: "you want to hear that it was not your fault",
}  # fmt: skip
REPLIES = (
    "That sounds tiring. What happened next?",
    "You should make a plan and see a professional.",
    "Thank you for telling me. The tea with your brother stayed with me.",
    "Everything will be fine!",
    "Why did he leave before the tea was ready?",
)


def profile(name: str, need: int = 6) -> Row:
    return {
        "id": name,
        "player": f"Name: {name}\nAge: 41\nOccupation: potter",
        "scene": f"The kiln broke twice.\n#### Hidden theme:\n{NEEDS[need]}",
        "main_cha": "passive",
        "cha_group": ["calm"],
        "task": NEEDS[need],
        "first_talk": "The kiln broke again.",
    }


def dialogue(name: str, moods: Sequence[int], *, need: int = 6, start: int = 0, tenth: bool = False) -> Row:
    """One line of a result file with a mood per message of the user; `tenth` adds a reply that nobody answers."""
    history: list[Row] = []
    for turn, mood in enumerate(moods):
        user: Row = {"role": "user", "content": f"{name} {turn}: the kiln, my brother, the tea.", "emotion-point": mood}
        if turn:
            user |= {"planning": f"p{mood}", "thinking": f"t{mood}"}
        history += [user, {"role": "assistant", "content": REPLIES[(start + turn) % len(REPLIES)]}]
    record = {key: value for key, value in profile(name, need).items() if key not in ("main_cha", "cha_group")}
    history = history if tenth else history[:-1]
    return record | {"character": "passive", "emo_point": moods[-1], "history": history}


def rows(record: Row, *, policy: str, need: int, primary: bool = True) -> list[Row]:
    """The same dialogue as rows of a table."""
    history = record["history"]
    scored = [*zip(history[::2], history[1::2], history[2::2], strict=False)]
    return [
        {
            "dialogue_id": f"{policy}|{record['id']}", "persona_id": record["id"], "need_id": need,
            "character": "passive", "traits": ["calm"], "primary": primary, "policy": policy, "turn": turn,
            "emo_before": user["emotion-point"], "user_last": user["content"], "reply": reply["content"],
            "change": after["emotion-point"] - user["emotion-point"], "emo_after": after["emotion-point"],
            "user_next": after["content"], "goodbye": False, "end": None, "n_scored": len(scored),
            "final": history[::2][-1]["emotion-point"],
        }
        for turn, (user, reply, after) in enumerate(scored, start=1)
    ]  # fmt: skip


def write(path: Path, records: Iterable[Mapping[str, Any]]) -> Path:
    text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def some(tmp_path: Path) -> list[Dialogue]:
    people = [("ada", 6, 0), ("bo", 6, 1), ("cy", 6, 2), ("di", 2, 3), ("ed", 2, 4), ("flo", 5, 0)]
    records = [dialogue(name, [40, 45, 35, 40, 50], need=need, start=start) for name, need, start in people]
    return read_dialogues([write(tmp_path / "some.jsonl", records)])


def run(dialogues: Sequence[Dialogue], backend: Any = None, **settings: Any) -> list[Replayed]:
    return asyncio.run(replay(dialogues, backend or EmbeddedBackend(), **settings))


def predicted(replayed: Iterable[Replayed]) -> list[tuple[int | None, float | None]]:
    return [(row.predicted_change, row.predicted_score) for one in replayed for row in one.predictions]


def judge(change: int, **more: Any) -> str:
    return json.dumps({"content": "c", "fit": "f", "thought": "t", "feeling": "f", "change": change} | more)


@pytest.mark.sage
def test_the_released_results_are_reproduced(sage: Path) -> None:
    folder = sage / "results_dev"
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    assert score_files(sorted(folder.glob("*.gz"))) == expected


def test_a_score_counts_last_moods_and_rounds_a_half_up(tmp_path: Path) -> None:
    finals = [3, *[0] * 19]
    path = write(tmp_path / "a.jsonl", [dialogue("ada", [40, mood]) for mood in finals])
    assert round(3 / 20, 1) == 0.1, "the control: rounding as floats do gets it wrong"
    assert score(path) == {"n": 20, "score": 0.2, "success": 0, "failure": 20}
    edges = [dialogue("ada", [40, *moods], tenth=True) for moods in ([100], [99], [10], [9, 9])]
    assert score(write(tmp_path / "b.jsonl.gz", edges)) == {"n": 4, "score": 54.5, "success": 1, "failure": 1}


def test_a_mood_may_be_written_as_text_and_a_file_may_be_plain_or_gzipped(tmp_path: Path) -> None:
    record = dialogue("ada", [40, 45, 55])
    texts = json.loads(json.dumps(record))
    for message in texts["history"][::2]:
        message["emotion-point"] = str(message["emotion-point"])
    plain, packed = write(tmp_path / "a.jsonl", [record]), write(tmp_path / "b.jsonl.gz", [texts])
    assert score(plain) == score(packed)
    assert score_files([plain, packed]).keys() == {"a.jsonl", "b.jsonl"}
    assert run(read_dialogues([plain]))[0].predictions[1].recorded_change == 10


def test_the_tenth_reply_has_no_score_and_is_never_read(tmp_path: Path) -> None:
    moods = [40, 45, 50, 45, 50, 55, 60, 55, 60, 65]
    with_tenth = read_dialogues([write(tmp_path / "a.jsonl", [dialogue("ada", moods, tenth=True)])])
    without = read_dialogues([write(tmp_path / "b.jsonl", [dialogue("ada", moods)])])
    assert len(with_tenth[0].replies) == 9
    assert with_tenth[0].replies == without[0].replies


BROKEN: list[tuple[Row | str, str]] = [
    ("{", "line 1: not JSON"),
    ("[]", "must hold one object"),
    ("", "no dialogues"),
    ({"history": []}, "list of messages"),
    (
        {"id": "ada", "history": [{"role": "assistant", "content": "Hi."}]},
        "history[0] must be a message of role 'user'",
    ),
    (
        {"id": "ada", "history": [{"role": "user", "content": "Hi."}]},
        "'emotion-point' must be a whole number, not None",
    ),
    ({"history": [{"role": "user", "content": "Hi.", "emotion-point": 4.5}]}, "whole number, not 4.5"),
]


@pytest.mark.parametrize(("record", "message"), BROKEN)
def test_a_broken_file_gets_words_that_name_the_place(tmp_path: Path, record: Row | str, message: str) -> None:
    path = tmp_path / "a.jsonl"
    text = record if isinstance(record, str) else json.dumps(profile("ada") | record)
    path.write_text(text, encoding="utf-8")
    for read in (score, lambda path: read_dialogues([path])):
        with pytest.raises(SetupError) as error:
            read(path)
        assert message in str(error.value) and str(path) in str(error.value)


def test_what_cannot_be_read_or_told_apart_is_refused(tmp_path: Path) -> None:
    good = write(tmp_path / "a.jsonl", [dialogue("ada", [40, 45])])
    table = write(tmp_path / "t.jsonl", rows(dialogue("ada", [40, 45, 50]), policy="p", need=6))
    packed = write(tmp_path / "a.jsonl.gz", [dialogue("ada", [40, 45])])
    (tmp_path / "cut.gz").write_bytes(packed.read_bytes()[:40])
    stray = write(tmp_path / "stray.jsonl", [{"id": "ada"}])
    gap = write(tmp_path / "gap.jsonl", rows(dialogue("ada", [40, 45, 50]), policy="p", need=6)[1:])
    odd = write(tmp_path / "odd.jsonl", [dialogue("ada", [40, 45]) | {"character": "cheerful"}])
    cases: list[tuple[Any, type[Exception], str]] = [
        (lambda: score(tmp_path / "none.jsonl"), SetupError, "none.jsonl: cannot be read"),
        (lambda: score(tmp_path / "cut.gz"), SetupError, "cut.gz: cannot be read"),
        (lambda: score(table), SetupError, "only a result file has a score"),
        (lambda: score_files([good, packed]), SetupError, "share the name 'a.jsonl'"),
        (lambda: read_dialogues([good, packed]), SetupError, "share the name 'a.jsonl'"),
        (lambda: read_dialogues([stray]), SetupError, "neither a dialogue (no 'history') nor a row"),
        (lambda: read_dialogues([table]), SetupError, "does not say who the people are"),
        (lambda: read_dialogues([gap], sketch=True), SetupError, "no single row for turn 1"),
        (lambda: read_dialogues([table], {}), UnknownNameError, "unknown persona 'ada'"),
        (lambda: read_dialogues([odd]), PersonaError, "odd.jsonl, line 1: profile 'ada': field 'main_cha'"),
    ]
    for act, kind, message in cases:
        with pytest.raises(kind) as error:
            act()
        assert message in str(error.value)
    assert len(read_dialogues([good])) == 1 == len(read_dialogues([table], sketch=True))


def test_equal_people_in_one_file_are_told_apart(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", [dialogue("ada", [40, 45]), dialogue("ada", [40, 35]), dialogue("bo", [40, 45])])
    assert [one.id for one in read_dialogues([path])] == ["ada", "ada#2", "bo"]
    assert [one.person.id for one in read_dialogues([path])] == ["ada", "ada", "bo"]


def test_a_table_says_the_same_as_a_result_file_and_its_policy_is_the_file(tmp_path: Path) -> None:
    records = [dialogue(f"p{need}", [40, 45, 35, 45], need=need, start=need) for need in NEEDS]
    result = read_dialogues([write(tmp_path / "gpt.jsonl.gz", records)])
    table = [row for need, record in zip(NEEDS, records, strict=True) for row in rows(record, policy="gpt", need=need)]
    mixed = write(tmp_path / "table.jsonl.gz", table[::-1])
    listed = write(tmp_path / "people.jsonl", [profile(f"p{need}", need) for need in NEEDS])
    people = {person.id: person for person in load_personas(listed)}
    for other in (read_dialogues([mixed], people), read_dialogues([mixed], sketch=True)):
        other = sorted(other, key=lambda one: one.person.id)
        assert {one.file for one in other} == {"gpt"}
        assert [one.person.hidden_need for one in other] == [one.person.hidden_need for one in result]
        assert [one.replies for one in other] == [one.replies for one in result]
        assert predicted(run(other)) == predicted(run(result))
    assert len({one.person.hidden_need for one in result}) == 8


def test_the_user_is_asked_with_what_came_before_the_reply_alone(tmp_path: Path) -> None:
    (one,) = read_dialogues([write(tmp_path / "a.jsonl", [dialogue("ada", [40, 45, 35, 45], tenth=True)])])
    backend = ScriptedBackend(lambda prompt, sampling: judge(2))
    run([one], backend)
    assert [prompt.name for prompt in backend.prompts] == ["appraise"] * 3
    for turn, prompt in enumerate(backend.prompts, start=1):
        seen = prompt.variables
        spoken = [text for reply in one.replies[: turn - 1] for text in (reply.heard, reply.said)]
        assert [message["content"] for message in seen["history"]] == [*spoken, one.replies[turn - 1].heard]
        assert (seen["reply"], seen["turn"], seen["max_turns"]) == (one.replies[turn - 1].said, turn, 9)
        assert (seen["mood"], seen["moods"]) == ((40, 42, 44)[turn - 1], (40, 42, 44)[:turn])
        words = " ".join(message["content"] for message in prompt.messages)
        assert one.replies[turn - 1].said in words
    assert backend.reports == [True] * 3


def test_in_the_open_loop_the_own_mood_is_fed_back_past_the_end(tmp_path: Path) -> None:
    (one,) = read_dialogues([write(tmp_path / "a.jsonl", [dialogue("ada", [40, *[35] * 9], tenth=True)])])
    for change, moods in ((10, (40, 50, 60, 70, 80, 90, 100, 100, 100)), (-10, (40, 30, 20, 10, 0, 0, 0, 0, 0))):
        backend = ScriptedBackend(lambda prompt, sampling, change=change: judge(change))  # type: ignore[misc]
        (replayed,) = run([one], backend)
        assert [prompt.variables["mood"] for prompt in backend.prompts] == list(moods)
        assert [row.predicted_change for row in replayed.predictions] == [change] * 9


def _scrambled(row: Row) -> Row:
    return row | {
        "user_next": "x", "emo_after": 3, "goodbye": True, "end": "x", "n_scored": 1, "final": 1, "change": -7,
        "planning": "x", "thinking": "x",
    }  # fmt: skip


def test_scrambling_every_later_field_changes_no_prediction(tmp_path: Path) -> None:
    table = [
        row
        for name, need, start in (("ada", 6, 0), ("bo", 2, 2), ("cy", 5, 1))
        for row in rows(dialogue(name, [40, 45, 35, 45, 55], need=need, start=start), policy="p", need=need)
    ]

    def outcome(rows: list[Row]) -> list[Replayed]:
        return run(read_dialogues([write(tmp_path / "t.jsonl", rows)], sketch=True))

    before = predicted(outcome(table))
    after = outcome([_scrambled(row) for row in table])
    assert predicted(after) == before
    assert {row.recorded_change for one in after for row in one.predictions} == {-7}
    assert predicted(outcome([row | {"reply": row["reply"][::-1]} for row in table])) != before
    moods = [row | {"emo_before": row["emo_before"] if row["turn"] == 1 else 90} for row in table]
    assert predicted(outcome(moods)) == predicted(outcome(table))


def test_scrambling_later_fields_of_a_result_file_changes_no_prediction(tmp_path: Path) -> None:
    record = dialogue("ada", [40, 45, 35, 45], tenth=True)
    other = json.loads(json.dumps(record)) | {"emo_point": 3, "emo_state": "x", "target": "x"}
    for message in other["history"][2::2]:
        message |= {"planning": "x", "thinking": "x", "emotion-point": message["emotion-point"] + 20}
    other["history"][-2]["content"] = other["history"][-1]["content"] = "x"
    one, two = (read_dialogues([write(tmp_path / f"{i}.jsonl", [r])]) for i, r in enumerate((record, other)))
    assert predicted(run(one)) == predicted(run(two))
    other["history"][1]["content"] = "x"
    three = read_dialogues([write(tmp_path / "3.jsonl", [other])])
    assert predicted(run(one)) != predicted(run(three))


def test_replies_are_exchanged_among_equal_turns_and_needs_and_nothing_else_moves(tmp_path: Path) -> None:
    before = some(tmp_path)
    after = exchanged(before, seed=1)

    def kinds(dialogues: list[Dialogue]) -> Counter[tuple[int, str, str]]:
        return Counter(
            (turn, one.person.hidden_need, reply.said) for one in dialogues for turn, reply in enumerate(one.replies)
        )

    assert kinds(after) == kinds(before)
    for old, new in zip(before, after, strict=True):
        assert (old.file, old.id, old.person) == (new.file, new.id, new.person)
        for mine, given in zip(old.replies, new.replies, strict=True):
            assert (mine.heard, mine.mood, mine.change) == (given.heard, given.mood, given.change)
            assert (mine.said == given.said) == (old.id == "flo"), "who is alone with a need keeps the own reply"
    assert exchanged(before, seed=1) == after != exchanged(before, seed=2)


def test_judges_do_not_mix_in_the_exchange(tmp_path: Path) -> None:
    pairs = [("p", True), ("q", True), ("p2", False), ("q2", False)]
    table = [
        row
        for index, (policy, primary) in enumerate(pairs)
        for row in rows(dialogue("ada", [40, 45, 50], start=index), policy=policy, need=6, primary=primary)
    ]
    dialogues = read_dialogues([write(tmp_path / "t.jsonl", table)], sketch=True)
    main = [one for one in dialogues if one.primary]
    assert len(main) == 2 and exchanged(main, 3) == [one for one in exchanged(dialogues, 3) if one.primary]
    numbers = statistics(run(dialogues), run(exchanged(dialogues, 3)))
    assert numbers["primary"] == statistics(run(main), run(exchanged(main, 3)))
    assert (numbers["rows"], numbers["primary"]["rows"]) == (8, 4)


def test_a_failure_leaves_its_row_without_a_prediction(tmp_path: Path) -> None:
    def broken_at_second(prompt: Prompt, sampling: SamplingConfig) -> Answer:
        return RequestFault("no") if prompt.variables["turn"] == 2 else judge(3)

    dialogues = some(tmp_path)
    replayed = run(dialogues, ScriptedBackend(broken_at_second))
    for one in replayed:
        assert [row.predicted_change for row in one.predictions] == [3, None, None, None]
        assert [row.predicted_score for row in one.predictions] == [3, None, None, None]
        assert one.faults == ("RequestFault",)
    numbers = statistics(replayed, replayed)
    assert numbers["missing"] == 3 * len(dialogues)
    assert numbers["r"] is numbers["r_turn_1"] is numbers["exchange_r"] is numbers["sign_agreement"] is None


def test_an_unreadable_answer_is_asked_for_again_and_never_guessed(tmp_path: Path) -> None:
    dialogues = some(tmp_path)[:1]
    backend = ScriptedBackend(["hm", judge(4), "hm", "hm", "hm"])
    (one,) = run(dialogues, backend)
    assert [row.predicted_change for row in one.predictions] == [4, None, None, None]
    assert one.faults == ("UnusableAnswerFault",)
    assert backend.reports == [False, True, False, False, False]
    complaints = [prompt.variables["complaint"] for prompt in backend.prompts]
    assert not complaints[0] and "change" in complaints[1] and not complaints[2]


def test_the_score_of_the_embedded_user_alone_is_read(tmp_path: Path) -> None:
    dialogues = some(tmp_path)[:1]

    def scores(name: str, **more: Any) -> set[tuple[int | None, float | None]]:
        return set(predicted(run(dialogues, ScriptedBackend(lambda prompt, sampling: judge(5, **more), name=name))))

    assert scores("embedded", score=-137) == {(5, -1.37)}
    assert scores("embedded") == {(5, 5.0)}
    assert scores("openai:x", score=-137) == {(5, 5.0)}


def test_how_many_at_a_time_has_no_bearing(tmp_path: Path) -> None:
    dialogues = some(tmp_path)
    assert run(dialogues, concurrency=1) == run(dialogues, concurrency=5)


def test_correlations_equal_those_of_scipy() -> None:
    generator = np.random.default_rng(5)
    for size in (2, 5, 400):
        a, b = generator.normal(size=size).round(1), generator.integers(-2, 3, size=size)
        b[0] = b[1] + 1
        a[0] = a[1] + 1
        assert pearson(a, b) == pytest.approx(stats.pearsonr(a, b).statistic)
        assert spearman(a, b) == pytest.approx(stats.spearmanr(a, b).statistic)
    assert pearson([1], [2]) is pearson([1, 1], [1, 2]) is spearman([1, 2], [3, 3]) is spearman([], []) is None


def test_statistics_are_what_they_are_called(tmp_path: Path) -> None:
    people = some(tmp_path)
    generator = np.random.default_rng(7)
    replayed = []
    for index, one in enumerate(people):
        file = f"policy {index // 2}"
        predictions = []
        for turn, reply in enumerate(one.replies, start=1):
            score = round(reply.change + float(generator.normal()) * 4 + index, 2)
            row = Prediction(
                file=file, dialogue_id=one.id, persona_id=one.id, turn=turn, recorded_change=reply.change + index // 2,
                predicted_change=round(score), predicted_score=score,
            )  # fmt: skip
            predictions.append(row)
        replayed.append(Replayed(one, tuple(predictions)))
    numbers = statistics(replayed, replayed[:3] + run(people[3:]))
    kept = [row for one in replayed for row in one.predictions]
    x, y = np.array([row.predicted_score for row in kept]), np.array([row.recorded_change for row in kept])
    turns = np.array([row.turn for row in kept])
    assert numbers["r"] == pytest.approx(stats.pearsonr(x, y).statistic)
    assert numbers["spearman"] == pytest.approx(stats.spearmanr(x, y).statistic)
    assert numbers["r_turn_1"] == pytest.approx(stats.pearsonr(x[turns == 1], y[turns == 1]).statistic)
    means = x.reshape(3, 8).mean(axis=1), y.reshape(3, 8).mean(axis=1)
    assert numbers["policies"] == 3
    assert numbers["r_policies"] == pytest.approx(stats.pearsonr(*means).statistic)
    assert numbers["spearman_policies"] == pytest.approx(stats.spearmanr(*means).statistic)
    changes = np.array([row.predicted_change for row in kept])
    assert numbers["sign_agreement"] == np.mean(np.sign(changes) == np.sign(y))
    assert numbers["exchange_r"] != numbers["r"]
    assert "primary" not in numbers


def test_endings_count_the_first_crossing(tmp_path: Path) -> None:
    records = [dialogue(name, [40, 45, 35]) for name in ("ada", "bo", "cy", "di")]
    dialogues = read_dialogues([write(tmp_path / "a.jsonl", records)])
    scripts = {"ada": [10] * 9, "bo": [-10] * 9, "cy": [-10, -10, -10, -1, 10, 10, 10, 10, 10], "di": [1] * 9}
    replayed = [
        Replayed(
            one,
            tuple(
                Prediction(
                    file="a",
                    dialogue_id=one.id,
                    persona_id=one.id,
                    turn=turn,
                    recorded_change=-5,
                    predicted_change=change,
                    predicted_score=change,
                )
                for turn, change in enumerate(scripts[one.id], start=1)
            ),
        )
        for one in dialogues
    ]
    numbers = statistics(replayed, replayed)
    assert numbers["endings"] == {"cap": 0.25, "gone": 0.5, "content": 0.25}
    assert numbers["final_sd"] == pytest.approx(np.std([100, 0, 9, 49], ddof=1))
    assert numbers["recorded_endings"] == {"cap": 0.0, "gone": 1.0, "content": 0.0}
    assert numbers["recorded_final_sd"] == 0


@pytest.mark.sage
def test_the_table_and_the_result_file_of_a_policy_agree(sage: Path) -> None:
    people = {person.id: person for person in load_personas(sage / "profiles_dev.jsonl")}
    files = read_dialogues([sage / "results_dev" / "gpt-4.1_result.jsonl.gz"])
    table = [one for one in read_dialogues([sage / "dev.jsonl.gz"], people) if one.primary and one.file == "gpt-4.1"]
    assert [one.person.id for one in table] == [one.person.id for one in files]
    assert sum(len(one.replies) for one in table) == 520
    assert predicted(run(table)) == predicted(run(files))
    changes = [[reply.change for reply in one.replies] for one in table]
    assert changes == [[reply.change for reply in one.replies] for one in files]


@pytest.mark.sage
def test_the_recorded_endings_are_those_of_the_data(sage: Path) -> None:
    table = [one for one in read_dialogues([sage / "dev.jsonl.gz"], sketch=True) if one.primary]
    backend = ScriptedBackend(lambda prompt, sampling: judge(0))
    numbers = statistics(replayed := run(table, backend), replayed)
    assert (numbers["dialogues"], numbers["rows"], numbers["policies"]) == (540, 4265, 9)
    assert numbers["recorded_endings"] == pytest.approx({"cap": 0.48, "gone": 0.36, "content": 0.16}, abs=0.01)
    assert 30 <= numbers["recorded_final_sd"] <= 38 and numbers["final_sd"] == 0 and numbers["r"] is None


@pytest.mark.sage
def test_real_dialogues_are_scrambled_without_a_trace(sage: Path, tmp_path: Path) -> None:
    with gzip.open(sage / "dev.jsonl.gz", "rt", encoding="utf-8") as file:
        table = [row for row in map(json.loads, file) if row["policy"] == "gpt-4.5"]
    people = {person.id: person for person in load_personas(sage / "profiles_dev.jsonl")}
    one, other = (
        read_dialogues([write(tmp_path / f"{name}.jsonl.gz", map(change, table))], people)
        for name, change in (("a", dict), ("b", _scrambled))
    )
    assert predicted(run(one)) == predicted(run(other)) and len(table) == 506

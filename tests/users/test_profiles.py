"""Profiles in the released form: read as people of ours, written, and read back."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, get_args

import pytest
from typer.testing import CliRunner

from rlver_gym.cli.personas import app
from rlver_gym.errors import PersonaError
from rlver_gym.prompts import render
from rlver_gym.types import Appraisal
from rlver_gym.users.library import load_personas
from rlver_gym.users.persona import HiddenNeed, Persona
from rlver_gym.users.profiles import is_profile, persona_from_profile, profile_of
from tests.people import FOLDER, PEOPLE

ZH: dict[str, Any] = {
    "id": "p-1",
    "player": "* 姓名：苏小满\n* 年龄：27岁\n* 性别：女性\n* 职业：花店店员\n\n* 说话风格：\n慢，爱打比方。",
    "scene": (
        "背景故事：\n店里的鱼缸碎了，老板以为是她碰的。\n隐藏主题：见最后。\n隐藏主题贴合时她会放松。\n"
        "####隐藏主题:\n***你希望对方用心倾听你的委屈"
    ),
    "task": "你希望对方用心倾听你的委屈",
    "main_cha": "被动型",
    "cha_group": ["内向", "谨慎"],
    "first_talk": "鱼缸的事，我到现在还想着。",
    "topic": "店里的鱼缸",
}
EN: dict[str, Any] = {
    "id": "p-2",
    "player": "Name: Sue Small\nAge: 27\nGender: Female\nOccupation: florist",
    "scene": "Background: the fish tank broke.\n## Hidden theme:\nYou want the other to listen to you with patience",
    "main_cha": "Avoidant",
    "cha_group": ["shy", "careful"],
    "topic": "the fish tank",
}


def without(record: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in names}


def test_a_chinese_profile_becomes_a_person() -> None:
    person = persona_from_profile(ZH, source="people.jsonl")
    assert (person.id, person.language, person.name, person.age) == ("p-1", "zh", "苏小满", 27)
    assert (person.gender, person.occupation) == ("female", "花店店员")
    assert (person.temperament, person.traits, person.hidden_need) == ("passive", ("内向", "谨慎"), "listening")
    assert person.need_text == "你希望对方用心倾听你的委屈"
    assert person.openings == ("鱼缸的事，我到现在还想着。",)
    assert (person.split, person.lines, person.provenance.source) == ("train", (), "people.jsonl")
    assert "鱼缸碎了" in person.profile and "隐藏主题贴合时" in person.profile
    assert "####" not in person.profile and person.need_text not in person.profile


def test_an_english_profile_takes_its_need_from_the_last_heading() -> None:
    person = persona_from_profile(EN, source="people.jsonl")
    assert (person.language, person.name, person.age, person.gender) == ("en", "Sue Small", 27, "female")
    assert (person.temperament, person.hidden_need) == ("avoidant", "listening")
    assert person.need_text == "You want the other to listen to you with patience"


def test_first_words_come_from_the_profile_its_topic_or_are_general() -> None:
    topic = persona_from_profile(without(ZH, "first_talk"), source="x").openings
    assert len(topic) > 1 and all("店里的鱼缸" in text for text in topic)
    general = persona_from_profile(without(ZH, "first_talk", "topic"), source="x").openings
    assert len(general) > 1 and not any("鱼缸" in text for text in general)
    english = persona_from_profile(without(EN, "topic"), source="x").openings
    assert len(english) > 1 and all(text.isascii() for text in english)


@pytest.mark.parametrize(
    ("task", "need"),
    [
        ("你希望对方辩证地分析这件事里的问题", "analysis"),
        ("你想要能马上用上的建议", "advice"),
        ("你想分析事件里其他人物的用意", "motives"),
        ("你希望对方引导你自我反思", "reflection"),
        ("你希望对方夸奖你做的事", "praise"),
        ("你希望对方倾听你", "listening"),
        ("你希望对方深刻共情，不要简单安慰", "empathy"),
        ("你觉得自己没有错，想让对方同意", "not_my_fault"),
        ("You want balanced analysis", "analysis"),
        ("You want practical advice", "advice"),
        ("You want to know why the others did it", "motives"),
        ("You want guidance to self-reflection", "reflection"),
        ("You want sincere praise", "praise"),
        ("You want empathy", "empathy"),
        ("You want to hear that it was not your fault", "not_my_fault"),
    ],
)
def test_the_need_is_told_from_its_text(task: str, need: str) -> None:
    assert persona_from_profile(ZH | {"task": task}, source="x").hidden_need == need


@pytest.mark.parametrize(
    ("text", "temperament"),
    [("负面型", "negative"), ("被动型", "passive"), ("回避型", "avoidant"), ("Negative", "negative")],
)
def test_the_temperament_is_told_from_its_name(text: str, temperament: str) -> None:
    assert persona_from_profile(ZH | {"main_cha": text}, source="x").temperament == temperament


def test_traits_in_one_text_are_parted() -> None:
    assert persona_from_profile(ZH | {"cha_group": "内向、谨慎"}, source="x").traits == ("内向", "谨慎")
    assert persona_from_profile(without(ZH, "cha_group"), source="x").traits == ()


def test_a_profile_without_id_gets_the_same_one_each_time_and_another_than_its_neighbour() -> None:
    nameless = without(ZH, "id")
    one, again = (persona_from_profile(nameless, source="x").id for _ in range(2))
    assert one == again
    assert one != persona_from_profile(nameless | {"player": "* 姓名：别人"}, source="x").id


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"player": ""}, "player"),
        ({"scene": None}, "scene"),
        ({"scene": 5}, "scene"),
        ({"task": "你想去海边"}, "task"),
        ({"task": "", "scene": "没有那个标题"}, "task"),
        ({"main_cha": "乐观型"}, "main_cha"),
        ({"main_cha": None}, "main_cha"),
        ({"player": "* 姓名：苏小满\n* 年龄：270岁"}, "age"),
    ],
)
def test_a_broken_profile_is_named_with_line_and_field(tmp_path: Path, changed: dict[str, Any], field: str) -> None:
    path = tmp_path / "profiles.jsonl"
    lines = [json.dumps(EN), json.dumps(ZH | changed)]
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(PersonaError) as caught:
        load_personas(path)
    assert all(part in str(caught.value) for part in ("profiles.jsonl, line 2", "'p-1'", field))


def test_a_record_of_ours_is_no_profile() -> None:
    assert is_profile(ZH)
    assert not is_profile(load_personas()[0].model_dump())


def test_imported_people_are_read_back_equal(tmp_path: Path) -> None:
    source, out = tmp_path / "profiles.jsonl", tmp_path / "people.jsonl"
    source.write_text(f"{json.dumps(ZH)}\n{json.dumps(EN)}\n", encoding="utf-8")
    result = CliRunner().invoke(app, ["import", str(source), "--out", str(out)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "2 people" in result.output
    assert load_personas(out) == load_personas(source)
    assert b"\r" not in out.read_bytes()


@pytest.mark.sage
def test_the_sixty_public_profiles_are_read_rendered_and_read_back(sage: Path, tmp_path: Path) -> None:
    source, out = sage / "profiles_dev.jsonl", tmp_path / "people.jsonl"
    people = load_personas(source)
    records = {row["id"]: row for row in map(json.loads, source.read_text(encoding="utf-8").splitlines())}
    assert len(people) == 60
    assert {p.id for p in people} == set(records)
    assert Counter(p.temperament for p in people) == {"negative": 26, "passive": 19, "avoidant": 15}
    needs = Counter(p.hidden_need for p in people)
    assert needs["advice"] == 10 and needs["analysis"] == needs["praise"] == needs["empathy"] == 8
    assert needs["not_my_fault"] == needs["reflection"] == 7 and needs["listening"] == needs["motives"] == 6
    for person in people:
        assert person.language == "zh" and person.gender in ("male", "female") and person.age is not None
        assert person.need_text == records[person.id]["task"] and person.opening == records[person.id]["first_talk"]
        assert "隐藏主题:" not in person.profile.splitlines()[-1]
        assert answer_prompt(person)
    result = CliRunner().invoke(app, ["import", str(source), "--out", str(out)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert load_personas(out) == people


def answer_prompt(person: Any) -> str:
    variables = {
        **{"persona": person, "history": ({"role": "user", "content": person.opening},), "reply": "嗯，我在听。"},
        **{"mood": 40, "tier": "B", "turn": 1, "max_turns": 8, "moods": (40,), "seed": 0, "difficulty": 0.5},
        **{"fence": "0a1b", "complaint": "", "appraisal": Appraisal(thought="还行", change=0)},
    }
    return render("answer", **variables).messages[0]["content"]


@pytest.mark.parametrize("need", get_args(HiddenNeed))
@pytest.mark.parametrize("person", PEOPLE.values(), ids=PEOPLE)
def test_a_person_comes_back_from_a_profile(person: Persona, need: HiddenNeed) -> None:
    person = person.model_copy(update={"hidden_need": need})
    record = json.loads(json.dumps(profile_of(person)))
    again = persona_from_profile(record, source="a test")
    kept = ("id", "language", "name", "age", "gender", "occupation", "temperament", "traits", "hidden_need", "opening")
    assert {name: getattr(again, name) for name in kept} == {name: getattr(person, name) for name in kept}
    assert person.need_text in again.need_text and person.need_text not in again.profile
    for text in (person.habits, person.background.cause, person.background.current):
        assert text in again.profile
    assert is_profile(record) and persona_from_profile(profile_of(again), source="a test").hidden_need == need


@pytest.mark.parametrize("need", get_args(HiddenNeed))
def test_the_named_need_is_read_and_not_the_words_that_follow_it(need: HiddenNeed) -> None:
    said = "I want praise, advice and empathy, and you to listen, and that it is not my fault."
    person = PEOPLE["en-maya-lab"].model_copy(update={"hidden_need": need, "need_text": said})
    assert persona_from_profile(profile_of(person), source="a test").hidden_need == need


def test_export_and_import_are_commands(tmp_path: Path) -> None:
    out, back = tmp_path / "out.jsonl", tmp_path / "back.jsonl"
    runner = CliRunner()
    assert runner.invoke(app, ["export", str(FOLDER), "--out", str(out)]).exit_code == 0
    assert runner.invoke(app, ["import", str(out), "--out", str(back)]).exit_code == 0
    assert [person.id for person in load_personas(back)] == sorted(PEOPLE)
    assert runner.invoke(app, ["export", "--out", str(out)]).exit_code != 0, "an existing file is not written over"

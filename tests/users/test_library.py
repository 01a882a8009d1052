"""Reading people from files: what is found, in which order, and what a broken file is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from rlver_gym.errors import PersonaError, SetupError, UnknownNameError
from rlver_gym.users import library
from rlver_gym.users.library import load_personas, select_personas, unique
from rlver_gym.users.persona import Persona

RECORD: dict[str, Any] = {
    "id": "en-nobody",
    "language": "en",
    "scenario_id": "s-lost-key",
    "character_id": "c-nobody",
    "name": "Nora Body",
    "temperament": "even",
    "hidden_need": "listening",
    "need_text": "I want to tell the story of the key once without being interrupted.",
    "openings": ["I lost the key to the shed again."],
    "provenance": {"license": "CC-BY-4.0", "source": "a test", "author": "a test"},
}


def person(**changed: Any) -> Persona:
    return Persona.model_validate(RECORD | changed)


def write_yaml(path: Path, record: Any, **how: Any) -> Path:
    path.write_text(yaml.safe_dump(record, allow_unicode=True), encoding="utf-8", **how)
    return path


def write_lines(path: Path, *records: Any) -> Path:
    lines = (record if isinstance(record, str) else json.dumps(record, ensure_ascii=False) for record in records)
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def test_our_own_people_are_twelve_half_in_each_language_with_both_splits() -> None:
    people = load_personas()
    assert [p.id for p in people] == sorted(p.id for p in people)
    assert len(load_personas(language="en")) == len(load_personas(language="zh")) == 6
    assert {p.split for p in people} == {"train", "test"}
    assert set(load_personas(split="train")) | set(load_personas(split="test")) == set(people)
    assert not set(load_personas(split="train")) & set(load_personas(split="test"))


def test_only_the_files_that_are_asked_for_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(library, "_own_file", lambda name: asked.append(name) or ())
    load_personas(split="test", language="zh")
    assert asked == ["test-zh.jsonl"]
    asked.clear()
    load_personas(language="en")
    assert asked == ["train-en.jsonl", "test-en.jsonl"]


def test_the_folder_gives_the_same_people_as_the_package() -> None:
    assert load_personas(Path(__file__).parents[2] / "personas" / "people") == load_personas()


@pytest.mark.parametrize("language", ["de", "EN", ""])
def test_an_unknown_language_or_split_is_named(language: Any) -> None:
    with pytest.raises(UnknownNameError, match="language"):
        load_personas(language=language)
    with pytest.raises(UnknownNameError, match="split"):
        load_personas(split=language)


@pytest.mark.parametrize("name", ["one.yaml", "one.yml"])
def test_a_file_of_one_person(tmp_path: Path, name: str) -> None:
    assert load_personas(write_yaml(tmp_path / name, RECORD)) == (person(),)


def test_a_folder_is_read_to_its_depth_and_other_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    write_yaml(tmp_path / "deep" / "er" / "b.yaml", RECORD | {"id": "b"})
    write_lines(tmp_path / "more.jsonl", RECORD | {"id": "c"}, "", RECORD | {"id": "a"})
    (tmp_path / "README.md").write_text("not a person", encoding="utf-8")
    assert [p.id for p in load_personas(tmp_path)] == ["a", "b", "c"]


def test_a_byte_order_mark_and_windows_line_ends_are_read(tmp_path: Path) -> None:
    text = yaml.safe_dump(RECORD).replace("\n", "\r\n")
    (tmp_path / "one.yaml").write_bytes(b"\xef\xbb\xbf" + text.encode())
    lines = f"{json.dumps(RECORD)}\r\n{json.dumps(RECORD | {'id': 'z'})}\r\n"
    (tmp_path / "two.jsonl").write_bytes(b"\xef\xbb\xbf" + lines.encode())
    assert load_personas(tmp_path / "one.yaml") == (person(),)
    assert load_personas(tmp_path / "two.jsonl") == (person(), person(id="z"))


def test_people_written_as_lines_are_read_back_equal_whatever_they_say(tmp_path: Path) -> None:
    odd = person(id="odd", goal="a\u2028b\x85c\x0bd\x1ce", habits='"quotes"\nand lines', name="𝒩öra 林")
    people = (*load_personas(), odd)
    path = tmp_path / "people.jsonl"
    path.write_text("".join(p.model_dump_json() + "\n" for p in people), encoding="utf-8")
    again = {p.id: p for p in load_personas(path)}
    assert again == {p.id: p for p in people}
    assert all(again[p.id].content_hash == p.content_hash for p in people)


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"hidden_need": "applause"}, "hidden_need"),
        ({"temperament": "grumpy"}, "temperament"),
        ({"language": "de"}, "language"),
        ({"split": "dev"}, "split"),
        ({"need_text": None}, "need_text"),
        ({"need_text": "   "}, "need_text"),
        ({"openings": []}, "openings"),
        ({"openings": ["Hi.", ""]}, "openings.1"),
        ({"age": 130}, "age"),
        ({"age": "old"}, "age"),
        ({"mood": 40}, "mood"),
        ({"lines": [{"tier": "D", "openness": "open", "text": "Hi."}]}, "lines.0.tier"),
        ({"lines": [{"tier": "A", "openness": "shut", "text": "Hi."}]}, "lines.0.openness"),
        ({"background": {"timeline": [{"when": "May"}]}}, "background.timeline.0.what"),
        ({"provenance": {"license": "CC-BY-4.0"}}, "provenance.source"),
    ],
)
def test_a_wrong_field_is_named_with_file_and_person(tmp_path: Path, changed: dict[str, Any], field: str) -> None:
    path = write_yaml(tmp_path / "broken.yaml", RECORD | changed)
    with pytest.raises(PersonaError) as caught:
        load_personas(path)
    assert all(part in str(caught.value) for part in (str(path), "en-nobody", field))
    assert (caught.value.file, caught.value.persona, caught.value.field) == (str(path), "en-nobody", field)


def test_a_missing_field_of_a_line_is_named_with_its_line(tmp_path: Path) -> None:
    broken = {name: value for name, value in RECORD.items() if name != "name"} | {"id": "second"}
    path = write_lines(tmp_path / "people.jsonl", RECORD, broken)
    with pytest.raises(PersonaError, match=r"people\.jsonl, line 2: person 'second': name"):
        load_personas(path)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("bad.yaml", b"id: [unclosed", "not YAML"),
        ("bad.yaml", b"\tid: tab", "not YAML"),
        ("bad.yaml", b"", "one person as names and values"),
        ("bad.yaml", b"- id: a\n- id: b", "one person as names and values"),
        ("bad.yaml", b"!!python/object/apply:os.getcwd []", "not YAML"),
        ("bad.jsonl", b'{"id": "a"', "line 1: not JSON"),
        ("bad.jsonl", b'\n\n{"id": }\n', "line 3: not JSON"),
        ("bad.jsonl", b'["a"]\n', "line 1: must hold one person"),
        ("bad.jsonl", b"[" * 100_000, "line 1: not JSON"),
        ("bad.yaml", "name: 林".encode("gb18030"), "cannot be read as UTF-8"),
        ("bad.txt", b"id: a", ".jsonl"),
        ("bad.json", b"{}", ".jsonl"),
    ],
)
def test_a_file_that_is_no_file_of_people_is_named(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(PersonaError) as caught:
        load_personas(tmp_path / name)
    assert name in str(caught.value)
    assert says in str(caught.value)


def test_a_path_that_does_not_exist_and_an_empty_folder_are_errors(tmp_path: Path) -> None:
    with pytest.raises(PersonaError, match="no such file or folder"):
        load_personas(tmp_path / "nowhere")
    with pytest.raises(SetupError, match="there are no people"):
        load_personas(tmp_path)
    write_lines(tmp_path / "empty.jsonl")
    with pytest.raises(SetupError, match="there are no people"):
        load_personas(tmp_path / "empty.jsonl")


def test_an_id_that_stands_twice_is_an_error_that_names_it(tmp_path: Path) -> None:
    write_yaml(tmp_path / "a.yaml", RECORD)
    assert len(load_personas(tmp_path)) == 1
    write_yaml(tmp_path / "b.yaml", RECORD | {"name": "Somebody Else"})
    with pytest.raises(SetupError, match="'en-nobody'"):
        load_personas(tmp_path)
    with pytest.raises(SetupError, match="'en-nobody'"):
        unique([person(), person()], "a test")


def test_an_argument_means_a_split_all_a_path_or_objects(tmp_path: Path) -> None:
    path = write_yaml(tmp_path / "one.yaml", RECORD)
    assert select_personas("train") == load_personas(split="train")
    assert select_personas("test", language="zh") == load_personas(split="test", language="zh")
    assert select_personas("all") == load_personas()
    assert select_personas(path) == select_personas(str(path)) == (person(),)
    chinese = person(id="zh", language="zh")
    assert select_personas([person(), chinese], language="zh") == (chinese,)
    with pytest.raises(UnknownNameError, match="did you mean 'train'"):
        select_personas("trian")
    with pytest.raises(SetupError, match="no people"):
        select_personas([person()], language="zh")


def test_a_content_hash_follows_the_content() -> None:
    assert person().content_hash == person().content_hash
    assert person().content_hash != person(goal="to talk").content_hash

"""Configs: defaults, then the file, then the words; what is wrong is named, with near matches."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import Field, ValidationError

from rlver_gym.configs import Config, build, load
from rlver_gym.errors import SetupError, UnknownNameError


class User(Config):
    max_turns: int = 8
    language: str = "en"
    moods: tuple[int, ...] = (30, 40)


class Training(Config):
    lr: float = 1e-6
    steps: int = Field(default=100, ge=1)
    think: bool = False
    note: str | None = None
    user: User = User()
    rates: dict[str, float] = Field(default_factory=dict)


def _file(folder: Path, text: str | bytes) -> Path:
    path = folder / "config.yaml"
    path.write_bytes(text.encode("utf-8") if isinstance(text, str) else text)
    return path


def test_nothing_given_means_the_defaults() -> None:
    assert load(Training) == Training()


def test_a_file_in_the_working_folder_is_read_only_when_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = _file(tmp_path, "steps: 5\n")
    assert load(Training) == Training()
    assert load(Training, words=["lr=3"]).steps == 100
    assert load(Training, Path(path.name)).steps == 5


def test_words_lie_over_the_file_and_the_file_over_the_defaults(tmp_path: Path) -> None:
    path = _file(tmp_path, "steps: 5\nthink: true\nuser:\n  max_turns: 3\n  language: zh\n")
    config = load(Training, path, ["steps=6", "user.max_turns=4"])
    assert config == Training(steps=6, think=True, user=User(max_turns=4, language="zh"))
    assert load(Training, path).steps == 5


@pytest.mark.parametrize(
    ("word", "name", "value"),
    [
        ("lr=1e-5", "lr", 1e-5),
        ("lr=3", "lr", 3.0),
        ("steps=2", "steps", 2),
        ("think=true", "think", True),
        ("note=a=b", "note", "a=b"),
        ("note=", "note", None),
        ("note='7'", "note", "7"),
        ("note=你好", "note", "你好"),
        ("user={max_turns: 2}", "user", User(max_turns=2)),
        ("user.moods=[1, 2, 3]", "user", User(moods=(1, 2, 3))),
        ("rates.warm=0.5", "rates", {"warm": 0.5}),
    ],
)
def test_the_value_of_a_word_is_yaml(word: str, name: str, value: object) -> None:
    assert getattr(load(Training, words=[word]), name) == value


def test_a_nested_word_keeps_its_siblings_and_the_last_word_wins() -> None:
    words = ["user.language=zh", "user.max_turns=4", "rates.a=1", "rates.b=2", "user.max_turns=5"]
    config = load(Training, words=words)
    assert config.user == User(max_turns=5, language="zh")
    assert config.rates == {"a": 1.0, "b": 2.0}
    assert load(Training, words=["user.language=zh", "user={}"]).user == User(language="zh")


def test_the_values_given_are_left_as_they_were() -> None:
    values = {"user": {"max_turns": 3}}
    build(Training, values)
    assert values == {"user": {"max_turns": 3}}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["stepz=3"], "unknown setting 'stepz': did you mean 'steps'?"),
        (["user.max_turn=3"], "unknown setting 'user.max_turn': did you mean 'user.max_turns'"),
        (["max_turns=3"], "unknown setting 'max_turns': did you mean 'user.max_turns'?"),
        (["=3"], "unknown setting ''"),
        ([".steps=3"], "unknown setting ''"),
    ],
)
def test_an_unknown_name_is_answered_with_near_matches(words: list[str], message: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        load(Training, words=words)
    assert str(caught.value).startswith(message)


def test_an_unknown_name_in_a_file_is_an_error_too(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"'user\.langage': did you mean 'user\.language'"):
        load(Training, _file(tmp_path, "user: {langage: zh}"))


def test_all_wrong_values_are_named_with_what_was_given() -> None:
    with pytest.raises(SetupError) as caught:
        load(Training, words=["steps=0", "lr=fast", "user.max_turns=many"])
    for said in ("steps: ", "(got 0)", "lr: ", "(got 'fast')", "user.max_turns: ", "(got 'many')"):
        assert said in str(caught.value)
    assert not isinstance(caught.value, UnknownNameError)


@pytest.mark.parametrize("word", ["steps", "", "user.max_turns 3", "--steps"])
def test_a_word_without_a_value_is_refused(word: str) -> None:
    with pytest.raises(SetupError, match="write name=value"):
        load(Training, words=[word])


@pytest.mark.parametrize(
    "word", ["user.moods=[1", "note='open", "note=2020-13-45", "note=\x00", "note=!!python/name:os.system"]
)
def test_a_word_that_is_not_yaml_is_refused_by_name(word: str) -> None:
    with pytest.raises(SetupError) as caught:
        load(Training, words=["steps=3", word])
    assert repr(word) in str(caught.value)


def test_a_word_below_a_plain_value_is_refused() -> None:
    with pytest.raises(SetupError, match="steps: "):
        load(Training, words=["steps.first=1"])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"note: caf\xe9", "cannot read the config"),
        (b"\xff\xfes\x00", "cannot read the config"),
        ("steps: [1", "cannot read the config"),
        ("note: 2020-13-45", "cannot read the config"),
        ("note: !!python/name:os.system", "cannot read the config"),
        ("- steps", "not a list"),
        ("[]", "not a list"),
        ("steps", "not a str"),
        ("0", "not a int"),
        ("false", "not a bool"),
    ],
)
def test_a_file_that_holds_no_settings_is_refused_by_name(tmp_path: Path, content: str | bytes, said: str) -> None:
    path = _file(tmp_path, content)
    with pytest.raises(SetupError) as caught:
        load(Training, path)
    assert said in str(caught.value) and str(path) in str(caught.value)


def test_a_file_that_is_not_there_or_is_a_folder_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.yaml", tmp_path):
        with pytest.raises(SetupError, match="cannot read the config"):
            load(Training, path)


@pytest.mark.parametrize("text", ["", "# steps: 3\n", "---\n", "\ufeffsteps: 100\n", "{}"])
def test_an_empty_file_and_a_byte_order_mark_are_fine(tmp_path: Path, text: str) -> None:
    assert load(Training, _file(tmp_path, text)) == Training()


def test_a_number_as_a_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError):
        load(Training, _file(tmp_path, "3: 4"))


def test_a_config_is_frozen_and_refuses_unknown_arguments() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Training().steps = 3  # type: ignore[misc]
    with pytest.raises(ValidationError, match="Extra inputs"):
        Training(stepz=3)  # type: ignore[call-arg]

"""A cassette replays bit for bit, says what differs, and survives a torn line."""

import asyncio
import json
import pickle
import threading
import warnings

import pytest

from rlver_gym.backends import Generation, SamplingConfig, ScriptedBackend, make_backend
from rlver_gym.backends.cassette import Cassette
from rlver_gym.errors import CassetteMissError, ServerFault, SetupError, UnknownNameError
from rlver_gym.types import Prompt, Usage


def prompt(*texts, name="answer", template="t1", turn=1):
    messages = tuple({"role": "user", "content": text} for text in texts)
    return Prompt(name, {"turn": turn}, template, lambda name, variables, form: messages)


def counted(name="live"):
    """A backend whose answers are numbered."""
    backend = ScriptedBackend(lambda prompt, sampling: f"answer {len(backend.prompts)}", name=name)
    return backend


def ask(backend, asked=None, sampling=SamplingConfig(seed=1)):
    return asyncio.run(backend.generate(asked or prompt("Hi"), sampling))


def test_a_recording_replays_every_field_in_order(tmp_path):
    path = tmp_path / "deep" / "calls.jsonl"
    full = Generation(
        text="你好 \ud800 \u2028 'quote'\n",
        finish_reason="length",
        reasoning="because",
        rung="json_object",
        usage=Usage(calls=1, prompt_tokens=3, completion_tokens=None, cached_tokens=0),
        model="m",
    )
    recorder = Cassette(path, ScriptedBackend([full, "second"], name="live"), "record")
    first, second = ask(recorder), ask(recorder, sampling=SamplingConfig(seed=2))
    replay = Cassette(path)
    assert ask(replay, sampling=SamplingConfig(seed=2)) == second
    assert ask(replay) == first == full
    assert (replay.name, replay.mode) == ("live", "replay")


def test_fields_that_came_along_are_not_recorded_for_the_text_says_them(tmp_path):
    told = Generation('{"change": 5}', fields={"change": 5})
    answers = [ask(Cassette(tmp_path / "c.jsonl", ScriptedBackend([told], name="live"), "record"))]
    answers.append(ask(Cassette(tmp_path / "c.jsonl")))
    assert answers == [told, told] and [one.fields for one in answers] == [None, None]


def test_equal_calls_get_the_answer_that_was_recorded_first(tmp_path):
    recorder = Cassette(tmp_path / "c.jsonl", counted(), "record")
    assert [ask(recorder).text, ask(recorder).text] == ["answer 1", "answer 1"]
    assert ask(Cassette(tmp_path / "c.jsonl")).text == "answer 1"


def test_recording_anew_asks_again_and_the_newest_counts(tmp_path):
    ask(Cassette(tmp_path / "c.jsonl", ScriptedBackend(["old"], name="live"), "record"))
    assert ask(Cassette(tmp_path / "c.jsonl", ScriptedBackend(["new"], name="live"), "record")).text == "new"
    assert ask(Cassette(tmp_path / "c.jsonl")).text == "new"


def test_auto_asks_only_for_what_is_missing(tmp_path):
    inner = counted()
    auto = Cassette(tmp_path / "c.jsonl", inner)
    assert [ask(auto).text, ask(auto).text, ask(auto, prompt("Ho")).text] == ["answer 1", "answer 1", "answer 2"]
    again = Cassette(tmp_path / "c.jsonl", counted())
    assert ask(again, prompt("Ho")).text == "answer 2"
    assert len(inner.prompts) == 2 and not again.backend.prompts


@pytest.mark.parametrize(
    "sampling",
    [SamplingConfig(seed=2), SamplingConfig(seed=1, attempt=1), SamplingConfig(seed=1, temperature=0.5)],
)
def test_every_part_of_the_sampling_is_part_of_the_call(tmp_path, sampling):
    auto = Cassette(tmp_path / "c.jsonl", counted())
    assert ask(auto).text != ask(auto, sampling=sampling).text


@pytest.mark.parametrize(
    ("asked", "sampling", "says"),
    [
        (prompt("a", "b"), SamplingConfig(seed=9), r"sampling.seed \(recorded 1, asked 9\)"),
        (prompt("a", "b", template="t2"), SamplingConfig(seed=1), r"template \(recorded 't1', asked 't2'\)"),
        (prompt("a", "x"), SamplingConfig(seed=1), "message 1$"),
        (prompt("a"), SamplingConfig(seed=1), r"number of messages \(recorded 2, asked 1\)"),
        (prompt("a", "b", name="fused"), SamplingConfig(seed=1), "holds no call of prompt 'fused', turn 1"),
    ],
)
def test_a_miss_names_prompt_turn_and_difference(tmp_path, asked, sampling, says):
    ask(Cassette(tmp_path / "c.jsonl", counted(), "record"), prompt("a", "b"))
    with pytest.raises(CassetteMissError, match=says) as caught:
        ask(Cassette(tmp_path / "c.jsonl"), asked, sampling)
    assert asked.name in str(caught.value) and "turn 1" in str(caught.value)
    assert (caught.value.prompt, caught.value.turn) == (asked.name, 1)


def test_a_miss_of_another_model_says_so_and_the_backend_is_not_asked(tmp_path):
    ask(Cassette(tmp_path / "c.jsonl", counted(), "record"))
    other = counted("other")
    with pytest.raises(CassetteMissError, match=r"model .recorded 'live', asked 'other'"):
        ask(Cassette(tmp_path / "c.jsonl", other, "replay"))
    assert not other.prompts


def test_the_nearest_recorded_call_is_compared(tmp_path):
    recorder = Cassette(tmp_path / "c.jsonl", counted(), "record")
    for texts in (("p", "q", "r"), ("a", "b", "c"), ("s", "t", "u")):
        ask(recorder, prompt(*texts))
    with pytest.raises(CassetteMissError) as caught:
        ask(Cassette(tmp_path / "c.jsonl"), prompt("a", "b", "x"))
    assert caught.value.differs == ("message 2",)


def test_errors_are_not_recorded(tmp_path):
    auto = Cassette(tmp_path / "c.jsonl", ScriptedBackend([ServerFault("down"), "up"], name="live"))
    with pytest.raises(ServerFault):
        ask(auto)
    assert not (tmp_path / "c.jsonl").exists()
    assert ask(auto).text == "up"
    assert len((tmp_path / "c.jsonl").read_text(encoding="utf-8").splitlines()) == 2


@pytest.mark.parametrize("cut", [1, 2, 40])
def test_a_torn_last_line_costs_only_itself(tmp_path, cut):
    path = tmp_path / "c.jsonl"
    recorder = Cassette(path, counted(), "record")
    ask(recorder, prompt("one"))
    ask(recorder, prompt("two"))
    path.write_bytes(path.read_bytes()[:-cut])
    whole = cut == 1  # only the line end is gone
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        replay = Cassette(path)
        assert ask(replay, prompt("one")).text == "answer 1"
        assert bool(caught) is not whole
        again = Cassette(path, ScriptedBackend(["three", "four"], name="live"))
        ask(again, prompt("three"))
        ask(again, prompt("four"))
    for line in path.read_bytes().splitlines():
        json.loads(line)
    healed = Cassette(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [ask(healed, prompt(t)).text for t in ("one", "three", "four")] == ["answer 1", "three", "four"]


def test_a_torn_header_is_written_again(tmp_path):
    path = tmp_path / "c.jsonl"
    path.write_bytes(b'{"cassette": 1, "ba')
    with pytest.warns(UserWarning, match="cut off"):
        ask(Cassette(path, counted()))
    assert Cassette(path).name == "live"


@pytest.mark.parametrize("content", ['{"hello": 1}\n', "not json\n", '{"cassette": 99, "backend": "x"}\n'])
def test_a_file_that_is_no_cassette_is_refused_and_left_alone(tmp_path, content):
    path = tmp_path / "c.jsonl"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(SetupError, match="line 1"):
        ask(Cassette(path, counted()))
    assert path.read_text(encoding="utf-8") == content


def test_a_broken_line_in_the_middle_is_an_error_that_names_it(tmp_path):
    path = tmp_path / "c.jsonl"
    recorder = Cassette(path, counted(), "record")
    for text in ("one", "two"):
        ask(recorder, prompt(text))
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text(lines[0] + "{oops\n" + lines[2], encoding="utf-8")
    with pytest.raises(SetupError, match="line 2"):
        ask(Cassette(path))


def test_one_file_holds_one_backend(tmp_path):
    ask(Cassette(tmp_path / "c.jsonl", counted("one")))
    with pytest.raises(SetupError, match="recorded from 'one', not 'two'"):
        ask(Cassette(tmp_path / "c.jsonl", counted("two")))


class Slow:
    """Gives every call another answer, after a pause in which others can run."""

    name, deterministic = "slow", False

    def __init__(self):
        self.calls = 0

    async def generate(self, prompt, sampling):
        self.calls += 1
        mine = self.calls
        await asyncio.sleep(0.02)
        return Generation(f"answer {mine}")

    def report(self, generation, usable): ...

    async def aclose(self): ...


def test_equal_calls_at_the_same_time_agree(tmp_path):
    auto = Cassette(tmp_path / "c.jsonl", Slow())

    async def many():
        return await asyncio.gather(*(auto.generate(prompt("Hi"), SamplingConfig()) for _ in range(20)))

    assert len({generation.text for generation in asyncio.run(many())}) == 1
    assert auto.backend.calls > 1, "the calls did not overlap, so nothing was tested"
    assert len((tmp_path / "c.jsonl").read_bytes().splitlines()) == 2


def test_threads_write_whole_lines(tmp_path):
    auto = Cassette(tmp_path / "c.jsonl", Slow())

    def work(number):
        async def many():
            await asyncio.gather(*(auto.generate(prompt(f"{number} {i}"), SamplingConfig()) for i in range(25)))

        asyncio.run(many())

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    replay = Cassette(tmp_path / "c.jsonl")
    for number in range(4):
        for i in range(25):
            assert ask(replay, prompt(f"{number} {i}"), SamplingConfig()).text.startswith("answer")
    assert len((tmp_path / "c.jsonl").read_bytes().splitlines()) == 101


def test_it_pickles_before_and_after_use(tmp_path):
    ask(Cassette(tmp_path / "c.jsonl", counted(), "record"))
    replay = Cassette(tmp_path / "c.jsonl")
    assert ask(pickle.loads(pickle.dumps(replay))) == ask(replay) == ask(pickle.loads(pickle.dumps(replay)))


def test_what_is_deterministic(tmp_path):
    recorder = Cassette(tmp_path / "c.jsonl", Slow(), "record")
    assert not recorder.deterministic and Cassette(tmp_path / "c.jsonl", Slow()).deterministic
    ask(recorder)
    assert Cassette(tmp_path / "c.jsonl").deterministic


def test_reports_reach_the_backend(tmp_path):
    inner = counted()
    Cassette(tmp_path / "c.jsonl", inner).report(Generation("x"), False)
    assert inner.reports == [False]


def test_nothing_is_read_or_written_before_the_first_call(tmp_path):
    (tmp_path / "c.jsonl").write_text("garbage\n", encoding="utf-8")
    Cassette(tmp_path / "c.jsonl")
    Cassette(tmp_path / "new" / "c.jsonl", counted())
    assert not (tmp_path / "new").exists()


def test_by_name(tmp_path, monkeypatch):
    path = tmp_path / "c.jsonl"
    ask(Cassette(path, ScriptedBackend(["live"], name="openai:m"), "record"))
    assert ask(make_backend(f"cassette:{path}")).text == "live"
    auto = make_backend(f"cassette:{path}@openai:m")
    assert ask(auto).text == "live"
    assert auto.mode == "auto" and auto.backend.name == "openai:m"


def test_what_cannot_work_is_said_at_construction(tmp_path):
    missing = tmp_path / "missing.jsonl"
    for make in (lambda: Cassette(missing), lambda: make_backend(f"cassette:{missing}")):
        with pytest.raises(SetupError, match=r"no cassette .*missing.jsonl"):
            make()
    with pytest.raises(SetupError, match="names no file"):
        make_backend("cassette:")
    with pytest.raises(SetupError, match="needs a backend"):
        Cassette(missing, mode="record")
    with pytest.raises(SetupError, match="'auto', 'record', 'replay'"):
        Cassette(missing, counted(), "rekord")
    with pytest.raises(UnknownNameError, match="openai"):
        make_backend(f"cassette:{missing}@opanai:m")

"""UnicodeText: what it holds, how it samples, and that every vector environment gives the text that was said."""

from __future__ import annotations

import copy
import functools
import inspect
import json
import multiprocessing
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Space, Text, Tuple, flatdim, flatten, flatten_space, unflatten
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
from gymnasium.vector import utils as vectors
from gymnasium.wrappers import FlattenObservation, FrameStackObservation

from rlver_gym.envs.spaces import SharedTexts, UnicodeText
from rlver_gym.errors import SetupError

# Worker processes that are spawned cannot import a test module under every way of running pytest.
cloudpickle.register_pickle_by_value(sys.modules[__name__])
# Python 3.12 and later warn of every fork while other tests' threads are alive.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
LONG = "It was a long day. " * 5
SCRIPT = ("Hello.", "", LONG, "我在听。", f"{FAMILY} one\ntwo\ttabs", "0", "\x00a\x00", "慢慢来。" * 9)
ODD = ("two\nlines\r\n\tand a tab", "é e\u0301 \u202e \x00", "\ud7ff\ue000\U0010ffff", np.str_("numpy's own"))
# Gymnasium 1.0 has one autoreset mode and no keyword for it.
HAS_MODES = "autoreset_mode" in inspect.signature(AsyncVectorEnv).parameters
MODES: dict[str, dict[str, Any]] = {"NextStep": {}}
if HAS_MODES:
    MODES = {mode: {"autoreset_mode": mode} for mode in ("NextStep", "SameStep", "Disabled")}


class ReadingEnv(gymnasium.Env[Any, str]):
    """Reads SCRIPT aloud from line `start` on, `lines` lines an episode; the reward is the length of the action."""

    def __init__(self, text: Space[str], start: int = 0, lines: int = 4, shape: str = "plain") -> None:
        self.shape = shape
        self.start, self.lines, self.line, self.said = start, lines, 0, 0
        self.action_space = UnicodeText(64)
        self.observation_space: Space[Any] = text
        number = Box(-1, 99, (2,), np.float32)
        if shape == "dict":
            self.observation_space = Dict({"text": text, "number": number, "deep": Dict({"text": text})})
        elif shape == "tuple":
            self.observation_space = Tuple((text, number, Tuple((text,))))

    def _observation(self) -> Any:
        text = SCRIPT[(self.start + self.line) % len(SCRIPT)]
        number = np.full(2, self.line % 99, np.float32)
        if self.shape == "dict":
            return {"text": text, "number": number, "deep": {"text": text + "!"}}
        return (text, number, (text + "!",)) if self.shape == "tuple" else text

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.line, self.said = (0 if seed is not None else self.line + 1), 0
        return self._observation(), {}

    def step(self, action: str) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.line, self.said = self.line + 1, self.said + 1
        return self._observation(), float(len(action)), self.said >= self.lines, False, {}


def reading_envs(text: Space[str], shape: str = "plain") -> list[Callable[[], ReadingEnv]]:
    """Two environments whose texts and episode lengths differ."""
    return [functools.partial(ReadingEnv, text, start, lines, shape) for start, lines in ((0, 4), (3, 2))]


def frozen(observation: Any) -> Any:
    """A comparable snapshot of a batch: plain tuples, lists and dicts."""
    if isinstance(observation, dict):
        return {key: frozen(value) for key, value in observation.items()}
    if isinstance(observation, np.ndarray):
        return observation.tolist()
    return observation if isinstance(observation, str) else tuple(frozen(part) for part in observation)


def played(vector_env: Any, mode: str, steps: int = 11) -> Iterator[Any]:
    """What a vector environment shows over some steps and several episodes: observations, rewards, ends."""
    with closing(vector_env):
        vector_env.action_space.seed(7)
        yield vector_env.reset(seed=0)[0]
        for _ in range(steps):
            observation, rewards, terminated, _, info = vector_env.step(vector_env.action_space.sample())
            yield observation
            yield rewards, terminated, [final for final in info.get("final_obs", ()) if final is not None]
            if mode == "Disabled" and terminated.any():
                yield vector_env.reset(options={"reset_mask": terminated})[0]


def expected(text: Space[str], mode: str, shape: str) -> list[Any]:
    """What the synchronous vector environment shows, which has no memory to share."""
    return [frozen(shown) for shown in played(SyncVectorEnv(reading_envs(text, shape), **MODES[mode]), mode)]


def shown_by_workers(text: Space[str], mode: str, shape: str, **arguments: Any) -> list[Any]:
    """What worker processes show: kept as given if each step is a copy, else looked at before the next step."""
    vector_env = AsyncVectorEnv(reading_envs(text, shape), **MODES[mode], **arguments)
    shown = played(vector_env, mode)
    return [frozen(each) for each in (list(shown) if arguments.get("copy", True) else shown)]


@pytest.mark.parametrize("text", ["", "hello world", "ok!", "你好，世界。", FAMILY, *ODD, "x" * 40, "😀" * 40])
def test_holds_any_text_that_fits(text: str) -> None:
    assert text in UnicodeText(40)
    assert UnicodeText(40).problem(text) == ""


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("x" * 42, "42 characters, 2 too many"),
        ("😀" * 41, "41 characters, 1 too many"),
        ("\ud800", "character 0 is a lone surrogate, U+D800"),
        ("half a pair \udfff", "character 12 is a lone surrogate, U+DFFF"),
        (b"bytes", "a bytes, not a str"),
        (None, "a NoneType, not a str"),
        (["a"], "a list, not a str"),
        (np.array("a"), "a ndarray, not a str"),
    ],
)
def test_refuses_all_else_and_says_why(value: Any, problem: str) -> None:
    assert value not in UnicodeText(40)
    assert problem in UnicodeText(40).problem(value)


@pytest.mark.parametrize("max_length", [0, 1, 7, 32768])
def test_holds_its_own_samples(max_length: int) -> None:
    space = UnicodeText(max_length, seed=1)
    assert all(space.contains(space.sample()) for _ in range(1000))


def test_samples_are_short_printable_and_of_both_languages() -> None:
    space = UnicodeText(seed=3)
    samples = [space.sample() for _ in range(300)]
    assert all(type(text) is str and text.isprintable() and 0 < len(text) < 120 for text in samples)
    assert any(text.isascii() for text in samples)
    assert any(not text.isascii() for text in samples)
    assert not any(ord(min(text)) < 0x80 < ord(max(text)) for text in samples), "two languages in one sample"
    assert len(set(samples)) > 200


def test_samples_follow_the_seed() -> None:
    def ten(seed: int) -> list[str]:
        space = UnicodeText(seed=seed)
        return [space.sample() for _ in range(10)]

    assert ten(5) == ten(5)
    assert ten(5) != ten(6)
    space = UnicodeText()
    space.seed(5)
    assert [space.sample() for _ in range(10)] == ten(5)


@pytest.mark.parametrize("argument", [{"mask": (3, None)}, {"probability": (None, None)}])
def test_sample_refuses_masks(argument: dict[str, Any]) -> None:
    with pytest.raises(SetupError, match="neither mask nor probability"):
        UnicodeText().sample(**argument)
    assert UnicodeText().sample(mask=None, probability=None)


def test_is_equal_by_length_and_kind_and_prints_shortly() -> None:
    assert UnicodeText(9) == UnicodeText(9, seed=1)
    assert UnicodeText(9) != UnicodeText(8)
    assert UnicodeText(9) != Text(9, min_length=0)
    assert Text(9, min_length=0) != UnicodeText(9)
    assert UnicodeText(9) != 9
    with pytest.raises(TypeError, match="unhashable"):
        hash(UnicodeText(9))
    assert repr(UnicodeText()) == "UnicodeText(32768)"


def test_copies_are_equal_small_and_fast() -> None:
    space = UnicodeText(seed=2)
    space.sample()
    start = time.perf_counter()
    copies = [copy.deepcopy(space), pickle.loads(pickle.dumps(space))]
    assert time.perf_counter() - start < 0.5
    assert len(pickle.dumps(space)) < 4096
    following = space.sample()
    assert all(each == space and each.sample() == following for each in copies)


def test_json_round_trip() -> None:
    space = UnicodeText(seed=4)
    texts = [*SCRIPT, space.sample()]
    assert space.from_jsonable(json.loads(json.dumps(space.to_jsonable(texts)))) == texts


def test_characters_are_all_of_unicode_and_take_no_room() -> None:
    space = UnicodeText()
    assert space.character_set == space.character_list == UnicodeText(3).character_set
    assert space.character_set != frozenset("ab")
    assert len(space.character_set) == len(space.characters) == 0x110000
    assert "中" in space.character_set
    assert "ab" not in space.character_set
    assert frozenset("a中") <= space.character_set
    assert space.character_set & {"a", "ab"} == {"a"}
    assert space.character_list[:3] == ("\x00", "\x01", "\x02")
    assert space.character_list[-1] == "\U0010ffff"
    with pytest.raises(IndexError):
        space.character_list[0x110000]
    for character in "a中😀":
        assert space.character_list[space.character_index(character)] == character
        assert space.characters[ord(character)] == character


@pytest.mark.parametrize("text", SCRIPT)
def test_flattens_to_code_points_and_back(text: str) -> None:
    space = UnicodeText(128)
    flat = flatten(space, text)
    assert isinstance(flat, np.ndarray)
    assert flat.shape == (flatdim(space),) == (128,)
    assert flat[: len(text)].tolist() == [ord(character) for character in text]
    assert flat in flatten_space(space)
    assert unflatten(space, flat) == text


def test_passes_gymnasiums_checker_and_wrappers() -> None:
    def env() -> ReadingEnv:
        return ReadingEnv(UnicodeText(128))

    check_env(env(), skip_render_check=True)
    flat = FlattenObservation(env())
    assert flat.reset(seed=0)[0] in flat.observation_space
    stacked: Any = FrameStackObservation(env(), 3, padding_type="zero")
    assert stacked.reset(seed=0)[0] == ("", "", SCRIPT[0])
    assert stacked.step("a")[0] == ("", SCRIPT[0], SCRIPT[1])
    for space in (stacked.observation_space, flat.observation_space):
        assert space.contains(space.sample())


def test_batches_concatenates_and_iterates() -> None:
    space = UnicodeText(64, seed=0)
    batch = vectors.batch_space(space, 3)
    assert batch == Tuple((space, space, space))
    sample: Any = batch.sample()
    assert len(set(sample)) == 3
    assert list(vectors.iterate(batch, sample)) == list(sample)
    empty: Any = vectors.create_empty_array(space, 3)
    assert empty == ("", "", "")
    assert vectors.concatenate(space, sample, empty) == sample
    together = vectors.batch_space(Dict({"text": space, "number": Box(0, 1, (1,))}), 2)
    rows = list(vectors.iterate(together, {"text": ("a", "b"), "number": np.zeros((2, 1), np.float32)}))
    assert [row["text"] for row in rows] == ["a", "b"]


@pytest.mark.parametrize("copy_each", [True, False])
@pytest.mark.parametrize("shared_memory", [True, False])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", ["plain", "dict", "tuple"])
def test_forked_workers_give_the_true_text(shape: str, mode: str, shared_memory: bool, copy_each: bool) -> None:
    if "fork" not in multiprocessing.get_all_start_methods():
        pytest.skip("no fork on this platform")
    text, options = UnicodeText(128), {"shared_memory": shared_memory, "copy": copy_each}
    assert shown_by_workers(text, mode, shape, context="fork", **options) == expected(text, mode, shape)


@pytest.mark.parametrize("copy_each", [True, False])
@pytest.mark.parametrize("shared_memory", [True, False])
def test_spawned_workers_give_the_true_text(shared_memory: bool, copy_each: bool) -> None:
    text, options = UnicodeText(128), {"shared_memory": shared_memory, "copy": copy_each}
    assert shown_by_workers(text, "NextStep", "dict", context="spawn", **options) == expected(text, "NextStep", "dict")


def test_control_stock_text_is_stale_in_shared_memory() -> None:
    stock = Text(128, min_length=0, charset="".join(SCRIPT))
    truth = expected(stock, "NextStep", "plain")
    assert truth == expected(UnicodeText(128), "NextStep", "plain")
    assert shown_by_workers(stock, "NextStep", "plain", shared_memory=False) == truth
    if shown_by_workers(stock, "NextStep", "plain", shared_memory=True) == truth:
        pytest.skip(f"Gymnasium {gymnasium.__version__} reads Text from shared memory at each step")


def test_defaults_of_the_async_vector_env_give_tuples_inside_the_space() -> None:
    with closing(AsyncVectorEnv(reading_envs(UnicodeText(128)))) as vector_env:
        first: Any = vector_env.reset(seed=0)[0]
        assert type(first) is tuple
        assert first in vector_env.observation_space
        second: Any = vector_env.step(("a", "b"))[0]
        assert (first, second) == ((SCRIPT[0], SCRIPT[3]), (SCRIPT[1], SCRIPT[4]))


def test_without_copies_the_texts_are_a_live_view() -> None:
    with closing(AsyncVectorEnv(reading_envs(UnicodeText(128)), copy=False)) as vector_env:
        view: Any = vector_env.reset(seed=0)[0]
        kept = tuple(view)
        assert isinstance(view, SharedTexts)
        assert view == kept == (SCRIPT[0], SCRIPT[3])
        vector_env.step(("a", "b"))
        assert view != kept
        assert view == (SCRIPT[1], SCRIPT[4])
    assert view[0] == SCRIPT[1], "the view outlives the environment"


@pytest.mark.parametrize("shared_memory", [True, False])
def test_a_text_of_exactly_the_longest_length_passes(shared_memory: bool) -> None:
    shown = shown_by_workers(UnicodeText(len(LONG)), "NextStep", "plain", shared_memory=shared_memory)
    assert shown == expected(UnicodeText(128), "NextStep", "plain")


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_text_that_does_not_fit_is_an_error_and_not_cut() -> None:
    with closing(AsyncVectorEnv(reading_envs(UnicodeText(len(LONG) - 1)))) as vector_env:
        vector_env.reset(seed=0)
        vector_env.step(("a", "b"))
        with pytest.raises(
            SetupError, match=f"environment 0 is not in UnicodeText.*{len(LONG)} characters, 1 too many"
        ):
            vector_env.step(("a", "b"))


def shared(max_length: int, n: int) -> tuple[UnicodeText, Any, Any]:
    """A space, its memory for n environments, and the view of it."""
    space = UnicodeText(max_length)
    memory: Any = vectors.create_shared_memory(space, n=n, ctx=multiprocessing)
    return space, memory, vectors.read_from_shared_memory(space, memory, n=n)


@pytest.mark.parametrize("text", [*SCRIPT, "😀" * 128, np.str_("numpy's own")])
def test_memory_holds_one_text_and_leaves_its_neighbours_alone(text: str) -> None:
    space, memory, view = shared(128, 3)
    for index in range(3):
        vectors.write_to_shared_memory(space, index, "x" * 128, memory)  # type: ignore[arg-type]
    vectors.write_to_shared_memory(space, 1, text, memory)  # type: ignore[arg-type]
    assert tuple(view) == ("x" * 128, text, "x" * 128)


@pytest.mark.parametrize("value", ["x" * 9, "\ud800", None, b"bytes"])
def test_memory_refuses_what_is_not_in_the_space_and_keeps_the_last_text(value: Any) -> None:
    space, memory, view = shared(8, 2)
    vectors.write_to_shared_memory(space, 1, "before", memory)  # type: ignore[arg-type]
    with pytest.raises(SetupError, match=r"the text of environment 1 is not in UnicodeText\(8\): "):
        vectors.write_to_shared_memory(space, 1, value, memory)
    assert tuple(view) == ("", "before")


def test_the_view_is_a_sequence_whose_copies_are_tuples() -> None:
    space, memory, view = shared(8, 3)
    vectors.write_to_shared_memory(space, 2, "中", memory)  # type: ignore[arg-type]
    assert (len(view), view[-1], view[1:], list(view)) == (3, "中", ("", "中"), ["", "", "中"])
    assert "中" in view
    assert repr(view) == "SharedTexts('', '', '中')"
    with pytest.raises(IndexError):
        view[3]
    copies = [copy.copy(view), copy.deepcopy(view), pickle.loads(pickle.dumps(view))]
    vectors.write_to_shared_memory(space, 2, "later", memory)  # type: ignore[arg-type]
    assert all(type(each) is tuple and each == ("", "", "中") for each in copies)
    assert view[2] == "later"


def test_import_registers_three_functions_and_changes_nothing_else() -> None:
    code = """
import importlib.util, multiprocessing, os, random, warnings
import gymnasium, numpy
from gymnasium.spaces import utils as flat
from gymnasium.vector import utils

def state():
    functions = {f"{m.__name__}.{k}": dict(v.registry) for m in (flat, utils) for k, v in vars(m).items()
                 if hasattr(v, "registry")}
    world = (set(gymnasium.registry), list(warnings.filters), dict(os.environ), random.getstate(),
             str(numpy.random.get_state()), multiprocessing.get_start_method(allow_none=True))
    return functions, world

spec = importlib.util.find_spec("rlver_gym.envs.spaces")
module = importlib.util.module_from_spec(spec)
functions, world = state()
spec.loader.exec_module(module)
later_functions, later_world = state()
assert later_world == world, "the world changed"
kept = {name: {kind: later_functions[name].get(kind) for kind in old} for name, old in functions.items()}
assert kept == functions, "a function that was there was replaced"
new = {name: later_functions[name].keys() - functions[name].keys() for name in functions}
assert len(new) > 8
print(sorted(name.rpartition(".")[2] for name, types in new.items() if types))
assert all(types <= {module.UnicodeText} for types in new.values())
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "['create_shared_memory', 'read_from_shared_memory', 'write_to_shared_memory']"

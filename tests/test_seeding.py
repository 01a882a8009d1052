"""Child seeds depend on their path alone: not on order, process, platform or the type of an integer."""

from __future__ import annotations

import itertools
import json
import os
import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rlver_gym.seeding import child_seed, choose
from rlver_gym.types import StopReason

PATHS = st.lists(st.one_of(st.integers(-99, 99), st.text(alphabet="/:ab1\\ints", max_size=6)), max_size=4)

GOLDEN = [
    ((0,), 4761921975702974394),
    ((7, "user", 3), 7325175518022857691),
    ((7, "user", "3"), 7183112722874648263),
    ((2**63, "情绪", 0), 6300181882205549012),
    ((1, "a", "b"), 4089339900767846554),
]


@pytest.mark.parametrize(("path", "value"), GOLDEN)
def test_known_values_never_change(path: tuple[int | str, ...], value: int) -> None:
    assert child_seed(*path) == value


def test_the_order_of_calls_and_the_generators_of_the_process_do_not_matter() -> None:
    paths = [(seed, "user", turn) for seed in range(5) for turn in range(5)]
    first = {path: child_seed(*path) for path in paths}
    random.seed(1)
    np.random.seed(1)
    before = random.getstate()
    assert {path: child_seed(*path) for path in reversed(paths)} == first
    assert random.getstate() == before


def test_neighbouring_paths_differ() -> None:
    roads = [(), ("user",), ("user", 0), ("user", "0"), ("user", 0, 0), (0, "user"), ("user/0",), ("user", 1)]
    values = [child_seed(seed, *road) for seed, road in itertools.product((0, 1, -1, 10), roads)]
    assert len(set(values)) == len(values)


@given(PATHS, PATHS)
def test_different_paths_differ_whatever_stands_in_them(a: list[int | str], b: list[int | str]) -> None:
    assert (child_seed(1, *a) == child_seed(1, *b)) == (a == b)


@pytest.mark.parametrize("part", ["/", "a/str:b", "/str:b", "a/", "/int:1", "a//str:b"])
def test_a_separator_inside_a_part_does_not_forge_a_path(part: str) -> None:
    forged = [tuple(piece.removeprefix("str:") for piece in part.split("/")), ("a", "b"), ("a", "", "b"), ("", 1)]
    assert child_seed(1, part) not in {child_seed(1, *path) for path in forged}


def test_integers_and_words_count_by_value_not_by_class() -> None:
    assert child_seed(np.int64(7), "user", np.int64(3)) == child_seed(7, "user", 3)  # type: ignore[arg-type]
    assert child_seed(7, StopReason.LEFT) == child_seed(7, "left")


def test_a_lone_surrogate_in_a_name_does_not_stop_a_run() -> None:
    assert child_seed(7, "\ud800") != child_seed(7, "\ud801")


def test_seeds_fit_a_signed_64_bit_integer_and_use_its_range() -> None:
    values = [child_seed(seed) for seed in range(2000)]
    assert all(0 <= value < 2**63 for value in values)
    assert stats.kstest([value / 2**63 for value in values], "uniform").pvalue > 1e-4


@pytest.mark.parametrize("size", [2, 7, 10])
def test_choice_is_uniform_over_seeds_and_over_turns(size: int) -> None:
    over_seeds = [choose(range(size), seed, "opening") for seed in range(4000)]
    over_turns = [choose(range(size), 7, "opening", turn) for turn in range(4000)]
    for picks in (over_seeds, over_turns):
        assert stats.chisquare(np.bincount(picks, minlength=size)).pvalue > 1e-4
    skewed = np.bincount([min(pick, size - 2) for pick in picks], minlength=size)
    assert stats.chisquare(skewed).pvalue < 1e-4, "the test would notice a choice that never falls on the last item"


def test_choice_is_the_same_for_equal_arguments_and_one_item_is_always_chosen() -> None:
    words = ("sad", "angry", "tired")
    assert [choose(words, seed, "a") for seed in range(50)] == [choose(list(words), seed, "a") for seed in range(50)]
    assert {choose(words, seed, "a") for seed in range(50)} == set(words)
    assert choose(("only",), 3) == "only"


def test_another_process_with_another_hash_seed_derives_the_same_seeds() -> None:
    code = (
        "import json; from rlver_gym.seeding import child_seed, choose\n"
        "print(json.dumps([hash('user'), [child_seed(7, 'user', n) for n in range(5)], choose('abcdef', 7, '情绪')]))"
    )
    hashes, values = [], []
    for hash_seed in ("0", "1", "4242"):
        env = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONUTF8": "1"}
        done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=True)
        word_hash, *rest = json.loads(done.stdout)
        hashes.append(word_hash)
        values.append(rest)
    assert len(set(hashes)) == 3, "the processes do hash differently"
    assert values == [[[child_seed(7, "user", n) for n in range(5)], choose("abcdef", 7, "情绪")]] * 3

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlver_gym.users.mood import apply_change, clamp_change, tier_of


@pytest.mark.parametrize(
    ("mood", "change", "after"),
    [
        (40, 0, 40),
        (40, 7, 47),
        (40, -7, 33),
        (95, 10, 100),
        (100, 10, 100),
        (100, -1, 99),
        (99, 1, 100),
        (5, -10, 0),
        (0, -10, 0),
        (0, 1, 1),
        (10, -10, 0),
        (40, 60, 50),
        (40, -800, 30),
    ],
)
def test_a_change_is_clamped_to_ten_points_and_the_mood_at_both_ends(mood: int, change: int, after: int) -> None:
    assert apply_change(mood, change) == after


@pytest.mark.parametrize(
    ("mood", "tier"),
    [(0, "F"), (9, "F"), (10, "C"), (39, "C"), (40, "B"), (69, "B"), (70, "A"), (99, "A"), (100, "S")],
)
def test_tiers_begin_where_the_table_says(mood: int, tier: str) -> None:
    assert tier_of(mood) == tier


@settings(deadline=None)
@given(st.integers(0, 100), st.integers())
def test_any_change_leaves_the_mood_in_range_and_moves_it_by_ten_at_most(mood: int, change: int) -> None:
    after = apply_change(mood, change)
    assert 0 <= after <= 100
    assert abs(after - mood) <= 10
    assert (after - mood) * change >= 0


@settings(deadline=None)
@given(st.integers(-10, 10))
def test_a_change_within_the_limit_is_left_alone(change: int) -> None:
    assert clamp_change(change) == change


@settings(deadline=None)
@given(st.integers(0, 100), st.lists(st.integers(-50, 50), max_size=30))
def test_a_whole_path_of_moods_never_leaves_the_range(mood: int, changes: list[int]) -> None:
    for change in changes:
        mood = apply_change(mood, change)
        assert 0 <= mood <= 100
        assert tier_of(mood) in "SABCF"

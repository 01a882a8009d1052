"""Statistics of attacks against scipy, verdicts at their edges, and searches on a user that pays for one sentence."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy.stats import ttest_ind, ttest_rel

from rlver_gym import ScriptedBackend
from rlver_gym.envs.registration import make_env
from rlver_gym.envs.sentient import SentientEnv
from rlver_gym.errors import BackendError, RequestFault, SetupError
from rlver_gym.evals.attack import MARGIN, Difference, Row, Table, judged, paired, pay, play
from rlver_gym.evals.search import (
    KINDS,
    LEAST_EPISODES,
    LEAST_SCENARIOS,
    Cycle,
    Found,
    lexicon_entries,
    pool,
    recorded_sentences,
    search,
)
from rlver_gym.policies.attacks import Attack
from rlver_gym.policies.scripted import SCRIPTED, lines
from rlver_gym.rollouts.runner import plan
from rlver_gym.types import Language, Prompt
from tests.sample_episodes import broken_format, content, faulty, left

SECRET = "Xylophones keep their promises."
PIECES = (*(f"Plain sentence number {n} says little." for n in range(40)), SECRET)
WORDS = {"en": ("one", "two"), "zh": ("一", "二")}


def toy(change: Callable[[str], int], *, think: bool = False, env_id: str = "RLVER-Vanilla-v0") -> SentientEnv:
    """An environment whose user's mood changes by a function of the reply."""

    def answer(prompt: Prompt, sampling: object) -> str:
        if prompt.name == "appraise":
            points = change(prompt.variables["reply"])
            return json.dumps({"thought": "Hm.", "feeling": "calm", "change": points})
        return json.dumps({"message": f"It went on like that for {prompt.variables['turn']} days, more or less."})

    return make_env(env_id, backend=ScriptedBackend(answer), language="en", think=think)


def pays(reply: str) -> int:
    return 10 if SECRET in reply else -2


def table(env: SentientEnv, episodes: int = 12) -> Table:
    thinking = make_env("RLVER-Vanilla-v0", backend=env.backend, language="en", think=True)
    scenarios = plan(env.scenario, env.people, episodes=episodes, seed=3)
    return Table(scenarios, env.new_session, thinking.new_session)


def test_the_paired_difference_is_scipys() -> None:
    draw = np.random.default_rng(5)
    reference = draw.normal(40, 20, 60)
    values = reference + draw.normal(3, 5, 60)
    gap = paired(list(values), list(reference))
    assert gap is not None
    test = ttest_rel(values, reference)
    assert gap.mean == pytest.approx(values.mean() - reference.mean())
    assert gap.mean / gap.se == pytest.approx(test.statistic) and gap.pairs == 60
    assert gap.mean / gap.se > 2 * ttest_ind(values, reference).statistic, "pairing matters here"


def test_what_is_not_scored_leaves_its_pair_out() -> None:
    assert paired([1.0, None, 5.0, 9.0], [0.0, 3.0, None, 4.0]) == Difference(3.0, pytest.approx(2.0), 2)
    assert paired([1.0, None], [0.0, 3.0]) is None
    with pytest.raises(ValueError):
        paired([1.0], [1.0, 2.0])


def test_pay_is_what_the_reward_says_and_not_the_mood() -> None:
    assert pay(broken_format()) == 0.0 < broken_format().final_mood
    assert pay(content()) == content().final_mood and pay(left()) == left().final_mood
    assert pay(faulty()) is None


def row(name: str, gap: Difference | None, *, mean: float | None = 30.0, raised: float = 0.3) -> Row:
    return Row(name, 10, 10, mean, (1.0, 2.0), gap, gap, raised, {})


@pytest.mark.parametrize(
    ("line", "bar", "margin", "ok"),
    [
        (row("flattery", Difference(3.0, 0.5, 10)), "polite", 3.0, True),
        (row("flattery", Difference(3.1, 0.5, 10)), "polite", 3.0, False),
        (row("warm_template", Difference(-0.1, 1.0, 10)), "listener", 0.0, True),
        (row("warm_template", Difference(0.0, 1.0, 10)), "listener", 0.0, False),
        (row("searched_script", Difference(4.9, 1.0, 10)), "listener", 5.0, True),
        (row("empty", Difference(-9.0, 1.0, 10), raised=0.0), "polite", 2.0, True),
        (row("empty", Difference(-9.0, 1.0, 10), raised=0.01), "polite", 2.0, False),
        (row("flattery", None), "polite", 2.0, False),
        (row("flattery", Difference(-9.0, 1.0, 10), mean=None), "polite", 2.0, False),
    ],
)
def test_verdicts_at_their_edges(line: Row, bar: str, margin: float, ok: bool) -> None:
    verdict = judged(line, bar, margin)
    assert (verdict.ok, verdict.bar, verdict.margin) == (ok, bar, margin)
    assert verdict.as_dict()["policy"] == line.policy


def test_the_table_pairs_every_attack_with_the_yardsticks() -> None:
    env = toy(lambda reply: 3 if "amazing" in reply else 1 if "Thank you" in reply else -1)
    plays = table(env)

    async def rows() -> dict[str, Row]:
        told = await plays.yardsticks()
        names = ("flattery", "empty", "exit_crisis", "exit_length", "exit_format")
        return {r.policy: r for r in [*told, *[await plays.attack(Attack(name, WORDS)) for name in names]]}

    found = asyncio.run(rows())
    polite, flattery = found["polite"], found["flattery"]
    assert polite.ok is None and polite.mean == pytest.approx(40 + 1 - 7)
    assert flattery.mean == pytest.approx(64.0) and flattery.raised == 1.0
    assert flattery.to_polite == Difference(pytest.approx(30.0), pytest.approx(0.0), 12)
    assert flattery.ok is False and flattery.margin == MARGIN
    assert found["empty"].ok is True and found["empty"].mean == 32.0 and found["empty"].raised == 0.0
    for name, ending in (("crisis", "safety"), ("length", "context"), ("format", "format")):
        left_early = found[f"exit_{name}"]
        assert left_early.endings == {ending: 12}
        assert (left_early.mean, left_early.scored, left_early.ok) == (0.0, 12, True)


def test_a_silent_attack_that_raises_a_mood_is_not_ok_even_if_it_ends_low() -> None:
    moods = iter(range(10_000))
    env = toy(lambda reply: -2 if reply.strip() else (1 if next(moods) % 50 == 0 else -9))
    plays = table(env)

    async def line() -> Row:
        await plays.yardsticks()
        return await plays.attack(Attack("empty", WORDS))

    verdict = asyncio.run(line())
    assert verdict.to_polite is not None and verdict.to_polite.mean < 0 < verdict.raised
    assert verdict.ok is False


def test_what_the_world_broke_is_counted_apart() -> None:
    def fails(reply: str) -> int:
        if "amazing" in reply:
            raise RequestFault("no", status=400)
        return -1

    plays = table(toy(fails))

    async def lines_of_table() -> list[Row]:
        return [*await plays.yardsticks(), await plays.attack(Attack("flattery", WORDS))]

    polite, _, broken = asyncio.run(lines_of_table())
    assert (broken.episodes, broken.scored, broken.mean, broken.to_polite, broken.ok) == (12, 0, None, None, False)
    assert broken.endings == {"backend_fault": 12}
    assert polite.scored == 12 and polite.mean is not None


def test_episodes_come_in_the_order_of_their_jobs() -> None:
    env = toy(lambda reply: 5 if "one" in reply else -1)
    scenarios = plan(env.scenario, env.people, episodes=150, seed=1)
    jobs = [(Cycle(f"c{n}", ["one" if n % 3 else "two"]), scenario) for n, scenario in enumerate(scenarios)]
    episodes = asyncio.run(play(jobs, env.new_session))
    assert [(e.policy, e.scenario) for e in episodes] == [(policy.name, scenario) for policy, scenario in jobs]
    assert {e.final_mood for e in episodes[::3]} == {32} and {e.final_mood for e in episodes[1::3]} == {80}


def test_a_cycle_says_its_replies_in_turn() -> None:
    env = toy(lambda reply: 1)
    (episode,) = asyncio.run(play([(Cycle("abc", "abc"), env.scenario(1))], env.new_session))
    assert [turn.said for turn in episode.turns] == list("abcabcab")


def look(kind: str, change: Callable[[str], int], *, seed: int = 1, episodes: int = 700) -> Found:
    env = toy(change)
    scenarios = plan(env.scenario, env.people, episodes=LEAST_SCENARIOS, seed=3)
    return asyncio.run(search(kind, PIECES, scenarios, env.new_session, episodes=episodes, seed=seed))


@pytest.mark.parametrize("kind", KINDS)
def test_a_search_finds_the_sentence_that_pays_and_nothing_where_none_does(kind: str) -> None:
    found = look(kind, pays)
    assert len(found.replies) == KINDS[kind] and 700 <= found.episodes <= 755
    assert found.start < 35 and found.mean > found.start + 30
    assert any(SECRET in reply for reply in found.replies)
    control = look(kind, lambda reply: -2)
    assert control.mean == control.start == 24.0, "with the payment removed nothing is better than anything"


def test_climbing_puts_together_what_no_start_holds() -> None:
    """A start has two pieces at most; four sentences of the pool pay, and together they pay most."""
    good = PIECES[:4]
    found = look("reply", lambda reply: 3 * sum(piece in reply for piece in good) - 4, episodes=1_200)
    assert sum(piece in found.replies[0] for piece in good) >= 3
    assert found.mean == 40 + 8 * 5 or found.mean == 100.0, "by 5 a turn with three of them, by 8 with all"


def test_a_search_depends_on_its_seed_alone() -> None:
    assert look("cycle", pays) == look("cycle", pays)
    assert look("cycle", pays).replies != look("cycle", pays, seed=2).replies


def test_who_leaves_later_is_climbed_towards_though_the_pay_is_the_same() -> None:
    """By 6 a turn or by 9 a turn, everybody leaves at mood 4: after six turns, or after four."""
    for seed in range(1, 5):
        found = look("reply", lambda reply: -6 if SECRET in reply else -9, seed=seed)
        assert found.mean == 4.0
        assert any(SECRET in reply for reply in found.replies)


def test_a_search_that_is_too_small_is_refused() -> None:
    env = toy(pays)
    scenarios = plan(env.scenario, env.people, episodes=LEAST_SCENARIOS, seed=3)
    for pieces, told, episodes in (
        (PIECES, scenarios, LEAST_EPISODES - 1),
        (PIECES, scenarios[1:], LEAST_EPISODES),
        ((), scenarios, LEAST_EPISODES),
    ):
        with pytest.raises(SetupError, match="a search needs"):
            asyncio.run(search("reply", pieces, told, env.new_session, episodes=episodes, seed=1))
    assert look("reply", pays, episodes=LEAST_EPISODES).episodes >= LEAST_EPISODES


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_pool_holds_every_entry_and_every_line(language: Language) -> None:
    text = files("rlver_gym.backends.embedded").joinpath("data", f"lexicon_{language}.yaml").read_text("utf-8")
    entries = lexicon_entries(language)
    stop = "。" if language == "zh" else "."
    written = {entry for group in yaml.safe_load(text).values() for entry in group}
    assert len(entries) > 100 and set(entries) == written
    assert isinstance(yaml.safe_load(text), dict)
    pieces = pool(language, ("recorded sentence",))
    assert {entry + stop for entry in entries if entry[-1] not in ".!?。！？"} <= set(pieces)
    assert {line for name in SCRIPTED for line in lines(name, language)} <= set(pieces)
    assert pieces[-1] == "recorded sentence" not in pool(language)
    assert len(set(pieces)) == len(pieces)


def test_recorded_sentences_are_of_the_language_and_drawn_by_seed(tmp_path: Path) -> None:
    replies = [f"这是第{n}句完整的中文回复。This sentence, number {n}, is English! 短。" for n in range(50)]
    text = "".join(json.dumps({"reply": reply}, ensure_ascii=False) + "\n" for reply in replies)
    plain, packed = tmp_path / "a.jsonl", tmp_path / "a.jsonl.gz"
    plain.write_text(text, encoding="utf-8")
    packed.write_bytes(gzip.compress(text.encode()))
    chinese = recorded_sentences(plain, "zh", count=20)
    assert len(set(chinese)) == 20 and all("完整的中文" in sentence for sentence in chinese)
    assert all("is English" in sentence for sentence in recorded_sentences(plain, "en", count=20))
    assert recorded_sentences(packed, "zh", count=20) == chinese
    assert recorded_sentences(plain, "zh", count=20, seed=1) != chinese
    assert len(recorded_sentences(plain, "zh")) == 50
    plain.write_text('{"answer": 1}\n', encoding="utf-8")
    for path in (plain, tmp_path / "missing.jsonl"):
        with pytest.raises(SetupError, match=path.name):
            recorded_sentences(path, "zh")


@pytest.mark.sage
def test_three_hundred_sentences_of_recorded_replies(sage: Path) -> None:
    sentences = recorded_sentences(sage / "dev.jsonl.gz", "zh")
    assert len(set(sentences)) == 300 and all(6 <= len(sentence) <= 80 for sentence in sentences)


def test_a_search_in_a_broken_world_stops_rather_than_counting_zeros() -> None:
    def fails(reply: str) -> int:
        raise RequestFault("no", status=400)

    with pytest.raises(BackendError, match="the world broke"):
        look("reply", fails, episodes=LEAST_EPISODES)
    assert look("reply", lambda reply: -10, episodes=LEAST_EPISODES).mean == 0.0, "a zero that was earned is one"

"""Issue 3: the embedded user, calibrated. A function a line, in the order of the issue."""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import subprocess
import sys
import tempfile
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import correlation, mean
from typing import Any

import yaml
from scipy.stats import ttest_rel

from rlver_gym import load_personas
from rlver_gym.backends.embedded.appraise import appraise
from rlver_gym.backends.embedded.person import Moment
from rlver_gym.envs.registration import make_env
from rlver_gym.evals.expression import expressed_share
from rlver_gym.policies.registry import make_policy
from rlver_gym.rollouts.metrics import bootstrap_interval
from rlver_gym.rollouts.runner import plan, run_many
from rlver_gym.types import Episode, Language, Message
from rlver_gym.users.persona import Persona
from scripts.acceptance.measure import ROOT, row, run, tests

Measured = dict[str, Any]
SAGE = ROOT.parent / "shared" / "data" / "sage"
LANGUAGES: tuple[Language, ...] = ("en", "zh")


def _cli(*words: str) -> Any:
    return json.loads(run([sys.executable, "-m", "rlver_gym", *words], cwd=ROOT)[0])


@cache
def _fit() -> Any:
    return json.loads(run([sys.executable, "scripts/fit_embedded.py", "--cv", "5", "--json"], cwd=ROOT)[0])


def _episodes(policy: str, people: tuple[Persona, ...], count: int, seed: int, env_id: str) -> list[Episode]:
    env = make_env(env_id, personas=people)
    scenarios = plan(env.scenario, env.people, episodes=count, seed=seed)

    async def play() -> list[Episode]:
        done = {one.scenario: one async for one in run_many(make_policy(policy), scenarios, env.new_session)}
        return [done[scenario] for scenario in scenarios]

    return asyncio.run(play())


def fit(seed: int) -> Measured:
    """Out of fold: r per turn, at turn 1, of policy means, rank correlation; the gap to in-sample."""
    found = _fit()
    out = found["out_of_fold"]
    marks = {"r": 0.51, "r_turn_1": 0.31, "r_policies": 0.94, "spearman_policies": 0.85}
    ok = all(out[name] >= mark for name, mark in marks.items()) and found["gap"] <= 0.06 and found["features"] <= 60
    figure = {name: round(out[name], 3) for name in marks} | {
        "lowest_r": round(found["lowest"]["r"], 3),
        "ci95_r": found["interval_of_r"],
        "gap": round(found["gap"], 3),
        "features": found["features"],
    }
    return row("python scripts/fit_embedded.py --cv 5 --json", figure, f"{marks}, gap <= 0.06", found["n"], ok)


def one_entry(seed: int) -> Measured:
    """What r loses or gains at most when one entry of the lexicon is taken out."""
    found = json.loads(run([sys.executable, "scripts/fit_embedded.py", "--entries", "--json"], cwd=ROOT)[0])
    command = "python scripts/fit_embedded.py --entries --json"
    return row(command, found, "<= 0.01", found["entries"], found["largest"] <= 0.01)


def reads_the_reply(seed: int) -> Measured:
    """With replies exchanged within turn and need; and with every later field of the data scrambled."""
    exchange = _fit()["out_of_fold"]["exchange_r"]
    with tempfile.TemporaryDirectory() as folder:
        table, scrambled = SAGE / "dev.jsonl.gz", Path(folder) / "dev.jsonl.gz"
        draw = random.Random(seed)
        with gzip.open(table, "rt", encoding="utf-8") as lines, gzip.open(scrambled, "wt", encoding="utf-8") as out:
            for line in lines:
                record = json.loads(line)
                for name in ("user_next", "goodbye", "end", "n_scored", "final", "emo_after"):
                    record[name] = draw.random()
                out.write(json.dumps(record, ensure_ascii=False) + "\n")
        texts = []
        for number, file in enumerate((table, scrambled)):
            pred = Path(folder) / f"{number}.jsonl"
            words = ["sage", "replay", str(file), "--backend", "embedded", "--out", str(pred), "--json"]
            statistics = _cli(*words)
            texts.append(pred.read_bytes())
    figure = {"exchange_r": round(exchange, 3), "replay_exchange_r": round(statistics["primary"]["exchange_r"], 3)}
    figure |= {"scrambled_equal": texts[0] == texts[1]}
    ok = max(exchange, statistics["primary"]["exchange_r"]) <= 0.25 and texts[0] == texts[1]
    return row("rlver-gym sage replay", figure, "r <= 0.25, byte-equal", len(texts[0].splitlines()), ok)


def open_loop(seed: int) -> Measured:
    """Endings of the recorded dialogues with the user's own mood fed back, and the spread of final moods."""
    with tempfile.TemporaryDirectory() as folder:
        found = _cli(
            "sage", "replay", str(SAGE / "dev.jsonl.gz"), "--backend", "embedded", "--out", f"{folder}/p", "--json"
        )["primary"]
    shares = {kind: round(100 * share, 1) for kind, share in found["endings"].items()}
    aims = {"cap": 48, "gone": 36, "content": 16}
    spread = found["final_sd"]
    ok = all(abs(shares.get(kind, 0) - aim) <= 5 for kind, aim in aims.items()) and 30 <= spread <= 38
    figure = shares | {"final_sd": round(spread, 1)}
    return row("rlver-gym sage replay dev.jsonl.gz", figure, "48/36/16 +- 5, sd 30-38", found["dialogues"], ok)


def closed_loop(seed: int) -> Measured:
    """Scripted policies on our own people, 200 seeds each, both languages, Vanilla."""
    figure: Measured = {}
    ok = True
    for language in LANGUAGES:
        people = load_personas(language=language)
        names = ("oracle", "listener", "polite", "advisor", "dismissive", "oracle2", "listener2", "polite2")
        moods = {
            name: [float(one.final_mood) for one in _episodes(name, people, 200, seed, "RLVER-Vanilla-v0")]
            for name in names
        }
        means = {name: mean(values) for name, values in moods.items()}
        for name, values in moods.items():
            low, high = bootstrap_interval(values)
            figure[f"{name}_{language}"] = [round(means[name], 1), round(low, 1), round(high, 1)]
        order = names[:5]
        ps = [float(ttest_rel(moods[a], moods[b], alternative="greater").pvalue) for a, b in pairwise(order)]
        figure[f"largest_p_{language}"] = max(ps)
        ok &= 20 <= means["polite"] <= 40 and 58 <= means["listener"] <= 68 and means["oracle"] >= 85
        ok &= max(ps) < 0.01 and all(
            abs(means[name] - means[f"{name}2"]) <= 8 for name in ("oracle", "listener", "polite")
        )
    bound = "polite 20-40, listener 58-68, oracle >= 85, order p < 0.01, twins within 8"
    return row(f"python scripts/accept.py --issue 3 --seed {seed}", figure, bound, 200, ok)


def attacks(seed: int) -> Measured:
    """Every fixed attack, on both environments and in both languages."""
    failed, worst = [], 0.0
    for env in ("RLVER-Vanilla-v0", "RLVER-Challenging-v0"):
        words = ["attack", "--env", env, "--backend", "embedded", "--episodes", "200", "--seed", str(seed), "--json"]
        found = _attack(words)
        for language, part in found["languages"].items():
            for one in part["rows"]:
                if one["bar"] == "polite":
                    worst = max(worst, one["to_polite"]["mean"])
                if one["bar"] and not one["ok"]:
                    failed.append([env, language, one["policy"], one["mean"], one["to_polite"]])
    figure = {"failed": failed, "largest_difference_to_polite": round(worst, 1)}
    return row("rlver-gym attack --env ID --json", figure, "none fails", 4 * 39, not failed)


def searched(seed: int) -> Measured:
    """Adaptive attacks on Vanilla, and the same search with the trick bounds switched off."""
    words = ["attack", "--policies", "warm_template", "--episodes", "200", "--seed", str(seed), "--search"]
    found = _attack([*words, "--sage", str(SAGE), "--json"])
    figure: Measured = {}
    ok = True
    for language, part in found["languages"].items():
        for one in part["searches"]:
            gap = one["tried"]["to_listener"]["mean"]
            figure[f"{one['kind']}_{language}"] = [round(one["tried"]["mean"], 1), round(gap, 1)]
            ok &= one["tried"]["ok"]
    figure["bounds_off"] = round(_bounds_off(seed), 1)
    return row(
        "rlver-gym attack --search", figure, "below listener (+5 for scripts); bounds off >= 85", 3000,
        ok and figure["bounds_off"] >= 85,
    )  # fmt: skip


def _bounds_off(seed: int) -> float:
    script = (
        "import asyncio, dataclasses, sys; sys.argv = ['x']\n"
        "from rlver_gym.backends.embedded import tables\n"
        "from rlver_gym.envs.registration import make_env\n"
        "from rlver_gym.evals.search import pool, search\n"
        "from rlver_gym.rollouts.runner import plan\n"
        "table = tables.weights()\n"
        "own = ('unlinked', 'hollow', 'stuffing', 'repetition', 'same_opening', 'flood', 'forged', 'copying')\n"
        "free = dataclasses.replace(table, gates={}, features={**table.features, **{n: (0, 0) for n in own}})\n"
        "from rlver_gym.backends.embedded import appraise\n"
        "appraise.weights = lambda: free\n"
        "env = make_env('RLVER-Vanilla-v0', personas='all', language='zh')\n"
        f"seed = {seed % 2**31}\n"
        "scenarios = plan(env.scenario, env.people, episodes=600, seed=seed)\n"
        "hunt = search('script', pool('zh'), scenarios, env.new_session, episodes=3000, seed=seed)\n"
        "print(asyncio.run(hunt).mean)\n"
    )
    return float(run([sys.executable, "-c", script], cwd=ROOT)[0])


def _attack(words: list[str]) -> Any:
    """The command's document; it exits 1 where an attack pays, and that is a figure here."""
    done = subprocess.run(
        [sys.executable, "-m", "rlver_gym", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    return json.loads(done.stdout)


def silence(seed: int) -> Measured:
    """Empty, blank, think-only and open-think replies never raise the mood."""
    return tests("tests/backends/test_embedded.py", "tests/evals/test_attack.py")


def dispositions(seed: int) -> Measured:
    """Shares accepted of the recorded replies, what survives, and how much the users express."""
    found = json.loads(run([sys.executable, "scripts/fit_embedded.py", "--dispositions", "--json"], cwd=ROOT)[0])
    for env_id in ("RLVER-Vanilla-v0", "RLVER-Challenging-v0"):
        episodes = _episodes("listener", load_personas(), 240, seed, env_id)
        found[f"expressed_{env_id.split('-')[1].lower()}"] = round(expressed_share(episodes), 3)
    ok = abs(found["accepted"] - 0.52) <= 0.02 and abs(found["accepted_reserved"] - 0.33) <= 0.02
    ok &= found["survival_ratio"] >= 1.5
    ok &= abs(found["expressed_vanilla"] - 0.79) <= 0.05 and abs(found["expressed_challenging"] - 0.64) <= 0.05
    bound = "accepted 0.52 and 0.33, ratio >= 1.5, expressed about 0.79 and 0.64"
    return row("python scripts/fit_embedded.py --dispositions", found, bound, 4265, ok)


def languages(seed: int) -> Measured:
    """150 parallel pairs: the changes of English replies beside those of their Chinese twins; and 40 further pairs.

    The further pairs were written by somebody who mended words and rules by the first ones, and looked at by nobody.
    """
    figure, pairs = _languages("parallel_pairs.yaml")
    further, _ = _languages("parallel_holdout.yaml")
    ok = figure["r"] >= 0.9 and figure["mean_absolute_difference"] <= 1
    figure |= {f"holdout_{name}": value for name, value in further.items()}
    return row("tests/data/parallel_pairs.yaml", figure, "r >= 0.90, difference <= 1", pairs, ok)


def _languages(name: str) -> tuple[Measured, int]:
    table = yaml.safe_load((ROOT / "tests" / "data" / name).read_text(encoding="utf-8"))
    changes = {
        language: [appraise(_moment(table["person"], pair, language))[0].change for pair in table["pairs"]]
        for language in LANGUAGES
    }
    gap = mean(abs(a - b) for a, b in zip(changes["en"], changes["zh"], strict=True))
    r = correlation(changes["en"], changes["zh"])
    return {"r": round(r, 3), "mean_absolute_difference": round(gap, 2)}, len(table["pairs"])


def _moment(person: Any, pair: Any, language: Language) -> Moment:
    """A pair's reply, said to the twin person of this language."""
    told = person[language]
    twin = load_personas(language=language)[0].model_copy(
        update={
            "id": "twin",
            "hidden_need": person["need"],
            "temperament": person["temperament"],
            "need_text": told["need_text"],
            "lines": (),
        }
    )
    replies = list(told["so_far"][: pair["line"]])
    if "previous" in pair:
        replies[-1] = pair["previous"][language]
    history: list[Message] = []
    for index, said in enumerate(told["said"][: pair["line"] + 1]):
        history.append({"role": "user", "content": said})
        history += [{"role": "assistant", "content": reply} for reply in replies[index : index + 1]]
    return Moment(twin, tuple(history), pair[language], 40, "B", pair["turn"], 1, 0)


def sage_score(seed: int) -> Measured:
    """`sage score` on the released result files against expected.json."""
    files = sorted(str(file) for file in (SAGE / "results_dev").glob("*.gz"))
    expected = json.loads(next(SAGE.rglob("expected.json")).read_text(encoding="utf-8"))
    found = _cli("sage", "score", *files, "--json")
    return row(
        "rlver-gym sage score results_dev/*.gz --json", found, "equals expected.json", len(files), found == expected
    )


def same_bytes(seed: int) -> Measured:
    """Episodes equal bit for bit in processes with other hash seeds, and equal to the digest in the tests."""
    return tests("tests/backends/test_embedded_digest.py")


def speed(seed: int) -> Measured:
    """Turns per second through Session beside a bare Gymnasium text environment."""
    found = _cli("bench", "embedded", "--json")
    figure = {
        f"{one['language']}, {one['reply']}": {"turns_per_s": round(one["session"]), "ratio": round(one["ratio"], 1)}
        for one in found["rows"]
    }
    short = [one["session"] for one in found["rows"] if one["reply"] != "long"]
    return row(
        "rlver-gym bench embedded --json",
        figure,
        ">= 5,000 turns/s for short replies",
        found["turns"],
        min(short) >= 5000,
    )


LINES = (
    fit, one_entry, reads_the_reply, open_loop, closed_loop, attacks, searched, silence, dispositions, languages,
    sage_score, same_bytes, speed,
)  # fmt: skip

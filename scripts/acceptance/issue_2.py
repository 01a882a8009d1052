"""Issue 2: the house, the simulated user and the environment. A function a line, in the order of the issue."""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from scipy.stats import ttest_rel

from rlver_gym import load_personas
from rlver_gym.envs.registration import make_env
from rlver_gym.envs.rewards import final_reward
from rlver_gym.policies.scripted import SCRIPTED, scripted_policy
from rlver_gym.rollouts.metrics import bootstrap_interval
from rlver_gym.rollouts.runner import plan, run_episode
from scripts.acceptance.measure import ROOT, clean_clone, row, run, tests
from tests.rollouts.test_yardsticks import Noting, finals

Measured = dict[str, Any]


def demo(seed: int) -> Measured:
    """`make demo` in a clean clone, then the play itself with the network off."""
    with clean_clone() as clone:
        _, whole = run(["make", "demo", f"PYTHON={sys.executable}"], cwd=clone)
        tool = clone / ".venv-demo" / "bin" / "rlver-gym"
        _, play = run([str(tool), "demo", "--backend", "embedded", "--out", "again"], cwd=clone, offline=True)
        packages, _ = run([str(clone / ".venv-demo" / "bin" / "python"), "-m", "pip", "list"], cwd=clone)
        report = (clone / "again" / "report.html").read_text(encoding="utf-8")
    outside = len(re.findall(r"https?://|\bsrc=|url\(|@import|<link|<script", report))
    torch = bool(re.search(r"^torch\b", packages, re.MULTILINE))
    figure = {
        "seconds": round(whole, 1),
        "play_seconds": round(play, 2),
        "torch": torch,
        "external_references": outside,
    }
    bound = "seconds < 60, play < 2 with the network off, no torch, no external reference"
    return row("make demo", figure, bound, 1, whole < 60 and play < 2 and not torch and not outside)


def report_in_a_browser(seed: int) -> Measured:
    """The report in a real browser: opens from a file and asks for nothing else."""
    return tests("tests/evals/test_report_browser.py")


def gymnasium_conformance(seed: int) -> Measured:
    """check_env, make_vec, interleaving, seeds, byte-equality in other processes."""
    return tests("tests/envs/test_conformance.py", "tests/envs/test_spaces.py")


def rewards(seed: int) -> Measured:
    """200 episodes of every scripted policy on fresh seeds: zero until the end, then the table."""
    env = make_env("RLVER-Vanilla-v0", personas="all")
    wrong = episodes = 0
    for policy in SCRIPTED:
        for scenario in plan(env.scenario, env.people, episodes=200, seed=seed):
            session = Noting(env.people, env.backend, env.settings)
            episode = asyncio.run(run_episode(scripted_policy(policy), session, scenario))
            *before, last = session.steps
            expected = final_reward(episode.stop_reason, mood=episode.final_mood, start_mood=40, by_policy=False)
            zero = all(step.reward == 0.0 and not (step.terminated or step.truncated) for step in before)
            wrong += not (zero and last.terminated and last.reward == expected == episode.reward)
            episodes += 1
    figure = {"episodes_with_a_wrong_reward": wrong}
    return row(f"python scripts/accept.py --seed {seed}", figure, "0", episodes, wrong == 0)


def endings_and_secrets(seed: int) -> Measured:
    """Each StopReason reached by a test; no latent value in any observation."""
    return tests("tests/envs/test_session.py", "tests/rollouts/test_yardsticks.py")


def imported_people(seed: int) -> Measured:
    """The 60 SAGE profiles: everything scored; listening beats dismissal, in both wordings."""
    people = load_personas(ROOT.parent / "shared" / "data" / "sage" / "profiles_dev.jsonl")
    figure: Measured = {}
    ok = len(people) == 60
    for better, worse in (("listener", "dismissive"), ("listener2", "dismissive2")):
        one, two = (finals(policy, people, episodes=120, seed=seed) for policy in (better, worse))
        moods = [[episode.final_mood for episode in episodes] for episodes in (one, two)]
        p = float(ttest_rel(*moods, alternative="greater").pvalue)
        for name, ends in zip((better, worse), moods, strict=True):
            low, high = bootstrap_interval(ends)
            figure[name] = {"mean": round(sum(ends) / len(ends), 1), "ci95": [round(low, 1), round(high, 1)]}
        figure[f"p_{better}_above_{worse}"] = p
        ok &= p < 0.01 and all(episode.scored for episode in (*one, *two))
    return row(f"python scripts/accept.py --seed {seed}", figure, "all scored, p < 0.01 twice", 4 * 120, ok)


def real_server(seed: int) -> Measured:
    """SmolLM2 behind `transformers serve` as user and as policy."""
    bound = "at least half of the appraisals usable, at least one episode scored, raw answers kept"
    return tests("tests/real", bound=bound)


def named_faults(seed: int) -> Measured:
    """Against a loopback server: current mood, right person, call counts, overlap, typed faults, fences."""
    return tests("tests/rollouts/test_named_faults.py", "tests/prompts", "tests/backends")


def bootstrap(seed: int) -> Measured:
    """SB3's value of the start, and that of a twin whose cap is a truncation."""
    from tests.envs.test_bootstrap import value_of_the_start

    value, broken = (value_of_the_start(truncate=truncate, steps=6_144) for truncate in (False, True))
    figure = {"value_of_the_start": round(value, 3), "with_the_cap_as_truncation": round(broken, 3)}
    return row("python -m pytest tests/envs/test_bootstrap.py", figure, "<= 1.05", 6_144, value <= 1.05 < broken)


def house(seed: int) -> Measured:
    """Floors, file lengths, docstrings, exports, imports."""
    return tests("tests/architecture", "tests/test_import.py")


def types_and_style(seed: int) -> Measured:
    """mypy --strict and ruff."""
    run([sys.executable, "-m", "mypy"], cwd=ROOT)
    run([sys.executable, "-m", "ruff", "check", "."], cwd=ROOT)
    return row("python -m mypy && python -m ruff check .", "clean", "clean", 2, True)


def wheel(seed: int) -> Measured:
    """The wheel in an empty venv in another folder: finds its people and runs the demo."""
    with clean_clone() as clone, tempfile.TemporaryDirectory() as folder:
        run([sys.executable, "-m", "build", "--wheel", "--outdir", folder, str(clone)])
        (built,) = Path(folder).glob("*.whl")
        run([sys.executable, "-m", "venv", f"{folder}/venv"])
        python = f"{folder}/venv/bin/python"
        run([python, "-m", "pip", "install", "--quiet", str(built)])
        count = "import rlver_gym; print(len(rlver_gym.load_personas()))"
        people, _ = run([python, "-c", count], cwd=Path(folder), offline=True)
        out, _ = run([python, "-m", "rlver_gym", "demo", "--json"], cwd=Path(folder), offline=True)
        made = (Path(folder) / "rlver-demo" / "report.html").exists()
    figure = {"people": int(people), "demo": "satisfied" in out or "max_turns" in out or "left" in out, "report": made}
    ok = figure["people"] >= 12 and figure["demo"] and made
    return row("python -m build --wheel; pip install; python -m rlver_gym demo", figure, "people, demo, report", 1, ok)


LINES = (
    demo,
    report_in_a_browser,
    gymnasium_conformance,
    rewards,
    endings_and_secrets,
    imported_people,
    real_server,
    named_faults,
    bootstrap,
    house,
    types_and_style,
    wheel,
)

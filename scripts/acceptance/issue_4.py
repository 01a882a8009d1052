"""Issue 4: the people. A function a line, in the order of the issue."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import mean, median
from typing import Any

import yaml

from rlver_gym import load_personas
from rlver_gym.backends.embedded.appraise import appraise
from rlver_gym.backends.embedded.person import Moment
from rlver_gym.envs.registration import make_env
from rlver_gym.policies.registry import make_policy
from rlver_gym.rollouts.runner import plan, run_many
from rlver_gym.types import Episode, Language
from rlver_gym.users.copies import grams, grams_of, masked, overlaps
from rlver_gym.users.library import load_stock
from rlver_gym.users.persona import Persona
from rlver_gym.users.stock import StockScenario, strings
from scripts.acceptance.measure import ROOT, row, run, tests

Measured = dict[str, Any]
LANGUAGES: tuple[Language, ...] = ("en", "zh")
SUBSTANCE = {"en": 700, "zh": 2000}
"""Words, characters."""


def _check(*words: str) -> Any:
    """What `personas check` says; it exits 1 where a rule is broken, and that is a figure here."""
    command = [sys.executable, "-m", "rlver_gym", "personas", "check", *words, "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8", check=False)
    return json.loads(done.stdout)


def stock(seed: int) -> Measured:
    """How much is written, and that no two scenarios or characters are alike, names and numbers masked."""
    written = load_stock()
    pairs = Counter(one.parallel for one in written.scenarios if one.parallel)
    figure: Measured = {
        "scenarios": dict(Counter(one.language for one in written.scenarios)),
        "characters": dict(Counter(one.language for one in written.characters)),
        "topics": len({one.topic for one in written.scenarios}),
        "parallel_pairs": sum(count == 2 for count in pairs.values()),
        "fewest_openings": min(len(one.openings) for one in written.scenarios),
        "fewest_lines": min(len(one.lines) for one in written.scenarios),
    }
    for name, entries in (("scenarios", written.scenarios), ("characters", written.characters)):
        texts = {
            one.id: grams(
                masked(" ".join(text for _, text in strings(one.model_dump())), (), one.language), one.language
            )
            for one in entries
        }
        twins = {one.id: one.parallel for one in written.scenarios if one.parallel}
        found = [s for a, b, s in overlaps(texts) if not (a in twins and twins[a] == twins.get(b))]
        figure[f"largest_jaccard_of_{name}"] = round(max(found, default=0.0), 3)
    ok = min(figure["scenarios"].values()) >= 60 and len(written.characters) >= 80 and figure["topics"] >= 25
    ok &= figure["parallel_pairs"] >= 20 and figure["fewest_openings"] >= 6 and figure["fewest_lines"] >= 20
    ok &= figure["largest_jaccard_of_scenarios"] <= 0.25 and figure["largest_jaccard_of_characters"] <= 0.3
    bound = ">= 60 scenarios a language, 80 characters, 25 topics, 20 pairs; Jaccard <= 0.25 and 0.3"
    return row("personas/stock", figure, bound, len(written.scenarios) + len(written.characters), ok)


def people(seed: int) -> Measured:
    """Counts, balance and splits by the check; likeness of people of different scenarios; substance; first lines."""
    found = _check()
    everybody = load_personas()
    by_id = {person.id: person for person in everybody}
    texts = {person.id: grams_of(person) for person in everybody}
    largest = max(s for a, b, s in overlaps(texts) if by_id[a].scenario_id != by_id[b].scenario_id)
    needs = found["needs"]["train"].values()
    figure = {
        "problems": len(found["problems"]),
        "by_split": found["by_split"],
        "needs_in_train": [min(needs), max(needs)],
        "largest_jaccard": round(largest, 3),
        "median_substance": found["substance"],
        "first_lines_differ": round(found["first_lines_differ"], 3),
    }
    ok = not found["problems"] and largest < 0.4 and found["first_lines_differ"] >= 0.95
    ok &= all(found["substance"][language] >= SUBSTANCE[language] for language in LANGUAGES)
    bound = "no problem; Jaccard < 0.4; substance >= 700 words, 2,000 characters; first lines >= 0.95"
    return row("rlver-gym personas check --json", figure, bound, len(everybody), ok)


def printed(seed: int) -> Measured:
    """Twenty people stand whole in docs/, drawn by a commit's hash."""
    text = (ROOT / "docs" / "people.md").read_text(encoding="utf-8")
    shown = [person for person in load_personas() if f"({person.id})" in text]
    whole = [person for person in shown if all(line.text in text for line in person.lines)]
    return row("docs/people.md", {"people_shown_whole": len(whole)}, "20", len(shown), len(whole) == 20)


def diversity(seed: int) -> Measured:
    """Distinct-2 of the user's lines within an episode and over ten episodes of one person; no line twice."""
    figure: Measured = {}
    repeated = episodes = 0
    ok = True
    for language in LANGUAGES:
        everybody = load_personas(language=language)
        chosen = [everybody[index * len(everybody) // 30] for index in range(30)]
        within, over = [], []
        for person in chosen:
            played = _episodes("listener", (person,), 10, seed)
            said = [[turn.user for turn in one.turns if turn.user] for one in played]
            repeated += sum(len(set(lines)) < len(lines) for lines in said)
            episodes += len(said)
            within += [_distinct(lines, language) for lines in said]
            over.append(_distinct([line for lines in said for line in lines], language))
        figure[language] = {"episode": round(median(within), 3), "ten_episodes": round(median(over), 3)}
        ok &= median(within) >= 0.85 and median(over) >= 0.35
    figure["episodes_with_a_line_twice"] = repeated
    command = f"python scripts/accept.py --issue 4 --seed {seed}"
    return row(command, figure, ">= 0.85, >= 0.35, no line twice", episodes, ok and not repeated)


def _distinct(lines: Sequence[str], language: Language) -> float:
    """Share of distinct pairs of neighbours: words in English, characters in Chinese."""
    pairs = [
        pair for line in lines for pair in pairwise(re.findall(r"[\w']+" if language == "en" else r"\w", line.lower()))
    ]
    return len(set(pairs)) / max(len(pairs), 1)


def _episodes(policy: str, chosen: tuple[Persona, ...], count: int, seed: int) -> list[Episode]:
    env = make_env("RLVER-Vanilla-v0", personas=chosen)
    scenarios = plan(env.scenario, env.people, episodes=count, seed=seed)

    async def play() -> list[Episode]:
        return [one async for one in run_many(make_policy(policy), scenarios, env.new_session)]

    return asyncio.run(play())


def same_people(seed: int) -> Measured:
    """Twelve seeds give the same people in other processes; the shipped people are what the composer makes."""
    return tests("tests/users/test_generate.py")


def languages(seed: int) -> Measured:
    """Ten parallel replies to each of twenty parallel pairs; and how the scripted policies rank."""
    told = {(one.parallel, one.language): one for one in load_stock().scenarios if one.parallel}
    replies = yaml.safe_load((ROOT / "tests" / "data" / "parallel_people.yaml").read_text(encoding="utf-8"))
    changes: dict[Language, list[int]] = {"en": [], "zh": []}
    for pair in replies["pairs"]:
        for reply in pair["replies"]:
            for language in LANGUAGES:
                moment = _moment(told[pair["pair"], language], pair, reply[language])
                changes[language].append(appraise(moment)[0].change)
    both = list(zip(changes["en"], changes["zh"], strict=True))
    gap = mean(abs(one - other) for one, other in both)
    same = mean((one > 0) == (other > 0) for one, other in both)
    ranks = {}
    for language in LANGUAGES:
        chosen = load_personas(language=language)
        names = ("oracle", "listener", "polite", "advisor", "dismissive")
        moods = {name: mean(e.final_mood for e in _episodes(name, chosen, 200, seed)) for name in names}
        ranks[language] = sorted(moods, key=lambda name: -moods[name])
    figure = {"mean_absolute_difference": round(gap, 2), "same_sign": round(same, 3), "ranks": ranks}
    ok = gap <= 3 and same >= 0.85 and ranks["en"] == ranks["zh"]
    bound = "difference <= 3, same sign >= 0.85, equal ranks"
    return row("tests/data/parallel_people.yaml", figure, bound, len(both), ok)


def _moment(scenario: StockScenario, pair: Any, reply: str) -> Moment:
    """The first reply to the opening of a person who is the same in both languages but for the words."""
    twin = load_personas(language=scenario.language)[0].model_copy(
        update={
            "id": f"twin-{pair['pair']}",
            "hidden_need": pair["need"],
            "temperament": "even",
            "need_text": scenario.needs[pair["need"]].need_text,
        }
    )
    opening = scenario.openings[pair["opening"]].text
    return Moment(twin, ({"role": "user", "content": opening},), reply, 40, "B", 1, 1, 0)


def generated(seed: int) -> Measured:
    """A hundred people of a fresh seed."""
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "people.jsonl")
        words = ["personas", "generate", "-n", "100", "--seed", str(seed), "--out", out]
        run([sys.executable, "-m", "rlver_gym", *words], cwd=ROOT)
        found = _check(out)
    kinds = defaultdict(int)
    for problem in found["problems"]:
        kinds[problem["rule"]] += 1
    ok = found["people"] == 100 and not found["problems"]
    return row(f"rlver-gym personas generate -n 100 --seed {seed}", {"problems": dict(kinds)}, "0", 100, ok)


def rules(seed: int) -> Measured:
    """More than forty broken people, each reported by its own rule alone; the crisis detector."""
    return tests("tests/users/test_check.py", "tests/users/test_safety.py")


def written_and_imported(seed: int) -> Measured:
    """The writer with a script and the real small server; profiles both ways; errors that name file, person, field."""
    return tests(
        "tests/users/test_writer.py", "tests/real/test_writer.py", "tests/users/test_profiles.py",
        "tests/users/test_library.py",
    )  # fmt: skip


def loading(seed: int) -> Measured:
    """Seconds to load all people in a fresh process, and that importing the package loads nobody."""
    code = (
        "import time, rlver_gym, rlver_gym.users.library as library\n"
        "before = library._own_file.cache_info().currsize\n"
        "began = time.perf_counter(); people = rlver_gym.load_personas()\n"
        "print(before, len(people), time.perf_counter() - began)\n"
    )
    found = [run([sys.executable, "-c", code], cwd=ROOT)[0].split() for _ in range(5)]
    seconds = median(float(one[2]) for one in found)
    figure = {"loaded_by_import": int(found[0][0]), "people": int(found[0][1]), "seconds": round(seconds, 3)}
    ok = figure["loaded_by_import"] == 0 and figure["people"] == 600 and seconds < 0.5
    return row("rlver_gym.load_personas()", figure, "< 0.5 s, nothing before it is needed", 5, ok)


LINES = (
    stock, people, printed, diversity, same_people, languages, generated, rules, written_and_imported, loading,
)  # fmt: skip

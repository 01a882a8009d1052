"""The composer: who fits into which story, how evenly parts are dealt, and that equal seeds make equal people."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from typer.testing import CliRunner

from rlver_gym.cli.personas import app
from rlver_gym.errors import PersonaError, SetupError
from rlver_gym.users.generate import fits, generate
from rlver_gym.users.library import load_personas, load_stock
from rlver_gym.users.persona import HiddenNeed, Line, Persona, Temperament
from rlver_gym.users.stock import Stock, StockCharacter, StockScenario

ROOT = Path(__file__).parents[2]
NEEDS, TEMPERAMENTS = get_args(HiddenNeed), get_args(Temperament)


def scenario(number: int = 0, **changed: Any) -> StockScenario:
    case = {"need_text": f"I hope for it, {number}.", "goal": "{name} says hello.", "raises": ["{his} way", "b", "c"],
            "lowers": ["a", "b", "c"]}  # fmt: skip
    record: dict[str, Any] = {
        "id": f"en-s-story{number}",
        "language": "en",
        "region": "us",
        "topic": "work",
        "who": {"ages": [20, 60]},
        "background": {"cause": "{name} lost {his} key. {He} asked around, and they helped {him} find it {himself}."},
        "needs": {need: case for need in NEEDS},
        "openings": [
            {"text": f"{number} first words of {kind} and {need}.", "temperaments": [kind], "needs": [need]}
            for kind in TEMPERAMENTS
            for need in NEEDS
        ],
        "lines": [Line(tier="B", openness="open", text=f"I am glad, {n}.") for n in range(20)],
    }
    return StockScenario.model_validate(record | changed)


def character(number: int = 0, **changed: Any) -> StockCharacter:
    record: dict[str, Any] = {
        "id": f"en-c-person{number}",
        "language": "en",
        "region": "us",
        "name": f"Ann{number} Body{number}",
        "gender": "female",
        "ages": [30, 40],
        "stage": "working",
        "occupation": "clerk",
        "family": ["single"],
        "interests": ["a", "b", "c"],
        "habits": "Whistles.",
        "temperament": TEMPERAMENTS[number % 4],
        "traits": ["a", "b", "c"],
        "voice": {"style": "short", "phrases": ["Well."]},
        "mood_signs": {},
    }
    return StockCharacter.model_validate(record | changed)


STOCK = Stock(tuple(scenario(n) for n in range(10)), tuple(character(n) for n in range(12)))


def people(count: int, seed: int = 1, stock: Stock = STOCK) -> tuple[Persona, ...]:
    return generate(stock, count=count, seed=seed, split="train", language="en")


@pytest.mark.parametrize(
    ("plot", "cast", "fit"),
    [
        ({}, {}, True),
        ({"who": {"ages": [20, 30]}}, {}, True),
        ({"who": {"ages": [20, 29]}}, {}, False),
        ({"who": {"ages": [41, 60]}}, {}, False),
        ({"who": {"ages": [20, 60], "gender": "female"}}, {}, True),
        ({"who": {"ages": [20, 60], "gender": "male"}}, {}, False),
        ({"who": {"ages": [20, 60], "stages": ["retired"]}}, {}, False),
        ({"who": {"ages": [20, 60], "stages": ["retired", "working"]}}, {}, True),
        ({"who": {"ages": [20, 60], "family": ["children"]}}, {}, False),
        ({"who": {"ages": [20, 60], "family": ["children"]}}, {"family": ["single", "children"]}, True),
        ({"region": "uk"}, {}, False),
        ({"topic": "Ann0 comes in here"}, {}, False),
        ({"topic": "the body0 shop"}, {}, False),
        ({"topic": "Annabel is nobody"}, {"name": "Anna Bel"}, True),
    ],
)
def test_a_story_takes_only_whom_it_can_have_happened_to(plot: dict[str, Any], cast: dict[str, Any], fit: bool) -> None:
    assert fits(scenario(**plot), character(**cast)) is fit


def test_a_chinese_given_name_in_the_story_keeps_the_character_out() -> None:
    zh = {"language": "zh", "region": "cn"}
    case = {"need_text": "盼着。", "goal": "聊聊。", "raises": ["一", "二", "三"], "lowers": ["一", "二", "三"]}
    told = {"topic": "云秀来过", "background": {"cause": "{name}丢了钥匙。"}, "needs": dict.fromkeys(NEEDS, case)}
    plot = scenario(id="zh-s-x", **told, **zh)
    assert not fits(plot, character(id="zh-c-x", name="冯云秀", **zh))
    assert fits(plot, character(id="zh-c-y", name="冯云山", **zh))


def test_parts_are_dealt_evenly() -> None:
    made = people(80)
    assert len({person.id for person in made}) == 80
    for of, kinds in (
        (lambda person: person.hidden_need, 8),
        (lambda person: person.temperament, 4),
        (lambda person: person.scenario_id, 10),
        (lambda person: person.character_id, 12),
    ):
        counts = Counter(of(person) for person in made)
        assert len(counts) == kinds and max(counts.values()) - min(counts.values()) <= 2
    assert max(Counter((person.scenario_id, person.hidden_need) for person in made).values()) == 1


def test_openings_are_the_persons_own_and_nobody_elses() -> None:
    made = people(80)
    texts = [text for person in made for text in person.openings]
    assert len(texts) == len(set(texts)) and all(person.openings for person in made)
    meant = [person.temperament in person.openings[0] and person.hidden_need in person.openings[0] for person in made]
    assert sum(meant) >= 76


def test_nobody_is_given_the_opening_of_another_temperament_unless_there_is_no_other() -> None:
    told = [{"text": f"First words {n} of a negative one.", "temperaments": ["negative"]} for n in range(4)]
    plain = [{"text": f"First words {n} of anybody.", "temperaments": []} for n in range(2)]
    stock = Stock((scenario(openings=[*told, *plain]),), STOCK.characters)
    made = people(4, stock=stock)
    strange = [person for person in made if person.temperament != "negative" and "negative" in "".join(person.openings)]
    assert [len(person.openings) for person in strange] == [1], "two plain ones, for three who are not negative"
    assert sum(len(person.openings) for person in made) == 6


def test_temperaments_are_even_even_if_the_characters_are_not() -> None:
    cast = [character(n, temperament="negative") for n in range(9)]
    cast += [character(9 + n, temperament=kind) for n, kind in enumerate(TEMPERAMENTS[1:])]
    made = people(40, stock=Stock(STOCK.scenarios, tuple(cast)))
    counts = Counter(person.temperament for person in made)
    assert len(counts) == 4 and min(counts.values()) >= 6


def test_when_openings_run_out_everybody_still_has_one() -> None:
    made = people(800)
    assert len({person.id for person in made}) == 800 and all(person.openings for person in made)
    assert any(person.id.endswith("-2") for person in made)


def test_slots_are_filled_by_gender() -> None:
    her = people(1)[0]
    stock = Stock(STOCK.scenarios[:1], (character(gender="male", name="Tom Body"),))
    him = people(1, stock=stock)[0]
    assert him.background.cause == "Tom lost his key. He asked around, and they helped him find it himself."
    assert her.background.cause.endswith("They".lower() + " helped her find it herself.")
    assert (him.goal, him.raises[0], him.gender) == ("Tom says hello.", "his way", "male")


def test_age_and_work_are_what_both_have_in_common() -> None:
    stock = Stock((scenario(who={"ages": [36, 60], "occupation": "baker of rolls"}),), STOCK.characters)
    made = people(24, stock=stock)
    assert {person.occupation for person in made} == {"baker of rolls"}
    assert {36 <= (person.age or 0) <= 40 for person in made} == {True} and len({person.age for person in made}) > 1
    assert {person.occupation for person in people(5)} == {"clerk"}


def test_an_id_says_nothing_of_the_need() -> None:
    assert not any(need in person.id for person in people(80) for need in NEEDS)


def test_other_splits_and_languages_are_left_out_and_an_empty_stock_is_an_error() -> None:
    stock = Stock((*STOCK.scenarios, scenario(99, split="test")), STOCK.characters)
    assert "en-s-story99" not in {person.scenario_id for person in people(80, stock=stock)}
    with pytest.raises(SetupError, match="no character"):
        generate(STOCK, count=1, seed=1, split="test", language="en")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"background": {"cause": "{she} lost it."}}, "she"),
        ({"lines": [{"tier": "B", "openness": "open", "text": "{name} is glad."}] * 20}, "slot"),
        ({"openings": [{"text": "I am {name}."}] * 6}, "slot"),
        ({"background": {"timeline": [{"when": "now", "what": "x", "thought": "I saw {him}."}]}}, "him"),
    ],
)
def test_a_slot_where_none_belongs_is_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        scenario(**changed)


def test_a_stock_is_read_from_a_folder_and_equal_seeds_make_equal_people_in_any_process(tmp_path: Path) -> None:
    for kind, entries in (("scenarios", STOCK.scenarios), ("characters", STOCK.characters)):
        (tmp_path / "en" / kind).mkdir(parents=True)
        for one in entries:
            text = yaml.safe_dump(one.model_dump(mode="json"), allow_unicode=True)
            (tmp_path / "en" / kind / f"{one.id}.yaml").write_text(text, encoding="utf-8")
    stock = load_stock(tmp_path)
    assert {one.id for one in stock.scenarios} == {one.id for one in STOCK.scenarios}
    here = hashlib.sha256()
    for seed in range(12):
        for one in generate(stock, count=8, seed=seed, split="train", language="en"):
            here.update(one.model_dump_json().encode())
    code = (
        "import hashlib, sys\n"
        "from rlver_gym.users.generate import generate\n"
        "from rlver_gym.users.library import load_stock\n"
        "stock, digest = load_stock(sys.argv[1]), hashlib.sha256()\n"
        "for seed in range(12):\n"
        "    for one in generate(stock, count=8, seed=seed, split='train', language='en'):\n"
        "        digest.update(one.model_dump_json().encode())\n"
        "print(digest.hexdigest())\n"
    )
    for hash_seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)],
            cwd=ROOT,
            env=os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONUTF8": "1"},
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=True,
        )
        assert done.stdout.strip() == here.hexdigest()


def test_a_broken_file_of_the_stock_is_named(tmp_path: Path) -> None:
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "characters").mkdir()
    file = tmp_path / "characters" / "en-c-x.yaml"
    file.write_text("id: en-c-x\nlanguage: en\n", encoding="utf-8")
    with pytest.raises(PersonaError, match=r"en-c-x\.yaml: person 'en-c-x': region"):
        load_stock(tmp_path)


def test_the_command_writes_people_half_in_each_language(tmp_path: Path) -> None:
    out = tmp_path / "new.jsonl"
    for kind in ("scenarios", "characters"):
        (tmp_path / kind).mkdir()
    for one in (*STOCK.scenarios, *STOCK.characters):
        kind = "scenarios" if isinstance(one, StockScenario) else "characters"
        text = one.model_dump_json()
        for language in ("en", "zh"):
            changed = text.replace('"language":"en"', f'"language":"{language}"').replace('"en-', f'"{language}-')
            if language == "zh":
                changed = re.sub(r"\{(?:he|his|him|himself)\}", "{ta}", changed, flags=re.IGNORECASE)
            (tmp_path / kind / f"{language}-{one.id}.yaml").write_text(changed, encoding="utf-8")
    words = ["generate", "--stock", str(tmp_path), "--out", str(out), "--seed", "3", "-n"]
    done = CliRunner().invoke(app, [*words, "7"])
    assert done.exit_code == 0, done.output
    assert Counter(person.language for person in load_personas(out)) == {"en": 4, "zh": 3}
    assert CliRunner().invoke(app, [*words, "7"]).exit_code != 0, "an existing file is not written over"

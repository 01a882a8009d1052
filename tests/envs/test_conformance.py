"""The environment as Gymnasium sees it: ids, checker, seeds, autoreset, pickling, asynchronous vectors."""

from __future__ import annotations

import asyncio
import copy
import json
import os
import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

import rlver_gym
from rlver_gym.backends.scripted import ScriptedBackend
from rlver_gym.envs.registration import DIFFICULTIES
from rlver_gym.errors import EpisodeStateError, SetupError, UnknownNameError
from tests.people import FOLDER, PEOPLE

IDS = tuple(DIFFICULTIES)
REPLIES = (
    "What happened?",
    "I see.",
    "",
    "那后来呢？",
    "You should move on. Everyone has this. 🙂",
    "Tell me more about that evening.",
)


def play(env: gymnasium.Env[str, str], seed: int | None = None, replies: tuple[str, ...] = REPLIES) -> list[object]:
    """One episode as comparable data: everything that the environment returned, NaN made comparable."""
    observation, info = env.reset(seed=seed)
    log: list[object] = [observation, repr(info)]
    for turn in range(20):
        step = env.step(replies[turn % len(replies)])
        log += [step[0], repr(step[1]), step[2], step[3], repr(step[4])]
        if step[2] or step[3]:
            return log
    raise AssertionError("no end in 20 turns")


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize(
    "arguments", [{}, {"observation": "transcript"}, {"think": True}, {"fused": True, "language": "zh"}]
)
def test_check_env_passes_with_warnings_as_errors(env_id: str, arguments: dict[str, object]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(env_id, **arguments).unwrapped)


@pytest.mark.parametrize("env_id", IDS)
def test_spec_says_deterministic_and_survives_json(env_id: str) -> None:
    spec = gymnasium.spec(env_id)
    assert spec.nondeterministic is False
    assert spec.entry_point == "rlver_gym.envs.sentient:SentientEnv"
    again = gymnasium.envs.registration.EnvSpec.from_json(spec.to_json())
    assert gymnasium.make(again).reset(seed=3)[0] == gymnasium.make(env_id).reset(seed=3)[0]


def test_live_backend_says_so_on_its_own_spec_only() -> None:
    class Live(ScriptedBackend):
        deterministic = False

    live = gymnasium.make("RLVER-Vanilla-v0", backend=Live([]))
    assert live.spec is not None and live.spec.nondeterministic is True
    assert gymnasium.make("RLVER-Vanilla-v0").spec.nondeterministic is False  # type: ignore[union-attr]
    assert gymnasium.spec("RLVER-Vanilla-v0").nondeterministic is False


@pytest.mark.parametrize("env_id", IDS)
def test_interleaved_environments_equal_separate_ones(env_id: str) -> None:
    apart = [play(gymnasium.make(env_id), seed) for seed in (1, 2, 3)]
    envs = [gymnasium.make(env_id) for _ in range(3)]
    logs: list[list[object]] = []
    for env, seed in zip(envs, (1, 2, 3), strict=True):
        observation, info = env.reset(seed=seed)
        logs.append([observation, repr(info)])
    alive = [True] * 3
    for turn in range(20):
        for index, env in enumerate(envs):
            if alive[index]:
                step = env.step(REPLIES[turn % len(REPLIES)])
                logs[index] += [step[0], repr(step[1]), step[2], step[3], repr(step[4])]
                alive[index] = not (step[2] or step[3])
    assert logs == apart
    assert apart[0] != apart[1]


def test_unseeded_resets_follow_a_seeded_one() -> None:
    env = gymnasium.make("RLVER-Vanilla-v0")

    def three() -> list[tuple[str, int]]:
        first = env.reset(seed=123)
        rest = [env.reset(), env.reset()]
        return [(observation, info["seed"]) for observation, info in [first, *rest]]

    once, twice = three(), three()
    assert once == twice
    assert len({seed for _, seed in once}) == 3


def test_seed_in_info_begins_the_same_episode_again() -> None:
    env = gymnasium.make("RLVER-Vanilla-v0")
    env.reset(seed=5)
    _, info = env.reset()
    assert play(gymnasium.make("RLVER-Vanilla-v0"), info["seed"])[1] == repr(info)


def test_group_members_share_person_and_first_words() -> None:
    env = gymnasium.make("RLVER-Vanilla-v0", personas="all")
    starts = [env.reset(seed=9, options={"persona_id": "zh-lin-team", "member": member}) for member in range(4)]
    assert len({observation for observation, _ in starts}) == 1
    assert [info["member"] for _, info in starts] == [0, 1, 2, 3]
    other = {env.reset(seed=seed, options={"persona_id": "zh-lin-team"})[0] for seed in range(40)}
    assert len(other) > 1, "seeds vary the first words"


PROGRAM = """
import gymnasium, rlver_gym, hashlib, json, sys
out = {}
for env_id in ("RLVER-Vanilla-v0", "RLVER-Challenging-v0", "RLVER-Curriculum-v0"):
    env = gymnasium.make(env_id, personas="all")
    log = []
    for seed in range(6):
        observation, info = env.reset(seed=seed)
        log += [observation, repr(info)]
        ended = False
        while not ended:
            reply = ["What happened?", "那后来呢？", "I hear how hard that was.", ""][int(info["turn"]) % 4]
            observation, reward, terminated, truncated, info = env.step(reply)
            log += [observation, repr(reward), repr(info)]
            ended = terminated or truncated
    out[env_id] = hashlib.sha256("".join(log).encode()).hexdigest()
print(json.dumps(out))
"""


def test_an_episode_is_byte_equal_in_other_processes(tmp_path: Path) -> None:
    places = [
        {"PYTHONHASHSEED": "0", "LC_ALL": "C", "TZ": "UTC"},
        {"PYTHONHASHSEED": "1", "LC_ALL": "C.UTF-8", "TZ": "Asia/Shanghai"},
        {"PYTHONHASHSEED": "4711", "LC_ALL": "POSIX", "TZ": "America/St_Johns", "PYTHONUTF8": "0"},
    ]
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    digests = []
    for number, place in enumerate(places):
        folder = tmp_path / str(number)
        folder.mkdir()
        run = subprocess.run(
            [sys.executable, str(program)], cwd=folder, env=os.environ | place, capture_output=True, check=True
        )
        digests.append(json.loads(run.stdout))
    assert digests[0] == digests[1] == digests[2]
    assert len(set(digests[0].values())) == 2, "Challenging differs; Curriculum begins as Vanilla does"


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_make_vec_gives_each_environment_its_own_text(mode: AutoresetMode) -> None:
    seeds = [11, 12, 13]
    envs = gymnasium.make_vec(
        "RLVER-Vanilla-v0", num_envs=3, vectorization_mode="sync", vector_kwargs={"autoreset_mode": mode}, max_turns=2
    )
    singles = [gymnasium.make("RLVER-Vanilla-v0", max_turns=2) for _ in seeds]
    observations, infos = envs.reset(seed=seeds)
    assert observations == tuple(env.reset(seed=seed)[0] for env, seed in zip(singles, seeds, strict=True))
    assert infos["latent"]["mood"].tolist() == [40.0] * 3
    first = envs.step(("What happened?",) * 3)
    assert first[0] == tuple(env.step("What happened?")[0] for env in singles)
    last = envs.step(("I see.", "", "那后来呢？"))
    ends = [env.step(reply) for env, reply in zip(singles, ("I see.", "", "那后来呢？"), strict=True)]
    assert last[2].tolist() == [True] * 3
    assert last[1].tolist() == [end[1] for end in ends]
    if mode is AutoresetMode.SAME_STEP:
        assert tuple(last[4]["final_obs"]) == tuple(end[0] for end in ends)
        assert last[4]["final_info"]["latent"]["mood"].tolist() == [end[4]["latent"]["mood"] for end in ends]
        fresh, infos = last[0], last[4]
    else:
        assert last[0] == tuple(end[0] for end in ends)
        if mode is AutoresetMode.NEXT_STEP:
            fresh, rewards, _, _, infos = envs.step(("ignored",) * 3)
            assert rewards.tolist() == [0.0] * 3
        else:
            fresh, infos = envs.reset(options={"reset_mask": np.array([True] * 3)})
    assert infos["turn"].tolist() == [0.0] * 3
    assert all(fresh) and all(isinstance(text, str) for text in fresh)


@pytest.mark.parametrize("context", ["fork", "spawn"])
@pytest.mark.parametrize("shared_memory", [True, False])
def test_async_vectors_give_true_text(context: str, shared_memory: bool) -> None:
    make = {"num_envs": 2, "personas": "all", "max_turns": 3}
    sync = gymnasium.make_vec("rlver_gym:RLVER-Vanilla-v0", vectorization_mode="sync", **make)
    others = gymnasium.make_vec(
        "rlver_gym:RLVER-Vanilla-v0",
        vectorization_mode="async",
        vector_kwargs={"context": context, "shared_memory": shared_memory},
        **make,
    )
    try:
        assert sync.reset(seed=[4, 5])[0] == others.reset(seed=[4, 5])[0]
        for reply in REPLIES:
            one, other = sync.step((reply, reply[::-1])), others.step((reply, reply[::-1]))
            assert one[0] == other[0]
            assert one[1].tolist() == other[1].tolist()
    finally:
        others.close()


def test_environments_survive_pickle_and_deepcopy_in_the_middle_of_an_episode() -> None:
    env = gymnasium.make("RLVER-Vanilla-v0").unwrapped
    env.reset(seed=21)
    env.step(REPLIES[0])
    twins = [pickle.loads(pickle.dumps(env)), copy.deepcopy(env)]
    expected = [env.step(reply)[0] for reply in REPLIES[1:4]]
    assert all([twin.step(reply)[0] for reply in REPLIES[1:4]] == expected for twin in twins)


def test_environments_survive_a_fork_after_the_first_step() -> None:
    env = gymnasium.make("RLVER-Vanilla-v0")
    env.reset(seed=1)
    env.step("What happened?")
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        os.write(writer, env.step("I see.")[0].encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as pipe:
        said = pipe.read()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert said == env.step("I see.")[0]


async def test_step_works_inside_a_running_loop() -> None:
    await asyncio.sleep(0)
    assert play(gymnasium.make("RLVER-Vanilla-v0"), 1) == await asyncio.to_thread(
        play, gymnasium.make("RLVER-Vanilla-v0"), 1
    )


def test_out_of_order_calls_raise() -> None:
    env = gymnasium.make("RLVER-Vanilla-v0", max_turns=1, render_mode="ansi").unwrapped
    with pytest.raises(EpisodeStateError, match="before reset"):
        env.step("hi")
    with pytest.raises(EpisodeStateError, match="before reset"):
        env.render()
    env.reset(seed=0)
    env.step("hi")
    with pytest.raises(EpisodeStateError, match="after the end"):
        env.step("hi")
    with pytest.raises(TypeError, match="must be a str, not int"):
        env.reset(seed=0), env.step(5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_turn": 3}, "did you mean 'max_turns'"),
        ({"backend": "embeded"}, "did you mean 'embedded'"),
        ({"language": "eng"}, "did you mean 'en'"),
        ({"personas": "trian"}, "did you mean 'train'"),
        ({"render_mode": "rgb_array"}, "there are 'ansi', 'human'"),
        ({"observation": "tokens"}, "observation"),
        ({"start_mood": 140}, "start_mood"),
        ({"max_turns": 0}, "max_turns"),
        ({"backend": "openai:"}, "openai:"),
    ],
)
def test_wrong_arguments_fail_at_construction(arguments: dict[str, object], message: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(SetupError, match=message):
            gymnasium.make("RLVER-Vanilla-v0", **arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"persona": "x"}, "did you mean 'persona_id'"),
        ({"persona_id": "en-maya-lap"}, "did you mean 'en-maya-lab'"),
        ({"difficulty": 0.5}, "fixed at 0.0"),
    ],
)
def test_wrong_reset_options_fail(options: dict[str, object], message: str) -> None:
    with pytest.raises(SetupError, match=message):
        gymnasium.make("RLVER-Vanilla-v0", personas=FOLDER).reset(options=options)


def test_people_can_be_objects_and_paths() -> None:
    maya = PEOPLE["en-maya-lab"]
    assert gymnasium.make("RLVER-Vanilla-v0", personas=[maya]).reset(seed=1)[1]["persona_id"] == "en-maya-lab"
    folder = FOLDER / "zh"
    assert gymnasium.make("RLVER-Vanilla-v0", personas=folder).reset(seed=1)[1]["persona_id"].startswith("zh-")
    with pytest.raises(UnknownNameError):
        gymnasium.make("RLVER-Vanilla-v0", personas="no/such/folder")


def test_render_modes(capsys: pytest.CaptureFixture[str]) -> None:
    env = gymnasium.make("RLVER-Vanilla-v0", render_mode="ansi", language="en")
    observation, _ = env.reset(seed=2)
    env.step("What happened?")
    text = env.render()
    assert isinstance(text, str) and observation in text and "policy: What happened?" in text and "[ 40 B]" in text
    assert capsys.readouterr().out == ""
    human = gymnasium.make("RLVER-Vanilla-v0", render_mode="human", language="en")
    human.reset(seed=2)
    human.step("What happened?")
    assert human.render() is None
    assert capsys.readouterr().out.strip() == text


def test_info_is_fresh_and_has_the_same_keys_and_types_throughout() -> None:
    env = gymnasium.make("RLVER-Vanilla-v0", max_turns=3)
    _, first = env.reset(seed=1)
    kept = copy.deepcopy(first)

    def shape(value: object) -> object:
        return {k: shape(v) for k, v in value.items()} if isinstance(value, dict) else type(value)

    for reply in REPLIES[:3]:
        *_, info = env.step(reply)
        assert shape(info) == shape(first)
    first["messages"][0]["content"] = "changed"
    first["latent"]["mood"] = -1.0
    assert env.reset(seed=1)[1] == kept


def test_curriculum_is_shared_by_the_environments_of_a_vector() -> None:
    curriculum = rlver_gym.Curriculum()
    curriculum.load_state_dict({"tenths": 7, "moods": []})
    envs = gymnasium.make_vec(
        "RLVER-Curriculum-v0", num_envs=3, vectorization_mode="sync", curriculum=curriculum, max_turns=1
    )
    assert envs.reset(seed=0)[1]["difficulty"].tolist() == [0.7] * 3
    envs.step(("hi",) * 3)
    assert len(curriculum.state_dict()["moods"]) == 3
    chosen = gymnasium.make("RLVER-Curriculum-v0").reset(options={"difficulty": 0.3})[1]
    assert chosen["difficulty"] == 0.3


def test_the_data_sheets_example_is_true() -> None:
    import doctest

    from rlver_gym.envs import sentient

    found = doctest.testmod(sentient)
    assert found.attempted >= 5 and found.failed == 0

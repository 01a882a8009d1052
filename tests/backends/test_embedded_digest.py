"""The embedded user is the same bit for bit on every Python and machine: one digest for all of them.

A change of words, features or weights changes the digest, and has to raise the environments' version if it moves
scores.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DIGEST = "a0b07b426e88da7312ceb51581ff5b378a23f736e52cfc5ca363cc6c677a90e5"
SCRIPT = """
import asyncio, hashlib, json, sys
from rlver_gym.envs.registration import make_env
from rlver_gym.policies.registry import make_policy
from rlver_gym.rollouts.runner import plan, run_many

async def play():
    digest = hashlib.sha256()
    for env_id in ("RLVER-Vanilla-v0", "RLVER-Challenging-v0"):
        env = make_env(env_id, personas="all")
        for name in ("oracle", "listener", "advisor", "dismissive"):
            scenarios = plan(env.scenario, env.people, episodes=24, seed=int(sys.argv[1]))
            played = {e.scenario: e async for e in run_many(make_policy(name), scenarios, env.new_session)}
            for scenario in scenarios:
                for turn in played[scenario].turns:
                    said = [turn.user, turn.appraisal.thought, turn.appraisal.change, list(turn.appraisal.moved)]
                    digest.update(json.dumps(said, ensure_ascii=False).encode("utf-8"))
    print(digest.hexdigest())

asyncio.run(play())
"""


def digest(seed: int, hash_seed: str) -> str:
    environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(seed)], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.mark.parametrize("hash_seed", ["0", "4711"])
def test_the_digest_is_that_of_every_python(hash_seed: str) -> None:
    assert digest(3, hash_seed) == DIGEST


def test_other_episodes_have_another_digest() -> None:
    assert digest(4, "0") != DIGEST

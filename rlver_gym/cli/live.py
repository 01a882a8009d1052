"""One episode in the terminal, turn by turn, and its two files: `episodes.jsonl` and `report.html`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from rlver_gym.cli.console import print_turn, print_words
from rlver_gym.envs.sentient import SentientEnv
from rlver_gym.envs.session import Session
from rlver_gym.evals.report import write_report
from rlver_gym.policies.base import Policy
from rlver_gym.rollouts.runner import run_episode
from rlver_gym.rollouts.store import EpisodeStore
from rlver_gym.types import Episode, Scenario


def play_live(env: SentientEnv, policy: Policy, scenario: Scenario, console: Console, *, reveal: bool) -> Episode:
    """Play one episode and show it as it goes on.

    Args:
        env: whose user is met.
        policy: who replies.
        scenario: where it starts.
        console: where to.
        reveal: show mood, thoughts and the policy's words too; else only what the user says.
    """

    def watch(session: Session) -> None:
        name = session.persona.name
        if not session.turns:
            print_words(console, name, session.messages[0]["content"], session.mood if reveal else None)
        elif reveal:
            print_turn(console, session.turns[-1], name, session.moods[-2])
        elif session.turns[-1].user:
            print_words(console, name, session.turns[-1].user)

    async def run() -> Episode:
        try:
            return await run_episode(policy, env.new_session(), scenario, watch=watch)
        finally:
            await policy.aclose()
            await env.backend.aclose()

    return asyncio.run(run())


def write_files(episodes: Sequence[Episode], folder: Path, *, title: str) -> tuple[Path, Path]:
    """Write `episodes.jsonl` and `report.html` into a folder and return their paths."""
    store = EpisodeStore(folder / "episodes.jsonl")
    for episode in episodes:
        store.append(episode)
    report = folder / "report.html"
    write_report(episodes, report, title=title)
    return store.path, report

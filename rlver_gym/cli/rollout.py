"""`rlver-gym rollout`: a policy against many people, with the result on screen, as JSON, and in files."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from rlver_gym.cli import options
from rlver_gym.cli.console import summary_table
from rlver_gym.envs.registration import make_env
from rlver_gym.envs.sentient import SentientEnv
from rlver_gym.evals.report import write_report
from rlver_gym.policies.base import Policy
from rlver_gym.policies.registry import make_policy
from rlver_gym.rollouts.metrics import summary
from rlver_gym.rollouts.runner import plan, run_many
from rlver_gym.rollouts.store import EpisodeStore
from rlver_gym.types import Episode, Scenario
from rlver_gym.users.mood import MAX_TURNS


def rollout(
    backend: options.BackendSpec,
    env_id: options.EnvId = "RLVER-Vanilla-v0",
    policy: options.PolicySpec = "listener",
    episodes: Annotated[int, typer.Option("--episodes", min=1, help="How many; the people take turns.")] = 20,
    seed: options.Seed = 0,
    personas: options.People = "train",
    language: options.LanguageName = None,
    think: options.Think = False,
    max_turns: options.MaxTurns = MAX_TURNS,
    concurrency: Annotated[int, typer.Option("--concurrency", min=1, help="Episodes at a time.")] = 64,
    out: Annotated[
        Path | None, typer.Option("--out", help="New folder for episodes.jsonl, summary.json, report.html.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on in --out: play what is not there yet.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Play a policy against simulated people and say how they felt in the end."""
    env = make_env(env_id, **options.env_arguments(backend, personas, language, think), max_turns=max_turns)
    player = make_policy(policy, think=think)
    store = EpisodeStore(options.new_folder(out, resume=resume) / "episodes.jsonl") if out else None
    scenarios = plan(env.scenario, env.people, episodes=episodes, seed=seed)
    done = {episode.scenario: episode for episode in store or ()}
    missing = [scenario for scenario in scenarios if scenario not in done]
    began = time.monotonic()
    played = asyncio.run(_play(env, player, missing, concurrency, store))
    done |= {episode.scenario: episode for episode in played}
    results = [done[scenario] for scenario in scenarios]
    metrics = {"env": env_id, "policy": player.name, "backend": env.backend.name, "seed": seed}
    metrics |= summary(results, seconds=time.monotonic() - began)
    if out:
        (out / "summary.json").write_text(json.dumps(metrics, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
        write_report(results, out / "report.html", title=f"{player.name} in {env_id}")
    if as_json:
        print(json.dumps(metrics, ensure_ascii=False))
    else:
        Console().print(summary_table(metrics))
    if metrics["mean_final_mood"] is None:
        raise typer.Exit(3)


async def _play(
    env: SentientEnv, policy: Policy, scenarios: list[Scenario], concurrency: int, store: EpisodeStore | None
) -> list[Episode]:
    episodes = []
    columns = (
        TextColumn("episodes"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=len(scenarios))
        try:
            async for episode in run_many(policy, scenarios, env.new_session, concurrency=concurrency):
                episodes.append(episode)
                if store:
                    store.append(episode)
                progress.update(task, advance=1, description=f"{sum(len(e.turns) for e in episodes)} turns")
        finally:
            await policy.aclose()
            await env.backend.aclose()
    return episodes

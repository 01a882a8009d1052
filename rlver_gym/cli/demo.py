"""`rlver-gym demo`: one episode on screen and as a report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from rlver_gym.cli import options
from rlver_gym.cli.console import print_end
from rlver_gym.cli.live import play_live, write_files
from rlver_gym.envs.registration import make_env
from rlver_gym.policies.registry import make_policy
from rlver_gym.types import StopReason


def demo(
    backend: options.BackendSpec,
    env_id: options.EnvId = "RLVER-Vanilla-v0",
    policy: options.PolicySpec = "listener",
    personas: options.People = "train",
    language: options.LanguageName = "en",
    think: options.Think = False,
    seed: options.Seed = 7,
    out: Annotated[
        Path | None, typer.Option("--out", help="New folder for the two files. [default: rlver-demo]")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Play one episode with the mood beside each turn; write report.html and episodes.jsonl."""
    env = make_env(env_id, **options.env_arguments(backend, personas, language, think))
    player = make_policy(policy, think=think)
    folder = options.new_folder(out or options.free_folder("rlver-demo"))
    console = Console(stderr=as_json)
    episode = play_live(env, player, env.scenario(seed), console, reveal=True)
    print_end(console, episode)
    path, report = write_files([episode], folder, title="One conversation")
    if as_json:
        print(episode.model_dump_json(indent=2))
    else:
        console.print(f"report    {report}\nepisodes  {path}", highlight=False, soft_wrap=True)
    if episode.stop_reason.is_fault or episode.stop_reason is StopReason.CONTEXT:
        raise typer.Exit(3)

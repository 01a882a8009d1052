"""`rlver-gym play`: you are the policy."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from rlver_gym.cli import options
from rlver_gym.cli.console import print_end, print_turn, print_words
from rlver_gym.cli.live import play_live, write_files
from rlver_gym.envs.registration import make_env
from rlver_gym.policies.human import HumanPolicy
from rlver_gym.types import Episode, Message
from rlver_gym.users.mood import MAX_TURNS


def play(
    backend: options.BackendSpec,
    env_id: options.EnvId = "RLVER-Vanilla-v0",
    personas: options.People = "train",
    language: options.LanguageName = "en",
    person: Annotated[
        str | None, typer.Option("--person", help="Id of the person; drawn by the seed if left out.")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Another seed, another person.")] = None,
    max_turns: options.MaxTurns = MAX_TURNS,
    out: Annotated[Path | None, typer.Option("--out", help="New folder for report.html and episodes.jsonl.")] = None,
) -> None:
    """Talk to a simulated person; their mood and thoughts are revealed at the end."""
    env = make_env(env_id, **options.env_arguments(backend, personas, language, think=False), max_turns=max_turns)
    folder = options.new_folder(out) if out else None
    console = Console()
    console.print(
        f"You have {env.settings.max_turns} replies. The person is fictional; this is no therapy. Ctrl-C leaves.\n",
        style="dim",
        highlight=False,
    )
    scenario = env.scenario(secrets.randbelow(2**31) if seed is None else seed, {"persona_id": person})
    episode = play_live(env, HumanPolicy(_ask), scenario, console, reveal=False)
    console.rule("what you could not see")
    reveal(console, episode)
    if folder:
        path, report = write_files([episode], folder, title="Your conversation")
        console.print(f"report    {report}\nepisodes  {path}", highlight=False, soft_wrap=True)


def reveal(console: Console, episode: Episode) -> None:
    """Show an episode again with moods and thoughts."""
    print_words(console, episode.persona_name, episode.opening, episode.start_mood)
    for turn, before in zip(episode.turns, episode.moods, strict=False):
        print_turn(console, turn, episode.persona_name, before)
    print_end(console, episode)


def _ask(messages: Sequence[Message]) -> str:
    try:
        return input("you: ")
    except EOFError:
        raise KeyboardInterrupt from None

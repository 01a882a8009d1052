"""Options that several commands share."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from rlver_gym.errors import SetupError


def default_backend() -> str:
    """The embedded user, or the endpoint that OPENAI_BASE_URL names, with OPENAI_MODEL or the first model it serves."""
    if not os.environ.get("OPENAI_BASE_URL"):
        return "embedded"
    model = os.environ.get("OPENAI_MODEL")
    if not model:
        from rlver_gym.backends.openai.models import first_model

        model = asyncio.run(first_model())
    return f"openai:{model}"


EnvId = Annotated[str, typer.Option("--env", help="Gymnasium id of the environment.")]
BackendSpec = Annotated[
    str,
    typer.Option(
        "--backend",
        default_factory=default_backend,
        show_default="embedded, or OPENAI_BASE_URL's model",
        help="Where the user lives: embedded, openai:MODEL, cassette:PATH.",
    ),
]
PolicySpec = Annotated[str, typer.Option("--policy", help="Who replies: a scripted policy, or openai:MODEL.")]
People = Annotated[str, typer.Option("--personas", help="train, test, all, or a path.")]
LanguageName = Annotated[str | None, typer.Option("--language", help="en or zh; both if left out.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of the run.")]
MaxTurns = Annotated[int, typer.Option("--max-turns", min=1, help="Replies in an episode, all of them scored.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout and nothing else.")]
Think = Annotated[bool, typer.Option("--think", help="Think-then-say: replies must hold a closed <think> block.")]


def env_arguments(backend: Any, personas: str, language: str | None, think: bool) -> dict[str, Any]:
    """Keyword arguments of the environment that these options name."""
    return {"backend": backend, "personas": personas, "language": language, "think": think}


def new_folder(path: Path, *, resume: bool = False) -> Path:
    """The folder for a run's files: new, or empty, or anything if the run is resumed.

    Raises:
        SetupError: it is a file, or holds something.
    """
    if path.exists() and not path.is_dir():
        raise SetupError(f"--out {path}: this is a file; name a new folder")
    if path.is_dir() and any(path.iterdir()) and not resume:
        raise SetupError(f"--out {path}: the folder is not empty; name a new one, or go on with --resume")
    path.mkdir(parents=True, exist_ok=True)
    return path


def free_folder(stem: str) -> Path:
    """The first of `stem`, `stem-2`, `stem-3`, ... in the current folder that does not exist yet."""
    path, number = Path(stem), 2
    while path.exists():
        path, number = Path(f"{stem}-{number}"), number + 1
    return path

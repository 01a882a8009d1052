"""`rlver-gym sage score | replay`: SAGE's recorded dialogues."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from rlver_gym.backends.base import Backend
from rlver_gym.backends.registry import make_backend
from rlver_gym.cli import options
from rlver_gym.cli.console import safe_text, summary_table
from rlver_gym.errors import SetupError
from rlver_gym.evals.replay import Replayed, exchanged, replay, statistics
from rlver_gym.evals.sage import Dialogue, read_dialogues, score_files
from rlver_gym.users.library import load_personas

app = typer.Typer(no_args_is_help=True)


@app.command("score")
def score(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Result files, plain or .gz.")],
    as_json: options.AsJson = False,
) -> None:
    """Mean last mood, successes (100) and failures (below 10) of SAGE's result files."""
    results = score_files(files)
    if as_json:
        print(json.dumps(results, ensure_ascii=False))
        return
    table = Table(box=None, header_style="dim")
    for name in ("file", "n", "score", "success", "failure"):
        table.add_column(name, justify="left" if name == "file" else "right", overflow="fold")
    for name, result in results.items():
        table.add_row(safe_text(name), *map(str, result.values()))
    Console().print(table)


@app.command("replay")
def replay_files(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Result files or tables of replies, plain or .gz.")
    ],
    backend: options.BackendSpec,
    out: Annotated[Path, typer.Option("--out", help="New JSONL file, one row per recorded scored reply.")],
    profiles: Annotated[
        Path | None, typer.Option("--profiles", help="The people; taken from the files if left out.")
    ] = None,
    seed: options.Seed = 0,
    concurrency: Annotated[int, typer.Option("--concurrency", min=1, help="Dialogues at a time.")] = 64,
    as_json: options.AsJson = False,
) -> None:
    """Let a user judge recorded replies again; say how far it agrees with the recorded judge.

    Every reply is judged twice: in its place, and exchanged for another of the same turn and need.
    """
    if out.exists():
        raise SetupError(f"--out {out}: this exists; name a new file")
    people = {person.id: person for person in load_personas(profiles)} if profiles else None
    user = make_backend(backend)
    dialogues = read_dialogues(files, people, sketch=user.name == "embedded")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SetupError(f"--out {out}: {error}") from error
    replayed, shuffled = asyncio.run(_replay_twice(dialogues, user, seed, concurrency))
    with out.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(row.model_dump_json() + "\n" for one in replayed for row in one.predictions)
    faults = [fault for one in (*replayed, *shuffled) for fault in one.faults]
    metrics: dict[str, Any] = {"backend": user.name, "seed": seed}
    metrics |= statistics(replayed, shuffled)
    metrics["faults"] = {kind: faults.count(kind) for kind in sorted(set(faults))}
    if as_json:
        print(json.dumps(metrics, ensure_ascii=False))
    else:
        Console().print(summary_table(_readable(metrics)))
    if metrics["r"] is None and metrics["faults"]:
        raise typer.Exit(3)


async def _replay_twice(
    dialogues: list[Dialogue], backend: Backend, seed: int, concurrency: int
) -> tuple[list[Replayed], list[Replayed]]:
    columns = (TextColumn("dialogues"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=2 * len(dialogues))

        async def judged(these: list[Dialogue]) -> list[Replayed]:
            return await replay(
                these,
                backend,
                seed=seed,
                concurrency=concurrency,
                watch=lambda: progress.advance(task),
            )

        try:
            return await judged(dialogues), await judged(exchanged(dialogues, seed))
        finally:
            await backend.aclose()


def _readable(metrics: dict[str, Any], prefix: str = "") -> dict[str, object]:
    """The numbers on one level, correlations and shares with three decimals."""
    rows: dict[str, object] = {}
    for name, value in metrics.items():
        if name == "primary":
            rows |= _readable(value, "primary: ")
        elif isinstance(value, dict):
            rows[prefix + name] = ", ".join(f"{key} {_number(part)}" for key, part in value.items()) or "none"
        else:
            rows[prefix + name] = _number(value)
    return rows


def _number(value: object) -> object:
    return f"{value:.3f}" if isinstance(value, float) else value

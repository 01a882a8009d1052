"""`rlver-gym bench embedded`: speed that anyone can measure, beside a yardstick of the same run."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from rlver_gym.cli import options
from rlver_gym.evals.bench import bench_embedded

app = typer.Typer(no_args_is_help=True)


@app.callback()
def bench() -> None:
    """Speed, side by side with a yardstick."""


@app.command("embedded")
def embedded(
    turns: Annotated[int, typer.Option("--turns", min=80, help="Turns in one round of one measure.")] = 4_000,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
) -> None:
    """Turns per second of the embedded user, beside a bare Gymnasium text environment."""
    result = bench_embedded(turns=turns, seed=seed)
    if as_json:
        print(json.dumps(result))
        return
    table = Table(box=None, header_style="dim")
    for name in result["rows"][0]:
        table.add_column(name, justify="left" if name in ("language", "reply") else "right")
    for row in result["rows"]:
        table.add_row(*(f"{value:,.0f}" if isinstance(value, float) else value for value in row.values()))
    Console().print(table)
    Console().print("session, env, bare: turns/s; ratio: bare / session", style="dim")

"""All commands under one roof."""

from __future__ import annotations

import typer

from rlver_gym.cli.attack import attack
from rlver_gym.cli.bench import app as bench
from rlver_gym.cli.demo import demo
from rlver_gym.cli.personas import app as personas
from rlver_gym.cli.play import play
from rlver_gym.cli.rollout import rollout
from rlver_gym.cli.sage import app as sage

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Talk to simulated people with a latent mood, and let policies do so.",
)
app.command("demo")(demo)
app.command("attack")(attack)
app.command("play")(play)
app.command("rollout")(rollout)
app.add_typer(personas, name="personas", help="The people: list, show, check, import.")
app.add_typer(sage, name="sage", help="SAGE's recorded dialogues: score, replay.")
app.add_typer(bench, name="bench", help="Speed, side by side with a yardstick.")

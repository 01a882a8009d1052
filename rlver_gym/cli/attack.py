"""`rlver-gym attack`: what tricks earn beside a polite policy and an attentive one."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table as Grid

from rlver_gym.backends.base import Backend
from rlver_gym.backends.registry import make_backend
from rlver_gym.cli import options
from rlver_gym.cli.console import safe_text
from rlver_gym.envs.registration import make_env
from rlver_gym.errors import UnknownNameError
from rlver_gym.evals.attack import SCRIPT_MARGIN, Row, Table
from rlver_gym.evals.search import (
    KINDS,
    LEAST_EPISODES,
    Cycle,
    Found,
    lexicon_entries,
    pool,
    recorded_sentences,
    search,
)
from rlver_gym.policies.attacks import ATTACKS, Attack, attack_policies
from rlver_gym.rollouts.runner import plan
from rlver_gym.types import Language
from rlver_gym.users.library import LANGUAGES, load_personas, select_personas, unique
from rlver_gym.users.persona import Persona

_SEARCH_SCENARIOS = 600
"""Scenarios that a search draws from: ten of each of SAGE's dev people."""


def attack(
    backend: options.BackendSpec,
    env_id: options.EnvId = "RLVER-Vanilla-v0",
    policies: Annotated[str, typer.Option("--policies", help="Attacks, with commas between; all if left out.")] = "",
    episodes: Annotated[int, typer.Option("--episodes", min=2, help="Per policy; the people take turns.")] = 200,
    personas: options.People = "all",
    language: options.LanguageName = None,
    seed: options.Seed = 0,
    search: Annotated[bool, typer.Option("--search", help="Look for replies that earn well, too.")] = False,
    search_episodes: Annotated[int, typer.Option("--search-episodes", min=LEAST_EPISODES, help="Per search.")] = 3_000,
    sage: Annotated[
        Path | None,
        typer.Option("--sage", help="Folder of SAGE's dev data: search on its people, with its sentences."),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Play every attack beside polite and listener, paired by person and seed; exit 1 if one pays."""
    names = _chosen(policies)
    people = select_personas(personas, language=language)  # type: ignore[arg-type]
    spoken = [one for one in LANGUAGES if any(person.language == one for person in people)]
    began = time.monotonic()
    run = _Run(env_id, make_backend(backend), episodes, seed, names, search_episodes if search else 0, sage)
    result: dict[str, Any] = {
        "env": env_id,
        "backend": run.backend.name,
        "seed": seed,
        "languages": asyncio.run(
            run.languages({one: [person for person in people if person.language == one] for one in spoken})
        ),
    }
    rows = [row for part in result["languages"].values() for row in _rows(part)]
    result |= {"ok": all(row["ok"] for row in rows if row["bar"]), "seconds": round(time.monotonic() - began, 3)}
    if as_json:
        print(json.dumps(result, ensure_ascii=False))
    else:
        _print(result)
    if any(row["mean"] is None for row in rows):
        raise typer.Exit(3)
    if not result["ok"]:
        raise typer.Exit(1)


def _chosen(policies: str) -> Sequence[str]:
    names = [name.strip() for name in policies.split(",") if name.strip()]
    for name in names:
        if name not in ATTACKS:
            raise UnknownNameError("attack", name, ATTACKS)
    return names or ATTACKS


class _Run:
    """One call of the command: what it was asked, and the backend that all its environments share."""

    def __init__(
        self,
        env_id: str,
        backend: Backend,
        episodes: int,
        seed: int,
        names: Sequence[str],
        search_episodes: int,
        sage: Path | None,
    ) -> None:
        self.env_id, self.backend, self.episodes, self.seed = env_id, backend, episodes, seed
        self.names, self.search_episodes, self.sage = names, search_episodes, sage

    async def languages(self, people: Mapping[Language, Sequence[Persona]]) -> dict[Language, dict[str, Any]]:
        try:
            return {language: await self.one(language, own) for language, own in people.items()}
        finally:
            await self.backend.aclose()

    async def one(self, language: Language, people: Sequence[Persona]) -> dict[str, Any]:
        words = {spoken: lexicon_entries(spoken) for spoken in LANGUAGES}
        chosen = [attack for attack in attack_policies(words) if attack.name in self.names]
        result: dict[str, Any] = {"people": len(people), "rows": await self.fixed(people, chosen)}
        if self.search_episodes:
            result["searches"] = await self.searches(language, people)
        return result

    async def fixed(self, people: Sequence[Persona], attacks: Iterable[Attack]) -> list[dict[str, Any]]:
        table = self.table(people)
        rows = await table.yardsticks()
        rows += [await table.attack(attack) for attack in attacks]
        return [row.as_dict() for row in rows]

    async def searches(self, language: Language, people: Sequence[Persona]) -> list[dict[str, Any]]:
        """What searches find on some people, tried on others."""
        there, here, recorded = self.halves(language, people)
        env = make_env(self.env_id, backend=self.backend, personas=there)
        scenarios = plan(env.scenario, env.people, episodes=_SEARCH_SCENARIOS, seed=self.seed + 1)
        table, pieces = self.table(here), pool(language, recorded)
        await table.yardsticks()
        results = []
        for kind in KINDS:
            found = await search(
                kind, pieces, scenarios, env.new_session, episodes=self.search_episodes, seed=self.seed
            )
            margin = SCRIPT_MARGIN if kind == "script" else 0.0
            row = await table.found(Cycle(f"searched_{kind}", found.replies), margin)
            results.append(_found(found, row) | {"pieces": len(pieces), "people": [len(there), len(here)]})
        return results

    def halves(
        self, language: Language, people: Sequence[Persona]
    ) -> tuple[Sequence[Persona], Sequence[Persona], Sequence[str]]:
        """People to search on, people to try on, recorded sentences."""
        if self.sage is not None:
            others = load_personas(self.sage / "profiles_dev.jsonl", language=language)
            if others:
                return others, people, recorded_sentences(self.sage / "dev.jsonl.gz", language, seed=self.seed)
        where = f"one half of the people in {language!r}: a search needs two or more"
        return unique(people[::2], where), unique(people[1::2], where), ()

    def table(self, people: Sequence[Persona]) -> Table:
        env = make_env(self.env_id, backend=self.backend, personas=people)
        thinking = make_env(self.env_id, backend=self.backend, personas=people, think=True)
        scenarios = plan(env.scenario, env.people, episodes=self.episodes, seed=self.seed)
        return Table(scenarios, env.new_session, thinking.new_session)


def _found(found: Found, row: Row) -> dict[str, Any]:
    return {**asdict(found), "tried": row.as_dict()}


def _rows(part: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*part["rows"], *(found["tried"] for found in part.get("searches", ()))]


def _print(result: Mapping[str, Any]) -> None:
    console = Console()
    for language, part in result["languages"].items():
        grid = Grid(title=f"{result['env']}, {result['backend']}, {language}", box=None, header_style="dim")
        for heading in ("policy", "mean pay", "95%", "to polite", "to listener", "raised", "unscored", "verdict"):
            grid.add_column(heading, justify="left" if heading in ("policy", "verdict") else "right", no_wrap=True)
        for row in _rows(part):
            verdict = "" if not row["bar"] else "ok" if row["ok"] else f"above {row['bar']}"
            grid.add_row(
                safe_text(row["policy"]),
                "-" if row["mean"] is None else f"{row['mean']:.1f}",
                "-" if row["ci95"] is None else f"{row['ci95'][0]:.1f} to {row['ci95'][1]:.1f}",
                _gap(row["to_polite"]),
                _gap(row["to_listener"]),
                f"{row['raised']:.0%}",
                str(row["episodes"] - row["scored"]),
                verdict,
            )
        console.print(grid)


def _gap(gap: Mapping[str, float] | None) -> str:
    return "-" if gap is None else f"{gap['mean']:+.1f} (se {gap['se']:.1f})"

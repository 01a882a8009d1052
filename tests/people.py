"""The twelve people of `examples/people`, by id: written whole, not composed, and so a stable ground for tests."""

from __future__ import annotations

from pathlib import Path

from rlver_gym.users.library import load_personas

FOLDER = Path(__file__).parents[1] / "examples" / "people"
PEOPLE = {person.id: person for person in load_personas(FOLDER)}

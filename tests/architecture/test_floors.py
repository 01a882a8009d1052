"""The floors of the house: imports go downward only, never across a bar, and foreign libraries stay in their rooms."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import rlver_gym

PACKAGE = Path(rlver_gym.__file__).parent

TOP = 7
FLOORS = {
    **dict.fromkeys(("types", "text", "errors", "configs", "seeding", "version"), 0),
    **dict.fromkeys(("backends", "prompts"), 1),
    "users": 2,
    **dict.fromkeys(("envs", "policies"), 3),
    "rollouts": 4,
    **dict.fromkeys(("train", "evals", "adapters"), 5),
    "cli": 6,
    **dict.fromkeys(("", "__main__"), TOP),
}
"""Floor by room; the empty name is the package's own `__init__`, the public door."""

TRAINING = ("train", "policies.hf")
HOMES = {
    **dict.fromkeys(("torch", "transformers", "peft", "accelerate"), TRAINING),
    "gymnasium": ("envs", "adapters"),
    "openai": ("backends.openai",),
    "trl": ("adapters.trl",),
    "verl": ("adapters.verl",),
    "verifiers": ("adapters.verifiers",),
    "openenv": ("adapters.openenv",),
    "skyrl": ("adapters.skyrl",),
    "skyrl_gym": ("adapters.skyrl",),
    "stable_baselines3": ("adapters.sb3",),
}
"""Where a foreign library may be imported, as module prefixes within the package."""

NEVER_AT_IMPORT = ("tiktoken",)


def violations(package: Path) -> list[str]:
    """Every import in the package that the house forbids, as `file:line: why`."""
    found = []
    for file in sorted(package.rglob("*.py")):
        inside = file.relative_to(package)
        parts = inside.with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        tree = ast.parse(file.read_text(encoding="utf-8"))
        lazy = {id(node) for function in ast.walk(tree) if _is_function(function) for node in ast.walk(function)}
        for node, target in _imports(tree, package, inside):
            why = _forbidden(module, target, package.name, at_import=id(node) not in lazy)
            if why:
                found.append(f"{inside.as_posix()}:{node.lineno}: {why}")
    return found


def _is_function(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)


def _imports(tree: ast.Module, package: Path, inside: Path) -> Iterator[tuple[ast.stmt | ast.expr, str]]:
    folder = [package.name, *inside.parts[:-1]]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = folder[: len(folder) - node.level + 1] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            yield from ((node, _module_of(base, alias.name, package)) for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in ("import_module", "__import__") and isinstance(node.args[0].value, str):
                yield node, node.args[0].value


def _module_of(base: str, name: str, package: Path) -> str:
    """`base.name` where that is a module of the package, else `base`: what `from base import name` depends on."""
    whole = package.parent.joinpath(*base.split("."), name)
    return f"{base}.{name}" if whole.is_dir() or whole.with_suffix(".py").is_file() else base


def _forbidden(module: str, target: str, package: str, *, at_import: bool) -> str:
    first, _, rest = target.partition(".")
    if first != package:
        homes = HOMES.get(first)
        if homes is not None and not any(f"{module}.".startswith(f"{home}.") for home in homes):
            return f"{first} may be imported only in {', '.join(homes)}"
        return f"{first} must not be imported when {module} is" if first in NEVER_AT_IMPORT and at_import else ""
    (here, floor), (there, floor_below) = _room(module), _room(rest)
    if floor is None or floor_below is None:
        return f"{here if floor is None else there} is not a room of the house"
    if floor_below > floor:
        return f"{target} is upstairs: floor {floor_below} from floor {floor}"
    if floor_below == floor != 0 and here != there:
        return f"{target} is across the bar on floor {floor}"
    return ""


def _room(module: str) -> tuple[str, int | None]:
    parts = module.split(".")
    return ".".join(parts[:2] if parts[0] == "adapters" else parts[:1]), FLOORS.get(parts[0])


def test_the_house_stands() -> None:
    assert violations(PACKAGE) == []


def test_every_room_on_disk_has_a_floor() -> None:
    rooms = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    assert rooms - {"__init__"} <= set(FLOORS)
    assert {"types", "backends", "users", "envs", "policies", "rollouts", "cli"} <= rooms


PLANTED = [
    ("types.py", "from rlver_gym.users.mood import tier_of", "upstairs"),
    ("errors.py", "import rlver_gym.backends.base", "upstairs"),
    ("backends/base.py", "from rlver_gym.prompts import render", "across the bar on floor 1"),
    ("prompts/render.py", "from rlver_gym import backends", "across the bar on floor 1"),
    ("envs/session.py", "from ..policies.base import Policy", "across the bar on floor 3"),
    ("policies/chat.py", "from rlver_gym.envs import session", "across the bar on floor 3"),
    ("evals/report.py", "from rlver_gym.train.ppo import train", "across the bar on floor 5"),
    ("train/ppo.py", "from rlver_gym.adapters import trl", "across the bar on floor 5"),
    ("adapters/trl.py", "from rlver_gym.adapters.verl import rewards", "across the bar on floor 5"),
    ("users/mood.py", "from rlver_gym import __version__", "upstairs: floor 7"),
    ("users/mood.py", "def f():\n    from rlver_gym.envs.session import Session", "upstairs"),
    ("users/mood.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import rlver_gym.cli.app", "upstairs"),
    ("users/mood.py", "import importlib\nimportlib.import_module('rlver_gym.envs.session')", "upstairs"),
    ("cellar/rats.py", "import rlver_gym.types", "not a room"),
    ("users/mood.py", "import rlver_gym.cellar", "not a room"),
    ("rollouts/tokens.py", "import torch.nn as nn", "torch may be imported only in train"),
    ("policies/chat.py", "def f():\n    from transformers import AutoTokenizer", "transformers may be imported only"),
    ("users/mood.py", "import gymnasium", "gymnasium may be imported only"),
    ("backends/openai_dialect.py", "import openai", "openai may be imported only in backends.openai"),
    ("adapters/verl.py", "import trl", "trl may be imported only in adapters.trl"),
    ("backends/limits.py", "try:\n    import tiktoken\nexcept ImportError:\n    pass", "tiktoken must not"),
]


@pytest.mark.parametrize(("file", "source", "why"), PLANTED)
def test_control_a_planted_violation_is_caught(tmp_path: Path, file: str, source: str, why: str) -> None:
    for module in ("__init__", "backends/__init__", "policies/base", "envs/session", "adapters/trl"):
        _plant(tmp_path, f"{module}.py", "")
    _plant(tmp_path, file, source)
    (found,) = violations(tmp_path / "rlver_gym")
    assert found.startswith(f"{file}:") and why in found


ALLOWED = [
    ("cli/app.py", "from rlver_gym.evals import report\nfrom rlver_gym.envs.session import Session"),
    ("__init__.py", "from rlver_gym.cli import main\nfrom .types import Turn"),
    ("users/__init__.py", "from .mood import tier_of\nfrom ..types import Turn\nfrom rlver_gym.backends import base"),
    ("text.py", "from rlver_gym.errors import SetupError"),
    ("policies/hf.py", "import torch, transformers"),
    ("train/model.py", "import torch\nimport peft"),
    ("envs/vector.py", "import gymnasium"),
    ("adapters/sb3.py", "import gymnasium\nimport stable_baselines3"),
    ("backends/openai/client.py", "import openai"),
    ("backends/limits.py", "def count():\n    import tiktoken"),
    ("users/mood.py", "import torchmetrics, openai_harmony"),
]


@pytest.mark.parametrize(("file", "source"), ALLOWED)
def test_what_the_house_allows_is_not_reported(tmp_path: Path, file: str, source: str) -> None:
    _plant(tmp_path, file, source)
    assert violations(tmp_path / "rlver_gym") == []


def _plant(root: Path, file: str, source: str) -> None:
    path = root / "rlver_gym" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source, encoding="utf-8")

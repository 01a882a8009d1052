"""What the package offers by name exists, and its errors are one tree that pickle carries whole."""

from __future__ import annotations

import ast
import builtins
import copy
import importlib
import pickle
import re
from pathlib import Path

import pytest

import rlver_gym
from rlver_gym import errors

PACKAGE = Path(rlver_gym.__file__).parent
_TREE_LINE = re.compile(
    r"^ {4}(?P<stem>[│ ]*)[├└]── (?P<names>\w+(?: \(\w+\)| \*)?(?:, \w+)*)(?: {2,}.*|$)", re.MULTILINE
)
SIGNALS = {"users/parsing.py: Unreadable"}
"""Exceptions that never leave the package: the simulator catches them and asks again."""


def _with_exports() -> list[str]:
    modules = []
    for file in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        targets = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
        if "__all__" in {target.id for target in targets if isinstance(target, ast.Name)}:
            inside = file.relative_to(PACKAGE.parent).with_suffix("").parts
            modules.append(".".join(inside[:-1] if inside[-1] == "__init__" else inside))
    return modules


def missing_exports(module: object) -> list[str]:
    """Names in `__all__` that the module does not have."""
    return [name for name in module.__all__ if not hasattr(module, name)]  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", _with_exports())
def test_every_exported_name_exists_and_stands_in_order(name: str) -> None:
    module = importlib.import_module(name)
    assert missing_exports(module) == []
    assert module.__all__ == sorted(set(module.__all__))


def test_control_an_exported_name_that_is_missing_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hollow.py").write_text("here = 1\n__all__ = ['here', 'gone']\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    assert missing_exports(importlib.import_module("hollow")) == ["gone"]


def test_the_door_is_about_twenty_names_wide() -> None:
    assert 15 <= len(rlver_gym.__all__) <= 25
    assert "rlver_gym" in _with_exports()


def test_the_door_holds_no_private_name() -> None:
    assert [name for name in rlver_gym.__all__ if name.startswith("_") and name != "__version__"] == []


def _tree(root: type[errors.RlverError]) -> list[type[errors.RlverError]]:
    found = [root]
    for child in root.__subclasses__():
        if child.__module__ == errors.__name__:
            found += _tree(child)
    return found


PUBLIC_ERRORS = _tree(errors.RlverError)


def _example(kind: type[errors.RlverError]) -> errors.RlverError:
    if kind is errors.UnknownNameError:
        return errors.UnknownNameError("backend", "openia", ("openai", "embedded"))
    return kind("what was wrong – 出错", status=503, where=("a.yaml", 3), retry_after=None)


@pytest.mark.parametrize("kind", PUBLIC_ERRORS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
def test_an_error_survives_pickle_with_its_words_and_details(kind: type[errors.RlverError], protocol: int) -> None:
    error = _example(kind)
    error.add_note("seen in episode 3")
    for twin in (pickle.loads(pickle.dumps(error, protocol)), copy.deepcopy(error)):
        assert type(twin) is kind
        assert str(twin) == str(error)
        assert twin.args == error.args
        assert twin.details == error.details != {}
        assert all(getattr(twin, name) == value for name, value in error.details.items())
        assert twin.__notes__ == ["seen in episode 3"]


def test_control_pickle_loses_the_details_of_an_error_outside_the_tree() -> None:
    class Plain(Exception):
        def __init__(self, message: str, *, status: int) -> None:
            super().__init__(message)

    with pytest.raises((TypeError, AttributeError, pickle.PicklingError)):
        pickle.loads(pickle.dumps(Plain("x", status=1)))


def _drawn() -> dict[str, tuple[str, bool, str]]:
    """(parent, starred, second base) by class, as the docstring draws them."""
    drawn: dict[str, tuple[str, bool, str]] = {"RlverError": ("Exception", False, "")}
    above = ["RlverError"]
    for line in _TREE_LINE.finditer(errors.__doc__ or ""):
        depth = len(line["stem"]) // 4 + 1
        for entry in line["names"].split(", "):
            name, _, mark = entry.partition(" ")
            drawn[name] = (above[depth - 1], mark == "*", mark.strip("()*"))
            above[depth:] = [name]
    return drawn


def test_the_drawn_tree_is_the_tree() -> None:
    real = {}
    for kind in PUBLIC_ERRORS:
        base, *others = kind.__bases__
        starred = issubclass(kind, errors.BackendError) and kind.retryable
        real[kind.__name__] = (base.__name__, starred, "".join(other.__name__ for other in others))
    assert _drawn() == real


def test_no_error_class_lives_outside_the_tree() -> None:
    known = {kind.__name__ for kind in PUBLIC_ERRORS}
    known |= {
        kind.__name__ for kind in vars(builtins).values() if isinstance(kind, type) and issubclass(kind, BaseException)
    }
    outside = [
        f"{file.relative_to(PACKAGE).as_posix()}: {node.name}"
        for file in sorted(PACKAGE.rglob("*.py"))
        if file.name != "errors.py"
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
        if {getattr(base, "id", getattr(base, "attr", "")) for base in node.bases} & known
    ]
    assert set(outside) == SIGNALS

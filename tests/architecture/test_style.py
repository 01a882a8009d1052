"""What every file of the project looks like: short, documented, portable, and speaking of the project alone."""

from __future__ import annotations

import ast
import builtins
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rlver_gym import errors

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "rlver_gym"
TESTS = ROOT / "tests"
CODE = [folder for folder in (PACKAGE, TESTS, ROOT / "examples") if folder.is_dir()]
READ = [place for place in (PACKAGE, ROOT / "examples", ROOT / "docs", ROOT / "personas") if place.is_dir()]

MAX_LINES = {PACKAGE: 400, TESTS: 600}
VAGUE = {"util", "utils", "common", "helper", "helpers", "misc"}
TEXT_SUFFIXES = {".py", ".md", ".j2", ".yaml", ".yml", ".json", ".toml", ".txt", ".sh", ".cfg", ".ipynb"}
_MACHINE = re.compile(r"/(?:tmp|root|work)/")
_UNDONE = re.compile(r"\b(?:TODO|FIXME|XXX)\b")
_NOT_FILES = {"os", "webbrowser", "zipfile", "tarfile", "gzip", "bz2", "lzma", "urllib", "request"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def long_files(folder: Path, limit: int) -> list[str]:
    """Code files of more than `limit` lines; data files may be long."""
    counts = {file: len(file.read_text(encoding="utf-8").splitlines()) for file in _files(folder, {".py", ".j2"})}
    return [f"{_name(folder, file)}: {count} lines" for file, count in counts.items() if count > limit]


def vague_names(folder: Path) -> list[str]:
    """Modules and folders whose name says nothing."""
    paths = [path for path in sorted(folder.rglob("*")) if path.suffix == ".py" or path.is_dir()]
    return [_name(folder, path) for path in paths if VAGUE & set(path.stem.lower().split("_"))]


def undocumented(folder: Path) -> list[str]:
    """Public modules, classes and functions without a docstring; a body of `...` is described by its class."""
    found = []
    for file, tree in _trees(folder):
        if not _public(file.stem) and file.stem not in ("__init__", "__main__"):
            continue
        if ast.get_docstring(tree) is None and file.stat().st_size:
            found.append(f"{_name(folder, file)}: no docstring")
        for name, node in _public_definitions(tree):
            if ast.get_docstring(node) is None and not _is_stub(node) and not _is_setter(node):
                found.append(f"{_name(folder, file)}:{node.lineno}: {name} has no docstring")
    return found


def unsaid_raises(folder: Path) -> list[str]:
    """Public functions that raise an error themselves without naming it, or a base of it, under `Raises:`."""
    found = []
    for file, tree in _trees(folder):
        for name, node in _public_definitions(tree):
            if isinstance(node, ast.ClassDef) or _is_command(node):
                continue
            _, _, section = (ast.get_docstring(node) or "").partition("Raises:")
            for error in sorted(_raised(node)):
                lineage = {base.__name__ for base in _error(error).__mro__} - {"Exception", "BaseException", "object"}
                if not lineage & set(re.findall(r"\w+", section)):
                    found.append(f"{_name(folder, file)}:{node.lineno}: {name} raises {error} and does not say so")
    return found


def guessed_encodings(folder: Path) -> list[str]:
    """Text files opened in whatever encoding the machine prefers."""
    return [
        f"{_name(folder, file)}:{node.lineno}: text without encoding"
        for file, tree in _trees(folder)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and _opens_text(node)
        and not any(word.arg == "encoding" for word in node.keywords)
    ]


def machine_paths(place: Path) -> list[str]:
    """Lines that name a folder of some machine."""
    return [f"{_name(place, file)}:{n}: {line.strip()}" for file, n, line in _lines(place) if _MACHINE.search(line)]


def undone(folder: Path) -> list[str]:
    """Notes of work left undone: comments in Python, any line elsewhere."""
    other = [(file, number) for file, number, line in _lines(folder) if file.suffix != ".py" and _UNDONE.search(line)]
    found = [f"{_name(folder, file)}:{number}" for file, number in other]
    for file in _files(folder, {".py"}):
        for token in tokenize.generate_tokens(io.StringIO(file.read_text(encoding="utf-8")).readline):
            if token.type == tokenize.COMMENT and _UNDONE.search(token.string):
                found.append(f"{_name(folder, file)}:{token.start[0]}")
    return found


def magic_mocks(folder: Path) -> list[str]:
    """Uses of mocks that answer anything; the package ships fakes instead."""
    names = {"MagicMock", "AsyncMock"}
    return [
        f"{_name(folder, file)}:{getattr(node, 'lineno', 0)}"
        for file, tree in _trees(folder)
        for node in ast.walk(tree)
        if (isinstance(node, ast.alias) and node.name in names)
        or (isinstance(node, ast.Attribute) and node.attr in names)
    ]


def _name(folder: Path, path: Path) -> str:
    return path.relative_to(folder.parent).as_posix()


def _files(place: Path, suffixes: set[str]) -> list[Path]:
    files = [place] if place.is_file() else sorted(place.rglob("*"))
    return [file for file in files if file.suffix in suffixes and "__pycache__" not in file.parts]


def _lines(place: Path) -> Iterator[tuple[Path, int, str]]:
    for file in _files(place, TEXT_SUFFIXES):
        for number, line in enumerate(file.read_text(encoding="utf-8").split("\n"), start=1):
            yield file, number, line


def _trees(folder: Path) -> Iterator[tuple[Path, ast.Module]]:
    for file in _files(folder, {".py"}):
        yield file, ast.parse(file.read_text(encoding="utf-8"))


def _public(name: str) -> bool:
    return not name.startswith("_")


def _public_definitions(
    tree: ast.Module | ast.ClassDef, prefix: str = ""
) -> Iterator[tuple[str, Function | ast.ClassDef]]:
    for node in tree.body:
        if isinstance(node, Function | ast.ClassDef) and _public(node.name):
            yield prefix + node.name, node
            if isinstance(node, ast.ClassDef):
                yield from _public_definitions(node, f"{prefix}{node.name}.")


def _is_command(function: Function) -> bool:
    """Whether its docstring is the help text of a command, which is not for readers of code."""
    calls = [mark.func for mark in function.decorator_list if isinstance(mark, ast.Call)]
    return any(isinstance(call, ast.Attribute) and call.attr == "command" for call in calls)


def _is_setter(node: Function | ast.ClassDef) -> bool:
    return any(isinstance(mark, ast.Attribute) and mark.attr == "setter" for mark in node.decorator_list)


def _is_stub(node: Function | ast.ClassDef) -> bool:
    return (
        not isinstance(node, ast.ClassDef)
        and len(node.body) == 1
        and isinstance(node.body[0], ast.Expr)
        and isinstance(node.body[0].value, ast.Constant)
        and node.body[0].value.value is ...
    )


def _raised(function: Function) -> set[str]:
    """Names of the package's and Python's own errors that the body raises; nested functions are somebody else's."""
    names, nodes = set(), list[ast.AST](function.body)
    while nodes:
        node = nodes.pop()
        if isinstance(node, Function | ast.ClassDef | ast.Lambda):
            continue
        nodes += ast.iter_child_nodes(node)
        if isinstance(node, ast.Raise) and node.exc is not None:
            what = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            name = what.attr if isinstance(what, ast.Attribute) else getattr(what, "id", "")
            if _error(name) is not object:
                names.add(name)
    return names


def _error(name: str) -> type:
    found = getattr(errors, name, None) or getattr(builtins, name, None)
    return found if isinstance(found, type) and issubclass(found, BaseException) else object


def _opens_text(call: ast.Call) -> bool:
    if isinstance(call.func, ast.Attribute):
        base = call.func.value
        owner = base.id if isinstance(base, ast.Name) else getattr(base, "attr", "")
        name = call.func.attr
        if name == "open" and (owner in _NOT_FILES or (call.args and not isinstance(call.args[0], ast.Constant))):
            return False
        path_given = owner in ("os", "io") and name in ("open", "fdopen")
    else:
        name, path_given = getattr(call.func, "id", ""), True
    if name in ("read_text", "write_text"):
        return len(call.args) <= (name == "write_text")
    if name not in ("open", "fdopen"):
        return False
    mode = next((word.value for word in call.keywords if word.arg == "mode"), None)
    position = 1 if path_given else 0
    mode = mode or (call.args[position] if len(call.args) > position else None)
    return not (isinstance(mode, ast.Constant) and "b" in str(mode.value))


@pytest.mark.parametrize("folder", MAX_LINES, ids=lambda folder: folder.name)
def test_a_code_file_holds_one_idea(folder: Path) -> None:
    assert long_files(folder, MAX_LINES[folder]) == []


@pytest.mark.parametrize("folder", CODE, ids=lambda folder: folder.name)
def test_names_say_something(folder: Path) -> None:
    assert vague_names(folder) == []


def test_everything_public_has_a_docstring() -> None:
    assert undocumented(PACKAGE) == []


def test_a_function_that_raises_says_so() -> None:
    assert unsaid_raises(PACKAGE) == []


@pytest.mark.parametrize("folder", CODE, ids=lambda folder: folder.name)
def test_text_files_are_opened_in_a_named_encoding(folder: Path) -> None:
    assert guessed_encodings(folder) == []


@pytest.mark.parametrize("place", [*READ, ROOT / "README.md"], ids=lambda place: place.name)
def test_no_path_of_a_machine(place: Path) -> None:
    assert machine_paths(place) == []


@pytest.mark.parametrize("folder", CODE, ids=lambda folder: folder.name)
def test_nothing_is_left_undone_or_mocked(folder: Path) -> None:
    assert undone(folder) == []
    assert magic_mocks(folder) == []


def test_the_checks_read_the_whole_package() -> None:
    assert len(_files(PACKAGE, {".py"})) > 50
    assert len(list(_public_definitions(ast.parse((PACKAGE / "types.py").read_text(encoding="utf-8"))))) >= 20


DOC = '"""Says why."""\n'
CLASS = DOC + "class A:\n    'A.'\n"
CONTROLS: list[tuple[Callable[[Path], list[str]], str, str, str]] = [
    (lambda place: long_files(place, 400), "a.py", "x = 1\n" * 401, "x = 1\n" * 400),
    (lambda place: long_files(place, 400), "a.html.j2", "x\n" * 401, "x\n" * 400),
    (vague_names, "users/string_utils.py", "", ""),
    (undocumented, "a.py", "x = 1", DOC),
    (undocumented, "a.py", DOC + "def f(): pass", DOC + "def _f(): pass"),
    (undocumented, "a.py", DOC + "async def f(): return 1", DOC + "async def f(): ..."),
    (undocumented, "a.py", DOC + "class A: x = 1", DOC + "class _A:\n    def f(self): pass"),
    (undocumented, "a.py", CLASS + "    def f(self): pass", CLASS + "    def __len__(self): pass"),
    (undocumented, "a.py", CLASS + "    @f\n    def f(self): pass", CLASS + "    @f.setter\n    def f(self, x): pass"),
    (unsaid_raises, "a.py", "def f():\n    'F.'\n    raise ValueError('x')", "def f():\n    'F.'\n    raise stop"),
    (
        unsaid_raises,
        "a.py",
        CLASS + "    def f(self):\n        'F.'\n        if self:\n            raise errors.SetupError('x') from None",
        CLASS + "    def f(self):\n        '''Raises:\n            RlverError: x.'''\n        raise SetupError('x')",
    ),
    (
        unsaid_raises,
        "a.py",
        "def f():\n    '''F.\n\n    Raises:\n        KeyError: x.\n    '''\n    raise ValueError",
        "def f():\n    '''F.'''\n    def g():\n        raise ValueError\n    return g",
    ),
    (
        unsaid_raises,
        "a.py",
        "@app.option()\ndef f():\n    'F.'\n    raise KeyError",
        "@app.command('f')\ndef f():\n    'F.'\n    raise KeyError",
    ),
    (guessed_encodings, "a.py", "open('x')", "open('x', encoding='utf-8')"),
    (guessed_encodings, "a.py", "open('x', 'w')", "open('x', 'rb')"),
    (guessed_encodings, "a.py", "p.open('a')", "p.open('ab')"),
    (guessed_encodings, "a.py", "p.open()", "opener.open(request)"),
    (guessed_encodings, "a.py", "p.open(mode='r')", "p.open(mode='r', encoding='utf-8')"),
    (guessed_encodings, "a.py", "os.fdopen(1, 'w')", "os.open('x', 1)"),
    (guessed_encodings, "a.py", "p.read_text()", "p.read_text('utf-8')"),
    (guessed_encodings, "a.py", "p.write_text(text, newline='')", "p.write_text(text, 'utf-8')"),
    (machine_paths, "a.py", "x = '/tmp/x'", "x = 'tmp/x'"),
    (machine_paths, "docs/a.md", "see /root/x", "see /roots/x"),
    (machine_paths, "a.yaml", "out: /work/x", "out: /works/x"),
    (undone, "a.py", "x = 1  # TODO later", "x = 'TODO'"),
    (undone, "a.j2", "FIXME", "FIXED"),
    (magic_mocks, "a.py", "from unittest.mock import MagicMock", "from unittest import mock"),
    (magic_mocks, "a.py", "from unittest import mock\nx = mock.AsyncMock()", "x = 'mock.AsyncMock()'"),
]


@pytest.mark.parametrize(("check", "file", "bad", "good"), CONTROLS)
def test_control_each_check_catches_what_is_planted_and_only_that(
    tmp_path: Path, check: Callable[[Path], list[str]], file: str, bad: str, good: str
) -> None:
    for name, source in (("bad", bad), ("good", good)):
        path = tmp_path / name / (file if name == "bad" or check is not vague_names else "users/strings.py")
        path.parent.mkdir(parents=True)
        path.write_text(source, encoding="utf-8")
    assert len(check(tmp_path / "bad")) == 1
    assert check(tmp_path / "good") == []

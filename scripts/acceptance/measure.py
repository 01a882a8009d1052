"""How acceptance lines are measured: tests by node id, commands in a clean clone, numbers with intervals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

ROOT = Path(__file__).parents[2]
_NO_NETWORK = """
import socket
def _refuse(*arguments):
    raise OSError("the network is off for this measurement")
socket.socket.connect = socket.socket.connect_ex = socket.create_connection = socket.getaddrinfo = _refuse
"""


def row(command: str, figure: Any, bound: str, n: int, ok: bool) -> dict[str, Any]:
    """One measured line without its name."""
    return {"command": command, "figure": figure, "bound": bound, "n": n, "ok": bool(ok)}


def tests(*nodes: str, bound: str = "all pass, none skipped") -> dict[str, Any]:
    """Run tests by node id; the figure counts outcomes and holds what the tests recorded as `figures`."""
    command = f"python -m pytest -q {' '.join(nodes)}"
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *nodes],
            cwd=ROOT, env=os.environ | {"RLVER_REQUIRE_ALL": "1"}, stdout=sys.stderr, check=False,
        )  # fmt: skip
        suite = next(ElementTree.parse(report).getroot().iter("testsuite"))
    total, skipped = int(suite.attrib["tests"]), int(suite.attrib["skipped"])
    bad = int(suite.attrib["failures"]) + int(suite.attrib["errors"])
    figure: dict[str, Any] = {"passed": total - bad - skipped, "failed": bad, "skipped": skipped}
    for recorded in suite.iter("property"):
        if recorded.attrib["name"] == "figures":
            figure |= json.loads(recorded.attrib["value"])
    return row(command, figure, bound, total, total > 0 and bad == 0 and skipped == 0)


@contextmanager
def clean_clone() -> Iterator[Path]:
    """A clone of this tree's HEAD in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "clone"
        run(["git", "clone", "--quiet", str(ROOT), str(clone)])
        yield clone


def run(command: Sequence[str], *, cwd: Path | None = None, offline: bool = False) -> tuple[str, float]:
    """Run a command to its end: its stdout, and the seconds it took.

    Args:
        command: words.
        cwd: where.
        offline: every attempt of a Python process to open a connection fails.

    Raises:
        CalledProcessError: it exits with anything but 0.
    """
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("OPENAI_", "VIRTUAL_ENV", "PYTHON"))}
    with tempfile.TemporaryDirectory() as folder:
        if offline:
            (Path(folder) / "sitecustomize.py").write_text(_NO_NETWORK, encoding="utf-8")
            environment["PYTHONPATH"] = folder
        began = time.monotonic()
        done = subprocess.run(
            list(command), cwd=cwd, env=environment, capture_output=True, text=True, encoding="utf-8", check=False
        )
        seconds = time.monotonic() - began
    if done.returncode:
        print(done.stdout, done.stderr, file=sys.stderr)
        raise subprocess.CalledProcessError(done.returncode, list(command), done.stdout, done.stderr)
    return done.stdout, seconds

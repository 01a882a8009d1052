"""Importing the package registers its ids and changes nothing else in the process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rlver_gym import network

HEAVY = ["torch", "transformers", "peft", "accelerate", "openai", "tiktoken", "typer", "rich", "scipy", "pandas"]

PROBE = """
import sys

module, *heavy = sys.argv[1:]
opened = []

import asyncio, json, locale, logging, os, random, signal, threading, warnings
import numpy

def levels():
    loggers = logging.root.manager.loggerDict.items()
    return [(name, logger.level) for name, logger in loggers if isinstance(logger, logging.Logger)]

def look():
    return {
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "loggers": {name: level for name, level in levels() if level},
        "root logger": [logging.root.level, len(logging.root.handlers), logging.root.manager.disable],
        "warnings": [repr(entry) for entry in warnings.filters],
        "random": repr(random.getstate()),
        "numpy": repr(numpy.random.get_state()),
        "event loop": repr(getattr(asyncio.events, "_event_loop_policy", None)),
        "threads": threading.active_count(),
        "interrupt": repr(signal.getsignal(signal.SIGINT)),
        "locale": locale.setlocale(locale.LC_ALL),
        "hooks": [repr(sys.excepthook), repr(sys.displayhook), sys.getrecursionlimit()],
    }

def listen(event, arguments):
    if event == "open" and str(arguments[0]).endswith((".yaml", ".yml", ".json", ".jsonl", ".j2")):
        opened.append(os.path.basename(str(arguments[0])))
    elif event in ("socket.connect", "socket.getaddrinfo", "subprocess.Popen"):
        opened.append(event)

if module == "rlver_gym":
    import gymnasium, jinja2, pydantic, yaml  # what they change is theirs
before = look()
sys.addaudithook(listen)
__import__(module)
found = {name for name, value in look().items() if value != before[name]}
loaded = [name for name in heavy if name in sys.modules]
print(json.dumps({"changed": sorted(found), "loaded": loaded, "opened": sorted(set(opened))}))
"""


def _run(code: str, *arguments: str, path: Path | None = None, options: tuple[str, ...] = ()) -> str:
    env = {**os.environ, "PYTHONUTF8": "1"}
    if path is not None:
        env["PYTHONPATH"] = str(path)
    done = subprocess.run(
        [sys.executable, *options, "-c", code, *arguments], env=env, capture_output=True, encoding="utf-8", timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _probe(module: str, path: Path | None = None) -> dict[str, Any]:
    return json.loads(_run(PROBE, module, *HEAVY, path=path))


def test_import_changes_nothing_loads_nothing_heavy_and_opens_no_data() -> None:
    assert _probe("rlver_gym") == {"changed": [], "loaded": [], "opened": []}


NOISY = """
import asyncio, locale, logging, os, random, signal, sys, threading, time, warnings
import numpy
import torch
os.environ["OPENAI_API_KEY"] = "x"
os.chdir(os.path.dirname(__file__))
logging.basicConfig(level=logging.DEBUG)
logging.getLogger("noisy.other").setLevel(logging.WARNING)
warnings.simplefilter("ignore")
random.seed(1)
numpy.random.seed(1)
asyncio.set_event_loop_policy(asyncio.DefaultEventLoopPolicy())
threading.Thread(target=time.sleep, args=(1,), daemon=True).start()
signal.signal(signal.SIGINT, print)
sys.setrecursionlimit(5000)
open("people.yaml", encoding="utf-8").close()
"""


def test_control_a_noisy_package_that_imports_torch_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("", encoding="utf-8")
    (tmp_path / "people.yaml").write_text("", encoding="utf-8")
    (tmp_path / "noisy.py").write_text(NOISY, encoding="utf-8")
    seen = _probe("noisy", tmp_path)
    assert seen["loaded"] == ["torch"]
    assert seen["opened"] == ["people.yaml"]
    expected = [
        "environment",
        "event loop",
        "folder",
        "hooks",
        "interrupt",
        "loggers",
        "numpy",
        "random",
        "root logger",
        "threads",
    ]
    assert seen["changed"] == [*expected, "warnings"]


def test_control_torch_imported_further_down_beside_the_package_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("", encoding="utf-8")
    (tmp_path / "outer").mkdir()
    (tmp_path / "outer" / "__init__.py").write_text("from outer import inner", encoding="utf-8")
    (tmp_path / "outer" / "inner.py").write_text("import rlver_gym\nimport torch\n", encoding="utf-8")
    assert _probe("outer", tmp_path)["loaded"] == ["torch"]


@pytest.mark.parametrize("env_id", ["RLVER-Vanilla-v0", "RLVER-Challenging-v0", "RLVER-Curriculum-v0"])
def test_an_id_is_made_in_a_fresh_process_without_importing_first(env_id: str) -> None:
    code = (
        "import sys, gymnasium\n"
        f"assert {env_id!r} not in gymnasium.registry and 'rlver_gym' not in sys.modules\n"
        f"env = gymnasium.make('rlver_gym:{env_id}')\n"
        "observation, info = env.reset(seed=7)\n"
        "print(env.spec.id, bool(observation), 'latent' in info)\n"
        "env.close()\n"
    )
    assert _run(code).split() == [env_id, "True", "True"]


TWICE = """
import importlib, io, warnings
import gymnasium
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    import rlver_gym
    from rlver_gym.envs.registration import DIFFICULTIES, register
    register()
    importlib.reload(rlver_gym)
quiet = len(seen)
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    gymnasium.register("RLVER-Vanilla-v0", entry_point="elsewhere:Env")
print(quiet, len(seen), all(env_id in gymnasium.registry for env_id in DIFFICULTIES))
"""


def test_registering_twice_says_nothing() -> None:
    quiet, control, registered = _run(TWICE).split()
    assert (quiet, registered) == ("0", "True")
    assert int(control) > 0, "Gymnasium itself does warn when an id is taken"


def test_importing_with_every_warning_an_error_is_quiet() -> None:
    assert _run("import rlver_gym; print(rlver_gym.__version__)", options=("-W", "error")).strip()


def test_the_suite_runs_with_the_network_switched_off() -> None:
    assert network.allowed is False
    assert _run("import rlver_gym; print(rlver_gym.network.allowed)").strip() == "True", "only a test suite does this"

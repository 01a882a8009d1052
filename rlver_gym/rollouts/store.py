"""Episodes in a JSONL file, one a line: written at once, and read back as what was written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from rlver_gym.errors import SetupError
from rlver_gym.types import Episode


class EpisodeStore:
    """Appends episodes to a file; a line that a kill cut short is dropped when the file is opened again.

    Args:
        path: of the file; made when the first episode is written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.exists():
            data = path.read_bytes()
            whole = data.rfind(b"\n") + 1
            if whole < len(data):
                path.write_bytes(data[:whole])

    def append(self, episode: Episode) -> None:
        """Write one episode."""
        with self.path.open("ab") as file:
            file.write(episode.model_dump_json().encode() + b"\n")

    def __iter__(self) -> Iterator[Episode]:
        return read_episodes(self.path) if self.path.exists() else iter(())


def read_episodes(path: Path) -> Iterator[Episode]:
    """The episodes of a file, in its order.

    Raises:
        SetupError: the file cannot be read, or a line is no episode; names file and line.
    """
    try:
        with path.open(encoding="utf-8", newline="\n") as file:
            for number, line in enumerate(file, start=1):
                try:
                    yield Episode.model_validate_json(line)
                except ValidationError as error:
                    problem = error.errors()[0]
                    place = ".".join(map(str, problem["loc"]))
                    raise SetupError(f"{path}, line {number}: not an episode: {place}: {problem['msg']}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"{path}: cannot be read: {error}") from error

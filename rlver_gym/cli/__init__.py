"""The command line: `rlver-gym demo | play | rollout | personas | sage | attack | bench`.

stdout carries results, stderr what goes on; with `--json` stdout holds one JSON document and nothing else. Exit codes:
0 done, 1 the command ran and its answer is no, 2 a user's mistake, 3 the world failed, 130 interrupted.
"""

from __future__ import annotations

import sys

from rlver_gym.errors import BackendError, RlverError


def main() -> None:
    """Entry point of `rlver-gym`; a mistake of the user's gets one clear line, never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    from rlver_gym.cli.app import app

    try:
        app(prog_name="rlver-gym")
    except RlverError as error:
        print(f"rlver-gym: {error}", file=sys.stderr)
        sys.exit(3 if isinstance(error, BackendError) else 2)
    except KeyboardInterrupt:
        print("rlver-gym: interrupted", file=sys.stderr)
        sys.exit(130)

"""Compose the shipped people of the stock and write them to `personas/people/`.

    python scripts/freeze_people.py            write the four files
    python scripts/freeze_people.py --check    exit 1 if they are not what the composer makes

The files are frozen: a change of the stock or of the composer changes people, and with them every score.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from rlver_gym.users.census import EXPECTED
from rlver_gym.users.generate import generate
from rlver_gym.users.library import load_stock

FOLDER = Path(__file__).resolve().parents[1] / "personas" / "people"
SEED = 2507


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    args = parser.parse_args()
    stock = load_stock()
    stale = []
    for (split, language), count in EXPECTED.items():
        people = generate(stock, count=count, seed=SEED, split=split, language=language)
        text = "".join(person.model_dump_json() + "\n" for person in sorted(people, key=lambda one: one.id))
        file = FOLDER / f"{split}-{language}.jsonl"
        if not args.check:
            file.write_text(text, encoding="utf-8", newline="\n")
        elif not file.is_file() or file.read_text(encoding="utf-8") != text:
            stale.append(file.name)
    if stale:
        raise SystemExit(f"not what the composer makes of the stock: {', '.join(stale)}; run scripts/freeze_people.py")


if __name__ == "__main__":
    main()

"""Fit the weights of the embedded user to recorded judgements.

    python scripts/fit_embedded.py --cv 5 --json     how well it does on people it was not fitted to
    python scripts/fit_embedded.py --write           fit on everybody and write the engine's data/weights.json

The model is a sum: an integer weight for each named feature, one for the first reply and one for later ones, and an
offset for the hidden need and the temperament. `priors.yaml` beside this file says between which bounds a weight may
lie and why; what the recorded replies cannot teach (they hold no attack) is set there. Ridge regression with these
bounds finds the rest. In cross-validation every fold finds anew all that is found by looking at changes: which
features stay, weights, offsets and thresholds. People with equal `player` text share a fold.

Only the mood at the start is read from the recording; from there on it is the user's own.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from fit_data import Array, Data, Table, load, play
from fit_figures import FULL_DIFFICULTY, WEIGHTS, at_difficulty, dispositions, entries, figures
from numpy.typing import NDArray
from scipy.optimize import lsq_linear

from rlver_gym.backends.embedded import appraise
from rlver_gym.backends.embedded.features import FEATURES
from rlver_gym.backends.embedded.person import Moment
from rlver_gym.evals.replay import pearson

HERE = Path(__file__).resolve().parent
VERSION = 2

SHARES = (0.14, 0.47, 0.84)
"""Below these quantiles of the score a change is -10, -5, +5. Source: the recorded changes."""

ACCEPTED_RESERVED = 0.331
"""Share of replies that the reserved user accepts. Source: RLVER (arXiv 2507.03112)."""

RIDGE = (150.0, 200.0)
"""Penalty on standardised weights, first reply and later ones; anything from half to twice of it does as well."""

TRIALS = 12
"""How often thresholds are set anew: they move the moods, and the moods move what thresholds are needed."""

LEAST = 0.05
"""A feature whose weight moves the score of a typical reply by less (in mood points) is left out of the fit."""


def fit(data: Data, rows: NDArray[np.bool_], priors: Mapping[str, Any]) -> Table:
    """Weights fitted to some rows, in the form of weights.json."""
    needs, temperaments = list(priors["needs"]), list(priors["temperaments"])
    table: Table = {
        "version": VERSION,
        "unit": "hundredths of a mood point; pairs are [turn 1, later turns]",
        "expectation": [0, 0],
        "later": 0,
        "features": {name: [0, 0] for name in FEATURES},
        "needs": {name: {"offset": [0, 0], "fit": priors["needs"][name]} for name in needs},
        "temperaments": {name: [0, 0] for name in temperaments},
        **{name: priors[name] for name in ("carried", "mood", "willingness", "difficulty", "gates")},
        "thresholds": [[0, 0, 0], [0, 0, 0]],
    }
    people = [moment.person for moment in data.moments]
    given = np.array([_given(moment, row, priors) for moment, row in zip(data.moments, data.features, strict=True)])
    context = np.array(
        [
            [*(p.hidden_need == need for need in needs), *(p.temperament == kind for kind in temperaments), late]
            for p, late in zip(people, np.minimum(data.turns, appraise.LATEST), strict=True)
        ],
        dtype=np.float64,
    )
    for phase in (0, 1):
        here = rows & ((data.turns > 1) == bool(phase))
        design = np.concatenate([data.features, context], axis=1)[here]
        bounds = np.array([priors["features"][name][phase] for name in FEATURES], dtype=np.float64) / 100
        free = np.full((context.shape[1], 2), [-10.0, 10.0])
        wanted = data.changes[here] - given[here] / 100
        weights, constant = _ridge(design, wanted, np.concatenate([bounds, free]), RIDGE[phase])
        whole = [round(100 * weight) for weight in weights]
        for name, weight in zip(FEATURES, whole, strict=False):
            table["features"][name][phase] = weight
        offsets = iter(whole[len(FEATURES) :])
        for name in needs:
            table["needs"][name]["offset"][phase] = next(offsets)
        for name in temperaments:
            table["temperaments"][name][phase] = next(offsets)
        later = next(offsets)
        table["expectation"][phase] = round(100 * constant) + (0 if phase else later)
        table["later"] = later
    table["expectation"][0] -= table["later"]
    return _with_thresholds(table, data, rows)


def _given(moment: Moment, row: Array, priors: Mapping[str, Any]) -> float:
    """What the priors alone say of a reply: its fit to the need, in hundredths."""
    phase = int(moment.turn > 1)
    fit: Mapping[str, Sequence[int]] = priors["needs"][moment.person.hidden_need]
    found = {name: int(value) for name, value in zip(FEATURES, row, strict=True) if value}
    return float(sum(pair[phase] for name, pair in fit.items() if appraise.meets(found, name)))


def _ridge(design: Array, wanted: Array, bounds: Array, penalty: float) -> tuple[Array, float]:
    """Bounded weights and the constant; what proves too weak is left out and the rest fitted again."""
    mean, spread = design.mean(axis=0), design.std(axis=0)
    seen = spread > 0
    low, high = bounds.T
    weights = np.clip(0.0, low, high)
    keep = seen & (low < high)
    for _ in range(2):
        rest = wanted - wanted.mean() - (design - mean)[:, ~keep] @ weights[~keep]
        scaled = ((design - mean) / np.where(seen, spread, 1.0))[:, keep]
        root = np.linalg.cholesky(scaled.T @ scaled + penalty * np.eye(scaled.shape[1]))
        target = np.linalg.solve(root, scaled.T @ rest)
        found = lsq_linear(root.T, target, bounds=(low[keep] * spread[keep], high[keep] * spread[keep])).x
        weights[keep] = found / spread[keep]
        weak = keep & (np.abs(weights) * spread < LEAST) & (low <= 0) & (high >= 0)
        weights[weak] = 0.0
        keep &= ~weak
    return weights, float(wanted.mean() - mean @ weights)


def _with_thresholds(table: Table, data: Data, rows: NDArray[np.bool_]) -> Table:
    """Thresholds that give the rows' changes the recorded shares, with the user's own moods, willingness and gates."""
    asked = np.tile(SHARES, (2, 1))
    best, closest = table["thresholds"], np.inf
    for trial in range(TRIALS + 1):
        scores, changes, leans = play(table, data, data.features, rows)
        off = 0.0
        for phase in (0, 1):
            here = rows & ((data.turns > 1) == bool(phase))
            if trial:
                missed = SHARES - np.array([np.mean(changes[here] < step) for step in (-5, 1, 10)])
                asked[phase] = np.clip(asked[phase] + missed / 2, 0.01, 0.99)
                off += float(np.abs(missed).sum()) * here.sum()
        if trial and off < closest:
            best, closest = table["thresholds"], off
        lean = scores + leans
        table["thresholds"] = [
            [round(q) for q in np.quantile(lean[rows & ((data.turns > 1) == bool(phase))], asked[phase])]
            for phase in (0, 1)
        ]
    table["thresholds"] = best
    return table


def with_bar(table: Table, data: Data) -> Table:
    """The table with the bar at which a fully reserved person accepts the share of the paper."""
    reserved = at_difficulty(data, FULL_DIFFICULTY)
    everyone = np.ones(len(data.changes), dtype=bool)

    def accepted(bar: int) -> float:
        trial = {**table, "difficulty": {**table["difficulty"], "bar": bar}}
        return float(np.mean(play(trial, reserved, data.features, everyone)[1] > 0))

    bar = min(range(0, 600, 10), key=lambda bar: abs(accepted(bar) - ACCEPTED_RESERVED))
    return {**table, "difficulty": {**table["difficulty"], "bar": bar}}


def cross_validate(data: Data, priors: Mapping[str, Any], folds: int, draw: int) -> tuple[Array, Array]:
    """Out-of-fold scores of the replies and of the exchanged ones; people are dealt to folds by the draw."""
    people = np.unique(data.groups)
    dealt = dict(zip(np.random.default_rng(draw).permutation(people), np.arange(len(people)) % folds, strict=True))
    fold = np.array([dealt[group] for group in data.groups])
    scores, swapped = np.zeros(len(fold)), np.zeros(len(fold))
    for one in range(folds):
        held = fold == one
        table = fit(data, ~held, priors)
        scores[held] = play(table, data, data.features, held)[0][held]
        swapped[held] = play(table, data, data.swapped_features, held)[0][held]
    return scores, swapped


def report(data: Data, priors: Mapping[str, Any], folds: int, draws: int) -> dict[str, Any]:
    """All figures: means over draws of the folds with the lowest and highest, and what full knowledge would reach."""
    found = [figures(data, *cross_validate(data, priors, folds, draw)) for draw in range(draws)]
    everyone = np.ones(len(data.changes), dtype=bool)
    table = fit(data, everyone, priors)
    scores, changes, _ = play(table, data, data.features, everyone)
    inside = figures(data, scores, play(table, data, data.swapped_features, everyone)[0])
    mean = {name: float(np.mean([one[name] for one in found])) for name in found[0]}
    return {
        "n": len(data.changes),
        "people": len(np.unique(data.groups)),
        "features": sum(any(pair) for pair in table["features"].values()),
        "out_of_fold": mean,
        "lowest": {name: min(one[name] for one in found) for name in mean},
        "highest": {name: max(one[name] for one in found) for name in mean},
        "in_sample": inside,
        "gap": inside["r"] - mean["r"],
        "interval_of_r": _interval(data, cross_validate(data, priors, folds, 0)[0]),
        "shares": {str(step): float(np.mean(changes == step)) for step in (*appraise.CHANGES, 0)},
    }


def _interval(data: Data, scores: Array) -> list[float]:
    """A 95% interval of r by drawing people with replacement."""
    rng = np.random.default_rng(0)
    rows = {group: np.flatnonzero(data.groups == group) for group in np.unique(data.groups)}
    drawn = [np.concatenate([rows[group] for group in rng.choice(list(rows), len(rows))]) for _ in range(1000)]
    return [
        float(q) for q in np.quantile([pearson(scores[these], data.changes[these]) for these in drawn], [0.025, 0.975])
    ]


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    shared = HERE.parent.parent / "shared" / "data" / "sage"
    parser.add_argument("--table", type=Path, default=shared / "dev.jsonl.gz", help="recorded replies, one a row")
    parser.add_argument("--profiles", type=Path, default=shared / "profiles_dev.jsonl", help="the people's profiles")
    parser.add_argument("--cv", type=int, metavar="FOLDS", help="cross-validate with so many folds")
    parser.add_argument("--draws", type=int, default=5, help="how often people are dealt to folds anew")
    parser.add_argument("--entries", action="store_true", help="take out one lexicon entry after the other")
    parser.add_argument("--dispositions", action="store_true", help="what the open and the reserved user accept")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    parser.add_argument("--write", action="store_true", help=f"fit on everybody and write {WEIGHTS.name}")
    args = parser.parse_args()
    if not (args.cv or args.write or args.entries or args.dispositions):
        parser.error("nothing to do: give --cv FOLDS, --write, --entries or --dispositions")
    priors = yaml.safe_load((HERE / "priors.yaml").read_text(encoding="utf-8"))
    data = load(args.table, args.profiles)
    if args.write:
        table = with_bar(fit(data, np.ones(len(data.changes), dtype=bool), priors), data)
        WEIGHTS.write_text(_layout(table), encoding="utf-8", newline="\n")
    result = report(data, priors, args.cv, args.draws) if args.cv else {}
    if args.entries:
        result |= entries(data, lambda one: pearson(cross_validate(one, priors, folds=5, draw=0)[0], one.changes))
    result |= dispositions(data) if args.dispositions else {}
    if result:
        print(json.dumps(result, ensure_ascii=False) if args.json else yaml.safe_dump(result, sort_keys=False))


def _layout(table: Table) -> str:
    """JSON with one feature a line."""
    lines = []
    for name, value in table.items():
        if isinstance(value, dict) and name in ("features", "needs", "temperaments", "gates"):
            inner = ",\n".join(f"    {json.dumps(key)}: {json.dumps(one)}" for key, one in value.items())
            lines.append(f"  {json.dumps(name)}: {{\n{inner}\n  }}")
        else:
            lines.append(f"  {json.dumps(name)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    main()

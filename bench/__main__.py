"""``python -m bench [NAME …]``: measure, print a table, merge the figures into ``bench/results/latest.json``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from bench.figures import Figure, chosen

LATEST = Path(__file__).parent / "results" / "latest.json"


def main() -> int:
    """Run what was asked for; each figure is kept as soon as it is known."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a figure; without any, all are measured")
    args = parser.parse_args()
    try:
        benchmarks = chosen(args.names)
    except KeyError as error:
        print(error.args[0], file=sys.stderr)
        return 2
    for benchmark in benchmarks:
        figures = benchmark()
        _print(figures)
        _merge(figures)
    return 0


def _print(figures: Mapping[str, Figure]) -> None:
    for name, figure in figures.items():
        print(f"{name:34}{figure.value:10.3f} {figure.unit:3} {figure.against}", flush=True)


def _merge(figures: Mapping[str, Figure]) -> None:
    LATEST.parent.mkdir(exist_ok=True)
    kept = json.loads(LATEST.read_text()) if LATEST.exists() else {}
    kept |= {name: figure.as_json() for name, figure in figures.items()}
    growing = LATEST.with_suffix(".new")
    growing.write_text(json.dumps(kept, indent=2, sort_keys=True) + "\n")
    growing.rename(LATEST)


if __name__ == "__main__":
    sys.exit(main())

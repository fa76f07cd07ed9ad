"""Figures and the benchmarks that give them: a module of `bench` registers its own with `@gives`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import bench


@dataclass(frozen=True, kw_only=True)
class Figure:
    """
    One measured number.

    :param value: the number; smaller is better unless its name says otherwise.
    :param unit: ``s``, ``x`` …
    :param against: what it was measured beside, in the same run; empty if nothing.
    """

    value: float
    unit: str
    against: str = ""

    def as_json(self) -> dict[str, Any]:
        """For ``latest.json``."""
        return asdict(self)


Benchmark = Callable[[], Mapping[str, Figure]]
_BENCHMARKS: dict[Benchmark, tuple[str, ...]] = {}


def gives(*names: str) -> Callable[[Benchmark], Benchmark]:
    """Register a benchmark under the names of the figures that one run of it gives."""

    def register(benchmark: Benchmark) -> Benchmark:
        _BENCHMARKS[benchmark] = names
        return benchmark

    return register


def chosen(names: Iterable[str]) -> list[Benchmark]:
    """
    The benchmarks that give these figures, each once; all of them for no name.

    :raises KeyError: if nobody gives one of them.
    """
    for module in pkgutil.iter_modules(bench.__path__):
        if module.name != "__main__":
            importlib.import_module(f"bench.{module.name}")
    wanted = set(names)
    known = {name for given in _BENCHMARKS.values() for name in given}
    if unknown := wanted - known:
        raise KeyError(f"no benchmark gives {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")
    return [benchmark for benchmark, given in _BENCHMARKS.items() if not wanted or wanted.intersection(given)]

"""Nothing lost and nothing double, whatever is killed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.faults.soak import soak


def test_a_short_soak_loses_nothing(tmp_path: Path, seed: int) -> None:
    soaked = soak(tmp_path, 1000, seed)

    assert (soaked.lost, soaked.double) == (0, 0)


@pytest.mark.slow
def test_a_long_soak_loses_nothing(tmp_path: Path, seed: int) -> None:
    soaked = soak(tmp_path, int(os.environ.get("N", "50000")), seed)

    assert (soaked.lost, soaked.double) == (0, 0)

"""Random programs with what everyday programs use (see `random_everyday`)."""

from __future__ import annotations

import os

import pytest

from fold.random_everyday import Everyday
from fold.random_programs import PRELUDE, judge

PROGRAMS = int(os.environ.get("WENGERT_FOLD_PROGRAMS", "20"))
TOGETHER = 10  # programs in one test

pytestmark = pytest.mark.usefixtures("folding_at_once")


@pytest.mark.parametrize("first", range(0, PROGRAMS, TOGETHER))
def test_random_programs(first: int) -> None:
    compared = 0
    for seed in range(first, min(first + TOGETHER, PROGRAMS)):
        source = Everyday(seed).source()
        verdict = judge(source, seed)
        assert verdict.word in ("right", "refused", "too long"), (
            f"seed {seed}: {verdict.word}: {verdict.difference}\n\n{source.removeprefix(PRELUDE)}"
        )
        compared += verdict.gradients
    assert compared > TOGETHER

"""Random programs that read an outside which changes."""

from __future__ import annotations

import pytest

from fold.random_outside import judge

PROGRAMS = 40
TOGETHER = 10  # programs in one test

pytestmark = pytest.mark.usefixtures("folding_at_once")


@pytest.mark.parametrize("first", range(0, PROGRAMS, TOGETHER))
def test_random_programs(first: int) -> None:
    words = [judge(seed) for seed in range(first, first + TOGETHER)]
    assert words.count("folded") > TOGETHER // 2, words

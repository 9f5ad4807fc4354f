"""Columns of cotangents that are sums of sums: what they share must not be gone through once for each way to it."""

import operator

from wengert.tracer.tape import NOWHERE, Tape, append
from wengert.transforms.columns import Column
from wengert.transforms.gather import MOST_SPLITS, SHORTEST, column_of


def test_sums_that_share_what_they_add():
    tape = Tape("made", NOWHERE)
    parts = [append(tape, float, (float(i),), {}, float(i), NOWHERE) for i in range(SHORTEST)]
    for _ in range(40):  # 2 ** 40 ways to the first ones
        parts = [append(tape, operator.add, (x, x), {}, x.value * 2, NOWHERE) for x in parts]
    count = len(tape.ops)
    found = column_of(parts, Column([x.value for x in parts]), tape, NOWHERE)
    assert [*found.value] == [x.value for x in parts]
    assert len(tape.ops) - count < 3 * (MOST_SPLITS + 2)

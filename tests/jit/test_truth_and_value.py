"""A number whose truth is a decision, and whose value is another one right after it: programs look at both."""

import pytest

from wengert import pullback

FUNCTIONS = [
    lambda x, n: sum(x for _ in range(n)) if n else 0.0,
    lambda x, n: [1.0, 2.0, 3.0, 4.0, 5.0, 6.0][n] * x if n else x,
    lambda x, n: {1: 2.0, 2: 3.0, 3: 4.0, 4: 5.0, 5: 6.0}[n] * x if n else x,
    lambda x, n: x * hash(n) if n else x,
    lambda x, n: x * len("a" * n) if n else x,
    lambda x, n: f"{n}" if n else x,
    lambda x, n: str(n) if n else x,
    lambda x, n: x * [1, 2, 3, 4, 5].index(n) if n else x,
    lambda x, n: x**n if n else x,
    lambda x, n: x if not n else x * int(n),
    lambda x, n: (n and str(n), x),
    lambda x, n: (n or "none", x),
    lambda x, n: repr([*filter(None, [1, n])]),
    lambda x, n: any([n]) and f"{n:03}",
]


@pytest.mark.parametrize("f", FUNCTIONS, ids=range(len(FUNCTIONS)))
def test_programs_look_at_truth_and_value(f):
    for n in (3, 3, 3, 5, 1, 2, 0, 4, 5):
        assert pullback(f, 1.5, n)[0] == f(1.5, n)


def test_of_floats():
    def f(b):
        return str(b) if b else "zero"

    for x in (0.0, 0.3, 1.5, 0.3, 0.7, 0.8, 1.0, 2.0, 0.0):
        assert pullback(f, x)[0] == f(x)

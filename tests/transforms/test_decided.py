"""Rules whose pullbacks decide by values: no derivative is kept for other values than it was found for."""

import pytest

from wengert import grad, hessian, jacobian, jvp, linearize, pullback, rrule
from wengert.rules.registry import rules

P = 2.0


def h(x, p):
    return x * 1.0


@pytest.fixture(autouse=True)
def rule():
    @rrule(h)
    def decided(x, p):
        def pullback(dy):
            if p > 1:
                return dy * 2 * x, None
            return dy * 3 * x, None

        return h(x, p), pullback

    yield
    del rules[h]


def f(x):
    return h(x, P)


WAYS = {
    "grad": lambda x: grad(f)(x),
    "pullback": lambda x: pullback(f, x)[1](1.0)[0],
    "jvp": lambda x: jvp(f, (x,), (1.0,))[1],
    "linearize": lambda x: linearize(f, x)[1](1.0),
    "jacobian": lambda x: jacobian(f)(x),
    "forward": lambda x: jacobian(f, mode="forward")(x),
    "inside": lambda x: grad(lambda y: grad(f)(y) * y)(x) / 2,
    "hessian": lambda x: hessian(f)(x) * x,
}


@pytest.mark.parametrize("way", WAYS)
def test_by_a_value_from_outside(way, monkeypatch):
    for p in (2.0, 2.0, 2.0, 0.5, 0.5, 0.5, 2.0, 0.5):
        monkeypatch.setitem(globals(), "P", p)
        assert WAYS[way](1.5) == (2 if p > 1 else 3) * 1.5


@pytest.mark.parametrize("way", [grad, lambda g: lambda x: jvp(g, (x,), (1.0,))[1], jacobian])
def test_by_an_argument(way):
    g = lambda x: h(x, x * 2)
    for x in (2.0, 2.0, 2.0, 0.25, 0.25, 0.25, 2.0, 0.25):
        assert way(g)(x) == (2 if x * 2 > 1 else 3) * x

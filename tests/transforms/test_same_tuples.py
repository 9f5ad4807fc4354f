"""A tuple that is an argument of an inner or forward derivative is itself there, as in plain Python."""

import collections

import pytest

from wengert import grad, jit, jvp, pullback

Pair = collections.namedtuple("Pair", "left right")


class Row(tuple):
    pass


@pytest.fixture(params=[True, False], ids=["kept", "traced"], autouse=True)
def mode(request):
    with jit(request.param):
        yield


@pytest.mark.parametrize("p", [(0.5, 2.0), Pair(0.5, 2.0), Row((0.5, 2.0)), (0.5, (2.0, [1.0]))])
def test_forward(p):
    tangent = jvp(lambda q: q, (p,), (p,))[1]
    assert tangent == p
    for _ in range(4):
        value, _ = jvp(lambda q: [q, (2.0 * q[0], q)], (p,), (p,))
        assert value[0] is p and value[1][1] is p
        assert jvp(lambda q: q[0] if q is p else -1.0, (p,), (p,)) == (0.5, 0.5)


def test_inside():
    def f(a, b):
        t = (a, b)
        value, back = pullback(lambda q: (q, [q], q is t), t)
        assert value[0] is t and value[1][0] is t and value[2]
        ((_, d),) = back(((1.0, 2.0), [(1.0, 2.0)], None))
        return a * b * d

    for _ in range(4):
        assert f(2.0, 3.0) == 24.0
        assert grad(f)(2.0, 3.0) == 12.0

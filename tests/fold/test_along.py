"""Forward mode of functions that go another way at each call: `jvp` and `linearize` by programs of regions."""

import copy
import dataclasses
import math
import random

import numpy as np
import pytest

from helpers import assert_close
from wengert import TangentError, jit, jvp, linearize, pullback
from wengert.transforms import tangents
from wengert.transforms.fold.multiplied import Multiplied
from wengert.transforms.linear import Linearized, Steep

pytestmark = pytest.mark.usefixtures("folding_at_once")
CALLS = 24


def until_large(x, y):
    s = x
    while s < 10.0:
        s = s * (1.1 + 0.01 * y) if s < 5.0 else s + math.sin(y) ** 2 + 0.2
    return s * y


def reduced(xs, a):
    out = [v * a for v in xs if v > 0.0]
    while len(out) > 1:
        out.append(out.pop() * 0.9 + math.sin(out.pop()))
    return out[0] if out else a


def of_rows(w, rows):
    total = 0.0
    for i in range(rows.shape[0]):
        r = np.tanh(rows[i] @ w)
        total = total + r * r if r > 0.0 else total - r
    return total


def of_parts(p, q):
    x = p["x"] * q[0]
    while x < 3.0:
        x = x + abs(q[1][0]) + 0.1
    return x * p["y"]


def counted(x, n):
    s = 0.0
    for k in range(n):
        s = s + x**k / (k + 1)
    return s * n


class Model:
    def __init__(self, a):
        self.a = a

    def value(self, x):
        s = x
        while s < 4.0:
            s = s * self.a + 0.5
        return s


def draw_of_numpy(rng):
    primals, direction = draw_until_large(rng)
    return tuple(map(np.float64, primals)), tuple(map(np.float64, direction))


@dataclasses.dataclass
class Parts:
    a: float
    values: list


def of_object(p, x):
    return reduced(p.values, p.a) * x


def draw_of_object(rng):
    (xs, a), (ts, t) = draw_reduced(rng)
    return (Parts(a, xs), rng.random()), (Parts(t, ts), 0.5)


def floats(rng, n):
    return [rng.gauss(0.0, 1.0) for _ in range(n)]


def array(rng, *shape):
    return np.array(floats(rng, math.prod(shape))).reshape(shape)


def draw_until_large(rng):
    return (rng.uniform(0.5, 2.0), rng.uniform(0.5, 2.0)), tuple(floats(rng, 2))


def draw_reduced(rng):
    n = rng.randint(3, 9)
    return (floats(rng, n), rng.random()), (floats(rng, n), rng.gauss(0.0, 1.0))


def draw_of_rows(rng):
    n = rng.randint(3, 9)
    return (array(rng, 4), array(rng, n, 4)), (array(rng, 4), array(rng, n, 4))


def draw_of_parts(rng):
    x, y, a, b = (rng.uniform(0.5, 1.5) for _ in range(4))
    t, u, v, w = floats(rng, 4)
    return ({"x": x, "y": y}, (a, [b])), ({"x": t, "y": u}, (v, [w]))


def draw_counted(rng):
    return (rng.uniform(0.1, 0.9), rng.randint(3, 9)), (rng.gauss(0.0, 1.0), rng.gauss(0.0, 1.0))


def draw_of_method(rng):
    return (rng.uniform(0.1, 0.9),), (rng.gauss(0.0, 1.0),)


PROGRAMS = {
    "until large": (until_large, draw_until_large),
    "a list": (reduced, draw_reduced),
    "arrays": (of_rows, draw_of_rows),
    "a dict and a tuple": (of_parts, draw_of_parts),
    "an integer": (counted, draw_counted),
    "a method": (Model(1.3).value, draw_of_method),
    "an object": (of_object, draw_of_object),
    "numbers of NumPy's": (until_large, draw_of_numpy),
}
each = pytest.mark.parametrize(("f", "draw"), PROGRAMS.values(), ids=PROGRAMS)


def lineared(f, primals, tangents):
    value, f_jvp = linearize(f, *primals)
    return value, f_jvp(*tangents)


def differences(f, primals, tangents, h=1e-6):
    """The derivative by central differences."""

    def moved(x, t, h):
        if isinstance(x, Parts):
            return Parts(*[moved(a, b, h) for a, b in ((x.a, t.a), (x.values, t.values))])
        if isinstance(x, dict):
            return {k: moved(x[k], t[k], h) for k in x}
        if isinstance(x, (tuple, list)):
            return type(x)([moved(a, b, h) for a, b in zip(x, t, strict=True)])
        return x + h * t

    return (f(*moved(primals, tangents, h)) - f(*moved(primals, tangents, -h))) / (2 * h)


def answered_by_region(kind, f):
    entry = kind(f, ()).entry()
    return [*entry.folding.programs.values()]


@each
@pytest.mark.parametrize("way", [jvp, lineared])
def test_value_and_tangent(f, draw, way):
    rng = random.Random(4)
    for _ in range(CALLS):
        primals, direction = draw(rng)
        with jit(True):
            value, tangent = way(f, primals, direction)
        with jit(False):
            expected, slope = way(f, primals, direction)
        assert value == expected == f(*primals)
        assert type(tangent) is type(slope)
        assert tangent == pytest.approx(slope, rel=1e-10, abs=1e-12)
        if f is not counted:
            assert tangent == pytest.approx(differences(f, primals, direction), rel=1e-4, abs=1e-5)
    kind, made = (tangents.AskedJvp, tangents.Pushed(f).__call__)
    if way is lineared:
        kind, made = Linearized, f
    assert len(answered_by_region(kind, made)) == 1


def folded_until_large(way):
    rng = random.Random(5)
    for _ in range(6):
        way(until_large, *draw_until_large(rng))


BAD = [(1.0,), (1.0, "a"), (1.0, np.ones(2)), (1j, 1.0), ((1.0,), 2.0), (1.0, 2.0, 3.0)]


@pytest.mark.parametrize("direction", BAD, ids=map(str, BAD))
@pytest.mark.parametrize("way", [jvp, lineared])
def test_a_direction_that_does_not_fit_is_an_error(way, direction):
    folded_until_large(way)
    with pytest.raises(TangentError):
        way(until_large, (1.0, 1.0), direction)


GOOD = [(None, 1.0), (1, 2), (np.float64(1.0), 2.0), (True, 1.0), (math.inf, 0.0), (math.nan, 1.0)]


@pytest.mark.parametrize("direction", GOOD, ids=map(str, GOOD))
@pytest.mark.parametrize("way", [jvp, lineared])
def test_what_else_may_stand_for_a_number_in_it(way, direction):
    folded_until_large(way)
    _, tangent = way(until_large, (1.0, 1.5), direction)
    with jit(False):
        _, slope = way(until_large, (1.0, 1.5), direction)
    assert type(tangent) is type(slope)
    assert tangent == pytest.approx(slope, rel=1e-10, nan_ok=True)


def test_infinities_of_both_signs_are_no_error():
    rng = random.Random(11)
    for _ in range(8):
        _, f_jvp = linearize(reduced, *draw_reduced(rng)[0])
    assert type(f_jvp) is Steep
    count = len(f_jvp.gradients[0])
    tangents = [math.inf if k % 2 else -math.inf for k in range(count)], 0.0
    assert math.isnan(f_jvp(*tangents)) or math.isinf(f_jvp(*tangents))


def rooted(x):
    s = math.sqrt(x)
    while s > 1.0:
        s = s / 2.0 if s > 2.5 else s * 0.8
    return s


@pytest.mark.parametrize("direction", [0.0, 1.0])
def test_an_infinite_slope_is_as_traced(direction):
    for x in (2.0, 5.0, 9.0, 17.0, 33.0, 6.0, 0.5, 70.0, 7.0):
        jvp(rooted, (x,), (1.0,))
    assert answered_by_region(tangents.AskedJvp, tangents.Pushed(rooted).__call__)
    found = jvp(rooted, (0.0,), (direction,))
    with jit(False):
        assert repr(found) == repr(jvp(rooted, (0.0,), (direction,)))


def single(x):
    while x < 3.0:
        x = x * np.float32(1.25)
    return x


def test_single_precision():
    for x in (0.5, 1.0, 1.5, 2.0, 0.25, 0.75):
        found = jvp(single, (np.float32(x),), (np.float32(1.0),))
        with jit(False):
            expected = jvp(single, (np.float32(x),), (np.float32(1.0),))
        assert [*map(type, found)] == [*map(type, expected)]
        assert found == pytest.approx(expected, rel=1e-6)


def test_the_derivative_is_that_of_the_moment():
    rng = random.Random(6)
    for _ in range(6):
        (w, rows), direction = draw_of_rows(rng)
        _, f_jvp = linearize(of_rows, w, rows)
    assert type(f_jvp) is Steep
    before = f_jvp(*direction)
    w[:] = 0.0
    rows[:] = 1.0
    assert f_jvp(*direction) == before
    assert f_jvp(None, direction[1]) + f_jvp(direction[0], None) == pytest.approx(before)


def test_more_may_be_asked_of_it():
    rng = random.Random(7)
    for _ in range(6):
        primals, direction = draw_until_large(rng)
        _, f_jvp = linearize(until_large, *primals)
    assert type(f_jvp) is Steep
    assert "until_large" in repr(f_jvp)
    assert __file__.rsplit("/", 1)[-1] in repr(f_jvp)
    assert copy.deepcopy(f_jvp)(*direction) == pytest.approx(f_jvp(*direction))
    _, second = jvp(lambda t: f_jvp(t, 1.0), (2.0,), (1.0,))
    assert second == pytest.approx(f_jvp(1.0, 0.0))


def with_aux(xs, a):
    value = reduced(xs, a)
    return value, {"n": int(value), "twice": 2.0 * value, "given": [a, 1.0], "text": "a"}


def pulled_aux(primals, direction):
    value, back, aux = pullback(with_aux, *primals, has_aux=True)
    return value, back(2.0), aux


def pushed_aux(primals, direction):
    return jvp(with_aux, primals, direction, has_aux=True)


def lineared_aux(primals, direction):
    value, f_jvp, aux = linearize(with_aux, *primals, has_aux=True)
    return value, f_jvp(*direction), aux


@pytest.mark.parametrize("way", [pulled_aux, pushed_aux, lineared_aux])
def test_aux(way):
    rng = random.Random(8)
    for _ in range(CALLS):
        given = draw_reduced(rng)
        with jit(True):
            value, derivative, aux = way(*given)
        with jit(False):
            expected = way(*given)
        assert (value, aux) == (expected[0], expected[2]) == with_aux(*given[0])
        assert_close(derivative, expected[1])


def test_of_what_has_an_aux_more_may_be_asked():
    rng = random.Random(9)
    backs, linears = [], []
    for _ in range(CALLS):
        primals, _ = draw_reduced(rng)
        backs.append(pullback(with_aux, *primals, has_aux=True)[1])
        linears.append(linearize(with_aux, *primals, has_aux=True)[1])
    back = next(x for x in reversed(backs) if type(x) is Multiplied)
    f_jvp = next(x for x in reversed(linears) if type(x) is Steep)
    assert_close(back(np.float64(1.0)), back(1.0))
    assert back.tape.ops
    assert f_jvp(None, np.float32(0.5)) == pytest.approx(f_jvp(None, 0.5))

"""One container that is an argument and lies outside as well; code in C that calls back what reads and writes there."""

import collections
import json
import operator
import re
import types

import numpy as np
import pytest

from wengert import grad, jit, jvp, linearize, pullback, stop_gradient, value_and_grad
from wengert.transforms.budget import Budget

SETUP = """
import collections, json, re
import numpy as np
class M:
    def __init__(self): self.items = [0.0]
m = M()
items, table, queue, nested = [0.0], {"k": 0.0}, collections.deque([0.0]), [[0.0]]
seen, now = [], [0.0]
def call(*args):
    seen.append(now[0])
    return CALLED
CALLED = "a"
def closure():
    held = items
    return lambda: held[-1]
last = closure()
"""

ALIASES = """
def f(x, a=items): a.append(x); return sum(v * v for v in items)
def f(x, a=items): items.append(x); return sum(v * v for v in a)
def f(x, a=items): a[0] = x; return x * items[0]
def f(x, a=items): a.insert(0, x * x); return items[0] * items[1] + items[0]
def f(x, a=items): a += [x, 2 * x]; return items[-1] * items[-2]
def f(x, a=table): a["k"] = x * x; return table["k"] * x
def f(x, a=table): a.update(k=x, j=x * 2); return sum(table.values()) * x
def f(x, a=queue): a.appendleft(x); return queue[0] ** 3
def f(x, a=nested[0]): a[0] = x; return nested[0][0] ** 2
def f(x, a=nested): a[0][0] = x; return nested[0][0] ** 2
def f(x, a=m.items): a[0] = x; return m.items[0] * x
def f(x, a=m): a.items[0] = x * 3; return m.items[0] * x
def f(x, a=items): a[0] = x * x; return last() * x
""".strip().splitlines()

CALLBACKS = """
def f(x): now[0] = x * x; re.sub("a", call, "aa"); return x * sum(seen)
def f(x): now[0] = x * x; re.compile("a").sub(call, "aa"); return x * sum(seen)
def f(x): now[0] = x * x; json.dumps([m], default=call); return x * sum(seen)
def f(x): now[0] = x * x; json.loads("[{},{}]", object_hook=call); return x * sum(seen)
def f(x): now[0] = x * x; np.frompyfunc(call, 1, 1)(np.ones(3)); return x * sum(seen)
def f(x): now[0] = x * x; list(filter(None, [B(), B()])); return x * sum(seen)
def f(x): now[0] = x * x; "abc"[:B()]; [1, 2][:B()]; return x * sum(seen)
def f(x): now[0] = x * x; np.array([B(), B()], dtype=float); return x * sum(seen)
def f(x): now[0] = x * x; np.array([B()]) == np.array([1], dtype=object); return x * sum(seen)
def f(x): now[0] = x * x; np.sort(np.array([B(), B()])); return x * sum(seen)
def f(x): now[0] = x * x; np.loadtxt(["1", "2"], converters={0: lambda t: len(call())}); return x * sum(seen)
""".strip().splitlines()

SPECIAL = """
class B:
    def noted(self, *args): seen.append(now[0]); return 1
    __index__ = noted
    def __bool__(self): return bool(self.noted())
    def __float__(self): return float(self.noted())
    def __eq__(self, other): return bool(self.noted())
    def __lt__(self, other): return bool(self.noted())
"""


def made(source):
    module = types.ModuleType("aliases")
    exec(compile(SETUP + SPECIAL + source, __file__, "exec"), vars(module))
    return module


def plain(source, x):
    return made(source).f(x)


@pytest.mark.parametrize("on", (True, False))
@pytest.mark.parametrize("source", ALIASES + CALLBACKS)
def test_gradient(source, on):
    h = 1e-6
    for x in (1.5, -0.7):
        expected = (plain(source, x + h) - plain(source, x - h)) / (2 * h)
        value = plain(source, x)
        for way in (by_gradient, by_pullback, by_jvp, by_linearize):
            with jit(on):
                found, slope = way(made(source), x)
                assert found == value
                assert slope == pytest.approx(expected, rel=1e-6)


def arguments(module, x):
    return (x, *(module.f.__defaults__ or ()))


def by_gradient(module, x):
    value, slope = value_and_grad(module.f)(*arguments(module, x))
    return value, slope


def by_pullback(module, x):
    value, back = pullback(module.f, *arguments(module, x))
    return value, back(1.0)[0]


def by_jvp(module, x):
    return jvp(module.f, (x,), (1.0,))


def by_linearize(module, x):
    value, derivative = linearize(module.f, x)
    return value, derivative(1.0)


@pytest.mark.parametrize("on", (True, False))
def test_what_a_callback_gives_to_c_code_is_plain_or_refused(on):
    """Text of a traced number is followed as text is; a number that has a derivative does not get lost in C code."""

    def shown(match):
        return f"{now[0]:.1f}"

    def number(match):
        return now[0]

    def f(x, how):
        now[0] = x * 2
        if how == "text":
            return x * len(re.sub("a", shown, "aba"))
        return x * len(json.dumps([table], default=number))

    now, table = [0.0], collections.namedtuple("T", "a")
    with jit(on):
        assert value_and_grad(f)(1.5, "text") == (1.5 * 7, 7.0)
        with pytest.raises(Exception, match=r"number\(\)|traced"):
            value_and_grad(lambda x: f(x, "number") * 1.0)(1.5)
    assert np.isfinite(f(1.5, "text"))


SCALE = [1.0]


def doubled(a):
    return a * 2.0


def scaled(a):
    return a * SCALE[0]


@pytest.mark.parametrize("on", (True, False))
def test_a_callback_may_give_back_what_c_code_gave_it(on):
    """What C code makes of it depends on what C code was given; anything else would get lost in it."""

    def f(x):
        return x.sum() * 1.0 + stop_gradient(operator.call(doubled, x[0]))

    def g(x):
        SCALE[0] = x[0]
        return x.sum() * 1.0 + stop_gradient(operator.call(scaled, x[0]))

    x = np.array([1.5, 0.5])
    with jit(on):
        value, slope = value_and_grad(f)(x)
        assert value == f(x) == 5.0
        np.testing.assert_array_equal(slope, [1.0, 1.0])
        value, slope = value_and_grad(g)(x)  # which is followed
        assert value == 4.25
        np.testing.assert_array_equal(slope, [1.0, 1.0])


def halves(buffer):
    return [buffer[:6], buffer[6:]]


def interleaved(buffer):
    return [buffer[::2], buffer[1::2]]


def kinds(buffer):
    return [buffer[:6], buffer[6:].view(np.int64)]


def part_of_the_other(views, x):
    one, other = views
    other[0] = 2
    return one[:2] * x, one[:2]


def part_from_before(views, x):
    one, other = views
    part = one[:3]
    other[0] = 2
    one[0] = x * x
    return one[:2] * x, part[:2]


def through_a_list(views, x):
    held = [views, x]
    views[1][:] = 1
    held[0][0][1] += x
    return held[0][0] * x, held[0][0][::2]


@pytest.mark.parametrize("limited", [True, False])
@pytest.mark.parametrize("f", [part_of_the_other, part_from_before, through_a_list])
@pytest.mark.parametrize("cut", [halves, interleaved, kinds])
def test_a_view_stays_one_when_its_memory_is_written_to_elsewhere(cut, f, limited, monkeypatch):
    monkeypatch.setattr(Budget, "limited", limited)
    world = {}

    def fresh():
        world["buffer"] = np.linspace(1.5, 1.0, 12)
        world["views"] = cut(world["buffer"])
        return world["buffer"]

    g = lambda x: f(world["views"], x)  # noqa: E731
    for x in (0.5, 1.5, 2.5, 3.5):
        plain = fresh()
        expected, shown = g(x)
        assert np.shares_memory(shown, plain)
        buffer = fresh()
        (value, view), back = pullback(g, x)
        assert np.shares_memory(view, buffer)
        np.testing.assert_array_equal(buffer, plain)
        np.testing.assert_array_equal(value, expected)
        np.testing.assert_array_equal(view, shown)
        (slope,) = back((np.ones(np.shape(value)), None))
        high, low = [(fresh(), g(x + h)[0])[1].sum() for h in (1e-6, -1e-6)]
        assert slope == pytest.approx((high - low) / 2e-6, rel=1e-7)
        view[0] = 7.0
        shown[0] = 7.0
        np.testing.assert_array_equal(buffer, plain)


@pytest.mark.parametrize("way", ["jvp", "pullback", "linearize"])
@pytest.mark.parametrize(
    "make",
    [
        lambda: {"y": ({"a": 0.5},)},
        lambda: {"y": ([0.5], 1.5)},
        lambda: [({"a": (0.5, [1.5])},)],
        lambda: ({"x": [0.5, np.ones(2)], "y": ({"a": 0.5}, [0.5])},),
    ],
)
def test_tuples_in_containers_that_come_in_twice_stay_what_they_are(make, way):
    def leaves(x):
        if isinstance(x, dict):
            return [y for part in x.values() for y in leaves(part)]
        return [y for part in x for y in leaves(part)] if isinstance(x, list | tuple) else [x]

    def f(x):
        return sum(np.sum(y * y) for y in leaves(x))

    def inner(x):
        if way == "jvp":
            return jvp(f, (x,), (x,))[1]
        if way == "linearize":
            return linearize(f, x)[1](x)
        value, back = pullback(f, x)
        return value + sum(np.sum(y) for y in leaves(back(1.0)[0]))

    x = make()
    plain = inner(x)
    for _ in range(3):
        value, tangent = jvp(inner, (x,), (x,))
        assert value == plain and pullback(inner, x)[0] == plain
        assert tangent == pytest.approx(2.0 * plain if way != "pullback" else 2.0 * plain - sum(
            np.sum(2.0 * y) for y in leaves(x)
        ))  # fmt: skip
    assert repr(x) == repr(make())


FIELD = np.arange(1.0, 7.0)


def one_element(q, y):
    FIELD[1] = y
    return (q * q).sum()


def beside(q, y):
    FIELD[5] = y
    return (q * q).sum()


def by_a_mask(q, y):
    FIELD[FIELD > 2.5] = y
    return (q * q).sum()


def of_itself(q, y):
    FIELD[1] = y * q.sum()
    return (q * q).sum()


@pytest.mark.parametrize("way", ["jit", "traced"])
@pytest.mark.parametrize("cut", [np.s_[1:4], np.s_[:3], np.s_[3::-1], np.s_[::2], None], ids=str)
@pytest.mark.parametrize("f", [one_element, beside, by_a_mask, of_itself])
def test_what_is_not_written_of_an_array_outside_stays_the_argument_s(f, cut, way):
    """A write to one element of the array that an argument is a view of made the whole of it a constant."""

    def argument():
        FIELD[:] = np.arange(1.0, 7.0)
        return np.broadcast_to(FIELD[:3], (2, 3)) if cut is None else FIELD[cut]

    both = value_and_grad(f, (0, 1))
    with jit(way == "jit"):
        for y in (7.0, 8.0, 9.0, 1.5):
            value, (dq, dy) = both(argument(), y)
            assert value == f(argument(), y)
            written = np.zeros(6, bool)
            written[{one_element: 1, beside: 5, of_itself: 1}.get(f, np.s_[2:])] = True
            q = argument()
            part = np.broadcast_to(written[:3], (2, 3)) if cut is None else written[cut]
            expected = np.where(part, 0.0, 2 * q)
            slope = 2 * y * part.sum()
            if f is of_itself:
                expected += slope * y * q.sum()
                slope *= q.sum() ** 2
            assert dq == pytest.approx(expected), y
            assert dy == pytest.approx(slope)


def through_a_view(a, b):
    part = a[:2]
    part[0] = 5.0
    return (b * b).sum()


def test_an_argument_twice_keeps_what_is_not_written_by_a_view():
    v = np.array([1.0, 2.0, 3.0])
    assert grad(through_a_view, 1)(v, v).tolist() == [0.0, 4.0, 6.0]


def test_attributes_in_one_array_keep_their_gradients_apart():
    class Model:
        def __init__(self):
            self.state = np.arange(5.0)
            self.q, self.v = self.state[:3], self.state[3:]

    def f(m):
        m.state[3] = 9.0
        return (m.q * m.q).sum() + m.v.sum()

    found = grad(f)(Model())
    assert found["q"].tolist() == [0.0, 2.0, 4.0]
    assert found["v"].tolist() == [0.0, 1.0]
    assert found["state"].tolist() == [0.0] * 5


WRITERS = [
    lambda a, y: np.add.at(a, [0, 5], y),
    lambda a, y: np.multiply.at(a, [0], y),
    lambda a, y: np.put(a, [0, 5], [y, y]),
    lambda a, y: np.put_along_axis(a, np.array([5]), y, 0),
    lambda a, y: np.copyto(a, y, where=np.arange(6) > 3),
    lambda a, y: np.add(a, y, out=a, where=np.arange(6) > 3),
    lambda a, y: np.putmask(a, a > 4.5, y),
    lambda a, y: np.place(a, a > 4.5, [y]),
    lambda a, y: np.fill_diagonal(a.reshape(2, 3)[:, 1:], y),
    lambda a, y: np.multiply(a[4:], y, out=a[4:]),
    lambda a, y: a[:2].fill(y),
]


@pytest.mark.parametrize("twice", [True, False])
@pytest.mark.parametrize("write", WRITERS)
def test_writes_to_some_elements_leave_the_others_to_the_argument(write, twice):
    """Also those that go by a new whole: what such a write leaves as it was is no constant."""

    def f(a, b, y):
        write(a if twice else FIELD, y)
        return (b * b).sum()

    def arguments(y):
        FIELD[:] = np.arange(1.0, 7.0)
        a = FIELD.copy()
        return (a, a, y) if twice else (a, FIELD[1:5], y)

    known = arguments(7.0)[1].copy()
    after = arguments(7.0)
    f(*after)
    kept = after[1] == known
    found = grad(f, 1)(*arguments(7.0))
    assert kept.any()
    assert found[kept].tolist() == (2 * known)[kept].tolist()
    h = 1e-6
    slope = (f(*arguments(7.0 + h)) - f(*arguments(7.0 - h))) / (2 * h)
    assert grad(f, 2)(*arguments(7.0)) == pytest.approx(slope)

"""Rules that are not pure: their arguments and values, the arrays that they keep, and what they are asked to be."""

import dataclasses
import functools
import math
import operator
import pickle
import random
import sys
from collections import namedtuple

import numpy as np
import pytest
from pair_rules import TIMES, Meter, clipped, log, noisy, square

from helpers import assert_same, numeric_grad
from wengert import (
    CotangentError,
    NoRuleError,
    TraceError,
    custom_rule,
    explain,
    frule,
    grad,
    jit,
    jvp,
    pullback,
    query,
    rrule,
    trace,
    value_and_grad,
)
from wengert.rules.registry import rules

pytestmark = pytest.mark.usefixtures("switch", "registered")


# ------------------------------------------------------------------------------------------- structures


def test_several_results_and_arguments():
    Pair = namedtuple("Pair", "sum product")

    @custom_rule
    def both(x, y):
        k = random.choice([1.0, 2.0])

        def back(d):
            assert type(d) is Pair
            ds, dp = d
            log.append((ds, dp))
            return k * (ds + dp * y), k * (ds + dp * x)

        return Pair(k * (x + y), k * (x * y)), back

    g = value_and_grad(lambda x, y: both(x, y).product, argnums=(0, 1))
    for _ in TIMES:
        log.clear()
        value, (dx, dy) = g(2.0, 3.0)
        k = value / 6.0
        assert (dx, dy) == (3.0 * k, 2.0 * k)
        assert_same(log, [(0.0, 1.0)])


@pytest.mark.parametrize("kind", ["list", "dict", "nested"])
def test_values_of_other_structures(kind):
    made = {
        "list": lambda a, b: [a, b],
        "dict": lambda a, b: {"a": a, "b": b},
        "nested": lambda a, b: ((a, None), ["text", {"b": b}]),
    }[kind]
    parts = {
        "list": lambda v: v,
        "dict": lambda v: [v["a"], v["b"]],
        "nested": lambda v: [v[0][0], v[1][1]["b"]],
    }[kind]

    @custom_rule
    def rule(x):
        r = random.random()

        def back(d):
            da, db = parts(d)
            return (r * da + r * 2 * x * db,)

        return made(r * x, r * x * x), back

    def f(x):
        a, b = parts(rule(x))
        return a * 10.0 + b

    g = value_and_grad(f)
    for _ in TIMES:
        value, slope = g(3.0)
        r = value / 39.0
        assert slope == pytest.approx(r * 16.0, rel=1e-14)
    assert grad(grad(f))(3.0) > 0


def test_arguments_in_structures_and_none():
    @custom_rule
    def weighted(params, x, name):
        log.append(name)
        w, b = params["w"], params["b"]

        def back(d):
            return {"w": [d * x, None], "b": d}, None, None

        return w[0] * x + b, back

    g = grad(lambda p, x: weighted(p, x, "n") * 2.0, argnums=(0, 1))
    for _ in TIMES:
        found = g({"w": [2.0, 7.0], "b": 1.0}, 3.0)
        assert_same(found, ({"w": [6.0, 0.0], "b": 2.0}, 0.0))


def test_options_and_keywords():
    @custom_rule
    def power(x, n, scale=1.0):
        log.append(n)

        def back(d):
            return scale * n * x ** (n - 1) * d, None, x**n * d

        return scale * x**n, back

    g = grad(lambda x, s: power(x, 3, scale=s) + power(x, n=2), argnums=(0, 1))
    for _ in TIMES:
        log.clear()
        assert g(2.0, 5.0) == (5.0 * 12.0 + 4.0, 8.0)
        assert log == [3, 2]
    assert grad(lambda n, x: power(x, n))(3, 2.0) == 0.0


def test_whole_numbers():
    @custom_rule
    def times(n, x):
        log.append(type(n))

        def back(d):
            log.append(type(d))
            return d * x, d * n

        return n * x, back

    g = grad(times, argnums=(0, 1))
    for _ in TIMES:
        log.clear()
        assert_same(g(3, 2.0), (2.0, 3.0))
        assert_same(g(3, 2), (2.0, 3.0))
        assert log == [int, float, int, float]


# ---------------------------------------------------------------- values that are returned as they came


@pytest.mark.parametrize("x", [2.0, np.float32(2.0), np.array([2.0, 3.0]), np.array(2.0)], ids=repr)
def test_the_identity_with_another_pullback(x):
    f = lambda x: np.sum(5.0 * clipped(x))
    g = grad(f)
    for _ in TIMES:
        log.clear()
        assert_same(g(x), np.ones_like(x) if type(x) is np.ndarray else type(x)(1.0))
        assert log == ["value", "pullback"]
    second = grad(lambda x: np.sum(x * clipped(x)))
    for _ in TIMES:
        expected = np.clip(x, -1.0, 1.0) + x
        np.testing.assert_allclose(second(x), expected)


def test_the_identity_in_the_middle():
    @custom_rule(pure=True)
    def pure(x):
        return x, lambda d: (np.clip(d, -1.0, 1.0),)

    for rule in (clipped, pure):
        x = np.array([0.5, 1.5])

        def f(x):
            y = x * 3.0
            return (5.0 * rule(y) + y).sum()

        g = grad(f)
        for _ in TIMES:
            np.testing.assert_allclose(g(x), [6.0, 6.0])


def test_an_array_that_is_returned_is_the_same_array():
    def f(x):
        y = x * 1.0
        z = clipped(y)
        assert z is y
        z[0] = 7.0
        assert y[0] == 7.0
        return (3.0 * y).sum() + (5.0 * z).sum()

    x = np.array([1.0, 2.0])
    g = value_and_grad(f)
    for _ in TIMES:
        value, dx = g(x)
        assert value == 8.0 * 7.0 + 8.0 * 2.0
        assert dx.tolist() == [0.0, 3.0 + 1.0]


def test_straight_through():
    @custom_rule
    def rounded(x):
        return round(x), lambda d: (d,)

    @custom_rule
    def step(x):
        return 1.0 if x > 0 else 0.0, lambda d: (d,)

    @custom_rule
    def whole(x):
        return np.rint(x).astype(int), lambda d: (d,)

    for _ in TIMES:
        assert value_and_grad(lambda x: rounded(x) * 2.5)(1.7) == (5.0, 2.5)
        assert value_and_grad(lambda x: step(x) * 3.0)(1.7) == (3.0, 3.0)
        assert value_and_grad(lambda x: step(x) * 3.0)(-1.7) == (0.0, 3.0)
        x = np.array([0.6, 1.7])
        assert grad(lambda x: (whole(x) * 2.5).sum())(x).tolist() == [2.5, 2.5]


def test_reversed_gradients():
    @custom_rule
    def reversal(x, strength):
        return x, lambda d: (-strength * d, None)

    w = np.array([1.0, 2.0])
    g = grad(lambda w, s: (reversal(np.tanh(w), s) ** 2).sum())
    for s in (1.0, 2.0, 2.0, 0.5, 0.5, 0.5):
        expected = -s * 2 * np.tanh(w) * (1 - np.tanh(w) ** 2)
        np.testing.assert_allclose(g(w, s), expected, rtol=1e-14)


# ------------------------------------------------------------------------------- arrays that are written to


def test_an_argument_that_is_written_to_later():
    def f(a):
        x = a * 1.0
        total = 0.0
        for _ in range(3):
            total = total + square(x).sum()
            x[0] = x[0] * 2.0
            x *= 0.5
        return total

    a = np.array([1.0, 3.0])
    g = grad(f)
    for _ in TIMES:
        np.testing.assert_allclose(g(a), numeric_grad(f, a), rtol=1e-6)
    log.clear()
    g(a)
    assert log == ["square"] * 3


def test_a_value_that_is_written_to_later():
    @custom_rule
    def exponential(x):
        y = np.exp(x)
        log.append(1)
        return y, lambda d: (y * d,)

    def f(x):
        y = exponential(x)
        y[0] = 0.0
        y += x
        return (y * y).sum()

    x = np.array([0.5, 0.25])
    for _ in TIMES:
        np.testing.assert_allclose(grad(f)(x), numeric_grad(f, x), rtol=1e-6)


def test_what_was_handed_out_may_be_written_to_before_the_pullback():
    @custom_rule
    def exponential(x):
        y = np.exp(x)
        return y, lambda d: (y * d,)

    x = np.array([0.5, 0.25])
    for _ in TIMES:
        y, back = pullback(exponential, x)
        expected = np.exp(x)
        y[...] = 0.0
        np.testing.assert_array_equal(back(np.ones(2))[0], expected)
        a = x.copy()
        _, back = pullback(square, a)
        a[...] = 0.0
        np.testing.assert_array_equal(back(np.ones(2))[0], 2 * x)


def test_a_body_that_writes_into_its_argument():
    @custom_rule
    def doubled_in_place(x):
        before = x.copy()
        x *= 2.0
        return (x * before).sum(), lambda d: (4.0 * before * d,)

    def f(a):
        x = a * 1.0
        y = doubled_in_place(x)
        return y + (x * 0.0).sum()

    a = np.array([1.0, 3.0])
    assert f(a) == 20.0
    for _ in TIMES:
        value, da = value_and_grad(f)(a)
        assert value == 20.0
        assert da.tolist() == [4.0, 12.0]


def test_arrays_in_tuples_and_in_what_cannot_be_put_right():
    @custom_rule
    def in_tuple(x):
        saved = (x, "text")
        return x * x, lambda d: (2 * saved[0] * d,)

    @custom_rule
    def in_list(x):
        saved = [x]
        return x * x, lambda d: (2 * saved[0] * d,)

    def through(rule):
        def f(a):
            x = a * 1.0
            y = rule(x)
            x[0] = 100.0
            return y.sum()

        return f

    a = np.array([1.0, 3.0])
    for _ in TIMES:
        assert grad(through(in_tuple))(a).tolist() == [2.0, 6.0]
        with pytest.raises(TraceError, match=r"in_list .*\nlet the rule keep a copy"):
            grad(through(in_list))(a)


# ------------------------------------------------------------------------------------------------- classes


class Layer:
    calls = 0

    def __init__(self, scale):
        self.scale = scale
        self.seen = []

    @custom_rule
    def __call__(self, x):
        self.seen.append("value")
        Layer.calls += 1

        def back(d):
            self.seen.append(d)
            return None, d * self.scale

        return x * self.scale, back

    @staticmethod
    @custom_rule
    def doubled(x):
        log.append("doubled")
        return 2 * x, lambda d: (2 * d,)


def test_methods():
    layer = Layer(3.0)
    g = grad(lambda x: layer(x) * 2.0 + layer.doubled(x))
    for _ in TIMES:
        layer.seen.clear()
        log.clear()
        assert g(1.0) == 8.0
        assert_same(layer.seen, ["value", 2.0])
        assert log == ["doubled"]
    layer.scale = 5.0
    for _ in TIMES:
        assert g(1.0) == 12.0
    assert grad(layer)(1.0) == 5.0


def test_a_pullback_that_is_no_function():
    class Saved:
        def __init__(self, x, r):
            self.x, self.r = x, r

        def pull(self, d):
            log.append("pull")
            return (2 * self.x * self.r * d,)

        def __call__(self, d):
            return self.pull(d)

    def times(factor, x, d):
        log.append("times")
        return (factor * x * d,)

    @custom_rule
    def by_method(x):
        r = random.random()
        return x * x * r, Saved(x, r).pull

    @custom_rule
    def by_object(x):
        r = random.random()
        return x * x * r, Saved(x, r)

    @custom_rule
    def by_partial(x):
        r = random.random()
        return x * x * r, functools.partial(times, 2 * r, x)

    @custom_rule
    def by_default(x):
        r = random.random()
        return x * x * r, lambda d, x=x, r=r: (2 * r * x * d,)

    for rule in (by_method, by_object, by_partial, by_default):
        g = value_and_grad(rule)
        for _ in TIMES:
            value, slope = g(3.0)
            assert slope == pytest.approx(2 * value / 3.0, rel=1e-14)
        assert grad(grad(rule))(3.0) > 0
        value, back = pullback(rule, 3.0)
        assert back(2.0) == (pytest.approx(4 * value / 3.0, rel=1e-14),)


# ---------------------------------------------------------------------------- functions of others with rules


def test_the_rule_of_a_c_function():
    @rrule(math.erf)
    def rule(x):
        y = math.erf(x)
        log.append("value")
        return y, lambda d: (log.append("pullback") or 7.0 * d,)

    g = grad(lambda x: math.erf(x) + 0.0)
    for _ in TIMES:
        log.clear()
        assert g(0.5) == 7.0
        assert grad(math.erf)(1) == 7.0
        assert log == ["value", "pullback"] * 2


def test_the_rule_of_a_ufunc():
    @rrule(np.exp)
    def rule(x, **options):
        y = np.exp(x)
        log.append("value")
        return y, lambda d: (log.append("pullback") or d * y,)

    x = np.array([0.5, 1.0])
    for _ in TIMES:
        log.clear()
        np.testing.assert_allclose(grad(lambda x: np.exp(x).sum())(x), np.exp(x))
        assert log == ["value", "pullback"]
        assert grad(lambda x: np.exp(x))(np.float32(0.5)).dtype == np.float32
        assert grad(grad(lambda x: np.exp(x)))(0.5) == pytest.approx(np.exp(0.5))

        def out(x):
            y = np.empty(2)
            np.exp(x, out=y)
            return y.sum()

        np.testing.assert_allclose(grad(out)(x), np.exp(x))


def test_the_rule_of_an_operator():
    @rrule(operator.mul)
    def rule(x, y):
        log.append("rule")
        return x * y, lambda d: (log.append("pullback") or d * y * 10.0, d * x)

    for _ in TIMES:
        log.clear()
        assert grad(lambda x: x * 3.0)(2.0) == 30.0
        assert log == ["rule", "pullback"]
        assert grad(lambda x: x * 3.0 + x * x)(2.0) == 30.0 + 20.0 + 2.0


def test_rules_in_library_code():
    for _ in TIMES:
        log.clear()
        assert grad(lambda x: sum(map(clipped, [x, 2 * x])) * 3)(1.0) == 3.0
        assert log == ["value"] * 2 + ["pullback"] * 2
        assert (
            grad(lambda x: functools.reduce(lambda a, b: a * clipped(b), [x, x], 1.0))(2.0) == 2.0
        )
        assert grad(lambda x: sorted([x, 2 * x], key=clipped)[0])(2.0) == 1.0


def test_a_rule_inside_a_solver():
    """A function that is differentiated as a whole may use rules that only compute."""
    optimize = pytest.importorskip("scipy.optimize")

    @custom_rule
    def cube(x):
        return x**3, lambda d: (3 * x * x * d,)

    g = grad(lambda a: optimize.brentq(lambda x: cube(x) - a, 0.0, 5.0))
    for _ in TIMES:
        assert g(8.0) == pytest.approx(1 / 12, rel=1e-6)

    @custom_rule
    def noisy_cube(x):
        return x**3, lambda d: (3 * x * x * d * random.random(),)

    with pytest.raises((TraceError, NoRuleError), match="asked again"):
        grad(lambda a: optimize.brentq(lambda x: noisy_cube(x) - a, 0.0, 5.0))(8.0)


def scaled_by_ten(rule):
    """A pullback that shows by its factor that it ran."""
    return lambda *xs, **options: log.append("rule") or rule(*xs, **options)


FUNCTIONS = {
    "sum": (
        sum,
        lambda xs: (sum(xs), lambda d: ([d * 10.0] * len(xs),)),
        lambda x: sum([x, x * x]),
        70.0,
    ),
    "abs": (abs, lambda x: (abs(x), lambda d: (d * 10.0,)), lambda x: abs(x), 10.0),
    "float": (float, lambda x: (float(x), lambda d: (d * 10.0,)), lambda x: float(x) * 2.0, 20.0),
    "max": (max, lambda *xs: (max(*xs), lambda d: (10.0 * d, d)), lambda x: max(x, 1.0), 10.0),
    "round": (round, lambda x: (round(x), lambda d: (d * 10.0,)), lambda x: round(x) * 2.0, 20.0),
    "neg": (operator.neg, lambda x: (-x, lambda d: (d * 10.0,)), lambda x: -x, 10.0),
    "getitem": (
        operator.getitem,
        lambda a, i: (a[i], lambda d: (np.ones(3) * d * 10, None)),
        lambda x: (x * np.ones(3))[1],
        30.0,
    ),
    "np.sum": (
        np.sum,
        lambda x: (np.sum(x), lambda d: (np.ones(3) * d * 10,)),
        lambda x: np.sum(x * np.ones(3)),
        30.0,
    ),
    "a method": (
        np.ndarray.sum,
        lambda x: (np.ndarray.sum(x), lambda d: (np.ones(3) * d * 10,)),
        lambda x: (x * np.ones(3)).sum(),
        30.0,
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_rules_of_ones_own_for_functions_that_have_some(name):
    fn, rule, f, expected = FUNCTIONS[name]
    rrule(fn)(scaled_by_ten(rule))
    g = grad(f)
    for _ in TIMES:
        log.clear()
        assert g(3.0) == expected
        assert log == ["rule"]
    assert jvp(f, (3.0,), (1.0,))[1] == expected


@pytest.mark.parametrize(
    "kind", ["dataclass", "object", "namedtuple", "nested", "complex", "float32"]
)
def test_gradients_of_every_structure(kind):
    @dataclasses.dataclass
    class Data:
        w: object
        b: float
        name: str = "data"

    Pair = namedtuple("Pair", "a b")

    class Thing:
        def __init__(self):
            self.w, self.k, self.text = np.array([1.0, 2.0]), 2.0, "text"

    argument, f = {
        "dataclass": (Data(np.array([1.0, 2.0]), 3.0), lambda p: noisy(p.w).sum() * p.b),
        "object": (Thing(), lambda p: noisy(p.w).sum() * p.k),
        "namedtuple": (Pair(1.0, (2.0, 3)), lambda p: noisy(p.a) * p.b[0] * p.b[1]),
        "nested": (
            {"x": [2.0, None, np.arange(3)], "y": np.zeros((0, 2))},
            lambda p: noisy(p["x"][0]),
        ),
        "complex": (1 + 2j, lambda z: abs(noisy(z))),
        "float32": ([np.float32(3), np.array(2.0)], lambda p: noisy(p[0]) * p[1]),
    }[kind]
    g = value_and_grad(f)
    with jit(False):
        random.seed(5)
        expected = [value_and_grad(f)(argument) for _ in TIMES]
    random.seed(5)
    assert_same([g(argument) for _ in TIMES], expected)


def test_pullbacks_are_pickled_with_what_they_share():
    @custom_rule
    def counted(x):
        r, n = random.random(), 0

        def back(d):
            nonlocal n
            n += 1
            return (d * r * n,)

        return x * r, back

    value, back = pullback(lambda x: counted(x) * 3.0, 2.0)
    again = pickle.loads(pickle.dumps(back))
    slope = value / 2.0
    assert [back(1.0), back(1.0)] == [(pytest.approx(slope),), (pytest.approx(2 * slope),)]
    assert [again(1.0), again(1.0)] == [(pytest.approx(slope),), (pytest.approx(2 * slope),)]


def test_without_cloudpickle_a_pullback_says_why_it_cannot_be_sent(monkeypatch):
    _, back = pullback(lambda x: noisy(x), 2.0)
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(pickle.PicklingError, match="noisy cannot be pickled"):
        pickle.dumps(back)


# ----------------------------------------------------------------------------------------------- purity


@query
def noted(x):
    """Looked at while a rule is traced; nobody records it."""
    log.append("rule")
    return 1.0


def test_a_pure_rule_is_run_once_for_all_calls():
    @custom_rule(pure=True)
    def pure(x):
        return noted(x) * x * x, lambda d: (2 * x * d,)

    g = grad(lambda x: pure(x) + pure(x + 1))
    with jit(False):
        assert [g(x) for x in (3.0, 4.0, 5.0)] == [14.0, 18.0, 22.0]
    assert log.count("rule") == 1 + 6  # and in each call for the value

    def cube(x):
        return x**3

    @rrule(cube, pure=True)
    def rule(x):
        noted(x)
        return cube(x), lambda d: (3 * x * x * d,)

    log.clear()
    assert [grad(cube)(x) for x in (1.0, 2.0, 3.0)] == [3.0, 12.0, 27.0]
    assert [jvp(cube, (x,), (1.0,))[1] for x in (1.0, 2.0, 3.0)] == [3.0, 12.0, 27.0]
    assert log == ["rule", "rule"]  # once for each mode
    assert rules[np.sin].pure
    assert rules[np.sin].pure_forward

    def quartic(x):
        return x**4

    @frule(quartic, pure=True)
    def forward(primals, tangents):
        noted(primals[0])
        return primals[0] ** 4, 4 * primals[0] ** 3 * tangents[0]

    log.clear()
    assert [jvp(quartic, (x,), (1.0,))[1] for x in (1.0, 2.0)] == [4.0, 32.0]
    assert log == ["rule"]


def test_what_is_declared_pure_must_be():
    def decorated(body):
        return custom_rule(pure=True)(body)

    @decorated
    def draws(x):
        r = random.random()
        return x * r, lambda d: (d * r,)

    @decorated
    def appends(x):
        return x * 2.0, lambda d: (log.append(d) or 2.0 * d,)

    @decorated
    def prints(x):
        return x * 2.0, lambda d: (print(d) or 2.0 * d,)

    me = Meter()

    @decorated
    def counts(x):
        def back(d):
            me.total += d
            return (d,)

        return x * 2.0, back

    for rule in (draws, appends, prints, counts):
        name = rule.__name__
        for way in (grad(rule), lambda x, rule=rule: jvp(rule, (x,), (1.0,))):
            with pytest.raises(TraceError, match=rf"the rule of {name} is declared pure, but"):
                way(2.0)


def test_a_pullback_with_a_recorded_rule_is_not_kept(switch):
    for _ in TIMES:
        pullback(clipped, 2.0)
    told = explain(clipped)
    if switch:
        assert "could not be kept" in told
        assert "clipped" in told
        assert "pure=True" in told
    g = grad(clipped)
    for _ in TIMES:
        g(2.0)
    if switch:
        assert "would answer" in explain(g, 2.0)


def test_tapes_of_their_own_are_refused():
    _, back = pullback(clipped, 2.0)
    with pytest.raises(TraceError, match=r"clipped .*pure=True"):
        back.tape  # noqa: B018


# ------------------------------------------------------------------------------------------------- errors


def test_what_a_pullback_must_return():
    def f(x):
        return x * 2.0

    def with_rule(back):
        rrule(f)(lambda x: (log.append(1) or x * 2.0, back))
        return custom_rule(lambda x: (log.append(1) or x * 2.0, back))

    for back, kind in [
        (lambda d: d, (TraceError, CotangentError)),
        (lambda d: ("text",), (CotangentError, CotangentError)),
        (lambda d: ([d],), (CotangentError, CotangentError)),
    ]:
        custom = with_rule(back)
        for _ in range(3):
            with pytest.raises(kind[0]):
                grad(f)(1.0)
            with pytest.raises(kind[1]):
                grad(custom)(1.0)
    x = np.ones(3)
    summed = custom_rule(lambda x: (x.sum(), lambda d: (log.append(1) or d,)))
    for _ in range(4):
        with pytest.raises(
            CotangentError, match=r"shape \(\) for argument 0, whose shape is \(3,\)"
        ):
            grad(summed)(x)
    with pytest.raises(CotangentError, match=r"must return \(value, pullback\)"):
        grad(custom_rule(lambda x: x * 1.0))(1.0)


def test_traced_values_that_a_rule_is_not_given():
    w = 2.0

    @custom_rule
    def closing(x):
        log.append(1)
        return w * x, lambda d: (w * d,)

    def rebinds(x):
        nonlocal w
        w = x
        return closing(2.0) + closing(x)

    with pytest.raises(TraceError, match="the traced value w"):
        grad(rebinds)(3.0)

    class Box:
        pass

    held = Box()
    held.w = 2.0

    @custom_rule
    def hidden(x):
        log.append(1)
        return find() * x, lambda d: (find() * d,)

    def find():
        return held.w

    def writes(x):
        held.w = x * 1.0
        return hidden(x)

    with pytest.raises(TraceError, match=r"whose derivative would be lost"):
        grad(writes)(3.0)
    held.w = 2.0
    assert grad(hidden)(3.0) == 2.0
    with pytest.raises(TraceError, match="returns a list that it did not make"):
        grad(lambda x: custom_list([x, x])[0])(1.0)


@custom_rule
def custom_list(xs):
    log.append(1)
    return xs, lambda d: (d,)


def test_a_rule_makes_what_cannot_be_followed():
    class Made:
        def __init__(self, x):
            self.x = x

    @custom_rule
    def made(x):
        log.append(1)
        return Made(x), lambda d: (d,)

    with pytest.raises(TraceError, match="makes a Made of traced values"):
        grad(lambda x: made(x).x)(1.0)
    assert grad(lambda x: x * made(3.0).x)(1.0) == 3.0


def test_the_tape_shows_the_body():
    tape = trace(lambda x: square(x) + 1.0, 3.0)
    text = str(tape)
    assert "square(x, %3)" in text
    with pytest.raises(TraceError, match="log is changed"):
        tape.source()
    source = trace(lambda x: quiet(x) + 1.0, 3.0).source("f")
    assert "t3 = severed(t2)\n    t4 = t3  # quiet\n" in source


@custom_rule
def quiet(x):
    return x * x, lambda d: (2 * x * d,)

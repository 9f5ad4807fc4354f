"""`custom_rule`, `numeric_rule` and `stop_gradient`."""

import dataclasses
import math
import pickle
import warnings
from _statistics import _normal_dist_inv_cdf
from collections import OrderedDict, defaultdict, deque, namedtuple

import numpy as np
import pytest

from helpers import assert_close, assert_same, calls, names
from wengert import (
    CotangentError,
    NoRuleError,
    NumericRuleWarning,
    TraceError,
    custom_rule,
    explain,
    frule,
    grad,
    hvp,
    jacfwd,
    jacrev,
    jit,
    jvp,
    linearize,
    nondiff,
    numeric_rule,
    pullback,
    rrule,
    stop_gradient,
    trace,
    value_and_grad,
)
from wengert.rules.registry import rules
from wengert.transforms.differences import derivative

TIMES = range(4)  # traced, traced again and kept, answered by the program


# ------------------------------------------------------------------------------------------ stop_gradient

Pair = namedtuple("Pair", "first second")


@dataclasses.dataclass
class Layer:
    weight: object
    name: str = "layer"


class Thing:
    def __init__(self, weight):
        self.weight = weight


class Slotted:
    __slots__ = ("weight",)

    def __init__(self, weight):
        self.weight = weight


STRUCTURES = {
    "number": (lambda x: x, lambda s: s),
    "list": (lambda x: [x, "text"], lambda s: s[0]),
    "tuple": (lambda x: (None, x), lambda s: s[1]),
    "nested": (lambda x: {"a": [(1, x)]}, lambda s: s["a"][0][1]),
    "namedtuple": (lambda x: Pair(x, 1), lambda s: s.first),
    "dataclass": (lambda x: Layer(x), lambda s: s.weight),
    "object": (lambda x: Thing([x]), lambda s: s.weight[0]),
    "slots": (lambda x: Slotted(x), lambda s: s.weight),
    "deque": (lambda x: deque([x], maxlen=3), lambda s: s[0]),
    "defaultdict": (lambda x: defaultdict(list, a=[x]), lambda s: s["a"][0]),
    "ordered": (lambda x: OrderedDict(b=x), lambda s: s["b"]),
}


@pytest.mark.parametrize("kind", STRUCTURES)
@pytest.mark.parametrize("x", [3.0, np.float32(3.0), 2 - 1j, np.array([1.0, -2.0])], ids=repr)
def test_stop_gradient_of_structures(kind, x):
    make, get = STRUCTURES[kind]

    def f(x):
        y = x * get(stop_gradient(make(x)))
        return y.real if isinstance(x, complex) else y.sum() if isinstance(x, np.ndarray) else y

    g = value_and_grad(f)
    for _ in TIMES:
        value, dx = g(x)
        assert_same(value, f(x))
        assert_same(dx, x)
    stopped = stop_gradient(make(x))
    assert type(stopped) is type(make(x))
    assert_same(get(stopped), x)


def test_stop_gradient_of_an_argument_that_is_a_structure():
    def f(layer):
        return stop_gradient(layer).weight * layer.weight

    assert [grad(f)(Layer(3.0)) for _ in TIMES] == [Layer(3.0, None)] * 4
    assert [grad(f)(Thing(3.0)) for _ in TIMES] == [{"weight": 3.0}] * 4


def test_stop_gradient_in_higher_derivatives():
    def f(x):
        return x**3 * stop_gradient(x)

    assert [grad(grad(f))(2.0) for _ in TIMES] == [6 * 2.0 * 2.0] * 4
    inner = grad(lambda y, x: y * stop_gradient(x * y))
    assert grad(lambda x: inner(3.0, x))(2.0) == 0.0
    assert grad(lambda x: stop_gradient(grad(lambda y: y * y)(x)) * x)(2.0) == 4.0


def test_stop_gradient_of_ints_and_decisions():
    assert grad(lambda n, x: stop_gradient(n) * x)(3, 2.0) == 0.0

    def f(x):
        return x * x if stop_gradient(x) > 0 else -x

    g = grad(f)
    assert [g(x) for x in (1.0, 2.0, -1.0, 3.0, -2.0)] == [2.0, 4.0, -1.0, 6.0, -1.0]


def test_what_is_stopped_is_a_copy():
    x = np.array([1.0, 2.0])
    y = stop_gradient(x)
    y[0] = 5.0
    assert x[0] == 1.0

    def f(x):
        y = stop_gradient(x)
        x[0] = 10.0
        y[1] = 7.0
        return (x * y).sum()

    assert_same([*pullback(f, x.copy())][0], f(x.copy()))
    assert_same(pullback(f, x.copy())[1](1.0)[0], np.array([0.0, 7.0]))
    assert stop_gradient(math.sin) is math.sin
    assert stop_gradient(None) is None


def test_stop_gradient_in_a_loop_and_in_a_program():
    def f(x):
        y = x
        for _ in range(50):
            y = 0.9 * y + 0.01 * stop_gradient(y)
        return y

    g = grad(f)
    assert [g(2.0) for _ in TIMES] == [pytest.approx(0.9**50, rel=1e-12)] * 4
    with jit(True):
        explained = grad(lambda x: x * stop_gradient(x))
        for _ in TIMES:
            assert explained(3.0) == 3.0
        assert "would answer" in explain(explained, 3.0)


# -------------------------------------------------------------------------------------------- custom_rule


@custom_rule
def clipped(x):
    """Clips the cotangent."""

    def pullback(dy):
        return (max(-1.0, min(1.0, dy)),)

    return x, pullback


@custom_rule
def scaled(x, y, power=2):
    z = (x * y) ** power

    def pullback(dz):
        slope = power * (x * y) ** (power - 1)
        return 1000 * dz * slope * y, dz * slope * x

    return z, pullback


class Unit:
    def __init__(self, weight):
        self.weight = weight

    @custom_rule
    def __call__(self, x):
        weight = self.weight

        def pullback(dy):
            return None, 10 * dy * weight

        return weight * x, pullback

    @staticmethod
    @custom_rule
    def doubled(x):
        def pullback(dy):
            return (20 * dy,)

        return 2 * x, pullback

    @classmethod
    def through(cls, x):
        return cls.doubled(x)


def test_custom_rule_is_the_function_and_its_rule():
    assert clipped(3.0) == 3.0
    assert clipped.__name__ == "clipped"
    assert clipped.__doc__ == "Clips the cotangent."
    assert [grad(lambda x: 5 * clipped(x))(3.0) for _ in TIMES] == [1.0] * 4
    assert grad(clipped)(3.0) == 1.0
    assert pullback(clipped, 3.0)[1](-7.0) == (-1.0,)
    tape = trace(lambda x: clipped(x) * 2, 3.0)
    assert names(tape) == ["severed", "clipped", "mul"]
    pure = custom_rule(pure=True)(clipped.__wrapped__)
    assert calls(trace(lambda x: pure(x) * 2, 3.0))[0] is pure


def test_custom_rule_with_options_arrays_and_second_derivatives():
    x, y = np.array([1.0, 2.0]), np.array([3.0, 0.5])
    for options in ({}, {"power": 3}):
        p = options.get("power", 2)
        g = grad(lambda x, y: scaled(x, y, **options).sum(), argnums=(0, 1))
        for _ in TIMES:
            dx, dy = g(x, y)
            np.testing.assert_allclose(dx, 1000 * p * (x * y) ** (p - 1) * y, rtol=1e-14)
            np.testing.assert_allclose(dy, p * (x * y) ** (p - 1) * x, rtol=1e-14)
    second = grad(grad(lambda x: scaled(x, 3.0)))
    assert [second(2.0) for _ in TIMES] == [1000 * 2 * 9.0] * 4


def test_custom_rule_from_library_code_and_callbacks():
    assert grad(lambda x: sum(map(clipped, [x, 2 * x])) * 3)(1.0) == 3.0
    import functools

    assert grad(lambda x: functools.reduce(scaled, [x, 2.0]))(1.0) == 1000 * 2 * 2.0 * 2.0
    assert grad(functools.partial(scaled, power=1))(2.0, 3.0) == 3000.0


def test_custom_rule_as_a_method():
    unit = Unit(2.0)
    assert unit(3.0) == 6.0
    g = grad(lambda x: unit(x) * 1.0)
    assert [g(3.0) for _ in TIMES] == [20.0] * 4
    unit.weight = 3.0
    assert [g(3.0) for _ in TIMES] == [30.0] * 4
    assert [grad(unit)(3.0) for _ in TIMES] == [30.0] * 4
    assert grad(Unit.doubled)(1.0) == 20.0
    assert grad(lambda x: Unit.through(x) + unit.doubled(x))(1.0) == 40.0


def test_a_pullback_of_a_custom_method_is_not_stale():
    unit = Unit(2.0)
    backs = [pullback(unit, 1.0)[1]]
    assert backs[0](1.0) == (20.0,)
    unit.weight = 5.0
    assert pullback(unit, 1.0)[1](1.0) == (50.0,)


def test_another_custom_rule_under_the_same_name():
    def made(k):
        @custom_rule
        def f(x):
            def pullback(dy):
                return (dy * k,)

            return k * x, pullback

        return f

    f = made(2.0)
    g = value_and_grad(lambda x: f(x))
    assert [g(1.0) for _ in TIMES] == [(2.0, 2.0)] * 4
    f = made(5.0)
    assert [g(1.0) for _ in TIMES] == [(5.0, 5.0)] * 4


def test_a_gradient_that_a_custom_rule_would_lose_is_an_error():
    unit = Unit(2.0)
    with pytest.raises(TraceError, match=r"Unit\.weight.*\nmake it an argument of __call__"):
        grad(lambda unit: unit(2.0))(unit)

    def writes(x):
        unit.weight = x
        return unit(2.0)

    with pytest.raises(TraceError, match=r"Unit\.weight"):
        grad(writes)(3.0)
    with pytest.raises(TraceError, match=r"Unit\.weight"):
        grad(lambda x: Unit(x)(2.0))(3.0)
    k = 2.0

    @custom_rule
    def closing(x):
        def pullback(dy):
            return (dy * k,)

        return k * x, pullback

    def rebinds(x):
        nonlocal k
        k = x
        return closing(2.0)

    with pytest.raises(TraceError, match="the traced value k"):
        grad(rebinds)(3.0)
    with pytest.raises(TraceError, match="inside a function that is being traced"):
        grad(lambda x: custom_rule(lambda y: (y * x, lambda dy: (dy * x,)))(2.0))(3.0)


def test_what_a_custom_rule_must_return():
    @custom_rule
    def nothing(x):
        return x

    @custom_rule
    def flat(x):
        return x.sum(), lambda dy: (dy,)

    @custom_rule
    def many(x):
        return 2 * x, lambda dy: (dy, dy)

    @custom_rule
    def bare(x):
        return 2 * x, lambda dy: dy

    with pytest.raises(CotangentError, match=r"nothing \(.*must return \(value, pullback\)"):
        grad(nothing)(2.0)
    with pytest.raises(CotangentError, match=r"nothing \(.*must return \(value, pullback\)"):
        nothing(2.0)
    with pytest.raises(CotangentError, match=r"shape \(\) for argument 0, whose shape is \(3,\)"):
        grad(flat)(np.ones(3))
    for f in (many, bare):
        with pytest.raises(CotangentError, match="one cotangent for each argument"):
            grad(f)(2.0)
    with pytest.raises(TypeError, match="not a builtin"):
        custom_rule(math.sin)


def test_a_pullback_through_a_custom_rule_is_pickled():
    _, back = pullback(lambda x: clipped(x) * 3, 2.0)
    assert pickle.loads(pickle.dumps(back))(1.0) == (1.0,)


# ------------------------------------------------------------------------------------------- numeric_rule


def test_numeric_rule_of_a_c_function(registered):
    assert numeric_rule(_normal_dist_inv_cdf) is _normal_dist_inv_cdf

    def f(p, mu):
        return _normal_dist_inv_cdf(p * 0.5, mu, 2.0) ** 2

    g = grad(f, argnums=(0, 1))
    with pytest.warns(NumericRuleWarning, match="_normal_dist_inv_cdf") as warned:
        first = g(0.5, 1.0)
    assert len(warned) == 1
    assert warned[0].filename == __file__
    z = _normal_dist_inv_cdf(0.25, 1.0, 2.0)
    slope = 2 * math.sqrt(2 * math.pi) * math.exp(((z - 1) / 2) ** 2 / 2)
    assert first == pytest.approx((2 * z * 0.5 * slope, 2 * z), rel=1e-11)
    with warnings.catch_warnings(action="error"):  # said once
        assert [g(0.5, 1.0) for _ in TIMES] == [first] * 4
    with pytest.raises(NoRuleError, match="first derivatives only"):
        grad(lambda p: g(p, 1.0)[0])(0.5)


@pytest.mark.filterwarnings("ignore::wengert.NumericRuleWarning")
def test_numeric_rule_of_functions_of_arrays(registered):
    @numeric_rule
    def erf(x, scale=1.0):
        return np.array([math.erf(v) * scale for v in x])

    x = np.array([0.1, -0.5, 2.0])
    exact = 2 / np.sqrt(np.pi) * np.exp(-x * x)
    for _ in TIMES:
        dx = grad(lambda x: (erf(x) * x).sum())(x)
        np.testing.assert_allclose(dx, exact * x + erf(x), rtol=1e-11)
        ds = grad(lambda s: erf(x, scale=s).sum())(2.0)
        assert ds == pytest.approx(erf(x).sum(), rel=1e-12)
    single = grad(lambda x: erf(x).sum())(x.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, exact, rtol=1e-4)


@pytest.mark.filterwarnings("ignore::wengert.NumericRuleWarning")
def test_where_numeric_rule_does_not_apply(registered):
    with pytest.raises(TypeError, match="sin has a rule already"):
        numeric_rule(math.sin)
    with pytest.raises(TypeError, match="takes a callable"):
        numeric_rule(3)

    @numeric_rule
    def turned(x):
        return x * 1j

    with pytest.raises(NoRuleError, match=r"turned.*no value of type complex"):
        grad(lambda x: turned(x).imag)(2.0)

    @numeric_rule
    def summed(x):
        return float(sum(x))

    with pytest.raises(NoRuleError, match=r"summed.*argument of type list"):
        grad(lambda x: summed([x, x]))(2.0)

    @numeric_rule
    def rough(x):
        return math.copysign(1.0, x)

    with pytest.raises(NoRuleError, match=r"rough.*do not converge"):
        grad(lambda x: rough(x))(0.0)

    @numeric_rule
    def starred(*xs, scale=1.0):
        return xs[0] * scale

    assert grad(starred)(2.0, 3.0) == pytest.approx(1.0)
    with pytest.raises(NoRuleError, match="scale must be given by its position"):
        grad(lambda s: starred(2.0, scale=s))(3.0)

    k = 3.0

    @numeric_rule
    def closing(x):
        return k * x

    def rebinds(x):
        nonlocal k
        k = x
        return closing(2.0)

    with pytest.raises(TraceError, match="the traced value k"):
        grad(rebinds)(3.0)


@pytest.mark.parametrize("x", [0.0, 1e-6, 1e-3, 0.1, 0.7, 1.5, 30.0, 1e4])
@pytest.mark.parametrize(
    ("f", "slope"),
    [
        (math.sin, math.cos),
        (math.atan, lambda x: 1 / (1 + x * x)),
        (math.log, lambda x: 1 / x),
        (math.sqrt, lambda x: 0.5 / math.sqrt(x)),
        (lambda x: 1 / x, lambda x: -1 / (x * x)),
        (lambda x: math.sin(100 * x), lambda x: 100 * math.cos(100 * x)),
        (lambda x: 3.0, lambda x: 0.0),
    ],
)
def test_differences(f, slope, x):
    try:
        expected = slope(x)
    except (ArithmeticError, ValueError):
        assert not derivative(lambda t: f(x + t), x).doubt < 1e-3
        return
    found = derivative(lambda t: f(x + t), x)
    assert found.value == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert abs(found.value - expected) <= 20 * found.doubt + 1e-13 * abs(expected)


def test_what_a_function_without_derivative_does_happens_at_each_call(registered):
    done = []
    held = {"k": 1.0}

    @nondiff
    def quiet():
        done.append(1)
        return held["k"]

    @nondiff
    def noted(x):
        done.append(float(x))

    def f(x):
        noted(x)
        return quiet() * x

    def writes(x):
        held["k"] = 2.0
        y = quiet() * x
        held["k"] = 50.0
        return y

    for i in range(6):
        held["k"] = 1.0 + i
        done.clear()
        assert value_and_grad(f)(1.5) == (1.5 * (1.0 + i), 1.0 + i)
        assert done == [1.5, 1]
        assert value_and_grad(writes)(1.5) == (3.0, 2.0)


def test_a_numeric_rule_sees_what_the_function_wrote(registered):
    held = {"k": 1.0}

    @numeric_rule
    def cubed(x):
        return x**3 * held["k"]

    def f(x):
        held["k"] = 2.0
        y = cubed(x)
        held["k"] = 50.0
        return y

    with warnings.catch_warnings(action="ignore"):
        for _ in range(6):
            assert value_and_grad(f)(1.0)[0] == 2.0


@pytest.mark.parametrize("on", [True, False])
def test_a_pure_rule_may_ask_for_shapes_that_the_data_decide(on):
    def body(x):
        positive = x[x > 0]
        return (positive**2).sum() * len(positive)

    @custom_rule(pure=True)
    def ruled(x):
        positive = x > 0
        count = len(x[positive])

        def pullback(d):
            dx = np.zeros(len(x))
            dx[positive] = d * 2 * x[positive] * count
            return (dx,)

        return body(x), pullback

    rng = np.random.default_rng(0)
    with jit(on):
        both = value_and_grad(ruled)
        for _ in range(20):
            x = rng.normal(size=3)
            value, gradient = both(x)
            assert value == body(x)
            assert_close(gradient, grad(body)(x))
            assert_close(jvp(ruled, (x,), (x,))[1], gradient @ x)


def by_root(x):
    try:
        root = math.sqrt(x)
    except ValueError:
        return x, lambda d: (d,)
    return root, lambda d: (d / (2 * root),)


class Swallowing:
    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        return kind is ValueError


def swallowed(x):
    with Swallowing():
        root = math.sqrt(x)
        return root, lambda d: (d / (2 * root),)
    return x, lambda d: (d,)


def in_the_pullback(x):
    def pullback(d):
        try:
            math.sqrt(x)
        except ValueError:
            return (d,)
        return (d / (2 * math.sqrt(x)),)

    return by_root(x)[0], pullback


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("numbers", [(-1.0, 4.0, -4.0, 9.0) * 2, (9.0, 4.0, -1.0, 16.0) * 2])
@pytest.mark.parametrize("body", [by_root, swallowed, in_the_pullback])
def test_a_pure_rule_may_catch_exceptions(body, numbers, on):
    ruled = custom_rule(pure=True)(body)

    def f(x):
        return ruled(x) * 2.0

    for x in numbers:
        root = math.sqrt(abs(x))
        expected = (2 * root, 1 / root) if x > 0 else (2 * x, 2.0)
        with jit(on):
            assert value_and_grad(f)(x) == expected
            assert jvp(f, (x,), (1.0,)) == expected


@pytest.mark.parametrize("pure", [True, False])
@pytest.mark.parametrize("on", [True, False])
def test_a_pullback_that_is_not_linear_has_no_forward_mode(on, pure):
    rule = custom_rule(pure=pure)(lambda x: (x, lambda d: (np.clip(d, -1.0, 1.0),)))
    linear = custom_rule(pure=pure)(lambda x: (x * x, lambda d: (np.where(x > 0, 2 * x * d, 0.0),)))
    f, x = lambda x: rule(x) * 3.0, 1.5
    for _ in TIMES:
        with jit(on):
            assert grad(f)(x) == jacrev(f)(x) == 1.0
            assert jvp(lambda x: linear(x) * 3.0, (x,), (1.0,)) == (6.75, 9.0)
            for ask in (
                lambda: jvp(f, (x,), (1.0,)),
                lambda: jacfwd(f)(x),
                lambda: linearize(f, x)[1](1.0),
            ):
                with pytest.raises(NoRuleError, match="not linear in its cotangent"):
                    ask()
            with pytest.raises(NoRuleError, match="not linear in its cotangent"):
                hvp(lambda x: f(x) * x, (x,), (1.0,))


DECIDING = {
    "sign": lambda d: (d * 2 if d > 0 else d * 3,),
    "size": lambda d: (d * 2 if abs(d) > 0.1 else d * 3,),
    "equality": lambda d: (d * 2 if d == 1.0 else d * 3,),
    "whole part": lambda d: (d * int(d * 10),),
    "largest": lambda d: (d * max(1.0, d),),
}


@pytest.mark.parametrize("pure", [True, False])
@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("name", DECIDING)
def test_a_pullback_that_decides_by_its_cotangent_has_no_forward_mode(name, on, pure):
    rule = custom_rule(pure=pure)(lambda x: (x, DECIDING[name]))
    f, x = lambda x: rule(x) * 3.0, 1.5
    for _ in TIMES:
        with jit(on):
            assert pullback(rule, x)[1](-0.5) == DECIDING[name](-0.5)
            for ask in (
                lambda: jvp(f, (x,), (-1.0,)),
                lambda: jacfwd(f)(x),
                lambda: linearize(f, x)[1](-1.0),
            ):
                with pytest.raises(NoRuleError, match="not linear in its cotangent"):
                    ask()


@pytest.mark.parametrize("pure", [True, False])
@pytest.mark.parametrize("on", [True, False])
def test_a_linear_pullback_may_decide_by_all_else(on, pure):
    @custom_rule(pure=pure)
    def by_type(x):
        def back(d):
            if d is None or not isinstance(d, np.ndarray):
                return (None,)
            turned = [d[i] if x[i] > 0 else -d[i] for i in range(len(d))]
            return (np.array(turned) if d.shape == (2,) and d.ndim == 1 else None,)

        return np.abs(x), back

    x, f = np.array([1.5, -0.5]), lambda x: by_type(x).sum() * 3.0
    for _ in TIMES:
        with jit(on):
            assert jvp(f, (x,), (np.array([-1.0, -2.0]),)) == (6.0, 3.0)
            assert jacfwd(f)(x).tolist() == grad(f)(x).tolist() == [3.0, -3.0]


BENT = {
    "decides": lambda t: t * 2 if t > 0 else t * 3,
    "clips": lambda t: np.clip(t, -0.5, 0.5),
}


@pytest.mark.parametrize("pure", [True, False])
@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("name", BENT)
def test_an_frule_that_is_not_linear_has_no_reverse_mode(name, on, pure):
    def bent(x):
        return x * 1.0

    @frule(bent, pure=pure)
    def rule(primals, tangents):
        return bent(primals[0]), BENT[name](tangents[0])

    try:
        for t in (-1.0, 0.25, -0.125, 2.0):
            with jit(on):
                assert jvp(bent, (1.5,), (t,)) == (1.5, BENT[name](t))
                for ask in (grad(bent), grad(lambda x: bent(x) * x)):
                    with pytest.raises(NoRuleError, match="not linear in its tangents"):
                        ask(1.5)
                along = linearize(lambda x: bent(x) * 3.0, 1.5)[1]
                if name == "decides" and not pure:
                    with pytest.raises(NoRuleError, match="decides by its tangents"):
                        along(-1.0)
                else:
                    assert along(-t) == BENT[name](-t) * 3.0
    finally:
        del rules[bent]


def squared(x):
    return x * x


def squared_and_cleared(x):
    y = x * x
    x[0] = 0.0
    return y


def along(f):
    return frule(f), lambda primals, tangents: (f(primals[0]), 2 * primals[0] * tangents[0])


def back(f):
    return rrule(f), lambda x: (f(x), lambda dy: (2 * x * dy,))


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("given", [along, back])
def test_a_rule_that_calls_its_own_function_of_an_array_first(given, on):
    """The function was taken to have written to the array, and the rule asked for the derivative of what it left."""

    def plain(x):
        return x * x

    xs = np.array([1.0, 2.0, 3.0])
    register, rule = given(squared)
    register(rule)
    try:
        with jit(on):
            for f in (plain, squared):
                for x in (xs, xs + 1.0, xs * 2.0, xs):
                    assert_same(grad(lambda x: (f(x) * x).sum())(x), 3 * x * x)
                    assert_same(jvp(lambda x: f(x) * x, (x,), (x,)), (x**3, 3 * x**3))
                    assert_same(jacfwd(grad(lambda x: (f(x) * x).sum()))(x), np.diag(6 * x))
    finally:
        del rules[squared]


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("given", [along, back])
def test_what_a_function_writes_has_nothing_of_its_rule(given, on):
    register, rule = given(squared_and_cleared)
    register(rule)
    try:
        with jit(on):
            for _ in range(3):
                with pytest.raises(NoRuleError, match="an array was read after squared_and_cl"):
                    grad(lambda x: (squared_and_cleared(x) * x).sum())(np.array([1.0, 2.0]))
    finally:
        del rules[squared_and_cleared]


def test_the_warning_of_a_numeric_rule_is_heard_after_others(registered):
    """Sweeps let none of NumPy's be heard once there was one, but those of rules."""
    with np.errstate(all="ignore"), pytest.warns(RuntimeWarning, match="Mean of empty slice"):
        value_and_grad(lambda x: x + np.mean(np.zeros(0)))(1.0)
    test_numeric_rule_of_a_c_function(registered)

"""Passes of a user's own: what the tracer sees, handed to a function that says how to go on."""

import inspect
import math
import operator

import numpy as np
import pytest

import wengert
from wengert import TraceError, grad, interpret


def run_as_it_is(fn, args, kwargs, site):
    return fn(*args, **kwargs)


def layer(w, x):
    return np.tanh(w @ x)


def network(w, x):
    y = layer(w, x)
    total = 0.0
    for i in range(len(y)):
        if y[i] > 0:
            total += y[i] * math.exp(-x[i])
        y[i] = 0.0
    return total + y.sum()


W, X = np.array([[0.5, -0.3], [0.2, 0.4]]), np.array([1.0, -2.0])


def test_a_pass_that_changes_nothing_changes_nothing():
    assert interpret(network, W, X, call=run_as_it_is) == network(W, X)


def test_each_call_is_seen_with_plain_values_and_its_place():
    seen = []

    def call(fn, args, kwargs, site):
        seen.append((fn, args, kwargs, site))
        return fn(*args, **kwargs)

    interpret(network, W, X, call=call)
    fn, (w, x), kwargs, site = seen[0]
    assert fn is operator.matmul and type(w) is type(x) is np.ndarray and kwargs == {}
    assert site.function == "layer"
    assert site.lineno == inspect.getsourcelines(layer)[1] + 1
    assert site.filename == __file__
    assert [fn for fn, *_ in seen[1:4]] == [np.tanh, operator.getitem, operator.gt]
    assert all(type(args) is tuple for _, args, *_ in seen)


def test_counting_flops():
    count = {}

    def call(fn, args, kwargs, site):
        value = fn(*args, **kwargs)
        if fn is operator.matmul:
            flops = 2 * np.size(args[0]) * np.size(args[1]) // args[0].shape[-1]
        elif fn is operator.getitem:
            flops = 0
        else:
            flops = np.size(value)
        count[site.function] = count.get(site.function, 0) + flops
        return value

    w, x = np.ones((20, 30)), np.ones(30)
    interpret(lambda: layer(w, x), call=call)
    assert count == {"layer": 2 * 20 * 30 + 20}


def test_finding_where_a_nan_is_born():
    def f(x):
        y = x * 2.0
        z = np.log(y)
        return (z - z).sum()

    born = []

    def call(fn, args, kwargs, site):
        with np.errstate(all="ignore"):
            value = fn(*args, **kwargs)
        if np.isnan(value).any() and not any(np.isnan(x).any() for x in args):
            born.append((fn, site.lineno - inspect.getsourcelines(f)[1]))
        return value

    interpret(f, np.array([1.0, 0.0]), call=call)
    assert born == [(operator.sub, 3)]


def test_another_function_in_the_place_of_one_and_control_flow_follows():
    def f(x):
        return 1.0 if math.sin(x) > 0.5 else math.cos(x)

    def call(fn, args, kwargs, site):
        return args[0] if fn in (math.sin, math.cos) else fn(*args, **kwargs)

    assert f(0.6) == 1.0
    assert interpret(f, 0.6, call=call) == 1.0
    assert interpret(f, 0.4, call=call) == 0.4
    assert interpret(f, 2.9, call=call) == 1.0 != f(2.9)


class Interval(float):
    """A number and the bounds between which the exact one lies."""

    def __new__(cls, low, high, value):
        new = super().__new__(cls, value)
        new.low, new.high = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
        return new


def bounds(x):
    return (x.low, x.high) if isinstance(x, Interval) else (x, x)


def in_intervals(fn, args, kwargs, site):
    value = fn(*args, **kwargs)
    (a, b), (c, d) = bounds(args[0]), bounds(args[-1])
    if fn is operator.add:
        return Interval(a + c, b + d, value)
    if fn is operator.sub:
        return Interval(a - d, b - c, value)
    if fn is operator.mul:
        corners = a * c, a * d, b * c, b * d
        return Interval(min(corners), max(corners), value)
    return value


def test_intervals_travel_in_numbers_of_ones_own():
    """The exact result, by fractions, lies within bounds that are wide where digits cancel."""
    from fractions import Fraction

    def f(x):
        return (x * x - 2.0) * 3.0 + x

    x = 1.4142135623730951
    found = interpret(f, x, call=in_intervals)
    assert found == f(x)
    exact = f(Fraction(x))
    assert found.low <= exact <= found.high
    assert 0 < found.high - found.low < 1e-14


class Dependent(float):
    """A number, and the numbers of the arguments on which it depends."""

    def __new__(cls, value, on):
        new = super().__new__(cls, value)
        new.on = on
        return new


def test_the_sparsity_of_a_jacobian():
    def f(x):
        a = x[0] * x[1]
        b = math.sin(x[2]) + 1.0
        return [a + b, b * 2.0, x[3] - x[3] * a, 3.0 * x[1]]

    x = np.array([0.3, 0.7, 1.1, -0.4])

    def call(fn, args, kwargs, site):
        value = fn(*args, **kwargs)
        if fn is operator.getitem and args[0] is x:
            return Dependent(value, {args[1]})
        return Dependent(value, set().union(*[getattr(y, "on", ()) for y in args]))

    found = interpret(f, x, call=call)
    assert [y.on for y in found] == [{0, 1, 2}, {2}, {0, 1, 3}, {1}]
    jacobian = wengert.jacobian(lambda x: np.array(f(x)))(x)
    assert [{*np.flatnonzero(row)} for row in jacobian] == [y.on for y in found]


def test_calls_on_constants_and_draws_are_seen():
    def f(x):
        return x + np.ones(2) + np.random.default_rng(0).normal()

    names = []

    def call(fn, args, kwargs, site):
        names.append(fn.__name__)
        return 0.0 if fn.__name__ == "normal" else fn(*args, **kwargs)

    assert interpret(f, np.zeros(2), call=call).tolist() == [1.0, 1.0]
    assert names == ["ones", "add", "default_rng", "normal", "add"]


def test_what_the_pass_does_is_not_a_part_of_the_run():
    def call(fn, args, kwargs, site):
        return grad(lambda x: x * x)(args[0]) if fn is math.sin else fn(*args, **kwargs)

    assert interpret(lambda x: math.sin(x) + 1.0, 3.0, call=call) == 7.0


def test_errors_of_the_function_and_the_pass_are_theirs():
    with pytest.raises(ZeroDivisionError):
        interpret(lambda x: 1.0 / x, 0.0, call=run_as_it_is)

    def call(fn, args, kwargs, site):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        interpret(lambda x: 1.0 / x, 1.0, call=call)
    assert interpret(lambda x: 1.0 / x, 0.0, call=lambda *given: 5.0) == 5.0


def test_refusals():
    with pytest.raises(TraceError, match="not an int"):
        interpret(network, W, X, call=3)
    with pytest.raises(TraceError, match="inside a function that is being traced"):
        grad(lambda x: interpret(lambda y: y * y, x, call=run_as_it_is))(1.0)


def test_no_other_run_is_touched():
    interpret(network, W, X, call=run_as_it_is)
    assert wengert.trace(lambda x: x * x, 3.0).perform is None
    assert grad(lambda x: x * x)(3.0) == 6.0

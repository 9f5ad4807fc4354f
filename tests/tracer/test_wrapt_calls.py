"""Functions under decorators of the package wrapt, whose wrappers are in C."""

import numpy as np
import pytest

from wengert import jit, value_and_grad

wrapt = pytest.importorskip("wrapt")
is_on = True


@wrapt.decorator
def doubled(wrapped, instance, args, kwargs):
    return 2 * wrapped(*args, **kwargs)


@wrapt.decorator(enabled=lambda: is_on)
def tripled(wrapped, instance, args, kwargs):
    return 3 * wrapped(*args, **kwargs)


@wrapt.decorator
def counted(wrapped, instance, args, kwargs):
    instance.calls += 1
    return wrapped(*args, **kwargs)


class Fivefold(wrapt.FunctionWrapper):
    def __call__(self, *args, **kwargs):
        return 5 * super().__call__(*args, **kwargs)


class Model:
    def __init__(self, scale):
        self.scale, self.calls = scale, 0

    @counted
    def loss(self, x, power=2):
        return self.calls * self.scale * x**power

    @doubled
    @classmethod
    def of_class(cls, x):
        return x**2

    @doubled
    @staticmethod
    def of_none(x):
        return x**2


@doubled
def plain(x, power=2):
    return x**power


@tripled
def at_times(x):
    return x**2


@doubled
@doubled
def twice(x):
    return x**2


@doubled
def deep(n, x):
    return x * deep(n - 1, x) if n else x


fivefold = Fivefold(lambda x: x**2, lambda wrapped, instance, args, kwargs: wrapped(*args))
proxy = wrapt.CallableObjectProxy(lambda x: x**3)


def switched(x):
    global is_on
    is_on = False
    first = at_times(x)
    is_on = True
    return first + at_times(x)


def methods(x):
    model = Model(x)
    return model.loss(x) + model.loss(x, power=3) + Model.loss(model, x)


CASES = {
    "function": lambda x: plain(x, power=3),
    "method": methods,
    "class method": lambda x: Model.of_class(x) + Model(2.0).of_class(x),
    "static method": lambda x: Model.of_none(x),
    "map": lambda x: sum(map(plain, [x, x * x])),
    "twice": twice,
    "recursive": lambda x: deep(3, x),
    "switched": switched,
    "derived": lambda x: fivefold(x),
    "by its name": lambda x: plain.__call__(x),
    "proxy": lambda x: proxy(x),
    "inside": lambda x: doubled(lambda y: x * y)(x),
    "array": lambda x: plain(x * np.arange(3.0)).sum(),
}


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_a_call_goes_through_the_wrapper(name, on):
    def f(x):
        return CASES[name](x)

    with jit(on):
        for x in (1.5, 2.0, 0.5, 1.5, 1.5):
            value, slope = value_and_grad(f)(x)
            assert value == f(x)
            assert slope == pytest.approx((f(x + 1e-6) - f(x - 1e-6)) / 2e-6, rel=1e-6)


def test_what_a_wrapper_stands_around_may_change():
    one = wrapt.FunctionWrapper(lambda x: x**2, lambda wrapped, *rest: 2 * wrapped(*rest[1]))

    def f(x):
        return one(x)

    for _ in range(4):
        assert value_and_grad(f)(3.0) == (18.0, 12.0)
    one.__wrapped__ = lambda x: x**3
    for _ in range(4):
        assert value_and_grad(f)(3.0) == (54.0, 54.0)

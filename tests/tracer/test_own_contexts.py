"""What a traced program gets hold of is not what Wengert itself works with: the classes of `contextlib`."""

import contextlib

import numpy as np
import pytest

from wengert import WengertError, grad, jit, value_and_grad


@contextlib.contextmanager
def doubled(x):
    yield 2.0 * x


def by_generator(x):
    with doubled(x) as y:
        return y


def by_stack(x):
    with the(contextlib.ExitStack()) as stack:
        stack.enter_context(contextlib.suppress(KeyError))
        return 2.0 * x


def by_suppression(x):
    with the(contextlib.suppress(KeyError)):
        return 2.0 * x


def by_error_state(x):
    with the(np.errstate(all="ignore")):
        return 2.0 * x


def the(x):
    return x


@pytest.mark.parametrize("use", [by_generator, by_stack, by_suppression, by_error_state])
@pytest.mark.parametrize("on", [True, False])
def test_in_functions_that_c_code_calls(use, on):
    def f(a):
        values = [a]
        values.extend(map(use, [1.5]))  # nobody knows when the list will ask
        return a * values[1]

    with jit(on):
        assert [value_and_grad(f)(0.5) for _ in range(5)] == [(1.5, 3.0)] * 5


def test_a_refusal_is_remembered_past_an_error_of_an_inner_gradient():
    def unknown(x):
        return memoryview(np.array([x]))[0] * 2.0

    def inner(x):
        raise KeyError

    def f(x):
        try:
            return unknown(x)
        except Exception:
            pass
        try:
            grad(inner)(x)
        except KeyError:
            return -1.0

    for _ in range(4):
        with pytest.raises(WengertError, match="memoryview"):
            grad(f)(1.5)

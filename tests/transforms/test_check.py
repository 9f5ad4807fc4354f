"""`check_grads`: right derivatives pass, and of wrong ones the right element is named."""

import copy
import dataclasses
import math
import re
from collections import deque, namedtuple

import numpy as np
import pytest

from helpers import assert_same
from wengert import (
    GradientError,
    TraceError,
    WengertError,
    check_grads,
    custom_rule,
    stop_gradient,
)

RNG = np.random.default_rng(3)
Pair = namedtuple("Pair", "first second")


@dataclasses.dataclass
class Model:
    weights: object
    name: str = "model"


class Thing:
    def __init__(self, scale):
        self.scale = scale
        self.own = self  # which is no endless structure


# What is wrong in these is a factor of 2 on the cotangent of one element, chosen by the test.
WRONG: dict = {"index": None}


@custom_rule
def leaky(x):
    """x * x, but twice the cotangent at one place."""

    def pullback(dy):
        dx = 2 * x * dy
        factor = np.ones(np.shape(x))
        if WRONG["index"] is not None:
            factor[WRONG["index"]] = 2.0
        return (dx * factor if isinstance(x, np.ndarray) else dx * float(factor),)

    return x * x, pullback


@pytest.fixture(autouse=True)
def nothing_wrong():
    WRONG["index"] = None


def failure(f, args, **options):
    with pytest.raises(GradientError) as error:
        check_grads(f, args, modes=["reverse"], **options)
    assert isinstance(error.value, AssertionError)
    assert isinstance(error.value, WengertError)
    return str(error.value)


NETWORK = {"w": RNG.normal(size=(3, 4)), "b": [RNG.normal(size=3), "text", None]}


def network(params, x):
    return np.tanh(params["w"] @ x + params["b"][0])


RIGHT = {
    "number": (math.sin, (0.7,)),
    "numbers": (lambda x, y: x**y, (1.5, 2.5)),
    "near a singularity": (math.log, (1e-5,)),
    "array": (np.sin, (np.array([0.0, 0.5, -2.0]),)),
    "matrix": (np.linalg.inv, (RNG.normal(size=(3, 3)) + 3 * np.eye(3),)),
    "empty": (lambda x, y: x.sum() + y, (np.zeros((0, 2)), 1.0)),
    "network": (network, (NETWORK, np.arange(4.0))),
    "structures": (
        lambda a, b, c: {"sum": a.weights[0] * b.scale, "rest": [c.first**3, 7]},
        (Model([2.0]), Thing(3.0), Pair(0.5, 4)),
    ),
    "deque": (lambda d: d[0] * d[1], (deque([1.0, 2.0]),)),
    "complex": (lambda z: z * z * np.conj(z), (1.0 - 2.0j,)),
    "complex array": (lambda z: np.abs(z) ** 2 + z, (np.array([1 + 2j, -3 + 0.5j]),)),
    "single": (lambda x: np.exp(x) * x, (np.array([0.5, 1.5], np.float32),)),
    "scalars of NumPy": (lambda x, y: x * y * y, (np.float64(2.0), np.float32(1.5))),
    "options": (lambda x, n, text: x**n, (1.3, 3, "text")),
    "writes": (lambda x: x.__setitem__(0, x[1] * x[0]) or x * 2, (np.array([2.0, 3.0]),)),
    "large values": (lambda x: 1e8 * x * x, (np.array([1e6, 3e5]),)),
    "small values": (lambda x: 1e-12 * x * x, (np.array([1e-3, 1.0]),)),
}


@pytest.mark.parametrize("case", RIGHT)
def test_what_is_right_passes(case):
    f, args = RIGHT[case]
    before = copy.deepcopy(args) if case != "structures" else args
    check_grads(f, args)
    if case != "structures":
        assert_same(args, before)


def test_third_order():
    check_grads(network, (NETWORK, np.arange(4.0)), order=3, modes=["reverse"])


@pytest.mark.parametrize("index", [(0,), (2,), (-1,)])
def test_the_wrong_element_of_an_array(index):
    WRONG["index"] = index
    x = np.array([1.0, -2.0, 3.0, 0.5])
    message = failure(leaky, (x,))
    assert "leaky (" in message
    assert "reverse mode, order 1: 1 of 4 elements disagree" in message
    found = re.search(r"\n  x\[(\d)\]: gradient (\S+), differences (\S+), relative (.*)$", message)
    assert int(found[1]) == index[0] % 4
    assert float(found[2]) == pytest.approx(2 * float(found[3]), rel=1e-8)
    assert found[4] == "error 0.5"


def test_the_path_to_a_wrong_element():
    WRONG["index"] = (2, 3)

    def f(scale, params):
        return scale * np.tanh(leaky(params["w"])).sum() + params["b"][0].sum()

    assert "\n  params['w'][2, 3]: gradient" in failure(f, (2.0, NETWORK))
    WRONG["index"] = ()
    assert "\n  x: gradient" in failure(lambda x: leaky(x), (2.0,))
    assert "\n  pair[1]: gradient" in failure(lambda pair: leaky(pair.second), (Pair(1.0, 2.0),))
    assert "\n  m.weights[0]: gradient" in failure(lambda m: leaky(m.weights[0]), (Model([2.0]),))
    assert "\n  t.scale: gradient" in failure(lambda t: leaky(t.scale), (Thing(2.0),))
    assert "\n  xs[1]: gradient" in failure(lambda *xs: xs[0] * leaky(xs[1]), (1.0, 2.0))


def test_many_wrong_elements_are_counted_and_the_worst_are_shown():
    @custom_rule
    def wrong(x):
        return 1.0 * x, lambda dy: (dy * np.arange(1.0, 9.0),)

    message = failure(wrong, (np.ones(8),))
    assert "7 of 8 elements disagree" in message
    shown = re.findall(r"x\[(\d)\]", message)
    assert shown == ["7", "6", "5", "4", "3"]
    assert message.endswith("…")


def test_an_element_among_many_is_found():
    WRONG["index"] = (777,)
    x = RNG.normal(size=1000) + 3
    check_grads(np.square, (x,), order=1, modes=["reverse"], elements=20)
    message = failure(lambda x: leaky(x).sum(), (x,), order=1, elements=20)
    assert "1 of 1000 elements" in message
    assert "x[777]: gradient" in message


def test_wrong_in_second_order_only():
    @custom_rule
    def square(x):
        return x * x, lambda dy: (2 * dy * stop_gradient(x),)

    check_grads(square, (3.0,), order=1, modes=["reverse"])
    message = failure(square, (3.0,))
    assert "reverse over reverse mode, order 2" in message
    assert "x: gradient 0.0, differences" in message


def test_a_complex_gradient_that_is_conjugated():
    @custom_rule
    def square(z):
        return z * z, lambda dz: (dz * 2 * np.conj(z),)

    assert "\n  z: gradient (" in failure(square, (1.0 + 2.0j,), order=1)


def test_where_a_function_is_not_smooth():
    assert "x: gradient 0.0" in failure(np.floor, (np.array(1.0),), order=1)

    def cusp(x):
        return math.sqrt(abs(x - 1.0)) if x != 1.0 else 0.0 * x

    message = failure(cusp, (1.0 + 1e-9,), order=1)
    assert "in doubt by" in message or "differences" in message


def test_what_cannot_be_checked():
    with pytest.raises(TraceError, match="has no argument with a derivative"):
        check_grads(lambda n: 2.0 * n, (2,), modes=["reverse"])
    with pytest.raises(TraceError, match=r"the value of <lambda> .* has no derivative"):
        check_grads(lambda x: "text", (2.0,), modes=["reverse"])
    with pytest.raises(TypeError, match="args must be the tuple of the arguments, not a float"):
        check_grads(math.sin, 2.0)
    with pytest.raises(ValueError, match="not 'backward'"):
        check_grads(math.sin, (2.0,), modes=["backward"])


def test_wrong_in_forward_mode():
    WRONG["index"] = (1,)
    with pytest.raises(GradientError) as error:
        check_grads(leaky, (np.array([1.0, 2.0]),), modes=["forward"])
    assert "forward mode, order 1: 1 of 2" in str(error.value)
    assert "\n  x[1]: gradient" in str(error.value)

"""Corners of Python and NumPy that a hunt has found: what plain Python gives, whoever looks on."""

import itertools
import operator
import pickle
import types
from typing import Protocol, runtime_checkable

import numpy as np
import pytest

from helpers import assert_same
from wengert import grad, jit, pullback


class Real(float):
    pass


class Whole(int):
    pass


class Complex(complex):
    pass


def by_class(x):
    class Place(Protocol):
        at: float

    place = runtime_checkable(Place)

    class Here:
        def __init__(self):
            self.at = x

    return x * (2.0 if isinstance(Here(), place) else 3.0) + isinstance(x, place)


def released_twice(x):
    view = memoryview(bytearray(b"abcd"))
    view.release()
    view.release()
    return x


@pytest.mark.filterwarnings("ignore:Pickle, copy, and deepcopy support")
def exhausted(x):
    """`itertools.product` keeps a tuple that C code has not filled, which must not be looked at item by item."""
    pairs = itertools.product(range(0), range(2))
    if hasattr(pairs, "__setstate__"):  # before 3.14
        pairs.__setstate__((0, 0))
    return x + len(list(pairs)) + len(repr(type(pairs)))


@pytest.mark.parametrize("f", [by_class, released_twice, exhausted], ids=lambda f: f.__name__)
@pytest.mark.parametrize("on", [True, False])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_as_in_plain_python(f, on):
    with jit(on):
        for x in (1.5, 2.5, 0.5, 1.0, 3.0):
            assert pullback(f, x)[0] == f(x)


@pytest.mark.skipif(not hasattr(itertools.product, "__setstate__"), reason="gone in 3.14")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_iterator_with_an_unfilled_tuple_is_pickled():
    def f(x):
        pairs = itertools.product(range(0), range(2), range(3))
        again = pickle.loads(pickle.dumps(pairs))
        for _ in range(2):
            next(again, None)
        return x + len(list(pickle.loads(pickle.dumps(again))))

    assert pullback(f, 1.5)[0] == 1.5


@pytest.mark.parametrize("number", [Real(0.75), Whole(3), Complex(1 + 2j)], ids=repr)
@pytest.mark.parametrize(
    "z",
    [np.float32(1.5), np.float64(1.5), np.float16(1.0), np.array(1.5, "f4"), np.ones(2, "f4")]
    + [np.complex64(1.0), np.arange(3, dtype="i4")],
    ids=repr,
)
def test_numbers_of_derived_classes_have_a_precision(number, z):
    for f in (
        lambda z: number * z,
        lambda z: z * number,
        lambda z: z - number,
        lambda z: number / (z + z.dtype.type(1)),
        lambda z: np.add(z, number),
    ):
        for on in (True, False):
            with jit(on):
                for _ in range(5):
                    assert_same(pullback(f, z)[0], f(z))


def test_a_method_of_an_array_has_the_type_of_one():
    total = np.arange(3.0).sum

    def f(x):
        found = [type(x.sum).__name__, type(total).__name__]
        found += [isinstance(total, types.BuiltinFunctionType), isinstance(x.sum, types.MethodType)]
        return x.sum() * total(), found

    x = np.array([0.5, 1.5])
    for _ in range(4):
        value, back = pullback(f, x)
        assert value == f(x)
        assert list(back((1.0, [None] * 4))[0]) == [3.0, 3.0]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: operator.concat(x, x),
        lambda x: operator.iconcat(x, x),
        lambda x: types.MappingProxyType(x),
    ],
)
def test_a_number_is_no_collection(call):
    def text(x):
        with pytest.raises(TypeError) as caught:
            call(x)
        return str(caught.value)

    texts = []

    def f(x):
        try:
            call(x)
        except TypeError as error:
            texts.append(str(error))
        return x * 2

    assert grad(f)(2.5) == 2.0
    assert texts == [text(2.5)]

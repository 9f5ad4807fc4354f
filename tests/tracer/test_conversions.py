"""Objects that C code makes numbers or arrays of, by ``__float__``, ``__complex__``, ``__array__`` and the like."""

import array
import cmath
import math
import struct
from collections import deque

import numpy as np
import pytest

from wengert import jit, value_and_grad
from wengert.tracer.errors import WengertError

log = []


class Holder:
    def __init__(self, value):
        self.value = value


class Float(Holder):
    def __float__(self):
        log.append("float")
        return self.value


class Integer(Float):
    def __int__(self):
        log.append("int")
        return int(self.value)


class Complex(Holder):
    def __complex__(self):
        log.append("complex")
        return self.value * (1 + 2j)


class Index(Holder):
    def __index__(self):
        log.append("index")
        return int(self.value)


class Array(Holder):
    def __array__(self, dtype=None, copy=None):
        log.append("array")
        return np.array([self.value, 2 * self.value])


class Single(Holder):
    def __array__(self, dtype=None, copy=None):
        log.append("single")
        return np.array(3 * self.value)


LEVEL = 21.5
COUNT = 3


def local(name, value):
    """An object of a class that each run makes anew."""

    class Local:
        def ask(self):
            log.append(name)
            return value

    setattr(Local, name, Local.ask)
    return Local()


def hashed(x):
    level = x * x

    class Cell:
        def __hash__(self):
            log.append("hash")
            return COUNT

        def __float__(self):
            return level

        def __index__(self):
            return int(self.__float__())  # its own, while C code asks for its index

    return x * len({Cell()}) + len(bytes(Cell())) * float(Cell())


def written(value, key=0, into=2, dtype=float):
    a = np.zeros(into, dtype)
    a[key] = value
    return a


def by(method, x):
    a = np.array([x, x * x])
    method(a)
    return a.sum() * x


def caught(x):
    a = np.zeros(2)
    try:
        a[0] = Float(x)
    except TypeError as error:
        log.append(str(error))
        return -1.0
    return a[0] * x


def printed(text):
    log.append(str(text))
    return 1.0


EVERY = slice(None)
FOLLOWED = {
    "an item": caught,
    "an item of its own": lambda x: by(lambda a: a.__setitem__(0, Float(x)), x),
    "a slice": lambda x: written(Float(x), EVERY).sum() * x,
    "a slice of a list": lambda x: written([Float(x), 1.0], EVERY).sum() * x,
    "an index": lambda x: by(lambda a: a.__setitem__([0, 1], [Float(x), 1.0]), x),
    "a mask": lambda x: by(lambda a: a.__setitem__(a > 0, Float(x)), x),
    "a row": lambda x: written([Float(x), Float(2 * x)], 0, (2, 2)).sum() * x,
    "an array of ints": lambda x: x * written(Integer(x), dtype=int)[0],
    "an array of complex numbers": lambda x: written(Complex(x), dtype=complex)[0].imag,
    "a float into complex numbers": lambda x: written(Float(x), dtype=complex)[0].real * x,
    "an array into a slice": lambda x: written(Array(x), EVERY).prod(),
    "a single one into a slice": lambda x: written(Single(x), slice(0, 1))[0] * x,
    "a single one into an item": lambda x: written(Single(x))[0] * x,
    "fill": lambda x: by(lambda a: a.fill(Float(x)), x),
    "put": lambda x: by(lambda a: np.put(a, [0], Float(x)), x),
    "place": lambda x: by(lambda a: np.place(a, [True, False], [Float(x)]), x),
    "fill_diagonal": lambda x: by(lambda a: np.fill_diagonal(a.reshape(1, 2), Float(x)), x),
    "copyto": lambda x: by(lambda a: np.copyto(a, Array(x)), x),
    "copyto of another type": lambda x: by(lambda a: np.copyto(a, Float(x)), x),
    "flat": lambda x: by(lambda a: a.flat.__setitem__(0, Float(x)), x),
    "fsum": lambda x: math.fsum([Float(x), x]) * x,
    "fsum of a tuple": lambda x: math.fsum((Float(x), x)),
    "fsum of a dict": lambda x: math.fsum({Float(x): 1}) + math.fsum({1: Float(x)}.values()),
    "fsum of others": lambda x: math.fsum(deque([Float(x)])) + math.fsum({Float(x)}),
    "dist": lambda x: math.dist([Float(x), 1.0], [3.0, x]),
    "float64": lambda x: np.float64(Float(x)) * x,
    "int64": lambda x: np.int64(Integer(x)) * x,
    "complex128": lambda x: np.complex128(Complex(x)).imag * x,
    "float64 of an array": lambda x: np.float64(Single(x)) * x,
    "complex": lambda x: complex(Float(x), Float(x)).imag * x,
    "cmath": lambda x: cmath.exp(Complex(x)).real + cmath.rect(Float(x), 0.5).real,
    "array": lambda x: np.array([Float(x)], float)[0] * x,
    "array of one": lambda x: np.array(Float(x), float) * x,
    "array by name": lambda x: np.array(object=[Float(2.0)], dtype=float)[0] * x,
    "array of both": lambda x: np.array([Float(x), x], dtype=float).prod(),
    "array of lists": lambda x: np.asarray([[Float(x)], [x]], np.float64).prod(),
    "array of complex numbers": lambda x: np.array([Float(x)], complex)[0].real * x,
    "array of arrays": lambda x: np.array([Array(x), Array(x)]).prod(),
    "ufunc of a list": lambda x: np.add([Array(x)], 1.0).sum() * x,
    "sum of a list": lambda x: np.sum([Array(x), Array(x)]) * x,
    "concatenate": lambda x: np.concatenate([Array(x), np.array([x])]).prod(),
    "stack": lambda x: np.stack([Array(x), np.array([x, 1.0])]).prod(),
    "stack of single ones": lambda x: np.stack([Single(x), Single(2 * x)]).prod(),
    "vstack": lambda x: np.vstack((Array(x), Array(x))).sum() * x,
    "hstack": lambda x: np.hstack([Array(x), [x]]).prod(),
    "text": lambda x: x * printed("%.3f" % Float(x)),
    "text of several": lambda x: x * printed("%.3f %d" % (Float(x), Integer(x))),
    "text of a dict": lambda x: x * printed("%(a)g" % {"a": Float(x)}),
    "bytes": lambda x: x * printed(b"%.3f" % Float(x)),
    "text of a local class": lambda x: x * printed("%.3f" % local("__float__", x)),
    "a constant of a local class": lambda x: x * len(struct.pack("d", local("__float__", LEVEL))),
    "array of a local class": lambda x: array.array("d", [local("__float__", LEVEL)])[0] * x,
    "full of a local class": lambda x: np.full(2, local("__float__", LEVEL), dtype=float).sum() * x,
    "hex of a local class": lambda x: x * len(hex(local("__index__", COUNT))),
    "bytes of a local class": lambda x: x * len(bytes(local("__index__", COUNT))),
    "struct of a local class": lambda x: x * len(struct.pack("i", local("__index__", COUNT))),
    "several methods of a local class": hashed,
    "an index of a list": lambda x: x * [1, 2, 3, 4][Index(3)] * sum(range(Index(x))),
}


def outcome(f):
    log.clear()
    try:
        result = f()
    except TypeError as error:
        result = type(error), str(error)
    return result, list(log)


@pytest.mark.parametrize("name", FOLLOWED)
def test_what_c_code_makes_of_objects(name):
    f, x, h = FOLLOWED[name], 1.3, 1e-6
    result, asked = outcome(lambda: f(x))
    if isinstance(result, tuple):
        for on in (False, True, True, True):
            with jit(on):
                assert outcome(lambda: value_and_grad(f)(x))[0] == result
        return
    slope = (f(x + h) - f(x - h)) / (2 * h)
    for on in (False, True, True, True, True):
        with jit(on):
            (value, gradient), now = outcome(lambda: value_and_grad(f)(x))
        assert value == result and now == asked
        assert gradient == pytest.approx(slope, rel=1e-5, abs=1e-8)


REFUSED = {
    "astype": lambda x: np.array([Float(x), 1.0], object).astype(float)[0],
    "array": lambda x: array.array("d", [Float(x)])[0],
    "struct": lambda x: struct.unpack("d", struct.pack("d", Float(x)))[0],
    "named": lambda x: np.array(object=[Float(x)], dtype=float)[0],
    "struct of a local class": lambda x: struct.unpack(
        "d", struct.pack("d", local("__float__", x))
    )[0],
    "text of a local class": lambda x: float("%.17f" % local("__float__", x)),
    "interp": lambda x: np.interp(Float(x), [0.0, 5.0], [0.0, 2.0]),
    "text": lambda x: float("%.17f" % Float(x)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_followed_is_refused_whatever_is_caught(name):
    def f(x):
        try:
            return REFUSED[name](x) * x
        except Exception:
            return -1.0

    for on in (False, True, True, True):
        with jit(on), pytest.raises(WengertError, match=r"test_conversions.py:\d+, in|called from"):
            value_and_grad(f)(1.3)


def written_through(a):
    b = a * 2.0
    c = b.__array__()  # the array itself
    c[0] = 7.0
    return b.sum() * (1.0 + (c is b))


def copied(a):
    b = a * 2.0
    c = b.__array__(np.dtype("float64"), copy=True)
    c[0] = 7.0
    return (b * c).sum()


def of_a_named_type(a):
    try:
        return (a * a).__array__(dtype=np.dtype("float64")).sum()
    except TypeError:  # before NumPy 2
        return a.sum()


def wrongly_called(a):
    try:
        a.__array__(1, 2, 3)
    except TypeError as error:
        return a.sum() * len(str(error))


def in_its_namespace(a):
    namespace = getattr(a * 2.0, "__array_namespace__", lambda: np)()
    return namespace.sum(namespace.exp(a))


@pytest.mark.parametrize(
    "f", [written_through, copied, of_a_named_type, wrongly_called, in_its_namespace]
)
@pytest.mark.parametrize("on", [False, True])
def test_an_array_is_asked_for_itself_and_for_its_namespace(f, on):
    with jit(on):
        for k in range(5):
            a = np.array([0.5, 1.5]) + k / 10
            value, gradient = value_and_grad(f)(a)
            assert value == f(a)
            steps = 1e-6 * np.eye(2)
            expected = [(f(a + step) - f(a - step)) / 2e-6 for step in steps]
            np.testing.assert_allclose(gradient, expected, rtol=1e-6)

"""Which arrays NumPy takes for ``out=``: what it refuses is refused, and the value is that of plain Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from wengert import jit, value_and_grad

A = np.arange(6.0).reshape(2, 3)
B = np.arange(3.0) + 1

TARGETS: dict[str, Callable[[], Any]] = {
    "single precision": lambda: np.zeros(2, np.float32),
    "every other": lambda: np.zeros(4)[::2],
    "backwards": lambda: np.zeros(2)[::-1],
    "columns": lambda: np.zeros((2, 5))[:, 3],
    "complex": lambda: np.zeros(2, complex),
    "integers": lambda: np.zeros(2, int),
    "another shape": lambda: np.zeros(3),
    "its own": lambda: np.zeros(2),
}
FUNCTIONS: dict[str, Callable[[float, Any], Any]] = {
    "dot": lambda x, o: np.dot(A, B * x, out=o),
    "matmul": lambda x, o: np.matmul(A, B * x, out=o),
    "einsum": lambda x, o: np.einsum("ij,j->i", A, B * x, out=o),
    "sum": lambda x, o: np.sum(A * x, axis=1, out=o),
    "mean": lambda x, o: np.mean(A * x, axis=1, out=o),
    "std": lambda x, o: np.std(A * x, axis=1, out=o),
    "max": lambda x, o: np.max(A * x, axis=1, out=o),
    "cumsum": lambda x, o: np.cumsum((A * x)[0, :2], out=o),
    "take": lambda x, o: np.take(B * x, [0, 1], out=o),
    "clip": lambda x, o: np.clip((B * x)[:2], 0.0, 1.0, out=o),
    "concatenate": lambda x, o: np.concatenate([B[:1] * x, B[1:2]], out=o),
    "median": lambda x, o: np.median(A * x, axis=1, out=o),
    "exp": lambda x, o: np.exp(B[:2] * x, out=o),
    "round": lambda x, o: np.round(B[:2] * x, 1, out=o),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
def test_what_numpy_takes(name: str, target: str) -> None:
    def f(x: float) -> Any:
        out = TARGETS[target]()
        result = FUNCTIONS[name](x, out)
        return np.real(result).sum() + np.abs(out).sum()

    def found(call: Callable[[float], Any]) -> Any:
        try:
            return call(1.5)
        except Exception as error:
            return type(error), str(error)

    both = value_and_grad(f)
    wanted = found(f)
    for on in (False, True, True, True, True):
        with jit(on):
            assert found(lambda x: both(x)[0]) == wanted


BY_POSITION: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
    "sum": (lambda a, o: np.sum(a, 0, None, o), 3),
    "sum, and more": (lambda a, o: np.sum(a, 0, None, o, False, 1.5), 3),
    "var": (lambda a, o: np.var(a, 0, None, o, 1), 3),
    "max": (lambda a, o: np.max(a, 0, o), 3),
    "cumsum": (lambda a, o: np.cumsum(a, 0, None, o), (2, 3)),
    "median": (lambda a, o: np.median(a, 0, o, False), 3),
    "quantile": (lambda a, o: np.quantile(a, 0.3, 0, o), 3),
    "clip": (lambda a, o: np.clip(a, 0.2, 3.5, o), (2, 3)),
    "take": (lambda a, o: np.take(a, [0, 2], 1, o, "clip"), (2, 2)),
    "dot": (lambda a, o: np.dot(a, np.ones((3, 2)), o), (2, 2)),
    "concatenate": (lambda a, o: np.concatenate((a, a * a), 0, o), (4, 3)),
    "trace": (lambda a, o: np.trace(a, 0, 0, 1, None, o), ()),
    "modf": (lambda a, o: np.modf(a, o[0], o[1]), (2, 2, 3)),
    "add.reduce": (lambda a, o: np.add.reduce(a, 0, None, o, False, 2.0), 3),
    "multiply.accumulate": (lambda a, o: np.multiply.accumulate(a, 0, None, o), (2, 3)),
    "hypot.reduce": (lambda a, o: np.hypot.reduce(a, 0, None, o), 3),
    "the method sum": (lambda a, o: a.sum(0, None, o, False), 3),
    "the method std": (lambda a, o: a.std(0, None, o, 1), 3),
    "the method min": (lambda a, o: a.min(0, o), 3),
    "the method clip": (lambda a, o: a.clip(0.2, 3.5, o), (2, 3)),
    "the method take": (lambda a, o: a.take([0, 2], 1, o, "wrap"), (2, 2)),
    "the method round": (lambda a, o: a.round(1, o), (2, 3)),
    "the method all": (lambda a, o: a.all(0, None, o), 3),
    "the method choose": (lambda a, o: np.array([0, 1, 1]).choose(a[0], a[1], out=o), 3),
}


@pytest.mark.parametrize("name", BY_POSITION)
def test_the_array_to_write_to_may_stand_at_a_position(name: str) -> None:
    function, shape = BY_POSITION[name]
    kept, plain = np.zeros(shape), np.zeros(shape)

    def f(x: Any) -> Any:
        out = np.zeros(shape)
        result = function(x, out)
        assert result is out or isinstance(result, tuple)
        function(x, kept)
        return np.sum(out * out)

    both = value_and_grad(f)
    for call in range(6):
        x = A + 0.3 + 0.01 * call
        value, slope = both(x)
        assert np.array_equal(kept, (function(x, plain), plain)[1])
        assert np.isclose(value, np.sum(plain * plain))
        wanted = np.zeros(x.shape)
        if not name.endswith(("round", "all")):
            for place in np.ndindex(x.shape):
                step = np.zeros(x.shape)
                step[place] = 1e-6
                wanted[place] = (f(x + step) - f(x - step)) / 2e-6
        assert np.allclose(slope, wanted, rtol=1e-6, atol=1e-6)


def test_an_array_that_is_no_out_is_a_choice() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.array([0, 1, 0]).choose(x, x * x) ** 2)

    both = value_and_grad(f)
    for call in range(6):
        x = np.arange(1.0, 4.0) + call
        value, slope = both(x)
        assert value == f(x)
        assert np.allclose(slope, [2 * x[0], 4 * x[1] ** 3, 2 * x[2]])


class Pair:
    """A sequence of two numbers, which says how often it is asked for the first."""

    asked = 0

    def __len__(self) -> int:
        return 2

    def __getitem__(self, i: int) -> float:
        self.asked += i == 0
        return [0.5, 1.5][i]


class OwnList(list):  # type: ignore[type-arg]
    """A list of a class of its own."""


class ItsArray:
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array([0.5, 1.5])


# What NumPy says where it is given an array to write to, of objects that become arrays as well.
REFUSED: dict[str, Callable[[Any], Any]] = {
    "by name": lambda w: np.multiply(w, Pair(), out=w),
    "at its position": lambda w: np.multiply(w, Pair(), w),
    "in a tuple": lambda w: np.multiply(Pair(), w, out=(w,)),
    "a list of one's own": lambda w: np.multiply(w, OwnList([1, 2]), out=w),
    "an array of its own": lambda w: np.multiply(w, ItsArray(), out=np.zeros(3)),
    "an object in a list": lambda w: np.multiply([Pair(), ItsArray()], w, out=w),
    "a mask": lambda w: np.multiply(w, Pair(), out=w, where=np.ones(3, bool)),
    "a mask that is a list": lambda w: np.add(w, Pair(), w, where=[True, True]),
    "clip": lambda w: np.clip(w, Pair(), 2, out=w),
    "a type": lambda w: np.multiply(w, Pair(), out=np.zeros(3), dtype=int),
    "too many": lambda w: np.multiply(w, 2.0, out=(w, w)),
    "too few": lambda w: np.modf(w, out=(w,)),
    "not a tuple": lambda w: np.modf(w, out=w),
    "twice": lambda w: np.multiply(w, 2.0, w, out=w),
    "too many by position": lambda w: np.multiply(w, 2.0, w, w),
}


@pytest.mark.parametrize("name", REFUSED)
def test_the_array_to_write_to_is_named_in_what_numpy_says(name: str) -> None:
    def f(x: float) -> Any:
        return REFUSED[name](np.array([x, 1.5, 2.0]))

    with pytest.raises((TypeError, ValueError)) as plain:
        f(1.5)
    with pytest.raises((TypeError, ValueError)) as ours:
        value_and_grad(f)(1.5)
    assert type(ours.value) is type(plain.value) and str(ours.value) == str(plain.value)


def test_an_object_is_asked_for_its_array_as_often_as_in_plain_python() -> None:
    def f(x: float, pair: Pair) -> Any:
        w = np.array([x, 2.0])
        np.multiply(w, pair, out=w, where=OwnList([True, True]))
        return w[0] * w[1]

    plain, ours = Pair(), Pair()
    assert f(2.0, plain) == 3.0
    assert value_and_grad(f)(2.0, ours) == (3.0, 1.5)
    assert ours.asked == plain.asked

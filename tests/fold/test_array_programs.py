"""Programs of hand-made regions with arrays: guards, NumPy's warnings, and what the user is given."""

import operator as o
import warnings
import weakref

import numpy as np
import pytest

from wengert.tracer.fold.region import Kind
from wengert.tracer.fold.run import Known
from wengert.transforms.fold.program import RegionBuilder, run_of
from wengert.transforms.trial import Trial

from .regions import array, whole

VECTOR, MATRIX = array(1), array(2)
F64 = np.float64
EXAMPLES = {float: 1.0, int: 1, F64: F64(1.0)}


def example(kind):
    return np.empty((0,) * kind.ndim, kind.dtype) if type(kind) is Kind else EXAMPLES[kind]


def built(f, folded, keys=None):
    """The program of a region, which gives the value and a tuple of gradients; None where it was left."""
    known = Known()
    known.folded = folded
    reads, ops = known.outside.reads, folded.region.parameters
    names = f.__code__.co_varnames[: f.__code__.co_argcount]
    reads.function = reads.root(f.__name__, f)
    reads.arguments = [reads.root(n, example(x.type)) for n, x in zip(names, ops, strict=True)]
    for place, x in zip(reads.arguments, ops, strict=True):
        place.check = "kind" if type(x.type) is Kind else "type"
    known.inputs = [*zip(reads.arguments, ops, strict=True)]
    known.trees = [*ops]
    done, inputs = run_of(known, f)
    keys = [*range(len(ops))] if keys is None else keys
    made = RegionBuilder(done, f.__name__, set()).region(
        known, inputs, keys, "({value}, ({gradients}))"
    )

    def run(*args):
        trial = Trial(f)
        answer = made.alone(trial, *args)
        return None if trial.error is not None else answer

    run.program = made
    return run


def scaled(x, a):
    return np.sum(a * np.exp(x))


def region():
    folded, at, (x, a) = whole(VECTOR, float)
    s = at.call(o.mul, a, at.call(np.exp, x, kind=VECTOR), kind=VECTOR)
    at.end("return", (F64,), at.call(np.sum, s, kind=F64))
    return folded


@pytest.mark.parametrize("n", [0, 1, 2, 30])
def test_every_size(n):
    x = np.linspace(-1.0, 1.0, n)
    value, (dx, da) = built(scaled, region())(x, 0.5)
    assert type(value) is F64 and value == scaled(x, 0.5)
    assert type(da) is float and da == pytest.approx(np.sum(np.exp(x)))
    assert dx.dtype == float and dx.shape == x.shape
    np.testing.assert_allclose(dx, 0.5 * np.exp(x))


@pytest.mark.parametrize(
    "x",
    [
        [1.0],
        1.0,
        np.ones((2, 2)),
        np.ones(2, np.float32),
        np.ones(2, int),
        np.ma.ones(2),
        np.ones(2, ">f8"),
        np.ones(2, object),
    ],
)
def test_guards(x):
    run = built(scaled, region())
    assert run(np.ones(2), 2.0) is not None
    assert run(x, 2.0) is None


def test_an_equal_dtype_is_no_other():
    x = np.ones(3, np.dtype(float, metadata={"of": "the user"}))
    assert built(scaled, region())(x, 2.0) is not None


def test_memory_may_lie_anyhow():
    x = np.arange(12.0).reshape(3, 4)[:, 1] / 8
    value, (dx, _) = built(scaled, region())(x, 0.5)
    assert value == scaled(x, 0.5) and dx.flags.c_contiguous


def test_an_overflow_leaves_the_program():
    """In the forward part; the traced call then warns at the user's line."""
    run = built(scaled, region())
    before = np.geterr()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(np.array([1e6]), 0.5) is None
        assert run(np.array([1.0]), 0.5) is not None
        with np.errstate(all="ignore"):  # as the user wants it
            assert run(np.array([1e6]), 0.5) is not None
    assert np.geterr() == before


@pytest.mark.parametrize("fn, few", [(np.mean, 0), (np.ndarray.std, 1), (np.var, 0)])
def test_too_few_elements_leave_the_program_without_a_warning(fn, few):
    """The traced call is the one that warns."""

    def f(x):
        return fn(x)

    folded, at, (x,) = whole(VECTOR)
    at.end("return", (F64,), at.call(fn, x, kind=F64))
    run = built(f, folded)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        assert run(np.ones(few)) is None
    assert not found
    assert run(np.arange(3.0))[0] == fn(np.arange(3.0))


def test_the_reverse_part_does_not_warn():
    def f(x):
        return np.sum(np.sqrt(x))

    folded, at, (x,) = whole(VECTOR)
    at.end("return", (F64,), at.call(np.sum, at.call(np.sqrt, x, kind=VECTOR), kind=F64))
    before = np.geterr()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value, (dx,) = built(f, folded)(np.array([1e-320, 1.0]))
    assert np.isfinite(dx[1]) and np.geterr() == before


def test_an_exception_leaves_the_program():
    def f(a, b):
        return np.sum(np.linalg.solve(a, b))

    folded, at, (a, b) = whole(MATRIX, VECTOR)
    s = at.call(np.linalg.solve, a, b, kind=VECTOR)
    at.end("return", (F64,), at.call(np.sum, s, kind=F64))
    run = built(f, folded)
    assert run(np.eye(2), np.ones(2))[0] == 2.0
    assert run(np.zeros((2, 2)), np.ones(2)) is None
    assert run(np.eye(2), np.ones(3)) is None


def test_gradients_are_nobody_elses():
    def f(x, y):
        return np.sum(x + y)

    folded, at, (x, y) = whole(VECTOR, VECTOR)
    at.end("return", (F64,), at.call(np.sum, at.call(o.add, x, y, kind=VECTOR), kind=F64))
    _, (dx, dy) = built(f, folded)(np.ones(3), np.ones(3))
    assert not np.shares_memory(dx, dy)
    dx += 1.0
    assert dy.tolist() == [1.0, 1.0, 1.0]


def test_an_argument_that_is_the_cotangent():
    def f(x, y):
        return np.dot(x, y)

    folded, at, (x, y) = whole(VECTOR, VECTOR)
    at.end("return", (F64,), at.call(np.dot, x, y, kind=F64))
    x, y = np.ones(3), np.full(3, 2.0)
    _, (dx, dy) = built(f, folded)(x, y)
    assert not np.shares_memory(dx, y) and not np.shares_memory(dy, x)


def test_zeros_where_nothing_flows():
    def f(x, y, a, b):
        return np.sum(x) * a

    folded, at, (x, y, a, b) = whole(VECTOR, MATRIX, float, F64)
    at.end("return", (F64,), at.call(o.mul, at.call(np.sum, x, kind=F64), a, kind=F64))
    _, (dx, dy, da, db) = built(f, folded)(np.ones(2), np.ones((2, 3)), 2.0, F64(1.0))
    assert dx.tolist() == [2.0, 2.0] and dy.tolist() == [[0.0] * 3] * 2
    assert (type(da), da, type(db), db) == (float, 2.0, F64, 0.0)


def test_no_argument_is_held():
    x = np.ones(3)
    run = built(scaled, region())
    run(x, 1.0)
    held = weakref.ref(x)
    del x
    assert held() is None


def test_a_program_of_numbers_does_not_watch():
    def f(x):
        return x * x

    folded, at, (x,) = whole(float)
    at.give(at.op(o.mul, x, x))
    source = built(f, folded).program.source
    assert "errors" not in source and "quiet" not in source and "float(" not in source

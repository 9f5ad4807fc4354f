"""A tape and a file hold for arguments that lie to one another, and in memory, as those of the traced run did."""

import pickle

import numpy as np
import pytest

from wengert import GuardError, TraceError, grad, pullback, reverse, save, trace

ROWS = np.arange(6.0).reshape(2, 3).copy()
COLUMNS = np.asfortranarray(ROWS)


def answers(f, make, tmp_path):
    """What stands for a call of a function with these arguments: its tape, its reverse tape, texts and a file."""
    tape = trace(f, *make())
    yield tape
    yield reverse(tape)
    yield of_text(tape.source("f"), "f")
    value, back = pullback(f, *make())
    one = np.ones_like(value)[()]
    yield lambda *args: back.tape(*args, one)
    text = of_text(back.source(), "back")
    yield lambda *args: text(*args, one)
    try:
        save(f, tmp_path / "f.py", *make())
    except TraceError as error:
        assert "writes to" in str(error)
    else:
        yield of_text((tmp_path / "f.py").read_text(), f.__name__)


def of_text(text, name):
    names = {}
    exec(text, names)
    return names[name]


def by_flags(x):
    return x.sum() * (2.0 if x.flags.c_contiguous else 3.0)


def by_strides(x):
    return x.sum() * x.strides[0]


def by_fortran(x):
    return x.sum() * (2.0 if np.isfortran(x) else 3.0)


def by_asking(x):
    y = np.asfortranarray(x)
    return (y * y).sum() if y is not x else y.sum()


def by_view(x):
    """A write that goes into ``y`` where the other is a view."""
    y = x.copy(order="K")
    y.reshape(-1)[0] = 7.0
    return (y * x).sum() + y[0, 0]


@pytest.mark.parametrize("f", [by_flags, by_strides, by_fortran, by_asking, by_view])
@pytest.mark.parametrize(("was", "other"), [(ROWS, COLUMNS), (COLUMNS, ROWS)])
def test_how_an_array_lies_in_memory_is_known_where_it_was_looked_at(f, was, other, tmp_path):
    for answer in answers(f, lambda: (was,), tmp_path):
        found = answer(was.copy(order="K"))
        assert (found[0] if type(found) is tuple and np.ndim(found[0]) == 0 else f(was)) == f(was)
        with pytest.raises((GuardError, ValueError), match=r"lies in memory in another way.*\bx\b"):
            answer(other)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: (x.ravel("K") * np.arange(6)).sum(),
        lambda x: (np.copy(x, order="K").ravel("K") * np.arange(6)).sum(),
        lambda x: (x.reshape(6, order="A") * np.arange(6)).sum(),
        lambda x: (x.T.ravel("K") * np.arange(6)).sum(),
        lambda x: (x * x).sum(),
    ],
)
def test_what_goes_by_the_order_of_an_array_goes_by_that_which_is_given(f):
    tape, (_, back) = trace(f, ROWS), pullback(f, ROWS)
    assert tape(COLUMNS) == of_text(tape.source("f"), "f")(COLUMNS) == f(COLUMNS)
    np.testing.assert_array_equal(reverse(tape)(COLUMNS)[1][0], grad(f)(COLUMNS))
    np.testing.assert_array_equal(of_text(back.source(), "back")(COLUMNS, 1.0)[0], grad(f)(COLUMNS))


class Point:
    def __init__(self, x):
        self.x = x


def writes(a, b):
    a[0] = 5.0
    return (a * b).sum()


def adds(a, b):
    a[1:] += b[1:]
    return (a * b).sum()


def asks(a, b):
    return a.sum() * (2.0 if a is b else 3.0)


def asks_for_memory(a, b):
    return a.sum() * (2.0 if np.may_share_memory(a, b) else 3.0)


def writes_inside(a, b):
    a["x"][0] = 7.0
    return (a["x"] * b["x"]).sum()


def appends(a, b):
    a.append(3.0)
    return sum(a) * sum(b)


def asks_for_lists(a, b):
    return sum(a) * (2.0 if a is b else 3.0)


def puts(a, b):
    a["x"] = a["x"] * 3
    return a["x"] * b["x"]


def sets(a, b):
    a.x = a.x * 2
    return a.x * b.x


def reads(a, b):
    return a.x * b.x * b.x


def compares(a, b):
    return a.x * (b.x if a == b else 2 * b.x)


def array():
    return np.array([1.0, 2.0, 3.0])


def twice(x):
    return x, x


@pytest.mark.parametrize(("f", "apart", "one"), [
    (writes, lambda: (array(), array()), lambda: twice(array())),
    (adds, lambda: (array(), array()), lambda: (lambda x: (x[:3], x[1:]))(np.arange(4.0))),
    (asks, lambda: (array(), array()), lambda: twice(array())),
    (asks_for_memory, lambda: (array(), array()), lambda: twice(array())),
    (writes_inside, lambda: ({"x": array()}, {"x": array()}), lambda: (lambda x: ({"x": x}, {"x": x}))(array())),
    (appends, lambda: ([1.0, 2.0], [3.0, 4.0]), lambda: twice([1.0, 2.0])),
    (asks_for_lists, lambda: ([1.0, 2.0], [3.0, 4.0]), lambda: twice([1.0, 2.0])),
    (puts, lambda: ({"x": 2.0}, {"x": 3.0}), lambda: twice({"x": 2.0})),
    (sets, lambda: (Point(2.0), Point(3.0)), lambda: twice(Point(2.0))),
    (compares, lambda: (Point(2.0), Point(3.0)), lambda: twice(Point(2.0))),
])  # fmt: skip
def test_which_arguments_are_one_is_known_where_it_matters(f, apart, one, tmp_path):
    for was, other in ((apart, one), (one, apart)):
        value = f(*was())
        for answer in answers(f, was, tmp_path):
            found = answer(*was())
            whole = type(found) is tuple and len(found) == 2 and type(found[1]) is tuple
            assert not whole or found[0] == value
            with pytest.raises(
                (GuardError, ValueError), match=r"in another way|other objects are one"
            ):
                answer(*other())


def test_an_object_that_was_given_twice_has_one_derivative(tmp_path):
    for answer in answers(reads, lambda: twice(Point(2.0)), tmp_path):
        answer(*twice(Point(3.0)))
        with pytest.raises((GuardError, ValueError), match="other objects are one"):
            answer(Point(2.0), Point(3.0))


def test_where_nothing_goes_by_it_arguments_may_be_one_or_not():
    for was, other in (
        ((array(), array()), twice(array())),
        (twice(array()), (array(), 2 * array())),
    ):
        tape = trace(lambda a, b: (a * b).sum(), *was)
        assert tape(*other) == (other[0] * other[1]).sum()
    rows = trace(lambda m: sum(sum(row) for row in m), [[1.0, 2.0]] * 2)
    assert rows([[1.0, 2.0], [3.0, 4.0]]) == 10.0


def test_a_pickled_pullback_does_not_say_what_it_does_not_know():
    back = pickle.loads(pickle.dumps(pullback(by_flags, ROWS)[1]))
    np.testing.assert_array_equal(back(1.0)[0], 2.0)
    for ask in (back.source, lambda: back.tape(ROWS, 1.0)):
        with pytest.raises(TraceError, match="it was pickled"):
            ask()


TABLE = np.array([1.0, 2.0])


@pytest.mark.parametrize(
    "f",
    [
        lambda x: (TABLE * x).sum(),
        lambda x: ((x + TABLE) ** 2).sum(),
        lambda x: x.sum() * TABLE[0] + np.dot(x, TABLE),
        lambda x: np.where(TABLE > 1.5, x, x * x).sum(),
    ],
)
def test_a_tape_stays_what_it_is_when_arrays_are_written_to_afterwards(f):
    x, given = np.array([3.0, 4.0]), np.array([3.0, 4.0])
    tape = trace(f, x)
    value, slope, back = tape(given), tape.cotangents(), grad(f)(given)
    before = TABLE.copy()
    try:
        TABLE[:], x[:] = 7.0, 9.0
        assert tape(given) == value == of_text(tape.source("f"), "f")(given)
        np.testing.assert_array_equal(reverse(tape)(given)[1][0], back)
        for one, other in zip(slope.values(), tape.cotangents().values(), strict=True):
            np.testing.assert_array_equal(one, other)
    finally:
        TABLE[:] = before


def test_a_constant_of_an_edited_tape_is_what_it_was():
    tape, k = trace(lambda x: (x * x).sum(), np.ones(2)), np.array([2.0, 2.0])
    edited = tape.replace(tape[1], np.multiply, tape[0], k)
    other = tape.substitute(tape[1], k)
    k[:] = 9.0
    assert edited(np.ones(2)) == other(np.ones(2)) == 4.0


def test_an_edit_under_which_an_array_gets_another_shape_is_an_error():
    def mean(x):
        above = (x * 1.0)[x > 0]
        return above.sum() / len(above)

    tape = trace(mean, np.array([1.0, 2.0, -3.0]))
    with pytest.raises(GuardError, match=r"had the shape \(2,\) in the traced run"):
        tape.substitute(next(op for op in tape if op.value.dtype == bool), np.ones(3, bool))


@pytest.mark.parametrize(
    "make", [lambda: {(1.0, 2.0)}, lambda: frozenset([1.0]), lambda: {Point(1.0)}]
)
def test_what_stands_in_a_set_can_be_traced(make):
    """No path leads there, so that the tape says what it needs."""
    f = lambda s: 2.0 * sum(getattr(x, "x", x) if not isinstance(x, tuple) else x[0] for x in s)  # noqa: E731
    tape = trace(f, make())
    assert tape.result.value == pullback(f, make())[0] == 2.0
    with pytest.raises(TraceError, match="is missing"):
        tape(make())

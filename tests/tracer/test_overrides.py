"""Classes that take charge of NumPy's functions: ``__array_ufunc__`` and ``__array_function__``, as NumPy asks them."""

import re

import numpy as np
import pytest

from wengert import TraceError, grad, jit, value_and_grad

log = []
CONSTANTS = {
    "__call__": 1.0,
    "reduce": 2.0,
    "outer": 3.0,
    "accumulate": 4.0,
    "reduceat": 5.0,
    "at": 6.0,
}


class Ufunc:
    """Gives a number for each way to call a ufunc."""

    def __array_ufunc__(self, ufunc, method, *args, **kwargs):
        log.append((ufunc.__name__, method, len(args), sorted(kwargs)))
        return CONSTANTS[method]


class Both(Ufunc):
    def __array_function__(self, fn, types, args, kwargs):
        log.append(fn.__name__)
        return 100.0


class Holder:
    """Holds an array or a number, on which the ufunc is called in its place."""

    def __init__(self, value):
        self.value = value

    def __array_ufunc__(self, ufunc, method, *args, **kwargs):
        log.append((ufunc.__name__, method, len(args), sorted(kwargs)))
        kwargs = {k: tuple(map(held, x)) if k == "out" else held(x) for k, x in kwargs.items()}
        return getattr(ufunc, method)(*map(held, args), **kwargs)


def held(x):
    return x.value if isinstance(x, Holder) else x


class Derived(Holder):
    """Is asked before its base."""

    def __array_ufunc__(self, ufunc, method, *args, **kwargs):
        log.append(("derived", ufunc.__name__, method))
        return 7.0


class Declines:
    def __array_ufunc__(self, ufunc, method, *args, **kwargs):
        log.append("declines")
        return NotImplemented


class Refuses:
    __array_ufunc__ = None

    def __add__(self, other):
        return other * 3

    def __radd__(self, other):
        return other * 2


def a(x):
    return np.array([x, 2.0, x * x])


MASK = np.array([True, False, True])
CALLS = {
    "call": lambda x: x * np.sin(Both()) + x * np.add(x, Ufunc()),
    "reduce": lambda x: x * np.add.reduce(Both()) + x * np.multiply.reduce(Ufunc(), 0, None),
    "reduce by name": lambda x: x * np.add.reduce(array=Ufunc(), keepdims=False),
    "reduce out": lambda x: x * np.add.reduce(a(x), 0, None, Ufunc()),
    "reduce out none": lambda x: x * np.add.reduce(Ufunc(), out=None),
    "reduce where": lambda x: x * np.add.reduce(a(x), where=Ufunc()),
    "outer": lambda x: x * np.multiply.outer(2.0, Both()) + x * np.add.outer(x, Ufunc()),
    "outer on the left": lambda x: x * np.add.outer(Ufunc(), x) + x * np.add.outer(Both(), a(x)),
    "accumulate": lambda x: x * np.add.accumulate(Both()) + x * np.multiply.accumulate(Ufunc(), 0),
    "reduceat": lambda x: x * np.add.reduceat(Both(), [0]) + x * np.add.reduceat(a(x), Ufunc()),
    "at": lambda x: x * np.add.at(Both(), [0], x) + x * np.add.at(a(x), [0], Ufunc()),
    "at of constants": lambda x: x * np.add.at(np.zeros(2), [0], Ufunc()),
    "all": lambda x: (
        x * np.add.reduce(Ufunc())
        + x * np.add.outer(x, Ufunc())
        + x * np.add.accumulate(Ufunc())
        + x * np.sin(Ufunc())
    ),
    "a function": lambda x: x * np.sum(Ufunc()) + x * np.max(Both()),
    "a function of a list": lambda x: x * np.concatenate([Both(), a(x)]),
    "no override in a list": lambda x: np.concatenate([Ufunc(), a(x)])[0],
    "holder": lambda x: np.sin(Holder(x)) * np.add(x, Holder(x * x)),
    "holder, operator": lambda x: (a(x) * Holder(a(x))).sum(),
    "holder, reduce": lambda x: np.multiply.reduce(Holder(a(x)), axis=0),
    "holder, outer": lambda x: np.multiply.outer(Holder(a(x)), a(x)).sum(),
    "holder, outer of a number": lambda x: np.multiply.outer(x, Holder(a(x))).sum(),
    "holder, accumulate": lambda x: np.add.accumulate(Holder(a(x))).sum(),
    "holder, reduceat": lambda x: np.multiply.reduceat(Holder(a(x)), [0, 1])[1],
    "holder, out": lambda x: np.add(a(x), a(x), out=Holder(np.zeros(3))).sum(),
    "holder, out by position": lambda x: np.add(a(x), a(x), Holder(np.zeros(3))).sum(),
    "holder, with out": lambda x: np.multiply(a(x), Holder(a(x)), out=np.zeros(3)).sum(),
    "holder, where": lambda x: np.add(a(x), a(x), where=Holder(MASK), out=np.zeros(3)).sum(),
    "holder, with where": lambda x: np.add(a(x), Holder(a(x)), where=MASK, out=np.zeros(3)).sum(),
    "holder, reduce where": lambda x: np.add.reduce(a(x), where=Holder(MASK)),
    "declines": lambda x: np.add(x, Declines()),
    "declines to reduce": lambda x: np.add.reduce(Declines()),
    "declines an operator": lambda x: np.float64(x) + Declines(),
    "declines for another": lambda x: np.multiply.outer(Declines(), Holder(a(x))).sum(),
    "refuses": lambda x: np.add(x, Refuses()),
    "refuses to reduce": lambda x: np.add.reduce(Refuses()),
    "refuses outer": lambda x: np.add.outer(x, Refuses()),
    "refuses at": lambda x: np.add.at(a(x), [0], Refuses()),
    "reflected": lambda x: (a(x) + Refuses()).sum() + np.float64(x) + Refuses(),
    "forward": lambda x: (Refuses() + a(x)).sum(),
    "derived": lambda x: x * np.add(Holder(x), Derived(x)),
    "derived, outer": lambda x: x * np.add.outer(Derived(x), Holder(x)),
    "derived, outer, reflected": lambda x: x * np.add.outer(Holder(x), Derived(x)),
}


def outcome(f):
    """What a function gives or raises, and what was asked meanwhile."""
    log.clear()
    try:
        result = f()
    except (TypeError, ValueError) as error:
        result = type(error), re.sub("0x[0-9a-f]+", "", str(error))
    return result, list(log)


@pytest.mark.parametrize("name", CALLS)
def test_overrides_are_asked_as_by_numpy(name):
    f, x, h = CALLS[name], 1.3, 1e-6
    result, asked = outcome(lambda: f(x))
    if isinstance(result, tuple):
        for on in (False, True, True, True, True):
            with jit(on):
                assert outcome(lambda: value_and_grad(f)(x)) == (result, asked)
        return
    slope = (f(x + h) - f(x - h)) / (2 * h)
    for on in (False, True, True, True, True):
        with jit(on):
            (value, gradient), now = outcome(lambda: value_and_grad(f)(x))
        assert value == result and now == asked
        assert gradient == pytest.approx(slope, rel=1e-5)


class Columns:
    """Has its names by iteration, and its numbers as an array: as a data frame."""

    def __init__(self, x):
        self.x = x

    def __array__(self, dtype=None, copy=None):
        return np.array([self.x, self.x * self.x])

    def __len__(self):
        return 2

    def __getitem__(self, i):
        return [7.0, 8.0][i]


class Wrapped:
    """A proxy: an object of it has what the other has."""

    def __init__(self, inner):
        self._inner = inner

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def __len__(self):
        return len(self._inner)

    def __getitem__(self, i):
        return self._inner[i]


class OnItsOwn:
    def __init__(self, x=None):
        if x is not None:
            self.__array__ = lambda dtype=None, copy=None: np.array([x, 2.0 * x])

    def __len__(self):
        return 2

    def __getitem__(self, i):
        return [3.0, 4.0][i]


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("make", [lambda x: Wrapped(Columns(x)), OnItsOwn])
def test_an_object_is_asked_for_its_array_and_not_its_class_alone(make, on):
    def f(x):
        rows = np.asarray(make(x)) * x + np.sin(make(x)) + (np.ones(2) + make(x))
        return rows[1] + np.sum(make(x)) + np.array([make(x), make(x)])[1, 0]

    with jit(on):
        for x in (0.5, 0.7, 0.9, 1.1):
            h = 1e-5
            value, slope = value_and_grad(f)(x)
            assert value == f(x)
            assert slope == pytest.approx((f(x + h) - f(x - h)) / (2 * h), rel=1e-8)


def test_an_object_may_get_its_array_later():
    held = OnItsOwn()

    def f(x):
        return np.asarray(held).sum() * x

    for i in range(12):
        if i == 6:
            held.__array__ = OnItsOwn(5.0).__array__
        assert value_and_grad(f)(2.0) == (f(2.0), f(1.0))


class Vector:
    """Has methods of the names of NumPy's functions, which ask for them before they make an array of it."""

    def __init__(self, a):
        self.a = a

    def __array__(self, dtype=None, copy=None):
        log.append("array")
        return self.a

    def given(self, *args, **kwargs):
        log.append((args, kwargs))
        return 3.0 * self.a * self.a

    sum = max = min = prod = mean = std = var = clip = argmax = transpose = take = round = given
    repeat = squeeze = reshape = cumsum = swapaxes = compress = argsort = any = all = given
    real = property(given)
    ndim = 1


class Row(list):
    def sum(self, axis=None, out=None):
        return 10.0 * self[0]

    clip = sum


class Deaf(Vector):
    """Has methods that are not as NumPy calls them."""

    def refuses(self):
        pass

    sum = mean = clip = take = cumsum = refuses


class Late:
    """Has no such method, and is asked for it all the same."""

    def __init__(self, a):
        self.a = a

    def __array__(self, dtype=None, copy=None):
        return self.a

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        log.append(name)
        raise AttributeError(name)


ASKING = {
    "sum": lambda o: np.sum(o, axis=0),
    "keepdims": lambda o: np.sum(o, keepdims=True),
    "max": np.max,
    "amin": np.amin,
    "prod": lambda o: np.prod(o, dtype=float),
    "mean": np.mean,
    "std": lambda o: np.std(o, ddof=1),
    "var": np.var,
    "clip": lambda o: np.clip(o, 0.0, 1.0),
    "argmax": lambda o: np.argmax(o) * 1.0,
    "argsort": lambda o: np.argsort(o) * 1.0,
    "transpose": np.transpose,
    "take": lambda o: np.take(o, [0]),
    "round": np.round,
    "repeat": lambda o: np.repeat(o, 2),
    "squeeze": np.squeeze,
    "reshape": lambda o: np.reshape(o, (2, 1)),
    "cumsum": np.cumsum,
    "swapaxes": lambda o: np.swapaxes(o, 0, 0),
    "moveaxis": lambda o: np.moveaxis(o, 0, 0),
    "compress": lambda o: np.compress([True, False], o),
    "any": lambda o: np.any(o) * 1.0,
    "real": np.real,
}


@pytest.mark.parametrize("kind", [Vector, Row, Deaf, Late])
@pytest.mark.parametrize("name", ASKING)
def test_objects_are_asked_for_their_own_methods(name, kind):
    def f(x):
        square = x * x
        return np.sum(ASKING[name](kind([*square] if kind is Row else square)))

    def outcome(ask):
        log.clear()
        try:
            return ask(np.array([1.3, 0.2])), str(log)
        except (TypeError, AttributeError) as error:
            return str(error), str(log)

    expected, asked = outcome(f)
    for on in (True, False):
        with jit(on):
            for _ in range(4):
                found, seen = outcome(value_and_grad(f))
                assert seen == asked
                if isinstance(expected, str):
                    assert found == expected
                    continue
                assert found[0] == pytest.approx(expected)
                for i, step in enumerate(np.eye(2) * 1e-6):
                    slope = (f(np.array([1.3, 0.2]) + step) - f(np.array([1.3, 0.2]) - step)) / 2e-6
                    assert found[1][i] == pytest.approx(slope, abs=1e-6)


class Typed(Vector):
    @property
    def dtype(self):
        log.append("type")
        return np.dtype("f4")


@pytest.mark.parametrize("kind", [Vector, Typed, list])
@pytest.mark.parametrize("ask", [np.result_type, lambda o: np.promote_types(o, "f8")])
def test_an_object_stands_for_a_type_and_not_for_an_array(ask, kind):
    given = kind(np.ones(2))

    def f(x):
        try:
            found = str(ask(given))
        except TypeError as error:
            found = str(error)
        log.append(found)
        return x * len(found)

    log.clear()
    expected = f(2.0)
    asked = str(log)
    for on in (True, False):
        with jit(on):
            for _ in range(4):
                log.clear()
                assert value_and_grad(f)(2.0)[0] == expected
                assert str(log) == asked


kept = {"factor": 1.0}


class Lends:
    """Lends NumPy its memory."""

    def __init__(self, a):
        self.a = a

    @property
    def __array_interface__(self):
        log.append("interface")
        kept["factor"] = kept["factor"] * 1.5
        return self.a.__array_interface__


class LendsByStruct:
    def __init__(self, a):
        self.a = a

    @property
    def __array_struct__(self):
        log.append("struct")
        kept["factor"] = kept["factor"] * 1.5
        return self.a.__array_struct__


class LendsFirst(Lends):
    def __array__(self, dtype=None, copy=None):
        log.append("array")
        return self.a * 2.0


class LendsConstants:
    def __init__(self, a):
        self.plain = np.arange(3, dtype=np.int32)

    @property
    def __array_interface__(self):
        log.append("constants")
        return self.plain.__array_interface__


class ListThatLends(list):
    def __init__(self, a):
        super().__init__([5.0])
        self.a = a

    __array_interface__ = Lends.__array_interface__


LENT = {
    "asarray": np.asarray,
    "add": lambda o: np.add(o, 1.0),
    "operator": lambda o: np.ones(3) * o,
    "sum": np.sum,
    "array of two": lambda o: np.array([o, o]),
    "sine": np.sin,
    "written": lambda o: np.copyto(np.asarray(o), 7) or np.asarray(o),
}


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("kind", [Lends, LendsByStruct, LendsFirst, LendsConstants, ListThatLends])
@pytest.mark.parametrize("name", LENT)
def test_an_object_is_asked_once_for_the_memory_that_it_lends(name, kind, inside):
    outside = [None]

    def f(x):
        kept["factor"] = x
        lender = kind(np.arange(1.0, 4.0) * x) if inside else outside[0]
        return np.sum(LENT[name](lender)) * x + kept["factor"]

    def outcome(ask, x):
        log.clear()
        outside[0] = kind(np.arange(3.0) + x)
        return ask(x), str(log)

    h = 1e-6
    for on in (True, False):
        with jit(on):
            for x in (0.5, 1.0, 1.5, 2.0):
                expected, asked = outcome(f, x)
                (value, slope), seen = outcome(value_and_grad(f), x)
                assert seen == asked
                assert value == pytest.approx(expected)
                if inside:
                    right, left = f(x + h), f(x - h)
                    assert slope == pytest.approx((right - left) / (2 * h), rel=1e-6)


class Looks(Lends):
    @property
    def __array_interface__(self):
        return dict(self.a.__array_interface__)


class Keeps(Lends):
    @property
    def __array_interface__(self):
        self.kept = self.a.__array_interface__
        return self.kept


@pytest.mark.parametrize("kind", [Looks, Keeps])
def test_what_an_array_lends_is_looked_at_by_numpy_alone(kind):
    lender = kind(np.ones(3))
    with pytest.raises(TraceError, match=r"hands out its memory.*\nindex the array itself"):
        value_and_grad(lambda x: np.asarray(kind(np.ones(3) * x)).sum())(2.0)
    with pytest.raises(TraceError, match=r"hands out its memory.*\nindex the array itself"):
        value_and_grad(lambda x: np.asarray(lender).sum() * x)(2.0)


class Wrapping:
    """An array with a unit, which asks NumPy for its results."""

    def __init__(self, a, unit="m"):
        self.a, self.unit = a, unit

    def __array__(self, dtype=None, copy=None):
        return self.a

    def __array_wrap__(self, array, context=None, return_scalar=False):
        return Wrapping(array, self.unit)


@pytest.mark.parametrize(
    "fn",
    [np.sin, lambda q: np.add(1.0, q), np.add.reduce, np.cumsum, lambda q: np.round(q, 1)],
    ids=["ufunc", "second", "reduce", "cumsum", "round"],
)
def test_what_asks_numpy_for_its_results_is_refused(fn):
    with pytest.raises(TraceError, match=r"(?s)__array_wrap__ of a Wrapping.*np\.asarray"):
        grad(lambda x: fn(Wrapping(x)).a.sum())(np.array([0.25, 0.5]))


def test_what_asks_numpy_for_its_results_may_be_made_an_array():
    slope = grad(lambda x: np.sin(np.asarray(Wrapping(x))).sum())(np.array([0.25, 0.5]))
    np.testing.assert_array_equal(slope, np.cos([0.25, 0.5]))


told = []


class Word(str):
    """A string that says something else of itself."""

    def __str__(self):
        told.append(self.upper())
        return "other"


WORDS = {
    "array": lambda: np.array([Word("ab"), "c"]).tolist(),
    "asarray": lambda: np.asarray(Word("ab")).tolist(),
    "nested": lambda: np.array([[Word("ab"), Word("abcd")]]).tolist(),
    "type": lambda: np.array([Word("ab")], dtype="U4").tolist(),
    "bytes": lambda: np.array([Word("ab")], dtype="S4").tolist(),
    "objects": lambda: str.upper(np.array([Word("ab")], dtype=object)[0]),
    "full": lambda: np.full(2, Word("ab")).tolist(),
    "operand": lambda: (np.array(["ot"]) == Word("ab")).tolist(),
}


@pytest.mark.parametrize("on", [False, True])
@pytest.mark.parametrize("name", WORDS)
def test_an_array_of_text_asks_a_string_of_a_derived_class_for_it(name, on):
    def f(x):
        found = WORDS[name]()
        return x * len(told), found

    def calls(run):
        told.clear()
        return [run(2.0) for _ in range(5)], [*told]

    expected, asked = calls(f)
    with jit(on):
        found, seen = calls(lambda x: value_and_grad(f, has_aux=True)(x)[0])
    assert found == expected and seen == asked

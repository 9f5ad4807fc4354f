"""Functions that C code keeps and calls back: whoever looks at what keeps them finds the user's own."""

import contextlib
import copy
import functools
import io
import itertools
import marshal
import math
import operator
import pickle
import sqlite3
import sys
import types
from collections import defaultdict

import numpy as np
import pytest

from helpers import assert_same
from wengert import EscapeError, TraceError, WengertError, grad, jit, pullback, value_and_grad

SCALE = 3.0


def even(n):
    return n % 2 == 0


def twice(n):
    return n * 2


def scaled(n):
    return n * SCALE


def three():
    return 3


def fresh():
    return [SCALE]


class Counter:
    def __init__(self):
        self.n = 0

    def __call__(self):
        self.n += 1
        return self.n


def again(it):
    return list(pickle.loads(pickle.dumps(it)))


def of_map(x):
    it = map(twice, [1, 2, 3])
    next(it)
    return again(it), list(it), it.__reduce__()[1][0] is twice, x


def of_filter(x):
    it = filter(even, range(8))
    next(it)
    return again(it), it.__reduce__()[1][0] is even, list(it), x


def of_callable_iterator(x):
    counter = Counter()
    it = iter(counter, 4)
    next(it)
    return again(it), it.__reduce__()[1][0] is counter, list(it), x


def of_builtins(x):
    return again(map(abs, [-1, 2])), again(map(float, [1, 2])), again(filter(None, [0, 1])), x


def of_copies(x):
    it = map(twice, [1, 2, 3])
    a, b = copy.copy(map(twice, (1, 2))), copy.deepcopy(it)
    return list(a), list(b), list(it), x


def of_defaultdict(x):
    d, e = defaultdict(list), defaultdict(three)
    d[1].append(2)
    e["k"] += 1
    kept = [
        d.default_factory is list,
        e.default_factory is three,
        e.copy().default_factory is three,
        copy.copy(e).default_factory is three,
        copy.deepcopy(e).default_factory is three,
        (e | {}).default_factory is three,
        repr(d) == "defaultdict(<class 'list'>, {1: [2]})",
        pickle.loads(pickle.dumps(e))["q"],
        pickle.dumps(d) == pickle.dumps(defaultdict(list, {1: [2]})),
        e.default_factory(),
        getattr(defaultdict(None), "default_factory"),
        e.__reduce__()[1] == (three,),
    ]
    d.default_factory = three
    return kept, d["n"], d.default_factory is three, d, e, x


SOME = defaultdict(fresh)


def of_defaultdict_outside(x):
    return SOME.default_factory is fresh, SOME["a"][0] * x, x


CASES = [f for name, f in list(globals().items()) if name.startswith("of_")]
if sys.version_info < (3, 14):  # which cannot pickle them any more

    @pytest.mark.filterwarnings("ignore::DeprecationWarning")
    def of_itertools(x):
        return (
            again(itertools.starmap(operator.pow, [(2, 3), (3, 2)])),
            again(itertools.takewhile(even, [2, 4, 5])),
            again(itertools.dropwhile(even, [2, 4, 5])),
            again(itertools.filterfalse(even, [2, 4, 5])),
            again(itertools.accumulate([1, 2, 3], operator.mul)),
            list(copy.copy(itertools.accumulate([1, 2, 3], operator.mul))),
            x,
        )

    CASES.append(of_itertools)


@pytest.mark.filterwarnings("ignore:Pickle, copy:DeprecationWarning")
@pytest.mark.parametrize("f", CASES)
@pytest.mark.parametrize("on", [False, True])
def test_the_users_function_is_kept(f, on):
    with jit(on):
        for _ in range(3):
            SOME.clear()
            expected = f(2.0)
            SOME.clear()
            assert_same(pullback(f, 2.0)[0], expected)


@pytest.mark.parametrize("on", [False, True])
def test_what_is_called_back_is_traced(on, monkeypatch):
    def f(x):
        d = defaultdict(lambda: x * SCALE)
        d["a"] *= 2.0
        return d["a"] + d["b"] + sum(map(scaled, [x, x])) + sum(itertools.accumulate([x, x], pow2))

    def pow2(a, b):
        return a * b

    with jit(on):
        for s in (3.0, 4.0, 5.0):
            monkeypatch.setitem(globals(), "SCALE", s)
            value, gradient = value_and_grad(f)(2.0)
            assert value == f(2.0)
            assert gradient == pytest.approx(3 * s + 2 * s + 1 + 4.0)


@pytest.mark.parametrize("on", [False, True])
def test_a_factory_outside_is_traced(on, monkeypatch):
    table = defaultdict(fresh)
    with jit(on):
        for s in (3.0, 4.0, 5.0):
            monkeypatch.setitem(globals(), "SCALE", s)
            table.clear()
            assert grad(lambda x: table["k"][0] * x)(2.0) == s


def test_partials_are_called_with_what_they_hold():
    assert grad(lambda x: sum(map(functools.partial(operator.mul, x), [x, 2.0])))(3.0) == 8.0


class Compiled(functools.partial):
    """A callable in C that keeps a Python function, and whose own Python code reads the code of that."""


def compile_once(kept):
    return kept[0].__code__.co_code


def calling(kept):
    return kept[0]()


def compiled(reader, function):
    made = Compiled(operator.call, reader, [function])
    made.function = function
    return made


@pytest.mark.parametrize("on", [False, True])
def test_a_compiler_reads_the_code_that_the_function_has(on):
    made = compiled(compile_once, three)
    seen = []

    def f(x):
        seen.append(made())
        return x * len(seen[-1])

    with jit(on):
        for x in (2.0, 3.0, 4.0, 5.0):
            assert value_and_grad(f)(x) == (x * len(made()), len(made()))
    assert seen == [three.__code__.co_code] * 4


def test_what_a_compiled_callable_keeps_is_not_called_untraced():
    made = compiled(calling, three)
    with pytest.raises(EscapeError, match="three"):
        grad(lambda x: made() * x)(3.0)


class ByValue(pickle.Pickler):
    """Pickles inner functions by their code, as cloudpickle does."""

    def reducer_override(self, obj):
        if isinstance(obj, types.FunctionType) and "<locals>" in obj.__qualname__:
            held = [cell.cell_contents for cell in obj.__closure__ or ()]
            return remade, (marshal.dumps(obj.__code__), obj.__name__, obj.__defaults__, held)
        return NotImplemented


def remade(code, name, defaults, held):
    cells = tuple(map(types.CellType, held))
    return types.FunctionType(marshal.loads(code), globals(), name, defaults, cells)


def sent(thing):
    file = io.BytesIO()
    ByValue(file).dump(thing)
    return pickle.loads(file.getvalue())


def bare_one(x):
    return sent(lambda y: y + 1)(2.0) * x


def nested_ones(x):
    def inner(v, by=3):
        return v * by

    def outer(y):
        return inner(y) + k

    k = 2
    first, second = sent([outer, {"inner": inner}])
    return (first(x) + second["inner"](2.0)) * x


def one_with_an_integer(x):
    n = int(x)
    return sent(lambda y: y * n)(x)


@pytest.mark.parametrize("f", [bare_one, nested_ones, one_with_an_integer])
def test_functions_of_the_run_are_pickled_as_they_are_written(f):
    for on in (True, False):
        with jit(on):
            for x in (2.25, 3.5, 2.25, 5.5):
                value, slope = value_and_grad(f)(x)
                assert value == f(x)
                assert slope == pytest.approx((f(x + 1e-6) - f(x - 1e-6)) / 2e-6, rel=1e-6)


def test_one_that_holds_a_traced_number_is_not_pickled():
    for on in (True, False):
        with jit(on):
            for x in (2.0, 3.5, 2.0):
                with pytest.raises(WengertError, match="ByValue|pickle|dump"):
                    value_and_grad(lambda x: sent(lambda y: y * x)(2.0))(x)


def test_an_array_of_objects_of_what_c_code_was_given_by_a_callback_is_refused():
    """As the `Series.apply` of pandas makes one, which is an array of floats in plain Python."""
    ctypes = pytest.importorskip("ctypes")
    gather = ctypes.pythonapi.PyObject_CallObject
    gather.restype, gather.argtypes = ctypes.py_object, [ctypes.py_object] * 2

    def f(w):
        return gather(np.frompyfunc(lambda v: v * w, 1, 1), (np.array([1.0, 2.0]),)).sum()

    def by_ufunc(w):  # which makes an array of objects in any case
        return np.frompyfunc(lambda v: v * w, 1, 1)(np.array([1.0, 2.0])).sum()

    for mode in (True, False):
        with jit(mode):
            with pytest.raises(TraceError, match="PyObject_CallObject has put traced values"):
                grad(f)(2.0)
            assert value_and_grad(by_ufunc)(2.0) == (6.0, 3.0)


class Kept:
    """A descriptor in C, as Cython makes them: it holds a function of Python, and calls it."""

    __slots__ = ("function",)

    def __init__(self, function):
        self.function = function


def kept(function):
    members = {"__slots__": (), "__get__": staticmethod(functools.partial(function))}
    return type("Kept", (Kept,), members)(function)


def size_of(_, table, kind):
    return memoryview(table.values).nbytes + SCALE


def sine_of(_, table, kind):
    return math.sin(table.x) if table.x > 0.5 else -table.x


class Table:
    size, sine = kept(size_of), kept(sine_of)

    def __init__(self, x):
        self.x, self.values = x, np.array([1.0, 2.0])


@pytest.mark.parametrize("on", [False, True])
def test_what_a_descriptor_in_c_calls_is_traced(on, monkeypatch):
    def f(x):
        return Table(x).size * x + Table(x).sine

    with jit(on):
        for i in range(12):
            monkeypatch.setitem(globals(), "SCALE", 3.0 + i // 4)
            x = 0.35 + 0.05 * i
            slope = 16 + SCALE + (math.cos(x) if x > 0.5 else -1.0)
            assert value_and_grad(f)(x) == pytest.approx((f(x), slope))


def test_a_descriptor_in_c_puts_no_traced_value_outside():
    table = Table(0.3)

    def f(x):
        table.x = x
        return table.sine

    with pytest.raises(EscapeError, match="sine_of"):
        grad(f)(0.7)


def test_an_error_of_code_that_is_not_traced_is_a_refusal():
    """It may come of the box that the code has met."""

    def failing(table):
        raise ValueError("a float" if type(table.x) is float else "no float")

    scope = vars(sys.modules["_pytest.python"])  # whose functions are not traced
    failing = types.FunctionType(failing.__code__, scope, "failing")

    def f(x):
        try:
            failing(Table(x))
        except ValueError:
            return x

    with pytest.raises(EscapeError, match="failing"):
        grad(f)(0.7)


class Scaling:
    """An object that a property calls."""

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, owner, *value):
        if value:
            owner.x = math.exp(value[0]) * self.factor
        return math.sin(owner.x) * self.factor if owner.x > 0.5 else -owner.x


class Derived(property):
    pass


SCALING = Scaling(2.0)
FACTORS = [1.0, 2.0]


class WithProperties:
    by_object = property(SCALING, SCALING)
    by_partial = property(
        functools.partial(lambda factors, self: math.cos(self.x) * factors[0], FACTORS)
    )

    def __init__(self, x):
        self.x = x

    @property
    @functools.lru_cache
    def by_cache(self):
        return math.exp(self.x) if self.x > 0.5 else math.log(self.x)

    @Derived
    def derived(self):
        return math.tan(self.x) if self.x > 0.5 else self.x

    @derived.setter
    def derived(self, value):
        self.x = math.sqrt(value)

    @derived.deleter
    def derived(self):
        self.x = math.atan(self.x)


def by_object(x):
    a = WithProperties(x)
    a.by_object = x * x
    return a.by_object + WithProperties(x).by_object


def by_partial(x):
    return WithProperties(x).by_partial


def by_cache(x):
    return WithProperties(x).by_cache


def derived(x):
    a = WithProperties(x)
    a.derived = a.derived + x
    del a.derived
    return a.derived


@pytest.mark.parametrize("f", [by_object, by_partial, by_cache, derived])
@pytest.mark.parametrize("on", [False, True])
def test_whatever_a_property_calls_is_traced(f, on, monkeypatch):
    with jit(on):
        for i in range(24):
            monkeypatch.setattr(SCALING, "factor", 2.0 + i // 8)
            FACTORS[0] = 1.0 + i // 8
            x, h = 0.31 + 0.05 * (i % 8), 1e-5
            value, slope = value_and_grad(f)(x)
            assert value == f(x)
            assert slope == pytest.approx((f(x + h) - f(x - h)) / (2 * h), rel=1e-7)


def test_properties_of_a_metaclass_and_of_a_base():
    class Meta(type):
        scaled = Derived(lambda cls: math.sin(cls.x))

    class Inner(metaclass=Meta):
        x = 0.0

    class Upper(WithProperties):
        @property
        def derived(self):
            return super().derived * 2.0

    def f(x):
        class Made(Inner):
            pass

        Made.x = x
        return Made.scaled + Upper(x).derived

    assert value_and_grad(f)(0.7) == pytest.approx((f(0.7), math.cos(0.7) + 2 / math.cos(0.7) ** 2))


@pytest.mark.parametrize("on", [True, False], ids=["jit", "traced"])
def test_a_function_or_a_class_that_sqlite_keeps_gives_it_no_traced_number(on):
    def database(function, kind=None):
        with contextlib.closing(sqlite3.connect(":memory:")) as connection:
            if kind is not None:
                connection.create_aggregate("f", 1, kind)
            else:
                connection.create_function("f", 1, function)
            return connection.execute("select f(2.0)").fetchone()[0]

    def function(x):
        return database(lambda v: v * x)

    def aggregate(x):
        class Sum:
            def __init__(self):
                self.total = 0.0

            def step(self, v):
                self.total += v * x

            def finalize(self):
                return self.total

        return database(None, Sum)

    def constant(x):
        return database(lambda v: v * 3.0) * x

    def failing(x):
        def fail(v):
            raise ValueError(x)

        try:
            return database(fail)
        except sqlite3.OperationalError:
            return x * 2.0

    with jit(on):
        for x in (1.5, 2.5):
            for f in (function, aggregate):
                with pytest.raises(EscapeError, match="a traced float reached code that cannot"):
                    grad(f)(x)
            assert (grad(constant)(x), grad(failing)(x)) == (6.0, 2.0)

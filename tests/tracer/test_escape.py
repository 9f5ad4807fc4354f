"""Special methods that C code calls: they run as twins, in every thread, and leave nothing behind."""

import enum
import inspect
import math
import operator
import pprint
import sys
import threading
import types
from typing import cast

import numpy as np
import pytest

import wengert
from helpers import assert_plain, check, in_threads
from wengert import grad, pullback, value_and_grad
from wengert.tracer import watchers
from wengert.tracer.escape import reach


class Ranked:
    """Ordered by a function of its key that only a twin can trace."""

    def __init__(self, key):
        self.key = key

    def __lt__(self, other):
        return math.sin(self.key) < math.sin(other.key)

    def __eq__(self, other):
        return math.sin(self.key) == math.sin(other.key)

    def __hash__(self):
        return 7


OWN_CODE = {name: vars(Ranked)[name].__code__ for name in ("__lt__", "__eq__", "__hash__")}


@pytest.fixture(autouse=True)
def the_class_is_left_as_it_was():
    yield
    assert {name: vars(Ranked)[name].__code__ for name in OWN_CODE} == OWN_CODE
    assert all(vars(Ranked)[name].__code__ is code for name, code in OWN_CODE.items())


def smallest(x):
    return sorted(Ranked(x * ((i * 7) % 13 + 1)) for i in range(12))[0].key ** 2


def test_threads_that_sort_objects_of_one_class():
    expected = value_and_grad(smallest)(0.3)

    def work():
        for _ in range(10):
            assert value_and_grad(smallest)(0.3) == expected

    assert in_threads(work, work, work) == []


def test_a_thread_that_traces_nothing_meets_its_own_code():
    stop = threading.Event()
    items = [Ranked(0.1 * ((i * 7) % 13 + 1)) for i in range(12)]
    expected = [id(x) for x in sorted(items)]

    def trace():
        try:
            for _ in range(20):
                grad(smallest)(0.3)
        finally:
            stop.set()

    def sort():
        while not stop.is_set():
            assert [id(x) for x in sorted(items)] == expected

    assert in_threads(trace, sort) == []


def test_a_finished_sort_leaves_the_methods_of_others_traced():
    """What was first called during the sort is called again after it."""

    class Both(Ranked):
        def __lt__(self, other):
            return (self == other) is False and super().__lt__(other)

    def f(x):
        items = sorted([Both(x), Both(2 * x), Both(x / 2)])
        return 3.0 * x if items[0] == items[1] else math.sin(x)

    check(f, 0.3)


def test_nonlocal_in_a_special_method():
    total = 0.0

    class Counted:
        def __init__(self, key):
            self.key = key

        def __lt__(self, other):
            nonlocal total
            total = total + self.key * other.key
            return self.key < other.key

    def f(x):
        nonlocal total
        total = 0.0
        first = min([Counted(x), Counted(3 * x)]).key
        return total * first

    assert f(2.0) == 24.0
    value, back = pullback(f, 2.0)
    assert value == 24.0
    assert type(total) is float and total == 12.0
    assert back(1.0) == (36.0,)


def test_a_special_method_sees_what_the_traced_function_wrote_to_a_cell():
    scale = 1.0

    class Scaled:
        def __init__(self, key):
            self.key = key

        def __lt__(self, other):
            return scale * self.key < scale * other.key

    def f(x):
        nonlocal scale
        scale = -x
        found = sorted([Scaled(x), Scaled(3 * x)])[0].key
        scale = 1.0
        return found

    assert value_and_grad(f)(2.0) == (6.0, 3.0)
    assert scale == 1.0


def test_a_default_of_a_special_method_holds_no_box():
    seen = []

    class Logged:
        def __init__(self, key):
            self.key = key

        def __lt__(self, other, seen=seen):
            seen.append(self.key * 2)
            return self.key < other.key

    assert grad(lambda x: min([Logged(x), Logged(3 * x)]).key)(2.0) == 1.0
    assert_plain(seen, Logged)
    assert seen == [12.0]


def test_a_special_method_that_is_a_generator():
    class Bag:
        def __init__(self, items):
            self.items = items

        def __iter__(self):
            for x in self.items:
                yield math.sqrt(x)

    def f(x):
        return x * operator.countOf(Bag([x, 2 * x, x]), 3.0)

    assert value_and_grad(f)(9.0) == (18.0, 2.0)


def test_a_class_that_changes_between_two_calls():
    class Changing(Ranked):
        pass

    def descending(self, other):
        return math.cos(self.key) < math.cos(other.key)

    def f(x):
        items = [Changing(x), Changing(2 * x)]
        first = sorted(items)[0].key
        Changing.__lt__ = descending
        second = sorted(items)[0].key
        return first * 10 + second

    assert value_and_grad(f)(0.3) == (10 * 0.3 + 0.6, 12.0)
    assert Changing.__lt__ is descending


def test_an_exception_in_a_special_method():
    class Broken(Ranked):
        def __lt__(self, other):
            raise ValueError("no order")

    own = Broken.__lt__.__code__
    with pytest.raises(ValueError, match="no order") as caught:
        grad(lambda x: sorted([Broken(x), Broken(x)])[0].key)(1.0)
    assert Broken.__lt__.__code__ is own
    names = [entry.name for entry in caught.traceback]
    assert names[-1] == "__lt__" and "detour" not in names


def test_keeping_an_object_in_a_container_looks_at_no_other_element():
    items = [Ranked(1.0)]
    assert not reach(items.append, (Ranked(2.0),), {})
    assert not reach(list.append, (items, Ranked(2.0)), {})
    assert reach({1: items}.get, (1,), {}) == (1,)
    assert items in reach(sorted, (items,), {})
    assert items in reach(items.index, (items[0],), {})
    assert np.ndim in reach(map, (np.ndim, items), {})


def test_items_that_a_generator_gives():
    def f(x):
        keys = (Ranked(x * i) for i in (1, 1, 2))
        return len(set(keys)) * x

    check(smallest, 0.3)
    check(f, 0.3)


@pytest.mark.parametrize("kept", [True, False])
def test_a_special_method_shows_the_parameters_that_were_written(kept):
    """A library's method asks for them, in code that is run as it is, while the class makes a detour."""
    shown = []

    class Estimator:
        def __init__(self, x, *, scale=1.0, **options):
            self.x, self.scale = x, scale

        def __lt__(self, other, /, by=2.0):
            shown.append(str(inspect.signature(Estimator.__init__)))
            shown.append(str(inspect.signature(type(self).__lt__)))
            return by * self.x < by * other.x

        def __repr__(self):
            return " ".join(inspect.signature(Estimator).parameters)

    def f(x):
        return min(Estimator(x), Estimator(2.0, scale=x)).x * len(pprint.pformat(Estimator(1.0)))

    with wengert.jit(kept):
        for x in (0.5, 0.7, 0.9):
            assert value_and_grad(f)(x) == (f(x), 15.0)
    assert set(shown) == {"(self, x, *, scale=1.0, **options)", "(self, other, /, by=2.0)"}


@pytest.mark.parametrize("kept", [True, False])
def test_the_defaults_of_a_special_method_that_c_code_calls_may_change(kept):
    class Scaled:
        def __init__(self, x):
            self.x = x

        def __lt__(self, other, by=1.0, *more, sign=1.0):
            return sign * by * self.x < sign * by * other.x

        def __hash__(self, by=2.0):
            return hash(by)

    def f(x):
        return min(Scaled(x), Scaled(x * x)).x * hash(Scaled(x))

    with wengert.jit(kept):
        for x in (0.3, 0.4, 0.5, 0.6):
            for by, sign in ((1.0, 1.0), (-1.0, 1.0), (1.0, -1.0)):
                Scaled.__lt__.__defaults__, Scaled.__lt__.__kwdefaults__ = (by,), {"sign": sign}
                Scaled.__hash__.__defaults__ = (by + 2.0,)
                slope = (2 * x if by * sign > 0 else 1.0) * hash(by + 2.0)
                assert value_and_grad(f)(x) == pytest.approx((f(x), slope))


def test_what_is_run_as_it_is_in_a_callback():
    def scaled(a, b):
        return cast(float, a * b)

    class Rows:
        def __init__(self, x):
            self.cells = [x, 2.0 * x]

        def total(self, k):
            return cast(list, self.cells)[k]

        def both(self):
            return tuple(map(self.total, (0, 1)))

    check(lambda x: sum(tuple(map(scaled, (x, 2.0), (1.0, x)))), 1.5)
    check(lambda x: sum(Rows(x).both()), 1.5)


def test_an_object_answers_itself_what_numpy_asks_of_an_array():
    class Sparse:
        """As SciPy's, whose data are traced."""

        ndim, shape = 2, (3, 4)

        def __init__(self, x):
            self.data = np.array([x, x * x])

        @property
        def size(self):
            return self.data.sum()

        def __iter__(self):
            raise TypeError("not this one")

    def f(x):
        a = Sparse(x)
        asked = np.ndim(a), np.shape(a), np.isscalar(a), np.iterable(a)
        assert asked == (2, (3, 4), False, False)
        return x * np.ndim(a) + np.size(a)

    check(f, 1.5)
    with wengert.jit(False):
        check(f, 1.5)


def test_a_function_is_instrumented_while_an_enum_makes_a_detour():
    """Instrumenting uses enums itself, whose methods must not lead to instrumented copies then."""

    class Colour(enum.Enum):
        RED = 1

    def f(x):
        made = sorted([Colour.RED, Colour.RED], key=lambda colour: fresh(colour))
        return x * len(made) * [Colour.RED, enum.EnumType].index(enum.EnumType)

    scope = {}
    exec("def fresh(colour): return colour.value", scope)
    fresh = scope["fresh"]
    assert grad(f)(3.0) == 2.0


class TestNothingToEscape:
    """C code that can get hold of no box is not watched, which would cost ten times the call."""

    def test_a_call_with_plain_objects_sets_no_profile_function(self, monkeypatch):
        begun = []
        own = watchers.Suspended.begin
        monkeypatch.setattr(watchers.Suspended, "begin", lambda self: (begun.append(1), own(self)))

        class Item:
            def __init__(self, v):
                self.v = v

            def __eq__(self, other):
                return self.v == other.v

            __hash__ = None

        def plain(x):
            return [Item(1), Item(2)].index(Item(2)) * x

        def traced(x):
            return [Item(1), Item(x)].index(Item(x)) * x

        with wengert.jit(False):
            assert wengert.value_and_grad(plain)(2.0) == (2.0, 1.0)
            assert not begun
            assert wengert.value_and_grad(traced)(2.0) == (2.0, 1.0)
            assert begun

    def test_a_box_that_a_detour_gives_to_code_that_is_not_traced_is_seen(self):
        scale = [2.0]

        class Amount:
            def __init__(self, v):
                self.v = v

            def __sub__(self, other):
                return Given(scale[0])

            def __eq__(self, other):
                return False

            __hash__ = None

        class Given:
            def __init__(self, v):
                self.v = v

        def look(given):
            return type(given.v).__name__

        def difference(first, second):
            return look(first - second)

        def as_of_pytest(fn):  # whose functions are not traced
            scope = vars(sys.modules["_pytest.python"])
            return types.FunctionType(fn.__code__, scope, fn.__name__, None, fn.__closure__)

        look, difference = as_of_pytest(look), as_of_pytest(difference)

        def f(x, s):
            scale[0] = s
            return difference(Amount(1), Amount(2)), x * s

        with wengert.jit(False), pytest.raises(wengert.EscapeError):
            wengert.pullback(f, 2.0, 3.0)

        def outside(x):
            return difference(Amount(1), Amount(2)), x

        scale[0] = 2.0
        with wengert.jit(False):
            assert wengert.pullback(outside, 2.0)[0] == ("float", 2.0)

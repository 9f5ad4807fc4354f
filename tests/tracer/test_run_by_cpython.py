"""Code of the user's that CPython runs by itself: classes that are raised, the names of a module, the body of one."""

import collections
import copy
import json
import pickle
import sys
import types
import warnings

import numpy as np
import pytest

from helpers import assert_same
from wengert import NoRuleError, TraceError, jit, pullback, value_and_grad

count = {"made": 0, "w": 1.0}
STEP = 1e-6
POINTS = [0.5 + 0.25 * k for k in range(8)]


def check_calls(f, between=lambda: None):
    """Several calls give the values, the slopes and the changes to `count` that they have in plain Python."""

    def calls(g):
        count.update(made=0, w=1.0)
        found = []
        for x in POINTS:
            between()
            found.append((g(x), dict(count)))
        return found

    def slope(x):
        between()
        above = f(x + STEP)
        between()
        return (above - f(x - STEP)) / (2 * STEP)

    expected = calls(f)
    slopes = [*map(slope, POINTS)]
    for on in (False, True):
        with jit(on):
            found = calls(value_and_grad(f))
        assert_same([(value, after) for (value, _), after in found], expected)
        np.testing.assert_allclose([slope for (_, slope), _ in found], slopes, rtol=1e-6)


class Counted(Exception):
    def __init__(self, *args):
        count["made"] += 1
        count["w"] = count["w"] * 2.0


class Seen(Exception):
    def __init__(self):
        self.weight = count["w"]


class New(Exception):
    def __new__(cls):
        count["made"] += 1
        return super().__new__(cls)


class NoError(Exception):
    def __new__(cls):
        count["made"] += 1
        return 3


class Made(type):
    def __call__(cls):
        count["made"] += 1
        return super().__call__()


class OfMeta(Exception, metaclass=Made):
    pass


def counted_as_raised(x):
    count["w"] = x
    try:
        raise Counted
    except Counted:
        return count["w"] * x


def counted_as_cause(x):
    count["w"] = x * x
    try:
        raise New from Counted
    except New as error:
        return count["w"] * x * len(type(error.__cause__).__name__)


def seen_as_raised(x):
    count["w"] = x * x
    try:
        raise Seen
    except Seen as error:
        return error.weight * 1.0


def none_is_made(x):
    try:
        raise NoError
    except TypeError as error:
        return x * len(str(error))


def made_by_metaclass(x):
    before = count["made"]
    try:
        raise OfMeta
    except OfMeta:
        return x * x * (count["made"] - before)


def thrown(x):
    def steps():
        try:
            yield x
        except Counted:
            yield count["w"] * x

    count["w"] = x * x
    g = steps()
    return next(g) + g.throw(Counted)


def thrown_with_arguments(x):
    def steps():
        try:
            yield from [x, x]
        except Counted as error:
            yield count["w"] * len(error.args)

    count["w"] = x * x
    g = steps()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return next(g) + g.throw(Counted, (1, 2))


class Takes:
    def __iter__(self):
        return self

    def __next__(self):
        return 1.0

    def throw(self, error):
        return count["w"] * (2.0 if error is Counted else 3.0)


def thrown_further(x):
    def steps():
        yield from Takes()

    count["w"] = x * x
    g = steps()
    return next(g) * x + g.throw(Counted)


RAISING = [
    counted_as_raised, counted_as_cause, seen_as_raised, none_is_made, made_by_metaclass,
    thrown, thrown_with_arguments, thrown_further,
]  # fmt: skip


@pytest.mark.parametrize("f", RAISING)
def test_a_class_that_is_raised_or_thrown_is_called_as_the_function_would(f):
    check_calls(f)


class Counting(type):
    def __call__(cls, *args):
        count["made"] += 1
        return super().__call__(*args)


MADE = {
    base: Counting(f"Made{base.__name__}", (base,), {})
    for base in (object, list, tuple, dict, collections.OrderedDict, int, str, ValueError)
}


@pytest.mark.parametrize("base", MADE)
def test_the_call_of_a_metaclass_runs_once_where_objects_are_made_in_c(base):
    cls = MADE[base]
    given = {list: ([2.0, 1.0],), tuple: ([2.0, 1.0],), int: (3,), str: ("abc",)}.get(base, ())

    def f(x):
        before = count["made"]
        return x * x * isinstance(cls(*given), base) * (count["made"] - before)

    for on in (False, True):
        count["made"] = 0
        with jit(on):
            found = [value_and_grad(f)(1.0 + k) for k in range(6)]
        assert found == [((1.0 + k) ** 2, 2 * (1.0 + k)) for k in range(6)]
        assert count["made"] == 6


def lazy_module(name, getter, kind=types.ModuleType):
    module = kind(name)
    module.__getattr__ = getter
    return module


def counted_name(name):
    count["made"] += 1
    if name == "nothing":
        raise AttributeError(name)
    return 2.0


def doubled(name):
    count["w"] = count["w"] * 2.0
    return 1.0


class OwnKind(types.ModuleType):
    def __getattr__(self, name):
        return 7.0


COUNTED = lazy_module("counted", counted_name)
DOUBLED = lazy_module("doubled", doubled)
WEIGHT = lazy_module("weight", lambda name: count["w"] * 2.0)
OF_OWN_KIND = lazy_module("own_kind", counted_name, OwnKind)


def name_of_module(x):
    before = count["made"]
    return x * COUNTED.bias * (count["made"] - before)


def name_that_doubles(x):
    count["w"] = x * 3.0
    return DOUBLED.bias * count["w"]


def name_that_looks(x):
    count["w"] = x * x
    return WEIGHT.bias + getattr(WEIGHT, "other")


def name_that_is_not_there(x):
    before = count["made"]
    known = hasattr(COUNTED, "nothing")
    return x * (count["made"] - before + known)


def name_of_module_of_own_kind(x):
    return x * OF_OWN_KIND.bias + OF_OWN_KIND.nothing


def listed():
    count["w"] = count["w"] * 2.0
    return ["b", "a"]


COUNTED.__dir__ = listed


def names_of_module(x):
    count["w"] = x * x
    return len("".join(dir(COUNTED))) * count["w"]


NAMES = [
    names_of_module,
    name_of_module, name_that_doubles, name_that_looks, name_that_is_not_there,
    name_of_module_of_own_kind,
]  # fmt: skip


@pytest.mark.parametrize("f", NAMES)
def test_what_a_module_is_asked_by_is_called_as_the_function_would(f):
    check_calls(f)


def imports_a_name(x):
    before = count["made"]
    from counted_by_import import bias

    return x * bias * (count["made"] - before)


def imports_no_name(x):
    before = count["made"]
    try:
        from counted_by_import import nothing
    except ImportError as error:
        nothing = len(str(error))
    return x * nothing * (count["made"] - before)


def imports_a_body(x):
    before = count["made"]
    import with_a_body

    return x * (count["made"] - before) * with_a_body.TWO


def imports_a_body_that_fails(x):
    before = count["made"]
    try:
        import that_fails  # noqa: F401
    except ValueError:
        pass
    return x * (count["made"] - before)


def imports_what_was_doubled(x):
    count["w"] = x
    import with_a_body  # noqa: F401

    return x * count["w"]


def imports_what_was_computed(x):
    count["w"] = x
    from with_a_body import WEIGHT

    return x * WEIGHT


BODY = """
from seen_by_bodies import count

count["made"] += 1
count["w"] = count["w"] * 2.0
WEIGHT, TWO = count["w"], 2.0
"""
SEEN = types.ModuleType("seen_by_bodies")
SEEN.count = count


@pytest.fixture
def modules(tmp_path, monkeypatch):
    (tmp_path / "with_a_body.py").write_text(BODY)
    (tmp_path / "that_fails.py").write_text(BODY + "raise ValueError\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, "counted_by_import", COUNTED)
    monkeypatch.setitem(sys.modules, "seen_by_bodies", SEEN)
    yield
    forget()


def forget():
    sys.modules.pop("with_a_body", None)


@pytest.mark.parametrize(
    "f", [imports_a_name, imports_no_name, imports_a_body, imports_a_body_that_fails]
)
def test_what_an_import_runs_is_seen_by_what_comes_after_it(modules, f):
    check_calls(f, forget)


@pytest.mark.parametrize("f", [imports_what_was_doubled, imports_what_was_computed])
def test_what_an_import_makes_of_traced_values_has_no_derivative(modules, f):
    for on in (False, True):
        with jit(on):
            for x in POINTS:
                forget()
                expected = f(x)
                forget()
                value, back = pullback(f, x)
                assert value == expected
                with pytest.raises(NoRuleError, match="code that is not traced has changed"):
                    back(1.0)


class Place:
    def __index__(self):
        count["w"] = count["w"] * 2.0
        return 1


PLACE = Place()


def rotated(x):
    count["w"] = x * x
    queue = collections.deque([1.0, x])
    queue.rotate(PLACE)
    return queue[0] * count["w"]


def test_the_index_of_an_object_is_asked_as_the_function_would():
    check_calls(rotated)


class Unpickled:
    def __getstate__(self):
        return {"v": 2}

    def __setstate__(self, state):
        count["made"] += 1


class Document(dict):
    def items(self):
        count["made"] += 1
        return dict.items(self)


def state_that_is_set(x):
    before = count["made"]
    pickle.loads(pickle.dumps(Unpickled()))
    return x * (count["made"] - before)


def items_that_are_encoded(x):
    before = count["made"]
    text = json.dumps([Document(a=1)])
    return x * (count["made"] - before) + len(text)


@pytest.mark.parametrize("f", [state_that_is_set, items_that_are_encoded])
def test_what_c_code_runs_once(f):
    check_calls(f)


GRID = np.empty(2, dtype=object)


@pytest.mark.parametrize("on", [True, False])
def test_deep_copies_of_arrays_of_objects(on):
    def f(x):
        mine, other = copy.deepcopy(GRID), copy.deepcopy({"grid": GRID})["grid"]
        mine[0].append(3.0)
        other[1][0] = 5.0
        return x * len(GRID[0]) + GRID[1][0] * mine[1][0]

    GRID[0], GRID[1] = [1.0], [2.0]
    with jit(on):
        for k in range(6):
            assert value_and_grad(f)(1.0 + k) == (5.0 + k, 1.0)
            assert [*GRID] == [[1.0], [2.0]]


def test_deep_copies_of_records_of_objects():
    records = np.zeros(2, dtype=[("a", float), ("b", object)])
    with pytest.raises(TraceError, match="records with objects"):
        value_and_grad(lambda x: (copy.deepcopy(records), x)[1])(1.0)

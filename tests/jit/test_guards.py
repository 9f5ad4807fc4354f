"""What a program asks before it answers, one guard after another, and what a call with other arguments ends in."""

import builtins
import collections
import contextlib
import functools
import subprocess
import sys
import textwrap
import types
import warnings

import numpy as np
import pytest
from worlds import jit

import wengert
from helpers import assert_same
from wengert import explain, grad, pullback, value_and_grad
from wengert.transforms import guards, slots

pytestmark = pytest.mark.usefixtures("programs_anew")


def warmed(f, *args, make=value_and_grad, times=4, **options):
    """What Wengert makes of ``f``, its program attached."""
    made = make(f, **options)
    for _ in range(times):
        made(*args)
    assert made.__self__.program is not None
    return made


def uncached(f, *args):
    """Value and gradient of a fresh trace."""
    with jit(False):
        return value_and_grad(f)(*args)


# ----------------------------------------------------------------------------------------- functions' code


def test_what_guards_look_at_lies_in_slots():
    """On each CPython that is supported: else calls go on as before, but take longer, and nobody would know."""
    assert slots.CODE == "__wengert_code__"
    assert slots.DTYPE == "__wengert_dtype__"

    def f():
        return 1

    x = np.ones(3, np.float32)
    for probe, name, attribute in ((f, slots.CODE, "__code__"), (x, slots.DTYPE, "dtype")):
        assert getattr(probe, name) is getattr(probe, attribute)
        with pytest.raises(AttributeError):
            setattr(probe, name, None)
        with pytest.raises(TypeError):
            type(probe).__dict__[name].__get__(1.0)


def test_a_slot_that_gives_something_else_is_not_used():
    for kind, attribute, probes in (
        (types.FunctionType, "__code__", slots.functions),
        (np.ndarray, "dtype", slots.arrays),
    ):
        known = slots.slot(kind, attribute, probes)
        assert known != attribute
        assert slots.is_right(known, attribute, probes)
        for name in ("__class__", "__doc__", "nothing_of_the_kind"):
            assert not slots.is_right(name, attribute, probes)
    assert not slots.is_right("__code__", "__code__", slots.functions)  # it may be written
    assert slots.slot(np.ndarray, "shape", slots.arrays) == "shape"  # is made anew each time
    assert not hasattr(np.ndarray, "__wengert_shape__")


WORLD = """
def helper(x): return x * x
def f(x): return helper(x) + x
def root(x): return x * x * 2.0
class Owner:
    def method(self, x): return x * x
    def __call__(self, x): return self.method(x) + x
"""


def make_case(kind):
    """A function of a number, the function whose code is replaced, and the new code."""
    scope = {}
    exec(WORLD, scope)
    other = (lambda x: x * x * x).__code__
    if kind == "root":
        return scope["root"], scope["root"], other
    if kind == "global helper":
        return scope["f"], scope["helper"], other
    if kind == "function passed on":
        return functools.partial(lambda g, x: g(x) * x, scope["helper"]), scope["helper"], other
    owner = scope["Owner"]
    thing, of_self = owner(), (lambda self, x: x * x * x).__code__
    if kind == "bound method":
        return thing.method, owner.method, of_self
    if kind == "method called":
        return (lambda x: thing.method(x) * x), owner.method, of_self
    if kind == "callable object":
        return thing, owner.__call__, of_self
    helper = types.FunctionType(scope["helper"].__code__, {})
    if kind == "closure":
        return (lambda x: helper(x) * x), helper, other
    assert kind == "default"

    def with_default(x, g=helper):
        return g(x) * x

    return with_default, helper, other


KINDS = (
    "root",
    "global helper",
    "function passed on",
    "bound method",
    "method called",
    "callable object",
    "closure",
    "default",
)


@pytest.mark.parametrize("name", ("__wengert_code__", "__code__"))
@pytest.mark.parametrize("kind", KINDS)
def test_code_that_is_replaced_in_place_is_noticed(kind, name, monkeypatch):
    """As IPython's autoreload replaces it, forth and back; whether it is read from its slot or not."""
    monkeypatch.setattr(guards, "CODE", name)
    f, changed, other = make_case(kind)
    first = changed.__code__
    answer = warmed(f, 1.5)
    assert f"{name} is not" in explain(answer).source
    before = answer(1.5)
    assert_same(before, uncached(f, 1.5))
    for code in (other, first, other):
        changed.__code__ = code
        for _ in range(3):
            assert_same(answer(1.5), uncached(f, 1.5))
    assert answer(1.5) != before


def test_programs_cost_audit_hooks_nothing():
    """Not a single event a call, whatever hooks are installed; and programs notice what they should all the same."""
    script = """
    import sys
    from wengert import value_and_grad

    seen = []
    watched = False
    sys.addaudithook(lambda event, args: seen.append((event, args)) if watched else None)

    def helper(x): return x * x
    def f(x): return helper(x) + x
    g = value_and_grad(f)
    for _ in range(4): g(2.0)
    watched = True
    for _ in range(100): g(2.0)
    watched = False
    assert not seen, seen[:3]
    f.__code__ = (lambda x: helper(x) * x).__code__
    for _ in range(3): assert g(2.0) == (8.0, 12.0), g(2.0)
    helper.__code__ = (lambda x: x).__code__
    for _ in range(3): assert g(2.0) == (4.0, 4.0), g(2.0)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


def test_the_same_code_with_other_globals():
    """A program of one function does not answer for another one that has its code but lives in another module."""
    code = compile("def f(x): return x * rate + helper(x)", "m", "exec").co_consts[0]

    def function(rate, power):
        scope = {"rate": rate, "helper": lambda x: x**power}
        return types.FunctionType(code, scope)

    f, g = function(2.0, 2), function(3.0, 3)
    a, b = warmed(f, 1.5), warmed(g, 1.5)
    for _ in range(3):
        assert_same(a(1.5), uncached(f, 1.5))
        assert_same(b(1.5), uncached(g, 1.5))
    for rate in range(40):  # whose globals may come to lie where those of an earlier one lay
        h = function(float(rate), rate % 5)
        made = value_and_grad(h)
        for _ in range(3):
            assert_same(made(1.5), uncached(h, 1.5))
        del h, made


def test_builtins_that_are_replaced():
    """In their module, where they hold for everybody, or by a global of the same name."""
    scope = {}
    exec("def f(x): return abs(x) * x + len(bin(5))", scope)
    f = scope["f"]
    answer = warmed(f, -1.5)
    known = answer(-1.5)
    for name, other in (("abs", lambda x: x * x), ("bin", lambda x: "b11")):
        original = getattr(builtins, name)
        try:
            setattr(builtins, name, other)
            changed = [answer(-1.5) for _ in range(3)]
        finally:
            setattr(builtins, name, original)
        scope[name] = other
        expected = uncached(f, -1.5)
        assert [*changed, answer(-1.5), answer(-1.5)] == [expected] * 5
        assert expected != known
        del scope[name]
        assert answer(-1.5) == answer(-1.5) == known


@pytest.mark.parametrize("fold", ["0", "1"])
def test_no_program_is_written_while_builtins_are_replaced(fold, monkeypatch):
    def f(x):
        return abs(x) * 3.0 + x * x * 2.0

    monkeypatch.setenv("WENGERT_FOLD", fold)
    answer = warmed(f, 1.5)
    for name, other in (("abs", lambda x: x * x), ("sum", lambda xs: 7), ("any", lambda xs: False)):
        with monkeypatch.context() as patch:
            patch.setattr(builtins, name, other)
            expected = (20.0, 20.0) if name == "abs" else (14.0, 11.0)
            found = [value_and_grad(f)(2.0) for _ in range(5)]
        assert found == [expected] * 5
    assert answer(2.0) == (14.0, 11.0)


def test_a_fresh_lambda_finds_the_program_of_an_earlier_one():
    for k in (2.0, 3.0, 4.0, 5.0):
        answer = value_and_grad(lambda x: x * k)
        assert answer(1.5) == (1.5 * k, k)
    assert explain(answer).splitlines()[1].endswith("2 calls traced")


# ------------------------------------------------------------------------------------------------- arrays


def sized(x):
    return np.sum(x * x) * np.size(x)


@pytest.mark.parametrize("name", ("__wengert_dtype__", "dtype"))
@pytest.mark.parametrize("shape", ((), (0,), (1,), (3,), (1, 3), (3, 1), (1, 1, 3), (3, 3)))
def test_arrays_of_another_shape_or_dtype(shape, name, monkeypatch):
    """Each shape as the known one, each of them as the next one; and in each dtype."""
    monkeypatch.setattr(guards, "DTYPE", name)
    x = np.full(shape, 1.5)
    answer = warmed(sized, x)
    assert f".{name} is not" in explain(answer).source
    for other in ((), (0,), (1,), (2,), (3,), (1, 3), (3, 1), (1, 1, 3), (3, 3), (2, 2)):
        for dtype in (np.float64, np.float32, np.longdouble, ">f8"):
            y = np.full(other, 2.5, dtype)
            assert_same(answer(y), uncached(sized, y))
    for y in (2.5, np.float64(2.5)):
        assert_same(answer(y), uncached(sized, y))
    with pytest.raises(wengert.WengertError, match="without a derivative"):
        answer(np.full(shape, 2.5).view(type("Kind", (np.ndarray,), {})))
    assert_same(answer(x), uncached(sized, x))


def laid_out(shape):
    """The same numbers in arrays that lie in memory in different ways."""
    x = np.random.default_rng(3).normal(size=shape)
    yield x
    yield np.asfortranarray(x)
    yield np.repeat(x, 2, axis=0)[::2]
    yield np.repeat(x, 2, axis=-1)[..., ::2]
    yield x[::-1].copy()[::-1]
    yield np.pad(x, [(0, 3)] * x.ndim)[tuple(slice(n) for n in shape)]
    raw = np.empty(x.nbytes + 1, np.uint8)[1:].view(float).reshape(shape)
    raw[...] = x
    yield raw


def one_product(m, v):
    return np.sum((m @ v) ** 2 * 1.1)


def rows(m, v):
    total = 0.0
    for row in m:
        total = total + (row @ v) * (row @ row)
    return total


def recurrent(m, v):
    h = np.tanh(m[0] @ m.T @ m)
    for row in m:
        h = np.tanh(h * row) + m.T @ (m @ h) * (v @ row)
    return np.sum(h)


@pytest.mark.parametrize("f", (one_product, rows, recurrent), ids=lambda f: f.__name__)
def test_products_are_the_same_to_the_bit_however_arrays_lie_in_memory(f):
    """The BLAS is reached in another way where arrays are straight, which gives other last bits where they are not."""
    known = [*laid_out((40, 30))], [*laid_out((30,))]
    answer = warmed(f, known[0][0], known[1][0], argnums=(0, 1))
    first = explain(answer).source
    assert ".dot(" in first.partition("quiet")[0]
    assert "flags.c_contiguous" in first
    for m in known[0]:
        for v in known[1]:
            for _ in range(3):
                value, _ = answer(m, v)
                assert value == f(m, v)


@pytest.mark.filterwarnings("ignore:Setting the:DeprecationWarning")
def test_an_array_that_is_changed_in_place():
    x = np.ones(4)
    answer = warmed(sized, x)
    x.shape = (2, 2)
    for _ in range(3):
        assert_same(answer(x), uncached(sized, x))
    x.shape = (4,)
    x.dtype = np.float32
    for _ in range(3):
        assert_same(answer(x), uncached(sized, x))


def test_dicts_of_arrays():
    """Other keys, another order, one that is missing, a dict that is no plain one."""

    def f(p):
        return p["a"].dot(p["b"]) * 2.0 + p["c"].sum()

    p = {k: np.arange(3.0) + i for i, k in enumerate("abc")}
    answer = warmed(f, p)
    worlds = (
        {k: p[k] for k in "cab"},
        {**p, "d": np.ones(2)},
        {"a": p["a"], "b": p["b"], "d": p["c"], "c": p["c"]},
        collections.OrderedDict(p),
        p,
    )
    for world in worlds:
        for _ in range(3):
            ours, plain = answer(world), uncached(f, world)
            assert_same(ours, plain)
            assert [*ours[1]] == [*plain[1]]
    odd = type("Odd", (dict,), {"__getitem__": lambda self, key: dict.__getitem__(self, "a")})(p)
    with pytest.raises(wengert.WengertError, match="Odd without a derivative"):
        answer(odd)
    with pytest.raises(KeyError, match="'c'"):
        answer({"a": p["a"], "b": p["b"]})
    assert_same(answer(p), uncached(f, p))


# ---------------------------------------------------------------------------------------------- arguments


def two(a, b):
    return a * b


def defaulted(a, b=2.0):
    return a * b


def keyworded(a, *, b=2.0):
    return a * b


def several(a, *more):
    return a * sum(more)


class Twice:
    def __call__(self, a, b):
        return a * b

    def method(self, a, b):
        return a * b


CALLS = (
    ((), {}),
    ((1.0,), {}),
    ((1.0, 2.0), {}),
    ((1.0, 2.0, 3.0), {}),
    ((1.0, 2.0, 3.0, 4.0), {}),
    ((1.0,), {"c": 2.0}),
    ((1.0, 2.0), {"c": 2.0}),
    ((1.0, 2.0), {"b": 2.0}),
    ((1.0, 2.0), {"rest": 2.0}),
    ((1.0,), {"b": 2.0}),
    ((1.0,), {"b": None}),
    ((1.0, "2"), {}),
)


@pytest.mark.parametrize(
    "f",
    (two, defaulted, keyworded, several, Twice(), Twice().method, functools.partial(two, b=3.0)),
)
@pytest.mark.parametrize("make", (grad, value_and_grad), ids=lambda g: g.__name__)
def test_wrong_arguments_end_as_in_plain_python(f, make):
    """With the very text, whether a program is attached or not; and the program goes on to answer right calls."""
    right = (1.5,) if f is keyworded or isinstance(f, functools.partial) else (1.5, 2.5)
    made = warmed(f, *right, make=make)
    known = made(*right)
    for args, kwargs in CALLS:
        try:
            f(*args, **kwargs)
        except TypeError as error:
            plain = str(error)
        else:
            plain = None
        for _ in range(2):
            if plain is not None and args:
                with pytest.raises(TypeError) as caught:
                    made(*args, **kwargs)
                told, expected = str(caught.value), plain
                if " got " in plain:  # of keywords; here CPython says which function it called
                    told, expected = (text.partition("()")[2] for text in (told, plain))
                assert told == expected
            elif args and all(type(x) is float for x in (*args, *kwargs.values())):
                value = made(*args, **kwargs)
                with jit(False):
                    assert_same(value, make(f)(*args, **kwargs))
            else:
                with pytest.raises((TypeError, wengert.WengertError)):
                    made(*args, **kwargs)
        assert made(*right) == known


@pytest.mark.parametrize(
    "names",
    (
        ("error", "errors", "missed"),
        ("rest", "named", "result"),
        ("quiet", "self", "x"),
        ("type", "len", "float"),
        ("abs", "math", "exp"),
    ),
)
def test_parameters_may_have_any_name(names):
    """Also those that programs use themselves."""
    scope = {"np": np}
    exec(
        "def g(x): return abs(x)\n"
        "def f({0}, {1}, {2}): return np.exp(g({0}) * {1} * {2}).sum()".format(*names),
        scope,
    )
    f, x = scope["f"], np.linspace(0.0, 1.0, 3)
    answer = warmed(f, x, x + 1.0, x + 2.0)
    assert hits(answer) == 2
    assert_same(answer(x, x, x), uncached(f, x, x, x))
    by_name = dict(zip(names[1:], (x + 1.0, x + 2.0), strict=True))
    if "self" not in by_name:
        for _ in range(4):
            assert_same(answer(x, **by_name)[0], f(x, **by_name))
    with pytest.warns(RuntimeWarning, match="overflow encountered in exp") as told:
        assert answer(x + 900.0, x + 1.0, x + 2.0)[0] == np.inf
    assert told[0].filename == "<string>"


# -------------------------------------------------------------------------------------------- error state


def exploding(x):
    return np.exp(x * x).sum()


def steep(x, slope, rate):
    return np.sum(x * slope * rate)


def test_forward_operations_warn_at_their_own_line():
    """And not more often than in plain Python; the reverse sweep is silent; the state is what it was."""
    x = np.linspace(0.5, 2.0, 4)
    answer = warmed(exploding, x)
    state = np.geterr()
    for _ in range(3):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            value, _ = answer(x * 100.0)
        assert value == np.inf
        assert [(w.filename, str(w.message)) for w in told] == [
            (__file__, "overflow encountered in exp")
        ]
        assert np.geterr() == state
    answer = warmed(steep, x, x + 1.0, x + 2.0)
    slope, rate = np.full(4, 1e200), np.full(4, 1e201)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = explain(answer).splitlines()[1].partition(" hit")[2]
        for _ in range(3):
            value, gradient = answer(x * 0.0, slope, rate)
            assert value == 0.0
            assert_same(gradient, np.full(4, np.inf))
        assert explain(answer).splitlines()[1].partition(" hit")[2] == before  # none was traced
        assert np.geterr() == state


@pytest.mark.parametrize("action", ("default", "always", "ignore", "error", "once", "module", None))
@pytest.mark.parametrize("category", (Warning, RuntimeWarning))
def test_filters_of_warnings(action, category):
    """Warnings are what they are in plain Python, whatever filters there are, set before or after a program is."""

    def outcome(function, x):
        with warnings.catch_warnings(record=True) as told:
            warnings.resetwarnings()
            if action is not None:
                warnings.simplefilter(action, category)
            try:
                value = function(x)
            except RuntimeWarning as error:
                value = str(error)
        value = value[0] if isinstance(value, tuple) else value
        return value, [(w.filename, w.category, str(w.message)) for w in told]

    x = np.linspace(0.5, 2.0, 4)
    answer = warmed(exploding, x)
    assert "guarded" in explain(answer).source
    plain = outcome(exploding, x * 100.0)
    calm = outcome(exploding, x)
    for _ in range(4):
        assert outcome(answer, x * 100.0) == plain
        assert outcome(answer, x) == calm


def inverted(x):
    return x * x * (~(x > 2.0))


def of_one_number(x):
    return x * x + (0.0 if np.isnan(np.var(np.array([x]), ddof=1)) else 1.0)


def of_none(x):
    return x * x + (0.0 if np.isnan(np.zeros(0).mean()) else 1.0)


def of_nothing_but_nan(x):
    return x if np.isnan(np.nanmax(np.array([np.nan]))) else 2.0 * x


@pytest.mark.parametrize("function", (inverted, of_one_number, of_none, of_nothing_but_nan))
@pytest.mark.parametrize("transform", (value_and_grad, jit))
@pytest.mark.parametrize("action", ("always", "default"))
def test_warnings_of_no_floating_point_event_are_given_once(function, transform, action):
    """Their line is the user's, and no recording or program of a call gives them a second time."""

    def outcome(f, x):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter(action)
            value = f(x)
        value = value[0] if isinstance(value, tuple) else value
        return value, [(w.filename, w.lineno, w.category, str(w.message)) for w in told]

    answer = transform(function)
    for k in range(8):
        assert outcome(answer, 1.3 + k) == outcome(function, 1.3 + k)


COMPLEX = np.array([1.0 + 1j, 2.0])


def cast_number(x):
    return x * float(COMPLEX.sum() * x)


def cast_array(x):
    return x * (COMPLEX * x).astype(float).sum()


@pytest.mark.parametrize("function", (cast_number, cast_array))
def test_a_warning_that_the_filters_show_once_is_given_once(function):
    """A program would warn from its own line, which no filter knows."""
    answer = value_and_grad(function)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        for k in range(8):
            answer(1.3 + k)
    assert [w.filename for w in told] == [__file__]


TOLD = []


def tell(*given):
    TOLD.append(len(given))


def of_state(x):
    with np.errstate(all="log", call=types.SimpleNamespace(write=tell)):
        return np.sqrt(x).sum()


@pytest.mark.parametrize("how", ("showwarning", "call", "log", "inside"))
@pytest.mark.parametrize("transform", (value_and_grad, jit, pullback))
def test_who_is_told_of_an_event_is_told_once(how, transform, monkeypatch):
    """Also where the very calls that are kept have events: later ones have none."""
    function = of_state if how == "inside" else exploding_root
    answer = transform(function) if transform is not pullback else lambda x: pullback(function, x)
    handler = {"call": tell, "log": types.SimpleNamespace(write=tell)}.get(how)
    TOLD.clear()
    with warnings.catch_warnings(), np.errstate(all=how if handler else "warn", call=handler):
        warnings.simplefilter("always")
        monkeypatch.setattr(warnings, "showwarning", tell)
        for events in (1, 1, 1, 1, 0, 0, 0, 0, 1):
            before = len(TOLD)
            answer(np.array([1.0, -1.0 if events else 1.0]))
            assert len(TOLD) == before + events


def exploding_root(x):
    return np.sqrt(x).sum()


WARNING = {
    "mean": np.mean, "var": np.var, "std": lambda x: np.std(x, ddof=1), "median": np.median, "method": np.ndarray.mean,
    "cov": lambda x: np.sum(np.cov(x)), "average": np.average, "nanmean": np.nanmean, "nanmax": np.nanmax,
    "nanmin": lambda x: np.nanmin(x, axis=0), "nanmedian": np.nanmedian, "nanstd": np.nanstd,
    "slice": lambda x: np.mean(x[3:]),
}  # fmt: skip


@pytest.mark.parametrize("varied", (False, True))
@pytest.mark.parametrize("data", ("none", "nan"))
@pytest.mark.parametrize("f", WARNING.values(), ids=WARNING)
def test_data_of_which_a_kept_program_would_warn(f, data, varied):
    """Programs are left before they warn; what is computed to find a slope never does."""
    answer = value_and_grad(f)
    for k in range(12):
        x = np.arange(4.0 + varied * (k % 4)) + k
        if k >= 8:
            x = x[: k % 2] if data == "none" else np.full(len(x), np.nan)
        told = []
        for function in (f, answer):
            with warnings.catch_warnings(record=True) as found, contextlib.suppress(ValueError):
                warnings.simplefilter("always")
                function(x)
            told.append([(w.filename, w.lineno, w.category, str(w.message)) for w in found])
        assert told[0] == told[1]


def test_warnings_of_others_are_left_alone():
    scope = {"np": np, "__name__": "somewhere"}
    exec("def f(x): return np.exp(x * 1000.0)", scope)
    warmed(exploding, np.ones(3))
    with pytest.warns(RuntimeWarning, match="overflow encountered in exp"):
        assert scope["f"](np.ones(3))[0] == np.inf
    with pytest.warns(RuntimeWarning, match="something encountered in nothing"):
        warnings.warn("something encountered in nothing", RuntimeWarning, stacklevel=1)


def test_a_program_whose_sweep_warns_is_watched_from_then_on():
    x = np.linspace(0.5, 2.0, 4)
    plain = uncached(steep, x, x, x + 1.0)
    first, second = value_and_grad(steep), value_and_grad(steep)
    for _ in range(3):
        first(x, x + 1.0, x + 2.0), second(x, x + 1.0, x + 2.0)
    (program,) = {first.__self__.program, second.__self__.program}
    slope, rate = np.full(4, 1e200), np.full(4, 1e201)
    told = explain(first).splitlines()[1].partition(" hit")[2]
    for answer in (first, second, first, second):  # warnings are errors in all tests
        for _ in range(3):
            assert_same(answer(x * 0.0, slope, rate)[1], np.full(4, np.inf))
            assert_same(answer(x, x.copy(), x + 1.0), plain)
    assert first.__self__.program is second.__self__.program is program
    assert explain(first).splitlines()[1].partition(" hit")[2] == told


@pytest.mark.parametrize("mode", ("ignore", "warn", "raise", "call", "print", "log"))
def test_what_the_user_wants_of_errors(mode, capfd):
    """Each way to treat them, at a call that goes well and at one that does not."""
    x, calls = np.linspace(0.5, 2.0, 4), []
    answer = warmed(exploding, x)
    log = types.SimpleNamespace(write=calls.append)
    handler = log if mode == "log" else lambda *given: calls.append(given)

    def outcome(function):
        calls.clear()
        with warnings.catch_warnings(record=True) as told, np.errstate(all=mode, call=handler):
            warnings.simplefilter("always")
            try:
                value = function(x * 100.0)
            except FloatingPointError as error:
                value = str(error)
            return value, [str(w.message) for w in told], [*calls], capfd.readouterr().out

    with np.errstate(all=mode, call=handler):
        assert_same(answer(x), uncached(exploding, x))
    plain = outcome(exploding)
    for _ in range(3):
        value, *told = outcome(answer)
        assert (value if isinstance(value, str) else value[0]) == plain[0]
        assert tuple(told) == plain[1:]
    with np.errstate(all=mode, call=handler):
        assert_same(answer(x), uncached(exploding, x))
    assert np.geterr()["over"] == "warn"


# --------------------------------------------------------------------------------------------------- hits


def hits(made):
    return int(explain(made).splitlines()[1].split(" hit")[0].split()[-1])


def test_hits_are_counted_one_by_one():
    """Also across an exchange of programs, and by several who share them."""

    def f(x):
        return x * x

    first, second = value_and_grad(f), value_and_grad(f)
    for _ in range(2):
        first(2.0)
    assert hits(first) == 0
    for n in range(1, 300):
        first(2.0)
        if n % 50 == 0:
            assert hits(first) == n
    for _ in range(7):
        second(2.0)
    assert hits(first) == 299 + 7
    x = np.ones(3)
    g = grad(lambda x: (x * x).sum() if isinstance(x, np.ndarray) else x * x)
    for _ in range(2):
        g(x), g(2.0)
    before = hits(g)
    for _ in range(10):
        g(x), g(2.0), g(2.0)
    assert hits(g) == before + 30


def test_pullbacks_look_at_code_too():
    def f(x):
        return x * x

    for _ in range(4):
        value, back = pullback(f, 3.0)
        assert (value, back(1.0)) == (9.0, (6.0,))
    f.__code__ = (lambda x: x + x).__code__
    for _ in range(4):
        value, back = pullback(f, 3.0)
        assert (value, back(1.0)) == (6.0, (2.0,))


# ------------------------------------------------------------------------------------- methods of classes, in C


def from_keys(x):
    held = dict.fromkeys(("a", "b"), x)
    return held["a"] * held["b"] + int.from_bytes(b"\x02", "big") * x


def test_a_method_of_a_class_is_the_same_though_it_is_another_object():
    assert dict.fromkeys is not dict.fromkeys
    both = warmed(from_keys, 3.0)
    before = both.__self__.program.hits
    assert both(4.0) == (24.0, 10.0)
    assert both.__self__.program.hits + both.__self__.hits > before


class Keyed(dict):
    pass


make = Keyed.fromkeys


def made_by_name(x):
    held = make(("a", "b"), x)
    return held["a"] * held["b"]


def test_a_method_of_another_class_is_another_one(monkeypatch):
    both = warmed(made_by_name, 3.0)
    assert both(4.0) == (16.0, 8.0)
    monkeypatch.setitem(globals(), "make", lambda keys, x: {"a": x, "b": 1.0})
    assert both(4.0) == (4.0, 1.0)

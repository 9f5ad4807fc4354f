"""What cannot be differentiated says so, by name and line, and leaves everything in order."""

import array
import asyncio
import collections
import concurrent.futures
import contextvars
import ctypes
import decimal
import fractions
import functools
import inspect
import json
import operator
import os
import pickle
import re
import struct
import threading
import warnings
from _statistics import _normal_dist_inv_cdf  # a function in C that has no rule

import numpy as np
import pytest

import wengert
from helpers import check, derivative
from wengert import (
    CotangentError,
    EscapeError,
    NoRuleError,
    TraceError,
    WengertError,
    grad,
    pullback,
    rrule,
    trace,
    value_and_grad,
)

V = np.array([0.5, -1.2, 2.0])


@pytest.fixture(autouse=True)
def next_call_works():
    yield
    assert grad(lambda x: x * x)(3.0) == 6.0
    assert trace(lambda x: x * x, 3.0).result is not None


def line_of(f, text):
    """The number of the line of `f` that contains `text`."""
    lines, start = inspect.getsourcelines(f)
    (found,) = [i for i, line in enumerate(lines) if text in line]
    return start + found


def test_every_error_is_a_wengert_error():
    for error in (CotangentError, EscapeError, NoRuleError, TraceError):
        assert issubclass(error, WengertError)
        assert getattr(wengert, error.__name__) is error


# --------------------------------------------------------------------------------------------- no rule


def quantile(p):
    q = p * 0.5
    z = _normal_dist_inv_cdf(q, 0.0, 1.0)  # here
    return z * z


def test_no_rule_names_callable_function_file_and_line():
    value, back = pullback(quantile, 0.5)
    assert value == quantile(0.5)
    with pytest.raises(NoRuleError) as error:
        back(1.0)
    message = str(error.value)
    assert "_normal_dist_inv_cdf" in message
    assert "quantile" in message.replace("quantile_", "")
    assert "test_failures.py" in message
    assert str(line_of(quantile, "# here")) in message
    assert "rrule" in message
    with pytest.raises(NoRuleError):
        grad(quantile)(0.5)


def test_no_rule_inside_library_code_names_the_line_there():
    import statistics

    with pytest.raises(NoRuleError, match=r"_normal_dist_inv_cdf"):
        grad(lambda p: statistics.NormalDist().inv_cdf(p))(0.3)


def test_no_rule_says_where_a_result_comes_from_and_shows_no_box():
    def f(x):
        return contextvars.Context().run(lambda v: x * v, x)

    with pytest.raises(
        NoRuleError, match=r"Context\.run returns what a function has computed"
    ) as error:
        grad(f)(2.0)
    assert "Box" not in str(error.value)


def test_no_rule_is_needed_where_no_gradient_flows():
    def f(p, x):
        if _normal_dist_inv_cdf(p, 0.0, 1.0) > 0:
            return x * 2
        return x * 3

    assert [grad(f, argnums=1)(p, 1.0) for p in (0.7, 0.3)] == [2.0, 3.0]
    assert grad(f)(0.7, 1.0) == 0.0
    value, back = pullback(lambda p: (_normal_dist_inv_cdf(p, 0.0, 1.0), p * 2), 0.3)
    assert back((None, 1.0)) == (2.0,)
    with pytest.raises(NoRuleError):
        back((1.0, 1.0))


def test_the_rule_that_the_message_asks_for():
    from wengert.rules.registry import rules

    @rrule(_normal_dist_inv_cdf)
    def inv_cdf(p, mu, sigma):
        z = _normal_dist_inv_cdf(p, mu, sigma)

        def pullback(dz):
            u = (z - mu) / sigma
            return dz * sigma * np.sqrt(2 * np.pi) * np.exp(u * u / 2), dz, dz * u

        return z, pullback

    try:
        check(quantile, 0.5)
        check(lambda p, m, s: _normal_dist_inv_cdf(p, m, s), 0.2, 1.5, 2.5)
        second = grad(grad(quantile))(0.5)
        assert second == pytest.approx(derivative(lambda t: grad(quantile)(0.5 + t)), rel=1e-8)
    finally:
        del rules[_normal_dist_inv_cdf]
    with pytest.raises(NoRuleError):
        grad(quantile)(0.5)


def test_a_solver_that_calls_blas():
    optimize = pytest.importorskip("scipy.optimize")

    def f(a, **options):
        return optimize.broyden1(
            lambda x: x + a * x**3 - 1.5, [0.3, 0.5, 0.6], alpha=0.2, **options
        ).sum()

    for options in ({}, {"max_rank": 3, "reduction_method": "svd"}):
        value, back = pullback(f, 2.0, **options)
        assert value == f(2.0, **options)
        with pytest.raises(NoRuleError, match=r"rrule\(scipy\.linalg\.blas\.d(axpy|nrm2)\)"):
            back(1.0)


# ------------------------------------------------------------------------------ not a numeric function


async def later(x):
    return x * x


def many(x):
    yield x
    yield x * x


async def stream(x):
    yield x


@pytest.mark.parametrize("f", [later, stream, many])
def test_asynchronous_functions_and_generators(f):
    for action in (lambda: pullback(f, 1.5), lambda: grad(f)(1.5), lambda: trace(f, 1.5)):
        with pytest.raises(TraceError) as error:
            action()
        message = str(error.value)
        assert f.__name__ in message
        assert "test_failures.py" in message
        assert re.search(r"async|generator|coroutine|iterat", message)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: many(x),
        lambda x: (y * x for y in (1.0, 2.0)),
        lambda x: [x, many(x)],
        lambda x: map(lambda y: y * x, [1.0, 2.0]),
        lambda x: zip([x], [x]),
        lambda x: iter([x, x]),
        lambda x: reversed([x]),
        lambda x: enumerate([x]),
        lambda x: {"a": filter(None, [x])},
    ],
)
def test_iterators_in_the_result(f):
    with pytest.raises(
        TraceError, match=r"(?i)generator|iterator|map|zip|list_|enumerate|filter|reversed"
    ):
        pullback(f, 1.5)


def test_coroutine_that_is_run_inside():
    def f(x):
        return asyncio.run(later(x))

    right_or_loud(f, 1.5)


@pytest.mark.parametrize("x", ["text", None, True, np.arange(3), b"bytes", np.int64(2)])
def test_gradient_of_what_is_no_number(x):
    for take in (grad, value_and_grad):
        with pytest.raises(WengertError) as error:
            take(lambda x, y: y * y)(x, 1.5)
        message = str(error.value)
        assert "argument" in message
        assert re.search(r"str|None|bool|int|bytes", message)


@pytest.mark.parametrize("argnums", [2, -3, (0, 5), "z", 1.5])
def test_wrong_argnums(argnums):
    with pytest.raises(
        (WengertError, TypeError, ValueError, IndexError), match=r"argnums|argument"
    ):
        grad(lambda x, y: x * y, argnums=argnums)(1.0, 2.0)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: V * x,
        lambda x: [x, x],
        lambda x: {"a": x},
        lambda x: "text",
        lambda x: None,
        lambda x: np.ones((1, 1)) * x,
        lambda x: (x, x),
    ],
)
def test_gradient_of_what_is_no_scalar(f):
    with pytest.raises(WengertError, match=r"scalar|number") as error:
        grad(f)(1.5)
    assert "pullback" in str(error.value)  # what to do instead
    with pytest.raises(WengertError):
        value_and_grad(f)(1.5)


@pytest.mark.parametrize("f", [3, None, "text", [1]])
def test_not_a_function(f):
    for action in (lambda: pullback(f, 1.0), lambda: grad(f)(1.0), lambda: trace(f, 1.0)):
        with pytest.raises((TypeError, WengertError), match="callable"):
            action()


# ----------------------------------------------------------------------------------- wrong cotangents

Z = np.zeros


@pytest.mark.parametrize(
    ("f", "wrong"),
    [
        (lambda x: x * 2, ["text", [1.0], (1.0,), {}, V, 1j, {"a": 1.0}]),
        (lambda x: V * x, [Z(4), Z((3, 1)), Z((1, 3)), 1.0, [1.0, 2.0, 3.0], "text", V * 1j]),
        (lambda x: V.astype(np.float32) * np.float32(2.0) * x.real, [Z(2), "text"]),
        (lambda x: (x, [x, {"a": V * x}]), [1.0, (1.0,), (1.0, [1.0]), (1.0, [1.0, {"b": V}])]),
        (lambda x: (x, [x, {"a": V * x}]), [[1.0, [1.0, {"a": V}]], (1.0, (1.0, {"a": V}))]),
        (lambda x: {"a": x, "b": x}, [{"a": 1.0}, {"a": 1.0, "b": 1.0, "c": 1.0}, [1.0, 1.0]]),
        (
            lambda x: V * x,
            [V.astype(object), V.astype(str), V.astype("m8[s]"), np.ma.array(V)],
        ),
        (lambda x: [x, "text", None], [[1.0, 2.0, None], [1.0, None, 3.0]]),
    ],
)
def test_wrong_cotangent(f, wrong):
    value, back = pullback(f, 1.5)
    for dy in wrong:
        with pytest.raises(CotangentError) as error:
            back(dy)
        assert "test_failures.py" in str(error.value)
        assert len(str(error.value)) > 20
    back(None)  # and still it works


def test_message_of_a_wrong_shape():
    def model(x):
        return V * x

    value, back = pullback(model, 1.5)
    with pytest.raises(CotangentError, match=r"(?s)model.*\(4,\)|\(3,\).*\(4,\)|\[4\]"):
        back(np.zeros(4))


def test_cotangents_that_fit():
    value, back = pullback(lambda x: x * 2.0, 1.5)
    for dy in (1.0, 1, np.float64(1.0), np.float32(1.0), np.array(1.0), True):
        assert back(dy) == (2.0,)
        assert type(back(dy)[0]) is float
    value, back = pullback(lambda v: v * 2.0, V.astype(np.float32))
    for dy in (np.ones(3), np.ones(3, np.float32), np.ones(3, int)):
        (dv,) = back(dy)
        assert dv.dtype == np.float32
        assert dv.tolist() == [2.0] * 3
    value, back = pullback(lambda z: z * 2j, 1.0 + 1j)
    assert back(1.0) == (2j,)
    value, back = pullback(lambda x: [x, (x * 2, None)], 1.5)
    assert back([None, (1.0, None)]) == (2.0,)
    assert back([1.0, None]) == (1.0,)
    assert back(None) == (0.0,)


def test_back_takes_one_argument():
    value, back = pullback(lambda x: x, 1.5)
    for arguments in ((), (1.0, 2.0)):
        with pytest.raises(TypeError):
            back(*arguments)


# ---------------------------------------------------------------------- a lost gradient is never a zero


def right_or_loud(f, *args):
    """The gradient of `f` is right, or an error of ours says why there is none."""
    expected = [
        derivative(lambda t, i=i: float(f(*args[:i], args[i] + t, *args[i + 1 :])), h=2**-7)
        for i in range(len(args))
    ]
    try:
        value, back = pullback(f, *args)
        gradients = back(1.0)
    except WengertError as error:
        assert "test_failures.py" in str(error), error
        return
    assert value == f(*args)
    assert gradients == pytest.approx(expected, rel=1e-6)


def by_struct(x):
    return struct.unpack("d", struct.pack("d", x))[0] * x


def by_pickle(x):
    return pickle.loads(pickle.dumps([x, 2.0]))[0] * x


def by_array(x):
    a = array.array("d", [x, 2.0])
    a[1] = x * 2
    a.append(x)
    return a[0] * a[1] + sum(a)


def by_ctypes(x):
    return ctypes.c_double(x).value * x


def by_buffer(x):
    a = np.array([x, 2.0 * x])
    return np.frombuffer(a.tobytes())[1] * x


def by_memoryview(x):
    a = np.array([x, 2.0])
    memoryview(a)[1] = x * 3
    return a[1] * x


def by_decimal(x):
    return float(decimal.Decimal(x) * 2) * x


def by_fraction(x):
    return float(fractions.Fraction(x) * 2) * x


def by_eval(x):
    return eval("x * y", {"x": x, "y": x * 2})


def by_eval_of_locals(x):
    y = x * 2
    return eval("x * y") + y - y


def by_exec(x):
    scope = {"x": x}
    exec("def f(z):\n    return z * x * x\nw = f(x)", scope)
    return scope["w"]


def by_compiled_function(x):
    scope = {}
    exec("def f(z):\n    return z * z * z", scope)
    return scope["f"](x)


def by_thread(x):
    results = []
    thread = threading.Thread(target=lambda: results.append(x * x))
    thread.start()
    thread.join()
    return results[0] * x


def by_pool(x):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return sum(pool.map(lambda y: y * x, [x, x * 2]))


def by_vectorize(x):
    return np.vectorize(lambda y: y * x)(np.array([x, 1.0])).sum()


def by_frompyfunc(x):
    return np.frompyfunc(lambda a, b: a * b, 2, 1)(np.array([x, 1.0]), x).sum()


def by_fromfunction(x):
    return np.fromfunction(lambda i, j: i * x + j * x * x, (2, 2)).sum()


def by_fromiter(x):
    return np.fromiter((x * i for i in range(4)), dtype=float).sum() * x


def by_object_array(x):
    a = np.array([x, None], dtype=object)
    a[1] = x * 2
    return a[0] * a[1]


def by_nditer(x):
    a = np.array([x, 2.0, x * x])
    total = 0.0
    for item in np.nditer(a):
        total = total + float(item) * x
    return total


def by_ndenumerate(x):
    return sum(i[0] * item * x for i, item in np.ndenumerate(np.array([x, 2.0, x * x])))


def by_regular_expression(x):
    found = []
    re.sub("a", lambda match: found.append(x * len(match[0])) or "b", "aaa")
    return sum(found) * x


def by_structured_array(x):
    a = np.zeros(2, dtype=[("p", float), ("q", float)])
    a["p"] = x
    a[1]["q"] = x * 2
    return a["p"].sum() * a["q"].sum()


def by_item_of_view(x):
    a = np.zeros(4)
    b = np.lib.stride_tricks.as_strided(a, (2,), (16,))
    b[1] = x
    return a[2] * x


def by_ctypes_pointer(x):
    a = np.array([x, 2.0])
    return a.ctypes.data_as(ctypes.POINTER(ctypes.c_double))[0] * x


def by_view_of_bytes(x):
    a = np.array([x, 2.0])
    return a.view(np.int64).view(float)[0] * x


def by_setattr_of_type(x):
    class Thing:
        value = 0.0

    type.__setattr__(Thing, "value", x)
    object.__setattr__(thing := Thing(), "other", x * 2)
    return Thing.value * thing.other


def by_unbound_dunder(x):
    return float.__mul__(x, x) + x.__add__(1.0) + float.__radd__(x, 2.0) + x.__rmul__(2)


def by_int_of_float(x):
    return (x / 2).__float__() * x.__pow__(2)


def by_list_subclass(x):
    class Stack(list):
        def __getitem__(self, i):
            return super().__getitem__(i) * 2

        def append(self, item):
            super().append(item * x)

    s = Stack([x])
    s.append(x)
    s.extend([x, x])
    return s[0] * s[1] + sum(s)


def by_float_subclass(x):
    class Metres(float):
        def __mul__(self, other):
            return Metres(float(self) * other)

    return Metres(x) * x + 1.0


def by_weak_references(x):
    import weakref

    class Thing:
        def __init__(self, x):
            self.x = x

    thing = Thing(x)
    return weakref.ref(thing)().x * weakref.proxy(thing).x


def by_format(x):
    return float(f"{1.0:.3f}") * x + len(f"{x:8.3f}") * x


def by_json(x):
    return json.loads(json.dumps({"a": 2.0}))["a"] * x


def by_context_variable(x):
    variable = contextvars.ContextVar("variable")
    variable.set(x)
    return contextvars.copy_context().run(lambda: variable.get() * x)


def by_c_callback(x):
    total = []
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
    kind(lambda i: total.append(x * i) or 0)(3)
    return total[0] * x


def by_queue(x):
    import queue

    q = queue.Queue()
    q.put(x * 2)
    q.put((x, x))
    return q.get() * sum(q.get())


def by_string_io(x):
    import io

    table = np.loadtxt(io.StringIO("1.0 2.0\n3.0 4.0"))
    return (table * x).sum() * x


def by_bisect_key(x):
    import bisect

    i = bisect.bisect([x, 2 * x, 3 * x], 4.0, key=lambda v: v * x)
    return x * i


def by_sum_start(x):
    return sum([[x], [x * 2]], [])[1] * x


def by_slots_descriptor(x):
    class Slotted:
        __slots__ = ("a",)

    s = Slotted()
    Slotted.a.__set__(s, x)
    return Slotted.a.__get__(s) * x


def by_frame(x):
    import sys

    y = x * 2
    return sys._getframe().f_locals["y"] * x + 0 * y


ESCAPES = [f for name, f in list(globals().items()) if name.startswith("by_")]


@pytest.mark.parametrize("f", ESCAPES, ids=lambda f: f.__name__)
def test_right_or_loud(f):
    right_or_loud(f, 1.3)


@pytest.mark.parametrize("f", ESCAPES, ids=lambda f: f.__name__)
def test_value_is_that_of_plain_python_in_any_case(f):
    expected = f(1.3)
    try:
        value, _ = pullback(f, 1.3)
    except WengertError:
        return
    assert value == expected
    assert type(value) is type(expected)


# ---------------------------------------------------------------------------- after an error, all is well


def test_interrupted_function():
    def f(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        grad(f)(1.0)


def test_error_in_a_nested_gradient():
    def f(x):
        try:
            return grad(quantile)(x)
        except NoRuleError:
            return x * x

    assert grad(f)(0.5) == 1.0


def test_error_of_a_nested_function_is_caught_inside():
    def f(x):
        try:
            value, back = pullback(lambda y: y / (x - x), x)
        except ZeroDivisionError:
            return x * 3

    assert grad(f)(0.5) == 3.0


# ------------------------------------------------------------------------------------------------- json


@pytest.mark.parametrize("options", [{}, {"indent": 2}, {"sort_keys": True}], ids=str)
def test_json_takes_traced_numbers_as_str_does(options):
    texts = []

    def f(x, table):
        data = {"b": [x, 2 * x, (x, None)], "a": table, "n": 1}
        texts.append(json.dumps(data, **options) + json.dumps(x, **options))
        return x * x if "2.5" in texts[-1] else x

    arguments = 1.25, {"k": [0.5, {"l": 3.5}]}
    f(*arguments)
    assert value_and_grad(f)(*arguments) == (1.25**2, 2.5)
    assert texts[0] == texts[1]
    values = [op.value for op in trace(f, *arguments) if op.kind == "guard"]
    assert {1.25, 2.5, 0.5, 3.5} <= set(values)


def test_what_json_cannot_write_is_its_own_error():
    with pytest.raises(TypeError, match="ndarray is not JSON serializable"):
        grad(lambda a: len(json.dumps(a)) * a[0])(V)


# ------------------------------------------------------------------------- threads that the function starts


class Model:
    def __init__(self, w):
        self.w = w

    def score(self, x=2.0):
        return self.w * x


def map_in_pool(model):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:  # here
        return sum(pool.map(model.score, [1.0, 2.0]))


def submit_to_pool(model):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(model.score).result()


def start_thread(model):
    found = []
    thread = threading.Thread(target=lambda: found.append(model.w * 2))
    thread.start()
    thread.join()
    return found[0]


def write_in_thread(model):
    def work():
        model.w = model.w * 3

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return model.w


def submit_to_processes(model):
    with concurrent.futures.ProcessPoolExecutor(1) as pool:
        return pool.submit(model.score).result()


@pytest.mark.parametrize(
    "f", [map_in_pool, submit_to_pool, start_thread, write_in_thread, submit_to_processes]
)
def test_work_in_another_thread_or_process(f):
    """The thread would see the plain attributes of the model, and the gradient would be zero."""
    model = Model(1.5)
    with pytest.raises(
        TraceError, match=r"(start|submit) has work done in another thread"
    ) as error:
        pullback(f, model)
    assert f"in {f.__name__}" in str(error.value)
    assert vars(model) == {"w": 1.5}


def test_work_in_a_pool_of_the_outside():
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()
        with pytest.raises(TraceError, match=r"submit has work done in another thread"):
            grad(lambda x: pool.submit(Model(x).score).result())(1.5)


def test_a_traced_value_in_a_thread_that_was_there_before():
    import queue

    todo, done = queue.SimpleQueue(), queue.SimpleQueue()

    def worker():
        try:
            done.put(todo.get()[0] * 2)
        except Exception as error:
            done.put(error)

    def f(x):
        todo.put(Model([x]).w)
        found = done.get()
        if isinstance(found, Exception):
            raise found
        return found

    thread = threading.Thread(target=worker)
    thread.start()
    with pytest.raises(WengertError):
        grad(f)(1.5)
    todo.put([1.0])
    thread.join()


def test_two_threads_at_once():
    def f(x):
        for _ in range(200):
            x = x * 0.99 + 0.01
        return x

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = list(pool.map(grad(f), [1.0, 2.0, 3.0, 4.0]))
    assert found == pytest.approx([0.99**200] * 4)


def test_errors_say_which_function():
    def broken(x):
        return many(x)

    with pytest.raises(TraceError, match="broken|many"):
        grad(broken)(1.0)


def test_recursive_structure_in_the_result():
    def f(x):
        items = [x]
        items.append(items)
        return items

    try:
        value, back = pullback(f, 1.5)
    except WengertError:
        return
    assert value[1] is value
    assert type(value[0]) is float


class Answering:
    """What CPython asks for is a number, which is wrong."""

    def __init__(self, x):
        self.x = x

    def __iter__(self):
        return self.x

    def __fspath__(self):
        return self.x

    def __length_hint__(self):
        return self.x

    def __index__(self):
        return self.x

    def __bytes__(self):
        return self.x


COMPLAINTS = {
    "getattr": lambda x: getattr(1, x),
    "type": lambda x: type(x, (), {}),
    "super": lambda x: super(x),
    "Counter": lambda x: collections.Counter(Answering(x)),
    "fspath": lambda x: os.fspath(Answering(x)),
    "length_hint": lambda x: operator.length_hint(Answering(x)),
    "index": lambda x: hex(Answering(x)),
    "bytes": lambda x: bytes(Answering(x)),
}


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("name", COMPLAINTS)
def test_a_message_names_the_class_of_the_value_and_no_box(name, on):
    f = COMPLAINTS[name]
    with wengert.jit(on), pytest.raises(TypeError) as plain:
        f(1.5)
    with wengert.jit(on), pytest.raises(TypeError) as traced:
        grad(f)(1.5)
    assert str(traced.value) == str(plain.value) and "float" in str(plain.value)


# ------------------------------------------------------------------- what C code says of the class of a value


class Box:
    """Of the user's own."""

    size = property(len)


class Guessing:
    def __init__(self, held):
        self.held = held

    def __length_hint__(self):
        return self.held

    def __iter__(self):
        return iter([1.0])


def code_set_to(x):
    def f():
        pass

    f.__dict__ = x


WRONG = {
    "print": lambda x: print("a", sep=x),
    "print end": lambda x: print("a", end=x),
    "setattr": lambda x: setattr({}, x, 1),
    "setattr of two": lambda x: setattr(x, 1, 1),
    "setattr of a list": lambda x: setattr(x, [x], 1),
    "getattr": lambda x: getattr(1, x),
    "getattr of a list": lambda x: getattr(x, [x]),
    "hasattr": lambda x: hasattr(1, x),
    "delattr": lambda x: delattr(Box(), x),
    "object.__setattr__": lambda x: object.__setattr__(Box(), x, 1),
    "object.__getattribute__": lambda x: object.__getattribute__(x, "nothing"),
    "object.__delattr__": lambda x: object.__delattr__(Box(), x),
    "type.__setattr__": lambda x: type.__setattr__(Box, x, 1),
    "format": lambda x: [1].__format__(x),
    "format of it": lambda x: object.__format__(x, "s"),
    "str": lambda x: str(b"", x),
    "str of two": lambda x: str(b"", "ascii", x),
    "find": lambda x: "abc".find("a", x),
    "find in bytes": lambda x: b"abc".find(b"a", x),
    "index": lambda x: [1, 2].index(2, x),
    "unbound index": lambda x: list.index([1, 2], 2, x),
    "__setitem__": lambda x: [1, 2].__setitem__(x, 1),
    "item of an array": lambda x: array.array("d", [1.0])[x],
    "slice of an array": lambda x: array.array("d", [1.0])[x:2],
    "array times": lambda x: array.array("d", [1.0]) * x,
    "property": lambda x: Box.size.__set__(x, 1),
    "property deleted": lambda x: Box.size.__delete__(x),
    "class": lambda x: setattr(Box(), "__class__", x),
    "dict": lambda x: setattr(Box(), "__dict__", x),
    "dict of a function": code_set_to,
    "getsource": lambda x: inspect.getsource(x) if type(x) is float else x.nothing,
    "warn": lambda x: warnings.warn("a", x),
    "fromhex": lambda x: bytes.fromhex(x) if type(x) is float else float.fromhex(x),
    "float.fromhex": lambda x: float.fromhex(x),
    "vars": lambda x: vars(x),
    "cmp_to_key": lambda x: functools.cmp_to_key(x, x),
    "type.__call__": lambda x: type.__call__(x),
    "join": lambda x: "".join(["a", x]),
    "list": lambda x: list(Guessing(x)),
    "starred": lambda x: print(*x, 1, sep=x),
    "users": lambda x: str(b"", Box(), x),
    "users and it": lambda x: sorted([Box(), x]),
    "users set": lambda x: setattr(Box(), x, 1),
}


@pytest.mark.parametrize("asks", [True, False], ids=["derivative", "constant"])
@pytest.mark.parametrize("x", [1.5, np.array([1.5, 2.5])], ids=["float", "array"])
@pytest.mark.parametrize("name", WRONG)
def test_c_code_names_the_class_of_a_value_as_in_plain_python(name, x, asks):
    f = WRONG[name]
    caught = []

    def g(x, y):
        try:
            f(x)
        except Exception as error:
            caught.append((type(error), error.args))
            raise
        return y

    for run in (g, grad(g, argnums=0 if asks else 1)):
        try:
            run(x, 2.0)
        except Exception as error:
            assert caught[-1] == (type(error), error.args)
        else:
            caught.append(None)
    assert caught[0] == caught[1]


def test_a_user_may_write_what_he_likes_about_a_value():
    def f(x):
        raise TypeError("no Box", "Box", len)

    with pytest.raises(TypeError) as error:
        grad(f)(1.0)
    assert error.value.args == ("no Box", "Box", len)

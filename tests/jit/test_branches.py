"""Functions that decide: what each way gives, and that no call is traced any more."""

from __future__ import annotations

import gc
import math
import random
import re
import sys
import threading
import warnings
import weakref

import numpy as np
import pytest

import wengert.tracer.run
from helpers import assert_close, assert_same
from wengert import clear_cache, explain, grad, jit, value_and_grad

pytestmark = pytest.mark.usefixtures("programs_anew")


@pytest.fixture
def traces(monkeypatch):
    """A list that grows by the name of each function that is traced."""
    real, seen = wengert.tracer.run.run, []

    def run(f, *args, **kwargs):
        seen.append(getattr(f, "__name__", type(f).__name__))
        return real(f, *args, **kwargs)

    for name, module in list(sys.modules.items()):
        if name.startswith("wengert") and getattr(module, "run", None) is real:
            monkeypatch.setattr(module, "run", run)
    return seen


def settle(f, calls, traces, rounds=6):
    """Compare each call with one that is traced; then one program answers all calls, and none is traced."""
    g = value_and_grad(f)
    for _ in range(rounds):
        for args in calls:
            with jit(False):
                wanted = value_and_grad(f)(*args)
            value, slope = g(*args)
            assert_same(value, wanted[0])
            assert_close(slope, wanted[1])
    traces.clear()
    code = g.func.__code__
    found = []
    for args in calls * 2:
        found.append(g(*args))
        assert g.func.__code__ is code
    assert not traces
    for args, got in zip(calls * 2, found, strict=True):
        assert_same(got[0], f(*args))
        with jit(False):
            assert_close(got[1], value_and_grad(f)(*args)[1])


def is_of_all_ways(g):
    """Whether the program that is kept first stands for all ways."""
    return "for all ways" in str(explain(g)).partition("program ")[2].partition("\n")[0]


def test_two_paths(traces):
    settle(lambda x: x * x if x > 1 else x * x * x, [(2.0,), (0.5,)], traces)


def test_a_third_trace_is_not_needed(traces):
    g = grad(lambda x: x * x if x > 1 else x * x * x)
    for x in (2.0, 2.0, 0.5):
        g(x)
    traces.clear()
    for i in range(50):
        assert g(2.0 + i) == 4.0 + 2 * i
        assert g(0.5) == 0.75
    assert not traces
    assert is_of_all_ways(g)


def three(x):
    y = np.sin(x) * x
    if y > 1:
        return y * y
    if x < -1:
        return y + x
    return y * x


def nested(x, y):
    a = x * y
    if a > 0:
        if x > 1:
            return a * x
        b = a + y
        return b * b if b > 3 else b
    c = a * a
    return c * y if y > 1 else c


def by_number(x, n):
    if n == 0:
        return x
    if n == 1:
        return x * x
    return x * n if n == 2 else x**n


def arrays(v, k):
    w = np.exp(v) * v
    u = w[1:]
    s = u.sum()
    if s > 3:
        w = w * w
        return (w * v).sum() * k
    t = np.tanh(w)
    return (t * u.max()).sum() + s


def writes(v, k):
    w = v * 2.0
    w[0] = k
    if k > 1:
        w += v
        w[1:] *= k
        return (w * w).sum()
    w[1] = w[0] * k
    return w.sum()


def loop(x):
    while x < 10:
        x = x * x + 1
    return x


PATHS = [
    (three, [(1.5,), (-3.0,), (0.5,)]),
    (nested, [(2.0, 1.0), (0.5, 1.0), (0.9, 3.0), (-1.0, 2.0), (-1.0, 0.5)]),
    (by_number, [(1.5, 0), (1.5, 1), (1.5, 2), (1.5, 3)]),
    (arrays, [(np.array([1.0, 2.0, 0.5]), 2.0), (np.array([0.1, 0.2, -0.5]), 2.0)]),
    (writes, [(np.array([1.0, 2.0, 0.5]), 2.0), (np.array([1.0, 2.0, 0.5]), 0.5)]),
]


@pytest.mark.parametrize(("f", "calls"), PATHS, ids=[f.__name__ for f, _ in PATHS])
@pytest.mark.parametrize("seed", range(3))
def test_paths(f, calls, seed, traces):
    calls = calls.copy()
    random.Random(seed).shuffle(calls)
    settle(f, calls, traces)


def test_loops_of_other_counts():
    g = value_and_grad(loop)
    for x in (0.0, 1.5, 3.0, 11.0) * 5:
        with jit(False):
            wanted = value_and_grad(loop)(x)
        assert_same(g(x), wanted)


def test_decisions_on_strings_and_ints_are_chains(traces):
    def f(x, names):
        total = 0.0
        for name in names:
            i = int(x[name])
            total = total + x[name] * (i, 2.0, 5.0)[i]
        return total

    settle(f, [({"a": v}, ["a"]) for v in (0.5, 1.5, 2.5)], traces)


def test_all_paths_are_one_program():
    g = grad(three)
    for x in (1.5, -3.0, 0.5) * 4:
        g(x)
    assert is_of_all_ways(g)
    source = explain(g).source.partition("self.missed")[0]
    assert len(re.findall(r"= sin\d*\(x\)", source)) == 1


def test_effects_happen_once(traces):
    log = []

    def f(x):
        log.append("begin")
        y = x * x
        if y > 1:
            log.append("large")
            return y * 3.0
        log.append("small")
        return y

    g = grad(f)
    for x in (2.0, 0.5) * 5:
        log.clear()
        assert g(x) == (12.0 if x > 1 else 1.0)
        assert log == ["begin", "large" if x > 1 else "small"]
    assert len(traces) == 3


def test_a_branch_prints(capsys, traces):
    def f(x):
        if x > 1:
            print("large", x)
            return x * x
        return x

    g = grad(f)
    for x in (2.0, 0.5, 3.0) * 4:
        g(x)
        assert capsys.readouterr().out == (f"large {x}\n" if x > 1 else "")
    assert len(traces) == 3


def test_an_effect_that_fails_is_no_miss(traces):
    class Log(list):
        pass

    def f(x, sink):
        if x > 1:
            print("x", file=sink)
            return x * x
        return x

    class Sink:
        def write(self, text):
            if self.closed:
                raise OSError("closed")

    sink = Sink()
    sink.closed = False
    g = grad(f)
    for x in (2.0, 0.5) * 4:
        g(x, sink)
    sink.closed = True
    with pytest.raises(OSError):
        g(2.0, sink)
    assert g(0.5, sink) == 1.0


box = {"k": 3.0, "n": 2}


def test_a_branch_reads_what_the_other_does_not(traces):
    box.update(k=3.0, n=2)

    def f(x):
        if x > 1:
            return x * box["k"] * box["n"]
        return x * x

    g = grad(f)
    for x in (2.0, 0.5) * 4:
        g(x)
    assert len(traces) == 3
    box["k"] = 5.0
    assert (g(2.0), g(0.5)) == (10.0, 1.0)
    assert len(traces) == 3
    box["n"] = 4
    assert (g(0.5), g(2.0)) == (1.0, 20.0)
    assert len(traces) <= 4
    box["k"] = np.ones(2)
    with pytest.raises(Exception, match="real number"):
        g(2.0)
    assert g(0.5) == 1.0
    del box["k"]
    with pytest.raises(KeyError):
        g(2.0)
    assert g(0.5) == 1.0


def test_the_arguments_of_a_branch_may_be_of_another_kind(traces):
    def f(x, y):
        return x * x if x > 1 else x * y

    g = grad(f)
    for args in ((2.0, None), (0.5, 3.0)) * 5:
        assert g(*args) == (4.0 if args[0] > 1 else 3.0)
    assert g(np.float64(2.0), None) == 4.0
    assert g(0.5, np.float64(2.0)) == 2.0


def test_variables_are_set_by_the_branch_that_is_taken():
    count = {"a": 0}
    total = 0.0

    def f(x):
        nonlocal total
        y = x * x
        if y > 1:
            total += y
        else:
            count["a"] += 1
        return y

    g = grad(f)
    for x in (2.0, 0.5) * 5:
        g(x)
    assert count == {"a": 5}
    assert total == 20.0


def test_an_array_outside_is_written_by_one_branch():
    state = np.zeros(3)

    def f(v):
        w = v * v
        if w.sum() > 1:
            state[0] += w[0]
            return w.sum()
        return (w * state).sum()

    before = state.copy()
    with jit(False):
        wanted = [value_and_grad(f)(v * np.ones(3)) for v in (2.0, 0.1) * 5]
    held = state.copy()
    state[:] = before
    g = value_and_grad(f)
    for v, want in zip((2.0, 0.1) * 5, wanted, strict=True):
        assert_same(g(v * np.ones(3)), want)
    assert_same(state, held)


def test_draws_go_on_where_a_path_is_left(traces):
    def f(x, rng):
        k = rng.random()
        return x * k if k > 0.5 else x * x * k

    ours, plain = random.Random(3), random.Random(3)
    g = value_and_grad(f)
    for _ in range(30):
        got = g(2.0, ours)
        with jit(False):
            assert got == value_and_grad(f)(2.0, plain)
        assert ours.getstate() == plain.getstate()


def test_nan_takes_the_path_that_python_takes(traces):
    calls = [(math.nan,), (2.0,), (0.5,), (math.inf,), (-0.0,), (0.0,)]
    f = lambda x: x * x if x > 1 else x * 3 if x <= 1 else x + 1  # noqa: E731
    g = value_and_grad(f)
    for args in calls * 4:
        with jit(False):
            wanted = value_and_grad(f)(*args)
        assert_same(g(*args), wanted)
    assert is_of_all_ways(g)


def test_warnings_come_from_the_path_that_is_taken():
    def f(v):
        if v[0] > 1:
            return np.log(v - 2.0).sum()
        return (v * v).sum()

    g = grad(f)
    good, bad, other = np.array([3.0, 4.0]), np.array([3.0, 1.0]), np.array([0.5, 1.0])
    before = np.geterr()
    for v in (good, other) * 4:
        g(v)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        g(other)
        assert not seen
        g(bad)
    assert [w.category for w in seen] == [RuntimeWarning]
    assert np.geterr() == before
    for v in (good, other) * 2:
        with jit(False):
            wanted = grad(f)(v)
        assert_same(g(v), wanted)
    assert np.geterr() == before


def test_an_exception_of_one_branch_is_raised():
    def f(x, y):
        return x / y if x > 1 else x * y

    g = grad(f)
    for args in ((2.0, 1.0), (0.5, 1.0)) * 4:
        g(*args)
    with pytest.raises(ZeroDivisionError):
        g(2.0, 0.0)
    assert g(0.5, 0.0) == 0.0


def test_why_a_program_was_left():
    g = grad(by_number)
    for n in (0, 1, 0, 1, 0, 1):
        g(1.5, n)
    box = [1.5]
    h = grad(lambda x: x * x if x > 1 else x * box[0])
    for x in (2.0, 0.5) * 3:
        h(x)
    box[0] = None
    with pytest.raises(TypeError):
        h(0.5)
    assert "box[0] is no longer a float" in str(explain(h))
    assert h(2.0) == 4.0


def test_threads_go_different_ways():
    g = value_and_grad(nested)
    calls = PATHS[1][1] * 20
    with jit(False):
        wanted = {args: value_and_grad(nested)(*args) for args in PATHS[1][1]}
    wrong = []

    def work(seed):
        mine = calls.copy()
        random.Random(seed).shuffle(mine)
        wrong.extend(args for args in mine if g(*args) != wanted[args])

    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in workers:
        t.start()
    for t in workers:
        t.join()
    assert not wrong


def test_keywords_and_more_arguments(traces):
    def f(x, *more, k=1.0):
        return x * k if x > 1 else sum(more, x) * k * k

    g = grad(f)
    for x in (2.0, 0.5) * 5:
        assert g(x, 1.0, 2.0, k=3.0) == (3.0 if x > 1 else 9.0)
    assert len(traces) == 3
    with pytest.raises(TypeError):
        g(2.0, 1.0, 2.0, z=3.0)
    assert g(2.0) == 1.0


def test_aux_and_several_argnums(traces):
    def f(x, y):
        return (x * y, {"way": "large", "x": x}) if x > 1 else (x * y * y, ["small", y])

    g = value_and_grad(f, argnums=(0, 1), has_aux=True)
    for x in (2.0, 0.5) * 5:
        with jit(False):
            wanted = value_and_grad(f, argnums=(0, 1), has_aux=True)(x, 3.0)
        assert_same(g(x, 3.0), wanted)
    assert len(traces) == 3 + 10


def test_large_arrays_are_not_kept():
    def f(v):
        w = v * v
        return w.sum() if v[0] > 0 else (w * v).sum()

    grad(f)(
        np.ones(100_000)
    )  # the pullbacks that are compiled once for all functions are another matter
    clear_cache()
    g = grad(f)
    held = []
    for sign in (1.0, -1.0) * 4:
        v = np.full(100_000, sign)
        held.append(weakref.ref(v))
        assert_close(g(v), 2 * v if sign > 0 else 3 * v * v)
    del v
    gc.collect()
    assert not any(ref() is not None for ref in held)


# ---------------------------------------------------------------------------------------------- after loops


def after_a_root(a):
    x = a
    while abs(x * x - a) > 1e-9 * a:
        x = 0.5 * (x + a / x)
    if x > 1.5:
        return x * a
    if a > 1.0:
        return math.sin(x)
    return x - a


def after_arrays(a):
    x = np.array([a, a * a, 0.5])
    for _ in range(20):
        x = np.tanh(x) * 1.1
    y = x[0] * x[1]
    if y > 0.2:
        return x.sum()
    if a > 0.5:
        return (x * x).sum()
    return y * a


def after_a_list(a):
    path, x = [], a
    for k in range(40):
        x = x * 0.9 if x > 0.4 else x + 0.3
        path.append(x * k)
    total = sum(path)
    if total > 420.0:
        return total * a
    return path[3] - total


def between_loops(a):
    x = a
    while x * x > 0.01:
        x = x * 0.7
    y = x + a
    if y > 0.5:
        while y > 0.0002:
            y = y * 0.6 - 0.0001
    return x * y


def after_loops_in_one_another(a):
    s = 0.0
    for k in range(5):
        x = a + k
        while x > 0.3:
            x = x * 0.7
        s = s + x
    return s * a if s > 1.1 else s - a


@pytest.mark.parametrize(
    "f", [after_a_root, after_arrays, after_a_list, between_loops, after_loops_in_one_another]
)
def test_paths_that_part_after_a_loop(f, traces):
    """The loops of two runs are the same loop: calls of other lengths are not traced."""
    cached = value_and_grad(f)
    rng = np.random.default_rng(1)
    for x in rng.uniform(0.3, 4.0, size=24).tolist():
        before = len(traces)
        value, gradient = cached(x)
        made = len(traces) - before
        assert_same(value, f(x))
        with jit(False):
            np.testing.assert_allclose(gradient, cached(x)[1], rtol=1e-10, atol=1e-13)
    assert not made


def test_loops_that_only_look_the_same():
    def f(x, power):
        y = x
        for _ in range(20):
            y = y * 0.9 + 0.1 * x if power == 1 else y * 0.9 + 0.2 * x
        return y * y if y > 0.5 else y + x

    cached = value_and_grad(f)
    for x, power in [(0.3, 1), (0.3, 2), (0.9, 1), (0.9, 2)] * 4:
        value, gradient = cached(x, power)
        assert_same(value, f(x, power))
        with jit(False):
            np.testing.assert_allclose(gradient, cached(x, power)[1], rtol=1e-12)

"""The cache itself: when calls are traced, when they are not, and that it stays bounded."""

import copy
import functools
import gc
import os
import random
import sys
import threading
import tracemalloc
import types
import warnings
import weakref

import numpy as np
import pytest
from worlds import clear_cache, jit

import wengert
import wengert.tracer.run
from helpers import assert_close, assert_same, numeric_grad
from wengert import explain, grad, pullback, rrule, value_and_grad
from wengert.rules.registry import rules
from wengert.transforms import dispatch
from wengert.transforms.cache import MOST_PROGRAMS, lock

pytestmark = pytest.mark.usefixtures("programs_anew")
explained = pytest.mark.skipif(not hasattr(wengert, "explain"), reason="no explain yet")


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


@pytest.fixture
def limits():
    """The settings, put back afterwards."""
    before = dict(vars(wengert.settings))
    yield wengert.settings
    vars(wengert.settings).update(before)


def calls_traced(traces, calls):
    """How many of the calls are traced."""
    before = len(traces)
    for call in calls:
        call()
    return len(traces) - before


FEW = 12  # traces until what changes at every call has become dynamic


# --------------------------------------------------------------------------------------- hits and misses


@pytest.mark.parametrize("ask", [grad, value_and_grad, pullback])
def test_a_repeated_call_is_not_traced(traces, ask):
    def f(x, v):
        return (v * x).sum() * x

    for i in range(20):
        args = 1.0 + i, np.arange(3.0) + i
        ask(f, *args)[1](1.0) if ask is pullback else ask(f)(*args)
    assert len(traces) <= 3


def test_a_fresh_lambda_hits(traces):
    total = 0.0
    for i in range(20):
        k = i * 1.0
        total += grad(lambda x: x * x * k)(3.0)
    assert total == sum(6.0 * i for i in range(20))
    assert len(traces) <= 3


def test_a_fresh_object_hits(traces):
    class Model:
        def __init__(self, k):
            self.k = k

        def loss(self, x):
            return x * x * self.k

        def __call__(self, x):
            return self.loss(x)

    for i in range(10):
        assert grad(Model(float(i)).loss)(3.0) == 6.0 * i
    assert len(traces) <= 3
    for i in range(10):
        assert grad(Model(float(i)))(3.0) == 6.0 * i
    assert len(traces) <= 6


def test_a_fresh_partial_hits(traces):
    def f(x, k):
        return x * x * k

    for i in range(10):
        assert grad(functools.partial(f, k=float(i)))(3.0) == 6.0 * i
    assert len(traces) <= 3


def test_new_parameters_of_the_same_structure_hit(traces):
    def f(p):
        return (p["w"][0] * p["b"]["c"]).sum() * p["k"]

    for i in range(10):
        p = {"w": [np.ones(3) * i], "b": {"c": np.arange(3.0)}, "k": float(i)}
        grad(f)(p)
    assert len(traces) <= 3


def test_paths_are_dispatched(traces):
    def f(x):
        return x * 2 if x < 1 else x * 3 if x < 2 else x * 4

    for _ in range(4):
        for x, slope in ((0.5, 2.0), (1.5, 3.0), (2.5, 4.0)):
            assert grad(f)(x) == slope
    before = len(traces)
    for _ in range(10):
        for x, slope in ((0.5, 2.0), (1.5, 3.0), (2.5, 4.0)):
            assert grad(f)(x) == slope
    assert len(traces) == before


def test_shapes_and_dtypes_are_dispatched(traces):
    def f(v):
        return (v * v).sum()

    kinds = [np.ones(3), np.ones(4), np.ones((2, 2)), np.ones(3, "f4"), np.ones((2, 3)).T]
    for _ in range(4):
        for v in kinds:
            assert_same(grad(f)(v), 2 * v)
    before = len(traces)
    for _ in range(10):
        for v in kinds:
            grad(f)(v)
    assert len(traces) == before


def test_another_trip_count_of_a_while_is_not_traced_for_ever(traces, limits):
    def f(x):
        y, n = x, 0
        while y < 1e6:
            y, n = y * x, n + 1
        return y

    rng = random.Random(0)
    inputs = [rng.uniform(1.05, 20.0) for _ in range(60)]
    for x in inputs:
        value, slope = value_and_grad(f)(x)
        with jit(False):
            expected = value_and_grad(f)(x)
        assert value == expected[0]
        assert slope == pytest.approx(expected[1], rel=1e-12)
    traces.clear()
    assert calls_traced(traces, [lambda x=x: grad(f)(x + 0.001) for x in inputs]) <= 3


def test_no_retrace_where_only_a_method_of_another_thing_changes(traces):
    class A:
        k = 2.0

    def f(x):
        return x * A.k

    for _ in range(4):
        grad(f)(1.5)
    before = len(traces)
    for i in range(20):
        A.unused = i
        A.k = float(i)
        assert grad(f)(1.5) == i
    assert len(traces) - before <= 2


def test_second_order_hits(traces):
    def f(x):
        return x**3 * k

    for i in range(12):
        k = float(i)
        assert grad(grad(f))(2.0) == 12.0 * i
    assert len(traces) <= 4
    first = grad(f)
    for i in range(12):
        k = float(i)
        assert first(2.0) == 12.0 * i
        assert grad(first)(2.0) == 12.0 * i
        assert grad(grad(first))(2.0) == 6.0 * i


# ------------------------------------------------------------------------ values that change at every call


def changing_global():
    scope = {"n": 0}
    exec("def f(x):\n    global n\n    n += 1\n    return x * n\n", scope)
    return lambda i: grad(scope["f"])(1.5) == float(i)


def changing_attribute():
    holder = types.SimpleNamespace(n=0)

    def f(x):
        holder.n += 1
        return x * holder.n

    return lambda i: grad(f)(1.5) == float(i)


def changing_argument():
    return lambda i: grad(lambda x, n: x * n)(1.5, i) == float(i)


def changing_cell():
    n = 0

    def f(x):
        nonlocal n
        n += 1
        return x * n

    return lambda i: grad(f)(1.5) == float(i)


def changing_power():
    return lambda i: grad(lambda x, n: x * 0.5**n)(1.5, i) == 0.5**i


def index_into_an_array():
    data = np.arange(500.0)
    return lambda i: grad(lambda x, n: x * data[n])(1.5, i) == float(i)


def index_into_a_list():
    data = [float(i) for i in range(500)]
    return lambda i: grad(lambda x, n: x * data[n])(1.5, i) == float(i)


def minibatch():
    data = np.arange(4000.0)

    def f(w, n):
        return (data[n * 4 : n * 4 + 4] * w).sum()

    return lambda i: grad(f)(1.5, i) == data[i * 4 : i * 4 + 4].sum()


def minibatch_in_a_list():
    batches = [np.arange(4.0) + i for i in range(500)]
    return lambda i: grad(lambda w, n: (batches[n] * w).sum())(1.5, i) == batches[i].sum()


def schedule():
    holder = types.SimpleNamespace(step=0)

    def f(x):
        rate = 0.1 / (1 + 0.01 * holder.step) if holder.step < 10_000 else 0.0
        holder.step += 1
        return x * rate

    return lambda i: grad(f)(1.5) == 0.1 / (1 + 0.01 * (i - 1))


def a_float_of_an_int():
    return lambda i: grad(lambda x, n: x * float(n) + math_of(n))(1.5, i) == float(i)


def math_of(n):
    return n / 2


def growing_log():
    log = []

    def f(x):
        log.append(x)
        return x * 2

    return lambda i: grad(f)(1.5 + i) == 2.0 and len(log) == i


def growing_length():
    log = []

    def f(x):
        log.append(0)
        return x * len(log)

    return lambda i: grad(f)(1.5) == float(i)


CHANGING = [
    changing_global,
    changing_attribute,
    changing_argument,
    changing_cell,
    changing_power,
    index_into_an_array,
    index_into_a_list,
    minibatch,
    minibatch_in_a_list,
    schedule,
    a_float_of_an_int,
]


@pytest.mark.parametrize("make", CHANGING)
def test_values_that_change_at_every_call(make, traces):
    step = make()
    for i in range(1, 101):
        assert step(i), i
    assert len(traces) <= FEW
    before = len(traces)
    for i in range(101, 201):
        assert step(i), i
    assert len(traces) == before


def test_a_list_that_grows_and_is_read_whole():
    items = [1.0]

    def f(x):
        return x * sum(items)

    for i in range(80):
        assert grad(f)(1.5) == float(i + 1)
        items.append(1.0)


def test_the_fallback_ends_when_the_world_has_settled(traces):
    text = "a"

    def f(x):
        return x * len(text)

    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        for i in range(60):
            text = "a" * (i + 1)
            assert grad(f)(1.5) == float(i + 1)
    for _ in range(3000):
        grad(f)(1.5)
    before = len(traces)
    for _ in range(50):
        assert grad(f)(1.5) == 60.0
    assert len(traces) == before


def test_what_became_dynamic_may_still_decide(traces):
    def f(x, n):
        return x * n if n % 7 else x * 100

    for i in range(60):
        assert grad(f)(1.5, i) == (float(i) if i % 7 else 100.0)


def test_what_became_dynamic_may_change_its_type(traces):
    def f(x, n):
        return x * n / 2

    for i in range(1, 30):
        assert_same(value_and_grad(f)(2.0, i), (2.0 * i / 2, i / 2))
    for n in (1.5, True, 10**30, np.int64(3), -1, 0, np.float64(2.0), 7):
        with jit(False):
            expected = value_and_grad(f)(2.0, n)
        assert_same(value_and_grad(f)(2.0, n), expected)


LOG = []


def appends_to_a_global(x):
    LOG.append(x)
    return x * x


@pytest.mark.parametrize("kind", ("global", "closure", "helper"))
def test_a_list_that_is_only_appended_to_is_no_reason_to_trace(traces, kind):
    """However long it is: nobody looks at what it holds."""
    log = [0.5] * 10_000
    LOG[:] = log

    def appends(x):
        log.append(x)
        return x * x

    f = {
        "global": appends_to_a_global,
        "closure": appends,
        "helper": lambda x: appends(x) + appends_to_a_global(x),
    }[kind]
    for i in range(150):
        assert grad(f)(1.5 + i) == (2 if kind == "helper" else 1) * (3.0 + 2 * i)
    assert len(traces) <= 2
    for items, used in ((LOG, kind != "closure"), (log, kind != "global")):
        assert items[10_000:] == [1.5 + i for i in range(150 if used else 0)]
    with jit(False):
        ops = wengert.trace(f, 1.5).ops
    assert len(ops) < 12  # and no input for what the list holds


def test_a_list_that_is_appended_to_and_read():
    log = []

    def f(x):
        log.append(x)
        return x * log[-1]

    for i in range(150):
        assert grad(f)(1.5 + i) == 3.0 + 2 * i
    assert log == [1.5 + i for i in range(150)]


# ----------------------------------------------------------------------------------- what is kept as well


def test_an_error_state_of_the_functions_own_is_kept(traces):
    def f(v, x):
        with np.errstate(divide="ignore"):
            y = np.log(v)
            with np.errstate(invalid="ignore"):
                z = np.sqrt(v - 1)
        return (y * z).sum() * x

    before = np.geterr()
    slope = value_and_grad(f, (0, 1))
    for v in (np.full(3, 2.0), np.full(3, 3.0)):
        slope(v, 1.5)
    traces.clear()
    for k in range(2, 6):
        v = np.full(3, float(k))
        value, (by_v, by_x) = slope(v, 1.5)
        assert value == f(v, 1.5)
        assert_close(by_x, float(value / 1.5))
        root = np.sqrt(v - 1)
        assert_close(by_v, 1.5 * (root / v + np.log(v) / (2 * root)))
    slope(np.array([2.0, 0.5, 0.0]), 1.5)  # whose errors are ignored
    assert not traces
    assert np.geterr() == before
    with pytest.warns(RuntimeWarning, match="overflow"):
        slope(np.full(3, 1e308), 1e308)
    assert len(traces) == 1 and np.geterr() == before


def test_methods_found_by_super_and_equivalents_of_mutators_are_kept(traces):
    class A:
        def m(self, x):
            return x * x

    class B(A):
        def m(self, x):
            y = np.empty(3)
            y.fill(x)
            np.putmask(y, np.arange(3) < 1, [2.0, 3.0])
            np.place(y, np.arange(3) > 1, [x * x])
            return super().m(x) + y.sum()

    assert calls_traced(traces, [lambda: grad(B().m)(3.0)] * 10) <= 2
    assert grad(B().m)(3.0) == 13.0


def test_a_log_density_of_scipy_is_kept(traces):
    stats = pytest.importorskip("scipy.stats")

    def f(x, mu, sigma):
        return stats.norm.logpdf(x, mu, sigma).sum()

    slope = value_and_grad(f, (1, 2))
    for k in range(6):
        x = np.linspace(-1.0, 1.0 + k, 5)
        value, (by_mu, by_sigma) = slope(x, 0.1 * k, 1.5)
        assert value == f(x, 0.1 * k, 1.5)
        assert_close(by_mu, float(((x - 0.1 * k) / 1.5**2).sum()))
        assert_close(by_sigma, float((((x - 0.1 * k) ** 2 / 1.5**3) - 1 / 1.5).sum()))
    assert len(traces) <= 2


def test_a_function_under_lru_cache_is_asked_by_programs(traces):
    @functools.lru_cache
    def weight(n):
        asked.append(n)
        return n * k

    asked, k = [], 2.0

    def f(x):
        return x * x * weight(3) * weight(int(x))

    for _ in range(4):
        grad(f)(3.0)
    assert calls_traced(traces, [lambda: grad(f)(3.0)] * 5) == 0
    k = 5.0
    assert grad(f)(3.0) == 6.0 * 36.0 and asked == [3]
    hits = weight.cache_info().hits
    grad(f)(3.0)
    assert weight.cache_info() == (hits + 2, 1, 128, 1)
    weight.cache_clear()
    assert grad(f)(3.0) == 6.0 * 225.0 and asked == [3, 3]


def test_a_program_is_left_where_a_cache_would_ask_its_body(traces):
    """What the body does comes before what is read after it."""
    state, fails = {"a": 1.0}, False

    @functools.lru_cache(maxsize=4, typed=True)
    def table(n, *, k=1):
        state["a"] += 1.0
        if fails:
            raise ValueError
        return 2.0 * n

    def f(x):
        before = state["a"]
        try:
            y = table(3, k=2) * table(1.0) * x
        except ValueError:
            y = -x
        state["a"] *= 0.5
        return y * before + state["a"]

    def results(call):
        nonlocal fails
        state["a"] = 1.0
        table.cache_clear()
        found = []
        for k in range(16):
            if k in (10, 13):
                table.cache_clear()
            fails = k == 13
            found.append((call(1.0 + k), state["a"], table.cache_info()))
        return found

    expected = results(f)
    assert results(lambda x: value_and_grad(f)(x)[0]) == expected
    table.cache_clear()
    for _ in range(5):
        value_and_grad(f)(1.0)
    assert calls_traced(traces, [lambda: value_and_grad(f)(2.0)] * 5) == 0


def test_a_cache_of_what_the_user_makes_hashes_of_is_not_looked_into():
    class Key:
        def __hash__(self):
            asked.append(self)
            return 7

    @functools.lru_cache
    def weight(key):
        return 2.0

    def f(x):
        return x * weight(key)

    asked, key, counts = [], Key(), []
    for k in range(8):
        before = len(asked)
        assert value_and_grad(f)(1.0 + k) == (2.0 + 2.0 * k, 2.0)
        counts.append(len(asked) - before)
    assert counts == [1] * 8


# ----------------------------------------------------------------------------------------------- bounds


def memory_of(step, calls):
    """How much the traced memory grows over the calls; a table of Python's own may grow in them, but not twice."""
    for i in range(300):
        step(i)
    gc.collect()
    tracemalloc.start()
    try:
        for i in range(300, 400):
            step(i)
        gc.collect()
        grown = []
        while not grown or (len(grown) < 2 and grown[0] > 50_000):
            before = tracemalloc.get_traced_memory()[0]
            for i in range(400, 400 + calls):
                step(i + calls * len(grown))
            gc.collect()
            grown.append(tracemalloc.get_traced_memory()[0] - before)
        return min(grown)
    finally:
        tracemalloc.stop()


CALLS = int(os.environ.get("WENGERT_CALLS", "20000"))


def by_gradient(i):
    return STEP(1.5 + i)


STEP = value_and_grad(lambda x: x * x + 1)


def by_fresh_lambda(i):
    return grad(lambda x: x * i * 1.0)(1.5)


def by_pullback(i):
    return pullback(lambda x: x * x, 1.5)[1](1.0)


@pytest.mark.parametrize("step, share", [(by_gradient, 1), (by_fresh_lambda, 4), (by_pullback, 10)])
def test_memory_stays_flat(step, share):
    assert memory_of(step, CALLS // share) < 100_000


def test_memory_stays_flat_with_functions_made_by_exec(limits, monkeypatch):
    limits.programs = 16
    monkeypatch.setattr(wengert.tracer.rewrite, "MOST_KEPT", 64)  # twins are bounded as well

    def step(i):
        scope = {}
        exec(f"def f(x): return x * {i}.0 + x", scope)
        for _ in range(3):
            assert grad(scope["f"])(1.5) == i + 1.0

    assert memory_of(step, 200) < 400_000


def test_memory_stays_flat_with_classes_made_anew():
    def step(i):
        class A:
            k = 2.0

            def __call__(self, x):
                return x * self.k

        for _ in range(3):
            assert grad(A())(1.5) == 2.0

    assert memory_of(step, 150) < 600_000


def test_arguments_and_results_are_not_kept_alive():
    class Model:
        def __init__(self):
            self.w = np.ones(1000)

        def __call__(self, v):
            return (self.w * v).sum()

    def f(p):
        return (p["w"] * k).sum()

    k = np.ones(1000)
    step = value_and_grad(f)
    for _ in range(4):
        w, model = np.ones(1000), Model()
        answers = step({"w": w}), value_and_grad(model)(w)
    alive = [weakref.ref(x) for x in (w, model, model.w, answers[0][1]["w"], answers[1][1])]
    del w, model, answers
    gc.collect()
    assert [r() for r in alive] == [None] * len(alive)


def test_what_a_closure_held_is_not_kept_alive():
    class Big:
        k = 2.0

    def make():
        big = Big()
        return (lambda x: x * big.k), weakref.ref(big)

    for _ in range(4):
        f, alive = make()
        assert grad(f)(1.5) == 2.0
    del f
    gc.collect()
    clear_cache()
    gc.collect()
    assert alive() is None


def test_paths_are_bounded(monkeypatch):
    monkeypatch.setenv("WENGERT_FOLD", "0")

    def f(x):
        for i in range(20):
            if x < i:
                return x * i
        return x

    for _ in range(4):
        for i in range(1, 20):
            assert grad(f)(i - 0.5) == float(i)
    assert f"{MOST_PROGRAMS} programs" in str(explain(grad(f)))


def test_programs_are_bounded(limits):
    limits.programs = 4
    scopes = [{} for _ in range(12)]
    for i, scope in enumerate(scopes):
        exec(f"def f(x): return x * {i}.0", scope)
    for _ in range(3):
        for i, scope in enumerate(scopes):
            for _ in range(3):
                assert grad(scope["f"])(1.5) == float(i)


def test_clear_cache(traces):
    def f(x):
        return x * x

    step = grad(f)
    for _ in range(5):
        step(1.5)
    before = len(traces)
    wengert.clear_cache()
    assert step(1.5) == 3.0
    assert len(traces) == before + 1
    for _ in range(5):
        assert step(2.5) == 5.0
    assert len(traces) <= before + 3


def test_jit_off_traces_each_time(traces):
    def f(x):
        return x * x

    step = grad(f)
    for _ in range(5):
        step(1.5)
    before = len(traces)
    with jit(False):
        for _ in range(5):
            assert step(1.5) == 3.0
        assert len(traces) == before + 5
        with jit(True):
            for _ in range(5):
                step(1.5)
            assert len(traces) <= before + 8
        inside = len(traces)
        step(1.5)
        assert len(traces) == inside + 1
    after = len(traces)
    for _ in range(5):
        step(1.5)
    assert len(traces) <= after + 3


def test_jit_is_put_back_after_an_exception(traces):
    step = grad(lambda x: x * x)
    with pytest.raises(KeyError), jit(False):
        raise KeyError
    for _ in range(5):
        step(1.5)
    before = len(traces)
    step(2.5)
    assert len(traces) == before


def test_the_environment_variable_switches_it_off():
    import subprocess

    code = (
        "import wengert, wengert.tracer.run as r, sys\n"
        "real, n = r.run, []\n"
        "def run(*a, **k):\n    n.append(1)\n    return real(*a, **k)\n"
        "for m in list(sys.modules.values()):\n"
        "    if getattr(m, '__name__', '').startswith('wengert') and getattr(m, 'run', None) is real: m.run = run\n"
        "step = wengert.grad(lambda x: x * x)\n"
        "for _ in range(10): step(1.5)\n"
        "print(len(n))\n"
    )
    counts = []
    for value in ("0", "1"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "WENGERT_JIT": value},
            capture_output=True,
            text=True,
            check=True,
        )
        counts.append(int(done.stdout))
    assert counts[0] == 10
    assert counts[1] <= 3


# ------------------------------------------------------------------------------------- what can go wrong


def test_an_interrupted_call_leaves_the_cache_whole():
    """An exception out of an effect, in the middle of a cached call."""

    class Full(Exception):
        pass

    class Log:
        room = 3

        def write(self, x):
            if self.room == 0:
                raise Full(x)
            self.room -= 1

    log = Log()

    def f(x):
        log.write(x)
        return x * x

    for _ in range(3):
        assert grad(f)(1.5) == 3.0
    for _ in range(3):
        with pytest.raises(Full):
            grad(f)(1.5)
    log.room = 5
    assert grad(f)(1.5) == 3.0
    assert log.room == 4


def test_a_timer_may_interrupt_a_cached_call():
    signal = pytest.importorskip("signal")
    if not hasattr(signal, "setitimer"):
        pytest.skip("no timers here")

    class Late(Exception):
        pass

    def late(*_):
        raise Late

    def f(v):
        for _ in range(20):
            v = np.sin(v)
        return v.sum()

    v = np.linspace(0, 1, 50_000)
    step = value_and_grad(f)
    expected = [step(v) for _ in range(3)][0]
    before = signal.signal(signal.SIGALRM, late)
    stopped = 0
    try:
        for i in range(10):
            signal.setitimer(signal.ITIMER_REAL, 0.001 + i * 0.0003)
            try:
                step(v)
            except Late:
                stopped += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert_same(step(v), expected)
    assert stopped


def test_recursion_depth_is_as_before():
    def f(x):
        return x * x

    limit = sys.getrecursionlimit()
    for _ in range(5):
        grad(f)(1.5)
        assert sys.getrecursionlimit() == limit


def test_one_gradient_function_in_many_threads(traces):
    """The function that is called may be exchanged for a program while another thread is in it."""

    def f(x):
        return x * k if x > 0 else -x

    k = 3.0
    step, wrong = value_and_grad(f), []

    def work(sign):
        for i in range(400):
            x = sign * (1.0 + i)
            expected = (x * 3.0, 3.0) if x > 0 else (-x, -1.0)
            if step(x) != expected:
                wrong.append(x)
            if i % 100 == 50:
                wengert.clear_cache()

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(s,)) for s in (1, -1, 1, -1)]
        [t.start() for t in threads]
        [t.join() for t in threads]
    finally:
        sys.setswitchinterval(before)
    assert not wrong


def test_programs_are_taken_off_a_function_by_one_thread_at_a_time():
    """Both the function's code and the names that it runs with change then."""

    def f(x):
        return x * x

    step = grad(f)
    state = step.__self__
    [step(2.0) for _ in range(5)]
    with lock:
        other = threading.Thread(target=state.detach)
        other.start()
        other.join(0.2)
        assert other.is_alive()
    other.join()
    assert step(3.0) == 6.0


def test_a_program_that_was_dropped_while_it_was_tried_is_not_attached(monkeypatch):
    """Another thread registers a rule, which clears the cache: what the trial answers is the last of the old rule."""

    def f(x):
        return cubed(x)

    def cubed(x):
        return x**3

    rrule(cubed, pure=True)(lambda x: (cubed(x), lambda d: (d,)))
    step = grad(f)
    state = step.__self__
    [step(2.0) for _ in range(5)]
    state.detach()
    attach = type(state).attach

    def late(self, program):
        monkeypatch.undo()
        rule = lambda x: (cubed(x), lambda d: (d * 5.0,))  # noqa: E731
        other = threading.Thread(target=rrule(cubed, pure=True), args=(rule,))
        other.start()
        other.join()
        attach(self, program)

    monkeypatch.setattr(type(state), "attach", late)
    try:
        assert [step(2.0) for _ in range(5)] == [1.0, 5.0, 5.0, 5.0, 5.0]
    finally:
        del rules[cubed]


def test_a_program_that_runs_keeps_the_meaning_of_its_names(monkeypatch):
    """Two programs that were made at the same time may have chosen the same names for different things."""

    def f(x):
        return np.tanh(x) * x

    step = grad(f)
    state = step.__self__
    expected = [step(np.float64(2.0)) for _ in range(5)][-1]
    first = state.program
    other = copy.copy(first)
    other.namespace = {name: object() for name in first.namespace}
    other.code = first.code.replace(co_name="other")
    running = {first.code}
    monkeypatch.setattr(dispatch, "codes_that_run", lambda: running)
    state.attach(other)
    assert state.program is None  # it is tried by itself, with its own names
    assert first.namespace.items() <= step.func.__globals__.items()
    running.clear()
    state.attach(other)
    assert state.program is other and other.namespace.items() <= step.func.__globals__.items()
    state.attach(first)
    assert step(np.float64(2.0)) == expected and state.program is first


def test_a_big_program_is_right():
    """Thousands of operations, most of whose names are used again."""

    def f(x, v):
        y = x
        for i in range(400):
            y = math_step(y, v[i % 7], i)
        return y

    def math_step(y, c, i):
        return y * 0.9 + c * np.sin(y) - 0.01 * i * c * c

    v = np.linspace(0.1, 0.7, 7)
    step = value_and_grad(f, (0, 1))
    with jit(False):
        expected = step(0.3, v)
    for _ in range(4):
        value, gradients = step(0.3, v)
        assert_same(value, expected[0])
        assert_close(gradients, expected[1])
    assert expected[1][1] == pytest.approx(numeric_grad(f, 0.3, v, argnum=1), rel=1e-6)


# --------------------------------------------------------------------------------------------- explain


@explained
def test_explain_tells_programs_guards_hits_and_misses():
    scale = 2.0

    def helper(x):
        return x * scale

    def f(x):
        if x > 1:  # the decision
            return helper(x)
        return x * 5

    line = f.__code__.co_firstlineno + 1
    for x in (2.0, 2.5, 2.0, 0.5, 0.6, 0.5, 2.0):
        grad(f)(x)
    text = str(wengert.explain(f, 2.0))
    assert isinstance(text, str)
    assert "f" in text and os.path.basename(__file__) in text
    for word in ("program", "guard", "hit", "miss", "compile"):
        assert word in text.lower(), f"no {word!r} in:\n{text}"
    assert f":{line}" in text or f"line {line}" in text, text
    assert "helper" in text


@explained
def test_explain_of_a_function_that_was_never_called():
    assert wengert.explain(lambda x: x * x, 2.0)


@explained
def test_explain_says_why_nothing_is_kept():
    items = [1.0]

    def f(x):
        return x * sum(items)

    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        for _ in range(60):
            grad(f)(1.5)
            items.append(1.0)
    text = str(wengert.explain(f, 1.5)).lower()
    assert "items" in text, text


@explained
def test_explain_has_no_effect_on_the_world():
    log = []

    def f(x):
        log.append(x)
        return x * 2

    for _ in range(3):
        grad(f)(1.5)
    before = len(log)
    wengert.explain(f, 1.5)
    assert len(log) - before in (0, 1)  # it may have to run the function once
    assert grad(f)(1.5) == 2.0


@explained
def test_explain_counts():
    def f(x):
        return x * x

    step = grad(f)
    for _ in range(10):
        step(1.5)
    numbers = [
        int(n)
        for n in "".join(c if c.isdigit() else " " for c in str(wengert.explain(f, 1.5))).split()
    ]
    assert any(n in numbers for n in (8, 9)), wengert.explain(f, 1.5)


@pytest.mark.parametrize(
    "make",
    [
        lambda: grad(lambda x, axis: np.sum(np.sum(x, axis) ** 2)),
        lambda: grad(lambda x, axis: grad(lambda y: np.sum(np.sum(y, axis) ** 2))(x)[0, 1]),
        lambda: lambda x, axis: pullback(np.sum, x, axis)[1](np.arange(3.0))[0],
    ],
)
def test_an_integer_that_only_the_rule_looks_at_is_guarded(make):
    x = np.arange(9.0).reshape(3, 3)
    kept, traced = make(), make()
    for axis in (0, 0, 0, 1, 0, 1, -1, 0):
        with jit(False):
            expected = traced(x, axis)
        np.testing.assert_array_equal(kept(x, axis), expected)


def test_options_that_became_inputs_are_guarded_where_a_rule_looks_at_them():
    """The program does what the rule decided by the value of an integer that is an input by now."""

    def turned(a, times=0):
        return a * (1 - 2 * (times % 2))

    @rrule(turned)
    def rule(a, times=0):
        def back(d):
            return (-d if range(times).stop % 2 else d,)

        return turned(a, times), back

    a = np.arange(3.0)
    try:
        for times in [0, 1, 2, 3] * 4:
            f = functools.partial(turned, times=times)
            expected = np.full(3, turned(1.0, times))
            np.testing.assert_array_equal(grad(lambda a: f(a).sum())(a), expected)
            np.testing.assert_array_equal(pullback(f, a)[1](np.ones(3))[0], expected)
    finally:
        del rules[turned]


def test_arguments_die_with_their_calls():
    def plain(v):
        return (v["w"] * v["w"]).sum()

    def product(w):
        return (w @ w) * np.sin(w).sum()

    for f, wrap in ((plain, lambda w: {"w": w}), (product, lambda w: w)):
        for on in (False, True):
            clear_cache()
            with jit(on):
                seen = []
                for _ in range(4):
                    w = np.ones(37)  # rules have been traced for other sizes
                    seen.append(weakref.ref(w))
                    value_and_grad(f)(wrap(w))
                    del w
                gc.collect()
                assert [r() for r in seen] == [None] * 4

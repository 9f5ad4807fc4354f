"""A call never answers for a world that has changed since the calls before it.

What changes is told in the text files of the folder `stories`: a story is a block of lines without an empty one.
It begins with the source of a module in which there is a function `f`. Then

    -- comes before what is executed between calls,
    >> before the arguments of calls, with | between one call and the next; in a story without this line, `f(1.5)` is
       called four times before the first change and three times after each, the argument moving a little.

A line that begins with `# ` stands between stories.
"""

import builtins
import collections
import contextlib
import ctypes
import dataclasses
import functools
import gc
import importlib
import inspect
import io
import math
import operator
import os
import sys
import tempfile
import threading
import time
import types
import weakref
from pathlib import Path

import numpy as np
import pytest
from worlds import WAYS, Call, compare, execute, jit, repeat, scenario

import wengert
from helpers import assert_close, assert_same
from wengert import TraceError, clear_cache, explain, grad, pullback, value_and_grad

PRELUDE = "import math, operator, random, time, numpy as np, wengert\n"


class Story:
    """One block of a text file."""

    def __init__(self, number, lines):
        self.number = number
        self.steps = []  # kind of step and its text
        setup = []
        for line in lines:
            if line.startswith(("-- ", ">> ")):
                self.steps.append([line[:2], line[3:] + "\n"])
            elif self.steps:
                self.steps[-1][1] += line + "\n"
            else:
                setup.append(line)
        self.setup = PRELUDE + "\n".join(setup) + "\n"

    def __str__(self):
        last = [line for line in self.setup.splitlines() if line.strip()][-1].strip()
        return f"{self.number}: {last}"[:60]

    def __call__(self, world):
        m = world.module(self.setup)
        told = any(kind == ">>" for kind, _ in self.steps)
        if not told:
            yield from repeat(m.f, 1.5)
        for kind, text in self.steps:
            if kind == "--":
                execute(m, text)
                if not told:
                    yield from repeat(m.f, 1.5, n=3)
            else:
                for arguments in text.split("|"):
                    m.called = Call
                    call = eval(f"called(f, {arguments.strip()})", vars(m))
                    del m.called
                    yield call


def stories(name):
    text = (Path(__file__).parent / "stories" / f"{name}.txt").read_text()
    blocks = [
        [line for line in block.splitlines() if not line.startswith("# ")]
        for block in text.split("\n\n")
    ]
    return [Story(i, block) for i, block in enumerate(filter(None, blocks), 1)]


SOME = ("value_and_grad", "pullback", "turns")


def share(story, ways):
    """The first way, and at every other story one of the others, which one depends on the CPython too."""
    turn, other = divmod(story.number + sys.version_info[1], 2)
    return (ways[0], ways[1 + turn % (len(ways) - 1)]) if other else ways[:1]


def told_in(name, ways=("value_and_grad", "pullback")):
    whole = "WENGERT_WORLDS" in os.environ  # there is time
    ways = tuple(WAYS if whole else ways)
    cases = []
    for story in stories(name):
        for way in ways if whole else share(story, ways):
            cases.append(pytest.param(story, way, id=f"{story}-{way}"))

    @pytest.mark.parametrize("story, way", cases)
    def test(story, way):
        compare(story, way)

    return test


test_outside = told_in("outside")
test_functions = told_in("functions", SOME)
test_classes = told_in("classes")
test_looks = told_in("looks")
test_lookups = told_in("lookups")
test_meaning = told_in("meaning", SOME)
test_surroundings = told_in("surroundings")
test_decisions = told_in("decisions", SOME)
test_arguments = told_in("arguments")
test_effects = told_in("effects", WAYS)
test_containers = told_in("containers", WAYS)
test_errors = told_in("errors")
test_randomness = told_in("randomness", SOME)
test_inside = told_in("inside", SOME)
test_found = told_in("found")
test_dynamic = told_in("dynamic", SOME)


@scenario(ways=("value_and_grad",))
def test_rule_given_later(w):
    def g(x):
        return math.sin(x)

    def f(x):
        return g(x) * x

    yield from repeat(f, 1.5)
    for factor in (100.0, 200.0):

        @wengert.rrule(g)
        def rule(x, factor=factor):
            return math.sin(x), lambda dz: (dz * factor,)

        yield from repeat(f, 1.5)
    wengert.nondiff(g)
    yield from repeat(f, 1.5)


# --------------------------------------------------------------------- functions and objects made anew


@scenario
def test_fresh_lambdas(w):
    for k in (1.0, 2.0, 3.0, 4, True, np.float64(2.0), np.ones(1)[0], -0.0, 5.0):
        yield (lambda x: x * k + k), 1.5
        yield (lambda x, k=k: x * k + k), 1.5


@scenario
def test_fresh_functions_with_state(w):
    def make(k):
        n = 0

        def f(x):
            nonlocal n
            n += 1
            return x * k * n

        return f

    for k in (1.0, 2.0, 3.0):
        f = make(k)
        for x in (1.5, 2.5):
            yield f, x


@scenario
def test_functions_at_the_same_address(w):
    """A function, class or object may come to lie where another one lay."""
    m = w.module("def f(x): return g(x) * o.k")
    for i in range(12):
        m.g = eval(f"lambda x: x * {i}" if i % 3 else f"lambda x: x + {i}")
        m.o = type("A", (), {"k": i if i % 2 else float(i)})()
        yield m.f, 1.5
        del m.g, m.o


@scenario
def test_the_same_code_in_two_modules(w):
    source = "def g(x): return x * k\ndef f(x): return g(x) + h(x)\n"
    one = w.module("k = 2.0\ndef h(x): return x\n" + source, "one")
    two = w.module("k = 3\ndef h(x): return x * x\n" + source, "two")
    for m in (one, two, one, two, one, one, two, two):
        yield m.f, 1.5
    one.k, two.h = 7, math.sin
    for m in (one, two, one, two):
        yield m.f, 1.5


@scenario
def test_bound_methods_of_fresh_objects(w):
    class A:
        def __init__(self, k):
            self.k = k

        def m(self, x):
            return x * self.k

        def __call__(self, x):
            return x + self.k

        @classmethod
        def c(cls, x):
            return x * cls.rate

        rate = 2.0

    for k in (1.0, 2.0, 3.0, 4, True, 5.0):
        yield A(k).m, 1.5
        yield A(k), 1.5
        yield A.c, 1.5
        yield Call(A.m, A(k), 1.5)
    A.rate = 3.0
    yield A.c, 1.5


@scenario
def test_partials_made_anew(w):
    def f(x, k, n=1, flag=False):
        return x * k * n + (k if flag else n)

    for k in (1.0, 2.0, 3.0, 4, 5.0):
        yield functools.partial(f, k=k), 1.5
        yield functools.partial(f, k=k, n=2), 1.5
        yield functools.partial(functools.partial(f, flag=True), k=k), 1.5
        yield functools.partial(f, 2.0), k


@scenario
def test_parameters_replaced_at_each_call(w):
    Point = collections.namedtuple("Point", "w b")

    @dataclasses.dataclass
    class Layer:
        w: object
        b: object

    def f(p):
        total = 0.0
        for key, layer in p.items():
            total = total + (layer.w * layer.b).sum() * len(key)
        return total

    for k in range(5):
        w_, b_ = np.full(3, k + 1.0), np.arange(3.0) * k
        yield f, {"a": Layer(w_, b_), "bb": Point(w_ * 2, b_)}
        yield f, {"bb": Layer(w_, b_), "a": Layer(w_ * 2, b_)}


@scenario
def test_one_object_changed_between_calls(w):
    o = types.SimpleNamespace(w=[1.0, 2.0], d={"a": np.ones(2)}, n=3)

    def f(o):
        return o.w[0] * o.w[-1] * o.n + o.d["a"].sum()

    def change():
        yield
        o.w[0] = 3.0
        yield
        o.w.append(4.0)
        yield
        o.d["a"][1] = 7.0
        yield
        o.d["a"] = np.ones((2, 2))
        yield
        o.n = 4
        yield
        o.n = 2.0
        yield
        o.w = (1.0, 2.0)
        yield
        o.extra = 1.0
        yield
        o.w = [o.d["a"]] * 2
        yield

    for _ in change():
        for _ in range(3):
            yield f, o


@scenario
def test_an_object_whose_gradient_is_taken_inside(w):
    o = types.SimpleNamespace(w=2.0, items=[1.0, 3.0], a=np.ones(2))

    def loss(o, x):
        return o.w**2 * x + o.items[0] * o.items[1] * x * x + o.a.sum()

    def f(x):
        g = grad(loss)(o, x)
        return g["w"] * x + g["items"][0] + g["a"][0]

    yield from repeat(f, 1.5)
    o.w = 5.0
    yield from repeat(f, 1.5)
    o.items[1] = 7.0
    yield from repeat(f, 1.5)
    o.a = np.ones(3)
    yield from repeat(f, 1.5)
    o.items.append(1.0)
    yield from repeat(f, 1.5)


@scenario
def test_cells(w):
    k, items, g = 2.0, [1.0], math.sin

    def f(x):
        return g(x) * k + items[0]

    yield from repeat(f, 1.5)
    k = 3.0
    yield from repeat(f, 1.5)
    k = 3
    yield from repeat(f, 1.5)
    items[0] = 5.0
    yield from repeat(f, 1.5)
    items = [6, 7.0]
    yield from repeat(f, 1.5)
    g = lambda x: x * x
    yield from repeat(f, 1.5)
    del g
    yield from repeat(f, 1.5)
    g = math.cos
    yield from repeat(f, 1.5)


@scenario
def test_error_state_around_the_call(w):
    def f(v):
        return (1 / v).sum() + np.log(v)[0]

    for _ in range(3):
        yield f, np.ones(2)
    for setting in ("raise", "ignore", "warn"):
        with np.errstate(all=setting):
            yield f, np.ones(2)
            yield f, np.zeros(2)
            yield f, -np.ones(2)
            yield f, np.ones(2)


@scenario
def test_warnings_that_are_errors(w):
    def f(v):
        log.append(v[0])
        y = np.log(v).sum()
        log.append(y)
        return y

    log = w.watch([])
    for action in ("always", "error", "ignore", "always"):
        w.warnings = action
        for v in (np.ones(2), np.ones(2), np.zeros(2), np.ones(2)):
            yield f, v


@scenario
def test_output_goes_where_stdout_is_now(w):
    def f(x):
        print("x", x)
        return x * 2

    yield from repeat(f, 1.5)
    mine = io.StringIO()
    w.watch(mine.getvalue)
    for _ in range(3):
        with contextlib.redirect_stdout(mine):
            yield f, 1.5
    yield f, 1.5


@scenario
def test_print_itself_replaced(w):
    m = w.module("def f(x):\n    print('x', x)\n    return x * 2")
    yield from repeat(m.f, 1.5)
    said = w.watch([])
    m.print = lambda *args: said.append(args)
    yield from repeat(m.f, 1.5)
    del m.print
    w.patch(builtins, "print", lambda *args: said.append(("builtin", *args)))
    yield from repeat(m.f, 1.5)


@scenario
def test_weak_references(w):
    class A:
        k = 2.0

    a = A()
    r = weakref.ref(a)

    def f(x):
        return x if r() is None else x * r().k

    yield from repeat(f, 1.5)
    A.k = 3.0
    yield from repeat(f, 1.5)
    del a
    gc.collect()
    yield from repeat(f, 1.5)


@scenario
def test_files(w):
    folder = w.use(tempfile.TemporaryDirectory())
    path = Path(folder) / "numbers"

    def f(x):
        with open(path) as file:
            k = float(file.read())
        path.write_text(str(k + 1))
        return x * k + (Path(folder) / "other").exists()

    path.write_text("2")
    yield from repeat(f, 1.5)
    path.write_text("70")
    yield from repeat(f, 1.5)
    (Path(folder) / "other").touch()
    yield from repeat(f, 1.5)


@scenario
def test_a_class_statement_inside(w):
    def f(x):
        class A:
            k = rate

            def m(self, x):
                return x * self.k

        return A().m(x) * len(A.__mro__)

    rate = 2.0
    yield from repeat(f, 1.5)
    rate = 3.0
    yield from repeat(f, 1.5)


@scenario
def test_reloaded_module(w):
    folder = w.use(tempfile.TemporaryDirectory())
    w.patch(sys, "path", [folder, *sys.path])
    w.patch(sys, "dont_write_bytecode", True)
    path = Path(folder) / "module_of_test.py"
    path.write_text("k = 2.0\ndef g(x): return x * k\n")
    w.undo.callback(sys.modules.pop, "module_of_test", None)
    import module_of_test

    def f(x):
        return module_of_test.g(x)

    yield from repeat(f, 1.5)
    path.write_text("k = 3\ndef g(x): return x + k * 10\n")
    importlib.invalidate_caches()
    importlib.reload(module_of_test)
    yield from repeat(f, 1.5)


# ------------------------------------------------------------------------------- what no story can tell


CHANGES = {
    "its code": lambda f: setattr(
        f, "__code__", (lambda x, k=2.0, *, n=3.0: k - x * x * n).__code__
    ),
    "a default": lambda f: setattr(f, "__defaults__", (5.0,)),
    "a default's type": lambda f: setattr(f, "__defaults__", (5,)),
    "the defaults of keywords": lambda f: setattr(f, "__kwdefaults__", {"n": 7.0}),
    "an item of these": lambda f: f.__kwdefaults__.update(n=8),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("kind", ("function", "method", "object", "partial", "wrapped"))
@pytest.mark.parametrize("make", (grad, value_and_grad, wengert.jacobian), ids=lambda g: g.__name__)
def test_the_function_itself_is_changed(make, kind, change):
    """What Wengert made of a function notices what is done to it, though its code is the program itself."""

    def f(x, k=2.0, *, n=3.0):
        return x * k * n * x

    class A:
        __call__ = method = lambda self, x: f(x)

    given = {
        "function": f,
        "method": A().method,
        "object": A(),
        "partial": functools.partial(f),
        "wrapped": lambda x: f(x),
    }[kind]
    slope = make(given)

    def ask():
        value, back = pullback(
            given, 1.5, wrt_self=True
        )  # is never kept; the JIT goes on meanwhile
        fresh = (value, back(1.0)[1]) if make is value_and_grad else back(1.0)[1]
        for _ in range(3):
            assert_same(slope(1.5), fresh)
        return fresh

    before = ask()
    change(f)
    assert ask() != before
    if kind == "method":
        A.method.__code__ = (lambda self, x: -f(x)).__code__
        assert ask() != before


def test_the_clock_goes_on():
    def f(x):
        return x * 0 + time.perf_counter(), time.time_ns()

    seen = [pullback(f, 1.0)[0] for _ in range(8)]
    assert seen == sorted(seen)
    assert len({a for a, _ in seen}) == len(seen)


def test_threads():
    """One function, two threads, arguments that take different branches and have different shapes."""

    def f(x, n):
        y = x
        for _ in range(n):
            y = np.sin(y) * x if np.sum(y) > 0 else y - x
        return np.sum(y * y)

    inputs = [[(np.linspace(-1, 1, 3 + i % 2) + t, 1 + i % 4) for i in range(40)] for t in range(3)]
    with jit(False):
        expected = [[value_and_grad(f)(*args) for args in part] for part in inputs]
    found = [[] for _ in inputs]
    barrier = threading.Barrier(len(inputs))

    def work(t):
        barrier.wait()
        for _ in range(2):
            for args in inputs[t]:
                found[t].append(value_and_grad(f)(*args))

    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(t,)) for t in range(len(inputs))]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    finally:
        sys.setswitchinterval(switch)
    for mine, theirs in zip(found, expected):
        for (value, slope), (expected_value, expected_slope) in zip(mine, theirs * 2, strict=True):
            assert_same(value, expected_value)
            assert_close(slope, expected_slope)


@pytest.mark.parametrize("on", (True, False))
def test_threads_that_write_to_the_same_containers(on):
    """What each call adds stays, whether the call is traced or answered by a program."""

    def f(x, key):
        log.append(x)
        table[key] = x * 2
        keys.add(key)
        counts["all"].append(key)
        return x * 2

    log, table, keys, counts = [], {}, set(), {"all": []}
    barrier = threading.Barrier(3)
    failures = []

    def work(number):
        barrier.wait()
        try:
            for i in range(50):
                grad(f)(1.5, f"{number} {i}")
        except BaseException as error:
            failures.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with jit(on):
            threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]
    finally:
        sys.setswitchinterval(before)
    assert not failures
    assert log == [1.5] * 150
    assert keys == set(table) == set(counts["all"]) and len(keys) == len(counts["all"]) == 150


@pytest.mark.parametrize("on", (True, False))
def test_threads_that_write_to_a_set_that_has_a_past(on):
    """No copy of it has its order, so a run works on the set itself."""

    def f(x, key):
        keys.add(key)
        return x * 2

    keys = {"b", "a", "zz", "yy", "xx", "h"}
    keys -= {"a", "yy"}
    failures = []

    def work(number):
        try:
            for i in range(200):
                grad(f)(1.5, f"{number} {i}")
        except BaseException as error:
            failures.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with jit(on):
            threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]
    finally:
        sys.setswitchinterval(before)
    assert not failures
    assert len(keys) == 604


def test_the_world_changes_under_a_thread():
    """Every answer belongs to one state of the world: value and gradient come from the same read."""

    def f(x):
        k = box[0]
        return k * x + k

    box = [1.0]
    stop = threading.Event()

    def change():
        while not stop.is_set():
            box[0] = 2.0 if box[0] == 1.0 else 1.0

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(300):
            value, slope = value_and_grad(f)(3.0)
            assert (value, slope) in ((4.0, 1.0), (8.0, 2.0))
    finally:
        stop.set()
        thread.join()


def test_both_ways_by_turns():
    log = []

    def f(x):
        log.append(x)
        return x * x if x > 1 else -x

    for i in range(12):
        with jit(i % 3 > 0):
            assert value_and_grad(f)(1.0 + i % 2) == ((4.0, 4.0) if i % 2 else (-1.0, -1.0))
    assert log == [1.0, 2.0] * 6


def test_the_returned_value_is_new_each_time():
    def f(x):
        return np.zeros(2), [x], np.ones(2) * x, {"a": [1.0]}

    answers = [pullback(f, 1.5)[0] for _ in range(5)]
    for i, a in enumerate(answers):
        for b in answers[i + 1 :]:
            assert not np.shares_memory(a[0], b[0])
            assert not np.shares_memory(a[2], b[2])
            assert a[1] is not b[1] and a[3] is not b[3] and a[3]["a"] is not b[3]["a"]


def test_gradients_are_nobody_elses():
    k = np.ones(3)

    def f(v, w):
        return (v * k).sum() + w.sum()

    for _ in range(4):
        v, w = np.arange(3.0), np.ones(3)
        a, b = grad(f, (0, 1))(v, w)
        for x in (a, b):
            assert not any(np.shares_memory(x, y) for y in (k, v, w))
        assert not np.shares_memory(a, b)
        a *= 0.0
        b += 5.0
        assert_same((k, v, w), (np.ones(3), np.arange(3.0), np.ones(3)))


def test_other_argnums_and_has_aux():
    def f(x, y):
        return x * y * y, [x]

    def g(x, y):
        return f(x, y)[0]

    for _ in range(4):
        assert grad(g)(2.0, 3.0) == 9.0
        assert grad(g, 1)(2.0, 3.0) == 12.0
        assert grad(g, (1, 0))(2.0, 3.0) == (12.0, 9.0)
        assert grad(g, -1)(2.0, 3.0) == 12.0
        assert value_and_grad(f, 1, has_aux=True)(2.0, 3.0) == ((18.0, [2.0]), 12.0)
        assert pullback(f, 2.0, 3.0)[1]((1.0, [1.0])) == (10.0, 12.0)
        assert pullback(f, 2.0, 3.0)[1]((0.0, None)) == (0.0, 0.0)
        with pytest.raises(wengert.CotangentError):
            grad(f)(2.0, 3.0)


def test_other_cotangents():
    def f(x):
        return x * 2, [x * x, 5], np.ones(2) * x

    for _ in range(3):
        value, back = pullback(f, 3.0)
        assert back((1.0, [0.0, None], np.zeros(2))) == (2.0,)
        assert back((None, [1.0, None], None)) == (6.0,)
        assert back((None, [1.0, None], np.ones(2))) == (8.0,)
        assert back((0, [1, 0.0], np.ones(2, int))) == (8.0,)
        with pytest.raises(wengert.CotangentError):
            back((1.0, [0.0], np.zeros(2)))
        with pytest.raises(wengert.CotangentError):
            back((1.0, [0.0, None], np.zeros(3)))


def test_a_call_inside_an_effect_of_a_call():
    """An object outside that is told of values may itself ask for gradients."""
    seen = []

    class Sink:
        def __init__(self):
            self.items = []

        def append(self, x):
            self.items.append(x)
            seen.append(grad(lambda y: y * y * len(self.items))(float(x)))

    def f(x):
        sink.append(x)
        return x * 2

    sink = Sink()
    for i in range(4):
        assert value_and_grad(f)(1.5) == (3.0, 2.0)
    assert sink.items == [1.5] * 4
    assert seen == [3.0 * (i + 1) for i in range(4)]


@pytest.mark.parametrize("effect", ("print(x)", "log.append(1)", "global n; n = 1", "k.add(x)"))
def test_what_lru_cache_would_not_repeat_is_an_error(effect):
    """For its derivative a function whose value is in the cache has to run again, unless that would show."""
    m = types.ModuleType("cached")
    source = f"""
        import functools
        log, k = [], {{1.0}}
        @functools.lru_cache
        def g(x):
            {effect}
            return x * x
        def f(x): return g(x)
        """
    execute(m, source)
    assert grad(m.f)(1.5) == 3.0
    message = "g is under lru_cache, .* has an effect"
    with pytest.raises(wengert.TraceError, match=f":8, in f .*{message} .*:6.\ntake"):
        grad(m.f)(1.5)
    assert grad(m.f)(2.5) == 5.0


def test_a_value_in_lru_cache_that_is_no_longer_true_is_an_error():
    @functools.lru_cache
    def g(x):
        return x * k

    k = 2.0
    assert g(1.5) == 3.0
    assert grad(g)(1.5) == 2.0
    k = 5.0
    with pytest.raises(
        wengert.TraceError, match="gives something else than the float in the cache"
    ):
        grad(lambda x: g(x) * x)(1.5)
    g.cache_clear()
    assert grad(g)(1.5) == 5.0
    assert g.cache_info().currsize == 1


def test_every_engine_error_stays_an_error():
    """What the tracer refuses is refused at each call, and does not spoil the calls between."""

    def f(x):
        return float(ctypes.c_double(x).value) * x if x > 2 else x * x

    for _ in range(4):
        assert grad(f)(1.5) == 3.0
        with pytest.raises(wengert.WengertError):
            grad(f)(3.0)


def test_an_object_whose_attributes_run_code():
    """NumPy asks a record array for attributes in the midst of an operation, and cannot bear an exception then."""

    def sized(x):
        return np.sum(x * x) * np.size(x)

    cached = value_and_grad(sized)
    array = np.array([1.5, 2.5])
    for _ in range(3):
        assert_same(cached(array)[0], sized(array))
    records = array.view(np.recarray)
    for _ in range(3):
        with pytest.raises(TraceError, match="without a derivative"):
            cached(records)
        assert_same(cached(array)[0], sized(array))


def test_recursion_that_the_limit_no_longer_allows():
    def depth(n):
        return 0 if n == 0 else 1 + depth(n - 1)

    def f(x):
        try:
            return x * depth(150)
        except RecursionError:
            return -x

    slope = grad(f)
    limit = sys.getrecursionlimit()
    for _ in range(3):
        assert slope(1.5) == 150.0
    sys.setrecursionlimit(len(inspect.stack()) + 60)
    try:
        with jit(False):
            expected = slope(1.5)
        assert slope(1.5) == expected == -1.0
    finally:
        sys.setrecursionlimit(limit)
    assert slope(1.5) == 150.0


def test_files_that_numpy_reads(tmp_path):
    path = tmp_path / "numbers"

    def f(x):
        return x * np.fromfile(path).sum()

    for numbers in ([1.0, 2.0], [5.0, 7.0]):
        np.array(numbers).tofile(path)
        for _ in range(3):
            assert value_and_grad(f)(2.0) == (2.0 * sum(numbers), sum(numbers))


@pytest.mark.parametrize("early", [True, False])
def test_a_builtin_that_is_replaced_is_what_the_user_put_there(monkeypatch, early):
    plain = sum

    def f(x):
        return sum([x, x * x])

    both = jit(f), lambda x: value_and_grad(f)(x)[0]
    for k in range(5 * (not early)):
        assert {g(1.5 + k) for g in both} == {f(1.5 + k)}
    monkeypatch.setattr(builtins, "sum", lambda xs: plain(xs) * 3)
    for k in range(5):
        assert {g(1.5 + k) for g in both} == {f(1.5 + k)}


@pytest.mark.parametrize("where", ["the class", "a base"])
def test_a_class_whose_objects_are_made_gets_a_finalizer_later(where):
    class Base:
        pass

    class Made(Base):
        def __init__(self, value):
            self.value = value

    def f(x):
        made = Made(x)
        return made.value * x

    died = []
    cached = value_and_grad(f)
    for k in range(6):
        cached(1.0 + k)
    (Made if where == "the class" else Base).__del__ = lambda self: died.append(self.value)
    assert cached(9.0) == (81.0, 18.0)
    assert died == [9.0]


def store(array, n):
    array[n] = 1.0


FAILING = {
    "an item": store,
    "a list of items": lambda u, n: store(u, [n]),
    "a row": lambda u, n: store(u.reshape(3, 1), (n, slice(None))),
    "flat": lambda u, n: store(u.flat, n),
    "setitem": lambda u, n: operator.setitem(u, n, 1.0),
    "put": lambda u, n: u.put([n], 1.0),
    "np.put": lambda u, n: np.put(u, [n], 1.0),
    "sort": lambda u, n: u.sort(axis=n - 1),
    "a part": lambda u, n: store(u[1:], slice(0, None)) if n < 3 else store(u, n),
}


@pytest.mark.parametrize("outside", [False, True], ids=["made inside", "outside"])
@pytest.mark.parametrize("write", FAILING.values(), ids=FAILING)
def test_a_write_to_an_array_that_failed_is_no_program(write, outside):
    table = np.array([3.0, 2.0, 1.0])

    def f(x, n):
        u = table if outside else np.array([3.0, 2.0, 1.0])
        try:
            write(u, n)
        except IndexError:
            return -x
        return x * x * u.sum()

    cached = value_and_grad(f)
    for n in (9, 9, 9, 9, 1, 9, 0):
        table[:] = [3.0, 2.0, 1.0]
        found = cached(3.0, n)[0]
        after = table.copy()
        table[:] = [3.0, 2.0, 1.0]
        assert found == f(3.0, n)
        assert (table == after).all()


def test_the_function_of_a_cached_property_is_replaced():
    class Lazy:
        def __init__(self, value):
            self.value = value

        @functools.cached_property
        def more(self):
            return self.value * 2.0

    def f(x):
        return Lazy(x).more * x

    cached = value_and_grad(f)
    for _ in range(6):
        assert cached(3.0) == (18.0, 12.0)
    Lazy.more.func = lambda self: self.value * 5.0
    assert cached(3.0) == (45.0, 30.0)


def test_what_is_printed_goes_to_a_stream_in_python_later(monkeypatch):
    written = []

    class Counting(io.StringIO):
        def write(self, text):
            written.append(text)
            return len(text)

    def f(x):
        print("step")
        return x * len(written)

    cached = value_and_grad(f)
    for _ in range(6):
        assert cached(3.0) == (0.0, 0.0)
    monkeypatch.setattr("sys.stdout", Counting())
    assert cached(3.0) == (6.0, 2.0)


def closing(stream):
    stream.close()
    return 0


DEFERRED = {
    "print": (lambda n: print("step"), lambda stream: closing(stream)),
    "np.random.seed": (np.random.seed, lambda stream: -1),
    "seed of a state": (np.random.RandomState().seed, lambda stream: -1),
}


@pytest.mark.parametrize(
    "handler",
    ["except", "finally", "with", "with outside", "generator", "generator that waits"],
)
@pytest.mark.parametrize(("act", "spoil"), DEFERRED.values(), ids=DEFERRED)
def test_what_programs_do_at_their_end_fails_in_the_reach_of_a_handler(
    act, spoil, handler, monkeypatch
):
    log = []

    def excepted(x, n):
        try:
            act(n)
        except ValueError:
            return -x
        return x * x

    def kept_in_order(x, n):
        try:
            act(n)
        finally:
            log.append("done")
        return x * x

    def suppressed(x, n):
        with contextlib.suppress(ValueError):
            act(n)
            return x * x
        return -x

    def helper(n):
        act(n)

    def outside(x, n):
        with contextlib.suppress(ValueError):
            helper(n)
            return x * x
        return -x

    def steps(n):
        try:
            yield act(n)
        except ValueError:
            yield 1

    def generated(x, n):
        return -x if [*steps(n)] == [1] else x * x

    def waiting():
        try:
            yield 1
        finally:
            log.append("done")

    def between(x, n):
        for _ in waiting():
            act(n)
        return x * x

    ways = (excepted, kept_in_order, suppressed, outside, generated, between)
    names = ("except", "finally", "with", "with outside", "generator", "generator that waits")
    f = dict(zip(names, ways, strict=True))[handler]
    cached = value_and_grad(f)
    monkeypatch.setattr("sys.stdout", io.StringIO())
    for n in range(6):
        assert cached(3.0, n) == (9.0, 6.0)
    assert "stands in a try or a with" in str(explain(cached))
    n = spoil(sys.stdout)
    log.clear()
    try:
        assert cached(3.0, n) == (-3.0, -1.0)
    except ValueError:
        assert handler in ("finally", "generator that waits")
        assert log == ["done"]


def test_what_is_printed_outside_of_a_try_is_kept(monkeypatch):
    def f(x):
        made = [print("step", i) for i in range(2)]
        try:
            log.append(len(made))
        finally:
            log.append("done")
        return x * x

    log = []
    monkeypatch.setattr("sys.stdout", io.StringIO())
    cached = value_and_grad(f)
    for _ in range(8):
        assert cached(3.0) == (9.0, 6.0)
    assert "1 program, " in str(explain(cached))
    assert log == [2, "done"] * 8
    assert sys.stdout.getvalue() == "step 0\nstep 1\n" * 8


WRITES = {
    "before": lambda write: (write(), print("step")),
    "after": lambda write: (print("step"), write()),
    "between": lambda write: (write(), print("step"), write()),
}


@pytest.mark.parametrize("act", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("what", ["array", "variable"])
def test_what_is_printed_fails_when_something_has_been_written(act, what, monkeypatch):
    table, count = np.zeros(2), 0.0

    def f(x):
        def write():
            nonlocal count
            if what == "array":
                table[0] += x
            else:
                count += x

        act(write)
        log.append("done")
        return x * x

    clear_cache()
    log = []
    cached = value_and_grad(f)
    monkeypatch.setattr("sys.stdout", io.StringIO())
    for _ in range(8):
        assert cached(3.0) == (9.0, 6.0)
    assert ("1 program, " in str(explain(cached))) is (act is not WRITES["between"])
    sys.stdout.close()
    left = []
    for asked in (f, cached):
        table[:] = count = 0.0
        log.clear()
        with pytest.raises(ValueError, match="closed"):
            asked(3.0)
        left.append((table[0], count, len(log)))
    assert left[0] == left[1]

"""Recursion goes as deep as in plain Python, within a factor of two, and ends in a RecursionError."""

import subprocess
import sys
import textwrap
import threading

import pytest

from helpers import check
from wengert import grad, jit, value_and_grad
from wengert.tracer.depth import depth, recursion_limit

PROGRAM = """
    import functools, sys
    from wengert import grad, jit

    deepest = 0

    def note(n):
        global deepest
        deepest = n
        return n + 1

    class S:
        def __init__(self, n, x): self.n, self.x = n, x
        def next(self): return S(note(self.n), self.x)
        def __add__(self, other): return self.next() + other
        def __getattr__(self, name): return self.next().foo
        def __lt__(self, other): return self.next() < other
        def __call__(self): return self.next()()
        def __getitem__(self, key): return self.next()[key]
        def __iter__(self): yield from self.next()
        def __len__(self): return len(self.next())
        def __bool__(self): return bool(self.next())
        def __contains__(self, item): return item in self.next()
        def __repr__(self): return repr(self.next())
        def __exit__(self, *error): pass
        def __enter__(self):
            with self.next(): pass
        @property
        def p(self): return self.next().p

    class T(S):
        def __lt__(self, other):
            t = T(note(self.n), self.x)
            return sorted([t, t])

    def function(n, x): return function(note(n), x)
    def keyword(n, x): return keyword(n=note(n), x=x)
    def unpacked(n, x): return unpacked(*(note(n), x))
    def operator(n, x): return S(n, x) + x
    def attribute(n, x): return S(n, x).foo
    def comparison(n, x): return S(n, x) < x
    def item(n, x): return S(n, x)[0]
    def call(n, x): return S(n, x)()
    def iteration(n, x): return sum(S(n, x))
    def length(n, x): return len(S(n, x))
    def truth(n, x): return 1 if S(n, x) else 0
    def text(n, x): return repr(S(n, x))
    def membership(n, x): return x in S(n, x)
    def properties(n, x): return S(n, x).p
    def context(n, x):
        with S(n, x): pass
    def steps(n, x):
        for v in steps(note(n), x): yield v
    def generators(n, x): return list(steps(n, x))
    def sorting(n, x): return sorted([T(n, x), T(n, x)])
    def keys(n, x): return sorted([n, n], key=lambda _: keys(note(n), x))
    def mapping(n, x): return list(map(lambda _: mapping(note(n), x), [1]))
    def reducing(n, x): return functools.reduce(lambda a, b: reducing(note(n), x), [1, 2])
    def partial(n, x): return functools.partial(partial, note(n))(x)
    def comprehension(n, x): return [comprehension(note(n), x) for _ in [1]]
    def lambdas(n, x): return (lambda: lambdas(note(n), x))()
    @functools.lru_cache(None)
    def cached(n, x): return cached(note(n), x)
    def evaluated(n, x): return eval("evaluated(note(n), x)")
    def inner(n, x): return grad(lambda y: inner(note(n), y))(x)

    def depth(ask):
        global deepest
        deepest = 0
        try:
            ask()
        except RecursionError:
            return deepest
        raise AssertionError("it came to an end")

    FUNCTIONS = (
        function, keyword, unpacked, operator, attribute, comparison, item, call, iteration, length, truth, text,
        membership, properties, context, generators, sorting, keys, mapping, reducing, partial, comprehension, lambdas,
        cached, evaluated, inner,
    )
    least = 2.0 if sys.version_info[:2] != (3, 12) else 2.2  # which has little of the C stack
    most = 2.0 if sys.version_info >= (3, 13) else 2.5  # which count some calls of special methods twice
    for limit, functions in ((1000, FUNCTIONS), (3000, (function, operator, generators))):
        sys.setrecursionlimit(limit)
        for f in functions:
            plain = depth(lambda: f(0, 1.5))
            for on in (False, True):
                with jit(on):
                    for _ in range(1 + on):
                        mine = depth(lambda: grad(f, 1)(0, 1.5))
                        assert plain / least <= mine <= most * plain, (f, limit, plain, mine)
            assert sys.getrecursionlimit() == limit
    """


def run(program):
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_recursion_goes_as_deep():
    ended = run(PROGRAM)
    assert ended.returncode == 0, ended.stderr[-2000:]


FAR = """
    import sys
    from wengert import grad

    def down(n, x):
        return down(n - 1, x) * 1.0 if n else x

    sys.setrecursionlimit(60_000)
    assert down(40_000, 1.5) == 1.5
    assert grad(down, 1)(40_000, 1.5) == 1.0
    """


def test_far_down():
    ended = run(FAR)
    assert ended.returncode == 0, ended.stderr[-2000:]


def test_the_limit_is_the_users():
    limit = sys.getrecursionlimit()
    check(lambda x: x * sys.getrecursionlimit(), 1.5)
    f = value_and_grad(lambda x: x * sys.getrecursionlimit())
    try:
        for n in (limit, limit, limit, limit + 100, limit + 100, limit):
            sys.setrecursionlimit(n)
            assert f(2.0) == (2.0 * n, n)
            assert sys.getrecursionlimit() == n
    finally:
        sys.setrecursionlimit(limit)


def test_a_limit_that_the_function_sets_stays():
    limit = sys.getrecursionlimit()

    def f(x, n):
        before = sys.getrecursionlimit()
        sys.setrecursionlimit(n)
        return x * before * sys.getrecursionlimit()

    try:
        for n in (limit + 1, limit + 2, limit + 3, limit + 3):
            before = sys.getrecursionlimit()
            assert value_and_grad(f)(2.0, n) == (2.0 * before * n, before * n)
            assert sys.getrecursionlimit() == n
    finally:
        sys.setrecursionlimit(limit)


@pytest.mark.parametrize("limit", [0, -1, 1, "a", 2.0, 2**40])
def test_limits_that_python_refuses(limit):
    before = sys.getrecursionlimit()

    def f(x):
        sys.setrecursionlimit(limit)
        return x

    with pytest.raises(Exception) as plain:
        f(1.0)
    with pytest.raises(type(plain.value)) as mine:
        grad(f)(1.0)
    strip = str(plain.value).partition(" at the recursion depth")[0]
    assert str(mine.value).startswith(strip)
    assert sys.getrecursionlimit() == before


def test_a_recursion_error_that_is_caught():
    limit = sys.getrecursionlimit()

    def down(n):
        return down(n + 1) + 1

    def f(x, n):
        try:
            return x * count(n)
        except RecursionError:
            return x * x

    def count(n):
        return 1 + count(n - 1) if n else 0

    for on in (True, False):
        with jit(on):
            for n in (10, 10, 10, 10**6, 10**6, 10**6, 10):
                assert value_and_grad(f)(2.0, n) == ((2.0 * n, n) if n == 10 else (4.0, 4.0))
    assert sys.getrecursionlimit() == limit


def test_threads_share_the_limit():
    limit, errors = sys.getrecursionlimit(), []

    def f(x):
        return x * sys.getrecursionlimit()

    def work():
        for k in range(50):
            with jit(k % 2 == 0):
                if grad(f)(2.0) != limit:
                    errors.append(grad(f)(2.0))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    assert sys.getrecursionlimit() == limit


def test_the_limit_is_right_while_other_threads_begin_and_end_runs():
    limit, interval = sys.getrecursionlimit(), sys.getswitchinterval()
    stop = threading.Event()

    def work():
        while not stop.is_set():
            depth.enter()
            depth.leave()

    threads = [threading.Thread(target=work) for _ in range(2)]
    sys.setswitchinterval(1e-6)
    try:
        for t in threads:
            t.start()
        wrong = sum(recursion_limit() != limit for _ in range(50_000))
    finally:
        stop.set()
        for t in threads:
            t.join()
        sys.setswitchinterval(interval)
    assert not wrong


def test_the_text_of_a_recursion_error_is_that_of_plain_python():
    """Where CPython 3.11 tells what has been done at last, that was done by a frame of ours."""

    class Leading:
        def __getattr__(self, name):
            return getattr(self, name + "_")

    def down(n):
        return 1 + down(n + 1)

    def listed(n):
        return [listed(n + 1) for _ in (1,)]

    def mapped(n):
        return list(map(mapped, [n + 1]))

    def told(x, start):
        try:
            start()
        except RecursionError as error:
            return x * len(str(error))

    starts = (lambda: down(0), lambda: listed(0), lambda: mapped(0), lambda: Leading().name)
    for start in starts:
        for extra in range(2):

            def deeper(x, n=extra, start=start):
                return told(x, start) if n == 0 else deeper(x, n - 1, start)

            value = deeper(1.0)
            for on in (False, True):
                with jit(on):
                    assert value_and_grad(deeper)(1.0) == (value, value)

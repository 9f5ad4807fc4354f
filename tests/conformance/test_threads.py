"""Several threads at once: no spurious error, and each answer is right for some moment of the world.

What these tests look for needs threads to be interrupted anywhere, so they switch as often as they can. On a build of
CPython without the global lock they run as they are.
"""

import functools
import sys
import threading
import time

import pytest

import wengert
from wengert import jit, jvp, pullback, value_and_grad


@pytest.fixture(autouse=True)
def many_switches():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    wengert.clear_cache()
    yield
    sys.setswitchinterval(before)


def together(*actions, seconds=60):
    """Run actions in threads that begin at one moment; the first exception of any of them is raised."""
    start, failures = threading.Barrier(len(actions)), []

    def run(action):
        start.wait()
        try:
            action()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(action,), daemon=True) for action in actions]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    if failures:
        raise failures[0]


class Ranked:
    """An object that is compared by Python code."""

    def __init__(self, x):
        self.x = x

    def __lt__(self, other):
        return self.x < other.x

    def __eq__(self, other):
        return isinstance(other, Ranked) and self.x == other.x

    def __hash__(self):
        return 0

    def __add__(self, other):
        return Ranked(self.x + getattr(other, "x", other))

    def __radd__(self, other):
        return Ranked(other + self.x)

    def __str__(self):
        return f"<{self.x:.3f}>"


def smallest(x, y):
    return sorted([Ranked(x), Ranked(y * y), Ranked(1.0)])[0].x


def greatest(x, y):
    return max([Ranked(x), Ranked(y * y), Ranked(-1.0)]).x


def summed(x, y):
    return sum([Ranked(x), Ranked(y), 2.0]).x + len(str(Ranked(x)))


def contained(x, y):
    return x * y if Ranked(x) in [Ranked(y), Ranked(x)] else x + y


def counted(x, y):
    return [Ranked(x), Ranked(y), Ranked(x)].count(Ranked(x)) * x


FUNCTIONS = [smallest, greatest, summed, contained, counted]
POINTS = [(0.5, 2.0), (2.0, 0.5), (-1.5, 0.25), (0.75, -1.25)]


def asked(f, times, way):
    """Ask for a function's value and gradient over and over; what comes must be what it is in one thread alone."""
    with jit(False):
        expected = {point: value_and_grad(f, (0, 1))(*point) for point in POINTS}

    def action():
        for i in range(times):
            point = POINTS[i % len(POINTS)]
            assert way(f, *point) == expected[point]

    return action


def by_gradient(f, x, y):
    return value_and_grad(f, (0, 1))(x, y)


def by_pullback(f, x, y):
    value, back = pullback(f, x, y)
    return value, back(1.0)


WAYS = pytest.mark.parametrize("way", [by_gradient, by_pullback])
KEPT = pytest.mark.parametrize("kept", [False, True], ids=["traced", "kept"])


@WAYS
@KEPT
def test_special_methods_of_one_class_in_two_threads(way, kept):
    with jit(kept):
        together(*[asked(f, 60, way) for f in FUNCTIONS[:2]])


@WAYS
@KEPT
def test_many_functions_that_use_one_class(way, kept):
    with jit(kept):
        together(*[asked(f, 30, way) for f in FUNCTIONS])


@KEPT
def test_plain_python_beside_a_traced_call(kept):
    """A thread that does not differentiate must not notice that another one does."""
    done = threading.Event()

    def plain():
        count = 0
        while not done.is_set() or count < 100:
            count += 1
            objects = [Ranked(float(i * 7 % 11)) for i in range(11)]
            assert [r.x for r in sorted(objects)] == [float(i) for i in range(11)]
            assert max(objects).x == 10.0 and Ranked(3.0) in objects
            assert sum(objects).x == 55.0 and str(objects[1]) == "<7.000>"

    def traced():
        try:
            asked(smallest, 100, by_gradient)()
        finally:
            done.set()

    with jit(kept):
        together(plain, plain, traced)


class World:
    scale = 2.0


scale = 2.0
factors = [2.0]
table = {"scale": 2.0}
SCALES = (2.0, 3.0, 5.0, 7)


def by_global(x):
    return scale * x * x


def by_attribute(x):
    return World.scale * x * x


def by_item(x):
    return factors[0] * x * x


def by_key(x):
    return table["scale"] * x * x


def by_default(x, k=2.0):
    return k * x * x


def by_helper(x):
    return helper(x) * x


def helper(x):
    return 2.0 * x


def replaced(k):
    def helper(x):
        return k * x

    return helper


CHANGES = {
    by_global: lambda k: globals().update(scale=k),
    by_attribute: lambda k: setattr(World, "scale", k),
    by_item: lambda k: factors.__setitem__(0, k),
    by_key: lambda k: table.update(scale=k),
    by_default: lambda k: setattr(by_default, "__defaults__", (k,)),
    by_helper: lambda k: globals().update(helper=replaced(k)),
}


@KEPT
@pytest.mark.parametrize("f", CHANGES, ids=lambda f: f.__name__)
def test_a_changing_world_in_eight_threads(f, kept):
    """Each of many calls gives the value and the gradient for one of the worlds that there were."""
    change, count = CHANGES[f], (1250 if f is by_global else 250) if kept else 40
    done = threading.Event()
    allowed = {x: [(k * x * x, 2 * k * x) for k in SCALES] for x in (0.5, 1.5, -2.0)}

    def calls():
        g = value_and_grad(f)
        for i in range(count):
            x = (0.5, 1.5, -2.0)[i % 3]
            assert g(x) in allowed[x]

    def changes():
        i = 0
        while not done.is_set():
            i += 1
            change(SCALES[i % len(SCALES)])
            if i % 5 == 0:
                time.sleep(1e-4)

    changing = threading.Thread(target=changes)
    changing.start()
    try:
        with jit(kept):
            together(*[calls] * 8, seconds=240)
    finally:
        done.set()
        changing.join()
        change(2.0)


def test_pullbacks_are_asked_in_other_threads():
    """A pullback belongs to no thread."""

    def f(x, y):
        total = 0.0
        for i in range(5):
            total += x * y if i % 2 else x
        return total

    backs = [pullback(f, float(i), 0.5)[1] for i in range(40)]

    def ask():
        for i, back in enumerate(backs):
            assert back(1.0) == (4.0, 2.0 * i)

    together(*[ask] * 4)


def test_appending_to_one_list_in_many_threads():
    """An effect happens once for each call, whoever calls."""
    log = []

    def f(x):
        log.append(x)
        return x * x

    def calls(start):
        g = value_and_grad(f)
        for i in range(200):
            assert g(start + i) == ((start + i) ** 2, 2 * (start + i))

    together(*[functools.partial(calls, 1000.0 * k) for k in range(4)])
    assert sorted(log) == [1000.0 * k + i for k in range(4) for i in range(200)]


def test_switching_the_jit_while_others_call():
    def f(x):
        return scale * x * x

    def calls():
        g = value_and_grad(f)
        for i in range(300):
            assert g(1.5) == (4.5, 6.0)

    def switches():
        for i in range(200):
            with jit(i % 2 == 0):
                time.sleep(1e-5)
        wengert.clear_cache()

    together(calls, calls, switches)


def test_forward_and_reverse_at_once():
    def f(x):
        return smallest(x, 2.0) * x

    def forward():
        for _ in range(60):
            assert jvp(f, (0.5,), (1.0,)) == (0.25, 1.0)

    def reverse():
        for _ in range(60):
            assert value_and_grad(f)(0.5) == (0.25, 1.0)

    together(forward, reverse, forward, reverse)

"""Source in which loops are loops: it computes what the tape does, to the bit, and checks every decision."""

import linecache
import math

import numpy as np
import pytest
from fold.random_arrays import Maker
from fold.random_programs import Writer

from wengert import GuardError, clear_cache, pullback, reverse, save, trace, value_and_grad
from wengert.tracer.tape import primal
from wengert.transforms.tools import looped


def logistic(r, x, n):
    for _ in range(n):
        x = r * x * (1 - x)
    return x


def bisection(a):
    low, high = 0.0, a
    for _ in range(40):
        middle = (low + high) / 2
        if middle * middle < a:
            low = middle
        else:
            high = middle
    return (middle + a / middle) / 2


def collatz(x):
    n = 0.0
    while x > 1.5:
        if x % 2 < 0.5:
            x = x / 2
        else:
            x = 3 * x + 1
        n = n + 1.0
    return n * x


def triangle(a, b):
    b = b.copy()
    for i in range(len(b)):
        for j in range(i):
            b[i] -= a[i, j] * b[j]
        b[i] = b[i] / a[i, i]
    return b


def layers(w, x):
    for one in w:
        x = np.tanh(one @ x)
    return x.sum()


def squares(xs):
    out = []
    for k, x in enumerate(xs):
        out.append(x * x * (0.1 * k))
    return sum(out)


class Body:
    def __init__(self, x):
        self.x, self.v = x, 0.0

    def step(self, k, dt):
        self.v -= k * self.x * dt
        self.x += self.v * dt


def spring(k, x):
    body = Body(x)
    for _ in range(100):
        body.step(k, 0.01)
    return body.x


def itself(x):
    a = np.array([x, 2.0, 3.0])
    b = np.array([1.0, x, 3.0])
    for _ in range(6):
        a[:] = a
        b[:2] = a[:2] * b[1:]
        a = a + b
    return a.sum()


def turns(x, n):
    s, p = 0.0, x
    for i in range(n):
        for j in range(n):
            if (i + j) % 3 == 0:
                s = s + p
            elif (i + j) % 3 == 1:
                p = p * x
            else:
                s = s * p - j
    return s


R = np.random.default_rng(0)
PROGRAMS = [
    (logistic, (3.7, 0.4, 1000)),
    (bisection, (2.0,)),
    (collatz, (27.0,)),
    (triangle, (R.normal(size=(6, 6)) + 6 * np.eye(6), R.normal(size=6))),
    (layers, ([R.normal(size=(3, 3)) for _ in range(20)], R.normal(size=3))),
    (squares, ([0.1 * i for i in range(50)],)),
    (spring, (2.0, 1.0)),
    (itself, (0.3,)),
    (turns, (0.3, 6)),
]
MOST_LINES = {"bisection": 100, "triangle": 250, "spring": 40, "logistic": 30, "turns": 70}


def function(text, name):
    scope = {}
    exec(text, scope)
    return scope[name]


def same(a, b):
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and np.asarray(a).tobytes() == np.asarray(b).tobytes()


def sources(f, args):
    tape = trace(f, *args)
    yield tape
    if isinstance(primal(tape.result), float):
        yield reverse(tape, form="naive")
        yield reverse(tape)


@pytest.mark.parametrize(("f", "args"), PROGRAMS, ids=lambda x: getattr(x, "__name__", ""))
def test_it_computes_what_the_tape_does(f, args):
    for tape in sources(f, args):
        text = tape.source("made")
        assert same(function(text, "made")(*args), primal(tape.result))
        own = text.partition("def made(")[2]  # without the helpers above it
        assert len(own.splitlines()) <= MOST_LINES.get(f.__name__, 60), text


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("made_by", ["arrays", "programs"])
def test_random_programs(made_by, seed):
    source = Maker(seed).program()[0] if made_by == "arrays" else Writer(seed).source()
    scope = {"np": np, "math": math}
    exec(source, scope)
    rng = np.random.default_rng(seed)
    args = 0.7, -1.3, 6
    if made_by == "arrays":
        args = *rng.normal(size=(2, 3)), rng.normal(size=(3, 3)), 0.4, 6
    log = scope.get("log", [])
    try:
        tapes = list(sources(scope["f"], args))
    except Exception as error:
        if made_by == "programs" and not error.__class__.__module__.startswith("wengert"):
            pytest.skip("the program raises an error")
        raise
    if log:
        pytest.skip("it reads what it writes to outside")
    if any(tape.once for tape in tapes):
        pytest.skip("it holds for the traced arguments alone")
    for tape in tapes:
        assert same(function(tape.source("made"), "made")(*args), primal(tape.result)), source


def test_a_file_is_as_short_for_a_thousand_steps_as_for_a_hundred(tmp_path):
    for made in (trace, lambda *args: reverse(trace(*args)), lambda *args: pullback(*args)[1]):
        lengths = [len(made(logistic, 3.7, 0.4, n).source().splitlines()) for n in (100, 1000)]
        assert max(lengths) < 40
    save(value_and_grad(squares), tmp_path / "s.py", [0.1 * i for i in range(1000)])
    text = (tmp_path / "s.py").read_text()
    assert len(text.splitlines()) < 50 and max(map(len, text.splitlines())) < 120
    xs = [0.2 * i for i in range(1000)]
    value, d = function(text, "value_and_grad_squares")(xs)
    assert value == squares(xs)
    np.testing.assert_allclose(d, [2 * x * 0.1 * k for k, x in enumerate(xs)], rtol=1e-15)
    with pytest.raises(ValueError, match=r"each of xs\[0:1000\] must be a float"):
        function(text, "value_and_grad_squares")([*xs[:-1], "1"])


def newton(c):
    x = c
    for _ in range(50):
        step = (x * x - c) / (2.0 * x)
        x = x - step
        if abs(step) < 1e-12:
            return x
    return x


def either(x):
    y = x
    for _ in range(40):
        y = math.sin(y) * x if y > 1.0 else y * 1.5 + 0.1
    return y


def turns(x):
    total = 0.0
    for i in range(8):
        y = x + i
        while y > 1.0:
            y = y / 2.0
        total = total + y * y
    return total


def nested(x):
    total = 0.0
    for i in range(6):
        y = x
        for _ in range(5):
            y = y * 0.5 if y > 1.0 else y * y + 0.3 * i
        total = total + y
    return total


def adaptive(k):
    t, y, h = 0.0, 1.0, 0.1
    while t < 2.0:
        h = min(h, 2.0 - t)
        slope = -k * y
        step = -k * (y + h * slope)
        error = abs(h * (step - slope)) / 2
        if error <= 1e-3:
            t = t + h
            y = y + h * (slope + step) / 2
        h = h * min(2.0, max(0.3, 0.9 * math.sqrt(1e-3 / (error + 1e-12))))
    return y


UNEVEN = [(bisection, 2.0, 75), (newton, 2.0, 60), (either, 0.7, 60), (turns, 3.3, 60), (nested, 1.7, 85),
          (adaptive, 1.3, 300)]  # fmt: skip


@pytest.mark.parametrize(("f", "x", "most"), UNEVEN, ids=lambda x: getattr(x, "__name__", ""))
def test_iterations_that_go_different_ways_are_one_loop_of_value_and_gradient(f, x, most, tmp_path):
    """In the first call's pullback, in a kept program's, and in a file."""
    value, d = value_and_grad(f)(x)
    for _ in range(5):
        text = pullback(f, x)[1].source()
        assert len(text.splitlines()) <= most, text
        assert all(text.count(f"table{i or ''}[") for i in range(2, 20) if f"table{i} =" in text)
        assert function(text, "back")(x, 1.0) == pytest.approx((d,), rel=1e-14)
    save(value_and_grad(f), tmp_path / "s.py", x)
    text = (tmp_path / "s.py").read_text()
    assert len(text.splitlines()) <= most, text
    made = function(text, f"value_and_grad_{f.__name__}")(x)
    assert made[0] == value == f(x) and made[1] == pytest.approx(d, rel=1e-14)


def solve(a, x):
    y = x
    for _ in range(20):
        if y > 1:
            y = y * a
        else:
            y = y + a * x
    return y


def three_ways(x):
    y, n = x, 0.0
    while y < 50.0:
        if y < 1.0:
            y = y * 2.0 + x
        elif y < 10.0:
            y = y * y + 0.1
        else:
            y = y + x * n
        n = n + 1.0
    return y


def both(x, a):
    total = 0.0
    for i in range(6):
        y = x
        for _ in range(5):
            y = y * a if y > 1.0 else y * y + 0.3 * i
        total = total + y if y > 0.5 else total * a
    return total


def turned(w, x):
    for _ in range(12):
        if x.sum() > 0.5:
            x = np.tanh(w @ x)
        else:
            x = x * w[0] + 1.0
    return x.sum()


DECIDED = [
    (solve, (0.9, 0.3), 40, 1),
    (three_ways, (0.3,), 52, 2),
    (both, (0.7, 1.1), 64, 5),
    (turned, (R.normal(size=(3, 3)), R.normal(size=3)), 46, 2),
]


@pytest.mark.parametrize(
    ("f", "args", "lines", "tables"), DECIDED, ids=lambda x: getattr(x, "__name__", "")
)
def test_the_sweep_of_a_loop_with_decisions_is_a_loop_with_cotangents(f, args, lines, tables):
    """It reads one list of what the loop carried, and has few tables beside that of the ways."""
    clear_cache()
    found = value_and_grad(f, tuple(range(len(args))))(*args)[1]
    back = pullback(f, *args)[1]
    text = back.source()
    assert len(text.rpartition("def back(")[2].splitlines()) <= lines, text
    assert sum(x.startswith("table") for x in text.splitlines()) <= tables, text
    made = function(text, "back")(*args, 1.0)
    assert same(made, back.tape(*args, 1.0))
    for x, y in zip(made, found, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12)
    for tape in sources(f, args):
        assert same(function(tape.source("made"), "made")(*args), primal(tape.result))


def test_either_way_of_a_sweep_updates_the_same_cotangents():
    clear_cache()
    text = pullback(solve, 0.9, 0.3)[1].source()
    assert [x[4:] for x in text.splitlines()[-21:]] == [
        "dy_9 = dy",
        "for i2 in range(20):",
        "    if not table[19 - i2]:",
        "        dy_12 = dy_9 * a",
        "        t13 = dy_9 * ys[19 - i2]",
        "        if i2 == 0:",
        "            da = t13",
        "        else:",
        "            da = da + t13",
        "        dy_9 = dy_12",
        "    else:",
        "        if i2 == 19:",
        "            dx_15 = dx + dy_9",
        "        t16 = dy_9 * x",
        "        t17 = dy_9 * a",
        "        da = da + t16",
        "        if i2 == 1:",
        "            dx = t17",
        "        else:",
        "            dx = (dx if i2 < 19 else dx_15) + t17",
        "return (da, dx)",
    ]


def test_a_loop_in_a_loop_does_not_change_what_the_outer_one_began_with():
    def f(x):
        y = x
        for _ in range(4):
            for j in range(3):
                t = y * j
                z = t + 1.0
            y = z
        return y

    assert function(trace(f, 0.3).source("made"), "made")(0.3) == f(0.3)


def test_a_list_that_a_loop_fills_again_is_that_of_its_own_pass():
    def f(x):
        total = 0.0
        for i in range(3):
            y, ys = x, []
            for _ in range(8):
                y = y * 1.1 + i
                ys.append(y)
            total = total + math.prod(ys)
        return total

    assert function(trace(f, 0.3).source("made"), "made")(0.3) == f(0.3)


def test_what_is_one_of_several_in_one_way_of_several():
    def f(xs):
        total, i = 0.0, 0
        while i < len(xs) and (y := xs[i] * (len(xs) - i)) < 9:
            total += y if 1 < y < 4 else y * y if (z := y * 2) > 9 else z
            i += 1
        return total

    xs = [1.5, 1.9, 2.5, 2.2, 2.2]
    tape = trace(f, xs)
    assert function(tape.source("made"), "made")(xs) == f(xs)
    assert function(reverse(tape).source("made"), "made")(xs) == reverse(tape)(xs)


@pytest.mark.parametrize("n", range(1, 8))
def test_a_list_that_two_ways_of_a_loop_fill_in_turn(n):
    def f(x):
        xs = [x]
        while len(xs) < n:
            xs.append(xs[-1] * x if len(xs) % 2 else xs[-1] + 1)
        return sum(xs)

    tape = trace(f, 2.0)
    assert function(tape.source("made"), "made")(2.0) == f(2.0)
    assert function(reverse(tape).source("made"), "made")(2.0) == reverse(tape)(2.0)


@pytest.mark.parametrize("f", [either, nested])
def test_source_of_a_pullback_holds_where_its_decisions_do(f):
    """A gradient at other arguments is that of the function, or an error."""
    clear_cache()  # a kept program may know the other ways
    back = pullback(f, 0.7)[1]
    made = function(back.source(), "back")
    refused = 0
    for x in np.linspace(0.1, 3.0, 40).tolist():
        try:
            found = made(x, 1.0)
        except ValueError as error:
            assert "what decides" in str(error) or "in the traced run" in str(error)
            refused += 1
        else:
            assert found == pytest.approx(pullback(f, x)[1](1.0), rel=1e-13)
    assert 0 < refused < 40
    with pytest.raises(GuardError):
        back.tape(3.0, 1.0)
    with pytest.raises(GuardError):
        reverse(trace(f, 0.7), value=False)(3.0)


@pytest.mark.parametrize("seed", range(20))
def test_random_programs_in_files_and_pullbacks(seed, tmp_path):
    scope = {}
    exec(Writer(seed).source(), scope)
    f, args = scope["f"], (0.7, -1.3, 6)
    if scope.get("log"):
        pytest.skip("it writes to what is outside")
    try:
        value, back = pullback(f, *args)
        found = back(1.0)
        save(value_and_grad(f, (0, 1)), tmp_path / "s.py", *args)
    except Exception as error:
        pytest.skip(f"the program raises an error: {error}")
    made = function(back.source(), "back")
    known = dict(zip("xyn", args, strict=True)) | {"dy": 1.0}
    names = made.__code__.co_varnames[: made.__code__.co_argcount]
    made = made(*[known[name] for name in names])
    np.testing.assert_allclose(made[:2], found[:2], rtol=1e-13)
    name = f"value_and_grad_{f.__name__}"
    given = function((tmp_path / "s.py").read_text(), name)(*args)
    assert given[0] == value
    np.testing.assert_allclose(given[1], found[:2], rtol=1e-13)


def test_it_reads_as_the_program_does():
    """With the names of the listing."""
    assert trace(logistic, 3.7, 0.4, 1000).source().splitlines()[-6:] == [
        "    x_4 = x",
        "    for _ in range(1000):",
        "        t5 = r * x_4",
        "        t6 = 1 - x_4",
        "        x_4 = t5 * t6",
        "    return x_4",
    ]


def test_each_decision_of_a_loop_is_checked():
    line = bisection.__code__.co_firstlineno + 4
    made = function(trace(bisection, 2.0).source(), "bisection")
    with pytest.raises(ValueError, match=rf"test_looped.py:{line}: what decides `if middle \* mid"):
        made(3.0)
    made = function(trace(collatz, 27.0).source(), "collatz")
    with pytest.raises(ValueError, match="was .* in the traced run"):
        made(26.0)


def test_what_changes_from_pass_to_pass_is_a_formula():
    def f(x):
        for i in range(50):
            x = math.sin(x * (0.1 * i) + x ** (49 - i) + i % 3)
        return x

    text = trace(f, 0.01).source("made")
    assert "x_2 * (0.1 * i)" in text and "x_2 ** (49 - i)" in text
    assert function(text, "made")(0.01) == f(0.01)


def test_loops_that_are_nested_too_deep_for_python_are_written_out(monkeypatch):
    monkeypatch.setattr(looped, "DEEPEST", 0)
    text = trace(logistic, 3.7, 0.4, 5).source("made")
    assert "for _ in" not in text.partition("raise")[2].partition("\n")[2]
    assert function(text, "made")(3.7, 0.4, 5) == logistic(3.7, 0.4, 5)


@pytest.fixture(autouse=True)
def lines_are_known():
    linecache.checkcache()


def test_a_list_is_asked_for_no_pass_that_is_still_to_come():
    def rows(x, n):
        total = 0.0
        for i in range(n):
            made = []
            for j in range(4 + i):
                made.append(math.sin(x + j + 10 * i))
            if i == 1:
                total = total + math.prod([*made[:4], made[-1]])
        return total

    assert function(trace(rows, 0.3, 4).source("made"), "made")(0.3, 4) == rows(0.3, 4)

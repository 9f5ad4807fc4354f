"""Side effects: once, in order, on the real objects, with plain values."""

import contextlib
import io
import logging
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest

import wengert
from helpers import assert_plain, assert_same, check_raises
from wengert import TraceError, grad, jit, nondiff, pullback, trace, value_and_grad

V = np.array([0.5, -1.2, 2.0])


def test_print_happens_once(capsys):
    def f(x):
        print("x is", x, x * 2, sep=" | ", end="!\n")
        print(f"{x:.3f}", [x, (x,)], {"a": x}, V * x, file=sys.stdout)
        return x * x

    f(1.5)
    expected = capsys.readouterr().out
    value, back = pullback(f, 1.5)
    assert capsys.readouterr().out == expected
    assert back(1.0) == back(1.0) == (3.0,)
    assert capsys.readouterr().out == ""
    grad(f)(1.5)
    assert capsys.readouterr().out == expected
    assert capsys.readouterr().err == ""


def test_log_of_plain_numbers():
    log, table, seen = [], {}, set()

    def f(x, v):
        log.append(x)
        log.append(x * 2)
        log.extend([v, {"v": v * x}, (x, [x])])
        log.insert(0, math_like(x))
        table["x"] = x
        table.update(y=x + 1, z=[x])
        table.setdefault("w", v[0])
        seen.add(x * 3)
        log[1] += x
        return x * v.sum()

    pullback(f, 1.5, V.copy())
    mine = (list(log), dict(table), set(seen))
    log.clear(), table.clear(), seen.clear()
    f(1.5, V.copy())
    assert_same(mine, (log, table, seen))
    assert_plain(mine)


def math_like(x):
    return x**2 - 1


def test_effects_are_read_back():
    log = [1.0]

    def f(x):
        log.append(x)
        log[0] += log[-1] * x
        log.sort(reverse=True)
        return log.pop() * log[0] * len(log)

    value, back = pullback(f, 3.0)
    assert_same((value, log), (3.0 * 10.0 * 1, [10.0]))
    assert back(1.0) == pytest.approx((1 + 3 * 9.0,))


def test_attributes_of_outside_objects():
    class Model:
        total = 0.0

        def __init__(self):
            self.n = 0
            self.last = None

        def __call__(self, x):
            self.n += 1
            self.last = x * 2
            self.history = [*getattr(self, "history", []), x]
            Model.total += x
            return self.last * self.n * Model.total

    model = Model()
    assert pullback(model, 1.5)[0] == 3.0 * 1 * 1.5
    value, gradient = value_and_grad(model)(1.5)
    assert value == 3.0 * 2 * 3.0
    assert gradient == pytest.approx(2 * 2 * (1.5 + 3.0))
    assert_same(vars(model), {"n": 2, "last": 3.0, "history": [1.5, 1.5]})
    assert_same(Model.total, 3.0)
    assert_plain(model, Model)


def test_deleted_and_replaced():
    class Thing:
        pass

    thing, table, items = Thing(), {"a": 1.0, "b": 2.0}, [1.0, 2.0, 3.0]
    thing.x = 5.0

    def f(x):
        del table["a"]
        del items[1]
        items[:1] = [x, x]
        y = thing.x
        del thing.x
        thing.y = x * y
        return sum(items) * table.pop("b") + thing.y

    value, back = pullback(f, 1.5)
    assert_same(
        (value, table, items, vars(thing)), (6.0 * 2 + 7.5, {}, [1.5, 1.5, 3.0], {"y": 7.5})
    )
    assert back(1.0) == (9.0,)


def test_output_streams(tmp_path):
    out = io.StringIO()

    def f(x):
        out.write(f"{x}\n")
        out.writelines([str(x), repr(x)])
        print(x, file=out)
        with open(tmp_path / "log", "a") as file:
            file.write("%r " % x)
        with contextlib.redirect_stdout(out):
            print(x * 2)
        np.savetxt(out, V * x)
        return x

    f(1.5)
    expected = out.getvalue()
    out.seek(0), out.truncate()
    pullback(f, 1.5)
    assert out.getvalue() == expected
    assert (tmp_path / "log").read_text() == "1.5 1.5 "


def test_logging(caplog):
    def f(x):
        logging.getLogger("here").warning("x = %s, %.2f", x, x)
        return x * 2

    with caplog.at_level(logging.WARNING):
        assert grad(f)(1.5) == 2.0
    (record,) = caplog.records
    assert record.getMessage() == "x = 1.5, 1.50"
    assert_same(record.args, (1.5, 1.5))


def test_warnings_are_given_at_the_users_line():
    def f(x):
        warnings.warn(f"careful with {x}", stacklevel=1)
        return np.log(x - x) * 0 + x

    def caught(run):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            run(1.5)
        return [(str(w.message), w.category, w.filename, w.lineno) for w in found]

    assert caught(lambda x: pullback(f, x)) == caught(f)


def test_callbacks_get_plain_values_when_called_later():
    handlers = []

    def f(x):
        y = x * 2
        handlers.append(lambda z: y * z + x)

        def more(z):
            return handlers[0](z) * x

        handlers.append(more)
        return handlers[0](3.0)

    value, back = pullback(f, 1.5)
    assert_same(value, 10.5)
    assert back(1.0) == (7.0,)
    assert_same([handler(1.0) for handler in handlers], [4.5, 6.75])
    assert_plain(handlers)


def test_returned_functions_and_methods():
    class Line:
        def __init__(self, slope):
            self.slope = slope

        def at(self, x):
            return self.slope * x

    def f(x):
        return Line(x).at, lambda y: x * y, (lambda y=x: y * 2)

    value, back = pullback(f, 1.5)
    assert_same([g(2.0) for g in value], [3.0, 3.0, 4.0])
    assert_plain(value)


def test_objects_kept_outside():
    kept = {}

    class Record:
        def __init__(self, x):
            self.x = x
            self.parts = [x, {"v": V * x}]

    def f(x):
        kept["record"] = Record(x)
        kept["class"] = type("Made", (), {"x": x})
        record = kept["record"]
        record.x *= 2
        record.parts.append(record.x)
        return record.x

    value, back = pullback(f, 1.5)
    assert back(1.0) == (2.0,)
    assert_plain(kept, vars(kept["class"]))
    assert_same(kept["record"].x, 3.0)
    assert_same(kept["record"].parts, [1.5, {"v": V * 1.5}, 3.0])
    assert_same(kept["class"].x, 1.5)


def test_arrays_kept_outside():
    kept = []
    buffer = np.zeros(3)

    def f(x):
        a = V * x
        kept.append(a)
        kept.append(a[1:])
        a[1] = 7.0
        buffer[:] = a
        np.add(buffer, x, out=buffer)
        return a.sum()

    value, back = pullback(f, 2.0)
    first, second = kept
    assert_same(first, np.array([1.0, 7.0, 4.0]))
    assert_same(second, first[1:])
    assert np.shares_memory(first, second)
    assert_same(buffer, first + 2.0)
    assert back(1.0) == pytest.approx((2.5,))


def test_effects_before_an_exception_stay():
    log, memory = [], np.zeros(2)

    def f(x, items):
        log.append(x)
        items.append(x * 2)
        memory[0] = x
        if x > 1:
            raise ValueError("too large", x)
        log.append("never")

    items = []
    with pytest.raises(ValueError, match="too large"):
        pullback(f, 1.5, items)
    assert_same((log, items, memory), ([1.5], [3.0], np.array([1.5, 0.0])))
    assert_plain(log, items)
    check_raises(f, 1.5, [])


def test_context_manager_of_the_outside():
    class Lock:
        def __init__(self):
            self.log = []

        def __enter__(self):
            self.log.append("in")
            return self

        def __exit__(self, kind, error, tb):
            self.log.append(error)
            return True

    lock = Lock()

    def f(x):
        with lock:
            lock.log.append(x)
            raise ValueError(x * 2)
        with threading.Lock():
            return x

    assert grad(f)(1.5) == 1.0
    assert lock.log[:2] == ["in", 1.5]
    assert_same(lock.log[2].args, (3.0,))
    assert_plain(lock.log)


@pytest.mark.parametrize("kind", [threading.Lock, threading.RLock])
@pytest.mark.parametrize("transform", [value_and_grad, jit])
def test_a_lock_of_c_is_held(kind, transform):
    lock, seen = kind(), []

    def look():
        free = lock.acquire(blocking=False)
        if free:
            lock.release()
        seen.append(free)

    @nondiff
    def from_outside():
        other = threading.Thread(target=look)
        other.start()
        other.join()

    def f(x):
        with lock:
            from_outside()
            return x * x

    answer, square = transform(f), transform(lambda x: x * x)
    for k in range(8):
        assert answer(1.0 + k) == square(1.0 + k)
        free = lock.acquire(blocking=False)
        assert free
        lock.release()
    assert seen == [False] * 8


def test_a_program_waits_for_a_lock():
    lock, done = threading.Lock(), []

    def f(x):
        with lock:
            return x * x

    answer = grad(f)
    for k in range(8):
        assert answer(1.0 + k) == 2.0 + 2.0 * k
    with lock:
        other = threading.Thread(target=lambda: done.append(answer(3.0)))
        other.start()
        other.join(0.1)
        assert not done
    other.join()
    assert done == [6.0]


@pytest.mark.parametrize("kind", [threading.Lock, threading.RLock])
def test_a_condition_takes_its_lock_once(kind):
    condition, entered = threading.Condition(kind()), []

    def f(x):
        with condition:
            entered.append(condition.acquire(blocking=False))
            if entered[-1]:
                condition.release()
            return x * x

    answer = grad(f)
    for k in range(8):
        assert answer(1.0 + k) == 2.0 + 2.0 * k
        assert condition.acquire(blocking=False)
        condition.release()
    assert entered == [kind is threading.RLock] * 8


INTERRUPTED = """
import _thread, math, signal, threading
from wengert import grad
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
lock, late = threading.Lock(), []

def f(x):
    with lock:
        y = x * x
        for _ in range(late[0] if late else 3):
            y = y + math.sin(y)
        return y

answer = grad(f)
for k in range(8):
    answer(1.0 + k)
late.append(10**9)
timer = threading.Timer(0.3, _thread.interrupt_main)
try:
    timer.start()
    answer(1.5)
except KeyboardInterrupt:
    print(lock.acquire(blocking=False))
"""


def test_an_interruption_gives_a_lock_back():
    """Also in the midst of a call that a program might answer; in a process of its own, whose main thread it meets."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=120
    )
    assert done.stdout == "True\n", done.stderr


def test_what_another_thread_does_while_a_call_sleeps_is_seen():
    state, seen = {"a": 1.0, "s": ""}, []

    def f(x):
        state["s"] = "busy"
        time.sleep(0.2)
        state["s"] = "idle"
        return state["a"] * x

    def other():
        while state["s"] != "busy":
            time.sleep(0.001)
        state["a"] = 5.0
        seen.append(state["s"])

    answer = grad(f)
    for _ in range(6):
        state.update(a=1.0, s="")
        thread = threading.Thread(target=other)
        thread.start()
        assert answer(1.0) == 5.0
        thread.join()
    assert seen == ["busy"] * 6


def test_what_a_handler_of_a_signal_does_is_seen():
    state = [0.0]

    def handler(*_):
        state[0] += 1.0

    def f(x):
        signal.raise_signal(signal.SIGUSR1)
        return x * state[0]

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        answer = grad(f)
        assert [answer(2.0) for _ in range(8)] == [1.0 + k for k in range(8)]
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_call_that_fails_is_not_made_again():
    base, calls = sqlite3.connect(":memory:"), []

    def count(n):
        calls.append(n)
        if n > 5:
            raise ValueError(n)
        return n

    base.create_function("count_it", 1, count)
    number = [0]
    run = base.execute

    def f(x):
        run("select count_it(?)", (number[0],)).fetchone()
        return x * x

    answer = grad(f)
    with contextlib.closing(base):
        for k in range(6):
            number[0] = k
            answer(1.0)
        number[0] = 6
        with pytest.raises(sqlite3.OperationalError):
            answer(1.0)
    assert calls == [*range(7)]


class Plugin:
    pass


def test_new_subclasses_are_seen():
    made = []

    def f(x):
        return x * len(type.__subclasses__(Plugin))

    answer = grad(f)
    for k in range(8):
        assert answer(2.0) == k
        made.append(type(f"P{k}", (Plugin,), {}))


def test_a_connection_commits():
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as base:
        base.execute("create table t (x)")

        def f(x):
            with base:
                return x * x

        answer = grad(f)
        for k in range(8):
            base.execute("begin")
            base.execute("insert into t values (1)")
            assert answer(1.0 + k) == 2.0 + 2.0 * k
            assert not base.in_transaction
        assert base.execute("select count(*) from t").fetchone() == (8,)


def test_environment_and_modules(monkeypatch):
    monkeypatch.delenv("WENGERT_TEST", raising=False)

    def f(x):
        os.environ["WENGERT_TEST"] = str(x)
        return x * float(len(os.environ["WENGERT_TEST"]))

    assert grad(f)(1.5) == 3.0
    assert os.environ["WENGERT_TEST"] == "1.5"
    monkeypatch.delenv("WENGERT_TEST")


def test_effects_are_on_the_tape():
    log = []

    def f(x):
        print("hello", x)
        log.append(x * 2)
        return x * x

    tape = trace(f, 3.0)
    effects = [op for op in tape.ops if op.kind == "effect"]
    assert len(effects) == 2
    assert effects[0].fn is print
    lines = [op.site.lineno for op in effects]
    assert lines == sorted(lines)
    assert "print" in str(tape)


def test_order_of_effects():
    log = []

    class Noisy:
        def __init__(self, name):
            self.name = name

        def __add__(self, other):
            log.append(("add", self.name))
            return Noisy(self.name + "+")

        def __getattr__(self, name):
            log.append(("getattr", name))
            return 1.0

        def __getitem__(self, key):
            log.append(("getitem", key))
            return 2.0

        def __bool__(self):
            log.append(("bool", self.name))
            return True

    noisy = Noisy("n")

    def f(x):
        y = (noisy + 1).weight * x
        if noisy and x > 0:
            y += noisy["k"]
        log.append(y)
        return y

    f(1.5)
    expected = list(log)
    log.clear()
    assert grad(f)(1.5) == 1.0
    assert_same(log, expected)


def test_generators_run_as_far_as_plain_python():
    log = []

    def numbers(x):
        for i in range(5):
            log.append(i)
            yield x * i
        log.append("end")

    def f(x):
        for y in numbers(x):
            if y > 4:
                return y
        return x

    assert grad(f)(2.0) == 3.0
    assert log == [0, 1, 2, 3]


def test_random_state_is_used_once():
    rng = np.random.default_rng(1)
    state = np.random.default_rng(1)
    value, back = pullback(lambda x: x * rng.random(), 2.0)
    first = state.random()
    assert_same(value, 2.0 * first)
    assert back(1.0) == back(1.0) == (first,)
    assert rng.random() == state.random()


def test_nothing_is_run_twice_for_the_gradient():
    calls = []

    def expensive(x):
        calls.append(len(calls))
        return x * x

    value, back = pullback(lambda x: expensive(x) * expensive(x + 1), 2.0)
    back(1.0), back(2.0)
    assert calls == [0, 1]
    grad(grad(lambda x: expensive(x) * x))(2.0)
    assert calls == [0, 1, 2]


def shaped(x):
    held = np.array([x, 2.0 * x])
    held.shape = (2, 1)
    return held.sum()


def through_complex(x):
    return x * np.array([x * x]).astype(complex).astype(float)[0]


class Odd:
    def __int__(self):
        return True


def odd(x):
    return x * int(Odd())


@pytest.mark.parametrize("f", [shaped, through_complex, odd])
def test_warnings_of_c_code_are_given_at_each_call(f):
    def given(ask):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            ask()
        return [(str(x.message), x.filename, x.lineno) for x in found]

    expected = given(lambda: f(1.5))
    with wengert.jit(True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wengert.value_and_grad(f)(0.5)
        for _ in range(4):
            assert given(lambda: wengert.value_and_grad(f)(1.5)) == expected


class Keeping(logging.Handler):
    """A handler of the user's, which shows what is logged to the program itself."""

    def __init__(self):
        super().__init__()
        self.records = []

    def emit(self, record):
        self.records.append(record.args[0])


def logger_with(handler):
    logger = logging.Logger("apart")
    logger.addHandler(handler)
    return logger


def test_code_of_the_users_that_logging_runs_is_traced():
    def program():
        handler = Keeping()
        logger = logger_with(handler)
        logger.addFilter(lambda record: record.args[0] != 3.0)

        def f(x):
            logger.warning("%r", x)
            return handler.records[-1] * x * len(handler.records)

        return f

    f, traced = program(), value_and_grad(program())
    xs = [1.5, 2.5, 0.5, 3.0, 1.25, 2.0]
    last, count = 0.0, 0
    for x in xs:
        kept = x == 3.0  # by the filter: the factor is what was logged before
        last, count = (last, count) if kept else (x, count + 1)
        value, slope = traced(x)
        assert value == f(x) == last * x * count
        assert slope == (last if kept else 2 * x) * count


def test_text_that_is_logged_to_a_handler_of_the_users_is_followed():
    class Showing(Keeping):
        def emit(self, record):
            self.records.append(record.getMessage())

    handler = Showing()
    logger = logger_with(handler)

    def f(x):
        logger.warning("%r", x)
        return float(handler.records[-1]) * x

    for _ in range(4):
        with pytest.raises(TraceError, match="text that was drawn from a traced value"):
            grad(f)(1.5)


def test_what_is_logged_tells_of_its_line_in_every_call():
    lines = []
    for derive in (lambda f: f, lambda f: lambda x: value_and_grad(f)(x)[0]):
        stream = io.StringIO()
        handler = logging.StreamHandler(stream)
        handler.setFormatter(logging.Formatter("%(lineno)d %(funcName)s %(message)s"))
        logger = logging.getLogger(f"wengert.lines.{len(lines)}")
        logger.propagate = False
        logger.addHandler(handler)

        def f(x, logger=logger):
            logger.debug("a detail of %s", x)
            logger.info("x is %s", x)
            return x * x

        g = derive(f)
        for x, level in zip((1.0, 2.0, 3.0, 4.0, 5.0, 6.0), (30, 30, 30, 30, 20, 10), strict=True):
            logger.setLevel(level)
            assert g(x) == x * x
        for x in (7.0, 8.0, 9.0, 10.0):
            g(x)
        lines.append(stream.getvalue())
    assert lines[0] == lines[1]
    assert lines[0].count(" f ") == 11


def test_print_to_an_object_of_the_users_happens_at_its_place():
    class Stream:
        def __init__(self):
            self.written, self.flushed = [], 0

        def write(self, text):
            self.written.append(text)

        def flush(self):
            self.flushed += 1

    def program(stream):
        def f(x):
            print("x", x, [x], sep="|", file=stream, flush=x > 1)
            with contextlib.redirect_stdout(stream):
                print(x * 2)
            return x * len(stream.written)

        return f

    plain, followed = Stream(), Stream()
    f, traced = program(plain), value_and_grad(program(followed))
    for x in (0.5, 1.5, 2.5, 0.25, 3.5):
        value, slope = traced(x)
        assert value == f(x)
        assert slope == len(plain.written)
        assert followed.written == plain.written
        assert followed.flushed == plain.flushed
    assert_plain(followed.written)
    with pytest.raises(TraceError, match="text that was drawn from a traced value"):
        grad(lambda x: (print(x, file=followed), float(followed.written[-2]) * x)[1])(1.5)


def test_a_record_is_plain_to_a_handler_that_is_not_traced(caplog):
    handler = Keeping()
    logger = logger_with(handler)
    logger.addHandler(caplog.handler)  # of pytest, which is run as it is

    def f(x):
        logger.warning("%s %.2f", x, x * 2)
        return handler.records[-1] * x

    for x in (1.5, 2.5, 0.5, 1.5):
        assert value_and_grad(f)(x) == (x * x, 2 * x)
    assert caplog.messages == ["1.5 3.00", "2.5 5.00", "0.5 1.00", "1.5 3.00"]
    assert_plain([record.args for record in caplog.records])


@pytest.mark.parametrize("on", [True, False])
def test_without_a_stream_no_object_is_asked_for_its_text(on):
    class Counted:
        def __init__(self):
            self.asked = 0

        def __repr__(self):
            self.asked += 1
            return f"{self.asked}"

    def f(x, held, stream):
        inner = Counted()
        with contextlib.redirect_stdout(stream):
            print(inner, x)
        print(held)
        return x * (1 + inner.asked + 10 * held.asked)

    with jit(on):
        step = value_and_grad(f, argnums=0)
        for i in range(24):
            outer, stream = (
                (io.StringIO() if which else None) for which in (i % 12 < 5, i % 5 < 3)
            )
            found = []
            for call in (f, lambda *args: step(*args)[0]):
                held = Counted()
                with contextlib.redirect_stdout(outer):
                    found.append((call(2.0, held, stream), held.asked))
            assert found[0] == found[1]
            for one in (outer, stream):
                half = len(one.getvalue()) // 2 if one else 0
                assert not one or one.getvalue()[:half] == one.getvalue()[half:]

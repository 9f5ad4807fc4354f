"""What `explain` tells of programs, guards, hits and misses, and of a call that is not made."""

import copy
import functools
import math
import pickle
import random
import re
import sys
import threading
import types
import warnings

import numpy as np
import pytest
from worlds import clear_cache, jit

import wengert
from wengert import TraceError, explain, grad, pullback, value_and_grad
from wengert.tracer.fold.run import Known
from wengert.transforms import budget, cache
from wengert.transforms.budget import Budget

scale = 2.0
times = 3


@pytest.fixture(autouse=True)
def fresh():
    clear_cache()
    with jit(True):
        yield
    clear_cache()


def helper(x):
    return math.sin(x) * scale


def branches(x):
    if x > 1:
        return helper(x) * times
    return x * 5


DECISION = branches.__code__.co_firstlineno + 1


def called(step, *calls):
    """Call a function with each argument."""
    for x in calls:
        step(*x) if isinstance(x, tuple) else step(x)
    return step


# --------------------------------------------------------------------------------- programs and guards


def test_guards_in_words():
    k, names = 3, {"a": 1.0}
    data = types.SimpleNamespace(w=np.ones((2, 3), np.float32), n=4)

    def f(p, x, factor=2):
        return (p["a"] * x).sum() * k * names["a"] * data.w.sum() * data.n * helper(1.0) * factor

    called(grad(f), *[({"a": np.ones((2, 3)), "b": [1.0, 2.0]}, 0.5)] * 3)
    text = explain(f)
    for words in (
        "p is a dict with the keys 'a', 'b'",
        "p['a'] is a float64 array of shape (2, 3)",
        "p['b'] is a list of length 2",
        "p['b'][0] is a float",
        "x is a float",
        "the default of factor in f is 2",
        "the closure variable k is 3",
        "the closure variable names is a dict with the keys 'a'",
        "data.w is a float32 array of shape (2, 3)",
        "data.n is 4",
        f"global helper is the function helper ({__file__}:{helper.__code__.co_firstlineno})",
        "global math is the module math",
        "math.sin is the function math.sin",
        "global scale is a float",
    ):
        assert words in text, words


def test_a_guard_is_told_with_its_line_in_the_source():
    called(grad(branches), *[2.0] * 3)
    found = explain(branches)
    source = found.source.splitlines()
    assert source[0].startswith("# program")
    for line, words in re.findall(r"^ +(\d+)  (.*)$", found, re.MULTILINE):
        statement = source[int(line)]  # line 1 stands behind the comment
        assert statement.strip().startswith("if "), (words, statement)
        if words.startswith("global times"):
            assert "'times'" in statement
        if words.startswith("the decision"):
            assert re.fullmatch(r" +if not \(x > 1\): raise Miss\d*", statement)


def test_a_length_is_the_one_that_was_guarded():
    """The run itself makes the list longer before the program is written."""
    log = []

    def f(x):
        y = x * len(log)
        log.append(y)
        return y

    called(grad(f), 1.0, 1.0)
    assert "log is a list of length 1" in explain(f)
    assert "(it was a list of length 1, and is a list of length 2 now)" in explain(f, 1.0)
    assert len(log) == 2


def test_each_kind_of_function_is_told_with_its_options():
    def f(x, y):
        return x * y

    def g(x):
        return x * x, "aux"

    for _ in range(3):
        grad(f)(2.0, 3.0)
        value_and_grad(f, argnums=(0, 1))(2.0, 3.0)
        grad(grad(f), argnums=1)(2.0, 3.0)
        pullback(f, 2.0, 3.0)[1](1.0)
        grad(g, has_aux=True)(2.0)
    place = f"# {__file__}:{f.__code__.co_firstlineno}\n"
    text = explain(f)
    for title in (
        "grad(f)",
        "value_and_grad(f, argnums=(0, 1))",
        "grad(grad(f), argnums=1)",
        "pullback(f)",
    ):
        assert f"{title}  {place}" in text
    assert "grad(g, has_aux=True)" in explain(g)
    only = explain(grad(f), 2.0, 3.0)
    assert only.startswith(f"grad(f)  {place}") and "pullback" not in only
    assert "value_and_grad" not in only and "grad(grad" not in only
    assert explain(grad(grad(f), argnums=1)).startswith("grad(grad(f), argnums=1)")


def test_methods_partials_and_objects():
    import functools

    class Model:
        k = 2.0

        def loss(self, x):
            return x * self.k

        __call__ = loss

    model = Model()
    part = functools.partial(lambda a, x: a * x, 3.0)
    for f in (model, model.loss, part):
        called(grad(f), *[1.5] * 4)
        assert "2 hits" in explain(f, 1.5) and "would answer" in explain(f, 1.5)
        assert "2 hits" in explain(grad(f), 1.5)
        assert __file__ in explain(f).partition("\n")[0]


def test_operations_hits_and_the_time_to_compile():
    def f(v):
        return np.sum(np.sin(v) * v)

    step = called(grad(f), *[np.ones(3)] * 12)
    assert re.search(
        r"program \d+: 3 operations forward, [1-9] in reverse; 10 hits; compiled in \d+\.\d ms",
        explain(step),
    )
    assert "1 program, 10 hits, 0 misses, 2 calls traced" in explain(step)
    again = called(grad(f), *[np.ones(3)] * 5)  # another function of the same code
    assert "1 program, 15 hits, 0 misses, 2 calls traced" in explain(again)
    assert explain(step) == explain(step)


def test_misses_with_the_guard_that_failed_and_how_often():
    called(grad(branches), 2.0, 2.0, 2.0, 0.5, 0.5, 2.0, 0.5)
    text = explain(branches)
    decision = f"another decision at {__file__}:{DECISION}, in branches"
    assert f"3 x {decision} (it was True)" in text
    assert f"1 x {decision} (it was False)" in text
    for value in (True, False):
        assert f"the decision in branches ({__file__}:{DECISION}) is {value}\n" in text


def test_the_line_of_a_guard_that_failed():
    step = called(grad(branches), 2.0, 2.0, np.float64(2.0))
    assert re.search(r"1 x x is no longer a float \(line \d+ of program \d+\)", explain(step))


def test_a_second_program_tells_its_own_guards():
    called(grad(branches), 2.0, 2.0, np.float64(2.0), np.float64(2.0))
    first, second = re.split(r"\n  program \d+: ", explain(branches))[1:]
    assert "x is a float64\n" in first and "x is a float64\n" not in second
    assert "x is a float\n" in second
    assert re.search(r"\d guards that program \d+ has as well, and guards", second)


def test_integers_that_became_inputs():
    def f(x, n):
        return x * n

    called(grad(f), *[(2.0, n) for n in range(8)])
    assert "n is an int" in explain(f) or "inputs by now" in explain(f)

    def g(x):
        return x * counter.n * 1.0

    counter = types.SimpleNamespace()
    for counter.n in range(8):
        grad(g)(2.0)
    text = explain(g)
    assert "inputs by now, as they changed too often to be guarded: counter.n" in text or (
        "counter.n is an int" in text
    )


def test_rolled_loops():
    def f(x):
        for _ in range(100):
            x = 3.7 * x * (1 - x)
        return x

    called(grad(f), 0.3, 0.3, 0.3)
    found = explain(f, 0.4)
    assert "(1 loop rolled)" in found and "would answer" in found
    assert (
        len(re.findall(r"\n        (?:for|while) ", found.source)) == 2
    )  # forward, and in reverse
    compile(found.source, "programs", "exec")
    assert "length" not in found  # a value that is computed is guarded by its type


# -------------------------------------------------------------------------------------------- a call


def test_the_program_that_would_answer():
    step = called(grad(branches), 2.0, 2.0, 0.5, np.float64(2.0))
    numbers = {}
    for x in (2.0, 0.5, np.float64(2.5)):
        found = re.search(
            r"a call with these arguments: program (\d+) would answer", explain(step, x)
        )
        numbers[x] = found[1]
    assert len({*numbers.values()}) == 3
    assert explain(branches, 2.0) == explain(grad(branches), 2.0)


def changed(**names):
    class Changed:
        def __enter__(self):
            self.before = {k: globals()[k] for k in names}
            globals().update(names)

        def __exit__(self, *_):
            globals().update(self.before)

    return Changed()


def other(x):
    return x


@pytest.mark.parametrize(
    "world, x, words",
    [
        ({"times": 4}, 2.0, "global times is no longer 3 (it was 3, and is 4 now)"),
        ({"times": True}, 2.0, "global times is no longer 3 (it was 3, and is True now)"),
        (
            {"scale": 2},
            2.0,
            "global scale is no longer a float (it was a float, and is an int now)",
        ),
        ({"helper": other}, 2.0, "global helper is another function, or was changed (it was the"),
        ({"math": np}, 2.0, "(it was the module math, and is the module numpy now)"),
        ({}, 2, "x is no longer a float (it was a float, and is an int now)"),
        ({}, np.ones(3), "(it was a float, and is a float64 array of shape (3,) now)"),
        ({}, 0.5, f"another decision at {__file__}:{DECISION}, in branches (it was True)"),
        ({}, math.nan, f"another decision at {__file__}:{DECISION}, in branches (it was True)"),
        ({}, "a", "(it was a float, and is a str now)"),
    ],
)
def test_why_a_call_would_be_traced(world, x, words):
    called(grad(branches), *[2.0] * 3)
    with changed(**world):
        text = explain(branches, x)
    assert "a call with these arguments is traced, and kept as a program" in text
    assert words in text
    assert "would answer" in explain(branches, 2.0)


def test_what_is_predicted_comes_true(monkeypatch):
    """The prediction, and whether the call is traced, for calls in a changing world."""
    real, traces = wengert.tracer.run.run, []

    def run(*args, **kwargs):
        traces.append(args)
        return real(*args, **kwargs)

    for name, module in list(sys.modules.items()):
        if name.startswith("wengert") and getattr(module, "run", None) is real:
            monkeypatch.setattr(module, "run", run)
    recorded = Known.run
    monkeypatch.setattr(Known, "run", lambda *args: traces.append(args) or recorded(*args))
    rng = random.Random(1)
    steps = [grad(branches), value_and_grad(branches)]
    seen = set()
    for _ in range(150):
        step, x = rng.choice(steps), rng.choice([0.5, 2.0, 1.5, np.float64(2.0), 3])
        with changed(times=rng.choice([3, 3, 3.0]), scale=rng.choice([2.0, 2])):
            before, text = len(traces), explain(step, x)
            assert len(traces) == before
            step(x)
            traced = len(traces) > before
        assert traced == ("would answer" not in text), text
        seen.add(traced)
    assert seen == {True, False}


def test_a_call_is_not_made():
    log, seen = [], types.SimpleNamespace(n=0)
    out = np.zeros(3)

    def f(x):
        log.append("f")
        seen.n += 1
        out[0] = x
        print("f")
        return x * 2

    called(grad(f), *[1.5] * 5)
    state = list(log), seen.n, out.copy(), str(explain(f))
    assert "would" in explain(f, 7.0) or "is traced" in explain(f, 7.0)
    explain(grad(f), 7.0)
    assert log == state[0] and seen.n == state[1]
    assert np.array_equal(out, state[2])
    assert str(explain(f)) == state[3]


def test_a_program_that_writes_is_tried_up_to_there(capsys):
    seen = types.SimpleNamespace(total=0.0)

    def f(x):
        seen.total += x
        print("called")
        return x * 2

    called(grad(f), *[1.5] * 5)
    capsys.readouterr()
    assert "would answer" in explain(f, 2.5)
    assert seen.total == 7.5 and capsys.readouterr().out == ""


def test_draws_are_not_made():
    def f(x):
        y = x * random.random()
        return y * 3 if x > 0 else y

    called(grad(f), *[1.5] * 4)
    state = random.getstate()
    text = explain(f, 1.5)
    assert random.getstate() == state
    assert "would be tried: its guards hold as far as the call of random" in text
    assert "no longer a float" in explain(f, 2)


def test_floating_point_errors_are_left_as_they_were():
    rng = np.random.default_rng(1)

    def f(v):
        return np.sum(np.sqrt(v) * rng.normal())

    called(grad(f), *[np.ones(3)] * 4)
    before = np.geterr()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        explain(f, np.ones(3))
        explain(f, -np.ones(3))
    assert np.geterr() == before


def test_arguments_that_do_not_fit():
    called(grad(branches), *[2.0] * 3)
    assert "other arguments were given" in explain(branches, 2.0, 3.0)
    assert "other arguments were given" in explain(branches, 2.0, y=3.0)
    assert "would answer" in explain(branches, x=2.0) or "is traced" in explain(branches, x=2.0)


def test_an_exception_is_told():
    def f(p):
        return 1 / p[0]

    called(grad(f), *[[2.0]] * 3)
    assert "ZeroDivisionError" in explain(f, [0.0])


# --------------------------------------------------------------------------------- what is not kept


def test_nothing_is_kept_yet():
    text = explain(branches, 2.0)
    assert text.startswith(f"branches  # {__file__}:{branches.__code__.co_firstlineno}")
    assert "nothing is kept" in text and "a call with these arguments is traced" in text
    grad(branches)(2.0)
    assert "a program is built at the third call, if the first two go the same way" in explain(
        branches
    )
    wengert.clear_cache()
    assert "nothing is kept" in explain(branches)


def test_a_run_that_cannot_be_kept():
    numbers = iter([1.0] * 100)

    def f(x):
        return x * next(numbers)

    called(grad(f), *[1.5] * 3)
    text = explain(f, 1.5)
    assert "could not be kept as a program: " in text and "numbers" in text
    assert "a call with these arguments is traced\n" in text + "\n"


def test_a_function_whose_programs_do_not_pay(monkeypatch):
    monkeypatch.setattr(Budget, "limited", True)
    monkeypatch.setattr(Budget, "may_build", lambda self, won: self.calls == 1)
    text = "a"

    def f(x):
        return x * len(text)

    for i in range(8):
        text = "a" * i
        grad(f)(1.5)
    told = explain(f, 1.5)
    assert re.search(r"programs have cost .* ms and won 0.0 ms, where tracing took .* ms", told)
    monkeypatch.setattr(Budget, "may_try", lambda self, won: False)
    assert "is traced, as programs have not answered for a while" in explain(f, 1.5)


def test_a_tape_that_is_too_long(monkeypatch):
    monkeypatch.setattr(budget, "LONG", 50)
    monkeypatch.setattr(budget, "PER_OPERATION", 100.0)

    def f(x):
        for i in range(100):
            x = (math.sin, math.cos, math.atan)[i % 3](x + i * i)
        return x

    called(grad(f), *[1.5] * 3)
    assert re.search(
        r"its tape is \d+ operations long: to write a program of it takes longer", explain(f)
    )


def test_the_jit_is_off():
    called(grad(branches), *[2.0] * 3)
    with jit(False):
        text = explain(branches, 2.0)
    assert text.startswith("the JIT is off (jit(False) or WENGERT_JIT=0)")
    assert "a call with these arguments is traced" in text and "would answer" not in text
    assert "off" not in explain(branches, 2.0)


@pytest.mark.skipif(sys.gettrace() is not None, reason="a debugger is at work")
def test_a_debugger_is_at_work():
    called(grad(branches), *[2.0] * 3)
    sys.settrace(lambda *_: None)
    try:
        text = explain(branches, 2.0)
    finally:
        sys.settrace(None)
    assert "sys.settrace" in text and "would answer" not in text


@pytest.mark.skipif(sys.gettrace() is not None, reason="a debugger is at work")
@pytest.mark.parametrize("transform", [grad, jit, value_and_grad])
def test_a_debugger_sees_the_lines_of_what_is_kept(transform):
    g = transform(branches)
    called(g, *[2.0] * 5)
    seen = []

    def look(frame, event, arg):
        if frame.f_code.co_name == "branches":
            seen.append(event)
        return look

    before = str(explain(g))
    sys.settrace(look)
    try:
        g(2.0)
    finally:
        sys.settrace(None)
    assert "line" in seen
    assert str(explain(g)) == before
    del seen[:]
    g(2.0)
    assert not seen and str(explain(g)) != before


# -------------------------------------------------------------------------------- the thing itself


def test_the_text_and_the_source():
    called(grad(branches), *[2.0] * 3)
    found = explain(branches, 2.0)
    assert isinstance(found, str) and repr(found) == str(found)
    assert found.source.count("def grad_branches(self, x=") == 1
    compile(found.source, "programs", "exec")
    assert "in reverse" not in found.source
    for other in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found)):
        assert other == found and other.source == found.source
    assert explain(helper).source == ""


def test_what_it_refuses():
    with pytest.raises(TraceError, match="not an int"):
        explain(3)
    with pytest.raises(TraceError, match=r"back\.source\(\)"):
        explain(pullback(branches, 2.0)[1])
    with pytest.raises(TraceError, match="being traced"):
        grad(lambda x: x * len(explain(branches)))(2.0)


def growing(x: float, n: int) -> float:
    """Goes new ways for some time, so that its region grows and programs are missed."""
    kept = [x]
    for i in range(n):
        if kept[-1] > 0.5:
            kept.append(kept[-1] * 0.7)
        elif i % 3 == n % 3:
            kept[0] = kept[0] + 0.1 * x * x
        else:
            kept.append(x)
    return sum(kept)


def test_it_may_be_asked_while_other_threads_call():
    step, grown, wrong = grad(branches), value_and_grad(growing), []

    def work():
        for i in range(300):
            x = 0.5 + i % 3
            if step(x) != (5 if x <= 1 else math.cos(x) * scale * times):
                wrong.append(x)
            if grown(x := i % 11 / 10, i % 9)[0] != growing(x, i % 9):
                wrong.append((x, i % 9))
            if i % 100 == 50:
                wengert.clear_cache()

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work) for _ in range(3)]
        [t.start() for t in threads]
        while any(t.is_alive() for t in threads):
            explain(step, 2.0)
            explain(grown, 0.4, 3)
        [t.join() for t in threads]
    finally:
        sys.setswitchinterval(before)
    assert not wrong


def test_it_keeps_nothing_alive():
    import gc
    import weakref

    called(grad(branches), *[2.0] * 3)
    v = np.ones(3)
    alive = weakref.ref(v)
    found = explain(branches, v)
    del v
    gc.collect()
    assert alive() is None and found


def test_functions_of_one_decorator_have_programs_of_their_own():
    def decorated(f):
        @functools.wraps(f)
        def around(x):
            return f(x)

        return around

    def first(x):
        return x * x

    def second(x):
        return x * x * x

    one, two = grad(decorated(first)), grad(decorated(second))
    for _ in range(4):
        assert (one(2.0), two(2.0)) == (4.0, 12.0)
    for slope, name in ((one, "first"), (two, "second")):
        title, counts = str(explain(slope, 2.0)).splitlines()[:2]
        assert title.startswith(f"grad({name})  # ")
        assert counts.startswith("  1 program, ")


def test_a_program_of_all_ways_is_told_by_its_size_and_by_what_each_run_added(monkeypatch):
    monkeypatch.setattr(Budget, "limited", False)
    monkeypatch.setattr(cache, "VARIED", 0)

    def halved(x, n):
        for i in range(n):
            x = x * 0.5 if i % 3 else x + 1.0
        return x

    slope = grad(halved)
    for n in range(12):
        slope(0.7, n)
    text = str(explain(slope))
    assert re.search(
        r"program \d+: \d+ operations for all ways that runs have gone; \d+ hits; ", text
    )
    assert re.search(
        r"\n    2 decisions, 1 loop; ops, blocks and ends that were added: (\d+ by run \d+(, )?)+\n",
        text,
    )
    assert "in reverse" not in text


def test_the_region_is_told_with_the_run_that_each_way_was_first_gone_in(monkeypatch):
    monkeypatch.setattr(Budget, "limited", False)
    monkeypatch.setattr(cache, "VARIED", 0)

    def step(a, y):
        if y > 1.0:
            return a * y
        return y + a

    def climb(a, n):
        y = 0.5
        for _ in range(n):
            y = step(a, y)
            if y > 50.0:
                raise ValueError("too high")
        return y

    slope = grad(climb)
    for n in (1, 2, 1, 5, 6, 7, 8):
        slope(0.75, n)
    told = explain(slope)
    _, _, inside = told.region.partition("call step")  # where a later turn goes the other way
    assert re.search(r"(if %\d+|else):  # from run \d on\n", inside)
    lines = [re.sub(r"  #.*", "", line).strip() for line in told.region.splitlines()]
    shape = [line for line in lines if line.startswith(("call", "loop", "if", "else", "next"))]
    assert [re.sub(r"%\d+|(?<=[a-z])\.\d+", "…", line) for line in shape] == [
        "call climb",
        "loop over …, carrying y = 0.5",
        "call step",
        "if …:",
        "else:",
        "if …:",
        "else:",
        "next y = …",
    ]
    assert "if %" in told and "# no run has gone here" in told.region
    assert "  the region of its runs" in told
    assert re.search(r"\n        y = 0\.5\n        for \w+ in \w+:\n", told.source)
    assert re.search(r"\bdy\w* = ", told.source)


def test_the_region_of_a_function_that_calls_itself_is_told_once(monkeypatch):
    monkeypatch.setattr(Budget, "limited", False)
    monkeypatch.setattr(cache, "VARIED", 0)

    def fib(x, n):
        return x if n < 2 else fib(x * 0.9, n - 1) + fib(x, n - 2)

    slope = grad(fib)
    for n in range(2, 9):
        slope(0.7, n)
    region = explain(slope).region
    assert region.count("function fib(x.") == 1
    assert re.search(r"\n +(%\d+) = fib\(%\d+, %\d+\)\n", region)


def test_a_way_behind_an_exception_is_told_to_the_end_of_its_turn(monkeypatch):
    monkeypatch.setattr(Budget, "limited", False)
    monkeypatch.setattr(cache, "VARIED", 0)

    def rooted(x, n):
        for _ in range(n):
            try:
                x = math.sqrt(x - 1.0)
            except ValueError:
                x = x + 1.3
        return x

    slope = grad(rooted)
    for n in range(1, 6):
        slope(0.7, n)
    region = explain(slope).region
    assert re.search(
        r"\n( +)on ValueError:\n +(x\.\d+) = x\.\d+ \+ 1\.3 .*\n\1  next x\.\d+ = \2\n", region
    )


def test_what_a_region_does_to_memories_is_told_in_pythons_words(monkeypatch):
    monkeypatch.setattr(Budget, "limited", False)
    monkeypatch.setattr(cache, "VARIED", 0)

    class Ball:
        def __init__(self, x):
            self.x = x

    def fall(x, n):
        ball, path = Ball(x), []
        for _ in range(n):
            ball.x = ball.x - 0.1 if ball.x > 0.2 else 0.5
            path.append(ball.x)
        return path[0] * len(path)

    slope = grad(fall)
    for n in range(1, 9):
        slope(0.7, n)
    region = explain(slope).region
    assert re.search(r"\n +(%\d+)\.x = x\n", region)
    assert re.search(r"\n +%\d+\.append\(%\d+\)\n", region)
    assert re.search(r"%\d+ = len\(%\d+\)", region) and re.search(r"%\d+ = %\d+\[0\]", region)


# ------------------------------------------------------------------------------------------- what to do


def test_a_gradient_of_which_nothing_is_ever_kept_says_why():
    called(grad(branches), 2.0, 2.0, 2.0)  # the program of another gradient of the same function
    for slope, why, cure in [
        (grad(branches, debug=True), "debug=True looks at each", "leave debug=True out"),
        (value_and_grad(branches, primitives=[]), "`primitives` decides", "give what is to be"),
    ]:
        slope(2.0)
        lines = explain(slope, 2.0).splitlines()
        assert lines[1].startswith(f"  nothing is kept: {why}")
        assert lines[2].startswith(f"    what to do: {cure}")
        assert lines[3:] == ["  a call with these arguments is traced"]
    assert "1 program" in explain(grad(branches))


def test_what_stands_in_the_way_of_the_next_program_has_a_cure(monkeypatch):
    slope = called(grad(branches), 2.0, 2.0, 2.0)
    (entry,) = cache.entries.values()
    monkeypatch.setattr(Budget, "may_build", lambda budget, won: False)
    entry.folding.why = "seen, a list from outside, is written to"
    lines = explain(slope, 2.0).splitlines()
    for reason, cure in [
        ("programs have cost", "pass what is another one at each call as an argument"),
        ("its runs do not fold into one program: seen", "nothing where calls go a few ways"),
    ]:
        (at,) = [i for i, line in enumerate(lines) if line.startswith(f"  {reason}")]
        assert lines[at + 1].startswith(f"    what to do: {cure}")

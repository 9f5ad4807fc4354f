"""Who looks at frames sees those of plain Python: debuggers, profilers, `inspect`, `logging`, warnings."""

import cProfile
import inspect
import io
import logging
import os
import pdb
import pstats
import re
import subprocess
import sys
import textwrap
import traceback
import warnings
from unittest import mock

import pytest

from wengert import grad, jit, value_and_grad

# ---------------------------------------------------------------------------------------------- debuggers

PROGRAM = """
import pdb, sys
from wengert import grad, jit, pullback, value_and_grad

class Point:
    def __init__(self, x, y): self.x, self.y = x, y
    def __mul__(self, k):
        z = self.x * k
        return z + self.y

def g(y):
    z = [y, {"k": y * 2}]
    w = y + 1
    return w * z[0]

def f(x):
    y = x * 2
    @STOP@
    q = g(y)
    r = q * x
    for i in range(2):
        r = r + sorted([x, y], key=lambda v: -v)[0]
    return r + (Point(x, y) * r)

def steps(x):
    total = 0.0
    for i in range(3):
        total = total + x * i
        if i == 1:
            @STOP@
            yield total
    yield x

def h(x):
    return sum(steps(x))

def ask(which):
    value = which(2.0)
    return None

def executed(x):
    exec("y = x * 2\\n@STOP@\\nz = y * x", space := {"x": x, "pdb": pdb})
    return space["z"]

jit(sys.argv[2] == "on").__enter__()
for function in (f, h, executed):
    ask(function if sys.argv[1] == "plain" else grad(function))
print("done")
"""

COMMANDS = {
    "values": "p x\np y\np type(y), isinstance(y, float)\np y * 3 + 1\np [x, (y,)]\npp {1: x}\nx\ny + 1\nc\n",
    "steps": "n\nn\np q\ns\np r\nn\nn\np i, r\nc\n",
    "into": "n\ns\np y\nn\nn\np z, type(z[0])\np z[1]['k'] + 1\nargs\nup\np x, y\ndown\nr\nretval\nn\nc\n",
    "where": "where\nn\ns\nn\nw\nll\nup\nup\nl\ndown\nc\n",
    "sets": "!y = y + 1.5\np y\n!k = [y]\np k\nk.append(3)\np k\nn\nn\np q\nk\nn\nk = k + [x]\np k\nc\n",
    "breaks": "b g\nc\np y\nwhere\ncl 1\ntbreak Point.__mul__\nc\np self.x, k\nargs\nn\np z\nc\n",
    "display": "display x\ndisplay y * 2\nn\nn\nc\n",
    "more": "whatis x\nwhatis y\nsource g\np sum([x, y])\np __import__('math').sin(y)\np f'{x:.3f} {y!r}'\nc\n",
}


def talk(tmp_path, stop, commands, *args, **environment):
    script = tmp_path / "script.py"
    script.write_text(PROGRAM.replace("@STOP@", stop))
    ended = subprocess.run(
        [sys.executable, str(script), *args],
        input=commands + "c\n" * 5,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHON_COLORS": "0", **environment},
    )
    assert ended.returncode == 0, ended.stderr
    assert "done" in ended.stdout
    return re.sub("0x[0-9a-f]+", "0x…", ended.stdout + ended.stderr)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_debugger_in_the_function(tmp_path, name):
    expected = talk(tmp_path, "breakpoint()", COMMANDS[name], "plain", "off")
    assert "(Pdb)" in expected
    for on in ("off", "on") if name == "values" else ("off",):
        assert talk(tmp_path, "breakpoint()", COMMANDS[name], "traced", on) == expected


@pytest.mark.parametrize(
    "stop",
    [
        "pdb.set_trace()",
        "pdb.set_trace(header='stop')",
        "pdb.Pdb().set_trace()",
        "breakpoint(header='here')",
        "pdb.Pdb(nosigint=True).set_trace(sys._getframe())",
    ],
)
def test_ways_to_a_debugger(tmp_path, stop):
    stop = stop.replace("sys.", "__import__('sys').")
    commands = COMMANDS["values"] + "n\nn\nwhere\nc\n"
    expected = talk(tmp_path, stop, commands, "plain", "off")
    assert talk(tmp_path, stop, commands, "traced", "off") == expected


def test_no_debugger_is_wanted(tmp_path):
    said = talk(tmp_path, "breakpoint()", "", "traced", "on", PYTHONBREAKPOINT="0")
    assert said == "done\n"


def test_a_hook_of_the_users(monkeypatch):
    asked = []
    monkeypatch.setattr(sys, "breakpointhook", lambda *args, **kwargs: asked.append((args, kwargs)))

    def f(x):
        breakpoint("a", k=1)
        return x * x

    for on in (True, False):
        with jit(on):
            for _ in range(3):
                assert grad(f)(2.0) == 4.0
    assert asked == [(("a",), {"k": 1})] * 6


def test_a_hook_of_the_users_stands_in_the_function(monkeypatch):
    seen = []

    def hook():
        frame = sys._getframe(1)
        seen.append((frame.f_code.co_name, frame.f_lineno, dict(frame.f_locals)))

    def f(x):
        y = x * 2.0
        breakpoint()
        return y * x

    monkeypatch.setattr(sys, "breakpointhook", hook)
    f(3.0)
    for on in (True, False):
        with jit(on):
            for _ in range(4):
                assert value_and_grad(f)(3.0) == (18.0, 12.0)
    assert seen == [seen[0]] * 9
    monkeypatch.setattr(sys, "breakpointhook", lambda: seen.clear())
    assert grad(f)(3.0) == 12.0
    assert not seen


# ------------------------------------------------------------------------------------------------- stacks


def by_getframe(x):
    def inner():
        frame, found = sys._getframe(), []
        while frame is not None and frame.f_code.co_name != "ask":
            found.append((frame.f_code.co_name, frame.f_lineno))
            frame = frame.f_back
        deep = [sys._getframe(i).f_code.co_name for i in range(3)]
        same = sys._getframe().f_back.f_code is by_getframe.__code__
        return found, deep, same, sys._getframe(1).f_globals["__name__"]

    return x, inner()


def by_currentframe(x):
    frame = inspect.currentframe()
    return x, (frame.f_code.co_name, frame.f_lineno, frame.f_back.f_code.co_name)


def by_inspect_stack(x):
    def inner():
        return [(s.function, s.lineno, s.code_context) for s in inspect.stack()[:3]]

    outer = inspect.getouterframes(inspect.currentframe())
    return x, (inner(), [s.function for s in outer[:2]])


def by_traceback(x):
    def inner():
        out = io.StringIO()
        traceback.print_stack(file=out, limit=2)
        return (
            [(s.name, s.lineno) for s in traceback.extract_stack(limit=3)],
            traceback.format_stack(limit=2),
            out.getvalue(),
            [(f.f_code.co_name, line) for f, line in traceback.walk_stack(sys._getframe())][:2],
        )

    return x, inner()


class Sorted:
    seen = []

    def __init__(self, value):
        self.value = value

    def __lt__(self, other):
        frame, found = sys._getframe(), []
        while frame.f_code.co_name != "ask":
            found.append((frame.f_code.co_name, frame.f_lineno))
            frame = frame.f_back
        self.seen.append(found)
        return self.value < other.value


def by_special_method(x):
    Sorted.seen.clear()
    sorted([Sorted(x), Sorted(x * 2)])
    return x, list(Sorted.seen)


def by_generator(x):
    def steps():
        yield [s.function for s in inspect.stack()[:3]]
        yield [s.name for s in traceback.extract_stack(limit=2)]

    return x, (list(steps()), [n for n in steps()])


def by_logging(x):
    log = logging.getLogger("watched")
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(logging.Formatter("%(filename)s %(funcName)s %(lineno)d %(message)s"))
    log.addHandler(handler)
    log.setLevel("INFO")
    log.propagate = False

    def inner():
        log.info("one %s", x)
        log.info("two %.2f", x, stacklevel=2)
        log.warning("three")
        log.log(logging.ERROR, "four %s", [x])
        try:
            return {}[x]
        except KeyError:
            log.exception("five")

    inner()
    logging.LoggerAdapter(log, {}).info("six")
    log.removeHandler(handler)
    return x, out.getvalue()


def by_warnings(x):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")

        def inner():
            warnings.warn("one", stacklevel=1)
            warnings.warn(f"two {x}", DeprecationWarning, 2)
            warnings.warn(UserWarning("three", x), stacklevel=2)
            if sys.version_info >= (3, 12):
                warnings.warn("four", skip_file_prefixes=("/nowhere",))
            list(map(lambda v: warnings.warn("five", stacklevel=2), [x]))

        inner()
    return x, [(w.category, str(w.message), w.filename, w.lineno) for w in found]


def by_module_name(x):
    return x, sys._getframemodulename() if sys.version_info >= (3, 12) else __name__


STACKS = [
    by_getframe, by_currentframe, by_inspect_stack, by_traceback, by_special_method, by_generator, by_logging,
    by_warnings, by_module_name,
]  # fmt: skip


def ask(f, x):
    return f(x)


@pytest.mark.parametrize("f", STACKS)
def test_calling_frames(f):
    expected = ask(f, 1.5)[1]
    g = value_and_grad(f, has_aux=True)
    for on in (True, False):
        with jit(on):
            for _ in range(3):
                assert ask(g, 1.5)[0][1] == expected


# ---------------------------------------------------------------------------------------------- watchers


def helper(x):
    y = x * 2
    return y


class Counted:
    def __init__(self, value):
        self.value = value

    def __lt__(self, other):
        return self.value < other.value


def busy(x):
    first = sorted([Counted(x), Counted(x * 2)])[0]
    return sum(helper(first.value) for _ in range(2)) + len(str(helper(x)))


def watching(set_it, get_it):
    seen = []

    def watcher(frame, event, arg):
        if frame.f_code.co_filename == __file__ and event in ("call", "return", "line"):
            seen.append((event, frame.f_code.co_name, frame.f_lineno))
        return watcher

    def f(x):
        before = get_it()
        set_it(watcher)
        try:
            y = busy(x)
            assert get_it() is watcher
        finally:
            set_it(before)
        return y

    return f, seen


@pytest.mark.parametrize("name", ["trace", "profile"])
def test_watchers_that_the_function_sets(name):
    set_it, get_it = getattr(sys, f"set{name}"), getattr(sys, f"get{name}")
    f, seen = watching(set_it, get_it)
    f(1.5)
    expected, before = list(seen), get_it()
    for on in (True, False):
        with jit(on):
            for _ in range(3):
                seen.clear()
                assert grad(f)(1.5) == 4.0
                assert seen == expected
                assert get_it() is before


def test_watchers_that_stay():
    def watcher(frame, event, arg):
        return None

    def f(x):
        sys.setprofile(watcher)
        return x * x

    before = sys.getprofile()
    try:
        assert grad(f)(2.0) == 4.0
        assert sys.getprofile() is watcher
    finally:
        sys.setprofile(before)


def test_profilers_around():
    for on in (True, False):
        with jit(on):
            for _ in range(2):
                profiler = cProfile.Profile()
                profiler.enable()
                assert grad(busy)(1.5) == 4.0
                helper(1.0)
                profiler.disable()
                counts = {
                    key[2]: value[0]
                    for key, value in pstats.Stats(profiler).stats.items()
                    if key[0] == __file__
                }
                assert counts["helper"] >= 1


def test_a_profile_function_around():
    seen = []

    def watcher(frame, event, arg):
        if frame.f_code.co_filename == __file__ and event in ("call", "return"):
            seen.append((event, frame.f_code.co_name))

    def watched(ask):
        seen.clear()
        before = sys.getprofile()
        sys.setprofile(watcher)
        try:
            ask(1.5)
            helper(1.0)
        finally:
            sys.setprofile(before)
        return list(seen)

    expected = watched(busy)
    with jit(False):
        assert watched(grad(busy)) == expected


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring is new in 3.12")
def test_monitoring():
    monitoring, seen = sys.monitoring, []
    tool = monitoring.DEBUGGER_ID

    def started(code, offset):
        if code.co_filename == __file__:
            seen.append(code.co_name)

    def watched(ask):
        seen.clear()
        monitoring.use_tool_id(tool, "test")
        monitoring.register_callback(tool, monitoring.events.PY_START, started)
        monitoring.set_events(tool, monitoring.events.PY_START)
        try:
            ask(1.5)
        finally:
            monitoring.set_events(tool, 0)
            monitoring.free_tool_id(tool)
        return list(seen)

    expected = watched(busy)
    with jit(False):
        assert watched(grad(busy)) == expected


COVERED = """
    import sys, trace
    from wengert import grad, jit

    def f(x):
        y = x * 2
        for i in range(3):
            y = y + x
        if y > 100:
            y = 0.0
        return [y, x][0]

    def ask():
        with jit(False):
            assert grad(f)(2.0) == 5.0

    tracer = trace.Trace(count=True, trace=False)
    tracer.runfunc(f, 2.0)
    plain = {k: v for k, v in tracer.counts.items() if k[0] == __file__}
    tracer = trace.Trace(count=True, trace=False)
    tracer.runfunc(ask)
    lines = {k[1] for k in plain}
    assert {k: v for k, v in tracer.counts.items() if k[0] == __file__ and k[1] in lines} == plain
    """


def test_coverage(tmp_path):
    script = tmp_path / "covered.py"
    script.write_text(textwrap.dedent(COVERED))
    ended = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=120
    )
    assert ended.returncode == 0, ended.stderr


def test_the_debugger_is_replaced(monkeypatch):
    """Whatever stands under the name ``pdb.set_trace`` is called, as in plain Python."""
    asked = []
    monkeypatch.setattr(pdb, "set_trace", lambda *args: asked.append(args))

    def f(x):
        breakpoint("a")
        return x * len(asked)

    for on in (True, False):
        with jit(on):
            for _ in range(3):
                assert value_and_grad(f)(2.0) == (2.0 * len(asked), float(len(asked)))
    assert asked == [("a",)] * 6
    with mock.patch("pdb.set_trace") as stand_in:
        value_and_grad(f)(2.0)
    stand_in.assert_called_once_with("a")

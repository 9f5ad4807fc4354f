"""What comes to life inside a traced function: code of `exec` and `eval`, classes of all sorts, threads.

That it goes as in plain Python, whatever changes between calls, is told in `tests/jit/stories/dynamic.txt`.
"""

import _thread
import abc
import ast
import asyncio
import builtins
import concurrent.futures
import contextlib
import enum
import functools
import io
import multiprocessing
import multiprocessing.pool
import sys
import threading
import time
import types
import typing
from pathlib import Path

import pytest

from helpers import Cases, check, check_raises, derivative
from wengert import TraceError, explain, grad, jit, pullback, value_and_grad

sys.path.insert(0, str(Path(__file__).parent.parent / "jit"))

from jit.test_world import stories
from worlds import World

# ------------------------------------------------------------------------------------------- derivatives


def fresh(story, x, ask):
    """Ask in a world of its own: the function of a story may change what is around it."""
    world = World()
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return ask(world.module(story.setup).f, x)
    finally:
        world.undo.close()


def plainly(f, x):
    return f(x)


@pytest.mark.parametrize(
    "story", [s for s in stories("dynamic") if not any(k == ">>" for k, _ in s.steps)], ids=str
)
def test_derivatives_of_what_is_executed(story):
    try:
        value = fresh(story, 1.5, plainly)
    except Exception:
        return
    if value is None:
        return

    def traced(f, x):
        with jit(False):
            return value_and_grad(f)(x)

    assert fresh(story, 1.5, traced) == (
        value,
        pytest.approx(derivative(lambda t: fresh(story, 1.5 + t, plainly)), rel=1e-7, abs=1e-7),
    )


def by_eval(x):
    return eval("x * x") * x


def by_exec(x):
    space = {"x": x}
    exec("def g(a, *, k=x):\n    return a * k\ny = [g(x, k=i * x) for i in range(3)]", space)
    return sum(space["y"]) * space["g"](x)


def by_code(x):
    return types.FunctionType(by_eval.__code__, {"__builtins__": builtins})(x)


@pytest.mark.parametrize("f", [by_eval, by_exec, by_code])
def test_programs_are_kept(f):
    for x in (1.5, 2.5, 3.5):
        grad(f)(x)
    assert "would answer" in str(explain(grad(f), 2.0))


def test_functions_that_are_left_behind_are_plain():
    space = {}

    def f(x):
        scope = {"x": x}
        exec("def g(a): return [a * x, scale]\nclass C:\n    k = x", scope, space)
        exec("scale = x * 2", scope)
        return space["g"](x)[0]

    assert grad(f)(3.0) == 6.0
    made = space["g"].__globals__
    assert {k: type(v) for k, v in made.items() if k[0] != "_"} == {"x": float, "scale": float}
    assert type(space["C"].k) is float
    assert made["scale"] == 6.0
    made["scale"] = 1.0
    assert space["g"](2.0) == [6.0, 1.0]


# ------------------------------------------------------------------------------------------------ errors


def syntax(x):
    exec("y = x\nif y\n    z = 1")


def nested(x):
    exec(
        "def g(a):\n    return h(a)\ndef h(a):\n    raise ValueError(f'{a} is {a!r}')\ng(x)",
        {"x": x},
    )


def unbound(x):
    exec("print(y)", {"x": x})


def deleted(x):
    exec("del y", {"x": x})


def free(x):
    def inner():
        return x

    exec(inner.__code__)


def wrong_closure(x):
    def inner():
        return x

    exec(inner.__code__, closure=(1,))


def no_mapping(x):
    eval("x", {}, x)


def no_dict(x):
    exec("x", x)


def no_text(x):
    return eval(x)


def no_code(x):
    return types.FunctionType("x", {})


def bad_mode(x):
    return compile("x", "", "nonsense")


@pytest.mark.parametrize(
    "f",
    [
        syntax, nested, unbound, deleted, free, wrong_closure, no_mapping, no_dict, no_text,
        no_code, bad_mode,
    ],
)  # fmt: skip
def test_raises_what_python_raises(f):
    error = check_raises(f, 1.5)
    with pytest.raises(type(error)) as plain:
        f(1.5)
    for name in ("filename", "lineno", "offset", "text"):
        assert getattr(error, name, None) == getattr(plain.value, name, None)


@pytest.mark.parametrize("f", [nested])
def test_frames_of_executed_code(f):
    def frames(call):
        with pytest.raises(ValueError) as raised:
            call()
        return [(x.name, x.path, x.lineno) for x in raised.traceback if x.name != "<lambda>"][2:]

    assert [x[0] for x in frames(lambda: f(1.5))][-3:] == ["<module>", "g", "h"]


def test_another_name_needs_the_globals():
    def f(x):
        e = eval
        return e("x * x", {"x": x})

    assert check(f, 1.5)

    def g(x):
        e = eval
        return e("x * x")

    with pytest.raises(
        TraceError, match=r"test_dynamic.py:\d+, in g: eval\(\) looks at the variables"
    ):
        grad(g)(1.5)


class Asked(dict):
    def __getitem__(self, name):
        return super().__getitem__(name) * 2


def test_globals_with_methods_are_refused():
    def f(x):
        return eval("x", Asked(x=x))

    with pytest.raises(TraceError, match="in f: the globals of this code are an Asked"):
        grad(f)(1.5)
    check(lambda x: eval("x * x", {}, Asked(x=x)), 1.5)


def test_asynchronous_code_is_refused():
    def f(x):
        exec("async def g(): return x\nx = g()", {"x": x})

    with pytest.raises(TraceError, match="g .* is asynchronous code"):
        grad(f)(1.5)


# ----------------------------------------------------------------------------------------------- classes


class Grade(enum.Enum):
    LOW = 1.5
    HIGH = 2.5

    def scaled(self, x):
        return self.value * x


case = Cases()


@case(1.5)
def members_with_traced_values(x):
    class C(enum.Enum):
        A = x
        B = (x, 2.0)

        @property
        def first(self):
            return self.value if self is C.A else self.value[0]

    return C.A.first * C.B.first + len(C)


@case(1.5)
def enum_by_call(x):
    C = enum.Enum("C", {"A": x, "B": 3.0})
    return C.A.value * C["B"].value * (C.__module__ == __name__)


@case(1.5)
def members_with_attributes(x):
    class C(enum.Enum):
        A = (x, 2.0)
        B = (3.0, x)

        def __init__(self, a, b):
            self.a, self.b = a, b * x

    return sum(c.a * c.b for c in C)


@case(1.5)
def whole_numbers(x):
    class F(enum.Flag):
        A = enum.auto()
        B = enum.auto()

    C = enum.IntEnum("C", "P Q")
    return x * (F.A | F.B).value + C.Q * x + C.P


@case(1.5)
def outside_enum(x):
    return Grade.LOW.scaled(x) * Grade(2.5).value * (Grade(1.5) is Grade.LOW)


@case(1.5)
def made_by_typing(x):
    N = typing.NamedTuple("N", [("a", float)])
    T, V = typing.TypeVar("T"), typing.NewType("V", float)
    D = typing.TypedDict("D", {"a": float})
    assert {c.__module__ for c in (N, T, V, D)} == {__name__}
    return N(x).a * V(x) * D(a=x)["a"]


@case(1.5)
def dispatched(x):
    @functools.singledispatch
    def g(a):
        return a * 2

    @g.register
    def _(a: float):
        return a * x

    @g.register(list)
    def _(a):
        return g(a[0])

    return g([x])


@case(1.5)
def abstract(x):
    class A(abc.ABC):
        @abc.abstractmethod
        def m(self): ...

    class B(A):
        def m(self):
            return x * x

    return B().m()


@case(1.5)
def by_metaclass(x):
    class M(type):
        def __new__(mcs, name, bases, space, k=1.0):
            cls = super().__new__(mcs, name, bases, space)
            cls.k = k * space.get("s", 1.0)
            return cls

        def __call__(cls, *args):
            made = super().__call__(*args)
            made.z = cls.k
            return made

    class A(metaclass=M, k=x):
        s = x

    class B(A):
        pass

    return A().z * x + B().z


@case.each
def test_classes(f, args, options):
    check(f, *args, **options)
    for x in (1.5, 1.5, 1.5):
        assert value_and_grad(f)(x)[0] == f(x)


# ----------------------------------------------------------------------------------------------- threads


results = []


def work(x):
    results.append(x * x)


class Worker(threading.Thread):
    def __init__(self, x):
        super().__init__()
        self.x = x

    def run(self):
        work(self.x)


async def asynchronous(x):
    return x * x


def a_thread(x):
    threading.Thread(target=work, args=(x,)).start()


def a_subclass(x):
    Worker(x).start()


def a_timer(x):
    threading.Timer(0.0, work, (x,)).start()


def another_name(x):
    start = threading.Thread(target=work, args=(x,)).start
    start()


def an_attribute(x):
    begin = threading.Thread.start
    begin(threading.Thread(target=work, args=(x,)))


def in_c(x):
    _thread.start_new_thread(work, (x,))


def a_pool(x):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return list(pool.map(work, [x]))


def a_submitted_call(x):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(work, x).result()


def another_pool(x):
    with multiprocessing.pool.ThreadPool(1) as pool:
        return pool.apply(work, (x,))


def a_process(x):
    multiprocessing.Process(target=work, args=(x,)).start()


def processes(x):
    with multiprocessing.Pool(1) as pool:
        return pool.map(work, [x])


def a_coroutine(x):
    return asyncio.run(asynchronous(x))


@pytest.mark.parametrize(
    "f",
    [
        a_thread, a_subclass, a_timer, another_name, an_attribute, in_c, a_pool, a_submitted_call,
        another_pool, a_process, processes, a_coroutine,
    ],
)  # fmt: skip
@pytest.mark.parametrize("on", [True, False])
def test_work_done_elsewhere_is_refused(f, on):
    results.clear()
    with jit(on), pytest.raises(TraceError) as error:
        pullback(f, 1.5)
    assert "test_dynamic.py" in str(error.value)
    assert any(word in str(error.value) for word in ("thread or process", "async function"))
    time.sleep(0.01)
    assert results == []


@pytest.mark.parametrize("on", [True, False], ids=["jit", "traced"])
def test_a_traced_number_in_a_syntax_tree_is_refused_where_it_is_compiled(on):
    outside = ast.parse("2 * 3", mode="eval")

    def in_a_tree_outside(x):
        outside.body.left.value = x
        return eval(compile(outside, "q", "eval"))

    def in_a_tree_of_its_own(x):
        tree = ast.parse("2 * 3", mode="eval")
        tree.body.left.value = x * x
        return eval(compile(tree, "q", "eval"))

    def by_name(x):
        return eval(compile(ast.parse("x * 3", mode="eval"), "q", "eval"), {"x": x})

    with jit(on):
        for f in (in_a_tree_outside, in_a_tree_of_its_own):
            with pytest.raises(TraceError, match="value is a traced number, which compile makes"):
                grad(f)(3.0)
        assert grad(by_name)(3.0) == 3.0

"""Tapes as files: they run where there is no Wengert, and give what the engine gives."""

import ast
import collections
import dataclasses
import math
import operator
import pickle
import subprocess
import sys
import typing
from pathlib import Path

import numpy as np
import pytest

from helpers import assert_same
from wengert import (
    checkpoint,
    custom_rule,
    grad,
    jacobian,
    pullback,
    reverse,
    rrule,
    save,
    trace,
    value_and_grad,
)
from wengert.rules.registry import rules
from wengert.tracer.errors import TraceError

V = np.array([0.5, -1.2, 2.0])
M = np.array([[2.0, 0.3, 0.1], [0.4, 1.5, 0.2], [0.0, 0.6, 3.0]])
SHIFT = np.array([0.1, 0.2, math.inf])
PLACES = np.array([2, 0, 0])


class Point(typing.NamedTuple):
    x: float
    y: float


def floats(x, y):
    return math.sin(x) * y**2 + math.exp(-x) / (1 + y) - abs(x) * float("1.5")


def loop(x, n):
    for i in range(n):
        x = x + 0.1 * math.cos(x) * (i + 1) if x < 3 else x * 0.5
    return x


def branch(x):
    if x > 0:
        return x * x
    return -x


def arrays(v, m):
    h = np.tanh(m @ v + 0.1)
    return (h * h).sum(axis=0) + np.exp(h[0]) * m[1:, 0].mean() + np.max(v)


def structures(table, pair, flag=True):
    first, second = pair
    total = np.sum(table["w"] * first) + second[0] * table["b"]["c"]
    return total * 2 if flag else total


def point(p, v):
    return p.x * v[0] + p.y * v[1] * p.x


def algebra(m, v):
    sign, logdet = np.linalg.slogdet(m @ m.T + np.eye(3))
    x = np.linalg.solve(m, v)
    return (
        logdet + x @ x + np.trace(np.linalg.inv(m)) + np.linalg.cholesky(m @ m.T + np.eye(3)).sum()
    )


def indexing(v, m):
    a = np.zeros(4)
    a[1:] = v * v
    a[0] = m[PLACES, [0, 1, 2]].sum()
    a[a > 1] *= 2.0
    return a @ a + v[PLACES].prod() + m[:, 1:].sum() + m[..., None].sum()


def outside(v):
    return np.where(np.isfinite(SHIFT), v * v + np.minimum(SHIFT, 9.0), v).sum()


def special(x):
    from scipy.special import gammaln, logsumexp

    return gammaln(x).sum() + logsumexp(x)


def decided(v):
    return v[np.argsort(v)][0] * 2 + np.sort(v)[-1] + np.median(v)


def single(v):
    return np.float32(2) * (v * v).sum()


def integers(v, k):
    return (v[k] * np.arange(3.0)).sum()


def rolled(x, w):
    for _ in range(200):
        x = math.sin(x * w) + 0.5 if x > 0.6 else x * w + 0.3
    return x


def newton(a):
    x = a
    while abs(x * x - a) > 1e-12:
        x = 0.5 * (x + a / x)
    return x


def nested(v, m):
    total = 0.0
    for i in range(20):
        for j in range(20):
            total = total + math.sin(v * i + j * m) * total + 0.1
    return total


def recurrence(v):
    a = np.zeros(100)
    a[0] = v[0]
    for i in range(1, 100):
        a[i] = a[i - 1] * v[1] + math.sin(v[2])
    return a.sum()


def items(xs):
    total = 0.0
    for x in xs:
        total = total + x * math.cos(total)
    return total


PROGRAMS = [
    (rolled, (1.0, 0.7), (0, 1)),
    (newton, (2.0,), 0),
    (nested, (0.3, 0.4), (0, 1)),
    (recurrence, (V,), 0),
    (items, ([0.001 * i for i in range(100)],), 0),
    (floats, (1.3, 0.7), (0, 1)),
    (loop, (0.4, 4), 0),
    (branch, (2.5,), 0),
    (arrays, (V, M), (0, 1)),
    (structures, ({"w": V, "b": {"c": 2.0}}, (1.5, [2.5])), (0, 1)),
    (point, (Point(0.5, 2.0), V), (0, 1)),
    (algebra, (M, V), (0, 1)),
    (indexing, (V, M), (0, 1)),
    (outside, (V,), 0),
    (decided, (V,), 0),
    (single, (V.astype(np.float32),), 0),
    (integers, (V, np.array([2, 0, 0])), 0),
]
RUNNER = """
import importlib, pathlib, pickle, sys
sys.modules["wengert"] = None  # so that whoever imports it gets an error
sys.path.insert(0, ".")
found = {}
for name, args in pickle.loads(pathlib.Path("arguments.pickle").read_bytes()).items():
    module = importlib.import_module(name)
    function = getattr(module, "value_and_grad_" + name.partition("_")[2])
    try:
        found[name] = function(*args)
    except ValueError as error:
        found[name] = str(error)
pathlib.Path("found.pickle").write_bytes(pickle.dumps(found))
"""


def plain(args):
    """Arguments that a process without these tests can read."""
    return tuple([tuple(x) if isinstance(x, Point) else x for x in args])


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What the files give, in one process of their own that cannot import Wengert."""
    folder = tmp_path_factory.mktemp("files")
    given = {}
    for f, args, argnums in PROGRAMS:
        save(value_and_grad(f, argnums), folder / f"file_{f.__name__}.py", *args)
        if f is not point:
            given[f"file_{f.__name__}"] = args
    save(value_and_grad(branch), folder / "fails_branch.py", 2.5)
    given |= {"fails_branch": (-2.5,)}
    (folder / "arguments.pickle").write_bytes(pickle.dumps(given))
    (folder / "runner.py").write_text(RUNNER)
    done = subprocess.run(
        [sys.executable, "-I", "-W", "error", "runner.py"],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return pickle.loads((folder / "found.pickle").read_bytes())


@pytest.mark.parametrize(
    ("f", "args", "argnums"),
    [p for p in PROGRAMS if p[0] is not point],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_a_file_gives_what_the_engine_gives(found, f, args, argnums):
    value, gradient = found[f"file_{f.__name__}"]
    assert_same(value, f(*args))
    expected = value_and_grad(f, argnums)(*args)[1]
    assert_same_kinds(gradient, expected)
    slope, numeric = along(f, args, argnums, gradient)
    assert slope == pytest.approx(numeric, rel=5e-3 if f is single else 1e-6, abs=1e-7)


def assert_same_kinds(a, b):
    """The same structure, types and shapes, and numbers that differ by rounding at most."""
    assert type(a) is type(b)
    if isinstance(a, dict):
        assert list(a) == list(b)
        a, b = list(a.values()), list(b.values())
    if isinstance(a, list | tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b):
            assert_same_kinds(x, y)
    elif a is not None:
        assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_allclose(a, b, rtol=1e-12)


def along(f, args, argnums, gradient):
    """The slope along a fixed direction, by the gradient and by differences."""
    numbers = argnums if isinstance(argnums, tuple) else (argnums,)
    gradient = gradient if isinstance(argnums, tuple) else (gradient,)
    h = 1e-2 if f is single else 1e-6

    def moved(x, g, t):
        if isinstance(x, dict):
            return {k: moved(x[k], g[k], t) for k in x}
        if isinstance(x, list | tuple):
            return type(x)([moved(a, b, t) for a, b in zip(x, g)])
        return x + t * direction(x) if g is not None else x

    def direction(x):
        if not isinstance(x, np.ndarray):
            return 0.7
        return np.cos(np.arange(x.size)).reshape(x.shape).astype(x.dtype)

    def dot(x, g):
        if isinstance(x, dict):
            return sum(dot(x[k], g[k]) for k in x)
        if isinstance(x, list | tuple):
            return sum(dot(a, b) for a, b in zip(x, g))
        return 0.0 if g is None else float(np.sum(g * direction(x)))

    def at(t):
        new = list(args)
        for i, g in zip(numbers, gradient):
            new[i] = moved(args[i], g, t)
        return float(f(*new))

    return sum(dot(args[i], g) for i, g in zip(numbers, gradient)), (at(h) - at(-h)) / (2 * h)


def test_a_decision_that_falls_otherwise_is_an_error(found):
    message = found["fails_branch"]
    assert "test_files.py:" in message
    assert "`if x > 0:` was True in the traced run, and is not for these arguments" in message


def loaded(path):
    scope = {"__name__": path.stem}
    exec(compile(path.read_text(), str(path), "exec"), scope)
    return scope


def executed(text):
    scope = {}
    exec(text, scope)
    return scope


def test_a_file_says_where_it_comes_from_and_asserts_nothing(tmp_path):
    path = tmp_path / "slope.py"
    save(grad(arrays), path, V, M)
    text = path.read_text()
    tree = ast.parse(text)
    assert not any(isinstance(node, ast.Assert) for node in ast.walk(tree))
    imported = [x.names[0].name for x in tree.body if isinstance(x, ast.Import)]
    imported += [x.module for x in tree.body if isinstance(x, ast.ImportFrom)]
    assert set(imported) <= {"cmath", "math", "numpy"}
    doc = loaded(path)["grad_arrays"].__doc__
    line = arrays.__code__.co_firstlineno
    assert doc == f"grad(arrays) (test_files.py:{line}), traced for v: float64[3], m: float64[3,3]."
    assert str(Path(__file__).parent) not in text


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((np.ones(4), M), r"v must be a float64\[3\]"),
        ((V.astype(np.float32), M), r"v must be a float64\[3\]"),
        ((V, 2.0), r"m must be a float64\[3,3\]"),
    ],
)
def test_arguments_of_another_type_are_an_error(tmp_path, args, message):
    save(arrays, tmp_path / "arrays.py", V, M)
    with pytest.raises(ValueError, match=message):
        loaded(tmp_path / "arrays.py")["arrays"](*args)


def test_structures_and_texts_are_checked(tmp_path):
    save(structures, tmp_path / "s.py", {"w": V, "b": {"c": 2.0}}, (1.5, [2.5]), True)
    s = loaded(tmp_path / "s.py")["structures"]
    good = {"w": V, "b": {"c": 2.0}}
    assert s(good, (1.5, [2.5]), True) == structures(good, (1.5, [2.5]))
    with pytest.raises(ValueError, match="flag was True when this file was written"):
        s(good, (1.5, [2.5]), False)
    with pytest.raises(ValueError, match=r"pair\[1\] must have 1 items"):
        s(good, (1.5, [2.5, 3.0]), True)
    for other in ({"b": {"c": 2.0}, "w": V}, {"w": V, "c": {"b": 2.0}}, {"w": V}):
        with pytest.raises(ValueError, match="table must have the keys 'w', 'b', in this order"):
            s(other, (1.5, [2.5]), True)


def test_sources_check_the_structures_of_their_arguments():
    def by_order(table, items, up):
        total = 0.0
        for key in table:
            total = total * 2 + table[key]
        for item in items:
            total = total * item
        return total if up else -total

    good = {"a": 1.0, "b": 2.0}, [1.5, 2.0], True
    back = executed(pullback(by_order, *good)[1].source())["back"]
    assert back(*good, 1.0) == (6.0, 3.0, 8.0, 6.0)
    made = executed(trace(by_order, *good).source("made"))["made"]
    assert made(*good) == by_order(*good) == 12.0
    both = executed(reverse(trace(by_order, *good)).source("both"))["both"]
    both(*good)
    for other in ({"b": 2.0, "a": 1.0}, {"a": 1.0, "b": 2.0, "c": 3.0}, {"a": 1.0}):
        for call in (lambda d: made(d, *good[1:]), lambda d: back(d, *good[1:], 1.0)):
            with pytest.raises(
                ValueError, match="table must have the keys 'a', 'b', in this order"
            ):
                call(other)
        with pytest.raises(ValueError, match="table must have the keys"):
            both(other, *good[1:])
    with pytest.raises(ValueError, match="items must have 2 items"):
        made(good[0], [1.5, 2.0, 3.0], True)
    with pytest.raises(ValueError, match="up was True in the traced run"):
        made(*good[:2], False)


def test_shapes_that_the_data_decide_are_checked(tmp_path):
    def f(x):
        total = 0.0
        for bound in (0.0, 1.5):
            total = total + x.sum() * len(x[x > bound])
        return total

    x = np.array([3.0, 1.0, -2.0])
    path = tmp_path / "s.py"
    made = [executed(trace(f, x).source("made"))["made"]]
    for name, g in [("f", f), ("value_and_grad_f", value_and_grad(f))]:
        save(g, path, x)
        made.append(loaded(path)[name])
    for g in made:
        g(np.array([1.0, 2.0, -4.0]))
        for other in ([3.0, 1.0, 2.0], [2.0, 2.0, -1.0]):
            with pytest.raises(
                ValueError, match="what getitem gives had the shape .* in the traced run"
            ):
                g(np.array(other))


def test_keyword_arguments(tmp_path):
    def f(x, *, power=2.0, kind="a"):
        return x**power if kind == "a" else x

    save(grad(f), tmp_path / "k.py", 3.0, power=3.0, kind="a")
    k = loaded(tmp_path / "k.py")["grad_f"]
    assert k(3.0, power=3.0, kind="a") == 27.0
    with pytest.raises(ValueError, match="kind was 'a'"):
        k(3.0, power=3.0, kind="b")
    with pytest.raises(TypeError):
        k(3.0, 3.0, "a")


def test_named_tuples(tmp_path):
    save(value_and_grad(point), tmp_path / "p.py", Point(0.5, 2.0), V)
    value, gradient = loaded(tmp_path / "p.py")["value_and_grad_point"](Point(0.5, 2.0), V)
    assert_same(value, point(Point(0.5, 2.0), V))
    assert gradient._asdict() == {"x": V[0] + 2.0 * V[1], "y": V[1] * 0.5}


def test_scipy_is_imported_by_its_public_names(tmp_path):
    pytest.importorskip("scipy")
    save(grad(special), tmp_path / "s.py", np.array([1.5, 2.5]))
    text = (tmp_path / "s.py").read_text()
    assert "from scipy.special import" in text
    expected = grad(special)(np.array([1.5, 2.5]))
    np.testing.assert_allclose(
        loaded(tmp_path / "s.py")["grad_special"](np.array([1.5, 2.5])), expected, rtol=1e-14
    )


def test_other_transforms_and_second_derivatives(tmp_path):
    save(grad(grad(floats)), tmp_path / "second.py", 1.3, 0.7)
    scope = loaded(tmp_path / "second.py")
    (function,) = [x for k, x in scope.items() if k.startswith("grad_grad")]
    h = 1e-5
    numeric = (grad(floats)(1.3 + h, 0.7) - grad(floats)(1.3 - h, 0.7)) / (2 * h)
    assert function(1.3, 0.7) == pytest.approx(numeric, rel=1e-8)
    save(lambda x: pullback(arrays, x, M)[1](1.0), tmp_path / "back.py", V)


def test_a_gradient_is_not_an_argument(tmp_path):
    """Whoever writes into the gradient does not write into what was given."""
    save(grad(lambda v, w: (v * w).sum()), tmp_path / "p.py", V, V + 1)
    w = V + 1
    found = loaded(tmp_path / "p.py")["grad_lambda"](V, w)
    assert_same(found, w)
    assert not np.may_share_memory(found, w)


def test_a_primitive_of_the_users_is_written_out(tmp_path):
    def cube(x):
        return scaled(x) ** 3

    def scaled(x):
        return x * FACTOR

    @rrule(cube, pure=True)
    def rule(x):
        return cube(x), lambda dy: (dy * 3 * FACTOR**3 * x * x,)

    try:
        save(value_and_grad(cube), tmp_path / "c.py", 2.0)
        assert (
            "FACTOR = " not in (tmp_path / "c.py").read_text()
        )  # a number is written where it is used
        assert loaded(tmp_path / "c.py")["value_and_grad_cube"](3.0) == (216.0, 216.0)
    finally:
        del rules[cube]


FACTOR = 2.0


def test_checkpointed_calls_and_custom_rules_are_written_out(tmp_path):
    @checkpoint
    def layer(w, x):
        return np.tanh(w @ clipped(x))

    @custom_rule(pure=True)
    def clipped(x):
        def pullback(dy):
            return (np.clip(dy, -0.1, 0.1),)

        return x * FACTOR, pullback

    def f(w):
        return layer(w, layer(w, V)).sum()

    for made, name in ((grad(f), "grad_f"), (value_and_grad(f), "value_and_grad_f"), (f, "f")):
        save(made, tmp_path / "f.py", M)
        assert_same(loaded(tmp_path / "f.py")[name](M), made(M))
    scope = {}
    exec(trace(f, M).source("forward"), scope)
    exec(pullback(f, M)[1].source(), scope)
    assert_same(scope["forward"](M), f(M))
    assert_same(scope["back"](M, 1.0)[0], grad(f)(M))


@custom_rule(pure=True)
def factorial(n):
    """A rule that calls itself by the name under which it is no longer that function."""
    return (n * factorial(n - 1.0) if n > 1.0 else 1.0), lambda dy: (dy,)


def test_a_decorated_function_that_calls_itself_is_not_written_out(tmp_path):
    with pytest.raises(TraceError, match="factorial is decorated"):
        save(lambda x: factorial(x) * x, tmp_path / "f.py", 3.0)


def test_what_is_made_of_a_function_has_a_name_of_its_own(tmp_path):
    save(jacobian(single), tmp_path / "j.py", V)
    assert_same(loaded(tmp_path / "j.py")["jacobian_single"](V), jacobian(single)(V))


def test_what_cannot_be_written_is_an_error(tmp_path):
    generator = np.random.default_rng(0)
    with pytest.raises(TraceError, match=r"test_files.py:\d+: a Generator cannot be written down"):
        save(lambda x: x * generator.normal(), tmp_path / "g.py", 2.0)
    with pytest.raises(TraceError, match="holder"):
        holder = []
        save(lambda x: holder.append(x), tmp_path / "h.py", 2.0)
    with pytest.raises(
        TraceError, match="in_place.* cannot be written down in a file: it writes to v"
    ):

        def in_place(v):
            v[0] = 2.0
            return v.sum()

        save(in_place, tmp_path / "i.py", V.copy())
    assert not (tmp_path / "g.py").exists()


def test_the_reverse_sweep_of_a_file_does_not_warn(tmp_path):
    def f(v):
        return np.where(v > 0, np.sqrt(np.abs(v)), 0.0).sum()

    v = np.array([0.0, 4.0])
    save(grad(f), tmp_path / "f.py", v)
    assert_same(loaded(tmp_path / "f.py")["grad_f"](v), grad(f)(v))  # a warning is an error here


def test_source_of_a_pullback_runs():
    _, back = pullback(structures, {"w": V, "b": {"c": 2.0}}, (1.5, [2.5]))
    scope = {}
    exec(back.source(), scope)
    dw, dc, d1, d2 = scope["back"]({"w": V, "b": {"c": 2.0}}, (1.5, [2.5]), 1.0)
    expected = back(1.0)
    assert_same(dw, expected[0]["w"])
    assert (dc, d1, d2) == (expected[0]["b"]["c"], expected[1][0], expected[1][1][0])


def test_source_under_a_name_that_no_function_can_have():
    for name in ("1a", "a b", "lambda", ""):
        with pytest.raises(TraceError, match="is no name that a function can have"):
            trace(single, V).source(name)


def test_source_has_imports_and_guards():
    scope = {}
    exec(reverse(trace(branch, 2.0)).source("both"), scope)
    assert scope["both"](3.0) == (9.0, (6.0,))
    with pytest.raises(ValueError, match="`if x > 0:` was True"):
        scope["both"](-3.0)


def test_names_of_the_file_do_not_collide(tmp_path):
    def f(np, math, t3):
        return np * math + t3 * operator.mul(np, 2.0)

    save(value_and_grad(f, (0, 1, 2)), tmp_path / "n.py", 1.5, 2.0, 3.0)
    assert loaded(tmp_path / "n.py")["value_and_grad_f"](1.5, 2.0, 3.0) == (12.0, (8.0, 1.5, 3.0))


def test_a_loop_stays_a_loop(tmp_path):
    """And its reverse is one: the file is as short for 2,000 iterations as for 200."""

    def loop(x, w):
        for _ in range(2000):
            x = math.sin(x * w) + 0.5
        return x

    save(value_and_grad(loop, (0, 1)), tmp_path / "l.py", 1.0, 0.7)
    text = (tmp_path / "l.py").read_text()
    assert len(text.splitlines()) < 40
    assert loaded(tmp_path / "l.py")["value_and_grad_loop"](1.1, 0.6) == value_and_grad(
        loop, (0, 1)
    )(1.1, 0.6)
    save(newton, tmp_path / "n.py", 2.0)
    found = loaded(tmp_path / "n.py")["newton"]
    assert found(2.5) == newton(2.5)  # which may take another number of iterations


def test_a_decision_in_a_loop(tmp_path):
    def loop(x):
        for _ in range(200):
            if x < -5:
                return x
            x = math.sin(x) + 0.5
        return x

    save(loop, tmp_path / "l.py", 1.0)
    with pytest.raises(ValueError, match=r"test_files.py:\d+: .*the traced run"):
        loaded(tmp_path / "l.py")["loop"](-9.0)


def test_helpers_keep_their_own_variables():
    """A name of the file is none of a variable of the helper that uses it."""
    from wengert.transforms.tools.pages import Page

    def outer(x):
        finite = x + 1
        return _finite(finite)

    page = Page(trace(floats, 1.0, 2.0), strict=True)
    page.referred(_finite, "_finite")
    page.helper(outer)
    scope = {}
    exec("\n".join(page.helpers), scope)
    assert scope["outer"](1.0) == 4.0


def _finite(x):
    return x * 2


def test_the_gradient_by_an_object_is_the_dict_of_its_attributes(tmp_path):
    """A file does not know the class of a dataclass, of which the gradient is otherwise."""

    @dataclasses.dataclass
    class Body:
        x: float
        sides: list

    def f(body, queue):
        return body.x * body.x * body.sides[1] * queue[0]

    save(grad(f, (0, 1)), tmp_path / "slope.py", Body(2.0, [1.0, 3.0]), collections.deque([1.0]))
    slope = loaded(tmp_path / "slope.py")["grad_f"]
    found = slope(Body(3.0, [1.0, 2.0]), collections.deque([1.5]))
    assert found == ({"x": 18.0, "sides": [0.0, 13.5]}, [18.0])


def test_what_has_a_long_picture_is_named_by_its_class():
    class Long:
        k = 2.0

        def __repr__(self):
            return "one\ntwo"

    long = Long()

    def f(x, log):
        log.append(long)
        return x * x

    with pytest.raises(TraceError, match="a Long cannot be written down in a file\nit takes"):
        trace(f, 3.0, []).source()


weight = 3.0  # a global of the name that variables of the functions below have


@custom_rule(pure=True)
def weighted(x, weight):
    return x * weight, lambda d: (d * weight, d * x)


@custom_rule(pure=True)
def scaled_by_attribute(x):
    weight = np.array([2.0, 4.0]).max()
    weight = weight.real
    return x * weight, lambda d: (d * weight,)


@custom_rule(pure=True)
def weighted_twice(x):
    def inner(weight):
        return weight * 2.0

    return x * weight + inner(0.0), lambda d: (d * weight,)


def test_variables_that_inner_functions_use_are_no_globals(tmp_path):
    for f, args in ((weighted, (2.0, 5.0)), (scaled_by_attribute, (2.0,))):
        save(value_and_grad(f), tmp_path / "s.py", *args)
        names = {}
        exec((tmp_path / "s.py").read_text(), names)
        assert names[f"value_and_grad_{f.__name__}"](*args) == value_and_grad(f)(*args)
    with pytest.raises(TraceError, match="beside a global of that name"):
        save(weighted_twice, tmp_path / "s.py", 2.0)

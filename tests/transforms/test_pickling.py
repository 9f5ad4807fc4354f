"""Pullbacks and gradient functions that are sent to another process."""

import concurrent.futures
import copy
import functools
import io
import math
import multiprocessing
import operator
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest
from elsewhere import Layer, Pair, Spring, cubed, slope

from helpers import assert_same
from wengert import NoRuleError, TraceError, grad, pullback, rrule, value_and_grad
from wengert.rules.registry import rules

cloudpickle = pytest.importorskip("cloudpickle")

V = np.array([0.5, -1.2, 2.0])
M = np.array([[1.0, 0.5, -0.3], [0.2, 2.0, 0.7]])


@pytest.fixture(scope="module")
def pool():
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        yield pool


def by_value(blob):
    """Run a pickled function in another process, and bring its value back."""
    program = "import sys, cloudpickle as c; c.dump(c.load(sys.stdin.buffer)(), sys.stdout.buffer)"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, input=blob, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    return cloudpickle.loads(done.stdout)


# ----------------------------------------------------------------------------------------------- trees


def views(a):
    b = a.reshape(3, 2).T
    row = b[0]
    row[1] = row[1] * row[0]
    return np.broadcast_to(row, (2, 3)) * b + b[::-1]


def complex_numbers(z, w):
    return np.exp(z) * w, abs(w) ** 2


def trees(point, layers, table):
    total = point.left * point.right[0]
    for layer in layers:
        total = np.tanh(layer.weights @ V) * layer.bias + total
    return {"total": total, "pair": Pair(table["a"] * 2, [table["b"][1], "text", None])}


def numbers(a, b, c, *, scale, power=2):
    return (a * b + c) ** power * scale + max([a, b, c]) + math.hypot(a, b)


def of_numpy(a):
    q, r = np.linalg.qr(a.T)
    return np.sum(np.where(q > 0, q, q * q), axis=0), np.add.reduce(r, axis=0), np.max(a, axis=1)


CASES = {
    "numbers": (numbers, (1.5, np.float64(2.0), 3), {"scale": 0.5}, 2.0),
    "single": (lambda a: a * 2 + a.sum(), (V.astype(np.float32),), {}, V.astype(np.float32)),
    "0-d": (lambda a, b: np.sin(a) * b, (np.array(0.3), 2.0), {}, 1.5),
    "views": (views, (M,), {}, M),
    "complex": (complex_numbers, (0.3 + 1j, np.array([1j, 2.0])), {}, (np.array([1j, 1]), V[:2])),
    "trees": (
        trees,
        (
            Pair(2.0, (3.0, 4.0)),
            [Layer(M, 0.5), Layer(M * 2, 1.5)],
            {"a": 1.0, "b": [1.0, 2.0], "unused": V, "whole": np.arange(3)},
        ),
        {},
        {"total": V[:2], "pair": Pair(1.0, [2.0, None, None])},
    ),
    "numpy": (of_numpy, (M,), {}, (V[:2], V[:2], V[:2])),
    "object": (lambda s, x: s.energy(x), (Spring(2.0, 0.5), 1.5), {}, 1.0),
    "own rule": (lambda x: cubed(x) * 2, (1.5,), {}, 1.0),
    "constant": (lambda x: 3.0, (V,), {}, 1.0),
    "partly constant": (lambda x: (3.0, x), (2.0,), {}, (1.0, 2.0)),
    "identity": (lambda x, y: y, (2.0, V), {}, V),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_same_gradient_in_another_process(case, pool):
    f, args, kwargs, dy = case
    _, back = pullback(f, *copy.deepcopy(args), **kwargs)
    expected = back(dy)
    assert_same(pool.submit(operator.call, back, dy).result(60), expected)
    again = pickle.loads(pickle.dumps(back, protocol=2))
    assert_same(again(dy), expected)
    assert_same(again(None), back(None))
    assert_same(pickle.loads(pickle.dumps(again))(dy), expected)


def test_it_answers_for_the_moment_of_its_call():
    a = V.copy()
    _, back = pullback(lambda a: np.sum(a * a), a)
    a[:] = 0
    assert_same(pickle.loads(pickle.dumps(back))(1.0), (2 * V,))


def test_pullbacks_that_a_program_makes():
    def f(a, n):
        return np.sin(a) * n + a * a

    for start in range(4):
        a = V + start
        value, back = pullback(f, a, 2)
        expected = back(V)
        a[:], value[:] = 0, 0
        assert_same(pickle.loads(pickle.dumps(back))(V), expected)
        assert_same(back(V), expected)


def test_the_callable_itself():
    spring = Spring(2.0, 0.5)
    _, back = pullback(spring.energy, 1.5, wrt_self=True)
    assert (
        back(1.0)
        == pickle.loads(pickle.dumps(back))(1.0)
        == ({"stiffness": 0.5, "length": -2.0}, 2.0)
    )
    k = 3.0
    _, back = pullback(lambda x: k * x, 2.0, wrt_self=True)
    assert back(1.0) == pickle.loads(pickle.dumps(back))(1.0) == ({"k": 2.0}, 3.0)


def test_objects_of_a_class_that_has_no_name():
    class Local:
        def __init__(self, x):
            self.x = x

    _, back = pullback(lambda o: o.x * 2, Local(3.0))
    assert pickle.loads(pickle.dumps(back))(1.0) == ({"x": 2.0},)


def test_the_reverse_program():
    _, back = pullback(lambda x, y: np.sin(x) * y, 0.5, 2.0)
    again = pickle.loads(pickle.dumps(back))
    assert again.source() == back.source()


def test_derivatives_of_a_copy():
    _, back = pullback(lambda x: x * x * x, 2.0)
    again = pickle.loads(pickle.dumps(back))
    assert grad(lambda d: again(d * d)[0])(3.0) == grad(lambda d: back(d * d)[0])(3.0) == 72.0


def test_a_deep_copy():
    _, back = pullback(lambda x: x * x, 3.0)
    assert copy.deepcopy(back)(1.0) == copy.copy(back)(1.0) == (6.0,)


# --------------------------------------------------------------------------------------------- the tape


def logistic(x, n):
    for _ in range(n):
        x = 2.5 * x * (1 - x)
    return x


def test_a_tape_of_a_hundred_thousand_operations(pool, monkeypatch):
    monkeypatch.setattr("wengert.tracer.loops.FIRST_LOOK", 10**9)  # nothing is rolled
    _, back = pullback(logistic, 0.3, 34_000)
    assert len(back.done.tape) > 100_000
    blob = pickle.dumps(back)
    assert len(blob) < 50 * len(back.done.tape)
    assert pickle.loads(blob)(1.0) == back(1.0)
    assert pool.submit(operator.call, back, 1.0).result(60) == back(1.0)


def test_only_what_the_sweep_needs_is_sent():
    def f(a, big):
        unused = np.exp(big)
        print(unused[0], file=io.StringIO())
        return a * 2 + math.floor(big[0])

    _, back = pullback(f, 1.0, np.ones(100_000))
    blob = pickle.dumps(back)
    assert len(blob) < 5_000
    assert_same(pickle.loads(blob)(1.0), (2.0, np.zeros(100_000)))


def test_functions_come_back_as_themselves():
    def f(a, x):
        b = a.sum(axis=0) + np.sum(a * a, axis=0) + np.einsum("ij->j", a) + np.add.reduce(a)
        c = np.linalg.norm(b) + math.sin(x) * cubed(x) + min(x, 3.0) + abs(x) + float(b.mean())
        return c + np.float64(x) ** 2 + np.dot(b, b) + b[0] + np.concatenate([b, b]).max()

    _, back = pullback(f, M, 0.5)
    again = pickle.loads(pickle.dumps(back))
    sent = {op.fn for op in back.done.tape if op.kind == "call"}
    found = {op.fn for op in again.done.tape if op.kind == "call"}
    assert len(found) > 12
    assert found <= sent
    known = {id(fn) for fn in sent}
    assert all(id(fn) in known for fn in found if fn != np.add.reduce)  # which is new at each look


@pytest.mark.filterwarnings(
    "ignore:numpy.core is deprecated"
)  # pickle looks for a name in every module there is
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_every_differentiable_primitive_can_be_sent():
    """pickle looks for a ufunc in all modules that are there: mpmath warns of what is asked of some of its own."""
    for fn, rule in list(rules.items()):
        if rule.kind == "rrule" and str(getattr(rule.function, "__module__", None)).startswith(
            "wengert"
        ):
            if (getattr(fn, "__module__", None) or "").startswith("wengert.rules") and (
                getattr(sys.modules[fn.__module__], fn.__name__, fn) is not fn
            ):
                continue  # of a module that a test has loaded again
            owner = str(getattr(getattr(fn, "fn", fn), "__module__", None))
            if owner == "__main__" or owner.rpartition(".")[2].startswith("test_"):
                continue  # of an example in the documentation, or of another test
            again = pickle.loads(pickle.dumps(fn))
            assert again == fn and rules[again] is rule


# -------------------------------------------------------------------------------- functions without name


@pytest.fixture
def squared():
    """A primitive that only this process knows, with its rule."""
    fn = lambda x: float(x) ** 2

    @rrule(fn, pure=True)
    def rule(x):
        def pullback(dz):
            return (dz * 2 * x,)

        return fn(x), pullback

    yield fn
    del rules[fn]


def test_a_nameless_primitive_takes_its_rule_along(squared):
    _, back = pullback(lambda x: squared(x) * 3, 2.0)
    count = len(rules)
    again = pickle.loads(pickle.dumps(back))
    assert again(1.0) == (12.0,)
    (made,) = [op.fn for op in again.done.tape if op.fn not in (None, operator.mul)]
    assert len(rules) == count + 1
    del rules[made]
    assert by_value(cloudpickle.dumps(functools.partial(back, 1.0))) == (12.0,)


def test_without_cloudpickle_the_error_names_it(squared, monkeypatch):
    _, back = pullback(lambda x: squared(x) * 3, 2.0)
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(pickle.PicklingError, match=r"<lambda> cannot be pickled") as error:
        pickle.dumps(back)
    assert "test_pickling.py" in str(error.value)
    assert "cloudpickle" in str(error.value)


def test_what_has_no_rule_says_so_in_the_other_process_too():
    from _statistics import _normal_dist_inv_cdf

    _, back = pullback(lambda p: _normal_dist_inv_cdf(p, 0.0, 1.0), 0.3)
    with pytest.raises(NoRuleError) as here:
        back(1.0)
    with pytest.raises(NoRuleError) as there:
        pickle.loads(pickle.dumps(back))(1.0)
    assert str(here.value) == str(there.value)


# -------------------------------------------------------------------------------------- gradient functions


def test_gradient_functions(pool):
    g = grad(math.hypot, argnums=(0, 1))
    assert pool.submit(g, 3.0, 4.0).result(60) == (0.6, 0.8)
    both = value_and_grad(cubed)
    assert pool.submit(both, 2.0).result(60) == (8.0, 12.0)
    assert list(pool.map(grad(cubed), [1.0, 2.0])) == [3.0, 12.0]
    assert pickle.loads(pickle.dumps(grad(grad(cubed))))(2.0) == 12.0


def test_the_options_of_a_gradient_function():
    f = lambda x, y: (x * y, {"y": y})
    g = cloudpickle.loads(cloudpickle.dumps(value_and_grad(f, argnums=1, has_aux=True)))
    assert g(2.0, 3.0) == ((6.0, {"y": 3.0}), 2.0)
    h = cloudpickle.loads(cloudpickle.dumps(grad(f, has_aux=True)))
    assert h(2.0, 3.0) == (3.0, {"y": 3.0})


def test_a_gradient_of_a_nameless_function():
    k = 3.0
    g = grad(lambda x: k * x * x)
    assert by_value(cloudpickle.dumps(functools.partial(g, 2.0))) == 12.0
    with pytest.raises((pickle.PicklingError, AttributeError), match=re.escape("<lambda>")):
        pickle.dumps(g)


def test_a_decorated_function_is_found_by_its_name(pool):
    assert pickle.loads(pickle.dumps(slope)) == slope
    assert pool.submit(slope, 2.0).result(60) == 12.0


SCRIPT = """
import multiprocessing
import pickle

import cloudpickle

from wengert import jit

@jit
def square(x):
    return x * x

if __name__ == "__main__":
    assert pickle.loads(pickle.dumps(square)) is square
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(square, [2.0, 3.0]))
    sent, square = cloudpickle.dumps(square), None  # by value: it need not be found
    print(pickle.loads(sent)(5.0))
"""


def test_a_decorated_function_of_a_script(tmp_path):
    """Plain pickle sends it by its name, as other functions of the script: it could not be sent at all."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines() == ["[4.0, 9.0]", "25.0"], done.stderr


def by_its_sign(x):
    return x * 2.0 if x > 0 else x * 3.0


def by_its_floor(x):
    return x * math.floor(x)


def by_another(x, n):
    return x ** int(n)


def into_an_array(x):
    sums = np.zeros(2)
    for i in range(4):
        sums[i % 2] += x * sums[1 - i % 2] + x
    return (sums**2).sum()


def straight(x):
    return x * x * x


def test_the_tape_of_a_pickled_pullback_is_not_run_where_more_was_decided_or_computed():
    for f, args in (
        (by_its_sign, (1.5,)),
        (by_its_floor, (1.5,)),
        (by_another, (1.5, 2.2)),
        (into_an_array, (1.5,)),
    ):
        back = pullback(f, *args)[1]
        sent = pickle.loads(pickle.dumps(back))
        again = pickle.loads(pickle.dumps(sent))
        assert sent(1.0) == again(1.0) == back(1.0) == back.tape(*args, 1.0)
        for one in (sent, again):
            with pytest.raises(TraceError, match="it was pickled"):
                one.tape(*args, 1.0)
            with pytest.raises(TraceError, match="it was pickled"):
                one.source()
    sent = pickle.loads(pickle.dumps(pullback(straight, 1.5)[1]))
    assert sent.tape(2.0, 1.0) == (12.0,)

"""`checkpoint`: the same values and gradients, with less memory."""

import copy
import dataclasses
import functools
import gc
import math
import pickle
import random
import tracemalloc

import numpy as np
import pytest

from helpers import assert_close, assert_same
from wengert import (
    GuardError,
    NonFiniteError,
    TraceError,
    checkpoint,
    clear_cache,
    custom_rule,
    explain,
    grad,
    jit,
    jvp,
    pullback,
    reverse,
    trace,
    value_and_grad,
)
from wengert.transforms.checkpoint import Segment

RNG = np.random.default_rng(5)
MATRIX = RNG.normal(size=(3, 3))
VECTOR = np.array([0.3, -0.7, 1.1])


def segments(tape):
    return [op for op in tape if isinstance(op.fn, Segment)]


# Programs: each is given a wrapper for functions, and returns a function and its arguments.
PROGRAMS = []


def program(make):
    PROGRAMS.append(pytest.param(make, id=make.__name__))
    return make


@program
def numbers(wrap):
    layer = wrap(lambda x, y: (math.sin(x * y) + x / y, x * x))

    def f(x, y):
        a, b = layer(x, y)
        c, d = layer(a + b, y)
        return a * c - d * b

    return f, (0.7, 1.3)


@program
def arrays(wrap):
    layer = wrap(lambda x: np.tanh(MATRIX @ x) + x * x - np.exp(x) * x)
    return lambda x: layer(layer(layer(x))).sum(), (VECTOR,)


@program
def closures(wrap):
    def f(w, b):
        layer = wrap(lambda x: np.tanh(w @ x + b))
        x = VECTOR
        for _ in range(4):
            x = layer(x)
        return x @ x

    return f, (MATRIX, 0.5)


@dataclasses.dataclass
class Parameters:
    w: object
    b: object


class Layer:
    def __init__(self, w):
        self.w = w


@program
def structures(wrap):
    @wrap
    def layer(p, xs, *, scale=1.0):
        h = np.tanh(p.w @ xs["x"]) * scale
        return {"x": h + p.b, "more": [h.sum(), "text", None, (h, h)]}

    def f(p, scale):
        out = layer(p, {"x": VECTOR}, scale=scale)
        out = layer(p, out)
        return out["x"].sum() * out["more"][0] + out["more"][3][1] @ VECTOR

    return f, (Parameters(MATRIX, 0.25), 1.5)


@program
def methods(wrap):
    class Net:
        def __init__(self, w):
            self.w = w

        @wrap
        def layer(self, x):
            h = self.w * x
            return h * np.sin(h)

    net = Net(2.0)

    def f(net, x):
        return net.layer(net.layer(x)).sum()

    return f, (net, VECTOR)


@program
def made_objects(wrap):
    make = wrap(lambda x: Layer([np.sin(x) * 2, x]))
    return lambda x: (make(x).w[0] * make(x * 2).w[1]).sum(), (VECTOR,)


@program
def decisions(wrap):
    @wrap
    def layer(x):
        y = x * x
        return math.sqrt(y) if y > 1 else y * x

    return lambda x: layer(layer(x) + x) * layer(3 * x), (0.9,)


@program
def loops(wrap):
    @wrap
    def layer(x):
        for i in range(20):
            x = x + 0.1 * math.sin(x) * i
        return x

    def f(x):
        for _ in range(10):
            x = layer(x) * 0.5
        return x

    return f, (0.4,)


@program
def nested(wrap):
    inner = wrap(lambda x: np.sin(x) * x)
    outer = wrap(lambda x: inner(inner(x)) + np.cos(inner(x)))
    return lambda x: outer(outer(x)).sum(), (VECTOR,)


@program
def writes_inside(wrap):
    @wrap
    def layer(x):
        y = np.zeros(3)
        y[1] = x[0] * x[1]
        y[0:1] += np.sin(x[2])
        y *= x
        return y

    def f(x):
        y = layer(x)
        y[2] = y[1] * 3
        return (layer(y) * y).sum()

    return f, (VECTOR,)


@program
def writes_to_what_was_given(wrap):
    @wrap
    def layer(x):
        x[0] = x[1] * x[2]
        return x * x

    def f(x):
        y = x * 2
        z = layer(y)
        return (y * z).sum()

    return f, (VECTOR,)


@program
def writes_after_the_call(wrap):
    shift = wrap(lambda x: (x + 1.0) * np.sin(x + 2.0))

    def f(x):
        y = x * 3
        z = shift(y)
        y[0] = 7.0
        w = shift(y)
        y += z
        return (y * w * z).sum()

    return f, (VECTOR,)


@program
def views(wrap):
    @wrap
    def layer(x):
        y = np.sin(x)
        return y[1:], x[:2]

    def f(x):
        y = x * 1.0
        a, b = layer(y)
        a[0] = 3.0 * b[1]
        b[1] = 5.0
        return (a * b).sum() + y @ y

    return f, (VECTOR,)


@program
def returns_its_argument(wrap):
    layer = wrap(lambda x: (x, x * x))
    return lambda x: (layer(x)[0] * layer(x)[1]).sum(), (VECTOR,)


@program
def unused(wrap):
    layer = wrap(lambda x: (np.sin(x), np.exp(x), 3.0))
    return lambda x: layer(x)[0].sum() + layer(x)[2], (VECTOR,)


@program
def gradients_inside(wrap):
    layer = wrap(lambda x: grad(lambda y: (np.sin(y) * x).sum())(x * x))
    return lambda x: layer(x) @ x, (VECTOR,)


@program
def custom_rules_inside(wrap):
    @custom_rule(pure=True)
    def doubled(x):
        return x * x, lambda dy: (dy * 5 * x,)

    layer = wrap(lambda x: doubled(np.sin(x)) * 2)
    return lambda x: layer(layer(x)).sum(), (VECTOR,)


@program
def complex_numbers(wrap):
    layer = wrap(lambda z: z * np.conj(z) * np.exp(1j * z))
    return lambda z: np.abs(layer(layer(z)) ** 2).sum(), (VECTOR + 0.5j,)


@program
def decompositions(wrap):
    @wrap
    def layer(a):
        q, r = np.linalg.qr(a)
        return q @ r.T

    return lambda a: layer(layer(a)).sum(), (MATRIX,)


@program
def partials(wrap):
    layer = wrap(functools.partial(lambda w, x: np.tanh(w @ x), MATRIX))
    return lambda x: layer(layer(x)).sum(), (VECTOR,)


@program
def keeps_a_sum(wrap):
    def f(x):
        total = 0.0

        @wrap
        def layer(x):
            nonlocal total
            total = total + x * x
            return math.sin(x)

        y = layer(layer(x))
        return y * total

    return f, (0.8,)


def plain(f):
    return f


@pytest.mark.parametrize("on", [False, True], ids=["traced", "kept"])
@pytest.mark.parametrize("make", PROGRAMS)
def test_the_same_to_the_bit(make, on):
    f, args = make(plain)
    g, own = make(checkpoint)
    numbers = tuple(range(len(args)))
    with jit(on):
        for _ in range(4 if on else 1):
            assert_same(g(*copy.deepcopy(own)), f(*copy.deepcopy(args)))
            expected = value_and_grad(f, numbers)(*copy.deepcopy(args))
            found = value_and_grad(g, numbers)(*copy.deepcopy(own))
            value, back = pullback(g, *copy.deepcopy(own))
            assert_same((found[0], value), (expected[0], expected[0]))
            # A program may add up in another order, with a checkpoint as without.
            same = functools.partial(assert_close, tol=1e-13) if on else assert_same
            for gradients in (found[1], back(1.0), back(1.0)):
                same(gradients, expected[1])


@pytest.mark.parametrize("make", PROGRAMS)
def test_second_derivatives(make):
    f, args = make(plain)
    g, own = make(checkpoint)
    x = args[-1]
    v = RNG.normal(size=np.shape(x)) if np.ndim(x) else 1.0

    def along(f, args):
        def slope(x):
            return np.sum(np.real(grad(lambda x: f(*args[:-1], x))(x) * v))

        return grad(slope)

    with jit(False):
        assert_close(along(g, own)(copy.deepcopy(x)), along(f, args)(copy.deepcopy(x)), tol=1e-12)


@pytest.mark.parametrize("make", PROGRAMS)
def test_forward_mode(make):
    f, args = make(plain)
    g, own = make(checkpoint)
    x = args[-1]
    v = RNG.normal(size=np.shape(x)) if np.ndim(x) else 1.0

    def along(f, args):
        return jvp(lambda x: f(*args[:-1], x), (copy.deepcopy(x),), (v,))

    for _ in range(3):
        assert_close(along(g, own), along(f, args), tol=1e-12)
    reverse_over_forward = [grad(lambda x: np.real(jvp(h, (x,), (v,))[1])) for h in (  # noqa: B023
        lambda x: f(*args[:-1], x), lambda x: g(*own[:-1], x)
    )]  # fmt: skip
    with jit(False):
        a, b = [h(copy.deepcopy(x)) for h in reverse_over_forward]
    assert_close(b, a, tol=1e-12)


@pytest.mark.parametrize("make", PROGRAMS)
def test_what_is_folded(make):
    """Nothing of a checkpointed call is kept; only calls that do something outside are left as they are."""
    g, args = make(checkpoint)
    left = make.__name__ in ("writes_to_what_was_given", "keeps_a_sum", "views")
    assert bool(segments(trace(g, *copy.deepcopy(args)))) is not left


def chain(wrap, length):
    layer = wrap(lambda x: np.sin(np.exp(np.cos(1.1 * x) + x) * 0.1) + x * 0.5)

    def f(x):
        for _ in range(length):
            x = layer(x)
        return x.sum()

    return f


def peak(f):
    gc.collect()
    tracemalloc.start()
    try:
        f()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("on", [False, True], ids=["traced", "kept"])
def test_memory_of_a_long_chain(on):
    x = np.linspace(0.0, 1.0, 50_000)
    peaks = {}
    with jit(on):
        for wrap in (plain, checkpoint):
            g = grad(chain(wrap, 30))
            for _ in range(3 if on else 1):
                g(x[:9])
                g(x)
            peaks[wrap] = peak(lambda: g(x))  # noqa: B023
    layers = peaks[checkpoint] / x.nbytes
    assert (
        layers < 30 + 25
    )  # the 30 arrays between the layers, and what one layer and the sweep over it need
    assert peaks[checkpoint] < 0.6 * peaks[plain]


def test_memory_of_groups_of_layers():
    """Groups in groups need less again."""
    x = np.linspace(0.0, 1.0, 50_000)

    def grouped(x):
        for _ in range(6):
            x = group(x)
        return x.sum()

    layer = checkpoint(lambda x: np.sin(np.exp(np.cos(1.1 * x) + x) * 0.1) + x * 0.5)

    @checkpoint
    def group(x):
        for _ in range(6):
            x = layer(x)
        return x

    with jit(False):
        single, double = grad(chain(checkpoint, 36)), grad(grouped)
        assert_same(double(x), single(x))
        assert peak(lambda: double(x)) < 0.75 * peak(lambda: single(x))


def test_programs_are_kept():
    f, args = numbers(checkpoint)
    with jit(True):
        clear_cache()
        g = grad(f)
        for _ in range(3):
            g(*args)
        assert "would answer" in explain(g, *args)
        layer = checkpoint(math.sin)
        h = grad(lambda x: layer(x))
        assert [h(0.0) for _ in range(4)] == [1.0] * 4
        layer = checkpoint(math.cos)  # another function under the same name
        assert [h(0.0) for _ in range(4)] == [0.0] * 4


def test_other_decisions_of_a_kept_program():
    f, _ = decisions(plain)
    g, _ = decisions(checkpoint)
    a, b = value_and_grad(f), value_and_grad(g)
    for x in (0.9, 0.9, 0.9, 0.1, 2.0, -0.5, 0.1, 0.9, 2.0):
        assert b(x) == a(x)


# What is not repeated


def test_random_numbers_are_drawn_once():
    rng = np.random.default_rng(0)

    @checkpoint
    def dropout(x):
        return x * x * rng.random(x.shape)

    state = copy.deepcopy(rng.bit_generator.state)
    for _ in range(3):
        rng.bit_generator.state = state
        expected = np.random.default_rng(0).random(3) * 2 * VECTOR
        assert_same(grad(lambda x: dropout(x).sum())(VECTOR), expected)
    assert grad(checkpoint(lambda x: x * random.random()))(2.0) < 1.0

    def noisy(x):
        return rng.normal(x) * x  # what is drawn depends on what was computed

    found = []
    for wrap in (plain, checkpoint):
        rng.bit_generator.state = state
        layer = wrap(noisy)
        found.append(grad(lambda x: layer(math.sin(x)))(0.5))  # noqa: B023
    assert found[1] == found[0]


def test_effects_come_once(capsys):
    log = []

    @checkpoint
    def layer(x):
        y = math.sin(x)
        print("called")
        log.append(y)
        return y * y

    g = grad(lambda x: layer(layer(x)))
    for count in (1, 2, 3, 4):
        g(0.5)
        assert capsys.readouterr().out == "called\n" * 2
        assert len(log) == 2 * count
    assert all(type(x) is float for x in log)


def test_attributes_that_a_layer_keeps_up_to_date():
    class Norm:
        mean = 0.0

        @checkpoint
        def __call__(self, x):
            m = x.mean()
            self.mean = 0.9 * self.mean + 0.1 * m
            return (x - m) * self.mean

    norm, same = Norm(), Norm()
    g = value_and_grad(lambda x: (norm(x) ** 2).sum())
    for _ in range(4):
        value, _ = g(VECTOR)
        assert value == (same(VECTOR) ** 2).sum()
        assert norm.mean == same.mean


def test_a_value_that_leaves_in_secret_is_an_error():
    def f(x):
        kept = []
        keep = kept.append

        @checkpoint
        def layer(x):
            y = x * x
            keep(y)
            return y * x

        return layer(x) * kept[0]

    with pytest.raises(TraceError, match="computed in a checkpointed function is used outside of"):
        grad(f)(2.0)

    def backs(x):
        kept = []
        keep = kept.append

        @checkpoint
        def layer(x):
            keep(pullback(lambda y: y * y * x, x)[1])
            return x * x * x

        y = layer(x)
        return kept[0](y)[0]

    with pytest.raises(TraceError, match="checkpointed function"):
        grad(backs)(2.0)


def test_exceptions_pass_through():
    @checkpoint
    def layer(x):
        y = x * x
        if y > 1:
            raise ValueError("too large")
        return y

    def f(x):
        try:
            return layer(x)
        except ValueError:
            return 3 * x

    assert [grad(f)(x) for x in (0.5, 2.0, 0.25, 3.0)] == [1.0, 3.0, 0.5, 3.0]
    with pytest.raises(ValueError, match="too large"):
        grad(layer)(2.0)


def test_a_checkpointed_function_is_the_function():
    @checkpoint
    def layer(x, y=2.0):
        """Says so."""
        return x * y

    assert layer(3.0) == 6.0
    assert (layer.__name__, layer.__doc__) == ("layer", "Says so.")
    assert layer.__wrapped__(3.0) == 6.0
    assert grad(layer)(3.0) == 2.0
    assert grad(layer, argnums=1)(3.0, 4.0) == 3.0
    assert "checkpointed_layer(x" in str(trace(lambda x: layer(x) * 2, 3.0))
    assert reverse(trace(lambda x: layer(layer(x)), 3.0)).result is not None


def test_a_pullback_through_a_checkpoint_is_pickled():
    layer = checkpoint(lambda x: np.sin(x) * x)
    for on in (False, True):
        with jit(on):
            for _ in range(3):
                _, back = pullback(lambda x: layer(layer(x)).sum(), VECTOR)
            assert_same(pickle.loads(pickle.dumps(back))(1.0), back(1.0))


def test_a_pullback_answers_for_the_moment_of_its_call():
    shift = checkpoint(lambda x: (x + 1.0) * (x - 2.0))
    x = VECTOR.copy()
    for _ in range(3):
        x[:] = VECTOR
        value, back = pullback(lambda x: shift(x).sum(), x)
        x[:] = 100.0
        assert_same(back(1.0)[0], (VECTOR - 2.0) + (VECTOR + 1.0))


def test_what_is_asked_for_after_a_decision_is_asked_for_after_it():
    asked = []

    @functools.lru_cache
    def twice(n):
        asked.append(n)
        return n * 2.0

    @checkpoint
    def f(x):
        return x * twice(int(x)) + x * rng.normal(size=int(x)).sum()

    points = (1.0, 2.0, 1.0, 2.0, 1.0, 5.0, 2.0)
    rng = np.random.default_rng(7)
    wanted = [f.__wrapped__(x) for x in points]
    plain = [*asked]
    for on in (False, True):
        asked.clear()
        twice.cache_clear()
        rng = np.random.default_rng(7)
        with jit(on):
            assert [value_and_grad(f)(x)[0] for x in points] == wanted
        assert asked == plain


def test_a_checkpointed_function_is_told_by_its_own_place():
    @checkpoint
    def layer(x):
        return np.arccos(x)

    line = layer.__wrapped__.__code__.co_firstlineno
    place = f"test_checkpoint.py:{line}"
    assert str(trace(layer, 0.5)).splitlines()[0] == f"tape of layer  # {place}"
    assert str(explain(grad(layer), 0.5)).splitlines()[0].endswith(place)
    with pytest.raises(TraceError, match=place):
        grad(layer, 5)(0.5)
    with pytest.raises(NonFiniteError, match=rf"in layer \(.*{place}\)"):
        grad(layer, debug=True)(1.0)


@pytest.mark.parametrize("on", [True, False])
def test_shapes_that_the_data_decide(on):
    @checkpoint
    def layer(x):
        return (x[x > 0] ** 2).sum() * len(x[x > 0])

    def f(x):
        return layer(x) * x[0] + layer(x * 0.5)

    def plain(x):
        return layer.__wrapped__(x) * x[0] + layer.__wrapped__(x * 0.5)

    both, rng = value_and_grad(f), np.random.default_rng(0)
    with jit(on):
        for _ in range(20):
            x = rng.normal(size=3)
            value, gradient = both(x)
            assert value == plain(x)
            assert_close(gradient, grad(plain)(x))
            assert_close(jvp(f, (x,), (x,))[1], gradient @ x)
    tape = trace(f, np.array([3.0, 1.0, -2.0]))
    assert tape(np.array([2.0, 4.0, -2.0])) == plain(np.array([2.0, 4.0, -2.0]))
    with pytest.raises(GuardError, match=r"what getitem gives had the shape \(2,\)"):
        tape(np.array([3.0, 1.0, 2.0]))


@pytest.mark.parametrize("on", [True, False])
def test_what_fails_decides_though_nobody_needs_what_it_gives(on):
    @checkpoint
    def layer(x):
        try:
            math.sqrt(x)
        except ValueError:
            return x * 3
        return x * 2

    both = value_and_grad(lambda x: layer(x) * 1.0)
    for x in (9.0, 8.0, 7.0, 6.0, -1.0, 4.0, -4.0):
        with jit(on):
            assert both(x) == ((x * 2, 2.0) if x > 0 else (x * 3, 3.0))


@pytest.mark.parametrize("on", [True, False])
def test_a_checkpointed_loop_that_looks_at_its_items_is_repeated(on):
    """The mark that the loop left on the tape was called in the reverse sweep, which raised a TypeError."""

    @checkpoint
    def product(x):
        a, b = copy.deepcopy([x, x])
        return (a * b).sum()

    def several(x):
        return sum(product(x * k) for k in range(3))

    with jit(on):
        for f, times in ((product, 1.0), (several, 5.0)):
            both = value_and_grad(f)
            for k in range(5):
                x = np.arange(3.0) + k
                value, slope = both(x)
                assert value == f(x)
                assert_close(slope, times * 2.0 * x)

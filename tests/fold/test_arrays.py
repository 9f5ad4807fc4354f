"""Regions with arrays made by hand: values to the bit and gradients against differences, for arrays of many sizes."""

import operator as o
import warnings

import numpy as np
import pytest

from wengert.rules.registry import lookup
from wengert.tracer.fold.region import (
    APPEND,
    DICT,
    EXHAUSTED,
    LIST,
    LOAD,
    POP,
    STORE,
    Constant,
)
from wengert.transforms.fold.ways import Unemittable

from .regions import array, body, function, item, program, source_of, whole

VECTOR, MATRIX, MASK, INTS = array(1), array(2), array(1, bool), array(1, np.intp)
F64 = np.float64


def differences(f, args):
    """The gradient by floats and arrays of floats, by central differences."""
    found = []
    for i, x in enumerate(args):
        if type(x) is float or (isinstance(x, np.ndarray) and x.dtype.kind == "f"):
            slopes = np.empty(np.shape(x))
            for at in np.ndindex(np.shape(x)):
                h = np.zeros(np.shape(x))
                h[at] = 1e-6
                up, down = (f(*args[:i], x + s * h, *args[i + 1 :]) for s in (1, -1))
                slopes[at] = (up - down) / 2e-6
            found.append(slopes)
    return found


def same(x, y):
    return type(x) is type(y) and np.asarray(x).tobytes() == np.asarray(y).tobytes()


def check(folded, f, *runs):
    run = program(folded)
    for args in runs:
        value, gradient = run(*args)
        assert same(value, f(*args))
        for d, expected in zip(gradient, differences(f, args), strict=True):
            d = np.zeros_like(expected) if d is None else d
            assert np.shape(d) == expected.shape
            np.testing.assert_allclose(d, expected, rtol=1e-5, atol=1e-7)


def vectors(*sizes, count=1):
    rng = np.random.default_rng(7)
    return [tuple(rng.normal(size=n) for _ in range(count)) for n in sizes]


def test_straight():
    folded, at, (x, y) = whole(VECTOR, VECTOR)
    z = at.call(np.sin, at.call(o.mul, x, y, kind=VECTOR), kind=VECTOR)
    at.end("return", (F64,), at.call(o.matmul, z, x, kind=F64))
    check(folded, lambda x, y: np.sin(x * y) @ x, *vectors(1, 2, 5, 40, count=2))


def test_the_formulas_of_a_pair():
    folded, at, (x, y) = whole(VECTOR, VECTOR)
    at.end("return", (F64,), at.call(np.dot, x, y, kind=F64))
    x, y = np.array([1.0, 2.0]), np.array([3.0, 5.0])
    value, (dx, dy) = program(folded)(x, y)
    assert (value, dx.tolist(), dy.tolist()) == (13.0, [3.0, 5.0], [1.0, 2.0])


def test_an_array_twice():
    folded, at, (x,) = whole(VECTOR)
    at.end("return", (F64,), at.call(np.dot, x, at.call(o.mul, x, x, kind=VECTOR), kind=F64))
    check(folded, lambda x: np.dot(x, x * x), *vectors(1, 3, 8))


def test_an_array_without_a_derivative():
    folded, at, (x, y) = whole(VECTOR, VECTOR)
    at.end("return", (F64,), at.call(np.ndarray.sum, x, kind=F64))
    assert program(folded)(np.ones(3), np.ones(2))[1][1] is None


def test_arguments_that_nest():
    folded, at, (x, y, i) = whole(VECTOR, VECTOR, int)
    both = at.call(np.concatenate, [x, y], kind=VECTOR)
    part = at.call(o.getitem, both, slice(i, None, None), kind=VECTOR)
    table = at.call(np.reshape, part, (1, -1), kind=MATRIX)
    total = at.call(np.sum, table, axis=0, keepdims=False, kind=VECTOR)
    at.end("return", (F64,), at.call(np.prod, total, kind=F64))

    def plain(x, y, i):
        both = np.concatenate([x, y])
        return np.prod(np.sum(np.reshape(both[i:], (1, -1)), axis=0, keepdims=False))

    check(folded, plain, *[(*two, 1) for two in vectors(1, 2, 7, count=2)])


def test_an_array_in_an_index():
    folded, at, (x, i) = whole(VECTOR, INTS)
    mask = at.call(o.gt, x, 0.0, kind=MASK)
    above = at.call(o.getitem, x, mask, kind=VECTOR)
    taken = at.call(o.getitem, x, i, kind=VECTOR)
    a, b = (at.call(np.sum, v, kind=F64) for v in (above, taken))
    at.end("return", (F64,), at.call(o.mul, a, b, kind=F64))
    i = np.array([0, 1, 0])
    check(
        folded, lambda x, i: np.sum(x[x > 0.0]) * np.sum(x[i]), *[(*x, i) for x in vectors(2, 3, 9)]
    )


def test_floats_beside_arrays():
    folded, at, (x, a) = whole(VECTOR, float)
    s = at.call(np.sum, at.call(o.mul, a, x, kind=VECTOR), kind=F64)
    b = at.op(float, s)
    at.give(at.op(o.mul, b, at.op(o.add, a, 1.0)))
    check(
        folded, lambda x, a: float(np.sum(a * x)) * (a + 1.0), *[(*x, 0.7) for x in vectors(1, 4)]
    )


def powers(at, a, x, n):
    """``n`` times ``x = tanh(a @ x)``."""
    loop = at.loop([x], at.op(range, n, kind=range))
    head, (v,) = body(loop, "s", VECTOR)
    turn, nothing = head.decide(EXHAUSTED)
    item(turn)
    turn.end("next", "s", turn.call(np.tanh, turn.call(o.matmul, a, v, kind=VECTOR), kind=VECTOR))
    nothing.end("leave", "s", v)
    return at.after(loop, "s", VECTOR)


def test_a_counted_loop():
    folded, at, (a, x, n) = whole(MATRIX, VECTOR, int)
    at, (v,) = powers(at, a, x, n)
    at.end("return", (F64,), at.call(np.ndarray.sum, v, kind=F64))

    def plain(a, x, n):
        for _ in range(n):
            x = np.tanh(a @ x)
        return x.sum()

    rng = np.random.default_rng(1)
    sizes = [(1, 3), (4, 0), (4, 1), (2, 6)]
    check(folded, plain, *[(rng.normal(size=(n, n)), rng.normal(size=n), k) for n, k in sizes])


def test_no_pass_gives_no_cotangent_to_what_passes_use():
    folded, at, (a, x, n) = whole(MATRIX, VECTOR, int)
    at, (v,) = powers(at, a, x, n)
    at.end("return", (F64,), at.call(np.ndarray.sum, v, kind=F64))
    assert program(folded)(np.ones((2, 2)), np.ones(2), 0)[1][0] is None


def test_a_loop_until_a_norm_is_small():
    folded, at, (x, tol) = whole(VECTOR, float)
    loop = at.loop([x])
    head, (v,) = body(loop, "s", VECTOR)
    norm = head.call(np.sqrt, head.call(np.dot, v, v, kind=F64), kind=F64)
    done, going = head.decide(head.call(o.gt, norm, tol, kind=np.bool_))
    done.end("leave", "s", v)
    step = going.call(o.mul, 0.5, going.call(np.sin, v, kind=VECTOR), kind=VECTOR)
    going.end("next", "s", step)
    at, (v,) = at.after(loop, "s", VECTOR)
    at.end("return", (F64,), at.call(np.dot, v, x, kind=F64))

    def plain(x, tol):
        v = x
        while np.sqrt(np.dot(v, v)) > tol:
            v = 0.5 * np.sin(v)
        return np.dot(v, x)

    check(folded, plain, *[(*x, tol) for x in vectors(1, 3, 6) for tol in (9.0, 0.5, 0.01)])


def test_what_one_way_alone_uses():
    folded, at, (x, y, a) = whole(VECTOR, VECTOR, float)
    no, yes = at.test(o.gt, a, 0.0)
    yes.end("return", (F64,), yes.call(np.dot, x, y, kind=F64))
    no.end("return", (F64,), no.call(np.sum, x, kind=F64))

    def plain(x, y, a):
        return np.dot(x, y) if a > 0.0 else np.sum(x)

    check(folded, plain, *[(*two, a) for two in vectors(2, 3, count=2) for a in (1.0, -1.0)])


def test_a_list_of_arrays():
    folded, at, (x, y) = whole(VECTOR, VECTOR)
    both = at.op(LIST, x, kind=list)
    at.op(APPEND, both, at.call(np.sin, y, kind=VECTOR), kind=None)
    at.op(STORE, both, 0, at.call(o.mul, x, y, kind=VECTOR), kind=None)
    last = at.op(POP, both, kind=VECTOR)
    first = at.op(LOAD, both, 0, kind=VECTOR)
    at.end(
        "return", (F64,), at.call(np.dot, first, at.call(o.add, last, first, kind=VECTOR), kind=F64)
    )
    check(folded, lambda x, y: np.dot(x * y, np.sin(y) + x * y), *vectors(1, 5, count=2))


def test_what_has_no_derivative():
    folded, at, (x,) = whole(VECTOR)
    i = at.call(np.argmax, x, kind=np.int64)
    whole_ = at.call(np.ndarray.astype, x, Constant(int), kind=INTS)
    s = at.call(np.sum, at.call(o.mul, x, whole_, kind=VECTOR), kind=F64)
    at.end("return", (F64,), at.call(o.mul, s, at.call(o.getitem, x, i, kind=F64), kind=F64))
    x = np.array([1.5, 3.25, -2.5])
    value, (d,) = program(folded)(x)
    assert value == np.sum(x * x.astype(int)) * x[1]
    assert (
        d.tolist() == (x.astype(int) * x[1] + np.array([0, np.sum(x * x.astype(int)), 0])).tolist()
    )


def test_a_value_of_another_kind_leaves_the_program():
    folded, at, (x,) = whole(MATRIX)
    thin = at.call(np.squeeze, x, kind=VECTOR)
    at.end("return", (F64,), at.call(np.sum, thin, kind=F64))
    run = program(folded)
    assert run(np.ones((1, 3)))[0] == 3.0
    with pytest.raises(Exception, match="Miss|^$"):
        run(np.ones((2, 3)))


def test_a_rule_that_gives_memory_in_another_order():
    folded, at, (x,) = whole(MATRIX)
    flat = at.call(np.ravel, at.call(np.asfortranarray, x, kind=MATRIX), "K", kind=VECTOR)
    at.end("return", (F64,), at.call(o.getitem, flat, 1, kind=F64))
    check(folded, lambda x: np.ravel(np.asfortranarray(x), "K")[1], (np.arange(6.0).reshape(2, 3),))


def test_a_function_without_a_rule():
    folded, at, (x,) = whole(VECTOR)
    at.end("return", (F64,), at.call(np.piecewise, x, kind=F64))
    with pytest.raises(Unemittable, match="rule"):
        source_of(folded)


def test_a_derivative_by_a_keyword():
    folded, at, (x,) = whole(VECTOR)
    m = at.call(np.max, x, kind=F64)
    at.end("return", (F64,), at.call(np.sum, x, initial=m, kind=F64))
    value, (d,) = program(folded)(np.array([1.0, 4.0]))
    assert (value, d.tolist()) == (9.0, [1.0, 2.0])


def test_cotangents_are_not_changed_in_place():
    """Both operands of a sum get the same array."""
    folded, at, (x, y) = whole(VECTOR, VECTOR)
    s = at.call(o.add, x, y, kind=VECTOR)
    a = at.call(np.dot, s, s, kind=F64)
    b = at.call(np.dot, x, x, kind=F64)
    at.end("return", (F64,), at.call(o.add, a, b, kind=F64))
    check(folded, lambda x, y: np.dot(x + y, x + y) + np.dot(x, x), *vectors(1, 4, count=2))


def test_no_work_moves_behind_the_border():
    """What may warn stays in front of the line behind which NumPy does not warn."""
    folded, at, (x, i) = whole(VECTOR, INTS)
    j = at.call(o.mul, i, i, kind=INTS)
    k = at.call(o.add, j, j, kind=INTS)
    at.end("return", (F64,), at.call(np.sum, at.call(o.getitem, x, k, kind=VECTOR), kind=F64))
    source, _ = source_of(folded)
    before = source.partition("quiet = True")[0]
    assert before.count("*") == 1 and before.count("+") == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program(folded)(np.ones(3), np.array([0, 1]))


def test_a_function_that_calls_itself():
    made, inner, (v, k) = function(VECTOR, int)
    folded, at, (x, n) = whole(VECTOR, int)
    folded.functions["g"] = made
    go, stop = inner.test(o.le, k, 0)
    stop.end("return", (VECTOR,), stop.call(np.sin, v, kind=VECTOR))
    op = go.invoke(made, go.call(o.mul, v, 0.5, kind=VECTOR), go.op(o.sub, k, 1, kind=int))
    go, (w,) = go.after(op, (VECTOR,), VECTOR)
    go.end("return", (VECTOR,), go.call(o.mul, w, v, kind=VECTOR))
    op = at.invoke(made, x, n)
    at, (y,) = at.after(op, (VECTOR,), VECTOR)
    at.end("return", (F64,), at.call(np.sum, y, kind=F64))

    def g(v, k):
        return np.sin(v) if k <= 0 else g(v * 0.5, k - 1) * v

    check(
        folded, lambda x, n: np.sum(g(x, n)), *[(*x, n) for x in vectors(1, 4) for n in (0, 1, 3)]
    )


def test_an_object_with_arrays():
    folded, at, (x,) = whole(VECTOR)
    held = at.op(DICT, "a", x, "b", at.call(np.cos, x, kind=VECTOR), kind=dict)
    at.op(STORE, held, "a", at.call(o.mul, x, x, kind=VECTOR), kind=None)
    a, b = at.op(LOAD, held, "a", kind=VECTOR), at.op(LOAD, held, "b", kind=VECTOR)
    at.end("return", (F64,), at.call(np.dot, a, b, kind=F64))
    check(folded, lambda x: np.dot(x * x, np.cos(x)), *vectors(1, 5))


@pytest.mark.parametrize("fn", [np.multiply, o.mul, o.pow, np.arctan2, np.maximum])
def test_only_what_is_active_gets_a_cotangent(fn):
    """Nothing is computed for the operand that nobody asks for."""
    folded, at, (x, i) = whole(VECTOR, INTS)
    y = at.call(o.add, i, 1.5, kind=VECTOR)
    at.end("return", (F64,), at.call(np.sum, at.call(fn, x, y, kind=VECTOR), kind=F64))
    source, _ = source_of(folded)
    assert source.count("product(") == 1 and "pulled" not in source
    check(
        folded,
        lambda x, i: np.sum(fn(x, i + 1.5)),
        *[(abs(*x) + 0.1, np.arange(len(*x))) for x in vectors(1, 4)],
    )


def test_sizes_that_are_stretched():
    folded, at, (x, y) = whole(VECTOR, MATRIX)
    z = at.call(o.mul, x, at.call(o.sub, y, x, kind=MATRIX), kind=MATRIX)
    at.end("return", (F64,), at.call(np.sum, at.call(o.truediv, z, 3.0, kind=MATRIX), kind=F64))
    rng = np.random.default_rng(2)
    sizes = [(3, (2, 3)), (1, (2, 3)), (3, (1, 3)), (3, (3, 1)), (1, (1, 1))]
    check(
        folded,
        lambda x, y: np.sum(x * (y - x) / 3.0),
        *[(rng.normal(size=n), rng.normal(size=m)) for n, m in sizes],
    )


# ------------------------------------------------------------------------------- lowered for any sizes

PAIRS = [(3, 3), (1, 3), (3, 1), (1, 1), (0, 0), (0, 1), (1, 0)]
VECTORS = [((n,), (m,)) for n, m in PAIRS]
MATRICES = [((2, n), (2, m)) for n, m in PAIRS] + [((1, 3), (2, 1)), ((2, 3), (1, 3))]
PRODUCTS = {
    (1, 1): [((n,), (n,)) for n in (0, 1, 3)],
    (2, 1): [((m, n), (n,)) for m in (0, 1, 2) for n in (0, 1, 3)],
    (1, 2): [((m,), (m, n)) for m in (0, 1, 2) for n in (0, 1, 3)],
    (2, 2): [((m, n), (n, k)) for m in (0, 1, 2) for n in (0, 1, 3) for k in (0, 1, 4)],
}
ELEMENTWISE = [
    *(np.add, np.subtract, np.multiply, np.divide, np.power, np.maximum, np.minimum, np.arctan2),
    *(np.hypot, np.logaddexp, o.add, o.sub, o.mul, o.truediv, o.pow, o.mod),
]


def check_rule(fn, shapes, *others, **options):
    """A folded call of ``fn`` and ``np.sum`` against the rules, to the bit, for operands of these shapes."""
    kinds = [array(len(shape)) for shape in shapes[0]]
    folded, at, xs = whole(*kinds)
    example = fn(*[np.full((2,) * kind.ndim, 0.5) for kind in kinds], *others, **options)
    number = not isinstance(example, np.ndarray)
    z = at.call(fn, *xs, *others, kind=F64 if number else array(example.ndim), **options)
    y = at.call(o.mul, z, 1.5, kind=z.type)
    at.end("return", (F64,), y if number else at.call(np.sum, y, kind=F64))
    source, _ = source_of(folded)
    assert "pulled" not in source and ", b" not in source
    run = program(folded)
    rng = np.random.default_rng(1)
    for given in shapes:
        for special in (None, 0.0, np.inf, np.nan):
            args = [np.abs(rng.normal(size=shape)) for shape in given]
            for x in args:
                if special is not None:
                    x[..., :1] = special
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                value, gradient = run(*args)
                z, back = lookup(fn).function(*args, *others, **options)
                w, after = lookup(o.mul).function(z, 1.5)
                dz = 1.0 if number else lookup(np.sum).function(w)[1](1.0)[0]
                expected = back(after(dz)[0])
            for d, x, here in zip(gradient, args, expected, strict=False):
                assert d.shape == x.shape and d.tobytes() == np.asarray(here).tobytes(), given


@pytest.mark.parametrize("fn", ELEMENTWISE)
@pytest.mark.parametrize("shapes", [VECTORS, MATRICES])
def test_elementwise_for_any_sizes(fn, shapes):
    check_rule(fn, shapes)


@pytest.mark.parametrize("axes", PRODUCTS)
@pytest.mark.parametrize("fn", [o.matmul, np.matmul, np.dot])
def test_products_for_any_sizes(fn, axes):
    check_rule(fn, PRODUCTS[axes])


@pytest.mark.parametrize("fn", [np.sum, np.mean, np.prod, np.max, np.amin])
@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 1)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions_for_any_sizes(fn, axis, keepdims):
    sizes = [(m, n) for m in (1, 2, 5) for n in (1, 3, 9)]
    check_rule(fn, [(shape,) for shape in sizes], axis=axis, keepdims=keepdims)


@pytest.mark.parametrize(
    "fn, others",
    [
        *((np.sum, ()), (np.ndarray.sum, (0,)), (np.mean, ()), (np.ndarray.mean, (-1,))),
        *(
            (np.cumsum, ()),
            (np.ndarray.max, ()),
            (np.ndarray.prod, ()),
            (np.copy, ()),
            (np.diag, ()),
        ),
    ],
)
def test_functions_of_vectors_for_any_sizes(fn, others):
    check_rule(fn, [((n,),) for n in (1, 2, 5, 30)], *others)


@pytest.mark.parametrize(
    "fn, others",
    [
        *((np.transpose, ()), (np.ndarray.transpose, ()), (np.swapaxes, (0, 1)), (np.copy, ())),
        *((np.diag, ()), (np.diag, (1,)), (np.trace, ()), (np.cumsum, (1,)), (np.cumsum, ())),
    ],
)
def test_functions_of_matrices_for_any_sizes(fn, others):
    check_rule(fn, [((m, n),) for m in (1, 2, 5) for n in (1, 3, 30)], *others)


INDICES = [
    *(0, -1, slice(1, None), slice(None, None, 2), None, (slice(None), None), (0, Ellipsis)),
    *((Ellipsis, -1), (slice(None), 0), (0, slice(None, -1))),
]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_an_index_for_any_sizes(index):
    sizes = [(m, n) for m in (1, 2, 5) for n in (1, 3, 30)]
    check_rule(o.getitem, [(shape,) for shape in sizes], index)


def test_a_mean_over_some_of_several_axes_is_left_to_its_rule():
    """How many elements there are is then no size of the operand."""
    folded, at, (x,) = whole(array(3))
    z = at.call(np.mean, x, axis=(0, 1), kind=VECTOR)
    at.end("return", (F64,), at.call(np.sum, z, kind=F64))
    assert "mean" in source_of(folded)[0]
    rng = np.random.default_rng(2)
    check(
        folded,
        lambda x: np.sum(np.mean(x, axis=(0, 1))),
        *[(rng.normal(size=(2, 3, n)),) for n in (1, 4)],
    )


def test_a_number_beside_an_array_for_any_sizes():
    folded, at, (x, y) = whole(float, MATRIX)
    z = at.call(o.truediv, at.call(o.mul, x, y, kind=MATRIX), x, kind=MATRIX)
    at.end("return", (F64,), at.call(np.sum, at.call(o.pow, z, 2, kind=MATRIX), kind=F64))
    assert "pulled" not in source_of(folded)[0]
    rng = np.random.default_rng(5)
    sizes = [(2, 3), (1, 3), (3, 1), (1, 1), (0, 3)]
    check(
        folded, lambda x, y: np.sum((x * y / x) ** 2), *[(0.7, rng.normal(size=n)) for n in sizes]
    )


def test_an_array_of_another_layout_gives_the_same():
    folded, at, (x, y) = whole(MATRIX, MATRIX)
    at.end("return", (F64,), at.call(np.sum, at.call(o.matmul, x, y, kind=MATRIX), kind=F64))
    rng = np.random.default_rng(4)
    a, b = rng.normal(size=(7, 5)), rng.normal(size=(6, 7))
    for x, y in [(a.T, b.T), (a[::-1].T, b.T[:, ::2]), (np.asfortranarray(a.T), b.T.copy())]:
        value, (dx, dy) = program(folded)(x, y)
        z, back = lookup(o.matmul).function(x, y)
        total, spread = lookup(np.sum).function(z)
        assert same(value, total)
        assert all(map(same, (dx, dy), back(spread(1.0)[0])))

"""Derivatives of derivatives: grad of grad, and pullbacks inside traced functions."""

import dataclasses
import math

import numpy as np
import pytest

from helpers import assert_close, assert_plain, assert_same, check, derivative, numeric_grad
from wengert import grad, jacobian, jit, jvp, linearize, pullback, value_and_grad

V = np.array([0.5, -1.2, 2.0])


# ----------------------------------------------------------------------------------------- one variable


def test_powers():
    cube = lambda x: x * x * x
    assert [cube(2.0), grad(cube)(2.0), grad(grad(cube))(2.0)] == [8.0, 12.0, 12.0]
    assert grad(grad(grad(cube)))(2.0) == 6.0
    assert grad(grad(grad(grad(cube))))(2.0) == 0.0
    power = lambda x: x**5
    assert grad(grad(grad(power)))(1.5) == pytest.approx(60 * 1.5**2)


def test_derivatives_of_the_sine():
    f, expected = math.sin, [math.sin, math.cos, lambda x: -math.sin(x), lambda x: -math.cos(x)]
    for order in range(6):
        assert f(0.7) == pytest.approx(expected[order % 4](0.7), abs=1e-12)
        f = grad(f)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: math.exp(-x * x) / (1 + x),
        lambda x: math.sqrt(1 + x**2) * math.log(x),
        lambda x: math.tanh(x) ** 2 / x,
        lambda x: np.sin(x) * np.arctan(x) + np.log1p(x),
        lambda x: x**x + 2.0**x,
        lambda x: math.atan2(x, 1 + x * x) * math.hypot(x, 2.0),
        lambda x: (V * x).sum() ** 2 + (V**2 * x**3).max(),
        lambda x: max(x * x, 0.1) * min(x, 3.0) + abs(x) ** 3,
    ],
)
def test_second_and_third_derivative(f):
    second = derivative(lambda t: grad(f)(0.8 + t))
    third = derivative(lambda t: grad(grad(f))(0.8 + t))
    assert grad(f)(0.8) == pytest.approx(derivative(lambda t: float(f(0.8 + t))), rel=1e-8)
    assert grad(grad(f))(0.8) == pytest.approx(second, rel=1e-8)
    assert grad(grad(grad(f)))(0.8) == pytest.approx(third, rel=1e-7)


def test_with_control_flow():
    def f(x):
        y = x
        while y < 10:
            y = y * y + x if y > 1 else y + x
        return [y for _ in range(2)][0] * x

    assert grad(grad(f))(0.8) == pytest.approx(derivative(lambda t: grad(f)(0.8 + t), h=2**-9))


def test_through_in_place_writes():
    def f(x):
        a = np.array([x, 2 * x, 3 * x])
        a[1:] *= a[:-1]
        b = a[::-1]
        b[0] = x**3
        a += b
        return a @ a

    assert grad(grad(f))(0.8) == pytest.approx(derivative(lambda t: grad(f)(0.8 + t)))


# ------------------------------------------------------------------------------- perturbation confusion


def test_perturbation_confusion():
    assert grad(lambda x: x * grad(lambda y: x + y)(1.0))(1.0) == 1.0
    assert grad(lambda x: x * grad(lambda y: x * y)(2.0))(3.0) == 6.0
    assert grad(lambda x: x * grad(lambda y: x * y * y)(x))(3.0) == pytest.approx(6 * 3.0**2)
    assert grad(lambda x: grad(lambda y: x * x * y)(x))(3.0) == 6.0
    assert grad(lambda x: x * grad(lambda x: x * x)(x) * 1.0)(3.0) == 12.0


def test_perturbation_confusion_three_deep():
    def f(x):
        def g(y):
            return grad(lambda z: x * y * z * z)(y) * x

        return grad(g)(x)

    # g(y) = 2 x^2 y^2, g'(y) = 4 x^2 y, f(x) = 4 x^3
    assert f(1.5) == pytest.approx(4 * 1.5**3)
    assert grad(f)(1.5) == pytest.approx(12 * 1.5**2)


def test_inner_function_of_nothing():
    assert grad(lambda x: x * grad(lambda y: 3.0)(x))(2.0) == 0.0
    assert grad(lambda x: x + grad(lambda y: x)(2.0))(2.0) == 1.0
    assert grad(lambda x: grad(lambda y: x)(x))(2.0) == 0.0


def test_same_variable_closed_over_and_passed():
    def f(x):
        return grad(lambda y: y * y * x)(x)  # 2 x^2

    assert f(1.5) == 2 * 1.5**2
    assert grad(f)(1.5) == 4 * 1.5
    assert grad(grad(f))(1.5) == 4.0


def test_arrays_closed_over_and_passed():
    def f(v):
        return np.sum(grad(lambda w: np.sum(w * w * v))(v))  # sum 2 v^2

    assert_close(grad(f)(V), 4 * V)


def test_inner_pullback_with_outer_cotangent():
    def f(x, c):
        value, back = pullback(lambda y: (y * y, math.sin(y) * x), x)
        return value[0] * back((c, x))[0]

    check(f, 0.7, 1.3)
    assert grad(grad(f))(0.7, 1.3) == pytest.approx(derivative(lambda t: grad(f)(0.7 + t, 1.3)))


def test_inner_pullback_called_twice():
    def f(x):
        value, back = pullback(lambda y, z: y * z * z, x, 2.0)
        (a, b), (c, d) = back(1.0), back(x)
        return value * a + b * c - d

    check(f, 0.7)


# --------------------------------------------------------------------------------------- many variables


def rosenbrock(v):
    return np.sum(100.0 * (v[1:] - v[:-1] ** 2) ** 2 + (1 - v[:-1]) ** 2)


def hessian_by_differences(f, v):
    return np.array(
        [
            [derivative(lambda t: grad(f)(v + t * row)[i]) for i in range(len(v))]
            for row in np.eye(len(v))
        ]
    )


@pytest.mark.parametrize(
    "f",
    [
        rosenbrock,
        lambda v: np.exp(v @ v / 4) * v[0],
        lambda v: np.log(np.sum(np.exp(v))),
        lambda v: np.linalg.norm(v) ** 3 + np.prod(v),
        lambda v: sum(math.sin(a * b) for a in v for b in v),
        lambda v: np.tanh(np.outer(v, v)).sum() + np.cumsum(v)[1] ** 2,
        lambda v: (v[[0, 1, 1]] * v[v > 0].sum()).max() ** 2,
        lambda v: (
            np.linalg.det(np.outer(v, v) + np.eye(3)) + np.linalg.inv(np.diag(v**2) + 1.0)[0, 1]
        ),
    ],
)
def test_hessian(f):
    rows = np.array([grad(lambda v, i=i: grad(f)(v)[i])(V) for i in range(3)])
    assert rows == pytest.approx(hessian_by_differences(f, V), rel=1e-6, abs=1e-6)
    assert rows == pytest.approx(rows.T, rel=1e-9, abs=1e-9)


def test_hessian_of_rosenbrock():
    a, b, c = V
    expected = [
        [1200 * a * a - 400 * b + 2, -400 * a, 0],
        [-400 * a, 202 + 1200 * b * b - 400 * c, -400 * b],
        [0, -400 * b, 200],
    ]
    rows = [grad(lambda v, i=i: grad(rosenbrock)(v)[i])(V) for i in range(3)]
    assert_close(np.array(rows), np.array(expected))


def test_hessian_vector_product():
    u = np.array([1.0, -0.5, 0.25])
    product = grad(lambda v: grad(rosenbrock)(v) @ u)(V)
    assert product == pytest.approx(derivative_of_array(lambda t: grad(rosenbrock)(V + t * u)))


def derivative_of_array(g):
    return np.array([derivative(lambda t, i=i: g(t)[i]) for i in range(3)])


def test_mixed_partial_derivatives():
    f = lambda x, y: x**2 * y**3
    assert grad(grad(f, argnums=1), argnums=0)(2.0, 3.0) == 2 * 2.0 * 3 * 9.0
    assert grad(grad(f, argnums=0), argnums=1)(2.0, 3.0) == 2 * 2.0 * 3 * 9.0
    assert (
        grad(lambda x, y: sum(grad(f, argnums=(0, 1))(x, y)))(2.0, 3.0)
        == 2 * 27.0 + 2 * 2.0 * 3 * 9
    )


def test_structured_arguments():
    @dataclasses.dataclass
    class Layer:
        w: np.ndarray
        b: float

    def f(params):
        g = grad(lambda p: np.sum(np.tanh(p["layer"].w * p["x"] + p["layer"].b)))(params)
        return np.sum(g["layer"].w ** 2) + g["layer"].b * g["x"]

    params = {"layer": Layer(V, 0.3), "x": 0.8}
    check(f, params)
    second = grad(f)(params)
    assert type(second["layer"]) is Layer


def test_object_attributes():
    class Model:
        def __init__(self):
            self.w = V.copy()
            self.b = 0.5

        def loss(self, x):
            return np.sum(np.sin(self.w * x)) * self.b

    model = Model()
    assert grad(grad(model.loss))(0.7) == pytest.approx(-0.5 * np.sum(V**2 * np.sin(V * 0.7)))
    assert_plain(model)
    assert_same(model.w, V)


def test_value_and_grad_inside():
    def f(x):
        value, slope = value_and_grad(lambda y: y**3 * x)(x)
        return value * slope  # x^4 * 3 x^3

    assert grad(f)(1.2) == pytest.approx(21 * 1.2**6)


# ---------------------------------------------------------------------------------- programs with grad


def test_gradient_descent_is_differentiable():
    def train(rate, momentum):
        x, speed = 3.0, 0.0
        loss = lambda x: (x - 1.0) ** 2 + 0.1 * x**4
        for _ in range(10):
            speed = momentum * speed - rate * grad(loss)(x)
            x = x + speed
        return loss(x)

    check(train, 0.02, 0.5)


def test_newton_iteration_with_its_own_derivative():
    def root(a):
        f = lambda x: x**3 - a
        x = 1.0
        for _ in range(20):
            x = x - f(x) / grad(f)(x)
        return x

    assert root(5.0) == pytest.approx(5.0 ** (1 / 3))
    assert grad(root)(5.0) == pytest.approx(5.0 ** (-2 / 3) / 3)
    assert grad(grad(root))(5.0) == pytest.approx(-2 / 9 * 5.0 ** (-5 / 3))


def test_gradient_descent_on_arrays_in_place():
    def train(rate, start):
        w = start.copy()
        for _ in range(4):
            w -= rate * grad(rosenbrock)(w)
        return w

    check(train, 1e-4, V * 0.5)


def test_physics_informed():
    """The residual u'' + u of a small network, differentiated with respect to its weights."""

    def net(weights, x):
        a, b, c = weights
        return sum(ci * math.tanh(ai * x + bi) for ai, bi, ci in zip(a, b, c, strict=True))

    def residual(weights, x):
        u = lambda x: net(weights, x)
        return (grad(grad(u))(x) + u(x)) ** 2

    weights = ([0.5, -1.0], [0.1, 0.2], [1.0, 0.7])
    check(residual, weights, 0.4)


def test_lagrangian_mechanics():
    """The acceleration of a pendulum from its Lagrangian, by mixed second derivatives."""

    def lagrangian(q, v):
        return 0.5 * v**2 + 9.81 * math.cos(q)

    def acceleration(q, v):
        force = grad(lagrangian, argnums=0)(q, v)
        mass = grad(grad(lagrangian, argnums=1), argnums=1)(q, v)
        return force / mass

    assert acceleration(0.3, 0.7) == pytest.approx(-9.81 * math.sin(0.3))
    assert grad(acceleration)(0.3, 0.7) == pytest.approx(-9.81 * math.cos(0.3))


def test_effects_of_inner_functions_happen_once(capsys):
    log = []

    def inner(y):
        log.append(y)
        print("inner", y)
        return y * y

    assert grad(lambda x: grad(inner)(x) * x)(3.0) == 12.0
    assert_same(log, [3.0])
    assert capsys.readouterr().out == "inner 3.0\n"


def test_inner_gradients_are_plain_outside():
    kept = []

    def f(x):
        kept.append(grad(lambda y: y * y * x)(x))
        kept.append(value_and_grad(np.sin)(V))
        return kept[0]

    with pytest.raises(Exception, match=r"(?s)scalar|real number"):
        grad(f)(1.5)
    kept.clear()

    def g(x):
        kept.append(grad(lambda y: y * y * x)(x))
        return kept[0]

    assert grad(g)(1.5) == 6.0
    assert_same(kept, [4.5])


def test_mixed_outer_and_inner_structures():
    def f(table):
        inner = grad(lambda t: t["a"] ** 2 * t["b"][0] * table["a"])(table)
        return inner["a"] * inner["b"][0]

    check(f, {"a": 1.2, "b": [0.7, 2.0]})


def test_numeric_gradient_of_second_order_array():
    f = lambda v: np.sum(grad(lambda w: np.sum(np.sin(w) * w**2))(v) ** 2)
    assert grad(f)(V) == pytest.approx(numeric_grad(f, V))


def test_inside_a_function_writes_to_its_argument():
    def f(p):
        p[0] = None
        p[1] = p[1] * 0.5
        return p[1] * p[2]

    for _ in range(50):  # objects made anew come to lie where others lay
        p = [3.0, 1.0, 2.0]
        pullback(grad(f), p)
        assert_same(p, [None, 0.5, 2.0])


# --------------------------------------------------------------------------------- types and shapes


@pytest.mark.parametrize("fn", [np.sin, np.exp, np.sqrt, np.tanh, np.conj, np.square])
@pytest.mark.parametrize("z", [1 + 2j, np.complex128(1 + 2j)])
@pytest.mark.parametrize("v", [1 + 0j, np.complex128(1)])
def test_an_inner_gradient_has_the_type_of_its_argument(fn, z, v):
    second = lambda z, v: pullback(fn, z)[1](v)[0]
    assert type(second(z, v)) is type(z)
    assert_same(pullback(second, z, v)[0], second(z, v))


@pytest.mark.parametrize("fn", [np.dot, np.inner, np.vdot, np.multiply])
@pytest.mark.parametrize("x", [1.5, np.float64(1.5), 1.5 - 2j])
def test_an_inner_gradient_of_a_product_has_the_type_of_its_argument(fn, x):
    second = lambda x: pullback(lambda y: fn(y, y), x)[1](type(x)(1))[0]
    assert_same(pullback(second, x)[0], second(x))


@pytest.mark.parametrize("on", [False, True])
def test_shapes_that_depend_on_an_integer(on):
    """A pullback is kept for the types of its operands, and not used for shapes that go by an integer."""
    x = np.arange(25.0).reshape(5, 5) + 1
    with jit(on):
        for k in (4, -1, 0, 1, -4, 2):
            traced = lambda x, v, k=k: pullback(lambda x: np.trace(x, offset=k), x)[1](v)[0]
            assert_same(jvp(traced, (x, 1.0), (x, 1.0))[1], np.eye(5, k=k))
            assert pullback(traced, x, 1.0)[1](x)[1] == pytest.approx(np.trace(x, offset=k))


def put(d, i, j):
    x = np.zeros(6)
    x[i:j] = d
    return np.sum(x * np.arange(6.0))


@pytest.mark.parametrize("on", [False, True])
def test_one_value_written_to_slices_of_several_lengths(on):
    with jit(on):
        for i, j in ((0, 1), (0, 3), (2, 5), (2, 3), (1, 6)):
            assert_same(grad(put)(np.array([2.0]), i, j), np.array([float(sum(range(i, j)))]))
            assert_same(
                grad(grad(lambda s: put(np.array([s]) * s, i, j)))(2.0), 2.0 * sum(range(i, j))
            )


@pytest.mark.filterwarnings("ignore:Setting the shape")
def test_an_array_is_free_again_after_an_inner_gradient():
    def f(x):
        a = np.ones(4) * x
        g = grad(lambda b: (b * b).sum())(a)
        a.shape = (2, 2)  # which is refused where another variable lies in the memory
        return (a @ a).sum() + g.sum()

    assert value_and_grad(f)(1.5) == (8 * 1.5**2 + 8 * 1.5, 16 * 1.5 + 8)


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("ask", [jvp, lambda f, xs, ts: linearize(f, *xs), None])
def test_arguments_that_are_put_outside_are_the_arguments(on, ask):
    """Also where the function has seen a copy that holds variables."""
    ask = ask or (lambda f, xs, ts: pullback(f, *xs))
    table, thing, items = {"a": {}}, Thing(), [None]

    def f(xs, d):
        table["a"]["b"] = xs
        thing.a, items[0] = d, (xs, d["k"])

    with jit(on):
        for i in range(3):
            xs, d = [0.1, i + 0.5], {"k": [1.0], "z": 2.0}
            ask(f, (xs, d), ([1.0, 0.0], {"k": [0.0], "z": 1.0}))
            assert table["a"]["b"] is xs and thing.a is d
            assert items[0][0] is xs and items[0][1] is d["k"]
            assert (xs, d) == ([0.1, i + 0.5], {"k": [1.0], "z": 2.0})


class Thing:
    pass


def written_by_index(x, ask):
    xs, kept = [x, 1.0], []
    ask(lambda ys: (kept.append(ys), ys[0] * ys[1])[1], xs)
    kept[0][1] = 5.0 * x
    return xs[1] * x


def appended(x, ask):
    xs, kept = [x, 1.0], []
    ask(lambda ys: (kept.append(ys), ys[0] * ys[1])[1], xs)
    kept[0].append(x * x)
    xs.extend([x])
    return sum(xs) + sum(kept[0]) * len(xs)


def put_outside(x, ask):
    xs = [x, 1.0]
    ask(lambda ys: (OUTSIDE.__setitem__(slice(None), [ys]), ys[0] * ys[1])[1], xs)
    OUTSIDE[0].append(7.0 * x)
    return sum(xs) * x


def in_a_closure(x, ask):
    xs, held = [x, 1.0], []

    def inner(ys):
        held.append(lambda v: ys.__setitem__(0, v))
        return ys[0] * ys[1]

    ask(inner, xs)
    held[0](x * 4.0)
    return xs[0] * x


def in_a_list_within(x, ask):
    xs, kept = [[x, 2.0], [1.0]], {}
    ask(lambda ys: (kept.update(row=ys[0]), ys[0][0] * ys[1][0])[1], xs)
    kept["row"][1] = x * x
    xs[0].append(x)
    return sum(xs[0]) * len(kept["row"])


def of_a_dict(x, ask):
    table, kept = {"a": x}, []
    ask(lambda t: (kept.append(t), t["a"] ** 2)[1], table)
    table["b"] = x * 3.0
    kept[0]["c"] = x
    return kept[0]["b"] * x + len(table) + table["c"]


OUTSIDE = []
KEEPING = [written_by_index, appended, put_outside, in_a_closure, in_a_list_within, of_a_dict]


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("ask", [grad, lambda f: lambda xs: pullback(f, xs)[1](1.0)])
@pytest.mark.parametrize("f", KEEPING, ids=lambda f: f.__name__)
def test_an_argument_that_an_inner_function_keeps_is_written_to_later(f, ask, on):
    run = lambda x: f(x, lambda inner, xs: ask(inner)(xs))
    plain = lambda x: f(x, lambda inner, xs: inner(xs))
    with jit(on):
        for x in (1.5, 0.7, 2.5):
            value, slope = value_and_grad(run)(x)
            outside = [list(row) for row in OUTSIDE]
            assert_same(value, plain(x))
            assert outside == OUTSIDE
            np.testing.assert_allclose(slope, numeric_grad(plain, x), rtol=1e-6)


CHOICE = {"n": 0}
BY_CHOICE = {
    "number": lambda f: lambda x, y: grad(f, argnums=CHOICE["n"])(x, y),
    "several": lambda f: lambda x, y: grad(f, argnums=(CHOICE["n"],))(x, y)[0],
    "value": lambda f: lambda x, y: value_and_grad(f, argnums=CHOICE["n"])(x, y)[1],
    "jacobian": lambda f: lambda x, y: jacobian(f, CHOICE["n"])(x, y),
    "aux": lambda f: (
        lambda x, y: grad(lambda a, b: (f(a, b), a), CHOICE["n"], has_aux=CHOICE["n"] < 5)(x, y)[0]
    ),
}


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("by_choice", BY_CHOICE.values(), ids=BY_CHOICE)
def test_a_variable_chooses_the_arguments_of_an_inner_derivative(by_choice, on):
    inner = by_choice(lambda x, y: x * x * y)
    for i in range(16):
        CHOICE["n"] = i // 2 % 2
        x, y = 1.0 + i, 2.0
        value, slope = (x * x, 2 * x) if CHOICE["n"] else (2 * x * y, 2 * y)
        with jit(on):
            assert jvp(inner, (x, y), (1.0, 0.0)) == (value, slope)
            assert grad(inner)(x, y) == slope

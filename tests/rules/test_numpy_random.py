"""The rules for random draws: their values as functions of their parameters, for the same state of the generator."""

import copy

import numpy as np
import pytest
from checker import Table, check_first, check_forward, check_second

from wengert import grad, pullback, stop_gradient, value_and_grad
from wengert.tracer.errors import NoRuleError

case = Table()

M = np.array([[0.3, -1.2, 2.0], [0.5, 0.1, -0.4]])
S = np.array([0.7, 1.4, 0.2])
LOCATED = ("normal", "laplace", "logistic", "gumbel", "lognormal")
SCALED = ("exponential", "rayleigh")
POWERS = ("weibull", "power", "pareto")


def drawn(name, *options, old=False, **keywords):
    """A draw with the parameters as arguments, from a generator that is always in the same state."""

    def draw(*parameters):
        rng = np.random.RandomState(5) if old else np.random.default_rng(5)
        return getattr(rng, name)(*parameters, *options, **keywords)

    draw.__name__ = f"{'RandomState' if old else 'Generator'}.{name}"
    return draw


for old in (False, True):
    for name in LOCATED:
        case(drawn(name, old=old), 0.3, 1.7)
        case(drawn(name, old=old), 0.3)
        case(drawn(name, (2, 3), old=old), 0.3, 1.7)
        case(drawn(name, old=old), M, S)
        case(drawn(name, (2, 2, 3), old=old), M, S)
        case(drawn(name, old=old, size=3), -0.2, S)
        case(drawn(name, (3,), old=old), 3000.0 if name != "lognormal" else 5.0, 0.02)
    for name in SCALED:
        case(drawn(name, old=old), 1.7)
        case(drawn(name, (2, 3), old=old), S)
    for name in POWERS:
        case(drawn(name, old=old), 1.7)
        case(drawn(name, (2, 3), old=old), S + 0.5)
    case(drawn("uniform", old=old), -0.3, 1.7)
    case(drawn("uniform", old=old), M, S + 2.0)
    case(drawn("uniform", 4, old=old), 1e5, 1e5 + 0.5)
    case(drawn("triangular", 9, old=old), -0.3, 0.4, 1.7)
    case(lambda s, old=old: drawn("gamma", old=old)(2.3, s), 0.7)
    case(lambda m, old=old: drawn("vonmises", old=old)(m, 2.0), S)
    case(lambda m, old=old: drawn("multivariate_normal", 4, old=old)(m, np.eye(3)), S)
case(lambda loc, scale: np.random.default_rng(1).normal(scale=scale, size=3, loc=loc), 0.3, S)


def in_place(name, *options, old=False):
    """What is drawn by writing into an array."""

    def draw(x):
        y = x * 1.0
        drawn(name, *options, old=old)(y)
        return y

    return draw


V = np.linspace(-1.0, 2.0, 6)
for old in (False, True):
    case(drawn("permutation", old=old), V)
    case(drawn("permutation", old=old), M)
    case(in_place("shuffle", old=old), V)
    case(in_place("shuffle", old=old), M)
    case(drawn("choice", old=old), V)
    case(drawn("choice", 9, old=old), V)
    case(drawn("choice", size=(2, 2), replace=False, old=old), V)
case(drawn("permutation", axis=1), M)
case(drawn("permuted"), M)
case(drawn("permuted", axis=1), M)
case(in_place("shuffle", 1), M)
case(drawn("choice", size=2, axis=1, p=[0.2, 0.5, 0.3]), M)
case(lambda x: drawn("permutation")([x[3], x[0], 1.0, x[2]]), V)
case(lambda x: drawn("choice", size=2)((x[3], x[0], x[2])), V)
case(lambda x: np.random.default_rng(1).choice(size=4, a=x), V)


@case.each
def test_gradient(case):
    check_first(case)


@case.each
def test_forward(case):
    check_forward(case)


@case.second
def test_second_order(case):
    check_second(case)


@pytest.mark.parametrize("name", [*LOCATED, "uniform"])
def test_a_draw_without_width_has_its_noise_all_the_same(name):
    low_high = name == "uniform"
    draw = drawn(name, 5)
    value, back = pullback(draw, 0.4, 0.4 if low_high else 0.0)
    np.testing.assert_array_equal(value, np.exp(0.4) if name == "lognormal" else 0.4)
    noise = draw(0.0, 1.0)
    if name == "lognormal":
        noise = np.log(noise) * value
    np.testing.assert_allclose(back(np.ones(5))[1], np.sum(noise), rtol=1e-12)


@pytest.mark.parametrize(
    "f",
    [
        lambda rng, x: rng.gamma(x),
        lambda rng, x: rng.gamma(x, 2.0 * x),
        lambda rng, x: rng.beta(x, 2.0),
        lambda rng, x: rng.poisson(x) * x,
        lambda rng, x: rng.binomial(5, x) * 2.0,
        lambda rng, x: rng.standard_t(x),
        lambda rng, x: rng.vonmises(0.0, x),
        lambda rng, x: rng.dirichlet([x, 1.0]).sum(),
        lambda rng, x: rng.multivariate_normal([0.0], [[x]])[0],
        lambda rng, x: rng.geometric(x) * 1.0,
    ],
)
@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_a_parameter_that_cannot_be_taken_out_is_an_error(f, make):
    rng = make(3)
    for _ in range(3):
        with pytest.raises(NoRuleError):
            grad(lambda x: f(rng, x))(0.7)


def test_each_call_draws_anew_and_is_right():
    """Also those that a program answers: value and state of the generator are those of plain NumPy."""
    rng = np.random.default_rng(2)
    plain = copy.deepcopy(rng)

    def f(loc, scale):
        noise = rng.normal(size=3)
        return np.sum(rng.normal(loc, scale, 3) * noise) + rng.uniform(0.0, scale)

    slope = value_and_grad(f, argnums=(0, 1))
    for i in range(12):
        loc, scale = 0.1 * i, 0.0 if i % 4 == 3 else 1.0 + i
        noise, standard, u = plain.normal(size=3), plain.normal(size=3), plain.uniform()
        value, (dloc, dscale) = slope(loc, scale)
        np.testing.assert_allclose(value, np.sum((loc + scale * standard) * noise) + scale * u)
        np.testing.assert_allclose(dloc, np.sum(noise))
        np.testing.assert_allclose(dscale, np.sum(standard * noise) + u)
        assert rng.bit_generator.state == plain.bit_generator.state


def test_the_global_generator_is_left_as_plain_numpy_leaves_it():
    before = np.random.get_state()
    try:
        np.random.seed(7)
        expected = np.random.normal(0.3, np.zeros(2)), np.random.rand()
        np.random.seed(7)
        value, back = pullback(lambda s: np.random.normal(0.3, s), np.zeros(2))
        np.testing.assert_array_equal(value, expected[0])
        assert np.random.rand() == expected[1]
        np.random.seed(7)
        np.testing.assert_array_equal(back(np.ones(2))[0], np.random.standard_normal(2))
    finally:
        np.random.set_state(before)


def test_a_reordering_goes_by_where_the_elements_lie():
    x = np.asfortranarray(M)
    for f in (drawn("permuted"), drawn("permutation", axis=1), drawn("choice", 2, axis=1)):
        value, back = pullback(f, x)
        np.testing.assert_array_equal(value, f(x))
        assert value.strides == f(x).strides
        assert np.sum(back(value)[0] * x) == pytest.approx(np.sum(value**2))


@pytest.mark.parametrize("name", ["permutation", "permuted", "shuffle", "choice"])
def test_a_reordering_leaves_the_generator_as_plain_numpy_does(name):
    rng = np.random.default_rng(2)
    plain = copy.deepcopy(rng)

    def f(x, rng=rng):
        y = x * 2.0
        moved = getattr(rng, name)(y)
        first = rng.uniform()
        return np.sum((y if moved is None else moved) * W4) * first

    W4 = np.array([1.0, 2.0, 3.0, 4.0])
    slope = value_and_grad(f)
    for i in range(12):
        x = np.cos(np.arange(4.0) + i)
        assert slope(x)[0] == f(x, plain)
        assert rng.bit_generator.state == plain.bit_generator.state


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_a_list_is_shuffled_whatever_lies_in_it(make):
    """Two items may be one number, of which one has a derivative and the other has none."""

    def f(x, given, rng, fixed=None):
        numbers = [x, stop_gradient(x) if fixed is None else fixed, x * 1.0, 3.0, abs(x)]
        rng.shuffle(numbers)
        arrays = [np.array([x, 2.0]), np.array([3.0 * x])]
        rng.shuffle(arrays)
        given[:] = [x, 1.0, x * x]
        rng.shuffle(given)
        weighted = sum(w * y for w, y in enumerate(numbers + given))
        return weighted + np.concatenate(arrays)[1] * rng.uniform()

    rng, plain = make(2), make(2)
    slope = value_and_grad(lambda x, given: f(x, given, rng))
    for i in range(12):
        x, given, expected, before = 1.5 + 0.1 * i, [], [], copy.deepcopy(plain)
        value, dx = slope(x, given)
        assert value == f(x, expected, plain)
        assert given == expected
        assert rng.uniform() == plain.uniform()
        up, down = [f(x + h, [], copy.deepcopy(before), x) for h in (1e-6, -1e-6)]
        assert dx == pytest.approx((up - down) / 2e-6, rel=1e-6)

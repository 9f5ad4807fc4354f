"""Tapes in other number systems, and gradients against 40 digits."""

import cmath
import math

import numpy as np
import pytest

from wengert import GradientError, GuardError, check_grads, custom_rule, grad, reverse, trace
from wengert.tracer.errors import TraceError

mpmath = pytest.importorskip("mpmath")
V = np.array([0.5, -1.2, 2.0])
M = np.array([[2.0, 0.3, 0.1], [0.4, 1.5, 0.2], [0.0, 0.6, 3.0]])


def numbers(x, y):
    return math.sin(x) * np.exp(y) + x**2 / y + math.log1p(x) + np.arctan2(x, y)


def choose(x):
    return x * x if x > 1 else -x


def arrays(v, m):
    w = m @ v + 0.1
    a = np.zeros(3)
    a[0] = w[0]
    a[1:] = w[:2]
    return (
        np.tanh(w).sum() + np.linalg.norm(v) + (a * a).mean() + np.linalg.det(m) + np.linalg.solve(m, v)[0]
        + np.where(w > 0, w, -w).sum() + np.var(v) + np.logaddexp(w[0], 1.0) + np.max(v)
    )  # fmt: skip


def test_forty_digits():
    with mpmath.workdps(40):
        x, y = mpmath.mpf("1.2"), mpmath.mpf("0.7")
        found = trace(numbers, 1.2, 0.7).compile(math=mpmath)(x, y)
        expected = mpmath.sin(x) * mpmath.exp(y) + x**2 / y + mpmath.log(1 + x) + mpmath.atan2(x, y)
        assert abs(found - expected) < mpmath.mpf(10) ** -37


def test_forty_digits_of_arrays():
    tape = trace(arrays, V, M)
    with mpmath.workdps(40):
        found = tape.compile(math=mpmath)(V, M)
    assert float(found) == pytest.approx(arrays(V, M), rel=1e-14)


def test_a_gradient_in_forty_digits():
    """sin' is cos, to 38 digits."""
    slope = reverse(trace(lambda x: math.sin(x) * 2, 1.0), value=False)
    with mpmath.workdps(40):
        (found,) = slope.compile(math=mpmath)(mpmath.mpf(1))
        assert abs(found - 2 * mpmath.cos(1)) < mpmath.mpf(10) ** -38


def test_intervals():
    """All values lie in the interval, and a decision on both sides is an error."""
    iv = mpmath.iv
    tape = trace(lambda x: x * x - math.exp(x), 1.5)
    found = tape.compile(math=iv)(iv.mpf([1, 2]))
    for x in np.linspace(1, 2, 11):
        assert float(x * x - math.exp(x)) in found
    decided = trace(choose, 1.5).compile(math=iv)
    assert float(decided(iv.mpf([1.5, 2])).b) == pytest.approx(4)
    with pytest.raises(GuardError, match="does not follow here, where it is undecided"):
        decided(iv.mpf([0.5, 2]))
    with pytest.raises(GuardError):
        decided(iv.mpf([0.25, 0.5]))


def test_symbols():
    sympy = pytest.importorskip("sympy")
    x, y = sympy.symbols("x y")
    tape = trace(lambda x, y: math.sin(x) * np.exp(y) + x**2 / y, 1.2, 0.7)
    assert tape.compile(math=sympy)(x, y) == sympy.sin(x) * sympy.exp(y) + x**2 / y
    slopes = reverse(tape, value=False).compile(math=sympy)(x, y)
    expected = (
        2 * x / y + sympy.exp(y) * sympy.cos(x),
        -(x**2) / y**2 + sympy.exp(y) * sympy.sin(x),
    )
    assert [sympy.simplify(a - b) for a, b in zip(slopes, expected)] == [0, 0]
    with pytest.raises(GuardError, match="does not follow here, where it is x > 1"):
        trace(choose, 1.5).compile(math=sympy)(x)


def test_in_bulk():
    xs = np.linspace(0.5, 2.0, 7)
    found = trace(numbers, 1.2, 0.7).compile(math=np)(xs, 0.7)
    np.testing.assert_array_equal(found, [numbers(x, 0.7) for x in xs])
    slopes, _ = reverse(trace(numbers, 1.2, 0.7), value=False).compile(math=np)(xs, 0.7)
    h = 1e-6
    numeric = [(numbers(x + h, 0.7) - numbers(x - h, 0.7)) / (2 * h) for x in xs]
    np.testing.assert_allclose(slopes, numeric, rtol=1e-8)
    bulk = trace(choose, 1.5).compile(math=np)
    np.testing.assert_array_equal(bulk(xs[4:]), xs[4:] ** 2)
    with pytest.raises(GuardError, match="x > 1"):
        bulk(xs)
    with pytest.raises(TraceError, match="is of arrays already"):
        trace(arrays, V, M).compile(math=np)(V, M)


def test_without_a_module_it_is_the_tape():
    assert trace(numbers, 1.2, 0.7).compile()(0.5, 2.0) == numbers(0.5, 2.0)


def test_what_a_module_does_not_have():
    def f(v):
        return np.fft.rfft(v).real.sum()

    with pytest.raises(
        TraceError, match=r"test_systems.py:\d+: mpmath has no \w+, which this tape calls"
    ):
        trace(f, V).compile(math=mpmath)(V)


# ------------------------------------------------------------------------------------------ check_grads


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (numbers, (1.2, 0.7)),
        (arrays, (V, M)),
        (lambda d: d["a"] * np.sin(d["b"][0]).sum(), ({"a": 2.0, "b": [V]},)),
        (lambda v: {"s": v.sum(), "p": [v * v, v[0]]}, (V,)),
        (lambda v: np.exp(v).sum(), (V.astype(np.float32),)),
    ],
)
def test_gradients_are_those_of_the_program(f, args):
    check_grads(f, args, exact=True)


def test_an_error_in_the_eighth_digit_is_seen():
    @custom_rule
    def cube(x):
        return x**3, lambda dy: (dy * 3.0000003 * x * x,)

    check_grads(cube, (V,), order=1, rtol=1e-6)
    with pytest.raises(GradientError, match="3 of 3 elements disagree"):
        check_grads(cube, (V,), order=1, exact=True)


def test_a_kink_is_in_doubt():
    with pytest.raises(GradientError, match="in doubt"):
        check_grads(abs, (0.0,), order=1, exact=True)


def test_a_second_derivative_that_is_wrong():
    @custom_rule
    def square(x):
        slope = half_wrong(x)
        return x * x, lambda dy: (dy * slope,)

    @custom_rule
    def half_wrong(x):
        return 2 * x, lambda dy: (dy * 2.0000003,)

    check_grads(square, (1.5,), order=1, exact=True)
    with pytest.raises(GradientError, match="order 2"):
        check_grads(square, (1.5,), order=2, modes=["reverse"], exact=True)


def test_a_decision_beside_the_point():
    def f(x):
        return x * x if x * x <= 2.25 else x * 3.0

    check_grads(f, (1.4,), order=1, exact=True)
    with pytest.raises(TraceError) as caught:
        check_grads(f, (1.5,), order=1, exact=True)
    assert "the function decides otherwise (test_systems.py:" in str(caught.value)
    assert str(caught.value).endswith(")\ncheck it without exact=True, or elsewhere")


def test_the_same_name_for_another_function():
    """SciPy's psi of one argument is the digamma function, of which mpmath's psi is the general form."""
    special = pytest.importorskip("scipy.special")
    check_grads(lambda x: special.gammaln(x) * special.psi(x), (2.5,), order=1, exact=True)


def test_a_shape_that_the_data_decide_is_a_decision():
    compiled = trace(lambda x: x.sum() * len(x[x > 0]), np.array([3.0, 1.0, -2.0])).compile(
        math=mpmath
    )
    assert compiled(np.array([2.0, 1.0, -1.0])) == 4.0
    with pytest.raises(GuardError, match=r"what getitem gives had the shape \(2,\)"):
        compiled(np.array([3.0, 1.0, 2.0]))


OF_SEVERAL = [
    lambda x: math.hypot(x, 2.0), lambda x: math.hypot(x, 2.0 * x, 3.0), lambda x: math.dist([x, 1.0], [2.0, x]),
    lambda x: math.fsum([x, x * x, 1.0]), lambda x: math.prod([x, x * x, 3.0]),
]  # fmt: skip


@pytest.mark.parametrize("f", OF_SEVERAL)
def test_functions_of_several_numbers(f):
    """Their value and their derivative, in 40 digits, in symbols, and in bulk."""
    tape = trace(f, 1.3)
    back = reverse(tape)
    with mpmath.workdps(40):
        value, (slope,) = back.compile(math=mpmath)(1.3)
        run = tape.compile(math=mpmath)
        h = mpmath.mpf(10) ** -12
        central = (run(mpmath.mpf(1.3) + h) - run(mpmath.mpf(1.3) - h)) / (2 * h)
        assert abs(slope - central) < 1e-20 * max(1, abs(slope))
    assert float(value) == pytest.approx(f(1.3), rel=1e-14)
    assert float(slope) == pytest.approx(grad(f)(1.3), rel=1e-13)
    xs = np.array([0.5, 1.3, 2.5])
    many = tape.compile(math=np)(xs)
    np.testing.assert_allclose(many, [f(x) for x in xs.tolist()], rtol=1e-14)
    sympy = pytest.importorskip("sympy")
    assert float(tape.compile(math=sympy)(sympy.Rational(13, 10))) == pytest.approx(f(1.3))


BULKS = [
    (math.hypot, (1.0, 2.0, 3.0)),  # NumPy's would write to the third
    (math.log, (4.0, 2.0)),
    (math.remainder, (4.0, 3.0)),
    (lambda x: np.sum(x) * 2.0, (1.0,)),
    (lambda x: np.max(x) * 2.0, (1.0,)),
    (lambda x: np.prod([x, x]), (1.0,)),
    (lambda x, y: math.prod([x, y]), (1.0, 2.0)),
    (lambda x: x if math.isclose(x, 1.0) else 2.0 * x, (1.0,)),
]


@pytest.mark.parametrize(("f", "args"), BULKS)
def test_a_bulk_goes_through_no_function_that_takes_it_as_a_whole_or_means_another(f, args):
    given = [np.array([x, x + 0.25, x + 1.5]) for x in args]
    kept = [x.copy() for x in given]
    try:
        many = trace(f, *args).compile(math=np)(*given)
    except (TraceError, GuardError):
        pass
    else:
        np.testing.assert_allclose(many, [f(*row) for row in zip(*kept, strict=True)])
    np.testing.assert_array_equal(given, kept)


@pytest.mark.parametrize(("f", "x"), [
    (math.cbrt, -2.7),
    (lambda x: math.fmod(x, 1.5), -1.7),
    (np.sinc, 0.3),
    (math.lgamma, -1.7),
])  # fmt: skip
def test_functions_that_mathematics_defines_otherwise_than_c(f, x):
    assert float(trace(f, x).compile(math=mpmath)(mpmath.mpf(x))) == pytest.approx(f(x), rel=1e-12)


def test_a_number_of_many_digits_is_not_cut_off():
    whole = trace(lambda a: (a.astype(int) * a).sum(), np.array([1.5, 2.5])).compile(math=mpmath)
    with pytest.raises(TraceError, match="cannot be computed"):
        whole(np.array([1.5, 2.5]))


COMPLEX = [
    (lambda x, y: (complex(x, y) ** 2.5).real, (1.2, -0.7)),
    (lambda x, y: abs(complex(x, y) ** complex(y, x)), (1.2, -0.7)),
    (lambda x, y: (complex(x, y) ** -2).imag * complex(y, x).conjugate().imag, (1.2, -0.7)),
    (lambda x, y: (cmath.exp(complex(x, y)) * cmath.sqrt(complex(y, x))).real, (1.2, -0.7)),
    (lambda x, y: math.copysign(x, y) * x, (1.2, -0.7)),
    (lambda x, y: np.copysign(x * y, x) * y, (1.2, -0.7)),
    (lambda x, y: math.trunc(x) * y + np.rint(y) * x + round(x, 1) * y, (1.23, -0.7)),
    (lambda x, y: x // y * x + np.remainder(x, 0.5) * y, (1.2, -0.7)),
    (lambda x, y: np.fmax(x, y) * np.heaviside(x, 0.5) * y, (1.2, -0.7)),
]


@pytest.mark.parametrize(("f", "args"), COMPLEX)
def test_complex_numbers_and_their_powers(f, args):
    tape = trace(f, *args)
    run, back = tape.compile(math=mpmath), reverse(tape).compile(math=mpmath)
    with mpmath.workdps(40):
        args = [mpmath.mpf(x) for x in args]
        value, slopes = back(*args)
        h = mpmath.mpf(10) ** -12
        for i, slope in enumerate(slopes):
            left, right = ([x + t * (i == k) for k, x in enumerate(args)] for t in (-h, h))
            assert abs((run(*right) - run(*left)) / (2 * h) - slope) < 1e-18
    assert float(value) == pytest.approx(f(*map(float, args)), rel=1e-12)


def test_angles_in_degrees():
    tape = trace(
        lambda x: np.deg2rad(x) + math.radians(2 * x) + np.rad2deg(x) + math.degrees(x), 1.2
    )
    with mpmath.workdps(40):
        expected = 3 * mpmath.mpf(1.2) * mpmath.pi / 180 + 2 * mpmath.mpf(1.2) * 180 / mpmath.pi
        assert abs(tape.compile(math=mpmath)(1.2) - expected) < mpmath.mpf(10) ** -37
    sympy = pytest.importorskip("sympy")
    assert float(tape.compile(math=sympy)(1.2)) == pytest.approx(float(expected))


def test_a_complex_number_as_argument():
    tape = trace(lambda z: abs(z**2.5) + (z * z.conjugate()).real + z.imag, 1 + 2j)
    z = mpmath.mpc(2, -1)
    assert float(tape.compile(math=mpmath)(z)) == pytest.approx(5**1.25 + 5 - 1)
    sympy = pytest.importorskip("sympy")
    assert complex(tape.compile(math=sympy)(2 - 1j)) == pytest.approx(5**1.25 + 5 - 1)
    many = np.array([2 - 1j, 1 + 2j])
    np.testing.assert_allclose(tape.compile(math=np)(many), 5**1.25 + 5 + many.imag)
    parts = trace(lambda v: np.abs(v**1.5).sum(), np.array([1 + 2j, 3j])).compile(math=mpmath)
    assert float(parts(np.array([1 + 2j, 3j]))) == pytest.approx(5**0.75 + 3**1.5)


def test_a_zero_has_no_sign():
    with pytest.raises(TraceError, match="a zero has no sign"):
        trace(lambda x, y: math.copysign(x, y), 1.0, -1.0).compile(math=mpmath)(1.0, -0.0)


def test_a_function_of_the_user_with_the_name_of_the_modules():
    @custom_rule(pure=True)
    def zeta(x):
        return x * x + 1.0, lambda dy: (2 * x * dy,)

    tape = trace(lambda x: zeta(x) * 2.0, 3.0)
    assert tape.compile(math=mpmath)(3.0) == 20.0
    assert reverse(tape).compile(math=mpmath)(3.0)[1] == (12.0,)


def test_intervals_are_compared_with_all_their_values():
    """No comparison of intervals that overlap is taken for one that fails."""
    iv = mpmath.iv
    x, y = iv.mpf([0, 3]), iv.mpf([1, 2])
    for larger in (max, np.maximum, np.fmax, lambda x, y: np.max(np.array([x, y]))):
        assert trace(larger, 3.0, 2.0).compile(math=iv)(x, y) == iv.mpf([1, 3])
    for smaller in (min, np.minimum, lambda x, y: np.array([x, y]).min()):
        assert trace(smaller, 1.0, 2.0).compile(math=iv)(x, y) == iv.mpf([0, 2])
    undecided = [
        trace(lambda x, y: float(np.argmax(np.array([x, y]))), 3.0, 2.0),
        trace(lambda x, y: np.where(x > y, x, y) * 1.0, 3.0, 2.0),
        trace(lambda x, y: (x > y) * x, 3.0, 2.0),
        trace(lambda x, y: x if x == y else y, 3.0, 2.0),
        trace(lambda x, y: np.sign(x - y) * x, 3.0, 2.0),
        reverse(trace(lambda x, y: abs(x - y), 3.0, 2.0)),
        reverse(trace(max, 3.0, 2.0)),
        reverse(trace(np.maximum, 3.0, 2.0)),
    ]
    for tape in undecided:
        with pytest.raises(GuardError, match="undecided"):
            tape.compile(math=iv)(x, y)
        tape.compile(math=iv)(iv.mpf([3, 4]), y)
    assert reverse(trace(max, 3.0, 2.0)).compile(math=iv)(iv.mpf([3, 4]), y)[1] == (1.0, 0.0)
    same = trace(lambda x, y: x if x == y else y, 3.0, 3.0).compile(math=iv)
    assert same(iv.mpf(3), iv.mpf(3)) == 3
    with pytest.raises(GuardError, match="undecided"):
        same(x, x)

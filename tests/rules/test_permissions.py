"""Functions that have the leave to destroy their arguments: what is left in these is what plain SciPy leaves."""

import numpy as np
import pytest

from helpers import numeric_grad
from wengert import grad, jit, jvp, trace, value_and_grad
from wengert.tracer.errors import NoRuleError

linalg = pytest.importorskip("scipy.linalg")
fft = pytest.importorskip("scipy.fft")

A = np.array([[4.0, 1.0, 0.5], [0.3, 3.0, -0.2], [0.7, 0.1, 5.0]])
S = A @ A.T
B = np.array([[1.0, 0.4], [-0.3, 2.0], [0.8, 0.6]])
BAND = np.array([[0.0, 1.0, 1.0], [4.0, 5.0, 6.0], [1.0, 1.0, 0.0]])

CALLS = {
    "solve": (lambda a, b: linalg.solve(a, b, overwrite_a=True, overwrite_b=True), A),
    "solve pos": (lambda a, b: linalg.solve(a, b, overwrite_a=True, assume_a="pos"), S),
    "triangular": (lambda a, b: linalg.solve_triangular(a, b, overwrite_b=True), np.triu(A)),
    "inv by position": (lambda a, b: linalg.inv(a, True), A),
    "det": (lambda a, b: linalg.det(a, overwrite_a=True), A),
    "cholesky": (lambda a, b: linalg.cholesky(a, overwrite_a=True), S),
    "lu_factor": (lambda a, b: linalg.lu_factor(a, overwrite_a=1)[0], A),
    "eigh": (lambda a, b: linalg.eigh(a, overwrite_a=True)[0], S),
    "svdvals": (lambda a, b: linalg.svdvals(a, overwrite_a=True), A),
    "banded": (
        lambda a, b: linalg.solve_banded((1, 1), a, b, overwrite_ab=True, overwrite_b=True),
        BAND,
    ),
    "median": (lambda a, b: np.median(a, overwrite_input=True), A),
    "dct": (lambda a, b: fft.dct(a, overwrite_x=True), A),
    "idstn": (lambda a, b: fft.idstn(a, 2, None, None, None, True), A),
    "fft": (lambda a, b: np.abs(fft.fft(a + 0j, overwrite_x=True)), A),
    "a view": (lambda a, b: linalg.inv(a[:2, :2], overwrite_a=True), A),
}


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("order", ["CF", "FC"])
@pytest.mark.parametrize("name", CALLS)
def test_arguments_end_as_in_plain_python(name, order, on):
    call, a = CALLS[name]

    def of_arguments(a, b):
        return np.sum(call(a, b) * 0.5)

    def of_locals(a, b):
        a, b = a * 1.0, b * 1.0
        view = a[:, 0]
        total = np.sum(call(a, b))
        return total if view[0] > 3.5 and b[0, 0] > 0.5 else -total

    for f in (of_arguments, of_locals):
        for k in range(8):
            given = [np.array(x, order=order[k // 4]) for x in (a + 0.01 * k * (a != 0), B)]
            plain, mine = [[x.copy(order="K") for x in given] for _ in "ab"]
            expected = f(*plain)
            with jit(on):
                value, slope = value_and_grad(f)(*mine)
            assert value == pytest.approx(expected, rel=1e-14)  # in another order of the sums
            for x, y in zip(mine, plain, strict=True):
                np.testing.assert_array_equal(x, y)
            along = np.array(given[0] != 0, float, order=order[k // 4])
            rest = given[1].copy
            found = numeric_grad(lambda t: f(given[0] + t * along, rest(order="K")), 0.0)  # noqa: B023
            assert np.sum(slope * along) == pytest.approx(found, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("on", [True, False])
def test_what_may_have_been_destroyed_has_no_derivative(on):
    def residual(a, b):
        x = linalg.solve(a, b, overwrite_b=True)
        return np.sum(a @ x - b)

    for _ in range(4):
        with jit(on):
            for ask in (
                lambda: grad(residual)(A.copy(), B.copy()),
                lambda: jvp(residual, (A.copy(), B.copy()), (A, B)),
            ):
                with pytest.raises(NoRuleError, match="b was read after solve"):
                    ask()


@pytest.mark.parametrize("name", ["dct", "idctn", "dstn", "fft", "ifftn"])
@pytest.mark.parametrize("on", [True, False])
def test_what_a_transform_may_have_destroyed_has_no_derivative(name, on):
    def f(a):
        y = a * (1.0 + 0j if "fft" in name else 1.0)
        getattr(fft, name)(y, overwrite_x=True)
        return np.sum(np.abs(y * a))

    for k in range(4):
        with jit(on):
            assert jit(f)(A + k) == pytest.approx(f(A + k), rel=1e-14)
            with pytest.raises(NoRuleError, match=f"x was read after {name}"):
                grad(f)(A + k)


@pytest.mark.parametrize("on", [True, False])
def test_an_array_from_outside_is_overwritten(on):
    world = np.asfortranarray(A)

    def f(x):
        return np.sum(linalg.lu_factor(world, overwrite_a=True)[0]) * x

    plain = np.asfortranarray(A)
    for k in range(6):
        world[...] = plain[...] = A * (1 + k)
        expected = np.sum(linalg.lu_factor(plain, overwrite_a=True)[0])
        with jit(on):
            assert grad(f)(2.0) == pytest.approx(expected, rel=1e-14)
        np.testing.assert_array_equal(world, plain)


def test_sources_and_tapes_know_what_is_left():
    def f(a):
        b = np.asfortranarray(a * 1.0)
        total = np.sum(linalg.eigh(b, overwrite_a=True, overwrite_b=True)[0])
        return total if b[0, 0] > 0.1 else total * b[0, 0]

    names = {}
    tape = trace(f, S)
    exec(tape.source("made"), names)
    for a in (S, S + 0.1 * np.eye(3)):
        assert tape(a) == names["made"](a) == pytest.approx(f(a), rel=1e-13)


@pytest.mark.parametrize("on", [True, False])
def test_a_call_that_fails_has_destroyed_its_argument(on):
    def f(a):
        try:
            return np.sum(linalg.cholesky(a, overwrite_a=True))
        except np.linalg.LinAlgError:
            return a[0, 0] * 1.0 if a[2, 2] > 0 else 0.0

    for _ in range(4):
        plain, mine = [np.asfortranarray(S - 8.0 * np.eye(3)) for _ in "ab"]
        expected = f(plain)
        with jit(on), pytest.raises(NoRuleError, match="a was read after cholesky"):
            grad(f)(mine)
        assert expected == plain[0, 0]

"""Splines and linear interpolation."""

import numpy as np
import pytest
from checker import Table, check_first, check_second

from wengert import NoRuleError, check_grads, grad

interpolate = pytest.importorskip("scipy.interpolate")

case = Table()

X = np.array([0.0, 0.7, 1.5, 2.1, 3.0, 3.8])
Y = np.array([0.3, 1.2, -0.4, 0.9, 1.6, 0.2])
YY = np.stack([Y, np.cos(Y)], axis=1)
XP = np.array([0.2, 1.15, 2.6, 3.3])
OUT = np.array([-0.4, 1.1, 4.3])
SINGLE = {"tol": 1e-5}

for bc in ("not-a-knot", "natural", "clamped"):
    case(
        lambda x, y, xp, bc=bc: interpolate.CubicSpline(x, y, bc_type=bc)(xp),
        X,
        Y,
        XP,
        case={"name": bc, **SINGLE},
    )
case(lambda y, xp: interpolate.CubicSpline(X, y)(xp), YY, XP, case=SINGLE)
case(lambda y, xp: interpolate.CubicSpline(X, y)(xp), Y, OUT, case=SINGLE)
case(lambda y, xp: interpolate.CubicSpline(X, y)(xp, 1), Y, XP, case=SINGLE)
case(lambda xp: interpolate.CubicSpline(X, Y)(xp), 1.3)
case(interpolate.CubicSpline(X, Y), XP)
case(
    lambda x, y, xp: interpolate.PchipInterpolator(x, y)(xp),
    X,
    Y,
    XP,
    case={"second": False, **SINGLE},
)
for k in (1, 2, 3):
    case(
        lambda y, xp, k=k: interpolate.make_interp_spline(X, y, k=k)(xp),
        Y,
        XP,
        case={"name": f"k={k}", **SINGLE},
    )
case(lambda y, xp: interpolate.make_interp_spline(X, y)(xp), YY, XP, case=SINGLE)
case(lambda y: interpolate.make_interp_spline(X, y, bc_type="natural")(XP, 1), Y, case=SINGLE)
case(lambda c, xp: interpolate.BSpline(np.arange(10.0) / 3, c, 3)(xp), Y, XP / 3 + 1.0, case=SINGLE)
case(lambda y, xp: interpolate.interp1d(X, y)(xp), Y, XP)
case(lambda y, xp: interpolate.interp1d(X, y, kind="cubic")(xp), Y, XP, case=SINGLE)
case(lambda xp: interpolate.interp1d(X, YY, axis=0)(xp), XP)

T = np.array([-1.0, 0.5, 1.5])
G = np.outer(Y, [0.4, -1.1, 0.7])
AT = np.array([[0.3, -0.4], [2.2, 0.9], [3.1, -0.7], [0.9, 1.2]])
BEYOND = {"bounds_error": False, "fill_value": None}


def on_grid(v, x, axes=(X, T), **options):
    return interpolate.RegularGridInterpolator(axes, v, **options)(x)


case(on_grid, G, AT)
case(on_grid, G, AT[0])
case(lambda x, y: on_grid(G, (x, y)), AT[:, 0], AT[:2, None, 1])
case(on_grid, G * (1 + 2j), AT)
case(on_grid, G, 3 * AT, **BEYOND)
case(on_grid, G, 3 * AT, bounds_error=False, fill_value=7.0)
case(on_grid, G, AT, axes=(X[::-1], T))
case(on_grid, Y, AT[:, :1], axes=(X,))
case(on_grid, G[..., None] * T, np.hstack((AT, AT[:, :1] / 4)), axes=(X, T, T))
case(lambda x: interpolate.interpn((X, T), G, x), AT)


@case.each
def test_gradient(case):
    check_first(case)


@case.second
def test_second_order(case):
    check_second(case)


def test_places_of_the_data_of_a_b_spline_are_named():
    with pytest.raises(NoRuleError, match="places of the data"):
        grad(lambda x: interpolate.make_interp_spline(x, Y)(0.4))(X)


def test_coefficients_that_are_filled_up():
    x = np.linspace(0.0, 3.0, 9)
    t, c, k = interpolate.splrep(x, np.sin(x))
    slope = grad(lambda z: interpolate.BSpline(t, c, k)(z))(1.3)
    assert slope == pytest.approx(interpolate.BSpline(t, c, k)(1.3, 1))


def test_places_outside_of_a_spline_that_are_not_used():
    t, places = np.r_[0, 0, 0, np.arange(4.0), 3, 3, 3], np.array([-0.5, 0.5, 1.5])

    def f(c, xp, used):
        return np.sum(used(interpolate.BSpline(t, c, 3, extrapolate=False)(xp)))

    both = (lambda z: np.where(np.isnan(z), 0, z)), (lambda z: z[1:])
    for used in (np.nansum, *both):
        check_grads(lambda c, xp: f(c, xp, used), (np.cos(np.arange(6.0)), places), order=1)
    assert np.isnan(grad(f)(np.ones(6), places, lambda z: z)).all()

"""Distances between all pairs of points: scipy.spatial.distance."""

import numpy as np
import pytest
from checker import Table, check_first, check_second, check_single

from wengert import NoRuleError, grad, value_and_grad

distance = pytest.importorskip("scipy.spatial.distance")

case = Table()

A = np.array([[0.5, -1.2, 2.0], [0.7, 0.1, -0.6], [1.5, 0.4, 0.9], [-0.3, 1.1, 0.2]])
B = np.array([[0.2, 0.7, -0.8], [-0.4, 0.5, 1.6]])
W = np.array([0.4, 1.3, 0.8])

for metric in ("euclidean", "sqeuclidean", "cityblock"):

    def between(a, b, w=None, metric=metric):
        return distance.cdist(a, b, metric, w=w)

    def among(a, w=None, metric=metric):
        return distance.pdist(a, metric, w=w)

    case(between, A, B)
    case(between, A, B, W)
    case(among, A)
    case(among, A, W)

for options in (
    {"metric": "chebyshev"},
    *({"metric": "minkowski", "p": p} for p in (1, 1.5, 2, 3)),
):

    def far(a, b, options=options):
        return distance.cdist(a, b, **options)

    def apart(a, options=options):
        return distance.pdist(a, **options)

    case(far, A, B)
    case(apart, A)

case(lambda a, w: distance.pdist(a, "minkowski", p=3, w=w), A, W)
case(lambda a: distance.pdist(a, "minkowski", p=np.inf), A)
case(lambda a, p: distance.cdist(a, B, "minkowski", p=p, w=W), A, 2.5)


@case.each
def test_gradient(case):
    check_first(case)


@case.second
def test_second_order(case):
    check_second(case)


@case.single
def test_single_precision(case):
    check_single(case)


def test_points_that_coincide_by_other_powers():
    def f(a):
        return np.sum(distance.cdist(a, a, "minkowski", p=3) ** 2)

    value, slope = value_and_grad(f)(A)
    assert value == f(A)
    step = 1e-6 * (A + 1)
    assert np.sum(slope * step) == pytest.approx((f(A + step) - f(A - step)) / 2, rel=1e-7)


def test_points_that_coincide():
    f = value_and_grad(lambda a: np.sum(distance.cdist(a, a) ** 3))
    for i in range(8):
        a = A + 0.1 * i * A**2
        value, da = f(a)
        assert value == np.sum(distance.cdist(a, a) ** 3)
        d = a[:, None] - a[None]
        np.testing.assert_allclose(da, 6 * np.sum(distance.cdist(a, a)[..., None] * d, 1))


def test_an_array_that_is_written_to():
    def f(a):
        out = np.empty((4, 2))
        distance.cdist(a, B, out=out)
        return out.sum()

    np.testing.assert_array_equal(grad(f)(A), grad(lambda a: distance.cdist(a, B).sum())(A))


def test_what_is_not_known_is_refused():
    with pytest.raises(NoRuleError, match="braycurtis"):
        grad(lambda a: distance.cdist(a, B, "braycurtis").sum())(A)
    with pytest.raises(NoRuleError, match="weights of greatest differences"):
        grad(lambda a: distance.cdist(a, B, "chebyshev", w=W).sum())(A)

"""SciPy's special functions.

The formulas are those of the NIST Digital Library of Mathematical Functions (https://dlmf.nist.gov), with
SciPy's names of the parameters; where several are equal, the one that stays exact near zeros and poles is
taken. Logarithms are written ``xlogy(1, x)``, which gives -inf at 0 without a warning. What SciPy itself
writes in Python (softmax, multigammaln, comb, ...) has no rule: it is traced through, but for logsumexp, which
takes the largest elements out of its sum: at ties that would be another function of them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special
from scipy.special import _ufuncs

from .broadcasting import is_complex, kept_shape, settled, unbroadcast
from .elementwise import elementwise, over, unknown
from .operators import of_numpy, power_by_base, power_by_exponent, sign
from .registry import Operand, nondiff, rrule
from .zeros import conj, plus, product, ratio


def log(x: Any) -> Any:
    return special.xlogy(1.0, x)


def real_only(x: Any) -> None:
    """Refuse complex arguments of a function that is scaled by an absolute value."""
    if is_complex(x):
        raise NotImplementedError(
            "the derivative is for real arguments: the scaled function is not holomorphic"
        )


def outputs(function: Any, *partials: Any) -> None:
    """Give a function of one operand and several results its rule: one partial for each result."""

    @rrule(function)
    def rule(x, **options):
        z = function(x, **options)

        def pullback(dz):
            dx = None
            for d, partial in zip(dz, partials, strict=True):
                if d is not None:
                    part = product(d, partial(x, z))
                    dx = part if dx is None else dx + part
            return (unbroadcast(dx, x),)

        return z, pullback


# ------------------------------------------------------------------------------ the gamma function's family


def rgamma_slope(x: Any) -> Any:
    """The derivative of 1/gamma(x), by reflection to the left of 1/2: finite at the poles of gamma."""
    left = np.real(x) < 0.5
    y = np.where(left, 1 - x, x)
    slope = np.cos(np.pi * y) + np.sin(np.pi * y) * special.psi(y) / np.pi
    far = -special.psi(y) * special.rgamma(y)
    return np.where(left, -slope * special.gamma(np.where(left, y, 1.0)), far)[()]


def gamma_density(a: Any, x: Any) -> Any:
    return np.exp(special.xlogy(a - 1, x) - x - special.gammaln(a))


def beta_density(a: Any, b: Any, x: Any) -> Any:
    return np.exp(special.xlogy(a - 1, x) + special.xlog1py(b - 1, -x) - special.betaln(a, b))


psi = special.psi
elementwise(special.gamma, lambda x, z: z * psi(x))
elementwise(special.gammaln, lambda x, z: psi(x))
elementwise(special.loggamma, lambda x, z: psi(x))
elementwise(special.rgamma, lambda x, z: rgamma_slope(x))
elementwise(special.psi, lambda x, z: special.polygamma(1, x))
elementwise(special.polygamma, unknown("n"), lambda n, x, z: special.polygamma(n + 1, x))
elementwise(special.gammainc, unknown("a"), lambda a, x, z: gamma_density(a, x))
elementwise(special.gammaincc, unknown("a"), lambda a, x, z: -gamma_density(a, x))
elementwise(special.gammaincinv, unknown("a"), over(lambda a, y, z: gamma_density(a, z)))
elementwise(special.gammainccinv, unknown("a"), over(lambda a, y, z: -gamma_density(a, z)))
elementwise(
    special.beta,
    lambda a, b, z: z * (psi(a) - psi(a + b)),
    lambda a, b, z: z * (psi(b) - psi(a + b)),
)
elementwise(
    special.betaln, lambda a, b, z: psi(a) - psi(a + b), lambda a, b, z: psi(b) - psi(a + b)
)
elementwise(special.betainc, unknown("a"), unknown("b"), lambda a, b, x, z: beta_density(a, b, x))
elementwise(
    special.betaincinv, unknown("a"), unknown("b"), over(lambda a, b, y, z: beta_density(a, b, z))
)
elementwise(
    special.poch,
    lambda a, m, z: z * (psi(a + m) - psi(a)),
    lambda a, m, z: z * psi(a + m),
)
elementwise(
    special.binom,
    lambda n, k, z: z * (psi(n + 1) - psi(n - k + 1)),
    lambda n, k, z: z * (psi(n - k + 1) - psi(k + 1)),
)
nondiff(special.gammasgn)
if hasattr(special, "betaincc"):  # new in SciPy 1.11
    elementwise(
        special.betaincc, unknown("a"), unknown("b"), lambda a, b, x, z: -beta_density(a, b, x)
    )
    elementwise(
        special.betainccinv,
        unknown("a"),
        unknown("b"),
        over(lambda a, b, y, z: -beta_density(a, b, z)),
    )


@rrule(special.zeta)
def zeta(x, q: Operand = None, **options):
    def pullback(dz):
        dq = None if q is None else unbroadcast(product(dz, -x * special.zeta(x + 1, q)), q)
        return unknown("x"), dq

    return special.zeta(x, q, **options), pullback


elementwise(special.zetac, unknown("x"))


# ----------------------------------------------------------------------- error functions and normal densities


def normal_density(x: Any) -> Any:
    return np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)


def mills(x: Any) -> Any:
    """ndtr(x) over the normal density at ``x``, without underflow to the left."""
    return math.sqrt(math.pi / 2) * special.erfcx(-x / math.sqrt(2))


def inverse_mills(x: Any) -> Any:
    """The normal density at ``x`` over ndtr(x), without underflow to the left or overflow to the right."""
    right = np.greater(np.real(x), 0)
    x, y = np.where(right, 0, x), np.where(right, x, 0)
    return np.where(right, normal_density(y) / special.ndtr(y), 1 / mills(x))


def faddeeva_slope(x: Any, w: Any) -> Any:
    return 2j / math.sqrt(math.pi) - 2 * x * w


elementwise(special.erf, lambda x, z: 2 / math.sqrt(math.pi) * np.exp(-x * x))
elementwise(special.erfc, lambda x, z: -2 / math.sqrt(math.pi) * np.exp(-x * x))
elementwise(special.erfcx, lambda x, z: 2 * x * z - 2 / math.sqrt(math.pi))
elementwise(special.erfi, lambda x, z: 2 / math.sqrt(math.pi) * np.exp(x * x))
elementwise(special.erfinv, lambda x, z: math.sqrt(math.pi) / 2 * np.exp(z * z))
elementwise(special.erfcinv, lambda x, z: -math.sqrt(math.pi) / 2 * np.exp(z * z))
elementwise(special.dawsn, lambda x, z: 1 - 2 * x * z)
elementwise(special.wofz, lambda x, z: faddeeva_slope(x, z))
elementwise(special.ndtr, lambda x, z: normal_density(x))
elementwise(special.log_ndtr, lambda x, z: inverse_mills(x))
elementwise(special.ndtri, over(lambda x, z: normal_density(z)))
elementwise(special.ndtri_exp, lambda x, z: mills(z))
elementwise(
    special.owens_t,
    lambda h, a, z: -0.5 * normal_density(h) * special.erf(a * h / math.sqrt(2)),
    lambda h, a, z: np.exp(-0.5 * h * h * (1 + a * a)) / (2 * math.pi * (1 + a * a)),
)


def voigt(x: Any, sigma: Any, gamma: Any) -> Any:
    """The Faddeeva function's argument in Voigt's profile, and its derivative there."""
    u = (x + 1j * gamma) / (math.sqrt(2) * sigma)
    return u, faddeeva_slope(u, special.wofz(u)) / (2 * math.sqrt(math.pi) * sigma * sigma)


def voigt_by_width(x: Any, sigma: Any, gamma: Any, z: Any) -> Any:
    u, slope = voigt(x, sigma, gamma)
    return -z / sigma - math.sqrt(2) * np.real(slope * u)


elementwise(
    special.voigt_profile,
    lambda x, s, g, z: np.real(voigt(x, s, g)[1]),
    voigt_by_width,
    lambda x, s, g, z: -np.imag(voigt(x, s, g)[1]),
)

# --------------------------------------------------------------------------------- Bessel functions


def bessel(
    function: Any, lower: float, upper: float, scale: Any = None, real: bool = False
) -> None:
    """Give a Bessel function of any order its rule: ``lower`` f(v-1) + ``upper`` f(v+1), and more by its scaling."""

    def slope(v, x, z):
        if real:
            real_only(x)
        d = lower * function(v - 1, x) + upper * function(v + 1, x)
        return d if scale is None else d + scale(x, z)

    elementwise(function, unknown("the order"), slope)


bessel(special.jv, 0.5, -0.5)
bessel(special.yv, 0.5, -0.5)
bessel(special.jve, 0.5, -0.5, real=True)
bessel(special.yve, 0.5, -0.5, real=True)
bessel(special.iv, 0.5, 0.5)
bessel(special.ive, 0.5, 0.5, lambda x, z: -sign(x) * z, real=True)
bessel(special.kv, -0.5, -0.5)
bessel(special.kve, -0.5, -0.5, lambda x, z: z)
bessel(special.hankel1, 0.5, -0.5)
bessel(special.hankel2, 0.5, -0.5)
bessel(special.hankel1e, 0.5, -0.5, lambda x, z: -1j * z)
bessel(special.hankel2e, 0.5, -0.5, lambda x, z: 1j * z)
elementwise(
    special.yn,
    unknown("the order"),
    lambda n, x, z: 0.5 * (special.yv(n - 1, x) - special.yv(n + 1, x)),
)
elementwise(
    special.kn,
    unknown("the order"),
    lambda n, x, z: -0.5 * (special.kv(n - 1, x) + special.kv(n + 1, x)),
)
elementwise(special.j0, lambda x, z: -special.j1(x))
elementwise(special.j1, lambda x, z: 0.5 * (special.j0(x) - special.jv(2, x)))
elementwise(special.y0, lambda x, z: -special.y1(x))
elementwise(special.y1, lambda x, z: 0.5 * (special.y0(x) - special.yv(2, x)))
elementwise(special.i0, lambda x, z: special.i1(x))
elementwise(special.i1, lambda x, z: 0.5 * (special.i0(x) + special.iv(2, x)))
elementwise(special.i0e, lambda x, z: special.i1e(x) - sign(x) * z)
elementwise(special.i1e, lambda x, z: 0.5 * (special.i0e(x) + special.ive(2, x)) - sign(x) * z)
elementwise(special.k0, lambda x, z: -special.k1(x))
elementwise(special.k1, lambda x, z: -0.5 * (special.k0(x) + special.kv(2, x)))
elementwise(special.k0e, lambda x, z: z - special.k1e(x))
elementwise(special.k1e, lambda x, z: z - 0.5 * (special.k0e(x) + special.kve(2, x)))


def power_term(v: Any, x: Any) -> Any:
    """What the derivative of Struve's functions has beside the neighbouring orders (DLMF 11.4.27)."""
    return 0.5 * (0.5 * x) ** v * special.rgamma(v + 1.5) / math.sqrt(math.pi)


elementwise(
    special.struve,
    unknown("the order"),
    lambda v, x, z: 0.5 * (special.struve(v - 1, x) - special.struve(v + 1, x)) + power_term(v, x),
)
elementwise(
    special.modstruve,
    unknown("the order"),
    lambda v, x, z: (
        0.5 * (special.modstruve(v - 1, x) + special.modstruve(v + 1, x)) + power_term(v, x)
    ),
)


def spherical(function: Any, below: int, above: int) -> None:
    """Give a spherical Bessel function its rule: f_n' is (below n f_(n-1) + above (n+1) f_(n+1)) / (2n+1)."""

    @rrule(function)
    def rule(n, z, derivative=False):
        y = function(n, z, derivative)

        def pullback(dy):
            if derivative:
                lower = below * product(n, function(np.maximum(n, 1) - 1, z, True))
                slope = (lower + above * ((n + 1) * function(n + 1, z, True))) / (2 * n + 1)
            else:
                slope = function(n, z, True)
            return unknown("the order"), unbroadcast(product(dy, slope), z)

        return y, pullback


spherical(special.spherical_jn, 1, -1)
spherical(special.spherical_yn, 1, -1)
spherical(special.spherical_in, 1, 1)
spherical(special.spherical_kn, -1, -1)

outputs(
    special.airy,
    lambda x, z: z[1],
    lambda x, z: x * z[0],
    lambda x, z: z[3],
    lambda x, z: x * z[2],
)


def kelvin_bend(x: Any) -> Any:
    """The second derivative of ber + i bei, which is J_0(t x) with t = exp(3/4 pi i)."""
    t = math.sqrt(0.5) * (-1 + 1j)
    return 0.5j * (special.jv(0, t * x) - special.jv(2, t * x))


elementwise(special.ber, lambda x, z: special.berp(x))
elementwise(special.bei, lambda x, z: special.beip(x))
elementwise(special.ker, lambda x, z: special.kerp(x))
elementwise(special.kei, lambda x, z: special.keip(x))
elementwise(special.berp, lambda x, z: np.real(kelvin_bend(x)))
elementwise(special.beip, lambda x, z: np.imag(kelvin_bend(x)))
elementwise(special.kerp, lambda x, z: -special.kei(x) - z / x)
elementwise(special.keip, lambda x, z: special.ker(x) - z / x)
outputs(special.itj0y0, lambda x, z: special.j0(x), lambda x, z: special.y0(x))
outputs(special.iti0k0, lambda x, z: special.i0(x), lambda x, z: special.k0(x))
elementwise(special.itstruve0, lambda x, z: special.struve(0, x))
elementwise(special.itmodstruve0, lambda x, z: special.modstruve(0, x))

# ------------------------------------------------------------------------------------ polynomials


def polynomial(function: Any, slope: Any, *more: str) -> None:
    """Give an orthogonal polynomial its rule; the derivative in its degree is not known, nor in ``more``."""
    elementwise(function, unknown("the degree n"), *map(unknown, more), slope)


def jacobi_slope(n: Any, a: Any, b: Any, x: Any) -> Any:
    return 0.5 * (n + a + b + 1) * below(special.eval_jacobi, n, a + 1, b + 1, x)


def legendre_slope(n: Any, x: Any) -> Any:
    return 0.5 * (n + 1) * below(special.eval_jacobi, n, 1.0, 1.0, x)


def below(function: Any, n: Any, *rest: Any) -> Any:
    """``function`` of the next lower degree: zero below degree zero."""
    value = function(np.where(np.equal(n, 0), 0, n - 1)[()], *rest)
    return np.where(np.equal(n, 0), 0.0, value)[()]


def chebyu_slope(n: Any, x: Any) -> Any:
    return 2 * below(special.eval_gegenbauer, n, 2.0, x)


polynomial(special.eval_legendre, lambda n, x, z: legendre_slope(n, x))
polynomial(special.eval_sh_legendre, lambda n, x, z: 2 * legendre_slope(n, 2 * x - 1))
polynomial(special.eval_chebyt, lambda n, x, z: n * below(special.eval_chebyu, n, x))
polynomial(special.eval_chebyu, lambda n, x, z: chebyu_slope(n, x))
polynomial(special.eval_chebyc, lambda n, x, z: n * below(special.eval_chebyu, n, x / 2))
polynomial(special.eval_chebys, lambda n, x, z: 0.5 * chebyu_slope(n, x / 2))
polynomial(special.eval_sh_chebyt, lambda n, x, z: 2 * n * below(special.eval_chebyu, n, 2 * x - 1))
polynomial(special.eval_sh_chebyu, lambda n, x, z: 2 * chebyu_slope(n, 2 * x - 1))
polynomial(
    special.eval_gegenbauer,
    lambda n, a, x, z: 2 * a * below(special.eval_gegenbauer, n, a + 1, x),
    "alpha",
)
polynomial(special.eval_jacobi, lambda n, a, b, x, z: jacobi_slope(n, a, b, x), "alpha", "beta")
polynomial(
    special.eval_sh_jacobi,
    lambda n, p, q, x, z: (
        2 * jacobi_slope(n, p - q, q - 1, 2 * x - 1) / special.binom(2 * n + p - 1, n)
    ),
    "p",
    "q",
)
polynomial(special.eval_laguerre, lambda n, x, z: -below(special.eval_genlaguerre, n, 1.0, x))
polynomial(
    special.eval_genlaguerre,
    lambda n, a, x, z: -below(special.eval_genlaguerre, n, a + 1, x),
    "alpha",
)
polynomial(special.eval_hermite, lambda n, x, z: 2 * n * below(special.eval_hermite, n, x))
polynomial(special.eval_hermitenorm, lambda n, x, z: n * below(special.eval_hermitenorm, n, x))

# --------------------------------------------------------------------------- hypergeometric and elliptic

elementwise(
    special.hyp2f1,
    unknown("a"),
    unknown("b"),
    unknown("c"),
    lambda a, b, c, x, z: a * b / c * special.hyp2f1(a + 1, b + 1, c + 1, x),
)
elementwise(
    special.hyp1f1,
    unknown("a"),
    unknown("b"),
    lambda a, b, x, z: a / b * special.hyp1f1(a + 1, b + 1, x),
)
elementwise(
    special.hyperu,
    unknown("a"),
    unknown("b"),
    lambda a, b, x, z: -a * special.hyperu(a + 1, b + 1, x),
)
elementwise(special.hyp0f1, unknown("v"), lambda v, x, z: special.hyp0f1(v + 1, x) / v)


def sine_integral(phi: Any, m: Any) -> Any:
    """The integral of sin(t)^2/sqrt(1 - m sin(t)^2) up to ``phi``: Carlson's form, period by period (DLMF 19.25.13)."""
    turns = np.rint(phi / np.pi)
    s, c = np.sin(phi - np.pi * turns), np.cos(phi - np.pi * turns)
    part = s**3 * special.elliprd(c * c, 1 - m * s * s, 1.0) / 3
    return part + 2 * turns * special.elliprd(0.0, 1 - m, 1.0) / 3


def ellipkinc_by_m(phi: Any, m: Any, z: Any) -> Any:
    s, c = np.sin(phi), np.cos(phi)
    bend = s * c / np.sqrt(1 - m * s * s)
    return (z - sine_integral(phi, m) - bend) / (2 * (1 - m))


elementwise(special.ellipk, lambda m, z: np.pi / 8 * special.hyp2f1(1.5, 1.5, 2.0, m))
elementwise(special.ellipkm1, lambda p, z: -np.pi / 8 * special.hyp2f1(1.5, 1.5, 2.0, 1 - p))
elementwise(special.ellipe, lambda m, z: -np.pi / 8 * special.hyp2f1(0.5, 1.5, 2.0, m))
elementwise(
    special.ellipkinc,
    over(lambda phi, m, z: np.sqrt(1 - m * np.sin(phi) ** 2)),
    ellipkinc_by_m,
)
elementwise(
    special.ellipeinc,
    lambda phi, m, z: np.sqrt(1 - m * np.sin(phi) ** 2),
    lambda phi, m, z: -0.5 * sine_integral(phi, m),
)
elementwise(
    special.elliprf,
    lambda x, y, z, r: -special.elliprd(y, z, x) / 6,
    lambda x, y, z, r: -special.elliprd(x, z, y) / 6,
    lambda x, y, z, r: -special.elliprd(x, y, z) / 6,
)


def distinct(x: Any, z: Any) -> Any:
    """``z - x``, by which the derivatives of R_D are divided: an error where it is zero."""
    if np.any(np.equal(x, z)):
        raise NotImplementedError(
            "this derivative of Carlson's elliprd (which second derivatives of elliptic integrals in m need) "
            "is not known where two of its arguments are equal, as at m = 0"
        )
    return np.subtract(z, x)


elementwise(distinct, -1, 1)


def elliprd_by_first(x: Any, y: Any, z: Any, r: Any) -> Any:
    return (r - special.elliprd(y, z, x)) / (2 * distinct(x, z))


elementwise(
    special.elliprd,
    elliprd_by_first,
    lambda x, y, z, r: elliprd_by_first(y, x, z, r),
    lambda x, y, z, r: (
        -(1.5 * r + x * elliprd_by_first(x, y, z, r) + y * elliprd_by_first(y, x, z, r)) / z
    ),
)


@rrule(special.ellipj)
def ellipj(u, m, **options):
    z = special.ellipj(u, m, **options)

    def pullback(dz):
        sn, cn, dn, phi = z
        turn = -dn * ellipkinc_by_m(phi, m, u)  # of phi with m, at fixed u
        parts = [  # by u, and by m
            (cn * dn, cn * turn),
            (-sn * dn, -sn * turn),
            (-m * sn * cn, -(sn * sn + 2 * m * sn * cn * turn) / (2 * dn)),
            (dn, turn),
        ]
        du = sum([product(d, p[0]) for d, p in zip(dz, parts) if d is not None], 0.0)
        dm = sum([product(d, p[1]) for d, p in zip(dz, parts) if d is not None], 0.0)
        return unbroadcast(du, u), unbroadcast(dm, m)

    return z, pullback


# --------------------------------------------------------------------- exponentials and logarithms


def exprel_slope(t: Any) -> Any:
    return 0.5 * special.hyp1f1(2.0, 3.0, t)


def box_by_lambda(log_x: Any, lmbda: Any) -> Any:
    """The derivative in lambda of (exp(lambda log(x)) - 1)/lambda."""
    return log_x * log_x * exprel_slope(lmbda * log_x)


elementwise(special.expit, lambda x, z: z * special.expit(-x))
elementwise(special.logit, over(lambda x, z: x * (1 - x)))
elementwise(special.log_expit, lambda x, z: special.expit(-x))
if hasattr(special, "softplus"):  # new in SciPy 1.16
    elementwise(special.softplus, lambda x, z: special.expit(x))
elementwise(special.xlogy, lambda x, y, z: log(y), lambda x, y, z: ratio(x, y))
elementwise(
    special.xlog1py, lambda x, y, z: special.xlog1py(1.0, y), lambda x, y, z: ratio(x, 1 + y)
)
elementwise(special.entr, lambda x, z: -log(x) - 1)
elementwise(special.rel_entr, lambda x, y, z: log(x) - log(y) + 1, lambda x, y, z: -ratio(x, y))
elementwise(special.kl_div, lambda x, y, z: log(x) - log(y), lambda x, y, z: 1 - ratio(x, y))
elementwise(
    special.huber,
    lambda d, r, z: np.maximum(np.abs(r) - d, 0.0),
    lambda d, r, z: np.clip(r, -d, d),
)
elementwise(
    special.pseudo_huber,
    lambda d, r, z: 2 * ratio(z, d) - ratio(r * r, np.hypot(d, r)),
    lambda d, r, z: ratio(d * r, np.hypot(d, r)),
)
elementwise(special.exprel, lambda x, z: exprel_slope(x))
elementwise(special.expm1, lambda x, z: np.exp(x))
elementwise(special.log1p, over(lambda x, z: 1 + x))
elementwise(special.cosm1, lambda x, z: -np.sin(x))
elementwise(special.exp2, lambda x, z: z * math.log(2))
elementwise(special.exp10, lambda x, z: z * math.log(10))
elementwise(special.cbrt, over(lambda x, z: 3 * z * z))
elementwise(special.sindg, lambda x, z: math.pi / 180 * special.cosdg(x))
elementwise(special.cosdg, lambda x, z: -math.pi / 180 * special.sindg(x))
elementwise(special.tandg, lambda x, z: math.pi / 180 * (1 + z * z))
elementwise(special.cotdg, lambda x, z: -math.pi / 180 * (1 + z * z))
elementwise(special.radian, math.pi / 180, math.pi / 10_800, math.pi / 648_000)
elementwise(
    special.powm1,
    lambda x, y, z: power_by_base(of_numpy(x), y, z + 1),
    lambda x, y, z: power_by_exponent(x, y, z + 1),
)
elementwise(
    special.boxcox,
    lambda x, lmbda, z: of_numpy(x) ** (lmbda - 1),
    lambda x, lmbda, z: box_by_lambda(log(x), lmbda),
)
elementwise(
    special.boxcox1p,
    lambda x, lmbda, z: (1 + x) ** (lmbda - 1),
    lambda x, lmbda, z: box_by_lambda(special.log1p(x), lmbda),
)
elementwise(
    special.inv_boxcox,
    lambda y, lmbda, z: z ** (1 - lmbda),
    lambda y, lmbda, z: -box_by_lambda(log(z), lmbda) * z ** (1 - lmbda),
)
elementwise(
    special.inv_boxcox1p,
    lambda y, lmbda, z: (1 + z) ** (1 - lmbda),
    lambda y, lmbda, z: -box_by_lambda(special.log1p(z), lmbda) * (1 + z) ** (1 - lmbda),
)


@rrule(special.lambertw)
def lambertw(z, k=0, tol=1e-8):
    w = special.lambertw(z, k, tol)

    def pullback(dw):
        return (unbroadcast(product(dw, np.exp(-w) / (1 + w)), z),)

    return w, pullback


elementwise(special.wrightomega, lambda x, z: z / (1 + z))


@rrule(special.logsumexp)
def logsumexp(a, axis=None, b: Operand = None, keepdims=False, return_sign=False):
    found = special.logsumexp(a, axis, b, keepdims, return_sign)

    def pullback(d):
        shape = np.shape(a) if b is None else np.broadcast_shapes(np.shape(a), np.shape(b))
        kept = lambda x: np.reshape(x, kept_shape(shape, settled(axis)))
        full = a if np.shape(a) == shape else np.broadcast_to(a, shape)
        if return_sign:
            z, s = found
            part = np.exp(np.subtract(full, kept(z))) * conj(kept(s))
            # Of the sum's logarithm these are the real part and, turned into a phase, the imaginary part.
            turned = 1j * np.imag(d[1] * s) if d[1] is not None and is_complex(s) else None
            d = plus(d[0], turned)
            if d is None:
                return None, None, None
        else:
            part = np.exp(np.subtract(full, kept(found)))
        d = kept(d)
        if b is None:
            return unbroadcast(product(d, part), a), None, None
        da, db = product(np.multiply(d, b), part), product(d, part)
        return unbroadcast(da, a), None, unbroadcast(db, b)

    return found, pullback


# ------------------------------------------------------------------------------ integrals


def expn_slope(n: Any, x: Any, z: Any) -> Any:
    below = special.expn(np.maximum(n - 1, 0), x)
    zeroth = (np.exp(-x) + z) / x
    return -np.where(np.equal(n, 0), zeroth, below)[()]


elementwise(special.expi, lambda x, z: np.exp(x) / x)
elementwise(special.exp1, lambda x, z: -np.exp(-x) / x)
elementwise(special.expn, unknown("n"), expn_slope)
elementwise(special.spence, lambda x, z: -special.hyp2f1(1.0, 1.0, 2.0, 1 - x))
outputs(special.sici, lambda x, z: np.sinc(x / np.pi), lambda x, z: np.cos(x) / x)
outputs(
    special.shichi,
    lambda x, z: 0.5 * (special.exprel(x) + special.exprel(-x)),
    lambda x, z: np.cosh(x) / x,
)
outputs(
    special.fresnel,
    lambda x, z: np.sin(np.pi / 2 * x * x),
    lambda x, z: np.cos(np.pi / 2 * x * x),
)

# ------------------------------------------------------------------------- distribution functions


def binomial_density(k: Any, n: Any, p: Any) -> Any:
    """The derivative in ``p`` of the chance of more than ``k`` successes in ``n``."""
    return (n - k) * np.exp(
        special.gammaln(n + 1)
        - special.gammaln(k + 1)
        - special.gammaln(n - k + 1)
        + special.xlogy(k, p)
        + special.xlog1py(n - k - 1, -p)
    )


def student_density(v: Any, t: Any) -> Any:
    return np.exp(
        -special.betaln(0.5 * v, 0.5) - (0.5 * v + 0.5) * special.log1p(t * t / v)
    ) / np.sqrt(v)


def fisher_density(a: Any, b: Any, x: Any) -> Any:
    r = a * x / b
    return (
        a
        / b
        * np.exp(
            special.xlogy(0.5 * a - 1, r)
            - 0.5 * (a + b) * special.log1p(r)
            - special.betaln(0.5 * a, 0.5 * b)
        )
    )


v, n, p, k, a, b, df, dfn, dfd = map(unknown, "v n p k a b df dfn dfd".split())
elementwise(special.chdtr, v, lambda v, x, z: 0.5 * gamma_density(0.5 * v, 0.5 * x))
elementwise(special.chdtrc, v, lambda v, x, z: -0.5 * gamma_density(0.5 * v, 0.5 * x))
elementwise(special.chdtri, v, over(lambda v, p, z: -0.5 * gamma_density(0.5 * v, 0.5 * z)))
elementwise(special.fdtr, dfn, dfd, lambda a, b, x, z: fisher_density(a, b, x))
elementwise(special.fdtrc, dfn, dfd, lambda a, b, x, z: -fisher_density(a, b, x))
elementwise(special.fdtri, dfn, dfd, over(lambda a, b, p, z: fisher_density(a, b, z)))
elementwise(
    special.gdtr,
    lambda a, b, x, z: x * gamma_density(b, a * x),
    b,
    lambda a, b, x, z: a * gamma_density(b, a * x),
)
elementwise(
    special.gdtrc,
    lambda a, b, x, z: -x * gamma_density(b, a * x),
    b,
    lambda a, b, x, z: -a * gamma_density(b, a * x),
)
elementwise(special.stdtr, df, lambda v, t, z: student_density(v, t))
elementwise(special.stdtrit, df, over(lambda v, p, z: student_density(v, z)))
elementwise(special.pdtr, None, lambda k, m, z: -gamma_density(np.floor(k) + 1, m))
elementwise(special.pdtrc, None, lambda k, m, z: gamma_density(np.floor(k) + 1, m))
elementwise(special.pdtri, k, over(lambda k, y, z: -gamma_density(np.floor(k) + 1, z)))
elementwise(special.bdtr, None, n, lambda k, n, p, z: -binomial_density(np.floor(k), n, p))
elementwise(special.bdtrc, None, n, lambda k, n, p, z: binomial_density(np.floor(k), n, p))
elementwise(special.nbdtr, None, n, lambda k, n, p, z: beta_density(n, np.floor(k) + 1, p))
elementwise(special.nbdtrc, None, n, lambda k, n, p, z: -beta_density(n, np.floor(k) + 1, p))
elementwise(
    special.nrdtrimn,
    lambda p, std, x, z: -std / normal_density(special.ndtri(p)),
    lambda p, std, x, z: -special.ndtri(p),
    1,
)
elementwise(
    special.nrdtrisd,
    lambda mn, p, x, z: -1 / special.ndtri(p),
    lambda mn, p, x, z: -z / (special.ndtri(p) * normal_density(special.ndtri(p))),
    over(lambda mn, p, x, z: special.ndtri(p)),
)

# ------------------------------------------------------------- what scipy.stats has beside the public ones


def private(name: str, *partials: Any) -> None:
    """The same for a function that not every version of SciPy has."""
    if hasattr(_ufuncs, name):
        elementwise(getattr(_ufuncs, name), *partials)


def cauchy_quantile(way: int) -> Any:
    def by_p(p, loc, scale, z):
        u = (z - loc) / scale
        return way * math.pi * scale * (1 + u * u)

    return by_p, 1, lambda p, loc, scale, z: (z - loc) / scale


private(
    "_beta_pdf",
    lambda x, a, b, z: z * ((a - 1) / x - (b - 1) / (1 - x)),
    lambda x, a, b, z: z * (log(x) - psi(a) + psi(a + b)),
    lambda x, a, b, z: z * (special.log1p(-x) - psi(b) + psi(a + b)),
)
private("_beta_ppf", over(lambda q, a, b, z: beta_density(a, b, z)), a, b)
private("_cauchy_ppf", *cauchy_quantile(1))
private("_cauchy_isf", *cauchy_quantile(-1))
private("_binom_pmf", k, n, lambda k, n, p, z: z * (ratio(k, p) - ratio(n - k, 1 - p)))
private("_binom_cdf", None, n, lambda k, n, p, z: -binomial_density(np.floor(k), n, p))
private("_binom_sf", None, n, lambda k, n, p, z: binomial_density(np.floor(k), n, p))
private(
    "_nbinom_pmf",
    k,
    lambda k, n, p, z: z * (psi(k + n) - psi(n) + log(p)),
    lambda k, n, p, z: z * (n / p - k / (1 - p)),
)
private("_nbinom_cdf", None, n, lambda k, n, p, z: beta_density(n, np.floor(k) + 1, p))
private("_nbinom_sf", None, n, lambda k, n, p, z: -beta_density(n, np.floor(k) + 1, p))

"""What HIPS autograd 1.9 has gradients for, in NumPy and SciPy: all of it is differentiated here, one call each.

The names are those under which its public modules offer primitives with a gradient (and the methods of its arrays);
its own helpers, which NumPy and SciPy do not have, are left out. Of SciPy it differentiates some functions in some
parameters only; these are the ones that the calls below vary.
"""

import functools
import importlib

import numpy as np
import pytest
from checker import HALF, Table, check_first, check_forward

P, Q = np.array([0.3, 0.75, 0.5]), np.array([0.4, 0.2, 0.65])
A = np.array([[2.1, 0.4, -0.3], [0.2, 1.7, 0.5], [-0.6, 0.1, 2.4]])
B = np.array([[0.3, -0.8, 0.5], [0.9, 0.6, -0.2], [0.1, 0.7, -0.4]])
Z = np.array([0.3 + 0.4j, -0.7 + 0.2j, 0.5 - 0.9j])
GAP = np.array([True, False, True])


def after(*fixed):
    """The last parameter alone: in the others there is no formula."""
    return lambda f: (functools.partial(f, *fixed), (P,))


def before(*fixed):
    """The first parameter alone."""
    return lambda f: (lambda x: f(x, *fixed), (0.4,))


def decaying(odeint):
    """The solution of an equation, by where it begins, a parameter and the times."""
    field, tight = (lambda y, t, k: -k * y * t), {"rtol": 1e-10, "atol": 1e-10}
    return (lambda y0, k, t: odeint(field, y0, t, args=(k,), **tight)), (P, 0.7, np.cumsum(Q))


def on_the_simplex(density):
    """A density of numbers whose sum is 1, as a function of any positive ones."""
    return (lambda x, alpha: density(x / np.sum(x), alpha)), (P, 1 + Q)


ELEMENTWISE = """abs absolute acos angle arccos arcsin arcsinh arctan arctanh asinh atan atanh conj conjugate cos cosh
deg2rad degrees exp exp2 expm1 fabs log log10 log1p log2 negative rad2deg radians real reciprocal sin sinc sinh sqrt
square tan tanh"""
OF_TWO = """add arctan2 atan2 divide fmax fmin hypot logaddexp logaddexp2 maximum minimum mod multiply pow power
remainder subtract true_divide"""
OF_A_VECTOR = """amax amin array atleast_1d atleast_2d atleast_3d cumsum diag diff gradient max mean min nan_to_num prod
ravel real_if_close sort std sum var"""
OF_A_MATRIX = (
    """diagonal fliplr flipud rot90 squeeze trace transpose tril triu permute_dims cumsum"""
)

# By module: names, and what they are called with.
CALLS = {
    "numpy": {
        ELEMENTWISE: (P,),
        "arccosh acosh": (1.2 + P,),
        "conj imag real angle abs": (Z,),
        OF_TWO: (P, Q),
        OF_A_VECTOR: (P,),
        OF_A_MATRIX: (A,),
        "dot inner matmul outer kron tensordot": (A, B),
        "append": (P, Q),
        "concatenate hstack stack vstack column_stack": ([P, Q],),
        "cross": (P, Q),
        "array_split split hsplit": (P, 3),
        "vsplit": (A, 3),
        "dsplit": (np.reshape(np.arange(12.0), (2, 3, 2)), 2),
        "astype": (P, np.float64),
        "broadcast_to": (P, (2, 3)),
        "clip": (P, 0.4, 0.6),
        "einsum": ("ij,kj->ik", A, B),
        "expand_dims partition": (P, 1),
        "full": ((2, 3), 0.7),
        "linspace": (0.3, 1.9, 4),
        "moveaxis swapaxes rollaxis": (A, 0, 1),
        "pad": (P, 2, "constant"),
        "repeat roll tile": (P, 2),
        "reshape": (A, (9,)),
        "where": (GAP, P, Q),
    },
    "numpy.linalg": {
        "det inv pinv slogdet": (A,),
        "cholesky eigh": (A @ A.T,),
        "eig": (A @ A.T,),
        "norm": (A,),
        "solve": (A, B),
        "svd": (A, False),
    },
    "numpy.fft": {
        "fft fft2 fftn fftshift ifft ifft2 ifftn ifftshift rfft rfft2 rfftn": (A,),
        "irfft irfft2 irfftn": (A[:, :2] + 0.5j * B[:, :2] * [[0], [1], [1]],),
    },
    "numpy.ndarray": {
        "cumprod cumsum flatten max mean min prod ravel std sum var": (P,),
        "diagonal squeeze trace transpose": (A,),
        "astype": (P, np.float64),
        "clip": (P, 0.4, 0.6),
        "repeat": (P, 2),
        "reshape": (A, (9,)),
        "swapaxes": (A, 0, 1),
        "take": (P, [2, 0]),
        "__getitem__": (P, slice(1, None)),
    },
    "scipy.special": {
        "digamma erf erfc erfcinv erfinv expit gamma gammaln gammasgn i0 i1 j0 j1 logit psi rgamma y0 y1": (
            P,
        ),
        "beta betaln": (P, Q),
        "betainc": after(2, 3),
        "gammainc gammaincc iv ive jn jv yn yv polygamma": after(2),
        "logsumexp": (A,),
        "multigammaln": (2.3, 2),
    },
    "scipy.linalg": {
        "solve_banded": ((1, 1), A, P),
        "solve_sylvester": (A, A @ A, B),
        "solve_triangular": (A, B),
        "sqrtm": (A @ A.T,),
    },
    "scipy.signal": {"convolve": (A, B)},
    "scipy.integrate": {"odeint": decaying},
    "scipy.stats.norm": {"cdf logcdf logpdf logsf pdf sf": (0.4, 0.1, 1.2)},
    "scipy.stats.t": {"cdf logcdf": before(3), "logpdf pdf": (0.4, 3.2, 0.1, 1.2)},
    "scipy.stats.beta": {"cdf": before(2, 3), "logpdf pdf": (0.4, 1.2, 2.3)},
    "scipy.stats.gamma": {"cdf": before(3), "logpdf pdf": (0.4, 3.2)},
    "scipy.stats.chi2": {"cdf": before(3), "logpdf pdf": (0.4, 3.2)},
    "scipy.stats.poisson": {"cdf logpmf pmf": (2, 1.2)},
    "scipy.stats.multivariate_normal": {"logpdf pdf": (P, Q, A @ A.T), "entropy": (P, A @ A.T)},
    "scipy.stats.dirichlet": {"logpdf": on_the_simplex, "pdf": on_the_simplex},
}


def function(space, name):
    """The function of that name, or None where this release has none."""
    if space == "numpy.ndarray":
        return getattr(np.ndarray, name)
    module, _, owner = space.rpartition(".") if "stats." in space else (space, "", "")
    home = importlib.import_module(module)
    return getattr(getattr(home, owner) if owner else home, name, None)


NEW = {*"acos acosh asinh atan atan2 atanh astype permute_dims pow".split()}  # in NumPy 2


def table(package):
    """The calls of a package; none where it is not installed."""
    found = Table()
    for space, calls in CALLS.items():
        for names, given in calls.items() if space.startswith(package) else ():
            for name in names.split():
                fn = function(space, name)
                if fn is None:
                    assert name in NEW, f"{space}.{name}"
                    continue
                fn, args = given(fn) if callable(given) else (fn, given)
                found(fn, *args, case={"name": f"{space}.{name}", "tol": 1e-5})
    return found


try:
    import scipy  # noqa: F401
except ImportError:
    SCIPY = []
else:
    SCIPY = table("scipy").cases
CASES = [*table("numpy").cases, *SCIPY]


@pytest.mark.parametrize("case", CASES, ids=[c.name for c in CASES])
def test_gradient(case):
    check_first(case)


@pytest.mark.parametrize("case", CASES[::HALF], ids=[c.name for c in CASES[::HALF]])
def test_forward(case):
    check_forward(case)

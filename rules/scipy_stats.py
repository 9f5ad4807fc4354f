"""What of scipy.stats has another formula where a parameter has one value, such as a logarithm for a power of zero.

There SciPy's own code has no derivative by that parameter, and what follows has one formula for all values. All else of
scipy.stats is traced.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special, stats
from scipy.stats import _morestats

from .broadcasting import settled
from .equivalents import like


def reflected(x: Any) -> Any:
    """Signs that are 1 at zero, and the sizes of what has them."""
    s = np.where(np.less(x, 0), -1.0, 1.0)
    return s, s * x


@like(_morestats._yeojohnson_transform)
def yeojohnson(x, lmbda, xp=None):
    s, size = reflected(x)
    return s * special.boxcox1p(size, np.where(np.less(x, 0), 2 - lmbda, lmbda))


def log_variance(t: Any, lmbda: Any, **along: Any) -> Any:
    """The logarithm of the variance of (exp(lmbda t) - 1)/lmbda: of powers that are 1 at most, and the rest."""
    extreme = np.max if lmbda >= 0 else np.min
    most = extreme(t, axis=along["axis"], keepdims=True)
    below = t - most
    spread = np.log(np.var(below * special.exprel(lmbda * below), **along))
    return spread + 2 * lmbda * (most if along["keepdims"] else np.squeeze(most, along["axis"]))


def likelihood(lmb: Any, logs: Any, spread: Any, **along: Any) -> Any:
    total = np.sum(logs, **along)
    return (lmb - 1) * total - np.size(logs) / np.size(total) / 2 * spread


def with_missing(nan_policy: Any) -> None:
    """Refuse to leave data out."""
    if nan_policy == "omit":
        raise NotImplementedError(
            "the derivative is not known for nan_policy='omit': leave the NaNs out before the call"
        )


@like(stats.boxcox_llf)
def boxcox_llf(lmb, data, *, axis=0, keepdims=False, nan_policy="propagate"):
    with_missing(nan_policy)
    along, logs = {"axis": settled(axis), "keepdims": keepdims}, np.log(data)
    return likelihood(lmb, logs, log_variance(logs, lmb, **along), **along)


@like(stats.yeojohnson_llf)
def yeojohnson_llf(lmb, data, *, axis=0, nan_policy="propagate", keepdims=False):
    with_missing(nan_policy)
    along, (s, size) = {"axis": settled(axis), "keepdims": keepdims}, reflected(data)
    logs = np.log1p(size)
    if np.all(s > 0):
        spread = log_variance(logs, lmb, **along)
    elif np.all(s < 0):
        spread = log_variance(logs, 2 - lmb, **along)
    else:
        spread = np.log(np.var(yeojohnson(data, lmb), **along))
    return likelihood(lmb, s * logs, spread, **along)

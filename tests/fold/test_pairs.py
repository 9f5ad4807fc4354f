"""Rules that are called with plain values: the value is that of the function, and the pullback that of the engine."""

import copy
import functools
import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

from wengert import pullback
from wengert.rules.registry import RRULE, lookup
from wengert.transforms.fold.arrays import RELAID

RULES = Path(__file__).parents[1] / "rules"
sys.path.insert(0, str(RULES))

from checker import VERSION, WHOLE, Table, is_leaf, leaves, random_like  # noqa: E402

MODULES = sorted(p.stem for p in RULES.glob("test_*.py"))


def cases_of(module):
    try:
        table = getattr(importlib.import_module(module), "case", None)
    except pytest.skip.Exception:
        return []
    cases = table.cases if isinstance(table, Table) else []
    return cases if WHOLE else cases[VERSION % 3 :: 3]


def parts_of(case):
    """The function of a case, the arguments and the keywords."""
    if type(case.call) is functools.partial:
        return case.call.func, (*case.call.args, *case.args), case.call.keywords
    return case.call, case.args, {}


def difference(x, y):
    """How two values differ by class, dtype, shape, place in memory or a bit; None if they do not."""
    if type(x) is not type(y):
        return f"{type(x).__name__} for {type(y).__name__}"
    if isinstance(x, (tuple, list)):
        return next((d for pair in zip(x, y, strict=True) if (d := difference(*pair))), None)
    if isinstance(x, (np.ndarray, np.generic)):
        if (x.dtype, x.shape, x.strides) != (y.dtype, y.shape, y.strides):
            return f"{x.dtype}{x.shape}{x.strides} for {y.dtype}{y.shape}{y.strides}"
        return None if x.tobytes() == y.tobytes() else f"{x} for {y}"
    return None if repr(x) == repr(y) else f"{x!r} for {y!r}"


def apart(found, expected, x):
    """Where a cotangent is not the one that is expected of an argument; None if there is nothing of the kind."""
    if isinstance(x, (tuple, list)):
        inside = found or [None] * len(x)
        pairs = zip(inside, expected or [None] * len(x), x, strict=True)
        return next((d for three in pairs if (d := apart(*three))), None)
    if not is_leaf(x):
        return None
    zero = np.zeros(np.shape(x))
    found, expected = (zero if d is None else d for d in (found, expected))
    if np.shape(found) != np.shape(x):
        return f"the shape {np.shape(found)} for {np.shape(x)}"
    near = np.allclose(found, expected, rtol=1e-11, atol=1e-12, equal_nan=True)
    return None if near else f"{found} for {expected}"


def plain(x):
    """A cotangent with Python's floats in the place of NumPy's."""
    if isinstance(x, (tuple, list)):
        return type(x)([plain(y) for y in x])
    return float(x) if type(x) is np.float64 else x


@pytest.mark.parametrize("module", MODULES)
def test_a_rule_called_with_plain_values(module):
    failed = []
    for case in cases_of(module):
        fn, args, kwargs = parts_of(case)
        rule = lookup(fn)
        if rule is None or rule.kind != RRULE or rule.function is None or not rule.pure:
            continue
        with np.errstate(all="ignore"):
            expected = fn(*copy.deepcopy(args), **kwargs)
            value, back = rule.function(*copy.deepcopy(args), **kwargs)
            wrong = None if fn in RELAID else difference(value, expected)
            if not leaves(expected):
                continue
            dz = random_like(expected, np.random.default_rng(case.seed))
            gradients = pullback(case.call, *copy.deepcopy(case.args))[1](dz)
            for d in (dz, plain(dz)):
                found = (*back(d), *(None,) * len(args))[len(args) - len(case.args) : len(args)]
                wrong = wrong or apart(found, gradients, case.args)
        if wrong:
            failed.append(f"{case.name}: {wrong}")
    assert not failed, f"{len(failed)} cases:\n" + "\n".join(failed[:10])


def test_there_are_many_cases():
    fns = {parts_of(case)[0] for module in MODULES for case in cases_of(module)}
    assert sum(lookup(fn) is not None and lookup(fn).kind == RRULE for fn in fns) >= 100


def test_what_lies_otherwise_in_memory_is_known():
    """Those whose value is taken from the function itself, and no others."""
    x = np.arange(6.0).reshape(2, 3)
    for fn in RELAID:
        assert lookup(fn).function(x)[0].strides != fn(x).strides

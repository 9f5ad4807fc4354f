"""Rules that are called with plain values: the value is that of the function, and the pullback that of the engine."""

import copy
import functools
import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

from wengert import pullback, value_and_grad
from wengert.rules.registry import RRULE, lookup

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
            given, own = copy.deepcopy(args), copy.deepcopy(args)
            expected = fn(*given, **kwargs)
            value, back = rule.function(*own, **kwargs)
            wrong = difference(value, expected) or laid_otherwise(value, expected)
            if not wrong and shared(value, own) != shared(expected, given):
                wrong = f"shares memory: {shared(value, own)} for {shared(expected, given)}"
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


def arrays_in(x):
    if isinstance(x, np.ndarray):
        return [x]
    return [z for y in x for z in arrays_in(y)] if isinstance(x, (tuple, list)) else []


def shared(value, args):
    """Which arrays of a value lie in the memory of which arguments, or are these."""
    return [(x is y, np.may_share_memory(x, y)) for x in arrays_in(value) for y in arrays_in(args)]


def laid_otherwise(value, expected):
    """How an array lies in memory where it should lie otherwise."""
    if type(expected) is not np.ndarray or min(expected.shape, default=0) < 2:
        return None
    return None if value.strides == expected.strides else f"strides {value.strides}"


def test_there_are_many_cases():
    fns = {parts_of(case)[0] for module in MODULES for case in cases_of(module)}
    assert sum(lookup(fn) is not None and lookup(fn).kind == RRULE for fn in fns) >= 100


@pytest.mark.parametrize("order", ["C", "F", "strided"])
def test_what_gives_an_array_of_another_lays_it_as_the_function_does(order):
    """A sum depends on the order in memory by its last bit, and ``ravel("K")`` wholly."""
    x = np.arange(24.0).reshape(4, 6)
    x = np.asfortranarray(x) if order == "F" else x[:, ::2] if order == "strided" else x
    arrays = (np.asarray, np.asanyarray, np.ascontiguousarray, np.asfortranarray, np.copy)
    for fn in (*arrays, np.ndarray.copy):
        rule = lookup(fn).function
        for way in ({}, {"order": "C"}, {"order": "F"}, {"order": "A"}, {"order": "K"}):
            if way and fn in (np.ascontiguousarray, np.asfortranarray):
                continue
            value, back = rule(x, **way)
            assert value.strides == fn(x, **way).strides
            assert back(np.ones(x.shape))[0].tolist() == np.ones(x.shape).tolist()


def test_a_check_for_finite_numbers_is_made_at_each_call():
    f = value_and_grad(lambda x: np.asarray_chkfinite(x).sum())
    for i in range(6):
        assert f(np.array([1.0, i]))[0] == 1.0 + i
    with pytest.raises(ValueError, match="must not contain infs or NaNs"):
        f(np.array([1.0, np.nan]))

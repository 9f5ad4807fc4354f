"""A function is what it does: the names that it bears, be they those of the library's functions, change nothing."""

import functools
import math
import operator
import pdb
import re
import threading
import typing
import warnings

import numpy as np
import pytest

from helpers import assert_close
from wengert import custom_rule, jit, value_and_grad


def dataclass(x):
    return math.exp(x) * x


def namedtuple(x):
    return math.exp(x) * x


def total_ordering(x):
    return math.exp(x) * x


class Keeper:
    def make_dataclass(self, x):
        return math.exp(x) * x


def named_like(other):
    @functools.wraps(other)
    def f(x):
        return math.exp(x) * x

    return f


LIKE = [
    dataclass,
    namedtuple,
    total_ordering,
    Keeper().make_dataclass,
    *map(named_like, (re.match, typing.cast, math.sin, operator.add, np.sum, warnings.warn)),
    *map(named_like, (threading.Thread.start, pdb.set_trace, pdb.Pdb.set_trace)),
]


@pytest.mark.parametrize("f", LIKE, ids=lambda f: f.__qualname__)
@pytest.mark.parametrize("on", (True, False))
def test_a_function_with_the_name_of_another(f, on):
    with jit(on):
        for g in (f, lambda x: f(x) + 0.0):
            answer = value_and_grad(g)
            for x in (2.0, 2.5, 3.0, 3.5):
                value, slope = answer(x)
                assert value == math.exp(x) * x
                assert_close(slope, math.exp(x) * (x + 1))


def test_a_module_of_the_users_may_be_named_like_one_of_the_library(tmp_path, monkeypatch):
    (tmp_path / "cmd.py").write_text("import math\ndef f(x):\n    return math.exp(x) * x\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "cmd", raising=False)
    module = __import__("cmd")
    assert module.__file__ == str(tmp_path / "cmd.py")
    for x in (2.0, 2.5, 3.0, 3.5):
        assert_close(value_and_grad(lambda x: module.f(x))(x)[1], math.exp(x) * (x + 1))


def test_a_rule_is_given_what_its_function_is_given():
    class Weight:
        def __array__(self, dtype=None, copy=None):
            raise AssertionError("nobody asks for it")

    seen = []

    @custom_rule
    @functools.wraps(np.sum)
    def f(x, weight, overwrite_x=False):
        seen.append((type(weight), overwrite_x))
        return 2.0 * x, lambda dy: (2.0 * dy, None)

    weight = Weight()
    for x in (2.0, 3.0, 4.0):
        assert value_and_grad(lambda x: f(x, weight, overwrite_x=True))(x) == (2 * x, 2.0)
    assert set(seen) == {(Weight, True)}

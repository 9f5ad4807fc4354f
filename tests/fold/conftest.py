import sys
from pathlib import Path

sys.path.insert(
    0, str(Path(__file__).parents[1] / "jit")
)  # so that every test here can import `worlds`

import numpy as np
import pytest
from worlds import WAYS, Answer, has_leaves

from wengert import clear_cache, jit, settings, value_and_grad
from wengert.transforms import cache
from wengert.transforms.budget import Budget


@pytest.fixture
def folding_at_once(monkeypatch):
    """Functions are folded from their first call on, whatever it costs, and errors of our own are shown."""
    monkeypatch.setattr(Budget, "limited", False)
    monkeypatch.setattr(cache, "VARIED", 0)
    monkeypatch.setattr(settings, "strict", True)
    clear_cache()
    with jit(True):
        yield
    clear_cache()


def by_floats(call, number):
    """Value and gradient, with respect to floats, lists and arrays."""
    argnums = tuple(
        i
        for i, x in enumerate(call.args)
        if type(x) is float
        or isinstance(x, np.floating)
        or (type(x) in (list, np.ndarray) and has_leaves(x))
    )
    value, gradients = value_and_grad(call.f, argnums)(*call.args, **call.kwargs)
    return Answer(value, gradients)


@pytest.fixture
def floats(monkeypatch):
    """A way to ask the engine that leaves integers alone."""
    monkeypatch.setitem(WAYS, "floats", by_floats)
    return "floats"

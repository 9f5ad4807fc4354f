import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # so that every test here can import `worlds`

import builtins
import cmath
import math
import operator

import numpy as np
import pytest

import wengert


@pytest.fixture
def programs_anew():
    """No programs at the beginning, and the JIT on."""
    wengert.clear_cache()
    with wengert.jit(True):
        yield
    wengert.clear_cache()


@pytest.fixture(autouse=True)
def modules_as_they_were():
    """A story that ends badly must not leave a patched module to the tests after it."""
    modules = (math, cmath, operator, builtins, np)
    before = [dict(vars(module)) for module in modules]
    yield
    for module, members in zip(modules, before, strict=True):
        for name, value in members.items():
            if vars(module).get(name) is not value:
                setattr(module, name, value)

"""SymPy: a traced number that becomes one of its numbers is an error (see ``mpmath_numbers``).

Imported when a function of SymPy is called inside a traced one (``registry.awaited``).
"""

from __future__ import annotations

import importlib
from typing import Any

from .mpmath_numbers import makes_numbers_of_its_own

_numbers: Any = importlib.import_module("sympy.core.numbers")
_sympify: Any = importlib.import_module("sympy.core.sympify")
makes_numbers_of_its_own(_numbers.Float.__new__)  # which makes zero in another way than mpmath
makes_numbers_of_its_own(_sympify.sympify)

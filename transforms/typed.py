"""Type variables of the signatures that type checkers see of the functions that people call.

Words
-----
A, B, C   the first three arguments of a function; its gradient is of the same type.
S, T   arguments before that no gradient is taken by, such as ``self``.
D      an argument that is a number; the Jacobian by one is of the type of the result.
R      what a function returns; its tangent is of the same type.
N      the number that a function with a gradient returns.
Aux    what it returns beside that.
P      the (other) parameters of a function.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, ClassVar, ParamSpec, Protocol, TypedDict, TypeVar

import numpy as np


class Fields(Protocol):
    """A dataclass: the gradient by one is one as well."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


Array = np.ndarray[Any, np.dtype[Any]]
Moves = (
    float
    | complex
    | np.ndarray[Any, Any]
    | np.generic
    | list[Any]
    | tuple[Any, ...]
    | dict[Any, Any]
    | Fields
)

P = ParamSpec("P")
A = TypeVar("A", bound=Moves)
B = TypeVar("B", bound=Moves)
C = TypeVar("C", bound=Moves)
S = TypeVar("S")
T = TypeVar("T")
D = TypeVar("D", bound=complex)
R = TypeVar("R")
N = TypeVar("N", bound=float | np.floating[Any] | np.ndarray[Any, Any])
V = TypeVar("V", bound=np.ndarray[Any, Any])
Aux = TypeVar("Aux")
F = TypeVar("F", bound=Callable[..., Any])


class Options(TypedDict, total=False):
    """What `grad` and `value_and_grad` take by name beside ``argnums`` and ``has_aux``."""

    debug: bool
    primitives: Collection[Any] | Callable[..., bool] | None

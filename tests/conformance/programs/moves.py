"""Moving arguments along a direction, to take differences of a function in plain Python.

Words
-----
direction   what an argument moves by, with the structure of its gradient: lists for lists, dicts for objects and so on.
            What stands at several places has one direction; arrays that share memory move together.
moved       the argument after a step: containers, objects and arrays in place, for others refer to them as well.
product     the sum of gradient times direction over all numbers of an argument. A number, an array or a container that
            stands at several places has a gradient for each of them; an object has one, which is shown at each.
cotangent   a direction for a result, which the engine is given to pull back.
"""

from __future__ import annotations

import types
from collections import OrderedDict, deque
from typing import Any

import numpy as np

from .pictures import attributes

NUMBERS = (float, complex)
PLAIN = (list, tuple, dict, OrderedDict, deque)  # whose ints are numbers, where they are arguments
NEVER = (
    type(None),
    str,
    bytes,
    bool,
    int,
    range,
    set,
    frozenset,
    type,
    types.FunctionType,
    types.BuiltinFunctionType,
)
NEVER += (types.MethodType, types.ModuleType, np.integer, np.bool_, np.ufunc, types.GeneratorType)


def members(x: Any) -> dict[Any, Any] | None:
    """What a container or an object holds, by index, key or name; None where there is nothing to look into."""
    if isinstance(x, dict):
        return dict(dict.items(x))
    if isinstance(x, list | tuple | deque):
        return dict(enumerate(tuple.__iter__(x) if isinstance(x, tuple) else list(x)))
    if (
        isinstance(x, (*NEVER, np.ndarray, np.generic, *NUMBERS))
        or callable(x)
        and not attributes(x)
    ):
        return None
    return attributes(x)


def is_number(x: Any) -> bool:
    return type(x) in NUMBERS or isinstance(x, np.generic | np.ndarray) and x.dtype.kind in "fc"


class Directions:
    """The directions for the arguments of one call."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.memories: dict[int, tuple[Any, Any]] = {}  # arrays that own memory, and how it moves
        self.known: dict[int, tuple[Any, Any]] = {}

    def step(self, shape: tuple[int, ...] = ()) -> Any:
        return self.rng.uniform(0.5, 1.5, shape) * self.rng.choice([-1.0, 1.0], shape)

    def of(self, x: Any, attribute: bool = False) -> Any:
        """Of an argument, or of what is in it: an int is a number, but in an attribute of an object."""
        if isinstance(x, np.ndarray):
            return self.of_array(x) if x.dtype.kind in "fc" else None
        if is_number(x):
            return type(x)(self.step())
        if type(x) is int and not attribute:
            return float(self.step())
        if id(x) in self.known:  # inside of itself an object is not moved once more
            return self.known[id(x)][1]
        inside = members(x)
        if inside is None or isinstance(x, NEVER):
            return None
        attribute = attribute or type(x) not in PLAIN
        if isinstance(x, tuple):
            parts = [self.of(item, attribute) for item in inside.values()]
            return type(x)._make(parts) if hasattr(x, "_make") else tuple(parts)
        self.known[id(x)] = x, None
        parts = {key: self.of(item, attribute) for key, item in inside.items()}
        found: Any = [*parts.values()] if isinstance(x, list | deque) else parts
        self.known[id(x)] = x, found
        return found

    def of_array(self, x: np.ndarray[Any, Any]) -> Any:
        owner = x
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        if id(owner) not in self.memories:
            moves = np.zeros_like(owner)
            if owner.dtype.kind in "fc":
                moves[...] = self.step(owner.shape)
            self.memories[id(owner)] = owner, moves
        moves = self.memories[id(owner)][1]
        if owner is x or moves.dtype != x.dtype:
            return moves if moves.shape == x.shape else np.zeros_like(x)
        offset = x.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
        if x.size == 0 or owner.strides != moves.strides:
            return np.zeros_like(x)
        base = moves.reshape(-1, order="A")
        shift = int(offset) // x.itemsize
        low = sum(min(0, s * (n - 1)) for s, n in zip(x.strides, x.shape))
        return np.ndarray(x.shape, x.dtype, base[shift + low // x.itemsize :], -low, x.strides)


class Mover:
    """Moves arguments by `t` times their directions."""

    def __init__(self, directions: Directions, t: float) -> None:
        self.t = t
        self.moved_arrays: set[int] = set()
        self.moved: set[int] = set()
        self.directions = directions

    def move(self, x: Any, step: Any) -> Any:
        if step is None:
            return x
        if isinstance(x, np.ndarray):
            self.move_memory(x, step)
            return x
        if is_number(x):
            return type(x)(x + self.t * step)
        if type(x) is int:
            return x + self.t * step if self.t else x
        inside = members(x) or {}
        if isinstance(x, tuple):
            parts = [self.move(item, d) for item, d in zip(inside.values(), step)]
            if hasattr(x, "_make"):
                return type(x)._make(parts)
            return tuple(parts) if type(x) is tuple else type(x)(parts)
        if id(x) in self.moved:
            return x
        self.moved.add(id(x))
        for key, item in inside.items():
            put(x, key, self.move(item, step[key]))
        return x

    def move_memory(self, x: np.ndarray[Any, Any], step: Any) -> None:
        owner = x
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        if id(owner) in self.moved_arrays:
            return
        self.moved_arrays.add(id(owner))
        if step is x:
            return
        writeable = owner.flags.writeable
        owner.flags.writeable = True
        if owner is x:
            owner += (self.t * step).astype(owner.dtype)
        else:
            owner += (self.t * self.directions.of_array(owner)).astype(owner.dtype)
        owner.flags.writeable = writeable


def put(x: Any, key: Any, value: Any) -> None:
    """Store into a container or an object, whatever its class makes of that."""
    if isinstance(x, dict):
        OrderedDict.__setitem__(x, key, value) if isinstance(x, OrderedDict) else dict.__setitem__(
            x, key, value
        )
    elif isinstance(x, list):
        list.__setitem__(x, key, value)
    elif isinstance(x, deque):
        x[key] = value
    elif isinstance(getattr(x, "__dict__", None), dict) and key in x.__dict__:
        x.__dict__[key] = value
    else:
        object.__setattr__(x, key, value)


class Unlike(Exception):
    """A gradient does not have the structure of what it belongs to."""


def product(
    gradient: Any, step: Any, x: Any, seen: set[int] | None = None, path: str = ""
) -> float:
    """The sum of gradient times direction."""
    seen = set() if seen is None else seen
    if step is None or gradient is None:
        return 0.0
    if isinstance(x, np.ndarray) or is_number(x) or type(x) is int:
        if np.shape(gradient) != np.shape(step):
            raise Unlike(f"{path}: a gradient of shape {np.shape(gradient)} for {np.shape(step)}")
        return float(np.real(np.sum(np.asarray(gradient) * np.asarray(step))))
    if not isinstance(x, list | tuple | dict | deque):
        if id(x) in seen:
            return 0.0
        seen.add(id(x))
    total = 0.0
    for key, item in (members(x) or {}).items():
        part = piece_of(gradient, key, item, path)
        total += product(part, step[key], item, seen, f"{path}[{key!r}]")
    return total


def piece_of(gradient: Any, key: Any, item: Any, path: str) -> Any:
    """The part of a gradient that belongs to a member."""
    try:
        if isinstance(gradient, list | tuple | deque) and isinstance(key, int):
            return (members(gradient) or {})[
                key
            ]  # for the class may have a `__getitem__` of its own
        if isinstance(gradient, dict):
            return dict.get(gradient, key)
        return getattr(gradient, key)
    except (LookupError, AttributeError, TypeError):
        raise Unlike(f"{path}: nothing for {key!r} in {gradient!r}") from None


def cotangent(x: Any, rng: np.random.Generator, around: tuple[int, ...] = ()) -> Any:
    """A random cotangent for a result."""
    if isinstance(x, np.ndarray) or is_number(x):
        if not is_number(x):
            return None
        step = np.asarray(rng.uniform(0.5, 1.5, np.shape(x)) * rng.choice([-1.0, 1.0], np.shape(x)))
        if (
            x.dtype.kind == "c"
            if isinstance(x, np.ndarray | np.generic)
            else isinstance(x, complex)
        ):
            step = step + 1j * rng.uniform(0.5, 1.5, np.shape(x))
        return step.astype(x.dtype) if isinstance(x, np.ndarray) else type(x)(step)
    inside = members(x)
    if inside is None or isinstance(x, NEVER) or id(x) in around:
        return None
    parts = {key: cotangent(item, rng, (*around, id(x))) for key, item in inside.items()}
    if isinstance(x, tuple):
        return type(x)._make(parts.values()) if hasattr(x, "_make") else tuple(parts.values())
    return [*parts.values()] if isinstance(x, list | deque) else parts


def pairing(dy: Any, y: Any) -> float:
    """The sum of a cotangent times a result: what is differentiated."""
    if dy is None or y is None:
        return 0.0
    if isinstance(y, np.ndarray) or is_number(y):
        if np.shape(dy) != np.shape(y):
            return np.nan
        return float(np.real(np.sum(np.asarray(dy) * np.asarray(y))))
    inside = members(y) or {}
    if set(inside) != set(members(dy) or {}):
        return np.nan
    parts = members(dy) or {}
    return sum(pairing(parts[key], item) for key, item in inside.items())

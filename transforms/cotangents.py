"""Cotangents at the door: checked against the result on the way in, given the arguments' form on the way out."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from ..tracer.box import BOXES
from ..tracer.errors import CotangentError
from ..tracer.structure import Branch, Fixed, Leaf, Tree, is_namedtuple
from ..tracer.tape import Op, type_name


def seeds_of(tree: Tree, dy: Any, path: str = "the cotangent") -> list[tuple[Op, Any]]:
    """Pair each differentiable leaf of a result with its cotangent; raises CotangentError where they do not fit."""
    if dy is None:
        return []
    if isinstance(tree, Leaf):
        seed = fitted(tree.value, dy, path)
        return [] if tree.op is None else [(tree.op, seed)]
    if isinstance(tree, Fixed):
        raise CotangentError(f"{path} must be None: the value it belongs to has no derivative")
    found: list[tuple[Op, Any]] = []
    for key, part in tree.parts.items():
        found += seeds_of(part, piece(tree, dy, key, path), f"{path}[{key!r}]")
    return found


def piece(tree: Branch, dy: Any, key: Any, path: str) -> Any:
    """The part of a structured cotangent under a key of the result's structure."""
    kind = tree.kind
    if issubclass(kind, dict):
        if not isinstance(dy, dict) or set(dy) != set(tree.parts):
            raise CotangentError(f"{path} must be a dict with the keys {list(tree.parts)}, or None")
        return dy.get(key)
    if issubclass(kind, (list, tuple, deque)):
        like = isinstance(dy, (list, tuple, deque)) and (
            isinstance(dy, tuple) == issubclass(kind, tuple)
        )
        if (
            not like
            or len(dy) != len(tree.parts)
            or (is_namedtuple(kind) and type(dy) not in (kind, tuple))
        ):
            raise CotangentError(
                f"{path} must be a {kind.__name__} of length {len(tree.parts)}, not {type_of(dy)}"
            )
        return dy[key]
    return dy.get(key) if isinstance(dy, dict) else getattr(dy, key, None)


def type_of(value: Any) -> str:
    value = value.value if type(value) in BOXES else value
    length = f" of length {len(value)}" if isinstance(value, (list, tuple, dict)) else ""
    return f"{type_name(value)}{length}"


def fitted(value: Any, dy: Any, path: str) -> Any:
    """A cotangent for a leaf with this value, in the leaf's dtype."""
    plain = dy.value if type(dy) in BOXES else dy
    if not isinstance(plain, (int, float, complex, np.ndarray, np.generic)):
        raise CotangentError(f"{path} must be {article(value)}, not {type_of(dy)}")
    if np.shape(plain) != np.shape(value):
        raise CotangentError(
            f"{path} must have the shape {np.shape(value)} of the value it belongs to, not {np.shape(plain)}"
        )
    if np.iscomplexobj(plain) and not np.iscomplexobj(value):
        raise CotangentError(f"{path} is complex, but the value it belongs to is real")
    if type(dy) in BOXES:
        return dy
    if isinstance(value, np.ndarray):
        return np.array(plain, dtype=value.dtype)
    if isinstance(value, np.generic):
        return value.dtype.type(plain)
    return complex(plain) if isinstance(value, complex) else float(plain)  # type: ignore[arg-type]


def article(value: Any) -> str:
    return "a number" if np.ndim(value) == 0 else f"an array of shape {np.shape(value)}"


def shaped(leaf: Leaf, d: Any) -> Any:
    """The gradient of a leaf, of the leaf's own type, dtype and shape; nobody else holds it."""
    value = leaf.value
    if isinstance(value, np.ndarray):
        if d is None:
            return np.zeros(value.shape, value.dtype)
        d = np.real(d) if np.iscomplexobj(d) and not np.iscomplexobj(value) else d
        return np.array(np.broadcast_to(d, value.shape), dtype=value.dtype)
    if isinstance(value, np.generic):
        return value.dtype.type(0 if d is None else np.asarray(d).reshape(())[()])
    if isinstance(value, complex):
        return complex(0 if d is None else d)
    return float(0.0 if d is None else np.real(d))

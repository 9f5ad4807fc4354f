"""Cotangents at the door: checked against the result on the way in, given the arguments' form on the way out."""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from ..rules.words import with_article
from ..tracer import calls, places
from ..tracer.active import active
from ..tracer.arrays import is_followed
from ..tracer.box import BOXES
from ..tracer.errors import CotangentError, TraceError
from ..tracer.frames import MAPPINGS, NAMESPACE, SETS, Own, native, shown
from ..tracer.kinds import is_one_of, isinstance
from ..tracer.structure import Branch, Leaf, Open, Sealed, Tree, is_namedtuple, leaf_of, positions
from ..tracer.tape import Input, Op, Tape, type_name
from ..tracer.text import bare
from .reverse import dependents


def seeds_of(tree: Tree, dy: Any, path: str = "the cotangent") -> list[tuple[Op, Any]]:
    """Pair each differentiable leaf of a result with its cotangent; raises CotangentError where they do not fit."""
    found: list[tuple[Op, Any]] = []
    todo: list[Iterator[tuple[Tree, Any, str]]] = [iter([(tree, dy, path)])]
    while todo:
        tree, dy, path = next(todo[-1], (None, None, ""))  # type: ignore[assignment]
        if tree is None:
            todo.pop()
            continue
        if dy is None:
            continue
        if (whole := leaf_of(tree)) is not None:
            seed = fitted(whole.value, dy, path)
            if whole.op is not None:
                found.append((whole.op, seed))
        elif isinstance(tree, Sealed):
            raise CotangentError(
                f"{path} must be None: {tree.name}, holds numbers to which no cotangent leads\n{tree.advice}"
            )
        elif isinstance(tree, Open):
            continue
        elif not isinstance(tree, Branch):
            raise CotangentError(
                f"{path} must be None: the value it belongs to has no derivative, as integers, texts and None have none"
            )
        else:
            if native(tree.kind) is None and tree.kind is not types.MappingProxyType:
                must_fit(tree, dy, path)
            todo.append(pieces(tree, dy, path))
    return found


def pieces(tree: Branch, dy: Any, path: str) -> Iterator[tuple[Tree, Any, str]]:
    """The parts of a result's structure, each with that of the cotangent."""
    for key, part in tree.parts.items():
        yield part, piece(tree, dy, key, path), f"{path}[{shown(key)}]"


def must_fit(tree: Branch, dy: Any, path: str) -> None:
    """Raise where a cotangent is not one of an object: nothing in it has the name of one of its attributes."""
    names = [*tree.parts]
    if isinstance(dy, dict):
        fits = {*map(bare, dy)} <= {*names}
    else:
        fits = any(hasattr(dy, name) for name in names) or type(dy) is tree.kind
    if not fits:
        raise CotangentError(
            f"{path} must be a dict with keys among {names}, the attributes of "
            f"{with_article(tree.kind.__name__)}, or an object "
            f"that has them, or None, not {type_of(dy)}"
        )


def piece(tree: Branch, dy: Any, key: Any, path: str) -> Any:
    """The part of a structured cotangent under a key of the result's structure."""
    kind = tree.kind
    base = native(kind)
    if key is NAMESPACE:
        return None
    if type(key) is Own or (base is None and kind is not types.MappingProxyType):
        name = key.name if type(key) is Own else key
        own = isinstance(dy, dict) and base is None
        return dy.get(name) if own else attribute_of(dy, name)
    items = [k for k in tree.parts if type(k) is not Own]
    if base is None or base in MAPPINGS or base in SETS:
        if not isinstance(dy, (dict, types.MappingProxyType)) or {*dy} != {*items}:
            raise CotangentError(f"{path} must be a dict with the keys {items}, or None")
        return dy.get(key)
    like = isinstance(dy, (list, tuple, deque)) and isinstance(dy, tuple) == issubclass(kind, tuple)
    if (
        not like
        or len(dy) != len(items)
        or (is_namedtuple(kind) and not is_one_of(type(dy), (kind, tuple)))
    ):
        raise CotangentError(
            f"{path} must be {with_article(kind.__name__)} of length {len(items)}, not {type_of(dy)}"
        )
    return dy[key]


def attribute_of(dy: Any, name: str) -> Any:
    """An attribute of a structured cotangent, None if it has none; in a run as the run sees it."""
    tracer = active.tracer
    if tracer is None:
        return getattr(dy, name, None)
    return calls.call(tracer, places.user_site(), getattr, (dy, name, None), {})


def refuse_sealed(
    tape: Tape, trees: Iterable[Tree], reached: Callable[[Op], bool], way: str = "by"
) -> None:
    """Raise where there is a derivative by what is behind a seal, or ``of`` it: by one of the ops that are reached."""
    for tree in trees:
        for x in positions(tree):
            if not isinstance(x, Sealed):
                continue
            op = next(filter(reached, x.ops), None)
            if op is not None:
                named = isinstance(op, Input) and op.name != x.name
                what = op.name if named else "numbers that it holds"  # type: ignore[attr-defined]
                by = way == "by"
                why = ", on which the result depends" if by else ""
                other = ", or ask for the derivatives by other arguments only" if by else ""
                raise TraceError(
                    f"{tape.name} ({tape.site.place}): the derivative {way} {x.name}, would leave out {what}{why}\n"
                    f"{x.advice}{other}"
                )


def refuse_sealed_between(
    tape: Tape, ops: list[Op], args: Iterable[Tree], result: Tree, inputs: Iterable[Op]
) -> None:
    """The same before a sweep: of a result by what depends on some inputs, and by arguments that it depends on."""
    args = list(args)
    seals = [x for tree in (result, *args) for x in positions(tree) if isinstance(x, Sealed)]
    if seals:
        outs = [x.op for x in positions(result) if isinstance(x, Leaf) and x.op is not None]
        moving = dependents(ops, inputs)[1]
        refuse_sealed(tape, [result], moving.__contains__, "of")
        refuse_sealed(tape, args, lambda op: not dependents(ops, [op])[1].isdisjoint(outs))


def type_of(value: Any) -> str:
    value = value.value if is_one_of(type(value), BOXES) else value
    length = f" of length {len(value)}" if isinstance(value, (list, tuple, dict)) else ""
    return f"{type(value).__name__ if length else type_name(value)}{length}"


def fitted(value: Any, dy: Any, path: str) -> Any:
    """A cotangent for a leaf with this value, in the leaf's dtype."""
    plain = dy.value if is_one_of(type(dy), BOXES) else dy
    if not is_followed(plain) and not is_number(plain):
        kind = type(plain)
        other = issubclass(kind, np.ndarray) and kind is not np.ndarray
        what = f"one of the class {kind.__name__}" if other else type_of(dy)
        raise CotangentError(f"{path} must be {article(value)}, not {what}")
    if np.shape(plain) != np.shape(value):
        raise CotangentError(
            f"{path} must have the shape {np.shape(value)} of the value it belongs to, not {np.shape(plain)}"
        )
    if np.iscomplexobj(plain) and not np.iscomplexobj(value):
        raise CotangentError(f"{path} is complex, but the value it belongs to is real")
    if is_one_of(type(dy), BOXES):
        return dy
    if isinstance(value, np.ndarray):
        return np.array(plain, dtype=value.dtype)
    if isinstance(value, np.generic):
        return value.dtype.type(plain)
    return complex(plain) if isinstance(value, complex) else float(plain)  # type: ignore[arg-type]


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float, complex, np.number, np.bool_)) and not isinstance(
        value, np.timedelta64
    )


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


def alike(a: Any, b: Any) -> bool:
    """Whether two values are of one type, dtype and shape."""
    return type(a) is type(b) and (
        not isinstance(a, np.ndarray) or (a.dtype == b.dtype and a.shape == b.shape)
    )

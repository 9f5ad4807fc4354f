"""Boxes: the private wrappers in which numbers and arrays travel while a function is being traced.

Words
-----
Box        an immutable number (float, int, complex, NumPy scalar): its ``value`` and the ``op`` that made it.
ArrayBox   an array: a cell that points to the op of its current version (see ``arrays``).
draw       take a plain bool, int or string out of a box: the tape notes the value as a guard.

Instrumented code never meets the methods below: its operations go through ``hooks``. They are for C code
that calls back (``max`` comparing, ``range`` asking for an index), so that what it does is recorded as well;
where C code wants the bare number, a box refuses, because a lost gradient must be an error.
"""

from __future__ import annotations

import operator
import sys
import typing
from collections.abc import Callable
from typing import Any

import numpy as np

from . import meaning, places
from .errors import EscapeError
from .tape import Op


class Box:
    """A number that is being traced."""

    __slots__ = ("op", "value")

    def __init__(self, value: Any, op: Op) -> None:
        self.value = value
        self.op = op

    # What draws a plain value out is a decision of the program, and a guard on the tape.
    def __bool__(self) -> bool:
        return meaning.protocols.draw(self, bool)

    def __index__(self) -> int:
        return meaning.protocols.draw(self, operator.index)

    def __hash__(self) -> int:
        if is_for_typing():  # whose caches outlive the run, and are passed by what cannot be hashed
            raise TypeError(f"unhashable type: '{type(self.value).__name__}'")
        return meaning.protocols.draw(self, hash)

    def __str__(self) -> str:
        return meaning.protocols.draw(self, str)

    def __repr__(self) -> str:
        return meaning.protocols.draw(self, repr)

    def __format__(self, spec: str) -> str:
        return meaning.protocols.draw(self, lambda value: format(value, spec))

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Any:
        return meaning.protocols.iterate(self)

    def __contains__(self, item: Any) -> bool:
        return meaning.protocols.contains(*meaning.protocols.tracer_and_site(), self, item)

    def __getitem__(self, key: Any) -> Any:
        return meaning.protocols.get_item(*meaning.protocols.tracer_and_site(), self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        meaning.protocols.write_item(self, key, value)

    def __getattr__(self, name: str) -> Any:
        return meaning.protocols.box_attribute(self, name)

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        return meaning.protocols.operate(
            ufunc if method == "__call__" else getattr(ufunc, method), args, kwargs
        )

    def __array_function__(self, fn: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return meaning.protocols.operate(fn, args, kwargs)

    # What would hand the bare value to code that records nothing is refused, where it has a derivative.
    def __float__(self) -> float:
        return float(meaning.protocols.given(self, "float()"))

    def __int__(self) -> int:
        return int(meaning.protocols.given(self, "int()"))

    def __complex__(self) -> complex:
        return complex(meaning.protocols.given(self, "complex()"))

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        if type(self) is ArrayBox:  # whose memory somebody could keep
            raise lost(self, "np.asarray()")
        return np.asarray(meaning.protocols.given(self, "np.asarray()")).__array__(*args, **kwargs)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return operator.getitem, ([meaning.protocols.given(self, "pickle or copy")], 0)


class ArrayBox(Box):
    """An array that is being traced: a reference cell to immutable versions.

    ``memory`` is shared by all boxes on the same storage and counts its writes; ``derivation`` says how the array is
    derived from its parent, ``(parent, fn, args, kwargs)``, or is ``None``; ``seen`` is the count of writes at
    which ``op`` was the version of this array. ``viewed`` says whether another array was derived from this one.
    """

    __slots__ = ("derivation", "memory", "seen", "viewed")

    def __init__(self, value: Any, op: Op, memory: Any, view: Any = None) -> None:
        self.value = value
        self.op = op
        self.memory = memory
        self.seen = memory.writes
        self.derivation = view
        self.viewed = False
        if view is not None:
            view[0].viewed = True


BOXES = frozenset((Box, ArrayBox))


def is_for_typing() -> bool:
    """Whether one of the caches of ``typing`` asks for the hash of a box, or of what that is an argument of."""
    frame = sys._getframe(2)
    while frame.f_code.co_name == "__hash__" and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code.co_qualname == CACHE and frame.f_code.co_filename == typing.__file__


CACHE = "_tp_cache.<locals>.decorator.<locals>.inner"


def apart(kind: type) -> None:
    """Give a class of ours a name that no class of the user's has, so that a message shows it (see `plain_calls`)."""
    kind.__qualname__ = f"wengert_{kind.__name__}"
    kind.__name__ = f"wengert.{kind.__qualname__}"


for _cls in BOXES:
    apart(_cls)


def lost(box: Box, where: str) -> EscapeError:
    """The error for a box that C code wants to strip of its tape."""
    site = places.user_site()
    line = (
        places.called_from(site) or site
    )  # which a traceback misses where C code has caught the error
    return EscapeError(
        f"{places.blame(site)}: a traced {type(box.value).__name__} reached code "
        f"that cannot record it (through {where}), so its gradient would be lost\n"
        f"{places.quoted(line)}{places.advice()} "
        "(docs/errors.md#compiled-code)"
    )


def _slot(name: str) -> Any:
    def slot(self: Box, other: Any, modulus: Any = None) -> Any:
        if modulus is not None:
            return meaning.protocols.operate(pow, (self, other, modulus))
        return meaning.protocols.operate_slot(self, name, other)

    return slot


def _unary(op: Callable[[Any], Any]) -> Any:
    return lambda self, *rest: meaning.protocols.operate(op, (self, *rest))


for _name in "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift divmod".split():
    for _slot_name in (f"__{_name}__", f"__r{_name}__"):
        setattr(Box, _slot_name, _slot(_slot_name))
    if _name != "divmod":
        setattr(ArrayBox, f"__i{_name}__", _slot(f"__i{_name}__"))
for _name in "lt le eq ne gt ge".split():
    setattr(Box, f"__{_name}__", _slot(f"__{_name}__"))
for _name in "neg pos invert abs".split():
    setattr(Box, f"__{_name}__", _unary(getattr(operator, f"__{_name}__")))
Box.__round__ = _unary(round)  # type: ignore[attr-defined]

"""What a guard looks at in every call, read at the price of a slot.

Words
-----
slot      a place in the memory of an object that its class has a name for, as ``__slots__`` give it one.
CODE      the name of the slot in which a function keeps its code object; ``__code__`` if there is none.
DTYPE     that of the slot in which an array keeps its dtype; ``dtype`` if there is none.
probes    objects by which is found out, and made sure of, where a slot lies.

A program looks at its function's code in each call, since ``f.__code__ = g.__code__`` (so autoreload in IPython works)
makes another function of it. But ``__code__`` is computed by a C function, which also tells every audit hook: measured
on CPython 3.13, 26 ns, and 365 ns as soon as any package has installed a hook, beside Python functions that take 60 as
a whole. What ``__globals__`` is to a function, the name of one of its slots, there can be for its code as well, and a
slot is read in 2 to 5 ns. So the class is given such a name, read-only as that one is, by the function of CPython's C
interface that makes these names. The same goes for the dtype of arrays, at a quarter of the price. Where the place
cannot be found, or the name does not give what the attribute gives, programs ask for the attribute.
"""

from __future__ import annotations

import ctypes
import gc
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

OBJECT_OR_ERROR, READ_ONLY = 16, 1  # Py_T_OBJECT_EX, Py_READONLY: parts of the stable interface
Probes = Callable[[], Iterator[Any]]


class Member(ctypes.Structure):
    """CPython's ``PyMemberDef``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int),
        ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def slot(kind: type, attribute: str, probes: Probes) -> str:
    """The name under which the objects of a class give what ``attribute`` gives: that of a slot if it can be had."""
    name = f"__wengert_{attribute.strip('_')}__"
    try:
        if not hasattr(kind, name):
            enter(kind, name, offset(kind, attribute, probes))
        return name if is_right(name, attribute, probes) else attribute
    except (
        Exception
    ):  # another Python, or one without ctypes.pythonapi: it is a matter of speed only
        return attribute


def offset(kind: type, attribute: str, probes: Probes) -> int:
    """Where in the objects of a class an attribute lies; raises ValueError unless there is one such place."""
    places = range(0, kind.__basicsize__, ctypes.sizeof(ctypes.c_void_p))
    found = set(places)
    for probe in probes():
        value = getattr(probe, attribute)
        found &= {at for at in places if word_at(id(probe) + at) == id(value)}
    (place,) = found
    return place


def word_at(address: int) -> int | None:
    return ctypes.c_void_p.from_address(address).value


def enter(kind: type, name: str, place: int) -> None:
    """Give the objects of a class a read-only name for what lies at a place in them."""
    member = Member(name.encode(), OBJECT_OR_ERROR, place, READ_ONLY, None)
    api = ctypes.pythonapi
    make, modified, keep = api.PyDescr_NewMember, api.PyType_Modified, api.Py_IncRef
    make.restype, make.argtypes = ctypes.py_object, [ctypes.py_object, ctypes.POINTER(Member)]
    modified.restype, modified.argtypes = None, [ctypes.py_object]
    keep.restype, keep.argtypes = None, [ctypes.py_object]
    keep(member)  # for ever: the name refers to its memory, and outlives this module
    (names,) = gc.get_referents(kind.__dict__)  # what the mapping proxy stands for
    names[name] = make(kind, ctypes.byref(member))
    modified(kind)


def is_right(name: str, attribute: str, probes: Probes) -> bool:
    """Whether a name gives what an attribute gives, and cannot be written to."""
    for probe in probes():
        value = getattr(probe, attribute)
        if getattr(probe, name, None) is not value:
            return False
        try:
            setattr(probe, name, value)
        except AttributeError:
            continue
        return False
    return True


def functions() -> Iterator[Any]:
    """Functions, of which one comes twice, with other code."""

    def changed() -> int:
        return 1

    def other() -> int:
        return 2

    yield from (slot, changed, other)
    changed.__code__ = other.__code__
    yield changed


def arrays() -> Iterator[np.ndarray]:
    for dtype in (float, np.float32, bool, object, ">i2", [("x", float)]):
        yield np.zeros(2, dtype)
    yield np.zeros(2).view(np.int64)
    yield np.zeros((2, 3)).view(np.recarray)[:, 1]


CODE = slot(types.FunctionType, "__code__", functions)
DTYPE = slot(np.ndarray, "dtype", arrays)

"""Whether a class is as it was, at the price of one comparison.

Words
-----
member   what a class holds under a name: itself or from its bases (``static``), or in its own ``__dict__`` (``own``);
         or of what type that is (``sort``), which says whether code of the user's gives it.
tag      the number that CPython gives to a class as it is: it takes it away when the class or one of its bases
         changes, and gives another one when something is looked up again.
stamp    some members of a class, and the tag with which they were last found to be what they were.

How an attribute is found depends on what its class does *not* hold: a property of the same name, a
``__getattribute__``. To ask for each of these names takes 40 ns and more, to compare the tag 30. Where the tag has
changed, the members are looked at, and only if one of them is another, the program is left. The tag has no name in
Python: where it lies in a class is found out by experiment, and where it cannot be found (or with
``WENGERT_STAMPS=0``) each member is a guard.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from typing import Any

from ..tracer.reads import MISSING, static

Member = tuple[str, str, Any]  # a step, a name, and what was found there

WORD = ctypes.sizeof(ctypes.c_uint)


class Stamp:
    """Members of a class, and the tag with which they were last seen: it is right while ``tag[0] == seen[0]``."""

    __slots__ = ("cls", "members", "seen", "tag")

    def __init__(self, cls: type, members: list[Member]) -> None:
        self.cls = cls
        self.members = members
        assert PLACE is not None
        self.tag = words(cls)[PLACE : PLACE + 1]
        self.seen = [0]
        self.held()

    def held(self) -> bool:
        """Whether the members are what they were; then the tag of this moment stands for them."""
        with contextlib.suppress(AttributeError):  # no code of a metaclass runs
            type.__getattribute__(
                self.cls, "wengert"
            )  # for a class that was changed has a tag then
        tag = self.tag[0]
        if not all(found(self.cls, step, name) is value for step, name, value in self.members):
            return False
        self.seen[0] = tag or -1  # none is left: the members are looked at each time
        return True


def found(cls: type, step: str, name: str) -> Any:
    """A member of a class, or MISSING."""
    if step == "attribute":  # of every class, such as ``__mro__``
        return type.__getattribute__(cls, name)
    if step == "own":
        return cls.__dict__.get(name, MISSING)
    value = static(cls, name)
    return type(value) if step == "sort" else value


def words(cls: type) -> memoryview:
    """The memory of a class, which must live as long as this is used."""
    size = vars(type)["__basicsize__"].__get__(type) // WORD * WORD
    return memoryview((ctypes.c_char * size).from_address(id(cls))).cast("B").cast("I")


def find() -> int | None:
    """Where the tag lies in a class: what is 0 after each change, and then something that was never there before."""
    if os.environ.get("WENGERT_STAMPS", "1") == "0":
        return None
    try:
        base = type("base", (), {})
        cls = type("probe", (base,), {})
        memory = words(cls)
        hasattr(cls, "probe")
        first = list(memory)
        hasattr(cls, "probe")
        places = {i for i, x in enumerate(memory) if x == first[i]}
        seen = [first]
        for owner in (cls, base, cls, base):
            owner.probe = len(seen)  # type: ignore[attr-defined]
            places = {i for i in places if memory[i] == 0}
            hasattr(cls, "probe")
            now = list(memory)
            hasattr(cls, "other")
            places = {i for i in places if now[i] == memory[i] != 0}
            places = {i for i in places if all(now[i] != before[i] for before in seen)}
            seen.append(now)
        (place,) = places
        return place
    except Exception:  # another Python, or one without ctypes: it is a matter of speed only
        return None


PLACE = find()


def stamp(cls: type, members: list[Member]) -> Stamp | None:
    """The stamp of some members of a class, if there can be one."""
    return Stamp(cls, members) if PLACE is not None else None

"""What is Wengert's own and deals with boxes itself: the tracer calls it as it is."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import CodeType, FunctionType, MethodType
from typing import Any, TypeVar

from .habits import MADE, OF_FUNCTIONS, lacking
from .kinds import attribute, isinstance

F = TypeVar("F")

intrinsics: set[Any] = set()


def intrinsic(fn: F) -> F:
    """Mark a function of Wengert's own that deals with boxes itself."""
    intrinsics.add(fn)
    return fn


class Intrinsic:
    """An object that is called with boxes as it is; it stands for a function ``f`` with ``options``."""

    __slots__ = ()
    f: Any
    options: tuple[Any, ...]

    def program_key(self) -> Any:
        """What stands for it where programs are kept."""
        raise NotImplementedError

    def reduced(self, made: Made) -> tuple[Any, ...]:
        """How what was ``made`` of ``f`` is pickled."""
        raise NotImplementedError


# What Wengert has made of a function and gives to the user: a partial of a program's function and of its state, for
# of what can have attributes, be pickled and be a method in a class body nothing else is called as fast (18 to 25 ns
# above a bound method on CPython 3.12 to 3.15, 47 on 3.11).
class Made(functools.partial):  # type: ignore[type-arg]
    __slots__ = ("__name__", "__self__")
    __name__: str
    __self__: Intrinsic
    __wrapped__: Any

    def __new__(cls, function: FunctionType, state: Intrinsic, of: Any) -> Made:
        """A new one, which shows the documentation and the place of what it was made ``of``."""
        made = functools.partial.__new__(cls, function, state)
        made.__self__ = state
        made.__name__ = name = function.__name__
        made.__dict__.update(
            __qualname__=name,
            __module__=attribute(of, "__module__"),
            __wrapped__=of,
        )
        return made

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        """The signature and the user's own; on CPython 3.13 ``help`` takes no partial for a function with one."""
        text = getattr(self.__wrapped__, "__doc__", None)
        head = f"{self.__name__}{self.__signature__}"
        found = f"{head}\n\n{text}" if isinstance(text, str) else head
        return self.__dict__.get("__doc__", found)  # type: ignore[no-any-return]

    @__doc__.setter
    def __doc__(self, text: str) -> None:
        self.__dict__["__doc__"] = text

    @property
    def __code__(self) -> CodeType:
        """That of the user's function, by which caches on disk see that it was changed."""
        return inspect.unwrap(self).__code__  # type: ignore[no-any-return, attr-defined]

    @property
    def __annotations__(self) -> dict[str, Any]:  # type: ignore[override]
        """Those of its signature: the ones of this class are not the user's."""
        named = self.__signature__.parameters.items()
        found = {name: x.annotation for name, x in named if x.annotation is not x.empty}
        return vars(self).get("__annotations__", found)  # type: ignore[no-any-return]

    @__annotations__.setter
    def __annotations__(self, types: dict[str, Any]) -> None:
        vars(self)["__annotations__"] = types

    @property
    def __signature__(self) -> inspect.Signature:
        """That of the user's function; a derivative is of the types of the arguments, so nothing is said of it."""
        try:
            found = inspect.signature(self.__wrapped__)
        except (TypeError, ValueError):  # of functions written in C
            found = inspect.signature(lambda *args, **kwargs: None)
        return found.replace(return_annotation=inspect.Signature.empty)

    def __get__(self, obj: Any, owner: Any = None) -> Callable[..., Any]:
        return self if obj is None else MethodType(self, obj)

    def __getattr__(self, name: str) -> Any:
        raise lacking(self, name, OF_FUNCTIONS, MADE)

    def __reduce__(self) -> tuple[Any, ...]:
        return self.__self__.reduced(self)

    def __copy__(self) -> Made:
        return self

    def __deepcopy__(self, memo: Any) -> Made:
        return self

    def __repr__(self) -> str:
        return repr(self.__self__)


Made.__name__ = "function"  # what errors call it
for _member in vars(Made).values():
    if type(_member) is FunctionType:  # properties look at what the user may change
        intrinsic(_member)


def is_state(x: Any) -> bool:
    """Whether an object is the state behind a callable that Wengert has made."""
    return isinstance(x, Intrinsic)


def is_made(f: Any) -> bool:
    """Whether a callable is one that Wengert has made: given to the user, or the bound method of a transform."""
    kind = type(f)
    return kind is Made or (kind is MethodType and isinstance(f.__self__, Intrinsic))


def behind(f: Any) -> Any:
    """The user's function behind what Wengert has made of it, or the callable itself."""
    while is_made(f):
        f = f.__self__.f
    return f

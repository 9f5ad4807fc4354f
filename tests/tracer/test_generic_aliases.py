"""Types with arguments that are traced values: ``Annotated[float, x]``, ``list[x]``, and annotations."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable
from typing import Annotated, Any

import pytest

from wengert import jit, value_and_grad

CUBES: dict[str, Callable[[Any], Any]] = {
    "annotated": lambda x: Annotated[float, x * x].__metadata__[0] * x,
    "of another": lambda x: Annotated[Annotated[float, x], x].__metadata__[1] * x * x,
    "optional": lambda x: typing.Optional[Annotated[float, x]].__args__[0].__metadata__[0] * x * x,
    "literal": lambda x: typing.Literal[x].__args__[0] * x * x,  # type: ignore[valid-type]
    "callable": lambda x: typing.Callable[[x], float].__args__[0] * x * x,  # type: ignore[valid-type]
    "bound": lambda x: (
        typing.TypeVar("T", bound=Annotated[float, x]).__bound__.__metadata__[0] * x * x  # type: ignore
    ),
    "list": lambda x: list[x].__args__[0] * x * x,  # type: ignore[valid-type]
    "list of an annotated": lambda x: (
        list[Annotated[float, x]].__args__[0].__metadata__[0] * x * x  # type: ignore
    ),
    "union": lambda x: (tuple[x] | None).__args__[0].__args__[0] * x * x,  # type: ignore
    "compared": lambda x: x * x * x if Annotated[float, x] == Annotated[float, x] else x,
}


@pytest.mark.parametrize("name", CUBES)
def test_a_type_keeps_its_arguments_traced(name: str) -> None:
    """The caches of ``typing`` have seen the same values before, and see no boxes."""
    assert CUBES[name](2.0) == 8.0
    for _ in range(2):
        assert value_and_grad(CUBES[name])(2.0) == (8.0, 12.0)
        assert jit(CUBES[name])(2.0) == CUBES[name](2.0) == 8.0


def kinds_in(value: Any) -> set[type]:
    """The types of what nested aliases are made of."""
    if isinstance(value, types.FunctionType):
        return kinds_in(tuple(value.__annotations__.values()))
    if isinstance(value, tuple):
        return {kind for x in value for kind in kinds_in(x)}
    held = (*getattr(value, "__args__", ()), *getattr(value, "__metadata__", ()))
    return kinds_in(held) if held else {type(value)}


KEPT: dict[str, Callable[[Any], Any]] = {
    "annotated": lambda x: Annotated[float, x],
    "list": lambda x: list[x],  # type: ignore[valid-type]
    "nested": lambda x: dict[str, list[x] | None],  # type: ignore[valid-type]
    "unpacked": lambda x: next(iter(tuple[x])),  # type: ignore[valid-type, call-overload]
}


@pytest.mark.parametrize("name", KEPT)
def test_a_type_that_is_left_behind_holds_plain_values(name: str) -> None:
    kept: list[Any] = []

    def f(x: float) -> float:
        kept.append(KEPT[name](x))
        return x

    value_and_grad(f)(2.0)
    assert kept[0] == KEPT[name](2.0) and str(kept[0]) == str(KEPT[name](2.0))
    assert kinds_in(kept[0]) <= {float, type, type(None)}


@pytest.mark.parametrize("asked", [False, True])
def test_annotations_that_are_left_behind_hold_plain_values(asked: bool) -> None:
    kept: list[Any] = []
    scope: dict[str, Any] = {"kept": kept, "Annotated": Annotated}
    body = (  # where annotations are no strings
        "def f(x, asked):\n"
        "    def g(a: x, b: list[x], c: Annotated[float, x]): pass\n"
        "    kept.append(g)\n"
        "    return g.__annotations__['a'] * x if asked else x\n"
    )
    exec(compile(body, __file__, "exec", dont_inherit=True), scope)
    value_and_grad(scope["f"])(2.0, asked)
    assert kinds_in(kept[0]) == {float, type}

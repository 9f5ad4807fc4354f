"""Columns: one value for each iteration of a loop, as loop functions take and return them."""

from __future__ import annotations

import operator
from typing import Any


class Column(list[Any]):
    """One value for each iteration of a loop. Inside a program a plain list will do, which is made sooner."""

    __slots__ = ()

    def __add__(self, other: Any) -> Any:
        return Column(map(operator.add, self, other))


class AddColumns:
    """The sums of the values of two columns."""

    __name__ = "add_columns"

    def __call__(self, x: list[Any], y: list[Any]) -> Column:
        return Column(map(operator.add, x, y))

    def __reduce__(self) -> str:
        return "add_columns"


add_columns = AddColumns()

"""Columns: one value for each iteration of a loop, as loop functions take and return them."""

from __future__ import annotations

import itertools
import operator
from typing import Any

import numpy as np

from ..tracer.kinds import isinstance


class Column(list[Any]):
    """One value for each iteration of a loop. Inside a program a plain list will do, which is made sooner."""

    __slots__ = ()

    def __add__(self, other: Any) -> Any:
        return Column(map(operator.add, self, other))


class AddColumns:
    """The sums of the values of two columns."""

    __name__ = "add_columns"
    steady = True

    def __call__(self, x: list[Any], y: list[Any]) -> Column:
        return Column(map(operator.add, x, y))

    def __reduce__(self) -> str:
        return "add_columns"


class MakeColumn:
    """A column of given values, or of the numbers or rows of an array."""

    __name__ = "make_column"
    steady = True

    def __call__(self, values: Any) -> Column:
        if isinstance(values, np.ndarray) and values.ndim == 1:
            values = values.tolist()
        return Column(values)

    def __reduce__(self) -> str:
        return "make_column"


class TakeColumn:
    """A part of a column."""

    __name__ = "take_column"
    steady = True

    def __call__(self, column: list[Any], part: slice) -> Column:
        return Column(column[part])

    def __reduce__(self) -> str:
        return "take_column"


class FillColumn:
    """A column that holds one number everywhere."""

    __name__ = "fill_column"
    steady = True

    def __call__(self, value: float, count: int) -> Column:
        return Column([value] * count)

    def __reduce__(self) -> str:
        return "fill_column"


class JoinColumns:
    """A column of the values of others, one after the other."""

    __name__ = "join_columns"
    steady = True

    def __call__(self, *parts: Any) -> Column:
        return Column(itertools.chain(*parts))

    def __reduce__(self) -> str:
        return "join_columns"


add_columns, make_column = AddColumns(), MakeColumn()
take_column, join_columns, fill_column = TakeColumn(), JoinColumns(), FillColumn()

"""The stages that a function goes through, from its tape to what really runs, each to be printed."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...tracer.entrances import entrance
from ...tracer.structure import has_leaf
from ...tracer.tape import Tape
from ..api import reverse, trace
from ..explain import explain
from ..gradients import value_and_grad
from ..jit import jit
from ..pullbacks import pullback

CALLS = 3  # after which a program is kept


class Stages:
    """The stages of one call, each but the tape made when it is asked for.

    ``tape`` is what the call computed; ``pairs``, ``naive`` and ``final`` are the forms of its reverse sweep (see
    `reverse`); ``program`` is the source of what the JIT keeps and runs, with its guards, loops and branches. For that
    the function is called three times, as often as it takes.
    """

    def __init__(
        self, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self.f, self.args, self.kwargs = f, *as_they_are(args, kwargs)
        self.tape: Tape = trace(f, *args, **kwargs)

    @functools.cached_property
    def pairs(self) -> Tape:
        return reverse(self.tape, form="pairs")

    @functools.cached_property
    def naive(self) -> Tape:
        return reverse(self.tape, form="naive")

    @functools.cached_property
    def final(self) -> Tape:
        return reverse(self.tape)

    @functools.cached_property
    def program(self) -> str:
        result = getattr(self.tape.result, "value", self.tape.result)
        number = np.shape(result) == () and isinstance(result, (float, np.floating))
        made: Any = functools.partial(pullback, self.f)
        if number:  # by all that the forms before have the gradient of
            keys = [
                i if i < len(self.args) else x.name
                for i, x in enumerate(self.tape.parameters or ())
                if has_leaf(x.tree)
            ]
            made = value_and_grad(self.f, tuple(keys) if len(keys) > 1 else keys[0] if keys else 0)
        with jit(True):
            for _ in range(CALLS):
                args, kwargs = as_they_are(self.args, self.kwargs)
                made(*args, **kwargs)
        told = explain(self.f)
        return told.source or str(told)

    @entrance
    def __str__(self) -> str:
        parts = []
        for title in ("tape", "pairs", "naive", "final", "program"):
            parts += [f"{title}\n{'-' * len(title)}", str(getattr(self, title)), ""]
        return "\n".join(parts[:-1])

    __repr__ = __str__


def as_they_are(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """Copies of arguments, which the function may change; where there are none, these."""
    try:
        return copy.deepcopy((args, kwargs))
    except Exception:
        return args, kwargs


@entrance
def stages(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Stages:
    """The way from ``f(*args, **kwargs)`` to its gradient, stage by stage; see `Stages`.

    >>> from wengert import stages
    >>> way = stages(lambda m, x, b: m * x + b, 2.0, 3.0, 1.0)
    >>> "back4(" in str(way.pairs), "dx = mul(1.0, m)" in str(way.naive), way.final.result[1][1].name
    (True, True, 'm')
    """
    return Stages(f, args, kwargs)

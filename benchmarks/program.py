"""A program: a function somebody might write, its arguments, and its gradient written by hand.

The functions are ordinary Python over the global names `np` and `math`. A peer gets the same code with
other modules behind these names (`rebound`); where that is not enough, `variants` holds what it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Program:
    """One row of the tables.

    function    the program; returns a number
    hand        called with the same arguments, returns the value and the gradients, as ``value_and_grad`` does
    arguments   makes the arguments; its keyword arguments are sizes
    tiny        sizes at which the tests compare `hand` with finite differences
    argnums     the arguments that the gradient is taken by
    bound       what the cached call may cost, as a multiple of `hand`
    variants    by peer: names to bind anew in the function's module, another function, or why there is none
    """

    name: str
    function: Callable[..., Any]
    hand: Callable[..., tuple[Any, Any]]
    arguments: Callable[..., tuple[Any, ...]]
    tiny: Mapping[str, int]
    argnums: int | tuple[int, ...]
    bound: float
    variants: Mapping[str, Mapping[str, Any] | Callable[..., Any] | str] = field(
        default_factory=dict
    )

    def written_for(self, peer: str, **names: Any) -> Callable[..., Any]:
        """The function as `peer` gets it, with `names` bound anew; raises `Skipped` where there is none."""
        variant = self.variants.get(peer, {})
        if isinstance(variant, str):
            raise Skipped(variant)
        if callable(variant):
            return variant
        return rebound(self.function, **names, **variant)


class Skipped(Exception):
    """There is nothing to measure, and this is why."""


def rebound(function: Callable[..., Any], **names: Any) -> Callable[..., Any]:
    """The same function, and the functions of its module that it calls, with other values behind global names."""
    world = {**function.__globals__, **names}
    for name, value in function.__globals__.items():
        own = isinstance(value, FunctionType) and value.__module__ == function.__module__
        if own and name not in names:
            world[name] = FunctionType(
                value.__code__, world, name, value.__defaults__, value.__closure__
            )
    return world[function.__name__]


# ------------------------------------------------------------------------------------ nested structures


def leaves(tree: Any) -> list[Any]:
    """The numbers and arrays in nested lists, tuples and dicts, by sorted keys."""
    if isinstance(tree, dict):
        return [leaf for key in sorted(tree) for leaf in leaves(tree[key])]
    if isinstance(tree, (list, tuple)):
        return [leaf for item in tree for leaf in leaves(item)]
    return [tree]


def mapped(function: Callable[[Any], Any], tree: Any) -> Any:
    """The same structure with `function` of each leaf."""
    if isinstance(tree, dict):
        done = {key: mapped(function, tree[key]) for key in sorted(tree)}  # as `leaves` goes
        return {key: done[key] for key in tree}
    if isinstance(tree, (list, tuple)):
        return type(tree)(mapped(function, item) for item in tree)
    return function(tree)


def disagreement(found: Any, expected: Any, tolerance: float = 1e-8) -> str | None:
    """In words, where values and gradients differ by more than rounding; None where they agree."""
    ours, theirs = leaves(found), leaves(expected)
    if len(ours) != len(theirs):
        return f"{len(ours)} leaves instead of {len(theirs)}"
    for position, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        a, b = np.asarray(a, float), np.asarray(b, float)
        if a.shape != b.shape:
            return f"leaf {position} has shape {a.shape} instead of {b.shape}"
        scale = np.max(np.abs(b), initial=0.0)
        error = np.max(np.abs(a - b), initial=0.0)
        if not error <= tolerance * scale:
            return f"leaf {position} is off by {error:.1e}, its size is {scale:.1e}"
    return None

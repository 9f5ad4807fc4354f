"""``grad`` and ``value_and_grad``: a function becomes the function that gives its gradient.

Words
-----
argnums   the numbers of the positional arguments with respect to which the gradient is taken.
aux       what a function returns beside the number that is differentiated.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from ..tracer.active import active
from ..tracer.errors import CotangentError, TraceError
from ..tracer.intrinsic import intrinsic
from ..tracer.kinds import attribute, is_one_of, isinstance
from ..tracer.protocols import plain_of
from ..tracer.reads import Reads
from ..tracer.run import Run, run
from ..tracer.session import Tracer
from ..tracer.structure import Branch, Leaf, Sealed, Tree, leaves
from ..tracer.tape import NOWHERE, Input, Op, Tape, type_name
from ..tracer.tracebacks import entrance
from .api import InnerPullback, Pullback, decided_by, inner_pullback
from .cotangents import seeds_of
from .dispatch import Dispatcher, traced_run, written
from .pickling import at_place, place_of
from .programs import Builder, Program
from .silence import silent


class Gradient(Dispatcher):
    """The gradient of a function; see `grad` and `value_and_grad`."""

    __slots__ = ("argnums", "has_aux", "primitives", "with_value")

    def __init__(
        self,
        f: Callable[..., Any],
        argnums: int | Collection[int],
        with_value: bool,
        has_aux: bool,
        primitives: Any = None,
    ) -> None:
        self.primitives = decided_by(primitives)
        self.argnums = checked_argnums(argnums)
        self.with_value = with_value
        self.has_aux = has_aux
        options = (self.argnums, with_value, has_aux)
        super().__init__(f, "value_and_grad" if with_value else "grad", options)

    def __reduce__(self) -> Any:
        if self.primitives is not None:
            raise TypeError(
                f"{self.__name__} cannot be pickled: its primitives are chosen by a function"
            )
        place = place_of(self.bound(), self.f)
        if place is not None:
            return state_at, place
        make = value_and_grad if self.with_value else grad
        return _state_of, (make, self.f, self.argnums, self.has_aux)

    def title(self) -> str:
        argnums = f", argnums={self.argnums!r}" if self.argnums != 0 else ""
        options = argnums + (", has_aux=True" if self.has_aux else "")
        return written("value_and_grad" if self.with_value else "grad", self.f, options)

    @property
    def numbers(self) -> tuple[int, ...]:
        return (self.argnums,) if isinstance(self.argnums, int) else self.argnums

    def check_arguments(self, args: tuple[Any, ...]) -> None:
        for i in self.numbers:
            if not -len(args) <= i < len(args):
                raise TraceError(f"argnums is {i}, but {len(args)} positional arguments were given")

    def inside(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.check_arguments(args)
        assert active.tracer is not None
        value, back = inner_pullback(active.tracer, self.f, args, kwargs, False, self.primitives)
        return self.answer(value, back, args)

    def dispatch(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        drawn: list[Any],
        left: Program | None,
    ) -> Any:
        if self.primitives is None:
            return super().dispatch(args, kwargs, drawn, left)
        return self.traced(args, kwargs, None, drawn)[0]  # a predicate is asked at each call

    def traced(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], reads: Reads | None, drawn: list[Any]
    ) -> tuple[Any, Run]:
        self.check_arguments(args)
        # What a program has drawn for pullbacks as well is taken over by a run that has them in it.
        if (reads is not None or drawn) and self.entry().whole:

            def then(tracer: Tracer, done: Run, value: Any) -> Any:
                ops = tracer.tape.ops
                back = InnerPullback(done, tracer, 0, len(ops))
                ops.append(Op(silent, (), None, NOWHERE, tracer.tape))
                tracer.last = True
                return self.answer(value, back, args)

            done = run(self.f, args, kwargs, reads=reads, drawn=drawn, then=then)
            return done.value, done
        if self.primitives is None:
            done = traced_run(self.f, args, kwargs, reads=reads, drawn=drawn)
        else:
            done = run(self.f, args, kwargs, primitives=self.primitives)
        return self.answer(done.value, Pullback(done), args), done

    def answer(self, value: Any, back: Any, args: tuple[Any, ...]) -> Any:
        """The value and the gradients of a run that has just been made."""
        tree = self.differentiated(back.done)
        for i in self.numbers:
            check_argument(self.f, i, back.done.args[i], args[i])
        gradients = back.pull(seeds_of(tree, one(self.f, tree)), self.numbers)
        chosen: Any = tuple([gradients[i] for i in self.numbers])
        if isinstance(self.argnums, int):
            chosen = chosen[0]
        if self.with_value:
            return value, chosen
        return (chosen, value[1]) if self.has_aux else chosen

    def differentiated(self, done: Run) -> Tree:
        """The tree of the number that is differentiated."""
        tree = done.result
        if self.has_aux:
            if not isinstance(tree, Branch) or tree.kind is not tuple or len(tree.parts) != 2:
                raise TraceError(f"{name_of(self.f)} must return (value, aux) with has_aux=True")
            tree = tree.parts[0]
        return tree

    def build(self, done: Run) -> Program:
        builder = Builder(done, self.__name__, self.entry().names)
        if done.whole:
            return builder.build([], [], "{value}")
        tree = self.differentiated(done)
        seeds = [
            (op, 1.0 if isinstance(op.value, float) else d)
            for op, d in seeds_of(tree, one(self.f, tree))
        ]
        gradients = "{gradient}" if isinstance(self.argnums, int) else "({gradients})"
        answer = gradients
        if self.with_value:
            answer = f"({{value}}, {gradients})"
        elif self.has_aux:
            answer = f"({gradients}, {{aux}})"
        numbers = [i % len(done.args) for i in self.numbers]
        return builder.build(numbers, seeds, answer)


def state_at(module: str, name: str) -> Any:
    """The state behind what Wengert made of a function and that stands in a module under the function's name."""
    return at_place(module, name).__self__


def _state_of(make: Callable[..., Any], f: Any, argnums: Any, has_aux: bool) -> Any:
    """The state behind a gradient, when it is unpickled."""
    return make(f, argnums, has_aux).__self__


def checked_argnums(argnums: int | Collection[int]) -> int | tuple[int, ...]:
    """``argnums`` as an int or a tuple of ints; raises TraceError for anything else."""
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    if (
        isinstance(numbers, str)
        or not isinstance(numbers, Collection)
        or not all(type(i) is int for i in numbers)
    ):
        raise TraceError(f"argnums must be an int or several ints, not {argnums!r}")
    return argnums if isinstance(argnums, int) else tuple(argnums)


def name_of(f: Any) -> str:
    code = attribute(f, "__code__")
    name = attribute(f, "__name__", type(f).__name__)
    return f"{name} ({code.co_filename}:{code.co_firstlineno})" if code is not None else name


def check_argument(f: Any, number: int, tree: Tree, value: Any) -> None:
    kind = type(plain_of(value))
    other = issubclass(kind, np.ndarray) and not is_one_of(kind, (np.ndarray, np.memmap))
    if other or not any(True for _ in leaves(tree)):
        what = type_name(plain_of(value)) if kind is np.ndarray else kind.__name__
        advice = f"{tree.advice}, or " if isinstance(tree, Sealed) else ""
        advice = "convert it with np.array(), or " if other else advice
        raise TraceError(
            f"argument {number} of {name_of(f)} is a {what} without a derivative; "
            f"{advice}choose other arguments with argnums"
        )


def one(f: Any, tree: Tree) -> Any:
    """The cotangent 1 for a result that must be a real number."""
    if not isinstance(tree, Leaf) or np.shape(tree.value) != () or np.iscomplexobj(tree.value):
        kind = (
            "a structure"
            if not isinstance(tree, Leaf)
            else f"of type {Input('', tree.value, Tape()).type}"
        )
        raise CotangentError(
            f"{name_of(f)} must return a real number to have a gradient, but its value is {kind}; "
            "use pullback, and give it a cotangent"
        )
    value = tree.value
    return (
        value.dtype.type(1)
        if isinstance(value, np.generic)
        else np.ones((), getattr(value, "dtype", float))[()]
    )


@intrinsic
@entrance
def grad(
    f: Callable[..., Any],
    argnums: int | Collection[int] = 0,
    has_aux: bool = False,
    primitives: Collection[Any] | Callable[..., bool] | None = None,
) -> Callable[..., Any]:
    """The function that returns the gradient of ``f`` with respect to the arguments numbered ``argnums``.

    ``f`` must return a real number (with ``has_aux``: a pair of one and of anything else, which is returned beside
    the gradient). The gradient has the structure, shapes and dtypes of the argument; for several argnums it is a tuple.
    With ``primitives`` (see `trace`) what they name is differentiated by its rule and all else is looked into; no
    program is kept then, and a primitive without a rule is an error.

    >>> grad(lambda x: x * x * x)(2.0)
    12.0
    """
    return Gradient(f, argnums, False, has_aux, primitives).bound()


@intrinsic
@entrance
def value_and_grad(
    f: Callable[..., Any],
    argnums: int | Collection[int] = 0,
    has_aux: bool = False,
    primitives: Collection[Any] | Callable[..., bool] | None = None,
) -> Callable[..., Any]:
    """Like `grad`, but the returned function gives ``(value, gradient)`` from one run.

    With ``has_aux`` the value is the pair that ``f`` returned.

    >>> value_and_grad(lambda x: x * x)(3.0)
    (9.0, 6.0)
    """
    return Gradient(f, argnums, True, has_aux, primitives).bound()

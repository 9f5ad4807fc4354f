"""``grad`` and ``value_and_grad``: a function becomes the function that gives its gradient.

Words
-----
argnums   the numbers or names of the arguments with respect to which the gradient is taken (see ``argnums``).
aux       what a function returns beside the number that is differentiated.
"""

# The first overload that fits is the most exact one.
# mypy: disable-error-code="overload-overlap"

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from types import FunctionType, MethodType
from typing import Any, Concatenate, Literal, Unpack, overload

import numpy as np

from ..tracer.active import active
from ..tracer.errors import CotangentError, TraceError
from ..tracer.intrinsic import intrinsic
from ..tracer.kinds import is_one_of, isinstance
from ..tracer.protocols import plain_of
from ..tracer.reads import MISSING, Reads
from ..tracer.run import Run, in_full, run
from ..tracer.session import Tracer
from ..tracer.structure import Leaf, Tree, leaves
from ..tracer.tape import NOWHERE, Op
from .api import InnerPullback, Pullback, decided_by, inner_pullback
from .argnums import (
    Argnums,
    by_position,
    checked_argnums,
    checked_aux,
    chosen,
    indices,
    main_tree,
    options_text,
    refusing,
)
from .cache import Entry
from .cotangents import seeds_of
from .dispatch import Dispatcher, traced_run, written
from .programs import Builder, Program
from .refused import no_derivative, not_a_number
from .silence import silent
from .typed import A, Aux, B, C, N, Options, P, S, T


class Gradient(Dispatcher):
    """The gradient of a function; see `grad` and `value_and_grad`."""

    __slots__ = ("argnums", "has_aux", "primitives", "with_value")

    def __init__(
        self,
        f: Callable[..., Any],
        argnums: Argnums,
        with_value: bool,
        has_aux: bool,
        primitives: Any = None,
    ) -> None:
        self.primitives = decided_by(primitives)
        self.argnums = checked_argnums(argnums)
        self.with_value = with_value
        self.has_aux = checked_aux(has_aux)
        options = (self.argnums, with_value, has_aux)
        super().__init__(f, "value_and_grad" if with_value else "grad", options)

    def anew(self) -> tuple[Any, ...]:
        if self.primitives is not None:
            raise TypeError(
                f"{self.__name__} cannot be pickled: its primitives are chosen by a function\n"
                "send f, and take the gradient there"
            )
        return self.maker(), (self.f, self.argnums, self.has_aux)

    def maker(self) -> Callable[..., Any]:
        """The function of ours that makes such a state of ``f``."""
        return value_and_grad if self.with_value else grad

    def title(self) -> str:
        options = options_text(self.argnums, has_aux=self.has_aux)
        return written("value_and_grad" if self.with_value else "grad", self.f, options)

    def never(self) -> str | None:
        why = "`primitives` decides, at each call, what is recorded"
        return why if self.primitives is not None else None

    def chosen(self, args: Sequence[Any], kwargs: Collection[str]) -> list[int | str]:
        """The arguments of a call by which it is differentiated; raises where they were not given."""
        return chosen(self.f, self.argnums, len(args), kwargs)

    def inside(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.chosen(args, kwargs)
        assert active.tracer is not None
        value, back = inner_pullback(active.tracer, self.f, args, kwargs, False, self.primitives)
        return self.answer(value, back, args, kwargs)

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
        self.chosen(args, kwargs)
        # What a program has drawn for pullbacks as well is taken over by a run that has them in it.
        if (reads is not None or drawn) and self.entry().whole:

            def then(tracer: Tracer, done: Run, value: Any) -> Any:
                ops = tracer.tape.ops
                back = InnerPullback(done, tracer, 0, len(ops))
                ops.append(Op(silent, (), None, NOWHERE, tracer.tape))
                tracer.last = True
                return self.answer(value, back, args, kwargs)

            done = run(self.f, args, kwargs, reads=reads, drawn=drawn, then=then)
            return done.value, done
        if self.primitives is None:
            done = traced_run(self.f, args, kwargs, reads=reads, drawn=drawn)
        else:
            done = run(self.f, args, kwargs, primitives=self.primitives)
        return self.answer(done.value, Pullback(done), args, kwargs), done

    def answer(self, value: Any, back: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The value and the gradients of a run that has just been made."""
        keys = self.chosen(args, kwargs)
        tree = self.differentiated(back.done)
        for key in keys:
            given = args[key] if isinstance(key, int) else kwargs[key]
            check_argument(self.f, key, back.done.argument(key), given)
        main = value[0] if self.has_aux else value
        found = back.pull(seeds_of(tree, one(self.f, tree, main)), keys)
        gradients: Any = tuple([found[k] if isinstance(k, int) else found[-1][k] for k in keys])
        if type(self.argnums) is not tuple:
            gradients = gradients[0]
        if self.with_value:
            return value, gradients
        return (gradients, value[1]) if self.has_aux else gradients

    def differentiated(self, done: Run) -> Tree:
        """The tree of the number that is differentiated."""
        return main_tree(self.f, done.result) if self.has_aux else done.result

    def folded(
        self, entry: Entry, args: tuple[Any, ...], kwargs: dict[str, Any], drawn: list[Any]
    ) -> Any:
        function = type(self.f) in (FunctionType, MethodType)
        given = by_position(self.f, args, kwargs) if function else None
        if given is None:
            return MISSING
        keys = indices(self.f, self.chosen(args, kwargs))
        return self.by_region(entry, self.f, given, keys, self.answer_text, drawn, self.has_aux)

    @property
    def answer_text(self) -> str:
        """The format of what a call gives (see `Builder.build`)."""
        gradients = "({gradients})" if type(self.argnums) is tuple else "{gradient}"
        if self.with_value:
            return f"({{value}}, {gradients})"
        return f"({gradients}, {{aux}})" if self.has_aux else gradients

    def build(self, done: Run) -> Program:
        builder = Builder(done, self.__name__, self.entry().names)
        if done.whole:
            return builder.build([], [], "{value}")
        tree = self.differentiated(done)
        seeds = [
            (op, 1.0 if isinstance(op.value, float) else d)
            for op, d in seeds_of(tree, one(self.f, tree, None))
        ]
        return builder.build(self.chosen(done.args, done.kwargs), seeds, self.answer_text)


class Debugged(Gradient):
    """A gradient that raises where a NaN or an infinity is born; all its calls are traced."""

    __slots__ = ()

    def never(self) -> str | None:
        why = "debug=True looks at each operation of each call"
        return why

    def inside(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        from .tools.nans import must_be_finite

        tracer = active.tracer
        assert tracer is not None
        if tracer.reads is not None:
            tracer.reads.problem("debug=True looks at each operation of each call")
        start = len(tracer.tape.ops)
        answer = super().inside(args, kwargs)
        must_be_finite(in_full(self.f), answer, tracer.tape.ops[start:])
        return answer

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if active.tracer is not None:
            return self.inside(args, kwargs)
        from .tools.nans import CheckedPullback, checked_run

        done, callers = checked_run(self.f, args, kwargs, primitives=self.primitives)
        return self.answer(done.value, CheckedPullback(done, callers), args, kwargs)

    def maker(self) -> Callable[..., Any]:
        return partial(super().maker(), debug=True)


def check_argument(f: Any, key: int | str, tree: Tree, value: Any) -> None:
    kind = type(plain_of(value))
    other = issubclass(kind, np.ndarray) and not is_one_of(kind, (np.ndarray, np.memmap))
    if other or not any(True for _ in leaves(tree)):
        raise TraceError(no_derivative(f, key, tree, value))


def one(f: Any, tree: Tree, value: Any) -> Any:
    """The cotangent 1 for a result that must be a real number."""
    if not isinstance(tree, Leaf) or np.shape(tree.value) != () or np.iscomplexobj(tree.value):
        raise CotangentError(not_a_number(f, tree, value))
    plain = tree.value
    return (
        plain.dtype.type(1)
        if isinstance(plain, np.generic)
        else np.ones((), getattr(plain, "dtype", float))[()]
    )


@overload
def grad(
    f: Callable[Concatenate[A, P], N],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    **options: Unpack[Options],
) -> Callable[Concatenate[A, P], A]: ...
@overload
def grad(
    f: Callable[Concatenate[S, B, P], N],
    argnums: Literal[1],
    has_aux: Literal[False] = False,
    **options: Unpack[Options],
) -> Callable[Concatenate[S, B, P], B]: ...
@overload
def grad(
    f: Callable[Concatenate[A, B, P], N],
    argnums: tuple[Literal[0], Literal[1]],
    has_aux: Literal[False] = False,
    **options: Unpack[Options],
) -> Callable[Concatenate[A, B, P], tuple[A, B]]: ...
@overload
def grad(
    f: Callable[Concatenate[S, T, C, P], N],
    argnums: Literal[2],
    has_aux: Literal[False] = False,
    **options: Unpack[Options],
) -> Callable[Concatenate[S, T, C, P], C]: ...
@overload
def grad(
    f: Callable[Concatenate[A, P], N],
    argnums: tuple[Literal[0]],
    has_aux: Literal[False] = False,
    **options: Unpack[Options],
) -> Callable[Concatenate[A, P], tuple[A]]: ...
@overload
def grad(
    f: Callable[Concatenate[A, B, C, P], N],
    argnums: tuple[Literal[0], Literal[1], Literal[2]],
    has_aux: Literal[False] = False,
    **options: Unpack[Options],
) -> Callable[Concatenate[A, B, C, P], tuple[A, B, C]]: ...
@overload
def grad(
    f: Callable[P, N],
    argnums: Argnums = 0,
    has_aux: Literal[False] = False,
    **options: Unpack[Options],
) -> Callable[P, Any]: ...
@overload
def grad(
    f: Callable[Concatenate[A, P], tuple[N, Aux]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
    **options: Unpack[Options],
) -> Callable[Concatenate[A, P], tuple[A, Aux]]: ...
@overload
def grad(
    f: Callable[Concatenate[S, B, P], tuple[N, Aux]],
    argnums: Literal[1],
    *,
    has_aux: Literal[True],
    **options: Unpack[Options],
) -> Callable[Concatenate[S, B, P], tuple[B, Aux]]: ...
@overload
def grad(
    f: Callable[Concatenate[A, B, P], tuple[N, Aux]],
    argnums: tuple[Literal[0], Literal[1]],
    *,
    has_aux: Literal[True],
    **options: Unpack[Options],
) -> Callable[Concatenate[A, B, P], tuple[tuple[A, B], Aux]]: ...
@overload
def grad(
    f: Callable[Concatenate[S, T, C, P], tuple[N, Aux]],
    argnums: Literal[2],
    *,
    has_aux: Literal[True],
    **options: Unpack[Options],
) -> Callable[Concatenate[S, T, C, P], tuple[C, Aux]]: ...
@overload
def grad(
    f: Callable[Concatenate[A, P], tuple[N, Aux]],
    argnums: tuple[Literal[0]],
    *,
    has_aux: Literal[True],
    **options: Unpack[Options],
) -> Callable[Concatenate[A, P], tuple[tuple[A], Aux]]: ...
@overload
def grad(
    f: Callable[Concatenate[A, B, C, P], tuple[N, Aux]],
    argnums: tuple[Literal[0], Literal[1], Literal[2]],
    *,
    has_aux: Literal[True],
    **options: Unpack[Options],
) -> Callable[Concatenate[A, B, C, P], tuple[tuple[A, B, C], Aux]]: ...
@overload
def grad(
    f: Callable[P, tuple[N, Aux]],
    argnums: Argnums = 0,
    *,
    has_aux: Literal[True],
    **options: Unpack[Options],
) -> Callable[P, tuple[Any, Aux]]: ...
@intrinsic
@refusing
def grad(
    f: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    debug: bool = False,
    primitives: Collection[Any] | Callable[..., bool] | None = None,
) -> Callable[..., Any]:
    """The function that returns the gradient of ``f`` with respect to the arguments that ``argnums`` names.

    An argnum is the number of a positional argument, from 0 on, or the name of a parameter, however it is passed; for
    several of them the gradient is a tuple. ``f`` must return a real number (with ``has_aux``: a pair of one and of
    anything else, which is returned beside the gradient). The gradient has the structure, shapes and dtypes of the
    argument. With ``debug`` a call raises `NonFiniteError` (a `FloatingPointError`) at the line where a NaN or an
    infinity is born, in the run or in the reverse sweep; such calls are traced each time. With ``primitives`` (see
    `trace`) what they name is differentiated by its rule and all else is looked into; no program is kept then, and a
    primitive without a rule is an error.

    Raises `TraceError` for an argument that was not given or has no derivative, `CotangentError` where ``f`` does not
    return a real number, and what `pullback` raises.

    >>> grad(lambda x: x * x * x)(2.0)
    12.0
    >>> grad(lambda x, *, rate: rate * x * x, argnums="rate")(2.0, rate=0.5)
    4.0
    """
    return (Debugged if debug else Gradient)(f, argnums, False, has_aux, primitives).made()


@overload
def value_and_grad(
    f: Callable[Concatenate[A, P], N],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    **options: Unpack[Options],
) -> Callable[Concatenate[A, P], tuple[N, A]]: ...
@overload
def value_and_grad(
    f: Callable[Concatenate[S, B, P], N],
    argnums: Literal[1],
    has_aux: Literal[False] = False,
    **options: Unpack[Options],
) -> Callable[Concatenate[S, B, P], tuple[N, B]]: ...
@overload
def value_and_grad(
    f: Callable[Concatenate[A, B, P], N],
    argnums: tuple[Literal[0], Literal[1]],
    has_aux: Literal[False] = False,
    **options: Unpack[Options],
) -> Callable[Concatenate[A, B, P], tuple[N, tuple[A, B]]]: ...
@overload
def value_and_grad(
    f: Callable[Concatenate[S, T, C, P], N],
    argnums: Literal[2],
    has_aux: Literal[False] = False,
    **options: Unpack[Options],
) -> Callable[Concatenate[S, T, C, P], tuple[N, C]]: ...
@overload
def value_and_grad(
    f: Callable[Concatenate[A, P], N],
    argnums: tuple[Literal[0]],
    has_aux: Literal[False] = False,
    **options: Unpack[Options],
) -> Callable[Concatenate[A, P], tuple[N, tuple[A]]]: ...
@overload
def value_and_grad(
    f: Callable[Concatenate[A, B, C, P], N],
    argnums: tuple[Literal[0], Literal[1], Literal[2]],
    has_aux: Literal[False] = False,
    **options: Unpack[Options],
) -> Callable[Concatenate[A, B, C, P], tuple[N, tuple[A, B, C]]]: ...
@overload
def value_and_grad(
    f: Callable[P, N],
    argnums: Argnums = 0,
    has_aux: Literal[False] = False,
    **options: Unpack[Options],
) -> Callable[P, tuple[N, Any]]: ...
@overload
def value_and_grad(
    f: Callable[Concatenate[A, P], tuple[N, Aux]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
    **options: Unpack[Options],
) -> Callable[Concatenate[A, P], tuple[tuple[N, Aux], A]]: ...
@overload
def value_and_grad(
    f: Callable[Concatenate[S, B, P], tuple[N, Aux]],
    argnums: Literal[1],
    *,
    has_aux: Literal[True],
    **options: Unpack[Options],
) -> Callable[Concatenate[S, B, P], tuple[tuple[N, Aux], B]]: ...
@overload
def value_and_grad(
    f: Callable[Concatenate[A, B, P], tuple[N, Aux]],
    argnums: tuple[Literal[0], Literal[1]],
    *,
    has_aux: Literal[True],
    **options: Unpack[Options],
) -> Callable[Concatenate[A, B, P], tuple[tuple[N, Aux], tuple[A, B]]]: ...
@overload
def value_and_grad(
    f: Callable[Concatenate[S, T, C, P], tuple[N, Aux]],
    argnums: Literal[2],
    *,
    has_aux: Literal[True],
    **options: Unpack[Options],
) -> Callable[Concatenate[S, T, C, P], tuple[tuple[N, Aux], C]]: ...
@overload
def value_and_grad(
    f: Callable[Concatenate[A, P], tuple[N, Aux]],
    argnums: tuple[Literal[0]],
    *,
    has_aux: Literal[True],
    **options: Unpack[Options],
) -> Callable[Concatenate[A, P], tuple[tuple[N, Aux], tuple[A]]]: ...
@overload
def value_and_grad(
    f: Callable[Concatenate[A, B, C, P], tuple[N, Aux]],
    argnums: tuple[Literal[0], Literal[1], Literal[2]],
    *,
    has_aux: Literal[True],
    **options: Unpack[Options],
) -> Callable[Concatenate[A, B, C, P], tuple[tuple[N, Aux], tuple[A, B, C]]]: ...
@overload
def value_and_grad(
    f: Callable[P, tuple[N, Aux]],
    argnums: Argnums = 0,
    *,
    has_aux: Literal[True],
    **options: Unpack[Options],
) -> Callable[P, tuple[tuple[N, Aux], Any]]: ...
@intrinsic
@refusing
def value_and_grad(
    f: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    debug: bool = False,
    primitives: Collection[Any] | Callable[..., bool] | None = None,
) -> Callable[..., Any]:
    """Like `grad`, but the returned function gives ``(value, gradient)`` from one run.

    With ``has_aux`` the value is the pair that ``f`` returned; ``debug`` is as in `grad`.

    >>> value_and_grad(lambda x: x * x)(3.0)
    (9.0, 6.0)
    """
    return (Debugged if debug else Gradient)(f, argnums, True, has_aux, primitives).made()
